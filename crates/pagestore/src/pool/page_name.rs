//! Which page a frame holds, in one word.
//!
//! Who has the frame pinned finds the name as it stays. Who reads heads without a pin (`pointers.rs`) needs
//! more: that it has the name of the page whose heads they were. The heads of a page are forgotten before the
//! frame gets another name, and naming it is a release. So who finds the new name and looks at the word of
//! the heads once more, behind an acquire fence ([`HeadsWord::is_still`]), sees that they were forgotten.
//!
//! [`HeadsWord::is_still`]: crate::pool::heads_word::HeadsWord::is_still

use crate::sync::{AtomicU64, Ordering};

/// The word of no page.
const NO_PAGE: u64 = u64::MAX;

/// The word, see the module's essay: the tablespace's id in the upper half, the page number in the lower.
pub(crate) struct PageName(AtomicU64);

impl PageName {
    pub(crate) fn none() -> Self {
        Self(AtomicU64::new(NO_PAGE))
    }

    /// The name; what it says of no page is a page that cannot be.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether it is that of a page.
    pub(crate) fn is_some(&self) -> bool {
        self.get() != NO_PAGE
    }

    /// The page comes, or it goes. For the owner of the frame, when what was kept of the page before is
    /// forgotten.
    pub(crate) fn set(&self, name: Option<u64>) {
        self.0.store(name.unwrap_or(NO_PAGE), Ordering::Release);
    }
}
