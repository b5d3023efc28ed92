//! REGEXP and its functions: places and occurrences count characters, from 1.

use std::borrow::Cow;
use std::rc::Rc;

use untorn::types::Collation;

use super::{Function, any_null, function, index, owned_text, text_fits, text_sum};
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::result::{SqlError, kind};
use crate::value::regex::{Modes, Place, Regex};
use crate::value::{Value, collation};

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("REGEXP_LIKE", 2..=3, |_| Type::BOOL, |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let search = Search::new(v, 2, "regexp_like", cx)?;
        Ok(Value::truth_value(search.find(0)?.is_some()))
    }),
    function!("REGEXP_INSTR", 2..=6, |_| Type { length: 21, ..Type::INT }, |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let search = Search::new(v, 5, "regexp_instr", cx)?;
        let behind = match v.get(4).map_or(0, Value::to_i64) {
            0 => false,
            1 => true,
            _ => return Err(errors::error(errors::WRONG_ARGUMENTS, &[&INSTR_OPTION])),
        };
        let start = search.start_of_instr(index_or(v, 2, 1))?;
        // What comes before is not there for the pattern.
        let (before, search) = search.split(start);
        let found = search.occurrence(0, index_or(v, 3, 1))?;
        let at = found.map(|found| if behind { found.end } else { found.start });
        Ok(Value::Int(at.map_or(0, |at| (before + search.characters(at)) as i64 + 1)))
    }),
    function!("REGEXP_SUBSTR", 2..=5, |t| Type { nullable: true, ..text_sum(&t[..1]) }, |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let search = Search::new(v, 4, "regexp_substr", cx)?;
        refuse_before_first(index_or(v, 2, 1), "regexp_substr")?;
        let found = search.occurrence(search.start(index_or(v, 2, 1))?, index_or(v, 3, 1))?;
        Ok(found.map_or(Value::Null, |found| search.value(search.text[found].to_owned())))
    }),
    function!(
        "REGEXP_REPLACE",
        3..=6,
        |t| Type { kind: kind::BLOB, length: REPLACED_MAX, ..text_sum(&t[..1]) },
        |v, cx| {
            if any_null(v) {
                return Ok(Value::Null);
            }
            let search = Search::new(v, 5, "regexp_replace", cx)?;
            replace(&search, v, cx)
        }
    ),
];

/// What clients are told of how long REGEXP_REPLACE's results may be.
const REPLACED_MAX: u32 = (1 << 24) - 1;

/// How MySQL says that the fifth argument is neither 0 nor 1.
const INSTR_OPTION: &str = "regexp_instr: return_option must be 1 or 0.";

