//! The tree as an object: where it lies, what it is made of, how it begins and ends.
//!
//! A tree has two segments of its tablespace: one for leaves and off-page values, one for all other pages.
//! The root belongs to the second one even while it is a leaf, its number never changes, and it stores where
//! both segments are. A tree learns that from the first look at its root, which every way to a leaf begins
//! with, so opening one reads nothing.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pagestore::fsp::{self, Direction, Reserve, SegmentHeader};
use pagestore::page as fil;
use pagestore::{Error, Interrupt, Mtr, PageHandle, PageId, PageStore};
use parking_lot::Mutex;

use crate::definition::IndexDef;
use crate::page::builder::PageBuilder;
use crate::page::{Malformed, MtrPage, header, image};

/// One B+ tree in a tablespace. Its operations are in `cursor` (reading), `optimistic` (one leaf),
/// `structure_modification`, `split`, `merge`, `external` and `check`.
pub struct Tree {
    pub(crate) store: Arc<PageStore>,
    pub(crate) space: u32,
    pub(crate) root: u32,
    pub(crate) def: Arc<IndexDef>,
    segments: OnceLock<Segments>,
    /// Held while node pointers or sibling links change, from before the first latch to after the commit.
    pub(crate) structure: Mutex<()>,
    /// Level of the root as last seen; a hint for sizes, never relied on for correctness.
    pub(crate) root_level: AtomicU32,
    /// Counts structure changes, for those who read a tree in steps.
    pub(crate) structure_version: AtomicU64,
}

/// What the root says of its tree.
#[derive(Clone, Copy)]
struct Segments {
    leaf: SegmentHeader,
    top: SegmentHeader,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tree({} at {}:{})", self.def.name, self.space, self.root)
    }
}

impl Tree {
    /// Creates an empty tree (two segments and a root page) within `mtr`.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store, with nothing changed; [`Error::NoSpace`] among them.
    pub fn create(
        mtr: &mut Mtr<'_>,
        store: &Arc<PageStore>,
        space: u32,
        def: Arc<IndexDef>,
    ) -> Result<Tree, Interrupt> {
        fsp::reserve(mtr, space, 1, Reserve::Tree)?;
        // The order in which a server creates them, so that the files are alike: top segment, root, leaf
        // segment.
        let top_segment = fsp::create_segment(mtr, space)?;
        let handle = fsp::allocate_page(mtr, top_segment, 0, Direction::None)?;
        let leaf_segment = fsp::create_segment(mtr, space)?;
        let id = mtr.page_id(handle);
        let mut builder = PageBuilder::fresh(store.page_size().bytes(), id, 0, def.id);
        image::write_image(&mut MtrPage::new(mtr, handle), builder.finish(false));
        mtr.write(handle, header::SEGMENT_LEAF, &leaf_segment.to_bytes());
        mtr.write(handle, header::SEGMENT_TOP, &top_segment.to_bytes());
        let tree = Tree::unread(store, space, id.page, def);
        let _ = tree.segments.set(Segments { leaf: leaf_segment, top: top_segment });
        Ok(tree)
    }

    /// Opens the tree whose root is page `root`.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store; [`Error::Corrupt`] when the page is not the root of this index.
    pub fn open(
        store: &Arc<PageStore>,
        space: u32,
        root: u32,
        def: Arc<IndexDef>,
    ) -> Result<Tree, Interrupt> {
        let tree = Tree::unread(store, space, root, def);
        let page = store.read(tree.page_id(root))?;
        tree.check_page(&page, root)?;
        drop(page);
        Ok(tree)
    }

    /// A tree whose root is page `root`, which nobody has looked at yet. The first who does checks it.
    pub fn unread(store: &Arc<PageStore>, space: u32, root: u32, def: Arc<IndexDef>) -> Tree {
        Tree {
            store: Arc::clone(store),
            space,
            root,
            def,
            segments: OnceLock::new(),
            structure: Mutex::new(()),
            root_level: AtomicU32::new(0),
            structure_version: AtomicU64::new(0),
        }
    }

    /// A tree without pages: that of a table whose tablespace was discarded. Reading it fails, as its
    /// tablespace is not open.
    pub fn absent(store: &Arc<PageStore>, space: u32, def: Arc<IndexDef>) -> Tree {
        Tree::unread(store, space, fil::NULL_PAGE, def)
    }

