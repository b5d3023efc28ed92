//! What the tables of a foreign key must be.

use std::collections::BTreeSet;

use super::{BrokenForeignKey, ForeignKey, ForeignKeyRefusal, ReferentialAction};
use crate::catalog::CatalogData;
use crate::error::{Error, Result};
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

/// Checks the foreign keys of a table that is made or changed, and those of other tables that refer to it.
/// `may_lack_parent`: a parent may be made later.
///
/// # Errors
/// [`Error::ForeignKeyRefused`].
pub(crate) fn validate(
    data: &CatalogData,
    database: &str,
    name: &str,
    def: &TableDef,
    may_lack_parent: bool,
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
            None if may_lack_parent => {}
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
    for (child_database, child_name) in data.children_of(database, name).iter() {
        let Some(child) = data.table(child_database, child_name) else { continue };
        if (child_database.as_str(), child_name.as_str()) == (database, name) {
            continue;
        }
        for key in child.foreign_keys.iter().filter(|key| key.refers_to(database, name)) {
            check_parent(child, key, def)?;
        }
    }
    Ok(())
}

/// Checks a definition that a table with rows is to get: columns of its foreign keys, and of those of other
/// tables that refer to it, keep their names and types, and the indexes that they need are there.
///
/// # Errors
/// [`Error::ForeignKeyRefused`].
pub(crate) fn validate_change(
    data: &CatalogData,
    (database, name): (&str, &str),
    before: &TableDef,
    def: &TableDef,
) -> Result<()> {
    let children = data.children_of(database, name);
    if before.foreign_keys.is_empty() && children.is_empty() {
        return Ok(());
    }
    debug_assert_eq!(before.foreign_keys, def.foreign_keys, "they have changes of their own");
    let kind = |def: &TableDef, column: &str| {
        def.column_number(column).map(|at| def.columns[usize::from(at)].kind.clone())
    };
    let own = before.foreign_keys.iter().flat_map(|key| key.columns.iter().map(move |column| (column, key)));
    let referring = children
        .iter()
        .filter_map(|(database, name)| data.table(database, name))
        .flat_map(|child| &child.foreign_keys)
        .filter(|key| key.refers_to(database, name));
    let referred = referring.flat_map(|key| key.referenced.iter().map(move |column| (column, key)));
    for (column, key) in own.chain(referred) {
        if kind(before, column) != kind(def, column) {
            let (column, key) = (column.clone(), key.name.clone());
            return Err(ForeignKeyRefusal::ColumnInUse { column, key }.into());
        }
    }
    refuse_needed_index(data, (database, name), before, def)?;
    validate(data, database, name, def, true)
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

/// Refuses to drop indexes that a foreign key of the table, or one to it, needs; `def` is without them.
///
/// # Errors
/// [`ForeignKeyRefusal::NeedsIndex`].
pub(crate) fn refuse_needed_index(
    data: &CatalogData,
    (database, name): (&str, &str),
    before: &TableDef,
    def: &TableDef,
) -> Result<()> {
    let lacks = |columns: &[String]| match (numbers(before, columns), numbers(def, columns)) {
        (Some(old), Some(new)) => match (covering_index(before, &old), covering_index(def, &new)) {
            (Some(index), None) => Some(index.name.clone()),
            _ => None,
        },
        _ => None,
    };
    let children = data.children_of(database, name);
    let referenced: Vec<Vec<String>> = children
        .iter()
        .filter_map(|(database, name)| data.table(database, name))
        .flat_map(|child| &child.foreign_keys)
        .filter(|key| key.refers_to(database, name))
        .map(|key| key.referenced.clone())
        .collect();
    let own = def.foreign_keys.iter().map(|key| &key.columns);
    match own.chain(&referenced).find_map(|columns| lacks(columns)) {
        Some(index) => Err(Error::ForeignKeyRefused(ForeignKeyRefusal::NeedsIndex(index))),
        None => Ok(()),
    }
}
