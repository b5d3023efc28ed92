//! The face of programs without an executor.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use untorn::engine::block_on;
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{ColumnType, Value};
use untorn::{Columns, Database, Error, Isolation, Lock, Range, Table, Transaction, WaitPolicy};

fn table(db: &Database, rows: i64) -> Arc<Table> {
    let def = TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("n", ColumnType::int()),
    ]);
    let table = db.create_table_if_missing("test", "t", def.primary_key(&["id"])).unwrap();
    db.transact(|t| {
        (1..=rows).try_for_each(|id| t.insert(&table, &[Value::Int(id), Value::Int(-id)]).map(drop))
    })
    .unwrap();
    table
}

/// The rows of a scan may be changed while it runs, through another transaction.
#[test]
fn no_page_is_latched_between_two_rows_of_a_scan() {
    let db = Database::in_memory().unwrap();
    let table = table(&db, 300);
    let (mut reader, mut seen) = (db.begin(), 0);
    for row in reader.scan(&table, &Range::all()).unwrap() {
        let row = row.unwrap();
        let changed = db.transact(|t| t.update(&table, &row[..1], &[("n", Value::Int(7))])).unwrap();
        assert!(changed);
        assert_eq!(row[1], Value::Int(-(seen + 1)), "the snapshot does not see it");
        seen += 1;
    }
    assert_eq!(seen, 300);
    reader.rollback().unwrap();
}

#[test]
fn a_scan_may_be_left_and_goes_along_any_index() {
    let db = Database::in_memory().unwrap();
    let table = table(&db, 500);
    let parts = vec![KeyPart::whole(1)];
    let key = KeyDef::new("n", KeyKind::Secondary, parts);
    db.create_index("test", "t", key).unwrap();
    let mut t = db.begin();
    let ids = |t: &mut untorn::Transaction, range: &Range<'_>, most: usize| -> Vec<i64> {
        let id = |row: untorn::Result<Vec<Value<'static>>>| match row.unwrap()[0] {
            Value::Int(id) => id,
            ref other => panic!("{other:?}"),
        };
        t.scan(&table, range).unwrap().take(most).map(id).collect()
    };
    assert_eq!(ids(&mut t, &Range::all(), 3), [1, 2, 3]);
    assert_eq!(ids(&mut t, &Range::all().descending(), 2), [500, 499]);
    assert_eq!(ids(&mut t, &Range::all().index("n"), 2), [500, 499]);
    let middle = Range::all().index("n").from(vec![Value::Int(-20)]).to(vec![Value::Int(-11)]);
    assert_eq!(ids(&mut t, &middle, usize::MAX), (11..=20).rev().collect::<Vec<_>>());
    assert!(matches!(t.scan(&table, &Range::all().index("x")).err(), Some(Error::NoSuchIndex(_))));
    t.commit().unwrap();
    db.drop_index("test", "t", "n").unwrap();
}

/// Each of two transactions has what the other one wants next.
#[test]
fn transact_repeats_what_a_deadlock_ended() {
    let db = Database::in_memory().unwrap();
    let counts = db.key_value::<u8, u32>("counts").unwrap();
    db.transact(|t| counts.put(t, 0, 0).and(counts.put(t, 1, 0))).unwrap();
    let (barrier, runs) = (Barrier::new(2), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for first in [0, 1] {
            let (db, counts, barrier, runs) = (&db, counts.clone(), &barrier, &runs);
            scope.spawn(move || {
                let mut met = false;
                db.transact(|t| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    counts.change(t, first, |count| count.map(|count| count + 1))?;
                    if !std::mem::replace(&mut met, true) {
                        barrier.wait();
                    }
                    counts.change(t, 1 - first, |count| count.map(|count| count + 1))
                })
                .unwrap();
            });
        }
    });
    assert_eq!(runs.load(Ordering::SeqCst), 3, "one of them was the victim");
    let mut t = db.begin();
    assert_eq!((counts.get(&mut t, 0).unwrap(), counts.get(&mut t, 1).unwrap()), (Some(2), Some(2)));
}

