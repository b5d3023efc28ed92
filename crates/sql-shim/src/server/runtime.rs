//! Worker threads, the listener that feeds them, and the end of the server.
//!
//! One listener accepts and hands each socket to the worker with the fewest connections: SO_REUSEPORT would
//! let the kernel's hash decide, which leaves cores idle with few clients. A worker is one single-threaded
//! runtime: tokio-uring where io_uring is allowed, else tokio over epoll.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sql::kill::Kill;
use sql::parser::STACK_BYTES;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::clock::TICK;
use super::connection;
use super::lost_clients::{self, Attended};
use super::registry::{Connection, Enrolled};
use super::shared::Server;
use super::stuck::Stuck;
use super::transport::{Accepted, Socket};
use crate::auth::Peer;
use crate::service::SessionFactory;
use crate::status::{Counter, Counters};
use crate::wire::output::PacketOutput;
use crate::wire::packets;

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

struct Incoming {
    accepted: Accepted,
    connection: Arc<Connection>,
    peer: Peer,
}

struct Worker {
    queue: UnboundedSender<Incoming>,
    connections: Arc<AtomicUsize>,
    counters: Arc<Counters>,
    thread: JoinHandle<()>,
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

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => "; another program has this port, --port=N chooses another",
            _ => "",
        };
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}{hint}"))
    })?;
    listener.set_nonblocking(true)?;
    // The standard library's backlog of 128 drops connections when hundreds of clients start at once.
    let socket = nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::MAXCONN);
    socket.map_err(io::Error::from)?;
    Ok(listener)
}

fn bind_socket(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    let context = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot listen on {}: {error}", path.display()))
    };
    // A socket file left by a dead server is in the way; one that answers belongs to a live server.
    let left_over = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    if left_over && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path).map_err(context)?;
    }
    let listener = std::os::unix::net::UnixListener::bind(path).map_err(context)?;
    listener.set_nonblocking(true)?;
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(path, everyone).map_err(context)?;
    Ok(listener)
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
    crate::session::courtesy::thread_has_io_uring();
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

struct Listener {
    server: Arc<Server>,
    workers: Vec<Worker>,
    socket: Option<PathBuf>,
}

/// How long connections get to finish after they were told to stop.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

impl Listener {
    fn run(
        self,
        tcp: Vec<std::net::TcpListener>,
        unix: Option<std::os::unix::net::UnixListener>,
    ) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.listen(tcp, unix))
    }

    async fn listen(
        self,
        tcp: Vec<std::net::TcpListener>,
        unix: Option<std::os::unix::net::UnixListener>,
    ) -> io::Result<()> {
        let (accepted, mut queue) = unbounded_channel();
        for listener in tcp {
            tokio::spawn(accept_tcp(TcpListener::from_std(listener)?, accepted.clone()));
        }
        if let Some(listener) = unix {
            tokio::spawn(accept_unix(UnixListener::from_std(listener)?, accepted.clone()));
        }
        let mut stuck = Stuck::default();
        let mut ticker = tokio::time::interval(TICK);
        let mut looks = tokio::time::interval(lost_clients::LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.server.shutdown.requested() => break,
                _ = ticker.tick() => self.tick(&mut stuck),
                _ = looks.tick() => lost_clients::look(&self.server.connections),
                Some((socket, peer, host)) = queue.recv() => self.place(socket, peer, host),
            }
        }
        self.stop().await
    }

    fn tick(&self, stuck: &mut Stuck) {
        let now_ms = self.server.clock.advance();
        self.server.connections.for_each(|connection| connection.expire(now_ms));
        stuck.look(now_ms, &self.server.connections);
    }

    fn place(&self, accepted: Accepted, peer: Peer, host: String) {
        let Some(worker) =
            self.workers.iter().min_by_key(|worker| worker.connections.load(Ordering::Acquire))
        else {
            return;
        };
        let max = self.server.variables.max_connections();
        let now_ms = self.server.clock.now_ms();
        let counters = Arc::clone(&worker.counters);
        let Some(connection) = self.server.connections.enter(max, &host, now_ms, counters) else {
            worker.counters.add(Counter::AbortedConnects, 1);
            return refuse(&accepted);
        };
        worker.connections.fetch_add(1, Ordering::AcqRel);
        // The queue is open as long as the listener lives.
        let _ = worker.queue.send(Incoming { accepted, connection, peer });
    }

    async fn stop(self) -> io::Result<()> {
        let Self { server, workers, socket } = self;
        if let Some(path) = socket {
            let _ = std::fs::remove_file(path);
        }
        let begin = Instant::now();
        let mut told = usize::MAX;
        while !server.connections.is_empty() && begin.elapsed() < SHUTDOWN_GRACE {
            server.connections.for_each(|connection| connection.kill(Kill::Connection));
            let left = server.connections.len();
            if left < told && begin.elapsed() > Duration::from_millis(200) {
                tracing::info!(connections = left, "waiting for connections to end");
                told = left;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if !server.connections.is_empty() {
            tracing::warn!(
                connections = server.connections.len(),
                "connections did not end in time; abandoning them"
            );
            return Ok(());
        }
        for worker in workers {
            drop(worker.queue);
            if worker.thread.join().is_err() {
                tracing::error!("a worker thread panicked");
            }
        }
        Ok(())
    }
}

type Arrival = (Accepted, Peer, String);

/// After a failed accept (no file descriptors left) the listener rests instead of spinning.
const ACCEPT_REST: Duration = Duration::from_millis(100);

async fn accept_tcp(listener: TcpListener, arrivals: UnboundedSender<Arrival>) {
    loop {
        match listener.accept().await.and_then(|(stream, address)| Ok((stream.into_std()?, address))) {
            Ok((stream, address)) => {
                let peer = Peer::over_network(address.ip());
                let shown = format!("{}:{}", peer.host, address.port());
                if arrivals.send((Accepted::Tcp(stream), peer, shown)).is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

async fn accept_unix(listener: UnixListener, arrivals: UnboundedSender<Arrival>) {
    loop {
        match listener.accept().await.and_then(|(stream, _)| stream.into_std()) {
            Ok(stream) => {
                if arrivals.send((Accepted::Unix(stream), Peer::over_socket(), "localhost".into())).is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

/// Error 1040 in place of a greeting; a single short write that needs no waiting.
fn refuse(accepted: &Accepted) {
    use std::io::Write;
    let mut output = PacketOutput::new();
    packets::put_error(&mut output, false, &packets::error::too_many_connections());
    let _ = match accepted {
        Accepted::Tcp(stream) => (&mut &*stream).write(output.as_bytes()),
        Accepted::Unix(stream) => (&mut &*stream).write(output.as_bytes()),
    };
}
