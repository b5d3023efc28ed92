//! What can go wrong, as seen by the person who embeds or runs the engine.

use std::path::PathBuf;

use crate::schema::{BrokenForeignKey, ForeignKeyRefusal, SchemaError};
use crate::transact::Conflict;
use crate::types::EncodeError;

/// An error of the engine. Its text says what happened, to which file or table, and what can be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call to the storage failed.
    #[error(transparent)]
    Disk(#[from] disk::Error),
    /// The redo log cannot be used.
    #[error(transparent)]
    Redo(#[from] redo::Error),
    /// Pages cannot be read, written or understood.
    #[error(transparent)]
    Store(pagestore::Error),
    /// A transaction could not proceed: lock wait timeout, deadlock, duplicate key and the like.
    #[error(transparent)]
    Transaction(#[from] txn::Error),
    /// The catalog file is damaged.
    #[error("the catalog {path}: {why}")]
    Catalog {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// A file of the directory is missing where it must not be, or is not the one that belongs there.
    #[error("{file}: {why}", file = file.display())]
    WrongFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The data directory was written by a newer version.
    #[error(
        "{path} is of format {found} (written by version {written_by}), this version knows formats up to {known}: \
         start it with the newer version"
    )]
    NewerDirectory {
        /// The file that says so.
        path: PathBuf,
        /// Format found.
        found: u32,
        /// Newest format known here.
        known: u32,
        /// Version that wrote it.
        written_by: String,
    },
    /// The data directory is open in another process or in this one. A database that was dropped without a
    /// close stays open as long as there are handles of its tables or transactions, and until a dropped
    /// transaction has been rolled back.
    #[error(
        "the data directory {directory} is in use by {}",
        who_has_it(holder),
        directory = directory.display()
    )]
    DirectoryInUse {
        /// The directory.
        directory: PathBuf,
        /// Who has it, as far as is known: its process id and host, and since when.
        holder: String,
    },
    /// The data directory cannot be made, or nothing can be written in it.
    #[error(
        "the data directory {directory} cannot be written to ({error}), which opening it needs, also to read only: mount its file \
         system for writing, or give the user of this process the right to write to the directory and everything in it",
        directory = directory.display()
    )]
    NotWritable {
        /// The directory.
        directory: PathBuf,
        /// The call that failed.
        error: disk::Error,
    },
    /// A backup cannot be made, restored, or opened as a data directory.
    #[error("backup {path}: {why}", path = path.display())]
    Backup {
        /// The directory, or the file of it.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A page that the start needs is damaged and cannot be restored.
    #[error(
        "{name} (page {page} of {file}) is damaged and cannot be restored: {why}. Nothing was lost by this attempt. Restore the \
         data directory from a backup; or start with innodb_force_recovery={level} ({what}), save the rows that can be \
         read, and drop the tables concerned",
        file = file.display()
    )]
    Damaged {
        /// What the page is.
        name: String,
        /// The page.
        page: page::PageId,
        /// Its file.
        file: PathBuf,
        /// What is wrong with it, and why there is no copy.
        why: String,
        /// The level of forced recovery that gets past it.
        level: u8,
        /// What that level does.
        what: &'static str,
    },
    /// Refused because the database was opened with `innodb_force_recovery` above 0.
    #[error(
        "Operation not allowed when innodb_force_recovery > 0 (it is {0}): save what can be read, then start without it"
    )]
    ForcedRecovery(u8),
    /// A statement needs a table exclusively, but its own session has uncommitted changes in it, which
    /// rollback could only undo with the old definition.
    #[error(
        "the session has changes that are not committed, and uses or holds a table that the statement needs for itself: \
         commit or roll back first"
    )]
    UncommittedChanges,
    /// A setting cannot have the value given.
    #[error("{setting}: {why}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// What is wrong, and what would be accepted.
        why: String,
    },
    /// A change or a lock in a transaction that reads a snapshot.
    #[error("the transaction reads a snapshot: it is read-only and cannot lock rows")]
    ReadOnly,
    /// No database of this name.
    #[error("unknown database '{0}'")]
    NoSuchDatabase(String),
    /// There is one of this name already.
    #[error("can't create database '{0}'; database exists")]
    DatabaseExists(String),
    /// No table of this name.
    #[error("table '{0}.{1}' doesn't exist")]
    NoSuchTable(String, String),
    /// There is one of this name already.
    #[error("table '{0}.{1}' already exists")]
    TableExists(String, String),
    /// The table that was to be opened or created is there, with another definition:
    /// [`Database::create_table_if_missing`](crate::Database::create_table_if_missing) and
    /// [`Database::key_value`](crate::Database::key_value).
    #[error(
        "table '{table}' exists with another definition (ask for it as it is, change it, or take another \
         name): {difference}"
    )]
    OtherDefinition {
        /// `database.table`.
        table: String,
        /// The first difference.
        difference: String,
    },
    /// Another table of the database has a CHECK constraint of this name.
    #[error("duplicate check constraint name '{0}'")]
    CheckExists(String),
    /// A foreign key cannot be defined so, or something that it needs would be taken away.
    #[error(transparent)]
    ForeignKeyRefused(#[from] ForeignKeyRefusal),
    /// The row refers to a row that is not there: insert that one first, or write NULL.
    #[error("cannot add or update a child row: a foreign key constraint fails ({0})")]
    ForeignKeyParentMissing(Box<BrokenForeignKey>),
    /// Rows of another table refer to the row: delete or change these first.
    #[error("cannot delete or update a parent row: a foreign key constraint fails ({0})")]
    ForeignKeyChildExists(Box<BrokenForeignKey>),
    /// A cascade would give two rows the same unique key.
    #[error(
        "foreign key constraint for table '{parent}', record '{record}' would lead to a duplicate entry in table '{child}', key '{index}'"
    )]
    ForeignKeyDuplicate {
        /// The table whose row changes.
        parent: String,
        /// The key that it would get.
        record: String,
        /// The table that the cascade would change.
        child: String,
        /// Its unique index.
        index: String,
    },
    /// A cascade reaches too far.
    #[error("foreign key cascade delete/update exceeds max depth of {0}")]
    ForeignKeyDepth(usize),
    /// The table has no tablespace: DISCARD TABLESPACE took it away.
    #[error("the tablespace of table '{0}.{1}' has been discarded: import one, or drop the table")]
    TablespaceDiscarded(String, String),
    /// IMPORT TABLESPACE for a table that has one.
    #[error("table '{0}.{1}' has a tablespace: discard it before another one is imported")]
    TablespaceExists(String, String),
    /// IMPORT TABLESPACE without a file.
    #[error("the tablespace of table '{table}' is missing: there is no file {file}", file = file.display())]
    TablespaceMissing {
        /// `database/table`.
        table: String,
        /// Where the file was looked for.
        file: PathBuf,
    },
    /// The file to be imported, or its `.cfg`, is of a table that is defined differently.
    #[error("{file}: {why}", file = file.display())]
    SchemaMismatch {
        /// The file.
        file: PathBuf,
        /// What differs.
        why: String,
    },
    /// The file to be imported is damaged, or of a kind that cannot be read. It is as it was.
    #[error("cannot import {file}: {why}", file = file.display())]
    ImportRefused {
        /// The file.
        file: PathBuf,
        /// The page, where it is one, and what is wrong with it.
        why: String,
    },
    /// The table's file does not have its table's name, because another one has it: a copy would take that.
    #[error("cannot export table '{table}': its file is {file}, because another file has its name; move that away and restart", file = file.display())]
    ExportRefused {
        /// `database.table`.
        table: String,
        /// Where its file is, relative to the data directory.
        file: PathBuf,
    },
    /// The table has a VIRTUAL column: Untorn keeps its values in the table's file, and MySQL does not. So
    /// neither could read the other's.
    #[error(
        "table '{table}' has the VIRTUAL column '{column}', whose values are in Untorn's files and not in those of other servers: its tablespace can be neither exported nor discarded nor imported. Drop the column, or add it as STORED"
    )]
    VirtualColumn {
        /// `database.table`.
        table: String,
        /// The column.
        column: String,
    },
    /// The table has a functional index: its values are kept as those of a VIRTUAL column.
    #[error(
        "table '{table}' has the functional index '{key}', whose values are in Untorn's files as in no other server's: its tablespace can be neither exported nor discarded nor imported. Drop the index"
    )]
    FunctionalIndex {
        /// `database.table`.
        table: String,
        /// The index.
        key: String,
    },
    /// No index of this name.
    #[error("can't find index '{0}'; check that the name is right")]
    NoSuchIndex(String),
    /// A name that cannot be one: empty, or ending in a blank.
    #[error("incorrect name '{0}'")]
    WrongName(String),
    /// A name longer than 64 characters, or whose file's name would be longer than file systems take: a
    /// character that is no ASCII letter, digit or underscore counts five bytes there.
    #[error("identifier name '{0}' is too long")]
    NameTooLong(String),
    /// A definition that no table can be made of.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A value that does not fit its column.
    #[error("column '{column}': {why}")]
    Value {
        /// The column.
        column: String,
        /// Why it does not fit.
        why: EncodeError,
    },
    /// NULL for a column that may not be NULL.
    #[error("column '{0}' cannot be null")]
    NullValue(String),
    /// The table has generated columns or CHECK constraints, which are SQL expressions: the crate does not
    /// evaluate them.
    #[error(
        "table '{0}.{1}' has generated columns or CHECK constraints, which only SQL evaluates: write its rows through the server"
    )]
    NeedsSql(String, String),
    /// A row with another number of values than the table has columns.
    #[error("a row of {given} value(s) for a table of {columns} column(s)")]
    WrongRowLength {
        /// Values given.
        given: usize,
        /// Columns of the table.
        columns: usize,
    },
    /// Timed out waiting for a metadata lock (`lock_wait_timeout`).
    #[error("lock wait timeout exceeded: the table is in use by other transactions; end them or wait longer")]
    MetadataLockTimeout,
    /// The number of key values does not fit: a row needs a value for every column of the primary key, and
    /// the end of a range has at most one per column of the index.
    #[error("{given} value(s) for a key of {columns} column(s)")]
    WrongKeyLength {
        /// Values given.
        given: usize,
        /// Columns of the key.
        columns: usize,
    },
    /// The table has no primary key: `get`, `update` and `delete` find a row by it, and so do the ends of a
    /// range without an index.
    #[error(
        "table '{0}.{1}' has no primary key to find a row by: use `scan`, on the whole table or on one of its indexes"
    )]
    NoPrimaryKey(String, String),
    /// An index on a column prefix cannot tell where a range begins or ends.
    #[error("index '{0}' only has a prefix of a column: read the whole index, or use another one")]
    PrefixIndex(String),
    /// A table and a transaction of different databases, or a handle from before the database was closed.
    #[error(
        "the handle of table '{0}.{1}' belongs to another database or to one that was closed: open the table again"
    )]
    ForeignTable(String, String),
    /// AUTO_INCREMENT has reached the end of its column's type.
    #[error(
        "failed to read auto-increment value from storage engine: the column's type has no greater value"
    )]
    AutoIncrementExhausted,
    /// A string or byte vector in a key of a key-value table that is longer than keys may be.
    #[error(
        "key-value table '{table}': the key is longer than the {limit} bytes that a string or byte vector in a key may have"
    )]
    KeyTooLong {
        /// The table.
        table: String,
        /// Longest string or byte vector in a key.
        limit: u32,
    },
    /// A pair whose bytes are no value of the types that the table was opened with.
    #[error(
        "key-value table '{table}': a string in it is not UTF-8. Open it with `Vec<u8>` in the place of `String`"
    )]
    UnreadablePair {
        /// The table.
        table: String,
    },
    /// The database is closed or closing.
    #[error("the database is closed")]
    Closed,
    /// Another transaction has this name: it is prepared, or means to be.
    #[error("a transaction {0} is there already")]
    XidInUse(txn::Xid),
    /// There is no prepared transaction of this name: it has been committed or rolled back, or never was.
    #[error("there is no prepared transaction {0}")]
    UnknownXid(txn::Xid),
    /// More was committed than a change feed may keep in memory while nobody read it.
    #[error(
        "the change feed has lost changes: more was committed than it may keep while nobody read it; begin again \
         from a new snapshot, or give it more memory (ChangeFeedOptions::memory_bytes)"
    )]
    ChangesLost,
    /// A bug in Untorn.
    #[error("internal error, please report it: {0}")]
    Internal(String),
}

