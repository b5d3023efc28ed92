//! An event log: numbered events in streams. `cargo run --example event_log`
//!
//! It shows reads forwards, backwards, by range and by prefix; two transactions that meet in a deadlock, and
//! how one of them runs again; and a snapshot that two threads read while a third one writes. Every part
//! checks its own results.

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, ScopedJoinHandle};

use untorn::{Database, KeyValue, Options, Result, Snapshot, Transaction};

/// A stream is a name such as `truck/1`; its events are numbered from 1 without gaps.
struct EventLog {
    db: Database,
    /// From a stream to the number of its last event. An append to the stream locks this pair first.
    heads: KeyValue<String, u64>,
    /// From a stream and a number to the text of the event.
    events: KeyValue<(String, u64), String>,
}

impl EventLog {
    fn open(directory: &Path) -> Result<EventLog> {
        // 32 MiB for pages are plenty here; the default is a quarter of the machine's memory.
        let db = Database::open(Options::new(directory).buffer_pool_bytes(32 << 20))?;
        Ok(EventLog { heads: db.key_value("heads")?, events: db.key_value("events")?, db })
    }

    /// Appends an event in the caller's transaction, and returns its number.
    fn append(&self, t: &mut Transaction, stream: &str, text: &str) -> Result<u64> {
        let number = self.heads.get_for_update(t, stream)?.unwrap_or(0) + 1;
        self.heads.put(t, stream, number)?;
        self.events.put(t, (stream, number), text)?;
        Ok(number)
    }

    /// How many events a snapshot has by its heads, and how many by reading them from one end or the other.
    fn count(&self, snapshot: &Snapshot, backwards: bool) -> Result<(u64, u64)> {
        let mut t = self.db.begin_in(snapshot)?;
        let by_heads = self.heads.iter(&mut t).try_fold(0, |sum, head| head.map(|(_, last)| sum + last))?;
        let count_one = |sum, event: Result<_>| event.map(|_| sum + 1);
        let mut events = self.events.iter(&mut t);
        let read = if backwards { events.try_rfold(0, count_one) } else { events.try_fold(0, count_one) };
        Ok((by_heads, read?))
    }
}

/// One stream from its first event to its last and back, a part of it, and the streams that have a prefix.
fn read_ranges(log: &EventLog) -> Result<()> {
    // All of these events, or none.
    log.db.transact(|t| {
        for hour in 6..12 {
            log.append(t, "truck/1", &format!("{hour}:00 on the road"))?;
        }
        log.append(t, "truck/2", "6:30 in the workshop")?;
        log.append(t, "depot/north", "7:00 the gate opens")
    })?;

    let mut t = log.db.begin();
    let forwards = log.events.of(&mut t, "truck/1").collect::<Result<Vec<_>>>()?;
    let backwards = log.events.of(&mut t, "truck/1").rev().collect::<Result<Vec<_>>>()?;
    println!("first and last      {:?}, {:?}", forwards[0], backwards[0]);
    assert_eq!((forwards.len(), forwards[0].0.1, backwards[0].0.1), (6, 1, 6));
    assert!(backwards.iter().rev().eq(&forwards));

    let middle = log.events.range(&mut t, ("truck/1", 2)..("truck/1", 5)).collect::<Result<Vec<_>>>()?;
    assert_eq!(middle, forwards[1..4]);

    // `prefix` is for keys of one string. What a range gives borrows the transaction, so the streams are
    // collected before the same transaction reads the newest event of each.
    let trucks = log.heads.prefix(&mut t, "truck/").collect::<Result<Vec<_>>>()?;
    assert_eq!(trucks, [("truck/1".to_owned(), 6), ("truck/2".to_owned(), 1)]);
    for (truck, last) in trucks {
        let newest = log.events.of(&mut t, &truck).next_back().transpose()?;
        assert_eq!(newest.map(|((_, number), _)| number), Some(last));
    }
    Ok(())
}

/// A handover is an event of two streams. Two threads hand over in opposite directions: each has locked one
/// stream when it asks for the other, which is a deadlock. `transact` runs the victim again.
fn collide(log: &EventLog) -> Result<()> {
    let each_holds_one = Barrier::new(2);
    let hand_over = |from: &str, to: &str| -> Result<u32> {
        let mut runs = 0;
        log.db.transact(|t| {
            runs += 1;
            log.append(t, from, &format!("hands a parcel to {to}"))?;
            if runs == 1 {
                each_holds_one.wait(); // in the first run only: nobody waits for a second one
            }
            log.append(t, to, &format!("takes a parcel from {from}"))
        })?;
        Ok(runs)
    };
    let [there, back] = thread::scope(|threads| {
        let ways = [("truck/1", "truck/2"), ("truck/2", "truck/1")];
        ways.map(|(from, to)| threads.spawn(move || hand_over(from, to))).map(joined)
    });
    let runs = there? + back?;
    println!("handovers           2, in {runs} runs");
    assert_eq!(runs, 3); // one of them was the victim, once

    // Nothing is left of the run that was rolled back, not even a gap in the numbers.
    let mut t = log.db.begin();
    for (stream, count) in [("truck/1", 8), ("truck/2", 3)] {
        let events = log.events.of(&mut t, stream).collect::<Result<Vec<_>>>()?;
        assert!(events.iter().map(|((_, number), _)| *number).eq(1..=count));
    }
    Ok(())
}

/// Two threads read one snapshot, forwards and backwards, while this one appends fifty events.
fn read_while_writing(log: &EventLog) -> Result<()> {
    let snapshot = &log.db.snapshot();
    let (before, _) = log.count(snapshot, false)?;
    let writing = &AtomicBool::new(true);
    let readings = thread::scope(|threads| -> Result<u64> {
        let readers = [false, true].map(|backwards| {
            threads.spawn(move || -> Result<u64> {
                let mut readings = 0;
                while writing.load(SeqCst) {
                    assert_eq!(log.count(snapshot, backwards)?, (before, before));
                    readings += 1;
                }
                Ok(readings)
            })
        });
        let append = |_| log.db.transact(|t| log.append(t, "depot/north", "the gate opens")).map(drop);
        let written = (0..50).try_for_each(append);
        writing.store(false, SeqCst); // also after an error: the readers wait for it
        let [forwards, backwards] = readers.map(joined);
        written?;
        Ok(forwards? + backwards?)
    })?;
    println!("snapshot            {before} events in each of {readings} readings while 50 were appended");
    assert!(readings > 0);
    assert_eq!(log.count(&log.db.snapshot(), true)?, (before + 50, before + 50));
    Ok(())
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("untorn-event-log-{}", std::process::id()));
    let log = EventLog::open(&directory)?;
    read_ranges(&log)?;
    collide(&log)?;
    read_while_writing(&log)?;
    let all = log.count(&log.db.snapshot(), false)?;
    log.db.close()?;

    let log = EventLog::open(&directory)?;
    assert_eq!(log.count(&log.db.snapshot(), false)?, all);
    log.db.close()?;
    Ok(std::fs::remove_dir_all(&directory)?)
}
