//! One connection from greeting to end.
//!
//! The loop reads a command, lets the session answer it into the output buffer, and writes that in one go. An
//! SQL error never ends a connection. A broken or malformed stream, an oversized packet, a kill, a timeout, a
//! panic or COM_QUIT does.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sql::errors::{self, error};
use sql::kill_switch::Kill;
use sql::privilege::Privileges;
use sql::result::{Completion, SqlError};

use super::client_stream::ClientStream;
use super::login::{self, LoginRequest};
use super::panics::{Panicked, caught};
use super::prepared_statements::PreparedStatements;
use super::registry::Connection;
use super::shared::Server;
use super::transport::Socket;
use crate::auth::Peer;
use crate::auth::usage::CountedConnection;
use crate::session_interface::{SessionFactory, SessionService};
use crate::status::Counter;
use crate::wire::command::{self, Command};
use crate::wire::compression::Algorithm;
use crate::wire::input::{InputError, PacketInput};
use crate::wire::output::{FLUSH_BYTES, PacketOutput};
use crate::wire::params::ParamError;
use crate::wire::reply::{Encoding, Flush as _, Reply, ReplyScratch};
use crate::wire::{capability, response_packets};

/// Why a connection ends.
#[derive(Debug)]
pub enum End {
    /// The client said goodbye.
    Quit,
    /// The client went away without a word.
    Closed,
    /// The socket failed.
    Io(io::Error),
    /// The client is told this first.
    Protocol(SqlError),
    /// Login refused; the client is told this first.
    Denied(SqlError),
    /// Killed, timed out, or the server stops.
    Killed,
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        End::Io(error)
    }
}

/// The two halves of the stream and the register's entry.
pub struct Link {
    /// The socket.
    pub socket: Socket,
    /// From the client.
    pub input: PacketInput,
    /// To the client.
    pub output: PacketOutput,
    /// The entry.
    pub connection: Arc<Connection>,
    /// For its clock and its time-outs.
    pub server: Arc<Server>,
}

impl Link {
    /// Waits for a whole packet of at most `limit` bytes; it is in `input` then.
    pub async fn receive(&mut self, limit: usize) -> Result<(), End> {
        loop {
            match self.input.advance(limit) {
                Ok(true) => return Ok(()),
                Ok(false) if self.input.is_unpacking() => tokio::task::yield_now().await,
                Ok(false) => self.read().await?,
                Err(error) => return Err(protocol_end(error)),
            }
        }
    }

    async fn read(&mut self) -> Result<(), End> {
        let buffer = self.input.lend();
        let done = self.connection.unless_killed(pin!(self.socket.read(buffer))).await;
        let Some((count, buffer)) = done else { return Err(End::Killed) };
        self.take_read(count, buffer)
    }

    /// Writes the reply of the last command and waits for the next one, of at most `limit` bytes.
    async fn next_command(&mut self, limit: usize) -> Result<(), End> {
        self.input.expect_command();
        if self.connection.kill_level() == Kill::Connection {
            self.flush_briefly().await;
            return Err(End::Killed);
        }
        match self.input.advance(limit) {
            // A pipelining client: its next command is here already.
            Ok(true) => self.flush().await,
            Ok(false) if self.input.is_unpacking() => {
                self.flush().await?;
                self.receive(limit).await
            }
            Ok(false) => {
                pin!(self.exchange()).await?;
                self.receive(limit).await
            }
            Err(error) => Err(protocol_end(error)),
        }
    }

    /// Writes and reads at once: an io_uring gets both requests in one submission.
    async fn exchange(&mut self) -> Result<(), End> {
        if self.output.is_empty() {
            return self.read().await;
        }
        if self.output.is_packing() && self.output.as_bytes().len() > FLUSH_BYTES {
            // It takes its time to compress, and others their turn meanwhile.
            self.flush().await?;
            return self.read().await;
        }
        let (output, input) = (self.output.lend(), self.input.lend());
        self.count_bytes();
        // The reply has its own time, before that of the next command goes on.
        let idle = self.connection.deadline();
        self.connection.shorten_deadline(&self.server);
        let taken = || self.connection.set_deadline(idle);
        let done = self.connection.unless_killed(pin!(self.socket.exchange(output, input, taken))).await;
        let Some(done) = done else { return Err(End::Killed) };
        self.output.restore(done.output);
        done.written?;
        self.take_read(done.count, done.input)
    }

