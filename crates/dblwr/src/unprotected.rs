//! Writes pages in place, without protection against torn pages; for benchmarks and tests.

use crate::requests::{self, Cut};
use crate::status::{Counters, Status};
use crate::unsynced::UnsyncedFiles;
use disk::{Environment, File, IoKind, submit_all};
use page::{PageSyncFuture, PageWriteFuture, PageWriter, WriteBatch, WrittenBatch};
use parking_lot::Mutex;
use std::sync::Arc;

/// Writes pages in place, syncs them when it is asked to, and needs no files of its own: for benchmarks and
/// tests of what is above. A database uses [`ProtectedWriter`](crate::ProtectedWriter), also with
/// `innodb_doublewrite=OFF`.
pub struct UnprotectedWriter {
    env: Arc<dyn Environment>,
    counters: Arc<Counters>,
    unsynced: Arc<Mutex<UnsyncedFiles>>,
}

impl UnprotectedWriter {
    /// A writer of plain writes: a power loss may tear pages.
    pub fn new(env: Arc<dyn Environment>) -> UnprotectedWriter {
        UnprotectedWriter { env, counters: Arc::default(), unsynced: Arc::default() }
    }

    /// Counters.
    pub fn status(&self) -> Status {
        self.counters.status()
    }
}

impl PageWriter for UnprotectedWriter {
    fn write(&self, batch: WriteBatch) -> PageWriteFuture {
        let (env, counters, unsynced) = (self.env.clone(), self.counters.clone(), self.unsynced.clone());
        Box::pin(async move {
            let all: Vec<usize> = (0..batch.len()).collect();
            let mut files = Vec::new();
            requests::add_files(&batch, 0..batch.len(), &mut files);
            let writes = requests::in_place(&batch, &all, Cut::Merged);
            let writes = writes.into_iter().map(|write| write.request).collect();
            submit_all(&**env.storage(), writes).await?;
            unsynced.lock().add(files);
            Counters::add(&counters.pages, batch.len());
            Counters::add(&counters.batches, 1);
            Ok(WrittenBatch { batch, durable: false })
        })
    }

    fn sync_written(&self) -> PageSyncFuture {
        let env = self.env.clone();
        let syncs = self.unsynced.lock().take().into_iter().map(|file| (file, IoKind::Sync)).collect();
        Box::pin(async move { submit_all(&**env.storage(), syncs).await })
    }

    fn sync_file(&self, file: Arc<dyn File>) -> PageSyncFuture {
        let env = self.env.clone();
        Box::pin(async move { disk::sync_async(&**env.storage(), &file).await })
    }

    fn forget(&self, file: &Arc<dyn File>) {
        self.unsynced.lock().forget(file);
    }
}
