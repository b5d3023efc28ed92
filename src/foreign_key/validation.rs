//! What the tables of a foreign key must be: columns of types that go together, an index on both sides, and
//! nothing that CASCADE or SET NULL could not set.

use std::collections::BTreeSet;

use super::{BrokenForeignKey, ColumnChange, ForeignKey, ForeignKeyRefusal, ReferentialAction};
use crate::catalog::CatalogData;
use crate::error::Result;
use crate::schema::{KeyDef, TableDef};
use crate::types::ColumnType;

/// An index whose first columns are these, whole and in this order.
pub(crate) fn covering_index<'d>(def: &'d TableDef, columns: &[u16]) -> Option<&'d KeyDef> {
    def.keys.iter().find(|key| covers(key, columns))
}

fn covers(key: &KeyDef, columns: &[u16]) -> bool {
    key.parts.len() >= columns.len()
        && key
            .parts
            .iter()
            .zip(columns)
            .all(|(part, column)| part.column == *column && part.prefix_chars.is_none())
}

/// Numbers of columns by their names.
fn numbers(def: &TableDef, names: &[String]) -> Option<Vec<u16>> {
    names.iter().map(|name| def.column_number(name)).collect()
}

/// Whether values of one type can be keys of the other: the same bytes, or texts of one collation.
fn compatible(child: &ColumnType, parent: &ColumnType) -> bool {
    use ColumnType::{Binary, Char, Enum, Set, VarBinary, VarChar};
    match (child, parent) {
        (
            Char { collation: left, .. } | VarChar { collation: left, .. },
            Char { collation: right, .. } | VarChar { collation: right, .. },
        ) => left == right,
        (Binary { .. } | VarBinary { .. }, Binary { .. } | VarBinary { .. }) => true,
        (Enum { .. }, Enum { .. }) | (Set { .. }, Set { .. }) => child.fixed_len() == parent.fixed_len(),
        (child, parent) => child == parent,
    }
}

/// Whether an expression, as it is kept, names a column.
fn reads(expression: &str, column: &str) -> bool {
    let quoted = format!("`{}`", column.replace('`', "``"));
    expression.to_lowercase().contains(&quoted.to_lowercase())
}

/// What a foreign key needs of its own table.
fn check_child(def: &TableDef, key: &ForeignKey) -> Result<(), ForeignKeyRefusal> {
    if key.columns.is_empty() || key.columns.len() != key.referenced.len() {
        return Err(ForeignKeyRefusal::ColumnCount(key.name.clone()));
    }
    for name in &key.columns {
        let Some(at) = def.column_number(name) else {
            return Err(ForeignKeyRefusal::NoColumn(name.clone()));
        };
        let column = &def.columns[usize::from(at)];
        if column.is_virtual {
            let (column, key) = (name.clone(), key.name.clone());
            return Err(ForeignKeyRefusal::Virtual { key, column });
        }
        let sets_null = [key.on_delete, key.on_update].contains(&ReferentialAction::SetNull);
        if sets_null && !column.nullable {
            let (column, key) = (name.clone(), key.name.clone());
            return Err(ForeignKeyRefusal::NotNull { column, key });
        }
        if !sets_null && key.on_update != ReferentialAction::Cascade {
            continue;
        }
        let mut generated = def.columns.iter().filter_map(|column| column.generated.as_deref());
        if column.generated.is_some() || generated.any(|expression| reads(expression, name)) {
            let (column, key) = (name.clone(), key.name.clone());
            return Err(ForeignKeyRefusal::Generated { key, column });
        }
        if let Some(check) = def.checks.iter().find(|check| reads(&check.expression, name)) {
            let (column, key, check) = (name.clone(), key.name.clone(), check.name.clone());
            return Err(ForeignKeyRefusal::Checked { key, column, check });
        }
    }
    Ok(())
}

/// What a foreign key needs of its parent.
fn check_parent(child: &TableDef, key: &ForeignKey, parent: &TableDef) -> Result<(), ForeignKeyRefusal> {
    let mut columns = Vec::new();
    for (name, referenced) in key.columns.iter().zip(&key.referenced) {
        let Some(number) = parent.column_number(referenced) else {
            return Err(ForeignKeyRefusal::NoParentColumn {
                column: referenced.clone(),
                key: key.name.clone(),
                parent: key.table.clone(),
            });
        };
        columns.push(number);
        if parent.columns[usize::from(number)].is_virtual {
            let (column, key) = (referenced.clone(), key.name.clone());
            return Err(ForeignKeyRefusal::Virtual { key, column });
        }
        let own = child.column_number(name).map(|at| &child.columns[usize::from(at)].kind);
        if own.is_some_and(|own| !compatible(own, &parent.columns[usize::from(number)].kind)) {
            let (column, referenced) = (name.clone(), referenced.clone());
            return Err(ForeignKeyRefusal::Incompatible { column, referenced, key: key.name.clone() });
        }
    }
    match covering_index(parent, &columns) {
        Some(_) => Ok(()),
        None => {
            let (key, parent) = (key.name.clone(), key.table.clone());
            Err(ForeignKeyRefusal::NoParentIndex { key, parent })
        }
    }
}

