//! Files that people put where a table's file was or will be: to be imported, or back from a backup. No
//! statement and no start removes them or writes over them, whatever of their own is left to be finished
//! there.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::Path;

use crate::definitions::{ids, insert_into, names_in, open, prepared, table_def};
use disk::{Crash, Fault, FaultKind, Misbehaviour, OpenHow, SimulatedEnvironment, SimulatedStorage, Storage};
use untorn::Error;

const OWN: &str = "/data/test/a.ibd";

/// Puts a file where the table's is.
fn lay(disk: &SimulatedStorage, content: &[u8]) {
    let file = disk.open(Path::new(OWN), OpenHow::CREATE_NEW.buffered()).unwrap();
    file.write_at(content, 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(Path::new("/data/test")).unwrap();
}

/// Another table's file; one as MariaDB writes it, of any tablespace id; something else, longer and shorter
/// than a page.
fn strangers(start: &SimulatedStorage) -> [Vec<u8>; 4] {
    /// Flags in the FSP header, and the one that says full_crc32.
    const FLAGS: usize = 54;
    const FULL_CRC32: u8 = 0x10;
    let other = start.content(Path::new("/data/test/b.ibd")).unwrap();
    let mut full_crc32 = start.content(Path::new(OWN)).unwrap();
    full_crc32[FLAGS + 3] |= FULL_CRC32;
    let text = b"-- a dump of table a, by hand\n";
    [other, full_crc32, text.repeat(1000), text.to_vec()]
}

/// A file that is not the table's stays, though it lies where a table's file should.
#[test]
fn a_strangers_file_is_neither_overwritten_nor_removed() {
    let start = prepared(&[("test", "a", 0), ("test", "b", 100)], 3);
    let strangers = strangers(&start);
    for (stranger, drops) in strangers.into_iter().flat_map(|one| [(one.clone(), true), (one, false)]) {
        let own = Path::new(OWN);
        let environment = SimulatedEnvironment::with_storage(1, start.crash(1));
        environment.disk().remove(own).unwrap();
        lay(environment.disk(), &stranger);
        environment.run_until_complete(async {
            let db = open(&environment).await;
            if drops {
                db.drop_table("test", "a").await.unwrap();
            } else {
                db.truncate_table("test", "a").await.unwrap();
                insert_into(&db, "test", "a", 7).await.unwrap();
                // It goes on elsewhere, also when it is emptied again.
                db.truncate_table("test", "a").await.unwrap();
                insert_into(&db, "test", "a", 8).await.unwrap();
            }
            assert_eq!(environment.disk().content(own).unwrap(), stranger);
        });
        environment.shutdown();
        let again = SimulatedEnvironment::with_storage(2, environment.disk().crash(2));
        again.run_until_complete(async {
            let db = open(&again).await;
            assert_eq!(ids(&db, "test", "a").await.ok(), (!drops).then(|| vec![8]));
            assert_eq!(ids(&db, "test", "b").await.unwrap(), [100, 101, 102]);
            assert_eq!(again.disk().content(own).unwrap(), stranger);
            db.close().await.unwrap();
        });
        again.shutdown();
        // Once it is moved away the table's file gets its name.
        again.disk().remove(own).unwrap();
        let last = SimulatedEnvironment::with_storage(3, again.disk().clone());
        last.run_until_complete(async {
            let db = open(&last).await;
            assert_eq!(ids(&db, "test", "a").await.ok(), (!drops).then(|| vec![8]));
            let left: &[&str] = if drops { &["b.ibd"] } else { &["a.ibd", "b.ibd"] };
            assert_eq!(names_in(&last, "test"), left);
        });
        last.shutdown();
    }
}

/// A file that is back from a backup is the dropped table's own by all that it says: that its table was
/// dropped is known for good by then.
#[test]
fn what_is_put_back_after_a_statement_stays() {
    let start = prepared(&[("test", "a", 0), ("test", "b", 100)], 3);
    for statement in ["DROP", "DISCARD", "CREATE"] {
        let environment = SimulatedEnvironment::with_storage(1, start.crash(1));
        let disk = environment.disk().clone();
        let content = disk.content(Path::new(OWN)).unwrap();
        environment.run_until_complete(async {
            let db = open(&environment).await;
            match statement {
                "DROP" => db.drop_table("test", "a").await.unwrap(),
                "DISCARD" => db.discard_tablespace("test", "a").await.unwrap(),
                _ => {
                    db.drop_table("test", "a").await.unwrap();
                    // Its first call after the catalog's is the one that makes the file.
                    let fails = |call: u64| {
                        disk.plan(Fault { call, kind: FaultKind::TooManyFiles });
                        db.create_table("test", "a", table_def())
                    };
                    fails(disk.calls() + 2).await.unwrap_err();
                    disk.forget_faults();
                }
            }
        });
        assert!(!names_in(&environment, "test").contains(&"a.ibd".to_owned()), "{statement}");
        lay(&disk, &content);
        let after = SimulatedEnvironment::with_storage(2, disk.moment().crash(Crash::ProcessOnly).0);
        environment.shutdown();
        after.run_until_complete(async {
            let db = open(&after).await;
            assert_eq!(ids(&db, "test", "b").await.unwrap(), [100, 101, 102]);
            assert_eq!(after.disk().content(Path::new(OWN)), Some(content), "{statement}");
        });
        after.shutdown();
    }
}

/// A start that has a file to remove and cannot read whose it is leaves it to the next one.
#[test]
fn a_file_that_cannot_be_read_is_not_removed() {
    let start = prepared(&[("test", "a", 0), ("test", "b", 100)], 3);
    let environment = SimulatedEnvironment::with_storage(1, start.crash(1));
    let disk = environment.disk().clone();
    environment.run_until_complete(async {
        let db = open(&environment).await;
        ids(&db, "test", "a").await.unwrap();
        // Dropped, and the file stays.
        disk.plan(Fault { call: disk.calls() + 2, kind: FaultKind::Denied });
        db.drop_table("test", "a").await.unwrap();
        disk.forget_faults();
    });
    environment.shutdown();
    assert!(names_in(&environment, "test").contains(&"a.ibd".to_owned()), "nothing is left to be removed");
    let reopened = |misbehaves: bool| {
        let after = SimulatedEnvironment::with_storage(2, disk.crash(2));
        if misbehaves {
            after.disk().misbehave("a.ibd", Misbehaviour::FailRead(FaultKind::Eio), 1);
        }
        after.run_until_complete(async {
            let db = open(&after).await;
            assert_eq!(ids(&db, "test", "b").await.unwrap(), [100, 101, 102]);
            let error = db.table("test", "a").map(drop).unwrap_err();
            assert!(matches!(error, Error::NoSuchTable(..)), "{error}");
            // Until it is gone nothing else gets its name.
            assert_eq!(db.create_table("test", "a", table_def()).await.is_err(), misbehaves);
        });
        let content = after.disk().content(Path::new(OWN));
        after.shutdown();
        content
    };
    let kept = disk.content(Path::new(OWN)).unwrap();
    assert_eq!(reopened(true), Some(kept.clone()));
    assert_ne!(reopened(false), Some(kept), "it is gone, and a new one made");
}
