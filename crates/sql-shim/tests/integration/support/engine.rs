//! A server with real sessions over an engine in a directory of its own.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sql_shim::auth::accounts::{Accounts, WhenMissing};
use sql_shim::auth::native;
use sql_shim::server::runtime::RuntimeKind;
use sql_shim::server::shared::Server;
use sql_shim::session::Sessions;
use sql_shim::variables::GlobalVariables;
use untorn::Options;
use untorn::asynchronous::Database;

use crate::support::{CAPABILITIES, Client, TestServer};

pub struct Engine {
    pub server: TestServer,
    pub database: Database,
    pub directory: PathBuf,
}

impl Engine {
    /// Serves a fresh data directory, whose account file is in it.
    pub fn start() -> Engine {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("untorn-shim-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&directory);
        Engine::open(&directory)
    }

    pub fn open(directory: &Path) -> Engine {
        let options = Options::new(directory).buffer_pool_bytes(16 << 20).redo_capacity_bytes(16 << 20);
        Engine::serve(untorn::engine::block_on(Database::open(options)).unwrap(), directory)
    }

    pub fn serve(database: Database, directory: &Path) -> Engine {
        let accounts = {
            Accounts::prepare(directory, WhenMissing::Create).unwrap();
            Accounts::open(directory).unwrap()
        };
        let variables = GlobalVariables::default();
        variables.set_at_start("datadir", directory.to_str().unwrap()).unwrap();
        let server = Server::new(accounts, variables);
        let sessions = Arc::new(Sessions::new(server.clone(), database.clone()));
        let server =
            TestServer::serve(RuntimeKind::Epoll, server, None, |options, _| sessions.serve(options));
        Engine { server, database, directory: directory.to_owned() }
    }

    pub fn root(&self) -> Client {
        self.server.login()
    }

    /// Logs in with a password, maybe to a database.
    pub fn login(&self, user: &str, password: &str, database: Option<&str>) -> Result<Client, Vec<u8>> {
        let mut client = self.server.connect();
        let plugin = native::PLUGIN;
        let reply = client.log_in(user, password.as_bytes(), plugin, CAPABILITIES, database);
        if reply.first() == Some(&0) { Ok(client) } else { Err(reply) }
    }

    /// Sends a statement that has to wait for a row, and returns when it does.
    pub fn send_and_wait_for_row(&self, client: &mut Client, sql: &str) {
        client.sequence = 0;
        client.send(&[b"\x03", sql.as_bytes()].concat());
        let system = self.database.transaction_system();
        while !system.transactions().iter().any(|transaction| transaction.waits.is_some()) {
            std::thread::yield_now();
        }
    }

    /// Stops and removes everything.
    pub fn finish(self) {
        let Engine { server, database, directory } = self;
        server.stop();
        untorn::engine::block_on(database.close()).unwrap();
        std::fs::remove_dir_all(directory).unwrap();
    }

    /// Stops, leaving the data.
    pub fn stop(self) -> PathBuf {
        let Engine { server, database, directory } = self;
        server.stop();
        untorn::engine::block_on(database.close()).unwrap();
        directory
    }
}
