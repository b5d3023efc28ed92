//! Torn pages on the simulated disk: with the doublewrite every page is whole after recovery, without it some
//! are not (so that the checker is known to see tearing), and recovery touches nothing that is whole.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use disk::*;
use page::{FlushPurpose, PageId, PageWriter};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use support::*;
use untorn_dblwr::*;

/// Per page: the LSN that is durable for certain, and the LSNs that were on their way after it.
#[derive(Default, Clone)]
struct Expected {
    durable: u64,
    attempted: Vec<u64>,
}

/// Writes random batches, four at a time and of disjoint pages, until the power goes at a random
/// call; gives the disk at that moment and what may be on it.
fn history(seed: u64, doublewrite: bool) -> (Arc<SimulatedEnvironment>, BTreeMap<PageId, Expected>) {
    let env = SimulatedEnvironment::new(seed);
    let disk = env.disk().clone();
    let mut random = Random::new(seed ^ 0xD0B1);
    let files = make_data(&*disk);
    let shared: Arc<dyn Environment> = env.clone();
    let writer: Arc<dyn PageWriter> = if doublewrite {
        Arc::new(ProtectedWriter::open(shared, options()).unwrap())
    } else {
        Arc::new(UnprotectedWriter::new(shared))
    };
    disk.plan(Fault { call: disk.calls() + random.below(200) as u64, kind: FaultKind::PowerLoss });
    let mut expected: BTreeMap<PageId, Expected> =
        all_pages().map(|id| (id, Expected { durable: 1, attempted: Vec::new() })).collect();
    for round in 0..200u64 {
        let lsn = 1000 + round;
        let mut ids: Vec<PageId> = all_pages().collect();
        for index in (1..ids.len()).rev() {
            ids.swap(index, random.below(index + 1));
        }
        // More batches than segments for one purpose, one for the other.
        let purposes =
            [FlushPurpose::Checkpoint, FlushPurpose::Checkpoint, FlushPurpose::Checkpoint, FlushPurpose::Lru];
        let mut rest = &ids[..];
        let mut under_way = Vec::new();
        for purpose in purposes {
            let (pages, others) = rest.split_at(1 + random.below(9));
            rest = others;
            for id in pages {
                expected.get_mut(id).unwrap().attempted.push(lsn);
            }
            under_way.push((spawn(&env, writer.write(batch(&files, pages, lsn, purpose))), pages));
        }
        let mut failed = false;
        for (end, pages) in under_way {
            env.run_until_complete(end.0.wait());
            let result = end.1.lock().unwrap().take().unwrap();
            match result {
                Ok(_) => pages.iter().for_each(|id| {
                    *expected.get_mut(id).unwrap() = Expected { durable: lsn, attempted: Vec::new() };
                }),
                Err(_) => failed = true,
            }
        }
        if failed {
            return (env, expected);
        }
    }
    panic!("seed {seed}: the power never went");
}

#[test]
fn with_the_doublewrite_every_page_is_whole_and_nothing_durable_is_lost() {
    let mut restored = 0;
    let mut damaged_copies = 0;
    for seed in 0..50 {
        let (env, expected) = history(seed, true);
        for crash in 0..6 {
            let left = env.disk().crash(seed * 100 + crash);
            let recovered = run_recovery(&left, 0);
            restored += recovered.restored.len();
            damaged_copies += recovered.damaged_copies;
            // A second crash right after recovery must not take anything back.
            let left = left.crash(crash);
            for (id, expected) in &expected {
                let image = read_page(&left, *id);
                assert!(verify(&image), "seed {seed} crash {crash}: page {id} is torn");
                let lsn = lsn_of(&image);
                assert!(
                    lsn == expected.durable || expected.attempted.contains(&lsn),
                    "seed {seed} crash {crash}: page {id} has LSN {lsn}, durable is {}",
                    expected.durable
                );
                assert_eq!(image, page(*id, lsn)[..]);
            }
            assert!(run_recovery(&left, 0).restored.is_empty(), "recovery is done once");
        }
    }
    println!("restored {restored} pages, saw {damaged_copies} damaged copies");
    assert!(restored > 20, "the crashes tore data pages: {restored}");
    assert!(damaged_copies > 5, "the crashes tore copies: {damaged_copies}");
}

