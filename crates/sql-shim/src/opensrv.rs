//! The same SQL sessions behind the crate `opensrv-mysql`, for programs that serve with that crate already.
//!
//! `opensrv-mysql` wants a shim that is `Send` and whose futures are; a session is neither (it stays on one
//! thread for life). So a connection is two parts with a channel between them:
//!
//! ```text
//!   AsyncMysqlIntermediary -> OpensrvSession --- Request ---> SessionDriver -> SessionService
//!   (opensrv-mysql, Send)     (the shim)     <-- batches ---  (one thread)
//! ```
//!
//! [`OpensrvServer::serve`] runs both in one future, on one thread; a program with its own intermediary takes
//! the parts from [`OpensrvServer::connect`] and may run the shim wherever it likes. Rows cross in batches
//! through a channel that holds one, so a slow client slows its statement down, and memory stays bounded by
//! two batches.
//!
//! Invariants:
//! - No statement reaches a session before `authenticate` said yes: the driver has no session until then, and
//!   the shim ends the connection.
//! - A dropped shim closes the requests; the driver then finishes its statement and closes the session
//!   (rollback).
//! - A killed or idle connection ends the driver; `serve` then drops the intermediary and with it the socket.
//!
//! What `opensrv-mysql` 0.7 cannot carry, and what is done about it:
//! - Logins: `mysql_native_password` only, or an account without a password from this machine. Accounts of
//!   `caching_sha2_password` with a password are refused.
//! - Prepared statements: the crate mis-reads the parameters of an execution that does not repeat their
//!   types, and does not say so. A statement with parameters therefore executes once; further executions are
//!   error 1295. Text statements (`sysbench --db-ps-mode=disable`) have no such limit.
//! - The client's capabilities stay inside the crate: no FOUND_ROWS, no several statements in one, no
//!   IGNORE_SPACE, and no interactive time-out. The crate answers COM_FIELD_LIST, and says OK to
//!   COM_RESET_CONNECTION, COM_CHANGE_USER, COM_SET_OPTION, COM_STATISTICS and others without doing anything:
//!   connection pools that rely on a reset must not use this way in.
//! - Columns lose schema, length, charset and decimals; results lose status flags, warnings and the info
//!   text; errors numbered outside 1000..=1885 arrive as 1105 with their message. Statements have to be
//!   UTF-8, or the connection ends.
//! - No local socket of its own, no TLS (with `require_secure_transport` nobody gets in over a network), no
//!   io_uring.

mod cells;
mod driver;

use std::cell::Cell as Unshared;
use std::collections::HashMap;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::opensrv_mysql::{
    AsyncMysqlIntermediary, AsyncMysqlShim, Column, ColumnFlags, ColumnType, ErrorKind, InitWriter,
    OkResponse, ParamParser, QueryResultWriter, StatementMetaWriter, StatusFlags,
};
use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

pub use driver::SessionDriver;

use sql::kill_switch::Kill;
use sql::result::{ColumnMeta, SqlError, charset};

use crate::auth::exchange::{Exchange, Step};
use crate::auth::usage::CountedConnection;
use crate::auth::{self, DEFAULT_PLUGIN, Identity, Peer, native};
use crate::server::clock::TICK;
use crate::server::login::SERVER_VERSION;
use crate::server::registry::{ClientFlags, Connection};
use crate::server::shared::Server;
use crate::session_interface::SessionFactory;
use crate::status::{Counter, Counters};
use crate::wire::handshake::SALT_BYTES;
use crate::wire::output::PacketOutput;
use crate::wire::response_packets;
use driver::{Batch, Done, Event, OwnedParam, Request};

/// Serves connections of one thread; not shared between threads, because sessions and counters belong to one.
pub struct OpensrvServer<F> {
    server: Arc<Server>,
    factory: Arc<F>,
    counters: Arc<Counters>,
    one_thread: PhantomData<Unshared<()>>,
}

impl<F: SessionFactory> OpensrvServer<F> {
    /// A server with the accounts, variables and register of `server`; make one for each thread that serves.
    pub fn new(server: Arc<Server>, factory: Arc<F>) -> Self {
        let counters = server.status.thread();
        Self { server, factory, counters, one_thread: PhantomData }
    }

