//! A panic in a statement: the connection ends with an error, everything it held is given back, the others go
//! on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sql::result::{ResultColumns, ResultSink, SqlError};

use crate::support::engine::Engine;
use crate::support::{Client, TestServer, error_code};
use sql_shim::server::registry::Connection;
use sql_shim::server::runtime::{RuntimeKind, start};
use sql_shim::server::shared::Server;
use sql_shim::session::{PlannedStatement, Session, Sessions};
use sql_shim::session_interface::{Param, Prepared};
use sql_shim::session_interface::{SessionFactory, SessionService};

/// Real sessions that panic when they are asked to, behind a statement of their own.
struct Fragile(Sessions);

struct FragileSession(Session);

impl SessionFactory for Fragile {
    type Session = FragileSession;
    fn open(&self, connection: &Arc<Connection>) -> FragileSession {
        FragileSession(self.0.open(connection))
    }
}

impl SessionService for FragileSession {
    type Plan = PlannedStatement;
    async fn query(&mut self, sql: &[u8], out: &mut impl ResultSink) -> io::Result<()> {
        if sql == b"panic" {
            panic!("as it was asked to");
        }
        self.0.query(sql, out).await
    }
    async fn prepare(&mut self, sql: &[u8]) -> Result<Prepared<PlannedStatement>, SqlError> {
        self.0.prepare(sql).await
    }
    async fn execute(
        &mut self,
        statement: &mut Prepared<PlannedStatement>,
        params: &[Param<'_>],
        out: &mut impl ResultSink,
    ) -> io::Result<()> {
        self.0.execute(statement, params, out).await
    }
    async fn change_database(&mut self, name: &[u8]) -> Result<(), SqlError> {
        self.0.change_database(name).await
    }
    async fn field_list(&mut self, table: &[u8], pattern: &[u8]) -> Result<Arc<ResultColumns>, SqlError> {
        self.0.field_list(table, pattern).await
    }
    async fn reset(&mut self) {
        self.0.reset().await;
    }
    async fn close(&mut self) {
        self.0.close().await;
    }
    fn status_flags(&self) -> u16 {
        self.0.status_flags()
    }
}

fn status(client: &mut Client, name: &str) -> u64 {
    let rows = client.run(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).unwrap();
    rows[0][1].as_deref().unwrap().parse().unwrap()
}

/// Waits until a connection's place in the register is free again.
fn gone(server: &Server, connections: usize) {
    while server.connections.len() > connections {
        std::thread::yield_now();
    }
}

#[test]
fn a_panic_costs_its_connection_and_nothing_else() {
    let engine = Engine::start();
    let Engine { server, database, directory } = engine;
    let state = server.server.clone();
    server.stop();
    let state = Server::new(
        {
            drop(state);
            sql_shim::auth::accounts::Accounts::open(&directory).unwrap()
        },
        sql_shim::variables::GlobalVariables::default(),
    );
    let sessions = Arc::new(Fragile(Sessions::new(state.clone(), database.clone())));
    let server = TestServer::serve(RuntimeKind::Epoll, state.clone(), None, |options, server| {
        start(options, server, &sessions)
    });
    let mut watching = server.login();
    for statement in
        ["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)", "INSERT INTO d.t VALUES (1, 1)"]
    {
        watching.run(statement).unwrap();
    }
    for number in 1..=5 {
        let mut client = server.login();
        for statement in ["PREPARE p FROM 'SELECT 1'", "BEGIN", "UPDATE d.t SET n = 100 WHERE id = 1"] {
            client.run(statement).unwrap();
        }
        assert_eq!(client.command(b"\x16SELECT 2")[0], 0);
        client.receive().unwrap();
        client.receive().unwrap();
        assert_eq!(state.prepared_statements.load(Ordering::Relaxed), 2);
        let (code, text) = client.run("panic").unwrap_err();
        assert_eq!(code, 1105, "{text}");
        assert!(client.receive().is_err(), "the connection is closed");
        gone(&state, 1);
        assert_eq!(state.prepared_statements.load(Ordering::Relaxed), 0);
        assert_eq!(status(&mut watching, "Untorn_connection_panics"), number);
        assert_eq!(status(&mut watching, "Threads_connected"), 1);
        // Its change is gone, and so is its lock.
        watching.run("UPDATE d.t SET n = n + 1 WHERE id = 1").unwrap();
        let rows = watching.run("SELECT n FROM d.t").unwrap();
        assert_eq!(rows[0][0].as_deref(), Some(&*(number + 1).to_string()));
    }
    drop(watching);
    server.stop();
    untorn::engine::block_on(database.close()).unwrap();
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_reply_that_was_begun_ends_in_the_error() {
    for runtime in [RuntimeKind::Epoll, RuntimeKind::Uring] {
        let server = TestServer::root(runtime);
        let mut client = server.login();
        let first = client.query("panic");
        assert_eq!(first, [1], "the number of columns");
        client.receive().unwrap();
        client.receive().unwrap();
        assert_eq!(error_code(&client.receive().unwrap()), 1105);
        assert!(client.receive().is_err());
        gone(&server.server, 0);
        assert_eq!(server.login().text("echo on"), "echo on");
        server.stop();
    }
}
