//! Giving back what is large: on a thread of its own, so that the connections of this one do not wait.

use crate::sql::parser;

/// Drops it elsewhere.
pub fn discard<T: Send + 'static>(what: T) {
    let thread = std::thread::Builder::new().name("discard".to_owned()).stack_size(parser::STACK_BYTES);
    // Where there is no thread to be had the closure, and what is in it, is dropped here.
    let _ = thread.spawn(move || drop(what));
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
        discard(Tells(tells));
        assert_ne!(told.recv(), Ok(thread::current().id()));
    }
}
