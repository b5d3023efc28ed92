//! Copying the log out while it goes round: the copy is a log with everything, the log waits for the copy,
//! and a copy that is given up holds nothing back.

#![allow(clippy::unwrap_used)]

use crate::common::*;
use disk::{Environment, OpenHow, Random, SimulatedEnvironment};
use parking_lot::Mutex;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use untorn_redo::{Archive, Error, Flush, Interrupt, Lsn, RedoLog};

const COPY: &str = "/copy";

/// Appends until the log has no room.
async fn fill(log: &RedoLog, truth: &Mutex<Truth>, random: &mut Random) {
    loop {
        match log.admit(3000) {
            Ok(admission) => drop(admission),
            Err(Interrupt::Wait(_)) => {
                let _ = flush(log, log.current(), Flush::Sync).await;
                if log.admit(3000).is_err() {
                    return;
                }
            }
            Err(Interrupt::Error(error)) => panic!("{error}"),
        }
        append(log, truth, 2000, random).await.unwrap();
    }
}

/// Copies what is durable; returns the bytes.
async fn follow(archive: &mut Archive, file: &Arc<dyn disk::File>) -> u64 {
    let mut bytes = 0;
    while let Some(piece) = archive.next_piece().await.unwrap() {
        file.write_at(&piece.bytes, piece.offset).unwrap();
        bytes += piece.bytes.len() as u64;
    }
    bytes
}

#[test]
fn the_log_waits_for_its_copy_which_has_everything() {
    let environment = SimulatedEnvironment::new(11);
    let env: Arc<dyn Environment> = environment.clone();
    let storage = env.storage().clone();
    storage.create_dir_all(&dir()).unwrap();
    storage.create_dir_all(Path::new(COPY)).unwrap();
    let truth = Arc::new(Mutex::new(Truth::default()));
    let mut random = Random::new(5);
    let (checkpoint, end) = environment.run_until_complete(async {
        let log = RedoLog::create(&env, &dir(), small()).unwrap();
        // Not at the beginning of the circle.
        for _ in 0..40 {
            append(&log, &truth, 2000, &mut random).await.unwrap();
        }
        log.move_checkpoint(log.current()).await.unwrap();
        for _ in 0..20 {
            append(&log, &truth, 2000, &mut random).await.unwrap();
        }
        let mut archive = log.archive().unwrap();
        assert!(matches!(log.archive(), Err(Error::Setting(_))), "one at a time");
        let file = storage.open(&RedoLog::path(Path::new(COPY)), OpenHow::CREATE_NEW.buffered()).unwrap();
        let mut copied = 0;
        for _ in 0..6 {
            fill(&log, &truth, &mut random).await;
            // The checkpoint alone gives no room.
            log.move_checkpoint(log.current()).await.unwrap();
            assert!(log.admit(3000).is_err(), "what was not copied must not be overwritten");
            copied += follow(&mut archive, &file).await;
            assert!(log.admit(3000).is_ok());
        }
        assert!(copied > 4 * small().capacity, "the log went round");
        append(&log, &truth, 2000, &mut random).await.unwrap();
        flush(&log, log.current(), Flush::Sync).await.unwrap();
        follow(&mut archive, &file).await;
        let (front, length) = archive.front();
        file.write_at(&front, 0).unwrap();
        file.set_len(length).unwrap();
        (archive.checkpoint(), archive.end())
    });
    let log = RedoLog::open(&env, Path::new(COPY), small()).unwrap();
    let mut found = Vec::new();
    let summary = log.scan(
        |start, end, records| {
            found.push(Appended { start, end, records: records.to_vec() });
            Ok::<(), Error>(())
        },
        |_, _| {},
    );
    assert_eq!(summary.unwrap().checkpoint, checkpoint);
    let truth = truth.lock();
    let expected: Vec<_> =
        truth.appended.iter().filter(|one| one.end > checkpoint && one.end <= end).cloned().collect();
    assert_eq!(expected.last().map(|one| one.end), truth.appended.last().map(|one| one.end));
    assert_eq!(found, expected);
    // It is a log that can be gone on with.
    environment.run_until_complete(async {
        append(&log, &Mutex::new(Truth::default()), 2000, &mut random).await.unwrap();
        flush(&log, log.current(), Flush::Sync).await.unwrap();
    });
}

