//! Documents with values put in and taken out.

use super::{Call, document, last_leg};
use crate::errors;
use crate::expr::functions::{Function, function};
use crate::expr::types::Type;
use crate::result::SqlError;
use crate::value::json::path::{Leg, Path};
use crate::value::json::{DEPTH_MAX, Json, too_deep};

pub(super) static FUNCTIONS: &[Function] = &[
    function!("JSON_SET", 3.., |_| Type::JSON, |v, cx| document(v, cx, "json_set", |call| {
        each(call, |document, path, value| set(document, path, value, true, true))
    })),
    function!("JSON_INSERT", 3.., |_| Type::JSON, |v, cx| document(v, cx, "json_insert", |call| {
        each(call, |document, path, value| set(document, path, value, false, true))
    })),
    function!("JSON_REPLACE", 3.., |_| Type::JSON, |v, cx| document(v, cx, "json_replace", |call| {
        each(call, |document, path, value| set(document, path, value, true, false))
    })),
    function!("JSON_ARRAY_APPEND", 3.., |_| Type::JSON, |v, cx| document(
        v,
        cx,
        "json_array_append",
        |call| {
            each(call, |document, path, value| {
                if let Some(place) = document.seek_mut(&path.legs) {
                    let mut list = std::mem::replace(place, Json::Null).into_array();
                    list.push(value);
                    *place = Json::Array(list);
                }
                Ok(())
            })
        }
    )),
    function!("JSON_ARRAY_INSERT", 3.., |_| Type::JSON, |v, cx| document(
        v,
        cx,
        "json_array_insert",
        |call| {
            each(call, |document, path, value| {
                let Some((Leg::Cell(index), before)) = last_leg(path) else {
                    return Err(errors::error(errors::INVALID_JSON_PATH_ARRAY_CELL, &[]));
                };
                if let Some(place) = document.seek_mut(before) {
                    place.insert_cell(*index, value);
                }
                Ok(())
            })
        }
    )),
    function!("JSON_REMOVE", 2.., |_| Type::JSON, |v, cx| document(v, cx, "json_remove", |call| {
        let Some(mut document) = call.document(0)? else { return Ok(None) };
        for at in 1..call.values.len() {
            let Some(path) = call.single_path(at)? else { return Ok(None) };
            if path.legs.is_empty() {
                return Err(errors::error(errors::JSON_VACUOUS_PATH, &[]));
            }
            remove(&mut document, &path.legs);
        }
        Ok(Some(document))
    })),
];

/// Changes a document by its pairs of path and value, from left to right.
fn each(
    call: &mut Call<'_, '_>,
    change: impl Fn(&mut Json, &Path, Json) -> Result<(), SqlError>,
) -> Result<Option<Json>, SqlError> {
    let Some(mut document) = call.document(0)? else { return Ok(None) };
    for pair in 0..(call.values.len() - 1) / 2 {
        let Some(path) = call.single_path(2 * pair + 1)? else { return Ok(None) };
        let value = call.part(2 * pair + 2)?;
        if path.legs.len() + value.nesting() > DEPTH_MAX {
            return Err(too_deep());
        }
        change(&mut document, &path, value)?;
    }
    Ok(Some(document))
}

/// Takes out what a path leads to. Where its last step is the first cell of what is no array, that is the
/// value itself.
fn remove(document: &mut Json, legs: &[Leg]) {
    let Some((last, before)) = legs.split_last() else { return };
    match document.seek_mut(before) {
        Some(place) if last.is_itself(place) => remove(document, before),
        Some(place) => place.remove(last),
        None => {}
    }
}

/// Puts a value where a path leads, if something is there, and otherwise where it would lead.
fn set(document: &mut Json, path: &Path, value: Json, replace: bool, insert: bool) -> Result<(), SqlError> {
    if let Some(place) = document.seek_mut(&path.legs) {
        if replace {
            *place = value;
        }
    } else if insert
        && let Some((last, before)) = last_leg(path)
        && let Some(place) = document.seek_mut(before)
    {
        place.grow(last, value);
    }
    Ok(())
}
