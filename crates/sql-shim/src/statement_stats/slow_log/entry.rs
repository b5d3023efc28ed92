//! What an entry of the log of slow statements looks like: MySQL's form.
//!
//! Tools find an entry by the `#` at the beginning of a line, or by the file's first lines again, so no line
//! of a statement may be either: it could show entries that never were. What is not the statement stands in
//! one line and must not end it.

use std::time::Duration;

use untorn::types::DateTime;

use crate::server::login::SERVER_VERSION;
use crate::statement_stats::StatementStats;

/// Bytes of a statement in an entry.
pub const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// Who sent a statement.
pub struct Sender<'a> {
    /// Account name.
    pub user: &'a str,
    /// Where the client is.
    pub host: &'a str,
    /// The connection.
    pub connection: u32,
    /// Current database.
    pub database: Option<&'a str>,
}

/// What a file begins with: tools know it by its first line, and leave out all three.
pub fn header(port: u64, socket: &str) -> String {
    let socket = if socket.is_empty() { "-".to_owned() } else { in_line(socket) };
    // Tools know the line by its first character.
    let program = std::env::current_exe().unwrap_or_else(|_| "/untorn".into());
    let program = in_line(&program.to_string_lossy());
    format!(
        "{program}, Version: {SERVER_VERSION}. started with:\n\
         Tcp port: {port}  Unix socket: {socket}\n\
         Time                 Id Command    Argument\n"
    )
}

/// Text that ends no line and begins none.
fn in_line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

/// Whether tools would take a line of a statement for the beginning of an entry, or of a file.
fn begins_an_entry(line: &[u8]) -> bool {
    let started = b"started with".as_slice();
    match line.first() {
        Some(b'#') => true,
        Some(b'/') => line.windows(started.len()).any(|words| words == started),
        _ => false,
    }
}

/// An entry of a statement that began then, since 1970.
pub fn entry(stats: &StatementStats, began: Duration, sender: &Sender<'_>, sql: &[u8]) -> Vec<u8> {
    let ended = began + stats.took;
    let time = DateTime::from_unix(ended.as_secs() as i64, ended.subsec_micros());
    let (date, seconds) = (time.date, time.second);
    let (user, host, connection) = (in_line(sender.user), in_line(sender.host), sender.connection);
    let mut text = format!(
        "# Time: {:04}-{:02}-{:02}T{:02}:{:02}:{seconds:02}.{:06}Z\n\
         # User@Host: {user}[{user}] @ {host} []  Id: {connection:>5}\n\
         # Query_time: {:.6}  Lock_time: {:.6} Rows_sent: {}  Rows_examined: {}\n",
        date.year,
        date.month,
        date.day,
        time.hour,
        time.minute,
        time.micros,
        stats.took.as_secs_f64(),
        stats.lock_time.as_secs_f64(),
        stats.sent,
        stats.examined,
    );
    if let Some(database) = sender.database {
        text.push_str(&format!("use {};\n", in_line(database)));
    }
    text.push_str(&format!("SET timestamp={};\n", began.as_secs()));
    let mut entry = text.into_bytes();
    let sql = sql.trim_ascii();
    let sql = sql.strip_suffix(b";").unwrap_or(sql).trim_ascii_end();
    let sql = sql.get(..STATEMENT_BYTES_MAX).unwrap_or(sql);
    for line in sql.split_inclusive(|byte| *byte == b'\n') {
        if begins_an_entry(line) {
            entry.push(b' ');
        }
        entry.extend_from_slice(line);
    }
    entry.extend_from_slice(b";\n");
    entry
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn text(sender: &Sender<'_>, sql: &str) -> String {
        let stats = StatementStats {
            took: Duration::from_micros(1_234_567),
            lock_time: Duration::from_micros(2),
            sent: 3,
            examined: 4,
            ..StatementStats::default()
        };
        let began = Duration::new(1_700_000_000, 500_000_000);
        String::from_utf8(entry(&stats, began, sender, sql.as_bytes())).unwrap()
    }

    #[test]
    fn an_entry_is_as_mysql_writes_it() {
        let sender = Sender { user: "root", host: "localhost", connection: 8, database: Some("d") };
        let wanted = "# Time: 2023-11-14T22:13:21.734567Z\n\
            # User@Host: root[root] @ localhost []  Id:     8\n\
            # Query_time: 1.234567  Lock_time: 0.000002 Rows_sent: 3  Rows_examined: 4\n\
            use d;\nSET timestamp=1700000000;\nselect 1;\n";
        assert_eq!(text(&sender, "select 1 ;"), wanted);
    }

    fn entry_of(sql: &str) -> String {
        text(&Sender { user: "u", host: "h", connection: 1, database: None }, sql)
    }

    #[test]
    fn nothing_in_it_looks_like_another_entry() {
        let forged = "\n# Time: 2023-11-14T22:13:21.734567Z\n# User@Host: a[a] @ b []  Id: 1\nselect 2";
        let line = Sender { user: forged, host: forged, connection: 8, database: Some(forged) };
        let text = text(&line, &format!("# a\nselect 1 /*{forged};{forged}*/"));
        let marks = text.lines().filter(|line| line.starts_with('#')).count();
        assert_eq!((marks, text.lines().filter(|line| line.starts_with("# Time")).count()), (3, 1), "{text}");
        assert_eq!(entry_of(&header(1, "s")).lines().filter(|line| line.starts_with('/')).count(), 0);
        assert!(text.contains("\n # a\nselect 1 /*\n # Time: "), "{text}");
        assert_eq!(header(1, "a\nb").lines().count(), 3);
    }
}
