//! The protected writer by file and mode: what it writes where, what it does when the storage refuses, and
//! that a change of the mode under load leaves no page unprotected.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use disk::probe::Atomic;
use disk::*;
use page::{FlushPurpose, PageId, PageWriter, WriteBatch};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use support::*;
use untorn_dblwr::*;

fn environment(seed: u64, offered: Atomic) -> Arc<SimulatedEnvironment> {
    let env = SimulatedEnvironment::new(seed);
    env.disk().offer(offered);
    env
}

fn writer(env: &Arc<SimulatedEnvironment>, mode: Mode) -> ProtectedWriter {
    ProtectedWriter::open(env.clone(), options().mode(mode)).unwrap()
}

fn write(env: &Arc<SimulatedEnvironment>, writer: &ProtectedWriter, batch: WriteBatch) {
    env.run_until_complete(writer.write(batch)).unwrap();
}

#[test]
fn each_mode_and_verdict_has_its_way() {
    for (offered, mode, way) in [
        (Atomic::None, Mode::Auto, WritePath::Doublewrite),
        (Atomic::Hardware, Mode::Auto, WritePath::Atomic),
        (Atomic::Hardware, Mode::On, WritePath::Doublewrite),
        (Atomic::Hardware, Mode::DetectOnly, WritePath::Detect),
        (Atomic::Hardware, Mode::Off, WritePath::Plain),
    ] {
        let env = environment(1, offered);
        let files = make_data(&**env.disk());
        let writer = writer(&env, mode);
        let pages: Vec<PageId> = all_pages().take(4).collect();
        write(&env, &writer, batch(&files, &pages, 9, FlushPurpose::Checkpoint));
        let status = writer.status();
        let (data, page) = (4 * PAGE as u64, PAGE as u64);
        let (copied, copies, atomic) = match way {
            WritePath::Doublewrite => (4, 4 * page, 0),
            WritePath::Detect => (4, 8192, 0),
            WritePath::Atomic => (0, 0, 4),
            WritePath::Plain => (0, 0, 0),
        };
        assert_eq!(
            (status.doublewrite_pages, status.bytes_doublewrite),
            (copied, copies),
            "{offered} {mode}"
        );
        assert_eq!((status.atomic_pages, status.bytes_data), (atomic, data), "{offered} {mode}");
        let plain = if way == WritePath::Plain { 4 } else { 0 };
        assert_eq!(status.plain_pages, plain, "{offered} {mode}");
        // Each page has gone one way.
        let ways = status.doublewrite_pages + status.atomic_pages + status.single_pages + status.plain_pages;
        assert_eq!(ways + status.recreatable_pages, status.pages, "{offered} {mode}");
        assert_eq!(writer.copies_kept(), copied, "what a restart compares, {offered} {mode}");
        assert!(status.atomic_writes <= atomic, "{offered} {mode}");
        let shown = writer.protection(&files[&1]);
        assert_eq!((shown.verdict, shown.mode), (offered, way), "{}", shown.reason);
    }
}

/// A batch that has time leaves the device to others meanwhile; one that somebody waits for does not.
#[test]
fn a_batch_takes_the_time_it_is_given_until_somebody_waits_for_it() {
    const TIME: Duration = Duration::from_secs(5);
    for (offered, hurried) in
        [(Atomic::None, false), (Atomic::Hardware, false), (Atomic::None, true), (Atomic::Hardware, true)]
    {
        let env = environment(3, offered);
        let files = make_data(&**env.disk());
        let writer =
            ProtectedWriter::open(env.clone(), Options { pages: 64, ..options().mode(Mode::Auto) }).unwrap();
        let pages: Vec<PageId> = all_pages().collect();
        let mut slow = batch(&files, &pages, 9, FlushPurpose::Checkpoint);
        slow.spread.time = TIME;
        let (begun, hurry) = (env.now(), slow.spread.hurry.clone());
        let (over, outcome) = spawn(&env, writer.write(slow));
        if hurried {
            env.run_until_complete(env.sleep(TIME / 10));
            assert!(!over.is_set(), "{offered}");
            hurry.set();
        }
        env.run_until_complete(async move { over.wait().await });
        let took = env.now() - begun;
        let expected = if hurried { TIME / 10..TIME / 5 } else { TIME / 2..TIME + TIME / 5 };
        assert!(expected.contains(&took), "{offered}, hurried {hurried}: {took:?}");
        assert!(outcome.lock().unwrap().take().unwrap().is_ok());
        for id in pages {
            assert_eq!(lsn_of(&read_page(env.disk(), id)), 9);
        }
    }
}

