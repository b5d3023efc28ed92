//! Where a change of definitions runs once it has its locks: in a task of its own, away from clients.
//!
//! It blocks for files and syncs (the file of a large table may take long to unlink), so it runs apart from
//! the threads that serve clients and stalls none of them. And it must come to an end, done or undone, even
//! when the statement is dropped and nobody waits for it any more.

use std::future::Future;
use std::sync::Arc;

use disk::{Environment, Event, TaskFuture};
use parking_lot::Mutex;

use crate::database::Database;
use crate::error::{Error, Result};

impl Database {
    /// Runs what must not stop midway as a task of its own, which may block for files, and waits for it.
    pub(crate) async fn run_to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.run(work, |environment, task| environment.spawn_blocking("definition", task)).await
    }

    /// The same for work that may hang in a call: nobody else's work does.
    pub(crate) async fn run_apart<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.run(work, |environment, task| environment.spawn_apart("copy", task)).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
        spawn: impl FnOnce(&dyn Environment, TaskFuture),
    ) -> Result<T> {
        let event = Event::new();
        let slot = Arc::new(Mutex::new(None));
        let answer = Answer { slot: slot.clone(), event: event.clone() };
        let task = async move {
            let outcome = work.await;
            *answer.slot.lock() = Some(outcome);
            drop(answer);
        };
        spawn(&*self.0.environment, Box::pin(task));
        event.wait().await;
        let outcome = slot.lock().take();
        // The environment was shut down.
        outcome.unwrap_or(Err(Error::Closed))
    }
}

/// What a task has come to. Wakes the waiter also when the task is dropped unfinished.
struct Answer<T> {
    slot: Arc<Mutex<Option<Result<T>>>>,
    event: Event,
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let panicked = "a task of the engine panicked; standard error has the message";
            self.slot.lock().get_or_insert(Err(Error::Internal(panicked.to_owned())));
        }
        self.event.set();
    }
}
