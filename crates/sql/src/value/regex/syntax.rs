//! From ICU's patterns to those of the engines, character by character, with ICU's errors.
//!
//! What both write alike goes through. The rest is written out: sets of line ends for `.`, the names of
//! POSIX, `\h`, `\Q…\E`, comments, names of groups. Modes in the pattern are followed here, since `.`, `^`
//! and `$` depend on them. Nothing recurses: groups and sets are counted.

use std::fmt::Write as _;

use super::too_big;
use crate::errors;
use crate::result::SqlError;

/// How a pattern is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// `i`: letters of either case are the same.
    pub insensitive: bool,
    /// `m`: `^` and `$` match at every line.
    pub lines: bool,
    /// `n`: `.` matches line ends.
    pub dot_all: bool,
    /// `u`: only `\n` ends a line.
    pub unix_lines: bool,
    /// Blanks and comments are not of the pattern.
    pub comments: bool,
}

/// What the pattern is translated for.
#[derive(Clone, Copy)]
pub struct Target {
    /// An engine that backtracks.
    pub backtracks: bool,
    /// Texts that end with the end of a line.
    pub last_line: Option<LineEnd>,
}

/// How a text ends.
#[derive(Clone, Copy)]
pub enum LineEnd {
    /// With `\r\n`: nothing ends between them.
    Two,
    /// With any other.
    One,
}

/// How the last line of a text ends.
pub fn line_end(text: &str) -> Option<LineEnd> {
    match text.ends_with(ends_lines) {
        true if text.ends_with("\r\n") => Some(LineEnd::Two),
        true => Some(LineEnd::One),
        false => None,
    }
}

/// A translated pattern.
pub struct Translated {
    pub pattern: String,
    /// Parts that only an engine that backtracks matches.
    pub hard: usize,
    /// Whether it depends on how a text ends ([`Target::last_line`]).
    pub reads_last_line: bool,
    /// Something follows a `$`, so that only an engine that looks ahead matches it in such a text.
    pub goes_on_behind_end: bool,
    /// Groups of [`Translator::end`], whose numbers are not the pattern's.
    pub end_marks: Vec<usize>,
    pub groups: usize,
    pub names: Vec<(String, usize)>,
}

/// Whether this ends a line.
fn ends_lines(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

const LINE_ENDS: &str = r"\n-\r\x{85}\x{2028}\x{2029}";

/// Bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 64 << 10;
/// Groups and sets in each other.
const DEPTH_MAX: usize = 200;
/// Ranges of characters that all sets together may have: parsing keeps them in memory.
const RANGES_MAX: usize = 512 << 10;
/// Ranges of a set that Unicode defines.
const RANGES_OF_PROPERTY: usize = 1 << 10;

/// Letters that stand for a set behind `\`.
const SETS: &[char] = &['d', 'D', 's', 'S', 'w', 'W', 'h', 'H', 'v', 'V', 'p', 'P'];

/// What ends with a group.
struct Group {
    modes: Modes,
    /// It looks around: there is nothing to repeat.
    looks: bool,
    /// One of its alternatives ends with `$`.
    ends: bool,
}

struct Translator<'p> {
    rest: &'p str,
    whole: &'p str,
    target: Target,
    modes: Modes,
    groups: Vec<Group>,
    made: Translated,
    /// Something that may be repeated comes before.
    repeatable: bool,
    /// Highest group that a back-reference names.
    referred: usize,
    ranges: usize,
    /// `$` was the last part of this alternative.
    ended: bool,
}

