//! The `untorn` program: `serve` is the default command.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use sql_shim::options::ServerOptions;
use sql_shim::program::{Engine, serve};
use sql_shim::result::{Param, Prepared, ResultColumns, ResultSink, SqlError, status_flag};
use sql_shim::server::registry::{Connection, Server};
use sql_shim::service::{SessionFactory, SessionService};
use untorn::Database;

/// The open database.
struct Untorn {
    database: Database,
}

impl Engine for Untorn {
    type Factory = Unfinished;

    fn open(options: &ServerOptions) -> Result<Self, String> {
        let database = Database::open(options.database.clone()).map_err(|error| error.to_string())?;
        Ok(Self { database })
    }

    fn report(&self) -> String {
        self.database.report().to_string()
    }

    fn sessions(&self, _: &Arc<Server>) -> Unfinished {
        Unfinished
    }

    fn close(self) -> Result<(), String> {
        self.database.close_blocking().map_err(|error| error.to_string())
    }
}

/// Stands in until the SQL sessions are there: refuses every statement.
struct Unfinished;

impl SessionFactory for Unfinished {
    type Session = Unfinished;
    fn open(&self, _: &Arc<Connection>) -> Unfinished {
        Unfinished
    }
}

fn refused() -> SqlError {
    SqlError::new(1235, b"42000", "This build has no SQL sessions yet")
}

impl SessionService for Unfinished {
    type Plan = ();

    async fn query(&mut self, _: &[u8], out: &mut impl ResultSink) -> io::Result<()> {
        out.error(&refused());
        Ok(())
    }

    async fn prepare(&mut self, _: &[u8]) -> Result<Prepared<()>, SqlError> {
        Err(refused())
    }

    async fn execute(
        &mut self,
        _: &mut Prepared<()>,
        _: &[Param<'_>],
        out: &mut impl ResultSink,
    ) -> io::Result<()> {
        out.error(&refused());
        Ok(())
    }

    async fn change_database(&mut self, _: &[u8]) -> Result<(), SqlError> {
        Ok(())
    }

    async fn field_list(&mut self, _: &[u8], _: &[u8]) -> Result<Arc<ResultColumns>, SqlError> {
        Err(refused())
    }

    async fn reset(&mut self) {}

    async fn close(&mut self) {}

    fn status_flags(&self) -> u16 {
        status_flag::AUTOCOMMIT
    }
}

fn main() -> ExitCode {
    sql_shim::log::start();
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "serve") {
        words.remove(0);
    }
    serve::<Untorn>(words)
}
