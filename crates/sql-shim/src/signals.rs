//! What signals do to the server: SIGTERM and SIGINT ask it to stop, and again, later, end it at once.
//!
//! One request may come as several signals: `timeout` of coreutils signals its child and then the group that
//! the child is in, a terminal and a supervisor may both send one. So what follows the first within
//! [`SAME_REQUEST`] is taken for the same request. A database is closed in about that time, too.
//!
//! SIGHUP, with which stock servers open their logs again, ends nothing: no log of the server is held open.
//! A terminal that is closed sends it, too; a server that it started goes on, as the stock ones do.

use std::io;
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::program::say;
use crate::server::shared::Server;

/// For how long after the first signal others mean what that meant.
const SAME_REQUEST: Duration = Duration::from_secs(3);

/// Catches signals, and stops the server once there is one.
pub struct Watcher {
    server: mpsc::UnboundedSender<Arc<Server>>,
}

impl Watcher {
    /// Signals stop this server from now on, and one that has come already.
    pub fn connect(&self, server: &Arc<Server>) {
        // The thread lives as long as the process.
        let _ = self.server.send(Arc::clone(server));
    }
}

/// The two signals that ask to stop, and the one that does not.
struct Stops {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Stops {
    async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => {
                    say("SIGHUP: there is nothing to open again, logs are opened for each writing; the server goes on");
                }
            }
        }
    }

    /// Ends the process when it is told to stop again.
    async fn end_at_the_next(mut self, first: Instant) {
        let mut said = false;
        loop {
            self.next().await;
            if first.elapsed() >= SAME_REQUEST {
                process::exit(1);
            }
            if !std::mem::replace(&mut said, true) {
                let within = SAME_REQUEST.as_secs();
                say(&format!("another signal within {within} s is taken for the same request"));
            }
        }
    }
}

/// Catches signals from here on.
///
/// # Errors
/// The system gives no thread or no signals.
pub fn watch() -> io::Result<Watcher> {
    let (sender, mut receiver) = mpsc::unbounded_channel::<Arc<Server>>();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut stops = {
        let _entered = runtime.enter();
        // Who is listened to does not kill: a file that has come to its limit is an error of its write.
        let _ = signal(SignalKind::from_raw(nix::libc::SIGXFSZ))?;
        Stops {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async move {
            stops.next().await;
            let (first, later) = (Instant::now(), SAME_REQUEST.as_secs());
            say(&format!(
                "a signal asks to stop (another one after {later} s ends at once, and the next start recovers)"
            ));
            let stop = async move {
                // During recovery the server is not there yet.
                if let Some(server) = receiver.recv().await {
                    server.shutdown.request();
                }
            };
            tokio::join!(stop, stops.end_at_the_next(first));
        })
    })?;
    Ok(Watcher { server: sender })
}
