//! Foreign keys: what is defined, what a definition must be, and which tables belong together.
//!
//! The definition stands in the catalog with the *child*, the table that refers ([`ForeignKey`] in its
//! [`TableDef`](crate::schema::TableDef)), by names on both sides: so its *parent*, the table referred to,
//! may come later, and the order of columns does not matter. The catalog also keeps the other direction,
//! which children a name has, and every open table knows whether it has any.
//!
//! A statement that changes a foreign key locks both names exclusively, so no user of either table sees the
//! key appear or vanish. What works by one (a cascade, a check) uses the other table like its own, until the
//! transaction ends.
//!
//! ```text
//!   definition        a foreign key; its generated name, its index
//!   validation        what both tables must be: column types, indexes, nothing that SET NULL cannot set
//!   alteration        ADD and DROP FOREIGN KEY
//!   renamed_columns   keys follow columns that get other names
//!   related_tables    the tables around one whose definition changes
//!   relations         a table's parents and children, in use
//!   refusal           why a definition or a DROP is refused
//! ```
//!
//! Rows are checked by [`crate::write`].

mod alteration;
mod definition;
mod refusal;
mod related_tables;
mod relations;
mod renamed_columns;
mod validation;

pub(crate) use definition::Moved;
pub use definition::{ForeignKey, ReferentialAction};
pub(crate) use refusal::refuse_to_drop_parents;
pub use refusal::{BrokenForeignKey, ForeignKeyRefusal};
pub(crate) use related_tables::RelatedTables;
pub(crate) use relations::{Child, Parent, Relations};
pub(crate) use renamed_columns::ColumnChange;
pub(crate) use validation::{check_moved, covering_index, reference_from_outside, validate, validate_change};
