//! CREATE, ALTER and DROP VIEW, and what is shown of views.
//!
//! The definition that the catalog keeps does not depend on the session that made it: names are written out,
//! stars expanded, and the collation of literals is kept beside them ([`sql::plan::view`]).

use sql::ast::{Account, CreateView, TableName};
use sql::errors;
use sql::exec::insert::Changed;
use sql::failure::Failure;
use sql::plan::view::UsedView;
use sql::privilege::Privileges;
use sql::result::SqlError;
use untorn::view::{CheckOption, ViewAlgorithm, ViewDef};

use super::definition::check_table_name;
use super::{Outcome, Session};

impl Session {
    /// Error 1347 where a table is wanted and there is a view.
    pub(super) fn refuse_view(&self, name: &TableName) -> Result<(), SqlError> {
        match self.planner().view_named(name)? {
            Some(view) => {
                Err(errors::error(errors::WRONG_OBJECT, &[&view.database, &view.name, &"BASE TABLE"]))
            }
            None => Ok(()),
        }
    }

    /// The privileges that CREATE VIEW and ALTER VIEW take on the view itself; those on the tables below are
    /// required where its query is planned.
    pub(super) fn check_create_view(&self, create: &CreateView) -> Result<(), SqlError> {
        let database = self.planner().database_of(&create.name)?;
        let mut wanted = Privileges::CREATE_VIEW;
        if create.or_replace || create.alter {
            wanted |= Privileges::DROP;
        }
        self.state.require_on_base_table(&database, &create.name.name, wanted)?;
        create.definer.as_ref().map_or(Ok(()), |definer| self.check_definer(&self.account(definer)))
    }

    /// Who makes a view act with the rights of somebody else, by CREATE or by ALTER of theirs, must be SUPER.
    fn check_definer(&self, definer: &(String, String)) -> Result<(), SqlError> {
        let own = self.account(&Account::current());
        if *definer == own { Ok(()) } else { self.state.require_any(Privileges::SUPER) }
    }

    pub(super) async fn create_view(&mut self, create: &CreateView) -> Result<Outcome, Failure> {
        let engine = self.state.database.clone();
        let (database, name) = (self.planner().database_of(&create.name)?, create.name.name.clone());
        if engine.database(&database).is_none() {
            return Err(errors::error(errors::BAD_DB, &[&database]).into());
        }
        let old = engine.view(&database, &name);
        let is_table = engine.table(&database, &name).is_ok();
        let replaces = create.or_replace || create.alter;
        if is_table && replaces {
            return Err(errors::error(errors::WRONG_OBJECT, &[&database, &name, &"VIEW"]).into());
        }
        if (is_table || old.is_some()) && !replaces {
            let error = errors::error(errors::TABLE_EXISTS, &[&name]);
            if !create.if_not_exists {
                return Err(error.into());
            }
            self.state.note(error);
            return Ok(Outcome::Done(Changed::default()));
        }
        if create.alter && old.is_none() {
            return Err(errors::error(errors::NO_SUCH_TABLE, &[&database, &name]).into());
        }
        let definer = match (&create.definer, &old) {
            (Some(definer), _) => self.account(definer),
            (None, Some(old)) if create.alter => old.definer.clone(),
            (None, _) => self.account(&Account::current()),
        };
        // Again where the definer is known: another session may have made the view meanwhile.
        self.check_definer(&definer)?;
        if !self.state.server.accounts.exists(&definer.0, &definer.1) {
            let (user, host) = &definer;
            self.state.note(errors::error(errors::NO_SUCH_USER, &[user, host]));
        }
        let collation = self.state.settings().sql.connection_collation;
        let client_charset = self.state.system_variable("character_set_client", None)?.to_text().into_owned();
        let mut def = ViewDef {
            query: String::new(),
            columns: create.columns.clone(),
            algorithm: match (&old, create.algorithm) {
                (Some(old), ViewAlgorithm::Undefined) if create.alter => old.algorithm,
                (_, algorithm) => algorithm,
            },
            definer,
            security: match (&old, create.security) {
                (Some(old), None) if create.alter => old.security,
                (_, security) => security.unwrap_or_default(),
            },
            check_option: create.check_option,
            client_charset: String::from_utf8_lossy(&client_charset).into_owned(),
            collation,
            updatable: false,
            created_unix_s: 0,
        };
        let itself = UsedView { database: database.clone(), name: name.clone(), def: def.clone().into() };
        let said = create.clone();
        let new = self.planned(move |planner| planner.new_view(&said, &itself)).await?.into_inner();
        if !new.merges && def.algorithm == ViewAlgorithm::Merge {
            self.state.warn(errors::error(errors::VIEW_MERGE, &[]));
            def.algorithm = ViewAlgorithm::Undefined;
        }
        if !new.updatable && def.check_option != CheckOption::None {
            return Err(errors::error(errors::VIEW_NONUPD_CHECK, &[&database, &name]).into());
        }
        (def.query, def.updatable) = (new.query, new.updatable);
        let timeout = self.lock_wait_timeout();
        let definitions = engine.definitions().session(&self.transaction).timeout(timeout);
        definitions.create_view(&database, &name, def, replaces).await?;
        Ok(Outcome::Done(Changed::default()))
    }

    pub(super) async fn drop_views(
        &mut self,
        names: &[TableName],
        if_exists: bool,
    ) -> Result<Outcome, Failure> {
        let engine = self.state.database.clone();
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        let mut tables = Vec::new();
        for name in names {
            let database = self.planner().database_of(name)?;
            check_table_name(&name.name)?;
            if engine.view(&database, &name.name).is_some() {
                found.push((database, &*name.name));
            } else if engine.table(&database, &name.name).is_ok() {
                let error = errors::error(errors::WRONG_OBJECT, &[&database, &name.name, &"VIEW"]);
                if !if_exists {
                    return Err(error.into());
                }
                tables.push(error);
            } else {
                missing.push(self.shown(name)?);
            }
        }
        if !missing.is_empty() && !if_exists {
            return Err(errors::error(errors::BAD_TABLE, &[&missing.join(",")]).into());
        }
        for name in &missing {
            self.state.note(errors::error(errors::BAD_TABLE, &[name]));
        }
        tables.into_iter().for_each(|error| self.state.note(error));
        if !found.is_empty() {
            let timeout = self.lock_wait_timeout();
            let found: Vec<_> = found.iter().map(|(database, name)| (&**database, *name)).collect();
            engine.definitions().session(&self.transaction).timeout(timeout).drop_views(&found).await?;
        }
        Ok(Outcome::Done(Changed::default()))
    }
}
