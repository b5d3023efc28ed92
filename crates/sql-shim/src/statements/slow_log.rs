//! The log of slow statements, in the format that `mysqldumpslow` and `pt-query-digest` read.
//!
//! A session makes the entry and puts it into a bounded queue; a thread of its own writes what is queued. So
//! no statement waits for this file: when the disk is full, slow or gone, entries are lost and counted
//! (`Untorn_slow_log_lost`), and the server's log says so once, and once that it goes on. The file is opened
//! for each batch, so a file that was moved away is made again without FLUSH LOGS.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use untorn::types::DateTime;

use super::{Performed, WallClock};

/// Entries that wait to be written.
const QUEUE_MAX: usize = 1024;
/// Entries that are written together.
const BATCH_MAX: usize = 256;
/// Bytes of a statement in an entry.
pub const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// See the module's text.
pub struct SlowLog {
    on: AtomicBool,
    /// Statements without an index too (`log_queries_not_using_indexes`).
    not_indexed: AtomicBool,
    file: Mutex<PathBuf>,
    lost: AtomicU64,
    /// The last batch could not be written.
    failing: AtomicBool,
    clock: WallClock,
    /// Made with the first entry.
    queue: OnceLock<Option<SyncSender<Vec<u8>>>>,
    me: Weak<SlowLog>,
}

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

impl SlowLog {
    /// One that is off.
    pub fn new() -> Arc<SlowLog> {
        Arc::new_cyclic(|me| SlowLog {
            on: AtomicBool::new(false),
            not_indexed: AtomicBool::new(false),
            file: Mutex::default(),
            lost: AtomicU64::new(0),
            failing: AtomicBool::new(false),
            clock: WallClock::default(),
            queue: OnceLock::new(),
            me: me.clone(),
        })
    }

