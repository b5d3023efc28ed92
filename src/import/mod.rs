//! DISCARD TABLESPACE and IMPORT TABLESPACE: a table's file taken away, and another one put in its place.
//!
//! ```text
//!   table with file ──DISCARD──▶ table without ──(t.ibd and t.cfg are copied there)── IMPORT ──▶ table with file
//! ```
//!
//! The file that is imported is somebody's: of another data directory of ours, of MariaDB, of MySQL. It is never
//! written to. [`verify`] reads it once and refuses what is damaged or not understood; [`plan`] finds the table's indexes in
//! it; [`rewrite`] reads it again and writes a copy whose pages are ours: a new tablespace id, so that no page of an
//! earlier file of the table, in the buffer pool, the clean tier, the doublewrite files or the redo log, can be taken for one
//! of the new. Both go through the file in long stretches of direct I/O, beside the buffer pool. What is left is
//! done with the means of the engine on the open copy: delete-marked records are removed, MySQL's copy of the
//! dictionary is freed, and the table is checked as CHECK TABLE does, with every entry of every index. Only then the catalog names
//! the copy; a crash before that moment leaves the table discarded and the file as it was, one after it
//! the table whole. The copy then takes the file's name.

mod lob;
mod plan;
mod rewrite;
mod source;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use btree::{FieldDef, IndexDef, Tree};
use disk::OpenHow;
use pagestore::fsp;

use self::plan::Plan;
use self::rewrite::{Found, Rewriter};
use self::source::Source;
use crate::catalog::{Pending, read_whole};
use crate::database::Database;
use crate::ddl::database_mut;
use crate::error::{Error, Result};
use crate::export::cfg::Description;
use crate::retry::retry;
use crate::schema::TableDef;
use crate::table::{Table, file_name};
use crate::transaction::Transaction;

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Rows of the table.
    pub rows: u64,
    /// Pages of its file.
    pub pages: u32,
    /// Delete-marked records that were removed, of all indexes.
    pub removed_records: u64,
    /// Without a `.cfg` file: where it was looked for. The definition was trusted then, and checked by the content.
    pub missing_cfg: Option<PathBuf>,
}

impl Database {
    /// Removes a table's file; the table stays, without rows, until a tablespace is imported. Waits until no
    /// transaction uses it, at most so long. Nothing happens to a table whose tablespace is discarded already.
    ///
    /// # Errors
    /// No such table, a timeout, or a file that cannot be removed (the table is discarded then, and the next start removes it).
    pub async fn discard_tablespace(
        &self,
        database: &str,
        name: &str,
        session: Option<&Transaction>,
        timeout: Duration,
    ) -> Result<()> {
        let (table, _lock) = self.lock_any(database, name, session, timeout).await?;
        if table.def.discarded {
            return Ok(());
        }
        let space = table.def.space;
        let def = TableDef { discarded: true, ..table.def.clone() };
        self.0.catalog.change(|data| {
            database_mut(data, database)?.tables.insert(name.to_owned(), def.clone());
            data.pending.push(Pending::Drop { space, path: table.file() });
            Ok(())
        })?;
        // Purge must not be at work on the pages when they go.
        let _purge = self.0.system.pause_purge().await;
        self.forget_table(&table);
        self.open_table_handle(database, name, def, table.metadata.clone()).await?;
        self.definitions_changed();
        self.0.store.drop_space(space).await?;
        self.finish_pending(|p| matches!(p, Pending::Drop { space: s, .. } if *s == space))?;
        // What an earlier import left would be taken for the description of the next file.
        let cfg = self.0.directory.join(table.file()).with_extension("cfg");
        let storage = self.0.environment.storage();
        if storage.exists(&cfg)? {
            storage.remove(&cfg)?;
        }
        Ok(())
    }

