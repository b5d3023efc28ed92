//! What a statement leaves behind when it fails, is cut by a crash or finds somebody else's file in its way:
//! nothing that the next statement or the next start takes for something else.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::Path;
use std::sync::Arc;

use crate::definitions::{ids, insert_into, key, names_in, open, options, prepared, table_def, try_open};
use disk::{
    Crash, Environment, Fault, FaultKind, Misbehaviour, Moment, OpenHow, SimulatedEnvironment, Storage,
};
use parking_lot::Mutex;
use untorn::Error;
use untorn::asynchronous::Database;
use untorn::types::Collation;

/// What may leave a table's file under a name for the time being.
#[derive(Clone, Copy, Debug)]
enum First {
    Truncate,
    Swap,
}

/// What comes after it.
#[derive(Clone, Copy, Debug)]
enum Second {
    Discard,
    Truncate,
    Rename,
    Drop,
}

impl First {
    async fn run(self, db: &Database) -> Result<(), Error> {
        let (a, b, t) = (("test", "a"), ("test", "b"), ("test", "t"));
        match self {
            First::Truncate => db.truncate_table("test", "a").await,
            First::Swap => db.rename_tables(&[(a, t), (b, a), (t, b)]).await,
        }
    }
}

impl Second {
    async fn run(self, db: &Database) -> Result<(), Error> {
        match self {
            Second::Discard => db.discard_tablespace("test", "a").await,
            Second::Truncate => db.truncate_table("test", "a").await,
            Second::Rename => db.rename_table(("test", "a"), ("test", "c")).await,
            Second::Drop => db.drop_table("test", "a").await,
        }
    }
}

/// The first statement cannot give the file its name, then a call of the second fails. Whether there was such
/// a call.
fn after_both(start: &disk::SimulatedStorage, first: First, second: Second, calls: (u64, u64)) -> bool {
    let environment = SimulatedEnvironment::with_storage(1, start.crash(1));
    let disk = environment.disk().clone();
    let what = format!("{first:?}, {second:?}, calls {calls:?}");
    let (reached, outcome) = environment.run_until_complete(async {
        let db = open(&environment).await;
        disk.plan(Fault { call: disk.calls() + calls.0, kind: FaultKind::OtherDevice });
        first.run(&db).await.unwrap();
        insert_into(&db, "test", "a", 500).await.unwrap();
        let from = disk.calls();
        disk.plan(Fault { call: from + calls.1, kind: FaultKind::Enospc });
        let outcome = second.run(&db).await;
        let reached = disk.calls() > from + calls.1;
        disk.forget_faults();
        // With its record goes into the catalog what could wait.
        db.create_database("later", Collation::Utf8mb4Bin).await.unwrap();
        (reached, outcome)
    });
    for seed in 0..2 {
        let after = SimulatedEnvironment::with_storage(seed, disk.crash(seed));
        after.run_until_complete(async {
            let db = open(&after).await;
            if outcome.is_err() {
                let found = ids(&db, "test", "a").await;
                assert!(found.as_ref().is_ok_and(|ids| ids.contains(&500)), "{what}, {outcome:?}: {found:?}");
            }
            let with_file = db.tables("test").into_iter().filter(|table| !table.def.discarded);
            let expected: Vec<String> = with_file.map(|table| format!("{}.ibd", table.name)).collect();
            assert_eq!(names_in(&after, "test"), expected, "{what}, {outcome:?}");
        });
        after.shutdown();
    }
    environment.shutdown();
    reached
}

/// Where a file is that could not be given its name is known until it has it, whatever statements fail
/// meanwhile.
#[test]
fn a_file_elsewhere_is_found_after_whatever_fails() {
    let start = prepared(&[("test", "a", 0), ("test", "b", 100)], 3);
    for first in [First::Truncate, First::Swap] {
        // The call that gives `a` its name.
        let leaves = |call: &u64| {
            let environment = SimulatedEnvironment::with_storage(1, start.crash(1));
            let disk = environment.disk().clone();
            let left = environment.run_until_complete(async {
                let db = open(&environment).await;
                disk.plan(Fault { call: disk.calls() + call, kind: FaultKind::OtherDevice });
                let done = first.run(&db).await.is_ok();
                done && !names_in(&environment, "test").contains(&"a.ibd".to_owned())
            });
            environment.shutdown();
            left
        };
        let call = (0..200).find(leaves).expect("a name that can be refused");
        for second in [Second::Discard, Second::Truncate, Second::Rename, Second::Drop] {
            let calls = (0..).take_while(|other| after_both(&start, first, second, (call, *other))).count();
            assert!(calls > 2, "{second:?} makes {calls} calls");
        }
    }
}