    /// The two parts of a connection that comes from `peer` (`host` as SHOW PROCESSLIST has it), or
    /// error 1040. The driver is to be polled on one thread until it ends, whatever becomes of the shim.
    pub fn connect(&self, peer: Peer, host: &str) -> Result<(OpensrvSession, SessionDriver<F>), SqlError> {
        let max = self.server.variables.max_connections();
        let now_ms = self.server.clock.advance();
        // There is no administrator's place here.
        let max = max.saturating_sub(1);
        let entered = self.server.connections.enter(max, host, now_ms, Arc::clone(&self.counters));
        let connection = entered.ok_or_else(response_packets::error::too_many_connections)?;
        // The client's own flags do not get through; utf8mb4 is what clients speak.
        let flags = ClientFlags { charset: charset::UTF8MB4_GENERAL_CI, ..ClientFlags::default() };
        connection.set_client_flags(flags);
        let (requests, incoming) = mpsc::channel(1);
        let shim = OpensrvSession {
            server: Arc::clone(&self.server),
            connection: Arc::clone(&connection),
            peer,
            salt: auth::fresh_salt(),
            logged_in: AtomicBool::new(false),
            counted: OnceLock::new(),
            requests,
            statements: HashMap::new(),
        };
        let driver =
            SessionDriver::new(Arc::clone(&self.server), connection, Arc::clone(&self.factory), incoming);
        Ok((shim, driver))
    }

    /// Carries a connection from greeting to end.
    ///
    /// # Errors
    /// The stream's, `PermissionDenied` for a refused login, `ConnectionAborted` for a killed or silent
    /// connection.
    pub async fn serve<R, W>(&self, reader: R, mut writer: W, peer: Peer, host: &str) -> io::Result<()>
    where
        R: AsyncRead + Send + Unpin,
        W: AsyncWrite + Send + Unpin,
    {
        let (shim, driver) = match self.connect(peer, host) {
            Ok(parts) => parts,
            Err(error) => {
                self.counters.add(Counter::AbortedConnects, 1);
                let mut output = PacketOutput::new();
                response_packets::put_error(&mut output, false, &error);
                writer.write_all(output.as_bytes()).await?;
                return writer.shutdown().await;
            }
        };
        let mut driver = pin!(driver.run());
        let outcome = tokio::select! {
            outcome = AsyncMysqlIntermediary::run_on(shim, reader, BufWriter::new(writer)) => outcome,
            () = &mut driver => return Err(aborted()),
        };
        // The shim is gone: the session ends its statement, rolls back and closes.
        driver.await;
        outcome
    }

    /// Accepts and serves until the server is asked to stop, then ends the connections. Needs a
    /// [`tokio::task::LocalSet`] around it. Errors of connections are logged.
    pub async fn listen(self, listener: TcpListener) {
        let this = Rc::new(self);
        let mut connections = JoinSet::new();
        let mut ticker = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                () = this.server.shutdown.requested() => break,
                _ = ticker.tick() => { this.server.clock.advance(); }
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, address)) => {
                        connections.spawn_local(Rc::clone(&this).carry(stream, address));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_REST).await;
                    }
                },
            }
        }
        while !connections.is_empty() {
            this.server.connections.for_each(|connection| connection.kill(Kill::Connection));
            // A connection that logged in just now is not in the register's last round: go round again.
            let _ = tokio::time::timeout(TICK, connections.join_next()).await;
        }
    }

    async fn carry(self: Rc<Self>, stream: TcpStream, address: SocketAddr) {
        // Without it small replies wait for the client's acknowledgement; slow, not wrong.
        let _ = stream.set_nodelay(true);
        let peer = Peer::over_network(address.ip());
        let shown = format!("{}:{}", peer.host, address.port());
        let (reader, writer) = stream.into_split();
        if let Err(error) = self.serve(reader, writer, peer, &shown).await {
            tracing::info!(%error, client = shown, "a connection ended with an error");
        }
    }
}

/// After a failed accept (no file descriptors left) the listener rests instead of spinning.
const ACCEPT_REST: Duration = Duration::from_millis(100);

fn aborted() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionAborted,
        "the session of this connection has ended (killed or idle)",
    )
}

/// What the shim remembers of a prepared statement.
struct Known {
    has_params: bool,
    executed: bool,
}

/// The shim of one connection; see the module text.
pub struct OpensrvSession {
    server: Arc<Server>,
    connection: Arc<Connection>,
    peer: Peer,
    salt: [u8; SALT_BYTES],
    logged_in: AtomicBool,
    /// Counts the connection as its account's.
    counted: OnceLock<CountedConnection>,
    requests: mpsc::Sender<Request>,
    statements: HashMap<u32, Known>,
}

