//! The listener: binds the addresses, accepts connections, places them on workers, and ends them when the
//! server is to stop.
//!
//! It is one thread. It also ticks: the coarse clock, idle timeouts, clients that are gone, waits that are
//! too long. When a stop is asked for, it accepts no more, tells every connection to end, and waits for them
//! [`SHUTDOWN_GRACE`] long; the program closes the database after that.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sql::kill_switch::Kill;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::clock::TICK;
use super::long_waits::LongWaits;
use super::lost_clients;
use super::runtime::{Incoming, ListenOptions, Worker};
use super::shared::Server;
use super::transport::Accepted;
use crate::auth::Peer;
use crate::status::Counter;
use crate::wire::output::PacketOutput;
use crate::wire::response_packets;

/// Longest path of a socket: `sun_path` has 108 bytes, the last of them 0.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Whether the addresses can be listened on, before anything is made or recovered for a server that could not
/// serve. They are let go again: clients that connect during a recovery are refused, not kept waiting.
pub(crate) fn check_addresses(options: &ListenOptions) -> io::Result<()> {
    options.socket.as_deref().map_or(Ok(()), check_length)?;
    let addresses = options.addresses.iter().map(|address| SocketAddr::new(*address, options.port));
    addresses.map(bind).collect::<io::Result<Vec<_>>>().map(drop)
}

pub(super) fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
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

/// The kernel takes no longer name of a socket, and says so in the words of C.
fn check_length(path: &Path) -> io::Result<()> {
    let bytes = path.as_os_str().len();
    if bytes <= SOCKET_PATH_BYTES_MAX {
        return Ok(());
    }
    let why = format!(
        "the socket path is too long ({bytes} bytes of at most {SOCKET_PATH_BYTES_MAX}); \
         use --socket=/run/untorn.sock or another short path: {}",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

pub(super) fn bind_socket(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
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

pub(super) struct Listener {
    pub(super) server: Arc<Server>,
    pub(super) workers: Vec<Worker>,
    pub(super) socket: Option<PathBuf>,
}

/// How long connections get to finish after they were told to stop.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

impl Listener {
    pub(super) fn run(
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
        let mut long_waits = LongWaits::default();
        let mut ticker = tokio::time::interval(TICK);
        let mut looks = tokio::time::interval(lost_clients::LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.server.shutdown.requested() => break,
                _ = ticker.tick() => self.tick(&mut long_waits),
                _ = looks.tick() => lost_clients::look(&self.server.connections),
                Some((socket, peer, host)) = queue.recv() => self.place(socket, peer, host),
            }
        }
        self.stop().await
    }

    fn tick(&self, long_waits: &mut LongWaits) {
        let now_ms = self.server.clock.advance();
        self.server.connections.for_each(|connection| connection.expire(now_ms));
        long_waits.look(now_ms, &self.server.connections);
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
    response_packets::put_error(&mut output, false, &response_packets::error::too_many_connections());
    let _ = match accepted {
        Accepted::Tcp(stream) => (&mut &*stream).write(output.as_bytes()),
        Accepted::Unix(stream) => (&mut &*stream).write(output.as_bytes()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_path_that_is_too_long_is_named_before_anything_is_made() {
        let path = |bytes: usize| PathBuf::from(format!("/{}", "s".repeat(bytes - 1)));
        assert!(check_length(&path(SOCKET_PATH_BYTES_MAX)).is_ok());
        let refused = check_length(&path(SOCKET_PATH_BYTES_MAX + 1)).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|why| why.contains("108 bytes of at most 107); use --socket=/run/")));
    }
}
