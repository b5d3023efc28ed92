//! The five transactions (clauses 2.4 to 2.8), by prepared statements.

use super::load::{DISTRICTS, Scale};
use super::{Door, last_name, uneven};
use anyhow::{Context, Result};
use disk::Random;
use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, Error, Params};
use std::fmt;

/// Which transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl Kind {
    pub const ALL: [Kind; 5] =
        [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::NewOrder => "new order",
            Kind::Payment => "payment",
            Kind::OrderStatus => "order status",
            Kind::Delivery => "delivery",
            Kind::StockLevel => "stock level",
        })
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Committed,
    /// Rolled back because an item does not exist, as one new order in a hundred is.
    AsAsked,
    /// Rolled back by the server, or had waited too long.
    Deadlock,
}

/// A client at a terminal of its warehouse.
pub struct Client {
    connection: Conn,
    scale: Scale,
    home: usize,
    random: Random,
}

impl Client {
    pub fn new(door: &Door, scale: Scale, home: usize, random: Random) -> Result<Client> {
        Ok(Client { connection: door.enter()?, scale, home, random })
    }

    /// 45 new orders and 43 payments in a hundred, 4 of each other.
    pub fn next_kind(&mut self) -> Kind {
        match self.random.below(100) {
            0..45 => Kind::NewOrder,
            45..88 => Kind::Payment,
            88..92 => Kind::OrderStatus,
            92..96 => Kind::Delivery,
            _ => Kind::StockLevel,
        }
    }

    /// Runs one. An error is one that no load should see.
    pub fn run(&mut self, kind: Kind) -> Result<Outcome> {
        let ran = self.attempt(kind);
        let lost = |error: &anyhow::Error| match error.downcast_ref::<Error>() {
            Some(Error::MySqlError(error)) => matches!(error.code, 1205 | 1213),
            _ => false,
        };
        match ran {
            Err(error) if lost(&error) => {
                self.connection.query_drop("ROLLBACK")?;
                Ok(Outcome::Deadlock)
            }
            other => other,
        }
    }

    fn attempt(&mut self, kind: Kind) -> Result<Outcome> {
        self.connection.query_drop("BEGIN")?;
        let commits = match kind {
            Kind::NewOrder => self.new_order()?,
            Kind::Payment => self.payment().map(|()| true)?,
            Kind::OrderStatus => self.order_status().map(|()| true)?,
            Kind::Delivery => self.delivery().map(|()| true)?,
            Kind::StockLevel => self.stock_level().map(|()| true)?,
        };
        self.connection.query_drop(if commits { "COMMIT" } else { "ROLLBACK" })?;
        Ok(if commits { Outcome::Committed } else { Outcome::AsAsked })
    }

    fn change(&mut self, statement: &str, values: impl Into<Params>) -> Result<()> {
        Ok(self.connection.exec_drop(statement, values)?)
    }

    fn row<T: FromRow>(&mut self, statement: &str, values: impl Into<Params>) -> Result<T> {
        let found: Option<T> = self.connection.exec_first(statement, values)?;
        found.with_context(|| format!("no row: {statement}"))
    }

    fn district(&mut self) -> usize {
        1 + self.random.below(DISTRICTS)
    }

    fn customer(&mut self) -> usize {
        uneven(&mut self.random, 1023, 1, self.scale.customers)
    }

    /// Another warehouse than one's own, if there is one.
    fn elsewhere(&mut self) -> usize {
        let others = self.scale.warehouses - 1;
        if others == 0 {
            self.home
        } else {
            (self.home + self.random.below(others)) % self.scale.warehouses + 1
        }
    }

    fn new_order(&mut self) -> Result<bool> {
        let (home, district, customer) = (self.home, self.district(), self.customer());
        let count = 5 + self.random.below(11);
        let fails = self.random.one_in(100);
        let mut lines = Vec::with_capacity(count);
        for number in 1..=count {
            let unused = fails && number == count;
            let item = if unused { 0 } else { uneven(&mut self.random, 8191, 1, self.scale.items) };
            let from = if self.random.one_in(100) { self.elsewhere() } else { home };
            lines.push((number, item, from, 1 + self.random.below(10) as i64));
        }
        let local = lines.iter().all(|(_, _, from, _)| *from == home);
        let _: (f64, String, String, f64) = self.row(
            "SELECT c_discount, c_last, c_credit, w_tax FROM customer JOIN warehouse ON w_id = c_w_id \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            (home, district, customer),
        )?;
        let (order, _): (i64, f64) = self.row(
            "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
            (home, district),
        )?;
        self.change(
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
            (home, district),
        )?;
        self.change(
            "INSERT INTO orders VALUES (?, ?, ?, ?, NOW(), NULL, ?, ?)",
            (home, district, order, customer, count, local),
        )?;
        self.change("INSERT INTO new_order VALUES (?, ?, ?)", (home, district, order))?;
        for (number, item, from, quantity) in lines {
            let price: Option<String> =
                self.connection.exec_first("SELECT i_price FROM item WHERE i_id = ?", (item,))?;
            let Some(price) = price else { return Ok(false) };
            let (stock, place): (i64, String) = self.row(
                "SELECT s_quantity, s_dist FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE",
                (from, item),
            )?;
            let left = if stock >= quantity + 10 { stock - quantity } else { stock - quantity + 91 };
            self.change(
                "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?",
                (left, quantity, from != home, from, item),
            )?;
            self.change(
                "INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ? * CAST(? AS DECIMAL(6,2)), ?)",
                (home, district, order, number, item, from, quantity, quantity, price, place),
            )?;
        }
        Ok(true)
    }

