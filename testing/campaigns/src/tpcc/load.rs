//! The rows that a run begins with.

use super::{Door, last_name, uneven};
use anyhow::Result;
use disk::Random;
use mysql::Conn;
use mysql::prelude::Queryable;

/// Districts of a warehouse.
pub const DISTRICTS: usize = 10;
/// Rows of one INSERT.
const ROWS_AT_ONCE: usize = 500;

/// How many of everything.
#[derive(Clone, Copy)]
pub struct Scale {
    pub warehouses: usize,
    pub items: usize,
    /// In each district; as many orders.
    pub customers: usize,
    /// Orders of a district that are delivered.
    pub delivered: usize,
}

impl Scale {
    /// The standard's, or one in `fraction` of it.
    pub fn new(warehouses: u32, fraction: u32) -> Scale {
        let of = |rows: usize| rows / fraction as usize;
        let warehouses = warehouses as usize;
        Scale { warehouses, items: of(100_000), customers: of(3000), delivered: of(2100) }
    }
}

/// Gathers rows of a table and inserts many at once.
struct Rows<'c> {
    connection: &'c mut Conn,
    table: &'static str,
    rows: Vec<String>,
}

impl<'c> Rows<'c> {
    fn of(connection: &'c mut Conn, table: &'static str) -> Rows<'c> {
        Rows { connection, table, rows: Vec::new() }
    }

    fn add(&mut self, row: String) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() == ROWS_AT_ONCE { self.insert() } else { Ok(()) }
    }

    fn insert(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows).join(",");
        Ok(self.connection.query_drop(format!("INSERT INTO {} VALUES {rows}", self.table))?)
    }
}

fn letters(random: &mut Random, from: usize, to: usize) -> String {
    let length = from + random.below(to - from + 1);
    (0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

/// One in ten has the mark that new orders look for.
fn data(random: &mut Random, from: usize, to: usize) -> String {
    let mut text = letters(random, from, to);
    if random.one_in(10) {
        text.replace_range(..8, "ORIGINAL");
    }
    text
}

/// Fills all tables.
pub fn fill(door: &Door, scale: Scale, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let mut connection = door.enter()?;
    let mut items = Rows::of(&mut connection, "item");
    for item in 1..=scale.items {
        let (image, cents) = (1 + random.below(10_000), 100 + random.below(9901));
        let (name, data) = (letters(&mut random, 14, 24), data(&mut random, 26, 50));
        items.add(format!("({item},{image},'{name}',{}.{:02},'{data}')", cents / 100, cents % 100))?;
    }
    items.insert()?;
    for warehouse in 1..=scale.warehouses {
        let (name, tax) = (letters(&mut random, 6, 10), random.below(2001));
        let ytd = 10 * scale.customers * DISTRICTS;
        connection.query_drop(format!(
            "INSERT INTO warehouse VALUES ({warehouse},'{name}','street','city','st','123411111',0.{tax:04},{ytd})"
        ))?;
        let mut stock = Rows::of(&mut connection, "stock");
        for item in 1..=scale.items {
            let quantity = 10 + random.below(91);
            let (place, data) = (letters(&mut random, 24, 24), data(&mut random, 26, 50));
            stock.add(format!("({warehouse},{item},{quantity},'{place}',0,0,0,'{data}')"))?;
        }
        stock.insert()?;
        for district in 1..=DISTRICTS {
            fill_district(&mut connection, scale, warehouse, district, &mut random)?;
        }
    }
    Ok(())
}

fn fill_district(
    connection: &mut Conn,
    scale: Scale,
    warehouse: usize,
    district: usize,
    random: &mut Random,
) -> Result<()> {
    let (name, tax) = (letters(random, 6, 10), random.below(2001));
    let (ytd, next) = (10 * scale.customers, scale.customers + 1);
    connection.query_drop(format!(
        "INSERT INTO district VALUES ({warehouse},{district},'{name}','street','city','st','123411111',\
         0.{tax:04},{ytd},{next})"
    ))?;
    let mut customers = Rows::of(connection, "customer");
    for customer in 1..=scale.customers {
        let number = if customer <= 1000 { customer - 1 } else { uneven(random, 255, 0, 999) };
        let (first, last) = (letters(random, 8, 16), last_name(number));
        let credit = if random.one_in(10) { "BC" } else { "GC" };
        let (discount, data) = (random.below(5001), letters(random, 300, 500));
        customers.add(format!(
            "({warehouse},{district},{customer},'{first}','OE','{last}','street','city','st','123411111',\
             '0123456789012345',NOW(),'{credit}',50000,0.{discount:04},-10,10,1,0,'{data}')"
        ))?;
    }
    customers.insert()?;
    let mut history = Rows::of(connection, "history");
    for customer in 1..=scale.customers {
        let data = letters(random, 12, 24);
        history
            .add(format!("({customer},{district},{warehouse},{district},{warehouse},NOW(),10,'{data}')"))?;
    }
    history.insert()?;
    // Each customer has one order, in any sequence.
    let mut buyers: Vec<usize> = (1..=scale.customers).collect();
    for at in (1..buyers.len()).rev() {
        buyers.swap(at, random.below(at + 1));
    }
    let (mut orders, mut lines) = (Vec::new(), Vec::new());
    for (order, customer) in (1..).zip(buyers) {
        let count = 5 + random.below(11);
        let delivered = order <= scale.delivered;
        let carrier = if delivered { (1 + random.below(10)).to_string() } else { "NULL".to_owned() };
        orders.push(format!("({warehouse},{district},{order},{customer},NOW(),{carrier},{count},1)"));
        for line in 1..=count {
            let (item, place) = (1 + random.below(scale.items), letters(random, 24, 24));
            let cents = if delivered { 0 } else { 1 + random.below(999_999) };
            let (when, amount) = (if delivered { "NOW()" } else { "NULL" }, (cents / 100, cents % 100));
            lines.push(format!(
                "({warehouse},{district},{order},{line},{item},{warehouse},{when},5,{}.{:02},'{place}')",
                amount.0, amount.1
            ));
        }
    }
    for (table, rows) in [("orders", orders), ("order_line", lines)] {
        let mut into = Rows::of(connection, table);
        rows.into_iter().try_for_each(|row| into.add(row))?;
        into.insert()?;
    }
    let mut waiting = Rows::of(connection, "new_order");
    for order in scale.delivered + 1..=scale.customers {
        waiting.add(format!("({warehouse},{district},{order})"))?;
    }
    waiting.insert()
}