#[test]
fn what_the_file_system_offers_is_measured_against_the_doublewrite() {
    let env = environment(2, Atomic::FileSystem);
    let files = make_data(&**env.disk());
    let writer = writer(&env, Mode::Auto);
    let pages: Vec<PageId> = all_pages().collect();
    for lsn in 0..140 {
        write(&env, &writer, batch(&files, &pages, 10 + lsn, FlushPurpose::Checkpoint));
    }
    let status = writer.status();
    assert!(status.atomic_pages >= 32 * 48 && status.doublewrite_pages >= 32 * 48, "{status:?}");
    let shown = writer.protection(&files[&1]);
    assert!(shown.reason.contains("microseconds per page"), "{}", shown.reason);
    let before = writer.status();
    write(&env, &writer, batch(&files, &pages, 99, FlushPurpose::Checkpoint));
    let by_way = (writer.status().atomic_writes > before.atomic_writes, shown.mode == WritePath::Atomic);
    assert_eq!(by_way.0, by_way.1, "the way shown is the way used");
}

/// What is written atomically is synced by somebody else later. The measurement must see that it costs
/// something, too.
#[test]
fn the_measurement_counts_syncs_on_both_sides() {
    let env = environment(8, Atomic::FileSystem);
    let files = make_data(&**env.disk());
    let writer = writer(&env, Mode::Auto);
    let pages: Vec<PageId> = all_pages().collect();
    let (mut measured, mut synced, mut later) = (0, 0, 0);
    for lsn in 0..400 {
        let measuring = !writer.protection(&files[&1]).reason.contains("microseconds per page");
        let before = writer.status();
        write(&env, &writer, batch(&files, &pages, 10 + lsn, FlushPurpose::Checkpoint));
        let after = writer.status();
        if after.atomic_pages > before.atomic_pages {
            measured += u64::from(measuring);
            *if measuring { &mut synced } else { &mut later } += after.syncs - before.syncs;
        }
    }
    // Two files, once in eight batches.
    assert!(measured >= 32 && synced == measured / 8 * 2, "{synced} syncs in {measured} batches");
    assert_eq!(later, 0, "a batch whose way is settled leaves its syncs to the checkpoint");
}

#[test]
fn atomic_writes_without_room_go_through_the_doublewrite_for_this_time() {
    for (seed, offered) in [(11, Atomic::Hardware), (12, Atomic::FileSystem)] {
        let env = environment(seed, offered);
        let files = make_data(&**env.disk());
        let writer = writer(&env, Mode::Auto);
        let pages: Vec<PageId> = all_pages().take(6).collect();
        let mut without_room = 0;
        for lsn in 10..90 {
            let full = lsn % 20 >= 10;
            env.disk().leave_no_room_for_atomic_writes(full);
            let before = writer.status();
            write(&env, &writer, batch(&files, &pages, lsn, FlushPurpose::Lru));
            let after = writer.status();
            assert!(!full || after.atomic_pages == before.atomic_pages);
            without_room += after.atomic_without_room - before.atomic_without_room;
            assert!(pages.iter().all(|page| lsn_of(&read_page(env.disk(), *page)) == lsn), "nothing is lost");
        }
        assert!(without_room > 10, "{without_room}");
        let status = writer.status();
        assert_eq!((status.pages, status.atomic_refusals), (80 * 6, 0));
        assert_eq!(status.atomic_pages + status.doublewrite_pages, status.pages);
        assert!(status.atomic_pages > 0, "as soon as there is room they are written atomically again");
    }
}

#[test]
fn pages_without_room_are_never_torn_by_a_crash() {
    let mut restored = 0;
    for seed in 0..30 {
        let env = environment(seed, Atomic::FileSystem);
        let files = make_data(&**env.disk());
        let writer = writer(&env, Mode::Auto);
        env.disk().leave_no_room_for_atomic_writes(true);
        let pages: Vec<PageId> = all_pages().take(8).collect();
        let _under_way = spawn(&env, writer.write(batch(&files, &pages, 9, FlushPurpose::Lru)));
        for _ in 0..1 + seed {
            env.step();
        }
        for crash in 0..10 {
            let left = env.disk().crash(crash);
            restored += run_recovery(&left, 0).restored.len();
            assert!(all_pages().all(|id| verify(&read_page(&left, id))), "seed {seed} crash {crash}");
        }
    }
    assert!(restored > 0, "the way through the doublewrite was needed");
}