#[test]
fn transact_undoes_what_fails() {
    let db = Database::in_memory().unwrap();
    let names = db.key_value::<u32, String>("names").unwrap();
    let mut runs = 0;
    let failed = db.transact(|t| {
        runs += 1;
        names.put(t, 1, "Ada")?;
        assert!(!names.insert(t, 1, "Alan")?, "there is one");
        t.insert(&db.table("untorn", "names")?, &[Value::UInt(1), Value::bytes("Grace")])
    });
    let error = failed.unwrap_err();
    assert!(error.is_duplicate_key() && !error.is_retryable(), "{error}");
    assert_eq!(runs, 1);
    let mut t = db.begin();
    assert_eq!(names.first(&mut t).unwrap(), None);
}

/// What a program calls its errors: one of its own, and those of the database.
#[derive(Debug)]
enum Refused {
    Empty(u32),
    Database(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Database(error)
    }
}

impl From<std::num::ParseIntError> for Refused {
    fn from(_: std::num::ParseIntError) -> Refused {
        Refused::Empty(u32::MAX)
    }
}

/// `?` of both kinds of error; the closure's own comes back as it is, and what was done is undone.
#[test]
fn transact_returns_an_error_of_the_callers_untouched() {
    let db = Database::in_memory().unwrap();
    let stock = db.key_value::<u32, u32>("stock").unwrap();
    db.transact(|t| stock.put(t, 1, 1)).unwrap();
    let mut runs = 0;
    let mut take = |text: &str| -> Result<u32, Refused> {
        db.transact(|t| {
            runs += 1;
            let item: u32 = text.parse()?;
            stock.put(t, 77, 1)?;
            match stock.get_for_update(t, item)? {
                Some(left @ 1..) => stock.put(t, item, left - 1).map(|_| left - 1).map_err(Refused::from),
                _ => Err(Refused::Empty(item)),
            }
        })
    };
    assert!(matches!(take("1"), Ok(0)));
    assert!(matches!(take("1"), Err(Refused::Empty(1))));
    assert!(matches!(take("x"), Err(Refused::Empty(u32::MAX))));
    assert_eq!(runs, 3, "none of it was worth a second run");
    db.transact(|t| stock.remove(t, 77)).unwrap();
    let refused: Result<(), Refused> = db.transact(|t| {
        stock.put(t, 77, 1)?;
        let row = [Value::UInt(1), Value::UInt(1)];
        t.insert(&db.table("untorn", "stock")?, &row)?;
        Ok(())
    });
    assert!(matches!(refused, Err(Refused::Database(error)) if error.is_duplicate_key()));
    assert_eq!(stock.get(&mut db.begin(), 77).unwrap(), None);
}

/// What counts is how the last operation of the transaction ended, not what the closure makes of it.
#[test]
fn transact_repeats_conflicts_whatever_their_errors_are_called() {
    let db = Database::in_memory().unwrap();
    let counts = db.key_value::<u8, u32>("counts").unwrap();
    db.transact(|t| counts.put(t, 0, 0).and(counts.put(t, 1, 0))).unwrap();
    let (barrier, runs) = (Barrier::new(2), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for first in [0, 1] {
            let (db, counts, barrier, runs) = (&db, counts.clone(), &barrier, &runs);
            scope.spawn(move || {
                let mut met = false;
                let done = db.transact(|t| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    counts.change(t, first, |count| count.map(|count| count + 1))?;
                    if !std::mem::replace(&mut met, true) {
                        barrier.wait();
                    }
                    let second = counts.change(t, 1 - first, |count| count.map(|count| count + 1));
                    // The deadlock goes under another name.
                    second.map_err(|_| Refused::Empty(7))
                });
                done.unwrap();
            });
        }
    });
    assert_eq!(runs.load(Ordering::SeqCst), 3, "one of them was the victim");

    // Somebody else's lock that is not given back in time: once more, and then the error of the last run.
    let mut holder = db.begin();
    counts.put(&mut holder, 0, 9).unwrap();
    let mut runs = 0;
    let late = db.transact(|t| {
        runs += 1;
        t.set_lock_wait_timeout(std::time::Duration::ZERO);
        counts.put(t, 0, 1).map_err(|_| Refused::Empty(runs))
    });
    assert!(matches!(late, Err(Refused::Empty(2))), "{late:?}");
    // It was got over before the closure failed for a reason of its own.
    let mut runs = 0;
    let own: Result<(), Refused> = db.transact(|t| {
        runs += 1;
        t.set_lock_wait_timeout(std::time::Duration::ZERO);
        assert!(counts.put(t, 0, 1).unwrap_err().is_retryable());
        counts.put(t, 1, 1)?;
        Err(Refused::Empty(0))
    });
    assert!(matches!(own, Err(Refused::Empty(0))) && runs == 1, "{own:?}, {runs} runs");
    // Who does not want to wait does not want to wait for the next run either.
    let mut runs = 0;
    let busy = db.transact(|t| {
        runs += 1;
        counts.get_for_update_or(t, 0, WaitPolicy::NoWait)
    });
    assert!(busy.unwrap_err().is_retryable() && runs == 1, "{runs} runs");
    holder.rollback().unwrap();
}

