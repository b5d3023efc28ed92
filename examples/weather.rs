//! Weather stations: a table with a key of two columns, and what one does with such a table.
//!
//! A reading is found by its station and its hour, and rows lie in that order. So the readings of one station
//! between two hours are a range, from either end, and the readings of one station are the range of its name
//! alone. A day of readings is inserted as one statement. Two threads calibrate the stations in opposite
//! orders: each comes to hold what the other wants, one of them is rolled back, and `transact` runs its
//! closure again. Two threads sum up at one moment, while a reading goes. The record of a station is set by
//! compare-and-swap: only a higher one replaces it.
//!
//! `cargo run --release --example weather`: the database is in memory, and goes with the program.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{ColumnType, Value};
use untorn::{Database, KeyValue, OwnedRow, Range, Result, Table, Transaction};

const STATIONS: [&str; 2] = ["Bergen", "Oslo"];
const HOURS: i64 = 24;

fn main() -> Result<()> {
    let db = Database::in_memory()?;
    let def = TableDef::new(vec![
        ColumnDef::new("station", ColumnType::varchar(20)),
        ColumnDef::new("hour", ColumnType::int()),
        ColumnDef::new("tenths", ColumnType::int()),
    ])
    .primary_key(&["station", "hour"]);
    let readings = db.create_table_if_missing("weather", "reading", def)?;

    insert_a_day(&db, &readings)?;
    print_ranges(&db, &readings)?;
    calibrate(&db, &readings)?;
    sum_up(&db, &readings)?;

    let records = db.key_value::<String, (i64, i64)>("records")?;
    for (hour, tenths) in [(13, 100), (14, 105), (15, 95)] {
        if let Some((hour, tenths)) = note_record(&db, &records, "Oslo", hour, tenths)? {
            println!("the record of Oslo: {} at {hour}:00", degrees(tenths));
        }
    }
    db.close()
}

/// A row, as the program wants it.
struct Reading {
    station: String,
    hour: i64,
    tenths: i64,
}

impl Reading {
    /// Text comes as bytes. `None` cannot be here: the columns are of these types, and none may be NULL.
    fn from_row(row: &OwnedRow) -> Option<Reading> {
        let [Value::Bytes(station), Value::Int(hour), Value::Int(tenths)] = row.as_slice() else {
            return None;
        };
        let station = String::from_utf8_lossy(station).into_owned();
        Some(Reading { station, hour: *hour, tenths: *tenths })
    }
}

fn degrees(tenths: i64) -> String {
    format!("{:.1} °C", tenths as f64 / 10.0)
}

/// All rows, or none.
fn insert_a_day(db: &Database, readings: &Arc<Table>) -> Result<()> {
    let mut rows = Vec::new();
    for station in STATIONS {
        for hour in 0..HOURS {
            let tenths = 100 - (hour - 14).abs() * 5;
            rows.push([Value::bytes(station), Value::Int(hour), Value::Int(tenths)]);
        }
    }
    db.transact(|t| t.insert_all(readings, &rows))?;
    Ok(())
}

fn print_ranges(db: &Database, readings: &Arc<Table>) -> Result<()> {
    let mut t = db.begin();
    let afternoon = Range::all()
        .from(vec![Value::bytes("Oslo"), Value::Int(12)])
        .to(vec![Value::bytes("Oslo"), Value::Int(15)]);
    // The last ones of a station: its name alone, from the end down.
    let latest = Range::all().equal(vec![Value::bytes("Bergen")]).descending();
    for range in [afternoon, latest] {
        for row in t.scan(readings, &range)?.take(3) {
            if let Some(reading) = Reading::from_row(&row?) {
                println!("{} {}:00 {}", reading.station, reading.hour, degrees(reading.tenths));
            }
        }
    }
    t.rollback()
}

/// Adds a tenth of a degree everywhere, in two threads at once, which meet in a deadlock.
fn calibrate(db: &Database, readings: &Arc<Table>) -> Result<()> {
    let attempts = AtomicU32::new(0);
    let both_hold_one = Barrier::new(2);
    let [bergen, oslo] = STATIONS;
    thread::scope(|threads| {
        let workers = [(bergen, oslo), (oslo, bergen)].map(|(first, second)| {
            let (attempts, both_hold_one) = (&attempts, &both_hold_one);
            threads.spawn(move || {
                let mut meets = true;
                // It may run more than once: what it counts outside the database is counted each time.
                db.transact(|t| {
                    attempts.fetch_add(1, Ordering::Relaxed);
                    add_a_tenth(t, readings, first)?;
                    // Only here, and only once, to make the deadlock certain: the other thread holds its
                    // first station too.
                    if std::mem::take(&mut meets) {
                        both_hold_one.wait();
                    }
                    add_a_tenth(t, readings, second)
                })
            })
        });
        workers.into_iter().try_for_each(joined)
    })?;
    println!("2 transactions, {} attempts", attempts.into_inner());
    Ok(())
}

/// Read and changed under a lock: what another transaction adds in between is not lost.
fn add_a_tenth(t: &mut Transaction, readings: &Arc<Table>, station: &str) -> Result<()> {
    for hour in 0..HOURS {
        let key = [Value::bytes(station), Value::Int(hour)];
        let row = t.get_for_update(readings, &key)?;
        if let Some(reading) = row.as_ref().and_then(Reading::from_row) {
            t.update(readings, &key, &[("tenths", Value::Int(reading.tenths + 1))])?;
        }
    }
    Ok(())
}

/// Each station in a thread of its own, both at the moment of the snapshot.
fn sum_up(db: &Database, readings: &Arc<Table>) -> Result<()> {
    let snapshot = db.snapshot();
    db.transact(|t| t.delete(readings, &[Value::bytes("Oslo"), Value::Int(0)]))?;
    thread::scope(|threads| {
        let workers = STATIONS.map(|station| {
            let snapshot = &snapshot;
            threads.spawn(move || -> Result<()> {
                let mut t = db.begin_in(snapshot)?;
                let (mut rows, mut sum) = (0, 0);
                for row in t.scan(readings, &Range::all().equal(vec![Value::bytes(station)]))? {
                    if let Some(reading) = Reading::from_row(&row?) {
                        rows += 1;
                        sum += reading.tenths;
                    }
                }
                println!("{station}: {rows} readings, {} on average", degrees(sum / rows.max(1)));
                Ok(())
            })
        });
        workers.into_iter().try_for_each(joined)
    })
}

/// Nobody else changes the pair between the look and the change. Returns what is there now.
fn note_record(
    db: &Database,
    records: &KeyValue<String, (i64, i64)>,
    station: &str,
    hour: i64,
    tenths: i64,
) -> Result<Option<(i64, i64)>> {
    db.transact(|t| {
        records.change(t, station, |known| match known {
            Some((_, highest)) if highest >= tenths => known,
            _ => Some((hour, tenths)),
        })
    })
}

/// What a thread came to. A panic goes on in this one.
fn joined(worker: thread::ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