impl OpensrvSession {
    /// Hands a request to the driver.
    async fn ask(&self, request: Request) -> io::Result<()> {
        if !self.logged_in.load(Ordering::Acquire) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "a command before the login"));
        }
        self.requests.send(request).await.map_err(|_| aborted())
    }

    /// Who the client is, if its response to our salt proves it.
    fn identify(&self, user: &[u8], salt: &[u8; SALT_BYTES], response: &[u8]) -> Option<Identity> {
        self.server.admits(&self.peer).ok()?;
        let accounts = &self.server.accounts;
        // An empty response proves nothing in any method, so that an account without a password may have
        // either.
        let plugin = if response.is_empty() {
            let account = accounts.find(&String::from_utf8_lossy(user), &self.peer);
            account.map_or(DEFAULT_PLUGIN, |account| account.plugin())
        } else {
            native::PLUGIN
        };
        let begun =
            Exchange::begin(accounts, &self.peer, *salt, user, Some(plugin.as_bytes()), Some(response));
        match begun {
            // Sessions that may do nothing but set another password are not kept here.
            (_, Step::Accept { identity, expired: false, .. }) => Some(identity),
            _ => None,
        }
    }

    /// Whether the statement may execute now; see the module text.
    fn admit(&mut self, id: u32) -> Result<(), SqlError> {
        let Some(known) = self.statements.get_mut(&id) else {
            return Err(response_packets::error::unknown_statement(id, "mysqld_stmt_execute"));
        };
        if std::mem::replace(&mut known.executed, true) && known.has_params {
            let message = "opensrv-mysql cannot execute a statement with parameters again: prepare it again, \
                           or send plain statements";
            return Err(SqlError::new(1295, b"HY000", message));
        }
        Ok(())
    }
}

#[async_trait]
impl<W: AsyncWrite + Send + Unpin> AsyncMysqlShim<W> for OpensrvSession {
    type Error = io::Error;

    fn version(&self) -> String {
        SERVER_VERSION.to_owned()
    }

    fn connect_id(&self) -> u32 {
        self.connection.id
    }

    fn salt(&self) -> [u8; SALT_BYTES] {
        self.salt
    }

    async fn authenticate(&self, plugin: &str, user: &[u8], salt: &[u8], response: &[u8]) -> bool {
        let Ok(salt) = <&[u8; SALT_BYTES]>::try_from(salt) else { return false };
        let identity = if plugin == native::PLUGIN { self.identify(user, salt, response) } else { None };
        // The crate has no words for a limit: it is a refusal like others.
        let admitted = identity.and_then(|identity| {
            let Identity { user, account_host } = &identity;
            Some((self.server.accounts.count_connection(user, account_host).ok()?, identity))
        });
        let Some((counted, identity)) = admitted else {
            self.connection.counters.add(Counter::AbortedConnects, 1);
            return false;
        };
        // There is one login.
        let _ = self.counted.set(counted);
        self.connection.update(|activity| {
            activity.user = Arc::from(identity.user.as_str());
            activity.account_host = Arc::from(identity.account_host.as_str());
            activity.command = "Sleep";
            activity.state = "";
        });
        self.server.activate_default_roles(&self.connection);
        self.logged_in.store(true, Ordering::Release);
        self.requests.send(Request::Open).await.is_ok()
    }

    async fn on_prepare<'a>(
        &'a mut self,
        query: &'a str,
        info: StatementMetaWriter<'a, W>,
    ) -> io::Result<()> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Prepare { sql: query.as_bytes().to_vec(), reply }).await?;
        match answer.await.map_err(|_| aborted())? {
            Ok((id, params, columns)) => {
                self.statements.insert(id, Known { has_params: !params.is_empty(), executed: false });
                let (params, columns) = (described(params.metas()), described(columns.metas()));
                info.reply(id, &params, &columns).await
            }
            Err(error) => info.error(kind_of(&error), error.message.as_bytes()).await,
        }
    }

    async fn on_execute<'a>(
        &'a mut self,
        id: u32,
        params: ParamParser<'a>,
        results: QueryResultWriter<'a, W>,
    ) -> io::Result<()> {
        let params = self.admit(id).and_then(|()| owned(params));
        let params = match params {
            Ok(params) => params,
            Err(error) => return results.error(kind_of(&error), error.message.as_bytes()).await,
        };
        let (reply, batches) = mpsc::channel(1);
        self.ask(Request::Execute { id, params, reply }).await?;
        relay(Events::new(batches), results, true).await
    }

    async fn on_close<'a>(&'a mut self, id: u32)
    where
        W: 'async_trait,
    {
        self.statements.remove(&id);
        // When the driver has ended, its statements are closed.
        let _ = self.ask(Request::CloseStatement(id)).await;
    }

    async fn on_query<'a>(&'a mut self, query: &'a str, results: QueryResultWriter<'a, W>) -> io::Result<()> {
        let (reply, batches) = mpsc::channel(1);
        self.ask(Request::Query { sql: query.as_bytes().to_vec(), reply }).await?;
        relay(Events::new(batches), results, false).await
    }

    async fn on_init<'a>(&'a mut self, name: &'a str, writer: InitWriter<'a, W>) -> io::Result<()> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::ChangeDatabase { name: name.as_bytes().to_vec(), reply }).await?;
        match answer.await.map_err(|_| aborted())? {
            Ok(()) => writer.ok().await,
            Err(error) => writer.error(kind_of(&error), error.message.as_bytes()).await,
        }
    }
}

