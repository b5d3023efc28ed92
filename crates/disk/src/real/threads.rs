//! Asynchronous requests without io_uring: a few threads with blocking calls. `backend.rs` chooses between
//! the two.
//!
//! Four threads at first; one more, up to a limit, whenever a request would have to queue behind others. On
//! drop the requests that are queued are still done, then the threads end.

use crate::real::request::Request;
use crate::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

const FIRST_THREADS: usize = 4;
const MOST_THREADS: usize = 32;

/// The pool.
pub(crate) struct ThreadPool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Request>,
    idle: usize,
    stopped: bool,
}

impl ThreadPool {
    pub(crate) fn new() -> Result<ThreadPool> {
        let pool = ThreadPool { shared: Arc::default(), threads: Mutex::default() };
        for _ in 0..FIRST_THREADS {
            pool.grow().map_err(|error| Error::new("start an I/O thread of", "the engine", error))?;
        }
        Ok(pool)
    }

    fn grow(&self) -> std::io::Result<()> {
        let mut threads = self.threads.lock();
        if threads.len() >= MOST_THREADS {
            return Ok(());
        }
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name("untorn-io".into()).spawn(move || serve(&shared))?;
        threads.push(thread);
        Ok(())
    }

    pub(crate) fn submit(&self, requests: Vec<Request>) {
        let count = requests.len();
        let waiting = {
            let mut state = self.shared.state.lock();
            state.queue.extend(requests);
            state.queue.len() > state.idle
        };
        // A commit is one request: the threads that would find nothing sleep on.
        match count {
            1 => _ = self.shared.more.notify_one(),
            _ => _ = self.shared.more.notify_all(),
        }
        if waiting && let Err(error) = self.grow() {
            // The threads that exist will get there.
            tracing::debug!(%error, "no further I/O thread");
        }
    }
}

fn serve(shared: &Shared) {
    let mut state = shared.state.lock();
    loop {
        if let Some(request) = state.queue.pop_front() {
            drop(state);
            request.run_blocking();
            state = shared.state.lock();
        } else if state.stopped {
            return;
        } else {
            state.idle += 1;
            shared.more.wait(&mut state);
            state.idle -= 1;
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.state.lock().stopped = true;
        self.shared.more.notify_all();
        let me = std::thread::current().id();
        for thread in self.threads.get_mut().drain(..) {
            // A completion may drop the last reference to the storage; its own thread ends by itself.
            if thread.thread().id() != me && thread.join().is_err() {
                tracing::error!("an I/O thread had panicked");
            }
        }
    }
}
