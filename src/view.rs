//! Views: queries with a name, which stand in the catalog beside the tables.
//!
//! This crate keeps them and does not read them: the query is text of SQL, written so that neither the
//! current database nor a mode of the session changes what it means, and SQL above expands it. A view shares
//! one space of names with the tables of its database, and its name has a metadata lock like a table's. It
//! has no file: making, replacing, dropping or renaming one is a record of the catalog and nothing else.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::Change;
use crate::database::Database;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::name_locks::{WantedName, check_table_name};
use crate::rename::NamedTable;
use crate::types::Collation;

/// `ALGORITHM`, as it was said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewAlgorithm {
    /// Nothing is wanted.
    #[default]
    Undefined,
    /// The view's query becomes part of the statement's.
    Merge,
    /// The view's rows are computed first.
    TempTable,
}

/// `SQL SECURITY`: whose privileges on the tables below count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewSecurity {
    /// Those of the account that the view names.
    #[default]
    Definer,
    /// Those of the account that uses it.
    Invoker,
}

/// `WITH CHECK OPTION`: whose conditions a row must meet that is written through the view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOption {
    /// Nobody's.
    #[default]
    None,
    /// The view's own, and those that views below check by themselves.
    Local,
    /// The view's, and those of all views below.
    Cascaded,
}

/// A view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewDef {
    /// The query.
    pub query: String,
    /// Names of its columns, where they were given; else those of the query.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// `ALGORITHM`.
    #[serde(default)]
    pub algorithm: ViewAlgorithm,
    /// The account that defines it: name and host.
    pub definer: (String, String),
    /// `SQL SECURITY`.
    #[serde(default)]
    pub security: ViewSecurity,
    /// `WITH CHECK OPTION`.
    #[serde(default)]
    pub check_option: CheckOption,
    /// Character set of the client that defined it.
    pub client_charset: String,
    /// Collation of its literals.
    pub collation: Collation,
    /// Rows may be changed through it, as far as its definition says.
    #[serde(default)]
    pub updatable: bool,
    /// When it was made.
    pub created_unix_s: u64,
}

impl Definitions<'_> {
    /// Makes a view, or replaces the one of that name.
    ///
    /// # Errors
    /// [`Error::TableExists`] for a table of that name, or a view that is not to be replaced;
    /// [`Error::NoSuchDatabase`], a timeout, a deadlock, or a catalog that cannot be written.
    pub async fn create_view(
        self,
        database: &str,
        name: &str,
        mut def: ViewDef,
        replace: bool,
    ) -> Result<()> {
        let engine = self.database;
        engine.refuse_after_close()?;
        check_table_name(name)?;
        let names = vec![WantedName::database(database, false), WantedName::table(database, name)];
        let locks = self.lock_names(names).await?;
        def.created_unix_s = engine.0.environment.unix_time().as_secs();
        let (engine, database, name) = (engine.clone(), database.to_owned(), name.to_owned());
        let worker = engine.clone();
        engine
            .run_to_the_end(async move {
                let _locks = locks;
                worker.0.catalog.change(|change| {
                    let owner = change.expect_database(&database)?;
                    if owner.tables.contains_key(&name) || !replace && owner.views.contains_key(&name) {
                        return Err(Error::TableExists(database.clone(), name.clone()));
                    }
                    change.put_view(&database, &name, Arc::new(def))
                })?;
                worker.definitions_changed();
                Ok(())
            })
            .await
    }

    /// Drops views, given as database and name: all of them or none.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::NoSuchDatabase`], a timeout, a deadlock, or a catalog that cannot be
    /// written.
    pub async fn drop_views(self, views: &[NamedTable<'_>]) -> Result<()> {
        let engine = self.database;
        engine.refuse_after_close()?;
        let names = views.iter().map(|(database, name)| WantedName::table(database, name)).collect();
        let locks = self.lock_names(names).await?;
        let views: Vec<_> =
            views.iter().map(|(database, name)| ((*database).to_owned(), (*name).to_owned())).collect();
        let worker = engine.clone();
        engine
            .run_to_the_end(async move {
                let _locks = locks;
                let drop_all = |change: &mut Change| {
                    views.iter().try_for_each(|(database, name)| change.drop_view(database, name).map(drop))
                };
                worker.0.catalog.change(drop_all)?;
                worker.definitions_changed();
                Ok(())
            })
            .await
    }
}

impl Database {
    /// The view of this name.
    pub fn view(&self, database: &str, name: &str) -> Option<Arc<ViewDef>> {
        self.0.catalog.snapshot().view(database, name).cloned()
    }

