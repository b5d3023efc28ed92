//! `--metrics-address`: GET /metrics over HTTP/1.
//!
//! It runs on a thread of its own, so that a scraper cannot take time from a thread that carries sessions by
//! more than the operating system's share. Clients are strangers: a connection has one request, a limit for
//! its header and a deadline for all of it, and beyond a number of connections new ones are closed at once.
//! There are no accounts; what it tells is counts, never data, names or statements.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::server::registry::Server;

/// Connections at a time. A scraper has one.
const CONNECTIONS_MAX: usize = 16;
/// Bytes of a request's header; the least that hyper takes.
const HEADER_BYTES_MAX: usize = 8192;
/// From accepting a connection to its end.
const DEADLINE: Duration = Duration::from_secs(10);
/// After an accept that failed, usually for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A running endpoint; it ends when it is dropped.
pub struct Endpoint {
    address: SocketAddr,
    /// Dropped to stop.
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens at this address; port 0 takes a free one.
    ///
    /// # Errors
    /// The address is in use or not of this machine, or no thread can be started.
    pub fn start(address: SocketAddr, server: &Arc<Server>) -> io::Result<Endpoint> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _entered = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let server = Arc::downgrade(server);
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, server) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Endpoint { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by its hook, and nothing depends on the thread.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, server: Weak<Server>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Without a permit the stream is closed by being dropped.
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
        let server = Weak::clone(&server);
        tokio::spawn(async move {
            // Whatever a client did wrong, there is nobody to tell.
            let _ = timeout(DEADLINE, converse(stream, server)).await;
            drop(permit);
        });
    }
}

async fn converse(stream: TcpStream, server: Weak<Server>) -> hyper::Result<()> {
    let service = service_fn(move |request| {
        let response = answer(&request, &server);
        async move { Ok::<_, Infallible>(response) }
    });
    http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

fn answer(request: &Request<Incoming>, server: &Weak<Server>) -> Response<Full<Bytes>> {
    let Some(server) = server.upgrade() else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "the server stops\n");
    };
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "the figures are at /metrics\n");
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "GET only\n");
        refusal.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    let rows = crate::status::collect(&server);
    let text = untorn::metrics::text(rows.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    respond(StatusCode::OK, untorn::metrics::CONTENT_TYPE, text.into())
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}