/// Translates a pattern.
///
/// # Errors
/// MySQL's 3685 to 3700 and 3887.
pub fn translate(pattern: &str, modes: Modes, target: Target) -> Result<Translated, SqlError> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(too_big());
    }
    let made = Translated {
        pattern: String::with_capacity(pattern.len() + 16),
        hard: 0,
        reads_last_line: false,
        goes_on_behind_end: false,
        end_marks: Vec::new(),
        groups: 0,
        names: Vec::new(),
    };
    let mut translator = Translator {
        rest: pattern,
        whole: pattern,
        target,
        modes,
        groups: Vec::new(),
        made,
        repeatable: false,
        referred: 0,
        ranges: 0,
        ended: false,
    };
    if modes.insensitive {
        translator.made.pattern.push_str("(?i)");
    }
    translator.pattern()?;
    let Translator { groups, made, referred, .. } = translator;
    if !groups.is_empty() {
        return Err(errors::error(errors::REGEXP_MISMATCHED_PAREN, &[]));
    }
    if referred > made.groups {
        return Err(errors::error(errors::REGEXP_INVALID_BACK_REF, &[]));
    }
    Ok(made)
}

fn bad_escape() -> SqlError {
    errors::error(errors::REGEXP_BAD_ESCAPE_SEQUENCE, &[])
}

fn bad_interval() -> SqlError {
    errors::error(errors::REGEXP_BAD_INTERVAL, &[])
}

