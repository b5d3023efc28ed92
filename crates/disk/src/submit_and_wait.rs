//! Submitting requests and waiting for them: one, all of a batch, or each with an outcome of its own.
//!
//! Every completion holds a reference to the waiter; the last to go wakes it, also when a storage that is
//! shut down drops requests instead of completing them. A request's buffer is given up before its reference,
//! so that a shared one is its owner's again when the wait is over.

use crate::{AlignedBuf, Environment, Error, Event, File, Io, IoBuf, IoKind, Result, Storage};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What one request asks, and of which file.
pub type FileRequest = (Arc<dyn File>, IoKind);

/// Submits one request and waits for it.
///
/// # Errors
/// The request's, or that the storage was shut down.
pub async fn submit_one(storage: &dyn Storage, file: &Arc<dyn File>, kind: IoKind) -> Result<IoKind> {
    let Submitted { waiter, file } = Submitted::new(storage, file, kind);
    waiter.outcome().await.unwrap_or_else(|| Err(abandoned(file.path())))
}

/// A request under way, for a thread that does something else before it waits for it.
pub struct Submitted {
    waiter: Waiter<Option<Result<IoKind>>>,
    file: Arc<dyn File>,
}

impl Submitted {
    /// Submits the request.
    fn new(storage: &dyn Storage, file: &Arc<dyn File>, kind: IoKind) -> Submitted {
        let waiter = Waiter::new(None);
        submit(storage, vec![(file.clone(), kind)], &waiter, |outcome, _, result| *outcome = Some(result));
        Submitted { waiter, file: file.clone() }
    }

    /// Submits a read of the first `len` bytes of `buf` at `offset`.
    pub fn read(
        storage: &dyn Storage,
        file: &Arc<dyn File>,
        buf: AlignedBuf,
        len: usize,
        offset: u64,
    ) -> Submitted {
        Submitted::new(storage, file, IoKind::Read { buf: IoBuf::Owned(buf, len), offset })
    }

    /// Blocks until it is over, as [`Environment::block_until`] does.
    ///
    /// # Errors
    /// The request's, or that the storage was shut down.
    pub fn wait(self, env: &dyn Environment) -> Result<IoKind> {
        env.block_until(&self.waiter.over);
        self.waiter.taken().unwrap_or_else(|| Err(abandoned(self.file.path())))
    }

    /// The same for a read, of which it gives back the buffer.
    ///
    /// # Errors
    /// Those of [`Submitted::wait`].
    pub fn wait_for_read(self, env: &dyn Environment) -> Result<AlignedBuf> {
        self.wait(env).map(read_buffer)
    }
}

/// The buffer of a read that was submitted with an owned one.
fn read_buffer(kind: IoKind) -> AlignedBuf {
    match kind {
        IoKind::Read { buf: IoBuf::Owned(buf, _), .. } => buf,
        _ => unreachable!("a storage gives back the request it was given"),
    }
}

/// Submits a batch of writes and syncs and waits for all of it.
///
/// # Errors
/// The first; the others are gone with their requests.
pub async fn submit_all(storage: &dyn Storage, batch: Vec<FileRequest>) -> Result<()> {
    let Some((first, _)) = batch.first() else { return Ok(()) };
    let path = first.path().to_path_buf();
    let waiter = Waiter::new((batch.len(), Ok(())));
    submit(storage, batch, &waiter, |(open, first), _, result| {
        *open -= 1;
        if first.is_ok() {
            *first = result.map(drop);
        }
    });
    match waiter.outcome().await {
        (open, Ok(())) if open > 0 => Err(abandoned(&path)),
        (_, first) => first,
    }
}

/// Submits requests together, waits for all, and gives the outcome of each, in their order: how long it took.
pub async fn submit_each(env: &Arc<dyn Environment>, batch: Vec<FileRequest>) -> Vec<Result<Duration>> {
    let outcomes: Vec<_> = batch.iter().map(|(file, _)| Err(abandoned(file.path()))).collect();
    let waiter = Waiter::new(outcomes);
    let (clock, started) = (env.clone(), env.now());
    submit(&**env.storage(), batch, &waiter, move |outcomes, index, result| {
        outcomes[index] = result.map(|_| clock.now().saturating_sub(started));
    });
    waiter.outcome().await
}

