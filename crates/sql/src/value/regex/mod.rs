//! Regular expressions, written as for ICU, which MySQL uses.
//!
//! A pattern is translated (`syntax.rs`) for one of two engines. Most are for a DFA that is built while it
//! runs (`regex-automata`): it reads each byte of the text once, so its work is known before and can be told
//! piece by piece, and a statement that is to stop stops in it. Patterns with look-around, back-references,
//! possessive or atomic parts are for a backtracking engine (`fancy-regex`), which nothing can interrupt:
//! such texts must be short, and its steps are counted. Whatever a pattern does, the size of what is compiled
//! is bounded, and time is refused with MySQL's own error (3699).
//!
//! A compiled pattern is kept for the statement ([`Patterns`]): a constant one is compiled once.

mod engine;
mod syntax;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use engine::Engine;
pub use syntax::Modes;
use syntax::{LineEnd, Target, Translated, line_end, translate};

use crate::errors;
use crate::memory::{self, Account};
use crate::result::SqlError;

/// Compiled patterns that a statement keeps.
const PATTERNS_KEPT: usize = 4;

/// Told the bytes that were worked on; says when it is enough.
pub type Work<'w> = &'w dyn Fn(usize) -> Result<(), SqlError>;

/// A place in a text.
pub type Place = Range<usize>;

/// A pattern with its modes.
pub struct Regex {
    pattern: String,
    modes: Modes,
    /// `$` also matches before the end of the last line. Only texts that end with one need that.
    reads_last_line: bool,
    usual: Rc<Engine>,
    for_last_line: [RefCell<Option<Rc<Engine>>>; 2],
    /// Names of groups, and their numbers.
    names: Vec<(String, usize)>,
    groups: usize,
}

fn compiled(
    pattern: &str,
    modes: Modes,
    last_line: Option<LineEnd>,
) -> Result<(Translated, Engine), SqlError> {
    let mut target = Target { backtracks: false, last_line };
    let mut translated = translate(pattern, modes, target)?;
    if translated.hard > 0 || translated.goes_on_behind_end {
        target.backtracks = true;
        translated = translate(pattern, modes, target)?;
    }
    let engine = match target.backtracks {
        true => Engine::backtracking(&translated)?,
        false => Engine::dfa(&translated)?,
    };
    Ok((translated, engine))
}

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// MySQL's 3685 to 3700 for what is wrong with it.
    pub fn new(pattern: &str, modes: Modes) -> Result<Regex, SqlError> {
        if pattern.is_empty() {
            return Err(errors::error(errors::REGEXP_ILLEGAL_ARGUMENT, &[]));
        }
        let (translated, engine) = compiled(pattern, modes, None)?;
        Ok(Regex {
            pattern: pattern.to_owned(),
            modes,
            reads_last_line: translated.reads_last_line,
            usual: Rc::new(engine),
            for_last_line: Default::default(),
            names: translated.names,
            groups: translated.groups,
        })
    }

    fn engine(&self, text: &str) -> Result<Rc<Engine>, SqlError> {
        let Some(line_end) = line_end(text).filter(|_| self.reads_last_line) else {
            return Ok(Rc::clone(&self.usual));
        };
        let kept = &self.for_last_line[line_end as usize];
        if let Some(engine) = &*kept.borrow() {
            return Ok(Rc::clone(engine));
        }
        let engine = Rc::new(compiled(&self.pattern, self.modes, Some(line_end))?.1);
        *kept.borrow_mut() = Some(Rc::clone(&engine));
        Ok(engine)
    }

    /// The first match from this byte on.
    ///
    /// # Errors
    /// What `work` says; 3699 where it would take too long.
    pub fn find(&self, text: &str, from: usize, work: Work<'_>) -> Result<Option<Place>, SqlError> {
        self.engine(text)?.find(text, from, work)
    }

    /// The groups of the match that was found here; the first is the match.
    ///
    /// # Errors
    /// As [`Regex::find`].
    pub fn groups(&self, text: &str, found: &Place) -> Result<Vec<Option<Place>>, SqlError> {
        self.engine(text)?.groups(text, found)
    }

    /// How many groups it has.
    pub fn group_count(&self) -> usize {
        self.groups
    }

    /// The number of the group of this name.
    pub fn group_of_name(&self, name: &str) -> Option<usize> {
        self.names.iter().find(|(known, _)| known == name).map(|(_, number)| *number)
    }

    /// Where the search goes on behind a match.
    pub fn behind(text: &str, found: &Place) -> Option<usize> {
        if !found.is_empty() {
            return Some(found.end);
        }
        text[found.end..].chars().next().map(|c| found.end + c.len_utf8())
    }
}

