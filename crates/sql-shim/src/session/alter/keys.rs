//! The keys that a table has after ALTER TABLE.
//!
//! A kept key follows its columns to their new places and names; a column that is dropped leaves its keys,
//! and a key without columns is gone. Kept keys keep their ids: that is how it is seen what is new.

use untorn::Table;
use untorn::schema::{KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::ColumnType;

use super::super::Session;
use super::super::definition::{check_visible, warn_of_duplicate};
use super::super::functional_keys::name_functional_keys;
use sql::ast::{self, Alteration, KeySource};
use sql::errors;
use sql::parser::check_key_name;
use sql::result::SqlError;

/// Characters of a column, or bytes of a binary one, if it has a length of its own.
fn length(kind: &ColumnType) -> Option<u32> {
    match kind {
        ColumnType::Char { chars, .. } | ColumnType::VarChar { chars, .. } => Some(*chars),
        ColumnType::Binary { bytes } | ColumnType::VarBinary { bytes } => Some(*bytes),
        _ => None,
    }
}

impl Session {
    /// Gives `def`, which has its new columns, its keys. `origins` says which columns they were.
    pub(super) fn alter_keys(
        &self,
        table: &Table,
        def: &mut TableDef,
        origins: &mut Vec<Option<u16>>,
        changes: &[Alteration],
    ) -> Result<(), SqlError> {
        self.keep_keys(table, def, origins, changes)?;
        let mut changes = changes.to_vec();
        let added = changes.iter_mut().filter_map(|change| match change {
            Alteration::AddKey { key, .. } => Some(key),
            _ => None,
        });
        name_functional_keys(def, added);
        let added: Vec<(ast::KeyDef, bool)> =
            changes.iter().flat_map(|change| keys_of(def, change)).collect();
        for (key, _) in &added {
            drop_unneeded_keys(def, key);
        }
        let kept = def.keys.len();
        for (key, if_not_exists) in &added {
            self.add_key(table, def, key, *if_not_exists)?;
        }
        for at in kept..def.keys.len() {
            warn_of_duplicate(&self.state, (&table.database, &table.name), &def.keys[..=at]);
        }
        origins.resize(def.columns.len(), None);
        check_visible(def)?;
        def.sort_keys();
        Ok(())
    }

    fn keep_keys(
        &self,
        table: &Table,
        def: &mut TableDef,
        origins: &mut Vec<Option<u16>>,
        changes: &[Alteration],
    ) -> Result<(), SqlError> {
        let old = &table.def;
        let mut keys = old.keys.clone();
        for change in changes {
            let (name, tolerant, missing) = match change {
                Alteration::DropKey { name, if_exists } => (name, *if_exists, errors::CANT_DROP_FIELD_OR_KEY),
                Alteration::DropConstraint { name, .. }
                    if old.checks.iter().any(|check| check.name.eq_ignore_ascii_case(name))
                        || old.foreign_keys.iter().any(|key| key.name.eq_ignore_ascii_case(name)) =>
                {
                    continue;
                }
                Alteration::DropConstraint { name, if_exists } => {
                    (name, *if_exists, errors::CONSTRAINT_NOT_FOUND)
                }
                _ => continue,
            };
            let plain_too = missing == errors::CANT_DROP_FIELD_OR_KEY;
            let at = keys.iter().position(|key| {
                key.name.eq_ignore_ascii_case(name) && (plain_too || key.kind != KeyKind::Secondary)
            });
            match at {
                Some(at) => drop(keys.remove(at)),
                None if tolerant => self.state.note(errors::error(missing, &[name])),
                None => return Err(errors::error(missing, &[name])),
            }
        }
        show_keys(table, &mut keys, changes)?;
        for change in changes {
            let Alteration::RenameKey(from, to) = change else { continue };
            let Some(at) = keys.iter().position(|key| key.name.eq_ignore_ascii_case(from)) else {
                return Err(errors::error(errors::KEY_DOES_NOT_EXIST, &[from, &table.name]));
            };
            if keys[at].kind == KeyKind::Primary {
                check_key_name(from)?;
            }
            check_key_name(to)?;
            keys[at].name.clone_from(to);
            keys[at].generated = false;
        }
        self.keep_hidden_columns(table, &keys, def, origins)?;
        for mut key in keys {
            let kept = |part: &KeyPart| {
                let at = origins.iter().position(|origin| *origin == Some(part.column))?;
                let (was, is) = (&old.columns[usize::from(part.column)].kind, &def.columns[at].kind);
                let prefix_chars = part.prefix_chars.filter(|_| is.is_string() || is.is_blob());
                let fits = |chars: &u32| was == is || length(is).is_none_or(|length| *chars < length);
                Some(KeyPart { column: at as u16, prefix_chars: prefix_chars.filter(fits), ..part.clone() })
            };
            key.parts = key.parts.iter().filter_map(kept).collect();
            if key.parts.is_empty() {
                continue;
            }
            if key.kind == KeyKind::Primary {
                for part in &key.parts {
                    let column = &mut def.columns[usize::from(part.column)];
                    if column.nullable && says_null(changes, &column.name) {
                        return Err(errors::error(errors::PRIMARY_CANT_HAVE_NULL, &[]));
                    }
                    column.nullable = false;
                }
            }
            def.keys.push(key);
        }
        Ok(())
    }

    fn add_key(
        &self,
        table: &Table,
        def: &mut TableDef,
        key: &ast::KeyDef,
        if_not_exists: bool,
    ) -> Result<(), SqlError> {
        let columns = def.columns.len();
        let key = self.key_definition((&table.database, &table.name), def, key)?;
        if key.kind == KeyKind::Primary && def.keys.iter().any(|other| other.kind == KeyKind::Primary) {
            return Err(errors::error(errors::MULTIPLE_PRI_KEY, &[]));
        }
        if def.key_named(&key.name).is_some() {
            let error = errors::error(errors::DUP_KEYNAME, &[&key.name]);
            if !if_not_exists {
                return Err(error);
            }
            def.columns.truncate(columns);
            self.state.note(error);
            return Ok(());
        }
        def.keys.push(key);
        Ok(())
    }
}

/// The keys that a clause adds, and whether one of its name may be there.
fn keys_of(def: &TableDef, change: &Alteration) -> Vec<(ast::KeyDef, bool)> {
    match change {
        Alteration::AddKey { key, if_not_exists } => vec![(key.clone(), *if_not_exists)],
        Alteration::AddColumn { column, .. } | Alteration::ChangeColumn { column, .. }
            if def.column_number(&column.name).is_some() =>
        {
            let said = [(column.primary, ast::KeyKind::Primary), (column.unique, ast::KeyKind::Unique)];
            let key = |kind| ast::KeyDef::new(None, kind, vec![ast::KeyPart::column(&column.name)]);
            said.into_iter().filter(|(said, _)| *said).map(|(_, kind)| (key(kind), false)).collect()
        }
        _ => Vec::new(),
    }
}

/// Takes the indexes that were made for foreign keys and that a new key can stand in for out of `def`, before
/// the new one has a name.
fn drop_unneeded_keys(def: &mut TableDef, key: &ast::KeyDef) {
    let whole = |part: &ast::KeyPart| match &part.source {
        KeySource::Column(name) if part.length.is_none() && !part.descending => def.column_number(name),
        _ => None,
    };
    let parts: Vec<KeyPart> = key.parts.iter().map_while(whole).map(KeyPart::whole).collect();
    def.drop_generated_keys(&parts);
}

/// ALTER INDEX … VISIBLE, of keys that the statement keeps under their names.
///
/// # Errors
/// 1176: there is no such key, or it is dropped or gets another name. 3522: it is the primary key, or stands
/// in its place.
fn show_keys(table: &Table, keys: &mut [KeyDef], changes: &[Alteration]) -> Result<(), SqlError> {
    for change in changes {
        let Alteration::ShowKey(name, visible) = change else { continue };
        let is_renamed = changes.iter().any(|change| match change {
            Alteration::RenameKey(from, _) => from.eq_ignore_ascii_case(name),
            _ => false,
        });
        let key = keys.iter_mut().find(|key| key.name.eq_ignore_ascii_case(name) && !is_renamed);
        let Some(key) = key else {
            return Err(errors::error(errors::KEY_DOES_NOT_EXIST, &[name, &table.name]));
        };
        if table.def.clustered_key().is_some_and(|clustered| clustered.id == key.id) {
            return Err(errors::error(errors::PK_INDEX_CANT_BE_INVISIBLE, &[]));
        }
        key.invisible = !visible;
    }
    Ok(())
}

/// Whether a clause says that this column may be NULL.
fn says_null(changes: &[Alteration], name: &str) -> bool {
    changes.iter().any(|change| match change {
        Alteration::ChangeColumn { column, .. } => {
            column.nullable == Some(true) && column.name.eq_ignore_ascii_case(name)
        }
        _ => false,
    })
}
