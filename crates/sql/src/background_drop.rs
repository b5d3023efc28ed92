//! Giving back what is large: on a thread of its own, so that the connections of this one do not wait.

use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use crate::parser;

/// What waits to be dropped, at most. More means that it comes faster than one thread drops.
const WAITING_MAX: usize = 64;

type Discarded = Box<dyn Send>;

fn spawn(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().name("discard".to_owned()).stack_size(parser::STACK_BYTES);
    // If no thread can be started, the closure is dropped here, with what is in it.
    let _ = thread.spawn(work);
}

/// Drops it elsewhere.
pub fn discard<T: Send + 'static>(what: T) {
    static QUEUE: OnceLock<SyncSender<Discarded>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        let (queue, waiting) = mpsc::sync_channel::<Discarded>(WAITING_MAX);
        spawn(move || waiting.into_iter().for_each(drop));
        queue
    });
    if let Err(refused) = queue.try_send(Box::new(what)) {
        spawn(move || drop(refused));
    }
}

/// Something that, when it is large, is dropped on another thread, no matter where it goes out of scope.
#[derive(Debug)]
pub struct Elsewhere<T: Send + 'static> {
    /// There until it is dropped or taken out.
    what: Option<T>,
    large: bool,
}

impl<T: Send + 'static> Elsewhere<T> {
    /// Holds it; what is not `large` is dropped in place.
    pub fn new(what: T, large: bool) -> Self {
        Self { what: Some(what), large }
    }
}

impl<T: Send + 'static> Elsewhere<Option<T>> {
    /// Takes out what is in it, and whether it is large.
    pub fn take(mut self) -> (Option<T>, bool) {
        (self.what.take().flatten(), self.large)
    }
}

impl<T: Send + Default + 'static> Elsewhere<T> {
    /// Takes it out.
    pub fn into_inner(mut self) -> T {
        self.what.take().unwrap_or_default()
    }
}

impl<T: Send + 'static> Deref for Elsewhere<T> {
    type Target = T;

    #[allow(clippy::expect_used)]
    fn deref(&self) -> &T {
        self.what.as_ref().expect("it is taken out by value only")
    }
}

impl<T: Send + 'static> DerefMut for Elsewhere<T> {
    #[allow(clippy::expect_used)]
    fn deref_mut(&mut self) -> &mut T {
        self.what.as_mut().expect("it is taken out by value only")
    }
}

impl<T: Send + 'static> Drop for Elsewhere<T> {
    fn drop(&mut self) {
        if let Some(what) = self.what.take().filter(|_| self.large) {
            discard(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};

    use super::*;

    struct Tells(mpsc::Sender<ThreadId>);

    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.0.send(thread::current().id());
        }
    }

    #[test]
    fn what_is_discarded_is_dropped_elsewhere() {
        let (tells, told) = mpsc::channel();
        discard(Tells(tells.clone()));
        drop(Elsewhere::new(Tells(tells.clone()), true));
        for _ in 0..2 {
            assert_ne!(told.recv(), Ok(thread::current().id()));
        }
        drop(Elsewhere::new(Tells(tells), false));
        assert_eq!(told.recv(), Ok(thread::current().id()));
    }

    #[test]
    fn while_one_takes_long_the_rest_is_dropped_too() {
        struct Waits(mpsc::Receiver<()>);
        impl Drop for Waits {
            fn drop(&mut self) {
                let _ = self.0.recv();
            }
        }
        let (go, wait) = mpsc::channel();
        discard(Waits(wait));
        let (tells, told) = mpsc::channel();
        for _ in 0..2 * WAITING_MAX {
            discard(Tells(tells.clone()));
        }
        // Those that found no room in the queue.
        for _ in 0..WAITING_MAX - 1 {
            assert_ne!(told.recv(), Ok(thread::current().id()));
        }
        drop(go);
        for _ in 0..=WAITING_MAX {
            assert_ne!(told.recv(), Ok(thread::current().id()));
        }
    }
}
