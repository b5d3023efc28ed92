//! Where the store keeps its [buffer pool extension](BufferPoolExtension): code that reads, evicts or changes
//! pages asks here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use page::BufferPoolExtension;
use parking_lot::RwLock;

use crate::store::PageStore;

/// Where the store keeps its tier. Without one, looking costs a load of a flag that never changes.
#[derive(Default)]
pub(crate) struct TierPlace {
    present: AtomicBool,
    tier: RwLock<Option<Arc<dyn BufferPoolExtension>>>,
}

impl TierPlace {
    /// The tier, if there is one.
    #[inline]
    pub(crate) fn get(&self) -> Option<Arc<dyn BufferPoolExtension>> {
        if self.present.load(Ordering::Acquire) { self.tier.read().clone() } else { None }
    }

    fn set(&self, tier: Option<Arc<dyn BufferPoolExtension>>) -> Option<Arc<dyn BufferPoolExtension>> {
        let mut place = self.tier.write();
        self.present.store(tier.is_some(), Ordering::Release);
        std::mem::replace(&mut *place, tier)
    }
}

impl PageStore {
    /// Puts a buffer pool extension into the place of the one before, which is returned, or takes it away. A
    /// tier set before [`PageStore::recover`] may know pages already: recovery invalidates those that it
    /// finds in the log, and reads nothing from the tier. One that is set later must be empty. The memory it
    /// takes is the pool's from now on.
    pub fn set_extension(
        &self,
        tier: Option<Arc<dyn BufferPoolExtension>>,
    ) -> Option<Arc<dyn BufferPoolExtension>> {
        if tier.is_none() {
            self.resizing.charge(0);
        }
        self.tier.set(tier)
    }

    /// The buffer pool extension, if one is set.
    #[must_use]
    pub fn extension(&self) -> Option<Arc<dyn BufferPoolExtension>> {
        self.tier.get()
    }

    /// The buffer pool extension, unless pages are not to be taken from it or given to it now: while recovery
    /// applies the log, the pages are on their way to what the tier has.
    pub(crate) fn tier_to_use(&self) -> Option<Arc<dyn BufferPoolExtension>> {
        self.tier.get().filter(|tier| tier.is_on() && !self.recovering.load(Ordering::Acquire))
    }
}