/// Two writers of one new key: both put it, one after the other.
#[test]
fn put_is_an_upsert() {
    let db = Database::in_memory().unwrap();
    let counters = db.key_value::<u64, u64>("counters").unwrap();
    const ROUNDS: u64 = 40;
    for key in 0..ROUNDS {
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    let mut t = db.begin();
                    counters.put(&mut t, key, 1).unwrap();
                    t.commit().unwrap();
                    // Read, compute, put: no increment is lost.
                    for _ in 0..5 {
                        let mut t = db.begin();
                        let now = counters.get_for_update(&mut t, key).unwrap().unwrap();
                        counters.put(&mut t, key, now + 1).unwrap();
                        t.commit().unwrap();
                    }
                });
            }
        });
    }
    let mut t = db.begin();
    for key in 0..ROUNDS {
        let value = counters.get(&mut t, key).unwrap().unwrap();
        // The last of the four puts may come after increments.
        assert!((6..=21).contains(&value), "key {key}: {value}");
    }
}

/// A key that is not there cannot be locked at READ COMMITTED: the faster one wins, and the others count on
/// from that.
#[test]
fn a_change_of_a_key_that_is_not_there_loses_no_other() {
    const THREADS: u32 = 4;
    let db = Database::in_memory().unwrap();
    let counts = db.key_value::<u32, u32>("counts").unwrap();
    for key in 0..200 {
        let start = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    let mut t = db.begin_at(Isolation::ReadCommitted);
                    counts.change(&mut t, key, |count| Some(count.unwrap_or(0) + 1)).unwrap();
                    t.commit().unwrap();
                });
            }
        });
        let found = counts.get(&mut db.begin(), key).unwrap();
        assert_eq!(found, Some(THREADS), "key {key}");
    }
}