    fn take_read(&mut self, count: io::Result<usize>, buffer: Vec<u8>) -> Result<(), End> {
        let count = count?;
        self.input.restore(buffer, count);
        if count == 0 { Err(End::Closed) } else { Ok(()) }
    }

    fn count_bytes(&mut self) {
        let counters = &self.connection.counters;
        counters.add(Counter::BytesSent, self.output.take_sent());
        counters.add(Counter::BytesReceived, self.input.take_received());
    }

    /// Writes what has gathered.
    pub async fn flush(&mut self) -> Result<(), End> {
        self.connection.counters.add(Counter::BytesReceived, self.input.take_received());
        let Link { socket, output, connection, server, .. } = self;
        let outcome = ClientStream { socket, connection, server, files: None }.flush(output).await;
        outcome.map_err(|error| self.end_of(error))
    }

    /// What a failed write ends the connection with. A client that is killed while its reply is compressed is
    /// told so; not after half of a packet, which that would only make unreadable.
    fn end_of(&self, error: io::Error) -> End {
        let killed = self.connection.kill_level() == Kill::Connection;
        if killed && !self.output.is_lent() { End::Killed } else { End::Io(error) }
    }

    /// Writes what has gathered although the connection is killed: the client that asked for the kill gets
    /// its answer.
    async fn flush_briefly(&mut self) {
        let flush = self.socket.flush(&mut self.output, || ());
        // A client that does not read within a second hears nothing.
        let _ = tokio::time::timeout(GOODBYE, flush).await;
        self.count_bytes();
    }

    /// Writes what has gathered in clear; whatever follows, in either direction, is compressed.
    async fn compress(&mut self, algorithm: Algorithm) -> Result<(), End> {
        self.flush().await?;
        self.input.unpack(algorithm);
        self.output.pack(algorithm);
        // Nobody has set it before.
        let _ = self.connection.compression.set(algorithm);
        Ok(())
    }

    /// Adds a packet.
    pub fn put_payload(&mut self, payload: &[u8]) {
        self.output.begin();
        self.output.put(payload);
        self.output.end();
    }

    /// Adds a packet and writes.
    pub async fn send_payload(&mut self, payload: &[u8]) -> Result<(), End> {
        self.put_payload(payload);
        self.flush().await
    }
}

/// How long the last words to a client may take.
const GOODBYE: Duration = Duration::from_secs(1);

fn refused_parameters(error: ParamError) -> SqlError {
    match error {
        ParamError::Malformed => response_packets::error::malformed_packet(),
        ParamError::WrongType => response_packets::error::wrong_arguments(),
        ParamError::TooFew => response_packets::error::too_few_arguments(),
        ParamError::LongDataTooLong => response_packets::error::long_data_too_long(),
    }
}

fn protocol_end(error: InputError) -> End {
    End::Protocol(match error {
        InputError::TooLong => response_packets::error::packet_too_large(),
        InputError::OutOfOrder => response_packets::error::out_of_order(),
        InputError::Corrupt => response_packets::error::corrupt_packet(),
    })
}

