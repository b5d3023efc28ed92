//! One asynchronous request on its way, the same for the ring and for the threads: the file it keeps open,
//! the buffers it keeps alive, how much is done, whom to tell.

use crate::error::ATOMIC_WRITE;
use crate::file_io::Operation;
use crate::real::file::RealFile;
use crate::real::transfer::{Direction, advance, torn_atomic};
use crate::{Error, File, Io, IoBuf, IoDone, IoKind, Result};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A request that was checked and can be started.
pub(crate) struct Request {
    file: Arc<dyn File>,
    /// Open as long as the request is under way.
    descriptor: Option<Arc<std::fs::File>>,
    /// What a sync that is asked for covers, see
    /// [`Closable::sync_begins`](crate::real::descriptors::Closable).
    sync_begins: u64,
    pub(crate) kind: IoKind,
    done: IoDone,
    /// Bytes transferred so far.
    pub(crate) transferred: usize,
    /// Where a refusal is counted; for atomic writes only.
    refusals: Option<Arc<AtomicU64>>,
    begun: Instant,
}

impl Request {
    /// Checks a request. An impossible one is answered at once and `None` is returned. Atomic writes the
    /// kernel refuses are added to `refusals`.
    pub(crate) fn new(file: Arc<dyn File>, io: Io, refusals: &Arc<AtomicU64>) -> Option<Request> {
        let Io { kind, done } = io;
        let real = file.as_any().downcast_ref::<RealFile>();
        let checked = match real {
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, "the file belongs to another storage")),
            Some(real) => match &kind {
                IoKind::Read { buf: IoBuf::Shared(..), .. } => {
                    Err(io::Error::new(io::ErrorKind::InvalidInput, "reading into a shared buffer"))
                }
                IoKind::Sync => match real.descriptor_to_sync() {
                    Ok(Some(found)) => Ok(found),
                    Ok(None) => {
                        call(done, Ok(kind));
                        return None;
                    }
                    Err(error) => Err(error),
                },
                IoKind::AllocateZeros { from, to, .. } if from >= to => {
                    call(done, Ok(IoKind::AllocateZeros { from: *from, to: *to, allocated: true }));
                    return None;
                }
                other => {
                    let (offset, length) = other.place();
                    real.check_aligned(offset, length).and_then(|()| {
                        let begins = real.closable().map_or(0, |closable| closable.sync_begins());
                        Ok((real.descriptor()?, begins))
                    })
                }
            },
        };
        let refusals = matches!(kind, IoKind::Write { atomic: true, .. }).then(|| refusals.clone());
        let begun = Instant::now();
        let mut request =
            Request { file, descriptor: None, sync_begins: 0, kind, done, transferred: 0, refusals, begun };
        match checked {
            Ok((descriptor, begins)) => {
                (request.descriptor, request.sync_begins) = (Some(descriptor), begins);
                Some(request)
            }
            Err(error) => {
                request.fail(error);
                None
            }
        }
    }

    /// The descriptor to use.
    pub(crate) fn fd(&self) -> RawFd {
        match &self.descriptor {
            Some(file) => file.as_raw_fd(),
            None => unreachable!("a request that was refused is not started"),
        }
    }

    /// The file, which `new` checked to be from this module.
    pub(crate) fn file(&self) -> &RealFile {
        match self.file.as_any().downcast_ref::<RealFile>() {
            Some(file) => file,
            None => unreachable!("checked when the request was made"),
        }
    }

    /// Total bytes to transfer.
    pub(crate) fn length(&self) -> usize {
        self.kind.place().1
    }

    /// Notes that `count` bytes were transferred; whether that was all.
    pub(crate) fn transfer(&mut self, count: usize) -> io::Result<bool> {
        let total = self.length();
        let direction = match &self.kind {
            IoKind::Write { atomic: true, .. } if count != total => return Err(torn_atomic(count, total)),
            IoKind::Write { .. } => Direction::Write,
            _ => Direction::Read,
        };
        self.transferred = advance(self.transferred, count, total, self.file().io_alignment(), direction)?;
        Ok(self.transferred == total)
    }

    /// Notes whether zeros were allocated.
    pub(crate) fn note_allocated(&mut self, done: bool) {
        if let IoKind::AllocateZeros { allocated, .. } = &mut self.kind {
            *allocated = done;
        }
    }

    /// Counts it, and for files that may be closed what is written and synced. Before the descriptor is
    /// given back.
    fn note_end(&self, end: End) {
        if self.descriptor.is_none() {
            return;
        }
        let Some(file) = self.file.as_any().downcast_ref::<RealFile>() else { return };
        let operation = match &self.kind {
            IoKind::Read { .. } => Operation::Read,
            IoKind::Write { .. } | IoKind::AllocateZeros { .. } => Operation::Write,
            IoKind::Sync => Operation::Sync,
        };
        let length = match (&self.kind, end) {
            (IoKind::AllocateZeros { .. }, _) | (_, End::Badly) => 0,
            _ => self.length(),
        };
        file.count(operation, length, self.begun);
        let Some(closable) = file.closable() else { return };
        match (&self.kind, end) {
            (IoKind::Read { .. }, _) => {}
            (IoKind::Sync | IoKind::Write { sync: true, .. }, End::Well) => closable.synced(self.sync_begins),
            (IoKind::Write { .. }, End::SyncFailed) => {
                closable.wrote();
                closable.sync_failed();
            }
            (IoKind::Write { .. } | IoKind::AllocateZeros { .. }, _) => closable.wrote(),
            (IoKind::Sync, _) => closable.sync_failed(),
        }
        closable.tidy();
    }

    /// Tells that it is done.
    pub(crate) fn succeed(self) {
        self.note_end(End::Well);
        drop(self.descriptor);
        call(self.done, Ok(self.kind));
    }

    /// Tells that it failed.
    pub(crate) fn fail(self, error: io::Error) {
        self.note_end(End::Badly);
        let Request { file, kind, done, refusals, .. } = self;
        let error = kind.error(file.path(), error);
        count_refusal(refusals, &error);
        // The buffer is free by the time `done` runs.
        drop(kind);
        call(done, Err(error));
    }

    /// Tells that the sync after a write failed.
    pub(crate) fn fail_sync(self, error: io::Error) {
        self.note_end(End::SyncFailed);
        let Request { file, kind, done, .. } = self;
        drop(kind);
        call(done, Err(Error::new("sync", file.path(), error)));
    }

    /// Does it all on the calling thread.
    pub(crate) fn run_blocking(mut self) {
        let file = self.file.clone();
        let outcome = match &mut self.kind {
            IoKind::Read { buf, offset } => match buf.bytes_mut() {
                Some(bytes) => file.read_at(bytes, *offset),
                None => unreachable!("checked when the request was made"),
            },
            IoKind::Write { buf, offset, atomic, sync } => {
                let (offset, bytes) = (*offset, buf.bytes());
                let written = if *atomic {
                    let failed = |error| Error::at(ATOMIC_WRITE, file.path(), offset, bytes.len(), error);
                    match file.as_any().downcast_ref::<RealFile>() {
                        Some(real) => real.write_atomic(bytes, offset).map_err(failed),
                        None => unreachable!("checked when the request was made"),
                    }
                } else {
                    file.write_at(bytes, offset)
                };
                written.and_then(|()| if *sync { file.sync_data() } else { Ok(()) })
            }
            IoKind::AllocateZeros { from, to, allocated } => {
                file.allocate_zeros(*from, *to).map(|done| *allocated = done)
            }
            IoKind::Sync => file.sync_data(),
        };
        let Request { kind, done, refusals, .. } = self;
        let result = match outcome {
            Ok(()) => Ok(kind),
            Err(error) => {
                count_refusal(refusals, &error);
                drop(kind);
                Err(error)
            }
        };
        call(done, result);
    }
}

/// How a request ended.
#[derive(Clone, Copy)]
enum End {
    Well,
    Badly,
    /// Written, but not synced.
    SyncFailed,
}

fn count_refusal(refusals: Option<Arc<AtomicU64>>, error: &Error) {
    if let Some(refusals) = refusals.filter(|_| error.is_atomic_refusal()) {
        refusals.fetch_add(1, Ordering::Relaxed);
    }
}

/// Calls a completion. A panic in it must not end the thread that completes everybody's requests.
fn call(done: IoDone, result: Result<IoKind>) {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| done(result)));
    if outcome.is_err() {
        tracing::error!("the completion of an I/O request panicked");
    }
}
