//! What transactions know of a table: its trees, and which table column sits where in them.
//!
//! The catalog builds a [`Table`] and shares it; DDL builds a new one. Column numbers are the table's
//! (0-based, in declaration order); rows are given and read by them, in InnoDB's storage encoding.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use btree::{Field, KeyFields, Tree};

use crate::error::Error;
use crate::row::ScanIndex;
use crate::row_count::RowCount;

/// Column number that stands for the hidden DB_ROW_ID in [`SecondaryField::column`].
pub const ROW_ID_COLUMN: u16 = u16::MAX;

/// Marks a table column without a place in an index.
pub(crate) const NO_FIELD: u16 = u16::MAX;

/// What a field of the clustered index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusteredField {
    /// A column of the table. Key fields with a column prefix do not exist here: the whole column is stored.
    Column(u16),
    /// The hidden 6-byte row id of a table without a primary key (always field 0).
    RowId,
    /// DB_TRX_ID, right after the key.
    TrxId,
    /// DB_ROLL_PTR, right after DB_TRX_ID.
    RollPtr,
}

/// What a field of a secondary index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecondaryField {
    /// The table column, or [`ROW_ID_COLUMN`].
    pub column: u16,
    /// Only this many leading bytes of the column are stored.
    pub prefix_bytes: Option<u16>,
    /// With `prefix_bytes`: and at most this many UTF-8 characters of them.
    pub prefix_characters: Option<u16>,
}

/// A secondary index: its fields are the key columns followed by the clustered key columns not among them.
pub struct Secondary {
    /// The tree.
    pub tree: Arc<Tree>,
    /// What the tree's fields hold, in their order.
    pub columns: Vec<SecondaryField>,
    /// Number of leading fields the user declared.
    pub user_fields: usize,
    /// Whether `user_fields` without NULL may occur once only.
    pub unique: bool,
    /// Number of its making ([`crate::TransactionSystem::birth_number`]); 0: before the system was opened. It
    /// was built of what was committed then, and has nothing of older versions.
    pub born: u64,
}

impl Secondary {
    /// Picks the clustered key out of an entry of this index.
    pub(crate) fn clustered_key<'e>(&self, table: &Table, entry: &[Field<'e>]) -> KeyFields<'e> {
        let position = |field: &ClusteredField| {
            let column = match field {
                ClusteredField::Column(column) => *column,
                _ => ROW_ID_COLUMN,
            };
            let whole = |part: &SecondaryField| part.column == column && part.prefix_bytes.is_none();
            self.columns.iter().position(whole).and_then(|position| entry.get(position).copied()).flatten()
        };
        table.clustered_columns[..table.key_fields].iter().map(position).collect()
    }
}

/// A table as transactions see it.
pub struct Table {
    /// Table id; stays the same as long as undo logs may refer to the clustered index's fields by position.
    pub id: u64,
    /// The clustered index.
    pub clustered: Arc<Tree>,
    /// What its fields hold, in their order.
    pub clustered_columns: Vec<ClusteredField>,
    /// Number of leading clustered fields that are the key.
    pub key_fields: usize,
    /// The secondary indexes.
    pub secondaries: Vec<Secondary>,
    /// Number of columns of the table.
    pub column_count: usize,
    /// Clustered field of each table column.
    pub(crate) column_field: Vec<u16>,
    /// For each clustered field: whether some secondary index has it.
    pub(crate) ordering: Vec<bool>,
    /// Next hidden row id; 0 = not known yet.
    pub(crate) next_row_id: AtomicU64,
    /// As [`Secondary::born`], of the table's rows: when it was created, truncated or imported.
    pub born: u64,
    pub(crate) row_count: RowCount,
}

