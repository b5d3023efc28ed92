//! "Something happened": a stream of one-shot events for those who wait for the next one.

use disk::Event;
use parking_lot::Mutex;

/// Hands out the event of the next notification.
#[derive(Default)]
pub(crate) struct Signal(Mutex<Event>);

impl Signal {
    /// The event that the next [`Signal::notify`] sets. Fetch it, look whether what you wait for is there,
    /// then wait.
    pub(crate) fn event(&self) -> Event {
        self.0.lock().clone()
    }

    pub(crate) fn notify(&self) {
        let before = std::mem::take(&mut *self.0.lock());
        before.set();
    }
}
