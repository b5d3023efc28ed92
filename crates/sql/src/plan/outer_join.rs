//! Outer joins: which sources are missing together, and when a condition may be tested.
//!
//! A RIGHT JOIN is a LEFT JOIN by now, and the sources of a query with outer joins are read in the order in
//! which they stand in FROM. So the inner side of an outer join is a run of sources, which may have outer
//! joins inside it; no two of them begin at the same source, as there is an outer side before each.

use super::Condition;
use super::apply::AppliedCondition;

/// The inner side of an outer join: sources, from the first to the last, and ON. Conditions of the inner
/// joins among them belong to ON.
#[derive(Debug)]
pub(crate) struct OuterJoin {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) on: Vec<Condition>,
}

/// What is known of a row of a step: it is the last one of the inner side of an outer join, which has a match
/// if all its rows have come so far.
#[derive(Debug)]
pub struct InnerSide {
    /// The step that reads the first source of that side.
    pub first: usize,
    /// Conditions from around the outer join, checked when it has its match or its NULLs.
    pub after: Vec<Condition>,
    /// Those of them that need correlated subqueries, tested last.
    pub applied: Vec<AppliedCondition>,
}

/// The innermost outer join that has a source on its inner side.
pub(super) fn around(outer: &[OuterJoin], source: usize) -> Option<&OuterJoin> {
    let inside = |join: &&OuterJoin| (join.first..=join.last).contains(&source);
    outer.iter().filter(inside).max_by_key(|join| join.first)
}

/// The same, to be changed.
pub(super) fn around_mut(outer: &mut [OuterJoin], source: usize) -> Option<&mut OuterJoin> {
    let inside = |join: &&mut OuterJoin| (join.first..=join.last).contains(&source);
    outer.iter_mut().filter(inside).max_by_key(|join| join.first)
}

/// A condition that waits for the sources that it reads.
pub(super) type Waiting = (u64, Condition);

/// Conditions that wait: those of WHERE, and those of each outer join with its sources.
pub(super) struct Conditions {
    pub(super) of_where: Vec<Waiting>,
    /// First and last source.
    pub(super) of_joins: Vec<(usize, usize, Vec<Waiting>)>,
}

impl Conditions {
    /// The conditions to be tested when `source` is read and the sources of `known` are at hand: on its rows,
    /// and behind each outer join that ends with it, from the innermost to the outermost.
    pub(super) fn take(&mut self, source: usize, known: u64) -> (Vec<Condition>, Vec<InnerSide>) {
        let inside =
            |(first, last, _): &&mut (usize, usize, Vec<Waiting>)| (*first..=*last).contains(&source);
        let mut around: Vec<_> = self.of_joins.iter_mut().filter(inside).collect();
        around.sort_by_key(|(first, ..)| *first);
        let mut ends = Vec::new();
        let mut own = None;
        while let Some((first, last, on)) = around.pop() {
            own.get_or_insert_with(|| ready(on, known));
            if *last != source {
                break;
            }
            let outside = around.last_mut().map_or(&mut self.of_where, |(_, _, on)| on);
            ends.push(InnerSide { first: *first, after: ready(outside, known), applied: Vec::new() });
        }
        (own.unwrap_or_else(|| ready(&mut self.of_where, known)), ends)
    }
}

/// Takes those out that read nothing but what is known.
fn ready(waiting: &mut Vec<Waiting>, known: u64) -> Vec<Condition> {
    let (ready, rest) = std::mem::take(waiting).into_iter().partition(|(sources, _)| sources & !known == 0);
    *waiting = rest;
    let ready: Vec<Waiting> = ready;
    ready.into_iter().map(|(_, condition)| condition).collect()
}
