//! The controller against a model of a pool: pages that become dirty by a load, in the order of their first
//! change, and a storage that writes what it is told at once.

use super::*;
use crate::flush::age_histogram::AgeHistogram;
use crate::flush::restart_time::Allowed;
use std::collections::{HashMap, HashSet, VecDeque};

const LOOKS: u64 = 50;
const LOOK: Duration = Duration::from_millis(20);
/// Bytes of log of one change.
const CHANGE: u64 = 400;

const UNBOUNDED: Allowed = Allowed { age: 1e18, dirty: 1e18, is_bound: false };

/// Which page the next change is of.
#[derive(Clone, Copy)]
enum Touches {
    /// Any of this many.
    Any(u64),
    /// One after the other, this many changes for each.
    Rows { for_each: u64 },
}

struct Pool {
    touches: Touches,
    lsn: u64,
    capacity: u64,
    list: VecDeque<(u64, u64)>,
    dirty: HashSet<u64>,
    /// Where each page was changed last.
    changed: HashMap<u64, u64>,
    ages: AgeHistogram,
    random: u64,
    allowed: Allowed,
    ahead: Option<f64>,
    room: Room,
    controller: Controller,
}

const ROOM: Room = Room { paced: usize::MAX, urgent: usize::MAX };

impl Pool {
    fn new(touches: Touches, capacity: u64) -> Pool {
        Pool {
            touches,
            lsn: 1,
            capacity,
            list: VecDeque::new(),
            dirty: HashSet::new(),
            changed: HashMap::new(),
            ages: AgeHistogram::new(capacity),
            random: 0x9e37_79b9_7f4a_7c15,
            allowed: UNBOUNDED,
            ahead: None,
            room: ROOM,
            controller: Controller::new(None),
        }
    }

    fn next_page(&mut self) -> u64 {
        match self.touches {
            Touches::Any(pages) => {
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                self.random % pages
            }
            Touches::Rows { for_each } => self.lsn / CHANGE / for_each,
        }
    }

    fn oldest(&self) -> u64 {
        self.list.front().map_or(self.lsn, |(start, _)| *start)
    }

    fn age(&self) -> u64 {
        self.lsn - self.oldest()
    }

    /// One look of the cleaner after 20 ms of load. Returns what was decided.
    fn look(&mut self, log_per_second: u64) -> Decision {
        let end = self.lsn + log_per_second / LOOKS;
        while self.lsn < end {
            let page = self.next_page();
            if self.dirty.insert(page) {
                self.list.push_back((self.lsn, page));
                self.ages.enter(self.lsn, self.changed.get(&page).copied().unwrap_or(0));
            }
            self.changed.insert(page, self.lsn + CHANGE);
            self.lsn += CHANGE;
        }
        let (oldest, lsn) = (self.oldest(), self.lsn);
        let (limit, bound) = (self.allowed.limit(self.capacity), self.allowed.bound(self.capacity));
        let goal = self.controller.goal(limit);
        self.ages.fit(limit);
        let decision = self.controller.decide(Load {
            elapsed: LOOK,
            lsn,
            age: lsn - oldest,
            room_wanted: 0,
            capacity: self.capacity,
            limit,
            bound,
            pressure: self.ages.pressure(lsn, goal),
            overdue: self.ages.older_than(lsn, async_age(bound)),
            dirty: self.list.len(),
            hot: self.ages.hot(),
            dirty_max: self.allowed.dirty,
            restart: (lsn - oldest) as f64 / self.allowed.age,
            ahead: self.ahead,
            room: self.room,
        });
        for (start, page) in self.list.drain(..decision.pages.min(self.list.len())) {
            self.dirty.remove(&page);
            self.ages.leave(start);
        }
        decision
    }

    fn seconds(&mut self, seconds: u64, log_per_second: u64) {
        (0..seconds * LOOKS).for_each(|_| {
            self.look(log_per_second);
        });
    }

    /// Pages written in a second of that load.
    fn second(&mut self, log_per_second: u64) -> usize {
        (0..LOOKS).map(|_| self.look(log_per_second).pages).sum()
    }
}

const MIB: u64 = 1 << 20;

/// All pages of the working set become dirty in the first seconds. InnoDB writes nothing until the log is
/// nearly full, then everything at once, and again with each lap.
#[test]
fn pages_that_became_dirty_together_are_written_in_an_even_stream() {
    let mut pool = Pool::new(Touches::Any(8000), 64 * MIB);
    let written: Vec<usize> = (0..100).map(|_| pool.second(4 * MIB)).collect();
    // A lap of the log takes 16 s: each page once in it.
    let even = 8000.0 / (64.0 * 29.0 / 32.0 / 4.0);
    for (second, pages) in written.iter().enumerate().skip(6) {
        let ratio = *pages as f64 / even;
        assert!(
            (0.75..1.3).contains(&ratio),
            "second {second}: {pages} pages, {even:.0} expected: {written:?}"
        );
    }
}

