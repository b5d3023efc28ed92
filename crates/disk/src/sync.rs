//! Mutexes, atomics and notices of code whose interleavings are explored: the real ones, or loom's under
//! `--cfg loom`.
//!
//! Such code takes its primitives from here instead of from `std` and `parking_lot`, and its models live in
//! `#[cfg(all(test, loom))]` modules whose tests are named `loom_…`. `cargo xtask test` runs them; by hand:
//! `RUSTFLAGS="--cfg loom" cargo test -p <crate> --lib --release loom_`.

#[cfg(not(loom))]
pub use {crate::event::Event as Notice, parking_lot::Mutex, std::sync::atomic};

#[cfg(loom)]
pub use {loom::sync::atomic, model::Mutex, model::Notice};

#[cfg(loom)]
mod model {
    use loom::sync::{Arc, Condvar, MutexGuard};

    /// `parking_lot`'s face on loom's mutex.
    #[derive(Default)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// An unlocked mutex.
        pub fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }
        /// Locks it.
        #[allow(clippy::unwrap_used)]
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    /// An event as loom sees it: waiting blocks the modelled thread.
    #[derive(Clone)]
    pub struct Notice(Arc<(loom::sync::Mutex<bool>, Condvar)>);

    impl Default for Notice {
        fn default() -> Notice {
            Notice(Arc::new((loom::sync::Mutex::new(false), Condvar::new())))
        }
    }

    #[allow(clippy::unwrap_used)]
    impl Notice {
        /// A fresh one, not set.
        pub fn new() -> Notice {
            Notice::default()
        }
        /// Sets it and wakes everyone.
        pub fn set(&self) {
            *self.0.0.lock().unwrap() = true;
            self.0.1.notify_all();
        }
        /// Blocks until it is set.
        pub fn wait(&self) {
            let mut set = self.0.0.lock().unwrap();
            while !*set {
                set = self.0.1.wait(set).unwrap();
            }
        }
    }
}
