//! Negative controls: one promise of the tier broken on purpose, so that the tests which would have to notice
//! can be shown to notice.
//!
//! Compiled only for the tests of this crate and with the feature `negative-control`, which nothing but the
//! dev-dependencies of `testing/torture` asks for: Cargo does not take those into account when it builds
//! anything but tests, so no program has any of this. Where it is compiled every promise is kept all the same
//! until a thread breaks one, and then only in the tiers that this thread opens: other tests of the same
//! program do not notice.

use std::cell::Cell;

/// A promise of the tier that can be broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// What comes back is compared with what was stored.
    Compare,
    /// A page that is changed is dropped.
    DropChanged,
    /// A page that recovery finds in the log is dropped.
    DropRecovered,
}

thread_local! {
    static BROKEN: Cell<Option<Promise>> = const { Cell::new(None) };
}

/// Until this is dropped the tiers opened by this thread break a promise.
#[must_use]
pub struct Broken(());

impl Drop for Broken {
    fn drop(&mut self) {
        BROKEN.set(None);
    }
}

/// Breaks a promise in the tiers that this thread opens from now on.
pub fn break_promise(promise: Promise) -> Broken {
    BROKEN.set(Some(promise));
    Broken(())
}

/// What a tier that is opened now breaks.
pub(crate) fn broken() -> Option<Promise> {
    BROKEN.get()
}
