//! Foreign keys: from syntax to the engine's definitions.

use sql::ast::{self, Alteration};
use sql::errors;
use sql::result::SqlError;
use untorn::Table;
use untorn::schema::{ForeignKey, TableDef};

use super::Session;

impl Session {
    /// The engine's definition of a foreign key of a table in this database.
    pub(super) fn foreign_key(&self, key: &ast::ForeignKey, database: &str) -> Result<ForeignKey, SqlError> {
        if key.columns.len() != key.referenced_columns.len() {
            let name = key.name.as_deref().unwrap_or("foreign key without name");
            return Err(errors::error(errors::WRONG_FK_DEF, &[&name]));
        }
        let referenced = match &key.references.database {
            Some(_) => self.planner().database_of(&key.references)?,
            None => database.to_owned(),
        };
        let parent = self.state.database.table(&referenced, &key.references.name).ok();
        let mut key = ForeignKey {
            name: key.name.clone().unwrap_or_default(),
            columns: key.columns.clone(),
            database: referenced,
            table: key.references.name.clone(),
            referenced: key.referenced_columns.clone(),
            on_delete: key.on_delete,
            on_update: key.on_update,
            index: key.name.clone().or_else(|| key.index.clone()).unwrap_or_default(),
        };
        if let Some(parent) = parent {
            key.write_as(&parent.def);
        }
        Ok(key)
    }

    /// Gives `def`, which has its new columns and keys, the foreign keys that it has after ALTER TABLE.
    pub(super) fn alter_foreign_keys(
        &self,
        table: &Table,
        def: &mut TableDef,
        changes: &[Alteration],
    ) -> Result<(), SqlError> {
        let is_foreign =
            |name: &str| table.def.foreign_keys.iter().any(|key| key.name.eq_ignore_ascii_case(name));
        let (mut added, mut dropped) = (Vec::new(), Vec::new());
        for change in changes {
            match change {
                Alteration::AddForeignKey(key) => added.push(self.foreign_key(key, &table.database)?),
                Alteration::AddColumn { column, .. } => {
                    if let Some(key) = &column.references {
                        added.push(self.foreign_key(key, &table.database)?);
                    }
                }
                Alteration::DropForeignKey(name) => dropped.push(name.as_str()),
                Alteration::DropConstraint { name, .. } if is_foreign(name) => dropped.push(name),
                _ => {}
            }
        }
        if added.is_empty() && dropped.is_empty() {
            return Ok(());
        }
        if untorn::private::is_private(&table.database) && !added.is_empty() {
            return Err(errors::unsupported("foreign keys of temporary tables"));
        }
        let name = (table.database.as_str(), table.name.as_str());
        match def.change_foreign_keys(name, added, &dropped) {
            Ok(_) => Ok(()),
            Err(why) => Err(sql::failure::engine(&why.into())),
        }
    }
}