/// Both ends of ranges of all lengths, against a map.
#[test]
fn pairs_come_from_both_ends_and_meet_once() {
    let db = Database::in_memory().unwrap();
    let squares = db.key_value::<u16, u64>("squares").unwrap();
    let mut random = 0x2545_f491_4f6c_dd1du64;
    println!("seed {random}");
    let mut next = |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    let model: BTreeMap<u16, u64> =
        (0..700).map(|_| next(2000) as u16).map(|k| (k, u64::from(k).pow(2))).collect();
    db.transact(|t| model.iter().try_for_each(|(k, v)| squares.put(t, *k, *v).map(drop))).unwrap();
    let mut t = db.begin();
    assert_eq!(squares.first(&mut t).unwrap(), model.first_key_value().map(|(k, v)| (*k, *v)));
    assert_eq!(squares.last(&mut t).unwrap(), model.last_key_value().map(|(k, v)| (*k, *v)));
    for round in 0..200 {
        let (from, to) = (next(2100) as u16, next(2100) as u16);
        let bounds = match round % 4 {
            0 => (Bound::Included(from), Bound::Excluded(to.max(from))),
            1 => (Bound::Excluded(from), Bound::Included(to.max(from))),
            2 => (Bound::Unbounded, Bound::Included(to)),
            _ => (Bound::Included(from), Bound::Unbounded),
        };
        let mut wanted = model.range(bounds).map(|(k, v)| (*k, *v));
        let mut pairs = squares.range(&mut t, bounds);
        let from_the_end = next(4);
        loop {
            let (found, wanted) = match next(3) < from_the_end {
                true => (pairs.next_back(), wanted.next_back()),
                false => (pairs.next(), wanted.next()),
            };
            assert_eq!(found.transpose().unwrap(), wanted, "round {round}");
            if wanted.is_none() {
                assert!(pairs.next().is_none() && pairs.next_back().is_none(), "round {round}: it ended");
                break;
            }
        }
    }
}

#[test]
fn keys_of_all_kinds_are_in_the_order_of_their_values() {
    let db = Database::in_memory().unwrap();
    macro_rules! ordered {
        ($name:literal, $type:ty, [$($key:expr),*]) => {{
            let set = db.key_value::<$type, u8>($name).unwrap();
            let keys: Vec<$type> = vec![$($key),*];
            let mut t = db.begin();
            keys.iter().rev().for_each(|key| assert!(set.put(&mut t, Columns::given(key), 1).unwrap()));
            let found: Vec<$type> = set.iter(&mut t).map(|pair| pair.unwrap().0).collect();
            assert_eq!(found, keys);
            t.commit().unwrap();
        }};
    }
    ordered!("i8", i8, [i8::MIN, -1, 0, i8::MAX]);
    ordered!("i16", i16, [i16::MIN, -1, 0, i16::MAX]);
    ordered!("i32", i32, [i32::MIN, -1, 0, i32::MAX]);
    ordered!("i64", i64, [i64::MIN, -1, 0, i64::MAX]);
    ordered!("u8", u8, [0, 1, u8::MAX]);
    ordered!("u16", u16, [0, 1, u16::MAX]);
    ordered!("u32", u32, [0, 1, u32::MAX]);
    ordered!("u64", u64, [0, 1, u64::MAX]);
    ordered!("i128", i128, [i128::MIN, i128::from(i64::MIN), -1, 0, 1, i128::MAX]);
    ordered!("u128", u128, [0, 1, 255, 256, u128::from(u64::MAX) + 1, u128::MAX]);
    ordered!("bool", bool, [false, true]);
    ordered!("array", [u8; 4], [[0, 0, 0, 0], [0, 0, 0, 1], [0, 255, 0, 0], [b' '; 4], [255; 4]]);
    ordered!("bytes", Vec<u8>, [vec![], vec![0], vec![0, 0], vec![1], vec![255, 0], vec![255, 255]]);
    ordered!("text", String, ["".into(), " ".into(), "A".into(), "a".into(), "a ".into(), "\u{e4}".into()]);
    let bytes = db.key_value::<Vec<u8>, u8>("bytes").unwrap();
    let mut t = db.begin();
    let with = |t: &mut untorn::Transaction, prefix: &[u8]| -> Vec<Vec<u8>> {
        bytes.prefix(t, prefix).map(|pair| pair.unwrap().0).collect()
    };
    assert_eq!(with(&mut t, &[0]), [vec![0], vec![0, 0]]);
    assert_eq!(with(&mut t, &[255]), [vec![255, 0], vec![255, 255]]);
    assert_eq!(with(&mut t, &[255, 255]), [vec![255, 255]]);
    assert_eq!(with(&mut t, &[]).len(), 6);
    let text = db.key_value::<String, u8>("text").unwrap();
    let keys: Vec<String> = text.prefix(&mut t, "a").map(|pair| pair.unwrap().0).collect();
    assert_eq!(keys, ["a", "a "]);
    assert_eq!(
        text.range(&mut t, "A"..="a").rev().map(|pair| pair.unwrap().0).collect::<Vec<_>>(),
        ["a", "A"]
    );
}