/// Checks the foreign keys of a table that is made, and those of other tables that refer to it.
/// `may_lack_parent`: a parent may be made later.
///
/// # Errors
/// [`Error::ForeignKeyRefused`](crate::Error::ForeignKeyRefused).
pub(crate) fn validate(
    data: &CatalogData,
    database: &str,
    name: &str,
    def: &TableDef,
    may_lack_parent: bool,
) -> Result<()> {
    check_own(data, (database, name), def, |_| may_lack_parent)?;
    check_children(data, (database, name), def, ForeignKey::clone)
}

fn check_own(
    data: &CatalogData,
    (database, name): (&str, &str),
    def: &TableDef,
    may_lack_parent: impl Fn(&ForeignKey) -> bool,
) -> Result<()> {
    let mut seen = BTreeSet::new();
    for key in &def.foreign_keys {
        check_child(def, key)?;
        if !seen.insert(key.name.to_lowercase()) {
            return Err(ForeignKeyRefusal::Exists(key.name.clone()).into());
        }
        if key.refers_to(database, name) {
            check_parent(def, key, def)?;
            continue;
        }
        match data.table(&key.database, &key.table) {
            Some(parent) => check_parent(def, key, parent)?,
            None if may_lack_parent(key) => {}
            None => return Err(ForeignKeyRefusal::NoParent(key.table.clone()).into()),
        }
    }
    if !seen.is_empty() {
        let others = data.databases.get(database).into_iter().flat_map(|owner| owner.tables.iter());
        for (_, other) in others.filter(|(other, _)| *other != name) {
            for taken in other.foreign_keys.iter().map(|key| key.name.to_lowercase()) {
                if let Some(key) = def.foreign_keys.iter().find(|key| key.name.to_lowercase() == taken) {
                    return Err(ForeignKeyRefusal::Exists(key.name.clone()).into());
                }
            }
        }
    }
    Ok(())
}

/// Checks the foreign keys of other tables to this name, each as `followed` says it will be.
fn check_children(
    data: &CatalogData,
    (database, name): (&str, &str),
    def: &TableDef,
    followed: impl Fn(&ForeignKey) -> ForeignKey,
) -> Result<()> {
    for (child, key) in keys_from_outside(data, database, name) {
        check_parent(child.def, &followed(key), def)?;
    }
    Ok(())
}

/// Another table that refers to one.
struct Outside<'d> {
    database: &'d str,
    name: &'d str,
    def: &'d TableDef,
}

impl Outside<'_> {
    fn broken(&self, key: &ForeignKey) -> Box<BrokenForeignKey> {
        let (database, table) = (self.database.to_owned(), self.name.to_owned());
        Box::new(BrokenForeignKey { database, table, key: key.clone() })
    }
}

/// The foreign keys of other tables to this one.
fn keys_from_outside<'d>(
    data: &'d CatalogData,
    database: &str,
    name: &str,
) -> Vec<(Outside<'d>, &'d ForeignKey)> {
    let mut found = Vec::new();
    for (owner, table) in data.children_of(database, name).iter() {
        if (owner.as_str(), table.as_str()) == (database, name) {
            continue;
        }
        let child = data.databases.get_key_value(owner).and_then(|(owner, tables)| {
            let (name, def) = tables.tables.get_key_value(table)?;
            Some((owner, name, def))
        });
        let Some((database_of, name_of, def)) = child else { continue };
        for key in def.foreign_keys.iter().filter(|key| key.refers_to(database, name)) {
            found.push((Outside { database: database_of, name: name_of, def }, key));
        }
    }
    found
}

