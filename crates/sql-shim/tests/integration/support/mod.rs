//! A server with a small session of its own, and a raw client that speaks just enough protocol to check ours.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod engine;
pub mod faulty_disk;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use sql::kill_switch::Kill;
use sql::result::{
    ColumnMeta, Completion, Date, DateTime, ResultColumns, ResultSink, SqlError, Time, column_flag, kind,
    status_flag,
};
use sql_shim::auth::accounts::Accounts;
use sql_shim::auth::{native, sha2_password};
use sql_shim::server::registry::Connection;
use sql_shim::server::runtime::{ListenOptions, Running, RuntimeKind, start};
use sql_shim::server::shared::Server;
use sql_shim::session_interface::{Param, Prepared};
use sql_shim::session_interface::{SessionFactory, SessionService};
use sql_shim::variables::GlobalVariables;

/// Answers by the first word of the statement: `echo`, `rows <n> <bytes>`, `types`, `two`, `wait`, `fail`,
/// anything else is OK.
pub struct EchoFactory;

pub struct EchoSession {
    connection: Arc<Connection>,
    database: Vec<u8>,
    resets: u64,
}

impl SessionFactory for EchoFactory {
    type Session = EchoSession;
    fn open(&self, connection: &Arc<Connection>) -> EchoSession {
        EchoSession { connection: Arc::clone(connection), database: Vec::new(), resets: 0 }
    }
}

fn column(name: &str, kind: u8, flags: u16, decimals: u8) -> ColumnMeta {
    ColumnMeta { kind, flags, decimals, ..ColumnMeta::text(name, 20) }
}

pub fn type_columns() -> Arc<ResultColumns> {
    ResultColumns::new(vec![
        column("tiny", kind::TINY, 0, 0),
        column("short", kind::SHORT, column_flag::UNSIGNED, 0),
        column("long", kind::LONG, 0, 0),
        column("longlong", kind::LONGLONG, column_flag::UNSIGNED, 0),
        column("float", kind::FLOAT, 0, 31),
        column("double", kind::DOUBLE, 0, 31),
        column("decimal", kind::NEWDECIMAL, 0, 2),
        column("nothing", kind::VAR_STRING, 0, 0),
        column("date", kind::DATE, 0, 0),
        column("datetime", kind::DATETIME, 0, 3),
        column("time", kind::TIME, 0, 0),
        column("text", kind::VAR_STRING, 0, 0),
    ])
}

impl EchoSession {
    fn done(&self) -> Completion<'static> {
        Completion { status: self.status_flags(), ..Completion::default() }
    }

    fn types(&self, out: &mut impl ResultSink) {
        out.columns(&type_columns());
        out.row_begin();
        out.int(-5);
        out.uint(65_535);
        out.int(-100_000);
        out.uint(u64::MAX);
        out.float(0.5);
        out.double(1e20);
        out.bytes(b"12.50");
        out.null();
        out.date(Date { year: 2024, month: 2, day: 29 });
        out.datetime(
            DateTime { year: 2024, month: 2, day: 29, hour: 1, minute: 2, second: 3, microsecond: 450_000 },
            3,
        );
        out.time(Time { negative: true, hours: 30, minutes: 1, seconds: 2, microseconds: 0 }, 0);
        out.bytes(b"caf\xc3\xa9");
        out.row_end();
        out.rows_end(&self.done());
    }

    /// Doubles of free and of fixed digits behind columns of other digits, and a zero YEAR.
    fn digits(&self, out: &mut impl ResultSink) {
        out.columns(&ResultColumns::new(vec![
            column("decimal", kind::NEWDECIMAL, 0, 2),
            column("free", kind::DOUBLE, 0, 31),
            column("int", kind::LONGLONG, 0, 0),
            column("null", kind::NEWDECIMAL, 0, 1),
            column("date", kind::DATE, 0, 0),
            column("fixed", kind::DOUBLE, 0, 3),
            column("year", kind::YEAR, column_flag::UNSIGNED, 0),
            column("zero", kind::LONGLONG, column_flag::UNSIGNED, 0),
        ]));
        out.row_begin();
        out.bytes(b"1.50");
        out.double(1.23456);
        out.int(7);
        out.null();
        out.date(Date { year: 2024, month: 2, day: 29 });
        out.double(1.5);
        out.uint(0);
        out.uint(0);
        out.row_end();
        out.rows_end(&self.done());
    }

    async fn rows(&self, count: usize, bytes: usize, out: &mut impl ResultSink) -> io::Result<()> {
        out.columns(&ResultColumns::new(vec![ColumnMeta::text("data", 100)]));
        let value = vec![b'x'; bytes];
        for _ in 0..count {
            out.row_begin();
            out.bytes(&value);
            out.row_end();
            out.flush_if_full().await?;
        }
        out.rows_end(&self.done());
        Ok(())
    }

    fn echo(&self, text: &[u8], out: &mut impl ResultSink) {
        out.columns(&ResultColumns::new(vec![ColumnMeta::text("echo", 100)]));
        out.row_begin();
        out.bytes(text);
        out.row_end();
        out.rows_end(&self.done());
    }
}

