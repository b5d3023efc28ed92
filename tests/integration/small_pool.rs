//! The smallest pool that may be asked for, with many times as much data, and more threads than it has room
//! for at a time: everything goes on, and is there after a close and an opening.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use untorn::{Database, KeyValue, Options};

const THREADS: u32 = 8;
const KEYS: u32 = 1200;

fn value(key: u32, length: usize) -> Vec<u8> {
    key.to_le_bytes().repeat(length)
}

/// Keys that are next to each other lie far apart.
fn key(thread: u32, number: u32) -> u64 {
    u64::from(number * THREADS + thread).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn in_threads(work: impl Fn(u32) + Sync) {
    let work = &work;
    std::thread::scope(|scope| (0..THREADS).for_each(|thread| _ = scope.spawn(move || work(thread))));
}

#[test]
fn the_smallest_pool_works() {
    let directory = std::env::temp_dir().join(format!("untorn-small-pool-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let options = || Options::new(&directory).buffer_pool_bytes(5 << 20);
    assert!(Database::open(options().buffer_pool_bytes((5 << 20) - 1)).is_err());
    let db = Database::open(options()).unwrap();
    let pairs: KeyValue<u64, Vec<u8>> = db.key_value("pairs").unwrap();
    in_threads(|thread| {
        for first in (0..KEYS).step_by(200) {
            let load = |t: &mut untorn::Transaction| {
                for number in first..first + 200 {
                    let length = if number % 400 == 7 { 20_000 } else { 60 };
                    pairs.put(t, key(thread, number), &value(number, length))?;
                }
                Ok::<_, untorn::Error>(())
            };
            db.transact(load).unwrap();
        }
    });
    in_threads(|thread| {
        for number in (0..KEYS).step_by(2) {
            db.transact(|t| pairs.remove(t, key(thread, number))).unwrap();
        }
    });
    db.close().unwrap();
    drop((pairs, db));

    let db = Database::open(options()).unwrap();
    let pairs: KeyValue<u64, Vec<u8>> = db.key_value("pairs").unwrap();
    assert_eq!(pairs.count(&mut db.begin()).unwrap(), u64::from(THREADS * KEYS / 2));
    in_threads(|thread| {
        let mut t = db.begin();
        for number in 0..KEYS {
            let length = if number % 400 == 7 { 20_000 } else { 60 };
            let expected = (number % 2 == 1).then(|| value(number, length));
            assert!(pairs.get(&mut t, key(thread, number)).unwrap() == expected, "{thread} {number}");
        }
    });
    db.close().unwrap();
    std::fs::remove_dir_all(directory).unwrap();
}
