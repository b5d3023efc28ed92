//! The catalog on the simulated disk: what a crash, a failing call or a flipped bit leaves.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;

use disk::{Crash, Fault, FaultKind, File, OpenHow, SimulatedStorage, Storage};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::provenance::{LastRun, RunState};
use crate::schema::{ColumnDef, KeyKind, TableDef};
use crate::types::{Collation, ColumnType};
use crate::view::ViewDef;

/// Formats from 2 on differ in what definitions may hold, not in how the file is laid out.
#[test]
fn a_directory_of_an_older_format_is_read_and_written_anew() {
    (2..FORMAT).for_each(is_read_and_written_anew);
}

fn is_read_and_written_anew(format: u32) {
    let disk = disk();
    let catalog = with_database(&disk);
    put(&catalog, 1, 3).unwrap();
    let known = catalog.snapshot();
    drop(catalog);
    let file = disk.open(Path::new(FILE), OpenHow::EXISTING.buffered()).unwrap();
    let mut header = vec![0; 512];
    file.read_at(&mut header, 0).unwrap();
    let text = String::from_utf8(header[..508].to_vec()).unwrap();
    let older = text.replace(&format!("\"format\":{FORMAT}"), &format!("\"format\":{format}"));
    assert_ne!(older, text);
    // A number with fewer digits leaves room, which is filled up as the header is.
    let older = format!("{older:508}");
    let sum = crc32c::crc32c(older.as_bytes()).to_le_bytes();
    disk.corrupt(Path::new(FILE), 0, &[older.as_bytes(), &sum].concat());
    let again = open(&disk).unwrap();
    assert_eq!(again.snapshot(), known);
    again.settle().unwrap();
    file.read_at(&mut header, 0).unwrap();
    drop(again);
    let again = open(&disk.crash(3)).unwrap();
    assert_eq!(again.snapshot(), known);
    let file = disk.open(Path::new(FILE), OpenHow::EXISTING.buffered()).unwrap();
    file.read_at(&mut header, 0).unwrap();
    assert!(header.starts_with(format!("{{\"format\":{FORMAT}").as_bytes()));
}

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
    catalog.change(|change| change.drop_table("d", "t3", Some("d/elsewhere.ibd".into())).map(drop)).unwrap();
    catalog.change(|change| Ok((change.take_space_id(), change.take_table_id()))).unwrap();
    let known = catalog.snapshot();
    assert_eq!(known.next_space, 2);
    drop(catalog);
    let again = open(&disk.crash(5)).unwrap();
    assert_eq!(again.snapshot(), known);
    again.change_later(|change| change.finish(|work| work.space().is_some())).unwrap();
    assert!(again.snapshot().pending.is_empty());
    put(&again, 100, 1).unwrap();
    let known = again.snapshot();
    assert_eq!(open(&disk.crash(6)).unwrap().snapshot().pending.len(), 1, "another disk");
    drop((known, again));
}

