//! The session's side of a connection: takes requests, runs them in the session, sends batches of events
//! back.
//!
//! The driver lives on one thread with its session. It ends when the shim is gone, when the connection is
//! killed, or when the client is silent for too long; in every case the session is closed and the register's
//! entry removed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::opensrv_mysql::{ColumnType, ValueInner};
use sql::kill_switch::Kill;
use sql::result::{Completion, Date, DateTime, ResultColumns, ResultSink, SqlError, Time};
use tokio::sync::{mpsc, oneshot};

use super::cells::Cell;
use crate::server::prepared_statements::PreparedStatements;
use crate::server::registry::Connection;
use crate::server::shared::Server;
use crate::session_interface::{Param, Prepared};
use crate::session_interface::{SessionFactory, SessionService};
use crate::status::Counter;
use crate::wire::payload_reader::PayloadReader;
use crate::wire::response_packets;
use crate::wire::temporal::{read_datetime, read_time};

/// What a prepared statement needs and gives: its id, parameters and columns.
pub(super) type Described = (u32, Arc<ResultColumns>, Arc<ResultColumns>);

/// What the shim asks for.
pub(super) enum Request {
    /// The client has logged in.
    Open,
    Query {
        sql: Vec<u8>,
        reply: mpsc::Sender<Batch>,
    },
    Prepare {
        sql: Vec<u8>,
        reply: oneshot::Sender<Result<Described, SqlError>>,
    },
    Execute {
        id: u32,
        params: Vec<OwnedParam>,
        reply: mpsc::Sender<Batch>,
    },
    CloseStatement(u32),
    ChangeDatabase {
        name: Vec<u8>,
        reply: oneshot::Sender<Result<(), SqlError>>,
    },
}

/// How a statement without rows ended.
pub(super) struct Done {
    pub(super) affected: u64,
    pub(super) last_insert_id: u64,
    pub(super) status: u16,
}

/// A piece of a response, in the order of [`ResultSink`]'s calls.
pub(super) enum Event {
    Columns(Arc<ResultColumns>),
    /// Whole rows, one cell for each column.
    Rows(Vec<Cell>),
    RowsEnd,
    Ok(Done),
    Error(SqlError),
}

/// Events that cross together.
pub(super) type Batch = Vec<Event>;

/// Bytes of rows that make a batch go.
const BATCH_BYTES: usize = 64 * 1024;

/// A parameter that outlives its packet.
pub(super) enum OwnedParam {
    Null,
    Int(i64),
    UInt(u64),
    Double(f64),
    Decimal(Vec<u8>),
    Bytes { value: Vec<u8>, binary: bool },
    Date(Date),
    DateTime(DateTime),
    Time(Time),
}

impl OwnedParam {
    /// From the crate's form; `None` for a malformed date or time.
    pub(super) fn read(value: ValueInner<'_>, kind: ColumnType) -> Option<Self> {
        // The crate has cut off the length that our readers expect.
        let with_length = |bytes: &[u8]| [&[bytes.len() as u8], bytes].concat();
        Some(match value {
            ValueInner::NULL => OwnedParam::Null,
            ValueInner::Int(value) => OwnedParam::Int(value),
            ValueInner::UInt(value) => OwnedParam::UInt(value),
            ValueInner::Double(value) => OwnedParam::Double(value),
            ValueInner::Bytes(value) => match kind {
                ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => {
                    OwnedParam::Decimal(value.to_vec())
                }
                ColumnType::MYSQL_TYPE_TINY_BLOB
                | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
                | ColumnType::MYSQL_TYPE_LONG_BLOB
                | ColumnType::MYSQL_TYPE_BLOB => OwnedParam::Bytes { value: value.to_vec(), binary: true },
                _ => OwnedParam::Bytes { value: value.to_vec(), binary: false },
            },
            ValueInner::Date(bytes) => {
                let bytes = with_length(bytes);
                let DateTime { year, month, day, .. } =
                    read_datetime(&mut PayloadReader::new(&bytes)).ok()?;
                OwnedParam::Date(Date { year, month, day })
            }
            ValueInner::Datetime(bytes) => {
                OwnedParam::DateTime(read_datetime(&mut PayloadReader::new(&with_length(bytes))).ok()?)
            }
            ValueInner::Time(bytes) => {
                OwnedParam::Time(read_time(&mut PayloadReader::new(&with_length(bytes))).ok()?)
            }
        })
    }

