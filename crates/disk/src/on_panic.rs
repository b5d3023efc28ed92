//! What has to happen when a task dies of a panic.

/// Calls a function when it is dropped by a panic that unwinds; does nothing when it is dropped otherwise. A
/// background task that others wait for holds one, so that they hear of its end: the environment only logs
/// it.
pub struct OnPanic<F: FnMut()>(F);

impl<F: FnMut()> OnPanic<F> {
    /// One that calls `then`, which must not panic itself.
    pub fn new(then: F) -> OnPanic<F> {
        OnPanic(then)
    }
}

impl<F: FnMut()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}