/// Every crash leaves the catalog before or after the change that was under way, also where the file was
/// being rewritten.
#[test]
fn a_power_loss_at_any_sync_leaves_one_of_two_catalogs() {
    let disk = disk();
    let catalog = with_database(&disk);
    let states = Arc::new(Mutex::new(vec![catalog.snapshot()]));
    let moments = Arc::new(Mutex::new(Vec::new()));
    let (seen, reached) = (moments.clone(), states.clone());
    disk.observe_syncs(move |moment| seen.lock().push((moment, reached.lock().len())));
    // Large ones, so that records have many blocks and the file is rewritten from time to time.
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

/// After any failing call the change is there or not, in memory as after a crash, or nothing more can be
/// changed.
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

fn view(query: &str) -> Arc<ViewDef> {
    Arc::new(ViewDef {
        query: query.to_owned(),
        columns: Vec::new(),
        algorithm: Default::default(),
        definer: ("root".to_owned(), "localhost".to_owned()),
        security: Default::default(),
        check_option: Default::default(),
        client_charset: "utf8mb4".to_owned(),
        collation: Collation::Utf8mb4Bin,
        updatable: true,
        created_unix_s: 1,
    })
}

/// Views are replaced and dropped in one record each, and are in the file that replaces a long one.
#[test]
fn views_are_there_again() {
    let disk = disk();
    let catalog = with_database(&disk);
    catalog.change(|change| change.put_database("e", Collation::Utf8mb4Bin)).unwrap();
    for number in 0..20 {
        catalog.change(|change| change.put_view("d", &format!("v{number}"), view("select 1"))).unwrap();
    }
    catalog.change(|change| change.put_view("d", "v1", view(&"select 2 ".repeat(100)))).unwrap();
    catalog.change(|change| change.put_view("e", "v1", view("select 3"))).unwrap();
    catalog.change(|change| change.drop_view("d", "v2").map(drop)).unwrap();
    assert!(catalog.change(|change| change.drop_view("d", "v2").map(drop)).is_err());
    // Changing the database does not touch what is in it.
    catalog.change(|change| change.put_database("d", Collation::Utf8mb4GeneralCi)).unwrap();
    catalog.change(|change| change.drop_database("e", Vec::new())).unwrap();
    let known = catalog.snapshot();
    assert_eq!(known.databases.get("d").unwrap().views.size(), 19);
    drop(catalog);
    let disk = disk.crash(5);
    let again = open(&disk).unwrap();
    assert_eq!(again.snapshot(), known);
    // So many records that the file is rewritten.
    for number in 0..60 {
        put(&again, number % 7, 150).unwrap();
    }
    let known = again.snapshot();
    drop(again);
    let disk = disk.crash(6);
    let again = open(&disk).unwrap();
    assert!(again.snapshot() == known);
    assert_eq!(again.snapshot().view("d", "v1"), Some(&view(&"select 2 ".repeat(100))));
    let shown = inspect(&*disk.crash(7), Path::new(DIRECTORY)).unwrap().json;
    assert!(shown.contains("\"v19\""), "{shown}");
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
        catalog.change(|change| change.begin(DdlLogEntry::Create { space: 9, path }))
    };
    // What removes something takes from the reserve, so it goes on where nothing can be made.
    while make(&catalog).is_ok() {
        catalog.change(|change| change.finish(|work| work.space() == Some(9))).unwrap();
    }
    assert!(!catalog.is_uncertain());
    for number in 0..100 {
        catalog.change(|change| change.drop_table("d", &format!("t{number}"), None).map(drop)).unwrap();
    }
    assert_eq!(open(&disk.crash(1)).unwrap().snapshot().tables().count(), 0);
    disk.fill_up(false);
    make(&catalog).unwrap();
}

fn note(catalog: &Catalog, opening: u32, state: RunState) -> Result<(), Error> {
    catalog.change(|change| change.set_last_run(LastRun { opening, state, ..LastRun::default() }))
}

/// A full disk on which everything was tried that makes something, until none of it had room.
fn without_room(disk: &Arc<SimulatedStorage>, catalog: &Catalog) {
    disk.fill_up(true);
    type Change = fn(&Catalog) -> Result<(), Error>;
    let tries: [Change; 4] = [
        |catalog| put(catalog, 0, 20),
        |catalog| catalog.change(|change| change.note_marks(&[1, 2, 3], 9)),
        |catalog| catalog.change(|change| change.put_database("e", Collation::Utf8mb4Bin)),
        |catalog| {
            let (space, from, to) = (9, "d/x.ibd".into(), "d/y.ibd".into());
            catalog.change(|change| change.begin(DdlLogEntry::Rename { space, from, to }))
        },
    ];
    while tries.iter().any(|made| made(catalog).is_ok()) {}
    // Trying again takes nothing either.
    for made in tries.iter().cycle().take(500) {
        made(catalog).unwrap_err();
    }
}

/// However many tables there are, and whatever else waits to be noted.
#[test]
fn a_full_disk_lets_a_database_of_thousands_of_tables_be_dropped() {
    let disk = disk();
    let catalog = with_database(&disk);
    catalog.change(|change| change.put_database("other", Collation::Utf8mb4Bin)).unwrap();
    let table = |number: u32| {
        let mut def = TableDef::clone(&def(1));
        def.space = number;
        Arc::new(def)
    };
    for database in ["d", "other"] {
        catalog
            .change(|change| {
                let name = |number| format!("{number}_{}", "\u{8868}".repeat(40));
                (1..3_000).try_for_each(|number| change.put_table(database, &name(number), table(number)))
            })
            .unwrap();
    }
    without_room(&disk, &catalog);
    for (database, left) in [("d", "other"), ("other", "d")] {
        let elsewhere = vec![(7, "somewhere".into())];
        catalog.change(|change| change.drop_database(database, elsewhere.clone())).unwrap();
        let known = open(&disk.crash(1)).unwrap().snapshot();
        let files = known.pending.iter().filter(|work| matches!(work, DdlLogEntry::Drop { .. })).count();
        assert!(files >= 2_999 && !known.databases.contains_key(database), "{files} files are to be removed");
        let moved = |work: &DdlLogEntry| *work == DdlLogEntry::Drop { space: 7, path: "somewhere".into() };
        assert!(known.pending.iter().any(moved));
        catalog.change_later(|change| change.finish(|_| true)).unwrap();
        assert_eq!(catalog.snapshot().databases.contains_key(left), database == "d");
    }
    disk.fill_up(false);
    put(with_database_again(&catalog), 1, 1).unwrap();
    assert!(open(&disk.crash(2)).unwrap().snapshot().pending.is_empty());
}

