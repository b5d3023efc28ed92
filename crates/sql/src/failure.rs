//! Why a statement ended early, and what the engine's errors are for the client.

pub mod duplicate_key;
mod foreign_key;
mod storage;

use std::io;

use untorn::engine::Error as TransactionError;
use untorn::schema::SchemaError;

use crate::errors::{self, error};
use crate::result::SqlError;

/// Why a statement ended early.
#[derive(Debug)]
pub enum Failure {
    /// An error for the client; the statement's changes are undone.
    Sql(SqlError),
    /// The engine has rolled back the whole transaction (deadlock).
    RolledBack(SqlError),
    /// The table's definition changed since the statement was planned: plan again.
    Stale,
    /// The client is gone.
    Gone(io::Error),
}

impl Failure {
    /// As an error for the client.
    pub fn into_error(self) -> SqlError {
        match self {
            Failure::Sql(error) | Failure::RolledBack(error) => error,
            Failure::Stale => errors::error(errors::TABLE_DEF_CHANGED, &[]),
            Failure::Gone(error) => errors::error(errors::UNKNOWN_ERROR, &[&error]),
        }
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Failure::Sql(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Gone(error)
    }
}

impl From<TransactionError> for Failure {
    fn from(cause: TransactionError) -> Self {
        match &cause {
            TransactionError::Deadlock | TransactionError::LockTableFull => {
                Failure::RolledBack(transaction(&cause))
            }
            other => Failure::Sql(transaction(other)),
        }
    }
}

impl From<untorn::Error> for Failure {
    fn from(cause: untorn::Error) -> Self {
        match cause {
            untorn::Error::Transaction(inner) => inner.into(),
            other => Failure::Sql(engine(&other)),
        }
    }
}

/// An error of a transaction.
pub fn transaction(cause: &TransactionError) -> SqlError {
    match cause {
        TransactionError::Deadlock => error(errors::LOCK_DEADLOCK, &[]),
        TransactionError::LockTableFull => error(errors::LOCK_TABLE_FULL, &[]),
        TransactionError::RolledBack => error(errors::LOCK_DEADLOCK, &[]),
        TransactionError::TableChanged => error(errors::TABLE_DEF_CHANGED, &[]),
        TransactionError::LockWaitTimeout => error(errors::LOCK_WAIT_TIMEOUT, &[]),
        TransactionError::NoWaitLocked => error(errors::LOCK_NOWAIT, &[]),
        TransactionError::Killed => error(errors::QUERY_INTERRUPTED, &[]),
        TransactionError::DuplicateKey { index, .. } => error(errors::DUP_ENTRY, &[&"?", index]),
        TransactionError::ForcedRecovery(_) => error(errors::INNODB_FORCED_RECOVERY, &[]),
        TransactionError::UndoRecordTooBig { .. } => error(errors::UNDO_RECORD_TOO_BIG, &[]),
        TransactionError::RowTooLarge { .. } => error(errors::TOO_BIG_ROWSIZE, &[&8126]),
        TransactionError::RowNotFound { table } => error(errors::KEY_NOT_FOUND, &[table]),
        TransactionError::TooManyTransactions(_) => error(errors::TOO_MANY_CONCURRENT_TRXS, &[]),
        TransactionError::UndoCorrupt { .. } => storage::got_error(storage::CRASHED, cause),
        TransactionError::Store(inner) => storage::store(inner),
        TransactionError::Internal(why) => error(errors::INTERNAL_ERROR, &[why]),
        other => error(errors::UNKNOWN_ERROR, &[other]),
    }
}

/// An error of the engine.
pub fn engine(cause: &untorn::Error) -> SqlError {
    use untorn::Error;
    match cause {
        Error::Transaction(inner) => transaction(inner),
        Error::Store(inner) => storage::store(inner),
        Error::Disk(inner) => storage::disk(inner),
        Error::Redo(inner) => storage::redo(inner),
        Error::Catalog { .. } => storage::got_error(storage::CRASHED, cause),
        Error::Internal(why) => error(errors::INTERNAL_ERROR, &[why]),
        Error::Value { column, why } => {
            error(errors::TRUNCATED_WRONG_VALUE_FOR_FIELD, &[&"column", why, column, &1])
        }
        Error::NoSuchDatabase(name) => error(errors::BAD_DB, &[name]),
        Error::DatabaseExists(name) => error(errors::DB_CREATE_EXISTS, &[name]),
        Error::NoSuchTable(database, table) => error(errors::NO_SUCH_TABLE, &[database, table]),
        Error::TableExists(_, table) => error(errors::TABLE_EXISTS, &[table]),
        Error::CheckExists(name) => error(errors::CHECK_DUPLICATE_NAME, &[name]),
        Error::ForeignKeyRefused(why) => foreign_key::refused(why),
        Error::ForeignKeyParentMissing(broken) => error(errors::NO_REFERENCED_ROW, &[broken]),
        Error::ForeignKeyChildExists(broken) => error(errors::ROW_IS_REFERENCED, &[broken]),
        Error::ForeignKeyDuplicate { parent, record, child, index } => {
            error(errors::FOREIGN_DUPLICATE_KEY, &[parent, record, child, index])
        }
        Error::ForeignKeyDepth(most) => error(errors::FK_DEPTH_EXCEEDED, &[most]),
        Error::NoSuchIndex(name) => error(errors::CANT_DROP_FIELD_OR_KEY, &[name]),
        Error::NameTooLong(name) => error(errors::TOO_LONG_IDENT, &[name]),
        Error::WrongName(name) => error(errors::WRONG_TABLE_NAME, &[name]),
        Error::TablespaceDiscarded(_, table) => error(errors::TABLESPACE_DISCARDED, &[table]),
        Error::TablespaceExists(database, table) => {
            error(errors::TABLESPACE_EXISTS, &[&format!("{database}/{table}")])
        }
        Error::TablespaceMissing { table, .. } => {
            storage::explained(errors::TABLESPACE_MISSING, &[table], cause)
        }
        Error::SchemaMismatch { .. } => error(errors::TABLE_SCHEMA_MISMATCH, &[cause]),
        Error::ImportRefused { .. } | Error::ExportRefused { .. } => error(errors::INTERNAL_ERROR, &[cause]),
        Error::VirtualColumn { .. } | Error::FunctionalIndex { .. } => {
            SqlError::new(errors::NOT_SUPPORTED_YET, b"42000", cause.to_string())
        }
        Error::Schema(cause) => schema(cause),
        Error::NullValue(column) => error(errors::BAD_NULL, &[column]),
        Error::UncommittedChanges => error(errors::LOCK_OR_ACTIVE_TRANSACTION, &[]),
        Error::MetadataLockTimeout => error(errors::LOCK_WAIT_TIMEOUT, &[]),
        Error::AutoIncrementExhausted => error(errors::AUTOINC_READ_FAILED, &[]),
        Error::ForcedRecovery(_) => error(errors::INNODB_FORCED_RECOVERY, &[]),
        Error::Closed => error(errors::SERVER_SHUTDOWN, &[]),
        other => error(errors::UNKNOWN_ERROR, &[other]),
    }
}

fn schema(cause: &SchemaError) -> SqlError {
    match cause {
        SchemaError::NoColumns => error(errors::TABLE_MUST_HAVE_COLUMNS, &[]),
        SchemaError::NoVisibleColumn => error(errors::NO_VISIBLE_COLUMN, &[]),
        SchemaError::DuplicateColumn(name) => error(errors::DUP_FIELDNAME, &[name]),
        SchemaError::DuplicateKey(name) => error(errors::DUP_KEYNAME, &[name]),
        SchemaError::NoSuchKeyColumn(name) => error(errors::KEY_COLUMN_MISSING, &[name]),
        SchemaError::NoSuchColumn(name) => error(errors::BAD_FIELD, &[name, &"field list"]),
        SchemaError::MultiplePrimary => error(errors::MULTIPLE_PRI_KEY, &[]),
        SchemaError::BlobKeyWithoutLength(name) => error(errors::BLOB_KEY_WITHOUT_LENGTH, &[name]),
        SchemaError::JsonKey(name) => error(errors::JSON_USED_AS_KEY, &[name]),
        SchemaError::VirtualPrimary(_) => error(
            errors::UNSUPPORTED_ON_GENERATED_COLUMN,
            &[&"Defining a virtual generated column as primary key"],
        ),
        SchemaError::WrongPrefix(_) => error(errors::WRONG_SUB_KEY, &[]),
        SchemaError::KeyTooLong(most) => error(errors::TOO_LONG_KEY, &[most]),
        SchemaError::WrongAutoIncrement => error(errors::WRONG_AUTO_KEY, &[]),
        SchemaError::RowTooLarge(_, limit) => error(errors::TOO_BIG_ROWSIZE, &[limit]),
        SchemaError::TooMany("keys") => error(errors::TOO_MANY_KEYS, &[&64]),
        SchemaError::TooMany("key parts") => error(errors::TOO_MANY_KEY_PARTS, &[&16]),
        SchemaError::TooMany(_) => error(errors::TOO_MANY_FIELDS, &[]),
        other => error(errors::UNKNOWN_ERROR, &[other]),
    }
}