/// Who has the directory open, and what to do about it.
fn who_has_it(holder: &str) -> String {
    if holder.starts_with(&format!("process {} ", std::process::id())) {
        "this process: close that `Database`, or clone it; handles of its tables and transactions keep it open, too"
            .to_owned()
    } else {
        format!("{holder}: stop that one, or choose another directory")
    }
}

impl From<pagestore::Error> for Error {
    fn from(error: pagestore::Error) -> Self {
        Error::Store(error)
    }
}

/// Result with the engine's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether the same transaction, begun again, may well succeed: it met a deadlock, waited too long for a
    /// lock of another one or did not want to wait for it, or reads a moment before its table was made.
    ///
    /// [`Database::transact`](crate::Database::transact) runs it again, unless it did not want to wait.
    pub fn is_retryable(&self) -> bool {
        self.conflict().is_some() || matches!(self, Error::Transaction(txn::Error::NoWaitLocked))
    }

    /// What the transaction has met that it may not meet when it is run again.
    pub(crate) fn conflict(&self) -> Option<Conflict> {
        use txn::Error::{Deadlock, LockWaitTimeout, RolledBack, TableChanged};
        match self {
            Error::Transaction(Deadlock | RolledBack | TableChanged) => Some(Conflict::Over),
            Error::Transaction(LockWaitTimeout) | Error::MetadataLockTimeout => Some(Conflict::Timeout),
            _ => None,
        }
    }

    /// Whether a row was refused because another one has its primary key.
    pub(crate) fn is_duplicate_primary_key(&self) -> bool {
        matches!(self, Error::Transaction(txn::Error::DuplicateKey { index, .. }) if index == "PRIMARY")
    }

    /// Whether a row was refused because another one has its key.
    pub fn is_duplicate_key(&self) -> bool {
        matches!(self, Error::Transaction(txn::Error::DuplicateKey { .. }))
    }
}