    /// Reads the root unless somebody did before. For those who need the segments without having been on any
    /// page.
    ///
    /// # Errors
    /// As [`Tree::open`].
    pub fn read_root(&self) -> Result<(), Interrupt> {
        if self.segments.get().is_some() {
            return Ok(());
        }
        self.check_page(&self.store.read(self.page_id(self.root))?, self.root)
    }

    /// Whether somebody has looked at the root.
    #[inline]
    pub(crate) fn knows_root(&self) -> bool {
        self.segments.get().is_some()
    }

    /// The first look at the root.
    #[cold]
    fn learn(&self, page: &[u8]) -> Result<(), Interrupt> {
        if fil::previous(page) != fil::NULL_PAGE || fil::next(page) != fil::NULL_PAGE {
            return Err(self.corrupt(self.root, "the root of an index has neighbours"));
        }
        let leaf = SegmentHeader::read(page, header::SEGMENT_LEAF);
        let top = SegmentHeader::read(page, header::SEGMENT_TOP);
        if leaf.space != self.space || top.space != self.space {
            return Err(self.corrupt(self.root, "the root's segments are in another tablespace"));
        }
        if self.segments.set(Segments { leaf, top }).is_ok() {
            self.root_level.fetch_max(u32::from(header::level(page)), Ordering::Relaxed);
        }
        Ok(())
    }

    /// The segment of the leaves and of off-page values.
    pub(crate) fn leaf_segment(&self) -> SegmentHeader {
        self.segments().0
    }

    /// The segment of all other pages.
    pub(crate) fn top_segment(&self) -> SegmentHeader {
        self.segments().1
    }

    /// Frees some of the tree's pages in a mini-transaction of its own; `true` when nothing is left. Nobody
    /// may use the tree any more.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store: await and call again.
    pub fn destroy_step(&self) -> Result<bool, Interrupt> {
        self.read_root()?;
        let mut mtr = self.store.mtr()?;
        let root = mtr.x(self.page_id(self.root))?;
        let leaf = SegmentHeader::read(mtr.page(root), header::SEGMENT_LEAF);
        // A finished segment's inode has no id any more, and is another one's soon: so the root forgets it in
        // the same moment.
        if leaf.page != fil::NULL_PAGE && !self.segment_is_gone(&mut mtr, leaf)? {
            let done = fsp::free_segment_step(&mut mtr, leaf, None)?;
            if done {
                let nowhere = SegmentHeader { page: fil::NULL_PAGE, offset: 0, ..leaf };
                mtr.write(root, header::SEGMENT_LEAF, &nowhere.to_bytes());
            }
            mtr.commit();
            return Ok(false);
        }
        drop(mtr);
        let mut mtr = self.store.mtr()?;
        // The root says where the other segment is, so it goes last.
        let done = fsp::free_segment_step(&mut mtr, self.top_segment(), Some(self.root))?;
        mtr.commit();
        if !done {
            return Ok(false);
        }
        let mut mtr = self.store.mtr()?;
        let done = fsp::free_segment_step(&mut mtr, self.top_segment(), None)?;
        mtr.commit();
        Ok(done)
    }

    fn segment_is_gone(&self, mtr: &mut Mtr<'_>, segment: SegmentHeader) -> Result<bool, Interrupt> {
        let handle = mtr.s(PageId { space: segment.space, page: segment.page })?;
        let gone = fil::u64_at(mtr.page(handle), usize::from(segment.offset)) == 0;
        mtr.release(handle);
        Ok(gone)
    }

    /// The index definition.
    pub fn def(&self) -> &Arc<IndexDef> {
        &self.def
    }

    /// Tablespace of the tree.
    pub fn space(&self) -> u32 {
        self.space
    }

    /// Page number of the root, which never changes.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// The store the pages come from.
    pub fn store(&self) -> &Arc<PageStore> {
        &self.store
    }

    /// Where the segment of the leaves is, and that of the other pages; nowhere as long as nobody has looked
    /// at the root ([`Tree::read_root`]).
    pub fn segments(&self) -> (SegmentHeader, SegmentHeader) {
        let nowhere = SegmentHeader { space: self.space, page: fil::NULL_PAGE, offset: 0 };
        self.segments.get().map_or((nowhere, nowhere), |segments| (segments.leaf, segments.top))
    }

