//! The real storage, over both backends: bulk transfers, linked syncs, ends of files, locks, tasks and
//! timers.
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use untorn_disk::probe::Atomic;
use untorn_disk::*;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let directory = std::env::temp_dir().join(format!("untorn-disk-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        Scratch(directory)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn environments(name: &str) -> Vec<(RealEnvironment, Scratch)> {
    let mut made = Vec::new();
    for (backend, buffered) in
        [(None, false), (None, true), (Some(Backend::Threads), false), (Some(Backend::Threads), true)]
    {
        let scratch = Scratch::new(&format!("{name}-{}", made.len()));
        made.push((RealEnvironment::new(RealOptions { backend, buffered }).unwrap(), scratch));
    }
    made
}

fn page(number: usize, round: usize) -> AlignedBuf {
    let mut random = Random::new((number * 1000 + round) as u64);
    let mut buf = AlignedBuf::zeroed(16384);
    buf.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next_u64().to_le_bytes()));
    buf
}

#[test]
fn a_batch_larger_than_the_ring_is_written_and_read_back() {
    for (env, scratch) in environments("batch") {
        let storage = env.storage().clone();
        let file = storage.open(&scratch.0.join("t.ibd"), OpenHow::CREATE_NEW).unwrap();
        const PAGES: usize = 2500;
        let left = Arc::new(AtomicUsize::new(PAGES));
        let all = Event::new();
        let mut batch = Vec::new();
        for number in 0..PAGES {
            let (left, all) = (left.clone(), all.clone());
            let kind = IoKind::Write {
                buf: IoBuf::owned(page(number, 0)),
                offset: number as u64 * 16384,
                atomic: false,
                sync: number % 500 == 0,
            };
            let io = Io::new(kind, move |result| {
                assert!(matches!(result.unwrap(), IoKind::Write { buf: IoBuf::Owned(..), .. }));
                if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    all.set();
                }
            });
            batch.push((file.clone(), io));
        }
        storage.submit(batch);
        env.block_until(&all);
        assert_eq!(left.load(Ordering::Acquire), 0);
        file.sync_data().unwrap();
        assert_eq!(file.len().unwrap(), PAGES as u64 * 16384);
        for number in [0, 1, 777, PAGES - 1] {
            let mut buf = AlignedBuf::zeroed(16384);
            file.read_at(&mut buf, number as u64 * 16384).unwrap();
            assert_eq!(&buf[..], &page(number, 0)[..], "page {number} by {:?}", env.backend());
            let async_read = read_async(&*storage, &file, number as u64 * 16384, 16384);
            assert_eq!(&block_on(async_read).unwrap()[..], &page(number, 0)[..]);
        }
        let counters = storage.counters();
        assert_eq!((counters.writes, counters.syncs, counters.reads), (PAGES as u64, 5, 4));
    }
}

/// More requests at a time than completions have room for, in batches of several threads, some of them ending
/// in errors.
#[test]
fn requests_beyond_the_completion_queue_all_come_back_with_their_own_result() {
    const BLOCK: usize = 4096;
    const BLOCKS: usize = 64;
    const BATCH: usize = 3000;
    for (env, scratch) in environments("beyond") {
        let storage = env.storage().clone();
        let file = storage.open(&scratch.0.join("t"), OpenHow::CREATE_NEW).unwrap();
        for block in 0..BLOCKS {
            let mut image = AlignedBuf::zeroed(BLOCK);
            image.fill(block as u8);
            file.write_at(&image, (block * BLOCK) as u64).unwrap();
        }
        let (good, bad) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let left = Arc::new(AtomicUsize::new(3 * BATCH));
        let all = Event::new();
        let request = |number: usize| {
            let (good, bad, left, all) = (good.clone(), bad.clone(), left.clone(), all.clone());
            // Every hundredth is behind the end.
            let block = if number.is_multiple_of(100) { BLOCKS + number } else { number % BLOCKS };
            let kind =
                IoKind::Read { buf: IoBuf::owned(AlignedBuf::zeroed(BLOCK)), offset: (block * BLOCK) as u64 };
            let io = Io::new(kind, move |result| {
                // A result of another request is counted as neither.
                match result {
                    Ok(IoKind::Read { buf: IoBuf::Owned(bytes, _), offset }) => {
                        let own = bytes.iter().all(|byte| *byte as usize == block);
                        good.fetch_add(
                            usize::from(own && offset == (block * BLOCK) as u64),
                            Ordering::AcqRel,
                        );
                    }
                    Err(error) if error.offset() == Some((block * BLOCK) as u64) => {
                        bad.fetch_add(1, Ordering::AcqRel);
                    }
                    _ => {}
                }
                if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    all.set();
                }
            });
            (file.clone(), io)
        };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let batch: Vec<_> = (0..BATCH).map(&request).collect();
                scope.spawn(|| storage.submit(batch));
            }
        });
        env.block_until(&all);
        let results = (good.load(Ordering::Acquire), bad.load(Ordering::Acquire));
        assert_eq!(results, (3 * (BATCH - BATCH / 100), 3 * BATCH / 100), "{:?}", env.backend());
    }
}