/// Every moment of CREATE INDEX at which the power may go.
fn moments_of_create_index() -> Vec<Moment> {
    let environment =
        SimulatedEnvironment::with_storage(1, prepared(&[("test", "a", 0), ("test", "b", 100)], 30));
    let disk = environment.disk().clone();
    let moments = Arc::new(Mutex::new(Vec::new()));
    environment.run_until_complete(async {
        let db = open(&environment).await;
        let seen = moments.clone();
        disk.observe_syncs(move |moment| seen.lock().push(moment));
        db.change_indexes("test", "a", vec![key("k1"), key("k2")], &[]).await.unwrap();
        disk.stop_observing();
    });
    environment.shutdown();
    std::mem::take(&mut *moments.lock())
}

/// The catalog knows of a new tree before the log does.
#[test]
fn no_crash_in_create_index_leaves_pages_of_nobody() {
    let (mut with, mut without) = (0, 0);
    for (at, moment) in moments_of_create_index().iter().enumerate() {
        for crash in [Crash::ProcessOnly, Crash::Random(1), Crash::Random(2), Crash::Random(3)] {
            let after = SimulatedEnvironment::with_storage(2, moment.crash(crash).0);
            after.run_until_complete(async {
                let db = open(&after).await;
                let report = db.check_table("test", "a").await.unwrap();
                assert!(report.is_sound(), "sync {at}, {crash:?}: {:?}", report.problems);
                assert_eq!(report.lost_pages, 0, "sync {at}, {crash:?}");
                match db.table("test", "a").unwrap().def.secondary_keys().len() {
                    0 => without += 1,
                    _ => with += 1,
                }
            });
            after.shutdown();
        }
    }
    assert!(with > 0 && without > 0, "{with} crashes with the indexes, {without} without");
}

/// An index that was being built in a table whose file is not there any more is that table's trouble.
#[test]
fn an_unfinished_index_keeps_no_directory_closed() {
    let mut unfinished = 0;
    for moment in moments_of_create_index() {
        let disk = moment.crash(Crash::ProcessOnly).0;
        let known = untorn::catalog::inspect(&*disk, Path::new("/data")).unwrap().json;
        unfinished += u32::from(known.contains("build_index"));
        disk.remove(Path::new("/data/test/a.ibd")).unwrap();
        let after = SimulatedEnvironment::with_storage(2, disk);
        after.run_until_complete(async {
            let db = open(&after).await;
            ids(&db, "test", "a").await.unwrap_err();
            assert_eq!(ids(&db, "test", "b").await.unwrap().len(), 30);
            db.drop_table("test", "a").await.unwrap();
            db.close().await.unwrap();
        });
        after.shutdown();
    }
    assert!(unfinished > 0, "no crash left an index unfinished");
}

/// A growth may write a part of a page before it finds no room, and end there before it is cut off.
#[test]
fn a_growth_that_found_no_room_leaves_a_file_that_opens() {
    let start = prepared(&[("test", "a", 0)], 3);
    let file = Path::new("/data/test/a.ibd");
    for seed in 0..12 {
        let environment = SimulatedEnvironment::with_storage(seed, start.crash(1));
        let disk = environment.disk().clone();
        let acknowledged = environment.run_until_complete(async {
            let db = open(&environment).await;
            let mut acknowledged = Vec::new();
            disk.misbehave("a.ibd", Misbehaviour::FailWrite(FaultKind::Enospc), 2);
            for id in 1_000..3_000 {
                match insert_into(&db, "test", "a", id).await {
                    Ok(()) => acknowledged.push(id),
                    // The first growth without room is enough.
                    Err(_) => break,
                }
            }
            acknowledged
        });
        let left = disk.moment().crash(Crash::ProcessOnly).0;
        environment.shutdown();
        // The growth keeps nothing of what it got, unless it could not even give that back.
        let length = left.content(file).unwrap().len() as u64;
        assert_eq!(length % 4096, 0, "seed {seed}");
        let opened = left.open(file, OpenHow::EXISTING.buffered()).unwrap();
        opened.write_at(&[0; 1000], length).unwrap();
        drop(opened);
        let after = SimulatedEnvironment::with_storage(seed, left);
        after.run_until_complete(async {
            let db = open(&after).await;
            let found = ids(&db, "test", "a").await.unwrap();
            assert!(acknowledged.iter().all(|id| found.contains(id)), "seed {seed}");
            db.close().await.unwrap();
        });
        // What recovery does not touch opens as well.
        after.run_until_complete(async {
            let db = open(&after).await;
            insert_into(&db, "test", "a", 5_000).await.unwrap();
        });
        after.shutdown();
    }
}

