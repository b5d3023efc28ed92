//! The `untorn` program: `serve` is the default command, `probe` tells how pages are protected at a place.

use std::process::ExitCode;
use std::sync::Arc;

use sql_shim::options::ServerOptions;
use sql_shim::program::{Engine, serve};
use sql_shim::server::registry::Server;
use sql_shim::session::Sessions;
use untorn::Database;

/// The open database.
struct Untorn {
    database: Database,
}

impl Engine for Untorn {
    type Factory = Sessions;

    fn open(options: &ServerOptions) -> Result<Self, String> {
        let database = Database::open(options.database.clone()).map_err(|error| error.to_string())?;
        Ok(Self { database })
    }

    fn report(&self) -> String {
        self.database.report().to_string()
    }

    fn sessions(&self, server: &Arc<Server>) -> Sessions {
        let database = self.database.clone();
        server.status.add_source(Box::new(move |rows| {
            rows.extend(
                database.status().into_iter().map(|(name, figure)| (name.into(), figure.to_string())),
            );
        }));
        sql_shim::clean_tier::connect(server, &self.database);
        Sessions::new(server.clone(), self.database.clone())
    }

    fn close(self) -> Result<(), String> {
        self.database.close_blocking().map_err(|error| error.to_string())
    }
}

fn main() -> ExitCode {
    sql_shim::log::start();
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("probe") => return sql_shim::probe::run(words.into_iter().skip(1)),
        Some("serve") => drop(words.remove(0)),
        _ => {}
    }
    serve::<Untorn>(words)
}