#[test]
fn negative_control_without_the_doublewrite_pages_are_torn() {
    let mut torn = 0;
    for seed in 0..20 {
        let (env, expected) = history(seed, false);
        for crash in 0..6 {
            let left = env.disk().crash(seed * 100 + crash);
            assert!(run_recovery(&left, 0).restored.is_empty());
            torn += expected.keys().filter(|id| !verify(&read_page(&left, **id))).count();
        }
    }
    assert!(torn > 20, "a tearing disk must be seen to tear: {torn}");
}

/// A disk with data at LSN 1, and a doublewrite file of one slot per given image.
fn disk_with_copies(copies: &[AlignedBuf]) -> Arc<SimulatedStorage> {
    let disk = SimulatedStorage::new(1);
    make_data(&*disk);
    let name = Path::new(DATA).join(format!("#ib_{PAGE}_1.dblwr"));
    let file = disk.open(&name, OpenHow::CREATE_NEW).unwrap();
    for (slot, image) in copies.iter().enumerate() {
        file.write_at(image, (slot * PAGE) as u64).unwrap();
    }
    disk
}

const VICTIM: PageId = PageId::new(2, 7);

#[test]
fn a_torn_copy_leaves_a_whole_page_alone() {
    let mut copy = page(VICTIM, 9);
    copy[9000] ^= 1;
    let disk = disk_with_copies(&[copy]);
    let recovered = run_recovery(&disk, 0);
    assert_eq!((recovered.restored.len(), recovered.damaged_copies), (0, 1));
    assert_eq!(read_page(&disk, VICTIM), page(VICTIM, 1)[..]);
}

#[test]
fn a_whole_page_is_never_overwritten_however_old() {
    let disk = disk_with_copies(&[page(VICTIM, 9)]);
    let recovered = run_recovery(&disk, 0);
    assert_eq!((recovered.restored.len(), recovered.copies), (0, 1));
    assert_eq!(read_page(&disk, VICTIM), page(VICTIM, 1)[..]);
}

#[test]
fn a_torn_page_gets_the_newest_copy_and_is_durable_again() {
    let disk = disk_with_copies(&[page(VICTIM, 8), page(VICTIM, 9), page(VICTIM, 3)]);
    assert!(tear(&disk, VICTIM));
    assert_eq!(run_recovery(&disk, 0).restored, [VICTIM]);
    for seed in 0..10 {
        assert_eq!(read_page(&disk.crash(seed), VICTIM), page(VICTIM, 9)[..]);
    }
}

#[test]
fn a_zeroed_page_is_restored() {
    let disk = disk_with_copies(&[page(VICTIM, 9)]);
    assert!(disk.corrupt(&data_path(2), 7 * PAGE, &[0; PAGE]));
    assert_eq!(run_recovery(&disk, 0).restored, [VICTIM]);
    assert_eq!(read_page(&disk, VICTIM), page(VICTIM, 9)[..]);
}

#[test]
fn a_copy_older_than_the_checkpoint_is_not_used() {
    let disk = disk_with_copies(&[page(VICTIM, 9)]);
    assert!(tear(&disk, VICTIM));
    assert!(run_recovery(&disk, 10).restored.is_empty());
    assert_eq!(run_recovery(&disk, 9).restored, [VICTIM]);
}

#[test]
fn pages_beyond_the_end_and_of_unknown_spaces_are_skipped_and_a_half_page_is_completed() {
    let beyond = PageId::new(1, PAGES + 3);
    let half = PageId::new(1, PAGES - 1);
    let disk = disk_with_copies(&[page(beyond, 9), page(PageId::new(77, 0), 9), page(half, 9)]);
    let file = disk.open(&data_path(1), OpenHow::EXISTING).unwrap();
    file.set_len(u64::from(PAGES) * PAGE as u64 - 4096).unwrap();
    assert_eq!(run_recovery(&disk, 0).restored, [half]);
    assert_eq!(read_page(&disk, half), page(half, 9)[..]);
    assert_eq!(file.len().unwrap(), u64::from(PAGES) * PAGE as u64);
}