#[test]
fn a_refused_atomic_write_goes_through_the_doublewrite_in_the_same_batch() {
    let pages: Vec<PageId> = all_pages().take(6).collect();
    let needed = {
        let env = environment(3, Atomic::Hardware);
        let files = make_data(&**env.disk());
        let writer = writer(&env, Mode::Auto);
        write(&env, &writer, batch(&files, &pages, 9, FlushPurpose::Lru));
        writer.status().atomic_writes
    };
    assert!(needed > 1 && needed < 6, "{needed} writes: neighbours go together as far as their place allows");
    for good in 0..needed {
        let env = environment(3, Atomic::Hardware);
        let files = make_data(&**env.disk());
        let writer = writer(&env, Mode::Auto);
        env.disk().refuse_atomic_writes_after(good);
        write(&env, &writer, batch(&files, &pages, 9, FlushPurpose::Lru));
        for page in &pages {
            assert_eq!(lsn_of(&read_page(env.disk(), *page)), 9, "nothing is lost");
        }
        let status = writer.status();
        assert_eq!((status.atomic_writes, status.atomic_refusals), (good, needed - good));
        assert_eq!(status.atomic_pages + status.doublewrite_pages, 6);
        let shown = writer.protection(&files[&1]);
        assert_eq!(shown.mode, WritePath::Doublewrite);
        assert!(shown.reason.contains("refused"), "{}", shown.reason);
        // Later pages do not even try.
        write(&env, &writer, batch(&files, &pages, 10, FlushPurpose::Lru));
        assert_eq!(writer.status().atomic_refusals, needed - good);
        // AUTO, set again, asks again.
        writer.set_mode(Mode::Auto).unwrap();
        assert_eq!(writer.protection(&files[&1]).mode, WritePath::Atomic);
    }
}

#[test]
fn refused_pages_are_never_torn_by_a_crash() {
    let mut restored = 0;
    for seed in 0..30 {
        let env = environment(seed, Atomic::Hardware);
        let files = make_data(&**env.disk());
        let writer = writer(&env, Mode::Auto);
        env.disk().refuse_atomic_writes_after(seed % 5);
        let pages: Vec<PageId> = all_pages().take(8).collect();
        let _under_way = spawn(&env, writer.write(batch(&files, &pages, 9, FlushPurpose::Lru)));
        for _ in 0..1 + seed {
            env.step();
        }
        for crash in 0..10 {
            let left = env.disk().crash(crash);
            restored += run_recovery(&left, 0).restored.len();
            assert!(all_pages().all(|id| verify(&read_page(&left, id))), "seed {seed} crash {crash}");
        }
    }
    assert!(restored > 0, "the way through the doublewrite was needed");
}

#[test]
fn recreatable_pages_need_no_copy() {
    let env = environment(4, Atomic::None);
    let files = make_data(&**env.disk());
    let writer = writer(&env, Mode::On);
    let pages: Vec<PageId> = all_pages().take(4).collect();
    let mut batch = WriteBatch::new(PAGE, 4, FlushPurpose::Checkpoint);
    for (index, id) in pages.iter().enumerate() {
        fill(batch.push(*id, files[&id.space].clone(), u64::from(id.page) * PAGE as u64), *id, 9);
        if index % 2 == 1 {
            batch.mark_recreatable();
        }
    }
    write(&env, &writer, batch);
    let status = writer.status();
    assert_eq!((status.doublewrite_pages, status.recreatable_pages, status.pages), (2, 2, 4));
    let copies = env.disk().content(&Path::new(DATA).join(format!("#ib_{PAGE}_0.dblwr"))).unwrap();
    let copied: Vec<u64> = copies.chunks_exact(PAGE).take(3).map(lsn_of).collect();
    assert_eq!(copied, [9, 9, 0], "the copies lie together");
}

