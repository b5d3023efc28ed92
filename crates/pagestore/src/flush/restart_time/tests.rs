use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A machine that reads 100 MiB of log, 2,000 pages, 100 files and 500 copies a second.
fn machine(target: Option<Duration>) -> RestartTime {
    let time = RestartTime::new(target, RecoveryRates::default());
    time.recovered(Kind::Log, 100 << 20, SECOND);
    time.recovered(Kind::Pages, 2000, SECOND);
    time.recovered(Kind::Files, 200, 2 * SECOND);
    time.recovered(Kind::Copies, 500, SECOND);
    time
}

/// A pool that is larger than what is dirty.
fn found(log: u64, pages: u64) -> Found {
    Found {
        log,
        pages,
        dirty: pages,
        became_dirty: pages,
        pages_at_a_time: 1 << 20,
        log_at_a_time: 1 << 40,
        frames: 20_000,
        ..Found::default()
    }
}

fn seconds(time: &RestartTime, found: &Found) -> f64 {
    time.estimate(found).as_secs_f64()
}

#[test]
fn rates_are_what_a_recovery_showed() {
    let time = machine(None);
    assert!((seconds(&time, &found(200 << 20, 2500)) - 3.25).abs() < 1e-6);
    // A disk that is slow is believed.
    let slow = RestartTime::new(None, RecoveryRates::default());
    slow.recovered(Kind::Pages, 5000, 1000 * SECOND);
    assert!((seconds(&slow, &found(0, 2000)) - 400.0).abs() < 1e-6);
    assert_eq!(time.take_learned().map(|rates| rates.of(Kind::Pages)), Some(Some(2000.0)));
    assert_eq!(time.take_learned(), None);
    let again = RestartTime::new(None, RecoveryRates::parse("pages 50"));
    assert!((seconds(&again, &found(0, 100)) - 2.0).abs() < 1e-6 && again.take_learned().is_none());
}

#[test]
fn what_does_not_depend_on_the_age_counts_too() {
    let time = machine(None);
    let now = Found { search: 50 << 20, files: 300, copies: 250, ..found(0, 2000) };
    assert!((seconds(&time, &now) - (0.5 + 3.0 + 0.5 + 1.0)).abs() < 1e-6);
    // No more files and copies than pages.
    assert!(seconds(&time, &Found { pages: 0, ..now }) < 0.51);
}

/// A pool of 64 MiB, a log of 128 MiB that names 90,000 pages, which became dirty 300,000 times.
#[test]
fn what_recovery_cannot_hold_at_once_is_read_again_and_written() {
    let time = machine(None);
    let small = Found {
        became_dirty: 300_000,
        pages_at_a_time: 2730,
        log_at_a_time: 21 << 20,
        frames: 4096,
        ..found(124 << 20, 90_000)
    };
    let estimate = seconds(&time, &small);
    assert!((270.0..310.0).contains(&estimate), "{estimate}");
    // Continuous: no jump where it begins.
    let just = Found { pages_at_a_time: 90_001, log_at_a_time: 1 << 40, frames: 90_001, ..small };
    // Pages that are in their files need not be written.
    assert!(seconds(&time, &Found { dirty: 4096, ..small }) < 0.6 * estimate);
    let over = Found { pages_at_a_time: 89_900, frames: 89_900, ..just };
    assert!(seconds(&time, &over) - seconds(&time, &just) < 0.5);
    // Only the log is too much: its rest is read again.
    let log_only = Found { log_at_a_time: 62 << 20, ..just };
    assert!((seconds(&time, &log_only) - seconds(&time, &just) - 0.62).abs() < 0.01);
}

/// A batch has as many pages as its changes name, where nothing else bounds it: a log that is a little longer
/// than one batch makes a restart a little longer.
#[test]
fn a_log_that_is_longer_than_one_batch_by_a_little_takes_a_little_longer() {
    let time = machine(None);
    let fits = Found { pages_at_a_time: u64::MAX, log_at_a_time: 85 << 20, ..found(85 << 20, 20_000) };
    let over = Found { log: 102 << 20, ..fits };
    assert!(seconds(&time, &over) < 1.3 * seconds(&time, &fits), "{}", seconds(&time, &over));
}

