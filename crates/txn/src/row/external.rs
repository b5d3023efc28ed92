//! Long values: written off-page before the row, read after it, freed when their row version goes.
//!
//! A value is a chain of pages. Purge frees those of versions that nobody sees any more, rollback those of
//! changes that it takes back. All pages but the first go one after the other; the first goes in the
//! mini-transaction that removes the record (`remove.rs`), or that strikes the chain out of its undo record
//! ([`free_noted_chain`]). So no chain is freed twice after an interruption.

use btree::external::{ExternalReader, ExternalWriter};
use btree::field::REFERENCE_SIZE;
use btree::{FieldRef, RecordRef, Reference, Tree};
use pagestore::page::NULL_PAGE;
use smallvec::SmallVec;

use super::write::{Writer, retry_change};
use crate::error::Error;
use crate::retry::retry;
use crate::system::System;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::undo::UndoKind;
use crate::undo::page::Place;
use crate::undo::record::UndoBuilder;
use crate::undo::tablespace::undo_id;

/// A value stored off-page, as [`super::Row::column`] showed it: copied, to be fetched with nothing latched.
pub struct OffPage {
    prefix: Vec<u8>,
    reference: [u8; REFERENCE_SIZE],
}

impl OffPage {
    /// Copies what the row has of it.
    pub fn new(prefix: &[u8], reference: &[u8; REFERENCE_SIZE]) -> OffPage {
        OffPage { prefix: prefix.to_vec(), reference: *reference }
    }

    /// The whole value. Call it while the transaction's read view (or lock) still protects the version it
    /// came from, that is before the statement ends.
    ///
    /// # Errors
    /// Storage errors; a damaged chain.
    pub async fn fetch(&self, transaction: &Transaction, table: &Table) -> Result<Vec<u8>, Error> {
        let _ = transaction;
        let mut value = self.prefix.clone();
        let mut reader = ExternalReader::new(Reference::read(&self.reference));
        retry(|| Ok(reader.read(&table.clustered, &mut value)?)).await?;
        Ok(value)
    }
}

/// Writes one value off-page. From its first page on the undo log knows of it: whatever happens before a row
/// refers to it (an error, a rollback, a crash), undoing the operation frees its pages.
pub(super) async fn store_external(
    transaction: &mut Transaction,
    table: &Table,
    value: &[u8],
) -> Result<Reference, Error> {
    let tree = &*table.clustered;
    let mut chain = ExternalWriter::new(tree, value);
    retry_change(transaction, |writer| {
        let Writer { system, undo_log: log, buffers, .. } = writer;
        loop {
            // As long as it will be: the reference is known only when the page is.
            note_chain(&mut buffers.undo, table.id, &[0; REFERENCE_SIZE]);
            if log.place_for(&system.undo, buffers.undo.len()).is_none() {
                log.make_room(&system.undo, buffers.undo.len())?;
                continue;
            }
            let mut mtr = system.store.mtr()?;
            let Some(undo_page) = log.latch(&mut mtr) else { continue };
            let reference = chain.begin(&mut mtr)?;
            note_chain(&mut buffers.undo, table.id, &reference.to_bytes());
            log.append(&mut mtr, undo_page, &buffers.undo, true);
            mtr.commit();
            return Ok(());
        }
    })
    .await?;
    retry_change(transaction, |_| Ok(chain.finish()?)).await
}

/// The undo record of a chain that begins.
fn note_chain(bytes: &mut Vec<u8>, table: u64, reference: &[u8; REFERENCE_SIZE]) {
    let mut undo = UndoBuilder::new(bytes, UndoKind::OffPage, table);
    undo.key([FieldRef::External { prefix: &[], reference }].into_iter());
    undo.finish();
}

/// All off-page values of a record.
pub(crate) fn external_references(record: RecordRef<'_>) -> SmallVec<[Reference; 2]> {
    if !record.has_external() {
        return SmallVec::new();
    }
    let reference = |field: FieldRef<'_>| match field {
        FieldRef::External { reference, .. } => Some(Reference::read(reference)),
        _ => None,
    };
    record.fields().filter_map(reference).collect()
}

