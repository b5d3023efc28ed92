//! Documents merged.

use super::{Call, document};
use crate::errors;
use crate::expr::functions::{Function, function};
use crate::expr::types::Type;
use crate::result::SqlError;
use crate::value::json::{Json, Members};

pub(super) static FUNCTIONS: &[Function] = &[
    function!("JSON_MERGE_PATCH", 2.., |_| Type::JSON, |v, cx| document(v, cx, "json_merge_patch", |call| {
        let mut merged = call.document(0)?;
        for at in 1..call.values.len() {
            merged = match (merged, call.document(at)?) {
                // What is no object replaces all that was there.
                (_, Some(document)) if !matches!(document, Json::Object(_)) => Some(document),
                (Some(merged), Some(document)) => Some(patch(merged, document)),
                _ => None,
            };
        }
        Ok(merged)
    })),
    function!("JSON_MERGE_PRESERVE", 2.., |_| Type::JSON, |v, cx| {
        document(v, cx, "json_merge_preserve", all_preserved)
    }),
    function!("JSON_MERGE", 2.., |_| Type::JSON, |v, cx| {
        let instead = "JSON_MERGE_PRESERVE/JSON_MERGE_PATCH";
        cx.state.warn(errors::error(errors::WARN_DEPRECATED_SYNTAX, &[&"JSON_MERGE", &instead]));
        document(v, cx, "json_merge", all_preserved)
    }),
];

/// RFC 7396: members of the patch replace those of its target, `null` takes them out.
fn patch(target: Json, patched: Json) -> Json {
    let Json::Object(members) = patched else { return patched };
    let target = if let Json::Object(members) = target { members } else { Members::default() };
    Json::Object(target.merged(members, |before, value| match value {
        Json::Null => None,
        value => Some(patch(before.unwrap_or(Json::Null), value)),
    }))
}

fn all_preserved(call: &mut Call<'_, '_>) -> Result<Option<Json>, SqlError> {
    let mut merged = call.document(0)?;
    for at in 1..call.values.len() {
        merged = merged.zip(call.document(at)?).map(|(merged, document)| preserve(merged, document));
    }
    Ok(merged)
}

/// Objects member by member, anything else one behind the other in an array.
fn preserve(first: Json, second: Json) -> Json {
    match (first, second) {
        (Json::Object(first), Json::Object(second)) => {
            Json::Object(first.merged(second, |before, value| match before {
                Some(before) => Some(preserve(before, value)),
                None => Some(value),
            }))
        }
        (first, second) => {
            let mut list = first.into_array();
            list.extend(second.into_array());
            Json::Array(list)
        }
    }
}
