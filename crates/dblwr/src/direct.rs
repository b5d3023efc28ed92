//! Pages straight to their places, without doublewrite.

use crate::in_place::{Atomicity, write_in_place};
use crate::status::{Counters, Status};
use disk::{Environment, PageWriteFuture, PageWriter, Storage, WriteBatch};
use std::sync::Arc;

/// Writes pages in place and syncs, without doublewrite: for storage that never tears a page, or a user who says OFF.
pub struct DirectWriter {
    storage: Arc<dyn Storage>,
    atomicity: Atomicity,
    counters: Arc<Counters>,
}

impl DirectWriter {
    /// A writer of plain writes: a power loss may tear pages unless the storage as such never does.
    pub fn new(env: Arc<dyn Environment>) -> DirectWriter {
        DirectWriter::make(&env, Atomicity::Plain)
    }

    /// A writer of atomic writes (`RWF_ATOMIC`), one per page: for devices and file systems that were probed for it.
    pub fn atomic(env: Arc<dyn Environment>) -> DirectWriter {
        DirectWriter::make(&env, Atomicity::PerPage)
    }

    fn make(env: &Arc<dyn Environment>, atomicity: Atomicity) -> DirectWriter {
        DirectWriter { storage: env.storage().clone(), atomicity, counters: Arc::default() }
    }

    /// Counters.
    pub fn status(&self) -> Status {
        self.counters.status()
    }
}

impl PageWriter for DirectWriter {
    fn write(&self, batch: WriteBatch) -> PageWriteFuture {
        let (storage, atomicity, counters) = (self.storage.clone(), self.atomicity, self.counters.clone());
        Box::pin(async move {
            write_in_place(&*storage, &batch, 0..batch.len(), atomicity, &counters).await?;
            Counters::add(&counters.batches, 1);
            Ok(batch)
        })
    }
}
