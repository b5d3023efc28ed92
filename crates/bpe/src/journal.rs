//! The kept map: what was added to and dropped from the table, in order, durable enough to serve after a
//! crash.
//!
//! Records go to the *primary* stream. When it has grown far beyond what the table holds, a *rewrite* is
//! begun in the other of two files: every event goes to both, and in between the table's entries are added to
//! the rewrite one by one, each under the lock of its shard, so that for each slot the records are in the
//! order of what happened. With the last of them the rewrite is complete, is made durable, and takes the
//! place of the primary. A stream that is not complete is nothing; one that is can be read by itself.
//!
//! `covered(L)` says: every page changed before LSN L has been dropped by a record before this one, or was
//! added later. It is written and synced before the checkpoint moves to L ([`Journal::cover`]). Why that is
//! all it takes is in `docs/internals/extension.md`. Nothing else of a stream is ever synced: adds and drops
//! that a crash loses are safe to lose.
//!
//! One write is under way at a time, over both streams, so a stream on disk is always a prefix of what was
//! recorded.

use std::sync::Arc;

use disk::{Environment, Event, File, IoBuf, write_async};
use parking_lot::Mutex;

use crate::record::{self, ADD_BYTES, Identity, Record};
use crate::table::Entry;

/// A stream is rewritten when it is this much longer than what it holds would need.
const REWRITE_FACTOR: u64 = 3;
/// But not while it is shorter than this.
const REWRITE_BYTES_MIN: u64 = 1 << 20;
/// Bytes not written yet beyond which the disk does not keep up.
pub(crate) const PENDING_MAX: usize = 32 << 20;

/// A file being written.
struct Stream {
    file: Arc<dyn File>,
    /// Which of the two files.
    side: usize,
    number: u64,
    sequence: u64,
    offset: u64,
    pending: Vec<u8>,
}

impl Stream {
    fn new(file: Arc<dyn File>, side: usize, number: u64, identity: Identity) -> Stream {
        let mut stream = Stream { file, side, number, sequence: 0, offset: 0, pending: Vec::new() };
        Record::Header(identity).encode(&mut stream.pending);
        stream
    }

    /// What is to be written, as a frame and its place.
    fn cut(&mut self) -> (Arc<dyn File>, IoBuf, u64) {
        let frame = record::frame(self.number, self.sequence, &self.pending);
        let offset = self.offset;
        self.pending.clear();
        self.sequence += 1;
        self.offset += frame.len() as u64;
        (self.file.clone(), IoBuf::owned(frame), offset)
    }
}

#[derive(Default)]
struct State {
    primary: Option<Stream>,
    rewrite: Option<Stream>,
    /// Set when the write under way is over.
    writing: Option<Event>,
    /// Durable in the primary.
    covered: u64,
    /// Nothing changed before this LSN is in the table.
    asked: u64,
    run: u32,
    stopped: bool,
    bytes_written: u64,
    syncs: u64,
}

/// Which stream to write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Primary,
    Rewrite,
}

/// See the module's essay.
pub(crate) struct Journal {
    env: Arc<dyn Environment>,
    identity: Identity,
    state: Mutex<State>,
}

/// Ends the write under way, also when its future is dropped.
struct Writing<'a>(&'a Journal);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let event = self.0.state.lock().writing.take();
        if let Some(event) = event {
            event.set();
        }
    }
}

impl Journal {
    pub(crate) fn new(env: Arc<dyn Environment>, identity: Identity) -> Journal {
        Journal { env, identity, state: Mutex::default() }
    }

    /// Begins the first stream of an empty table: complete from the start.
    pub(crate) fn begin_empty(&self, file: Arc<dyn File>, side: usize) {
        let mut stream = Stream::new(file, side, self.env.random_u64(), self.identity);
        Record::Complete.encode(&mut stream.pending);
        self.state.lock().primary = Some(stream);
    }

    /// The log's run that is now, and an LSN before which nothing changed that is in the table.
    pub(crate) fn set_run(&self, run: u32, lsn: u64) {
        let mut state = self.state.lock();
        state.run = run;
        state.asked = state.asked.max(lsn);
    }

    /// Records an event.
    pub(crate) fn append(&self, record: &Record) {
        let mut state = self.state.lock();
        if state.stopped {
            return;
        }
        let state = &mut *state;
        for stream in [&mut state.primary, &mut state.rewrite].into_iter().flatten() {
            record.encode(&mut stream.pending);
        }
    }

    /// Records that the entry may be found, unless `is_dead` says under the journal's lock that its
    /// tablespace is gone.
    pub(crate) fn append_add(&self, entry: &Entry, is_dead: impl FnOnce() -> bool) {
        let mut state = self.state.lock();
        if state.stopped || is_dead() {
            return;
        }
        let state = &mut *state;
        for stream in [&mut state.primary, &mut state.rewrite].into_iter().flatten() {
            Record::Add(*entry).encode(&mut stream.pending);
        }
    }

    /// The same for the sweep of a rewrite.
    pub(crate) fn append_swept(&self, entry: &Entry, is_dead: impl FnOnce() -> bool) {
        let mut state = self.state.lock();
        if let (Some(stream), false) = (&mut state.rewrite, is_dead()) {
            Record::Add(*entry).encode(&mut stream.pending);
        }
    }

    /// Bytes recorded and not written yet.
    pub(crate) fn pending_bytes(&self) -> usize {
        let state = self.state.lock();
        let pending = |stream: &Option<Stream>| stream.as_ref().map_or(0, |stream| stream.pending.len());
        pending(&state.primary) + pending(&state.rewrite)
    }