#[test]
fn the_age_settles_just_below_what_is_safe() {
    for touches in [Touches::Any(8000), Touches::Any(100_000), Touches::Rows { for_each: 8 }] {
        let mut pool = Pool::new(touches, 64 * MIB);
        for second in 0..120 {
            pool.second(4 * MIB);
            let part = pool.age() as f64 / pool.capacity as f64;
            assert!(part < 0.9375, "second {second}: {part}");
            assert!(second < 60 || part > 0.8, "second {second}: {part}");
        }
    }
}

#[test]
fn a_burst_never_fills_the_log() {
    let mut pool = Pool::new(Touches::Rows { for_each: 4 }, 100 * MIB);
    for step in 0..120 * LOOKS {
        pool.look(if (step / 250) % 2 == 0 { 2 * MIB } else { 40 * MIB });
        assert!(pool.age() < pool.capacity / 32 * 31, "step {step}: {}", pool.age());
    }
}

#[test]
fn a_target_for_the_restart_keeps_the_log_short() {
    let mut pool = Pool::new(Touches::Rows { for_each: 8 }, 100 * MIB);
    pool.allowed = Allowed { age: 20.0 * MIB as f64, ..UNBOUNDED };
    for second in 0..60 {
        pool.second(4 * MIB);
        assert!(pool.age() < 22 * MIB, "second {second}: {}", pool.age());
    }
    // The same for pages, which a restart has to read.
    let mut pool = Pool::new(Touches::Any(20_000), 100 * MIB);
    pool.allowed = Allowed { dirty: 5000.0, ..UNBOUNDED };
    pool.seconds(30, MIB / 2);
    assert!(pool.list.len() < 7000, "{}", pool.list.len());
    // Negative control.
    pool.allowed = UNBOUNDED;
    pool.seconds(60, MIB / 2);
    assert!(pool.list.len() > 7000, "{}", pool.list.len());
}

#[test]
fn a_small_goal_in_a_large_log_is_held_evenly() {
    for touches in [Touches::Rows { for_each: 8 }, Touches::Any(20_000)] {
        let mut pool = Pool::new(touches, 4096 * MIB);
        pool.allowed.age = 130.0 * MIB as f64;
        pool.seconds(60, 8 * MIB);
        let seconds: Vec<usize> = (0..60).map(|_| pool.second(8 * MIB)).collect();
        let (least, most) = (seconds.iter().min(), seconds.iter().max());
        assert!(
            most.zip(least).is_some_and(|(most, least)| *most as f64 / (*least as f64) < 1.2),
            "{seconds:?}"
        );
        assert!((110 * MIB..120 * MIB).contains(&pool.age()), "{}", pool.age());
    }
}

#[test]
fn an_idle_server_becomes_clean() {
    let mut pool = Pool::new(Touches::Any(4000), 64 * MIB);
    pool.seconds(5, 5 * MIB);
    assert!(!pool.list.is_empty());
    pool.seconds(20, 0);
    assert!(pool.list.is_empty(), "{}", pool.list.len());
}

#[test]
fn a_light_load_leaves_time_to_write_ahead() {
    let ages = [None, Some(2000.0)].map(|ahead| {
        let mut pool = Pool::new(Touches::Rows { for_each: 8 }, 100 * MIB);
        pool.ahead = ahead;
        pool.seconds(120, MIB);
        pool.age()
    });
    assert!(ages[1] < 8 * MIB, "{ages:?}");
    // Negative control.
    assert!(ages[0] > 60 * MIB, "{ages:?}");
}

/// A set of pages that all change with every few hundred kilobytes of log. Written once for a goal's worth of
/// log they cost little; written as soon as there is time, the more the more time there is.
#[test]
fn hot_pages_are_not_written_again_and_again() {
    let mut pool = Pool::new(Touches::Any(1000), 50 * MIB);
    pool.ahead = Some(2000.0);
    let seconds = 120;
    let written: usize = (0..seconds).map(|_| pool.second(10 * MIB)).sum();
    let laps = 10.0 * f64::from(seconds) / (50.0 - 20.0);
    assert!((written as f64) < 1.5 * laps * 1000.0, "{written} pages in {laps} laps");
    assert!((written as f64) > 0.5 * laps * 1000.0, "{written} pages in {laps} laps: the log would fill");
}

/// A counter that a light load changes for hours must not make a restart long.
#[test]
fn a_light_load_on_hot_pages_keeps_the_restart_short() {
    let mut pool = Pool::new(Touches::Any(20), 64 * MIB);
    pool.allowed = Allowed { age: 80.0 * MIB as f64, ..UNBOUNDED };
    pool.ahead = Some(2000.0);
    let written: usize = (0..300).map(|_| pool.second(MIB / 4)).sum();
    assert!(pool.age() < 8 * MIB, "{}", pool.age());
    assert!(written < 400, "{written} pages");
}

