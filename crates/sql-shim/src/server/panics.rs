//! A panic costs its connection; and the server's writes, if it struck in the middle of a change to pages.
//!
//! The threads carry many connections, so what one of them does to itself must stop there: the panic is
//! caught where the connection's future is polled, counted, and told to the client; its transaction is rolled
//! back like that of any connection that ends. Whatever else the connection holds is released by guards, not
//! by the code that follows.
//!
//! One thing does not stop there. A mini-transaction that is unwound after it changed pages leaves pages in
//! memory that the log cannot reproduce, so it poisons the page store: nothing is written any more until the
//! server is started again, and recovery brings back what was committed.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// What a panic said.
#[derive(Debug)]
pub struct Panicked(pub String);

/// Awaits the work; a panic inside it is the `Err`. Nothing is asked of the work after that but to be
/// dropped.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    poll_fn(|context| {
        // What the work shared with others is behind cells and locks that unwinding releases.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(payload) => Poll::Ready(Err(Panicked(message(payload.as_ref())))),
        }
    })
    .await
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}
