//! Checks the space management of a tablespace and tells who owns which page.
//!
//! The structure pages are copied first (under the S latch of page 0, so that they belong together), then
//! judged at leisure: [`gather`] does the one, [`Gathered::judge`] the other, which gives way where its
//! caller wants. Nothing on a page is trusted: a list may loop, lead anywhere or claim any length. What is
//! verified is listed in the module documentation of [`crate::fsp`]; besides, a page that is used must have
//! exactly one owner, so that a B-tree check can compare the pages it reached with the pages its segments own
//! ([`Report::pages_of`]).

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use page::{NULL_PAGE, PageId, PageSize, kind};

use super::extent::{self, State};
use super::list::{self, Address};
use super::{Layout, SegmentHeader, Usage, inode, layout};
use crate::{Interrupt, PageStore};

/// More problems than this are counted but not described.
const PROBLEMS_DESCRIBED: usize = 200;

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is wrong, in words; empty for a sound tablespace. At most 200 are described.
    pub problems: Vec<String>,
    /// The total number of problems.
    pub problem_count: u64,
    /// Pages of the file.
    pub file_pages: u32,
    /// Pages of the tablespace (SIZE).
    pub size: u32,
    /// First page without an initialised descriptor (FREE_LIMIT).
    pub free_limit: u32,
    /// The segments, by inode page and slot.
    pub segments: Vec<SegmentReport>,
    /// Used pages and their owners, sorted, without overlaps.
    pub runs: Vec<Run>,
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    /// Its id.
    pub id: u64,
    /// Where its inode lies.
    pub header: SegmentHeader,
    /// Its page counts, as its inode says.
    pub usage: Usage,
}

/// Who owns a used page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The tablespace itself: header, descriptors, bitmaps, inodes.
    Structure,
    /// The segment at this index of [`Report::segments`].
    Segment(usize),
    /// Nobody: the page is lost until the table is rebuilt.
    Nobody,
}

/// Consecutive used pages of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First page.
    pub first: u32,
    /// Number of pages.
    pub count: u32,
    /// Their owner.
    pub owner: Owner,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problem_count == 0
    }

    /// Owner of a page, or none if it is free.
    pub fn owner(&self, page: u32) -> Option<Owner> {
        let index = self.runs.partition_point(|run| run.first <= page).checked_sub(1)?;
        let run = self.runs[index];
        (page - run.first < run.count).then_some(run.owner)
    }

    /// Index of the segment with this header.
    pub fn segment(&self, header: SegmentHeader) -> Option<usize> {
        self.segments.iter().position(|segment| segment.header == header)
    }

    /// Used pages of the segment at this index, in order.
    pub fn pages_of(&self, segment: usize) -> impl Iterator<Item = u32> + '_ {
        let runs = self.runs.iter().filter(move |run| run.owner == Owner::Segment(segment));
        runs.flat_map(|run| run.first..run.first + run.count)
    }

    /// Used pages of all owners.
    pub fn used_pages(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.count)).sum()
    }

    fn problem(&mut self, what: impl fmt::Display) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_DESCRIBED {
            self.problems.push(what.to_string());
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} pages, {} used, {} segments, {} problems",
            self.size,
            self.used_pages(),
            self.segments.len(),
            self.problem_count
        )?;
        self.problems.iter().try_for_each(|problem| write!(formatter, "\n{problem}"))
    }
}

/// Checks an open tablespace.
///
/// # Errors
/// [`Interrupt::Wait`] for a structure page that is not in memory (hold it and call again); I/O errors.
/// Damage is reported, unless a page cannot be read at all.
pub fn check(store: &PageStore, space: u32) -> Result<Report, Interrupt> {
    Ok(gather(store, space)?.judge_at_once())
}

/// Copies what is to be checked of an open tablespace, so that it belongs together.
///
/// # Errors
/// As [`check`].
pub fn gather(store: &PageStore, space: u32) -> Result<Gathered, Interrupt> {
    let pages = store.open_space_of(space)?.pages();
    let _stands_still = store.read(PageId { space, page: 0 })?;
    gather_pages(pages, store.page_size(), |page| Ok(store.read(PageId { space, page })?.to_vec()))
}