/// Carries one accepted connection to its end.
pub async fn serve<F: SessionFactory>(
    socket: Socket,
    connection: Arc<Connection>,
    mut peer: Peer,
    server: Arc<Server>,
    factory: Arc<F>,
) {
    let output = PacketOutput::new();
    let mut link =
        Link { socket, input: PacketInput::new(), output, connection, server: Arc::clone(&server) };
    let end = match caught(log_in(&mut link, &server, &mut peer)).await {
        Ok(Ok(request)) => {
            let session = factory.open(&link.connection);
            let mut task = ConnectionTask::<F>::new(link, session, &server, peer, request.capabilities);
            // In boxes, because the compiler follows futures inside futures only so deep.
            let connection = task.link.connection.clone();
            let end = {
                let run = pin!(caught(Box::pin(task.run(request))));
                connection.waits.over(&connection.counters, &server.clock, run).await
            };
            task.statements.clear();
            // Rolls back what is open, after a panic too.
            let closed = caught(Box::pin(task.session.close())).await;
            link = task.link;
            match (end, closed) {
                (Ok(end), Ok(())) => end,
                (Err(panicked), _) | (_, Err(panicked)) => after_panic(&mut link, &panicked),
            }
        }
        Ok(Err(end)) => {
            link.connection.counters.add(Counter::AbortedConnects, 1);
            end
        }
        Err(panicked) => after_panic(&mut link, &panicked),
    };
    say_goodbye(&mut link, end).await;
    // As long as a goodbye may take.
    let _ = tokio::time::timeout(GOODBYE, link.socket.say_end()).await;
    link.socket.shut_down();
}

/// Counts a panic, and makes the reply ready for an error in place of what it was about to say.
fn after_panic(link: &mut Link, panicked: &Panicked) -> End {
    link.connection.counters.add(Counter::ConnectionPanics, 1);
    let statement = link.connection.with_activity(|activity| {
        let statement = activity.statement();
        String::from_utf8_lossy(statement.get(..256).unwrap_or(&statement)).into_owned()
    });
    tracing::error!(
        connection = link.connection.id,
        statement,
        "a panic ended a connection: {}. This is a bug in the server; please report it",
        panicked.0
    );
    link.output.abandon_unfinished();
    End::Protocol(error(
        errors::UNKNOWN_ERROR,
        &[&"The server met an internal error; this connection is closed"],
    ))
}

async fn log_in(link: &mut Link, server: &Server, peer: &mut Peer) -> Result<LoginRequest, End> {
    let timeout_ms = server.variables.connect_timeout_ms();
    link.connection.set_deadline(server.clock.now_ms() + timeout_ms);
    let request = login::log_in(link, server, peer).await?;
    link.connection.set_deadline(0);
    identify(link, server, &request);
    // The one above `max_connections` is for somebody who can end others.
    let administrator = Privileges::CONNECTION_ADMIN | Privileges::SUPER;
    if link.connection.is_reserve()
        && server.connections.len() > server.variables.max_connections()
        && !server.rights_of(&link.connection).global().has_any(administrator)
    {
        return Err(End::Denied(response_packets::error::too_many_connections()));
    }
    Ok(request)
}

fn identify(link: &Link, server: &Server, request: &LoginRequest) {
    link.connection.set_client_flags(login::client_flags(request));
    link.connection.update(|activity| {
        activity.user = Arc::from(request.identity.user.as_str());
        activity.account_host = Arc::from(request.identity.account_host.as_str());
        activity.command = "Sleep";
        activity.state = "";
    });
    link.connection.set_must_change_password(request.expired);
    server.activate_default_roles(&link.connection);
}

/// Tells the client why, as far as that is possible, within a second.
async fn say_goodbye(link: &mut Link, end: End) {
    let error = match end {
        End::Quit => return,
        End::Killed if link.connection.is_released() => return,
        End::Closed | End::Io(_) => {
            link.connection.counters.add(Counter::AbortedClients, 1);
            return;
        }
        End::Protocol(error) | End::Denied(error) => error,
        End::Killed if link.connection.timed_out() => response_packets::error::idle_too_long(),
        End::Killed => response_packets::error::server_shutdown(),
    };
    if link.output.is_empty() {
        link.output.set_sequence(link.input.reply_sequence());
    }
    response_packets::put_error(&mut link.output, true, &error);
    link.flush_briefly().await;
}

struct ConnectionTask<'a, F: SessionFactory> {
    link: Link,
    session: F::Session,
    statements: PreparedStatements<<F::Session as SessionService>::Plan>,
    scratch: ReplyScratch,
    server: &'a Server,
    peer: Peer,
    capabilities: u32,
    packet_bytes_max: usize,
    /// Counts the connection as its account's.
    counted: Option<CountedConnection>,
}

