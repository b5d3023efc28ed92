//! What a document contains, and where.

use std::cmp::Ordering;

use untorn::types::Collation;

use super::{Call, document, number};
use crate::expr::functions::{Function, function};
use crate::expr::types::Type;
use crate::result::SqlError;
use crate::value::json::print::quote;
use crate::value::json::{Json, Members};
use crate::value::{Value, like};

pub(super) static FUNCTIONS: &[Function] = &[
    function!("JSON_CONTAINS", 2..=3, |_| Type::BOOL, |v, cx| number(v, cx, "json_contains", |call| {
        let Some(document) = call.document(0)? else { return Ok(None) };
        let Some(candidate) = call.document(1)? else { return Ok(None) };
        if call.values.len() < 3 {
            return Ok(Some(usize::from(contains(&document, &candidate))));
        }
        let Some(path) = call.single_path(2)? else { return Ok(None) };
        let values = document.seek(&path, &mut call.room)?;
        Ok(values.first().map(|value| usize::from(contains(value, &candidate))))
    })),
    function!("JSON_CONTAINS_PATH", 3.., |_| Type::BOOL, |v, cx| number(
        v,
        cx,
        "json_contains_path",
        |call| {
            let Some(document) = call.document(0)? else { return Ok(None) };
            let Some(one) = call.one(1)? else { return Ok(None) };
            for at in 2..call.values.len() {
                let Some(path) = call.path(at)? else { return Ok(None) };
                let leads = !document.seek(&path, &mut call.room)?.is_empty();
                if leads == one {
                    return Ok(Some(usize::from(one)));
                }
            }
            Ok(Some(usize::from(!one)))
        }
    )),
    function!("JSON_OVERLAPS", 2..=2, |_| Type::BOOL, |v, cx| number(v, cx, "json_overlaps", |call| {
        let (first, second) = (call.document(0)?, call.document(1)?);
        Ok(first.zip(second).map(|(first, second)| usize::from(overlaps(first, second))))
    })),
    function!("MEMBER OF", 2..=2, |_| Type::BOOL, |v, cx| number(v, cx, "member of", |call| {
        if call.values[0].is_null() {
            return Ok(None);
        }
        let Some(document) = call.document(1)? else { return Ok(None) };
        let wanted = call.part(0)?;
        let found = document.into_array().iter().any(|value| value.order(&wanted).is_eq());
        Ok(Some(usize::from(found)))
    })),
    function!("JSON_SEARCH", 3.., |_| Type::JSON, |v, cx| document(v, cx, "json_search", |call| {
        let work = |bytes| cx.state.work(bytes);
        search(call, &work)
    })),
];

/// Whether a document contains another: an object all its members, an array all its elements, or it itself,
/// and a scalar its equal.
fn contains(document: &Json, candidate: &Json) -> bool {
    match (document, candidate) {
        (Json::Object(members), Json::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| members.get(key).is_some_and(|value| contains(value, wanted)))
        }
        (Json::Array(list), wanted) => {
            let wanted: Vec<&Json> = match wanted {
                Json::Array(wanted) => wanted.iter().collect(),
                other => vec![other],
            };
            let sorted = sorted(list);
            let found = |wanted: &&Json| {
                let equal = sorted.binary_search_by(|value| value.order(wanted)).is_ok();
                let nested = |value: &Json| matches!(value, Json::Array(_)) && contains(value, wanted);
                let inner = |value: &Json| matches!(value, Json::Object(_)) && contains(value, wanted);
                equal
                    || match wanted {
                        Json::Array(_) => list.iter().any(nested),
                        Json::Object(_) => list.iter().any(inner),
                        _ => false,
                    }
            };
            wanted.iter().all(found)
        }
        (document, candidate) => document.order(candidate).is_eq(),
    }
}

fn sorted(list: &[Json]) -> Vec<&Json> {
    let mut sorted: Vec<&Json> = list.iter().collect();
    sorted.sort_by(|left, right| left.order(right));
    sorted
}