/// Checks a tablespace of `file_pages` pages whose pages `read` returns.
///
/// # Errors
/// The first error of `read`.
pub fn check_pages<E>(
    file_pages: u32,
    page_size: PageSize,
    read: impl FnMut(u32) -> Result<Vec<u8>, E>,
) -> Result<Report, E> {
    Ok(gather_pages(file_pages, page_size, read)?.judge_at_once())
}

fn gather_pages<E>(
    file_pages: u32,
    page_size: PageSize,
    mut read: impl FnMut(u32) -> Result<Vec<u8>, E>,
) -> Result<Gathered, E> {
    let mut report = Report { file_pages, ..Report::default() };
    if file_pages == 0 {
        report.problem("the file has no pages");
        return Ok(Gathered { pages: None, report });
    }
    let header = read(0)?;
    if header.len() != page_size.bytes() {
        report.problem(format_args!("page 0 has {} bytes instead of {}", header.len(), page_size.bytes()));
        return Ok(Gathered { pages: None, report });
    }
    let layout = match Layout::from_flags(page::u32_at(&header, layout::HEADER_FLAGS)) {
        Ok(layout) if layout == Layout::new(page_size) => layout,
        Ok(layout) => {
            report.problem(format_args!("page 0: flags mean pages of {} bytes", layout.page_size()));
            return Ok(Gathered { pages: None, report });
        }
        Err(error) => {
            report.problem(format_args!("page 0: {error}"));
            return Ok(Gathered { pages: None, report });
        }
    };
    let mut pages = Pages { layout, copies: BTreeMap::from([(0, header)]), extents: 0 };
    collect(&mut pages, &mut report, &mut read)?;
    Ok(Gathered { pages: Some(pages), report })
}

/// What is to be judged of a tablespace, and what was found wrong when it was copied.
pub struct Gathered {
    /// None where page 0 says nothing.
    pages: Option<Pages>,
    report: Report,
}

/// Lets others get a turn.
pub trait Breath {
    /// Why there is no going on.
    type Error;

    /// After this number of extents.
    fn take(&mut self, extents: u32) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Never gives way.
struct Breathless;

impl Breath for Breathless {
    type Error = Infallible;

    async fn take(&mut self, _: u32) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Gathered {
    /// Judges what was copied.
    ///
    /// # Errors
    /// The first error of `breath`.
    pub async fn judge<B: Breath>(mut self, breath: &mut B) -> Result<Report, B::Error> {
        let Some(pages) = self.pages else { return Ok(self.report) };
        let extents = extents(&pages, &mut self.report, breath).await?;
        Checker { pages, extents, report: self.report, fragments: BTreeMap::new() }.run(breath).await
    }

    fn judge_at_once(self) -> Report {
        let judged = pin!(self.judge(&mut Breathless)).poll(&mut Context::from_waker(Waker::noop()));
        match judged {
            Poll::Ready(Ok(report)) => report,
            Poll::Pending => unreachable!("nothing is waited for"),
        }
    }
}

/// Copies of the structure pages.
struct Pages {
    layout: Layout,
    copies: BTreeMap<u32, Vec<u8>>,
    /// Extents with initialised descriptors that are in the copies.
    extents: u32,
}

impl Pages {
    fn header(&self) -> &[u8] {
        &self.copies[&0]
    }

    fn header_u32(&self, offset: usize) -> u32 {
        page::u32_at(self.header(), offset)
    }

    /// Bytes of the descriptor of the extent with this index.
    fn descriptor(&self, extent: u32) -> &[u8] {
        let first = extent * self.layout.extent_pages();
        let offset = self.layout.descriptor_offset(first);
        &self.copies[&self.layout.descriptor_page(first)][offset..offset + self.layout.extent_len()]
    }

    /// The extent whose list node is at `address`.
    fn extent_at(&self, address: Address) -> Option<u32> {
        let offset = usize::from(address.offset).checked_sub(layout::EXTENT_NODE)?;
        let extent = self.layout.described_by(address.page, offset)? / self.layout.extent_pages();
        (extent < self.extents).then_some(extent)
    }

