//! The log of slow statements, in the format that MySQL's `mysqldumpslow` and `pt-query-digest` read.
//!
//! A session makes the entry ([`entry`]) and puts it into a queue, bounded in entries and bytes; a thread of
//! its own writes what is queued (`file.rs`). So no statement waits for this file: when the disk is full,
//! slow or gone, entries are lost and counted (`Untorn_slow_log_lost`), and the server's log says so once,
//! and once that it goes on. The file is opened for each batch, so a file that was moved away is made again
//! without FLUSH LOGS, which only waits until what was queued before it has been written.

pub mod entry;
mod file;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender as Queue, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use untorn::engine::Event;

use super::{StatementStats, WallClock};
use entry::Sender;
use file::{Appender, Failed};

pub use file::Place;

/// Entries that wait to be written.
const QUEUE_MAX: usize = 1024;
/// And their bytes.
const QUEUE_BYTES_MAX: usize = 8 << 20;
/// Entries that are written together.
const BATCH_MAX: usize = 256;

/// See the module's text.
pub struct SlowLog {
    on: AtomicBool,
    /// Statements without an index too (`log_queries_not_using_indexes`).
    not_indexed: AtomicBool,
    place: OnceLock<Place>,
    header: Mutex<String>,
    /// None: what is named may not be written.
    file: Mutex<Option<PathBuf>>,
    lost: AtomicU64,
    /// The last batch could not be written.
    failing: AtomicBool,
    appender: Mutex<Appender>,
    /// Entries and bytes in the queue, and in the batch that is being written.
    queued: AtomicUsize,
    queued_bytes: AtomicUsize,
    /// Made with the first entry.
    queue: OnceLock<Option<Queue<Queued>>>,
    me: Weak<SlowLog>,
}

/// What becomes of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// It counts as slow (`Slow_queries`).
    pub slow: bool,
    /// It goes into the log.
    pub logged: bool,
}

enum Queued {
    Entry(Vec<u8>),
    /// Set when all before it has been written, or lost.
    Mark(Event),
}

