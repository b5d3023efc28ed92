//! The atomics of the latch and pin protocols: the standard ones, or loom's when a model checks every
//! interleaving (`RUSTFLAGS="--cfg loom" cargo test -p untorn-pagestore --lib loom_`; the rest of the crate
//! is left out then).

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Lets another thread run while a protocol spins.
#[inline]
pub(crate) fn spin() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
