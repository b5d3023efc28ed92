//! The memory that the pages of a pool lie in: pieces of address space, one for each time the pool grew
//! beyond all it had been before.
//!
//! A piece is never moved and not freed before the pool is: a frame has its page at the same address for
//! ever. What it costs is what was touched. When the pool is made smaller, the pages that go are given back
//! to the system (`MADV_DONTNEED`) and come back as zeros when they are touched again.
//!
//! Large pieces ask for huge pages: a look at a page of the pool touches several of the system's small pages,
//! and each of them costs the processor a walk through its tables, twice that in a virtual machine. Frames
//! are handed out one after the other, so hardly more memory is touched for it. Making a huge page zero takes
//! longer than most changes of rows: where many frames are used for the first time, the page cleaner has the
//! next ones backed before they are ([`FirstUses`]).

use std::ops::Range;
use std::sync::OnceLock;

use page::PageSize;
use smallvec::SmallVec;

/// Pieces from this size on ask for huge pages.
const ASKS_FROM: usize = 8 << 20;
/// The huge pages that are worth asking for. Where the system's pages have 16 or 64 KiB, huge ones have 32 or
/// 512 MiB: one look at one page of the pool would have all of that zeroed, and memory taken in such steps.
pub(crate) const HUGE_BYTES: usize = 2 << 20;

/// The most bytes backed before they are used.
const AHEAD_MAX: usize = 16 << 20;

/// How far the memory of frames has been backed before their first use.
#[derive(Default)]
pub(crate) struct FirstUses {
    backed: usize,
}

impl FirstUses {
    /// The frames whose memory is to be backed now, where `never_used` are left and `demand` are taken in the
    /// time between two looks: as many as are taken in two, and no more than an eighth of the pool, of which
    /// the rest may never be used.
    pub(crate) fn next(&mut self, never_used: Range<usize>, demand: usize, page_size: usize) -> Range<usize> {
        let step = (HUGE_BYTES / page_size).max(1);
        let from = self.backed.max(never_used.start);
        let most = (AHEAD_MAX / page_size).min(never_used.end / 8);
        let to = (never_used.start + most.min(2 * demand)).next_multiple_of(step).min(never_used.end);
        // A few frames now and then are no reason to have megabytes touched, nor is a small pool.
        if demand < step / 4 || most < step || to <= from {
            return from..from;
        }
        self.backed = to;
        from..to
    }

    /// The system has refused it, as a kernel before 5.14 does, or has no memory left: it is not asked again.
    pub(crate) fn refused(&mut self) {
        self.backed = usize::MAX;
    }
}

/// One mapping of anonymous memory: mapped, not allocated, because giving pages back to the system is no
/// business of an allocator's.
struct Piece {
    /// What was mapped; the pages lie in the aligned part of it.
    start: *mut libc::c_void,
    bytes: usize,
    pages_start: *mut u8,
    pages: Range<usize>,
}

/// All memory for pages, by frame index.
pub(crate) struct PageMemory {
    pieces: Vec<Piece>,
    page_size: usize,
}

// SAFETY: owns its mappings; what they hold is governed by the frames.
unsafe impl Send for PageMemory {}

impl PageMemory {
    /// Memory for `count` pages, or `None` when there is none.
    pub(crate) fn allocate(count: usize, page_size: PageSize) -> Option<Self> {
        let mut memory = Self { pieces: Vec::new(), page_size: page_size.bytes() };
        memory.grow(count).then_some(memory).filter(|memory| memory.pages() > 0)
    }

    /// Pages there is memory for.
    pub(crate) fn pages(&self) -> usize {
        self.pieces.last().map_or(0, |piece| piece.pages.end)
    }

    /// Gets memory for a total of `count` pages. False when it is not available.
    pub(crate) fn grow(&mut self, count: usize) -> bool {
        let pages = self.pages()..count;
        if pages.is_empty() {
            return true;
        }
        let piece = Self::piece(pages, self.page_size);
        let got = piece.is_some();
        self.pieces.extend(piece);
        got
    }

