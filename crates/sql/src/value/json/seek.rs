//! Where paths lead.
//!
//! A scalar or object counts as an array of itself where a path asks for its first or last cell.

use std::collections::HashSet;

use super::path::{Index, Leg, Path};
use super::{Json, LIST_BYTES, Room};
use crate::result::SqlError;

impl Index {
    /// Its place among this many cells; `None` before the first.
    fn place(self, cells: usize) -> Option<usize> {
        let at = self.at as usize;
        if self.from_end { cells.checked_sub(at + 1) } else { Some(at) }
    }
}

impl Leg {
    /// Whether it leads to the value itself, which is no array.
    pub(crate) fn is_itself(&self, value: &Json) -> bool {
        match self {
            Leg::Cell(index) => !matches!(value, Json::Array(_)) && index.place(1) == Some(0),
            _ => false,
        }
    }
}

impl Json {
    /// The values that a path leads to, in order, each once.
    pub(crate) fn seek<'j>(&'j self, path: &Path, room: &mut Room<'_>) -> Result<Vec<&'j Json>, SqlError> {
        let mut found = vec![self];
        // Two ways to one value: down by two descents, or to it and to it as the first cell of itself.
        let descents = path.legs.iter().filter(|leg| **leg == Leg::Descendants).count();
        let cells = path.legs.iter().any(|leg| matches!(leg, Leg::Cell(_) | Leg::Cells(..)));
        for leg in &path.legs {
            let mut next = Vec::new();
            for value in found {
                room.take(LIST_BYTES)?;
                value.step(leg, &mut next, room)?;
            }
            if descents > usize::from(!cells) {
                let mut seen = HashSet::new();
                next.retain(|value| seen.insert(std::ptr::from_ref::<Json>(value)));
            }
            found = next;
        }
        Ok(found)
    }

    fn step<'j>(&'j self, leg: &Leg, next: &mut Vec<&'j Json>, room: &mut Room<'_>) -> Result<(), SqlError> {
        match (leg, self) {
            (Leg::Member(name), Json::Object(members)) => next.extend(members.get(name)),
            (Leg::AnyMember, Json::Object(members)) => next.extend(members.iter().map(|(_, value)| value)),
            (Leg::AnyCell, Json::Array(list)) => next.extend(list),
            (Leg::Cell(index), Json::Array(list)) => {
                next.extend(index.place(list.len()).and_then(|at| list.get(at)));
            }
            (Leg::Cells(first, last), Json::Array(list)) => {
                let first = first.place(list.len()).unwrap_or(0);
                if let Some(last) = last.place(list.len())
                    && last >= first
                {
                    next.extend(list.iter().take(last + 1).skip(first));
                }
            }
            (leg, _) if leg.is_itself(self) => next.push(self),
            (Leg::Cells(first, last), _) if first.place(1).unwrap_or(0) == 0 && last.place(1).is_some() => {
                next.push(self);
            }
            (Leg::Descendants, _) => {
                room.take(size_of::<&Json>() * 2)?;
                next.push(self);
                match self {
                    Json::Array(list) => list.iter().try_for_each(|value| value.step(leg, next, room))?,
                    Json::Object(members) => {
                        members.iter().try_for_each(|(_, value)| value.step(leg, next, room))?;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The value at the end of these legs, each to one value, to be changed.
    pub(crate) fn seek_mut(&mut self, legs: &[Leg]) -> Option<&mut Json> {
        let mut value = self;
        for leg in legs {
            value = match (leg, value) {
                (Leg::Member(name), Json::Object(members)) => members.get_mut(name)?,
                (Leg::Cell(index), Json::Array(list)) => {
                    let at = index.place(list.len())?;
                    list.get_mut(at)?
                }
                (leg, value) if leg.is_itself(value) => value,
                _ => return None,
            };
        }
        Some(value)
    }

    /// Adds what a step that leads nowhere would lead to: a member, or a cell behind the last or before the
    /// first.
    pub(crate) fn grow(&mut self, leg: &Leg, value: Json) {
        match (leg, self) {
            (Leg::Member(name), Json::Object(members)) => members.set(name.clone(), value),
            (Leg::Cell(index), place) => {
                if !matches!(place, Json::Array(_)) {
                    let only = std::mem::replace(place, Json::Null);
                    *place = Json::Array(vec![only]);
                }
                place.insert_cell(*index, value);
            }
            _ => {}
        }
    }

    /// Puts a value before the cell of an array, or behind its last.
    pub(crate) fn insert_cell(&mut self, index: Index, value: Json) {
        if let Json::Array(list) = self {
            let at = index.place(list.len()).unwrap_or(0).min(list.len());
            list.insert(at, value);
        }
    }

    /// Takes out what the last step leads to.
    pub(crate) fn remove(&mut self, leg: &Leg) {
        match (leg, self) {
            (Leg::Member(name), Json::Object(members)) => {
                members.remove(name);
            }
            (Leg::Cell(index), Json::Array(list)) => {
                if let Some(at) = index.place(list.len())
                    && at < list.len()
                {
                    list.remove(at);
                }
            }
            _ => {}
        }
    }
}