#[test]
fn the_mode_changes_under_load_and_no_page_is_left_torn() {
    let (mut used, mut left_unsynced) = ([0; 2], 0);
    for seed in 0..60 {
        let env = environment(seed, [Atomic::Hardware, Atomic::FileSystem, Atomic::None][seed as usize % 3]);
        let disk = env.disk().clone();
        let files = make_data(&*disk);
        let writer = writer(&env, Mode::Auto);
        let mut random = Random::new(seed);
        let mut newest: std::collections::BTreeMap<PageId, (u64, Vec<u64>)> =
            all_pages().map(|id| (id, (1, Vec::new()))).collect();
        for lsn in 10..10 + random.below(20) as u64 {
            let mut ids: Vec<PageId> = all_pages().collect();
            for index in (1..ids.len()).rev() {
                ids.swap(index, random.below(index + 1));
            }
            // A batch begins in one mode, the next one in another, both are under way together.
            let (first, rest) = ids.split_at(1 + random.below(8));
            let second = &rest[..1 + random.below(8)];
            let mut under_way = Vec::new();
            for part in [first, second] {
                writer.set_mode([Mode::Auto, Mode::On][random.below(2)]).unwrap();
                part.iter().for_each(|id| newest.get_mut(id).unwrap().1.push(lsn));
                under_way
                    .push((spawn(&env, writer.write(batch(&files, part, lsn, FlushPurpose::Lru))), part));
                for _ in 0..random.below(6) {
                    env.step();
                }
            }
            let left = disk.crash(random.next_u64());
            run_recovery(&left, 0);
            for (id, (durable, attempted)) in &newest {
                let image = read_page(&left, *id);
                let lsn = lsn_of(&image);
                assert!(verify(&image), "seed {seed}: page {id} is torn");
                assert!(lsn == *durable || attempted.contains(&lsn), "seed {seed}: page {id} has {lsn}");
            }
            for (end, part) in under_way {
                env.run_until_complete(end.0.wait());
                if end.1.lock().unwrap().take().unwrap().unwrap().durable {
                    part.iter().for_each(|id| *newest.get_mut(id).unwrap() = (lsn, Vec::new()));
                } else {
                    left_unsynced += 1;
                }
            }
            // As before a checkpoint.
            if random.below(4) == 0 {
                files.values().for_each(|file| file.sync_data().unwrap());
                for (durable, attempted) in newest.values_mut() {
                    *durable = attempted.drain(..).max().unwrap_or(*durable);
                }
            }
        }
        let status = writer.status();
        used = [used[0] + status.atomic_writes, used[1] + status.doublewrite_pages];
    }
    assert!(used.iter().all(|pages| *pages > 500), "both ways were in use: {used:?}");
    assert!(left_unsynced > 100, "syncs were left to the caller {left_unsynced} times");
}

#[test]
fn off_needs_no_files_and_on_makes_them_when_it_is_set() {
    let env = environment(5, Atomic::None);
    let files = make_data(&**env.disk());
    let writer = writer(&env, Mode::Off);
    let first = Path::new(DATA).join(format!("#ib_{PAGE}_0.dblwr"));
    assert!(env.disk().content(&first).is_none());
    writer.set_mode(Mode::On).unwrap();
    assert!(env.disk().content(&first).is_some());
    writer.set_mode(Mode::DetectOnly).unwrap();
    write(&env, &writer, batch(&files, &[PageId::new(1, 3)], 9, FlushPurpose::Checkpoint));
    assert!(tear(env.disk(), PageId::new(1, 3)));
    let found = run_recovery(env.disk(), 0);
    assert_eq!(found.unrestored.iter().map(|page| page.page).collect::<Vec<_>>(), [PageId::new(1, 3)]);
    assert!(run_recovery(env.disk(), 10).unrestored.is_empty(), "of an earlier time");
}

