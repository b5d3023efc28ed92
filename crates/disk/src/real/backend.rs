//! How asynchronous requests reach the kernel: by io_uring, or by threads where it is refused.
//!
//! A kernel may lack io_uring, and containers often forbid it (seccomp). Nobody is asked then: threads do the
//! same more slowly, and the log says so. The variable `UNTORN_IO=threads` asks for threads; a program that
//! insists on a ring ([`Backend::IoUring`]) gets the kernel's error instead.

use crate::real::ring::Ring;
use crate::real::threads::ThreadPool;
use crate::{Error, Result};

/// How asynchronous requests reach the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// One io_uring ring.
    IoUring,
    /// A few threads with blocking calls.
    Threads,
}

/// What takes the requests.
pub(super) enum Engine {
    Ring(Ring),
    Threads(ThreadPool),
}

/// Starts the backend that is `wanted`, or the best that the kernel allows.
pub(super) fn start_engine(wanted: Option<Backend>) -> Result<Engine> {
    let forced = std::env::var_os("UNTORN_IO").is_some_and(|value| value == "threads");
    if wanted == Some(Backend::Threads) || (wanted.is_none() && forced) {
        tracing::info!("asynchronous I/O by threads, as asked for");
        return ThreadPool::new().map(Engine::Threads);
    }
    match Ring::new() {
        Ok(ring) => Ok(Engine::Ring(ring)),
        Err(error) if wanted == Some(Backend::IoUring) => Err(Error::new("set up", "io_uring", error)),
        Err(error) => {
            tracing::info!(%error, "io_uring is refused here; asynchronous I/O by threads");
            ThreadPool::new().map(Engine::Threads)
        }
    }
}