#[test]
fn by_itself_the_target_is_the_time_to_read_the_pool_and_a_little() {
    let time = machine(None);
    assert_eq!(time.target(20_000), Duration::from_secs(20));
    // A pool full of dirty pages leaves the log the ten seconds; fewer leave it more.
    let allowed = time.allowed(&found(100 << 20, 20_000));
    assert_eq!((allowed.age as u64 >> 20, allowed.dirty, allowed.is_bound), (1000, f64::INFINITY, false));
    assert_eq!(time.allowed(&found(100 << 20, 0)).age as u64 >> 20, 2000);
    // More pages than the pool has: less log.
    let many = Found { pages_at_a_time: 13_000, ..found(400 << 20, 60_000) };
    assert!(time.allowed(&many).age < (200 << 20) as f64, "{:?}", time.allowed(&many));
    assert_eq!(time.allowed(&many).bound(1 << 30), 1 << 30, "it steers and is no bound");
    time.set_target(Some(Duration::from_secs(3)));
    assert_eq!(time.target(20_000), Duration::from_secs(3));
    assert!(time.allowed(&many).bound(1 << 30) < 1 << 30);
}

#[test]
fn the_extreme_targets_are_harmless() {
    for target in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(u64::MAX), Duration::MAX] {
        let time = RestartTime::new(Some(target), RecoveryRates::parse("log 0.001\npages 0.001"));
        assert!(time.target(usize::MAX) >= SECOND, "{target:?}");
        for found in [Found::default(), found(u64::MAX, u64::MAX)] {
            let allowed = time.allowed(&found);
            assert!(allowed.age.is_finite() && allowed.age > 0.0, "{target:?}: {allowed:?}");
            assert!(allowed.dirty.is_finite() && allowed.dirty >= 0.0, "{target:?}: {allowed:?}");
            assert!(time.estimate(&found) <= Duration::from_secs_f64(TARGET_MAX));
            let capacity = 64 << 20;
            assert!((capacity / 32..=capacity).contains(&allowed.limit(capacity)), "work goes on");
        }
    }
}

#[test]
fn what_is_allowed_keeps_the_target() {
    let time = machine(Some(Duration::from_secs(8)));
    let fixed = Found { search: 100 << 20, files: 50, ..Found::default() };
    for pages in [0, 100, 4000, 9700, 12_000] {
        let with_log = |log| Found { search: fixed.search, files: fixed.files, ..found(log, pages) };
        // The log with which it is just kept, and no other, may be as old as it is.
        let log = ((8.0 - seconds(&time, &with_log(0))) * (100 << 20) as f64) as u64;
        assert!((seconds(&time, &with_log(log)) - 8.0).abs() < 0.01);
        let age = |log| time.allowed(&with_log(log)).age / log as f64;
        assert!((age(log) - 1.0).abs() < 0.001, "{pages} pages: {}", age(log));
        assert!(age(log / 10 * 9) > 1.001 && age(log / 10 * 11) < 0.999, "{pages} pages");
    }
    // More pages than the target has time for: the age at which fewer are named.
    let allowed = time.allowed(&Found { frames: 30_000, ..found(100 << 20, 24_000) });
    assert_eq!(((allowed.age * 13.0 / 8.0) as u64 + 1) >> 20, 100);
    assert_eq!(allowed.dirty, 12_000.0);
    // Few pages: all but what they take is for the log.
    let few = time.allowed(&found(100 << 20, 200)).age;
    assert!(few > (760 << 20) as f64, "{few}");
}

#[test]
fn a_volume_that_becomes_slow_is_noticed_by_what_it_reads() {
    let time = machine(Some(Duration::from_secs(8)));
    let now = found(0, 2000);
    time.shown(50_000.0, SECOND);
    assert_eq!(seconds(&time, &now), 1.0, "what recovery does is no more than it was");
    (0..60).for_each(|second| time.shown(200.0, second * SECOND));
    assert!((seconds(&time, &now) - 10.0).abs() < 0.1, "{}", seconds(&time, &now));
    time.forget_old(100 * SECOND);
    assert!(seconds(&time, &now) > 9.0);
    time.forget_old(1000 * SECOND);
    assert_eq!(seconds(&time, &now), 1.0);
    // Before there was a recovery it is better than a guess.
    let new = RestartTime::new(None, RecoveryRates::default());
    new.shown(400.0, SECOND);
    new.forget_old(10_000 * SECOND);
    assert_eq!(seconds(&new, &now), 5.0);
}
