//! The code of README.md and docs/crate.md, as one program. It keeps its data in `my-data`.
//!
//! `cargo run --release --example tutorial`

use std::sync::Arc;
use std::time::Duration;

use untorn::changes::{ChangeEvent, ChangeFeedOptions};
use untorn::schema::{ColumnDef, KeyKind, TableDef};
use untorn::types::{ColumnType, Value};
use untorn::{Database, Options, Table};

/// An error of the program's own, made from the database's.
#[derive(Debug)]
enum Refused {
    NeverHere,
    Database(untorn::Error),
}

impl From<untorn::Error> for Refused {
    fn from(error: untorn::Error) -> Refused {
        Refused::Database(error)
    }
}

fn main() -> untorn::Result<()> {
    let db = Database::open(Options::new("my-data"))?;
    println!("{}", db.report());

    // A map on disk.
    let ages = db.key_value::<String, u32>("ages")?;
    let mut t = db.begin();
    ages.put(&mut t, "Ada", 36)?;
    ages.put(&mut t, "Alan", 41)?;
    t.commit()?; // durable when it returns

    let mut t = db.begin();
    for pair in ages.range(&mut t, "A".."B").rev() {
        let (name, age) = pair?;
        println!("{name}: {age}");
    }
    t.rollback()?;

    let scores = db.key_value::<(String, u32), Option<i64>>("scores")?;
    scores.clear(&db)?; // so that a second run finds it empty
    db.transact(|t| scores.insert_all(t, [(("Ada", 1), Some(12)), (("Ada", 2), None)]))?;
    let mut t = db.begin();
    for pair in scores.of(&mut t, "Ada") {
        println!("{:?}", pair?);
    }
    t.rollback()?;

    // One moment for many threads.
    let snapshot = db.snapshot();
    std::thread::scope(|threads| {
        for name in ["Ada", "Alan"] {
            let (db, ages, snapshot) = (&db, &ages, &snapshot);
            threads.spawn(move || match db.begin_in(snapshot).and_then(|mut t| ages.get(&mut t, name)) {
                Ok(age) => println!("{name}: {age:?}"),
                Err(error) => eprintln!("{name}: {error}"),
            });
        }
    });
    drop(snapshot);

    // Deadlocks.
    let visits = db.key_value::<String, u64>("visits")?;
    let count = db.transact(|t| visits.change(t, "Ada", |count| Some(count.unwrap_or(0) + 1)))?;
    println!("Ada was here {} times", count.unwrap_or(0));

    let left = db.transact(|t| -> Result<u64, Refused> {
        let count = visits.get_for_update(t, "Ada")?.unwrap_or(0);
        let left = count.checked_sub(1).ok_or(Refused::NeverHere)?;
        visits.put(t, "Ada", left)?;
        Ok(left)
    });
    match left {
        Ok(left) => println!("one visit is forgotten, {left} are left"),
        Err(Refused::NeverHere) => println!("Ada was never here"),
        Err(Refused::Database(error)) => return Err(error),
    }

    // A transaction; run again if it meets a deadlock, durable when it returns.
    db.transact(|t| visits.change(t, "Ada", |count| Some(count.unwrap_or(0) + 1)))?;

    let mut t = db.begin();
    for pair in visits.range(&mut t, "A".."B").rev() {
        let (name, count) = pair?;
        println!("{name}: {count}");
    }
    t.rollback()?;

    // Tables.
    let columns = vec![
        ColumnDef::new("id", ColumnType::bigint()).auto_increment(),
        ColumnDef::new("name", ColumnType::varchar(80)),
        ColumnDef::new("price", ColumnType::int()),
    ];
    let def = TableDef::new(columns).primary_key(&["id"]).key("by_price", KeyKind::Secondary, &["price"]);
    let item = db.create_table_if_missing("shop", "item", def)?;

    let lamp = [Value::Null, Value::bytes("lamp"), Value::Int(30)];
    let id = db.transact(|t| t.insert(&item, &lamp))?; // the number it was given

    let mut t = db.begin();
    let cheap = untorn::Range::all().index("by_price").to(vec![Value::Int(50)]);
    for row in t.scan(&item, &cheap)? {
        if let [Value::Int(id), Value::Bytes(name), Value::Int(price)] = row?.as_slice() {
            println!("{id}: {}, {price}", String::from_utf8_lossy(name));
        }
    }
    t.rollback()?;
    println!("the newest has number {}", id.unwrap_or(0));

    // Definitions.
    // This empties the table, unless somebody uses it.
    let at_once = db.definitions().timeout(Duration::ZERO);
    if let Err(error) = at_once.truncate_table("shop", "item") {
        println!("somebody is shopping: {error}");
    }

    committed_changes(&db, item)?;
    db.close()
}

/// A snapshot, and what is committed after it.
fn committed_changes(db: &Database, item: Arc<Table>) -> untorn::Result<()> {
    let (snapshot, mut feed) = db.change_feed(ChangeFeedOptions::new().table("shop", "item"))?;
    let mut reader = db.begin_in(&snapshot)?;
    let copied = reader.scan(&item, &untorn::Range::all())?.count();
    reader.rollback()?;
    drop(snapshot);

    db.transact(|t| t.insert(&item, &[Value::Null, Value::bytes("rug"), Value::Int(80)]))?;
    if let Some(ChangeEvent::Commit(commit)) = feed.next_event()? {
        for change in commit.rows() {
            println!("after {copied} rows: {:?} {:?} {:?}", change.kind(), change.key()?, change.values()?);
        }
    }
    Ok(())
}
