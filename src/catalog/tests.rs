//! The catalog on the simulated disk: what a crash, a failing call or a flipped bit leaves.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;

use disk::{Crash, Fault, FaultKind, OpenHow, SimulatedStorage, Storage};
use parking_lot::Mutex;

use super::*;
use crate::schema::{ColumnDef, TableDef};
use crate::types::{Collation, ColumnType};

const DIRECTORY: &str = "/data";
const FILE: &str = "/data/untorn.catalog";

fn disk() -> Arc<SimulatedStorage> {
    let disk = SimulatedStorage::new(1);
    disk.create_dir_all(Path::new(DIRECTORY)).unwrap();
    disk
}

fn open(disk: &Arc<SimulatedStorage>) -> Result<Catalog, Error> {
    Catalog::open(disk.clone(), Path::new(DIRECTORY), 4096)
}

fn def(columns: usize) -> Arc<TableDef> {
    let column = |at| ColumnDef::new(format!("a_column_with_number_{at}"), ColumnType::bigint());
    Arc::new(TableDef::new((0..columns).map(column).collect()))
}

fn put(catalog: &Catalog, number: usize, columns: usize) -> Result<(), Error> {
    catalog.change(|change| change.put_table("d", &format!("t{number}"), def(columns)))
}

fn with_database(disk: &Arc<SimulatedStorage>) -> Catalog {
    let catalog = open(disk).unwrap();
    catalog.settle().unwrap();
    catalog.change(|change| change.put_database("d", Collation::Utf8mb4Bin)).unwrap();
    catalog
}

#[test]
fn what_was_changed_is_there_again() {
    let disk = disk();
    let catalog = with_database(&disk);
    for number in 0..20 {
        put(&catalog, number, number + 1).unwrap();
    }
    catalog.change(|change| change.remove_table("d", "t3").map(drop)).unwrap();
    let path = "d/t3.ibd".into();
    catalog.change(|change| change.begin(Pending::Drop { space: 3, path })).unwrap();
    catalog.change(|change| Ok((change.take_space_id(), change.take_table_id()))).unwrap();
    let known = catalog.snapshot();
    assert_eq!(known.next_space, 2);
    drop(catalog);
    let again = open(&disk.crash(5)).unwrap();
    assert_eq!(again.snapshot(), known);
    again.change_later(|change| change.finish(|work| work.space() == Some(3))).unwrap();
    assert!(again.snapshot().pending.is_empty());
    put(&again, 100, 1).unwrap();
    let known = again.snapshot();
    assert_eq!(open(&disk.crash(6)).unwrap().snapshot().pending.len(), 1, "another disk");
    drop((known, again));
}

/// Every crash leaves the catalog before or after the change that was under way, also where the file was being written anew.
#[test]
fn a_power_loss_at_any_sync_leaves_one_of_two_catalogs() {
    let disk = disk();
    let catalog = with_database(&disk);
    let states = Arc::new(Mutex::new(vec![catalog.snapshot()]));
    let moments = Arc::new(Mutex::new(Vec::new()));
    let (seen, reached) = (moments.clone(), states.clone());
    disk.observe_syncs(move |moment| seen.lock().push((moment, reached.lock().len())));
    // Large ones, so that records have many blocks and the file is written anew now and then.
    for number in 0..60 {
        put(&catalog, number % 7, 150).unwrap();
        states.lock().push(catalog.snapshot());
    }
    disk.stop_observing();
    let rewritten = disk.content(Path::new(FILE)).unwrap().len() < 60 * 15_000;
    assert!(rewritten, "the file has grown to {} bytes", disk.content(Path::new(FILE)).unwrap().len());
    let states = states.lock();
    for (at, (moment, reached)) in moments.lock().iter().enumerate() {
        for crash in (0..6).map(Crash::Random).chain([Crash::ProcessOnly, Crash::Exactly(0)]) {
            let left =
                open(&moment.crash(crash).0).unwrap_or_else(|error| panic!("sync {at}, {crash:?}: {error}"));
            let left = left.snapshot();
            let before = &states[reached - 1];
            let known = left == *before || states.get(*reached).is_some_and(|after| left == *after);
            assert!(known, "sync {at}, {crash:?}");
            // And it goes on.
        }
    }
}

/// After any failing call the change is there or not, in memory as after a crash, or nothing more can be changed.
#[test]
fn any_failing_call_leaves_memory_and_disk_alike() {
    for kind in [FaultKind::Eio, FaultKind::Enospc] {
        let mut uncertain = 0;
        for call in 0..40 {
            let disk = disk();
            let catalog = with_database(&disk);
            for number in 0..3 {
                put(&catalog, number, 200).unwrap();
            }
            disk.plan(Fault { call: disk.calls() + call, kind });
            for number in 3..9 {
                let before = catalog.snapshot();
                let result = put(&catalog, number, 200);
                assert_eq!(result.is_err(), catalog.snapshot() == before);
            }
            for seed in 0..4 {
                let left =
                    open(&disk.crash(seed)).unwrap_or_else(|error| panic!("call {call}, {kind:?}: {error}"));
                let same = left.snapshot() == catalog.snapshot();
                assert!(same || catalog.is_uncertain(), "call {call}, {kind:?}, crash {seed}");
                put(&left, 50, 1).unwrap();
            }
            uncertain += u32::from(catalog.is_uncertain());
        }
        assert_eq!(uncertain, 0, "one failing call is got over");
    }
}