#[test]
fn definitions_change_without_an_executor() {
    let db = Database::in_memory().unwrap();
    let handle = table(&db, 10);
    db.rename_table(("test", "t"), ("test", "u")).unwrap();
    assert!(db.check_table("test", "u").unwrap().is_sound());
    let count = |name: &str| {
        let table = db.table("test", name).unwrap();
        db.transact(|t| t.scan(&table, &Range::all()).map(Iterator::count)).unwrap()
    };
    assert_eq!(count("u"), 10);
    db.transact(|t| t.delete(&handle, &[Value::Int(1)])).unwrap();
    assert_eq!(count("u"), 9);
    let hold = db.export_table("test", "u").unwrap();
    assert!(db.directory().join("test/u.cfg").is_file());
    drop(hold);
    db.truncate_table("test", "u").unwrap();
    assert_eq!(count("u"), 0);
    db.drop_table("test", "u").unwrap();
    assert!(matches!(db.table("test", "u").err(), Some(Error::NoSuchTable(..))));
    assert_eq!(db.drop_database("test").unwrap(), 0);
    db.close().unwrap();
    assert!(matches!(db.transact(|_| Ok::<(), Error>(())).unwrap_err(), Error::Closed));
}

/// A transaction's own uses of a table are no obstacle to it, and the waits for those of others have a limit.
#[test]
fn definitions_have_a_session_and_a_limit() {
    let db = Database::in_memory().unwrap();
    let handle = table(&db, 10);
    let mut t = db.begin();
    assert!(t.get(&handle, &[Value::Int(1)]).unwrap().is_some());
    let at_once = db.definitions().timeout(std::time::Duration::ZERO);
    let refused = at_once.truncate_table("test", "t").unwrap_err();
    assert!(matches!(refused, Error::MetadataLockTimeout) && refused.is_retryable(), "{refused}");
    at_once.create_database("other", untorn::types::Collation::Utf8mb4Bin).unwrap();
    at_once.session(&t).rename_tables(&[(("test", "t"), ("other", "t"))]).unwrap();
    at_once.session(&t).set_auto_increment("other", "t", 7).unwrap();
    t.delete(&handle, &[Value::Int(1)]).unwrap();
    let refused = at_once.session(&t).drop_tables(&[("other", "t")]).unwrap_err();
    assert!(matches!(refused, Error::UncommittedChanges), "{refused}");
    t.commit().unwrap();
    at_once.drop_tables(&[("other", "t")]).unwrap();
    assert_eq!(at_once.drop_database("other").unwrap(), 0);
}

#[test]
fn a_database_in_memory_leaves_nothing_behind() {
    let db = Database::in_memory().unwrap();
    let directory = db.directory().to_owned();
    assert!(directory.is_dir());
    let clone = db.clone();
    drop(db);
    assert!(directory.is_dir());
    drop(clone);
    assert!(!directory.exists());
}