/// Whether two arrays have an element in common, two objects a member. Anything else beside an array is an
/// array of itself.
fn overlaps(first: Json, second: Json) -> bool {
    let equal_member = |first: &Members, second: &Members| {
        let equal = |(key, value): (&str, &Json)| {
            second.get(key).is_some_and(|other| other.order(value) == Ordering::Equal)
        };
        first.iter().any(equal)
    };
    match (first, second) {
        (Json::Object(first), Json::Object(second)) => equal_member(&first, &second),
        (first, second) => {
            let (first, second) = (first.into_array(), second.into_array());
            let sorted = sorted(&second);
            first.iter().any(|value| sorted.binary_search_by(|other| other.order(value)).is_ok())
        }
    }
}

/// What JSON_SEARCH looks for, and where it has been found.
struct Search<'s> {
    pattern: Vec<u8>,
    escape: Option<u32>,
    one: bool,
    found: Vec<String>,
    work: &'s dyn Fn(usize) -> Result<(), SqlError>,
}

fn search(
    call: &mut Call<'_, '_>,
    work: &dyn Fn(usize) -> Result<(), SqlError>,
) -> Result<Option<Json>, SqlError> {
    let Some(document) = call.document(0)? else { return Ok(None) };
    let Some(one) = call.one(1)? else { return Ok(None) };
    let escape = like::escape_of(call.values.get(3).unwrap_or(&Value::Null))?;
    let Some(paths) = call.paths(call.values.len().min(4))? else { return Ok(None) };
    if call.values[2].is_null() {
        return Ok(None);
    }
    let pattern = call.values[2].to_text().into_owned();
    let mut search = Search { pattern, escape, one, found: Vec::new(), work };
    if paths.is_empty() {
        search.look(&document, &mut String::from("$"), &mut |_| true, true)?;
    }
    for path in &paths {
        let values = document.seek(path, &mut call.room)?;
        let wanted: std::collections::HashSet<_> =
            values.into_iter().map(std::ptr::from_ref::<Json>).collect();
        let mut inside = |value: &Json| wanted.contains(&std::ptr::from_ref(value));
        search.look(&document, &mut String::from("$"), &mut inside, false)?;
    }
    call.room.take(search.found.iter().map(String::len).sum())?;
    let mut found = search.found.into_iter();
    Ok(match (found.next(), found.len()) {
        (None, _) => None,
        (Some(only), 0) => Some(Json::Text(only)),
        (Some(first), _) => Some(Json::Array(std::iter::once(first).chain(found).map(Json::Text).collect())),
    })
}

impl Search<'_> {
    /// Looks in a value and in all of its parts, whose path is `path`, where a path has led to them.
    fn look(
        &mut self,
        value: &Json,
        path: &mut String,
        leads: &mut dyn FnMut(&Json) -> bool,
        inside: bool,
    ) -> Result<(), SqlError> {
        if self.one && !self.found.is_empty() {
            return Ok(());
        }
        let inside = inside || leads(value);
        let length = path.len();
        match value {
            Json::Array(list) => {
                for (number, value) in list.iter().enumerate() {
                    path.push_str(&format!("[{number}]"));
                    self.look(value, path, leads, inside)?;
                    path.truncate(length);
                }
            }
            Json::Object(members) => {
                for (key, value) in members.iter() {
                    path.push('.');
                    put_name(key, path);
                    self.look(value, path, leads, inside)?;
                    path.truncate(length);
                }
            }
            Json::Text(text) if inside => {
                let (text, rule) = (text.as_bytes(), Collation::Utf8mb4Bin);
                (self.work)(path.len())?;
                if like::like(text, &self.pattern, self.escape, rule, &self.work)?
                    && !self.found.iter().any(|found| found == path)
                {
                    self.found.push(path.clone());
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// A name as it stands in a path.
fn put_name(name: &str, path: &mut String) {
    let starts = |c: char| c.is_alphabetic() || matches!(c, '_' | '$');
    if name.starts_with(starts) && name.chars().all(|c| starts(c) || c.is_numeric()) {
        path.push_str(name);
    } else {
        quote(name, path);
    }
}
