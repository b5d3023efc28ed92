//! The columns that a table has after ALTER TABLE, and what depends on those that went or were renamed.
//!
//! As in MySQL the clauses speak of the columns as they were: first each old column is dropped, changed or
//! kept, in the table's order; then, in the order of the statement, new columns and those with a place of
//! their own are put in. AFTER names a column of the list as it is then.

use untorn::Table;
use untorn::schema::{self, TableDef};
use untorn::types::Collation;

use super::super::Session;
use sql::ast::{self, Alteration, Position};
use sql::errors;
use sql::result::SqlError;

/// A column after the statement.
pub(super) struct Column {
    pub def: schema::ColumnDef,
    /// The column that it was.
    pub origin: Option<u16>,
    /// It is defined by the statement.
    pub said: bool,
}

fn unknown(column: &str, table: &str) -> SqlError {
    errors::error(errors::BAD_FIELD, &[&column, &table])
}

fn put(
    columns: &mut Vec<Column>,
    column: Column,
    at: Option<&Position>,
    table: &str,
) -> Result<(), SqlError> {
    match at {
        None => columns.push(column),
        Some(Position::First) => columns.insert(0, column),
        Some(Position::After(name)) => {
            let before = columns.iter().position(|other| other.def.name.eq_ignore_ascii_case(name));
            columns.insert(before.ok_or_else(|| unknown(name, table))? + 1, column);
        }
    }
    Ok(())
}

impl Session {
    /// The columns of the new definition. `rule` is the collation of texts that say none.
    pub(super) fn altered_columns(
        &self,
        table: &Table,
        changes: &[Alteration],
        rule: Collation,
    ) -> Result<Vec<Column>, SqlError> {
        let mut used = vec![false; changes.len()];
        let mut moved: Vec<(usize, Column)> = Vec::new();
        let mut columns = Vec::new();
        for (at, old) in table.def.visible_columns().iter().enumerate() {
            let is_it = |name: &str| name.eq_ignore_ascii_case(&old.name);
            let dropped =
                |change: &Alteration| matches!(change, Alteration::DropColumn { name, .. } if is_it(name));
            if let Some(clause) = changes.iter().position(dropped) {
                used[clause] = true;
                continue;
            }
            let origin = Some(at as u16);
            let mut kept = Column { def: old.clone(), origin, said: false };
            let mut place = None;
            if let Some(clause) = clause_of(changes, &old.name) {
                used[clause] = true;
                match &changes[clause] {
                    Alteration::ChangeColumn { column, position, .. } => {
                        kept = Column { def: self.column_definition(column, rule)?, origin, said: true };
                        place = position.as_ref().map(|_| clause);
                    }
                    Alteration::RenameColumn(_, to) => kept.def.name.clone_from(to),
                    Alteration::AlterDefault(_, default) => {
                        self.set_default(&old.name, default.as_ref(), &mut kept.def)?;
                        kept.def.without_default = default.is_none() && kept.def.nullable;
                    }
                    Alteration::ShowColumn(_, visible) => kept.def.invisible = !visible,
                    _ => {}
                }
            }
            match place {
                Some(clause) => moved.push((clause, kept)),
                None => columns.push(kept),
            }
        }
        for (clause, change) in changes.iter().enumerate() {
            let missing = match change {
                Alteration::AddColumn { column, position, if_not_exists } => {
                    if *if_not_exists && table.def.column_number(&column.name).is_some() {
                        self.state.note(errors::error(errors::DUP_FIELDNAME, &[&column.name]));
                        continue;
                    }
                    let def = self.column_definition(column, rule)?;
                    let added = Column { def, origin: None, said: true };
                    put(&mut columns, added, position.as_ref(), &table.name)?;
                    continue;
                }
                Alteration::ChangeColumn { position, .. } if used[clause] => {
                    if let Some(at) = moved.iter().position(|(number, _)| *number == clause) {
                        put(&mut columns, moved.remove(at).1, position.as_ref(), &table.name)?;
                    }
                    continue;
                }
                _ if used[clause] => continue,
                Alteration::DropColumn { name, .. } if is_hidden(&table.def, name) => {
                    (errors::error(errors::CANNOT_DROP_COLUMN_FUNCTIONAL_INDEX, &[name]), false)
                }
                Alteration::DropColumn { name, if_exists } => {
                    (errors::error(errors::CANT_DROP_FIELD_OR_KEY, &[name]), *if_exists)
                }
                Alteration::ChangeColumn { name, if_exists, .. } => (unknown(name, &table.name), *if_exists),
                Alteration::RenameColumn(name, _)
                | Alteration::AlterDefault(name, _)
                | Alteration::ShowColumn(name, _) => (unknown(name, &table.name), false),
                _ => continue,
            };
            match missing {
                (error, true) => self.state.note(error),
                (error, false) => return Err(error),
            }
        }
        match columns.is_empty() {
            true => Err(errors::error(errors::CANT_REMOVE_ALL_FIELDS, &[])),
            false => Ok(columns),
        }
    }

