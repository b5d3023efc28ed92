//! The `untorn serve` command: from arguments to a running server and back to a closed database.
//!
//! The SQL layer comes in through [`Engine`]: it opens the database with the decided options and hands back a
//! session factory, what to print, and how to close. Everything else (variables, accounts, sockets, signals)
//! is here.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use untorn::dashboard::{Endpoint, Site};

use crate::auth::accounts::{Accounts, WhenMissing};
use crate::dashboard;
use crate::metrics;
use crate::options::{self, OptionError, ServerOptions, arguments};
use crate::server::login::SERVER_VERSION;
use crate::server::runtime::{self, RuntimeKind};
use crate::server::shared::Server;
use crate::session_interface::SessionFactory;
use crate::variables::GlobalVariables;
use crate::{preflight, signals, statement_stats, tls};

/// The database behind the server.
pub trait Engine: Sized {
    /// Sessions on it.
    type Factory: SessionFactory;
    /// Opens it; blocks until recovery is done. The error is shown as it is.
    fn open(options: &ServerOptions) -> Result<Self, String>;
    /// For the start-up log: what was found and decided about what.
    fn report(&self) -> Vec<(&'static str, String)>;
    /// The session factory; called once, when the server's shared state exists. Also the place for
    /// [`GlobalVariables::on_change`] and status sources.
    fn sessions(&self, server: &Arc<Server>) -> Self::Factory;
    /// What the dashboard shows beside SHOW GLOBAL STATUS.
    fn look(&self) -> dashboard::Look;
    /// Closes it cleanly.
    fn close(self) -> Result<(), String>;
}

/// Runs the server until it is asked to stop.
pub fn serve<E: Engine>(words: impl IntoIterator<Item = String>) -> ExitCode {
    match try_serve::<E>(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&format!("error: {message}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints a line; a closed terminal is no reason to stop.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn say_about(what: &str, line: &str) {
    say(&format!("{what:<16} {line}"));
}

/// What the opening found and decided, one line about each thing: what was said before it is not said again,
/// and the limit of what grows stands beside what it is now.
fn report(found: &[(&'static str, String)], options: &ServerOptions) {
    for (what, line) in found {
        if options.decisions.iter().any(|(said, _)| said == what) {
            continue;
        }
        match options.asked.iter().find(|(asked, _)| asked == what) {
            Some((_, asked)) => say_about(what, &format!("{line}; limit {asked}")),
            None => say_about(what, line),
        }
    }
}

fn try_serve<E: Engine>(words: impl IntoIterator<Item = String>) -> Result<(), String> {
    let shown = |error: OptionError| error.to_string();
    let arguments = arguments::parse(words).map_err(shown)?;
    if arguments.version {
        let _ =
            writeln!(io::stdout(), "untorn {} (MySQL protocol, {SERVER_VERSION})", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    if arguments.help {
        let _ = io::stdout().write_all(help(arguments.list_variables).as_bytes());
        return Ok(());
    }
    if arguments.print_defaults {
        let text = options::print_defaults(&arguments).map_err(shown)?;
        let _ = io::stdout().write_all(text.as_bytes());
        return Ok(());
    }
    let variables = GlobalVariables::default();
    let options = options::load(&arguments, &variables).map_err(shown)?;
    run::<E>(&options, variables)
}

fn run<E: Engine>(options: &ServerOptions, variables: GlobalVariables) -> Result<(), String> {
    say(&format!("untorn {}", env!("CARGO_PKG_VERSION")));
    // Before the database is opened, which opens files of tables; each connection is another one.
    let open_files = disk::raise_file_limit();
    // Any number is a valid value.
    let _ = variables.set_at_start("open_files_limit", &open_files.to_string());
    for (what, decision) in &options.decisions {
        say_about(what, decision);
    }
    if options.listen.runtime == RuntimeKind::Epoll {
        tracing::warn!("connections run over epoll, which costs more CPU than io_uring");
    }
    // Signals are caught from here on, so that a stop during recovery waits for the end of it.
    let signals = signals::watch().map_err(|error| format!("cannot watch for signals: {error}"))?;
    for warning in &options.warnings {
        tracing::warn!("{warning}");
    }
    preflight::check(options, &variables)?;
    refuse_open_doors_early(options)?;
    // Before the engine makes anything: afterwards every directory has a catalog.
    prepare_accounts(options, &variables)?;
    let page = dashboard::Page::start(&variables, options.database.recovery_progress.clone())?;
    if let Some(page) = &page {
        say(&format!("dashboard at     http://{}/", page.address()));
    }
    let engine = E::open(options)?;
    report(&engine.report(), options);
    let outcome = serve_open(options, variables, &engine, page, signals);
    say("closing the database");
    let closed = engine.close();
    outcome.and(closed).inspect(|()| say("stopped"))
}

fn serve_open<E: Engine>(
    options: &ServerOptions,
    variables: GlobalVariables,
    engine: &E,
    page: Option<dashboard::Page>,
    signals: signals::Watcher,
) -> Result<(), String> {
    let accounts = open_accounts(options, &variables)?;
    refuse_open_doors(options, &accounts)?;
    let uuid = server_uuid(&options.datadir).map_err(|error| format!("auto.cnf: {error}"))?;
    // Any text is a valid value of these.
    let _ = variables.set_at_start("server_uuid", &uuid);
    let pid_file = PathBuf::from(variables.text("pid_file"));
    let server = Server::new(accounts, variables);
    server.open_files()?;
    establish_tls(options, &server)?;
    statement_stats::check(&server, options.slow_log.clone())?;
    let factory = Arc::new(engine.sessions(&server));
    let running = runtime::start(&options.listen, &server, &factory).map_err(|error| error.to_string())?;
    let _ = server.variables.set_at_start("port", &running.port().to_string());
    if let Err(error) = std::fs::write(&pid_file, format!("{}\n", std::process::id())) {
        // Nothing of the server needs it, and stock option files name a directory that a package makes.
        tracing::warn!("pid-file={}: it is not written: {error}", pid_file.display());
    }
    for address in &running.addresses {
        say(&format!("listening on     {address}"));
    }
    if let Some(socket) = &options.listen.socket {
        say(&format!("listening on     {}", socket.display()));
    }
    // Lives as long as the server runs.
    let _metrics = start_metrics(&server, engine)?;
    if let Some(page) = &page {
        page.connect(&server, engine.look());
    }
    say("ready for connections");
    signals.connect(&server);
    let outcome = running.wait().map_err(|error| error.to_string());
    say(&format!("all connections have ended; the server ran for {} s", server.clock.advance() / 1000));
    let _ = std::fs::remove_file(&pid_file);
    outcome
}

/// Under the directory's lock: the certificate may be made here.
fn establish_tls(options: &ServerOptions, server: &Server) -> Result<(), String> {
    let established = if options.tls { tls::establish(&options.datadir, &server.variables)? } else { None };
    match established {
        Some(established) => {
            say_about("encryption", &established.report);
            // Nobody has set it before.
            let _ = server.tls.set(established.config);
        }
        None => {
            server.serve_without_tls()?;
            say_about("encryption", "none: clients are not offered TLS");
        }
    }
    Ok(())
}

fn start_metrics<E: Engine>(server: &Arc<Server>, engine: &E) -> Result<Option<Endpoint>, String> {
    let text = server.variables.text("metrics_address");
    if text.is_empty() {
        return Ok(None);
    }
    let shown = |error: &dyn std::fmt::Display| format!("metrics-address={text}: {error}");
    let address = metrics::parse_address(&text).map_err(|error| shown(&error))?;
    let source = dashboard::source(server, engine.look());
    let endpoint = Endpoint::start(address, source, Site::Metrics).map_err(|error| shown(&error))?;
    say(&format!("metrics at       http://{}/metrics", endpoint.address()));
    Ok(Some(endpoint))
}

fn prepare_accounts(options: &ServerOptions, variables: &GlobalVariables) -> Result<(), String> {
    if let Some(name) = file_of_others(&options.datadir) {
        tracing::warn!(
            "{} is not empty, and not an Untorn data directory yet (it has '{name}'): if this is the wrong directory, \
             stop the server and start it with another --datadir",
            options.datadir.display()
        );
    }
    let init = variables.number("untorn_init_accounts") == 1;
    let fresh = init || !has_catalog(&options.datadir);
    let missing = if fresh { WhenMissing::Create } else { WhenMissing::Refuse };
    let mut make = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(make.recursive(true), 0o750).create(&options.datadir).map_err(
        |error| format!("cannot create the data directory {}: {error}", options.datadir.display()),
    )?;
    Accounts::prepare(&options.datadir, missing).map_err(|error| format!("accounts: {error}"))
}

/// Under the directory's lock: a file of an older version is written here.
fn open_accounts(options: &ServerOptions, variables: &GlobalVariables) -> Result<Accounts, String> {
    let shown = |error| format!("accounts: {error}");
    let accounts = Accounts::open(&options.datadir).map_err(shown)?;
    accounts.upgrade_file().map_err(shown)?;
    accounts.set_socket_only_without_password(variables.number("untorn_passwordless_tcp") == 0);
    let open = accounts.without_password();
    if !open.is_empty() {
        let reach = if accounts.socket_only_without_password() {
            "the local socket"
        } else {
            "the local socket and the loopback interface (--untorn-passwordless-tcp=OFF: the socket only)"
        };
        tracing::warn!(
            "accounts without a password: {}; every user of this machine may log in to them over {reach}. \
             set one with ALTER USER … IDENTIFIED BY '…'",
            open.join(", ")
        );
    }
    Ok(accounts)
}

/// Whether the directory has been a data directory before: files of the catalog are there, whole or not.
pub(crate) fn has_catalog(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"untorn.catalog"))
}

/// A file in a directory that is about to become a data directory, which no start of the server left
/// there. The engine makes its files beside it.
fn file_of_others(directory: &Path) -> Option<String> {
    if has_catalog(directory) {
        return None;
    }
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| {
        let ours =
            ["untorn", "auto.cnf", "mysqld-auto.cnf", "server-cert.pem", "server-key.pem", "lost+found"];
        !name.starts_with('.') && !ours.iter().any(|own| name.starts_with(own))
    });
    names.sort();
    names.into_iter().next()
}

/// [`refuse_open_doors`] before anything is made or recovered, as far as it can be told without the
/// directory's lock: [`serve_open`] asks again under it.
fn refuse_open_doors_early(options: &ServerOptions) -> Result<(), String> {
    match Accounts::open(&options.datadir) {
        Ok(accounts) => refuse_open_doors(options, &accounts),
        // A new directory gets the accounts that those in memory begin with.
        Err(_) if !has_catalog(&options.datadir) => refuse_open_doors(options, &Accounts::in_memory()),
        // What is wrong with the file is said where it is needed.
        Err(_) => Ok(()),
    }
}

/// An account without a password and an address others can reach do not go together.
fn refuse_open_doors(options: &ServerOptions, accounts: &Accounts) -> Result<(), String> {
    let (addresses, open) = (options.open_addresses(), accounts.without_password());
    match (addresses.first(), open.first()) {
        (Some(address), Some(_)) => Err(format!(
            "bind-address={address} is reachable from other machines, but these accounts have no password: {}. \
             Start with --bind-address=127.0.0.1, set passwords (ALTER USER ... IDENTIFIED BY '...'), then bind to {address}.",
            open.join(", ")
        )),
        _ => Ok(()),
    }
}

/// The server's identity, kept in `auto.cnf` as mysqld keeps it.
fn server_uuid(datadir: &Path) -> io::Result<String> {
    use rsa::rand_core::{OsRng, RngCore};
    let path = datadir.join("auto.cnf");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some(uuid) = text.lines().find_map(|line| line.trim().strip_prefix("server-uuid=")) {
        return Ok(uuid.trim().to_owned());
    }
    let mut random = [0u8; 16];
    OsRng.fill_bytes(&mut random);
    // Version 4, variant 1 (RFC 9562).
    let value = u128::from_be_bytes(random) & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{value:032x}");
    let parts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
    let uuid = parts.map(|(from, to)| hex.get(from..to).unwrap_or_default()).join("-");
    std::fs::write(&path, format!("[auto]\nserver-uuid={uuid}\n"))?;
    Ok(uuid)
}

/// The text of `--help`.
pub fn help(with_variables: bool) -> String {
    let mut text = String::from(
        "untorn - a MySQL-protocol server over InnoDB-format tables

usage: untorn [serve] [options]
       untorn probe PATH          how pages of files there are protected, and why (untorn probe --help)
       untorn backup TARGET       copies a directory that no server has open (untorn backup --help)
       untorn restore BACKUP DIR  makes a data directory of a backup, and verifies every byte
       untorn upload BACKUP URL   copies a backup to object storage, download URL DIR back (untorn upload --help)
       untorn inspect catalog DIR what the catalog of a stopped or crashed directory says, as JSON

  --datadir DIR           where the data is; made if it is not there (default ./untorn-data)
  --bind-address ADDRESS  address to listen on; * for all (default 127.0.0.1; others need passwords first)
  --port, -P PORT         TCP port (default 3306)
  --socket, -S PATH       local socket (default DIR/untorn.sock)
  --metrics-address A:P   figures for Prometheus at http://A:P/metrics, for anyone who reaches it (default: off)
  --dashboard-address A:P a page at http://A:P/ that shows what the server does; loopback only (default: off)
  --dashboard-account USER  who may see that page with the account's password; it may be at any address then
  --defaults-file FILE    a my.cnf: groups [mysqld], [server] and [untorn]
  --defaults-extra-file FILE  another one, read after it
  --print-defaults        print what these files and the command line set, and exit
  --NAME=VALUE            any system variable, with dashes or underscores; sizes take K, M, G
  --help --verbose        this text and every system variable with its default
  --version

good to know
  --innodb-buffer-pool-size=2G          memory for pages (default: 55 % of what the process may use)
  --innodb-redo-log-capacity=1G         redo log on disk (default: a quarter of the pool, 128 MiB to 2 GiB, and more
                                        where that saves page writes)
  --innodb-flush-log-at-trx-commit=1    1: a commit survives power loss; 2: survives the server; 0: neither
  --untorn-threads=8                    threads that carry connections (default: one per core)
  --max-connections=4096
  --untorn-passwordless-tcp=OFF         accounts without a password may use the local socket only
  --untorn-init-accounts                recreate root@localhost without a password, after the accounts file was lost
  --untorn-backup-dir=DIR               where BACKUP SERVER TO 'name' may write (default: nowhere)
  --ssl-cert=FILE --ssl-key=FILE        the certificate shown to clients (default: one of its own, self-signed)
  --skip-ssl                            do not offer TLS
  --require-secure-transport            refuse clients without TLS, except on the local socket
  UNTORN_RUNTIME=epoll                  (environment) do not use io_uring for connections

first steps
  untorn --datadir=/var/lib/untorn &
  mysql -h 127.0.0.1 -u root            root has no password and may log in from this machine only
  mysql> ALTER USER root@localhost IDENTIFIED BY '...';
  SIGTERM (or `mysqladmin shutdown`) closes the database cleanly.
",
    );
    if with_variables {
        text.push_str("\nsystem variables and their defaults\n");
        for definition in crate::variables::table::DEFINITIONS {
            let default =
                if definition.default == crate::variables::table::NULL { "NULL" } else { definition.default };
            text.push_str(&format!("  --{:<44} {default}\n", definition.name.replace('_', "-")));
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_are_seen_until_the_directory_is_ours() {
        let place = std::env::temp_dir().join(format!("untorn-others-{}", std::process::id()));
        assert_eq!(file_of_others(&place), None, "a directory that is not there is empty");
        std::fs::create_dir_all(place.join("lost+found")).unwrap();
        for ours in ["untorn.lock", "untorn-accounts.json", "auto.cnf", ".hidden"] {
            std::fs::write(place.join(ours), "").unwrap();
        }
        assert_eq!(file_of_others(&place), None);
        std::fs::write(place.join("thesis.tex"), "").unwrap();
        assert_eq!(file_of_others(&place).as_deref(), Some("thesis.tex"));
        std::fs::write(place.join("untorn.catalog"), "").unwrap();
        assert_eq!(file_of_others(&place), None);
        std::fs::remove_dir_all(&place).unwrap();
    }
}
