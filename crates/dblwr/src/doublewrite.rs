//! The doublewrite itself.

use crate::in_place::{Atomicity, write_in_place};
use crate::segments::Segments;
use crate::status::{Counters, Status};
use disk::{
    Environment, Error, File, FlushPurpose, IoBuf, OpenHow, PageWriteFuture, PageWriter, Result, Storage,
    WriteBatch, write_async,
};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Settings of a [`Doublewrite`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the `#ib_<page_size>_<n>.dblwr` files live: the data directory.
    pub directory: PathBuf,
    /// Bytes per page: a power of two from 4096 to 65536.
    pub page_size: usize,
    /// Pages per segment; larger batches are written in parts.
    pub batch_pages: usize,
    /// Segments for each purpose: how many batches may be under way at once.
    pub segments: usize,
}

impl Options {
    /// 128 pages per segment, the default of MySQL 8.4, and two segments for each purpose.
    pub fn new(directory: impl Into<PathBuf>, page_size: usize) -> Options {
        Options { directory: directory.into(), page_size, batch_pages: 128, segments: 2 }
    }

    fn check(&self) -> Result<()> {
        let sound = self.page_size.is_power_of_two()
            && (4096..=65536).contains(&self.page_size)
            && self.batch_pages > 0
            && self.segments > 0;
        if sound {
            return Ok(());
        }
        let text = format!(
            "page size {}, {} pages per batch, {} segments: not a doublewrite",
            self.page_size, self.batch_pages, self.segments
        );
        Err(Error::new(
            "set up the doublewrite in",
            &self.directory,
            io::Error::new(io::ErrorKind::InvalidInput, text),
        ))
    }

    fn segment_bytes(&self) -> u64 {
        (self.batch_pages * self.page_size) as u64
    }
}

/// Name of a doublewrite file.
pub(crate) fn file_name(page_size: usize, number: usize) -> String {
    format!("#ib_{page_size}_{number}.dblwr")
}

/// Writes pages through the doublewrite files.
pub struct Doublewrite {
    shared: Arc<Shared>,
}

struct Shared {
    storage: Arc<dyn Storage>,
    options: Options,
    checkpoint: Area,
    lru: Area,
    counters: Counters,
}

/// One file and its segments.
struct Area {
    file: Arc<dyn File>,
    segments: Arc<Segments>,
}

impl Doublewrite {
    /// Creates the files, or uses those that are there. Call [`recover`](crate::recover) first: batches overwrite the
    /// copies of earlier ones.
    pub fn open(env: Arc<dyn Environment>, options: Options) -> Result<Doublewrite> {
        options.check()?;
        let storage = env.storage().clone();
        let checkpoint = open_area(&*storage, &options, 0)?;
        let lru = open_area(&*storage, &options, 1)?;
        storage.sync_dir(&options.directory)?;
        let shared = Shared { storage, options, checkpoint, lru, counters: Counters::default() };
        Ok(Doublewrite { shared: Arc::new(shared) })
    }

    /// Counters.
    pub fn status(&self) -> Status {
        self.shared.counters.status()
    }
}

/// Opens one file with all its blocks allocated, so that a batch never waits for the file system's own log.
fn open_area(storage: &dyn Storage, options: &Options, number: usize) -> Result<Area> {
    let path: &Path = &options.directory.join(file_name(options.page_size, number));
    let file = storage.open(path, OpenHow::CREATE)?;
    let page = options.page_size as u64;
    let (length, wanted) = (file.len()? / page * page, options.segment_bytes() * options.segments as u64);
    if length < wanted {
        file.write_zeros(length, wanted)?;
        file.sync_data()?;
    }
    Ok(Area { file, segments: Segments::new(options.segments) })
}

impl Shared {
    /// Writes one part of a batch, at most a segment long.
    async fn write_part(&self, batch: &WriteBatch, part: Range<usize>) -> Result<()> {
        let area = match batch.purpose {
            FlushPurpose::Checkpoint => &self.checkpoint,
            FlushPurpose::Lru => &self.lru,
        };
        let segment = area.segments.take(area.file.path()).await?;
        let bytes = batch.range(part.start).start..batch.range(part.end - 1).end;
        let length = bytes.len();
        let offset = self.options.segment_bytes() * segment.number as u64;
        let copy = IoBuf::Shared(batch.images().clone(), bytes);
        write_async(&*self.storage, &area.file, copy, offset, true).await?;
        Counters::add(&self.counters.bytes, length);
        Counters::add(&self.counters.syncs, 1);
        write_in_place(&*self.storage, batch, part, Atomicity::Plain, &self.counters).await?;
        segment.give_back();
        Counters::add(&self.counters.batches, 1);
        Ok(())
    }
}

impl PageWriter for Doublewrite {
    fn write(&self, batch: WriteBatch) -> PageWriteFuture {
        let shared = self.shared.clone();
        Box::pin(async move {
            assert_eq!(batch.page_size(), shared.options.page_size, "one page size per database");
            let mut start = 0;
            while start < batch.len() {
                let end = (start + shared.options.batch_pages).min(batch.len());
                shared.write_part(&batch, start..end).await?;
                start = end;
            }
            Ok(batch)
        })
    }
}
