//! Tables as people define them: columns and keys.
//!
//! A [`TableDef`] is what stands in the catalog: it is plain data and knows nothing of pages but the numbers
//! of its tablespace and index roots. What a definition must be, and the limits, is `validation.rs`; whether
//! a table is the one that a program asks for, `difference.rs`;
//! [`crate::layout`] turns it into the index definitions of the B-trees.
//!
//! A definition may hold expressions: a default, the value of a generated column, a CHECK constraint. They
//! are kept as the text of SQL. This crate does not evaluate them, SQL above it does; so only a writer that
//! says it applies them writes rows of such a table ([`crate::write`]).

mod difference;
mod validation;

use serde::{Deserialize, Serialize};

pub use self::validation::SchemaError;
pub use crate::foreign_key::{BrokenForeignKey, ForeignKey, ForeignKeyRefusal, ReferentialAction};
use crate::types::{Collation, ColumnType};

/// A default that is not NULL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Default {
    /// A constant, as text (bytes for binary columns are valid too: they are stored as given).
    Literal(Vec<u8>),
    /// The time of the statement.
    CurrentTimestamp,
    /// The value of this SQL expression, without parentheses around it.
    Expression(String),
}

/// A CHECK constraint: rows for which the expression is false are refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name, unique in the database.
    pub name: String,
    /// The SQL expression, without parentheses around it.
    pub expression: String,
    /// Whether rows are checked; NOT ENFORCED constraints are only remembered.
    #[serde(default = "enforced", skip_serializing_if = "Clone::clone")]
    pub enforced: bool,
    /// The column that it was written at, if at one: it is dropped with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
}

fn enforced() -> bool {
    true
}

/// Puts constraints into the order of their names: that is how they are checked and shown.
pub fn sort_checks(checks: &mut [Check]) {
    checks.sort_by_cached_key(|check| check.name.to_lowercase());
}

/// What names of hidden columns begin with.
const HIDDEN: &str = "!hidden!";

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDef {
    /// Name, in its original letter case.
    pub name: String,
    /// Declared type.
    pub kind: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Its default; `None` is NULL for nullable columns and "no default" for the others.
    #[serde(default)]
    pub default: Option<Default>,
    /// `ALTER … DROP DEFAULT`: SQL knows no default although the column is nullable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_default: bool,
    /// AUTO_INCREMENT.
    #[serde(default)]
    pub auto_increment: bool,
    /// ON UPDATE CURRENT_TIMESTAMP.
    #[serde(default)]
    pub on_update_now: bool,
    /// GENERATED ALWAYS AS (this SQL expression).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<String>,
    /// VIRTUAL, not STORED. Its values are in the records all the same, computed when a row is written; MySQL
    /// has none of them in its files, so those of such a table are not exchanged with it.
    #[serde(default, rename = "virtual", skip_serializing_if = "std::ops::Not::not")]
    pub is_virtual: bool,
    /// It is there for a functional key part alone, and has no name for anybody. Such columns are VIRTUAL
    /// and stand behind all others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// INVISIBLE, which is SQL's business: `*` leaves the column out, and an INSERT that names no columns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invisible: bool,
    /// COMMENT.
    #[serde(default)]
    pub comment: String,
    /// The digits that the definition shows: 1 of TINYINT(1), M of FLOAT(M,D) and DOUBLE(M,D), and those that
    /// ZEROFILL fills up to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u8>,
    /// Digits behind the point that a FLOAT(M,D) or DOUBLE(M,D) shows, and that SQL rounds a new value to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimals: Option<u8>,
    /// ZEROFILL.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub zerofill: bool,
    /// UNSIGNED of a FLOAT, DOUBLE or DECIMAL, which SQL enforces; integers have it in their type.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsigned: bool,
}