#[test]
fn a_data_page_that_cannot_be_read_is_restored() {
    let disk = disk_with_copies(&[page(VICTIM, 9)]);
    // Calls of the recovery: open two data files and one doublewrite file, read the slots, read the data
    // page, and read it once more where that failed.
    let fails = |call| disk.plan(Fault { call: disk.calls() + call, kind: FaultKind::Eio });
    fails(4);
    assert!(run_recovery(&disk, 0).restored.is_empty(), "the page is whole");
    fails(4);
    fails(5);
    assert_eq!(run_recovery(&disk, 0).restored, [VICTIM]);
}

#[test]
fn when_the_copy_cannot_be_made_durable_no_page_is_touched_and_no_more_is_written() {
    for seed in 0..10 {
        let env = SimulatedEnvironment::new(seed);
        let disk = env.disk().clone();
        let files = make_data(&*disk);
        let writer = ProtectedWriter::open(env.clone(), options()).unwrap();
        disk.plan(Fault { call: disk.calls(), kind: FaultKind::Eio });
        let write = || writer.write(batch(&files, &[VICTIM], 9, FlushPurpose::Lru));
        assert!(env.run_until_complete(write()).is_err());
        let calls = disk.calls();
        let again = env.run_until_complete(write()).err().unwrap().to_string();
        assert!(again.contains("earlier batch"), "{again}");
        assert_eq!(disk.calls(), calls);
        assert_eq!(read_page(&disk, VICTIM), page(VICTIM, 1)[..]);
    }
}

#[test]
fn a_batch_given_up_half_way_keeps_its_segment() {
    let env = SimulatedEnvironment::new(5);
    let files = make_data(&**env.disk());
    let writer = ProtectedWriter::open(env.clone(), options()).unwrap();
    let mut write = writer.write(batch(&files, &[VICTIM], 9, FlushPurpose::Lru));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(write.as_mut().poll(&mut context).is_pending());
    drop(write);
    env.run_until_idle();
    assert!(env.run_until_complete(writer.write(batch(&files, &[VICTIM], 10, FlushPurpose::Lru))).is_err());
    // The other file is not concerned.
    assert!(
        env.run_until_complete(writer.write(batch(&files, &[VICTIM], 10, FlushPurpose::Checkpoint))).is_ok()
    );
}

#[test]
fn more_batches_than_segments_and_more_pages_than_slots_are_all_written() {
    let env = SimulatedEnvironment::new(6);
    let disk = env.disk().clone();
    let files = make_data(&*disk);
    let writer = ProtectedWriter::open(env.clone(), options()).unwrap();
    let ids: Vec<PageId> = all_pages().collect();
    let before = disk.counters();
    let ends: Vec<Outcome> = ids
        .chunks(6)
        .map(|ids| spawn(&env, writer.write(batch(&files, ids, 9, FlushPurpose::Checkpoint))))
        .collect();
    for end in ends {
        env.run_until_complete(end.0.wait());
        let batch = end.1.lock().unwrap().take().unwrap().unwrap();
        assert_eq!(Arc::strong_count(batch.batch.images()), 1, "the memory is the caller's again");
        assert_eq!(lsn_of(batch.batch.image(0)), 9);
    }
    for id in &ids {
        assert_eq!(read_page(&disk, *id), page(*id, 9)[..]);
    }
    let status = writer.status();
    // 48 pages in 8 batches of 6, each in a part of 4 and a part of 2; every part syncs its copy and one data
    // file.
    assert_eq!((status.pages, status.batches, status.syncs), (48, 8, 32));
    assert_eq!((status.doublewrite_pages, status.doublewrite_writes), (48, 16));
    assert_eq!((status.bytes_data, status.bytes_doublewrite), (48 * PAGE as u64, 48 * PAGE as u64));
    // Neighbours are written together: one request for the copy and one in place per part.
    assert_eq!(disk.counters().writes - before.writes, 32);
}