    fn borrow(&self) -> Param<'_> {
        match self {
            OwnedParam::Null => Param::Null,
            OwnedParam::Int(value) => Param::Int(*value),
            OwnedParam::UInt(value) => Param::UInt(*value),
            OwnedParam::Double(value) => Param::Double(*value),
            OwnedParam::Decimal(value) => Param::Decimal(value),
            OwnedParam::Bytes { value, binary } => Param::Bytes { value, binary: *binary },
            OwnedParam::Date(value) => Param::Date(*value),
            OwnedParam::DateTime(value) => Param::DateTime(*value),
            OwnedParam::Time(value) => Param::Time(*value),
        }
    }
}

/// Runs the session of one connection; see the module text.
pub struct SessionDriver<F: SessionFactory> {
    server: Arc<Server>,
    connection: Arc<Connection>,
    factory: Arc<F>,
    requests: mpsc::Receiver<Request>,
    statements: PreparedStatements<<F::Session as SessionService>::Plan>,
}

impl<F: SessionFactory> Drop for SessionDriver<F> {
    /// Also when the driver is dropped midway.
    fn drop(&mut self) {
        self.statements.clear();
        self.server.connections.leave(self.connection.id);
    }
}

impl<F: SessionFactory> SessionDriver<F> {
    pub(super) fn new(
        server: Arc<Server>,
        connection: Arc<Connection>,
        factory: Arc<F>,
        requests: mpsc::Receiver<Request>,
    ) -> Self {
        Self { server, connection, factory, requests, statements: PreparedStatements::default() }
    }

    /// Runs until the connection ends, then rolls back and closes the session.
    pub async fn run(mut self) {
        let login = Duration::from_millis(self.server.variables.connect_timeout_ms());
        // Nothing but the request to open comes before the login.
        if self.next(login).await.is_none() {
            return;
        }
        let mut session = self.factory.open(&self.connection);
        let idle = |session: &F::Session| Duration::from_secs(session.idle_timeout_seconds());
        while let Some(request) = self.next(idle(&session)).await {
            self.connection.clear_query_kill();
            if self.serve(&mut session, request).await.is_err() {
                // The shim is gone, in the middle of its rows.
                self.connection.counters.add(Counter::AbortedClients, 1);
                break;
            }
        }
        session.close().await;
    }

    /// The next request, or `None` when the connection is to end.
    async fn next(&mut self, patience: Duration) -> Option<Request> {
        tokio::select! {
            biased;
            _ = self.connection.killed(Kill::Connection) => None,
            request = tokio::time::timeout(patience, self.requests.recv()) => request.ok().flatten(),
        }
    }

    async fn serve(&mut self, session: &mut F::Session, request: Request) -> io::Result<()> {
        let counters = Arc::clone(&self.connection.counters);
        counters.add(Counter::Queries, 1);
        self.server.clock.advance();
        match request {
            Request::Open => {}
            Request::Query { sql, reply } => {
                counters.add(Counter::Questions, 1);
                self.connection.begin_command(&self.server.clock, "Query", &sql);
                let mut sink = BatchSink::new(reply);
                let outcome = session.query(&sql, &mut sink).await;
                self.connection.end_command(&self.server.clock);
                outcome?;
                return sink.finish().await;
            }
            Request::Prepare { sql, reply } => {
                counters.add(Counter::ComStmtPrepare, 1);
                let answer = self.prepare(session, &sql).await;
                return reply.send(answer).map_err(|_| gone());
            }
            Request::Execute { id, params, reply } => {
                counters.add(Counter::Questions, 1);
                counters.add(Counter::ComStmtExecute, 1);
                return self.execute(session, id, &params, BatchSink::new(reply)).await;
            }
            Request::CloseStatement(id) => {
                self.statements.close(id);
            }
            Request::ChangeDatabase { name, reply } => {
                let answer = session.change_database(&name).await;
                return reply.send(answer).map_err(|_| gone());
            }
        }
        Ok(())
    }

    async fn prepare(&mut self, session: &mut F::Session, sql: &[u8]) -> Result<Described, SqlError> {
        self.connection.begin_command(&self.server.clock, "Prepare", sql);
        let prepared = session.prepare(sql).await;
        self.connection.end_command(&self.server.clock);
        let prepared: Prepared<_> = prepared?;
        let (params, columns) = (Arc::clone(&prepared.params), Arc::clone(&prepared.columns));
        let id = self.statements.insert(prepared, &self.server)?;
        Ok((id, params, columns))
    }

