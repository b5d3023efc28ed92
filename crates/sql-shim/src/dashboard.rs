//! `--dashboard-address` and `--metrics-address`: the server's figures for [`untorn::dashboard`].
//!
//! The rows are SHOW GLOBAL STATUS. Of those who wait for a row and who keep them waiting the page tells
//! account and statement, without its values.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock, Weak};

use sql::privilege::Privileges;
use untorn::RecoveryProgress;
use untorn::asynchronous::Database;
use untorn::dashboard::{Dashboard, Endpoint, Gate, Present, Site, Source, parse_address};
use untorn::metrics::{Description, Series};
use untorn::pool_contents::PoolPart;

use crate::auth::{Peer, shown_password};
use crate::server::registry::Activity;
use crate::server::shared::Server;
use crate::variables::GlobalVariables;

/// Of a statement's text.
const STATEMENT_CHARS_MAX: usize = 200;

/// Looks at what is there now.
pub struct Look {
    present: Box<dyn Fn(&Server) -> Present + Send + Sync>,
    pool: Box<dyn Fn(usize) -> Vec<PoolPart> + Send + Sync>,
}

/// Looks at this database.
pub fn look(database: &Database) -> Look {
    let (database, of_pool) = (database.clone(), database.clone());
    Look {
        present: Box::new(move |server| Present::of(&database, |connection| party(server, connection))),
        pool: Box::new(move |turn| of_pool.pool_contents(turn)),
    }
}

/// The one account that may see the page from elsewhere.
pub struct OneAccount {
    /// Its name; any host of it.
    pub user: String,
    /// Whose accounts these are, once they are known; nobody is admitted before.
    pub server: Arc<OnceLock<Weak<Server>>>,
}

impl Gate for OneAccount {
    fn admits(&self, user: &str, password: &str, from: IpAddr) -> bool {
        let Some(server) = self.server.get().and_then(Weak::upgrade) else { return false };
        let is_admitted = user == self.user && may_look(&server, user, password, from);
        if !is_admitted {
            server.status.count_refusal_at_dashboard();
        }
        is_admitted
    }
}

/// The page shows what PROCESS gives, held by the account or by a role that its logins activate.
fn may_look(server: &Server, user: &str, password: &str, from: IpAddr) -> bool {
    let accounts = &server.accounts;
    let identity = shown_password::log_in(accounts, &Peer::over_network(from), user, password);
    identity.is_some_and(|identity| {
        let all = server.activates_all_roles();
        let rights = accounts.rights_by_default(&identity.user, &identity.account_host, all);
        rights.global().has_any(Privileges::PROCESS)
    })
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
        self.server.upgrade().map(|server| (self.look.present)(&server)).unwrap_or_default()
    }

    fn pool(&self, turn: usize) -> Vec<PoolPart> {
        (self.look.pool)(turn)
    }

    fn descriptions(&self) -> &[Description] {
        crate::metrics::OWN
    }
}

/// The row that says how far a recovery is.
const RECOVERY: &str = "Untorn_recovery_progress";

/// The page, from before the database is open on: that may take long after a crash.
pub struct Page {
    endpoint: Endpoint,
    figures: Arc<FiguresToCome>,
    server: Arc<OnceLock<Weak<Server>>>,
}

/// Of a server that is being started: how far the recovery is, and then all.
struct FiguresToCome {
    recovery: RecoveryProgress,
    figures: OnceLock<Figures>,
}

impl Page {
    /// Serves it at the address that the settings say, if they say one.
    ///
    /// # Errors
    /// The address is not available.
    pub fn start(variables: &GlobalVariables, recovery: RecoveryProgress) -> Result<Option<Page>, String> {
        let text = variables.text("dashboard_address");
        if text.is_empty() {
            return Ok(None);
        }
        let shown = |error: &dyn std::fmt::Display| format!("dashboard-address={text}: {error}");
        let user = variables.text("dashboard_account").to_string();
        let address = parse_address(&text, !user.is_empty()).map_err(|error| shown(&error))?;
        let server = Arc::new(OnceLock::new());
        let page = match user.is_empty() {
            true => Dashboard::new(),
            false => Dashboard::behind(Box::new(OneAccount { user, server: server.clone() })),
        };
        if !address.ip().is_loopback() {
            tracing::warn!(
                "the dashboard at {address} is served without TLS: passwords and figures can be read on the way. Give it to a proxy \
                 that encrypts, or to a network of your own"
            );
        }
        let figures = Arc::new(FiguresToCome { recovery, figures: OnceLock::new() });
        let endpoint = Endpoint::start(address, figures.clone(), Site::Dashboard(page));
        Ok(Some(Page { endpoint: endpoint.map_err(|error| shown(&error))?, figures, server }))
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }

    /// The server is there, and the database open.
    pub fn connect(&self, server: &Arc<Server>, look: Look) {
        // Nobody has set them before.
        let _ = self.figures.figures.set(Figures { server: Arc::downgrade(server), look });
        let _ = self.server.set(Arc::downgrade(server));
    }
}

impl Source for FiguresToCome {
    fn rows(&self) -> Option<Vec<(String, String)>> {
        let (mut rows, progress) = match self.figures.get() {
            Some(figures) => (figures.rows()?, String::new()),
            None => (Vec::new(), self.recovery.text().unwrap_or_default()),
        };
        rows.push((RECOVERY.to_owned(), progress));
        Some(rows)
    }

    fn is_up(&self) -> bool {
        self.figures.get().is_some()
    }

    fn times(&self) -> Vec<Series> {
        self.figures.get().map(Figures::times).unwrap_or_default()
    }

    fn present(&self) -> Present {
        self.figures.get().map(Figures::present).unwrap_or_default()
    }

    fn pool(&self, turn: usize) -> Vec<PoolPart> {
        self.figures.get().map(|figures| figures.pool(turn)).unwrap_or_default()
    }

    fn descriptions(&self) -> &[Description] {
        crate::metrics::OWN
    }
}

/// Account and statement of a connection; empty while it does nothing.
fn party(server: &Server, connection: u64) -> (String, String) {
    let known = u32::try_from(connection).ok().and_then(|number| server.connections.get(number));
    let shown = |now: &Activity| (now.user.to_string(), now.statement_without_values());
    let (user, text) = known.map(|connection| connection.with_activity(shown)).unwrap_or_default();
    let statement = match text.char_indices().nth(STATEMENT_CHARS_MAX) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    };
    (user, statement)
}