/// Checks a definition that a table with rows is to get. Its foreign keys, and those of other tables to it,
/// find their columns again, under other names perhaps, of a type that still fits, with the indexes that they
/// need. A key that stays may lack its parent, as it did before; one that is new only if `may_lack_parent`.
///
/// # Errors
/// [`Error::ForeignKeyRefused`](crate::Error::ForeignKeyRefused).
pub(crate) fn validate_change(
    data: &CatalogData,
    (database, name): (&str, &str),
    change: &ColumnChange<'_>,
    may_lack_parent: bool,
) -> Result<()> {
    let (before, def) = (change.before, change.after);
    let outside = keys_from_outside(data, database, name);
    if before.foreign_keys.is_empty() && def.foreign_keys.is_empty() && outside.is_empty() {
        return Ok(());
    }
    let kept = |key: &&ForeignKey| change.keeps((database, name), key);
    let own: Vec<&ForeignKey> = before.foreign_keys.iter().filter(kept).collect();
    let named = own.iter().flat_map(|key| key.columns.iter().map(move |column| (column, *key)));
    for (column, key) in named.clone() {
        if change.column(column).is_none() {
            let (column, key) = (column.clone(), key.name.clone());
            return Err(ForeignKeyRefusal::DropColumn { column, key }.into());
        }
    }
    // Those of the table to itself, and those of others.
    let itself = Outside { database, name, def: before };
    let inside = own.iter().filter(|key| key.refers_to(database, name)).map(|key| (&itself, *key));
    let referring: Vec<_> = inside.chain(outside.iter().map(|(child, key)| (child, *key))).collect();
    let referred = referring
        .iter()
        .flat_map(|(child, key)| key.referenced.iter().map(move |column| (column, child, key)));
    for (column, child, key) in referred.clone() {
        if change.column(column).is_none() {
            let (column, broken) = (column.clone(), child.broken(key));
            return Err(ForeignKeyRefusal::DropParentColumn { column, broken }.into());
        }
    }
    let lists = own.iter().map(|key| &key.columns).chain(referring.iter().map(|(_, key)| &key.referenced));
    for list in lists {
        let is: Option<Vec<u16>> =
            list.iter().map(|column| def.column_number(&change.column(column)?.1.name)).collect();
        let was = numbers(before, list).and_then(|columns| covering_index(before, &columns));
        if let (Some(is), Some(was)) = (is, was)
            && covering_index(def, &is).is_none()
        {
            return Err(ForeignKeyRefusal::NeedsIndex(was.name.clone()).into());
        }
    }
    check_own(data, (database, name), def, |key| may_lack_parent || own.iter().any(|o| o.name == key.name))?;
    check_children(data, (database, name), def, |key| change.followed(key))?;
    let differs =
        |column: &str| change.column(column).is_some_and(|(was, is)| !was.kind.stores_alike(&is.kind));
    if let Some((column, key)) = named.clone().find(|(column, _)| differs(column)) {
        let (column, key) = (column.clone(), key.name.clone());
        return Err(ForeignKeyRefusal::ColumnInUse { column, key }.into());
    }
    if let Some((column, child, key)) = referred.clone().find(|(column, ..)| differs(column)) {
        let (column, broken) = (column.clone(), child.broken(key));
        return Err(ForeignKeyRefusal::ParentColumnInUse { column, broken }.into());
    }
    // One that is new has an index by now, unless another session has dropped it.
    let lacks = |key: &&ForeignKey| {
        numbers(def, &key.columns).is_none_or(|columns| covering_index(def, &columns).is_none())
    };
    match def.foreign_keys.iter().find(lacks) {
        Some(key) => Err(ForeignKeyRefusal::NeedsIndex(key.name.clone()).into()),
        None => Ok(()),
    }
}

/// Checks the tables that refer to a name under which there is none yet, by the one that gets it.
///
/// # Errors
/// [`Error::ForeignKeyRefused`](crate::Error::ForeignKeyRefused).
pub(crate) fn check_moved(data: &CatalogData, name: (&str, &str), def: &TableDef) -> Result<()> {
    check_children(data, name, def, ForeignKey::clone)
}

/// The first foreign key by which another table than these refers to the table.
pub(crate) fn reference_from_outside(
    data: &CatalogData,
    database: &str,
    name: &str,
    inside: impl Fn(&str, &str) -> bool,
) -> Option<BrokenForeignKey> {
    let children = data.children_of(database, name);
    let (child_database, child_name) = children.iter().find(|(database, name)| !inside(database, name))?;
    let child = data.table(child_database, child_name)?;
    let key = child.foreign_keys.iter().find(|key| key.refers_to(database, name))?.clone();
    Some(BrokenForeignKey { database: child_database.clone(), table: child_name.clone(), key })
}
