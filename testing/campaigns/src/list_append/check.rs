//! Finds the anomalies of a history, and says which of them its isolation level forbids.
//!
//! Every element is appended once, lists only grow, and the last state of a list is the order of its appends.
//! From there: an append comes before the next one (ww), the append of the last element that was read before
//! the read (wr), a read before the append of the first element it did not see (rw). The idea is Elle's
//! (Kingsbury, Alvaro: *Elle: Inferring Isolation Anomalies from Experimental Observations*, 2020).
//!
//! What InnoDB's levels promise for these statements:
//!
//! | level | forbidden | allowed, and looked for |
//! |---|---|---|
//! | all | lost or doubled appends, appends of a transaction that was rolled back, half a transaction, own appends not seen, cycles of appends (G0) | |
//! | READ UNCOMMITTED | | reads of what was rolled back or changed again (G1a, G1b) |
//! | READ COMMITTED and above | G1a, G1b, cycles of appends and reads (G1c), reads that miss what was acknowledged before the statement began | at READ COMMITTED two reads from different times (read skew: G-single of a transaction that only reads) |
//! | REPEATABLE READ | read skew; reads that miss what was acknowledged before BEGIN | an append after a read of something older (G-single) |
//! | SERIALIZABLE | every cycle, with real time in it | |
//!
//! A commit is visible before it is durable. A transaction that only reads may therefore be acknowledged
//! after it saw one that a crash then takes away: InnoDB allows this, and so it is counted and not forbidden.
//! One that appended anything waits for the log, so that it may not.

use super::graph::{Dependency, Graph};
use super::history::{Action, Element, History, Key, Outcome, Time, Transaction};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// An isolation level, by the name MySQL gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Level {
    /// READ UNCOMMITTED.
    ReadUncommitted,
    /// READ COMMITTED.
    ReadCommitted,
    /// REPEATABLE READ.
    RepeatableRead,
    /// SERIALIZABLE.
    Serializable,
}

impl Level {
    /// From the weakest to the strongest.
    pub const ALL: [Level; 4] =
        [Level::ReadUncommitted, Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

    /// As it stands in SET TRANSACTION.
    pub fn sql(self) -> &'static str {
        match self {
            Level::ReadUncommitted => "READ UNCOMMITTED",
            Level::ReadCommitted => "READ COMMITTED",
            Level::RepeatableRead => "REPEATABLE READ",
            Level::Serializable => "SERIALIZABLE",
        }
    }

    /// The anomaly that this level allows, and that a history of many transactions on few lists must
    /// therefore hold.
    pub fn expected(self) -> Option<Anomaly> {
        match self {
            Level::ReadUncommitted => Some(Anomaly::DirtyRead),
            Level::ReadCommitted => Some(Anomaly::ReadSkew),
            Level::RepeatableRead => Some(Anomaly::StaleWrite),
            Level::Serializable => None,
        }
    }

    fn forbids(self, anomaly: Anomaly) -> bool {
        match anomaly {
            Anomaly::Contents | Anomaly::OwnAppends | Anomaly::WriteCycle => true,
            Anomaly::DirtyRead | Anomaly::InformationCycle | Anomaly::StaleRead => {
                self >= Level::ReadCommitted
            }
            Anomaly::UndurableRead => false,
            Anomaly::ReadSkew => self >= Level::RepeatableRead,
            Anomaly::StaleWrite | Anomaly::Cycle => self >= Level::Serializable,
        }
    }
}

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// The lists do not hold what was committed, once each and whole transactions.
    Contents,
    /// A transaction did not see what it had appended itself.
    OwnAppends,
    /// A cycle of appends (G0).
    WriteCycle,
    /// A read of what was rolled back, or of an intermediate state (G1a, G1b).
    DirtyRead,
    /// A transaction that only reads saw a commit that a crash took away before it was durable.
    UndurableRead,
    /// A cycle of appends and of reads of them (G1c).
    InformationCycle,
    /// A read missed what had been acknowledged before.
    StaleRead,
    /// A transaction that only reads saw one effect and missed an earlier one (G-single).
    ReadSkew,
    /// A transaction appended on the ground of something older (G-single, lost update).
    StaleWrite,
    /// Any other cycle (G2-item, and those closed by real time).
    Cycle,
}

/// What was found: how often, and the first of each kind described.
#[derive(Debug, Default)]
pub struct Findings {
    pub counts: BTreeMap<Anomaly, usize>,
    first: BTreeMap<Anomaly, String>,
}