    async fn execute(
        &mut self,
        session: &mut F::Session,
        id: u32,
        params: &[OwnedParam],
        mut sink: BatchSink,
    ) -> io::Result<()> {
        match self.statements.get(id) {
            None => sink.error(&response_packets::error::unknown_statement(id, "mysqld_stmt_execute")),
            Some(found) if found.prepared.params.len() != params.len() => {
                sink.error(&response_packets::error::wrong_arguments());
            }
            Some(found) => {
                self.connection.begin_command(&self.server.clock, "Execute", &found.prepared.sql);
                let params: Vec<Param<'_>> = params.iter().map(OwnedParam::borrow).collect();
                let outcome = session.execute(&mut found.prepared, &params, &mut sink).await;
                self.connection.end_command(&self.server.clock);
                outcome?;
            }
        }
        sink.finish().await
    }
}

fn gone() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

/// The sink that gathers a response into batches.
struct BatchSink {
    reply: mpsc::Sender<Batch>,
    events: Batch,
    /// Rows not in `events` yet; of a row in progress, too.
    cells: Vec<Cell>,
    /// Length of `cells` at the start of the row in progress.
    row_start: usize,
    /// Bytes of `cells`, about.
    weight: usize,
    columns: Arc<ResultColumns>,
}

impl BatchSink {
    fn new(reply: mpsc::Sender<Batch>) -> Self {
        Self {
            reply,
            events: Vec::new(),
            cells: Vec::new(),
            row_start: 0,
            weight: 0,
            columns: ResultColumns::new(Vec::new()),
        }
    }

    fn put(&mut self, cell: Cell) {
        self.weight += cell.weight();
        self.cells.push(cell);
    }

    /// Decimals of the column whose value comes next.
    fn decimals(&self) -> u8 {
        let column = self.cells.len() - self.row_start;
        self.columns.metas().get(column).map_or(31, |meta| meta.decimals)
    }

    fn put_event(&mut self, event: Event) {
        if !self.cells.is_empty() {
            self.events.push(Event::Rows(std::mem::take(&mut self.cells)));
        }
        self.events.push(event);
        self.row_start = 0;
        self.weight = 0;
    }

    /// Sends what is left of the response.
    async fn finish(self) -> io::Result<()> {
        debug_assert!(self.cells.is_empty(), "a response ends with rows_end, ok or error");
        self.reply.send(self.events).await.map_err(|_| gone())
    }
}

impl ResultSink for BatchSink {
    fn columns(&mut self, columns: &Arc<ResultColumns>) {
        self.columns = Arc::clone(columns);
        self.put_event(Event::Columns(Arc::clone(columns)));
    }

    fn row_begin(&mut self) {
        self.row_start = self.cells.len();
    }

    fn null(&mut self) {
        self.put(Cell::Null);
    }

    fn int(&mut self, value: i64) {
        self.put(Cell::Int(value));
    }

    fn uint(&mut self, value: u64) {
        self.put(Cell::UInt(value));
    }

    fn float(&mut self, value: f32) {
        self.put(Cell::Float(value, self.decimals()));
    }

    fn double(&mut self, value: f64) {
        self.put(Cell::Double(value, self.decimals()));
    }

    fn bytes(&mut self, value: &[u8]) {
        self.put(Cell::Bytes(value.into()));
    }

    fn date(&mut self, value: Date) {
        self.put(Cell::Date(value));
    }

    fn datetime(&mut self, value: DateTime, decimals: u8) {
        self.put(Cell::DateTime(value, decimals));
    }

    fn time(&mut self, value: Time, decimals: u8) {
        self.put(Cell::Time(value, decimals));
    }

    fn row_end(&mut self) {
        debug_assert_eq!(self.cells.len() - self.row_start, self.columns.len(), "a value for each column");
        self.row_start = self.cells.len();
    }

    fn rows_end(&mut self, _: &Completion<'_>) {
        self.put_event(Event::RowsEnd);
    }

    fn ok(&mut self, completion: &Completion<'_>) {
        self.put_event(Event::Ok(Done {
            affected: completion.affected,
            last_insert_id: completion.last_insert_id,
            status: completion.status,
        }));
    }

    fn error(&mut self, error: &SqlError) {
        self.cells.truncate(self.row_start);
        self.put_event(Event::Error(error.clone()));
    }

    fn is_full(&self) -> bool {
        self.weight >= BATCH_BYTES
    }

    async fn flush_if_full(&mut self) -> io::Result<()> {
        if self.weight < BATCH_BYTES {
            return Ok(());
        }
        self.weight = 0;
        self.row_start = 0;
        self.events.push(Event::Rows(std::mem::take(&mut self.cells)));
        let batch = std::mem::take(&mut self.events);
        self.reply.send(batch).await.map_err(|_| gone())
    }
}
