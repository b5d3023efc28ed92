//! How a tablespace file grows.
//!
//! By zeros, which the file system reserves blocks for or which are written, synced before the new size is
//! published, so that no page beyond the durable end of a file is ever used: recovery finds every page its
//! log speaks of (or extends the file itself), and a page write in place needs no room. All zeros of a growth
//! are written at once, then one sync settles them.
//!
//! **A write that fails** concerns nobody but those who wait for the room: the new size is not published, and
//! what was written lies beyond the end of everything that is used. **A sync that fails** stops all changes.
//! It is a sync of the whole file, whose pages may have been written and not synced yet, and it may have been
//! told of their loss: nobody else would be, because the next sync of the file has nothing left to complain
//! about, and the checkpoint would move past changes that are in no file.
//!
//! Files grow in steps that are larger than what is wanted now. Where the disk has no room for a step, the
//! file becomes as long as it has to be: the last megabytes are there to be used. A file system may leave a
//! file the part of a step that it found room for. That part is cut off again, or a file would keep what it
//! does not use and others need. **Ahead of its use** no file grows for a while after a failure: on a full
//! disk each structure change would take for a moment what somebody else has just freed.
//!
//! A growth is a task of the store, so that nobody who stops waiting takes its outcome along. **Its failure**
//! is for those who wait for it, and only where they want as much as there was no room for: a rollback that
//! needs eight pages does not fail because an insert wanted sixteen. Who waits is known by the place in the
//! queue that is inside each [`Wait`]. When nobody waits any more (a statement that was killed), the failure
//! is for nobody, and who comes later finds out how full the disk is then.

use std::sync::Arc;
use std::time::Duration;

use disk::{Event, IoBuf, IoKind, Wait};

use crate::error::{Error, Interrupt};
use crate::space::registry::{Space, no_space};
use crate::store::PageStore;

/// How long after a failure no file is made longer ahead of its use, unless somebody's growth succeeds.
const NOT_AHEAD_FOR: Duration = Duration::from_secs(5);

/// The growth of one file.
#[derive(Default)]
pub(crate) struct Growth {
    state: State,
    /// Before this time (of the environment) it does not grow ahead of its use.
    not_ahead_before: Duration,
}

/// What is under way, or has become of it.
#[derive(Default)]
enum State {
    #[default]
    Idle,
    Running(Queue),
    Failed(Failure),
}

/// Those who wait for what is under way. Clones are the same queue.
#[derive(Clone)]
struct Queue {
    over: Event,
    /// Everybody's place: each wait has a clone, and so has each clone of the queue.
    place: Arc<()>,
}

/// A growth that failed.
struct Failure {
    error: Error,
    /// How long the file would have had to be.
    least: u32,
    queue: Queue,
    /// For this many of them.
    left: usize,
}

impl Queue {
    fn new() -> Queue {
        Queue { over: Event::new(), place: Arc::new(()) }
    }

    fn wait(&self) -> Interrupt {
        Wait::in_place(self.over.clone(), self.place.clone()).into()
    }
}

impl Failure {
    /// Whether somebody still waits for it, of whom this may be one.
    fn concerns(&self, wanted: Wanted) -> bool {
        let Wanted::Now { least } = wanted else { return false };
        least >= self.least && self.is_awaited()
    }

    fn is_awaited(&self) -> bool {
        Arc::strong_count(&self.queue.place) > 1
    }
}

impl Growth {
    /// Marks something else as under way that nobody may make the file longer meanwhile. The event is set
    /// after [`Growth::end_other`]. None while a growth is under way.
    pub(crate) fn begin_other(&mut self) -> Option<Event> {
        if self.running().is_some() {
            return None;
        }
        let queue = Queue::new();
        let over = queue.over.clone();
        self.state = State::Running(queue);
        Some(over)
    }

    /// The end of [`Growth::begin_other`].
    pub(crate) fn end_other(&mut self) {
        self.state = State::Idle;
    }

    fn running(&self) -> Option<&Queue> {
        match &self.state {
            State::Running(queue) if !queue.over.is_set() => Some(queue),
            _ => None,
        }
    }

    /// The failure of the growth that the caller has waited for.
    fn failure_for(&mut self, wanted: Wanted) -> Option<Error> {
        let State::Failed(failure) = &mut self.state else { return None };
        if !failure.concerns(wanted) {
            return None;
        }
        failure.left -= 1;
        let (error, left) = (failure.error.clone(), failure.left);
        if left == 0 {
            self.state = State::Idle;
        }
        Some(error)
    }
}

impl PageStore {
    /// Makes the file at least `pages` long, in zeros that are synced before the new size is visible.
    ///
    /// # Errors
    /// [`Interrupt::Wait`] while that is being done; [`Error::NoSpace`] when the file system is full.
    pub fn extend_space(&self, space: u32, pages: u32) -> Result<(), Interrupt> {
        self.extend_space_at_least(space, pages, pages)
    }

    /// As [`PageStore::extend_space`], but where there is no room for that, at least `least` pages long. Once
    /// this is done the file has one of the two lengths, or more.
    pub(crate) fn extend_space_at_least(&self, space: u32, pages: u32, least: u32) -> Result<(), Interrupt> {
        self.extend(space, pages, Wanted::Now { least })
    }