#[test]
fn atomic_writes_in_place_are_never_torn() {
    for seed in 0..10 {
        let env = SimulatedEnvironment::new(seed);
        env.disk().offer_atomic_writes();
        let files = make_data(&**env.disk());
        let writer = ProtectedWriter::open(env.clone(), options().mode(Mode::Auto)).unwrap();
        let ids: Vec<PageId> = all_pages().take(8).collect();
        let _under_way = spawn(&env, writer.write(batch(&files, &ids, 9, FlushPurpose::Lru)));
        for _ in 0..1 + seed {
            env.step();
        }
        for crash in 0..10 {
            let left = env.disk().crash(crash);
            assert!(all_pages().all(|id| verify(&read_page(&left, id))), "seed {seed} crash {crash}");
        }
    }
}

#[test]
fn runs_on_a_real_disk_and_finds_its_copies_again() {
    let directory = std::env::temp_dir().join(format!("untorn-dblwr-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let env: Arc<dyn Environment> = Arc::new(RealEnvironment::new(RealOptions::default()).unwrap());
    let storage = env.storage().clone();
    let path = directory.join("2.ibd");
    let file = storage.open(&path, OpenHow::CREATE_NEW).unwrap();
    file.write_zeros(0, u64::from(PAGES) * PAGE as u64).unwrap();
    let files = BTreeMap::from([(2, file.clone())]);
    let writer = ProtectedWriter::open(env.clone(), Options::new(&directory, PAGE)).unwrap();
    let ids: Vec<PageId> = all_pages().filter(|id| id.space == 2).collect();
    block_on(writer.write(batch(&files, &ids, 9, FlushPurpose::Checkpoint))).unwrap();
    let mut image = AlignedBuf::zeroed(PAGE);
    file.read_at(&mut image, 7 * PAGE as u64).unwrap();
    assert_eq!(image[..], page(VICTIM, 9)[..]);
    image[..8192].fill(3);
    file.write_at(&image, 7 * PAGE as u64).unwrap();
    let mut locate = |id: PageId| Ok(Some((file.clone(), u64::from(id.page) * PAGE as u64)));
    let recovered = recover(&*env, &directory, PAGE, &mut locate).unwrap();
    assert_eq!((recovered.restored, recovered.copies), (vec![VICTIM], ids.len()));
    file.read_at(&mut image, 7 * PAGE as u64).unwrap();
    assert_eq!(image[..], page(VICTIM, 9)[..]);
    std::fs::remove_dir_all(&directory).unwrap();
}

/// What a doublewrite file holds is hardly ever needed: that a sector of it cannot be read must not stop a
/// start.
#[test]
fn an_unreadable_copy_counts_as_damaged_and_stops_nothing_else() {
    let (mut without_copy, mut with_copy, mut damaged) = (0, 0, 0);
    for seed in 0..20 {
        let env = SimulatedEnvironment::new(seed);
        let disk = env.disk().clone();
        let files = make_data(&*disk);
        let writer = ProtectedWriter::open(env.clone(), options()).unwrap();
        let pages: Vec<PageId> = all_pages().take(4).collect();
        env.run_until_complete(writer.write(batch(&files, &pages, 9, FlushPurpose::Checkpoint))).unwrap();
        assert!(tear(&disk, pages[2]));
        let others = |disk: &SimulatedStorage| {
            all_pages().filter(|id| *id != pages[2]).all(|id| verify(&read_page(disk, id)))
        };
        disk.misbehave(".dblwr", Misbehaviour::FailRead(FaultKind::Eio), 2);
        let found = run_recovery(&disk, 0);
        assert!(others(&disk), "seed {seed}: {found:?}");
        damaged += found.damaged_copies;
        match found.restored.as_slice() {
            [page] => with_copy += u64::from(*page == pages[2]),
            _ => without_copy += 1,
        }
        assert_eq!(found.restored.len() == 1, verify(&read_page(&disk, pages[2])), "seed {seed}: {found:?}");
        // The device has recovered, or the file was recreated.
        disk.behave();
        run_recovery(&disk, 0);
        assert!(verify(&read_page(&disk, pages[2])), "the copy is still there");
    }
    assert!(without_copy > 0 && with_copy > 0 && damaged > 20, "{without_copy} {with_copy} {damaged}");
}
