//! The two engines, and what each may take.

use std::cell::{OnceCell, RefCell};

use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::hybrid::regex as hybrid;
use regex_automata::nfa::thompson::{self, pikevm};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input};

use super::syntax::Translated;
use super::{Place, Work, too_big, too_long};
use crate::errors;
use crate::result::SqlError;

/// Bytes of an automaton.
const NFA_BYTES_MAX: usize = 1 << 20;
/// Bytes of the states of a DFA that are kept.
const DFA_BYTES_MAX: usize = 1 << 20;
/// What a compiled pattern is charged: two automata with the states of their DFAs, and one that finds groups,
/// for the three ways in which a text may end.
pub const BYTES_MAX: u64 = 9 << 20;

/// Bytes of a text between two calls of `work`.
const BYTES_AT_ONCE: usize = 4 << 10;
/// The first ones: matches are often near.
const BYTES_FIRST: usize = 64;
/// States of an automaton that take as long to step through as a byte to copy.
const STATES_PER_BYTE: usize = 16;

/// Steps of the simulation that finds groups: states for each byte. It cannot be interrupted.
const SIMULATED_STEPS_MAX: usize = 1 << 26;
/// Places that it keeps: two of each group for each state.
const SIMULATED_PLACES_MAX: usize = 1 << 20;

/// Longest text for backtracking, shared by the hard parts, and how often it may go back: together what
/// cannot be interrupted.
const BACKTRACKED_BYTES_MAX: usize = 16 << 10;
const BACKTRACKS_MAX: usize = 64 << 10;
/// Bytes of the longest character that ends a line.
const LINE_END_BYTES_MAX: usize = 3;
/// Parts that only backtracking matches. Each has an automaton on either side.
const HARD_PARTS_MAX: usize = 16;

/// What matches a pattern.
pub enum Engine {
    /// A DFA whose states are made when they are needed.
    Dfa(Box<Automaton>),
    /// By backtracking, with so many parts that need it.
    Backtracking(Box<fancy_regex::Regex>, usize),
}

/// See [`Engine::Dfa`].
pub struct Automaton {
    pattern: String,
    /// See [`Translated::end_marks`].
    end_marks: Vec<usize>,
    dfas: hybrid::Regex,
    cache: RefCell<hybrid::Cache>,
    /// Knows groups, and word boundaries between any characters. Slow, and seldom needed.
    simulation: OnceCell<(pikevm::PikeVM, RefCell<pikevm::Cache>)>,
}

/// What a DFA could not tell.
enum Failed {
    /// It met a character that it has no states for.
    Unknown,
    Stopped(SqlError),
}

impl Engine {
    /// For a pattern without what only backtracking matches.
    pub fn dfa(translated: &Translated) -> Result<Engine, SqlError> {
        let states = dfa::Config::new()
            .cache_capacity(DFA_BYTES_MAX)
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true);
        let automaton = thompson::Config::new().nfa_size_limit(Some(NFA_BYTES_MAX));
        let built = hybrid::Regex::builder().dfa(states).thompson(automaton).build(&translated.pattern);
        let dfas = built.map_err(|error| refused(&error))?;
        let cache = RefCell::new(dfas.create_cache());
        let (pattern, end_marks) = (translated.pattern.clone(), translated.end_marks.clone());
        let simulation = OnceCell::new();
        Ok(Engine::Dfa(Box::new(Automaton { pattern, end_marks, dfas, cache, simulation })))
    }

    /// For any other.
    pub fn backtracking(translated: &Translated) -> Result<Engine, SqlError> {
        if translated.hard > HARD_PARTS_MAX {
            return Err(too_big());
        }
        let bytes = NFA_BYTES_MAX / (translated.hard + 1);
        let built = fancy_regex::RegexBuilder::new(&translated.pattern)
            .backtrack_limit(BACKTRACKS_MAX)
            .delegate_size_limit(bytes)
            .delegate_dfa_size_limit(bytes)
            .build();
        match built {
            Ok(regex) => Ok(Engine::Backtracking(Box::new(regex), translated.hard)),
            Err(fancy_regex::Error::CompileError(error)) => Err(match *error {
                fancy_regex::CompileError::InnerError(inner) => refused(&inner),
                fancy_regex::CompileError::LookBehindNotConst
                | fancy_regex::CompileError::VariableLookBehindRequiresFeature => {
                    errors::error(errors::REGEXP_LOOK_BEHIND_LIMIT, &[])
                }
                _ => errors::error(errors::REGEXP_ILLEGAL_ARGUMENT, &[]),
            }),
            Err(fancy_regex::Error::ParseError(_, fancy_regex::ParseError::RecursionExceeded)) => {
                Err(too_big())
            }
            Err(_) => Err(errors::error(errors::REGEXP_ILLEGAL_ARGUMENT, &[])),
        }
    }

    pub fn find(&self, text: &str, from: usize, work: Work<'_>) -> Result<Option<Place>, SqlError> {
        match self {
            Engine::Dfa(automaton) => automaton.find(text, from, work),
            Engine::Backtracking(regex, hard) => {
                work(short(text, *hard)?)?;
                let found = regex.find_from_pos(text, from).map_err(|_| too_long())?;
                Ok(found.map(|found| found.range()))
            }
        }
    }

    pub fn groups(&self, text: &str, found: &Place) -> Result<Vec<Option<Place>>, SqlError> {
        match self {
            Engine::Dfa(automaton) => automaton.groups(text, found),
            Engine::Backtracking(regex, hard) => {
                short(text, *hard)?;
                let groups = regex.captures_from_pos(text, found.start).map_err(|_| too_long())?;
                let groups = groups.iter().flat_map(|groups| groups.iter());
                Ok(groups.map(|group| group.map(|group| group.range())).collect())
            }
        }
    }
}

