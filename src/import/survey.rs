//! The first time through the file: is every page whole and of a kind that is understood, and where are the
//! indexes?
//!
//! Nothing is written yet, so whatever is refused here leaves no trace. Pages that the descriptors call free
//! are only checked for damage: nobody looks at what is on them.

use std::collections::BTreeMap;

use btree::page::header;
use page::{NULL_PAGE, kind};

use super::lob::{self, OffPage};
use super::source::{FreePages, Source};
use crate::error::Result;

/// Page types of InnoDB that only matter here.
const INSTANT_OR_SDI_BLOB: u16 = 18;
const SDI_ZBLOB: u16 = 19;

/// What a file holds.
#[derive(Default)]
pub(super) struct Survey {
    /// Root page and its level of each index, by the file's index ids.
    pub roots: BTreeMap<u64, (u32, u16)>,
    /// Root page and level of MySQL's copy of the dictionary.
    pub sdi_root: Option<(u32, u16)>,
    /// MySQL's off-page values.
    pub off_page: OffPage,
}

/// Reads the whole file.
pub(super) async fn survey(source: &Source) -> Result<Survey> {
    let mut survey = Survey::default();
    let mut free = FreePages::default();
    let size = source.page_size.bytes();
    let mut next = 0;
    while next < source.pages {
        let count = source.stretch().min(source.pages - next);
        let stretch = source.read(next, count).await?;
        for (number, bytes) in (next..).zip(stretch.chunks_exact(size)) {
            source.verify(bytes, number)?;
            free.pass(bytes, number);
            if !free.contains(number, source.page_size) && !page::is_all_zero(bytes) {
                survey.page(source, bytes, number)?;
            }
        }
        next += count;
    }
    survey.off_page.link().map_err(|(number, why)| source.refuse(number, why))?;
    Ok(survey)
}

impl Survey {
    fn page(&mut self, source: &Source, bytes: &[u8], number: u32) -> Result<()> {
        let kind = page::page_type(bytes);
        let described = number as usize % bytes.len();
        let expected = match described {
            0 if number == 0 => Some(kind::FSP_HDR),
            0 => Some(kind::XDES),
            1 => Some(kind::IBUF_BITMAP),
            _ => None,
        };
        let structure = [kind::FSP_HDR, kind::XDES, kind::IBUF_BITMAP];
        if expected.is_some_and(|expected| expected != kind)
            || expected.is_none() && structure.contains(&kind)
        {
            return Err(source.refuse(number, format!("its type {kind} does not belong there")));
        }
        match kind {
            kind::FSP_HDR | kind::XDES | kind::IBUF_BITMAP | kind::INODE | kind::ALLOCATED | kind::BLOB => Ok(()),
            kind::INDEX => self.index_page(source, bytes, number),
            kind::SDI if source.is_mysql => {
                let level = header::level(bytes);
                if is_alone(bytes) && self.sdi_root.is_none_or(|(_, highest)| level > highest) {
                    self.sdi_root = Some((number, level));
                }
                Ok(())
            }
            INSTANT_OR_SDI_BLOB | SDI_ZBLOB if source.is_mysql => Ok(()),
            INSTANT_OR_SDI_BLOB => Err(source.refuse(
                number,
                "columns were added or dropped instantly: rebuild the table there (ALTER TABLE … FORCE) before exporting it",
            )),
            lob::FIRST | lob::INDEX | lob::DATA if source.is_mysql && bytes.len() == lob::PAGE_BYTES => {
                self.off_page.note(bytes, number, kind);
                Ok(())
            }
            kind::RTREE => Err(source.refuse(number, "spatial indexes are not supported")),
            other => Err(source.refuse(number, format!("pages of type {other} are not supported"))),
        }
    }

    /// The root is the page without neighbours on the highest level; a level below may have just one page
    /// too.
    fn index_page(&mut self, source: &Source, bytes: &[u8], number: u32) -> Result<()> {
        if !header::is_compact(bytes) {
            return Err(
                source.refuse(number, "ROW_FORMAT=REDUNDANT is not supported; rebuild the table as DYNAMIC")
            );
        }
        if is_alone(bytes) {
            let (id, level) = (header::index_id(bytes), header::level(bytes));
            let root = self.roots.entry(id).or_insert((number, level));
            if level > root.1 {
                *root = (number, level);
            }
        }
        Ok(())
    }
}

fn is_alone(bytes: &[u8]) -> bool {
    page::previous(bytes) == NULL_PAGE && page::next(bytes) == NULL_PAGE
}
