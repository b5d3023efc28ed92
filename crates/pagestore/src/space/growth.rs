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
//! file becomes as long as it has to be: the last megabytes are there to be used.
//!
//! A growth is a task of the store, so that nobody who stops waiting takes its outcome along.

use std::sync::Arc;

use disk::{Event, IoBuf, IoKind, Wait};

use crate::error::{Error, Interrupt};
use crate::space::registry::{Space, no_space};
use crate::store::PageStore;

/// What is under way, or has become of it.
#[derive(Default)]
pub(crate) enum Growth {
    #[default]
    Idle,
    Running(Event),
    Failed(Error),
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
        match std::mem::take(&mut *growth) {
            // For those who waited for it.
            Growth::Failed(error) if wanted == Wanted::Ahead => {
                *growth = Growth::Failed(error);
                return Ok(());
            }
            Growth::Failed(error) => return Err(error.into()),
            Growth::Running(event) if !event.is_set() => {
                *growth = Growth::Running(event.clone());
                return Err(Wait::new(event).into());
            }
            Growth::Idle | Growth::Running(_) => {}
        }
        let event = Event::new();
        *growth = Growth::Running(event.clone());
        drop(growth);
        let growing = Growing { store: self.this(), space, pages, wanted, event: event.clone(), over: false };
        self.env.spawn("file growth", Box::pin(growing.run()));
        Err(Wait::new(event).into())
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
    event: Event,
    over: bool,
}

impl Growing {
    async fn run(mut self) {
        let mut made = self.make_room().await;
        if let (Err(Error::NoSpace { .. }), Wanted::Now { least }) = (&made, self.wanted)
            && least < self.pages
        {
            self.pages = least;
            made = self.make_room().await;
        }
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
        made.map_err(|error| no_space(&self.space.path(), error))
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
        *growth = match result {
            Ok(()) => {
                self.space.has_grown(self.pages);
                Growth::Idle
            }
            Err(error) if self.wanted != Wanted::Ahead => Growth::Failed(error),
            Err(error) => {
                tracing::debug!(%error, "a tablespace file did not grow ahead of its use");
                Growth::Idle
            }
        };
        drop(growth);
        self.event.set();
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
