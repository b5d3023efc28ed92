//! Worker threads, and how the server is started.
//!
//! One listener (`listener.rs`) accepts and hands each socket to the worker with the fewest connections:
//! SO_REUSEPORT would let the kernel's hash decide, which leaves cores idle with few clients. A worker is one
//! single-threaded runtime: tokio-uring where io_uring is allowed, else tokio over epoll.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sql::parser::STACK_BYTES;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::connection;
use super::listener::{Listener, bind, bind_socket};
use super::lost_clients::Attended;
use super::registry::{Connection, Enrolled};
use super::shared::Server;
use super::transport::{Accepted, Socket};
use crate::auth::Peer;
use crate::session_interface::SessionFactory;
use crate::status::Counters;

/// Where to listen and with how many threads.
#[derive(Debug, Clone)]
pub struct ListenOptions {
    /// Addresses of `--bind-address`; empty for none (local socket only).
    pub addresses: Vec<IpAddr>,
    /// TCP port; 0 lets the system choose.
    pub port: u16,
    /// Path of the local socket.
    pub socket: Option<PathBuf>,
    /// Worker threads.
    pub threads: usize,
    /// Which runtime.
    pub runtime: RuntimeKind,
}

/// Which way sockets are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeKind {
    /// tokio-uring.
    Uring,
    /// tokio over epoll.
    Epoll,
}

impl RuntimeKind {
    /// io_uring unless `UNTORN_RUNTIME=epoll` or the kernel refuses it; the second part says why.
    pub fn choose() -> (Self, String) {
        if std::env::var_os("UNTORN_RUNTIME").is_some_and(|value| value == "epoll") {
            return (RuntimeKind::Epoll, "UNTORN_RUNTIME=epoll".into());
        }
        // The ring is tried on a thread of its own: tokio-uring panics where it cannot be set up.
        let tried = std::thread::spawn(|| tokio_uring::builder().entries(8).start(async {})).join();
        match tried {
            Ok(()) => (RuntimeKind::Uring, "io_uring is available".into()),
            Err(_) => {
                (RuntimeKind::Epoll, "the system refuses io_uring (container profile or old kernel)".into())
            }
        }
    }
}

pub(super) struct Incoming {
    pub(super) accepted: Accepted,
    pub(super) connection: Arc<Connection>,
    pub(super) peer: Peer,
}

pub(super) struct Worker {
    pub(super) queue: UnboundedSender<Incoming>,
    pub(super) connections: Arc<AtomicUsize>,
    pub(super) counters: Arc<Counters>,
    pub(super) thread: JoinHandle<()>,
}

/// A server that accepts connections; it lives until [`Running::wait`] returns.
pub struct Running {
    /// Addresses in use, with the port the system chose.
    pub addresses: Vec<SocketAddr>,
    server: Arc<Server>,
    thread: JoinHandle<io::Result<()>>,
}

impl Running {
    /// Waits for the server to be asked to stop and for its connections to end.
    pub fn wait(self) -> io::Result<()> {
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the listener thread panicked")))
    }

    /// The TCP port, 0 without one.
    pub fn port(&self) -> u16 {
        self.addresses.first().map_or(0, SocketAddr::port)
    }

    /// Asks the server to stop.
    pub fn stop(&self) {
        self.server.shutdown.request();
    }
}

/// Binds and starts serving.
pub fn start<F: SessionFactory>(
    options: &ListenOptions,
    server: &Arc<Server>,
    factory: &Arc<F>,
) -> io::Result<Running> {
    let mut tcp = Vec::new();
    // Checked once already, before the database was opened; another program may have come between.
    for address in &options.addresses {
        tcp.push(bind(SocketAddr::new(*address, options.port))?);
    }
    let addresses = tcp.iter().map(std::net::TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
    let unix = options.socket.as_deref().map(bind_socket).transpose()?;
    let workers = (0..options.threads.max(1))
        .map(|number| start_worker(number, options.runtime, server, factory))
        .collect::<io::Result<Vec<_>>>()?;
    let listener = Listener { server: Arc::clone(server), workers, socket: options.socket.clone() };
    let thread =
        std::thread::Builder::new().name("listener".into()).spawn(move || listener.run(tcp, unix))?;
    Ok(Running { addresses, server: Arc::clone(server), thread })
}

fn start_worker<F: SessionFactory>(
    number: usize,
    kind: RuntimeKind,
    server: &Arc<Server>,
    factory: &Arc<F>,
) -> io::Result<Worker> {
    let (queue, incoming) = unbounded_channel();
    let connections = Arc::new(AtomicUsize::new(0));
    let counters = server.status.thread();
    let (server, factory, count) = (Arc::clone(server), Arc::clone(factory), Arc::clone(&connections));
    let thread = std::thread::Builder::new().name(format!("worker-{number}")).stack_size(STACK_BYTES);
    let thread = thread.spawn(move || {
        let work = carry(kind, incoming, server, factory, count);
        match kind {
            RuntimeKind::Uring => run_uring(work),
            RuntimeKind::Epoll => run_epoll(work),
        }
    })?;
    Ok(Worker { queue, connections, counters, thread })
}

fn run_uring(work: impl Future<Output = ()>) {
    crate::session::yielding::thread_has_io_uring();
    let mut ring = tokio_uring::uring_builder();
    // Completions are only looked at when the runtime parks, so the kernel need not interrupt the thread for
    // them.
    ring.setup_coop_taskrun().setup_cqsize(16_384);
    tokio_uring::builder().entries(4096).uring_builder(&ring).start(work);
}

fn run_epoll(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => tokio::task::LocalSet::new().block_on(&runtime, work),
        Err(error) => tracing::error!(%error, "a worker cannot start its runtime"),
    }
}

/// A worker's life: takes sockets until the listener lets go of its queue, then waits for its connections to
/// end.
async fn carry<F: SessionFactory>(
    kind: RuntimeKind,
    mut incoming: UnboundedReceiver<Incoming>,
    server: Arc<Server>,
    factory: Arc<F>,
    connections: Arc<AtomicUsize>,
) {
    while let Some(Incoming { accepted, connection, peer }) = incoming.recv().await {
        let (server, factory, connections) =
            (Arc::clone(&server), Arc::clone(&factory), Arc::clone(&connections));
        tokio::task::spawn_local(async move {
            let _enrolled = Enrolled::new(Arc::clone(&server), connection.id, connections);
            let handle = accepted.handle();
            match handle.and_then(|handle| Ok((handle, Socket::adopt(accepted, kind == RuntimeKind::Uring)?)))
            {
                Ok((handle, socket)) => {
                    let _attended = Attended::new(&connection, handle);
                    Box::pin(connection::serve(socket, connection, peer, Arc::clone(&server), factory)).await;
                }
                Err(error) => tracing::warn!(%error, "a connection was lost before its greeting"),
            }
        });
    }
    while connections.load(Ordering::Acquire) > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