#[test]
fn batches_spread_over_all_files() {
    let env = environment(6, Atomic::None);
    let files = make_data(&**env.disk());
    for count in [1, 2, 3, 6] {
        let settings = Options { files: count, ..options() };
        let writer = ProtectedWriter::open(env.clone(), settings).unwrap();
        for purpose in [FlushPurpose::Checkpoint, FlushPurpose::Lru] {
            let ends: Vec<Outcome> = all_pages()
                .collect::<Vec<_>>()
                .chunks(4)
                .map(|ids| spawn(&env, writer.write(batch(&files, ids, 20 + count as u64, purpose))))
                .collect();
            for end in ends {
                env.run_until_complete(end.0.wait());
                assert!(end.1.lock().unwrap().take().unwrap().is_ok());
            }
        }
        for number in 0..count {
            let path = Path::new(DATA).join(format!("#ib_{PAGE}_{number}.dblwr"));
            let content = env.disk().content(&path).unwrap();
            let newest = content.chunks_exact(PAGE).map(lsn_of).max();
            assert_eq!(newest, Some(20 + count as u64), "file {number} of {count} was used");
        }
    }
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let env = environment(7, Atomic::None);
    make_data(&**env.disk());
    for (settings, name) in [
        (Options { files: 0, ..options() }, "innodb_doublewrite_files"),
        (Options { files: 257, ..options() }, "innodb_doublewrite_files"),
        (Options { pages: 0, ..options() }, "innodb_doublewrite_pages"),
        (Options { pages: 513, ..options() }, "innodb_doublewrite_pages"),
        (Options { page_size: 5000, ..options() }, "5000"),
    ] {
        let error = ProtectedWriter::open(env.clone(), settings).err().unwrap().to_string();
        assert!(error.contains(name), "{error}");
    }
}

/// A call before may have made the files and failed before it synced their names.
#[test]
fn a_mode_that_is_set_later_syncs_names_that_are_there() {
    let env = environment(1, Atomic::None);
    make_data(&**env.disk());
    let off = Options { directory_is_synced: true, mode: Mode::Off, ..options() };
    for _ in 0..2 {
        let writer = ProtectedWriter::open(env.clone(), off.clone()).unwrap();
        let syncs = Arc::new(AtomicU32::new(0));
        let seen = syncs.clone();
        env.disk().observe_syncs(move |_| _ = seen.fetch_add(1, Ordering::Relaxed));
        writer.set_mode(Mode::On).unwrap();
        env.disk().stop_observing();
        assert!(syncs.load(Ordering::Relaxed) > 0);
    }
}

/// Where the caller has synced the directory, that need not be done again, but for files that are new.
#[test]
fn the_names_of_new_files_are_durable() {
    for directory_is_synced in [false, true] {
        let env = environment(1, Atomic::None);
        make_data(&**env.disk());
        let open = || {
            let syncs = Arc::new(AtomicU32::new(0));
            let seen = syncs.clone();
            env.disk().observe_syncs(move |_| _ = seen.fetch_add(1, Ordering::Relaxed));
            drop(ProtectedWriter::open(env.clone(), Options { directory_is_synced, ..options() }).unwrap());
            env.disk().stop_observing();
            syncs.load(Ordering::Relaxed)
        };
        assert!(open() > 0);
        for seed in 0..20 {
            let left = env.disk().crash(seed);
            let names = left.list(Path::new(DATA)).unwrap();
            assert_eq!(names.iter().filter(|entry| entry.name.ends_with(".dblwr")).count(), 2);
        }
        assert_eq!(open(), u32::from(!directory_is_synced), "they were there");
    }
}

#[test]
fn the_directory_in_use_is_remembered() {
    let disk = SimulatedStorage::new(1);
    make_data(&*disk);
    let (data, other) = (Path::new(DATA), Path::new("other"));
    assert!(directories::remembered(&*disk, data).unwrap().is_empty());
    directories::remember(&*disk, data, other).unwrap();
    for seed in 0..5 {
        assert_eq!(directories::remembered(&*disk.crash(seed), data).unwrap(), [other]);
    }
    directories::remember(&*disk, data, Path::new("third")).unwrap();
    assert_eq!(directories::remembered(&*disk, data).unwrap(), [Path::new("third")]);
    directories::remember(&*disk, data, data).unwrap();
    assert!(directories::remembered(&*disk.crash(1), data).unwrap().is_empty());
}

fn copies_length(env: &SimulatedEnvironment, number: usize) -> usize {
    let path = Path::new(DATA).join(format!("#ib_{PAGE}_{number}.dblwr"));
    env.disk().content(&path).map_or(0, |content| content.len())
}