impl Findings {
    fn add(&mut self, anomaly: Anomaly, describe: impl FnOnce() -> String) {
        *self.counts.entry(anomaly).or_default() += 1;
        self.first.entry(anomaly).or_insert_with(describe);
    }

    /// How often it was found.
    pub fn count(&self, anomaly: Anomaly) -> usize {
        self.counts.get(&anomaly).copied().unwrap_or_default()
    }

    /// Those that the level forbids, described.
    pub fn forbidden(&self, level: Level) -> Vec<String> {
        let forbidden = self.counts.iter().filter(|(anomaly, _)| level.forbids(**anomaly));
        forbidden.map(|(anomaly, count)| format!("{anomaly:?} × {count}: {}", self.first[anomaly])).collect()
    }
}

/// An element in the last state of its list.
struct Place {
    writer: usize,
    /// No later element of this list is of the same transaction.
    last_of_writer: bool,
}

struct Checker<'a> {
    history: &'a History,
    level: Level,
    /// Writer of every element sent, and its list.
    writers: HashMap<Element, (usize, Key)>,
    places: HashMap<Element, Place>,
    findings: Findings,
}

/// Everything that is wrong with a history. `level` is what it ran at: it says from when on a read must see
/// what was acknowledged.
pub fn check(history: &History, level: Level) -> Findings {
    let mut checker = Checker {
        history,
        level,
        writers: HashMap::new(),
        places: HashMap::new(),
        findings: Findings::default(),
    };
    for (number, transaction) in history.transactions.iter().enumerate() {
        for step in &transaction.steps {
            if let Action::Append(key, element) = step.action {
                checker.writers.insert(element, (number, key));
            }
        }
    }
    checker.contents();
    checker.reads();
    checker.cycles();
    checker.findings
}

