//! What a definition must be, and the limits of one: columns, keys, key parts, bytes of a key.
//!
//! A definition is checked whole, also where a part of it changes: what was valid alone may not be valid
//! beside the rest. Whether foreign keys fit the tables on both sides is checked with those tables
//! ([`crate::foreign_key`]).

use super::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use crate::types::ColumnType;

/// InnoDB's limit of columns, not counting its own.
const COLUMNS_MAX: usize = 1017;
/// InnoDB's limit of indexes.
const KEYS_MAX: usize = 64;
/// MySQL's limit of the columns of a key.
const KEY_PARTS_MAX: usize = 16;

/// Why a definition is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// No columns at all.
    #[error("a table must have at least 1 column")]
    NoColumns,
    /// INVISIBLE columns only.
    #[error("a table must have at least one visible column")]
    NoVisibleColumn,
    /// Two columns of the same name (case-insensitive).
    #[error("duplicate column name '{0}'")]
    DuplicateColumn(String),
    /// Two keys of the same name.
    #[error("duplicate key name '{0}'")]
    DuplicateKey(String),
    /// A key with a column that the table does not have.
    #[error("key '{0}' names a column that the table does not have")]
    NoSuchKeyColumn(String),
    /// A name that no column of the table has.
    #[error("the table has no column '{0}'")]
    NoSuchColumn(String),
    /// More than one primary key.
    #[error("multiple primary key defined")]
    MultiplePrimary,
    /// A TEXT or BLOB column in a key without a prefix length.
    #[error("BLOB/TEXT column '{0}' used in key specification without a key length")]
    BlobKeyWithoutLength(String),
    /// A JSON column in a key.
    #[error("JSON column '{0}' supports indexing only via generated columns on a specified JSON path")]
    JsonKey(String),
    /// A key prefix on a column that has none, or longer than the column.
    #[error("incorrect prefix key; the used key part '{0}' isn't a string or the prefix is too long")]
    WrongPrefix(String),
    /// A key part, or all of them together, wider than this number of bytes.
    #[error("specified key was too long; max key length is {0} bytes")]
    KeyTooLong(u32),
    /// AUTO_INCREMENT on more than one column, on a type that cannot count, or without a key.
    #[error("incorrect table definition; there can be only one auto column and it must be defined as a key")]
    WrongAutoIncrement,
    /// A row of this shape can never fit a page, even with everything possible stored off-page.
    #[error("row size too large: {0} bytes; the maximum on a page is {1}")]
    RowTooLarge(usize, usize),
    /// A primary key over a prefix of a column; not supported.
    #[error("primary key over a prefix of column '{0}': not supported, use the whole column")]
    PrimaryPrefix(String),
    /// A primary key over a VIRTUAL column.
    #[error("primary key over the VIRTUAL column '{0}': make it STORED")]
    VirtualPrimary(String),
    /// A VIRTUAL column without an expression.
    #[error("column '{0}' is VIRTUAL, but has no expression that generates it")]
    VirtualWithoutExpression(String),
    /// A hidden column that is not VIRTUAL, or that stands before one that is not hidden.
    #[error("the hidden column '{0}' must be VIRTUAL and stand behind those that are not hidden")]
    HiddenColumn(String),
    /// A column of the primary key may be NULL.
    #[error(
        "all parts of a PRIMARY KEY must be NOT NULL, and '{0}' may be NULL; if you need NULL in a key, use UNIQUE instead"
    )]
    NullablePrimary(String),
    /// More than 1017 columns, 64 keys or 16 parts of a key.
    #[error("too many {0}")]
    TooMany(&'static str),
}

/// InnoDB's limit of a key in bytes, for DYNAMIC tables: two entries must fit a page, each with a key and a
/// primary key.
fn key_bytes_max(page_bytes: usize) -> u32 {
    match page_bytes {
        ..=4096 => 768,
        4097..=8192 => 1536,
        _ => 3072,
    }
}

impl KeyPart {
    /// Whether a key may have this prefix of `column`.
    fn validate(&self, column: &ColumnDef) -> Result<(), SchemaError> {
        match self.prefix_chars {
            _ if column.kind == ColumnType::Json => return Err(SchemaError::JsonKey(column.name.clone())),
            None if column.kind.is_blob() => {
                return Err(SchemaError::BlobKeyWithoutLength(column.name.clone()));
            }
            Some(chars) => {
                let bytes = u64::from(chars) * u64::from(column.kind.collation().bytes_per_char_max());
                let fits =
                    column.kind.is_string() && chars > 0 && bytes <= u64::from(column.kind.bytes_max());
                if !fits {
                    return Err(SchemaError::WrongPrefix(column.name.clone()));
                }
            }
            None => {}
        }
        Ok(())
    }
}

