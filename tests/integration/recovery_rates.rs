//! How fast recoveries were before is known to the next start, and what else is in that file stops nobody.

use std::path::Path;
use std::time::Duration;

use disk::{Environment, OpenHow, SimulatedEnvironment};
use untorn::Options;
use untorn::asynchronous::Database;

/// The target that the machine gives itself after a start that finds this file.
fn target_with(content: &[u8]) -> Duration {
    let environment = SimulatedEnvironment::new(1);
    let storage = environment.storage().clone();
    environment.run_until_complete(async {
        let open =
            || Database::open_in(environment.clone(), Options::new("/data").buffer_pool_bytes(32 << 20));
        open().await.unwrap().close().await.unwrap();
        let path = Path::new("/data/untorn-recovery-rates");
        let file = storage.open(path, OpenHow::CREATE_NEW.buffered()).unwrap();
        file.write_at(content, 0).unwrap();
        drop(file);
        let database = open().await.unwrap();
        let target = database.store().recovery_target();
        database.close().await.unwrap();
        target
    })
}

#[test]
fn the_rates_of_recoveries_before_are_believed() {
    let guessed = target_with(b"");
    let slow = target_with(b"log 50000000\npages 100 120\n");
    // Ten seconds, and the pool at that rate instead of 2000 pages a second.
    let seconds = Duration::from_secs(10);
    assert!((slow - seconds).abs_diff(20 * (guessed - seconds)) < Duration::from_millis(10), "{slow:?}");
    for nonsense in [&b"pages none"[..], &[0xff; 100], &[b'7'; 10_000]] {
        assert_eq!(target_with(nonsense), guessed);
    }
}
