//! FLUSH TABLES … FOR EXPORT: a table's file made whole on disk and held still while it is copied.

use std::path::PathBuf;
use std::sync::Arc;

use pagestore::{PageStore, fsp};

use crate::database::Database;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::metadata_lock::MetadataExclusive;
use crate::retry::retry;
use crate::table::Table;

/// Keeps a table's file still. Dropped (UNLOCK TABLES), the `.cfg` file is removed and work goes on.
pub struct ExportHold {
    database: Database,
    table: Arc<Table>,
    cfg: PathBuf,
    _still: Still,
    _purge: txn::PurgePause,
    _lock: MetadataExclusive,
}

/// A tablespace's file is not cut, and nobody marks it.
pub(crate) struct Still {
    store: Arc<PageStore>,
    space: u32,
}

impl Still {
    pub(crate) fn of(store: &Arc<PageStore>, space: u32) -> Still {
        store.hold_still(space, true);
        Still { store: store.clone(), space }
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        self.store.hold_still(self.space, false);
    }
}

impl Definitions<'_> {
    /// Makes a table ready to be copied: old versions are purged, every page is in the file, and a `.cfg`
    /// file that MySQL's and MariaDB's `IMPORT TABLESPACE` read lies beside it.
    ///
    /// Nobody can use the table until the hold is dropped. Copy both files before that.
    ///
    /// # Errors
    /// No such table, a timeout, a deadlock, I/O errors; [`Error::ExportRefused`] where another file has the
    /// name of the table's; [`Error::VirtualColumn`].
    pub async fn export_table(self, database: &str, name: &str) -> Result<ExportHold> {
        let engine = self.database;
        let (table, lock) = self.lock_current(database, name).await?;
        table.refuse_virtual_columns()?;
        let file = engine.present_file(&table);
        if file != table.file() {
            return Err(Error::ExportRefused { table: format!("{database}.{name}"), file });
        }
        // While another table is held nothing is purged: then delete-marked records stay in the file, as in
        // one of InnoDB's. Importing it removes them.
        engine.0.system.purge_all().await?;
        let purge = engine.0.system.pause_purge().await;
        let still = Still::of(&engine.0.store, table.def.space);
        let mut next = 0;
        engine.store_counter(&table).await?;
        if let Some(counter) = &table.auto_increment {
            counter.load(&engine.0.store).await?;
            next = counter.next(&engine.0.store);
        }
        // Servers want the size in the header and the size of the file to agree.
        let store = &engine.0.store;
        retry(|| {
            let mut mtr = store.mtr()?;
            fsp::adopt_file_size(&mut mtr, table.def.space)?;
            mtr.commit();
            Ok::<(), pagestore::Interrupt>(())
        })
        .await?;
        store.flush_space(table.def.space).await?;
        let page_size = engine.0.catalog.snapshot().page_size;
        let description = super::describe(&table.def, database, name, "untorn", next, page_size);
        let cfg = engine.0.directory.join(table.file()).with_extension("cfg");
        crate::small_file::write_atomically(
            &**engine.0.environment.storage(),
            &cfg,
            &description.to_bytes(),
        )?;
        Ok(ExportHold { database: engine.clone(), table, cfg, _still: still, _purge: purge, _lock: lock })
    }
}

impl ExportHold {
    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

impl Drop for ExportHold {
    fn drop(&mut self) {
        // A file that stays behind does no harm: the next export replaces it.
        let _ = self.database.0.environment.storage().remove(&self.cfg);
    }
}
