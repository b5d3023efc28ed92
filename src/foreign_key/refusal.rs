//! Why a foreign key is refused, and why it refuses a change.

use std::fmt;

use super::ForeignKey;
use crate::catalog::Change;
use crate::error::Result;

/// A foreign key that a change of a row would break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenForeignKey {
    /// Database of the table that has the key.
    pub database: String,
    /// The table that has the key, which refers to the other one.
    pub table: String,
    /// The key.
    pub key: ForeignKey,
}

impl fmt::Display for BrokenForeignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        let (database, table) = (quoted(&self.database), quoted(&self.table));
        write!(f, "{database}.{table}, {}", self.key.clause(&self.database))
    }
}

/// Why a foreign key cannot be defined, or what it needs cannot be taken away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignKeyRefusal {
    /// There is no table of the name it refers to.
    #[error("failed to open the referenced table '{0}'")]
    NoParent(String),
    /// A column of the child does not exist.
    #[error("key column '{0}' doesn't exist in table")]
    NoColumn(String),
    /// A column of the parent does not exist.
    #[error("missing column '{column}' for foreign key '{key}' in the referenced table '{parent}'")]
    NoParentColumn {
        /// The column.
        column: String,
        /// The foreign key.
        key: String,
        /// The parent.
        parent: String,
    },
    /// Another number of columns on each side, or none.
    #[error("foreign key '{0}': the numbers of columns differ")]
    ColumnCount(String),
    /// The types of two columns differ in more than their lengths.
    #[error(
        "column '{column}' and the referenced column '{referenced}' of foreign key '{key}' are incompatible"
    )]
    Incompatible {
        /// Column of the child.
        column: String,
        /// Column of the parent.
        referenced: String,
        /// The foreign key.
        key: String,
    },
    /// No index of the parent begins with the referenced columns.
    #[error("missing index for foreign key '{key}' in the referenced table '{parent}'")]
    NoParentIndex {
        /// The foreign key.
        key: String,
        /// The parent.
        parent: String,
    },
    /// SET NULL for a column that may not be NULL.
    #[error("column '{column}' cannot be NOT NULL: foreign key '{key}' sets it to NULL")]
    NotNull {
        /// The column.
        column: String,
        /// The foreign key.
        key: String,
    },
    /// A VIRTUAL column on either side.
    #[error("foreign key '{key}' uses virtual column '{column}', which is not supported")]
    Virtual {
        /// The foreign key.
        key: String,
        /// The column.
        column: String,
    },
    /// An action would change a column that a generated column reads, or is: the engine evaluates none.
    #[error("foreign key '{key}' would change column '{column}', which a generated column reads or is")]
    Generated {
        /// The foreign key.
        key: String,
        /// The column.
        column: String,
    },
    /// An action would change a column that a CHECK constraint reads: the engine evaluates none.
    #[error("foreign key '{key}' would change column '{column}', which the check constraint '{check}' reads")]
    Checked {
        /// The foreign key.
        key: String,
        /// The column.
        column: String,
        /// The CHECK constraint.
        check: String,
    },
    /// A column of a foreign key would become another one.
    #[error("cannot change column '{column}': used in foreign key '{key}'")]
    ColumnInUse {
        /// The column.
        column: String,
        /// The foreign key.
        key: String,
    },
    /// A column that a foreign key refers to would become another one.
    #[error("cannot change column '{column}': used in foreign key '{}' of table '{}'", .broken.key.name, .broken.table)]
    ParentColumnInUse {
        /// The column.
        column: String,
        /// The foreign key.
        broken: Box<BrokenForeignKey>,
    },
    /// A column of a foreign key would be gone.
    #[error("cannot drop column '{column}': needed in foreign key '{key}'")]
    DropColumn {
        /// The column.
        column: String,
        /// The foreign key.
        key: String,
    },
    /// A column that a foreign key refers to would be gone.
    #[error("cannot drop column '{column}': needed in foreign key '{}' of table '{}'", .broken.key.name, .broken.table)]
    DropParentColumn {
        /// The column.
        column: String,
        /// The foreign key.
        broken: Box<BrokenForeignKey>,
    },
    /// Another foreign key of the database has the name.
    #[error("duplicate foreign key constraint name '{0}'")]
    Exists(String),
    /// There is no foreign key of that name.
    #[error("can't drop '{0}'; check that the foreign key exists")]
    Missing(String),
    /// The table is referred to by another one: it cannot be dropped.
    #[error("cannot drop table '{parent}' referenced by a foreign key constraint '{key}' on table '{child}'")]
    DropParent {
        /// The table.
        parent: String,
        /// The foreign key.
        key: String,
        /// The table that has it.
        child: String,
    },
    /// The table is referred to by another one: its rows cannot be removed unseen.
    #[error("cannot truncate a table referenced in a foreign key constraint ({0})")]
    TruncateParent(Box<BrokenForeignKey>),
    /// The tablespace of a table that is referred to cannot be discarded.
    #[error("cannot discard the tablespace of a table referenced in a foreign key constraint ({0})")]
    DiscardParent(Box<BrokenForeignKey>),
    /// A foreign key needs the index.
    #[error("cannot drop index '{0}': needed in a foreign key constraint")]
    NeedsIndex(String),
}

/// Refuses to drop tables that others refer to.
pub(crate) fn refuse_to_drop_parents(change: &Change, tables: &[(String, String)]) -> Result<()> {
    let goes = |database: &str, name: &str| tables.iter().any(|(d, n)| d == database && n == name);
    for (database, name) in tables {
        if let Some(broken) = super::reference_from_outside(change, database, name, goes) {
            let (key, child) = (broken.key.name, broken.table);
            return Err(ForeignKeyRefusal::DropParent { parent: name.clone(), key, child }.into());
        }
    }
    Ok(())
}