    fn bitmap(&self, extent: u32) -> &[u8] {
        &self.descriptor(extent)[layout::EXTENT_BITMAP..]
    }
}

/// Reads header values, XDES, bitmap and inode pages.
fn collect<E>(
    pages: &mut Pages,
    report: &mut Report,
    read: &mut impl FnMut(u32) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    let (extent_pages, page_size) = (pages.layout.extent_pages(), pages.layout.page_size());
    report.size = pages.header_u32(layout::HEADER_SIZE);
    report.free_limit = pages.header_u32(layout::HEADER_FREE_LIMIT);
    let (size, limit) = (report.size, report.free_limit);
    if page::page_type(pages.header()) != kind::FSP_HDR {
        report.problem(format_args!("page 0: type {} instead of 8", page::page_type(pages.header())));
    }
    let (outer, inner) = (page::space_id(pages.header()), pages.header_u32(layout::HEADER_SPACE_ID));
    if outer != inner || inner == 0 {
        report.problem(format_args!(
            "page 0: space id is {outer} in the page header and {inner} in the space header"
        ));
    }
    let file_pages = report.file_pages;
    if size > file_pages {
        report.problem(format_args!("page 0: SIZE is {size}, but the file has {file_pages} pages"));
    }
    if size >= extent_pages && !size.is_multiple_of(extent_pages) {
        report.problem(format_args!("page 0: SIZE {size} is not a whole number of extents"));
    }
    if !limit.is_multiple_of(extent_pages) || limit == 0 || (limit > size && limit > extent_pages) {
        report.problem(format_args!("page 0: FREE_LIMIT {limit} does not fit SIZE {size}"));
    }
    let described = limit.min(report.file_pages.max(extent_pages));
    pages.extents = described / extent_pages;
    for stretch in (0..described).step_by(page_size) {
        for (number, kind) in [(stretch, kind::XDES), (stretch + 1, kind::IBUF_BITMAP)] {
            if number == 0 {
                continue;
            }
            let copy = if number < report.file_pages { read(number)? } else { vec![0; page_size] };
            if copy.len() != page_size || page::page_type(&copy) != kind {
                report.problem(format_args!("page {number}: not of type {kind}"));
            }
            if kind == kind::XDES {
                let mut copy = copy;
                copy.resize(page_size, 0);
                pages.copies.insert(number, copy);
            }
        }
    }
    for (base, full) in [(layout::HEADER_INODES_FREE, false), (layout::HEADER_INODES_FULL, true)] {
        collect_inodes(pages, report, base, full, read)?;
    }
    Ok(())
}

/// Walks a list of inode pages while reading them.
fn collect_inodes<E>(
    pages: &mut Pages,
    report: &mut Report,
    base: usize,
    full: bool,
    read: &mut impl FnMut(u32) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    let name = if full { "INODES_FULL" } else { "INODES_FREE" };
    let mut walk = Walk::new(pages.header(), base);
    while let Some(address) = walk.at.some() {
        if usize::from(address.offset) != layout::INODE_PAGE_NODE
            || address.page >= report.file_pages.min(report.size).min(report.free_limit)
            || pages.copies.contains_key(&address.page)
        {
            report.problem(format_args!("list {name}: leads to {}:{}", address.page, address.offset));
            return Ok(());
        }
        let copy = read(address.page)?;
        if copy.len() != pages.layout.page_size() || page::page_type(&copy) != kind::INODE {
            report.problem(format_args!("page {}: in list {name}, but not an inode page", address.page));
            return Ok(());
        }
        let slots = 0..pages.layout.inode_slots();
        let has_free =
            slots.into_iter().any(|slot| page::u64_at(&copy, pages.layout.inode_offset(slot)) == 0);
        if has_free == full {
            report.problem(format_args!(
                "page {}: in list {name}, which its segment slots contradict",
                address.page
            ));
        }
        walk.step(&copy[layout::INODE_PAGE_NODE..], report, name);
        pages.copies.insert(address.page, copy);
    }
    walk.finish(report, name);
    Ok(())
}

/// One walk along a list, from its base on.
struct Walk {
    at: Address,
    before: Address,
    steps: u32,
    len: u32,
    last: Address,
}

impl Walk {
    fn new(bytes: &[u8], base: usize) -> Self {
        Self {
            at: Address::read(bytes, base + list::FIRST),
            before: Address::NONE,
            steps: 0,
            len: page::u32_at(bytes, base),
            last: Address::read(bytes, base + list::LAST),
        }
    }

