//! Building a tree from sorted records.
//!
//! Each level has one page under construction in memory. A page gets its number only when it is full and a
//! second one is needed: so a level that ends up with a single page never gets one, that page becomes the
//! root instead, and no level below the root consists of a single page. A full page is written together with
//! the allocation of its right neighbour, in one mini-transaction, because its link to that one must be
//! known; then its node pointer goes to the level above. Leaves and other pages alike keep 1/16 free.

use pagestore::fsp::{self, Direction, Reserve};
use pagestore::page::NULL_PAGE;
use pagestore::{Interrupt, PageId};

use crate::page::builder::PageBuilder;
use crate::page::{MtrPage, image, record_list};
use crate::record::{RecordBuffer, RecordRef};
use crate::tree::Tree;

/// A level under construction.
struct Level {
    page: PageBuilder,
    /// Number of the page under construction, once it has one.
    number: Option<u32>,
    previous: u32,
}

/// Fills an empty tree from left to right. Pages are written in bounded mini-transactions.
pub struct BulkLoader<'t> {
    tree: &'t Tree,
    levels: Vec<Level>,
    /// A node pointer that still has to go to a level (after an interrupt).
    pending: Option<(usize, RecordBuffer)>,
    /// Levels that [`BulkLoader::finish`] has written.
    finished: usize,
    max_trx_id: u64,
}