/// The patterns that a statement has compiled, the latest first.
#[derive(Default)]
pub struct Patterns {
    kept: RefCell<Vec<Rc<Regex>>>,
    /// Bytes charged for them.
    charged: Cell<u64>,
}

impl Patterns {
    /// The compiled pattern.
    ///
    /// # Errors
    /// Those of [`Regex::new`], and memory.
    pub fn compiled(&self, pattern: &str, modes: Modes, account: &Account) -> Result<Rc<Regex>, SqlError> {
        let mut kept = self.kept.borrow_mut();
        if let Some(at) = kept.iter().position(|regex| regex.modes == modes && regex.pattern == pattern) {
            kept[..=at].rotate_right(1);
            return Ok(Rc::clone(&kept[0]));
        }
        // Each takes as much as any may; there are few.
        if kept.len() == PATTERNS_KEPT {
            kept.pop();
        } else if account.add(engine::BYTES_MAX) {
            self.charged.set(self.charged.get() + engine::BYTES_MAX);
        } else {
            return Err(memory::refused());
        }
        let regex = Rc::new(Regex::new(pattern, modes)?);
        kept.insert(0, Rc::clone(&regex));
        Ok(regex)
    }

    /// Forgets them all.
    pub fn reset(&self, account: &Account) {
        if self.charged.get() > 0 {
            self.kept.borrow_mut().clear();
            account.subtract(self.charged.take());
        }
    }
}

/// Error 3700.
fn too_big() -> SqlError {
    errors::error(errors::REGEXP_PATTERN_TOO_BIG, &[])
}

