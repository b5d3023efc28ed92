//! Requests of which each one's own outcome counts.

use disk::{Environment, Error, Event, File, Io, IoKind, Result};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Submits the requests together, waits for all, and gives the outcome of each, in their order: how long it
/// took. Their buffers are given up by then.
pub(crate) async fn submit_each(
    env: &Arc<dyn Environment>,
    requests: Vec<(Arc<dyn File>, IoKind)>,
) -> Vec<Result<Duration>> {
    if requests.is_empty() {
        return Vec::new();
    }
    let event = Event::new();
    let abandoned = |file: &Arc<dyn File>| {
        Err(Error::new("complete a request on", file.path(), io::Error::other("the storage was shut down")))
    };
    let outcomes: Vec<Result<Duration>> = requests.iter().map(|(file, _)| abandoned(file)).collect();
    let outcomes = Arc::new(Mutex::new(outcomes));
    let last = Arc::new(SetOnDrop(event.clone()));
    let started = env.now();
    let batch = requests.into_iter().enumerate().map(|(index, (file, kind))| {
        let (last, outcomes, env) = (last.clone(), outcomes.clone(), env.clone());
        let io = Io::new(kind, move |result| {
            let result = result.map(|_| env.now().saturating_sub(started));
            outcomes.lock()[index] = result;
            drop(last);
        });
        (file, io)
    });
    let batch = batch.collect();
    drop(last);
    env.storage().submit(batch);
    event.wait().await;
    std::mem::take(&mut *outcomes.lock())
}

/// Held by every completion: the last to go, called or not, wakes the waiter.
struct SetOnDrop(Event);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}