impl SessionService for EchoSession {
    type Plan = ();

    async fn query(&mut self, sql: &[u8], out: &mut impl ResultSink) -> io::Result<()> {
        let text = String::from_utf8_lossy(sql).into_owned();
        let mut words = text.split_ascii_whitespace();
        let number =
            |words: &mut std::str::SplitAsciiWhitespace<'_>| words.next().unwrap_or("0").parse().unwrap();
        match words.next() {
            Some("echo") => self.echo(sql, out),
            Some("types") => self.types(out),
            Some("digits") => self.digits(out),
            Some("database") => self.echo(&self.database, out),
            Some("resets") => self.echo(self.resets.to_string().as_bytes(), out),
            Some("rows") => {
                let (count, bytes) = (number(&mut words), number(&mut words));
                return self.rows(count, bytes, out).await;
            }
            Some("two") => {
                out.ok(&Completion {
                    affected: 3,
                    info: "Records: 3".into(),
                    more_results: true,
                    ..self.done()
                });
                self.echo(b"second", out);
            }
            Some("wait") => {
                self.connection.killed(Kill::Query).await;
                out.error(&SqlError::new(1317, b"70100", "Query execution was interrupted"));
            }
            Some("panic") => {
                out.columns(&ResultColumns::new(vec![ColumnMeta::text("c", 1)]));
                out.row_begin();
                out.bytes(b"half of a row");
                panic!("as it was asked to");
            }
            Some("fail") => {
                out.columns(&ResultColumns::new(vec![ColumnMeta::text("c", 1)]));
                out.row_begin();
                out.bytes(b"half");
                out.error(&SqlError::new(1105, b"HY000", "failed in the middle"));
            }
            _ => out.ok(&Completion { affected: 1, last_insert_id: 7, warnings: 2, ..self.done() }),
        }
        Ok(())
    }

    async fn prepare(&mut self, sql: &[u8]) -> Result<Prepared<()>, SqlError> {
        if sql.starts_with(b"bad") {
            return Err(SqlError::new(1064, b"42000", "no"));
        }
        let params = sql.iter().filter(|byte| **byte == b'?').map(|_| ColumnMeta::text("?", 0)).collect();
        let columns = if sql.starts_with(b"types") {
            type_columns()
        } else {
            ResultColumns::new(vec![ColumnMeta::text("params", 100)])
        };
        Ok(Prepared { sql: Arc::from(sql), params: ResultColumns::new(params), columns, plan: () })
    }

    async fn execute(
        &mut self,
        statement: &mut Prepared<()>,
        params: &[Param<'_>],
        out: &mut impl ResultSink,
    ) -> io::Result<()> {
        if statement.sql.starts_with(b"types") {
            self.types(out);
        } else {
            self.echo(format!("{params:?}").as_bytes(), out);
        }
        Ok(())
    }

    async fn change_database(&mut self, name: &[u8]) -> Result<(), SqlError> {
        if name == b"missing" {
            return Err(SqlError::new(1049, b"42000", "Unknown database 'missing'"));
        }
        self.database = name.to_vec();
        Ok(())
    }

    async fn field_list(&mut self, table: &[u8], _: &[u8]) -> Result<Arc<ResultColumns>, SqlError> {
        let mut meta = ColumnMeta::text("c", 10);
        meta.table = String::from_utf8_lossy(table).into_owned();
        Ok(ResultColumns::new(vec![meta]))
    }

    async fn reset(&mut self) {
        self.resets += 1;
        self.database.clear();
    }

    async fn close(&mut self) {}

    fn status_flags(&self) -> u16 {
        status_flag::AUTOCOMMIT
    }
}

/// A running server; stopped when dropped.
pub struct TestServer {
    pub server: Arc<Server>,
    pub port: u16,
    running: Option<Running>,
}

impl TestServer {
    pub fn start(runtime: RuntimeKind, accounts: Accounts, socket: Option<std::path::PathBuf>) -> Self {
        let server = Server::new(accounts, GlobalVariables::default());
        let echo = Arc::new(EchoFactory);
        Self::serve(runtime, server, socket, |options, server| start(options, server, &echo))
    }