impl ColumnDef {
    /// A NOT NULL column without a default.
    pub fn new(name: impl Into<String>, kind: ColumnType) -> ColumnDef {
        ColumnDef {
            name: name.into(),
            kind,
            nullable: false,
            default: None,
            without_default: false,
            auto_increment: false,
            on_update_now: false,
            generated: None,
            is_virtual: false,
            hidden: false,
            invisible: false,
            comment: String::new(),
            width: None,
            decimals: None,
            zerofill: false,
            unsigned: false,
        }
    }

    /// Whether every value of this column is one of `other` as it lies on pages.
    pub fn stores_alike(&self, other: &ColumnDef) -> bool {
        self.unsigned == other.unsigned && self.kind.stores_alike(&other.kind)
    }

    /// The key that a hidden column is for.
    pub fn hidden_for(&self) -> Option<&str> {
        let name = self.name.strip_prefix(HIDDEN).filter(|_| self.hidden)?;
        Some(name.rsplitn(3, '!').last().unwrap_or(name))
    }

    /// Makes the column nullable.
    pub fn nullable(mut self) -> ColumnDef {
        self.nullable = true;
        self
    }

    /// Makes the column AUTO_INCREMENT.
    pub fn auto_increment(mut self) -> ColumnDef {
        self.auto_increment = true;
        self
    }
}

/// The kind of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyKind {
    /// The clustered index: rows are stored in its order.
    Primary,
    /// No two rows have the same values (NULLs never equal each other).
    Unique,
    /// A plain secondary index.
    Secondary,
}

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPart {
    /// Number of the column in the table, from 0.
    pub column: u16,
    /// Only the first characters of it (bytes for binary types).
    #[serde(default)]
    pub prefix_chars: Option<u32>,
    /// Declared DESC, which is only kept and shown: entries lie in ascending order, and are read either way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub descending: bool,
}

impl KeyPart {
    /// All of a column, in ascending order.
    pub fn whole(column: u16) -> KeyPart {
        KeyPart { column, prefix_chars: None, descending: false }
    }

    /// The first characters of a column (bytes if it is binary), in ascending order.
    pub fn prefix(column: u16, chars: u32) -> KeyPart {
        KeyPart { prefix_chars: Some(chars), ..KeyPart::whole(column) }
    }
}

/// A key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDef {
    /// `PRIMARY`, or the name it was given.
    pub name: String,
    /// What it is for.
    pub kind: KeyKind,
    /// Its columns.
    pub parts: Vec<KeyPart>,
    /// Index id, unique in the data directory; 0 until the table is created.
    #[serde(default)]
    pub id: u64,
    /// Page number of the root; 0 until the table is created.
    #[serde(default)]
    pub root: u32,
    /// When it was added to an existing table, as a number of the transaction system; 0 otherwise. Older read
    /// views must not use it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub born: u64,
    /// COMMENT.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// INVISIBLE: kept up to date, and not chosen for reading.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invisible: bool,
    /// Made for a foreign key that had no index: it goes when another one can serve the key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub generated: bool,
}

impl KeyDef {
    /// A visible key without a comment, of a table that is yet to be created.
    pub fn new(name: impl Into<String>, kind: KeyKind, parts: Vec<KeyPart>) -> KeyDef {
        let (name, comment) = (name.into(), String::new());
        KeyDef { name, kind, parts, id: 0, root: 0, born: 0, comment, invisible: false, generated: false }
    }

