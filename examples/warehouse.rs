//! A warehouse: what is on the shelves, and what orders have reserved of it. `cargo run --example warehouse`
//!
//! An upsert, range reads by prefix and backwards, an order that is refused as a whole, a deadlock that
//! `transact` resolves, two auditors who read one snapshot while a clerk goes on selling, and a database
//! that is reopened.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, ScopedJoinHandle};
use std::{env, fs, panic, process};

use untorn::{Database, Error, KeyValue, Options, Result, Snapshot, Transaction};

#[derive(Debug)]
enum Refused {
    OutOfStock { left: u32 },
    OrderedTwice,
    Database(#[expect(dead_code, reason = "for Debug, when main fails")] Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Database(error)
    }
}

struct Warehouse {
    db: Database,
    /// Units that nobody has reserved, by item. Items have names such as `cable/usb-c`.
    free: KeyValue<String, u32>,
    /// Units reserved, by order and item.
    reserved: KeyValue<(u64, String), u32>,
}

impl Warehouse {
    fn new(db: Database) -> Result<Warehouse> {
        Ok(Warehouse { free: db.key_value("free")?, reserved: db.key_value("reserved")?, db })
    }

    /// Puts units of an item on the shelf, whether or not it was stocked before.
    fn receive(&self, item: &str, units: u32) -> Result<()> {
        self.db.transact(|t| self.free.change(t, item, |free| Some(free.unwrap_or(0) + units))).map(drop)
    }

    /// Reserves units of one item in the caller's transaction.
    fn reserve(&self, t: &mut Transaction, order: u64, item: &str, units: u32) -> Result<(), Refused> {
        // `get` reads the transaction's snapshot, which may lack another clerk's sale. This reads the newest
        // value, and keeps others from changing it until the transaction ends.
        let free = self.free.get_for_update(t, item)?.unwrap_or(0);
        self.free.put(t, item, free.checked_sub(units).ok_or(Refused::OutOfStock { left: free })?)?;
        if self.reserved.insert(t, (order, item), units)? { Ok(()) } else { Err(Refused::OrderedTwice) }
    }

    /// Reserves everything in an order, or nothing: an error rolls back what was reserved before it.
    fn order(&self, order: u64, items: &[(&str, u32)]) -> Result<(), Refused> {
        self.db.transact(|t| items.iter().try_for_each(|&(item, units)| self.reserve(t, order, item, units)))
    }

    /// Units on the shelves and units reserved, as of the snapshot.
    fn count(&self, snapshot: &Snapshot) -> Result<(u32, u32)> {
        let mut t = self.db.begin_in(snapshot)?;
        let free = self.free.iter(&mut t).try_fold(0, |sum, pair| pair.map(|(_, units)| sum + units))?;
        let reserved =
            self.reserved.iter(&mut t).try_fold(0, |sum, pair| pair.map(|(_, units)| sum + units))?;
        Ok((free, reserved))
    }
}

/// Two orders want the same two items in opposite order: each holds one when it asks for the other.
fn collide(w: &Warehouse) -> Result<(), Refused> {
    let each_holds_one = Barrier::new(2);
    let take = |order, [first, second]: [&str; 2]| -> Result<u32, Refused> {
        let mut runs = 0;
        w.db.transact(|t| {
            runs += 1;
            w.reserve(t, order, first, 1)?;
            if runs == 1 {
                each_holds_one.wait(); // in the first run only: nobody waits for a second one
            }
            w.reserve(t, order, second, 1)
        })?;
        Ok(runs)
    };
    let [one, two] = thread::scope(|threads| {
        let orders = [(1, ["cable/hdmi", "lamp"]), (2, ["lamp", "cable/hdmi"])];
        orders.map(|(order, items)| threads.spawn(move || take(order, items))).map(joined)
    });
    assert_eq!(one? + two?, 3); // one of them was rolled back, and ran again
    Ok(())
}

/// Two auditors count the same snapshot again and again while lamps are sold.
fn audit_while_selling(w: &Warehouse) -> Result<(), Refused> {
    let (snapshot, selling) = (&w.db.snapshot(), &AtomicBool::new(true));
    let before = w.count(snapshot)?;
    let audit = || -> Result<()> {
        while selling.load(SeqCst) {
            assert_eq!(w.count(snapshot)?, before);
        }
        Ok(())
    };
    thread::scope(|threads| -> Result<(), Refused> {
        let auditors = [threads.spawn(audit), threads.spawn(audit)];
        let sold = (10..30).try_for_each(|order| w.order(order, &[("lamp", 1)]));
        selling.store(false, SeqCst); // also after an error: the auditors wait for it
        auditors.into_iter().try_for_each(joined)?;
        sold
    })
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload))
}

fn main() -> Result<(), Refused> {
    let directory = env::temp_dir().join(format!("untorn-warehouse-{}", process::id()));
    let options = Options::new(&directory).buffer_pool_bytes(32 << 20);
    let w = Warehouse::new(Database::open(options.clone())?)?;
    for (item, units) in [("cable/hdmi", 5), ("cable/usb-c", 7), ("desk", 1), ("lamp", 40), ("lamp", 10)] {
        w.receive(item, units)?;
    }
    let cables = w.free.prefix(&mut w.db.begin(), "cable/").collect::<Result<Vec<_>>>()?;
    assert_eq!(cables, [("cable/hdmi".to_owned(), 5), ("cable/usb-c".to_owned(), 7)]);
    let backwards = w.free.range(&mut w.db.begin(), "d"..).rev().collect::<Result<Vec<_>>>()?;
    assert_eq!(backwards, [("lamp".to_owned(), 50), ("desk".to_owned(), 1)]);

    assert!(matches!(w.order(3, &[("lamp", 2), ("desk", 2)]), Err(Refused::OutOfStock { left: 1 })));
    assert_eq!(w.count(&w.db.snapshot())?, (63, 0)); // nothing of it is reserved, the lamps included
    collide(&w)?;
    audit_while_selling(&w)?;
    // A string in a key has at most 700 bytes.
    assert!(matches!(w.receive(&"x".repeat(701), 1), Err(Error::KeyTooLong { .. })));
    w.db.close()?;
    assert!(matches!(w.receive("lamp", 1), Err(Error::Closed)));
    let w = Warehouse::new(Database::open(options)?)?;
    let (free, reserved) = w.count(&w.db.snapshot())?;
    println!("{free} units are free, {reserved} are reserved");
    assert_eq!((free, reserved), (39, 24)); // two orders of two units, and twenty lamps
    w.db.close()?;
    fs::remove_dir_all(&directory).ok();
    Ok(())
}

#[test]
fn an_order_has_an_item_once() -> Result<(), Refused> {
    let w = Warehouse::new(Database::in_memory()?)?;
    w.receive("desk", 3)?;
    assert!(matches!(w.order(1, &[("desk", 1), ("desk", 1)]), Err(Refused::OrderedTwice)));
    assert_eq!(w.count(&w.db.snapshot())?, (3, 0));
    Ok(())
}