/// Error 3699.
fn too_long() -> SqlError {
    errors::error(errors::REGEXP_TIME_OUT, &[])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::ServerMemory;

    fn free(_: usize) -> Result<(), SqlError> {
        Ok(())
    }

    fn found(text: &str, pattern: &str) -> Result<Option<Place>, u16> {
        let regex = Regex::new(pattern, Modes::default()).map_err(|error| error.code)?;
        regex.find(text, 0, &free).map_err(|error| error.code)
    }

    #[test]
    fn places() {
        for (text, pattern, wanted) in [
            ("abc", "b", Some(1..2)),
            ("abc", "x", None),
            ("abc", "x*", Some(0..0)),
            ("aXé", "é", Some(2..4)),
            ("xaab", "a+", Some(1..3)),
            ("aab", "(?<=a)b", Some(2..3)),
            ("abab", r"(ab)\1", Some(0..4)),
            ("aaa", "a++a", None),
            ("é b", r"\bb", Some(3..4)),
            ("ab\n", "b$", Some(1..2)),
            ("ab\n", r"b\z", None),
            ("ab\r\n", "(a|b)$", Some(1..2)),
            ("a \n", r"\s+$", Some(1..3)),
            ("a\n", "(a|a\n)$", Some(0..1)),
            ("a\n\n", "a$", None),
            ("a\r\n", "a\r$", None),
            ("a\n", "a$\n", Some(0..2)),
            ("a\rb", "a.b", None),
            ("]-", "[]-]+", Some(0..2)),
        ] {
            assert_eq!(found(text, pattern), Ok(wanted), "{text} {pattern}");
        }
    }

    /// `$` before the end of the last line needs no look ahead where nothing follows it, so the text may be
    /// long; and what marks its place is none of the pattern's groups.
    #[test]
    fn the_end_of_a_long_last_line() {
        let long = format!("{}\n", "x".repeat(20_000));
        assert_eq!(found(&long, "x$"), Ok(Some(19_999..20_000)));
        assert_eq!(found(&long, "y$|(x$)"), Ok(Some(19_999..20_000)));
        assert_eq!(found(&long, "x$."), Err(errors::REGEXP_TIME_OUT));
        let regex = Regex::new("(^|,)a(,|$)", Modes::default());
        let groups = regex.map(|regex| regex.groups("a\n", &(0..1)).map_err(|error| error.code));
        assert_eq!(groups.ok(), Some(Ok(vec![Some(0..1), Some(0..0), Some(1..1)])));
    }

    /// Long texts are gone through by pieces, and a statement that is to stop stops in one.
    #[test]
    fn it_stops_in_a_long_text() {
        let text = "a".repeat(1 << 20);
        let regex = Regex::new("a*b", Modes::default()).ok();
        let told = Cell::new(0);
        let work = |bytes| {
            told.set(told.get() + bytes);
            match told.get() < 100_000 {
                true => Ok(()),
                false => Err(errors::error(errors::QUERY_INTERRUPTED, &[])),
            }
        };
        let stopped = regex.map(|regex| regex.find(&text, 0, &work).map_err(|error| error.code));
        assert_eq!(stopped, Some(Err(errors::QUERY_INTERRUPTED)));
        assert!(told.get() < 200_000, "{} bytes told", told.get());
    }

    #[test]
    fn what_would_take_too_much_is_refused() {
        let long = "a".repeat(1 << 20);
        let nested = format!("{}a{}", "(".repeat(300), ")".repeat(300));
        for (text, pattern, code) in [
            ("a", "a{1,100000}", errors::REGEXP_PATTERN_TOO_BIG),
            ("a", r"\w{1000}{1000}", errors::REGEXP_RULE_SYNTAX),
            ("a", r"(\w{1000}){1000}", errors::REGEXP_PATTERN_TOO_BIG),
            ("a", &r"\w".repeat(10_000), errors::REGEXP_PATTERN_TOO_BIG),
            ("a", &"(?=a)".repeat(100), errors::REGEXP_PATTERN_TOO_BIG),
            ("a", &nested, errors::REGEXP_PATTERN_TOO_BIG),
            ("a", &long, errors::REGEXP_PATTERN_TOO_BIG),
            (&long, "(?=a*b)", errors::REGEXP_TIME_OUT),
            (&long[..5000], r"^(a*)(a*)(a*)\1b", errors::REGEXP_TIME_OUT),
            // Each of two parts may read all of the text at each step.
            (&long[..9000], "(?=a)(?=b)c", errors::REGEXP_TIME_OUT),
            // The simulation knows word boundaries beside any letter.
            (&format!("{}é", long.repeat(20)), r"\bb\w{10}", errors::REGEXP_TIME_OUT),
        ] {
            assert_eq!(found(text, pattern), Err(code), "{:.20} {pattern:.20}", text);
        }
    }

    #[test]
    fn a_statement_compiles_a_pattern_once() {
        let account = Account::new(Arc::new(ServerMemory::new(100 << 20)));
        let patterns = Patterns::default();
        let modes = Modes::default();
        let compiled = |pattern: &str| patterns.compiled(pattern, modes, &account).ok();
        let (first, other) = (compiled("a"), compiled("b"));
        let same = |one: &Option<Rc<Regex>>, two: &Option<Rc<Regex>>| match (one, two) {
            (Some(one), Some(two)) => Rc::ptr_eq(one, two),
            _ => false,
        };
        assert!(same(&first, &compiled("a")) && !same(&first, &other));
        assert_eq!(account.used(), 2 * engine::BYTES_MAX);
        for number in 0..10 {
            assert!(compiled(&number.to_string()).is_some());
        }
        assert_eq!(account.used(), PATTERNS_KEPT as u64 * engine::BYTES_MAX);
        patterns.reset(&account);
        assert_eq!(account.used(), 0);
        account.set_limit(engine::BYTES_MAX / 2);
        assert!(compiled("a").is_none(), "memory is charged");
    }
}
