//! SOUNDEX: how a word sounds in English.

use untorn::types::Collation;

use super::text::text_like;
use super::{Function, function, owned_text, text_fits};
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::value::Value;

/// The functions.
pub(super) static FUNCTIONS: &[Function] =
    &[function!("SOUNDEX", 1..=1, widened, |v, cx| soundex(&v[0], cx))];

/// As the word, with four characters at least.
fn widened(types: &[Type]) -> Type {
    let word = text_like(types);
    Type { length: word.length.max(4), ..word }
}

/// The class of a letter: `0` for those that are not heard, none for what is no letter.
fn class(c: char) -> Option<u8> {
    match c {
        'A'..='Z' => Some(b"01230120022455012623010202"[c as usize - 'A' as usize]),
        // Letters of other alphabets count as vowels.
        other => other.is_alphabetic().then_some(b'0'),
    }
}

/// The first letter, then a digit for each change of class; four characters at least.
fn soundex<'a>(value: &Value<'_>, cx: &Context<'_>) -> Evaluated<'a> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let text = value.to_text();
    cx.state.work(text.len())?;
    if !text_fits(text.len().max(4), "soundex", cx.state) {
        return Ok(Value::Null);
    }
    cx.state.hold(text.len())?;
    let text = String::from_utf8_lossy(&text);
    let mut made = String::new();
    let mut last = None;
    for c in text.chars() {
        let upper = c.to_ascii_uppercase();
        let Some(class) = class(upper) else { continue };
        if made.is_empty() {
            made.push(upper);
        } else if class != b'0' && Some(class) != last {
            made.push(char::from(class));
        } else if class == b'0' {
            continue;
        }
        last = Some(class);
    }
    let missing = if made.is_empty() { 0 } else { 4usize.saturating_sub(made.chars().count()) };
    made.extend(std::iter::repeat_n('0', missing));
    let rule = if matches!(value, Value::Text(..)) { value.collation() } else { Collation::Utf8mb4GeneralCi };
    Ok(owned_text(made.into_bytes(), rule))
}
