//! The doublewrite files and where in them the segments lie. That copies are written and synced before the
//! pages themselves is `protected.rs`.
//!
//! There are two kinds of files. `#ib_<page size>_<n>.dblwr` holds copies of pages, slots of one page each;
//! `#ib_<page size>_<n>.bdblwr` holds records of [page numbers](crate::page_number_record) only. Even numbers serve
//! checkpoint flushing, odd ones LRU flushing, so that neither waits for the other; a single file has the
//! segments of one purpose behind those of the other. All blocks are allocated beforehand, so that a batch
//! never waits for the file system's own log.
//!
//! That is 16 MiB by default, and a database that writes a few pages now and then needs hardly any of it. So
//! new files have one segment of a few pages for each purpose. The first batch that is larger, or finds it in
//! use, extends the files to full length. It holds that segment meanwhile, because the first full-size
//! segment begins at the same offset. Where the disk is full, or does not take the zeros for another reason,
//! it goes on in parts that fit: the files are cut back, since others need the room as well, and left as they
//! are for a second. Only a sync that fails makes the batch fail.

use crate::options::Options;
use crate::page_number_record::RECORD;
use crate::segments::{Segments, Taken};
use disk::{AlignedBuf, Environment, File, IoBuf, OpenHow, Result, Storage, write_async};
use page::FlushPurpose;
use parking_lot::Mutex;
use std::io::ErrorKind::{QuotaExceeded, StorageFull};
use std::sync::Arc;
use std::time::Duration;

/// What a doublewrite file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Contents {
    /// Whole pages.
    Copies,
    /// Numbers and LSNs of pages.
    Numbers,
}

impl Contents {
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Contents::Copies => ".dblwr",
            Contents::Numbers => ".bdblwr",
        }
    }

    fn segment_bytes(self, options: &Options) -> u64 {
        match self {
            Contents::Copies => (options.pages * options.page_size) as u64,
            Contents::Numbers => RECORD as u64,
        }
    }
}

/// Name of a doublewrite file.
pub(crate) fn file_name(page_size: usize, number: usize, sort: Contents) -> String {
    format!("#ib_{page_size}_{number}{}", sort.suffix())
}

/// Pages of the segment that a new file has.
const FIRST_PAGES: usize = 16;
/// How long files that could not become longer are left as they are.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The segments of one sort.
pub(crate) struct DoublewriteFiles {
    checkpoint: SegmentPlaces,
    lru: SegmentPlaces,
}

/// The segments of one purpose.
struct SegmentPlaces {
    now: Mutex<Arc<Stage>>,
    /// Once the files are as long as they shall be: where segments lie.
    all: Vec<(Arc<dyn File>, u64)>,
    segment_bytes: u64,
    pages: usize,
    /// They could not become longer; before this time it is not tried again.
    lengthen_after: Mutex<Option<Duration>>,
}

/// The segments that there are at a time.
struct Stage {
    segments: Arc<Segments>,
    places: Vec<(Arc<dyn File>, u64)>,
    /// Pages that one takes.
    pages: usize,
    /// Whether there will be more.
    first: bool,
}

/// A segment in use: where it is, and the duty to give it back.
pub(crate) struct Segment {
    pub(crate) file: Arc<dyn File>,
    pub(crate) offset: u64,
    /// Pages that it takes.
    pub(crate) pages: usize,
    taken: Taken,
}

impl Segment {
    /// The pages are durable in their places: the segment may be used again.
    pub(crate) fn give_back(self) {
        self.taken.give_back();
    }
}

impl DoublewriteFiles {
    /// Creates the files, or uses those that are there.
    pub(crate) fn open(storage: &dyn Storage, options: &Options, sort: Contents) -> Result<DoublewriteFiles> {
        let (count, bytes) = (options.segments(), sort.segment_bytes(options));
        let numbers = |first: usize| (first..options.files).step_by(2).collect::<Vec<_>>();
        let (even, odd) = (numbers(0), numbers(1));
        let single = odd.is_empty();
        let place = |index: usize, files: &[usize], base: u64| {
            (files[index % files.len()], base + (index / files.len()) as u64 * bytes)
        };
        let checkpoint: Vec<(usize, u64)> = (0..count).map(|index| place(index, &even, 0)).collect();
        let behind = if single { count as u64 * bytes } else { 0 };
        let lru_files = if single { &even } else { &odd };
        let lru: Vec<(usize, u64)> = (0..count).map(|index| place(index, lru_files, behind)).collect();
        // Records of numbers are small, and in a single file one purpose would grow over the other.
        let may_be_short = sort == Contents::Copies && !single && options.pages > FIRST_PAGES;
        let first = (FIRST_PAGES * options.page_size) as u64;
        let mut files = Vec::with_capacity(options.files);
        let mut short = Vec::with_capacity(options.files);
        let mut names_stay = options.directory_is_synced;
        for number in 0..options.files {
            let ends = checkpoint.iter().chain(&lru).filter(|(file, _)| *file == number);
            let wanted = ends.map(|(_, offset)| offset + bytes).max().unwrap_or(0);
            let path = options.directory.join(file_name(options.page_size, number, sort));
            names_stay = names_stay && storage.exists(&path)?;
            let file = storage.open(&path, OpenHow::CREATE)?;
            let is_short = may_be_short && file.len()? < wanted;
            let least = if is_short { first } else { wanted };
            prepare_file(&*file, least, options.page_size as u64)?;
            files.push(file);
            short.push(is_short);
        }
        if !names_stay {
            storage.sync_dir(&options.directory)?;
        }
        let places = |wanted: Vec<(usize, u64)>| {
            let first = wanted.iter().any(|(file, _)| short[*file]);
            let all = wanted.into_iter().map(|(file, offset)| (files[file].clone(), offset)).collect();
            SegmentPlaces::new(all, bytes, options.pages, first)
        };
        Ok(DoublewriteFiles { checkpoint: places(checkpoint), lru: places(lru) })
    }

