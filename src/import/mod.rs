//! DISCARD TABLESPACE and IMPORT TABLESPACE: a table's file taken away, and another one put in its place.
//!
//! ```text
//!   table with file ──DISCARD──▶ table without ──(t.ibd and t.cfg are copied there)── IMPORT ──▶ table with file
//! ```
//!
//! The file that is imported is somebody's: from another Untorn directory, from MariaDB, from MySQL. It is
//! never written to. [`survey`] reads it once and refuses what is damaged or not understood;
//! [`cfg_comparison`] refuses a `.cfg` file of another definition; [`plan`] finds the table's indexes in it;
//! [`rewrite`] reads it again and writes a copy whose pages are ours: a new tablespace id, so that no page of
//! an earlier file of the table, in the buffer pool, the buffer pool extension, the doublewrite files or the
//! redo log, can be taken for one of the new. Both go through the file in long stretches of direct I/O,
//! beside the buffer pool. What is left is done with the means of the engine on the open copy: delete-marked
//! records are removed, MySQL's copy of the dictionary is freed, and the table is checked as CHECK TABLE
//! does, with every entry of every index. Only then the catalog names the copy; a crash before that moment
//! leaves the table discarded and the file as it was, one after it the table whole. The copy then takes the
//! file's name.

mod cfg_comparison;
mod lob;
mod plan;
mod rewrite;
mod source;
mod survey;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use btree::{FieldDef, IndexDef, Tree};
use disk::OpenHow;
use pagestore::Replaced;

use self::plan::Plan;
use self::rewrite::{Found, Rewriter};
use self::source::Source;
use crate::catalog::DdlLogEntry;
use crate::database::Database;
use crate::ddl::{is_somebody_elses, take_ids};
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::export::cfg::Description;
use crate::foreign_key;
use crate::intermediate_file::IntermediateFile;
use crate::metadata_lock::MetadataExclusive;
use crate::retry::retry;
use crate::schema::{ForeignKeyRefusal, TableDef};
use crate::small_file::read_whole;
use crate::table::Table;
use crate::truncate::temporary_file;

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Rows of the table.
    pub rows: u64,
    /// Pages of its file.
    pub pages: u32,
    /// Delete-marked records that were removed, of all indexes.
    pub removed_records: u64,
    /// Without a `.cfg` file: where it was looked for. The definition was trusted then, and checked by the
    /// content.
    pub missing_cfg: Option<PathBuf>,
}

impl Definitions<'_> {
    /// Removes a table's file; the table stays, without rows, until a tablespace is imported. Nothing happens
    /// to a table whose tablespace is discarded already.
    ///
    /// # Errors
    /// No such table, a timeout, a deadlock, or a file that cannot be renamed: nothing is discarded then.
    /// [`Error::VirtualColumn`]: nothing could be imported afterwards.
    pub async fn discard_tablespace(self, database: &str, name: &str) -> Result<()> {
        let (table, lock) = self.lock_any(database, name).await?;
        if table.def.discarded {
            return Ok(());
        }
        table.refuse_virtual_columns()?;
        if self.checks_foreign_keys() {
            let data = self.database.0.catalog.snapshot();
            let nobody = |_: &str, _: &str| false;
            if let Some(broken) = foreign_key::reference_from_outside(&data, database, name, nobody) {
                return Err(ForeignKeyRefusal::DiscardParent(Box::new(broken)).into());
            }
        }
        let engine = self.database.clone();
        self.database
            .run_to_the_end(async move {
                let _lock = lock;
                engine.discard_locked(&table).await
            })
            .await
    }

    /// Makes the file that was copied to the place of a discarded table's file the table's tablespace:
    /// `<table>.ibd`, and beside it `<table>.cfg` if there is one. Files of this engine, of MariaDB and of
    /// MySQL are taken. For the time of the import there must be room for a second copy of the file.
    ///
    /// # Errors
    /// [`Error::TablespaceExists`], [`Error::TablespaceMissing`], [`Error::SchemaMismatch`],
    /// [`Error::ImportRefused`], [`Error::VirtualColumn`], a timeout, a deadlock, I/O errors and a full disk.
    /// The table is discarded then as before, and the file as it was.
    pub async fn import_tablespace(self, database: &str, name: &str) -> Result<ImportReport> {
        let (table, lock) = self.lock_any(database, name).await?;
        if !table.def.discarded {
            return Err(Error::TablespaceExists(database.to_owned(), name.to_owned()));
        }
        // Such a table cannot be discarded; its definition may have come from a catalog that was restored.
        table.refuse_virtual_columns()?;
        self.database.import_locked(&table, lock).await
    }
}

