//! TRUNCATE TABLE: a table gets new trees in a new file, which takes the place of the old one.

use std::path::Path;
use std::sync::Arc;

use pagestore::{FileIdentity, Replaced};

use crate::catalog::DdlLogEntry;
use crate::database::Database;
use crate::ddl::{is_somebody_elses, take_ids};
use crate::definitions::Definitions;
use crate::error::Result;
use crate::file_names::file_name;
use crate::foreign_key::{self, RelatedTables};
use crate::schema::ForeignKeyRefusal;
use crate::table::Table;

impl Definitions<'_> {
    /// Removes all rows of a table, at once however many there are: it gets new trees in a new file.
    /// AUTO_INCREMENT begins at 1 again.
    ///
    /// # Errors
    /// No such table, a timeout, a deadlock, a full disk: the table is as it was then.
    pub async fn truncate_table(self, database: &str, name: &str) -> Result<()> {
        let (table, lock) = self.lock_current(database, name).await?;
        if self.checks_foreign_keys() {
            // No child comes now: who makes one needs the name of its parent.
            let data = self.database.0.catalog.snapshot();
            let own = |owner: &str, child: &str| owner == database && child == name;
            if let Some(broken) = foreign_key::reference_from_outside(&data, database, name, own) {
                return Err(ForeignKeyRefusal::TruncateParent(Box::new(broken)).into());
            }
        }
        let engine = self.database.clone();
        self.database
            .run_to_the_end(async move {
                let _lock = lock;
                engine.truncate_locked(&table).await
            })
            .await
    }
}

impl Database {
    async fn truncate_locked(&self, table: &Arc<Table>) -> Result<()> {
        let mut def = table.def.clone();
        let mut fresh_path = Default::default();
        self.0.catalog.change(|change| {
            take_ids(change, &mut def);
            fresh_path = temporary_file(&table.database, def.space);
            change.begin(DdlLogEntry::Create { space: def.space, path: fresh_path.clone() })
        })?;
        let space = def.space;
        let made = async {
            self.build_table(&fresh_path, &mut def).await?;
            let fresh = self.assemble_table(&table.database, &table.name, def).await?;
            self.0.system.set_row_count(&fresh.rows, 0);
            self.replace_table(table, &fresh, &fresh_path, &RelatedTables::default()).await
        };
        if let Err(error) = made.await {
            self.give_up_file(space, &fresh_path, is_somebody_elses(&error)).await;
            return Err(error);
        }
        Ok(())
    }

    /// Puts a table with a file of its own, which is complete, in the place of another one that is locked
    /// exclusively. The change of the catalog is the moment; an error means that it has not come.
    pub(crate) async fn replace_table(
        &self,
        table: &Arc<Table>,
        fresh: &Arc<Table>,
        fresh_path: &Path,
        related: &RelatedTables,
    ) -> Result<()> {
        let (space, old_space) = (fresh.def.space, table.def.space);
        let (old_path, final_path) = (self.present_file(table), table.file());
        self.0.catalog.change(|change| {
            change.finish(|work| work.space() == Some(space) || work.space() == Some(old_space))?;
            change.begin(DdlLogEntry::Drop { space: old_space, path: old_path.clone() })?;
            let (from, to) = (fresh_path.to_owned(), final_path.clone());
            change.begin(DdlLogEntry::Replace { space, from, to, replaced: old_space, imported: false })?;
            related.put(change)?;
            change.put_table(&table.database, &table.name, Arc::new(fresh.def.clone()))
        })?;
        // Purge must not be at work on the pages when they go.
        let _purge = self.0.system.pause_purge().await;
        self.forget_table(table);
        self.publish_table(fresh);
        related.publish(self);
        self.definitions_changed();
        // It has happened, whatever becomes of the files: a start removes and renames what is left here.
        let removed = self.0.store.drop_space(old_space).await;
        if let Err(error) = &removed {
            tracing::error!("the old file of a table could not be removed: {error}");
        }
        let replaced =
            self.take_name(space, &final_path, Some(Replaced::Own(old_space))) && old_path == final_path;
        if removed.is_ok() || replaced {
            self.finish_removals(|work| work.space() == Some(old_space));
        }
        Ok(())
    }

    /// Gives a file that has a name for the time being the one its table has. `replaced` is the file
    /// that may have that name still. Whether it has it; otherwise it is settled at the next start.
    pub(crate) fn take_name(&self, space: u32, path: &Path, replaced: Option<Replaced>) -> bool {
        let file = self.0.directory.join(path);
        let storage = &**self.0.environment.storage();
        let there = FileIdentity::of(storage, &file, self.0.store.page_size());
        if !there.gives_way_to(space, replaced) {
            tracing::error!(
                "{} is another tablespace's file or cannot be read; move it away and restart: {there:?}",
                file.display()
            );
            return false;
        }
        match self.0.store.rename_space(space, &file) {
            Ok(()) => {
                self.finish_pending(|work| work.moves() && work.space() == Some(space));
                true
            }
            Err(error) => {
                tracing::error!("{} will get its final name at the next start: {error}", path.display());
                false
            }
        }
    }
}

/// The name of a file that is being made or has to make way: never a table's.
pub(crate) fn temporary_file(database: &str, space: u32) -> std::path::PathBuf {
    Path::new(&file_name(database)).join(format!("#untorn-{space}.ibd"))
}
