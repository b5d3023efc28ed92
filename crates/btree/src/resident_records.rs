//! The records of a tree that are in memory.
//!
//! For lists of locks, whose keys are shown if their pages are in the pool. Nothing is read or waited for: a
//! page that is not there, or that a writer holds, is passed over with all below it. One page is latched at a
//! time, so a page may be split, freed or reused before its turn comes; each page is checked afresh and
//! skipped unless it belongs to this tree and level.

use pagestore::page as fil;

use crate::page::{header, records};
use crate::record::RecordRef;
use crate::tree::Tree;

impl Tree {
    /// Shows the leaf records that are in memory, delete-marked ones too, until `visit` says that it has
    /// seen enough. Looks at no more pages than `pages` says, and takes off those it looked at.
    pub fn visit_resident(&self, pages: &mut usize, visit: &mut dyn FnMut(RecordRef<'_>) -> bool) {
        let mut ahead: Vec<(u32, Option<u16>)> = vec![(self.root, None)];
        while let Some((number, level)) = ahead.pop() {
            if *pages == 0 {
                return;
            }
            *pages -= 1;
            let Some(page) = self.store.read_if_present(self.page_id(number)) else { continue };
            let is_index = fil::page_type(&page) == fil::kind::INDEX && header::is_compact(&page);
            let found = header::level(&page);
            if !is_index
                || header::index_id(&page) != self.def.id
                || level.is_some_and(|level| level != found)
            {
                continue;
            }
            for origin in records(&page) {
                // A broken chain is for those to report who need the page.
                let Ok(origin) = origin else { break };
                let record = RecordRef::new(&page, origin, &self.def);
                if record.is_instant() {
                    continue;
                }
                match found.checked_sub(1) {
                    Some(below) => ahead.push((record.child(), Some(below))),
                    None if visit(record) => {}
                    None => return,
                }
            }
        }
    }
}
