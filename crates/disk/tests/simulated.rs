//! The simulated disk and environment: what a power loss may and may not do, faults, and that a seed is a
//! history.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use untorn_disk::probe::Atomic;
use untorn_disk::*;

const SECTORS: usize = 16;
const LENGTH: usize = SECTORS * 512;

fn data_file(disk: &SimulatedStorage) -> Arc<dyn File> {
    disk.create_dir_all(Path::new("data")).unwrap();
    let file = disk.open(Path::new("data/f"), OpenHow::CREATE_NEW).unwrap();
    disk.sync_dir(Path::new("data")).unwrap();
    file
}

fn filled(byte: u8) -> AlignedBuf {
    let mut buf = AlignedBuf::zeroed(LENGTH);
    buf.fill(byte);
    buf
}

/// The distinct images of the file that crashes from this moment leave.
fn crashes(disk: &SimulatedStorage, count: u64) -> BTreeSet<Vec<u8>> {
    (0..count).map(|seed| disk.crash(seed).content(Path::new("data/f")).unwrap()).collect()
}

#[test]
fn what_was_synced_survives_and_what_was_not_may_be_lost_kept_or_torn() {
    let disk = SimulatedStorage::new(1);
    let file = data_file(&disk);
    file.write_at(&filled(1), 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(crashes(&disk, 50).len(), 1);
    file.write_at(&filled(2), 0).unwrap();
    let images = crashes(&disk, 400);
    assert!(images.contains(&filled(1)[..]), "a write may be lost");
    assert!(images.contains(&filled(2)[..]), "a write may be kept");
    let mut sizes = BTreeSet::new();
    for image in &images {
        for sector in image.chunks(512) {
            assert!(sector.iter().all(|byte| *byte == sector[0]) && [1, 2].contains(&sector[0]));
        }
        let changes = image.windows(2).enumerate().filter(|(_, pair)| pair[0] != pair[1]);
        sizes.extend(changes.map(|(at, _)| if (at + 1) % 4096 == 0 { 4096 } else { 512 }));
    }
    assert_eq!(sizes, BTreeSet::from([512, 4096]), "a write may be torn at either size");
    file.sync_data().unwrap();
    assert_eq!(crashes(&disk, 50), BTreeSet::from([filled(2).to_vec()]));
}

#[test]
fn unsynced_writes_may_be_reordered() {
    let disk = SimulatedStorage::new(2);
    let file = data_file(&disk);
    file.write_at(&filled(1), 0).unwrap();
    file.write_at(&filled(2), 0).unwrap();
    let images = crashes(&disk, 400);
    assert!(images.contains(&filled(1)[..]) && images.contains(&filled(2)[..]));
}

#[test]
fn an_atomic_write_is_lost_or_whole_unless_the_disk_breaks_its_promise() {
    let env = SimulatedEnvironment::new(3);
    let disk = env.disk().clone();
    let file = data_file(&disk);
    file.write_at(&filled(1), 0).unwrap();
    file.sync_data().unwrap();
    let write = IoKind::Write { buf: IoBuf::owned(filled(2)), offset: 0, atomic: true, sync: false };
    env.run_until_complete(submit_one(&*disk, &file, write)).unwrap();
    assert_eq!(file.protection(LENGTH).atomic, Atomic::None);
    disk.offer_atomic_writes();
    assert_eq!(file.protection(LENGTH).atomic, Atomic::Hardware);
    let whole = BTreeSet::from([filled(1).to_vec(), filled(2).to_vec()]);
    assert_eq!(crashes(&disk, 300), whole);
    disk.break_atomic_writes();
    assert!(crashes(&disk, 300).len() > 2);
}

#[test]
fn a_request_under_way_may_or_may_not_have_happened() {
    let env = SimulatedEnvironment::new(4);
    let disk = env.disk().clone();
    let file = data_file(&disk);
    file.write_at(&filled(1), 0).unwrap();
    file.sync_data().unwrap();
    let write = IoKind::Write { buf: IoBuf::owned(filled(2)), offset: 0, atomic: true, sync: true };
    disk.submit(vec![(file.clone(), Io::new(write, |_| ()))]);
    assert_eq!(disk.content(Path::new("data/f")).unwrap(), filled(1)[..]);
    assert_eq!(crashes(&disk, 300).len(), 2);
    env.run_until_idle();
    assert_eq!(crashes(&disk, 50), BTreeSet::from([filled(2).to_vec()]), "synced by its own sync");
}

#[test]
fn a_sync_does_not_cover_writes_of_its_own_batch() {
    let mut uncovered = 0;
    for seed in 0..40 {
        let env = SimulatedEnvironment::new(seed);
        let disk = env.disk().clone();
        let file = data_file(&disk);
        let write = IoKind::Write { buf: IoBuf::owned(filled(2)), offset: 0, atomic: false, sync: false };
        disk.submit(vec![
            (file.clone(), Io::new(write, |_| ())),
            (file.clone(), Io::new(IoKind::Sync, |_| ())),
        ]);
        env.run_until_idle();
        uncovered += usize::from(crashes(&disk, 20).len() > 1);
    }
    assert_eq!(uncovered, 40);
}

#[test]
fn names_are_durable_after_a_sync_of_their_directory() {
    let disk = SimulatedStorage::new(5);
    drop(data_file(&disk));
    let file = disk.open(Path::new("data/new"), OpenHow::CREATE_NEW).unwrap();
    file.write_at(&filled(7), 0).unwrap();
    file.sync_data().unwrap();
    disk.rename(Path::new("data/new"), Path::new("data/f")).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let left = disk.crash(seed);
        let content = left.content(Path::new("data/f")).expect("one of the two files has the name");
        seen.insert((content.len(), left.exists(Path::new("data/new")).unwrap()));
    }
    // Lost both, only created, or renamed: never neither and never half.
    assert_eq!(seen, BTreeSet::from([(0, false), (0, true), (LENGTH, false)]));
    disk.sync_dir(Path::new("data")).unwrap();
    disk.remove(Path::new("data/f")).unwrap();
    let kept = (0..100).filter(|seed| disk.crash(*seed).exists(Path::new("data/f")).unwrap()).count();
    assert!((1..100).contains(&kept), "a removal may be lost");
    assert!(disk.open(Path::new("nowhere/f"), OpenHow::CREATE).is_err());
}

