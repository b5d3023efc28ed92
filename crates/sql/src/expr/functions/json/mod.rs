//! Functions of JSON documents.
//!
//! An argument that should be a document is one, or a text that says one; any other is error 3146. An
//! argument that should be a value becomes a part of a document: a text a string, a condition a boolean,
//! which the binder marks ([`TRUTH`]). A document is read whole into memory that is charged to the statement,
//! looked into or changed, and written again.

mod change;
mod extract;
mod merge;
mod search;
pub mod value;

use untorn::types::Collation;

use super::{Function, function};
use crate::context::SqlContext;
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::result::SqlError;
use crate::value::Value;
use crate::value::json::path::{Leg, Path};
use crate::value::json::{Json, Room, Source};

/// All of them.
pub(super) static FUNCTIONS: [&[Function]; 4] =
    [extract::FUNCTIONS, change::FUNCTIONS, merge::FUNCTIONS, search::FUNCTIONS];

/// Whether the argument at this place becomes a part of a document, and is not one.
pub fn takes_value(name: &str, at: usize) -> bool {
    match name {
        "JSON_ARRAY" => true,
        "JSON_OBJECT" => at % 2 == 1,
        "JSON_SET" | "JSON_INSERT" | "JSON_REPLACE" | "JSON_ARRAY_APPEND" | "JSON_ARRAY_INSERT" => {
            at > 0 && at.is_multiple_of(2)
        }
        "MEMBER OF" => at == 0,
        _ => false,
    }
}

/// Whether this number of arguments leaves a key without its value, or a path.
pub fn lacks_a_partner(name: &str, arguments: usize) -> bool {
    let alone = match name {
        "JSON_OBJECT" => 0,
        "JSON_SET" | "JSON_INSERT" | "JSON_REPLACE" | "JSON_ARRAY_APPEND" | "JSON_ARRAY_INSERT" => 1,
        _ => return false,
    };
    arguments % 2 != alone
}

/// A condition as a boolean.
pub static TRUTH: Function = function!("JSON_TRUTH", 1..=1, |_| Type::JSON, |v, _| {
    v[0].truth().map_or(Ok(Value::Null), |truth| Json::Bool(truth).into_value())
});

/// A call that is being evaluated: its arguments, its name for the messages, and its memory.
struct Call<'c, 'v> {
    values: &'c [Value<'v>],
    name: &'static str,
    room: Room<'c>,
}

impl Call<'_, '_> {
    /// The document that is the argument at this place; `None` for NULL.
    fn document(&mut self, at: usize) -> Result<Option<Json>, SqlError> {
        Json::read(&self.values[at], Source::Argument(at + 1, self.name), &mut self.room)
    }

    /// The value at this place as a part of a document.
    fn part(&mut self, at: usize) -> Result<Json, SqlError> {
        Json::of_value(&self.values[at], &mut self.room)
    }

    /// The path at this place; `None` for NULL.
    fn path(&self, at: usize) -> Result<Option<Path>, SqlError> {
        let value = &self.values[at];
        if value.is_null() {
            return Ok(None);
        }
        let path = Path::parse(&value.to_string_lossy());
        path.map(Some).map_err(|at| errors::error(errors::INVALID_JSON_PATH, &[&at]))
    }

    /// The same, which leads to one value at most.
    fn single_path(&self, at: usize) -> Result<Option<Path>, SqlError> {
        match self.path(at)? {
            Some(path) if path.is_many() => Err(errors::error(errors::INVALID_JSON_PATH_WILDCARD, &[])),
            path => Ok(path),
        }
    }

    /// The paths from this place on; `None` where one is NULL.
    fn paths(&self, from: usize) -> Result<Option<Vec<Path>>, SqlError> {
        (from..self.values.len()).map(|at| self.path(at)).collect()
    }

    /// Whether the argument at this place says one, not all; `None` for NULL.
    fn one(&self, at: usize) -> Result<Option<bool>, SqlError> {
        if self.values[at].is_null() {
            return Ok(None);
        }
        match self.values[at].to_string_lossy().to_ascii_lowercase().as_str() {
            "one" => Ok(Some(true)),
            "all" => Ok(Some(false)),
            _ => Err(errors::error(errors::JSON_BAD_ONE_OR_ALL_ARG, &[&self.name])),
        }
    }
}

/// Evaluates a call: `work` gives the value, `None` for NULL.
fn call<'a, T>(
    values: &[Value<'a>],
    cx: &Context<'_>,
    name: &'static str,
    work: impl FnOnce(&mut Call<'_, 'a>) -> Result<Option<T>, SqlError>,
    value: impl FnOnce(T) -> Evaluated<'a>,
) -> Evaluated<'a> {
    let ask = |bytes| room(cx.state, bytes);
    let mut call = Call { values, name, room: Room::new(&ask) };
    work(&mut call)?.map_or(Ok(Value::Null), value)
}

/// Charges memory of a document, and counts the work of filling it.
pub fn room(state: &SqlContext, bytes: usize) -> Result<(), SqlError> {
    state.work(bytes)?;
    state.hold(bytes)
}

/// [`call`] of what gives a document.
fn document<'a>(
    values: &[Value<'a>],
    cx: &Context<'_>,
    name: &'static str,
    work: impl FnOnce(&mut Call<'_, 'a>) -> Result<Option<Json>, SqlError>,
) -> Evaluated<'a> {
    call(values, cx, name, work, Json::into_value)
}

/// [`call`] of what gives a number.
fn number<'a>(
    values: &[Value<'a>],
    cx: &Context<'_>,
    name: &'static str,
    work: impl FnOnce(&mut Call<'_, 'a>) -> Result<Option<usize>, SqlError>,
) -> Evaluated<'a> {
    call(values, cx, name, work, |number| Ok(Value::Int(number as i64)))
}

/// [`call`] of what gives a text.
fn text<'a>(
    values: &[Value<'a>],
    cx: &Context<'_>,
    name: &'static str,
    work: impl FnOnce(&mut Call<'_, 'a>) -> Result<Option<String>, SqlError>,
) -> Evaluated<'a> {
    call(values, cx, name, work, |text| Ok(Value::Text(text.into_bytes().into(), Collation::Utf8mb4Bin)))
}

/// The type of texts that documents give.
fn text_type(_: &[Type]) -> Type {
    Type { collation: Collation::Utf8mb4Bin, ..Type::text(u32::MAX / 4) }
}

/// The last leg of a path, and those before it.
fn last_leg(path: &Path) -> Option<(&Leg, &[Leg])> {
    path.legs.split_last()
}

/// CAST AS JSON: a text says a document, any other value is one.
pub fn cast<'a>(value: &Value<'a>, state: &SqlContext) -> Evaluated<'a> {
    let ask = |bytes| room(state, bytes);
    let mut room = Room::new(&ask);
    match value {
        Value::Json(_) => Ok(value.clone()),
        Value::Text(_, rule) if *rule != Collation::Binary => {
            let document = Json::read(value, Source::Argument(1, "cast_as_json"), &mut room)?;
            document.map_or(Ok(Value::Null), Json::into_value)
        }
        value => Json::of_value(value, &mut room)?.into_value(),
    }
}
