//! Off-page values of MySQL 8.0 and later, made into chains that every server reads.
//!
//! ```text
//!   first page (type 24): index entries | data        index page (22): more entries        data page (23): data
//!   chain (type 10):      bytes on this page | next page | data
//! ```
//!
//! MySQL keeps a list of index entries, one per page with data, in the order of the value; old versions of a
//! page hang off its entry. A data page holds less than a page of a chain, so every page with data becomes a
//! page of the chain in its place, linked as the list says. Pages that held only entries or old versions are
//! left empty.

use std::collections::HashMap;

use page::NULL_PAGE;

/// Page types.
pub(super) const INDEX: u16 = 22;
pub(super) const DATA: u16 = 23;
pub(super) const FIRST: u16 = 24;

/// The only page size whose layout of the first page is known.
pub(super) const PAGE_BYTES: usize = 16384;
/// Where the data begins.
const FIRST_DATA: usize = 696;
const DATA_DATA: usize = 49;
/// Where the entries are.
const FIRST_LIST: usize = 64;
const FIRST_ENTRIES: usize = 96;
const INDEX_ENTRIES: usize = 39;
/// Offsets in an entry and its size.
const ENTRY_NEXT: usize = 6;
const ENTRY_PAGE: usize = 48;
const ENTRY_LEN: usize = 52;
const ENTRY_BYTES: usize = 60;
/// Offsets in a page of a chain.
const CHAIN_LEN: usize = page::HEADER_LEN;
const CHAIN_NEXT: usize = 42;
const CHAIN_DATA: usize = 46;

/// Page and offset.
type Address = (u32, u16);

#[derive(Clone, Copy)]
struct Entry {
    next: Address,
    page: u32,
    len: u32,
}

/// What is known of the off-page values of a file: 40 bytes or so for each page of them.
#[derive(Default)]
pub(super) struct OffPage {
    entries: HashMap<Address, Entry>,
    /// First entry of each value.
    values: Vec<Address>,
    /// For each page with data: the one after it, and its bytes.
    links: HashMap<u32, (u32, u32)>,
}

fn address(bytes: &[u8], at: usize) -> Address {
    (page::u32_at(bytes, at), page::u16_at(bytes, at + 4))
}

impl OffPage {
    /// Notes the entries of a page.
    pub fn note(&mut self, bytes: &[u8], number: u32, kind: u16) {
        let (from, to) = match kind {
            FIRST => {
                self.values.push(address(bytes, FIRST_LIST + 4));
                (FIRST_ENTRIES, FIRST_DATA)
            }
            INDEX => (INDEX_ENTRIES, bytes.len() - page::TRAILER_LEN),
            _ => return,
        };
        for at in (from..=to - ENTRY_BYTES).step_by(ENTRY_BYTES) {
            let entry = Entry {
                next: address(bytes, at + ENTRY_NEXT),
                page: page::u32_at(bytes, at + ENTRY_PAGE),
                len: u32::from(page::u16_at(bytes, at + ENTRY_LEN)),
            };
            if entry.len != 0 {
                self.entries.insert((number, at as u16), entry);
            }
        }
    }

    /// Follows the lists, once all pages are noted.
    ///
    /// # Errors
    /// A page and what is wrong with it.
    pub fn link(&mut self) -> Result<(), (u32, &'static str)> {
        for first in std::mem::take(&mut self.values) {
            let (mut at, mut before) = (first, None);
            while at.0 != NULL_PAGE {
                let entry =
                    *self.entries.get(&at).ok_or((at.0, "an off-page value leads to no index entry"))?;
                if self.links.insert(entry.page, (NULL_PAGE, entry.len)).is_some() {
                    return Err((entry.page, "two off-page values share it"));
                }
                if let Some(link) = before.and_then(|before| self.links.get_mut(&before)) {
                    link.0 = entry.page;
                }
                (at, before) = (entry.next, Some(entry.page));
            }
        }
        self.entries = HashMap::new();
        Ok(())
    }

    /// Makes a page of such a value one of a chain. False: it holds nothing that is needed.
    ///
    /// # Errors
    /// What is wrong with the page.
    pub fn convert(&self, bytes: &mut [u8], number: u32) -> Result<bool, String> {
        let Some((next, len)) = self.links.get(&number).copied() else { return Ok(false) };
        let from = match page::page_type(bytes) {
            FIRST => FIRST_DATA,
            DATA => DATA_DATA,
            other => return Err(format!("an off-page value leads to it, but its type is {other}")),
        };
        let (len, end) = (len as usize, bytes.len() - page::TRAILER_LEN);
        if from + len > end {
            return Err(format!("{len} bytes of an off-page value do not fit it"));
        }
        bytes.copy_within(from..from + len, CHAIN_DATA);
        bytes[CHAIN_DATA + len..end].fill(0);
        bytes[CHAIN_LEN..CHAIN_LEN + 4].copy_from_slice(&(len as u32).to_be_bytes());
        bytes[CHAIN_NEXT..CHAIN_NEXT + 4].copy_from_slice(&next.to_be_bytes());
        bytes[page::TYPE..page::TYPE + 2].copy_from_slice(&page::kind::BLOB.to_be_bytes());
        Ok(true)
    }
}