impl<'t> BulkLoader<'t> {
    /// Starts loading into `tree`, which must be empty and used by nobody else.
    pub fn new(tree: &'t Tree) -> BulkLoader<'t> {
        BulkLoader { tree, levels: vec![Level::new(tree, 0)], pending: None, finished: 0, max_trx_id: 0 }
    }

    /// Sets PAGE_MAX_TRX_ID of the leaves of a secondary index (0 if never called: visible to all).
    pub fn set_max_trx_id(&mut self, trx_id: u64) {
        self.max_trx_id = trx_id;
    }

    /// Appends a record, which must be above all before it. On an interrupt nothing was appended: await and
    /// call again.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store.
    pub fn add(&mut self, record: &RecordBuffer) -> Result<(), Interrupt> {
        self.settle()?;
        if !self.has_room(0, record.size()) {
            self.close_page(0)?;
            // The leaf is written and the next one begun: only a pointer above may be outstanding, for the
            // next call.
            self.levels[0].page.append(record.as_bytes(), record.extra_size());
            return Ok(());
        }
        self.levels[0].page.append(record.as_bytes(), record.extra_size());
        Ok(())
    }

    fn has_room(&self, level: usize, size: usize) -> bool {
        let page = &self.levels[level].page;
        page.n_recs() < 2 && page.fits(size, 0) || page.fits(size, self.tree.page_size() / 16)
    }

    /// Brings an outstanding node pointer to its level, and those that follow from it.
    fn settle(&mut self) -> Result<(), Interrupt> {
        while let Some((level, pointer)) = &self.pending {
            let level = *level;
            if level == self.levels.len() {
                self.levels.push(Level::new(self.tree, level as u16));
            }
            let (bytes, extra) = (pointer.as_bytes().to_vec(), pointer.extra_size());
            if self.has_room(level, bytes.len()) {
                self.pending = None;
            } else {
                self.close_page(level)?;
            }
            self.levels[level].page.append(&bytes, extra);
        }
        Ok(())
    }

    /// Writes the page under construction and begins the next one. Sets `pending` to the written page's node
    /// pointer.
    fn close_page(&mut self, level: usize) -> Result<(), Interrupt> {
        let tree = self.tree;
        let here = &mut self.levels[level];
        let mut mtr = tree.store.mtr()?;
        let held = match here.number {
            Some(number) => Some(mtr.x(tree.page_id(number))?),
            None => None,
        };
        fsp::reserve(&mut mtr, tree.space, 1, Reserve::Normal)?;
        let segment = tree.segment_of(level as u16);
        fsp::prepare(&mut mtr, segment, here.number.unwrap_or(0))?;
        let page = match held {
            Some(page) => page,
            None => fsp::allocate_page(&mut mtr, segment, 0, Direction::Up)?,
        };
        let number = mtr.page_id(page).page;
        let next = fsp::allocate_page(&mut mtr, segment, number + 1, Direction::Up)?;
        let next_number = mtr.page_id(next).page;
        here.page.set_siblings(here.previous, next_number);
        if level == 0 && !tree.def.clustered {
            here.page.set_max_trx_id(self.max_trx_id);
        }
        let pointer = node_pointer(tree, &here.page, number, here.previous == NULL_PAGE)?;
        image::write_image(&mut MtrPage::new(&mut mtr, page), here.page.finish(true));
        mtr.commit();
        *here = Level { number: Some(next_number), previous: number, ..Level::new(tree, level as u16) };
        self.pending = Some((level + 1, pointer));
        Ok(())
    }

    /// Writes what is still in memory, root last. On an interrupt await and call again.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store.
    pub fn finish(&mut self) -> Result<(), Interrupt> {
        self.settle()?;
        while self.finished + 1 < self.levels.len() {
            let pointer = self.write_last_page(self.finished)?;
            self.finished += 1;
            self.pending = Some((self.finished, pointer));
            self.settle()?;
        }
        self.write_root()
    }

    fn write_last_page(&mut self, level: usize) -> Result<RecordBuffer, Interrupt> {
        let tree = self.tree;
        let here = &mut self.levels[level];
        let Some(number) = here.number else {
            return Err(tree.corrupt(tree.root, "a level of a bulk load has no page"));
        };
        let mut mtr = tree.store.mtr()?;
        let page = mtr.x(tree.page_id(number))?;
        here.page.set_siblings(here.previous, NULL_PAGE);
        if level == 0 && !tree.def.clustered {
            here.page.set_max_trx_id(self.max_trx_id);
        }
        let pointer = node_pointer(tree, &here.page, number, here.previous == NULL_PAGE)?;
        image::write_image(&mut MtrPage::new(&mut mtr, page), here.page.finish(true));
        mtr.commit();
        Ok(pointer)
    }

    fn write_root(&mut self) -> Result<(), Interrupt> {
        let tree = self.tree;
        let _structure = tree.structure.lock();
        let level = self.finished;
        let mut mtr = tree.store.mtr()?;
        let root = mtr.x(tree.page_id(tree.root))?;
        let mut target = PageBuilder::like(mtr.page(root));
        target.set_level(level as u16);
        if level == 0 && !tree.def.clustered {
            target.set_max_trx_id(self.max_trx_id);
        }
        let built = std::mem::take(self.levels[level].page.finish(true));
        for origin in tree.sound(&mtr, root, record_list(&built))? {
            let appended = target.append_record(RecordRef::new(&built, origin, &tree.def));
            tree.sound(&mtr, root, appended)?;
        }
        image::write_image(&mut MtrPage::new(&mut mtr, root), target.finish(true));
        mtr.commit();
        tree.root_level.store(level as u32, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
}

impl Level {
    fn new(tree: &Tree, level: u16) -> Level {
        // The identity is not part of what is written: pages get it when they are allocated.
        let id = PageId { space: tree.space, page: 0 };
        Level {
            page: PageBuilder::fresh(tree.page_size(), id, level, tree.def.id),
            number: None,
            previous: NULL_PAGE,
        }
    }
}

fn node_pointer(
    tree: &Tree,
    page: &PageBuilder,
    number: u32,
    leftmost: bool,
) -> Result<RecordBuffer, Interrupt> {
    let first = page.first(&tree.def).ok_or_else(|| tree.corrupt(number, "an empty page in a bulk load"))?;
    let mut pointer = RecordBuffer::new();
    pointer
        .encode_node_pointer(first, number)
        .map_err(|_| tree.corrupt(number, "a key is too long for a node pointer"))?;
    pointer.set_min_rec(leftmost);
    Ok(pointer)
}
