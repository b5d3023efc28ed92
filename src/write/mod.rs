//! Writing rows: the one way from a row in storage encoding into the table.
//!
//! ```text
//! Transaction::insert, KeyValue::put          INSERT, REPLACE, upsert, UPDATE, DELETE
//!     values, one for each column                  expressions, defaults, SQL modes
//!                      \                          /
//!                    EncodedRow: fields in storage encoding
//!                                   |
//!                               RowWriter        AUTO_INCREMENT, NOT NULL, ON UPDATE, foreign keys, counts
//!                                   |
//!                               row_operations   change feeds
//!                                   |
//!                        txn: locks, undo, trees
//! ```
//!
//! The callers turn values into bytes, each with its own rules (too long, out of range): the crate's are
//! `src/types/codec.rs`, SQL's `crates/sql/src/stored_values.rs`. Everything that follows from the table's
//! definition happens in [`RowWriter`], once. A rule on rows that this crate learns belongs there.
//!
//! Generated columns and CHECK constraints are SQL expressions, and SQL stands above this crate. So a writer
//! of such a table is only made for a caller that says it has evaluated them ([`RowWriter::of_evaluated`]);
//! SQL's one place for that is `row_rules`.
//!
//! A table that is rebuilt (`src/rebuild.rs`) gets its rows without transactions, before anybody can see
//! them; they are checked by the same rule.
//!
//! A change that fails leaves nothing behind: `txn` undoes the row and its index entries. So a caller that
//! goes on after a duplicate key needs no savepoint.

pub(crate) mod copied_columns;
mod encoded_row;
mod foreign_keys;
mod row_operations;
mod row_writer;
mod statement_savepoint;

pub use encoded_row::EncodedRow;
pub(crate) use row_writer::check_row;
pub use row_writer::{Changes, RowWriter, StatementTime, Written};
pub(crate) use statement_savepoint::StatementSavepoint;
