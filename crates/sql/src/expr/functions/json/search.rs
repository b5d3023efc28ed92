//! What a document contains, and where.

use std::cmp::Ordering;
use std::collections::HashSet;

use untorn::types::Collation;

use super::{Call, document, number};
use crate::expr::functions::{Function, function};
use crate::expr::types::Type;
use crate::result::SqlError;
use crate::value::json::print::quote;
use crate::value::json::{Json, Room};
use crate::value::{Value, like};

pub(super) static FUNCTIONS: &[Function] = &[
    function!("JSON_CONTAINS", 2..=3, |_| Type::BOOL, |v, cx| number(v, cx, "json_contains", |call| {
        let Some(document) = call.document(0)? else { return Ok(None) };
        let Some(candidate) = call.document(1)? else { return Ok(None) };
        if call.values.len() < 3 {
            return Ok(Some(usize::from(contains(&document, &candidate, &|bytes| cx.state.work(bytes))?)));
        }
        let Some(path) = call.single_path(2)? else { return Ok(None) };
        let values = document.seek(&path, &mut call.room)?;
        let Some(value) = values.first() else { return Ok(None) };
        Ok(Some(usize::from(contains(value, &candidate, &|bytes| cx.state.work(bytes))?)))
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
        let Some((first, second)) = first.zip(second) else { return Ok(None) };
        Ok(Some(usize::from(overlaps(first, second, &|bytes| cx.state.work(bytes))?)))
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

/// Told how many bytes were looked at; fails when the statement was killed.
type Work<'w> = &'w dyn Fn(usize) -> Result<(), SqlError>;

/// What a comparison of two values costs at least, in bytes.
const COMPARISON: usize = 32;

/// Whether a document contains another: an object all its members, an array all its elements, or it itself,
/// and a scalar its equal.
fn contains(document: &Json, candidate: &Json, work: Work<'_>) -> Result<bool, SqlError> {
    work(COMPARISON)?;
    match (document, candidate) {
        (Json::Object(members), Json::Object(wanted)) => {
            for (key, wanted) in wanted.iter() {
                let Some(value) = members.get(key) else { return Ok(false) };
                if !contains(value, wanted, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Array(list), Json::Array(wanted)) => {
            let sorted = sorted(list, work)?;
            for wanted in wanted {
                if !is_among(list, &sorted, wanted, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Array(list), wanted) => is_among(list, &sorted(list, work)?, wanted, work),
        (document, candidate) => Ok(document.order(candidate).is_eq()),
    }
}

/// Whether an array has an element that is the wanted one or contains it.
fn is_among(list: &[Json], sorted: &[&Json], wanted: &Json, work: Work<'_>) -> Result<bool, SqlError> {
    work(COMPARISON)?;
    if sorted.binary_search_by(|value| value.order(wanted)).is_ok() {
        return Ok(true);
    }
    for value in list {
        let may = matches!((value, wanted), (Json::Array(_), _) | (Json::Object(_), Json::Object(_)));
        if may && contains(value, wanted, work)? {
            return Ok(true);
        }
    }
    work(list.len())?;
    Ok(false)
}

fn sorted<'j>(list: &'j [Json], work: Work<'_>) -> Result<Vec<&'j Json>, SqlError> {
    work(COMPARISON * list.len())?;
    let mut sorted: Vec<&Json> = list.iter().collect();
    sorted.sort_by(|left, right| left.order(right));
    Ok(sorted)
}

/// Whether two arrays have an element in common, two objects a member. Anything else beside an array is an
/// array of itself.
fn overlaps(first: Json, second: Json, work: Work<'_>) -> Result<bool, SqlError> {
    match (first, second) {
        (Json::Object(first), Json::Object(second)) => {
            for (key, value) in first.iter() {
                work(COMPARISON)?;
                if second.get(key).is_some_and(|other| other.order(value) == Ordering::Equal) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (first, second) => {
            let (first, second) = (first.into_array(), second.into_array());
            let sorted = sorted(&second, work)?;
            for value in &first {
                work(COMPARISON)?;
                if sorted.binary_search_by(|other| other.order(value)).is_ok() {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// What JSON_SEARCH looks for, and where it has been found.
struct Search<'s> {
    pattern: Vec<u8>,
    escape: Option<u32>,
    one: bool,
    found: Vec<String>,
    /// The same, to see what two paths lead to once.
    known: HashSet<String>,
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
    let mut search = Search { pattern, escape, one, found: Vec::new(), known: HashSet::new(), work };
    if paths.is_empty() {
        search.look(&document, &mut String::from("$"), &mut |_| true, true, &mut call.room)?;
    }
    for path in &paths {
        let values = document.seek(path, &mut call.room)?;
        let wanted: HashSet<_> = values.into_iter().map(std::ptr::from_ref::<Json>).collect();
        let mut inside = |value: &Json| wanted.contains(&std::ptr::from_ref(value));
        search.look(&document, &mut String::from("$"), &mut inside, false, &mut call.room)?;
    }
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
        room: &mut Room<'_>,
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
                    self.look(value, path, leads, inside, room)?;
                    path.truncate(length);
                }
            }
            Json::Object(members) => {
                for (key, value) in members.iter() {
                    path.push('.');
                    put_name(key, path);
                    self.look(value, path, leads, inside, room)?;
                    path.truncate(length);
                }
            }
            Json::Text(text) if inside => {
                let (text, rule) = (text.as_bytes(), Collation::Utf8mb4Bin);
                (self.work)(path.len())?;
                if like::like(text, &self.pattern, self.escape, rule, &self.work)?
                    && !self.known.contains(path)
                {
                    room.take(2 * path.len())?;
                    self.known.insert(path.clone());
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