#[test]
fn a_copy_that_is_cut_is_refused() {
    let environment = SimulatedEnvironment::new(12);
    let env: Arc<dyn Environment> = environment.clone();
    let storage = env.storage().clone();
    storage.create_dir_all(&dir()).unwrap();
    storage.create_dir_all(Path::new(COPY)).unwrap();
    let truth = Mutex::new(Truth::default());
    let mut random = Random::new(6);
    environment.run_until_complete(async {
        let log = RedoLog::create(&env, &dir(), small()).unwrap();
        let mut archive = log.archive().unwrap();
        let file = storage.open(&RedoLog::path(Path::new(COPY)), OpenHow::CREATE_NEW.buffered()).unwrap();
        for _ in 0..30 {
            let end = append(&log, &truth, 2000, &mut random).await.unwrap();
            flush(&log, end, Flush::Sync).await.unwrap();
        }
        follow(&mut archive, &file).await;
        let (front, length) = archive.front();
        file.write_at(&front, 0).unwrap();
        file.set_len(length).unwrap();
        // The last group is gone.
        file.write_zeros(length - 4096, length).unwrap();
    });
    let log = RedoLog::open(&env, Path::new(COPY), small()).unwrap();
    let scanned = log.scan(|_, _, _| Ok::<(), Error>(()), |_, _| {});
    assert!(matches!(scanned, Err(Error::Damaged { .. })), "{scanned:?}");
}

#[test]
fn a_copy_that_is_given_up_holds_nothing_back() {
    let environment = SimulatedEnvironment::new(13);
    let env: Arc<dyn Environment> = environment.clone();
    env.storage().create_dir_all(&dir()).unwrap();
    let truth = Mutex::new(Truth::default());
    let mut random = Random::new(7);
    environment.run_until_complete(async {
        let log = RedoLog::create(&env, &dir(), small()).unwrap();
        let archive = log.archive().unwrap();
        fill(&log, &truth, &mut random).await;
        log.move_checkpoint(log.current()).await.unwrap();
        let Err(Interrupt::Wait(wait)) = log.admit(3000) else { panic!("there is no room") };
        drop(archive);
        wait.await;
        assert!(log.admit(3000).is_ok());
        let archive = log.archive().unwrap();
        assert!(archive.end() > Lsn(0));
        log.close().await.unwrap();
        drop(archive);
        assert!(matches!(log.archive(), Err(Error::Closed)));
    });
}

/// Who lets go of it need not wait for its reader; what that reads afterwards may be of another lap.
#[test]
fn an_archive_that_was_let_go_gives_room_and_reads_no_more() {
    let environment = SimulatedEnvironment::new(14);
    let env: Arc<dyn Environment> = environment.clone();
    env.storage().create_dir_all(&dir()).unwrap();
    let truth = Mutex::new(Truth::default());
    let mut random = Random::new(8);
    environment.run_until_complete(async {
        let log = RedoLog::create(&env, &dir(), small()).unwrap();
        let mut archive = log.archive().unwrap();
        let hold = archive.hold();
        fill(&log, &truth, &mut random).await;
        assert!(!hold.keeps_waiting(), "it is the checkpoint that keeps them waiting");
        log.move_checkpoint(log.current()).await.unwrap();
        let Err(Interrupt::Wait(wait)) = log.admit(3000) else { panic!("there is no room") };
        assert!(hold.keeps_waiting());
        // A checkpoint that has nothing to move takes back that room is wanted, and they wait all the same.
        log.move_checkpoint(log.current()).await.unwrap();
        assert!(hold.keeps_waiting());
        hold.let_go();
        wait.await;
        assert!(!hold.keeps_waiting());
        assert!(matches!(archive.next_piece().await, Err(Error::LetGo)));
        // It says nothing of the next one.
        let mut next = log.archive().unwrap();
        hold.let_go();
        drop(archive);
        assert!(next.next_piece().await.is_ok());
        fill(&log, &truth, &mut random).await;
        // Let go while it reads.
        let hold = next.hold();
        let mut reading = Box::pin(next.next_piece());
        let first = std::future::poll_fn(|context| std::task::Poll::Ready(reading.as_mut().poll(context)));
        assert!(first.await.is_pending());
        hold.let_go();
        assert!(matches!(reading.await, Err(Error::LetGo)));
    });
}

/// The circle that it read may be gone, and its place with it.
#[test]
fn an_archive_that_was_let_go_before_the_circle_grew_reads_no_more() {
    let environment = SimulatedEnvironment::new(15);
    let env: Arc<dyn Environment> = environment.clone();
    env.storage().create_dir_all(&dir()).unwrap();
    let truth = Mutex::new(Truth::default());
    let mut random = Random::new(9);
    environment.run_until_complete(async {
        let log = RedoLog::create(&env, &dir(), growing()).unwrap();
        let mut archive = log.archive().unwrap();
        archive.hold().let_go();
        for round in 0..600 {
            let end = append(&log, &truth, 2000, &mut random).await.unwrap();
            flush(&log, end, Flush::Sync).await.unwrap();
            if round < 400 || (log.age_goal().is_some() && log.space_wanted().is_set()) {
                log.move_checkpoint(log.current()).await.unwrap();
            }
        }
        assert!(
            env.storage().open(&RedoLog::path(&dir()), OpenHow::READ_ONLY).unwrap().len().unwrap()
                > 200 << 10
        );
        assert!(matches!(archive.next_piece().await, Err(Error::LetGo)));
    });
}
