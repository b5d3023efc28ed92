//! GET over HTTP/1.
//!
//! An endpoint runs on a thread of its own, so that a scraper or viewer cannot take time from a thread that
//! does work by more than the operating system's share. Clients are strangers: a connection has one request,
//! a limit for its header and a deadline for all of it. There is room for some that have not asked for
//! anything yet, and for some that take their answer; in both places the oldest makes room for a new one. So
//! those who say nothing, or do not read, keep nobody out. What the metrics tell is counts, never data, names
//! or statements, and they have no accounts; what the page tells, and to whom, stands in
//! [`crate::dashboard`]. Its [`super::Gate`] is asked at each request (HTTP Basic). One that was refused is
//! answered late, and even if the client hangs up there is one try less until then, so that passwords cannot
//! be tried quickly. Who shows what was right last needs no try.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use hyper::header::{HOST, HeaderValue, REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::recorder::SECOND;
use super::{Admission, Dashboard, Source, is_own_host};

/// Answers that are being taken. A scraper has one, a browser six at most.
const ANSWERS_MAX: usize = 16;
/// Connections that have not asked for anything yet.
const SILENT_MAX: usize = 64;
/// Passwords that were refused and whose time is not over.
const TRIES_MAX: usize = 16;
/// Bytes of a request's header; the least that hyper takes.
const HEADER_BYTES_MAX: usize = 8192;
/// From accepting a connection to its end.
const DEADLINE: Duration = Duration::from_secs(10);
/// After an accept that failed, usually for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Before the answer to a wrong password.
const REFUSAL: Duration = Duration::from_secs(1);

/// The page takes its style, script and figures from here, and nothing from anywhere else.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What an endpoint serves.
#[derive(Clone)]
pub enum Site {
    /// The figures at /metrics.
    Metrics,
    /// The page at / and what feeds it, and the figures too.
    Dashboard(Arc<Dashboard>),
}

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
    pub fn start(address: SocketAddr, source: Arc<dyn Source>, site: Site) -> io::Result<Endpoint> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _entered = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let name = match site {
            Site::Metrics => "metrics",
            Site::Dashboard(_) => "dashboard",
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = record(&site, &*source) => {}
                    () = accept(listener, &source, &site) => {}
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

/// Takes the dashboard's samples; without one it waits for ever.
async fn record(site: &Site, source: &dyn Source) {
    let Site::Dashboard(dashboard) = site else { return std::future::pending().await };
    let mut seconds = interval(SECOND);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        seconds.tick().await;
        dashboard.record(source);
    }
}

/// Connections, the oldest first.
struct Room {
    most: usize,
    inside: Mutex<VecDeque<Visitor>>,
}

/// A connection that may be sent away.
struct Visitor {
    number: u64,
    /// Dropped to send it away.
    _place: oneshot::Sender<Infallible>,
}

impl Room {
    fn of(most: usize) -> Room {
        Room { most, inside: Mutex::default() }
    }

    /// Lets one in. The oldest is sent away where there is no room.
    fn enter(&self, visitor: Visitor) {
        let mut inside = self.inside.lock();
        if inside.len() >= self.most {
            inside.pop_front();
        }
        inside.push_back(visitor);
    }

    fn leave(&self, number: u64) -> Option<Visitor> {
        let mut inside = self.inside.lock();
        let at = inside.iter().position(|visitor| visitor.number == number)?;
        inside.remove(at)
    }
}

/// What all connections share.
struct House {
    source: Arc<dyn Source>,
    site: Site,
    silent: Room,
    answered: Room,
    tries: Arc<Semaphore>,
    /// Of what was shown last and admitted: its hash, which nobody can compute.
    admitted: Mutex<Option<u64>>,
    hashes: RandomState,
}

async fn accept(listener: TcpListener, source: &Arc<dyn Source>, site: &Site) {
    let house = Arc::new(House {
        source: Arc::clone(source),
        site: site.clone(),
        silent: Room::of(SILENT_MAX),
        answered: Room::of(ANSWERS_MAX),
        tries: Arc::new(Semaphore::new(TRIES_MAX)),
        admitted: Mutex::default(),
        hashes: RandomState::new(),
    });
    for number in 0.. {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (place, sent_away) = oneshot::channel();
        house.silent.enter(Visitor { number, _place: place });
        let house = Arc::clone(&house);
        tokio::spawn(async move {
            tokio::select! {
                // A request that is there is answered at once, also to one that would have to go.
                biased;
                // Whatever a client did wrong, there is nobody to tell.
                _ = timeout(DEADLINE, converse(stream, (number, peer), &house)) => {}
                _ = sent_away => {}
            }
            drop((house.silent.leave(number), house.answered.leave(number)));
        });
    }
}