/// Copies the parameters of an execution. The crate panics over malformed ones; the client gets error 1210
/// instead.
fn owned(params: ParamParser<'_>) -> Result<Vec<OwnedParam>, SqlError> {
    let read = catch_unwind(AssertUnwindSafe(|| {
        params.into_iter().map(|param| OwnedParam::read(param.value.into_inner(), param.coltype)).collect()
    }));
    read.unwrap_or(None).ok_or_else(response_packets::error::wrong_arguments)
}

/// The events of a response, taken out of their batches.
struct Events {
    batches: mpsc::Receiver<Batch>,
    current: std::vec::IntoIter<Event>,
}

impl Events {
    fn new(batches: mpsc::Receiver<Batch>) -> Self {
        Self { batches, current: Vec::new().into_iter() }
    }

    async fn next(&mut self) -> io::Result<Event> {
        loop {
            if let Some(event) = self.current.next() {
                return Ok(event);
            }
            self.current = self.batches.recv().await.ok_or_else(aborted)?.into_iter();
        }
    }
}

/// Writes one response. There is never a second one: sessions here may not take several statements at once.
async fn relay<W: AsyncWrite + Send + Unpin>(
    mut events: Events,
    results: QueryResultWriter<'_, W>,
    binary: bool,
) -> io::Result<()> {
    let columns = match events.next().await? {
        Event::Ok(done) => return results.completed(ok_response(&done)).await,
        Event::Error(error) => return results.error(kind_of(&error), error.message.as_bytes()).await,
        Event::Columns(columns) => columns,
        Event::Rows(_) | Event::RowsEnd => return Err(out_of_order()),
    };
    let mut described = described(columns.metas());
    if binary {
        // The crate's binary rows refuse NULL in such a column even where an outer join put it.
        described.iter_mut().for_each(|column| column.colflags.remove(ColumnFlags::NOT_NULL_FLAG));
    }
    let mut rows = results.start(&described).await?;
    loop {
        match events.next().await? {
            Event::Rows(cells) => {
                for row in cells.chunks(described.len().max(1)) {
                    rows.write_row(row).await?;
                }
            }
            Event::RowsEnd => return rows.finish().await,
            Event::Error(error) => {
                return rows.finish_error(kind_of(&error), &error.message.as_bytes()).await;
            }
            Event::Columns(_) | Event::Ok(_) => return Err(out_of_order()),
        }
    }
}

fn out_of_order() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the session answered out of order")
}

/// Columns as far as the crate can tell them.
fn described(metas: &[ColumnMeta]) -> Vec<Column> {
    let column = |meta: &ColumnMeta| Column {
        table: meta.table.clone(),
        column: meta.name.clone(),
        coltype: ColumnType::try_from(meta.kind).unwrap_or(ColumnType::MYSQL_TYPE_VAR_STRING),
        colflags: ColumnFlags::from_bits_truncate(meta.flags),
    };
    metas.iter().map(column).collect()
}

fn ok_response(done: &Done) -> OkResponse {
    OkResponse {
        affected_rows: done.affected,
        last_insert_id: done.last_insert_id,
        status_flags: StatusFlags::from_bits_truncate(done.status),
        ..OkResponse::default()
    }
}

/// The crate's name of an error number; it panics over those it does not know.
fn kind_of(error: &SqlError) -> ErrorKind {
    match error.code {
        1768 => ErrorKind::ER_UNKNOWN_ERROR,
        code @ 1000..=1885 => ErrorKind::from(code),
        _ => ErrorKind::ER_UNKNOWN_ERROR,
    }
}