    /// Waits for a free segment, for this many pages if possible.
    pub(crate) async fn take(
        &self,
        env: &dyn Environment,
        purpose: FlushPurpose,
        pages: usize,
    ) -> Result<Segment> {
        match purpose {
            FlushPurpose::Checkpoint => self.checkpoint.take(env, pages).await,
            FlushPurpose::Lru => self.lru.take(env, pages).await,
        }
    }
}

impl SegmentPlaces {
    fn new(all: Vec<(Arc<dyn File>, u64)>, segment_bytes: u64, pages: usize, first: bool) -> SegmentPlaces {
        let (places, now) = if first { (all[..1].to_vec(), FIRST_PAGES) } else { (all.clone(), pages) };
        let stage = Stage { segments: Segments::new(places.len()), places, pages: now, first };
        let lengthen_after = Mutex::default();
        SegmentPlaces { now: Mutex::new(Arc::new(stage)), all, segment_bytes, pages, lengthen_after }
    }

    async fn take(&self, env: &dyn Environment, pages: usize) -> Result<Segment> {
        loop {
            let stage = self.now.lock().clone();
            let wanted = if stage.segments.has_free() { pages } else { usize::MAX };
            let taken = stage.segments.take(stage.places[0].0.path()).await?;
            if !Arc::ptr_eq(&stage, &self.now.lock()) {
                taken.give_back();
                continue;
            }
            if stage.first && wanted > stage.pages && self.lengthen(env).await? {
                let segments = Segments::new(self.all.len());
                let places = self.all.clone();
                let all = Stage { segments, places, pages: self.pages, first: false };
                *self.now.lock() = Arc::new(all);
                taken.give_back();
                continue;
            }
            let (file, offset) = &stage.places[taken.number];
            return Ok(Segment { file: file.clone(), offset: *offset, pages: stage.pages, taken });
        }
    }

    /// Makes the files as long as they shall be. False when they stay as they are, because there is no room.
    ///
    /// # Errors
    /// A sync that failed for another reason.
    async fn lengthen(&self, env: &dyn Environment) -> Result<bool> {
        if self.lengthen_after.lock().is_some_and(|after| env.now() < after) {
            return Ok(false);
        }
        let lengths: Vec<Result<u64>> = self.all.iter().map(|(file, _)| file.len()).collect();
        let Err(error) = self.write_zeros(&**env.storage()).await else {
            *self.lengthen_after.lock() = None;
            return Ok(true);
        };
        if error.operation() == "sync" && !matches!(error.kind(), StorageFull | QuotaExceeded) {
            return Err(error);
        }
        for ((file, _), before) in self.all.iter().zip(lengths) {
            let cut =
                before.and_then(|before| if file.len()? > before { file.set_len(before) } else { Ok(()) });
            if let Err(error) = cut {
                tracing::debug!("{error}: a doublewrite file stays longer than it is used");
            }
        }
        if self.lengthen_after.lock().replace(env.now() + RETRY_AFTER).is_none() {
            tracing::warn!(
                "the doublewrite file {} cannot grow ({}): large batches of pages go in parts until there is room",
                error.path().display(),
                error.io()
            );
        }
        Ok(false)
    }

    /// In order, because a file ends where its last segment does.
    async fn write_zeros(&self, storage: &dyn Storage) -> Result<()> {
        let zeros = Arc::new(AlignedBuf::zeroed(self.segment_bytes as usize));
        for (file, offset) in &self.all {
            let end = offset + self.segment_bytes;
            // A write that the disk had no room for may have left a part of a page.
            let at = (file.len()? & !4095).clamp(*offset, end);
            if at < end {
                let buf = IoBuf::Shared(zeros.clone(), 0..(end - at) as usize);
                write_async(storage, file, buf, at, false).await?;
                disk::sync_async(storage, file).await?;
            }
        }
        Ok(())
    }
}

/// Makes the file at least this long, in whole pages.
fn prepare_file(file: &dyn File, wanted: u64, page: u64) -> Result<()> {
    let length = file.len()? / page * page;
    if length < wanted {
        file.write_zeros(length, wanted)?;
        file.sync_data()?;
    }
    Ok(())
}
