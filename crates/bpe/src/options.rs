//! What a tier is told when it is opened.

use std::path::PathBuf;

use page::PageSize;

use crate::geometry::Geometry;

/// What happens to the extension's pages at a restart (`untorn_bpe_restart`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Restart {
    /// Pages that are still current serve again.
    #[default]
    Keep,
    /// The tier starts empty, and no map is written.
    Discard,
}

/// Settings of a tier.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file (`untorn_bpe_file`); its map lies beside it, in two files with `.map0` and `.map1` added to
    /// the name.
    pub file: Option<PathBuf>,
    /// Bytes of the file (`untorn_bpe_size`), rounded down to whole regions; 0 where its disk has no room for
    /// a useful one: the tier stays off and says so.
    pub size: u64,
    /// Whether it is on (`untorn_bpe`); needs a file.
    pub enabled: bool,
    /// See [`Restart`].
    pub restart: Restart,
    /// Bytes that may be written per second (`untorn_bpe_write_budget`); 0 is no limit.
    pub write_budget: u64,
    /// The database's page size.
    pub page_size: PageSize,
    /// What tells this data directory from all others; a kept tier of another one is discarded.
    pub database: [u8; 16],
    /// Bytes of memory it may take (see [`Tier::set_memory_max`](crate::Tier::set_memory_max)); a larger tier
    /// is made smaller. `None` is no limit.
    pub memory_max: Option<usize>,
    /// Bytes of a region, 256 KiB or more; `None` chooses by size.
    pub region_bytes: Option<usize>,
}

impl Options {
    /// A tier that is off, for pages of that size.
    #[must_use]
    pub fn new(page_size: PageSize, database: [u8; 16]) -> Options {
        Options {
            file: None,
            size: 0,
            enabled: false,
            restart: Restart::Keep,
            write_budget: 0,
            page_size,
            database,
            memory_max: None,
            region_bytes: None,
        }
    }

    /// The geometry for a size, within the memory allowed.
    pub(crate) fn geometry(&self, size: u64, region_bytes: Option<usize>, memory_max: usize) -> Geometry {
        let page_bytes = self.page_size.bytes();
        let whole = Geometry::new(size, page_bytes, region_bytes.or(self.region_bytes));
        let mut geometry = whole;
        // Memory is very nearly proportional to the size: a few steps are enough.
        for _ in 0..8 {
            let memory = geometry.memory_bytes();
            if memory <= memory_max {
                break;
            }
            let fixed = geometry.buffer_bytes();
            let share = memory_max.saturating_sub(fixed) as f64 / (memory - fixed).max(1) as f64;
            let size = (geometry.file_bytes() as f64 * share.min(0.99)) as u64;
            geometry = Geometry::new(size, page_bytes, Some(geometry.region_bytes));
        }
        geometry
    }
}

/// A tier that has been suspended for long keeps as many pages as this share of the memory allowed can
/// describe. Where that is a quarter of the pool, the pool lacks 0.4 % of its pages for a tier that does not
/// help.
const SHARE_WHILE_SUSPENDED: usize = 64;

/// What of the geometry `whole` that is; all of it, when its tables take no more.
pub(crate) fn geometry_while_suspended(whole: Geometry, memory_max: usize) -> Geometry {
    let (tables, allowed) = (whole.memory_bytes() - whole.buffer_bytes(), memory_max / SHARE_WHILE_SUSPENDED);
    if tables <= allowed {
        return whole;
    }
    let size = (whole.file_bytes() as f64 * allowed as f64 / tables as f64) as u64;
    Geometry::new(size, whole.page_bytes, Some(whole.region_bytes))
}

/// Bytes of memory that a tier of `size` bytes takes from the pool's budget.
#[must_use]
pub fn memory_bytes(size: u64, page_size: PageSize) -> usize {
    Geometry::new(size, page_size.bytes(), None).memory_bytes()
}