    /// Begins to make the tablespace's file longer than is needed now. Whether there is room does not matter
    /// yet.
    pub(crate) fn extend_space_ahead(&self, space: u32, pages: u32) {
        drop(self.extend(space, pages, Wanted::Ahead));
    }

    fn extend(&self, space: u32, pages: u32, wanted: Wanted) -> Result<(), Interrupt> {
        let space = self.open_space_of(space)?;
        let mut growth = space.growth.lock();
        if space.pages() >= pages {
            return Ok(());
        }
        self.refuse_when_poisoned()?;
        if let Some(queue) = growth.running() {
            return Err(queue.wait());
        }
        if wanted == Wanted::Ahead && self.env.now() < growth.not_ahead_before {
            return Ok(());
        }
        if let Some(error) = growth.failure_for(wanted) {
            return Err(error.into());
        }
        if wanted == Wanted::Ahead && matches!(&growth.state, State::Failed(failure) if failure.is_awaited())
        {
            // For those who waited for it.
            return Ok(());
        }
        let queue = Queue::new();
        growth.state = State::Running(queue.clone());
        drop(growth);
        let wait = queue.wait();
        let growing = Growing { store: self.this(), space, pages, wanted, queue, over: false };
        self.env.spawn("file growth", Box::pin(growing.run()));
        Err(wait)
    }
}

/// What a growth is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Nobody waits for it.
    Ahead,
    /// Somebody waits for it, is told when it fails, and can do with this number of pages.
    Now { least: u32 },
}

/// One growth under way.
struct Growing {
    store: Arc<PageStore>,
    space: Arc<Space>,
    pages: u32,
    wanted: Wanted,
    queue: Queue,
    over: bool,
}

impl Growing {
    async fn run(mut self) {
        let mut made = self.make_room().await;
        let in_full = made.is_ok();
        if let (Err(Error::NoSpace { .. }), Wanted::Now { least }) = (&made, self.wanted)
            && least < self.pages
        {
            self.pages = least;
            made = self.make_room().await;
        }
        self.space.growth.lock().not_ahead_before =
            if in_full { Duration::ZERO } else { self.store.env.now() + NOT_AHEAD_FOR };
        if let Err(error) = made {
            return self.end(Err(error));
        }
        if let Err(error) = self.store.writer.sync_file(self.space.file().clone()).await {
            self.store.poison(&format!("syncing pages failed: {error}"));
            return self.end(Err(error.into()));
        }
        self.end(Ok(()));
    }

    /// Makes the file longer, by zeros.
    async fn make_room(&self) -> Result<(), Error> {
        let storage = self.store.env.storage();
        let page_size = self.store.page_size;
        let (from, to) = (page_size.offset_of(self.space.pages()), page_size.offset_of(self.pages));
        // New pages are written soon: zeros would be written for nothing.
        let made = match disk::allocate_zeros_async(&**storage, self.space.file(), from, to).await {
            Ok(false) => disk::submit_all(&**storage, self.zeros(from, to)).await.map(drop),
            allocated => allocated.map(drop),
        };
        made.map_err(|error| {
            let error = no_space(&self.space.path(), error);
            if matches!(error, Error::NoSpace { .. }) {
                self.give_back(from);
            }
            error
        })
    }

    /// Cuts off what there was room for. Nobody has used it: the growth is still marked as under way. Done
    /// here and not by a task that may block, which somebody who blocks for this growth could keep from
    /// running; it is a little metadata.
    fn give_back(&self, len: u64) {
        if let Err(error) = self.space.file().set_len(len) {
            let file = self.space.path();
            tracing::warn!(%error, "{} keeps room that it does not use", file.display());
        }
    }

    /// The requests that write them.
    fn zeros(&self, from: u64, end: u64) -> Vec<(Arc<dyn disk::File>, IoKind)> {
        let zeros = self.store.spaces.zeros();
        let mut offset = from;
        let mut requests = Vec::new();
        while offset < end {
            let len = (end - offset).min(zeros.len() as u64) as usize;
            let buf = IoBuf::Shared(zeros.clone(), 0..len);
            let kind = IoKind::Write { buf, offset, atomic: false, sync: false };
            requests.push((self.space.file().clone(), kind));
            offset += len as u64;
        }
        requests
    }

    fn end(&mut self, result: Result<(), Error>) {
        self.over = true;
        let mut growth = self.space.growth.lock();
        growth.state = match (result, self.wanted) {
            (Ok(()), _) => {
                self.space.has_grown(self.pages);
                State::Idle
            }
            (Err(error), Wanted::Now { least }) => {
                // But for this clone and the one in the growth.
                let left = Arc::strong_count(&self.queue.place).saturating_sub(2);
                if left > 0 {
                    State::Failed(Failure { error, least, queue: self.queue.clone(), left })
                } else {
                    State::Idle
                }
            }
            (Err(error), Wanted::Ahead) => {
                tracing::debug!(%error, "a tablespace file did not grow ahead of its use");
                State::Idle
            }
        };
        drop(growth);
        self.queue.over.set();
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        // Shut down in the middle: what the sync would have said is not known.
        self.store.poison("the growth of a tablespace file did not come to its end");
        let why = "the storage was shut down meanwhile".into();
        self.end(Err(Error::NoSpace { file: self.space.path(), why }));
    }
}
