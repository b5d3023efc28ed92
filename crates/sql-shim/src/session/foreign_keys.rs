//! Foreign keys: from syntax to the engine's definitions.

use sql::ast::{self, TableName};
use sql::errors;
use sql::failure::Failure;
use sql::result::SqlError;
use untorn::schema::ForeignKey;

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
        Ok(ForeignKey {
            name: key.name.clone().unwrap_or_default(),
            columns: key.columns.clone(),
            database: referenced,
            table: key.references.name.clone(),
            referenced: key.referenced_columns.clone(),
            on_delete: key.on_delete,
            on_update: key.on_update,
            index: key.name.clone().or_else(|| key.index.clone()).unwrap_or_default(),
        })
    }

    /// ADD FOREIGN KEY and DROP FOREIGN KEY of ALTER TABLE.
    pub(super) async fn change_foreign_keys(
        &mut self,
        name: &TableName,
        added: &[&ast::ForeignKey],
        dropped: &[&str],
    ) -> Result<(), Failure> {
        let table = self.planner().engine_table(name)?;
        let added = added.iter().map(|key| self.foreign_key(key, &table.database));
        let added = added.collect::<Result<Vec<_>, _>>()?;
        let (engine, timeout) = (self.state.database.clone(), self.lock_wait_timeout());
        let changed = engine
            .definitions()
            .session(&self.transaction)
            .timeout(timeout)
            .change_foreign_keys(&table.database, &table.name, added, dropped)
            .await;
        Ok(changed?)
    }
}