fn index_or(values: &[Value<'_>], at: usize, otherwise: i64) -> i64 {
    if at < values.len() { index(values, at) } else { otherwise }
}

/// Error 1583 for a place before the first, where REGEXP_INSTR has 3686.
fn refuse_before_first(character: i64, function: &str) -> Result<(), SqlError> {
    match character {
        ..1 => Err(errors::error(errors::WRONG_PARAMETERS_TO_NATIVE_FCT, &[&function])),
        _ => Ok(()),
    }
}

/// A text; of bytes each one is a character.
fn characters<'v>(value: &'v Value<'_>) -> Cow<'v, str> {
    match (value.collation(), value.to_text()) {
        (Collation::Binary, bytes) => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
        (_, Cow::Borrowed(text)) => String::from_utf8_lossy(text),
        (_, Cow::Owned(text)) => String::from_utf8_lossy(&text).into_owned().into(),
    }
}

/// A pattern in a text.
struct Search<'v, 'c> {
    text: Cow<'v, str>,
    collation: Collation,
    regex: Rc<Regex>,
    cx: &'c Context<'c>,
}

impl<'v, 'c> Search<'v, 'c> {
    /// The text and the pattern are the first arguments; the modes stand at `modes`, or are the collation's.
    fn new(
        values: &'v [Value<'_>],
        modes: usize,
        function: &str,
        cx: &'c Context<'c>,
    ) -> Result<Self, SqlError> {
        let rules = [values[0].collation(), values[1].collation()];
        let binary = rules.map(|rule| rule == Collation::Binary);
        if binary[0] != binary[1] {
            let [text, pattern] =
                rules.map(|rule| if rule == Collation::Binary { "binary" } else { rule.name() });
            return Err(errors::error(errors::CHARACTER_SET_MISMATCH, &[&text, &pattern, &function]));
        }
        cx.state.hold(values[0].to_text().len().saturating_mul(if binary[0] { 2 } else { 1 }))?;
        let (text, pattern) = (characters(&values[0]), characters(&values[1]));
        let rule = collation::common(rules[0], rules[1]);
        let modes = modes_of(rule, values.get(modes), function)?;
        cx.state.work(text.len() + pattern.len())?;
        let regex = cx.state.pattern(&pattern, modes)?;
        Ok(Search { text, collation: if binary[0] { Collation::Binary } else { rule }, regex, cx })
    }

    /// Error 3995 for bytes among characters, and the other way round.
    fn refuse_other_kind(&self, value: &Value<'_>) -> Result<(), SqlError> {
        let Value::Text(_, rule) = value else { return Ok(()) };
        let rules = [self.collation, *rule].map(|rule| match rule {
            Collation::Binary => "binary",
            rule => rule.name(),
        });
        match (rules[0] == "binary") == (rules[1] == "binary") {
            true => Ok(()),
            false => {
                let [text, other] = rules;
                Err(errors::error(errors::CHARACTER_SET_MISMATCH, &[&text, &other, &"regexp_replace"]))
            }
        }
    }

    /// What stands for this text in the collation of the result.
    fn value(&self, text: String) -> Value<'static> {
        match self.collation {
            Collation::Binary => {
                let bytes = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?'));
                owned_text(bytes.collect(), Collation::Binary)
            }
            rule => owned_text(text.into_bytes(), rule),
        }
    }

    fn find(&self, from: usize) -> Result<Option<Place>, SqlError> {
        self.regex.find(&self.text, from, &|bytes| self.cx.state.work(bytes))
    }

    /// The byte where this character begins; the end is one, too.
    fn start(&self, character: i64) -> Result<usize, SqlError> {
        let out_of_bounds = || errors::error(errors::REGEXP_INDEX_OUT_OF_BOUNDS, &[]);
        let before = usize::try_from(character.saturating_sub(1)).map_err(|_| out_of_bounds())?;
        let mut begins = self.text.char_indices().map(|(at, _)| at).chain([self.text.len()]);
        begins.nth(before).ok_or_else(out_of_bounds)
    }

    /// [`Search::start`] of REGEXP_INSTR, which does not begin behind the last character.
    fn start_of_instr(&self, character: i64) -> Result<usize, SqlError> {
        if self.text.is_empty() {
            return Ok(0);
        }
        let start = self.start(character)?;
        match start == self.text.len() {
            true => Err(errors::error(errors::REGEXP_INDEX_OUT_OF_BOUNDS, &[])),
            false => Ok(start),
        }
    }

    /// The characters before this byte, and a search in what follows.
    fn split(self, at: usize) -> (usize, Self) {
        let before = self.characters(at);
        let text = match self.text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[at..]),
            Cow::Owned(mut text) => {
                text.drain(..at);
                Cow::Owned(text)
            }
        };
        (before, Search { text, ..self })
    }

    fn characters(&self, at: usize) -> usize {
        self.text[..at].chars().count()
    }

    /// The n-th match from this byte on.
    fn occurrence(&self, from: usize, number: i64) -> Result<Option<Place>, SqlError> {
        let mut from = Some(from);
        let mut left = number.max(1);
        while let Some(at) = from
            && let Some(found) = self.find(at)?
        {
            left -= 1;
            if left == 0 {
                return Ok(Some(found));
            }
            from = Regex::behind(&self.text, &found);
        }
        Ok(None)
    }
}

/// The modes that a match type says, on those of the collation; of `c` and `i` the last one counts.
fn modes_of(rule: Collation, said: Option<&Value<'_>>, function: &str) -> Result<Modes, SqlError> {
    let mut modes = Modes { insensitive: rule.name().ends_with("_ci"), ..Modes::default() };
    let said = said.map(Value::to_text).unwrap_or_default();
    for letter in said.iter() {
        match letter {
            b'c' => modes.insensitive = false,
            b'i' => modes.insensitive = true,
            b'm' => modes.lines = true,
            b'n' => modes.dot_all = true,
            b'u' => modes.unix_lines = true,
            _ => return Err(errors::error(errors::WRONG_ARGUMENTS, &[&function])),
        }
    }
    Ok(modes)
}