/// Keys of several columns are in order of the first, then of the next; values may be missing.
#[test]
fn keys_and_values_of_several_columns() {
    let db = Database::in_memory().unwrap();
    let scores = db.key_value::<(String, u32), (i64, Option<String>)>("scores").unwrap();
    let all =
        [("ada", 2, 7, Some("x")), ("ada", 10, -1, None), ("bob", 0, 3, Some("")), ("bob", 1, 0, Some("y"))];
    let pairs = all.iter().rev().map(|(name, round, points, note)| ((*name, *round), (*points, *note)));
    db.transact(|t| scores.insert_all(t, pairs.clone())).unwrap();
    let mut t = db.begin();
    let owned = |(name, round, points, note): &(&str, u32, i64, Option<&str>)| {
        (((*name).to_owned(), *round), (*points, note.map(str::to_owned)))
    };
    let wanted: Vec<_> = all.iter().map(owned).collect();
    let found: Vec<_> = scores.iter(&mut t).map(Result::unwrap).collect();
    assert_eq!(found, wanted);
    let of: Vec<_> = scores.of(&mut t, "ada").rev().map(Result::unwrap).collect();
    assert_eq!(of, [wanted[1].clone(), wanted[0].clone()]);
    let range: Vec<_> = scores.range(&mut t, ("ada", 3)..("bob", 1)).map(Result::unwrap).collect();
    assert_eq!(range, wanted[1..3]);
    assert_eq!(scores.get(&mut t, ("bob", 0)).unwrap(), Some((3, Some(String::new()))));
    assert!(!scores.put(&mut t, ("bob", 0), (4, None)).unwrap());
    let changed = scores.change(&mut t, ("cy", 1), |old| old.or(Some((1, None)))).unwrap();
    assert_eq!(changed, Some((1, None)));
    assert_eq!(scores.get(&mut t, ("bob", 0)).unwrap(), Some((4, None)));
    assert_eq!(scores.last(&mut t).unwrap().unwrap().0, ("cy".to_owned(), 1));
    t.commit().unwrap();
    // The same columns, and another key.
    let other = db.key_value::<String, (u32, i64, Option<String>)>("scores").err().unwrap();
    assert!(matches!(other, Error::OtherDefinition { .. }), "{other}");
    db.rename_table(("untorn", "scores"), ("untorn", "results")).unwrap();
    scores.clear(&db).unwrap();
    assert_eq!(scores.first(&mut db.begin()).unwrap(), None);
    // More than a batch under one first member, from both ends.
    let grid = db.key_value::<(u16, u16, u8), u32>("grid").unwrap();
    let cells = || (0..3u16).flat_map(|x| (0..200u16).map(move |y| ((x, y, 0), u32::from(x * 1000 + y))));
    db.transact(|t| grid.insert_all(t, cells())).unwrap();
    let mut t = db.begin();
    let mut of = grid.of(&mut t, 1);
    for step in 0..100 {
        assert_eq!(of.next().unwrap().unwrap().1, 1000 + step);
        assert_eq!(of.next_back().unwrap().unwrap().1, 1199 - step);
    }
    assert!(of.next().is_none() && of.next_back().is_none());
}

#[test]
fn rows_are_inserted_all_or_none() {
    let db = Database::in_memory().unwrap();
    let def = TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()).auto_increment(),
        ColumnDef::new("n", ColumnType::int()),
    ]);
    let table = db.create_table_if_missing("test", "t", def.primary_key(&["id"])).unwrap();
    let rows: Vec<[Value<'_>; 2]> = (0..500).map(|n| [Value::Null, Value::Int(n)]).collect();
    let count = |t: &mut Transaction| t.scan(&table, &Range::all()).unwrap().count();
    let mut t = db.begin();
    assert_eq!(t.insert_all(&table, &rows).unwrap(), Some(1));
    assert_eq!(t.get(&table, &[Value::Int(500)]).unwrap().unwrap()[1], Value::Int(499));
    // One of them is there already: none of the others stays, and what was before does.
    let mut wrong = rows.clone();
    wrong[300][0] = Value::Int(7);
    assert!(t.insert_all(&table, &wrong).unwrap_err().is_duplicate_key());
    wrong[300] = [Value::Null, Value::bytes("no number")];
    assert!(matches!(t.insert_all(&table, &wrong), Err(Error::Value { .. })));
    assert_eq!(count(&mut t), 500);
    assert_eq!(t.insert_all(&table, &[[Value::Int(9000), Value::Int(1)]]).unwrap(), None);
    assert_eq!(t.insert_all::<[Value<'_>; 2]>(&table, &[]).unwrap(), None);
    t.commit().unwrap();
    assert_eq!(count(&mut db.begin()), 501);
}

/// A row is put whole, also where another unique key is in the way, or nothing is.
#[test]
fn a_row_is_put_whether_it_is_there_or_not() {
    let db = Database::in_memory().unwrap();
    let def = TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()).auto_increment(),
        ColumnDef::new("n", ColumnType::int()),
        ColumnDef::new("note", ColumnType::varchar(20)).nullable(),
    ]);
    let def = def.primary_key(&["id"]).key("n", KeyKind::Unique, &["n"]);
    let table = db.create_table_if_missing("test", "t", def).unwrap();
    let mut t = db.begin();
    assert!(t.put(&table, &[Value::Int(5), Value::Int(50), Value::bytes("a")]).unwrap());
    assert!(t.put(&table, &[Value::Null, Value::Int(60), Value::Null]).unwrap(), "it has the next number");
    assert!(!t.put(&table, &[Value::Int(6), Value::Int(61), Value::bytes("b")]).unwrap());
    let refused = t.put(&table, &[Value::Int(6), Value::Int(50), Value::Null]).unwrap_err();
    assert!(refused.is_duplicate_key(), "{refused}");
    let refused = t.put(&table, &[Value::Int(7), Value::Int(50), Value::Null]).unwrap_err();
    assert!(refused.is_duplicate_key(), "{refused}");
    assert!(matches!(t.put(&table, &[Value::Int(7)]), Err(Error::WrongRowLength { .. })));
    let rows: Vec<_> = t.scan(&table, &Range::all()).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows[0], [Value::Int(5), Value::Int(50), Value::bytes("a")]);
    assert_eq!(rows[1..], [[Value::Int(6), Value::Int(61), Value::bytes("b")]]);
}