impl Database {
    /// The file gives up its name before the table is discarded: whatever has that name afterwards was put
    /// there to be imported, though it may be this very file.
    async fn discard_locked(&self, table: &Arc<Table>) -> Result<()> {
        let space = table.def.space;
        let (old_path, aside) = (self.present_file(table), temporary_file(&table.database, space));
        let def = TableDef { discarded: true, ..table.def.clone() };
        let fresh = self.assemble_table(&table.database, &table.name, def).await?;
        self.0.catalog.change(|change| change.set_aside(space, old_path.clone(), aside.clone()))?;
        let renamed = self.0.store.rename_space(space, &self.0.directory.join(&aside)).map_err(Error::Store);
        let discarded = renamed.and_then(|()| {
            self.0.catalog.change(|change| {
                // Whatever was still to be done with the file is not, now that it goes.
                change.discard_table(&table.database, &table.name, aside.clone())
            })
        });
        if let Err(error) = discarded {
            if !self.0.catalog.is_uncertain() {
                self.take_file_back(table, &old_path);
            }
            return Err(error);
        }
        // Purge must not be at work on the pages when they go.
        let _purge = self.0.system.pause_purge().await;
        self.forget_table(table);
        self.publish_table(&fresh);
        self.definitions_changed();
        match self.0.store.drop_space(space).await {
            Ok(()) => self.finish_removals(|work| work.space() == Some(space)),
            Err(error) => tracing::error!("{} will be removed at the next start: {error}", aside.display()),
        }
        // What an earlier import left would be taken for the description of the next file.
        let cfg = self.0.directory.join(table.file()).with_extension("cfg");
        let storage = self.0.environment.storage();
        let removed =
            storage.exists(&cfg).and_then(|there| if there { storage.remove(&cfg) } else { Ok(()) });
        if let Err(error) = removed {
            tracing::error!(
                "{} remains from the discarded tablespace; remove it by hand: {error}",
                cfg.display()
            );
        }
        Ok(())
    }

    async fn import_locked(&self, table: &Arc<Table>, lock: MetadataExclusive) -> Result<ImportReport> {
        let storage = self.0.environment.storage().clone();
        let path = self.0.directory.join(table.file());
        if !storage.exists(&path)? {
            let table = format!("{}/{}", table.database, table.name);
            return Err(Error::TablespaceMissing { table, file: path });
        }
        self.refuse_unfinished(table, &path)?;
        let page_size = self.0.store.page_size();
        let source = Source::open(&storage, &path, page_size).await?;
        let cfg_path = path.with_extension("cfg");
        let cfg = self.read_cfg(table, &cfg_path)?;
        let survey = survey::survey(&source).await?;
        let (mut def, sdi_id, fresh_path) = self.begin_copy(table, survey.sdi_root.is_some()).await?;
        let mut copy =
            IntermediateFile { database: self.clone(), space: def.space, path: fresh_path, lock: Some(lock) };
        def.born = self.0.system.birth_number().await?;
        let made = async {
            let mut plan = Plan::new(&path, &survey, def, cfg.as_ref())?;
            if let Some((root, _)) = survey.sdi_root {
                plan.sdi = Some((root, sdi_id));
                plan.roots.insert(root);
            }
            self.make_copy(table, &source, &survey, &plan, &copy.path).await
        };
        let (fresh, mut report) = match made.await {
            Ok(made) => made,
            Err(error) => {
                self.run_to_the_end(copy.give_up(is_somebody_elses(&error))).await?;
                return Err(error);
            }
        };
        report.missing_cfg = cfg.is_none().then_some(cfg_path);
        let (engine, table, replaced) = (self.clone(), table.clone(), source.space);
        self.run_to_the_end(async move {
            if let Err(error) = engine.list_copy(&table, &fresh, &copy.path, replaced) {
                copy.give_up(false).await?;
                return Err(error);
            }
            engine.publish_table(&fresh);
            engine.definitions_changed();
            // The table is there whatever becomes of the name: a start finishes what fails here.
            let _ = engine.take_name(fresh.def.space, &table.file(), Some(Replaced::Imported(replaced)));
            copy.finished();
            Ok(report)
        })
        .await
    }