    /// Makes the file that was copied to the place of a discarded table's file the table's tablespace: `<table>.ibd`, and
    /// beside it `<table>.cfg` if there is one. Files of this engine, of MariaDB and of MySQL are taken. For the time of the
    /// import there must be room for a second copy of the file.
    ///
    /// # Errors
    /// [`Error::TablespaceExists`], [`Error::TablespaceMissing`], [`Error::SchemaMismatch`], [`Error::ImportRefused`], I/O
    /// errors and a full disk. The table is discarded then as before, and the file as it was.
    pub async fn import_tablespace(
        &self,
        database: &str,
        name: &str,
        session: Option<&Transaction>,
        timeout: Duration,
    ) -> Result<ImportReport> {
        let (table, _lock) = self.lock_any(database, name, session, timeout).await?;
        if !table.def.discarded {
            return Err(Error::TablespaceExists(database.to_owned(), name.to_owned()));
        }
        let storage = self.0.environment.storage().clone();
        let path = self.0.directory.join(table.file());
        if !storage.exists(&path)? {
            let table = format!("{database}/{name}");
            return Err(Error::TablespaceMissing { table, file: path });
        }
        self.refuse_unfinished(&table, &path)?;
        let page_size = self.0.store.page_size();
        let source = Source::open(&storage, &path, page_size).await?;
        let cfg_path = path.with_extension("cfg");
        let cfg = self.read_cfg(&table, &cfg_path)?;
        let survey = verify::survey(&source).await?;
        let (space, fresh_path) = self.begin_copy(&table)?;
        let def = self.with_fresh_ids(&table.def, space)?;
        let made = async {
            let mut plan = Plan::new(&path, &survey, def, cfg.as_ref())?;
            if let Some((root, _)) = survey.sdi_root {
                plan.sdi = Some((root, self.0.catalog.change(|data| Ok(data.take_index_id()))?));
                plan.roots.insert(root);
            }
            self.make_copy(&table, &source, &survey, &plan, &fresh_path).await
        };
        let (fresh, mut report) = match made.await {
            Ok(made) => made,
            Err(error) => {
                // What was made is removed again; if that fails too, the entry stays and the next start does it.
                if self.discard_file(space, &fresh_path).await.is_ok() {
                    let _ =
                        self.finish_pending(|p| matches!(p, Pending::Create { space: s, .. } if *s == space));
                }
                return Err(error);
            }
        };
        report.missing_cfg = cfg.is_none().then_some(cfg_path);
        self.take_place(&table, &fresh, &fresh_path)?;
        Ok(report)
    }

    /// Makes the copy the table's file: the moment of the import is the change of the catalog.
    fn take_place(&self, table: &Table, fresh: &Arc<Table>, fresh_path: &Path) -> Result<()> {
        let space = fresh.def.space;
        self.0.catalog.change(|data| {
            data.pending.retain(|p| !matches!(p, Pending::Create { space: s, .. } if *s == space));
            data.pending.push(Pending::Replace {
                space,
                from: fresh_path.to_owned(),
                to: table.file(),
                replaced: table.def.space,
            });
            database_mut(data, &table.database)?.tables.insert(table.name.clone(), fresh.def.clone());
            Ok(())
        })?;
        self.publish_table(fresh);
        self.definitions_changed();
        // The table is there whatever becomes of the name: a start finishes what fails here.
        let path = self.0.directory.join(table.file());
        let renamed = self.0.store.rename_space(space, &path).map_err(Error::Store);
        let finished = renamed.and_then(|()| {
            self.finish_pending(|p| matches!(p, Pending::Replace { space: s, .. } if *s == space))
        });
        if let Err(error) = finished {
            tracing::error!("the name of {} is settled at the next start: {error}", path.display());
        }
        Ok(())
    }

    /// Refuses a file that a statement which failed half-way still wants to remove or replace.
    fn refuse_unfinished(&self, table: &Table, path: &Path) -> Result<()> {
        let file = table.file();
        let data = self.0.catalog.snapshot();
        let unfinished = data.pending.iter().any(|work| match work {
            Pending::Create { path, .. } | Pending::Drop { path, .. } => *path == file,
            Pending::Replace { to, .. } | Pending::Rename { to, .. } => *to == file,
            Pending::BuildIndex { .. } => false,
        });
        if !unfinished {
            return Ok(());
        }
        let why =
            "an earlier statement has not done its work on this file: start the database again".to_owned();
        Err(Error::ImportRefused { file: path.to_owned(), why })
    }

    /// Reads the `.cfg` file if there is one and compares it with the table's definition.
    fn read_cfg(&self, table: &Table, path: &Path) -> Result<Option<Description>> {
        let storage = &**self.0.environment.storage();
        if !storage.exists(path)? {
            return Ok(None);
        }
        let theirs = Description::from_bytes(&read_whole(storage, path)?)
            .map_err(|error| Error::SchemaMismatch { file: path.to_owned(), why: error.to_string() })?;
        let page_size = self.0.store.page_size().bytes() as u32;
        let ours = crate::export::describe(&table.def, &table.database, &table.name, "", 0, page_size);
        plan::compare(path, &theirs, &ours)?;
        Ok(Some(theirs))
    }