    /// Serves what `start` starts.
    pub fn serve(
        runtime: RuntimeKind,
        server: Arc<Server>,
        socket: Option<std::path::PathBuf>,
        start: impl FnOnce(&ListenOptions, &Arc<Server>) -> std::io::Result<Running>,
    ) -> Self {
        let options =
            ListenOptions { addresses: vec![[127, 0, 0, 1].into()], port: 0, socket, threads: 2, runtime };
        let running = start(&options, &server).unwrap();
        Self { server, port: running.port(), running: Some(running) }
    }

    pub fn root(runtime: RuntimeKind) -> Self {
        Self::start(runtime, Accounts::in_memory(), None)
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.port)
    }

    pub fn login(&self) -> Client {
        let mut client = self.connect();
        let reply = client.log_in("root", b"", native::PLUGIN, CAPABILITIES, None);
        assert_eq!(reply.first(), Some(&0), "{reply:?}");
        client
    }

    pub fn stop(mut self) {
        self.running.take().unwrap().stop_and_wait();
    }
}

trait StopAndWait {
    fn stop_and_wait(self);
}

impl StopAndWait for Running {
    fn stop_and_wait(self) {
        self.stop();
        self.wait().unwrap();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop_and_wait();
        }
    }
}

/// PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH, MULTI_STATEMENTS, TRANSACTIONS.
pub const CAPABILITIES: u32 = 1 << 9 | 1 << 15 | 1 << 19 | 1 << 16 | 1 << 13;
pub const DEPRECATE_EOF: u32 = 1 << 24;
pub const COMPRESS: u32 = 1 << 5;
pub const ZSTD: u32 = 1 << 26;

pub struct Client {
    pub stream: TcpStream,
    pub sequence: u8,
    pub greeting: Vec<u8>,
    /// Packets are compressed.
    pub packed: Option<Packed>,
}

/// The compressed side of a client.
#[derive(Default)]
pub struct Packed {
    pub zstd: bool,
    pub sequence: u8,
    /// Opened, and not looked at yet.
    opened: std::collections::VecDeque<u8>,
    /// Of each packet received: its length, its sequence id, and the length of what is in it.
    pub seen: Vec<(usize, u8, usize)>,
}

impl Packed {
    /// As one compressed packet.
    pub fn pack(&mut self, bytes: &[u8]) -> Vec<u8> {
        let compressed = match (bytes.len() >= 50, self.zstd) {
            (false, _) => bytes.to_vec(),
            (true, true) => zstd::bulk::compress(bytes, 3).unwrap(),
            (true, false) => {
                let mut stream = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
                stream.write_all(bytes).unwrap();
                stream.finish().unwrap()
            }
        };
        let unpacked = if bytes.len() >= 50 { bytes.len() } else { 0 };
        let header = packed_header(compressed.len(), self.sequence, unpacked);
        self.sequence = self.sequence.wrapping_add(1);
        [header, compressed].concat()
    }

    fn open(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let mut header = [0; 7];
        stream.read_exact(&mut header)?;
        let [a, b, c, sequence, d, e, f] = header;
        assert_eq!(sequence, self.sequence, "sequence id of a compressed packet");
        self.sequence = sequence.wrapping_add(1);
        let mut bytes = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        stream.read_exact(&mut bytes)?;
        let length = u32::from_le_bytes([d, e, f, 0]) as usize;
        self.seen.push((bytes.len(), sequence, length));
        if length > 0 {
            let packed = std::mem::take(&mut bytes);
            match self.zstd {
                true => bytes = zstd::bulk::decompress(&packed, length).unwrap(),
                false => {
                    flate2::read::ZlibDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
                }
            }
            assert_eq!(bytes.len(), length);
        }
        self.opened.extend(bytes);
        Ok(())
    }
}

pub fn packed_header(length: usize, sequence: u8, unpacked: usize) -> Vec<u8> {
    let mut header = (length as u32).to_le_bytes()[..3].to_vec();
    header.push(sequence);
    header.extend_from_slice(&(unpacked as u32).to_le_bytes()[..3]);
    header
}

/// Runs statements that must succeed.
pub fn all(client: &mut Client, statements: &[&str]) {
    for statement in statements {
        if let Err(error) = client.run(statement) {
            unreachable!("{statement}: {error:?}");
        }
    }
}

/// The error's number of a statement that must fail.
pub fn code(client: &mut Client, sql: &str) -> u16 {
    match client.run(sql) {
        Err(error) => error.0,
        Ok(rows) => unreachable!("{sql}: {rows:?}"),
    }
}