/// New files have room for a few pages; the first large batch makes that of its purpose as long as it shall
/// be.
#[test]
fn doublewrite_files_are_small_until_a_batch_is_larger() {
    let env = environment(21, Atomic::None);
    let files = make_data(&**env.disk());
    let large = Options { pages: 32, ..options().mode(Mode::On) };
    let writer = ProtectedWriter::open(env.clone(), large.clone()).unwrap();
    let pages: Vec<PageId> = all_pages().collect();
    for lsn in 2..5 {
        write(&env, &writer, batch(&files, &pages[..16], lsn, FlushPurpose::Checkpoint));
    }
    assert_eq!((copies_length(&env, 0), copies_length(&env, 1)), (16 * PAGE, 16 * PAGE));
    write(&env, &writer, batch(&files, &pages[..17], 5, FlushPurpose::Checkpoint));
    assert_eq!((copies_length(&env, 0), copies_length(&env, 1)), (4 * 32 * PAGE, 16 * PAGE));
    drop(writer);
    // They stay so.
    let writer = ProtectedWriter::open(env.clone(), large).unwrap();
    write(&env, &writer, batch(&files, &pages[..17], 6, FlushPurpose::Checkpoint));
    assert_eq!(writer.status().doublewrite_writes, 1);
}

/// Files that the disk does not let become longer stay as they are for a while, take no room from others, and
/// large batches go in parts; later they are tried again.
#[test]
fn files_that_cannot_grow_are_cut_back_and_left_alone_for_a_while() {
    for (seed, room, refusal) in
        [(1, 40 * PAGE, FaultKind::Enospc), (2, 0, FaultKind::Eio), (3, 70 * PAGE, FaultKind::Eio)]
    {
        let env = environment(seed, Atomic::None);
        let files = make_data(&**env.disk());
        let large = Options { pages: 32, ..options().mode(Mode::On) };
        let writer = ProtectedWriter::open(env.clone(), large).unwrap();
        let pages: Vec<PageId> = all_pages().take(20).collect();
        env.disk().leave_room(room, refusal);
        write(&env, &writer, batch(&files, &pages, 3, FlushPurpose::Checkpoint));
        assert_eq!((copies_length(&env, 0), copies_length(&env, 1)), (16 * PAGE, 16 * PAGE));
        assert_eq!(writer.status().doublewrite_writes, 2);
        let before = env.disk().counters().bytes_written;
        write(&env, &writer, batch(&files, &pages, 6, FlushPurpose::Checkpoint));
        let written = env.disk().counters().bytes_written - before;
        assert_eq!(written, 2 * (pages.len() * PAGE) as u64, "no zeros");
        env.disk().fill_up(false);
        env.advance(Duration::from_secs(2));
        write(&env, &writer, batch(&files, &pages, 9, FlushPurpose::Checkpoint));
        assert_eq!(copies_length(&env, 0), 4 * 32 * PAGE);
        assert_eq!(writer.status().doublewrite_writes, 5);
    }
}

/// Where the files cannot become longer a large batch goes in parts, and each page has its copy before it is
/// written: whenever the power fails, none is lost.
#[test]
fn on_a_full_disk_a_large_batch_goes_in_parts_that_are_as_safe() {
    let mut parts = 0;
    for call in 0..60 {
        let env = environment(call, Atomic::None);
        let disk = env.disk().clone();
        let files = make_data(&*disk);
        let large = Options { pages: 32, ..options().mode(Mode::On) };
        let writer = ProtectedWriter::open(env.clone(), large).unwrap();
        disk.fill_up(call % 2 == 0);
        disk.plan(Fault { call: disk.calls() + call / 2, kind: FaultKind::PowerLoss });
        let pages: Vec<PageId> = all_pages().take(20).collect();
        let written =
            env.run_until_complete(writer.write(batch(&files, &pages, 9, FlushPurpose::Checkpoint)));
        if written.is_ok() && call % 2 == 0 {
            assert_eq!(writer.status().doublewrite_writes, 2);
            parts += 1;
        }
        env.shutdown();
        let disk = disk.crash(call);
        run_recovery(&disk, 0);
        for id in all_pages() {
            let found = read_page(&disk, id);
            assert!(verify(&found), "call {call}: page {id} is torn");
            assert!(written.is_err() || !pages.contains(&id) || lsn_of(&found) == 9, "call {call}: {id}");
        }
    }
    assert!(parts > 5, "{parts}");
}