impl Checker<'_> {
    /// The last state against what was committed.
    fn contents(&mut self) {
        let mut keys: Vec<&Key> = self.history.lists.keys().collect();
        keys.sort_unstable();
        for key in keys {
            let list = &self.history.lists[key];
            let mut later = std::collections::HashSet::new();
            for element in list.iter().rev() {
                let Some(&(writer, of)) = self.writers.get(element) else {
                    self.findings.add(Anomaly::Contents, || {
                        format!("list {key} has {element}, which nobody appended")
                    });
                    continue;
                };
                if of != *key {
                    self.findings
                        .add(Anomaly::Contents, || format!("{element} of list {of} is in list {key}"));
                }
                if self.history.transactions[writer].outcome == Outcome::Aborted {
                    self.findings.add(Anomaly::Contents, || {
                        format!("list {key} has {element} of T{writer}, which was rolled back")
                    });
                }
                let place = Place { writer, last_of_writer: later.insert(writer) };
                if self.places.insert(*element, place).is_some() {
                    self.findings.add(Anomaly::Contents, || format!("{element} is there twice (list {key})"));
                }
            }
        }
        for (number, transaction) in self.history.transactions.iter().enumerate() {
            let appends = transaction.steps.iter().filter_map(|step| match step.action {
                Action::Append(_, element) => Some(element),
                Action::Read(..) => None,
            });
            let (there, missing): (Vec<_>, Vec<_>) =
                appends.partition(|element| self.places.contains_key(element));
            let wrong = match transaction.outcome {
                Outcome::Committed => !missing.is_empty(),
                Outcome::Unknown => !missing.is_empty() && !there.is_empty(),
                Outcome::Aborted => false,
            };
            if wrong {
                self.findings.add(Anomaly::Contents, || {
                    format!(
                        "of T{number} ({:?}) {missing:?} are missing, {there:?} are there",
                        transaction.outcome
                    )
                });
            }
        }
    }

    /// Whether a transaction took place: acknowledged, or found in the lists afterwards.
    fn happened(&self, number: usize) -> bool {
        let transaction = &self.history.transactions[number];
        match transaction.outcome {
            Outcome::Committed => true,
            Outcome::Aborted => false,
            Outcome::Unknown => transaction.steps.iter().any(
                |step| matches!(step.action, Action::Append(_, element) if self.places.contains_key(&element)),
            ),
        }
    }

    /// Each read by itself: against the order of its list, and against the clock.
    fn reads(&mut self) {
        // The earliest acknowledgement among an element and all later ones of its list.
        let mut acknowledged: HashMap<Key, Vec<Time>> = HashMap::new();
        for (key, list) in &self.history.lists {
            let mut earliest = Time::MAX;
            let mut times = vec![Time::MAX; list.len() + 1];
            for (at, element) in list.iter().enumerate().rev() {
                if let Some(&(writer, _)) = self.writers.get(element) {
                    let transaction = &self.history.transactions[writer];
                    if transaction.outcome == Outcome::Committed {
                        earliest = earliest.min(transaction.ended);
                    }
                }
                times[at] = earliest;
            }
            acknowledged.insert(*key, times);
        }
        for (number, transaction) in self.history.transactions.iter().enumerate() {
            let mut own: HashMap<Key, Element> = HashMap::new();
            for step in &transaction.steps {
                let (key, seen) = match &step.action {
                    Action::Append(key, element) => {
                        own.insert(*key, *element);
                        continue;
                    }
                    Action::Read(key, seen) => (key, seen),
                };
                if let Some(last) = own.get(key)
                    && seen.last() != Some(last)
                {
                    self.findings.add(Anomaly::OwnAppends, || {
                        format!("T{number} appended {last} to list {key} and then read {seen:?}")
                    });
                }
                if !self.is_committed_state(number, *key, seen) {
                    let kind = match self.was_taken_away(transaction, seen) {
                        true => Anomaly::UndurableRead,
                        false => Anomaly::DirtyRead,
                    };
                    self.findings.add(kind, || {
                        let whole = &self.history.lists.get(key);
                        format!("T{number} read list {key} as {seen:?}; its last state is {whole:?}")
                    });
                    continue;
                }
                let since = match self.level {
                    Level::ReadUncommitted | Level::ReadCommitted | Level::Serializable => step.sent,
                    Level::RepeatableRead => transaction.began,
                };
                let missed = acknowledged.get(key).and_then(|times| times.get(seen.len()));
                if missed.is_some_and(|time| *time < since) {
                    self.findings.add(Anomaly::StaleRead, || {
                        format!(
                            "T{number} read list {key} with {} elements, though a later one had been acknowledged before",
                            seen.len()
                        )
                    });
                }
            }
        }
    }

    /// Whether what a transaction saw was of one whose COMMIT a crash cut off, and it appended nothing on the
    /// ground of it.
    fn was_taken_away(&self, reader: &Transaction, seen: &[Element]) -> bool {
        let lost = |element: &Element| match self.writers.get(element) {
            Some((writer, _)) => {
                let unknown = self.history.transactions[*writer].outcome == Outcome::Unknown;
                unknown && !self.places.contains_key(element)
            }
            None => false,
        };
        (reader.only_reads() || reader.outcome != Outcome::Committed) && seen.iter().any(lost)
    }

    /// Whether a transaction read a list as it was between two transactions, its own appends aside.
    fn is_committed_state(&self, reader: usize, key: Key, seen: &[Element]) -> bool {
        let aborted = self.history.transactions[reader].outcome != Outcome::Committed;
        // What a transaction appended that did not commit is in no last state.
        let own = |element: &Element| self.writers.get(element).is_some_and(|(writer, _)| *writer == reader);
        let others = match seen.iter().position(own) {
            Some(first) if aborted => &seen[..first],
            _ => seen,
        };
        let list = self.history.lists.get(&key).map_or(&[][..], Vec::as_slice);
        let last = others.last().and_then(|element| self.places.get(element));
        let whole = last.is_none_or(|place| place.last_of_writer || place.writer == reader);
        list.starts_with(others) && whole
    }

    fn cycles(&mut self) {
        let graph = self.graph();
        let ww = |why| why == Dependency::WriteWrite;
        for node in graph.components(ww).cyclic() {
            self.report_cycle(Anomaly::WriteCycle, &graph, node, ww);
        }
        let information = |why| matches!(why, Dependency::WriteWrite | Dependency::WriteRead);
        let order = graph.components(information);
        for node in order.cyclic() {
            self.report_cycle(Anomaly::InformationCycle, &graph, node, information);
        }
        // With one read of something older: from its target back to its source by appends and reads of them
        // alone.
        let all = graph.components(|why| why != Dependency::RealTime);
        for source in 0..self.history.transactions.len() {
            for &(target, why) in graph.from(source) {
                let target = target as usize;
                if why != Dependency::ReadWrite || all.of[source] != all.of[target] {
                    continue;
                }
                // Components are numbered against the edges: a way only leads down.
                let over = |node: usize| order.of[node] >= order.of[source] && all.of[node] == all.of[source];
                let Some(way) = graph.path(target, source, information, over) else { continue };
                let kind = match self.history.transactions[source].only_reads() {
                    true => Anomaly::ReadSkew,
                    false => Anomaly::StaleWrite,
                };
                self.findings
                    .add(kind, || describe(self.history, &[vec![(source, why)], way.clone()].concat()));
            }
        }
        let real_time = graph.components(|_| true);
        for node in real_time.cyclic() {
            self.report_cycle(Anomaly::Cycle, &graph, node, |_| true);
        }
    }

    fn report_cycle(
        &mut self,
        anomaly: Anomaly,
        graph: &Graph,
        node: usize,
        wanted: impl Fn(Dependency) -> bool,
    ) {
        let history = self.history;
        self.findings.add(anomaly, || match graph.path(node, node, wanted, |_| true) {
            Some(way) => describe(history, &way),
            None => format!("T{node} is in it"),
        });
    }

    fn graph(&self) -> Graph {
        let transactions = &self.history.transactions;
        // Behind the transactions come the moments of real time.
        let ends = self.moments();
        let mut graph = Graph::new(transactions.len() + ends.len());
        for list in self.history.lists.values() {
            for pair in list.windows(2) {
                if let [Some(first), Some(second)] = [self.places.get(&pair[0]), self.places.get(&pair[1])] {
                    graph.add(first.writer, second.writer, Dependency::WriteWrite);
                }
            }
        }
        for (number, transaction) in transactions.iter().enumerate() {
            if !self.happened(number) {
                continue;
            }
            for step in &transaction.steps {
                let Action::Read(key, seen) = &step.action else { continue };
                if !self.is_committed_state(number, *key, seen) {
                    continue;
                }
                if let Some(place) = seen.last().and_then(|element| self.places.get(element)) {
                    graph.add(place.writer, number, Dependency::WriteRead);
                }
                let next = self.history.lists.get(key).and_then(|list| list.get(seen.len()));
                if let Some(place) = next.and_then(|element| self.places.get(element)) {
                    graph.add(number, place.writer, Dependency::ReadWrite);
                }
            }
        }
        self.add_real_time(&mut graph, &ends);
        graph
    }

    /// Acknowledged transactions by the time of their end.
    fn moments(&self) -> Vec<(Time, usize)> {
        let transactions = self.history.transactions.iter().enumerate();
        let committed = transactions.filter(|(_, transaction)| transaction.outcome == Outcome::Committed);
        let mut ends: Vec<_> = committed.map(|(number, transaction)| (transaction.ended, number)).collect();
        ends.sort_unstable();
        ends
    }

    /// A transaction leads to the moment of its end, each moment to the next, and the last one before a
    /// transaction's beginning to that transaction.
    fn add_real_time(&self, graph: &mut Graph, ends: &[(Time, usize)]) {
        let first = self.history.transactions.len();
        for (at, (_, number)) in ends.iter().enumerate() {
            graph.add(*number, first + at, Dependency::RealTime);
            if at + 1 < ends.len() {
                graph.add(first + at, first + at + 1, Dependency::RealTime);
            }
        }
        for (number, transaction) in self.history.transactions.iter().enumerate() {
            let before = ends.partition_point(|(time, _)| *time < transaction.began);
            if before > 0 && self.happened(number) {
                graph.add(first + before - 1, number, Dependency::RealTime);
            }
        }
    }
}

/// A cycle, with what its transactions did.
fn describe(history: &History, way: &[(usize, Dependency)]) -> String {
    let mut text = String::new();
    let name = |node: usize| match node < history.transactions.len() {
        true => format!("T{node}"),
        false => "·".to_owned(),
    };
    for (node, why) in way {
        let _ = write!(text, "{} -{why:?}-> ", name(*node));
    }
    if let Some((first, _)) = way.first() {
        let _ = writeln!(text, "{}", name(*first));
    }
    let mut shown: Vec<usize> = way.iter().map(|(node, _)| *node).collect();
    shown.sort_unstable();
    shown.dedup();
    for node in shown.into_iter().filter(|node| *node < history.transactions.len()) {
        let _ = writeln!(text, "    T{node}: {:?}", history.transactions[node]);
    }
    text
}

#[cfg(test)]
mod tests;