/// The first value of a statement's answer, which is not NULL.
pub fn one(client: &mut Client, sql: &str) -> String {
    client.run(sql).unwrap()[0][0].clone().unwrap()
}

impl Client {
    pub fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut client = Self { stream, sequence: 0, greeting: Vec::new(), packed: None };
        client.greeting = client.receive().unwrap();
        client
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn send(&mut self, payload: &[u8]) {
        // Payloads of 16 MiB and more go in several packets.
        const MOST: usize = 0xff_ffff;
        if self.sequence == 0
            && let Some(packed) = &mut self.packed
        {
            packed.sequence = 0;
        }
        let mut rest = payload;
        loop {
            let (now, later) = rest.split_at(rest.len().min(MOST));
            let packet = packet(self.sequence, now);
            match &mut self.packed {
                None => self.send_raw(&packet),
                Some(packed) => {
                    let pieces: Vec<u8> = packet.chunks(MOST).flat_map(|piece| packed.pack(piece)).collect();
                    self.send_raw(&pieces);
                }
            }
            self.sequence = self.sequence.wrapping_add(1);
            rest = later;
            if now.len() < MOST {
                break;
            }
        }
        if let Some(packed) = &self.packed {
            // The number inside follows the one outside, as in MySQL.
            self.sequence = packed.sequence;
        }
    }

    fn read_exact(&mut self, into: &mut [u8]) -> io::Result<()> {
        let Some(packed) = &mut self.packed else { return self.stream.read_exact(into) };
        while packed.opened.len() < into.len() {
            packed.open(&mut self.stream)?;
        }
        packed.opened.read_exact(into)
    }

    pub fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut header = [0; 4];
        self.read_exact(&mut header)?;
        let [a, b, c, sequence] = header;
        assert_eq!(sequence, self.sequence, "sequence id of the server");
        self.sequence = sequence.wrapping_add(1);
        let mut payload = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        self.read_exact(&mut payload)?;
        Ok(payload)
    }

    pub fn salt(&self) -> Vec<u8> {
        let version_end = self.greeting.iter().position(|byte| *byte == 0).unwrap();
        let first = version_end + 5;
        let second = first + 8 + 1 + 2 + 1 + 2 + 2 + 1 + 10;
        [&self.greeting[first..first + 8], &self.greeting[second..second + 12]].concat()
    }

    pub fn connection_id(&self) -> u32 {
        let version_end = self.greeting.iter().position(|byte| *byte == 0).unwrap();
        u32::from_le_bytes(self.greeting[version_end + 1..version_end + 5].try_into().unwrap())
    }

    pub fn log_in(
        &mut self,
        user: &str,
        password: &[u8],
        plugin: &str,
        capabilities: u32,
        database: Option<&str>,
    ) -> Vec<u8> {
        let salt = self.salt();
        let capabilities = capabilities | if database.is_some() { 8 } else { 0 };
        let mut payload = capabilities.to_le_bytes().to_vec();
        payload.extend_from_slice(&[0, 0, 0, 1, 45]);
        payload.extend_from_slice(&[0; 23]);
        payload.extend_from_slice(user.as_bytes());
        payload.push(0);
        let response = scramble(plugin, password, &salt);
        payload.push(response.len() as u8);
        payload.extend_from_slice(&response);
        if let Some(database) = database {
            payload.extend_from_slice(database.as_bytes());
            payload.push(0);
        }
        payload.extend_from_slice(plugin.as_bytes());
        payload.push(0);
        if capabilities & ZSTD != 0 {
            payload.push(3);
        }
        self.send(&payload);
        let reply = self.finish_login(password);
        if capabilities & (COMPRESS | ZSTD) != 0 && reply.first() == Some(&0) {
            self.packed = Some(Packed { zstd: capabilities & COMPRESS == 0, ..Packed::default() });
        }
        reply
    }

    /// Follows switches and fast authentication to the final OK or ERR.
    pub fn finish_login(&mut self, password: &[u8]) -> Vec<u8> {
        loop {
            let reply = self.receive().unwrap();
            match reply.first() {
                Some(0xfe) => {
                    let rest = &reply[1..];
                    let end = rest.iter().position(|byte| *byte == 0).unwrap();
                    let plugin = String::from_utf8(rest[..end].to_vec()).unwrap();
                    let salt = rest[end + 1..rest.len() - 1].to_vec();
                    let response = scramble(&plugin, password, &salt);
                    self.send(&response);
                }
                Some(1) if reply == [1, 3] => {}
                _ => return reply,
            }
        }
    }

    pub fn command(&mut self, payload: &[u8]) -> Vec<u8> {
        self.sequence = 0;
        self.send(payload);
        self.receive().unwrap()
    }

    pub fn query(&mut self, sql: &str) -> Vec<u8> {
        self.command(&[&[3], sql.as_bytes()].concat())
    }

    /// The rows of a result set whose first packet was read already (EOF-style).
    pub fn rows(&mut self, first: &[u8]) -> Vec<Vec<u8>> {
        for _ in 0..first[0] {
            self.receive().unwrap();
        }
        let eof = self.receive().unwrap();
        assert_eq!((eof[0], eof.len()), (0xfe, 5));
        let mut rows = Vec::new();
        loop {
            let packet = self.receive().unwrap();
            if packet[0] == 0xfe && packet.len() < 9 || packet[0] == 0xff {
                return rows;
            }
            rows.push(packet);
        }
    }

    pub fn text(&mut self, sql: &str) -> String {
        let first = self.query(sql);
        let rows = self.rows(&first);
        String::from_utf8_lossy(&rows[0][1..]).into_owned()
    }

    /// Runs a statement: its rows as texts, or number and text of the error.
    pub fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, (u16, String)> {
        self.sequence = 0;
        self.send(&[&[3], sql.as_bytes()].concat());
        self.answer()
    }

    /// The answer to a statement sent before.
    pub fn answer(&mut self) -> Result<Vec<Vec<Option<String>>>, (u16, String)> {
        let first = self.receive().unwrap();
        match first[0] {
            0 => Ok(Vec::new()),
            0xff => Err(error_of(&first)),
            columns => {
                for _ in 0..=columns {
                    self.receive().unwrap();
                }
                let mut rows = Vec::new();
                loop {
                    let packet = self.receive().unwrap();
                    match packet[0] {
                        0xfe if packet.len() < 9 => return Ok(rows),
                        0xff => return Err(error_of(&packet)),
                        _ => rows.push(text_row(&packet)),
                    }
                }
            }
        }
    }

    pub fn is_closed(&mut self) -> bool {
        let mut byte = [0; 1];
        loop {
            match self.stream.read(&mut byte) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::ConnectionReset,
            }
        }
    }
}