/// A part of a replacement.
enum Part<'t> {
    Text(&'t str),
    Character(char),
    Group(usize),
}

/// `$1` and `${name}` are groups, and a backslash takes the meaning of what follows it.
fn parts<'t>(replacement: &'t str, regex: &Regex) -> Result<Vec<Part<'t>>, SqlError> {
    let wrong_name = || errors::error(errors::REGEXP_INVALID_CAPTURE_GROUP_NAME, &[]);
    let mut parts = Vec::new();
    let mut rest = replacement;
    while let Some(at) = rest.find(['$', '\\']) {
        let (plain, special) = rest.split_at(at);
        parts.push(Part::Text(plain));
        let behind = &special[1..];
        if special.starts_with('\\') {
            let length = behind.chars().next().map_or(0, char::len_utf8);
            // `\u` and `\U` with as many digits as they take.
            let digits = match behind.as_bytes() {
                [b'u', ..] => behind.get(1..5),
                [b'U', ..] => behind.get(1..9),
                _ => None,
            };
            let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            if let (Some(digits), Some(c)) = (digits, code.and_then(char::from_u32)) {
                parts.push(Part::Character(c));
                rest = &behind[1 + digits.len()..];
                continue;
            }
            parts.push(Part::Text(&behind[..length]));
            rest = &behind[length..];
        } else if let Some(name) = behind.strip_prefix('{') {
            let (name, after) = name.split_once('}').ok_or_else(wrong_name)?;
            parts.push(Part::Group(regex.group_of_name(name).ok_or_else(wrong_name)?));
            rest = after;
        } else {
            let mut number = None;
            let mut digits = 0;
            // As many digits as there are groups for.
            for digit in behind.chars().map_while(|c| c.to_digit(10)) {
                let longer = number.unwrap_or(0) * 10 + digit as usize;
                if longer > regex.group_count() && number.is_some() {
                    break;
                }
                (number, digits) = (Some(longer), digits + 1);
                if longer > regex.group_count() {
                    return Err(errors::error(errors::REGEXP_INDEX_OUT_OF_BOUNDS, &[]));
                }
            }
            parts.push(Part::Group(number.ok_or_else(wrong_name)?));
            rest = &behind[digits..];
        }
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

fn replace<'a>(search: &Search<'_, '_>, values: &[Value<'_>], cx: &Context<'_>) -> Evaluated<'a> {
    refuse_before_first(index_or(values, 3, 1), "regexp_replace")?;
    let start = search.start(index_or(values, 3, 1))?;
    if search.text.is_empty() {
        return Ok(search.value(String::new()));
    }
    search.refuse_other_kind(&values[2])?;
    let replacement = characters(&values[2]);
    // What is wrong with it is said where something is replaced.
    let parts = parts(&replacement, &search.regex);
    let asks_groups = parts.iter().flatten().any(|part| matches!(part, Part::Group(number) if *number > 0));
    let wanted = match index_or(values, 4, 0) {
        ..0 => 1,
        wanted => wanted,
    };
    let text = &*search.text;
    let mut from = Some(start);
    let (mut made, mut copied, mut number, mut held) = (String::new(), 0, 0, 0);
    while let Some(at) = from
        && let Some(found) = search.find(at)?
    {
        number += 1;
        from = Regex::behind(text, &found);
        if wanted > 0 && number < wanted {
            continue;
        }
        let groups = if asks_groups { search.regex.groups(text, &found)? } else { vec![Some(found.clone())] };
        made.push_str(&text[copied..found.start]);
        for part in parts.as_ref().map_err(Clone::clone)? {
            match part {
                Part::Character(c) => made.push(*c),
                Part::Text(text) => made.push_str(text),
                Part::Group(number) => {
                    let group = groups.get(*number).cloned().flatten();
                    made.push_str(group.map_or("", |group| &text[group]));
                }
            }
        }
        copied = found.end;
        cx.state.work(found.len() + replacement.len())?;
        // What is made is charged as it grows.
        if made.len() > held {
            if !text_fits(made.len(), "regexp_replace", cx.state) {
                return Ok(Value::Null);
            }
            let more = made.len().max(64 << 10);
            cx.state.hold(more)?;
            held += more;
        }
        if wanted > 0 {
            break;
        }
    }
    made.push_str(&text[copied..]);
    if !text_fits(made.len(), "regexp_replace", cx.state) {
        return Ok(Value::Null);
    }
    Ok(search.value(made))
}
