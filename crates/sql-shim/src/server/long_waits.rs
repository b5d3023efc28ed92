//! Logs waits too long to be normal.
//!
//! A lock is waited for as long as its holder likes, and `data_lock_waits` says who that is. A page that is
//! read, a sync of the log, a free page, room in the log: these end on their own; after [`PATIENCE_MS`] the
//! disk is stuck or cannot keep up. The listener looks at what sessions wait for and says so once, however
//! many wait, and once more when nobody waits this long any more.

use untorn::engine::WaitKind;

use super::registry::Registry;
use super::waits::KINDS;

/// Longer waits are reported.
const PATIENCE_MS: u64 = 10_000;

/// What was reported.
#[derive(Debug, Default)]
pub struct LongWaits {
    /// Since when the first of them waited.
    reported: [Option<u64>; KINDS],
}

/// Sessions that wait too long for one thing.
#[derive(Clone, Copy)]
struct Group {
    oldest_ms: u64,
    connection: u32,
    count: usize,
}

fn what(kind: WaitKind) -> Option<&'static str> {
    match kind {
        WaitKind::PageRead => Some("a page to be read from its file"),
        WaitKind::FreeFrame => Some("a free page of the buffer pool, for which others must be written"),
        WaitKind::LogRoom => Some("room in the redo log, for which pages must be written"),
        WaitKind::LogSync => Some("the redo log to be written and synced"),
        // Who sleeps for a latch has no turn in which to be seen.
        WaitKind::RowLock | WaitKind::MetadataLock | WaitKind::Latch => None,
    }
}

impl LongWaits {
    /// Looks at all connections, and writes into the log what is new.
    pub fn look(&mut self, now_ms: u64, connections: &Registry) {
        let mut waits = Vec::new();
        connections.for_each(|connection| {
            waits.extend(connection.waits.current().map(|(kind, since)| (connection.id, kind, since)));
        });
        for message in self.messages(now_ms, &waits) {
            tracing::warn!("{message}");
        }
    }

    /// What is new, from who waits for what since when.
    fn messages(&mut self, now_ms: u64, waits: &[(u32, WaitKind, u64)]) -> Vec<String> {
        let mut groups: [Option<Group>; KINDS] = [None; KINDS];
        for &(connection, kind, since) in waits {
            if now_ms.saturating_sub(since) < PATIENCE_MS {
                continue;
            }
            let group = &mut groups[kind as usize];
            let known = group.unwrap_or(Group { oldest_ms: since, connection, count: 0 });
            let older = if since < known.oldest_ms {
                (since, connection)
            } else {
                (known.oldest_ms, known.connection)
            };
            *group = Some(Group { oldest_ms: older.0, connection: older.1, count: known.count + 1 });
        }
        let mut messages = Vec::new();
        for ((kind, group), reported) in WaitKind::ALL.into_iter().zip(groups).zip(&mut self.reported) {
            let Some(what) = what(kind) else { continue };
            match (group, *reported) {
                (Some(Group { oldest_ms, connection, count }), None) => {
                    *reported = Some(oldest_ms);
                    messages.push(format!(
                        "{count} session(s) have waited for more than {} s for {what}; connection \
                         {connection} for {} s. The disk does not answer, or does not keep up",
                        PATIENCE_MS / 1000,
                        now_ms.saturating_sub(oldest_ms) / 1000,
                    ));
                }
                (None, Some(since)) => {
                    *reported = None;
                    messages.push(format!(
                        "no session waits any more for {what}: that lasted {} s",
                        now_ms.saturating_sub(since) / 1000,
                    ));
                }
                _ => {}
            }
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_once_and_its_end_once() {
        let mut long_waits = LongWaits::default();
        let waits = [(1, WaitKind::LogSync, 5_000), (2, WaitKind::LogSync, 4_000), (3, WaitKind::RowLock, 0)];
        assert!(
            long_waits.messages(13_999, &waits).is_empty(),
            "that long is usual, and a lock has a holder"
        );
        let told = long_waits.messages(16_000, &waits);
        assert!(
            told.len() == 1
                && told[0].starts_with("2 session(s) have waited for more than 10 s for the redo")
        );
        assert!(told[0].contains("connection 2 for 12 s"), "{told:?}");
        assert!(long_waits.messages(16_250, &waits[..1]).is_empty(), "once");
        let page = [(4, WaitKind::PageRead, 7_000)];
        let both = long_waits.messages(20_000, &page);
        assert!(both[0].starts_with("1 session(s)") && both[0].contains("a page to be read"), "{both:?}");
        assert!(
            both[1].contains("no session waits any more for the redo log")
                && both[1].ends_with("lasted 16 s")
        );
        assert!(long_waits.messages(20_250, &page).is_empty());
        assert_eq!(long_waits.messages(21_000, &[]).len(), 1);
        assert!(long_waits.messages(21_250, &[]).is_empty());
    }
}
