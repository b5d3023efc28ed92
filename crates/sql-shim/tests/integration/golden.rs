//! Golden scripts: SQL and the expected results in one file, run through a session without sockets.
//!
//! A script is blocks separated by blank lines: the statement's lines, a line `----`, the expected lines. A
//! result is its column names and rows with `|` between the fields, `OK n` with the affected rows, or the
//! error as clients see it; a text of several statements has several, one behind the other. A statement
//! below a line `# as name` is one of that account's session, and so are those that follow; `# new name` is
//! a new one. With `GOLDEN=write` in the environment the files are rewritten from what the server says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use sql::result::{Completion, Date, DateTime, ResultColumns, ResultSink, SqlError, Time};
use sql_shim::auth::accounts::Accounts;
use sql_shim::server::registry::{ClientFlags, Connection};
use sql_shim::server::shared::Server;
use sql_shim::session::Sessions;
use sql_shim::session_interface::{SessionFactory, SessionService};
use sql_shim::variables::GlobalVariables;
use untorn::Options;
use untorn::asynchronous::Database;

#[derive(Default)]
struct TextSink {
    lines: Vec<String>,
    row: Vec<String>,
}

impl TextSink {
    fn push(&mut self, text: impl Into<String>) {
        self.row.push(text.into());
    }
}

fn fraction(micros: u32, decimals: u8) -> String {
    if decimals == 0 { String::new() } else { format!(".{:06}", micros)[..=usize::from(decimals)].to_owned() }
}

impl ResultSink for TextSink {
    fn columns(&mut self, columns: &Arc<ResultColumns>) {
        let names: Vec<&str> = columns.metas().iter().map(|meta| meta.name.as_str()).collect();
        self.lines.push(names.join("|"));
    }
    fn row_begin(&mut self) {
        self.row.clear();
    }
    fn is_full(&self) -> bool {
        false
    }
    fn null(&mut self) {
        self.push("NULL");
    }
    fn int(&mut self, value: i64) {
        self.push(value.to_string());
    }
    fn uint(&mut self, value: u64) {
        self.push(value.to_string());
    }
    fn float(&mut self, value: f32) {
        self.push(value.to_string());
    }
    fn double(&mut self, value: f64) {
        self.push(value.to_string());
    }
    fn bytes(&mut self, value: &[u8]) {
        self.push(String::from_utf8_lossy(value).replace('\n', "\\n"));
    }
    fn date(&mut self, value: Date) {
        self.push(format!("{:04}-{:02}-{:02}", value.year, value.month, value.day));
    }
    fn datetime(&mut self, v: DateTime, decimals: u8) {
        let day = format!("{:04}-{:02}-{:02}", v.year, v.month, v.day);
        let fraction = fraction(v.microsecond, decimals);
        self.push(format!("{day} {:02}:{:02}:{:02}{fraction}", v.hour, v.minute, v.second));
    }
    fn time(&mut self, v: Time, decimals: u8) {
        let sign = if v.negative { "-" } else { "" };
        let fraction = fraction(v.microseconds, decimals);
        self.push(format!("{sign}{:02}:{:02}:{:02}{fraction}", v.hours, v.minutes, v.seconds));
    }
    fn row_end(&mut self) {
        self.lines.push(self.row.join("|"));
    }
    fn rows_end(&mut self, _: &Completion<'_>) {}
    fn ok(&mut self, completion: &Completion<'_>) {
        let info = if completion.info.is_empty() { String::new() } else { format!(" ({})", completion.info) };
        self.lines.push(format!("OK {}{info}", completion.affected));
    }
    fn error(&mut self, error: &SqlError) {
        self.lines.push(error.to_string());
    }
    async fn flush_if_full(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Open = (Arc<Connection>, <Sessions as SessionFactory>::Session);

/// A session of an account; all but root's are of any host.
fn open(user: &str, sessions: &Sessions, server: &Arc<Server>) -> Open {
    let connection =
        server.connections.enter(100, "localhost", 0, server.status.thread()).expect("a connection");
    connection.update(|activity| {
        activity.user = Arc::from(user);
        activity.account_host = Arc::from(if user == "root" { "localhost" } else { "%" });
    });
    server.activate_default_roles(&connection);
    connection.set_client_flags(ClientFlags { multi_statements: true, ..connection.client_flags() });
    let session = sessions.open(&connection);
    (connection, session)
}

fn close((connection, mut session): Open, server: &Arc<Server>) {
    untorn::engine::block_on(session.close());
    server.connections.leave(connection.id);
}

/// Runs a script, its statements as long as `padding` makes them; returns it with the results that came.
fn run(script: &str, padding: &str, sessions: &Sessions, server: &Arc<Server>) -> String {
    let mut all: HashMap<String, Open> = HashMap::new();
    let mut user = "root".to_owned();
    let mut result = String::new();
    for block in script.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let statement = block.trim_start_matches('\n').split("\n----").next().unwrap();
        let first = statement.lines().next().unwrap_or_default();
        if let Some(name) = first.strip_prefix("# as ").or_else(|| first.strip_prefix("# new ")) {
            user = name.to_owned();
            let before = if first.starts_with("# new ") { all.remove(&user) } else { None };
            before.into_iter().for_each(|before| close(before, server));
        }
        let (connection, session) = all.entry(user.clone()).or_insert_with(|| open(&user, sessions, server));
        let mut sink = TextSink::default();
        let text = format!("{padding}{statement}");
        connection.clear_query_kill();
        untorn::engine::block_on(session.query(text.as_bytes(), &mut sink)).unwrap();
        result.push_str(&format!("{}\n----\n{}\n\n", statement.trim_end(), sink.lines.join("\n")));
    }
    all.into_values().for_each(|open| close(open, server));
    result
}

#[test]
fn golden_scripts() {
    let write = std::env::var_os("GOLDEN").is_some_and(|how| how == "write");
    on_a_servers_stack(move || play("short", "", write));
}

/// Long statements are planned on a stack of their own. They mean the same.
#[test]
fn golden_scripts_as_long_statements() {
    on_a_servers_stack(|| play("long", &format!("/*{}*/ ", " -".repeat(10_000)), false));
}

/// What a thread that carries connections has.
fn on_a_servers_stack(play: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(sql::parser::STACK_BYTES).spawn(play).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn play(name: &str, padding: &str, write: bool) {
    let directory = std::env::temp_dir().join(format!("untorn-golden-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let options = Options::new(&directory).buffer_pool_bytes(64 << 20).redo_capacity_bytes(64 << 20);
    let database = untorn::engine::block_on(Database::open(options)).unwrap();
    let server = Server::new(Accounts::in_memory(), GlobalVariables::default());
    let sessions = Sessions::new(server.clone(), database.clone());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<_> = std::fs::read_dir(&scripts).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut failed = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|ext| ext == "test")) {
        let script = std::fs::read_to_string(path).unwrap();
        let found = run(&script, padding, &sessions, &server);
        if write {
            std::fs::write(path, &found).unwrap();
        } else if found != script {
            let difference = script
                .split("\n\n")
                .zip(found.split("\n\n"))
                .find(|(wanted, got)| wanted != got)
                .map_or_else(String::new, |(wanted, got)| format!("wanted:\n{wanted}\ngot:\n{got}"));
            failed.push(format!("{}\n{difference}", path.display()));
        }
    }
    assert!(!paths.is_empty());
    untorn::engine::block_on(database.close()).unwrap();
    let _ = std::fs::remove_dir_all(&directory);
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