/// Frees all but the first pages of off-page values.
pub(crate) async fn free_chain_tails(tree: &Tree, chains: &[Reference]) -> Result<(), Error> {
    for chain in chains {
        while !retry(|| Ok(tree.free_chain_step(*chain)?)).await? {}
    }
    Ok(())
}

/// Frees the chain that `reference`, a part of the undo record `record` at `place`, names, and strikes it out
/// there in the mini-transaction that frees the chain's first page. Nothing if that has been done already:
/// `record` is a copy, so the page is asked.
pub(crate) async fn free_noted_chain(
    system: &System,
    tree: &Tree,
    place: Place,
    record: &[u8],
    reference: &[u8; REFERENCE_SIZE],
) -> Result<(), Error> {
    let chain = Reference::read(reference);
    // Another tablespace: the table was recreated since, and the chain went with its file.
    if chain.page == NULL_PAGE || chain.space != tree.space() {
        return Ok(());
    }
    let in_record = reference.as_ptr() as usize - record.as_ptr() as usize;
    let at = usize::from(place.offset) + in_record;
    let is_noted = |page: &[u8]| page[at..at + REFERENCE_SIZE] == reference[..];
    if !retry(|| Ok(is_noted(&system.undo.read_page(place.page)?))).await? {
        return Ok(());
    }
    free_chain_tails(tree, &[chain]).await?;
    retry(|| {
        let mut mtr = system.store.mtr()?;
        let undo_page = mtr.x(undo_id(place.page))?;
        if !is_noted(mtr.page(undo_page)) {
            return Ok(());
        }
        tree.prepare_free_chain_head(&mut mtr, chain)?;
        tree.free_chain_head(&mut mtr, chain)?;
        // Bytes 4 to 7 of a reference are the first page.
        mtr.write_u32(undo_page, at + 4, NULL_PAGE);
        mtr.commit();
        Ok(())
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use btree::{Comparison, FieldDef, IndexDef};
    use disk::{Environment, SimulatedEnvironment};
    use pagestore::{PageStore, fsp};

    use super::*;
    use crate::row::{Control, Direction, KeyRange, ReadMode, Row, Scan, ScanIndex, get};
    use crate::table::ClusteredField;
    use crate::undo::UndoRecord;
    use crate::{Isolation, Options, Transaction, TransactionSystem, insert};

    const SPACE: u32 = 5;

    /// `CREATE TABLE t (id INT PRIMARY KEY, v BLOB)`
    async fn table(store: &Arc<PageStore>) -> Arc<Table> {
        store.create_space(SPACE, Path::new("/data/t.ibd"), fsp::INITIAL_PAGES).unwrap();
        let v = FieldDef::variable("v", 65535, Comparison::Binary).nullable().blob();
        let [id, trx_id, roll_ptr] = [("id", 4), ("DB_TRX_ID", 6), ("DB_ROLL_PTR", 7)];
        let fixed = |(name, size)| FieldDef::fixed(name, size);
        let fields = vec![fixed(id), fixed(trx_id), fixed(roll_ptr), v];
        let def = Arc::new(IndexDef::new(100, "PRIMARY", true, true, fields, 1, 1));
        let tree = retry(|| {
            let mut mtr = store.mtr()?;
            fsp::create_space_pages(&mut mtr, SPACE, fsp::INITIAL_PAGES)?;
            let tree = Tree::create(&mut mtr, store, SPACE, def.clone())?;
            mtr.commit();
            Ok(tree)
        })
        .await
        .unwrap();
        use ClusteredField::{Column, RollPtr, TrxId};
        let fields = vec![Column(0), TrxId, RollPtr, Column(1)];
        Arc::new(Table::new(7, Arc::new(tree), fields, Vec::new(), 2))
    }

    /// Runs a test on a new, empty table.
    fn run<F: Future<Output = ()> + Send + 'static>(
        test: impl FnOnce(TransactionSystem, Arc<Table>) -> F + Send + 'static,
    ) {
        let env = SimulatedEnvironment::new(1);
        let dynamic: Arc<dyn Environment> = env.clone();
        let data = Path::new("/data");
        dynamic.storage().create_dir_all(data).unwrap();
        let redo = redo::RedoLog::create(&dynamic, data, redo::Options::default()).unwrap();
        let writer = Arc::new(dblwr::UnprotectedWriter::new(dynamic.clone()));
        let options = pagestore::Options { pool_bytes: 4 << 20, ..pagestore::Options::default() };
        let store = PageStore::open(dynamic, redo, options, writer).unwrap();
        env.run_until_complete(async {
            let opened = TransactionSystem::open(store.clone(), Options::new(data.join("undo_001"))).await;
            test(opened.unwrap(), table(&store).await).await;
        });
    }

    fn long(byte: u8) -> Vec<u8> {
        vec![byte; 100_000]
    }

    /// A rollback frees their pages without asking for readers.
    #[test]
    fn off_page_values_that_are_not_committed_are_not_shown_to_read_uncommitted() {
        run(|system, table| async move {
            let mut writer = Transaction::new(&system);
            writer.begin();
            insert(&mut writer, &table, &[Some(&[0, 0, 0, 1]), Some(&long(1))]).await.unwrap();
            insert(&mut writer, &table, &[Some(&[0, 0, 0, 2]), Some(b"short")]).await.unwrap();
            let mut reader = Transaction::new(&system);
            reader.set_isolation(Isolation::ReadUncommitted);
            for (committed, expected) in [(false, [false, true]), (true, [true, true])] {
                if committed {
                    writer.commit(crate::Durability::Sync).await.unwrap();
                }
                for (id, shown) in [1, 2].into_iter().zip(expected) {
                    let found = get(&mut reader, &table, &[Some(&[0, 0, 0, id])], |_| ()).await.unwrap();
                    assert_eq!(found.is_some(), shown, "row {id}, committed: {committed}");
                }
                let (all, forward) = (KeyRange::all(), Direction::Forward);
                let mode = ReadMode::Consistent;
                let mut scan = Scan::new(table.clone(), ScanIndex::Clustered, all, forward, mode, false);
                let mut rows = 0;
                let mut count = |_: &Row<'_>| {
                    rows += 1;
                    Control::Continue
                };
                scan.run(&mut reader, &mut count).await.unwrap();
                assert_eq!(rows, expected.iter().filter(|shown| **shown).count());
                reader.end_statement();
            }
        });
    }

    /// Two may have copied the undo record before one of them frees the value; its pages may be another
    /// value's by then.
    #[test]
    fn a_value_that_was_freed_is_not_freed_by_another_copy_of_its_undo_record() {
        run(|system, table| async move {
            let mut transaction = Transaction::new(&system);
            transaction.begin();
            insert(&mut transaction, &table, &[Some(&[0, 0, 0, 1]), Some(&long(1))]).await.unwrap();
            // Before the record of the row stands that of its value.
            let (system, log) = (&system.0, transaction.undo_log.as_ref().unwrap());
            let mut copy = Vec::new();
            let mut place = log.end().unwrap();
            for _ in 0..2 {
                place =
                    retry(|| log.record_before(&system.undo, place, None, &mut copy)).await.unwrap().unwrap();
            }
            let free = || {
                let chain = UndoRecord::parse(&copy).unwrap().chain().unwrap();
                free_noted_chain(system, &table.clustered, place, &copy, chain)
            };
            free().await.unwrap();
            insert(&mut transaction, &table, &[Some(&[0, 0, 0, 2]), Some(&long(2))]).await.unwrap();
            free().await.unwrap();
            let reference = retry(|| {
                let found = table
                    .clustered
                    .get(&[Some(&[0, 0, 0, 2])], |record| external_references(record)[0].to_bytes())?;
                Ok(found.unwrap())
            });
            let reference = reference.await.unwrap();
            let value = OffPage::new(&[], &reference).fetch(&transaction, &table).await.unwrap();
            assert_eq!(value, long(2));
        });
    }
}