#[test]
fn the_planned_call_fails_in_the_planned_way() {
    // Linux: EIO is 5, ENOSPC is 28.
    for (kind, error) in [(FaultKind::Eio, Some(5)), (FaultKind::Enospc, Some(28))] {
        let disk = SimulatedStorage::new(6);
        let file = data_file(&disk);
        disk.plan(Fault { call: disk.calls() + 1, kind });
        file.write_at(&filled(1), 0).unwrap();
        let failed = file.write_at(&filled(2), 0).unwrap_err();
        assert_eq!(failed.io().raw_os_error(), error, "{failed}");
        file.write_at(&filled(3), 0).unwrap();
        assert_eq!(disk.content(Path::new("data/f")).unwrap(), filled(3)[..]);
    }
}

#[test]
fn a_sync_repeated_after_it_failed_makes_nothing_durable() {
    let mut lost = 0;
    for seed in 0..40 {
        let disk = SimulatedStorage::new(seed);
        let file = data_file(&disk);
        file.write_at(&filled(2), 0).unwrap();
        disk.plan(Fault { call: disk.calls(), kind: FaultKind::Eio });
        file.sync_data().unwrap_err();
        file.sync_data().unwrap();
        let durable = disk.durable_content(Path::new("data/f")).unwrap();
        lost += usize::from(durable != filled(2)[..]);
    }
    assert!((1..40).contains(&lost), "lost {lost} of 40");
}

#[test]
fn after_the_power_is_gone_nothing_changes_any_more() {
    let env = SimulatedEnvironment::new(7);
    let disk = env.disk().clone();
    let file = data_file(&disk);
    file.write_at(&filled(1), 0).unwrap();
    file.sync_data().unwrap();
    disk.plan(Fault { call: disk.calls(), kind: FaultKind::PowerLoss });
    assert!(file.write_at(&filled(2), 0).is_err());
    assert!(file.sync_data().is_err());
    assert!(env.run_until_complete(sync_async(&*disk, &file)).is_err());
    assert_eq!(crashes(&disk, 50), BTreeSet::from([filled(1).to_vec()]));
    let reborn = disk.crash(0);
    let file = reborn.open(Path::new("data/f"), OpenHow::EXISTING).unwrap();
    file.write_at(&filled(3), 0).unwrap();
}