    /// The constraints that are left and those that come. A constraint goes with the only column it reads;
    /// other columns that are read, by a constraint, a generated column or a default, can be neither dropped
    /// nor renamed.
    pub(super) fn altered_checks(
        &self,
        table: &Table,
        columns: &[Column],
        changes: &[Alteration],
    ) -> Result<Vec<schema::Check>, SqlError> {
        let old = &table.def;
        let (dropped, renamed) = lost(old, columns);
        let read = |text: &str| self.planner().columns_read(&table.database, &table.name, old, text);
        let name_of = |column: &u16| old.columns[usize::from(*column)].name.clone();
        for column in columns.iter().filter(|column| !column.said) {
            let is_lost = |column: &u16| dropped.contains(column) || renamed.contains(column);
            if let Some(text) = &column.def.generated {
                if let Some(lost) = read(text)?.iter().find(|column| is_lost(column)) {
                    return Err(errors::error(errors::DEPENDENT_BY_GENERATED_COLUMN, &[&name_of(lost)]));
                }
            } else if let Some(schema::Default::Expression(text)) = &column.def.default
                && column.origin.is_some_and(|at| old.columns[usize::from(at)].default == column.def.default)
                && let Some(lost) = read(text)?.iter().find(|column| is_lost(column))
            {
                return Err(errors::error(errors::DEPENDENT_BY_DEFAULT, &[&name_of(lost), &table.name]));
            }
        }
        let stays = |hidden: &&schema::ColumnDef| {
            let goes = |change: &Alteration| {
                matches!(change, Alteration::DropKey { name, .. }
                    if hidden.hidden_for().is_some_and(|key| key.eq_ignore_ascii_case(name)))
            };
            !changes.iter().any(goes)
        };
        for column in old.columns[old.visible_columns().len()..].iter().filter(stays) {
            let text = column.generated.as_deref().unwrap_or_default();
            let is_lost = |column: &&u16| dropped.contains(column) || renamed.contains(column);
            if let Some(lost) = read(text)?.iter().find(is_lost) {
                return Err(errors::error(errors::DEPENDENT_BY_FUNCTIONAL_INDEX, &[&name_of(lost)]));
            }
        }
        let mut checks = Vec::new();
        for check in kept_checks(old, changes)? {
            let reads = read(&check.expression)?;
            let in_the_way =
                |lost: &u16| errors::error(errors::DEPENDENT_BY_CHECK, &[&check.name, &name_of(lost)]);
            if let Some(lost) = reads.iter().find(|column| renamed.contains(column)) {
                return Err(in_the_way(lost));
            }
            match reads.iter().find(|column| dropped.contains(column)) {
                Some(_) if reads.len() == 1 => {}
                Some(lost) => return Err(in_the_way(lost)),
                None => checks.push(check),
            }
        }
        let said: Vec<ast::Check> = changes
            .iter()
            .flat_map(|change| match change {
                Alteration::AddCheck(check) => std::slice::from_ref(check),
                Alteration::AddColumn { column, .. } | Alteration::ChangeColumn { column, .. } => {
                    &column.checks[..]
                }
                _ => &[],
            })
            .cloned()
            .collect();
        let added = super::super::stored_expressions::checks(&table.name, &said, &checks)?;
        let named = TableDef { checks: added.clone(), ..TableDef::new(Vec::new()) };
        self.require_free_check_names(&table.database, Some(&table.name), &named)?;
        checks.extend(added);
        schema::sort_checks(&mut checks);
        Ok(checks)
    }
}

/// The clause that says what becomes of a column that is not dropped. As in MySQL there is one: the first
/// CHANGE or MODIFY, or else the first that says something else of it. What more is said of the column finds
/// none of its name.
fn clause_of(changes: &[Alteration], column: &str) -> Option<usize> {
    let is_it = |name: &str| name.eq_ignore_ascii_case(column);
    let redefines =
        |change: &Alteration| matches!(change, Alteration::ChangeColumn { name, .. } if is_it(name));
    let alters = |change: &Alteration| {
        matches!(change, Alteration::RenameColumn(name, _)
            | Alteration::AlterDefault(name, _)
            | Alteration::ShowColumn(name, _) if is_it(name))
    };
    changes.iter().position(redefines).or_else(|| changes.iter().position(alters))
}

/// Whether it is the name of a column that a functional key part has for itself.
fn is_hidden(def: &TableDef, name: &str) -> bool {
    let hidden = &def.columns[def.visible_columns().len()..];
    hidden.iter().any(|column| column.name.eq_ignore_ascii_case(name))
}

/// Old columns that are gone, and those that have another name.
fn lost(old: &TableDef, columns: &[Column]) -> (Vec<u16>, Vec<u16>) {
    let (mut dropped, mut renamed) = (Vec::new(), Vec::new());
    for (at, column) in old.columns.iter().enumerate() {
        let at = at as u16;
        match columns.iter().find(|new| new.origin == Some(at)) {
            None => dropped.push(at),
            Some(new) if !new.def.name.eq_ignore_ascii_case(&column.name) => renamed.push(at),
            Some(_) => {}
        }
    }
    (dropped, renamed)
}

/// The constraints without those that are dropped by name.
fn kept_checks(old: &TableDef, changes: &[Alteration]) -> Result<Vec<schema::Check>, SqlError> {
    let mut checks = old.checks.clone();
    for change in changes {
        let at = |name: &str| checks.iter().position(|check| check.name.eq_ignore_ascii_case(name));
        match change {
            Alteration::DropCheck(name) | Alteration::EnforceCheck(name, _) if at(name).is_none() => {
                return Err(errors::error(errors::CHECK_NOT_FOUND, &[name]));
            }
            Alteration::DropCheck(name) | Alteration::DropConstraint { name, .. } => {
                at(name).map(|at| checks.remove(at));
            }
            Alteration::EnforceCheck(name, enforced) => {
                if let Some(at) = at(name) {
                    checks[at].enforced = *enforced;
                }
            }
            _ => {}
        }
    }
    Ok(checks)
}