    /// Bytes written, and syncs, since it was made.
    pub(crate) fn written(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.bytes_written, state.syncs)
    }

    /// Whether there is no stream yet, or it has grown too long for a table of that many entries; and the
    /// side of the file to rewrite it into.
    pub(crate) fn rewrite_due(&self, entries: usize, loaded_from: usize) -> Option<usize> {
        let state = self.state.lock();
        if state.stopped || state.rewrite.is_some() {
            return None;
        }
        match &state.primary {
            None => Some(1 - loaded_from),
            Some(stream) => {
                let needed = (entries * ADD_BYTES) as u64;
                let limit = REWRITE_BYTES_MIN.max(REWRITE_FACTOR * needed);
                (stream.offset > limit).then_some(1 - stream.side)
            }
        }
    }

    /// From now on every event goes to this file too.
    pub(crate) fn begin_rewrite(&self, file: Arc<dyn File>, side: usize) {
        let stream = Stream::new(file, side, self.env.random_u64(), self.identity);
        self.state.lock().rewrite = Some(stream);
    }

    /// Writes what the sweep has added so far.
    pub(crate) async fn write_rewrite(&self) -> disk::Result<()> {
        self.write(Which::Rewrite, None, false).await
    }

    /// The sweep is over: makes the rewrite complete, durable, and the primary.
    pub(crate) async fn end_rewrite(&self) -> disk::Result<()> {
        self.write(Which::Rewrite, Some(0), true).await
    }

    /// Writes what has gathered, without a sync.
    pub(crate) async fn write_pending(&self) -> disk::Result<()> {
        self.write(Which::Primary, None, false).await
    }

    /// Completes when everything dropped before this call, and that all changes before `lsn` are among it, is
    /// durable.
    pub(crate) async fn cover(&self, lsn: u64) -> disk::Result<()> {
        self.write(Which::Primary, Some(lsn), true).await
    }

    /// The same even if `lsn` is covered already, so that the newest adds are kept too.
    pub(crate) async fn close(&self, lsn: u64) -> disk::Result<()> {
        self.state.lock().covered = 0;
        self.cover(lsn).await
    }

    /// Whether there is a complete stream.
    pub(crate) fn has_primary(&self) -> bool {
        self.state.lock().primary.is_some()
    }

    /// Whether a cover of `lsn` has nothing to do. Notes the LSN.
    pub(crate) fn is_covered(&self, lsn: u64) -> bool {
        let mut state = self.state.lock();
        state.asked = state.asked.max(lsn);
        state.stopped || state.primary.is_none() || state.covered >= lsn
    }

    /// Nothing is recorded or written any more.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        (state.primary, state.rewrite) = (None, None);
    }

    /// Writes a stream's pending records; with `cover`, and a `covered` for at least that LSN behind them,
    /// durably.
    async fn write(&self, which: Which, cover: Option<u64>, sync: bool) -> disk::Result<()> {
        let (file, buf, offset, covered) = loop {
            let wait = {
                let mut state = self.state.lock();
                if let Some(lsn) = cover {
                    state.asked = state.asked.max(lsn);
                }
                match (&state.writing, Self::prepare(&state, which, cover)) {
                    (_, Prepared::Nothing) => return Ok(()),
                    (Some(event), _) => event.clone(),
                    (None, Prepared::Needed) => break Self::cut(&mut state, which, cover.is_some()),
                }
            };
            wait.wait().await;
        };
        let length = buf.len() as u64;
        let writing = Writing(self);
        let result = write_async(&**self.env.storage(), &file, buf, offset, sync).await;
        {
            let mut state = self.state.lock();
            state.bytes_written += length;
            state.syncs += u64::from(sync);
            if result.is_ok() && sync && !state.stopped {
                if which == Which::Rewrite {
                    state.primary = state.rewrite.take();
                }
                state.covered = covered;
            }
        }
        drop(writing);
        result
    }

    fn prepare(state: &State, which: Which, cover: Option<u64>) -> Prepared {
        let stream = match which {
            Which::Primary => &state.primary,
            Which::Rewrite => &state.rewrite,
        };
        let nothing = match (stream, which, cover) {
            (None, ..) => true,
            _ if state.stopped => true,
            (Some(_), Which::Primary, Some(lsn)) => state.covered >= lsn && lsn > 0,
            (Some(_), Which::Rewrite, Some(_)) => false,
            (Some(stream), _, None) => stream.pending.is_empty(),
        };
        if nothing { Prepared::Nothing } else { Prepared::Needed }
    }

    /// Takes the frame to write; called when no write is under way. Returns also what it covers.
    fn cut(state: &mut State, which: Which, covers: bool) -> (Arc<dyn File>, IoBuf, u64, u64) {
        let (covered, run) = (state.asked, state.run);
        let slot = match which {
            Which::Primary => &mut state.primary,
            Which::Rewrite => &mut state.rewrite,
        };
        let Some(stream) = slot else { unreachable!("prepared just now") };
        if covers {
            if which == Which::Rewrite {
                Record::Complete.encode(&mut stream.pending);
            }
            Record::Covered { lsn: covered, run }.encode(&mut stream.pending);
        }
        let (file, buf, offset) = stream.cut();
        state.writing = Some(Event::new());
        (file, buf, offset, covered)
    }
}

/// Whether there is something to write.
enum Prepared {
    Nothing,
    Needed,
}
