//! The order in which the records of a batch are worked off: that of their rows in the tables.
//!
//! The records are sorted by table and by the **rank** of the row's key, a number made of the key's first
//! bytes. Where ranks are the same (a row that was changed more than once, keys of several columns or with a
//! common beginning, texts in a collation), the keys are compared as the index compares them. Records of one
//! row stay in the order of the commits, and go into one lane.

use std::sync::Arc;

use btree::compare::{SearchKey, compare_keys};
use btree::{IndexDef, KeyFields};

use super::record::leaves_something;
use crate::table::{Table, TableSource};
use crate::undo::UndoRecord;

/// The table that the last record was about; the next one is mostly about it, too.
pub(super) struct KnownTable<'t> {
    tables: &'t dyn TableSource,
    last: Option<(u64, Option<Arc<Table>>)>,
}

impl<'t> KnownTable<'t> {
    pub fn new(tables: &'t dyn TableSource) -> KnownTable<'t> {
        KnownTable { tables, last: None }
    }

    fn table(&mut self, id: u64) -> Option<&Table> {
        let last = self.last.take().filter(|(last, _)| *last == id);
        let (_, table) = self.last.insert(last.unwrap_or_else(|| (id, self.tables.table(id))));
        table.as_deref()
    }
}

/// A record of a batch that leaves something to remove.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRecord<'p> {
    table: u64,
    rank: u64,
    /// About another row than the record before it. Known once they are sorted.
    begins_row: bool,
    undo: &'p [u8],
    /// The piece and its record.
    pub record: (u32, u32),
}

impl<'p> RowRecord<'p> {
    /// `None`: nothing is to be done for it, as for most updates of columns that no secondary index has.
    pub fn new(known: &mut KnownTable<'_>, undo: &'p [u8], record: (u32, u32)) -> Option<RowRecord<'p>> {
        let (mut table, mut rank) = (0, 0);
        // A damaged one is found out by the worker.
        if let Some(parsed) = UndoRecord::parse(undo) {
            if !parsed.kind.has_old_version() {
                return None;
            }
            let of = known.table(parsed.table)?;
            if !leaves_something(of, &parsed) {
                return None;
            }
            table = parsed.table;
            rank = SearchKey::new(of.clustered.def(), &key_of(&parsed)).rank(of.clustered.def());
        }
        Some(RowRecord { table, rank, begins_row: true, undo, record })
    }

    fn place(&self) -> (u64, u64) {
        (self.table, self.rank)
    }
}

fn key_of<'p>(undo: &UndoRecord<'p>) -> KeyFields<'p> {
    undo.key.iter().map(|field| field.inline()).collect()
}

/// Sorts the records by their rows and shares them out among `lanes`: neighbouring rows go into the same one,
/// so that each lane goes through the pages of a tree in their order. The records of a row stay together.
pub(super) fn share_out(
    mut records: Vec<RowRecord<'_>>,
    known: &mut KnownTable<'_>,
    lanes: usize,
) -> Vec<Vec<(u32, u32)>> {
    let share = records.len().div_ceil(lanes);
    records.sort_by_key(RowRecord::place);
    let mut keyed = Vec::new();
    for tied in records.chunk_by_mut(|a, b| a.place() == b.place()).filter(|tied| tied.len() > 1) {
        match known.table(tied[0].table) {
            Some(table) => sort_tied(tied, table.clustered.def(), &mut keyed),
            // Whatever they are about stays together.
            None => tied[1..].iter_mut().for_each(|record| record.begins_row = false),
        }
    }
    let mut shared: Vec<Vec<(u32, u32)>> = Vec::with_capacity(lanes);
    for RowRecord { begins_row, record, .. } in records {
        match shared.last_mut() {
            Some(lane) if lane.len() < share || !begins_row => lane.push(record),
            _ => shared.push(vec![record]),
        }
    }
    debug_assert!(shared.len() <= lanes, "all but the last lane have their share");
    shared.resize_with(lanes, Vec::new);
    shared
}

