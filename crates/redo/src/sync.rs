//! The synchronisation primitives of the admission ledger: the real ones, or loom's when a model is explored
//! (`RUSTFLAGS="--cfg loom" cargo test -p untorn-redo --release loom_tests`).

#[cfg(not(loom))]
pub(crate) use disk::Event as Notice;
#[cfg(not(loom))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use model::{Mutex, Notice};

#[cfg(loom)]
mod model {
    use loom::sync::{Arc, Condvar};

    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }
        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    /// An event as loom sees it.
    #[derive(Clone)]
    pub(crate) struct Notice(Arc<(loom::sync::Mutex<bool>, Condvar)>);

    impl Notice {
        pub(crate) fn new() -> Notice {
            Notice(Arc::new((loom::sync::Mutex::new(false), Condvar::new())))
        }
        pub(crate) fn set(&self) {
            *self.0.0.lock().unwrap() = true;
            self.0.1.notify_all();
        }
        pub(crate) fn wait(&self) {
            let mut set = self.0.0.lock().unwrap();
            while !*set {
                set = self.0.1.wait(set).unwrap();
            }
        }
    }
}