    /// Goes over the node at the current address.
    fn step(&mut self, node: &[u8], report: &mut Report, name: impl fmt::Display) {
        let previous = Address::read(node, list::PREVIOUS);
        if previous != self.before {
            let Address { page, offset } = self.at;
            report.problem(format_args!(
                "list {name}: the node at {page}:{offset} does not lead back to the one before"
            ));
        }
        self.before = self.at;
        self.at = Address::read(node, list::NEXT);
        self.steps += 1;
    }

    fn finish(&self, report: &mut Report, name: impl fmt::Display) {
        if self.steps != self.len {
            report.problem(format_args!("list {name}: length {}, but {} nodes", self.len, self.steps));
        }
        if self.before != self.last {
            report.problem(format_args!("list {name}: its last node is not the one noted"));
        }
    }
}

/// What is known of an extent.
#[derive(Clone, Copy)]
struct Extent {
    state: Option<State>,
    segment_id: u64,
    used: u32,
    listed: bool,
    /// Index of the owning segment, once found in one of its lists.
    owner: Option<usize>,
}

/// Reads all initialised descriptors.
async fn extents<B: Breath>(
    pages: &Pages,
    report: &mut Report,
    breath: &mut B,
) -> Result<Vec<Extent>, B::Error> {
    let layout = pages.layout;
    let mut all = Vec::with_capacity(pages.extents as usize);
    for index in 0..pages.extents {
        breath.take(1).await?;
        let descriptor = pages.descriptor(index);
        let state = page::u32_at(descriptor, layout::EXTENT_STATE);
        let first = index * layout.extent_pages();
        if State::from_u32(state).is_none() {
            report.problem(format_args!("extent of page {first}: unknown state {state}"));
        }
        let bitmap = &descriptor[layout::EXTENT_BITMAP..];
        let beyond = report.size.saturating_sub(first).min(layout.extent_pages())..layout.extent_pages();
        if let Some(page) = beyond.into_iter().find(|page| !extent::is_free(bitmap, *page)) {
            report.problem(format_args!("page {}: marked used, but beyond SIZE", first + page));
        }
        all.push(Extent {
            state: State::from_u32(state),
            segment_id: page::u64_at(descriptor, layout::EXTENT_SEGMENT_ID),
            used: extent::used_pages(bitmap),
            listed: false,
            owner: None,
        });
    }
    // Descriptors above FREE_LIMIT are zero.
    let in_last_page = layout.described_pages() / layout.extent_pages();
    for index in pages.extents..pages.extents.next_multiple_of(in_last_page) {
        let state = page::u32_at(pages.descriptor(index), layout::EXTENT_STATE);
        if state != 0 {
            let first = u64::from(index) * u64::from(layout.extent_pages());
            report.problem(format_args!("extent of page {first}: state {state} above FREE_LIMIT"));
        }
    }
    Ok(all)
}

/// A list of extents, with what must hold for its members.
#[derive(Clone, Copy)]
struct ExtentList {
    name: &'static str,
    state: State,
    /// Index and id of the segment.
    segment: Option<(usize, u64)>,
    fewest_used: u32,
    most_used: u32,
}

struct Checker {
    pages: Pages,
    extents: Vec<Extent>,
    report: Report,
    /// Fragment pages of segments.
    fragments: BTreeMap<u32, usize>,
}

impl Checker {
    async fn run<B: Breath>(mut self, breath: &mut B) -> Result<Report, B::Error> {
        self.space_lists(breath).await?;
        let inode_pages: Vec<u32> = self
            .pages
            .copies
            .keys()
            .copied()
            .filter(|page| !page.is_multiple_of(self.pages.layout.described_pages()))
            .collect();
        let mut ids = BTreeSet::new();
        for page in &inode_pages {
            for slot in 0..self.pages.layout.inode_slots() {
                self.segment(*page, slot, &mut ids, breath).await?;
            }
        }
        for index in 0..self.extents.len() {
            if !self.extents[index].listed {
                let first = index * self.pages.layout.extent_pages() as usize;
                self.report.problem(format_args!("extent of page {first}: in no list"));
            }
        }
        self.owners(&inode_pages, breath).await?;
        Ok(self.report)
    }