#[test]
fn a_batch_is_spread_over_the_time_to_the_next() {
    let mut pool = Pool::new(Touches::Any(8000), 64 * MIB);
    pool.seconds(30, 4 * MIB);
    let steps: Vec<Decision> = (0..10 * LOOKS).map(|_| pool.look(4 * MIB)).collect();
    let writing: Duration = steps.iter().filter(|step| step.pages > 0).map(|step| step.spread).sum();
    assert!(steps.iter().all(|step| step.urgency == Urgency::Paced));
    assert!((6..10).contains(&writing.as_secs()), "{writing:?} of 10 s");
}

#[test]
fn the_cap_holds_until_the_log_is_nearly_full() {
    let mut pool = Pool::new(Touches::Rows { for_each: 8 }, 100 * MIB);
    pool.controller = Controller::new(Some(500));
    let mut passed_over = false;
    for _ in 0..60 {
        let mut second = 0;
        for _ in 0..LOOKS {
            let decision = pool.look(10 * MIB);
            passed_over |= decision.urgency == Urgency::Async;
            assert!(decision.urgency < Urgency::Sync, "writers would wait, and as much be written");
            second += decision.pages;
        }
        assert!(passed_over || second <= 1010, "{second}");
    }
    assert!(passed_over, "500 pages a second are too few for this load");
}

/// What the cap leaves is written in batches as large as others, and what makes frames free counts.
#[test]
fn a_cap_makes_no_more_pieces_of_what_is_written() {
    let steps = |charged: usize| {
        let mut pool = Pool::new(Touches::Rows { for_each: 8 }, 100 * MIB);
        pool.seconds(40, 4 * MIB);
        pool.controller.set_io_capacity_max(Some(1000));
        let mut steps = Vec::new();
        for look in 0..4 * LOOKS {
            if look % 10 == 0 {
                pool.controller.charge(charged / (LOOKS as usize / 10));
            }
            steps.push(pool.look(4 * MIB).pages);
        }
        steps
    };
    let alone = steps(0);
    assert!(alone.iter().sum::<usize>() <= 4100, "{alone:?}");
    assert!(alone.iter().all(|pages| *pages == 0 || *pages >= 64), "{alone:?}");
    let beside: usize = steps(600).iter().sum();
    assert!((1000..=1700).contains(&beside), "{beside}");
}

/// Pages are not written fast enough for the target: as much as the storage takes, long before the log is
/// full. A target that nobody set only steers.
#[test]
fn a_target_that_was_set_is_a_bound_for_the_age() {
    let urgency_at = |is_bound, age: u64| {
        let mut pool = Pool::new(Touches::Rows { for_each: 8 }, 2048 * MIB);
        pool.allowed = Allowed { age: 64.0 * MIB as f64, is_bound, ..UNBOUNDED };
        pool.room = Room { paced: 0, urgent: 0 };
        pool.seconds(age / (4 * MIB), 4 * MIB);
        pool.room = ROOM;
        let decision = pool.look(4 * MIB);
        (decision.urgency, decision.pages > 4 * STEP_MIN as usize)
    };
    assert_eq!(urgency_at(true, 56 * MIB).0, Urgency::Paced);
    assert_eq!(urgency_at(true, 60 * MIB).0, Urgency::Async);
    assert_eq!(urgency_at(true, 100 * MIB), (Urgency::Sync, true));
    assert_eq!(urgency_at(false, 100 * MIB).0, Urgency::Paced);
}

/// What was written before there was a cap is not held against it, and what could not be started is left.
#[test]
fn a_cap_that_is_set_later_counts_from_then_on() {
    let mut pool = Pool::new(Touches::Any(8000), 64 * MIB);
    let before: usize = (0..60).map(|_| pool.second(4 * MIB)).sum();
    assert!(before > 5000, "{before} pages");
    pool.controller.set_io_capacity_max(Some(500));
    let capped: Vec<usize> = (0..4).map(|_| pool.second(4 * MIB)).collect();
    assert!(capped.iter().all(|pages| (300..=600).contains(pages)), "{capped:?}");
    let mut controller = Controller::new(Some(500));
    controller.allowance = 100.0;
    let decision = Decision { pages: 60, urgency: Urgency::Paced, spread: Duration::ZERO };
    controller.give_back(decision, 40);
    assert_eq!((controller.allowance, controller.credit), (140.0, 40.0));
}

/// Where all batches are under way nothing is started, and what was due then is due still.
#[test]
fn what_found_no_room_is_written_when_there_is_some() {
    let mut pool = Pool::new(Touches::Rows { for_each: 8 }, 100 * MIB);
    pool.seconds(60, 4 * MIB);
    let usual = pool.second(4 * MIB);
    pool.room.paced = 0;
    assert_eq!(pool.second(4 * MIB), 0);
    pool.room.paced = 128;
    let after = pool.second(4 * MIB);
    assert!(after as f64 > 1.8 * usual as f64, "{after} pages after a second without, {usual} before");
    assert!((0..LOOKS).all(|_| pool.look(4 * MIB).pages <= 128));
}
