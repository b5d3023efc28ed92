//! JSON_EXTRACT and what else looks into documents; JSON_OBJECT and JSON_ARRAY, which make them of values.

use super::{Call, document, number, text, text_type};
use crate::errors;
use crate::expr::functions::{Function, TextOf, function};
use crate::expr::types::Type;
use crate::result::SqlError;
use crate::value::Value;
use crate::value::json::path::Path;
use crate::value::json::{Json, Members, binary, print};

pub(super) static FUNCTIONS: &[Function] = &[
    function!("JSON_ARRAY", 0.., |_| Type::JSON.not_null(), |v, cx| document(v, cx, "json_array", |call| {
        let list: Result<Vec<_>, SqlError> = (0..call.values.len()).map(|at| call.part(at)).collect();
        Ok(Some(Json::Array(list?)))
    })),
    function!("JSON_OBJECT", 0.., |_| Type::JSON.not_null(), |v, cx| document(
        v,
        cx,
        "json_object",
        |call| {
            let pairs = 0..call.values.len() / 2;
            let member = |at: usize| Ok((Json::key(&call.values[2 * at])?, call.part(2 * at + 1)?));
            let list: Result<Vec<_>, SqlError> = pairs.map(member).collect();
            Ok(Some(Json::Object(Members::of_list(list?))))
        }
    )),
    function!("JSON_EXTRACT", 2.., |_| Type::JSON, |v, cx| document(v, cx, "json_extract", extract)),
    function!("JSON_UNQUOTE", 1..=1, text_type, |v, cx| text(v, cx, "json_unquote", unquote))
        .with_text_of(TextOf::Connection),
    function!("JSON_QUOTE", 1..=1, text_type, |v, cx| text(v, cx, "json_quote", |call| {
        match &call.values[0] {
            Value::Null => Ok(None),
            value @ Value::Text(..) => {
                let mut quoted = String::new();
                print::quote(&value.to_string_lossy(), &mut quoted);
                Ok(Some(quoted))
            }
            _ => Err(errors::error(errors::INCORRECT_TYPE, &[&1, &call.name])),
        }
    }))
    .with_text_of(TextOf::Connection),
    function!("JSON_VALID", 1..=1, |_| Type::BOOL, |v, cx| number(v, cx, "json_valid", |call| {
        match call.document(0) {
            Ok(found) => Ok(found.map(|_| 1)),
            Err(error) if is_of_text(&error) => Ok(Some(0)),
            Err(error) => Err(error),
        }
    })),
    function!("JSON_TYPE", 1..=1, |t| Type { length: 17, ..text_type(t) }, |v, cx| text(
        v,
        cx,
        "json_type",
        |call| { Ok(call.document(0)?.map(|value| value.type_name().to_owned())) }
    ))
    .with_text_of(TextOf::Connection),
    function!("JSON_LENGTH", 1..=2, |_| Type::INT, |v, cx| number(v, cx, "json_length", |call| {
        found(call, |value| Some(value.length()))
    })),
    function!("JSON_DEPTH", 1..=1, |_| Type::INT, |v, cx| number(v, cx, "json_depth", |call| {
        Ok(call.document(0)?.map(|value| value.depth()))
    })),
    function!("JSON_KEYS", 1..=2, |_| Type::JSON, |v, cx| document(v, cx, "json_keys", |call| {
        found(call, |value| match value {
            Json::Object(members) => {
                Some(Json::Array(members.iter().map(|(key, _)| Json::Text(key.to_owned())).collect()))
            }
            _ => None,
        })
    })),
    function!("JSON_PRETTY", 1..=1, text_type, |v, cx| text(v, cx, "json_pretty", |call| {
        Ok(call.document(0)?.map(|value| value.pretty()))
    }))
    .with_text_of(TextOf::Connection),
    function!("JSON_STORAGE_SIZE", 1..=1, |_| Type::INT, |v, cx| number(
        v,
        cx,
        "json_storage_size",
        |call| {
            if let Value::Json(bytes) = &call.values[0] {
                return Ok(Some(bytes.len()));
            }
            call.document(0)?.map(|value| binary::encode(&value).map(|bytes| bytes.len())).transpose()
        }
    )),
    function!("JSON_STORAGE_FREE", 1..=1, |_| Type::INT, |v, cx| number(
        v,
        cx,
        "json_storage_free",
        |call| { Ok(call.document(0)?.map(|_| 0)) }
    )),
];

/// Whether an error says that something is no document.
fn is_of_text(error: &SqlError) -> bool {
    matches!(
        error.code,
        errors::INVALID_JSON_TEXT_IN_PARAM | errors::INVALID_TYPE_FOR_JSON | errors::INVALID_JSON_CHARSET
    )
}

/// What a function of a document and perhaps a path finds in the value there.
fn found<T>(call: &mut Call<'_, '_>, find: impl Fn(&Json) -> Option<T>) -> Result<Option<T>, SqlError> {
    let Some(document) = call.document(0)? else { return Ok(None) };
    if call.values.len() < 2 {
        return Ok(find(&document));
    }
    // MySQL lets JSON_LENGTH have a path to many, and counts the first of them only.
    let path = if call.name == "json_length" { call.path(1)? } else { call.single_path(1)? };
    let Some(path) = path else { return Ok(None) };
    let values = document.seek(&path, &mut call.room)?;
    Ok(values.first().and_then(|value| find(value)))
}

fn extract(call: &mut Call<'_, '_>) -> Result<Option<Json>, SqlError> {
    let Some(document) = call.document(0)? else { return Ok(None) };
    let Some(paths) = call.paths(1)? else { return Ok(None) };
    let mut values = Vec::new();
    for path in &paths {
        for value in document.seek(path, &mut call.room)? {
            call.room.copy_of(value)?;
            values.push(value.clone());
        }
    }
    let many = paths.len() > 1 || paths.iter().any(Path::is_many);
    if many && !values.is_empty() {
        return Ok(Some(Json::Array(values)));
    }
    Ok(values.pop())
}

/// A document as a text, a string without its quotes. A text that is quoted must be one of JSON's; any other
/// is itself.
fn unquote(call: &mut Call<'_, '_>) -> Result<Option<String>, SqlError> {
    match &call.values[0] {
        Value::Null => Ok(None),
        Value::Json(_) => Ok(call.document(0)?.map(|value| value.unquoted())),
        Value::Text(text, _) if text.len() > 1 && text.starts_with(b"\"") && text.ends_with(b"\"") => {
            Ok(call.document(0)?.map(|value| value.unquoted()))
        }
        value @ Value::Text(..) => Ok(Some(value.to_string_lossy())),
        _ => Err(errors::error(errors::INCORRECT_TYPE, &[&1, &call.name])),
    }
}