#[test]
fn the_end_of_a_file_is_an_error_that_says_so() {
    for (env, scratch) in environments("eof") {
        let storage = env.storage();
        let file = storage.open(&scratch.0.join("short"), OpenHow::CREATE_NEW).unwrap();
        file.write_zeros(0, 4096).unwrap();
        let mut buf = AlignedBuf::zeroed(8192);
        let error = file.read_at(&mut buf, 0).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{error}");
        let error = block_on(read_async(&**storage, &file, 0, 8192)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{error}");
        assert!(error.to_string().contains("short"), "{error}");
        let error = block_on(read_async(&**storage, &file, 1 << 20, 4096)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{error}");
    }
}

#[test]
fn preallocation_writes_zeros_of_any_length() {
    for (env, scratch) in environments("zeros") {
        let file = env.storage().open(&scratch.0.join("z"), OpenHow::CREATE_NEW).unwrap();
        let to = (5 << 20) + 8192;
        file.write_zeros(4096, to).unwrap();
        assert_eq!(file.len().unwrap(), to);
        assert!(
            block_on(read_async(&**env.storage(), &file, 0, to as usize))
                .unwrap()
                .iter()
                .all(|byte| *byte == 0)
        );
    }
}

#[test]
fn an_unaligned_direct_transfer_is_refused_in_words() {
    let scratch = Scratch::new("unaligned");
    let env = RealEnvironment::new(RealOptions::default()).unwrap();
    let file = env.storage().open(&scratch.0.join("a"), OpenHow::CREATE_NEW).unwrap();
    if !file.is_direct() {
        return; // The temporary directory refuses direct I/O; the check below is about nothing else.
    }
    assert!(file.write_at(&[1, 2, 3], 0).unwrap_err().to_string().contains("multiples of"));
    // Memory that is not aligned is copied instead.
    let mut bytes = vec![9u8; 4096 + 1];
    file.write_at(&bytes[1..], 0).unwrap();
    file.read_at(&mut bytes[1..], 0).unwrap();
    let buffered = env.storage().open(&scratch.0.join("b"), OpenHow::CREATE_NEW.buffered()).unwrap();
    buffered.write_at(&[1, 2, 3], 5).unwrap();
    assert_eq!(buffered.io_alignment(), 1);
}

#[test]
fn an_atomic_write_works_where_it_is_offered_and_fails_loudly_where_not() {
    for (env, scratch) in environments("atomic") {
        let file = env.storage().open(&scratch.0.join("a"), OpenHow::CREATE_NEW).unwrap();
        file.write_zeros(0, 1 << 20).unwrap();
        let write = IoKind::Write { buf: IoBuf::owned(page(1, 1)), offset: 16384, atomic: true, sync: true };
        let result = block_on(submit_one(&**env.storage(), &file, write));
        let verdict = file.protection(16384);
        match verdict.atomic {
            Atomic::None => assert!(result.unwrap_err().is_atomic_refusal(), "{}", verdict.reason),
            Atomic::Hardware | Atomic::FileSystem => {
                result.unwrap();
                let read = block_on(read_async(&**env.storage(), &file, 16384, 16384)).unwrap();
                assert_eq!(&read[..], &page(1, 1)[..]);
            }
        }
    }
}

#[test]
fn a_second_lock_on_a_directory_is_refused() {
    let scratch = Scratch::new("lock");
    let env = RealEnvironment::new(RealOptions::default()).unwrap();
    let path = scratch.0.join("untorn.lock");
    let held = env.storage().lock(&path).unwrap();
    let error = env.storage().lock(&path).err().unwrap().to_string();
    assert!(error.contains("another process"), "{error}");
    assert_eq!(lock_holder(&path).as_deref(), Some("a process"));
    drop(held);
    let held = env.storage().lock_by_name(&path).unwrap();
    let holder = lock_holder(&path).unwrap();
    assert!(holder.starts_with(&format!("process {} (", std::process::id())), "{holder}");
    drop(held);
    // Who only asks leaves the lock to the next, and makes nothing.
    assert_eq!(lock_holder(&path), None);
    assert!(env.storage().lock(&path).is_ok());
    assert_eq!(lock_holder(&scratch.0.join("none")), None);
    assert!(!scratch.0.join("none").exists());
}

/// Somebody removes the file of a lock that is held: a new one of the same name is another file.
#[test]
fn a_lock_file_that_is_removed_does_not_let_a_second_in() {
    let scratch = Scratch::new("lock-removed");
    let env = RealEnvironment::new(RealOptions::default()).unwrap();
    let path = scratch.0.join("untorn.lock");
    let held = env.storage().lock_by_name(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(lock_holder(&path).unwrap().contains("lock file somebody has removed"));
    let error = env.storage().lock_by_name(&path).err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    assert!(error.to_string().contains("lock file somebody has removed"), "{error}");
    drop(held);
    assert_eq!(lock_holder(&path), None);
    drop(env.storage().lock_by_name(&path).unwrap());
}

#[test]
fn names_are_listed_renamed_and_removed() {
    let scratch = Scratch::new("names");
    let env = RealEnvironment::new(RealOptions::default()).unwrap();
    let storage = env.storage();
    storage.create_dir_all(&scratch.0.join("d/e")).unwrap();
    drop(storage.open(&scratch.0.join("b"), OpenHow::CREATE_NEW).unwrap());
    assert!(storage.open(&scratch.0.join("b"), OpenHow::CREATE_NEW).is_err());
    storage.rename(&scratch.0.join("b"), &scratch.0.join("a")).unwrap();
    storage.sync_dir(&scratch.0).unwrap();
    let names: Vec<_> =
        storage.list(&scratch.0).unwrap().into_iter().map(|e| (e.name, e.is_directory)).collect();
    assert_eq!(names, [("a".to_owned(), false), ("d".to_owned(), true)]);
    storage.remove(&scratch.0.join("a")).unwrap();
    assert!(!storage.exists(&scratch.0.join("a")).unwrap());
    let error = storage.open(&scratch.0.join("a"), OpenHow::EXISTING).err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn registered_memory_is_read_and_written_like_any_other() {
    let scratch = Scratch::new("registered");
    // Declared before the environment: dropped after it, as `register_buffers` demands.
    let mut pool = AlignedBuf::zeroed(64 * 16384);
    let env = RealEnvironment::new(RealOptions::default()).unwrap();
    let storage = env.storage().clone();
    // SAFETY: `pool` outlives the environment and its storage.
    let registered = unsafe { storage.register_buffers(&[(pool.as_mut_ptr(), pool.len())]) };
    println!("registered: {registered} by {:?}", env.backend());
    let file = storage.open(&scratch.0.join("r"), OpenHow::CREATE_NEW).unwrap();
    pool[16384..2 * 16384].copy_from_slice(&page(1, 1));
    let frame = |number: usize, start: *mut u8| {
        // SAFETY: the frame lies in `pool`, which nobody touches until the request is done.
        unsafe { IoBuf::raw(start.wrapping_add(number * 16384), 16384) }
    };
    let start = pool.as_mut_ptr();
    block_on(write_async(&*storage, &file, frame(1, start), 0, true)).unwrap();
    let read = IoKind::Read { buf: frame(3, start), offset: 0 };
    block_on(submit_one(&*storage, &file, read)).unwrap();
    assert_eq!(&pool[3 * 16384..4 * 16384], &page(1, 1)[..]);
}

#[test]
fn requests_of_threads_that_end_are_still_completed() {
    for (env, scratch) in environments("ending") {
        let file = env.storage().open(&scratch.0.join("e"), OpenHow::CREATE_NEW).unwrap();
        let left = Arc::new(AtomicUsize::new(0));
        let all = Event::new();
        let problem = Arc::new(std::sync::Mutex::new(None));
        const THREADS: usize = 16;
        left.store(THREADS, Ordering::Release);
        for number in 0..THREADS {
            let (storage, file, left, all) = (env.storage().clone(), file.clone(), left.clone(), all.clone());
            let problem = problem.clone();
            let submit = move || {
                let kind = IoKind::Write {
                    buf: IoBuf::owned(page(number, 2)),
                    offset: number as u64 * 16384,
                    atomic: false,
                    sync: true,
                };
                let io = Io::new(kind, move |result| {
                    if let Err(error) = result {
                        *problem.lock().unwrap() = Some(error);
                    }
                    if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                        all.set();
                    }
                });
                storage.submit(vec![(file, io)]);
            };
            // The thread ends right after submitting.
            drop(std::thread::spawn(submit));
        }
        env.block_until(&all);
        assert!(problem.lock().unwrap().is_none(), "{problem:?}");
        for number in 0..THREADS {
            let read = block_on(read_async(&**env.storage(), &file, number as u64 * 16384, 16384)).unwrap();
            assert_eq!(&read[..], &page(number, 2)[..]);
        }
    }
}

#[test]
fn tasks_and_timers_run_in_the_background_and_shutdown_drops_them() {
    let env = Arc::new(RealEnvironment::new(RealOptions::default()).unwrap());
    let (first, second) = (Event::new(), Event::new());
    {
        let (env2, first, second) = (env.clone(), first.clone(), second.clone());
        env.spawn(
            "test",
            Box::pin(async move {
                first.wait().await;
                // A sleep dropped early leaves no timer behind; a real one passes.
                drop(env2.sleep(Duration::from_secs(3600)));
                env2.sleep(Duration::from_millis(1)).await;
                second.set();
            }),
        );
    }
    first.set();
    env.block_until(&second);
    let held = Arc::new(());
    let (env2, held2) = (env.clone(), held.clone());
    env.spawn(
        "forever",
        Box::pin(async move {
            env2.sleep(Duration::from_secs(3600)).await;
            drop(held2);
        }),
    );
    env.shutdown();
    assert_eq!(Arc::strong_count(&held), 1, "shutdown drops the tasks that are left");
    assert_eq!(Arc::strong_count(&env), 1);
}

#[test]
fn a_panicking_task_or_completion_does_not_stop_the_others() {
    let scratch = Scratch::new("panic");
    let env = RealEnvironment::new(RealOptions::default()).unwrap();
    env.spawn("broken", Box::pin(async { panic!("on purpose") }));
    let file = env.storage().open(&scratch.0.join("p"), OpenHow::CREATE_NEW).unwrap();
    env.storage().submit(vec![(file.clone(), Io::new(IoKind::Sync, |_| panic!("on purpose")))]);
    block_on(sync_async(&**env.storage(), &file)).unwrap();
    let event = Event::new();
    let event2 = event.clone();
    env.spawn("after", Box::pin(async move { event2.set() }));
    env.block_until(&event);
}

#[test]
fn a_full_file_system_is_explained() {
    for backend in [None, Some(Backend::Threads)] {
        let env = RealEnvironment::new(RealOptions { backend, buffered: true }).unwrap();
        let file = env.storage().open(std::path::Path::new("/dev/full"), OpenHow::EXISTING).unwrap();
        let error = file.write_at(&[1; 512], 0).unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("free some space"), "{error}");
        let write = write_async(&**env.storage(), &file, IoBuf::owned(page(1, 1)), 0, true);
        let error = block_on(write).unwrap_err().to_string();
        assert!(error.contains("16384 bytes at offset 0") && error.contains("free some space"), "{error}");
    }
}

#[test]
fn many_threads_share_the_ring() {
    for (env, scratch) in environments("shared") {
        let file = env.storage().open(&scratch.0.join("s"), OpenHow::CREATE_NEW).unwrap();
        const THREADS: usize = 6;
        const ROUNDS: usize = 40;
        file.write_zeros(0, (THREADS * ROUNDS * 16384) as u64).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (storage, file) = (env.storage().clone(), file.clone());
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let offset = ((thread * ROUNDS + round) * 16384) as u64;
                        let image = page(thread, round);
                        let write = write_async(
                            &*storage,
                            &file,
                            IoBuf::owned(image.clone()),
                            offset,
                            round % 10 == 0,
                        );
                        block_on(write).unwrap();
                        let read = block_on(read_async(&*storage, &file, offset, 16384)).unwrap();
                        assert_eq!(&read[..], &image[..]);
                    }
                });
            }
        });
        // A batch of syncs and writes with raw completions, dropped together with the environment: all are
        // answered.
        let answered = Arc::new(AtomicUsize::new(0));
        let batch = (0..64).map(|number| {
            let answered = answered.clone();
            let kind = IoKind::Write {
                buf: IoBuf::owned(page(number, 5)),
                offset: number as u64 * 16384,
                atomic: false,
                sync: number % 16 == 0,
            };
            (
                file.clone(),
                Io::new(kind, move |result| drop(result.map(|_| answered.fetch_add(1, Ordering::AcqRel)))),
            )
        });
        env.storage().submit(batch.collect());
        drop(env);
        assert_eq!(answered.load(Ordering::Acquire), 64);
    }
}