    /// Levels of the tree as last seen.
    pub fn height(&self) -> u32 {
        self.root_level.load(Ordering::Relaxed) + 1
    }

    /// Bytes of a page.
    pub(crate) fn page_size(&self) -> usize {
        self.store.page_size().bytes()
    }

    /// Largest record in bytes, header included, that this tree can hold (8125 at 16 KiB pages): two must fit
    /// a page.
    pub fn max_record_size(&self) -> usize {
        header::record_size_max(self.page_size())
    }

    /// Redo space that a mini-transaction needs for a structure change of this tree (without the caller's own
    /// records): on each level one new page and one rewritten, one level more for a new root, and space
    /// management.
    pub fn structure_redo_bytes(&self) -> usize {
        let pages = 2 * (self.height() as usize + 1) + 2;
        pages * (self.page_size() + 512)
    }

    /// The persistent AUTO_INCREMENT value of a clustered index: the last one used, as MariaDB keeps it on
    /// the root.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store.
    pub fn auto_increment(&self) -> Result<u64, Interrupt> {
        Ok(header::max_trx_id(&self.store.read(self.page_id(self.root))?))
    }

    /// Remembers the last used AUTO_INCREMENT value on the root of a clustered index.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store, before anything was changed.
    pub fn set_auto_increment(&self, mtr: &mut Mtr<'_>, value: u64) -> Result<(), Interrupt> {
        assert!(self.def.clustered, "only a clustered index keeps an AUTO_INCREMENT value");
        let root = mtr.x(self.page_id(self.root))?;
        mtr.write_u64(root, header::MAX_TRX_ID, value);
        Ok(())
    }

    #[inline]
    pub(crate) fn page_id(&self, page: u32) -> PageId {
        PageId { space: self.space, page }
    }

    /// The segment that pages of a level belong to (the root excepted).
    pub(crate) fn segment_of(&self, level: u16) -> SegmentHeader {
        if level == 0 { self.leaf_segment() } else { self.top_segment() }
    }

    #[cold]
    pub(crate) fn corrupt(&self, page: u32, why: impl Into<String>) -> Interrupt {
        let file = self.store.space(self.space).map(|info| info.path).unwrap_or_default();
        let why = format!("index {}: {}", self.def.name, why.into());
        Error::Corrupt { file, page: self.page_id(page), why }.into()
    }

    #[cold]
    pub(crate) fn malformed(&self, page: u32, what: Malformed) -> Interrupt {
        self.corrupt(page, what.0)
    }

    /// A damaged page met after the first change: half of a structure change can be neither finished nor
    /// taken back.
    pub(crate) fn sound<T>(
        &self,
        mtr: &Mtr<'_>,
        page: PageHandle,
        result: Result<T, Malformed>,
    ) -> Result<T, Interrupt> {
        result.map_err(|what| self.malformed(mtr.page_id(page).page, what))
    }

    /// Checks a page that a node pointer of level `level + 1` led to. The level falls with each step, so
    /// every descent ends.
    #[inline]
    pub(crate) fn check_child(&self, page: &[u8], number: u32, level: u16) -> Result<(), Interrupt> {
        self.check_page(page, number)?;
        if header::level(page) == level {
            return Ok(());
        }
        Err(self.corrupt(
            number,
            format!("the page is on level {}, its parent on {}", header::level(page), level + 1),
        ))
    }

    /// Checks that a page is of this tree before anything on it is believed.
    #[inline]
    pub(crate) fn check_page(&self, page: &[u8], number: u32) -> Result<(), Interrupt> {
        let known_type = fil::page_type(page) == fil::kind::INDEX;
        if known_type && header::index_id(page) == self.def.id && header::is_compact(page) {
            if number == self.root && self.segments.get().is_none() {
                return self.learn(page);
            }
            return Ok(());
        }
        Err(self.not_our_page(page, number))
    }

    #[cold]
    fn not_our_page(&self, page: &[u8], number: u32) -> Interrupt {
        if fil::page_type(page) != fil::kind::INDEX {
            return self.corrupt(
                number,
                format!("page type {} where an index page should be", fil::page_type(page)),
            );
        }
        if !header::is_compact(page) {
            return self.corrupt(number, "the page is in REDUNDANT row format, which is not supported");
        }
        self.corrupt(
            number,
            format!("the page belongs to index {}, not {}", header::index_id(page), self.def.id),
        )
    }
}