#[test]
fn a_short_transfer_succeeds_in_two_steps() {
    let env = SimulatedEnvironment::new(8);
    let disk = env.disk().clone();
    let file = data_file(&disk);
    disk.plan(Fault { call: disk.calls(), kind: FaultKind::Short });
    file.write_at(&filled(1), 0).unwrap();
    assert_eq!(disk.content(Path::new("data/f")).unwrap(), filled(1)[..]);
    disk.plan(Fault { call: disk.calls(), kind: FaultKind::Short });
    let atomic = IoKind::Write { buf: IoBuf::owned(filled(2)), offset: 0, atomic: true, sync: false };
    assert!(env.run_until_complete(submit_one(&*disk, &file, atomic)).is_err());
}

#[test]
fn misaligned_direct_transfers_are_refused_as_on_a_real_disk() {
    let disk = SimulatedStorage::new(9);
    let file = data_file(&disk);
    assert!(file.write_at(&[0; 100], 0).is_err());
    assert!(file.read_at(&mut [0; 512], 100).is_err());
    let buffered = disk.open(Path::new("data/f"), OpenHow::EXISTING.buffered()).unwrap();
    buffered.write_at(&[1, 2, 3], 5).unwrap();
    assert_eq!(disk.content(Path::new("data/f")).unwrap(), [0, 0, 0, 0, 0, 1, 2, 3]);
    assert!(disk.lock(Path::new("data/lock")).is_ok());
}

/// A little program of tasks, sleeps and requests; what it did, in order.
fn history(seed: u64) -> (Vec<(usize, usize)>, u64, Duration) {
    let env = SimulatedEnvironment::new(seed);
    let disk = env.disk().clone();
    let file = data_file(&disk);
    let order = Arc::new(Mutex::new(Vec::new()));
    let ends: Vec<Event> = (0..5).map(|_| Event::new()).collect();
    for (task, end) in ends.iter().cloned().enumerate() {
        let (env2, disk, file, order) = (env.clone(), disk.clone(), file.clone(), order.clone());
        env.spawn(
            "worker",
            Box::pin(async move {
                for round in 0..10 {
                    let nap = Duration::from_micros(env2.random_u64() % 500);
                    env2.sleep(nap).await;
                    let buf = IoBuf::owned(filled((task * 10 + round) as u8));
                    write_async(&*disk, &file, buf, (task * LENGTH) as u64, round % 3 == 0).await.unwrap();
                    order.lock().unwrap().push((task, round));
                }
                end.set();
            }),
        );
    }
    env.run_until_complete(async {
        for end in &ends {
            end.wait().await;
        }
    });
    let order = std::mem::take(&mut *order.lock().unwrap());
    let result = (order, disk.history(), env.now());
    env.shutdown();
    result
}

#[test]
fn the_same_seed_is_the_same_history_and_another_seed_is_another() {
    let first = history(42);
    assert_eq!(first.0.len(), 50);
    assert_eq!(first, history(42));
    let others: BTreeSet<u64> = (0..20).map(|seed| history(seed).1).collect();
    assert_eq!(others.len(), 20);
}

#[test]
fn a_blocking_wait_inside_a_task_lets_requests_and_other_tasks_go_on() {
    let env = SimulatedEnvironment::new(11);
    let file = data_file(env.disk());
    let (blocked, helper) = (Event::new(), Event::new());
    {
        let (env2, file, blocked, helper) = (env.clone(), file.clone(), blocked.clone(), helper.clone());
        env.spawn(
            "blocks",
            Box::pin(async move {
                let written = Event::new();
                let kind =
                    IoKind::Write { buf: IoBuf::owned(filled(1)), offset: 0, atomic: false, sync: true };
                let done = written.clone();
                env2.storage().submit(vec![(file, Io::new(kind, move |_| done.set()))]);
                env2.block_until(&written);
                env2.block_until(&helper);
                blocked.set();
            }),
        );
    }
    let env2 = env.clone();
    env.spawn(
        "helps",
        Box::pin(async move {
            env2.sleep(Duration::from_millis(5)).await;
            helper.set();
        }),
    );
    env.run_until_complete(blocked.wait());
    assert!(env.now() >= Duration::from_millis(5));
    env.shutdown();
}

#[test]
fn a_task_that_is_woken_and_then_ends_does_not_hold_up_the_clock() {
    let env = SimulatedEnvironment::new(15);
    env.spawn(
        "woken by itself, then over",
        Box::pin(std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            std::task::Poll::Ready(())
        })),
    );
    env.limit_steps(1000);
    env.run_until_complete(env.sleep(Duration::from_secs(1)));
    assert!(env.now() >= Duration::from_secs(1));
}