/// A program that opens one to read waits until somebody writes into it: a start would, at the name of a
/// table's file.
#[test]
fn a_pipe_is_not_opened() {
    for (env, scratch) in environments("pipe") {
        let path = scratch.0.join("t.ibd");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = env.storage().open(&path, OpenHow::EXISTING).err().expect("it is no file").to_string();
        assert!(error.contains("t.ibd") && error.contains("it is a pipe"), "{error}");
    }
}

/// What was in the range is gone, what was beside it is there, and the file is as long as the range needs.
#[test]
fn zeros_that_are_allocated_are_read() {
    for (env, scratch) in environments("allocate") {
        let file = env.storage().open(&scratch.0.join("t.ibd"), OpenHow::CREATE_NEW).unwrap();
        for number in 0..3 {
            file.write_at(&page(number, 1), number as u64 * 16384).unwrap();
        }
        let allocate = |from, to| block_on(allocate_zeros_async(&**env.storage(), &file, from, to)).unwrap();
        let allocated = allocate(2 * 16384, 6 * 16384);
        assert_eq!(allocated, file.allocate_zeros(2 * 16384, 6 * 16384).unwrap());
        if !allocated {
            // Not on this file system.
            assert_eq!(file.len().unwrap(), 3 * 16384);
            continue;
        }
        file.sync_data().unwrap();
        assert_eq!(file.len().unwrap(), 6 * 16384);
        let mut found = AlignedBuf::zeroed(16384);
        for number in 0..6 {
            file.read_at(&mut found, number as u64 * 16384).unwrap();
            let wanted = if number < 2 { page(number, 1) } else { AlignedBuf::zeroed(16384) };
            assert!(found[..] == wanted[..], "page {number}");
        }
        file.write_at(&page(4, 2), 4 * 16384).unwrap();
        file.read_at(&mut found, 4 * 16384).unwrap();
        assert!(found[..] == page(4, 2)[..]);
        assert!(allocate(16384, 16384), "nothing is always there");
    }
}
