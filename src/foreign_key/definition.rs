//! A foreign key as it is defined.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ForeignKeyRefusal;
use crate::schema::{KeyDef, KeyKind, KeyPart, TableDef};

/// What becomes of the rows that refer to a row which is deleted, or whose key changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferentialAction {
    /// The change is refused. The same as [`ReferentialAction::Restrict`], as in MySQL; only the name
    /// differs.
    #[default]
    NoAction,
    /// The change is refused.
    Restrict,
    /// They are deleted too, or get the new key.
    Cascade,
    /// Their foreign key becomes NULL.
    SetNull,
}

impl ReferentialAction {
    /// As SQL writes it.
    pub fn text(self) -> &'static str {
        match self {
            ReferentialAction::NoAction => "NO ACTION",
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
        }
    }

    /// Whether it changes rows.
    pub fn changes_rows(self) -> bool {
        matches!(self, ReferentialAction::Cascade | ReferentialAction::SetNull)
    }
}

/// A foreign key: a row whose columns are all not NULL needs a row of the other table with these values.
///
/// ```
/// # fn main() -> untorn::Result<()> {
/// use untorn::schema::{ColumnDef, ForeignKey, ReferentialAction, TableDef};
/// use untorn::types::{Collation, ColumnType, Value};
/// use untorn::{Database, Error};
///
/// let db = Database::in_memory()?;
/// db.create_database("shop", Collation::Utf8mb4Bin)?;
/// let id = || ColumnDef::new("id", ColumnType::bigint());
/// db.create_table("shop", "customer", TableDef::new(vec![id()]).primary_key(&["id"]))?;
/// let order = TableDef::new(vec![id(), ColumnDef::new("customer", ColumnType::bigint())])
///     .primary_key(&["id"])
///     .foreign_key(
///         ForeignKey::new(&["customer"], "customer", &["id"]).on_delete(ReferentialAction::Cascade),
///     );
/// db.create_table("shop", "orders", order)?;
///
/// let (customer, orders) = (db.table("shop", "customer")?, db.table("shop", "orders")?);
/// let mut t = db.begin();
/// match t.insert(&orders, &[Value::Int(1), Value::Int(7)]) {
///     Err(Error::ForeignKeyParentMissing(broken)) => assert_eq!(broken.key.name, "orders_ibfk_1"),
///     other => panic!("there is no customer 7: {other:?}"),
/// }
/// t.insert(&customer, &[Value::Int(7)])?;
/// t.insert(&orders, &[Value::Int(1), Value::Int(7)])?;
/// t.delete(&customer, &[Value::Int(7)])?;
/// assert_eq!(t.get(&orders, &[Value::Int(1)])?, None);
/// # t.rollback()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Its name, unique in the database of the table; made up if empty when the table is created
    /// (`<table>_ibfk_1`).
    pub name: String,
    /// Columns of this table.
    pub columns: Vec<String>,
    /// Database of the other table; that of this one if empty when the table is created.
    pub database: String,
    /// The other table.
    pub table: String,
    /// Its columns: the first ones of one of its indexes.
    pub referenced: Vec<String>,
    /// When a row that is referred to is deleted.
    #[serde(default)]
    pub on_delete: ReferentialAction,
    /// When the columns of a row that is referred to change.
    #[serde(default)]
    pub on_update: ReferentialAction,
    /// Name of the index that is made for it, if one must be made: empty for one of the engine's choice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub index: String,
}

impl ForeignKey {
    /// A foreign key from these columns to those of another table of the same database.
    pub fn new(columns: &[&str], table: impl Into<String>, referenced: &[&str]) -> ForeignKey {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ForeignKey {
            name: String::new(),
            columns: own(columns),
            database: String::new(),
            table: table.into(),
            referenced: own(referenced),
            on_delete: ReferentialAction::NoAction,
            on_update: ReferentialAction::NoAction,
            index: String::new(),
        }
    }

    /// The same with a name.
    pub fn named(mut self, name: impl Into<String>) -> ForeignKey {
        self.name = name.into();
        self
    }

    /// What a deletion does to the rows that refer.
    pub fn on_delete(mut self, action: ReferentialAction) -> ForeignKey {
        self.on_delete = action;
        self
    }

    /// What a change of the referenced columns does to the rows that refer.
    pub fn on_update(mut self, action: ReferentialAction) -> ForeignKey {
        self.on_update = action;
        self
    }

    /// The clause as MySQL shows it in `database`: `CONSTRAINT … FOREIGN KEY … REFERENCES …`.
    pub fn clause(&self, database: &str) -> String {
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        let list = |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let mut text =
            format!("CONSTRAINT {} FOREIGN KEY ({}) REFERENCES ", quoted(&self.name), list(&self.columns));
        if self.database != database {
            text.push_str(&format!("{}.", quoted(&self.database)));
        }
        text.push_str(&format!("{} ({})", quoted(&self.table), list(&self.referenced)));
        for (event, action) in [("DELETE", self.on_delete), ("UPDATE", self.on_update)] {
            if action != ReferentialAction::NoAction {
                text.push_str(&format!(" ON {event} {}", action.text()));
            }
        }
        text
    }

    /// Takes the names of the referenced columns as their table writes them.
    pub fn write_as(&mut self, parent: &TableDef) {
        for name in &mut self.referenced {
            if let Some(at) = parent.column_number(name) {
                name.clone_from(&parent.columns[usize::from(at)].name);
            }
        }
    }