/// What matching a text by backtracking counts for, if it may be done: each hard part may read all of it at
/// each step.
fn short(text: &str, hard: usize) -> Result<usize, SqlError> {
    let bytes = text.len().saturating_mul(hard.max(1));
    if bytes > BACKTRACKED_BYTES_MAX { Err(too_long()) } else { Ok(bytes) }
}

/// Why a pattern could not be compiled: its size, or a property that does not exist.
fn refused(error: &dyn std::error::Error) -> SqlError {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let text = error.to_string();
        if text.contains("limit") || text.contains("too big") || text.contains("too many") {
            return too_big();
        }
        cause = error.source();
    }
    errors::error(errors::REGEXP_ILLEGAL_ARGUMENT, &[])
}

impl Automaton {
    fn find(&self, text: &str, from: usize, work: Work<'_>) -> Result<Option<Place>, SqlError> {
        match self.find_by_states(text, from, work) {
            // What ends the last line may be in it.
            Ok(Some(found)) if !self.end_marks.is_empty() && found.end == text.len() => {
                Ok(self.groups(text, &found)?.into_iter().next().flatten())
            }
            Ok(found) => Ok(found),
            Err(Failed::Stopped(error)) => Err(error),
            Err(Failed::Unknown) => {
                let groups = self.simulate(&Input::new(text).range(from..))?;
                Ok(self.without_marks(groups).into_iter().next().flatten())
            }
        }
    }

    /// The groups of a match that was found here.
    fn groups(&self, text: &str, found: &Place) -> Result<Vec<Option<Place>>, SqlError> {
        let before_line_end = !self.end_marks.is_empty() && text.len() - found.end <= LINE_END_BYTES_MAX;
        let end = if before_line_end { text.len() } else { found.end };
        let input = Input::new(text).range(found.start..end).anchored(Anchored::Yes);
        Ok(self.without_marks(self.simulate(&input)?))
    }

    /// The groups of the pattern: those that mark an end are taken out, and nothing goes beyond them.
    fn without_marks(&self, groups: Vec<Option<Place>>) -> Vec<Option<Place>> {
        let marked = |mark: &usize| groups.get(*mark).cloned().flatten();
        let end = self.end_marks.iter().find_map(marked).map_or(usize::MAX, |mark| mark.start);
        let numbered = groups.into_iter().enumerate();
        let kept = numbered.filter(|(number, _)| !self.end_marks.contains(number));
        let cut = |place: Place| place.start.min(end)..place.end.min(end);
        kept.map(|(_, place)| place.map(cut)).collect()
    }

    fn find_by_states(&self, text: &str, from: usize, work: Work<'_>) -> Result<Option<Place>, Failed> {
        let mut cache = self.cache.borrow_mut();
        let (forward, reverse) = cache.as_parts_mut();
        let mut from = from;
        loop {
            let input = Input::new(text).range(from..);
            let Some(end) = run(self.dfas.forward(), forward, &input, work)? else { return Ok(None) };
            let back = Input::new(text).range(from..end).anchored(Anchored::Yes);
            let start = run_back(self.dfas.reverse(), reverse, &back, work)?.unwrap_or(end);
            // A match of nothing inside a character is none.
            if text.is_char_boundary(start) {
                return Ok(Some(start..end));
            }
            from = text.ceil_char_boundary(start);
        }
    }