    fn piece(pages: Range<usize>, page_size: usize) -> Option<Piece> {
        let bytes = pages.len().checked_mul(page_size)?;
        // Aligned for huge pages where the piece is large enough to have any, else for any system's pages.
        let has_huge = bytes >= ASKS_FROM && has_small_huge_pages();
        let align = if has_huge { HUGE_BYTES } else { 1 << 16 };
        // A mapping is aligned for the system's pages only; the rest is made here.
        let mapped = bytes.checked_add(align)?;
        let start = map(mapped)?;
        let skip = start.cast::<u8>().align_offset(align);
        assert!(skip <= align, "room for the alignment was mapped");
        // SAFETY: skip <= align, and `align` bytes more than the pages take were mapped.
        let pages_start = unsafe { start.cast::<u8>().add(skip) };
        if has_huge && !cfg!(miri) {
            // Advice only: a kernel without huge pages refuses it, and nothing is lost.
            // SAFETY: within our mapping, and it changes no byte of it.
            unsafe { libc::madvise(pages_start.cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        Some(Piece { start, bytes: mapped, pages_start, pages })
    }

    /// Where the page of a frame lies.
    pub(crate) fn page(&self, index: usize) -> *mut u8 {
        let piece = self.pieces.iter().rev().find(|piece| piece.pages.contains(&index));
        let Some(piece) = piece else { unreachable!("frame {index} has no memory") };
        piece.address(index, self.page_size)
    }

    /// Where the pages of these frames lie: addresses and bytes.
    pub(crate) fn parts(&self, frames: Range<usize>) -> SmallVec<[Part; 1]> {
        let part = |piece: &Piece| {
            let part = frames.start.max(piece.pages.start)..frames.end.min(piece.pages.end);
            let bytes = part.len() * self.page_size;
            (!part.is_empty()).then(|| Part { start: piece.address(part.start, self.page_size), bytes })
        };
        self.pieces.iter().filter_map(part).collect()
    }

    /// Gives the memory of these pages, which nobody uses, back to the system; they are zero afterwards, or
    /// as before.
    pub(crate) fn discard(&self, pages: Range<usize>) {
        self.give_back(pages, system_page_bytes());
    }

    fn give_back(&self, pages: Range<usize>, system_page: usize) {
        for piece in &self.pieces {
            let part = pages.start.max(piece.pages.start)..pages.end.min(piece.pages.end);
            if part.is_empty() {
                continue;
            }
            let (address, bytes) = (piece.address(part.start, self.page_size), part.len() * self.page_size);
            // SAFETY: of our mapping. The frames are withdrawn: nobody has one's latch or pin, and with it a
            // reference to its bytes.
            unsafe { give_back(address, bytes, system_page) };
        }
    }

    /// Forgets the memory without freeing it.
    pub(crate) fn leak(&mut self) {
        self.pieces.clear();
    }
}

/// Memory of some pages.
pub(crate) struct Part {
    start: *mut u8,
    bytes: usize,
}

impl Part {
    /// Has the system back the memory now, so that who touches it first does not wait until it has been made
    /// zero. What is there stays as it is. False where the system refuses; nothing is lost then.
    ///
    /// # Safety
    /// The [`PageMemory`] that gave it is not dropped meanwhile.
    pub(crate) unsafe fn populate(&self) -> bool {
        if cfg!(miri) {
            return false;
        }
        // SAFETY: within a mapping that is there, as the caller promises; it changes no byte of it.
        unsafe { libc::madvise(self.start.cast(), self.bytes, libc::MADV_POPULATE_WRITE) == 0 }
    }
}

/// Anonymous memory of the system, zeros, wherever it likes. `None` when there is none.
pub(super) fn map(bytes: usize) -> Option<*mut libc::c_void> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    (start != libc::MAP_FAILED).then_some(start)
}

/// Frees it.
///
/// # Safety
/// [`map`] gave it with this length, and nobody uses it any more.
pub(super) unsafe fn unmap(start: *mut libc::c_void, bytes: usize) {
    // SAFETY: promised by the caller.
    let unmapped = unsafe { libc::munmap(start, bytes) };
    debug_assert_eq!(unmapped, 0, "our own mapping");
}

/// Keeps the system from backing a mapping by huge pages, which it may do without being asked: for memory of
/// which little is touched, here and there.
pub(super) fn without_huge_pages(start: *mut libc::c_void, bytes: usize) {
    if !cfg!(miri) {
        // Advice only: a kernel without huge pages refuses it, and nothing is lost.
        // SAFETY: it changes no byte.
        unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
    }
}

/// Gives the whole pages of the system (of `system_page` bytes) in some memory back to it; they are zero
/// afterwards, or as before.
///
/// # Safety
/// [`map`] gave the memory, and nobody reads or writes it now. Who has a reference into it expects that
/// others change what is there, as of atomics.
pub(super) unsafe fn give_back(address: *mut u8, bytes: usize, system_page: usize) {
    // The system would go on to the end of its own last page, and into what is in use.
    let whole = whole_pages(address.addr(), bytes, system_page);
    let (address, bytes) = (address.with_addr(whole.start), whole.len());
    if bytes == 0 {
        return;
    }
    if cfg!(miri) {
        // Miri knows no madvise. What it does, seen from here:
        // SAFETY: as below.
        unsafe { address.write_bytes(0, bytes) };
        return;
    }
    // SAFETY: whole pages of a mapping of which nobody minds the change; as anonymous memory they are zero
    // when touched again.
    if unsafe { libc::madvise(address.cast(), bytes, libc::MADV_DONTNEED) } != 0 {
        let error = std::io::Error::last_os_error();
        tracing::debug!("memory of the buffer pool could not be given back: {error}");
    }
}

/// Bytes of the system's pages.
pub(super) fn system_page_bytes() -> usize {
    // SAFETY: asks for a number.
    let told = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // Where that is not known no page is whole.
    usize::try_from(told).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(1 << (usize::BITS - 1))
}

/// Whether the system has huge pages, of the size that is worth asking for.
pub(super) fn has_small_huge_pages() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let told = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
        told.is_ok_and(|told| told.trim().parse() == Ok(HUGE_BYTES))
    })
}