    /// The key without what is only said of it in the catalog.
    pub(crate) fn as_stored(&self) -> KeyDef {
        let part = |part: &KeyPart| KeyPart { descending: false, ..part.clone() };
        let parts = self.parts.iter().map(part).collect();
        KeyDef { id: self.id, root: self.root, born: self.born, ..KeyDef::new("", self.kind, parts) }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDef {
    /// Table id, unique in the data directory; 0 until created. TRUNCATE assigns a new one.
    #[serde(default)]
    pub id: u64,
    /// Tablespace id; 0 until created.
    #[serde(default)]
    pub space: u32,
    /// The first id of a table whose id has changed since (TRUNCATE, IMPORT); 0 if it has not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub origin: u64,
    /// The columns.
    pub columns: Vec<ColumnDef>,
    /// Keys: the primary key first if there is one, then unique keys, then the others, each in the order
    /// given (InnoDB's order of indexes; `.cfg` files and imports without one rely on it).
    pub keys: Vec<KeyDef>,
    /// Index id and root of the hidden clustered index of a table without primary key.
    #[serde(default)]
    pub hidden_clustered: Option<(u64, u32)>,
    /// CHECK constraints, in the order of their names ([`sort_checks`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Foreign keys, in the order of their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKey>,
    /// Default collation of the table's text columns.
    pub collation: Collation,
    /// COMMENT.
    #[serde(default)]
    pub comment: String,
    /// Time of creation, in seconds since 1970.
    #[serde(default)]
    pub created_unix_s: u64,
    /// When it was created, truncated or imported, as a number of the transaction system. Older read views
    /// see neither its rows nor what was there before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub born: u64,
    /// DISCARD TABLESPACE removed its file; it has no rows until another one is imported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discarded: bool,
}

impl TableDef {
    /// A table with these columns and no keys, in `utf8mb4_general_ci`.
    pub fn new(columns: Vec<ColumnDef>) -> TableDef {
        TableDef {
            id: 0,
            space: 0,
            origin: 0,
            columns,
            keys: Vec::new(),
            hidden_clustered: None,
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            collation: Collation::Utf8mb4GeneralCi,
            comment: String::new(),
            created_unix_s: 0,
            born: 0,
            discarded: false,
        }
    }

    /// Whether a row cannot be written without evaluating expressions: a generated column, or a CHECK
    /// constraint that is enforced.
    pub fn evaluates_rows(&self) -> bool {
        self.columns.iter().any(|column| column.generated.is_some())
            || self.checks.iter().any(|check| check.enforced)
    }

    /// The columns that there are for everybody: all but the hidden ones of functional key parts, which stand
    /// behind them.
    pub fn visible_columns(&self) -> &[ColumnDef] {
        let hidden = self.columns.iter().rev().take_while(|column| column.hidden).count();
        &self.columns[..self.columns.len() - hidden]
    }

    /// A name for the hidden column of a part of a key, the number `part` from 0, that no column has yet.
    pub fn hidden_name(&self, key: &str, part: usize) -> String {
        let taken = |name: &str| self.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
        let mut number = 0;
        loop {
            let name = format!("{HIDDEN}{key}!{part}!{number}");
            if !taken(&name) {
                return name;
            }
            number += 1;
        }
    }

    /// The first VIRTUAL column, which keeps the table's file from being exchanged.
    pub(crate) fn virtual_column(&self) -> Option<&ColumnDef> {
        self.columns.iter().find(|column| column.is_virtual)
    }

    /// Numbers of the columns with ON UPDATE CURRENT_TIMESTAMP.
    pub fn columns_on_update(&self) -> impl Iterator<Item = u16> {
        let columns = self.columns.iter().enumerate();
        columns.filter(|(_, column)| column.on_update_now).map(|(number, _)| number as u16)
    }

    /// Adds a primary key over these columns. Unknown names are reported by [`Self::validate`].
    pub fn primary_key(self, columns: &[&str]) -> TableDef {
        self.key("PRIMARY", KeyKind::Primary, columns)
    }

    /// Adds a key.
    pub fn key(mut self, name: impl Into<String>, kind: KeyKind, columns: &[&str]) -> TableDef {
        let parts =
            columns.iter().map(|name| KeyPart::whole(self.column_number(name).unwrap_or(u16::MAX))).collect();
        self.keys.push(KeyDef::new(name, kind, parts));
        self.sort_keys();
        self
    }

    /// Puts the keys into MySQL's order: primary, unique without nullable columns, unique, others. Unique
    /// keys of one of these ranks with a prefix of a column come after those without, and keys over VIRTUAL
    /// columns after others; otherwise the order stays. So the key that orders the rows is the first one, if
    /// there is one.
    pub fn sort_keys(&mut self) {
        let ranks: Vec<_> = self.keys.iter().map(|key| self.rank_of(key)).collect();
        let mut order: Vec<usize> = (0..self.keys.len()).collect();
        order.sort_by_key(|at| ranks[*at]);
        self.keys = order.into_iter().map(|at| self.keys[at].clone()).collect();
    }

    /// Puts a key where [`TableDef::sort_keys`] would in a sorted table, and leaves the others where they
    /// are: a table that another version made may have them in another order, which its catalog entry and
    /// its clustered index go by.
    pub(crate) fn insert_key(&mut self, key: KeyDef) {
        let rank = self.rank_of(&key);
        let after = self.keys.iter().position(|other| self.rank_of(other) > rank);
        self.keys.insert(after.unwrap_or(self.keys.len()), key);
    }

    fn rank_of(&self, key: &KeyDef) -> (u8, bool, bool) {
        let has = |key: &KeyDef, what: fn(&ColumnDef) -> bool| {
            key.parts.iter().any(|part| self.columns.get(usize::from(part.column)).is_some_and(what))
        };
        let prefixed = key.parts.iter().any(|part| part.prefix_chars.is_some());
        let computed = has(key, |column| column.is_virtual);
        match key.kind {
            KeyKind::Primary => (0, false, false),
            KeyKind::Unique if !has(key, |column| column.nullable) => (1, prefixed, computed),
            KeyKind::Unique => (2, prefixed, computed),
            KeyKind::Secondary => (3, false, computed),
        }
    }

    /// Number of the column of this name (case-insensitive). Hidden ones are not found.
    pub fn column_number(&self, name: &str) -> Option<u16> {
        let at = self.visible_columns().iter().position(|column| column.name.eq_ignore_ascii_case(name))?;
        u16::try_from(at).ok()
    }

    /// The key of this name (case-insensitive).
    pub fn key_named(&self, name: &str) -> Option<&KeyDef> {
        self.keys.iter().find(|key| key.name.eq_ignore_ascii_case(name))
    }

    /// The primary key.
    pub fn primary(&self) -> Option<&KeyDef> {
        self.keys.first().filter(|key| key.kind == KeyKind::Primary)
    }

    /// The key that orders the rows: the primary key, or as in InnoDB the first unique key whose columns are
    /// all whole, NOT NULL and not VIRTUAL. Without one the rows are ordered by a hidden number.
    pub fn clustered_key(&self) -> Option<&KeyDef> {
        let whole = |part: &KeyPart| {
            let column = self.columns.get(usize::from(part.column));
            part.prefix_chars.is_none() && column.is_some_and(|column| !column.nullable && !column.is_virtual)
        };
        self.keys.first().filter(|key| {
            key.kind == KeyKind::Primary || key.kind == KeyKind::Unique && key.parts.iter().all(whole)
        })
    }

    /// Whether a key is shown as the primary one: the primary key, or the unique key that orders the rows in
    /// its place.
    pub fn is_shown_as_primary(&self, key: &KeyDef) -> bool {
        self.clustered_key().is_some_and(|clustered| std::ptr::eq(clustered, key))
    }

    /// The keys that are not clustered, in the order of the secondary indexes.
    pub fn secondary_keys(&self) -> &[KeyDef] {
        &self.keys[usize::from(self.clustered_key().is_some())..]
    }

    /// The AUTO_INCREMENT column.
    pub fn auto_increment_column(&self) -> Option<u16> {
        let at = self.columns.iter().position(|column| column.auto_increment)?;
        u16::try_from(at).ok()
    }

    /// The definition of the table under another name: CHECK constraints that were named after it get a new
    /// name, as in MySQL.
    pub(crate) fn renamed(&self, from: &str, to: &str) -> TableDef {
        let mut def = self.clone();
        for check in &mut def.checks {
            let rest = check.name.strip_prefix(from).and_then(|rest| rest.strip_prefix("_chk_"));
            if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                check.name = format!("{to}_chk_{rest}");
            }
        }
        sort_checks(&mut def.checks);
        def
    }

    /// What stays of a table's identity as long as it exists, whatever its name and its id.
    pub fn lineage(&self) -> u64 {
        if self.origin == 0 { self.id } else { self.origin }
    }

    /// Bytes of a key part at most.
    pub fn key_part_bytes(&self, part: &KeyPart) -> u32 {
        let kind = &self.columns[usize::from(part.column)].kind;
        match part.prefix_chars {
            Some(chars) => (chars * kind.collation().bytes_per_char_max()).min(kind.bytes_max()),
            None => kind.bytes_max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ColumnType;

    fn names(def: &TableDef) -> Vec<&str> {
        def.keys.iter().map(|key| key.name.as_str()).collect()
    }

    #[test]
    fn hidden_columns_have_no_names_and_stand_behind_all_others() {
        let columns = ["a", "!hidden!k!0!0", "b"].map(|name| ColumnDef::new(name, ColumnType::int()));
        let mut def = TableDef::new(columns.into());
        let name = def.hidden_name("k", 0);
        assert_eq!(name, "!hidden!k!0!1", "somebody has the first");
        let mut hidden = ColumnDef::new(name, ColumnType::int()).nullable();
        (hidden.generated, hidden.hidden) = (Some("`a` + 1".into()), true);
        def.columns.push(hidden.clone());
        assert_eq!(def.validate(), Err(SchemaError::HiddenColumn(hidden.name.clone())), "not VIRTUAL");
        def.columns[3].is_virtual = true;
        def.keys.push(KeyDef::new("k", KeyKind::Unique, vec![KeyPart::whole(3)]));
        assert_eq!(def.validate(), Ok(()));
        assert_eq!(def.visible_columns().len(), 3);
        assert_eq!((def.column_number(&hidden.name), def.column_number("!hidden!k!0!0")), (None, Some(1)));
        assert_eq!((def.columns[3].hidden_for(), def.columns[1].hidden_for()), (Some("k"), None));
        assert!(def.clustered_key().is_none());
        let added = def.difference_in(&TableDef::new(def.visible_columns().to_vec()));
        assert_eq!(added.as_deref(), Some("it has no index 'k'"));
        let there = TableDef::new(def.visible_columns().to_vec()).difference_in(&def);
        let why = "it has the functional index 'k', so that only SQL can write its rows";
        assert_eq!(there.as_deref(), Some(why));
        hidden = def.columns.remove(3);
        def.columns.insert(0, hidden);
        assert!(matches!(def.validate(), Err(SchemaError::HiddenColumn(_))), "before others");
    }

    /// As a version before this one has stored it.
    #[test]
    fn keys_in_an_older_order_stay_where_they_are() {
        let columns = ["a", "b", "v"].map(|name| ColumnDef::new(name, ColumnType::int()));
        let mut def = TableDef::new(columns.into()).key("p", KeyKind::Secondary, &["a"]).key(
            "v",
            KeyKind::Secondary,
            &["v"],
        );
        def.columns[2].is_virtual = true;
        assert_eq!(names(&def), ["p", "v"]);
        def.keys.reverse();
        let before = def.clone();
        assert_eq!(def.change_foreign_keys(("d", "t"), Vec::new(), &[]), Ok(()));
        assert_eq!(names(&def), ["v", "p"]);
        assert!(before.stores_alike(&def));

        let added = KeyDef { name: "n".into(), ..def.keys[1].clone() };
        def.insert_key(added);
        assert_eq!(names(&def), ["n", "v", "p"], "before what comes after it, and nothing else moves");
        def.keys.remove(1);
        let added = KeyDef { name: "o".into(), ..def.keys[1].clone() };
        def.insert_key(added);
        assert_eq!(names(&def), ["n", "p", "o"], "after its equals");
    }
}