    async fn space_lists<B: Breath>(&mut self, breath: &mut B) -> Result<(), B::Error> {
        let pages = self.pages.layout.extent_pages();
        let header = self.pages.header().to_vec();
        let list = |name, state, fewest_used, most_used| ExtentList {
            name,
            state,
            segment: None,
            fewest_used,
            most_used,
        };
        self.extent_list(&header, layout::HEADER_FREE, list("FREE", State::Free, 0, 0), breath).await?;
        let lent = list("FREE_FRAG", State::FreeFragment, 1, pages - 1);
        let used = self.extent_list(&header, layout::HEADER_FREE_FRAGMENT, lent, breath).await?;
        let full = list("FULL_FRAG", State::FullFragment, pages, pages);
        self.extent_list(&header, layout::HEADER_FULL_FRAGMENT, full, breath).await?;
        let noted = self.pages.header_u32(layout::HEADER_FRAGMENTS_USED);
        if u64::from(noted) != used {
            self.report.problem(format_args!("page 0: FRAG_N_USED is {noted}, but {used} pages are used"));
        }
        Ok(())
    }

    /// Walks a list of extents; returns how many pages are used in them.
    async fn extent_list<B: Breath>(
        &mut self,
        bytes: &[u8],
        base: usize,
        expect: ExtentList,
        breath: &mut B,
    ) -> Result<u64, B::Error> {
        let mut walk = Walk::new(bytes, base);
        let mut used = 0;
        let segment = expect.segment.map(|(_, id)| format!(" of segment {id}")).unwrap_or_default();
        let name = format!("{}{segment}", expect.name);
        while let Some(address) = walk.at.some() {
            breath.take(1).await?;
            let Some(index) = self.pages.extent_at(address) else {
                let Address { page, offset } = address;
                self.report.problem(format_args!(
                    "list {name}: leads to {page}:{offset}, where no extent is described"
                ));
                return Ok(used);
            };
            let extent = &mut self.extents[index as usize];
            let first = index * self.pages.layout.extent_pages();
            if extent.listed {
                self.report
                    .problem(format_args!("list {name}: the extent of page {first} is in a list already"));
                return Ok(used);
            }
            extent.listed = true;
            used += u64::from(extent.used);
            if extent.state != Some(expect.state) {
                let state = extent.state;
                self.report
                    .problem(format_args!("extent of page {first}: in list {name}, but in state {state:?}"));
            }
            if !(expect.fewest_used..=expect.most_used).contains(&extent.used) {
                let used = extent.used;
                self.report
                    .problem(format_args!("extent of page {first}: in list {name} with {used} used pages"));
            }
            if let Some((segment, id)) = expect.segment {
                extent.owner = Some(segment);
                if extent.segment_id != id {
                    let owner = extent.segment_id;
                    self.report.problem(format_args!(
                        "extent of page {first}: in list {name}, but of segment {owner}"
                    ));
                }
            }
            walk.step(&self.pages.descriptor(index)[layout::EXTENT_NODE..], &mut self.report, &name);
        }
        walk.finish(&mut self.report, &name);
        Ok(used)
    }