/// A catalog that is missing is missed, also where no table is left to be seen.
#[test]
fn a_lost_catalog_is_told_also_without_tables() {
    for databases in [true, false] {
        let environment = SimulatedEnvironment::new(1);
        for _ in 0..2 {
            environment.run_until_complete(async {
                let db = open(&environment).await;
                if databases && db.database("test").is_none() {
                    db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
                    db.create_table("test", "a", table_def()).await.unwrap();
                    db.discard_tablespace("test", "a").await.unwrap();
                }
                db.close().await.unwrap();
            });
        }
        let disk = environment.disk().clone();
        disk.remove(Path::new("/data/untorn.catalog")).unwrap();
        let before = disk.list(Path::new("/data")).unwrap().len();
        environment.run_until_complete(async {
            let refused = try_open(&environment).await.err().expect("a refusal").to_string();
            assert!(refused.contains("untorn.catalog") && refused.contains("backup"), "{refused}");
        });
        assert!(disk.list(Path::new("/data")).unwrap().len() >= before, "something was removed");
        environment.shutdown();
    }
}

/// When the announcing of a new index fails so that nobody can say what a crash would leave, then that is
/// what the statement says, and not what came of it.
#[test]
fn an_index_that_could_not_be_announced_says_why() {
    let start = prepared(&[("test", "t", 1)], 5);
    let mut stopped = 0;
    for call in 0..60 {
        let environment = SimulatedEnvironment::with_storage(1, start.crash(1));
        environment.run_until_complete(async {
            let db = open(&environment).await;
            let disk = environment.disk();
            let next = disk.calls() + call;
            // A write, its sync, and the file that is written instead.
            for failing in next..next + 6 {
                disk.plan(Fault { call: failing, kind: FaultKind::Eio });
            }
            let outcome = db.create_index("test", "t", key("extra")).await;
            let Err(error) = outcome else { return };
            disk.forget_faults();
            // Nothing can be changed any more: the catalog was it.
            let after = db.create_database("other", Collation::Utf8mb4Bin).await;
            if matches!(after, Err(Error::Catalog { .. })) {
                stopped += 1;
                let says = error.to_string();
                assert!(
                    matches!(error, Error::Disk(_)) && says.contains("untorn.catalog"),
                    "call {call}: {error:?}"
                );
            }
        });
        environment.shutdown();
    }
    assert!(stopped > 1, "the announcing never failed");
}

/// What gives space back works where there is none, for the catalog as for the table.
#[test]
fn a_full_disk_lets_an_index_and_a_tablespace_go() {
    let environment =
        SimulatedEnvironment::with_storage(1, prepared(&[("test", "t", 1), ("test", "u", 1)], 20));
    environment.run_until_complete(async {
        let db = open(&environment).await;
        db.create_index("test", "t", key("extra")).await.unwrap();
        environment.disk().fill_up(true);
        // Renames need no room but in the catalog: what it has for all is used up.
        let mut names = ("u", "v");
        while db.rename_table(("test", names.0), ("test", names.1)).await.is_ok() {
            names = (names.1, names.0);
        }
        db.drop_index("test", "t", "extra").await.unwrap();
        db.discard_tablespace("test", "t").await.unwrap();
        db.drop_table("test", names.0).await.unwrap();
    });
    environment.shutdown();
    let after = SimulatedEnvironment::with_storage(2, environment.disk().crash(1));
    after.run_until_complete(async {
        let db = open(&after).await;
        let table = db.table("test", "t").unwrap();
        assert!(table.def.discarded && table.def.secondary_keys().is_empty());
        assert_eq!(db.tables("test").len(), 1);
        assert_eq!(names_in(&after, "test"), Vec::<String>::new());
        db.close().await.unwrap();
    });
    after.shutdown();
}