/// The part of some memory that is whole pages of `page` bytes.
fn whole_pages(address: usize, bytes: usize, page: usize) -> Range<usize> {
    let end = (address + bytes) / page * page;
    let start = address.checked_next_multiple_of(page).unwrap_or(end);
    start.min(end)..end
}

impl Piece {
    fn address(&self, index: usize, page_size: usize) -> *mut u8 {
        assert!(self.pages.contains(&index));
        // SAFETY: the page is one of the piece's.
        unsafe { self.pages_start.add((index - self.pages.start) * page_size) }
    }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        for piece in self.pieces.drain(..) {
            // SAFETY: mapped with this length; frames do not outlive their memory (see `Frames::drop`).
            unsafe { unmap(piece.start, piece.bytes) };
        }
    }
}

#[cfg(all(test, not(miri)))]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;

    /// Bytes of some mapped memory that the system has backed by pages.
    pub(in crate::pool) fn resident(start: usize, bytes: usize) -> usize {
        let page = system_page_bytes();
        let mut pages = vec![0_u8; bytes.div_ceil(page)];
        let start = std::ptr::without_provenance_mut(start);
        // SAFETY: there is a byte for each page.
        let looked = unsafe { libc::mincore(start, bytes, pages.as_mut_ptr().cast()) };
        assert_eq!(looked, 0, "{}", std::io::Error::last_os_error());
        pages.iter().filter(|page| **page & 1 == 1).count() * page
    }

    /// What the kernel says of the mapping that an address is in, `VmFlags` of `smaps`.
    pub(in crate::pool) fn flags_of(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            if let Some((from, to)) = range
                && let Ok(from) = usize::from_str_radix(from, 16)
                && let Ok(to) = usize::from_str_radix(to, 16)
            {
                inside = (from..to).contains(&address);
            }
            if inside && let Some(flags) = line.strip_prefix("VmFlags:") {
                return flags.to_owned();
            }
        }
        String::new()
    }

    #[test]
    fn a_large_piece_asks_for_huge_pages() {
        if !has_small_huge_pages() {
            return;
        }
        for (bytes, huge) in [(1 << 20, false), (32 << 20, true)] {
            let memory = PageMemory::allocate(bytes / 16384, PageSize::DEFAULT).unwrap();
            let flags = flags_of(memory.page(0).addr());
            assert_eq!(flags.split(' ').any(|flag| flag == "hg"), huge, "{bytes} bytes: {flags}");
        }
    }

    #[test]
    fn memory_is_backed_before_its_first_use() {
        let memory = PageMemory::allocate((32 << 20) / 16384, PageSize::DEFAULT).unwrap();
        let start = memory.page(0).addr();
        let before = resident(start, 32 << 20);
        // SAFETY: the memory is there.
        let done = memory.parts(0..256).iter().all(|part| unsafe { part.populate() });
        let backed = resident(start, 32 << 20);
        // A kernel that does not do it refuses.
        let wanted = if done { 4 << 20 } else { before };
        assert!(backed >= wanted, "{backed} bytes, {before} before");
    }

    #[test]
    fn as_many_frames_are_backed_as_are_soon_used() {
        let mut uses = FirstUses::default();
        assert!(uses.next(10..32768, 5, 16384).is_empty(), "a few are not worth it");
        assert_eq!(uses.next(100..32768, 100, 16384), 100..384, "to the end of a huge page");
        assert!(uses.next(180..32768, 80, 16384).is_empty(), "they are already");
        assert_eq!(uses.next(300..32768, 120, 16384), 384..640);
        assert_eq!(uses.next(640..32768, 30000, 16384), 640..1664, "no more than 16 MiB");
        assert_eq!(uses.next(32700..32768, 500, 16384), 32700..32768, "the last ones");
        assert!(uses.next(32768..32768, 500, 16384).is_empty());
        let mut uses = FirstUses::default();
        assert!(uses.next(10..1000, 500, 16384).is_empty(), "a small pool");
        assert_eq!(
            uses.next(10..1536, 500, 16384),
            10..256,
            "an eighth of the pool, and the rest of a huge page"
        );
        uses.refused();
        assert!(uses.next(300..32768, 500, 16384).is_empty());
    }

    #[test]
    fn only_whole_pages_of_the_system_are_given_back() {
        assert_eq!(whole_pages(0x1_0000, 0x2_0000, 0x1000), 0x1_0000..0x3_0000);
        assert_eq!(whole_pages(0x1_4000, 0x2_0000, 0x1_0000), 0x2_0000..0x3_0000);
        assert!(whole_pages(0x1_4000, 0x1_0000, 0x1_0000).is_empty());
        assert!(whole_pages(0x1_4000, 0x4000, 0x1_0000).is_empty());
        // Pages of 16 KiB on a system with pages of 64 KiB: of 1 to 9 only 4 to 7 are whole ones of its.
        let memory = PageMemory::allocate(16, PageSize::DEFAULT).unwrap();
        // SAFETY: a page of our own, which nobody else uses.
        let first_byte = |index: usize| unsafe { &mut *memory.page(index) };
        (0..16).for_each(|index| *first_byte(index) = 7);
        memory.give_back(1..10, 64 << 10);
        for index in 0..16 {
            assert_eq!(*first_byte(index), if (4..8).contains(&index) { 0 } else { 7 }, "page {index}");
        }
    }
}