    /// Makes the copy the table's file: the moment of the import is the change of the catalog.
    fn list_copy(&self, table: &Table, fresh: &Arc<Table>, fresh_path: &Path, replaced: u32) -> Result<()> {
        let space = fresh.def.space;
        self.0.catalog.change(|change| {
            change.finish(|work| work.space() == Some(space))?;
            let (from, to) = (fresh_path.to_owned(), table.file());
            change.begin(DdlLogEntry::Replace { space, from, to, replaced, imported: true })?;
            change.put_table(&table.database, &table.name, Arc::new(fresh.def.clone()))
        })
    }

    /// Refuses a file that a statement which failed midway still has to remove or replace.
    fn refuse_unfinished(&self, table: &Table, path: &Path) -> Result<()> {
        let file = table.file();
        let data = self.0.catalog.snapshot();
        let unfinished = data.pending.iter().any(|work| match work {
            DdlLogEntry::Replace { to, .. } => *to == file,
            other => other.paths().any(|path| *path == file),
        });
        if !unfinished {
            return Ok(());
        }
        let why =
            "an earlier statement has not finished its work on this file: restart the database".to_owned();
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
        cfg_comparison::compare(path, &theirs, &ours)?;
        Ok(Some(theirs))
    }

    /// Announces the copy in the catalog: should the process end, the next start removes it. Its definition
    /// has ids that nothing refers to yet; one more is for the tree of MySQL's dictionary, if there is one.
    async fn begin_copy(&self, table: &Arc<Table>, has_sdi: bool) -> Result<(TableDef, u64, PathBuf)> {
        let (engine, table) = (self.clone(), table.clone());
        self.run_to_the_end(async move {
            engine.0.catalog.change(|change| {
                let mut def = TableDef { discarded: false, ..table.def.clone() };
                take_ids(change, &mut def);
                let sdi_id = if has_sdi { change.take_index_id() } else { 0 };
                let path = temporary_file(&table.database, def.space);
                change.begin(DdlLogEntry::Create { space: def.space, path: path.clone() })?;
                Ok((def, sdi_id, path))
            })
        })
        .await
    }

    /// Makes the copy, opens it, removes what does not belong in it, and checks it.
    async fn make_copy(
        &self,
        table: &Table,
        source: &Source,
        survey: &survey::Survey,
        plan: &Plan,
        fresh_path: &Path,
    ) -> Result<(Arc<Table>, ImportReport)> {
        let storage = self.0.environment.storage().clone();
        // Pages must not be of an LSN that the log does not reach after a crash: what follows would be taken
        // for old.
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
        let structure = self.check_space(space, self.transaction().engine().slice()).await?;
        if let Some(problem) = structure.problems.first() {
            return Err(refused(problem));
        }
        let fresh = self
            .assemble_table(&table.database, &table.name, plan.def.clone())
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