#[test]
#[should_panic(expected = "nothing will bring")]
fn a_lost_wake_up_is_found() {
    let env = SimulatedEnvironment::new(12);
    env.run_until_complete(Event::new().wait());
}

#[test]
fn time_moves_only_as_far_as_it_is_told() {
    let env = SimulatedEnvironment::new(13);
    let late = Event::new();
    let (env2, late2) = (env.clone(), late.clone());
    env.spawn(
        "late",
        Box::pin(async move {
            env2.sleep(Duration::from_secs(10)).await;
            late2.set();
        }),
    );
    env.run_until_idle();
    env.advance(Duration::from_secs(9));
    assert!(!late.is_set());
    env.advance(Duration::from_secs(2));
    assert!(late.is_set());
}

#[test]
fn every_subset_of_unsynced_units_can_be_asked_for() {
    let disk = SimulatedStorage::new(14);
    let file = data_file(&disk);
    file.write_at(&filled(1), 0).unwrap();
    file.sync_data().unwrap();
    file.write_at(&filled(2)[..512], 0).unwrap();
    file.write_at(&filled(3)[..512], 512).unwrap();
    let other = disk.open(Path::new("data/g"), OpenHow::CREATE_NEW).unwrap();
    other.write_at(&filled(4)[..512], 0).unwrap();
    let moment = disk.moment();
    // One name and three writes.
    assert_eq!(moment.units(), 4);
    let mut seen = BTreeSet::new();
    for survivors in 0..16 {
        let (left, outcome) = moment.crash(Crash::Exactly(survivors));
        assert_eq!((outcome.units, outcome.torn), (4, 0));
        assert_eq!(outcome.kept as u32, survivors.count_ones());
        let f = left.content(Path::new("data/f")).unwrap();
        seen.insert((f[0], f[512], left.content(Path::new("data/g"))));
    }
    // Without its name the content of the other file does not matter.
    assert_eq!(seen.len(), 12);
    let torn = (0..50).map(|seed| moment.crash(Crash::Torn { survivors: 15, seed }).1.torn).max();
    assert_eq!(torn, Some(0), "a sector is written whole or not at all");
}

#[test]
fn the_end_of_the_process_alone_loses_nothing_but_makes_nothing_durable() {
    let disk = SimulatedStorage::new(15);
    let file = data_file(&disk);
    file.write_at(&filled(1), 0).unwrap();
    let (left, _) = disk.moment().crash(Crash::ProcessOnly);
    assert_eq!(left.content(Path::new("data/f")).unwrap(), filled(1)[..]);
    assert_eq!(left.durable_content(Path::new("data/f")).unwrap(), []);
}

#[test]
fn the_observer_sees_every_sync_before_it_takes_effect() {
    let disk = SimulatedStorage::new(16);
    let units = Arc::new(Mutex::new(Vec::new()));
    let seen = units.clone();
    disk.observe_syncs(move |moment| seen.lock().unwrap().push(moment.units()));
    // The sync of the directory makes the name durable.
    let file = data_file(&disk);
    file.write_at(&filled(1), 0).unwrap();
    file.write_at(&filled(2), 0).unwrap();
    file.sync_data().unwrap();
    file.sync_data().unwrap();
    disk.stop_observing();
    file.sync_data().unwrap();
    assert_eq!(*units.lock().unwrap(), [1, 2, 0]);
}

/// Two versions of a file on a disk that misbehaves with it; what a read then gives.
fn read_with(what: Misbehaviour) -> Result<Vec<u8>> {
    let disk = SimulatedStorage::new(17);
    let file = data_file(&disk);
    file.write_at(&filled(1), 0)?;
    file.write_at(&filled(9), LENGTH as u64)?;
    file.sync_data()?;
    disk.misbehave("data/f", what, 1);
    disk.misbehave("another", Misbehaviour::FailRead(FaultKind::Eio), 1);
    file.write_at(&filled(2), 0)?;
    file.sync_data()?;
    let mut buf = filled(0);
    file.read_at(&mut buf, 0)?;
    assert!(disk.misbehaved() > 0);
    disk.behave();
    Ok(buf.to_vec())
}