impl Table {
    /// Puts a table together. `clustered_columns` must name every column once, the key first, then DB_TRX_ID
    /// and DB_ROLL_PTR.
    ///
    /// # Panics
    /// When the column lists contradict each other (a bug of the catalog).
    #[must_use]
    pub fn new(
        id: u64,
        clustered: Arc<Tree>,
        clustered_columns: Vec<ClusteredField>,
        secondaries: Vec<Secondary>,
        column_count: usize,
    ) -> Table {
        let key_fields = clustered_columns.iter().position(|field| *field == ClusteredField::TrxId);
        let key_fields = key_fields.unwrap_or(0);
        assert!(key_fields > 0, "table {id}: the clustered index needs a key before DB_TRX_ID");
        assert_eq!(
            clustered_columns.get(key_fields + 1),
            Some(&ClusteredField::RollPtr),
            "table {id}: DB_ROLL_PTR follows DB_TRX_ID"
        );
        let mut column_field = vec![NO_FIELD; column_count];
        let mut row_id_field = NO_FIELD;
        for (position, field) in clustered_columns.iter().enumerate() {
            match field {
                ClusteredField::Column(column) => column_field[*column as usize] = position as u16,
                ClusteredField::RowId => row_id_field = position as u16,
                ClusteredField::TrxId | ClusteredField::RollPtr => {}
            }
        }
        let mut ordering = vec![false; clustered_columns.len()];
        for secondary in &secondaries {
            for field in &secondary.columns {
                let position = if field.column == ROW_ID_COLUMN {
                    row_id_field
                } else {
                    column_field[field.column as usize]
                };
                assert!(
                    position != NO_FIELD,
                    "table {id}: an index names a column the clustered index lacks"
                );
                ordering[position as usize] = true;
            }
        }
        Table {
            id,
            clustered,
            clustered_columns,
            key_fields,
            secondaries,
            column_count,
            column_field,
            ordering,
            next_row_id: AtomicU64::new(0),
            born: 0,
            row_count: RowCount::default(),
        }
    }

    /// The same table, made when this number was taken.
    #[must_use]
    pub fn born_at(self, born: u64) -> Table {
        Table { born, ..self }
    }

    /// This is the next definition, which nobody uses yet, of the same rows.
    pub fn continue_row_count(&self, old: &Table) {
        self.row_count.share(&old.row_count);
    }

    /// When the table and the index were made: a read view that does not see both does not find in the index
    /// what it should see.
    pub(crate) fn born_of(&self, index: ScanIndex) -> [u64; 2] {
        match index {
            ScanIndex::Clustered => [self.born; 2],
            ScanIndex::Secondary(number) => [self.born, self.secondaries[number].born],
        }
    }

    /// Position of DB_TRX_ID in the clustered index; DB_ROLL_PTR follows.
    #[must_use]
    pub fn trx_id_field(&self) -> usize {
        self.key_fields
    }

    /// Clustered field that holds a table column.
    #[must_use]
    pub fn field_of_column(&self, column: u16) -> usize {
        if column == ROW_ID_COLUMN { 0 } else { self.column_field[column as usize] as usize }
    }

    /// Whether the clustered key is the hidden row id.
    #[must_use]
    pub fn has_row_id(&self) -> bool {
        self.clustered_columns[0] == ClusteredField::RowId
    }
}

/// Keeps the definition of a table as it is until it is dropped.
pub type TableHold = Arc<dyn Send + Sync>;

/// Where recovery and purge find tables. The catalog implements it.
pub trait TableSource: Send + Sync {
    /// The table with this id, or `None` when it was dropped, or cannot be used: nothing is purged in it
    /// then.
    fn table(&self, id: u64) -> Option<Arc<Table>>;

    /// The table with this id, to undo what was done to it; `None` when it was dropped.
    ///
    /// # Errors
    /// It cannot be used now, its file is missing for instance: what was done to it must be undone later.
    fn table_to_undo(&self, id: u64) -> Result<Option<Arc<Table>>, Error> {
        Ok(self.table(id))
    }

    /// Holds a table for the rollback, after a start, of what changed it. `None`: there is no such table, or
    /// definitions do not change.
    ///
    /// # Errors
    /// Its definition is being changed.
    fn hold(&self, _id: u64) -> Result<Option<TableHold>, Error> {
        Ok(None)
    }

    /// Holds all tables, each with its id: which ones a long undo log is about is not known yet.
    fn hold_all(&self) -> Vec<(u64, TableHold)> {
        Vec::new()
    }
}
