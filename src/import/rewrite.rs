//! The second time through the file: every page becomes one of this directory and is written to the copy.
//!
//! | what | becomes |
//! |---|---|
//! | tablespace id: of the page, of roots' segments, of off-page references | the new one |
//! | index id | the one of the table's definition |
//! | LSN | one that is durable here: recovery applies what comes later to the page |
//! | DB_TRX_ID, DB_ROLL_PTR | 0 and "inserted": visible to all, no older version |
//! | PAGE_MAX_TRX_ID | 0: visible to all |
//! | change buffer bitmaps | zero: there is none |
//! | pages that belong to nobody | zero |
//! | tablespace flags | ROW_FORMAT=DYNAMIC, nothing else |
//! | checksum | `crc32` |
//!
//! An index page is first checked as CHECK TABLE would, and its records against the definition.

use std::collections::HashMap;
use std::sync::Arc;

use btree::page::{header, records, validate::validate};
use btree::{FieldRef, IndexDef, RecordRef, Reference};
use disk::{File, IoBuf, Storage};
use page::{NULL_PAGE, kind};
use txn::ClusteredField;

use super::lob;
use super::plan::Plan;
use super::source::{DYNAMIC, FreePages, Source};
use super::survey::Survey;
use crate::error::Result;
use crate::layout;
use crate::schema::TableDef;

const FSP_SPACE_ID: usize = page::HEADER_LEN;
const FSP_FLAGS: usize = 54;
/// First byte of the change buffer's bits in a bitmap page.
const BITMAP: usize = 94;
/// DB_TRX_ID 0, DB_ROLL_PTR with the insert bit.
const NO_HISTORY: [u8; 13] = [0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0];

/// What was found on the way.
#[derive(Default)]
pub(super) struct Found {
    /// Delete-marked leaf records of each index, by our index ids.
    pub marked: HashMap<u64, u64>,
    /// Greatest AUTO_INCREMENT value of a row.
    pub auto_increment: u64,
    /// The value that the clustered root remembers; only MariaDB's and ours do.
    pub remembered: u64,
    /// Pages that held parts of MySQL's structures and are empty now.
    pub emptied: Vec<u32>,
}

/// Rewrites the file.
pub(super) struct Rewriter<'a> {
    pub source: &'a Source,
    pub survey: &'a Survey,
    pub plan: &'a Plan,
    /// LSN of every page.
    pub lsn: u64,
    counted: Option<(usize, bool)>,
    found: Found,
}