    /// The views of a database, by name.
    pub fn views(&self, database: &str) -> Vec<(String, Arc<ViewDef>)> {
        let data = self.0.catalog.snapshot();
        let views = data.databases.get(database).into_iter().flat_map(|owner| owner.views.iter());
        views.map(|(name, def)| (name.clone(), def.clone())).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::schema::{ColumnDef, TableDef};
    use crate::types::ColumnType;
    use disk::block_on;

    fn view(query: &str) -> ViewDef {
        ViewDef {
            query: query.to_owned(),
            columns: Vec::new(),
            algorithm: ViewAlgorithm::default(),
            definer: ("root".to_owned(), "localhost".to_owned()),
            security: ViewSecurity::default(),
            check_option: CheckOption::default(),
            client_charset: "utf8mb4".to_owned(),
            collation: Collation::Utf8mb4Bin,
            updatable: false,
            created_unix_s: 0,
        }
    }

    fn is_taken<T>(result: Result<T>) -> bool {
        matches!(result, Err(Error::TableExists(..)))
    }

    #[test]
    fn tables_and_views_share_their_names() {
        let place = std::env::temp_dir().join(format!("untorn-view-{}", std::process::id()));
        let open = || {
            let mut options = Options::new(&place).buffer_pool_bytes(8 << 20);
            options.redo_capacity_bytes = 8 << 20;
            block_on(Database::open(options)).unwrap()
        };
        let db = open();
        let table = || TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
        block_on(db.create_database("d", Collation::Utf8mb4Bin)).unwrap();
        block_on(db.create_table("d", "t", table())).unwrap();
        let make = |name: &str, query: &str, replace| {
            block_on(db.definitions().create_view("d", name, view(query), replace))
        };
        make("v", "select 1", false).unwrap();
        assert!(is_taken(make("v", "select 2", false)));
        assert!(is_taken(make("t", "select 2", true)));
        assert!(is_taken(block_on(db.create_table("d", "v", table()))));
        assert!(is_taken(block_on(db.create_table_if_missing("d", "v", table()))));
        assert!(is_taken(block_on(db.rename_table(("d", "t"), ("d", "v")))));
        assert!(is_taken(block_on(db.rename_table(("d", "v"), ("d", "t")))));
        let version = db.catalog_version();
        make("v", "select 3", true).unwrap();
        assert_ne!(db.catalog_version(), version, "plans must be made again");
        // Names are swapped, of a table and a view, in one statement.
        let swap = [(("d", "t"), ("d", "x")), (("d", "v"), ("d", "t")), (("d", "x"), ("d", "v"))];
        block_on(db.rename_tables(&swap)).unwrap();
        assert_eq!(db.view("d", "t").unwrap().query, "select 3");
        assert!(db.table("d", "v").is_ok() && db.table("d", "t").is_err());
        let missing = block_on(db.definitions().drop_views(&[("d", "t"), ("d", "missing")]));
        assert!(matches!(missing, Err(Error::NoSuchTable(..))), "all or none");
        block_on(db.close()).unwrap();
        drop(db);
        let db = open();
        assert_eq!(db.views("d").len(), 1);
        assert_eq!(block_on(db.drop_database("d")).unwrap(), 2);
        block_on(db.create_database("d", Collation::Utf8mb4Bin)).unwrap();
        assert!(db.views("d").is_empty());
        block_on(db.close()).unwrap();
        drop(db);
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_view_in_use_is_not_replaced() {
        let db = block_on(Database::in_memory()).unwrap();
        block_on(db.create_database("d", Collation::Utf8mb4Bin)).unwrap();
        block_on(db.definitions().create_view("d", "v", view("select 1"), false)).unwrap();
        let def = db.view("d", "v").unwrap();
        let mut t = db.begin();
        assert!(t.use_view("d", "v", &def).is_ok());
        let at_once = || db.definitions().timeout(std::time::Duration::ZERO);
        let refused = |result| matches!(result, Err(Error::MetadataLockTimeout));
        assert!(refused(block_on(at_once().drop_views(&[("d", "v")]))));
        assert!(refused(block_on(at_once().create_view("d", "v", view("select 2"), true))));
        assert!(refused(block_on(at_once().drop_database("d")).map(drop)));
        block_on(t.rollback()).unwrap();
        block_on(at_once().create_view("d", "v", view("select 2"), true)).unwrap();
        t.begin();
        assert!(t.use_view("d", "v", &def).is_err(), "it is another one now");
    }
}
