//! The `untorn` program: `serve` is the default command, `probe` tells how pages are protected at a place,
//! `inspect` what a file of a data directory says, `backup` copies one that no server has open, `restore`
//! makes a data directory of a backup.
// A connection's future is that many futures deep: connection, session, watch, executor, engine.
#![recursion_limit = "256"]

use std::process::ExitCode;
use std::sync::Arc;

use sql::result::SqlError;
use sql_shim::options::ServerOptions;
use sql_shim::program::{Engine, serve};
use sql_shim::server::shared::Server;
use sql_shim::session::Sessions;
use untorn::asynchronous::Database;

/// The open database.
struct Untorn {
    database: Database,
}

impl Engine for Untorn {
    type Factory = Sessions;

    fn open(options: &ServerOptions) -> Result<Self, String> {
        let database = untorn::engine::block_on(Database::open(options.database.clone()))
            .map_err(|error| error.to_string())?;
        // Where nothing may be written they stay until the next start.
        if let Err(error) = untorn::engine::block_on(database.drop_private()) {
            tracing::warn!(%error, "temporary tables of the last run are still there");
        }
        Ok(Self { database })
    }

    fn report(&self) -> Vec<(&'static str, String)> {
        self.database.report().lines()
    }

    fn sessions(&self, server: &Arc<Server>) -> Sessions {
        // The directory's own, whatever was asked for.
        let page_size = self.database.report().page_size.to_string();
        let _ = server.variables.set_at_start("innodb_page_size", &page_size);
        let database = self.database.clone();
        server.variables.on_change(
            "innodb_doublewrite",
            Box::new(move |value| {
                let mode = value.as_str().unwrap_or_default().parse();
                let mode = mode.map_err(|error| SqlError::new(1231, b"42000", format!("{error}")))?;
                let set = database.set_doublewrite(mode);
                set.map_err(|error| SqlError::new(1105, b"HY000", error.to_string()))
            }),
        );
        sql_shim::metrics::connect(server, &self.database);
        sql_shim::extension::connect(server, &self.database);
        Sessions::new(server.clone(), self.database.clone())
    }

    fn look(&self) -> sql_shim::dashboard::Look {
        sql_shim::dashboard::look(&self.database)
    }

    fn close(self) -> Result<(), String> {
        untorn::engine::block_on(self.database.close()).map_err(|error| error.to_string())
    }
}

fn main() -> ExitCode {
    sql_shim::log::start();
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("probe") => return sql_shim::probe::run(words.into_iter().skip(1)),
        Some("inspect") => return sql_shim::inspect::run(words.into_iter().skip(1)),
        Some("backup") => return sql_shim::backup::run(words.into_iter().skip(1)),
        Some("restore") => return sql_shim::restore::run(words.into_iter().skip(1)),
        #[cfg(feature = "object-storage")]
        Some("upload") => return sql_shim::object_storage::upload(words.into_iter().skip(1)),
        #[cfg(feature = "object-storage")]
        Some("download") => return sql_shim::object_storage::download(words.into_iter().skip(1)),
        Some("serve") => drop(words.remove(0)),
        Some("help") => words = vec!["--help".to_owned()],
        _ => {}
    }
    serve::<Untorn>(words)
}