/// Sorts records of the same rank by their keys. `keyed` is room that is used again.
fn sort_tied<'p>(
    tied: &mut [RowRecord<'p>],
    def: &IndexDef,
    keyed: &mut Vec<(KeyFields<'p>, RowRecord<'p>)>,
) {
    let with_key = |record: &RowRecord<'p>| {
        let key = UndoRecord::parse(record.undo).map(|undo| key_of(&undo));
        (key.unwrap_or_default(), *record)
    };
    keyed.extend(tied.iter().map(with_key));
    keyed.sort_by(|(a, _), (b, _)| compare_keys(def, a, b));
    for at in 1..keyed.len() {
        keyed[at].1.begins_row = compare_keys(def, &keyed[at - 1].0, &keyed[at].0).is_ne();
    }
    for (place, (_, record)) in tied.iter_mut().zip(keyed.drain(..)) {
        *place = record;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use btree::{Comparison, FieldDef, FieldRef, Tree};
    use pagestore::fsp;

    use super::*;
    use crate::retry::retry;
    use crate::table::ClusteredField;
    use crate::undo::UndoKind;
    use crate::undo::record::UndoBuilder;
    use crate::undo::tests::store;

    const SPACE: u32 = 5;
    const TABLE: u64 = 7;

    struct OneTable(Arc<Table>);

    impl TableSource for OneTable {
        fn table(&self, id: u64) -> Option<Arc<Table>> {
            (id == TABLE).then(|| self.0.clone())
        }
    }

    fn with_key(key: &[FieldDef]) -> OneTable {
        let (env, store) = store();
        store.create_space(SPACE, Path::new("/data/t.ibd"), fsp::INITIAL_PAGES).unwrap();
        let hidden = [("DB_TRX_ID", 6), ("DB_ROLL_PTR", 7)].map(|(name, size)| FieldDef::fixed(name, size));
        let fields: Vec<_> = key.iter().cloned().chain(hidden).collect();
        let unique = key.len();
        let def = Arc::new(IndexDef::new(100, "PRIMARY", true, true, fields, unique, unique));
        let tree = env.run_until_complete(retry(|| {
            let mut mtr = store.mtr()?;
            fsp::create_space_pages(&mut mtr, SPACE, fsp::INITIAL_PAGES)?;
            let tree = Tree::create(&mut mtr, &store, SPACE, def.clone())?;
            mtr.commit();
            Ok(tree)
        }));
        let columns = (0..unique as u16).map(ClusteredField::Column);
        let fields = columns.chain([ClusteredField::TrxId, ClusteredField::RollPtr]).collect();
        OneTable(Arc::new(Table::new(TABLE, Arc::new(tree.unwrap()), fields, Vec::new(), unique)))
    }

    fn deletion(key: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut undo = UndoBuilder::new(&mut bytes, UndoKind::DeleteMark, TABLE);
        undo.old_version(false, 1, 2);
        undo.key(key.iter().map(|field| FieldRef::Inline(field)));
        undo.fields([].iter().copied());
        undo.fields([].iter().copied());
        undo.finish();
        bytes
    }

    /// The lanes of deletions of these keys, which come in this order.
    fn lanes_of<K: AsRef<[u8]>>(table: &OneTable, keys: &[Vec<K>], lanes: usize) -> Vec<Vec<(u32, u32)>> {
        let fields = |key: &Vec<K>| deletion(&key.iter().map(AsRef::as_ref).collect::<Vec<_>>());
        let undo: Vec<Vec<u8>> = keys.iter().map(fields).collect();
        let mut known = KnownTable::new(table);
        let mut records = Vec::new();
        for (at, undo) in undo.iter().enumerate() {
            records.extend(RowRecord::new(&mut known, undo, (at as u32, 0)));
        }
        assert_eq!(records.len(), keys.len());
        share_out(records, &mut known, lanes)
    }

    /// Each key is there twice, and the keys are scattered. Whatever their ranks say, the lanes together go
    /// through the rows in their order, and both records of a row are neighbours, the earlier one first.
    fn is_in_order(key: &[FieldDef], of: impl Fn(u32) -> Vec<Vec<u8>>) {
        const ROWS: u32 = 500;
        let table = with_key(key);
        let rows: Vec<u32> = (0..2 * ROWS).map(|n| n * 211 % ROWS).collect();
        let keys: Vec<_> = rows.iter().map(|row| of(*row)).collect();
        let lanes = lanes_of(&table, &keys, 16);
        assert_eq!(lanes.len(), 16);
        let longest = lanes.iter().map(Vec::len).max();
        assert!(longest <= Some(1000 / 16 + 2), "{longest:?}");
        assert!(lanes.iter().all(|lane| lane.len() % 2 == 0), "a row is in two lanes");
        let order: Vec<u32> = lanes.into_iter().flatten().map(|(piece, _)| piece).collect();
        for (row, of_row) in order.chunks(2).enumerate() {
            assert_eq!(of_row.iter().map(|at| rows[*at as usize]).collect::<Vec<_>>(), [row as u32; 2]);
            assert!(of_row[0] < of_row[1], "row {row}: {of_row:?}");
        }
    }

    #[test]
    fn rows_are_in_the_order_of_their_keys() {
        let word = |row: u32| row.to_be_bytes().to_vec();
        is_in_order(&[FieldDef::fixed("id", 4)], |row| vec![word(row)]);
        // Their ranks are those of the first eight bytes.
        is_in_order(&[FieldDef::fixed("tenant", 8), FieldDef::fixed("id", 4)], |row| {
            vec![vec![0; 8], word(row)]
        });
        let text = |comparison| [FieldDef::variable("name", 200, comparison)];
        is_in_order(&text(Comparison::Binary), |row| vec![format!("order:{row:09}").into_bytes()]);
        // These have none.
        is_in_order(&text(Comparison::Utf8mb4GeneralCi), |row| vec![format!("Row {row:09}").into_bytes()]);
        is_in_order(&[FieldDef::fixed("a", 2), FieldDef::fixed("b", 4)], |row| vec![vec![0, 7], word(row)]);
    }

    /// What the collation takes for the same is the same row, and goes into one lane in the order of commits.
    #[test]
    fn equal_keys_of_other_bytes_are_one_row() {
        let table = with_key(&[FieldDef::variable("name", 200, Comparison::Utf8mb4GeneralCi)]);
        let texts = ["abc", "x", "ABC", "aBc ", "y", "Abc"].map(|text| vec![text.as_bytes().to_vec()]);
        let lanes = lanes_of(&table, &texts, 6);
        assert_eq!(lanes[0], [(0, 0), (2, 0), (3, 0), (5, 0)]);
        assert_eq!(lanes[1..3], [[(1, 0)], [(4, 0)]]);
    }

    #[test]
    fn a_row_that_is_changed_often_does_not_leave_its_lane() {
        let table = with_key(&[FieldDef::fixed("id", 4)]);
        let keys: Vec<_> = (0..140u32).map(|n| vec![if n < 100 { n } else { 60 }.to_be_bytes()]).collect();
        let lanes = lanes_of(&table, &keys, 8);
        let often: Vec<_> = lanes.iter().filter(|lane| lane.contains(&(60, 0))).flatten().collect();
        let changes: Vec<_> = often.iter().filter(|(at, _)| *at >= 100).map(|(at, _)| *at).collect();
        assert_eq!(changes, (100..140).collect::<Vec<_>>());
        assert!(lanes_of::<Vec<u8>>(&table, &[], 4).iter().all(Vec::is_empty));
    }
}