/// Whether the loop goes on.
type Outcome = Result<(), End>;

impl<'a, F: SessionFactory> ConnectionTask<'a, F> {
    fn new(link: Link, session: F::Session, server: &'a Server, peer: Peer, capabilities: u32) -> Self {
        Self {
            link,
            session,
            statements: PreparedStatements::default(),
            scratch: ReplyScratch::default(),
            server,
            peer,
            capabilities,
            packet_bytes_max: server.variables.packet_bytes_max(),
            counted: None,
        }
    }

    async fn run(&mut self, request: LoginRequest) -> End {
        self.counted = Some(request.counted);
        if let Err(end) = self.open_first_database(request.database).await {
            return end;
        }
        if let Some(algorithm) = request.compression
            && let Err(end) = self.link.compress(algorithm).await
        {
            return end;
        }
        loop {
            // Futures are pinned where they stand, here and below: awaited by value, each is copied for each
            // command.
            if let Err(end) = pin!(self.serve_command()).await {
                return end;
            }
        }
    }

    async fn open_first_database(&mut self, database: Option<Vec<u8>>) -> Outcome {
        if let Some(name) = database
            && let Err(error) = self.session.change_database(&name).await
        {
            return Err(End::Denied(error));
        }
        self.put_ok();
        Ok(())
    }

    async fn serve_command(&mut self) -> Outcome {
        let deadline = self.session.idle_timeout_seconds().saturating_mul(1000);
        self.link.connection.set_deadline(self.server.clock.now_ms().saturating_add(deadline).max(1));
        pin!(self.link.next_command(self.packet_bytes_max)).await?;
        self.link.connection.set_deadline(0);
        self.link.output.set_sequence(self.link.input.reply_sequence());
        self.link.connection.clear_query_kill();
        if self.link.socket.is_worn_out() {
            // Before the command does anything: nobody might hear what came of it.
            self.link.input.release();
            return Err(End::Protocol(response_packets::error::keys_used_up()));
        }
        let outcome = pin!(self.dispatch()).await;
        self.link.input.release();
        outcome
    }

    async fn dispatch(&mut self) -> Outcome {
        let counters = Arc::clone(&self.link.connection.counters);
        counters.add(Counter::Queries, 1);
        // The command borrows the input, the reply borrows the output and the socket.
        let Self { link, session, statements, scratch, server, capabilities, packet_bytes_max, .. } = self;
        let Link { socket, input, output, connection, .. } = link;
        let Ok(command) = command::decode(input.payload(), *capabilities) else {
            response_packets::put_error(output, true, &response_packets::error::malformed_packet());
            return Ok(());
        };
        if connection.must_change_password() && !serves_expired(&command) {
            let error = error(errors::MUST_CHANGE_PASSWORD, &[]);
            response_packets::put_error(output, true, &error);
            return Ok(());
        }
        match command {
            Command::Query(sql) => {
                counters.add(Counter::Questions, 1);
                let copied;
                let (sql, files) =
                    if *capabilities & capability::LOCAL_FILES != 0 && server.variables.local_infile() {
                        // What the client may send during the statement comes to where its text stood.
                        copied = sql.to_vec();
                        input.release();
                        (&copied[..], Some(&mut *input))
                    } else {
                        (sql, None)
                    };
                connection.begin_command(&server.clock, "Query", sql);
                let status = session.status_flags();
                let mut stream = ClientStream { socket, connection, server, files };
                let mut reply =
                    Reply::new(output, scratch, &mut stream, *capabilities, Encoding::Text, status);
                let outcome = session.query(sql, &mut reply).await;
                connection.end_command(&server.clock);
                outcome.map_err(|error| self.link.end_of(error))
            }
            Command::Execute { statement, arguments } => {
                counters.add(Counter::Questions, 1);
                counters.add(Counter::ComStmtExecute, 1);
                let Some(found) = statements.get(statement) else {
                    let error = response_packets::error::unknown_statement(statement, "mysqld_stmt_execute");
                    response_packets::put_error(output, true, &error);
                    return Ok(());
                };
                connection.begin_command(&server.clock, "Execute", &found.prepared.sql);
                let with_attributes = *capabilities & capability::QUERY_ATTRIBUTES != 0;
                let count = found.prepared.params.len();
                let outcome = match found.params.decode(count, arguments, with_attributes) {
                    Ok(params) => {
                        let status = session.status_flags();
                        let mut stream = ClientStream { socket, connection, server, files: None };
                        let mut reply =
                            Reply::new(output, scratch, &mut stream, *capabilities, Encoding::Binary, status);
                        session.execute(&mut found.prepared, &params, &mut reply).await
                    }
                    Err(error) => {
                        response_packets::put_error(output, true, &refused_parameters(error));
                        Ok(())
                    }
                };
                found.params.clear_long_data();
                connection.end_command(&server.clock);
                outcome.map_err(|error| self.link.end_of(error))
            }
            Command::SendLongData { statement, parameter, data } => {
                counters.add(Counter::ComStmtSendLongData, 1);
                // No answer by protocol; what does not fit fails the execution.
                statements.append_long_data(statement, parameter, data, *packet_bytes_max);
                Ok(())
            }
            Command::CloseStatement(id) => {
                counters.add(Counter::ComStmtClose, 1);
                statements.close(id);
                Ok(())
            }
            Command::ChangeUser(arguments) => {
                let arguments = arguments.to_vec();
                self.change_user(&arguments).await
            }
            Command::Quit => Err(End::Quit),
            other => {
                let owned = Owned::from(other);
                self.dispatch_rare(owned).await
            }
        }
    }
}

