//! CHECK TABLE: is everything in a table's file as it must be?
//!
//! Four things are compared: the tablespace's own bookkeeping (extents, segments, lists), the structure of
//! every tree (order, directories, siblings, node pointers, off-page chains), the pages the trees reach
//! against the pages their segments own, and the content of every secondary index against the rows. The last
//! is done without sorting: the entries that the rows ask for and the entries that the index has are each
//! summed up as hashes, and the sums must be the same.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use btree::{Checker, Field, OwnedKey, Seek, Tree};
use page::PageId;
use pagestore::fsp::{self, SegmentHeader};
use txn::{Control, Direction, KeyRange, ReadMode, Scan, ScanIndex, ScanState, TimeSlice};

use crate::database::Database;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::index_build::PAGE_UNITS;
use crate::index_entry::{Entry, OffPage, entry_of};
use crate::layout;
use crate::retry::retry;
use crate::table::Table;
use crate::transaction::Transaction;

/// Offset of the leaf segment's header in a root page.
const ROOT_LEAF_SEGMENT: usize = 74;
/// Offset of the other segment's header in a root page.
const ROOT_TOP_SEGMENT: usize = 84;

/// Rows read between two breaths.
const ROWS_PER_PAUSE: usize = 512;

/// Entries of an index summed up in one descent.
const ENTRIES_PER_STEP: usize = 256;

/// What a check found.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// What is wrong, a sentence each; empty for a sound table.
    pub problems: Vec<String>,
    /// Rows counted.
    pub rows: u64,
    /// Pages of the file.
    pub pages: u32,
    /// Pages that belong to nobody: wasted until the table is rebuilt, but no damage.
    pub lost_pages: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// What the trees of a table reach of its tablespace.
#[derive(Default)]
struct Reached {
    pages: BTreeSet<u32>,
    /// By their index in the tablespace's report.
    segments: BTreeSet<usize>,
}

/// Entries of an index, summed up so that their order does not matter.
#[derive(Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    hashes: u64,
}

impl Sum {
    fn add<'a>(&mut self, entry: impl Iterator<Item = Field<'a>>) {
        let mut hasher = DefaultHasher::new();
        entry.for_each(|field| field.hash(&mut hasher));
        self.count += 1;
        self.hashes = self.hashes.wrapping_add(hasher.finish());
    }
}

/// The check of a tablespace works in slices as all the rest does.
struct Slices<'s>(&'s TimeSlice);

impl fsp::Breath for Slices<'_> {
    type Error = Error;

    async fn take(&mut self, extents: u32) -> Result<()> {
        self.0.work(extents).await.map_err(Error::from)
    }
}

impl Definitions<'_> {
    /// Checks a table: its trees, and whether its indexes agree. It cannot be changed meanwhile.
    ///
    /// # Errors
    /// No such table, a timeout, a deadlock, storage errors. Damage is no error: see the report.
    pub async fn check_table(self, database: &str, name: &str) -> Result<CheckReport> {
        let (table, _lock) = self.lock_current(database, name).await?;
        let _purge = self.database.0.system.pause_purge().await;
        self.database.check_quiet_table(&table, self.session).await
    }
}