fn with_database_again(catalog: &Catalog) -> &Catalog {
    catalog.change(|change| change.put_database("d", Collation::Utf8mb4Bin)).unwrap();
    catalog
}

/// What frees a part of a table's space, or gives it away, finds room as well.
#[test]
fn a_full_disk_lets_indexes_and_tablespaces_go() {
    let disk = disk();
    let catalog = with_database(&disk);
    let mut table = TableDef::clone(&def(3));
    table.space = 7;
    let all = ["a_column_with_number_0", "a_column_with_number_1", "a_column_with_number_2"];
    for (at, column) in all.into_iter().enumerate() {
        table = table.key(column, KeyKind::Secondary, &[column]);
        (table.keys[at].id, table.keys[at].root) = (at as u64 + 10, at as u32 + 4);
    }
    catalog.change(|change| change.put_table("d", "t1", Arc::new(table.clone()))).unwrap();
    // That an index was built is noted with the next record.
    let built =
        |at: usize| DdlLogEntry::BuildIndex { space: 7, index: table.keys[at].id, root: table.keys[at].root };
    catalog.change(|change| change.begin(built(1))).unwrap();
    without_room(&disk, &catalog);
    catalog.change_later(|change| change.finish(|work| *work == built(1))).unwrap();
    catalog.change(|change| change.drop_indexes("d", "t1", vec![11, 12])).unwrap();
    let left = open(&disk.crash(1)).unwrap().snapshot();
    let keys: Vec<u64> = left.table("d", "t1").unwrap().keys.iter().map(|key| key.id).collect();
    assert_eq!(keys, [10]);
    assert!(
        [1, 2].iter().all(|at| left.pending.iter().any(|work| *work == built(*at))),
        "{:?}",
        left.pending
    );
    // Nor is it taken for done when there is room again, and all is written that waited.
    let with_room = |seed| {
        disk.fill_up(false);
        put(&catalog, 50, 1).unwrap();
        let left = open(&disk.crash(seed)).unwrap().snapshot();
        without_room(&disk, &catalog);
        left
    };
    assert!(with_room(2).pending.iter().any(|work| *work == built(1)));
    // The same with a file that was set aside once, and taken back.
    let aside = || catalog.change(|change| change.set_aside(7, "d/t1.ibd".into(), "d/aside.ibd".into()));
    aside().unwrap();
    catalog.change_later(|change| change.finish(DdlLogEntry::moves)).unwrap();
    aside().unwrap();
    assert!(with_room(3).pending.iter().any(DdlLogEntry::moves));
    catalog.change(|change| change.discard_table("d", "t1", "d/aside.ibd".into())).unwrap();
    let left = open(&disk.crash(4)).unwrap().snapshot();
    assert!(left.table("d", "t1").unwrap().discarded);
    let gone = DdlLogEntry::Drop { space: 7, path: "d/aside.ibd".into() };
    assert!(left.pending.iter().all(|work| *work == gone) && left.pending.len() == 1, "{:?}", left.pending);
}

/// A server that is started again and again on a full disk must open, or nobody could drop anything.
#[test]
fn openings_on_a_full_disk_leave_room_to_drop() {
    let disk = disk();
    let catalog = with_database(&disk);
    put(&catalog, 1, 1).unwrap();
    without_room(&disk, &catalog);
    drop(catalog);
    for opening in 1..400 {
        let catalog = open(&disk).unwrap();
        note(&catalog, opening, RunState::Starting).unwrap();
        note(&catalog, opening, RunState::Running).unwrap();
        let left = open(&disk.crash(u64::from(opening))).unwrap().snapshot();
        assert_eq!(left.last_run.clone().unwrap().opening, opening);
    }
    let catalog = open(&disk).unwrap();
    catalog.change(|change| change.drop_table("d", "t1", None).map(drop)).unwrap();
    note(&catalog, 400, RunState::Stopped).unwrap();
    let left = open(&disk.crash(1)).unwrap().snapshot();
    assert!(left.table("d", "t1").is_none());
    assert_eq!(left.last_run.clone().unwrap().opening, 400);
}

/// Room that could not be made whole leaves a file of any length, which opens and goes on.
#[test]
fn room_that_was_made_in_part_is_no_damage() {
    let disk = disk();
    let catalog = with_database(&disk);
    put(&catalog, 1, 1).unwrap();
    drop(catalog);
    let len = disk.content(Path::new(FILE)).unwrap().len();
    let file = disk.open(Path::new(FILE), OpenHow::EXISTING.buffered()).unwrap();
    file.write_zeros(len as u64, len as u64 + 1_234).unwrap();
    let catalog = open(&disk).unwrap();
    for number in 2..300 {
        put(&catalog, number, 20).unwrap();
    }
    assert_eq!(*open(&disk.crash(1)).unwrap().snapshot(), *catalog.snapshot());
}