/// Commands that are served while the account's password has expired; what statements may do,
/// the session says.
fn serves_expired(command: &Command<'_>) -> bool {
    matches!(
        command,
        Command::Query(_)
            | Command::Prepare(_)
            | Command::Execute { .. }
            | Command::SendLongData { .. }
            | Command::CloseStatement(_)
            | Command::Ping
            | Command::Quit
    )
}

/// A rare command with its bytes copied, so that the whole task is free to serve it.
enum Owned {
    InitDb(Vec<u8>),
    FieldList { table: Vec<u8>, pattern: Vec<u8> },
    Sql(&'static str, Vec<u8>),
    Prepare(Vec<u8>),
    ResetStatement(u32),
    Fetch(u32),
    SetOption(u16),
    Kill(u32),
    Ping,
    Statistics,
    ResetConnection,
    Refresh,
    Shutdown,
    Unknown,
}

impl From<Command<'_>> for Owned {
    fn from(command: Command<'_>) -> Self {
        match command {
            Command::InitDb(name) => Owned::InitDb(name.to_vec()),
            Command::FieldList { table, pattern } => {
                Owned::FieldList { table: table.to_vec(), pattern: pattern.to_vec() }
            }
            Command::CreateDb(name) => Owned::Sql("Create DB", quoted("CREATE DATABASE ", name)),
            Command::DropDb(name) => Owned::Sql("Drop DB", quoted("DROP DATABASE ", name)),
            Command::ProcessInfo => Owned::Sql("Processlist", b"SHOW PROCESSLIST".to_vec()),
            Command::Prepare(sql) => Owned::Prepare(sql.to_vec()),
            Command::ResetStatement(id) => Owned::ResetStatement(id),
            Command::Fetch { statement } => Owned::Fetch(statement),
            Command::SetOption(option) => Owned::SetOption(option),
            Command::ProcessKill(id) => Owned::Kill(id),
            Command::Ping => Owned::Ping,
            Command::Statistics => Owned::Statistics,
            Command::ResetConnection => Owned::ResetConnection,
            Command::Refresh | Command::Debug => Owned::Refresh,
            Command::Shutdown => Owned::Shutdown,
            _ => Owned::Unknown,
        }
    }
}

fn quoted(prefix: &str, name: &[u8]) -> Vec<u8> {
    let mut sql = prefix.as_bytes().to_vec();
    sql.push(b'`');
    for byte in name {
        if *byte == b'`' {
            sql.push(b'`');
        }
        sql.push(*byte);
    }
    sql.push(b'`');
    sql
}