    /// Announces the copy in the catalog: should the process end, the next start removes it.
    fn begin_copy(&self, table: &Table) -> Result<(u32, PathBuf)> {
        self.0.catalog.change(|data| {
            let space = data.take_space_id();
            let path = Path::new(&file_name(&table.database)).join(format!("#untorn-{space}.ibd"));
            data.pending.push(Pending::Create { space, path: path.clone() });
            Ok((space, path))
        })
    }

    /// The definition with ids that nothing refers to yet.
    fn with_fresh_ids(&self, def: &TableDef, space: u32) -> Result<TableDef> {
        self.0.catalog.change(|data| {
            let mut def = TableDef { id: data.take_table_id(), space, discarded: false, ..def.clone() };
            if let Some((id, _)) = &mut def.hidden_clustered {
                *id = data.take_index_id();
            }
            for key in &mut def.keys {
                key.id = data.take_index_id();
            }
            Ok(def)
        })
    }

    /// Makes the copy, opens it, removes what does not belong in it, and checks it.
    async fn make_copy(
        &self,
        table: &Table,
        source: &Source,
        survey: &verify::Survey,
        plan: &Plan,
        fresh_path: &Path,
    ) -> Result<(Arc<Table>, ImportReport)> {
        let storage = self.0.environment.storage().clone();
        // Pages must not be of an LSN that the log does not reach after a crash: what follows would be taken for old.
        let lsn = self.0.redo.current();
        self.make_durable().await?;
        let copy_path = self.0.directory.join(fresh_path);
        let copy = storage.open(&copy_path, OpenHow::CREATE_NEW)?;
        let found = Rewriter::new(source, survey, plan, lsn.0).run(&storage, &copy).await?;
        drop(copy);
        storage.sync_dir(copy_path.parent().unwrap_or(&self.0.directory))?;
        let space = plan.def.space;
        self.0.store.open_space(space, &copy_path)?;
        let refused =
            |problem: &str| Error::ImportRefused { file: source.path().to_owned(), why: problem.to_owned() };
        let structure = retry(|| fsp::check(&self.0.store, space)).await?;
        if let Some(problem) = structure.problems.first() {
            return Err(refused(problem));
        }
        let fresh = self
            .assemble_table(&table.database, &table.name, plan.def.clone(), table.metadata.clone())
            .await
            .map_err(|error| refused(&error.to_string()))?;
        let removed_records = self.clean_up(&fresh, source, plan, &found).await?;
        let checked = self.check_quiet_table(&fresh, None).await?;
        if let Some(problem) = checked.problems.first() {
            return Err(refused(problem));
        }
        self.0.store.flush_space(space).await?;
        let report =
            ImportReport { rows: checked.rows, pages: checked.pages, removed_records, missing_cfg: None };
        Ok((fresh, report))
    }

    /// Removes delete-marked records and MySQL's copy of the dictionary, and sets the counter.
    async fn clean_up(&self, fresh: &Table, source: &Source, plan: &Plan, found: &Found) -> Result<u64> {
        if let Some((root, id)) = plan.sdi {
            let fields = vec![
                FieldDef::fixed("id", 12),
                FieldDef::fixed("DB_TRX_ID", 6),
                FieldDef::fixed("DB_ROLL_PTR", 7),
            ];
            let def = Arc::new(IndexDef::new(id, "SDI", true, true, fields, 1, 1));
            let tree = retry(|| Tree::open(&self.0.store, plan.def.space, root, def.clone())).await?;
            self.destroy_tree(&tree).await?;
        }
        let mut removed = 0;
        let trees = std::iter::once(&fresh.rows.clustered)
            .chain(fresh.rows.secondaries.iter().map(|secondary| &secondary.tree));
        for tree in trees {
            if found.marked.contains_key(&tree.def().id) {
                removed += self.0.system.remove_marked_records(tree).await?;
            }
        }
        for page in &found.emptied {
            retry(|| fresh.rows.clustered.free_leaf_segment_page(*page)).await?;
        }
        if let Some(counter) = &fresh.auto_increment {
            // MySQL keeps something else in that place of a root.
            let remembered = if source.is_mysql { 0 } else { found.remembered };
            let last = found.auto_increment.max(plan.auto_increment).max(remembered);
            counter.used(&self.0.store, last).await?;
            counter.store_exact(&self.0.store).await?;
        }
        Ok(removed)
    }
}