#[test]
fn several_threads_read_one_moment() {
    let db = Database::in_memory().unwrap();
    let accounts = db.key_value::<u32, i64>("accounts").unwrap();
    const ACCOUNTS: u32 = 50;
    db.transact(|t| accounts.insert_all(t, (0..ACCOUNTS).map(|id| (id, 100)))).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !stop.load(Ordering::SeqCst) {
                let (from, to) = (round % ACCOUNTS, (round * 7 + 3) % ACCOUNTS);
                db.transact(|t| {
                    accounts.change(t, from, |sum| sum.map(|sum| sum - 1))?;
                    accounts.change(t, to, |sum| sum.map(|sum| sum + 1))
                })
                .unwrap();
                round += 1;
            }
        });
        for _ in 0..30 {
            let snapshot = db.snapshot();
            let read = || -> Vec<i64> {
                let mut t = db.begin_in(&snapshot).unwrap();
                accounts.iter(&mut t).map(|pair| pair.unwrap().1).collect()
            };
            let all: Vec<Vec<i64>> = std::thread::scope(|scope| {
                let readers: Vec<_> = (0..3).map(|_| scope.spawn(read)).collect();
                readers.into_iter().map(|reader| reader.join().unwrap()).collect()
            });
            assert_eq!(all[0].iter().sum::<i64>(), 100 * i64::from(ACCOUNTS));
            assert!(all.iter().all(|seen| *seen == all[0]), "{all:?}");
        }
        stop.store(true, Ordering::SeqCst);
    });
}