/// A rename that was done, but is said to have failed.
struct LateRename {
    disk: Arc<SimulatedStorage>,
    strikes: AtomicBool,
}

impl Storage for LateRename {
    fn open(&self, path: &Path, how: OpenHow) -> disk::Result<Arc<dyn File>> {
        self.disk.open(path, how)
    }
    fn exists(&self, path: &Path) -> disk::Result<bool> {
        self.disk.exists(path)
    }
    fn remove(&self, path: &Path) -> disk::Result<()> {
        self.disk.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> disk::Result<()> {
        self.disk.remove_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> disk::Result<()> {
        self.disk.rename(from, to)?;
        if self.strikes.load(Ordering::Relaxed) {
            return self.disk.rename(from, to);
        }
        Ok(())
    }
    fn create_dir_all(&self, path: &Path) -> disk::Result<()> {
        self.disk.create_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> disk::Result<()> {
        self.disk.sync_dir(path)
    }
    fn list(&self, path: &Path) -> disk::Result<Vec<disk::Entry>> {
        self.disk.list(path)
    }
    fn lock(&self, path: &Path) -> disk::Result<Box<dyn Send + Sync>> {
        self.disk.lock(path)
    }
    fn submit(&self, batch: Vec<(Arc<dyn File>, disk::Io)>) {
        self.disk.submit(batch);
    }
    fn counters(&self) -> disk::IoCounters {
        self.disk.counters()
    }
}

/// What is acknowledged is never written into a file that has lost its name.
#[test]
fn a_rename_that_was_done_and_reported_as_failed_loses_nothing() {
    let disk = disk();
    let storage = Arc::new(LateRename { disk: disk.clone(), strikes: AtomicBool::new(false) });
    let catalog = Catalog::open(storage.clone(), Path::new(DIRECTORY), 4096).unwrap();
    catalog.settle().unwrap();
    catalog.change(|change| change.put_database("d", Collation::Utf8mb4Bin)).unwrap();
    storage.strikes.store(true, Ordering::Relaxed);
    let acknowledged = (0..400).take_while(|number| put(&catalog, number % 7, 150).is_ok()).count();
    assert!(acknowledged < 400 && catalog.is_uncertain(), "the file was never rewritten");
    let known = catalog.snapshot();
    let left = open(&disk.crash(1)).unwrap().snapshot();
    assert!(known.tables().all(|(database, name, _)| left.table(database, name).is_some()));
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
    let newer = SimulatedStorage::new(1);
    newer.create_dir_all(Path::new(DIRECTORY)).unwrap();
    let file = newer.open(Path::new(FILE), OpenHow::CREATE_NEW.buffered()).unwrap();
    let text = text.replace("\"format\": 1", &format!("\"format\": {}", FORMAT + 1));
    file.write_at(text.as_bytes(), 0).unwrap();
    is_refused_as_newer(&newer);
}

/// The number is looked at before anything else: what a newer format checks otherwise is not known here.
#[test]
fn a_directory_of_a_newer_format_is_refused_and_left_alone() {
    let disk = disk();
    drop(with_database(&disk));
    let file = disk.open(Path::new(FILE), OpenHow::EXISTING.buffered()).unwrap();
    let mut header = vec![0; 512];
    file.read_at(&mut header, 0).unwrap();
    let text = String::from_utf8(header[..508].to_vec()).unwrap();
    let newer = text.replace(&format!("\"format\":{FORMAT}"), &format!("\"format\":{}", FORMAT + 1));
    assert_ne!(newer, text);
    disk.corrupt(Path::new(FILE), 0, &newer.as_bytes()[..508]);
    is_refused_as_newer(&disk);
}

fn is_refused_as_newer(disk: &Arc<SimulatedStorage>) {
    let file = disk.open(Path::new(FILE), OpenHow::EXISTING.buffered()).unwrap();
    let bytes = |file: &Arc<dyn File>| {
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        bytes
    };
    let before = bytes(&file);
    let Err(error) = open(disk) else { panic!("a newer format is opened") };
    let Error::NewerDirectory { path, found, known, written_by } = error else { panic!("{error}") };
    assert_eq!((path.as_path(), found, known), (Path::new(FILE), FORMAT + 1, FORMAT));
    assert!(!written_by.is_empty());
    assert!(bytes(&file) == before, "the file was changed");
}