#[test]
fn two_failures_in_a_row_stop_all_changes() {
    let disk = disk();
    let catalog = with_database(&disk);
    let told = Arc::new(Mutex::new(String::new()));
    let hears = told.clone();
    catalog.when_uncertain(move |why| *hears.lock() = why.to_owned());
    // The write succeeds, its sync fails, and so does the file that is written instead.
    let next = disk.calls();
    for call in 1..6 {
        disk.plan(Fault { call: next + call, kind: FaultKind::Eio });
    }
    put(&catalog, 1, 1).unwrap_err();
    assert!(catalog.is_uncertain());
    assert!(told.lock().contains("catalog"), "{}", told.lock());
    put(&catalog, 2, 1).unwrap_err();
}

#[test]
fn a_flipped_bit_is_reported_with_the_file_and_what_can_be_read() {
    let disk = disk();
    let catalog = with_database(&disk);
    put(&catalog, 1, 1).unwrap();
    put(&catalog, 2, 1).unwrap();
    drop(catalog);
    let good = disk.content(Path::new(FILE)).unwrap();
    let last = good.iter().rposition(|byte| *byte != 0).unwrap();
    for at in [40, 300, 511, 600, last - 1500, last] {
        disk.corrupt(Path::new(FILE), at, &[good[at] ^ 4]);
        let error = open(&disk).err().unwrap_or_else(|| panic!("byte {at}")).to_string();
        assert!(error.contains(FILE) && error.contains("backup"), "{error}");
        let inspected = inspect(&*disk, Path::new(DIRECTORY)).unwrap();
        assert!(inspected.damage.is_some());
        disk.corrupt(Path::new(FILE), at, &[good[at]]);
    }
    let sound = inspect(&*disk, Path::new(DIRECTORY)).unwrap();
    assert!(sound.damage.is_none() && sound.json.contains("\"t2\""), "{}", sound.json);
}

/// On a full disk nothing can be made any more, but everything dropped.
#[test]
fn a_full_disk_lets_tables_be_dropped() {
    let disk = disk();
    let catalog = with_database(&disk);
    for number in 0..100 {
        put(&catalog, number, 20).unwrap();
    }
    disk.fill_up(true);
    let make = |catalog: &Catalog| {
        let path = "d/x.ibd".into();
        catalog.change(|change| change.begin(Pending::Create { space: 9, path }))
    };
    // What removes something takes from the reserve, so it goes on where nothing can be made.
    while make(&catalog).is_ok() {
        catalog.change(|change| change.finish(|work| work.space() == Some(9))).unwrap();
    }
    assert!(!catalog.is_uncertain());
    for number in 0..100 {
        catalog.change(|change| change.remove_table("d", &format!("t{number}")).map(drop)).unwrap();
    }
    assert_eq!(open(&disk.crash(1)).unwrap().snapshot().tables().count(), 0);
    disk.fill_up(false);
    make(&catalog).unwrap();
}

/// What a change writes does not depend on how many tables there are.
#[test]
fn a_change_costs_the_same_among_many_tables() {
    let disk = disk();
    let catalog = with_database(&disk);
    let mut cost = Vec::new();
    for number in 0..2_000 {
        let before = disk.counters().bytes_written;
        put(&catalog, number, 2).unwrap();
        cost.push(disk.counters().bytes_written - before);
    }
    let (early, late): (u64, u64) = (cost[..500].iter().sum(), cost[1_500..].iter().sum());
    assert!(late < 4 * early + (4 << 20), "{early} bytes for the first, {late} for the last");
    cost.sort_unstable();
    assert!(cost[1_900] < 4096, "{} bytes", cost[1_900]);
}

#[test]
fn a_directory_of_format_1_is_read_and_written_anew() {
    let disk = disk();
    let text = r#"{
  "format": 1, "written_by": "0.1.0", "page_size": 4096, "next_table": 5, "next_index": 6, "next_space": 7,
  "databases": { "d": { "collation": "utf8mb4_bin", "tables": {} } },
  "pending": [ { "drop": { "space": 3, "path": "d/t.ibd" } } ]
}"#;
    let collation = serde_json::to_string(&Collation::Utf8mb4Bin).unwrap();
    let text = text.replace("\"utf8mb4_bin\"", &collation);
    let file = disk.open(Path::new(FILE), OpenHow::CREATE_NEW.buffered()).unwrap();
    file.write_at(text.as_bytes(), 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(Path::new(DIRECTORY)).unwrap();
    let catalog = open(&disk).unwrap();
    let known = catalog.snapshot();
    assert_eq!((known.next_table, known.next_index, known.next_space, known.pending.len()), (5, 6, 7, 1));
    catalog.settle().unwrap();
    put(&catalog, 1, 1).unwrap();
    let again = open(&disk.crash(2)).unwrap();
    assert_eq!(again.snapshot(), catalog.snapshot());
    let newer = text.replace("\"format\": 1", "\"format\": 9");
    disk.corrupt(Path::new(FILE), 0, newer.as_bytes());
    assert!(matches!(open(&disk), Err(Error::NewerDirectory { found: 9, .. }) | Err(Error::Catalog { .. })));
}