/// It stays what it was, however much changes and is purged, also for a transaction that outlives it; and
/// nothing is changed in it.
#[test]
fn a_snapshot_stays_and_is_only_read() {
    let db = Database::in_memory().unwrap();
    let texts = db.key_value::<u32, String>("texts").unwrap();
    db.transact(|t| texts.insert_all(t, (0..200).map(|id| (id, "old")))).unwrap();
    let snapshot = db.snapshot();
    let first = db.begin_in(&snapshot).unwrap();
    let change = |text: &str| {
        for id in 0..200 {
            db.transact(|t| if id % 3 == 0 { texts.remove(t, id) } else { texts.put(t, id, text) }).unwrap();
        }
    };
    change("new");
    let see = |t: &mut Transaction| {
        let seen: Vec<String> = texts.iter(t).map(|pair| pair.unwrap().1).collect();
        assert!(seen.len() == 200 && seen.iter().all(|text| text == "old"), "{}", seen.len());
    };
    let mut late = db.begin_in(&snapshot).unwrap();
    let purge = || block_on(db.asynchronous().transaction_system().purge_all()).unwrap();
    // Kept by itself and by each of those who read it.
    let mut first = first;
    change("newer");
    purge();
    see(&mut first);
    drop(first);
    purge();
    see(&mut db.begin_in(&snapshot).unwrap());
    drop(snapshot);
    change("newest");
    purge();
    see(&mut late);
    let table = db.table("untorn", "texts").unwrap();
    let row = [Value::UInt(1000), Value::bytes("x")];
    let refused: Vec<Error> = [
        texts.put(&mut late, 1, "x").map(drop),
        texts.remove(&mut late, 1).map(drop),
        texts.insert(&mut late, 1000, "x").map(drop),
        texts.insert_all(&mut late, [(1000, "x")]),
        late.insert(&table, &row).map(drop),
        texts.get_for_update(&mut late, 1).map(drop),
        late.scan(&table, &Range::all().lock(Lock::Share)).map(drop),
    ]
    .into_iter()
    .map(Result::unwrap_err)
    .collect();
    assert!(refused.iter().all(|error| matches!(error, Error::ReadOnly)), "{refused:?}");
    see(&mut late);
    late.commit().unwrap();
    let other = Database::in_memory().unwrap();
    assert!(other.begin_in(&db.snapshot()).is_err(), "another database");
}

#[test]
fn rows_that_are_locked_are_waited_for_refused_or_left_out() {
    let db = Database::in_memory().unwrap();
    let jobs = db.key_value::<u32, String>("jobs").unwrap();
    db.transact(|t| jobs.insert_all(t, (0..10).map(|id| (id, "todo")))).unwrap();
    let mut holder = db.begin();
    for id in [0, 1, 4] {
        jobs.get_for_update(&mut holder, id).unwrap();
    }
    let mut t = db.begin();
    let refused = jobs.get_for_update_or(&mut t, 1, WaitPolicy::NoWait).unwrap_err();
    assert!(refused.is_retryable(), "{refused}");
    assert_eq!(jobs.get_for_update_or(&mut t, 1, WaitPolicy::SkipLocked).unwrap(), None);
    assert!(jobs.get_for_update_or(&mut t, 2, WaitPolicy::SkipLocked).unwrap().is_some());
    let table = db.table("untorn", "jobs").unwrap();
    let free = |t: &mut Transaction, wait| {
        let rows = t.scan(&table, &Range::all().lock(Lock::Exclusive).wait(wait)).unwrap();
        rows.map(|row| row.map(|row| row[0].clone())).collect::<Result<Vec<_>, _>>()
    };
    let wanted: Vec<Value<'_>> = [2, 3, 5, 6, 7, 8, 9].map(Value::UInt).into();
    assert_eq!(free(&mut t, WaitPolicy::SkipLocked).unwrap(), wanted);
    assert!(free(&mut t, WaitPolicy::NoWait).unwrap_err().is_retryable());
    holder.commit().unwrap();
    assert_eq!(free(&mut t, WaitPolicy::Wait).unwrap().len(), 10);
}

/// A plain read that locks, at SERIALIZABLE, locks what it answers and not the pairs behind it.
#[test]
fn first_and_last_lock_one_pair() {
    let db = Database::in_memory().unwrap();
    let numbers = db.key_value::<u32, u32>("numbers").unwrap();
    db.transact(|t| (1..=20).try_for_each(|key| numbers.put(t, key, key).map(drop))).unwrap();
    let mut reader = db.begin_at(Isolation::Serializable);
    assert_eq!(numbers.first(&mut reader).unwrap(), Some((1, 1)));
    assert_eq!(numbers.last(&mut reader).unwrap(), Some((20, 20)));
    let locked = |key: u32| {
        let mut t = db.begin();
        numbers.get_for_update_or(&mut t, key, WaitPolicy::NoWait).is_err()
    };
    assert_eq!((1..=20).filter(|key| locked(*key)).collect::<Vec<_>>(), [1, 20]);
}
