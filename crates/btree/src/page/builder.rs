//! Filling a page image with records in key order: bulk load, reorganisation, the halves of a split.

use pagestore::PageId;
use pagestore::page::{self as fil, NEXT, NULL_PAGE, PREVIOUS, TYPE};

use super::header::{self, HeapFields, direction};
use super::{Malformed, PageEditor, delete, directory};
use crate::definition::IndexDef;
use crate::record::{RecordRef, header as record_header};

/// A page image under construction. Records lie in key order without gaps.
#[derive(Debug, Clone, Default)]
pub struct PageBuilder {
    image: Vec<u8>,
    origins: Vec<u16>,
    heap_top: usize,
}

impl PageBuilder {
    /// Starts page `id` of `page_size` bytes, without siblings.
    pub fn fresh(page_size: usize, id: PageId, level: u16, index_id: u64) -> PageBuilder {
        let mut image = vec![0; page_size];
        image.write(fil::PAGE_NUMBER, &id.page.to_be_bytes());
        image.write(fil::SPACE_ID, &id.space.to_be_bytes());
        image.write(PREVIOUS, &NULL_PAGE.to_be_bytes());
        image.write(NEXT, &NULL_PAGE.to_be_bytes());
        image.write(TYPE, &fil::kind::INDEX.to_be_bytes());
        image.write(header::LEVEL, &level.to_be_bytes());
        image.write(header::INDEX_ID, &index_id.to_be_bytes());
        delete::make_empty(&mut image);
        PageBuilder { image, origins: Vec::new(), heap_top: header::HEAP }
    }

    /// Starts with the headers of `page` and no records.
    pub fn like(page: &[u8]) -> PageBuilder {
        let mut image = vec![0; page.len()];
        image.write(0, &page[..header::FIXED_RECORDS]);
        delete::make_empty(&mut image);
        PageBuilder { image, origins: Vec::new(), heap_top: header::HEAP }
    }

    /// Sets the siblings.
    pub fn set_siblings(&mut self, previous: u32, next: u32) {
        self.image.write(PREVIOUS, &previous.to_be_bytes());
        self.image.write(NEXT, &next.to_be_bytes());
    }

    /// Sets the level.
    pub fn set_level(&mut self, level: u16) {
        self.image.write(header::LEVEL, &level.to_be_bytes());
    }

    /// Sets PAGE_MAX_TRX_ID.
    pub fn set_max_trx_id(&mut self, trx_id: u64) {
        self.image.write(header::MAX_TRX_ID, &trx_id.to_be_bytes());
    }

    /// Records so far.
    pub fn n_recs(&self) -> usize {
        self.origins.len()
    }

    /// Bytes of records so far.
    pub fn data_size(&self) -> usize {
        self.heap_top - header::HEAP
    }

    /// Whether another record of `size` bytes fits, leaving `reserve` bytes free.
    pub fn fits(&self, size: usize, reserve: usize) -> bool {
        header::fits_empty(self.image.len(), self.n_recs() + 1, self.data_size() + size + reserve)
    }

    /// Appends a record given by all its bytes and the position of the origin in them. It must fit. Info bits
    /// and status are kept.
    pub fn append(&mut self, bytes: &[u8], extra: usize) {
        assert!(self.fits(bytes.len(), 0), "a record was appended to a full page");
        let start = self.heap_top;
        let origin = start + extra;
        self.image.write(start, bytes);
        self.image[origin - 5] &= 0xF0;
        let status = self.image[origin - 3] & 7;
        self.image.write(origin - 4, &record_header::heap_bytes(self.origins.len() as u16 + 2, status));
        self.heap_top += bytes.len();
        self.origins.push(origin as u16);
    }

    /// Appends a copy of `record`.
    pub fn append_record(&mut self, record: RecordRef<'_>) -> Result<(), Malformed> {
        let (bytes, extra) = record.raw().ok_or(Malformed("a record leaves the page"))?;
        if !self.fits(bytes.len(), 0) {
            return Err(Malformed("the records of a page are larger than the page"));
        }
        self.append(bytes, extra);
        Ok(())
    }

    /// The last record appended.
    pub fn last<'a>(&'a self, def: &'a IndexDef) -> Option<RecordRef<'a>> {
        self.origins.last().map(|origin| RecordRef::new(&self.image, usize::from(*origin), def))
    }

    /// The first record appended.
    pub fn first<'a>(&'a self, def: &'a IndexDef) -> Option<RecordRef<'a>> {
        self.origins.first().map(|origin| RecordRef::new(&self.image, usize::from(*origin), def))
    }

    /// Links the records, makes the directory and fills in the header. `sequential` says that the next insert
    /// is expected behind the last record.
    pub fn finish(&mut self, sequential: bool) -> &mut Vec<u8> {
        let mut at = header::INFIMUM;
        for origin in &self.origins {
            let origin = usize::from(*origin);
            self.image.write(at - 2, &record_header::next_bytes(at, Some(origin)));
            at = origin;
        }
        self.image.write(at - 2, &record_header::next_bytes(at, Some(header::SUPREMUM)));
        let mut n_slots = 1;
        let mut left = &self.origins[..];
        while left.len() >= usize::from(directory::OWNED_MAX) {
            let owner = usize::from(left[3]);
            directory::write_slot(&mut self.image, n_slots, owner);
            directory::write_n_owned(&mut self.image, owner, directory::OWNED_MIN);
            n_slots += 1;
            left = &left[4..];
        }
        directory::write_slot(&mut self.image, n_slots, header::SUPREMUM);
        directory::write_n_owned(&mut self.image, header::SUPREMUM, left.len() as u8 + 1);
        let last = self.origins.last().copied().unwrap_or(0);
        HeapFields {
            n_dir_slots: n_slots as u16 + 1,
            heap_top: self.heap_top as u16,
            n_heap: 0x8002 + self.origins.len() as u16,
            free: 0,
            garbage: 0,
            last_insert: if sequential { last } else { 0 },
            direction: if sequential { direction::RIGHT } else { direction::NONE },
            n_direction: 0,
            n_recs: self.origins.len() as u16,
        }
        .store(&mut self.image);
        &mut self.image
    }
}