fn unclosed_set() -> SqlError {
    errors::error(errors::REGEXP_MISSING_CLOSE_BRACKET, &[])
}

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn accept(&mut self, what: &str) -> bool {
        let rest = self.rest.strip_prefix(what);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Error 3688 at the character before the rest.
    fn syntax(&self) -> SqlError {
        let read = &self.whole[..self.whole.len() - self.rest.len()];
        let line = 1 + read.matches('\n').count();
        let character = read.rsplit('\n').next().map_or(0, |last| last.chars().count());
        errors::error(errors::REGEXP_RULE_SYNTAX, &[&line, &character])
    }

    fn put(&mut self, text: &str) {
        self.made.goes_on_behind_end |= self.ended;
        self.made.pattern.push_str(text);
        self.repeatable = true;
    }

    fn literal(&mut self, c: char) {
        self.made.goes_on_behind_end |= self.ended;
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            self.made.pattern.push('\\');
        }
        self.made.pattern.push(c);
        self.repeatable = true;
    }

    fn weigh(&mut self, ranges: usize) -> Result<(), SqlError> {
        self.ranges += ranges;
        if self.ranges > RANGES_MAX { Err(too_big()) } else { Ok(()) }
    }

    fn pattern(&mut self) -> Result<(), SqlError> {
        while let Some(c) = self.next() {
            match c {
                _ if self.modes.comments && c.is_whitespace() => {}
                '#' if self.modes.comments => {
                    let end = self.rest.find(ends_lines).unwrap_or(self.rest.len());
                    self.rest = &self.rest[end..];
                }
                '\\' => self.escape()?,
                '[' => self.set()?,
                '(' => self.open()?,
                ')' => {
                    let group = self.groups.pop();
                    let group = group.ok_or_else(|| errors::error(errors::REGEXP_MISMATCHED_PAREN, &[]))?;
                    self.modes = group.modes;
                    self.made.pattern.push(')');
                    self.ended |= group.ends;
                    self.repeatable = !group.looks;
                }
                '|' => {
                    self.made.pattern.push('|');
                    let ended = std::mem::take(&mut self.ended);
                    if let Some(group) = self.groups.last_mut() {
                        group.ends |= ended;
                    }
                    self.repeatable = false;
                }
                '.' => self.dot(),
                '^' => {
                    self.put(match (self.modes.lines, self.modes.unix_lines) {
                        (false, _) => r"\A",
                        (true, true) => "(?m:^)",
                        (true, false) if self.target.backtracks => {
                            r"(?:\A|(?<=[\n-\r\x{85}\x{2028}\x{2029}]))"
                        }
                        (true, false) => "(?mR:^)",
                    });
                }
                '$' => match (self.modes.lines, self.modes.unix_lines) {
                    (false, _) => self.end(),
                    (true, true) => self.put("(?m:$)"),
                    (true, false) if self.target.backtracks => {
                        self.put(r"(?:\z|(?=[\n-\r\x{85}\x{2028}\x{2029}]))");
                    }
                    (true, false) => self.put("(?mR:$)"),
                },
                '*' | '+' | '?' => self.repetition(&c.to_string())?,
                '{' if self.repeatable => {
                    let interval = self.interval()?;
                    self.repetition(&interval)?;
                }
                '{' | '}' => return Err(self.syntax()),
                _ => self.literal(c),
            }
        }
        Ok(())
    }

    fn dot(&mut self) {
        match (self.modes.dot_all, self.modes.unix_lines) {
            (true, _) => self.put("(?s:.)"),
            (false, true) => self.put(r"[^\n]"),
            (false, false) => self.put(&format!("[^{LINE_ENDS}]")),
        }
    }

    /// `$` and `\Z`: the end of the text, or before what ends its last line.
    ///
    /// Where nothing follows in the pattern, what ends the line may as well be of the match, behind an empty
    /// group that says where the match really ends. That needs no look ahead.
    fn end(&mut self) {
        self.made.reads_last_line = true;
        let Some(line_end) = self.target.last_line else {
            self.put(r"\z");
            return;
        };
        let line_end = match line_end {
            _ if self.modes.unix_lines => r"\n".to_owned(),
            LineEnd::Two => r"(?:\r\n)".to_owned(),
            LineEnd::One => format!("[{LINE_ENDS}]"),
        };
        if self.target.backtracks {
            self.made.hard += 1;
            self.put(&format!(r"(?={line_end}?\z)"));
        } else {
            self.put(&format!(r"(?:(){line_end}?\z)"));
            self.made.end_marks.push(self.made.groups + self.made.end_marks.len() + 1);
            self.ended = true;
        }
    }

    /// Behind `{`: `n}`, `n,}` or `n,m}`.
    fn interval(&mut self) -> Result<String, SqlError> {
        let (inner, rest) = self.rest.split_once('}').ok_or_else(bad_interval)?;
        let number = |text: &str| match text.parse::<u32>() {
            _ if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) => Err(bad_interval()),
            Ok(number) if number <= i32::MAX.unsigned_abs() => Ok(number),
            _ => Err(errors::error(errors::REGEXP_NUMBER_TOO_BIG, &[])),
        };
        let interval = match inner.split_once(',') {
            None => format!("{{{}}}", number(inner)?),
            Some((least, "")) => format!("{{{},}}", number(least)?),
            Some((least, most)) => {
                let (least, most) = (number(least)?, number(most)?);
                if most < least {
                    return Err(errors::error(errors::REGEXP_MAX_LT_MIN, &[]));
                }
                format!("{{{least},{most}}}")
            }
        };
        self.rest = rest;
        Ok(interval)
    }

    fn repetition(&mut self, how: &str) -> Result<(), SqlError> {
        if !self.repeatable {
            return Err(self.syntax());
        }
        self.put(how);
        if self.accept("?") {
            self.put("?");
        } else if self.accept("+") {
            self.made.hard += 1;
            self.put("+");
        }
        self.repeatable = false;
        Ok(())
    }

    /// Behind `(`.
    fn open(&mut self) -> Result<(), SqlError> {
        if self.accept("?#") {
            let (_, rest) = self
                .rest
                .split_once(')')
                .ok_or_else(|| errors::error(errors::REGEXP_MISMATCHED_PAREN, &[]))?;
            self.rest = rest;
            return Ok(());
        }
        if self.groups.len() >= DEPTH_MAX {
            return Err(too_big());
        }
        let mut group = Group { modes: self.modes, looks: false, ends: false };
        if !self.accept("?") {
            self.made.groups += 1;
            self.put("(");
        } else if self.accept(":") {
            self.put("(?:");
        } else if let Some(look) =
            ["=", "!", ">", "<=", "<!"].into_iter().find(|look| self.rest.starts_with(look))
        {
            self.accept(look);
            self.made.hard += 1;
            group.looks = look != ">";
            self.put("(?");
            self.put(look);
        } else if self.accept("<") {
            self.named()?;
        } else if !self.modes_said()? {
            return Ok(());
        }
        self.groups.push(group);
        self.repeatable = false;
        Ok(())
    }

    /// Behind `(?<`: a group with a name.
    fn named(&mut self) -> Result<(), SqlError> {
        let name = self.name()?;
        if self.made.names.iter().any(|(known, _)| *known == name) {
            return Err(errors::error(errors::REGEXP_INVALID_CAPTURE_GROUP_NAME, &[]));
        }
        self.made.groups += 1;
        self.made.names.push((name, self.made.groups));
        self.put("(");
        Ok(())
    }

    /// `name>`
    fn name(&mut self) -> Result<String, SqlError> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some('>') if !name.is_empty() => return Ok(name),
                Some(c) if c.is_ascii_alphabetic() || c.is_ascii_digit() && !name.is_empty() => name.push(c),
                _ if name.is_empty() => return Err(self.syntax()),
                _ => return Err(errors::error(errors::REGEXP_INVALID_CAPTURE_GROUP_NAME, &[])),
            }
        }
    }

    /// Behind `(?`: modes for what follows, or for a group, which is told.
    fn modes_said(&mut self) -> Result<bool, SqlError> {
        let mut on = true;
        let first = self.rest;
        loop {
            match self.next() {
                Some('i') => self.modes.insensitive = on,
                Some('m') => self.modes.lines = on,
                Some('s') => self.modes.dot_all = on,
                Some('d') => self.modes.unix_lines = on,
                Some('x') => self.modes.comments = on,
                // How words end in languages: not of this.
                Some('w') => {}
                Some('-') => on = false,
                Some(end @ (')' | ':')) => {
                    let case = if self.modes.insensitive { "(?i" } else { "(?-i" };
                    self.put(case);
                    self.made.pattern.push(end);
                    if end == ')' {
                        self.repeatable = false;
                    }
                    return Ok(end == ':');
                }
                None if !first.is_empty() => return Err(errors::error(errors::REGEXP_INVALID_FLAG, &[])),
                _ => return Err(self.syntax()),
            }
        }
    }

    /// Behind `\`, outside sets.
    fn escape(&mut self) -> Result<(), SqlError> {
        let Some(c) = self.rest.chars().next() else { return Err(bad_escape()) };
        match c {
            'Q' => {
                self.next();
                let (quoted, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
                self.rest = rest;
                quoted.chars().for_each(|c| self.literal(c));
                return Ok(());
            }
            'A' => self.put(r"\A"),
            'z' => self.put(r"\z"),
            'Z' => self.end(),
            'b' | 'B' => {
                self.weigh(RANGES_OF_PROPERTY)?;
                self.put(if c == 'b' { r"\b" } else { r"\B" });
            }
            'R' => self.put(&format!(r"(?:\r\n|[{LINE_ENDS}])")),
            'X' => {
                self.weigh(4 * RANGES_OF_PROPERTY)?;
                self.put(r"(?:\r\n|\P{M}\p{M}*|\p{M}+)");
            }
            'G' => {
                self.made.hard += 1;
                self.put(r"\G");
            }
            'k' => {
                self.next();
                if !self.accept("<") {
                    return Err(bad_escape());
                }
                let name = self.name()?;
                let known = self.made.names.iter().find(|(known, _)| *known == name);
                let number = known.map(|(_, number)| *number);
                let number =
                    number.ok_or_else(|| errors::error(errors::REGEXP_INVALID_CAPTURE_GROUP_NAME, &[]))?;
                self.refer(number);
                return Ok(());
            }
            '1'..='9' => {
                self.next();
                let mut number = c as usize - '0' as usize;
                // More digits belong to it as long as there are such groups.
                while let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(10)) {
                    let longer = number * 10 + digit as usize;
                    if longer > self.made.groups {
                        break;
                    }
                    number = longer;
                    self.next();
                }
                self.refer(number);
                return Ok(());
            }
            _ => return self.escaped(),
        }
        self.next();
        // A place cannot be repeated.
        self.repeatable = !matches!(c, 'A' | 'z' | 'Z' | 'b' | 'B' | 'G');
        Ok(())
    }

    fn refer(&mut self, group: usize) {
        self.referred = self.referred.max(group);
        self.made.hard += 1;
        // In a group of its own: digits may follow.
        let _ = write!(self.made.pattern, r"(?:\{group})");
        self.repeatable = true;
    }

    /// Behind `\`: what stands for a character or a set of them, also inside sets.
    fn escaped(&mut self) -> Result<(), SqlError> {
        let c = self.next().ok_or_else(bad_escape)?;
        match c {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                self.weigh(RANGES_OF_PROPERTY)?;
                self.put(r"\");
                self.made.pattern.push(c);
            }
            'h' => self.put(r"[\t\p{Zs}]"),
            'H' => self.put(r"[^\t\p{Zs}]"),
            'v' => self.put(&format!("[{LINE_ENDS}]")),
            'V' => self.put(&format!("[^{LINE_ENDS}]")),
            'p' | 'P' => self.property(c)?,
            _ => {
                let c = self.character(c)?;
                self.literal(c);
            }
        }
        Ok(())
    }

    /// Behind `\` and this: what stands for one character.
    fn character(&mut self, c: char) -> Result<char, SqlError> {
        Ok(match c {
            'a' => '\u{7}',
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'c' => {
                let control = self.next().ok_or_else(bad_escape)?;
                char::from_u32(u32::from(control) & 31).ok_or_else(bad_escape)?
            }
            '0' => {
                let octal = |c: &char| ('0'..='7').contains(c);
                let digits: String = self.rest.chars().take(3).take_while(octal).collect();
                self.code(&digits, 8)?
            }
            'u' => self.code_of(4)?,
            'U' => self.code_of(8)?,
            'x' if self.accept("{") => {
                let (digits, rest) = self.rest.split_once('}').ok_or_else(bad_escape)?;
                let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                self.rest = rest;
                code.ok_or_else(bad_escape)?
            }
            'x' => {
                let digits: String = self.rest.chars().take(2).take_while(char::is_ascii_hexdigit).collect();
                self.code(&digits, 16)?
            }
            // A character by its name.
            'N' => return Err(errors::error(errors::REGEXP_UNIMPLEMENTED, &[])),
            c => c,
        })
    }

    /// Exactly this many hexadecimal digits.
    fn code_of(&mut self, digits: usize) -> Result<char, SqlError> {
        let digits = self.rest.get(..digits).ok_or_else(bad_escape)?;
        self.code(digits, 16)
    }

    fn code(&mut self, digits: &str, base: u32) -> Result<char, SqlError> {
        let code = u32::from_str_radix(digits, base).ok().and_then(char::from_u32).ok_or_else(bad_escape)?;
        self.rest = &self.rest[digits.len()..];
        Ok(code)
    }

    /// Behind `\p`: `{name}`.
    fn property(&mut self, c: char) -> Result<(), SqlError> {
        self.weigh(RANGES_OF_PROPERTY)?;
        if !self.accept("{") {
            return Err(errors::error(errors::REGEXP_ILLEGAL_ARGUMENT, &[]));
        }
        let name = self.rest.split_once('}');
        let known = |name: &str| {
            let letters = |byte: u8| byte.is_ascii_alphanumeric() || b" _-=^".contains(&byte);
            !name.is_empty() && name.bytes().all(letters)
        };
        match name {
            Some((name, rest)) if known(name) => {
                self.rest = rest;
                self.put(&format!(r"\{c}{{{name}}}"));
                Ok(())
            }
            _ => Err(errors::error(errors::REGEXP_ILLEGAL_ARGUMENT, &[])),
        }
    }

    /// Behind `[`, with all the sets inside it.
    fn set(&mut self) -> Result<(), SqlError> {
        let mut depth = 1;
        // A character that a `-` may make the first of a range.
        let mut first = None;
        // Whether an operator has its left side.
        let mut filled = false;
        self.begin_set();
        if self.accept("]") {
            self.literal(']');
            filled = true;
        }
        while depth > 0 {
            let c = self.next().ok_or_else(unclosed_set)?;
            match c {
                ']' => {
                    depth -= 1;
                    self.put("]");
                    first = None;
                }
                '[' if self.rest.starts_with(':') && self.rest[1..].contains(":]") => {
                    self.next();
                    self.posix()?;
                    first = None;
                }
                '[' => {
                    depth += 1;
                    if depth > DEPTH_MAX {
                        return Err(too_big());
                    }
                    self.begin_set();
                    (first, filled) = (None, false);
                    continue;
                }
                '&' | '-' if self.rest.starts_with(c) => {
                    self.next();
                    if !filled {
                        return Err(self.syntax());
                    }
                    if self.accept("]") {
                        return Err(self.syntax());
                    }
                    self.put(if c == '&' { "&&" } else { "--" });
                    first = None;
                }
                '-' if first.is_some() && !self.rest.starts_with(']') && !self.rest.starts_with('[') => {
                    let c = self.next().ok_or_else(unclosed_set)?;
                    if c == '\\' && self.rest.starts_with(SETS) {
                        // A set is no end of a range.
                        self.next();
                        return Err(self.syntax());
                    }
                    let last = if c == '\\' { self.escaped_of_range()? } else { c };
                    if first.is_some_and(|first| last < first) {
                        return Err(errors::error(errors::REGEXP_INVALID_RANGE, &[]));
                    }
                    self.made.pattern.push('-');
                    self.literal(last);
                    first = None;
                }
                '\\' if self.rest.starts_with(SETS) => {
                    self.escaped()?;
                    first = None;
                }
                '\\' => {
                    let c = self.escaped_of_range()?;
                    self.literal(c);
                    first = Some(c);
                }
                c => {
                    self.literal(c);
                    first = Some(c);
                }
            }
            filled = true;
        }
        self.weigh(8)?;
        self.repeatable = true;
        Ok(())
    }

    fn escaped_of_range(&mut self) -> Result<char, SqlError> {
        let c = self.next().ok_or_else(bad_escape)?;
        self.character(c)
    }

    fn begin_set(&mut self) {
        self.made.pattern.push('[');
        if self.accept("^") {
            self.made.pattern.push('^');
        }
    }

    /// Behind `[:`: `name:]`.
    fn posix(&mut self) -> Result<(), SqlError> {
        self.weigh(2 * RANGES_OF_PROPERTY)?;
        let (name, rest) = self.rest.split_once(":]").ok_or_else(unclosed_set)?;
        let (negated, name) = name.strip_prefix('^').map_or((false, name), |name| (true, name));
        let inner = match name.to_ascii_lowercase().as_str() {
            "alpha" => r"\p{Alphabetic}",
            "digit" => r"\p{Nd}",
            "alnum" => r"\p{Alphabetic}\p{Nd}",
            "upper" => r"\p{Uppercase}",
            "lower" => r"\p{Lowercase}",
            "space" => r"\s",
            "blank" => r"\t\p{Zs}",
            "punct" => r"\p{P}",
            "cntrl" => r"\p{Cc}",
            "xdigit" => r"\p{Nd}A-Fa-f",
            "word" => r"\w",
            // No text has surrogates.
            "graph" => r"[^\s\p{Cc}\p{Cn}]",
            "print" => r"[[^\s\p{Cc}\p{Cn}]\p{Zs}]",
            _ => return Err(errors::error(errors::REGEXP_ILLEGAL_ARGUMENT, &[])),
        };
        self.rest = rest;
        let _ = write!(self.made.pattern, "[{}{inner}]", if negated { "^" } else { "" });
        Ok(())
    }
}