impl House {
    /// The answer to a request, and how long it waits for it.
    fn respond(&self, request: &Request<Incoming>, peer: SocketAddr) -> (Response<Full<Bytes>>, Duration) {
        let shown = request.headers().get(AUTHORIZATION).map(|shown| self.hashes.hash_one(shown.as_bytes()));
        let is_known = shown.is_some() && *self.admitted.lock() == shown;
        let a_try = match shown {
            Some(_) if !is_known && matches!(self.site, Site::Dashboard(_)) => {
                let Ok(a_try) = Arc::clone(&self.tries).try_acquire_owned() else {
                    return (
                        plain(StatusCode::SERVICE_UNAVAILABLE, "others try passwords\n"),
                        Duration::ZERO,
                    );
                };
                Some(a_try)
            }
            _ => None,
        };
        match admission(request, peer, &self.site) {
            admission @ (Admission::Open | Admission::Granted) => {
                if admission == Admission::Granted {
                    *self.admitted.lock() = shown;
                }
                (answer(request, &*self.source, &self.site), Duration::ZERO)
            }
            Admission::Unasked => (password_wanted(), Duration::ZERO),
            Admission::Denied => {
                if is_known {
                    *self.admitted.lock() = None;
                }
                // Who hangs up and asks again has one try less.
                tokio::spawn(async move {
                    tokio::time::sleep(REFUSAL).await;
                    drop(a_try);
                });
                (password_wanted(), REFUSAL)
            }
        }
    }
}

async fn converse(stream: TcpStream, (number, peer): (u64, SocketAddr), house: &House) -> hyper::Result<()> {
    let service = service_fn(|request| {
        if let Some(visitor) = house.silent.leave(number) {
            house.answered.enter(visitor);
        }
        let (response, pause) = house.respond(&request, peer);
        async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            Ok::<_, Infallible>(response)
        }
    });
    http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

/// Whether this request may be answered.
fn admission(request: &Request<Incoming>, peer: SocketAddr, site: &Site) -> Admission {
    let Site::Dashboard(dashboard) = site else { return Admission::Open };
    let mut shown = request.headers().get_all(AUTHORIZATION).iter();
    let (first, more) = (shown.next(), shown.next().is_some());
    match first {
        None => dashboard.admits(None, peer),
        Some(value) => match basic(value).filter(|_| !more) {
            Some((user, password)) => dashboard.admits(Some((&user, &password)), peer),
            None => dashboard.admits(Some(("", "")), peer),
        },
    }
}

/// Name and password.
fn basic(value: &HeaderValue) -> Option<(String, String)> {
    let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
    let text =
        BASE64_STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(text).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

fn password_wanted() -> Response<Full<Bytes>> {
    let mut refusal = plain(StatusCode::UNAUTHORIZED, "log in\n");
    let basic = HeaderValue::from_static("Basic realm=\"Untorn\", charset=\"UTF-8\"");
    refusal.headers_mut().insert(WWW_AUTHENTICATE, basic);
    refusal
}

fn answer(request: &Request<Incoming>, source: &dyn Source, site: &Site) -> Response<Full<Bytes>> {
    let (path, query) = (request.uri().path(), request.uri().query());
    match site {
        Site::Metrics if path != "/metrics" => {
            return plain(StatusCode::NOT_FOUND, "the figures are at /metrics\n");
        }
        Site::Dashboard(dashboard) if !dashboard.has_gate() && !has_own_host(request) => {
            return plain(StatusCode::MISDIRECTED_REQUEST, "ask for localhost or 127.0.0.1\n");
        }
        _ => {}
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "GET only\n");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    match site {
        Site::Dashboard(dashboard) if path != "/metrics" => match dashboard.body(source, path, query) {
            Some((kind, body)) => respond(StatusCode::OK, kind, body.into()),
            None => plain(StatusCode::NOT_FOUND, "the page is at /\n"),
        },
        _ => metrics(source),
    }
}

fn metrics(source: &dyn Source) -> Response<Full<Bytes>> {
    let Some(rows) = source.rows() else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "the server stops\n");
    };
    let rows = rows.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let text = crate::metrics::text(source.is_up(), rows, &source.times(), source.descriptions());
    respond(StatusCode::OK, crate::metrics::CONTENT_TYPE, text.into())
}

fn has_own_host(request: &Request<Incoming>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    hosts.next().is_none() && host.is_some_and(is_own_host)
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CONTENT_SECURITY_POLICY, POLICY),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