    /// The groups of the first match. Of one that is known only the groups are wanted: it is found again from
    /// where it begins.
    fn simulate(&self, input: &Input<'_>) -> Result<Vec<Option<Place>>, SqlError> {
        let (simulation, cache) = match self.simulation.get() {
            Some(simulation) => simulation,
            None => {
                let automaton = thompson::Config::new().nfa_size_limit(Some(NFA_BYTES_MAX));
                let built = pikevm::PikeVM::builder().thompson(automaton).build(&self.pattern);
                let simulation = built.map_err(|error| refused(&error))?;
                let places = simulation.get_nfa().group_info().slot_len();
                if simulation.get_nfa().states().len().saturating_mul(places) > SIMULATED_PLACES_MAX {
                    return Err(too_big());
                }
                let cache = RefCell::new(simulation.create_cache());
                self.simulation.get_or_init(|| (simulation, cache))
            }
        };
        let states = simulation.get_nfa().states().len();
        if input.get_span().len().saturating_mul(states) > SIMULATED_STEPS_MAX {
            return Err(too_long());
        }
        let mut slots = vec![None; simulation.get_nfa().group_info().slot_len()];
        simulation.search_slots(&mut cache.borrow_mut(), input, &mut slots);
        let place = |pair: &[Option<NonMaxUsize>; 2]| match pair {
            [Some(start), Some(end)] => Some(start.get()..end.get()),
            _ => None,
        };
        Ok(slots.as_chunks::<2>().0.iter().map(place).collect())
    }
}

/// Tells `work` of a piece: making new states takes longer than going from one to the next.
struct Metered<'w> {
    work: Work<'w>,
    states: usize,
    known: usize,
}

impl Metered<'_> {
    fn tell(&mut self, bytes: usize, cache: &dfa::Cache) -> Result<(), Failed> {
        let known = cache.memory_usage();
        let each = if known == self.known { 1 } else { 1 + self.states / STATES_PER_BYTE };
        self.known = known;
        (self.work)(bytes.saturating_mul(each)).map_err(Failed::Stopped)
    }
}

fn unknown<E>(_: E) -> Failed {
    Failed::Unknown
}

/// Where the first match ends.
fn run(
    dfa: &DFA,
    cache: &mut dfa::Cache,
    input: &Input<'_>,
    work: Work<'_>,
) -> Result<Option<usize>, Failed> {
    let mut metered = Metered { work, states: dfa.get_nfa().states().len(), known: cache.memory_usage() };
    let mut state = dfa.start_state_forward(cache, input).map_err(unknown)?;
    let (text, from) = (input.haystack(), input.start());
    let (mut found, mut at) = (None, from);
    let (first, rest) = text[from..].split_at(BYTES_FIRST.min(text.len() - from));
    for piece in std::iter::once(first).chain(rest.chunks(BYTES_AT_ONCE)) {
        metered.tell(piece.len(), cache)?;
        for byte in piece {
            state = dfa.next_state(cache, state, *byte).map_err(unknown)?;
            if state.is_tagged() {
                // Matches are known one byte later.
                if state.is_match() {
                    found = Some(at);
                } else if state.is_dead() {
                    return Ok(found);
                } else if state.is_quit() {
                    return Err(Failed::Unknown);
                }
            }
            at += 1;
        }
    }
    state = dfa.next_eoi_state(cache, state).map_err(unknown)?;
    Ok(if state.is_match() { Some(text.len()) } else { found })
}

/// Where the longest match that ends here begins.
fn run_back(
    dfa: &DFA,
    cache: &mut dfa::Cache,
    input: &Input<'_>,
    work: Work<'_>,
) -> Result<Option<usize>, Failed> {
    let mut metered = Metered { work, states: dfa.get_nfa().states().len(), known: cache.memory_usage() };
    let mut state = dfa.start_state_reverse(cache, input).map_err(unknown)?;
    let (text, from) = (input.haystack(), input.start());
    let mut found = None;
    let mut end = input.end();
    let (rest, last) = text[from..end].split_at((end - from).saturating_sub(BYTES_FIRST));
    for piece in std::iter::once(last).chain(rest.rchunks(BYTES_AT_ONCE)) {
        metered.tell(piece.len(), cache)?;
        for byte in piece.iter().rev() {
            state = dfa.next_state(cache, state, *byte).map_err(unknown)?;
            if state.is_tagged() {
                if state.is_match() {
                    found = Some(end);
                } else if state.is_dead() {
                    return Ok(found);
                } else if state.is_quit() {
                    return Err(Failed::Unknown);
                }
            }
            end -= 1;
        }
    }
    state = match from.checked_sub(1).and_then(|before| text.get(before)) {
        Some(byte) => dfa.next_state(cache, state, *byte).map_err(unknown)?,
        None => dfa.next_eoi_state(cache, state).map_err(unknown)?,
    };
    if state.is_quit() {
        return Err(Failed::Unknown);
    }
    Ok(if state.is_match() { Some(from) } else { found })
}