    /// Checks one segment slot.
    async fn segment<B: Breath>(
        &mut self,
        page: u32,
        slot: usize,
        ids: &mut BTreeSet<u64>,
        breath: &mut B,
    ) -> Result<(), B::Error> {
        let offset = self.pages.layout.inode_offset(slot);
        let bytes = self.pages.copies[&page][offset..offset + self.pages.layout.inode_len()].to_vec();
        let id = page::u64_at(&bytes, layout::INODE_SEGMENT_ID);
        if id == 0 {
            return Ok(());
        }
        let place = format!("segment {id} at {page}:{offset}");
        if page::u32_at(&bytes, layout::INODE_MAGIC) != layout::INODE_MAGIC_VALUE {
            self.report.problem(format_args!("{place}: wrong magic number"));
            return Ok(());
        }
        let next_id = page::u64_at(self.pages.header(), layout::HEADER_NEXT_SEGMENT_ID);
        if id >= next_id || !ids.insert(id) {
            self.report.problem(format_args!("{place}: its id is taken, or not below {next_id}"));
        }
        let extent_pages = self.pages.layout.extent_pages();
        let index = self.report.segments.len();
        let space = self.pages.header_u32(layout::HEADER_SPACE_ID);
        // Offsets are below 64 KiB, the largest page.
        let header = SegmentHeader { space, page, offset: offset as u16 };
        let usage = inode::usage(&bytes, extent_pages);
        self.report.segments.push(SegmentReport { id, header, usage });
        let segment = Some((index, id));
        let list = |name, fewest_used, most_used| ExtentList {
            name,
            state: State::Segment,
            segment,
            fewest_used,
            most_used,
        };
        self.extent_list(&bytes, layout::INODE_FREE, list("FREE", 0, 0), breath).await?;
        let used = self
            .extent_list(&bytes, layout::INODE_NOT_FULL, list("NOT_FULL", 1, extent_pages - 1), breath)
            .await?;
        self.extent_list(&bytes, layout::INODE_FULL, list("FULL", extent_pages, extent_pages), breath)
            .await?;
        let noted = page::u32_at(&bytes, layout::INODE_NOT_FULL_USED);
        if u64::from(noted) != used {
            self.report
                .problem(format_args!("{place}: NOT_FULL_N_USED is {noted}, but {used} pages are used"));
        }
        for fragment in inode::fragments(&bytes).filter(|page| *page != NULL_PAGE) {
            let extent = self.extents.get((fragment / extent_pages) as usize);
            let lent = extent.is_some_and(|extent| {
                matches!(extent.state, Some(State::FreeFragment | State::FullFragment))
            });
            if !lent || extent::is_free(self.pages.bitmap(fragment / extent_pages), fragment % extent_pages) {
                self.report
                    .problem(format_args!("{place}: has the single page {fragment}, which is not marked so"));
            } else if self.fragments.insert(fragment, index).is_some() {
                self.report.problem(format_args!(
                    "{place}: has the single page {fragment}, which another slot has too"
                ));
            }
        }
        Ok(())
    }

    /// Finds the owner of every used page.
    async fn owners<B: Breath>(&mut self, inode_pages: &[u32], breath: &mut B) -> Result<(), B::Error> {
        let layout = self.pages.layout;
        let inode_pages: BTreeSet<u32> = inode_pages.iter().copied().collect();
        for index in 0..self.pages.extents {
            breath.take(1).await?;
            let extent = self.extents[index as usize];
            let first = index * layout.extent_pages();
            for page in first..first + layout.extent_pages() {
                let structure = page % layout.described_pages() < 2 || inode_pages.contains(&page);
                if extent::is_free(self.pages.bitmap(index), page - first) {
                    if structure {
                        self.report.problem(format_args!("page {page}: a structure page, but marked free"));
                    }
                    continue;
                }
                let owner = match (structure, extent.owner.or(self.fragments.get(&page).copied())) {
                    (true, None) => Owner::Structure,
                    (false, Some(segment)) => Owner::Segment(segment),
                    (true, Some(_)) => {
                        self.report
                            .problem(format_args!("page {page}: a structure page that a segment owns too"));
                        Owner::Structure
                    }
                    (false, None) => {
                        self.report.problem(format_args!("page {page}: marked used, but owned by nobody"));
                        Owner::Nobody
                    }
                };
                push_page(&mut self.report.runs, page, owner);
            }
        }
        Ok(())
    }
}

fn push_page(runs: &mut Vec<Run>, page: u32, owner: Owner) {
    match runs.last_mut() {
        Some(run) if run.owner == owner && run.first + run.count == page => run.count += 1,
        _ => runs.push(Run { first: page, count: 1, owner }),
    }
}