impl Database {
    /// Checks a table that nobody else is at work on.
    pub(crate) async fn check_quiet_table(
        &self,
        table: &Table,
        session: Option<&Transaction>,
    ) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let mut transaction = self.transaction_for(session);
        let rows = transaction.engine_mut();
        let slice = rows.slice().clone();
        let space = self.check_space(table.def.space, &slice).await?;
        report.problems.extend(space.problems.iter().map(|what| format!("tablespace: {what}")));
        report.pages = space.size;
        let mut reached = Reached::default();
        let trees = std::iter::once(&table.rows.clustered)
            .chain(table.rows.secondaries.iter().map(|secondary| &secondary.tree));
        for tree in trees {
            self.check_tree(tree, &space, &mut reached, &mut report, &slice).await?;
        }
        let unowned = space.runs.iter().filter(|run| run.owner == fsp::Owner::Nobody);
        report.lost_pages += unowned.map(|run| u64::from(run.count)).sum::<u64>();
        // So do the pages of trees that no index has.
        for segment in (0..space.segments.len()).filter(|segment| !reached.segments.contains(segment)) {
            slice.work(PAGE_UNITS).await?;
            report.lost_pages += space.pages_of(segment).count() as u64;
        }
        if report.problems.is_empty() {
            self.check_entries(table, &mut report, rows).await?;
        }
        Ok(report)
    }

    /// Checks who owns which page of a tablespace, giving way meanwhile.
    pub(crate) async fn check_space(&self, space: u32, slice: &TimeSlice) -> Result<fsp::Report> {
        let gathered = retry(|| fsp::gather(&self.0.store, space)).await?;
        gathered.judge(&mut Slices(slice)).await
    }

    async fn check_tree(
        &self,
        tree: &Tree,
        space: &fsp::Report,
        reached: &mut Reached,
        report: &mut CheckReport,
        slice: &TimeSlice,
    ) -> Result<()> {
        let name = &tree.def().name;
        let mut checker = Checker::new(tree);
        while !retry(|| checker.step()).await? {
            slice.work(PAGE_UNITS).await?;
        }
        let found = checker.into_report();
        report.problems.extend(found.problems.iter().map(|what| format!("index {name}: {what}")));
        let root = PageId::new(tree.space(), tree.root());
        let (leaf, top) = retry(|| {
            let page = self.0.store.read(root)?;
            Ok::<_, pagestore::Interrupt>((
                SegmentHeader::read(&page, ROOT_LEAF_SEGMENT),
                SegmentHeader::read(&page, ROOT_TOP_SEGMENT),
            ))
        })
        .await?;
        for (kind, header, pages) in
            [("leaf", leaf, &found.leaf_segment_pages), ("top", top, &found.top_segment_pages)]
        {
            let Some(segment) = space.segment(header) else {
                report.problems.push(format!("index {name}: its {kind} segment is not in the tablespace"));
                continue;
            };
            reached.segments.insert(segment);
            let mut lost = BTreeSet::new();
            for page in space.pages_of(segment) {
                slice.work(1).await?;
                lost.insert(page);
            }
            for page in pages {
                slice.work(1).await?;
                if !lost.remove(page) {
                    report.problems.push(format!(
                        "index {name}: page {page} is in the tree but not in its {kind} segment"
                    ));
                }
                if !reached.pages.insert(*page) {
                    report.problems.push(format!("index {name}: page {page} is reached twice"));
                }
            }
            report.lost_pages += lost.len() as u64;
        }
        Ok(())
    }

    /// Compares the secondary indexes with the rows.
    async fn check_entries(
        &self,
        table: &Table,
        report: &mut CheckReport,
        rows: &mut txn::Transaction,
    ) -> Result<()> {
        let keys = table.def.secondary_keys();
        let sources: Vec<_> = keys.iter().map(|key| layout::secondary(&table.def, key).sources).collect();
        let mut wanted: Vec<Sum> = keys.iter().map(|_| Sum::default()).collect();
        let mut scan = Scan::new(
            table.rows.clone(),
            ScanIndex::Clustered,
            KeyRange::all(),
            Direction::Forward,
            ReadMode::Uncommitted,
            false,
        );
        let mut off_page: Vec<(usize, OffPage)> = Vec::new();
        let mut key = OwnedKey::new();
        loop {
            let mut shown = 0;
            let state = scan
                .run(rows, &mut |row| {
                    report.rows += 1;
                    shown += 1;
                    row.clustered_key(&mut key);
                    for (at, sources) in sources.iter().enumerate() {
                        match entry_of(row, sources, &key) {
                            Entry::Whole(entry) => wanted[at].add(entry.into_iter()),
                            Entry::OffPage(entry) => off_page.push((at, entry)),
                        }
                    }
                    let pause = shown >= ROWS_PER_PAUSE || !off_page.is_empty();
                    if pause { Control::Pause } else { Control::Continue }
                })
                .await?;
            for (at, entry) in off_page.drain(..) {
                let fields = entry.fetch(rows, &table.rows, &sources[at]).await?;
                wanted[at].add(fields.iter().map(Option::as_deref));
            }
            if state == ScanState::Finished {
                break;
            }
        }
        for ((key, wanted), secondary) in keys.iter().zip(&wanted).zip(&table.rows.secondaries) {
            let found = sum_of_tree(&secondary.tree, rows.slice()).await?;
            if found != *wanted {
                report.problems.push(format!(
                    "index {}: it has {} entries, the rows require {}{}",
                    key.name,
                    found.count,
                    wanted.count,
                    if found.count == wanted.count { ", but others" } else { "" },
                ));
            }
        }
        table.set_rows(report.rows);
        Ok(())
    }
}

