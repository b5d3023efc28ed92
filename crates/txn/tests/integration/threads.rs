//! Real threads on a real directory: the same sums must hold, and nothing may hang.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use disk::{Environment, Random, RealEnvironment, RealOptions, block_on};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use untorn_txn::*;

#[test]
fn threads_transfer_and_scan_without_losing_money() {
    const ACCOUNTS: i32 = 40;
    let directory = std::env::temp_dir().join(format!("untorn-txn-threads-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let env: Arc<dyn Environment> = Arc::new(RealEnvironment::new(RealOptions::default()).unwrap());
    let engine = Engine::create(env, &directory, 4 << 20, true);
    let mut first = engine.session();
    block_on(async {
        first.begin();
        for id in 0..ACCOUNTS {
            first.insert_all(id, 1000, Some(id), None).await.unwrap();
        }
        first.commit().await;
    });
    let (transfers, deadlocks) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs(3);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let mut session = engine.session();
            let (transfers, deadlocks) = (&transfers, &deadlocks);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                while Instant::now() < end {
                    let result = block_on(transfer(&mut session, &mut random, ACCOUNTS));
                    match result {
                        Ok(()) => transfers.fetch_add(1, Ordering::Relaxed),
                        Err(Error::Deadlock) => {
                            block_on(session.rollback());
                            deadlocks.fetch_add(1, Ordering::Relaxed)
                        }
                        Err(error) => panic!("{error}"),
                    };
                    let rows = block_on(session.scan_k(KeyRange::all(), ReadMode::Consistent));
                    let sum: i32 = rows.iter().map(|row| row.k).sum();
                    assert_eq!((sum, rows.len()), (ACCOUNTS * 1000, ACCOUNTS as usize), "{rows:?}");
                    block_on(session.commit());
                }
            });
        }
    });
    println!(
        "{} transfers, {} deadlocks",
        transfers.load(Ordering::Relaxed),
        deadlocks.load(Ordering::Relaxed)
    );
    assert!(transfers.load(Ordering::Relaxed) > 0);
    block_on(engine.system.purge_all()).unwrap();
    assert_eq!(engine.system.status().locks, 0);
    assert_eq!(engine.system.status().active, 0);
    block_on(engine.system.shutdown()).unwrap();
    block_on(engine.store.shutdown()).unwrap();
    let _ = std::fs::remove_dir_all(&directory);
}

async fn transfer(session: &mut Session, random: &mut Random, accounts: i32) -> Result<(), Error> {
    let from = random.below(accounts as usize) as i32;
    let to = (from + 1 + random.below(accounts as usize - 1) as i32) % accounts;
    let amount = random.below(20) as i32;
    session.begin();
    let a = session.lock(from).await?.unwrap();
    session.update(from, a - amount).await?;
    let b = session.lock(to).await?.unwrap();
    session.update(to, b + amount).await?;
    if random.one_in(3) {
        session.delete(to).await?;
        session.insert_all(to, b + amount, Some(to), None).await?;
    }
    if random.one_in(10) {
        session.rollback().await
    } else {
        session.trx.commit(Durability::Write).await?
    }
    Ok(())
}
