//! The doublewrite files and where in them the segments lie.
//!
//! There are two sorts of files. `#ib_<page size>_<n>.dblwr` holds copies of pages, slots of one page each;
//! `#ib_<page size>_<n>.bdblwr` holds records of [page numbers](crate::numbers) only. Even numbers serve
//! checkpoint flushing, odd ones LRU flushing, so that neither waits for the other; a single file has the
//! segments of one purpose behind those of the other. All blocks are allocated beforehand, so that a batch
//! never waits for the file system's own log.

use crate::numbers::RECORD;
use crate::options::Options;
use crate::segments::{Segments, Taken};
use disk::{File, OpenHow, Result, Storage};
use page::FlushPurpose;
use std::path::Path;
use std::sync::Arc;

/// What a doublewrite file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    /// Whole pages.
    Copies,
    /// Numbers and LSNs of pages.
    Numbers,
}

impl Sort {
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Sort::Copies => ".dblwr",
            Sort::Numbers => ".bdblwr",
        }
    }

    fn segment_bytes(self, options: &Options) -> u64 {
        match self {
            Sort::Copies => (options.pages * options.page_size) as u64,
            Sort::Numbers => RECORD as u64,
        }
    }
}

/// Name of a doublewrite file.
pub(crate) fn file_name(page_size: usize, number: usize, sort: Sort) -> String {
    format!("#ib_{page_size}_{number}{}", sort.suffix())
}

/// The segments of one sort.
pub(crate) struct Area {
    checkpoint: Places,
    lru: Places,
}

struct Places {
    segments: Arc<Segments>,
    places: Vec<(Arc<dyn File>, u64)>,
}

/// A segment in use: where it is, and the duty to give it back.
pub(crate) struct Segment {
    pub(crate) file: Arc<dyn File>,
    pub(crate) offset: u64,
    taken: Taken,
}

impl Segment {
    /// The pages are durable in their places: the segment may be used again.
    pub(crate) fn give_back(self) {
        self.taken.give_back();
    }
}

impl Area {
    /// Creates the files, or uses those that are there.
    pub(crate) fn open(storage: &dyn Storage, options: &Options, sort: Sort) -> Result<Area> {
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
        let mut files = Vec::with_capacity(options.files);
        for number in 0..options.files {
            let ends = checkpoint.iter().chain(&lru).filter(|(file, _)| *file == number);
            let wanted = ends.map(|(_, offset)| offset + bytes).max().unwrap_or(0);
            let path = options.directory.join(file_name(options.page_size, number, sort));
            files.push(open_file(storage, &path, wanted, options.page_size as u64)?);
        }
        storage.sync_dir(&options.directory)?;
        let places = |wanted: Vec<(usize, u64)>| Places {
            segments: Segments::new(count),
            places: wanted.into_iter().map(|(file, offset)| (files[file].clone(), offset)).collect(),
        };
        Ok(Area { checkpoint: places(checkpoint), lru: places(lru) })
    }

    /// Waits for a free segment.
    pub(crate) async fn take(&self, purpose: FlushPurpose) -> Result<Segment> {
        let Places { segments, places } = match purpose {
            FlushPurpose::Checkpoint => &self.checkpoint,
            FlushPurpose::Lru => &self.lru,
        };
        let taken = segments.take(places[0].0.path()).await?;
        let (file, offset) = &places[taken.number];
        Ok(Segment { file: file.clone(), offset: *offset, taken })
    }
}

fn open_file(storage: &dyn Storage, path: &Path, wanted: u64, page: u64) -> Result<Arc<dyn File>> {
    let file = storage.open(path, OpenHow::CREATE)?;
    let length = file.len()? / page * page;
    if length < wanted {
        file.write_zeros(length, wanted)?;
        file.sync_data()?;
    }
    Ok(file)
}