/// That the root of a dropped index cannot be read does not mean that its pages were freed.
#[test]
fn a_damaged_unfinished_index_is_freed_when_it_is_whole_again() {
    const FILE: &str = "/data/test/t.ibd";
    let mut disk = prepared(&[("test", "t", 1)], 40);
    let unfinished = |disk: &disk::SimulatedStorage| {
        untorn::catalog::inspect(disk, Path::new("/data")).unwrap().json.contains("build_index")
    };
    let mut root = 0;
    // Made; dropped, with a disk that gives no page of it back; its root damaged; whole again.
    for opening in 0..4 {
        let environment = SimulatedEnvironment::with_storage(opening, disk.crash(opening));
        let good = disk.content(Path::new(FILE)).unwrap();
        let at = root as usize * 4096 + 100;
        if opening == 2 {
            environment.disk().corrupt(Path::new(FILE), at, &[good[at] ^ 1]);
        }
        environment.run_until_complete(async {
            let db = open(&environment).await;
            match opening {
                0 => {
                    db.create_index("test", "t", key("extra")).await.unwrap();
                    root = db.table("test", "t").unwrap().def.secondary_keys()[0].root;
                }
                1 => {
                    environment.disk().misbehave("t.ibd", Misbehaviour::FailRead(FaultKind::Eio), 1);
                    db.drop_index("test", "t", "extra").await.unwrap();
                    environment.disk().behave();
                }
                2 => {}
                _ => {
                    let report = db.check_table("test", "t").await.unwrap();
                    assert!(report.is_sound(), "{:?}", report.problems);
                    assert_eq!(report.lost_pages, 0);
                }
            }
            db.close().await.unwrap();
        });
        environment.shutdown();
        disk = environment.disk().crash(opening);
        assert_eq!(unfinished(&disk), [1, 2].contains(&opening), "opening {opening}");
        if opening == 2 {
            disk.corrupt(Path::new(FILE), at, &[good[at]]);
        }
    }
}

/// The names of a new data directory and of those above it are durable before anything is acknowledged in it:
/// a sync of each that fails fails the start, and so does the one that follows a start that was killed.
#[test]
fn a_new_directory_is_synced_into_the_ones_above() {
    for made_before in [false, true] {
        let mut told = Vec::new();
        for call in 0..60 {
            let environment = SimulatedEnvironment::new(1);
            let disk = environment.disk();
            if made_before {
                disk.create_dir_all(Path::new("/above/it/data")).unwrap();
            }
            disk.plan(Fault { call: disk.calls() + call, kind: FaultKind::Eio });
            let mut options = options();
            options.directory = "/above/it/data".into();
            let shared: Arc<dyn Environment> = environment.clone();
            let opened = environment.run_until_complete(Database::open_in(shared, options));
            told.extend(opened.err().map(|error| error.to_string()));
            environment.shutdown();
        }
        let fails = |directory: &str| {
            let what = format!("cannot sync the directory {directory}:");
            told.iter().any(|error| error.contains(&what))
        };
        assert!(fails("/above/it"), "{told:#?}");
        assert!(made_before || fails("/above") && fails("/"), "{told:#?}");
    }
}

/// At a level of forced recovery that changes nothing a start only finds out where files are: none is moved
/// or removed, and the catalog still has all that is to be done. An ordinary start does it then.
#[test]
fn forced_recovery_leaves_the_files_of_a_statement_where_they_are() {
    let start = prepared(&[("test", "a", 1), ("test", "b", 100)], 10);
    let mut with_work = 0;
    for first in [First::Truncate, First::Swap] {
        let environment = SimulatedEnvironment::with_storage(1, start.crash(1));
        let moments = Arc::new(Mutex::new(Vec::new()));
        environment.run_until_complete(async {
            let db = open(&environment).await;
            let seen = moments.clone();
            environment.disk().observe_syncs(move |moment| seen.lock().push(moment));
            first.run(&db).await.unwrap();
            db.drop_table("test", "b").await.unwrap();
            environment.disk().stop_observing();
        });
        environment.shutdown();
        for (at, moment) in std::mem::take(&mut *moments.lock()).into_iter().enumerate() {
            let left = |disk: Arc<disk::SimulatedStorage>, level: u8| {
                let environment = SimulatedEnvironment::with_storage(2, disk);
                let rows = environment.run_until_complete(async {
                    let shared: Arc<dyn Environment> = environment.clone();
                    let db = Database::open_in(shared, options().force_recovery(level)).await.unwrap();
                    let mut rows = Vec::new();
                    for table in db.tables("test") {
                        rows.push((table.name.clone(), ids(&db, "test", &table.name).await.unwrap()));
                    }
                    db.close().await.unwrap();
                    rows
                });
                environment.shutdown();
                let json = untorn::catalog::inspect(&**environment.disk(), Path::new("/data")).unwrap().json;
                let catalog: serde_json::Value = serde_json::from_str(&json).unwrap();
                (rows, names_in(&environment, "test"), catalog["pending"].clone())
            };
            let crashed = || moment.crash(Crash::ProcessOnly).0;
            let names = crashed().list(Path::new("/data/test")).unwrap();
            let names: Vec<String> = names.into_iter().map(|file| file.name).collect();
            let json = untorn::catalog::inspect(&*crashed(), Path::new("/data")).unwrap().json;
            let before: serde_json::Value = serde_json::from_str(&json).unwrap();
            let (rows, after, pending) = left(crashed(), 0);
            assert_eq!(pending.as_array().map(Vec::len), Some(0), "{first:?}, sync {at}");
            with_work += u32::from(after != names);
            for level in 4..=6 {
                let found = left(crashed(), level);
                let what = format!("{first:?}, sync {at}, level {level}");
                assert_eq!(found.1, names, "{what}");
                assert_eq!(found.2, before["pending"], "{what}");
                assert_eq!(found.0, rows, "{what}");
            }
        }
    }
    assert!(with_work > 0, "no crash left anything to do");
}