impl<'a> Rewriter<'a> {
    pub fn new(source: &'a Source, survey: &'a Survey, plan: &'a Plan, lsn: u64) -> Rewriter<'a> {
        Rewriter {
            source,
            survey,
            plan,
            lsn,
            counted: auto_increment_field(&plan.def),
            found: Found::default(),
        }
    }

    /// Reads, rewrites and writes every page, and makes the copy durable.
    pub async fn run(mut self, storage: &Arc<dyn Storage>, copy: &Arc<dyn File>) -> Result<Found> {
        let source = self.source;
        let size = source.page_size.bytes();
        let mut free = FreePages::default();
        let mut next = 0;
        while next < source.pages {
            let count = source.stretch().min(source.pages - next);
            let mut stretch = source.read(next, count).await?;
            for (number, bytes) in (next..).zip(stretch.chunks_exact_mut(size)) {
                // Again: the file is somebody's, who may have written to it since.
                source.verify(bytes, number)?;
                free.pass(bytes, number);
                if free.contains(number, source.page_size) {
                    bytes.fill(0);
                } else if !page::is_all_zero(bytes) {
                    self.page(bytes, number)?;
                }
            }
            let offset = source.page_size.offset_of(next);
            disk::write_async(&**storage, copy, IoBuf::owned(stretch), offset, false).await?;
            next += count;
        }
        disk::sync_async(&**storage, copy).await?;
        Ok(self.found)
    }

    fn page(&mut self, bytes: &mut [u8], number: u32) -> Result<()> {
        let space = self.plan.def.space.to_be_bytes();
        match page::page_type(bytes) {
            kind::FSP_HDR => {
                let flags = DYNAMIC | self.source.page_size.flag_bits();
                bytes[FSP_SPACE_ID..FSP_SPACE_ID + 4].copy_from_slice(&space);
                bytes[FSP_FLAGS..FSP_FLAGS + 4].copy_from_slice(&flags.to_be_bytes());
                bytes[page::PREVIOUS..page::LSN].fill(0xFF);
                // Behind the descriptors: encryption, and where MySQL's copy of the dictionary is.
                let extents = bytes.len() / self.source.page_size.extent_pages() as usize;
                let end = 150 + extents * (24 + self.source.page_size.extent_pages() as usize / 4);
                let trailer = bytes.len() - page::TRAILER_LEN;
                bytes[end..trailer].fill(0);
            }
            kind::IBUF_BITMAP => {
                let trailer = bytes.len() - page::TRAILER_LEN;
                bytes[BITMAP..trailer].fill(0);
            }
            kind::INDEX => self.index_page(bytes, number)?,
            kind::SDI => self.dictionary_page(bytes, number),
            lob::FIRST | lob::INDEX | lob::DATA => {
                let used = self.survey.off_page.convert(bytes, number);
                if !used.map_err(|why| self.source.refuse(number, why))? {
                    self.found.emptied.push(number);
                    bytes[page::HEADER_LEN..].fill(0);
                    bytes[page::TYPE..page::TYPE + 2].fill(0);
                }
            }
            kind::BLOB | kind::XDES | kind::INODE | kind::ALLOCATED => {}
            // Off-page parts of MySQL's copy of the dictionary: they go with it.
            _ => bytes[page::TYPE..page::TYPE + 2].fill(0),
        }
        bytes[page::FLUSH_LSN..page::SPACE_ID].fill(0);
        bytes[page::SPACE_ID..page::HEADER_LEN].copy_from_slice(&space);
        page::seal(bytes, page::Lsn(self.lsn));
        Ok(())
    }

    /// Makes a root's segments segments of the new tablespace.
    fn segments(&self, bytes: &mut [u8], number: u32) {
        if self.plan.roots.contains(&number) {
            let space = self.plan.def.space.to_be_bytes();
            bytes[header::SEGMENT_LEAF..header::SEGMENT_LEAF + 4].copy_from_slice(&space);
            bytes[header::SEGMENT_TOP..header::SEGMENT_TOP + 4].copy_from_slice(&space);
        }
    }

    /// MySQL's copy of the dictionary becomes a tree like others, to be removed like others.
    fn dictionary_page(&self, bytes: &mut [u8], number: u32) {
        let id = self.plan.sdi.map_or(0, |(_, id)| id);
        bytes[page::TYPE..page::TYPE + 2].copy_from_slice(&kind::INDEX.to_be_bytes());
        bytes[header::INDEX_ID..header::INDEX_ID + 8].copy_from_slice(&id.to_be_bytes());
        self.segments(bytes, number);
    }

    fn index_page(&mut self, bytes: &mut [u8], number: u32) -> Result<()> {
        let id = header::index_id(bytes);
        let Some(def) = self.plan.indexes.get(&id).cloned() else {
            return Err(self
                .source
                .refuse(number, format!("it belongs to index {id}, which has no root in the file")));
        };
        let problems = validate(bytes, &def);
        if let Some(problem) = problems.first() {
            let more = problems.len() - 1;
            let why = format!("as a page of index {}: {problem} (and {more} more)", def.name);
            return Err(self.source.refuse(number, why));
        }
        if header::level(bytes) == 0 {
            self.leaf(bytes, number, &def)?;
        }
        if def.clustered && self.plan.roots.contains(&number) {
            self.found.remembered = header::max_trx_id(bytes);
        }
        bytes[header::MAX_TRX_ID..header::MAX_TRX_ID + 8].fill(0);
        bytes[header::INDEX_ID..header::INDEX_ID + 8].copy_from_slice(&def.id.to_be_bytes());
        self.segments(bytes, number);
        Ok(())
    }

    /// Checks the records of a leaf against the definition, and takes out what refers to the other server.
    fn leaf(&mut self, bytes: &mut [u8], number: u32, def: &IndexDef) -> Result<()> {
        let origins: Vec<usize> = records(bytes).map_while(std::result::Result::ok).collect();
        let mut edits: Vec<(usize, [u8; 20], usize)> = Vec::new();
        for origin in origins {
            let record = RecordRef::new(bytes, origin, def);
            if record.is_deleted() {
                *self.found.marked.entry(def.id).or_default() += 1;
            }
            for (at, field) in record.fields().enumerate() {
                let moved = self.field(record, at, field).map_err(|why| {
                    let name = &def.fields[at].name;
                    self.source
                        .refuse(number, format!("record {origin} of index {}, {name}: {why}", def.name))
                })?;
                if let Some(reference) = moved {
                    let end = record.field_offset(at) + field.inline().map_or(0, <[u8]>::len);
                    edits.push((end, reference, reference.len()));
                }
            }
            if let Some(at) = def.trx_id_field() {
                let mut fresh = [0; 20];
                fresh[..NO_HISTORY.len()].copy_from_slice(&NO_HISTORY);
                edits.push((record.field_offset(at), fresh, NO_HISTORY.len()));
            }
        }
        for (at, fresh, len) in edits {
            bytes[at..at + len].copy_from_slice(&fresh[..len]);
        }
        Ok(())
    }

    /// Checks one field; returns the reference that takes the place of its own.
    fn field(
        &mut self,
        record: RecordRef<'_>,
        at: usize,
        field: FieldRef<'_>,
    ) -> std::result::Result<Option<[u8; 20]>, String> {
        let def = &record.def().fields[at];
        match field {
            FieldRef::Null => Ok(None),
            FieldRef::Inline(value) => {
                let most = def.prefix_len.map_or(def.max_len, u32::from);
                if value.len() as u64 > u64::from(most) {
                    return Err(format!("{} bytes in a field of at most {most}", value.len()));
                }
                self.count(record, at, value);
                Ok(None)
            }
            FieldRef::External { prefix, reference } => {
                if !prefix.is_empty() {
                    return Err(
                        "a prefix of an off-page value is in the row: ROW_FORMAT=COMPACT is not supported"
                            .to_owned(),
                    );
                }
                let mut reference = Reference::read(reference);
                if !record.def().clustered || !def.has_long_length() {
                    return Err("an off-page value of a type that has none".to_owned());
                }
                if reference.page == NULL_PAGE || reference.page == 0 || reference.page >= self.source.pages {
                    return Err(format!(
                        "an off-page value at page {} of {}",
                        reference.page, self.source.pages
                    ));
                }
                reference.space = self.plan.def.space;
                Ok(Some(reference.to_bytes()))
            }
        }
    }

    /// Notes the value of the AUTO_INCREMENT column.
    fn count(&mut self, record: RecordRef<'_>, at: usize, value: &[u8]) {
        let Some((field, unsigned)) = self.counted else { return };
        if field != at || !record.def().clustered || record.is_deleted() {
            return;
        }
        let stored = value.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        let sign = 1u64.checked_shl(8 * value.len() as u32 - 1).unwrap_or(0);
        let number = match unsigned {
            true => stored,
            // The sign bit is stored inverted; what is negative does not count.
            false if stored & sign != 0 => stored ^ sign,
            false => 0,
        };
        self.found.auto_increment = self.found.auto_increment.max(number);
    }
}

/// The clustered field of the AUTO_INCREMENT column, and whether it is unsigned.
fn auto_increment_field(def: &TableDef) -> Option<(usize, bool)> {
    let column = def.auto_increment_column()?;
    let (_, unsigned) = def.columns[usize::from(column)].kind.integer()?;
    let sources = layout::clustered(def).sources;
    let field = sources.iter().position(|source| *source == ClusteredField::Column(column))?;
    Some((field, unsigned))
}