/// The entries of a tree that are not delete-marked.
async fn sum_of_tree(tree: &Tree, slice: &TimeSlice) -> Result<Sum> {
    let mut sum = Sum::default();
    let mut last: Option<OwnedKey> = None;
    loop {
        // A batch per descent, so that no latch is held across a wait.
        let more = retry(|| {
            let mut cursor = match &last {
                None => tree.seek(&[], Seek::First)?,
                Some(key) => tree.seek(&key.fields(), Seek::After)?,
            };
            for _ in 0..ENTRIES_PER_STEP {
                if !cursor.is_valid() {
                    return Ok(false);
                }
                let record = cursor.record();
                if !record.is_deleted() {
                    sum.add(record.fields().map(|field| field.inline()));
                }
                let key = last.get_or_insert_with(OwnedKey::new);
                key.set_from_record(record, tree.def().n_unique);
                // An interrupt here comes after the record was counted and remembered.
                if !cursor.next()? {
                    return Ok(false);
                }
            }
            Ok::<bool, pagestore::Interrupt>(true)
        })
        .await?;
        if !more {
            return Ok(sum);
        }
        slice.work(ENTRIES_PER_STEP as u32).await?;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::sync::Arc;

    use disk::{Environment, SimulatedEnvironment};

    use super::*;
    use crate::Options;
    use crate::schema::{ColumnDef, TableDef};
    use crate::types::{Collation, ColumnType};

    #[test]
    fn the_check_of_a_tablespace_gives_way_by_the_slice_and_ends_when_killed() {
        let environment = SimulatedEnvironment::new(1);
        let shared: Arc<dyn Environment> = environment.clone();
        let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(96 * 4096);
        (options.unchecked_sizes, options.redo_capacity_bytes) = (true, 2 << 20);
        environment.run_until_complete(async {
            let db = Database::open_in(shared, options).await.unwrap();
            db.create_database("d", Collation::Utf8mb4Bin).await.unwrap();
            let def = TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
            db.create_table("d", "t", def).await.unwrap();
            let space = db.table("d", "t").unwrap().def.space;
            let transaction = db.transaction();
            let slice = transaction.engine().slice();
            slice.measure_in_units(1);
            let check = async |stop_at: u32| {
                let mut polls = 0;
                let mut work = pin!(db.check_space(space, slice));
                let outcome = poll_fn(|context| {
                    slice.begin();
                    // As if it had come after a lot of other work: the very first extent ends the slice.
                    slice.announce(1000);
                    polls += 1;
                    if polls == stop_at {
                        slice.stop();
                    }
                    work.as_mut().poll(context)
                })
                .await;
                slice.forget_stop();
                (outcome, polls)
            };
            // The pages are in memory: nothing else is waited for.
            let (report, polls) = check(0).await;
            assert!(report.unwrap().is_clean());
            assert!(polls > 1, "it did not give way");
            assert!(check(2).await.0.is_err(), "a kill was not seen");
            db.close().await.unwrap();
        });
        environment.shutdown();
    }
}