impl TableDef {
    /// Checks the definition; a definition that passes can be created with pages of this size.
    ///
    /// # Errors
    /// The first thing that is wrong, see [`SchemaError`].
    pub fn validate_for(&self, page_bytes: usize) -> Result<(), SchemaError> {
        self.validate()?;
        self.validate_key_lengths(key_bytes_max(page_bytes))
    }

    /// Checks the definition but for what depends on the size of pages.
    ///
    /// # Errors
    /// The first thing that is wrong, see [`SchemaError`].
    pub fn validate(&self) -> Result<(), SchemaError> {
        let visible = self.visible_columns();
        if visible.is_empty() {
            return Err(SchemaError::NoColumns);
        }
        if visible.iter().all(|column| column.invisible) {
            return Err(SchemaError::NoVisibleColumn);
        }
        let misplaced =
            |(at, column): &(usize, &ColumnDef)| column.hidden && (*at < visible.len() || !column.is_virtual);
        if let Some((_, column)) = self.columns.iter().enumerate().find(misplaced) {
            return Err(SchemaError::HiddenColumn(column.name.clone()));
        }
        if self.columns.len() > COLUMNS_MAX {
            return Err(SchemaError::TooMany("columns"));
        }
        for (at, column) in self.columns.iter().enumerate() {
            if self.columns[..at].iter().any(|other| other.name.eq_ignore_ascii_case(&column.name)) {
                return Err(SchemaError::DuplicateColumn(column.name.clone()));
            }
            if column.is_virtual && column.generated.is_none() {
                return Err(SchemaError::VirtualWithoutExpression(column.name.clone()));
            }
        }
        self.validate_keys()?;
        self.validate_auto_increment()
    }

    fn validate_keys(&self) -> Result<(), SchemaError> {
        if self.keys.len() > KEYS_MAX {
            return Err(SchemaError::TooMany("keys"));
        }
        for (at, key) in self.keys.iter().enumerate() {
            if key.kind == KeyKind::Primary && at > 0 {
                return Err(SchemaError::MultiplePrimary);
            }
            if self.keys[..at].iter().any(|other| other.name.eq_ignore_ascii_case(&key.name)) {
                return Err(SchemaError::DuplicateKey(key.name.clone()));
            }
            if key.parts.is_empty() || key.parts.len() > KEY_PARTS_MAX {
                return Err(SchemaError::TooMany("key parts"));
            }
            for (at, part) in key.parts.iter().enumerate() {
                let Some(column) = self.columns.get(usize::from(part.column)) else {
                    return Err(SchemaError::NoSuchKeyColumn(key.name.clone()));
                };
                if key.parts[..at].iter().any(|other| other.column == part.column) {
                    return Err(SchemaError::DuplicateColumn(column.name.clone()));
                }
                if key.kind == KeyKind::Primary && column.is_virtual {
                    return Err(SchemaError::VirtualPrimary(column.name.clone()));
                }
                if key.kind == KeyKind::Primary && column.nullable {
                    return Err(SchemaError::NullablePrimary(column.name.clone()));
                }
                if key.kind == KeyKind::Primary && part.prefix_chars.is_some() {
                    return Err(SchemaError::PrimaryPrefix(column.name.clone()));
                }
                part.validate(column)?;
            }
        }
        Ok(())
    }

    fn validate_key_lengths(&self, most: u32) -> Result<(), SchemaError> {
        let length = |key: &KeyDef| key.parts.iter().map(|part| self.key_part_bytes(part)).sum::<u32>();
        if self.keys.iter().any(|key| length(key) > most) {
            Err(SchemaError::KeyTooLong(most))
        } else {
            Ok(())
        }
    }

    fn validate_auto_increment(&self) -> Result<(), SchemaError> {
        let mut columns = self.columns.iter().enumerate().filter(|(_, column)| column.auto_increment);
        let Some((at, column)) = columns.next() else { return Ok(()) };
        let counts = column.kind.integer().is_some();
        let first_in_key =
            self.keys.iter().any(|key| key.parts.first().is_some_and(|part| usize::from(part.column) == at));
        if columns.next().is_some() || !counts || !first_in_key {
            return Err(SchemaError::WrongAutoIncrement);
        }
        Ok(())
    }
}