/// A crash right after DROP DATABASE, with this number of tables.
fn after_dropping(tables: usize) -> Arc<disk::SimulatedStorage> {
    let environment = SimulatedEnvironment::with_storage(1, prepared(&[("other", "t", 1)], 3));
    let last = Arc::new(Mutex::new(None));
    environment.run_until_complete(async {
        let db = open(&environment).await;
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        for number in 0..tables {
            db.create_table("test", &format!("t{number}"), table_def()).await.unwrap();
        }
        let first = last.clone();
        environment.disk().observe_syncs(move |moment| {
            first.lock().get_or_insert(moment);
        });
        db.drop_database("test").await.unwrap();
        environment.disk().stop_observing();
    });
    environment.shutdown();
    let moment = last.lock().take().unwrap();
    moment.crash(Crash::ProcessOnly).0
}

/// Files that a start removes cost one sync for each directory, however many there are.
#[test]
fn a_start_syncs_a_directory_once_for_all_files_that_go() {
    let mut syncs = Vec::new();
    for tables in [5, 40] {
        let environment = SimulatedEnvironment::with_storage(2, after_dropping(tables));
        assert_eq!(names_in(&environment, "test").len(), tables, "the crash came too late");
        let counted = Arc::new(Mutex::new(0));
        let count = counted.clone();
        environment.disk().observe_syncs(move |_| *count.lock() += 1);
        environment.run_until_complete(async {
            let db = open(&environment).await;
            environment.disk().stop_observing();
            assert!(!environment.disk().exists(Path::new("/data/test")).unwrap());
            assert_eq!(ids(&db, "other", "t").await.unwrap().len(), 3);
            db.close().await.unwrap();
        });
        environment.shutdown();
        syncs.push(*counted.lock());
    }
    assert_eq!(syncs[0], syncs[1]);
}

/// The directory of a dropped database goes with the last of its files, whatever failed before, in the
/// statement or at a start.
#[test]
fn the_directory_of_a_dropped_database_goes_with_its_last_file() {
    let start = prepared(&[("test", "a", 1), ("test", "b", 1), ("other", "t", 1)], 3);
    let crashed = after_dropping(2);
    let mut stayed = [0, 0];
    for at_a_start in [false, true] {
        for call in 0..80 {
            let disk = if at_a_start { crashed.crash(1) } else { start.crash(1) };
            let environment = SimulatedEnvironment::with_storage(3, disk);
            let disk = environment.disk().clone();
            let plan = || disk.plan(Fault { call: disk.calls() + call, kind: FaultKind::Eio });
            environment.run_until_complete(async {
                if at_a_start {
                    plan();
                }
                let Ok(db) = try_open(&environment).await else { return };
                if !at_a_start {
                    plan();
                    let _ = db.drop_database("test").await;
                }
                disk.forget_faults();
                let _ = db.close().await;
            });
            environment.shutdown();
            disk.forget_faults();
            let there = disk.exists(Path::new("/data/test")).unwrap();
            let again = SimulatedEnvironment::with_storage(4, disk.crash(5));
            let is_dropped = again.run_until_complete(async {
                let db = open(&again).await;
                db.close().await.unwrap();
                db.database("test").is_none()
            });
            again.shutdown();
            stayed[usize::from(at_a_start)] += u32::from(is_dropped && there);
            let left = again.disk().exists(Path::new("/data/test")).unwrap();
            assert_eq!(left, !is_dropped, "call {call}, at a start: {at_a_start}");
        }
    }
    assert!(stayed.iter().all(|count| *count > 0), "{stayed:?}: no call kept a directory");
}