    /// Whether it refers to this table.
    pub(crate) fn refers_to(&self, database: &str, table: &str) -> bool {
        self.database == database && self.table == table
    }
}

impl fmt::Display for ForeignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.clause(&self.database))
    }
}

/// What is behind `<table>_ibfk_` in a generated name.
fn generated_number(name: &str, table: &str) -> Option<u32> {
    name.strip_prefix(table)?.strip_prefix("_ibfk_")?.parse().ok()
}

impl TableDef {
    /// Adds a foreign key. What it needs and lacks (a name, a database, an index) is made up when the table
    /// is created.
    pub fn foreign_key(mut self, key: ForeignKey) -> TableDef {
        self.foreign_keys.push(key);
        self
    }

    /// Gives the foreign keys of a new table what they lack.
    pub(crate) fn complete_foreign_keys(&mut self, database: &str, table: &str) {
        let keys = std::mem::take(&mut self.foreign_keys);
        self.add_foreign_keys((database, table), keys, 0);
    }

    /// Takes foreign keys out of the definition of a table, by their names, and puts others in, with what
    /// they lack: the database, a name behind the greatest that was generated, an index whose first columns
    /// are theirs. An index that was made so goes when that of another key begins with its columns.
    ///
    /// # Errors
    /// [`ForeignKeyRefusal::Missing`].
    pub fn change_foreign_keys(
        &mut self,
        (database, table): (&str, &str),
        added: Vec<ForeignKey>,
        dropped: &[&str],
    ) -> Result<(), ForeignKeyRefusal> {
        let numbers = self.foreign_keys.iter().filter_map(|key| generated_number(&key.name, table));
        let last = numbers.max().unwrap_or(0);
        for name in dropped {
            let at = self.foreign_keys.iter().position(|key| key.name.eq_ignore_ascii_case(name));
            let at = at.ok_or_else(|| ForeignKeyRefusal::Missing((*name).to_owned()))?;
            self.foreign_keys.remove(at);
        }
        self.add_foreign_keys((database, table), added, last);
        Ok(())
    }

    /// `last` is the last number of a generated name that is taken, or was.
    fn add_foreign_keys(&mut self, (database, table): (&str, &str), mut added: Vec<ForeignKey>, last: u32) {
        let numbers = added.iter().filter_map(|key| generated_number(&key.name, table));
        let mut number = numbers.max().unwrap_or(0).max(last);
        for key in &mut added {
            if key.database.is_empty() {
                database.clone_into(&mut key.database);
            }
            if key.index.is_empty() && !key.name.is_empty() {
                key.index.clone_from(&key.name);
            }
            if key.name.is_empty() {
                number += 1;
                key.name = format!("{table}_ibfk_{number}");
            }
            // Names of columns as the table writes them.
            for name in &mut key.columns {
                if let Some(at) = self.column_number(name) {
                    name.clone_from(&self.columns[usize::from(at)].name);
                }
            }
            if key.refers_to(database, table) {
                key.write_as(self);
            }
            let wanted = std::mem::take(&mut key.index);
            self.add_index_for(key, &wanted);
        }
        self.foreign_keys.append(&mut added);
        self.foreign_keys.sort_by_cached_key(|key| key.name.to_lowercase());
    }

    /// Adds the index that a foreign key needs, if there is none.
    fn add_index_for(&mut self, key: &ForeignKey, wanted: &str) {
        let columns: Option<Vec<u16>> = key.columns.iter().map(|name| self.column_number(name)).collect();
        // An unknown column is refused by the validation.
        let Some(columns) = columns.filter(|columns| !columns.is_empty()) else { return };
        if super::covering_index(self, &columns).is_some() {
            return;
        }
        let parts: Vec<KeyPart> = columns.into_iter().map(KeyPart::whole).collect();
        self.drop_generated_keys(&parts);
        let base = if wanted.is_empty() { key.columns[0].as_str() } else { wanted };
        let mut name = base.to_owned();
        let mut number = 2;
        while self.key_named(&name).is_some() {
            name = format!("{base}_{number}");
            number += 1;
        }
        self.insert_key(KeyDef { generated: true, ..KeyDef::new(name, KeyKind::Secondary, parts) });
    }

    /// Takes the indexes that were made for foreign keys and that one of these parts can stand in for out of
    /// the definition.
    pub fn drop_generated_keys(&mut self, parts: &[KeyPart]) {
        self.keys.retain(|key| !key.generated || !parts.starts_with(&key.parts));
    }

    /// The definition after its table, or a parent of it, has got another name.
    pub(crate) fn foreign_keys_renamed(&self, own: (&str, &str), moves: &[Moved<'_>]) -> Option<TableDef> {
        let mut def = self.clone();
        for key in &mut def.foreign_keys {
            if let Some(moved) = moves.iter().find(|moved| key.refers_to(moved.from.0, moved.from.1)) {
                moved.to.0.clone_into(&mut key.database);
                moved.to.1.clone_into(&mut key.table);
            }
            // A name that was made of the table's follows it.
            if let Some(moved) = moves.iter().find(|moved| moved.from == own)
                && let Some(number) = generated_number(&key.name, own.1)
            {
                key.name = format!("{}_ibfk_{number}", moved.to.1);
            }
        }
        def.foreign_keys.sort_by_cached_key(|key| key.name.to_lowercase());
        (def.foreign_keys != self.foreign_keys).then_some(def)
    }
}

/// A table that gets another name, as database and table.
pub(crate) struct Moved<'m> {
    pub from: (&'m str, &'m str),
    pub to: (&'m str, &'m str),
}