    /// `slow_query_log`.
    pub fn set_on(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// `log_queries_not_using_indexes`.
    pub fn set_not_indexed(&self, on: bool) {
        self.not_indexed.store(on, Ordering::Relaxed);
    }

    /// `slow_query_log_file`.
    pub fn set_file(&self, file: PathBuf) {
        *self.file.lock() = file;
    }

    /// Entries that could not be written or did not find room in the queue.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether such a statement goes into the log.
    #[inline]
    pub fn wants(&self, performed: &Performed, slow: bool, examined_least: u64) -> bool {
        self.on.load(Ordering::Relaxed)
            && (slow || (self.not_indexed.load(Ordering::Relaxed) && performed.reads.no_index_used()))
            && performed.examined >= examined_least
    }

    /// Queues an entry.
    pub fn write(&self, performed: &Performed, began: Instant, sender: &Sender<'_>, sql: &[u8]) {
        let queue = self.queue.get_or_init(|| self.start());
        let entry = entry(performed, self.clock.unix(began), sender, sql);
        if queue.as_ref().is_none_or(|queue| queue.try_send(entry).is_err()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn start(&self) -> Option<SyncSender<Vec<u8>>> {
        let (queue, entries) = sync_channel(QUEUE_MAX);
        let me = self.me.clone();
        let started = std::thread::Builder::new().name("slow-log".into()).spawn(move || carry(&me, &entries));
        match started {
            Ok(_) => Some(queue),
            Err(error) => {
                tracing::error!(%error, "the slow query log cannot be written: no thread");
                None
            }
        }
    }

    fn write_batch(&self, batch: &[Vec<u8>]) {
        let file = self.file.lock().clone();
        let failing = self.failing.load(Ordering::Relaxed);
        match append(&file, batch) {
            Ok(()) if failing => {
                self.failing.store(false, Ordering::Relaxed);
                tracing::info!("the slow query log {} is written again", file.display());
            }
            Ok(()) => {}
            Err(error) => {
                self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        "the slow query log {} cannot be written ({error}): entries are lost until \
                         that is over; statements go on",
                        file.display()
                    );
                }
            }
        }
    }
}

/// Ends when the log is gone: it has the only sender.
fn carry(log: &Weak<SlowLog>, entries: &Receiver<Vec<u8>>) {
    while let Ok(first) = entries.recv() {
        let mut batch = vec![first];
        batch.extend(entries.try_iter().take(BATCH_MAX));
        if let Some(log) = log.upgrade() {
            log.write_batch(&batch);
        }
    }
}

fn append(path: &Path, batch: &[Vec<u8>]) -> io::Result<()> {
    // It holds statements with their values: not for others than the owner and its group.
    let mut file = OpenOptions::new().create(true).append(true).mode(0o640).open(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.len() == 0 {
        bytes.extend_from_slice(b"Untorn, a MySQL-compatible server. Slow statements:\n");
        bytes.extend_from_slice(b"Time                 Id Command    Argument\n");
    }
    bytes.extend(batch.iter().flatten());
    file.write_all(&bytes)
}

fn entry(performed: &Performed, began: Duration, sender: &Sender<'_>, sql: &[u8]) -> Vec<u8> {
    let ended = began + performed.took;
    let time = DateTime::from_unix(ended.as_secs() as i64, ended.subsec_micros());
    let (date, seconds) = (time.date, time.second);
    let Sender { user, host, connection, .. } = sender;
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
        performed.took.as_secs_f64(),
        performed.lock_time.as_secs_f64(),
        performed.sent,
        performed.examined,
    );
    if let Some(database) = sender.database {
        text.push_str(&format!("use {database};\n"));
    }
    text.push_str(&format!("SET timestamp={};\n", began.as_secs()));
    let mut entry = text.into_bytes();
    let sql = sql.trim_ascii();
    let sql = sql.strip_suffix(b";").unwrap_or(sql).trim_ascii_end();
    entry.extend_from_slice(sql.get(..STATEMENT_BYTES_MAX).unwrap_or(sql));
    entry.extend_from_slice(b";\n");
    entry
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_as_mysql_writes_it() {
        let performed = Performed {
            took: Duration::from_micros(1_234_567),
            lock_time: Duration::from_micros(2),
            sent: 3,
            examined: 4,
            ..Performed::default()
        };
        let sender = Sender { user: "root", host: "localhost", connection: 8, database: Some("d") };
        let began = Duration::new(1_700_000_000, 500_000_000);
        let wanted = "# Time: 2023-11-14T22:13:21.734567Z\n\
            # User@Host: root[root] @ localhost []  Id:     8\n\
            # Query_time: 1.234567  Lock_time: 0.000002 Rows_sent: 3  Rows_examined: 4\n\
            use d;\nSET timestamp=1700000000;\nselect 1;\n";
        assert_eq!(String::from_utf8(entry(&performed, began, &sender, b"select 1 ;")).unwrap(), wanted);
    }

    #[test]
    fn a_file_that_cannot_be_written_loses_entries_and_comes_back() {
        let directory = std::env::temp_dir().join(format!("untorn-slow-log-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let log = SlowLog::new();
        let missing = directory.join("missing");
        log.set_file(missing.join("slow.log"));
        log.write_batch(&[b"one\n".to_vec(), b"two\n".to_vec()]);
        log.write_batch(&[b"three\n".to_vec()]);
        assert!(log.lost() == 3 && log.failing.load(Ordering::Relaxed));
        std::fs::create_dir(&missing).unwrap();
        log.write_batch(&[b"four\n".to_vec()]);
        log.write_batch(&[b"five\n".to_vec()]);
        assert!(log.lost() == 3 && !log.failing.load(Ordering::Relaxed));
        let text = std::fs::read_to_string(missing.join("slow.log")).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(text.ends_with("Argument\nfour\nfive\n") && text.matches("Argument").count() == 1, "{text}");
    }

    #[test]
    fn what_is_wanted() {
        let log = SlowLog::new();
        let mut performed = Performed { examined: 10, ..Performed::default() };
        assert!(!log.wants(&performed, true, 0), "it is off");
        log.set_on(true);
        assert!(log.wants(&performed, true, 10) && !log.wants(&performed, true, 11));
        performed.reads.scans = 1;
        assert!(!log.wants(&performed, false, 0));
        log.set_not_indexed(true);
        assert!(log.wants(&performed, false, 0));
        performed.reads.scans = 0;
        assert!(!log.wants(&performed, false, 0));
    }
}
