//! Clients that run transactions in the standard's mix, and what came of them.

use super::Door;
use super::load::Scale;
use super::transactions::{Client, Kind, Outcome};
use anyhow::{Result, anyhow};
use disk::Random;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A load.
pub struct Load<'d> {
    pub door: &'d Door,
    pub scale: Scale,
    pub threads: usize,
    pub time: Duration,
    pub seed: u64,
}

/// Transactions of one kind.
#[derive(Clone, Default)]
pub struct Figure {
    /// Of those that were committed, in milliseconds.
    pub latencies: Vec<f64>,
}

impl Figure {
    /// The time that 95 of 100 took at most; not a number without any.
    pub fn p95(&self) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_by(f64::total_cmp);
        let at = (sorted.len() * 95).div_ceil(100).saturating_sub(1);
        sorted.get(at).copied().unwrap_or(f64::NAN)
    }
}

/// What came of a load.
#[derive(Clone, Default)]
pub struct Figures {
    kinds: [Figure; 5],
    /// Transactions that were rolled back as a deadlock's victim, or had waited too long for a lock.
    pub deadlocks: u64,
    seconds: f64,
}

impl Figures {
    pub fn of(&self, kind: Kind) -> &Figure {
        &self.kinds[kind as usize]
    }

    /// Committed transactions.
    pub fn transactions(&self) -> usize {
        self.kinds.iter().map(|figure| figure.latencies.len()).sum()
    }

    /// New orders in a minute.
    pub fn per_minute(&self) -> f64 {
        self.of(Kind::NewOrder).latencies.len() as f64 * 60.0 / self.seconds
    }

    fn add(&mut self, other: Figures) {
        for (kind, figure) in self.kinds.iter_mut().zip(other.kinds) {
            kind.latencies.extend(figure.latencies);
        }
        self.deadlocks += other.deadlocks;
    }
}

impl Load<'_> {
    /// Runs it for its time.
    pub fn run(&self) -> Result<Figures> {
        let ending = AtomicBool::new(false);
        self.clients(&ending, false, || ending.store(true, Ordering::SeqCst))
    }

    /// Runs it for its time, and then until `take_away` has left the clients without a server.
    pub fn until(&self, take_away: impl FnOnce()) -> Result<Figures> {
        let ending = AtomicBool::new(false);
        self.clients(&ending, true, || {
            ending.store(true, Ordering::SeqCst);
            take_away();
        })
    }

    /// Calls `end` when the time is over. A client stops when it is told to, or, where the server is taken
    /// away, at the first error after that.
    fn clients(&self, ending: &AtomicBool, taken_away: bool, end: impl FnOnce()) -> Result<Figures> {
        let mut random = Random::new(self.seed);
        let mut clients = Vec::new();
        for number in 0..self.threads {
            let home = number % self.scale.warehouses + 1;
            clients.push(Client::new(self.door, self.scale, home, Random::new(random.next_u64()))?);
        }
        let begin = Instant::now();
        let mut all = thread::scope(|scope| {
            let running: Vec<_> = clients
                .into_iter()
                .map(|client| scope.spawn(move || work(client, ending, taken_away)))
                .collect();
            let late = begin + self.time;
            // A client that fails ends the load.
            while Instant::now() < late && !running.iter().any(|client| client.is_finished()) {
                thread::sleep(Duration::from_millis(5));
            }
            end();
            let mut all = Figures::default();
            for client in running {
                all.add(client.join().map_err(|_| anyhow!("a client panicked"))??);
            }
            anyhow::Ok(all)
        })?;
        all.seconds = begin.elapsed().as_secs_f64();
        Ok(all)
    }
}

fn work(mut client: Client, ending: &AtomicBool, taken_away: bool) -> Result<Figures> {
    let mut figures = Figures::default();
    while taken_away || !ending.load(Ordering::SeqCst) {
        let kind = client.next_kind();
        let begin = Instant::now();
        match client.run(kind) {
            Ok(Outcome::Committed) => {
                figures.kinds[kind as usize].latencies.push(begin.elapsed().as_secs_f64() * 1e3);
            }
            Ok(Outcome::AsAsked) => {}
            Ok(Outcome::Deadlock) => figures.deadlocks += 1,
            Err(_) if taken_away && ending.load(Ordering::SeqCst) => break,
            Err(error) => return Err(error.context(format!("{kind}"))),
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_p95_is_the_value_that_five_of_a_hundred_exceed() {
        let figure = Figure { latencies: (1..=100).rev().map(f64::from).collect() };
        assert_eq!(figure.p95(), 95.0);
        assert_eq!(Figure { latencies: vec![3.0] }.p95(), 3.0);
        assert!(Figure::default().p95().is_nan());
    }
}
