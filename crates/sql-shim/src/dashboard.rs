//! `--dashboard-address` and `--metrics-address`: the server's figures for [`untorn::dashboard`].
//!
//! The rows are SHOW GLOBAL STATUS. Of those who wait for a row and who keep them waiting the page tells
//! account and statement, without its values.

use std::sync::{Arc, Weak};

use sql::digest::Shape;
use sql::lexer::LexicalModes;
use untorn::asynchronous::Database;
use untorn::dashboard::{Present, Source};
use untorn::metrics::{Description, Series};

use crate::server::registry::INFO_BYTES_MAX;
use crate::server::shared::Server;

/// Of a statement's text.
const STATEMENT_CHARS_MAX: usize = 200;

/// Gives the present.
pub type Look = Box<dyn Fn(&Server) -> Present + Send + Sync>;

/// Looks at this database.
pub fn look(database: &Database) -> Look {
    let database = database.clone();
    Box::new(move |server| Present::of(&database, |connection| party(server, connection)))
}

/// The server's rows and histograms, and what the page shows beside them.
struct Figures {
    server: Weak<Server>,
    look: Look,
}

/// What an endpoint of this server serves.
pub fn source(server: &Arc<Server>, look: Look) -> Arc<dyn Source> {
    Arc::new(Figures { server: Arc::downgrade(server), look })
}

impl Source for Figures {
    fn rows(&self) -> Option<Vec<(String, String)>> {
        self.server.upgrade().map(|server| crate::status::collect(&server))
    }

    fn times(&self) -> Vec<Series> {
        self.server.upgrade().map(|server| server.status.times()).unwrap_or_default()
    }

    fn present(&self) -> Present {
        self.server.upgrade().map(|server| (self.look)(&server)).unwrap_or_default()
    }

    fn descriptions(&self) -> &[Description] {
        crate::metrics::OWN
    }
}

/// Account and statement of a connection; empty while it does nothing.
fn party(server: &Server, connection: u64) -> (String, String) {
    let known = u32::try_from(connection).ok().and_then(|number| server.connections.get(number));
    let (user, sql) = known
        .map(|connection| connection.with_activity(|now| (now.user.to_string(), now.info.clone())))
        .unwrap_or_default();
    // Where a value ends is not known for sure in a statement that was cut, nor where its session's sql_mode
    // says what a backslash is.
    let clear = sql.len() < INFO_BYTES_MAX && !sql.contains(&b'\\');
    let text = if clear {
        sql::digest::text(&sql, LexicalModes::default(), Shape::Whole)
    } else {
        "(not shown)".into()
    };
    let statement = match text.char_indices().nth(STATEMENT_CHARS_MAX) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    };
    (user, statement)
}