impl SlowLog {
    /// One that is off.
    pub fn new() -> Arc<SlowLog> {
        Arc::new_cyclic(|me| SlowLog {
            on: AtomicBool::new(false),
            not_indexed: AtomicBool::new(false),
            place: OnceLock::new(),
            header: Mutex::default(),
            file: Mutex::default(),
            lost: AtomicU64::new(0),
            failing: AtomicBool::new(false),
            appender: Mutex::default(),
            queued: AtomicUsize::new(0),
            queued_bytes: AtomicUsize::new(0),
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

    /// Where its file may be, once; the data directory if nobody says.
    pub fn set_place(&self, place: impl FnOnce() -> Place) {
        self.place.get_or_init(place);
    }

    /// What a new file begins with.
    pub fn set_header(&self, header: String) {
        *self.header.lock() = header;
    }

    /// `slow_query_log_file`; says why not, if that is refused.
    pub fn set_file(&self, name: &str) -> Result<(), String> {
        let place = self.place.get_or_init(Place::default);
        *self.file.lock() = Some(place.file(name)?);
        Ok(())
    }

    /// Entries that could not be written or did not find room in the queue.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether a statement is slow by its session's `long_query_time`, and whether it goes into the log.
    #[inline]
    pub fn judge(&self, stats: &StatementStats, long_query_time: Duration, examined_least: u64) -> Judgement {
        let slow = stats.took >= long_query_time;
        let logged = self.on.load(Ordering::Relaxed)
            && (slow || (self.not_indexed.load(Ordering::Relaxed) && stats.reads.no_index_used()))
            && stats.examined >= examined_least;
        Judgement { slow, logged }
    }

    /// Queues an entry.
    pub fn write(&self, stats: &StatementStats, began: Instant, sender: &Sender<'_>, sql: &[u8]) {
        let entry = entry::entry(stats, WallClock::now().unix(began), sender, sql);
        if !self.push(entry) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether there was room for it.
    fn push(&self, entry: Vec<u8>) -> bool {
        let bytes = entry.len();
        let before = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let number = self.queued.fetch_add(1, Ordering::Relaxed);
        let room = number < QUEUE_MAX && before + bytes <= QUEUE_BYTES_MAX;
        let queue = self.queue.get_or_init(|| self.start());
        let sent = |queue: &Queue<Queued>| queue.send(Queued::Entry(entry)).is_ok();
        let pushed = room && queue.as_ref().is_some_and(sent);
        if !pushed {
            self.leave(1, bytes);
        }
        pushed
    }

    fn leave(&self, entries: usize, bytes: usize) {
        self.queued.fetch_sub(entries, Ordering::Relaxed);
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// An event for when all that is queued now has been written; none if nothing ever was.
    pub fn written(&self) -> Option<Event> {
        let queue = self.queue.get()?.as_ref()?;
        let event = Event::new();
        queue.send(Queued::Mark(event.clone())).is_ok().then_some(event)
    }

    fn start(&self) -> Option<Queue<Queued>> {
        let (queue, entries) = channel();
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
        let header = self.header.lock().clone();
        let failing = self.failing.load(Ordering::Relaxed);
        let written = match &file {
            Some(file) => self.appender.lock().append(file, &header, batch),
            None => Err(Failed { lost: batch.len(), error: std::io::ErrorKind::InvalidFilename.into() }),
        };
        // Control bytes of a name would forge lines of the server's log.
        let file = file.unwrap_or_default();
        match written {
            Ok(()) if failing => {
                self.failing.store(false, Ordering::Relaxed);
                tracing::info!("the slow query log {file:?} is written again");
            }
            Ok(()) => {}
            Err(Failed { lost, error }) => {
                self.lost.fetch_add(lost as u64, Ordering::Relaxed);
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        "the slow query log {file:?} cannot be written ({error}): entries are lost until \
                         that is over; statements go on"
                    );
                }
            }
        }
    }
}

/// Ends when the log is gone: it has the only sender.
fn carry(log: &Weak<SlowLog>, queued: &Receiver<Queued>) {
    while let Ok(first) = queued.recv() {
        let (mut batch, mut marks) = (Vec::new(), Vec::new());
        for queued in std::iter::once(first).chain(queued.try_iter()).take(BATCH_MAX) {
            match queued {
                Queued::Entry(entry) => batch.push(entry),
                Queued::Mark(event) => marks.push(event),
            }
        }
        if let Some(log) = log.upgrade().filter(|_| !batch.is_empty()) {
            log.write_batch(&batch);
            log.leave(batch.len(), batch.iter().map(Vec::len).sum());
        }
        marks.iter().for_each(Event::set);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    /// A log whose file is in a directory of its own.
    fn log(name: &str) -> (PathBuf, Arc<SlowLog>) {
        let directory = std::env::temp_dir().join(format!("untorn-slow-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let log = SlowLog::new();
        log.set_place(|| Place { data: directory.clone(), named: None });
        log.set_header("header\n".into());
        log.set_file("slow.log").unwrap();
        (directory, log)
    }

    #[test]
    fn a_file_that_cannot_be_written_loses_entries_and_comes_back() {
        let (directory, log) = log("lost");
        let file = directory.join("slow.log");
        fs::create_dir(&file).unwrap();
        log.write_batch(&[b"one\n".to_vec(), b"two\n".to_vec()]);
        log.write_batch(&[b"three\n".to_vec()]);
        assert!(log.lost() == 3 && log.failing.load(Ordering::Relaxed));
        fs::remove_dir(&file).unwrap();
        log.write_batch(&[b"four\n".to_vec()]);
        log.write_batch(&[b"five\n".to_vec()]);
        assert!(log.lost() == 3 && !log.failing.load(Ordering::Relaxed));
        assert_eq!(fs::read_to_string(&file).unwrap(), "header\nfour\nfive\n");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn the_queue_is_bounded_in_bytes_and_a_mark_comes_behind_what_was_queued() {
        let (directory, log) = log("queue");
        assert!(log.written().is_none());
        // The writer waits.
        let held = log.appender.lock();
        let entry = || vec![b'x'; 1 << 20];
        let room = (0..100).filter(|_| log.push(entry())).count();
        assert_eq!(room, QUEUE_BYTES_MAX / entry().len());
        assert!(!log.push(entry()) && log.push(Vec::new()), "an empty one still has room");
        let written = log.written().unwrap();
        assert!(!written.is_set());
        drop(held);
        untorn::engine::block_on(written.wait());
        let length = fs::metadata(directory.join("slow.log")).unwrap().len() as usize;
        assert_eq!(length, "header\n".len() + QUEUE_BYTES_MAX);
        assert!(log.push(entry()), "there is room again");
        untorn::engine::block_on(log.written().unwrap().wait());
        assert_eq!(log.queued_bytes.load(Ordering::Relaxed), 0);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_is_wanted() {
        let log = SlowLog::new();
        let took = Duration::from_secs(2);
        let mut stats = StatementStats { took, examined: 10, ..StatementStats::default() };
        let judge = |log: &SlowLog, stats: &StatementStats, slow: bool, least| {
            let long = if slow { took } else { took + Duration::from_micros(1) };
            let judgement = log.judge(stats, long, least);
            assert_eq!(judgement.slow, slow);
            judgement.logged
        };
        assert!(!judge(&log, &stats, true, 0), "it is off");
        log.set_on(true);
        assert!(judge(&log, &stats, true, 10) && !judge(&log, &stats, true, 11));
        stats.reads.scans = 1;
        assert!(!judge(&log, &stats, false, 0));
        log.set_not_indexed(true);
        assert!(judge(&log, &stats, false, 0));
        stats.reads.scans = 0;
        assert!(!judge(&log, &stats, false, 0));
    }
}