pub fn scramble(plugin: &str, password: &[u8], salt: &[u8]) -> Vec<u8> {
    match plugin {
        _ if password.is_empty() => Vec::new(),
        native::PLUGIN => native::scramble(password, salt),
        _ => sha2_password::scramble(password, salt),
    }
}

fn error_of(packet: &[u8]) -> (u16, String) {
    (error_code(packet), String::from_utf8_lossy(&packet[9..]).into_owned())
}

/// The fields of a row of the text protocol, each shorter than 64 KiB.
fn text_row(mut row: &[u8]) -> Vec<Option<String>> {
    let mut fields = Vec::new();
    while let Some((first, rest)) = row.split_first() {
        let (length, rest) = match first {
            0xfb => {
                fields.push(None);
                row = rest;
                continue;
            }
            0xfc => (usize::from(u16::from_le_bytes([rest[0], rest[1]])), &rest[2..]),
            length => (usize::from(*length), rest),
        };
        let (field, rest) = rest.split_at(length);
        fields.push(Some(String::from_utf8_lossy(field).into_owned()));
        row = rest;
    }
    fields
}

pub fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    bytes.push(sequence);
    bytes.extend_from_slice(payload);
    bytes
}

pub fn error_code(packet: &[u8]) -> u16 {
    assert_eq!(packet[0], 0xff, "{packet:?}");
    u16::from_le_bytes([packet[1], packet[2]])
}

/// Prepares a statement: its number.
pub fn prepare(client: &mut Client, sql: &str) -> [u8; 4] {
    let answer = client.command(&[b"\x16", sql.as_bytes()].concat());
    assert_eq!(answer[0], 0, "{sql}");
    let [columns, parameters] = [5, 7].map(|at| u16::from_le_bytes([answer[at], answer[at + 1]]));
    for count in [columns, parameters] {
        // The definitions, and the end of their list.
        for _ in 0..count + u16::from(count > 0) {
            client.receive().unwrap();
        }
    }
    answer[1..5].try_into().unwrap()
}

/// What COM_STMT_EXECUTE sends for texts.
pub fn execute(statement: [u8; 4], texts: &[&str]) -> Vec<u8> {
    let mut packet = [&[0x17][..], &statement, &[0, 1, 0, 0, 0]].concat();
    if !texts.is_empty() {
        packet.extend([0, 1]);
        packet.extend(texts.iter().flat_map(|_| [0xFD, 0]));
        for text in texts {
            packet.push(text.len() as u8);
            packet.extend(text.as_bytes());
        }
    }
    packet
}
