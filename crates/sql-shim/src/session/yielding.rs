//! Yielding so that others really run.
//!
//! A task that wakes itself and returns is polled again at once, before the runtime has looked at its
//! sockets: tokio looks after many polls only, and an io_uring's requests go to the kernel only when the
//! thread is about to sleep. With tasks that work 500 µs at a time that is 30 ms, or never. Therefore
//! [`run_yielding`]: a task that woke itself is not polled again until the runtime has completed a turn: read
//! sockets, flushed writes, run other tasks.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};

use parking_lot::Mutex;

thread_local! {
    /// This thread's runtime waits with an io_uring.
    static IO_URING: Cell<bool> = const { Cell::new(false) };
}

/// Says that this thread's runtime waits with an io_uring.
pub fn thread_has_io_uring() {
    IO_URING.set(true);
}

/// Completes when the runtime of this thread has made a turn.
async fn turn() {
    if IO_URING.get() {
        // It completes when the ring has been entered and its completions have been looked at.
        let _ = tokio_uring::no_op().await;
    } else {
        tokio::task::yield_now().await;
    }
}

const WAITING: u8 = 0;
const WORKING: u8 = 1;
const WOKEN: u8 = 2;

/// Tells a task that woke itself from one that others woke.
#[derive(Default)]
pub struct YieldState {
    state: AtomicU8,
    task: Mutex<Option<Waker>>,
}

impl YieldState {
    fn begin(&self, task: &Waker) {
        let mut known = self.task.lock();
        if !known.as_ref().is_some_and(|known| known.will_wake(task)) {
            *known = Some(task.clone());
        }
        drop(known);
        self.state.store(WORKING, Ordering::SeqCst);
    }

    /// Whether it was woken while it worked.
    fn end(&self) -> bool {
        self.state.swap(WAITING, Ordering::SeqCst) == WOKEN
    }
}

impl Wake for YieldState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // While it works the end of the work answers for the wake.
        let noted = self.state.compare_exchange(WORKING, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        if noted == Err(WAITING) {
            let task = self.task.lock().clone();
            if let Some(task) = task {
                task.wake();
            }
        }
    }
}

/// Runs the work; see the module's text.
///
/// The work comes pinned where it stands: a statement's future is tens of kilobytes, and would be copied for
/// each function that it is handed through.
pub async fn run_yielding<T>(
    yield_state: &Arc<YieldState>,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> T {
    let waker = Waker::from(yield_state.clone());
    let mut waited_for: Option<Pin<Box<dyn Future<Output = ()>>>> = None;
    poll_fn(|context| {
        loop {
            if let Some(turn) = &mut waited_for {
                ready!(turn.as_mut().poll(context));
                waited_for = None;
            }
            yield_state.begin(context.waker());
            let result = work.as_mut().poll(&mut Context::from_waker(&waker));
            match (result, yield_state.end()) {
                (Poll::Ready(done), _) => return Poll::Ready(done),
                (Poll::Pending, false) => return Poll::Pending,
                (Poll::Pending, true) => waited_for = Some(Box::pin(turn())),
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::rc::Rc;

    /// A task that always has more to do lets another answer a client; both on a runtime of one thread.
    async fn answers_beside_work(socket: crate::server::transport::Accepted, uring: bool) {
        let answered = Rc::new(Cell::new(false));
        let seen = answered.clone();
        let client = tokio::task::spawn_local(async move {
            let Ok(mut socket) = crate::server::transport::Socket::adopt(socket, uring) else { return };
            for _ in 0..3 {
                let (count, mut buffer) = socket.read(Vec::with_capacity(16)).await;
                assert_eq!(count.ok(), Some(1));
                buffer.push(b'!');
                let (written, _) = socket.write_all(buffer).await;
                assert!(written.is_ok());
            }
            seen.set(true);
        });
        // Ends only when the other has answered: for ever, where it cannot.
        let work = std::pin::pin!(async {
            while !answered.get() {
                let mut woke = false;
                poll_fn(|context| {
                    if std::mem::replace(&mut woke, true) {
                        return Poll::Ready(());
                    }
                    context.waker().wake_by_ref();
                    Poll::Pending
                })
                .await;
            }
        });
        run_yielding(&Arc::default(), work).await;
        assert!(client.await.is_ok());
    }

    fn client_of(mut socket: std::os::unix::net::UnixStream) -> std::thread::JoinHandle<std::io::Result<()>> {
        std::thread::spawn(move || {
            for _ in 0..3 {
                socket.write_all(b"?")?;
                socket.read_exact(&mut [0; 2])?;
            }
            Ok(())
        })
    }

    #[test]
    fn a_busy_task_lets_sockets_be_served() -> std::io::Result<()> {
        for uring in [false, true] {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
            let accepted = crate::server::transport::Accepted::Unix(ours);
            let worker = std::thread::spawn(move || {
                if uring {
                    thread_has_io_uring();
                    tokio_uring::start(answers_beside_work(accepted, true));
                } else if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build()
                {
                    tokio::task::LocalSet::new().block_on(&runtime, answers_beside_work(accepted, false));
                }
            });
            assert!(client_of(theirs).join().is_ok_and(|result| result.is_ok()));
            assert!(worker.join().is_ok());
        }
        Ok(())
    }
}