/// Reads `len` bytes at `offset` without blocking.
///
/// # Errors
/// Those of [`submit_one`].
pub async fn read_async(
    storage: &dyn Storage,
    file: &Arc<dyn File>,
    offset: u64,
    len: usize,
) -> Result<AlignedBuf> {
    let buf = IoBuf::owned(AlignedBuf::zeroed(len));
    submit_one(storage, file, IoKind::Read { buf, offset }).await.map(read_buffer)
}

/// Writes `buf` at `offset` without blocking, durably when `sync` is set.
///
/// # Errors
/// Those of [`submit_one`].
pub async fn write_async(
    storage: &dyn Storage,
    file: &Arc<dyn File>,
    buf: IoBuf,
    offset: u64,
    sync: bool,
) -> Result<()> {
    submit_one(storage, file, IoKind::Write { buf, offset, atomic: false, sync }).await.map(drop)
}

/// Has the file system reserve zeros for the bytes `from..to` without blocking; false, and nothing is done,
/// where it cannot (see [`File::allocate_zeros`]).
///
/// # Errors
/// Those of [`submit_one`]; no room is one of them.
pub async fn allocate_zeros_async(
    storage: &dyn Storage,
    file: &Arc<dyn File>,
    from: u64,
    to: u64,
) -> Result<bool> {
    match submit_one(storage, file, IoKind::AllocateZeros { from, to, allocated: false }).await? {
        IoKind::AllocateZeros { allocated, .. } => Ok(allocated),
        _ => unreachable!("a storage gives back the request it was given"),
    }
}

/// Makes what was written to `file` durable without blocking.
///
/// # Errors
/// Those of [`submit_one`].
pub async fn sync_async(storage: &dyn Storage, file: &Arc<dyn File>) -> Result<()> {
    submit_one(storage, file, IoKind::Sync).await.map(drop)
}

/// Who waits for a batch, and what its completions tell.
struct Waiter<T> {
    over: Event,
    outcome: Arc<Mutex<Option<T>>>,
}

impl<T> Waiter<T> {
    /// `outcome`: what stands if no completion runs.
    fn new(outcome: T) -> Waiter<T> {
        Waiter { over: Event::new(), outcome: Arc::new(Mutex::new(Some(outcome))) }
    }

    async fn outcome(self) -> T {
        self.over.wait().await;
        self.taken()
    }

    /// The outcome, once it is over.
    fn taken(self) -> T {
        match self.outcome.lock().take() {
            Some(outcome) => outcome,
            None => unreachable!("only the waiter takes the outcome"),
        }
    }
}

/// Submits the batch. Each completion calls `tell` with the outcome so far, its index and its result.
fn submit<T: Send + 'static>(
    storage: &dyn Storage,
    batch: Vec<FileRequest>,
    waiter: &Waiter<T>,
    tell: impl Fn(&mut T, usize, Result<IoKind>) + Send + Sync + 'static,
) {
    let last = Arc::new((SetOnDrop(waiter.over.clone()), tell));
    let with_completion = |(index, (file, kind)): (usize, FileRequest)| {
        let (last, outcome) = (last.clone(), waiter.outcome.clone());
        let io = Io::new(kind, move |result| {
            // A buffer that comes back and is not kept is dropped here, before `last` goes.
            if let Some(outcome) = &mut *outcome.lock() {
                last.1(outcome, index, result);
            }
            drop(last);
        });
        (file, io)
    };
    let batch: Vec<_> = batch.into_iter().enumerate().map(with_completion).collect();
    drop(last);
    if !batch.is_empty() {
        storage.submit(batch);
    }
}

struct SetOnDrop(Event);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// The error of a request that was dropped without being done.
fn abandoned(path: &Path) -> Error {
    Error::new("complete a request on", path, std::io::Error::other("the storage was shut down"))
}
