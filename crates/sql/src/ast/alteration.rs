//! ALTER TABLE.

use super::{Check, ColumnDef, ColumnDefault, ForeignKey, KeyDef, TableName};

/// `ALTER TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// The table.
    pub table: TableName,
    /// Its clauses, in their order.
    pub changes: Vec<Alteration>,
    /// `ALGORITHM =`, upper case.
    pub algorithm: Option<String>,
    /// `LOCK =`, upper case.
    pub lock: Option<String>,
}

/// Where a column goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// `FIRST`
    First,
    /// `AFTER column`
    After(String),
}

/// One clause of `ALTER TABLE`. IF EXISTS and IF NOT EXISTS are MariaDB's.
#[derive(Clone, Debug, PartialEq)]
pub enum Alteration {
    /// `ADD COLUMN`.
    AddColumn {
        /// What is added.
        column: ColumnDef,
        /// Where; at the end without.
        position: Option<Position>,
        /// `IF NOT EXISTS`
        if_not_exists: bool,
    },
    /// `DROP COLUMN`.
    DropColumn {
        /// Its name.
        name: String,
        /// `IF EXISTS`
        if_exists: bool,
    },
    /// `MODIFY`, and `CHANGE` which gives another name.
    ChangeColumn {
        /// Its name before.
        name: String,
        /// What it becomes.
        column: ColumnDef,
        /// Where it goes; it stays without.
        position: Option<Position>,
        /// `IF EXISTS`
        if_exists: bool,
    },
    /// `RENAME COLUMN a TO b`.
    RenameColumn(String, String),
    /// `ALTER COLUMN … SET DEFAULT`, or `DROP DEFAULT`.
    AlterDefault(String, Option<ColumnDefault>),
    /// `ADD KEY`, also the primary key.
    AddKey {
        /// The key.
        key: KeyDef,
        /// `IF NOT EXISTS`
        if_not_exists: bool,
    },
    /// `DROP KEY`; the primary key is `PRIMARY`.
    DropKey {
        /// Its name.
        name: String,
        /// `IF EXISTS`
        if_exists: bool,
    },
    /// `RENAME INDEX a TO b`.
    RenameKey(String, String),
    /// `ALTER COLUMN name SET VISIBLE` (or INVISIBLE).
    ShowColumn(String, bool),
    /// `ALTER INDEX name VISIBLE` (or INVISIBLE).
    ShowKey(String, bool),
    /// `ADD CONSTRAINT … FOREIGN KEY`.
    AddForeignKey(ForeignKey),
    /// `DROP FOREIGN KEY`.
    DropForeignKey(String),
    /// `ADD CONSTRAINT … CHECK`.
    AddCheck(Check),
    /// `DROP CHECK`.
    DropCheck(String),
    /// `DROP CONSTRAINT`: whatever has that name.
    DropConstraint {
        /// Its name.
        name: String,
        /// `IF EXISTS`
        if_exists: bool,
    },
    /// `ALTER CHECK … [NOT] ENFORCED`.
    EnforceCheck(String, bool),
    /// `CONVERT TO CHARACTER SET`, with a collation or without.
    Convert(String, Option<String>),
    /// `RENAME TO`.
    RenameTo(TableName),
    /// `ENABLE|DISABLE KEYS` and the like: nothing to do.
    Nothing,
    /// `FORCE`, `ENGINE=InnoDB`, `ORDER BY`: the table is rewritten.
    Rebuild,
    /// `DISCARD TABLESPACE`.
    DiscardTablespace,
    /// `IMPORT TABLESPACE`.
    ImportTablespace,
    /// A table option.
    Option(String, String),
}