impl<F: SessionFactory> ConnectionTask<'_, F> {
    async fn dispatch_rare(&mut self, command: Owned) -> Outcome {
        let counters = Arc::clone(&self.link.connection.counters);
        match command {
            Owned::InitDb(name) => {
                counters.add(Counter::ComChangeDb, 1);
                match self.session.change_database(&name).await {
                    Ok(()) => self.put_ok(),
                    Err(error) => self.put_error(&error),
                }
            }
            Owned::FieldList { table, pattern } => self.field_list(&table, &pattern).await,
            Owned::Sql(name, sql) => return self.run_sql(name, &sql).await,
            Owned::Prepare(sql) => self.prepare(&sql).await,
            Owned::ResetStatement(id) => {
                counters.add(Counter::ComStmtReset, 1);
                match self.statements.get(id) {
                    Some(statement) => {
                        statement.params.clear_long_data();
                        self.put_ok();
                    }
                    None => {
                        self.put_error(&response_packets::error::unknown_statement(id, "mysqld_stmt_reset"))
                    }
                }
            }
            Owned::Fetch(id) => self.fetch(id),
            Owned::SetOption(option) => self.set_option(option),
            Owned::Kill(id) => self.kill(id),
            Owned::Ping | Owned::Refresh => {
                counters.add(Counter::ComAdminCommands, 1);
                self.put_ok();
            }
            Owned::Statistics => {
                counters.add(Counter::ComAdminCommands, 1);
                let text = crate::status::statistics_line(self.server);
                self.link.put_payload(text.as_bytes());
            }
            Owned::ResetConnection => {
                counters.add(Counter::ComAdminCommands, 1);
                self.reset().await;
                self.put_ok();
            }
            Owned::Shutdown => {
                if self.server.rights_of(&self.link.connection).global().has(Privileges::SHUTDOWN) {
                    self.server.shutdown.request();
                    response_packets::put_eof(&mut self.link.output, 0, self.session.status_flags());
                } else {
                    self.put_error(&error(errors::SPECIFIC_ACCESS_DENIED, &[&"SHUTDOWN"]));
                }
            }
            Owned::Unknown => self.put_error(&response_packets::error::unknown_command()),
        }
        Ok(())
    }

    fn put_ok(&mut self) {
        let completion = Completion {
            status: self.session.status_flags(),
            warnings: self.session.warnings(),
            session_changes: self.session.take_changes(),
            ..Completion::default()
        };
        response_packets::put_ok(&mut self.link.output, 0, &completion);
    }

    fn put_error(&mut self, error: &SqlError) {
        response_packets::put_error(&mut self.link.output, true, error);
    }

    fn put_definitions_end(&mut self) {
        if self.capabilities & capability::DEPRECATE_EOF == 0 {
            response_packets::put_eof(&mut self.link.output, 0, self.session.status_flags());
        }
    }

    /// Runs the statement that a command stands for.
    async fn run_sql(&mut self, name: &'static str, sql: &[u8]) -> Outcome {
        self.link.connection.begin_command(&self.server.clock, name, sql);
        let status = self.session.status_flags();
        let Link { socket, output, connection, server, .. } = &mut self.link;
        let mut stream = ClientStream { socket, connection, server, files: None };
        let mut reply =
            Reply::new(output, &mut self.scratch, &mut stream, self.capabilities, Encoding::Text, status);
        let outcome = self.session.query(sql, &mut reply).await;
        self.link.connection.end_command(&self.server.clock);
        outcome.map_err(|error| self.link.end_of(error))
    }

    async fn field_list(&mut self, table: &[u8], pattern: &[u8]) {
        match self.session.field_list(table, pattern).await {
            Ok(columns) => {
                let encoded = response_packets::encode_field_list(columns.metas());
                self.link.output.put_packets(
                    &encoded.bytes,
                    &encoded.ends,
                    response_packets::DEFINITIONS_SEQUENCE,
                );
                // Answers to COM_FIELD_LIST end with EOF for every client, or the look-alike OK.
                let completion = Completion { status: self.session.status_flags(), ..Completion::default() };
                response_packets::put_rows_end(&mut self.link.output, self.capabilities, &completion);
            }
            Err(error) => self.put_error(&error),
        }
    }

    async fn prepare(&mut self, sql: &[u8]) {
        self.link.connection.counters.add(Counter::ComStmtPrepare, 1);
        self.link.connection.begin_command(&self.server.clock, "Prepare", sql);
        let prepared = self.session.prepare(sql).await;
        self.link.connection.end_command(&self.server.clock);
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return self.put_error(&error),
        };
        let (params, columns) = (Arc::clone(&prepared.params), Arc::clone(&prepared.columns));
        let id = match self.statements.insert(prepared, self.server) {
            Ok(id) => id,
            Err(error) => return self.put_error(&error),
        };
        let warnings = self.session.warnings();
        let output = &mut self.link.output;
        output.begin();
        output.u8(0);
        output.u32(id);
        output.u16(columns.len() as u16);
        output.u16(params.len() as u16);
        output.u8(0);
        output.u16(warnings);
        output.end();
        for definitions in [&params, &columns] {
            if !definitions.is_empty() {
                let encoded = definitions.encoded(response_packets::encode_definitions);
                self.link.output.put_packets(
                    &encoded.bytes,
                    &encoded.ends,
                    response_packets::DEFINITIONS_SEQUENCE,
                );
                self.put_definitions_end();
            }
        }
    }

    fn fetch(&mut self, id: u32) {
        // Cursors are never opened (the client sees that in the status flags), so there is nothing to fetch.
        let error = match self.statements.get(id) {
            Some(_) => SqlError::new(1421, b"HY000", format!("The statement ({id}) has no open cursor.")),
            None => response_packets::error::unknown_statement(id, "mysqld_stmt_fetch"),
        };
        self.put_error(&error);
    }

    fn set_option(&mut self, option: u16) {
        self.link.connection.counters.add(Counter::ComSetOption, 1);
        let mut flags = self.link.connection.client_flags();
        match option {
            0 => flags.multi_statements = true,
            1 => flags.multi_statements = false,
            _ => return self.put_error(&response_packets::error::unknown_command()),
        }
        self.link.connection.set_client_flags(flags);
        let completion = Completion { status: self.session.status_flags(), ..Completion::default() };
        response_packets::put_rows_end(&mut self.link.output, self.capabilities, &completion);
    }

    fn kill(&mut self, id: u32) {
        self.link.connection.counters.add(Counter::ComKill, 1);
        match self.server.kill_by(&self.link.connection, id, Kill::Connection) {
            Ok(()) => self.put_ok(),
            Err(error) => self.put_error(&error),
        }
    }

    async fn reset(&mut self) {
        self.statements.clear();
        self.session.reset().await;
    }

    async fn change_user(&mut self, arguments: &[u8]) -> Outcome {
        self.link.connection.counters.add(Counter::ComAdminCommands, 1);
        self.link.input.release();
        // What is open ends before the exchange, which may take as long as a login: a client that does not
        // answer keeps no locks.
        self.reset().await;
        let timeout_ms = self.server.variables.connect_timeout_ms();
        self.link.connection.set_deadline(self.server.clock.now_ms() + timeout_ms);
        let request =
            login::change_user(&mut self.link, self.server, &self.peer, self.capabilities, arguments).await?;
        self.link.connection.set_deadline(0);
        let multi_statements = self.link.connection.client_flags().multi_statements;
        identify(&self.link, self.server, &request);
        self.counted = Some(request.counted);
        let mut flags = self.link.connection.client_flags();
        flags.multi_statements = multi_statements;
        self.link.connection.set_client_flags(flags);
        self.link.connection.set_database(None);
        self.session.user_changed();
        if let Some(name) = request.database
            && let Err(error) = self.session.change_database(&name).await
        {
            return Err(End::Denied(error));
        }
        self.put_ok();
        Ok(())
    }
}