    /// A customer by number, or the middle one of those of a name.
    fn chosen(&mut self, warehouse: usize, district: usize) -> Result<usize> {
        if self.random.below(100) < 40 {
            return Ok(self.customer());
        }
        let last = last_name(uneven(&mut self.random, 255, 0, self.scale.customers.min(1000) - 1));
        let found: Vec<usize> = self.connection.exec(
            "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
            (warehouse, district, &last),
        )?;
        let middle = found.get(found.len().div_ceil(2).saturating_sub(1)).copied();
        middle.with_context(|| format!("nobody is called {last}"))
    }

    fn payment(&mut self) -> Result<()> {
        let (home, district) = (self.home, self.district());
        let (warehouse, of) =
            if self.random.below(100) < 85 { (home, district) } else { (self.elsewhere(), self.district()) };
        let cents = 100 + self.random.below(499_901);
        let amount = format!("{}.{:02}", cents / 100, cents % 100);
        self.change("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", (&amount, home))?;
        let name: String = self.row("SELECT w_name FROM warehouse WHERE w_id = ?", (home,))?;
        self.change(
            "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
            (&amount, home, district),
        )?;
        let customer = self.chosen(warehouse, of)?;
        let credit: String = self.row(
            "SELECT c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
            (warehouse, of, customer),
        )?;
        let note = match &*credit {
            "BC" => format!("{customer} {of} {warehouse} {district} {home} {amount}|"),
            _ => String::new(),
        };
        self.change(
            "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
             c_payment_cnt = c_payment_cnt + 1, c_data = LEFT(CONCAT(?, c_data), 500) \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            (&amount, &amount, note, warehouse, of, customer),
        )?;
        self.change(
            "INSERT INTO history VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)",
            (customer, of, warehouse, district, home, &amount, name),
        )
    }

    fn order_status(&mut self) -> Result<()> {
        let (home, district) = (self.home, self.district());
        let customer = self.chosen(home, district)?;
        let _: (f64, String) = self.row(
            "SELECT c_balance, c_first FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            (home, district, customer),
        )?;
        let (order, _): (i64, Option<i64>) = self.row(
            "SELECT o_id, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
             ORDER BY o_id DESC LIMIT 1",
            (home, district, customer),
        )?;
        let _: Vec<(i64, i64, i64, f64)> = self.connection.exec(
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount FROM order_line \
             WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            (home, district, order),
        )?;
        Ok(())
    }

    fn delivery(&mut self) -> Result<()> {
        let (home, carrier) = (self.home, 1 + self.random.below(10));
        for district in 1..=DISTRICTS {
            let oldest: Option<i64> = self.connection.exec_first(
                "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 \
                 FOR UPDATE",
                (home, district),
            )?;
            let Some(order) = oldest else { continue };
            let key = (home, district, order);
            self.change("DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?", key)?;
            let customer: i64 =
                self.row("SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", key)?;
            self.change(
                "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
                (carrier, home, district, order),
            )?;
            self.change(
                "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                key,
            )?;
            let amount: String = self.row(
                "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                key,
            )?;
            self.change(
                "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                (amount, home, district, customer),
            )?;
        }
        Ok(())
    }

    fn stock_level(&mut self) -> Result<()> {
        let (home, district, threshold) = (self.home, self.district(), 10 + self.random.below(11));
        let next: i64 =
            self.row("SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?", (home, district))?;
        let _: u64 = self.row(
            "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_i_id = ol_i_id \
             WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_w_id = ? \
             AND s_quantity < ?",
            (home, district, next - 20, next, home, threshold),
        )?;
        Ok(())
    }
}