#[test]
fn a_disk_lies_about_the_files_it_is_told_to_and_only_those() {
    use Misbehaviour::*;
    let differing = |bytes: &[u8]| bytes.iter().filter(|byte| **byte != 2).count();
    assert_eq!(read_with(StaleRead).unwrap(), filled(1)[..]);
    assert_eq!(read_with(MisdirectedRead).unwrap(), filled(9)[..]);
    assert_eq!(differing(&read_with(FlippedRead).unwrap()), 1);
    let torn = read_with(TornRead).unwrap();
    assert!(torn.chunks(512).all(|sector| sector == &filled(1)[..512] || sector == &filled(2)[..512]));
    assert!((1..LENGTH).contains(&differing(&torn)));
    assert_eq!(read_with(FailRead(FaultKind::Eio)).unwrap_err().io().raw_os_error(), Some(5));
    assert_eq!(read_with(LostWrite).unwrap(), filled(1)[..]);
    assert_eq!(read_with(MisdirectedWrite).unwrap(), filled(1)[..]);
    assert_eq!(read_with(DuplicatedWrite).unwrap(), filled(2)[..]);
    assert_eq!(differing(&read_with(FlippedWrite).unwrap()), 1);
    assert!(read_with(FailWrite(FaultKind::Enospc)).is_err());
    assert!(read_with(FailSync(FaultKind::Eio)).is_err());
    assert_eq!(read_with(SkippedSync).unwrap(), filled(2)[..]);
}

/// What counts is what the reader got to see: not how often the disk meant to lie.
#[test]
fn a_watched_disk_tells_which_reads_were_false_and_no_others() {
    use Misbehaviour::*;
    for what in [StaleRead, MisdirectedRead, FlippedRead, TornRead, LostWrite, MisdirectedWrite, FlippedWrite]
    {
        let env = SimulatedEnvironment::new(21);
        let disk = env.disk().clone();
        let file = data_file(&disk);
        let read = |page: u64| {
            let kind = IoKind::Read { buf: IoBuf::owned(filled(0)), offset: page * LENGTH as u64 };
            env.run_until_complete(submit_one(&*disk, &file, kind)).unwrap()
        };
        for page in 0..3 {
            file.write_at(&filled(1), page * LENGTH as u64).unwrap();
        }
        disk.watch_reads("data/f");
        read(0);
        disk.misbehave("data/f", what, 1);
        // What stands in another place, or stood here before, is the same: no harm is done.
        if matches!(what, StaleRead | MisdirectedRead | TornRead) {
            file.write_at(&filled(1), 0).unwrap();
            read(0);
        }
        assert_eq!(disk.false_reads(), [], "{what:?}");
        file.write_at(&filled(2), 0).unwrap();
        file.write_at(&filled(2), 0).unwrap();
        file.write_at(&filled(3), 0).unwrap();
        let IoKind::Read { buf: IoBuf::Owned(buf, _), .. } = read(0) else {
            panic!("it came back as another")
        };
        let mut other = filled(0);
        file.read_at(&mut other, 0).unwrap();
        let seen = disk.false_reads();
        assert!(seen.iter().all(|read| read.honest == filled(3)[..] && read.offset == 0), "{what:?}");
        assert!(seen.iter().all(|read| read.returned != read.honest), "{what:?}");
        let returned: Vec<&[u8]> = seen.iter().map(|read| &read.returned[..]).collect();
        assert_eq!(returned, [&buf[..], &other[..]], "{what:?}");
    }
}

#[test]
fn a_skipped_sync_says_yes_and_a_crash_says_no() {
    let disk = SimulatedStorage::new(18);
    let file = data_file(&disk);
    disk.misbehave("data/f", Misbehaviour::SkippedSync, 1);
    file.write_at(&filled(1), 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(disk.durable_content(Path::new("data/f")).unwrap(), []);
}

#[test]
fn atomic_writes_are_refused_from_the_moment_that_was_asked_for() {
    let env = SimulatedEnvironment::new(19);
    let disk = env.disk().clone();
    let file = data_file(&disk);
    disk.refuse_atomic_writes_after(1);
    let write = |byte| {
        let kind = IoKind::Write { buf: IoBuf::owned(filled(byte)), offset: 0, atomic: true, sync: false };
        env.run_until_complete(submit_one(&*disk, &file, kind)).map(drop)
    };
    write(1).unwrap();
    // EINVAL, as Linux refuses.
    assert_eq!(write(2).unwrap_err().io().raw_os_error(), Some(22));
    assert_eq!(disk.content(Path::new("data/f")).unwrap(), filled(1)[..]);
}
