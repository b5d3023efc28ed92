//! A group's state of an aggregate: values are added to it one by one, and it answers at the end.
//!
//! GROUP_CONCAT is cut at `group_concat_max_len` here (warning 1260).

use std::cmp::Ordering;
use std::collections::HashSet;

use bigdecimal::{BigDecimal, Zero};
use untorn::types::Collation;

use crate::context::SqlContext;
use crate::errors;
use crate::expr::Context;
use crate::expr::functions::json::room as json_room;
use crate::memory::{row_weight, weight};
use crate::result::{SqlError, kind};
use crate::value::json::{DEPTH_MAX, Json, Members, Room, too_deep};
use crate::value::{Value, compare, decimal};

use crate::plan::aggregate::{Aggregate, AggregateKind};

/// A group's state of one aggregate.
#[derive(Clone, Debug)]
pub struct Accumulator {
    seen: Option<HashSet<Vec<u8>>>,
    count: u64,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Nothing,
    Integer(i128),
    Exact(BigDecimal),
    Double(f64),
    Value(Value<'static>),
    Bits(u64),
    Texts(Texts),
    Elements(Vec<Json>),
    Members(Vec<(String, Json)>),
    Spread { mean: f64, squares: f64 },
}

impl Accumulator {
    /// Whether MIN or MAX has seen a value.
    pub fn has_value(&self) -> bool {
        matches!(&self.state, State::Value(value) if !value.is_null())
    }

    /// An empty group's.
    pub fn new(aggregate: &Aggregate) -> Self {
        let state = match aggregate.kind {
            AggregateKind::BitAnd => State::Bits(u64::MAX),
            AggregateKind::BitOr | AggregateKind::BitXor => State::Bits(0),
            AggregateKind::GroupConcat => State::Texts(Texts::default()),
            AggregateKind::Variance { .. } => State::Spread { mean: 0.0, squares: 0.0 },
            _ => State::Nothing,
        };
        Self { seen: aggregate.distinct.then(HashSet::new), count: 0, state }
    }

    /// Takes a row in. Returns by how many bytes it has grown.
    pub fn add(&mut self, aggregate: &Aggregate, cx: &Context<'_>) -> Result<usize, SqlError> {
        let Some(first) = aggregate.arguments.first() else {
            self.count += 1;
            return Ok(0);
        };
        let value = first.eval(cx)?;
        if matches!(aggregate.kind, AggregateKind::JsonArray | AggregateKind::JsonObject) {
            return self.document(aggregate, &value, cx);
        }
        if value.is_null() {
            return Ok(0);
        }
        let mut grown = 0;
        let more = aggregate.arguments.len() > 1;
        if more || self.seen.is_some() {
            let mut key = Vec::new();
            compare::group_key(&value, &mut key);
            for argument in &aggregate.arguments[1..] {
                let other = argument.eval(cx)?;
                if other.is_null() {
                    return Ok(0);
                }
                compare::group_key(&other, &mut key);
            }
            if let Some(seen) = &mut self.seen {
                let bytes = key.len() + KEY_BYTES;
                if !seen.insert(key) {
                    return Ok(0);
                }
                grown += bytes;
            }
        }
        self.count += 1;
        match aggregate.kind {
            AggregateKind::Count => {}
            AggregateKind::Sum | AggregateKind::Average => self.sum(&value),
            AggregateKind::Min => grown += self.extreme(value, Ordering::Less),
            AggregateKind::Max => grown += self.extreme(value, Ordering::Greater),
            AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor => {
                self.bits(aggregate.kind, &value)
            }
            AggregateKind::Variance { .. } => self.spread(value.to_double()),
            AggregateKind::GroupConcat => grown += self.concat(aggregate, &value, cx)?,
            AggregateKind::JsonArray | AggregateKind::JsonObject => {}
        }
        Ok(grown)
    }

    /// Whether values can be taken out again without a trace: of counts, and of sums that are exact.
    pub fn can_remove(&self, aggregate: &Aggregate) -> bool {
        match aggregate.kind {
            AggregateKind::Count => true,
            AggregateKind::Sum | AggregateKind::Average => {
                matches!(self.state, State::Nothing | State::Integer(_) | State::Exact(_))
            }
            _ => false,
        }
    }

    /// Takes a row out that was taken in, where [`Accumulator::can_remove`] says so.
    pub fn remove(&mut self, aggregate: &Aggregate, cx: &Context<'_>) -> Result<(), SqlError> {
        if let Some(argument) = aggregate.arguments.first() {
            let value = argument.eval(cx)?;
            if value.is_null() {
                return Ok(());
            }
            self.state = match (std::mem::replace(&mut self.state, State::Nothing), &value) {
                (State::Integer(sum), Value::Int(v)) => State::Integer(sum - i128::from(*v)),
                (State::Integer(sum), Value::UInt(v)) => State::Integer(sum - i128::from(*v)),
                (State::Exact(sum), value) => State::Exact(sum - value.to_decimal()),
                (state, _) => state,
            };
        }
        self.count -= 1;
        if self.count == 0 {
            self.state = State::Nothing;
        }
        Ok(())
    }

    fn sum(&mut self, value: &Value<'_>) {
        self.state = match (std::mem::replace(&mut self.state, State::Nothing), value) {
            (State::Nothing, Value::Int(v)) => State::Integer(i128::from(*v)),
            (State::Integer(sum), Value::Int(v)) => State::Integer(sum + i128::from(*v)),
            (State::Nothing, Value::UInt(v)) => State::Integer(i128::from(*v)),
            (State::Integer(sum), Value::UInt(v)) => State::Integer(sum + i128::from(*v)),
            (State::Nothing, Value::Decimal(v)) => State::Exact(v.clone()),
            (State::Integer(sum), Value::Decimal(v)) => State::Exact(BigDecimal::from(sum) + v),
            (State::Exact(sum), Value::Double(_) | Value::Float(_) | Value::Text(..)) => {
                State::Double(decimal::to_double(&sum) + value.to_double())
            }
            (State::Exact(sum), value) => State::Exact(sum + value.to_decimal()),
            (State::Double(sum), value) => State::Double(sum + value.to_double()),
            (State::Integer(sum), value) => State::Double(sum as f64 + value.to_double()),
            // A sum begins with zero, which minus zero does not change.
            (_, value) => State::Double(0.0 + value.to_double()),
        };
    }

    /// Keeps the value if it is beyond the one kept. Returns by how many bytes that is longer.
    fn extreme(&mut self, value: Value<'_>, wanted: Ordering) -> usize {
        let before = match &self.state {
            State::Value(best) if compare::compare(&value, best) == Some(wanted) => weight(best),
            State::Value(_) => return 0,
            _ => 0,
        };
        let grown = weight(&value).saturating_sub(before);
        self.state = State::Value(value.into_owned());
        grown
    }

    fn bits(&mut self, kind: AggregateKind, value: &Value<'_>) {
        if let State::Bits(bits) = &mut self.state {
            match kind {
                AggregateKind::BitAnd => *bits &= value.to_bits(),
                AggregateKind::BitOr => *bits |= value.to_bits(),
                _ => *bits ^= value.to_bits(),
            }
        }
    }

    /// Welford's recurrence.
    fn spread(&mut self, value: f64) {
        if let State::Spread { mean, squares } = &mut self.state {
            let delta = value - *mean;
            *mean += delta / self.count as f64;
            *squares += delta * (value - *mean);
        }
    }

    /// Keeps an element of JSON_ARRAYAGG, which may be NULL, or a member of JSON_OBJECTAGG.
    fn document(
        &mut self,
        aggregate: &Aggregate,
        first: &Value<'_>,
        cx: &Context<'_>,
    ) -> Result<usize, SqlError> {
        let ask = |bytes| json_room(cx.state, bytes);
        let mut room = Room::new(&ask);
        self.count += 1;
        let (part, key) = match aggregate.arguments.get(1) {
            Some(second) => (Json::of_value(&second.eval(cx)?, &mut room)?, Json::key(first)?),
            None => (Json::of_value(first, &mut room)?, String::new()),
        };
        // One level is added; a scalar in it counts as none.
        if part.nesting() >= DEPTH_MAX {
            return Err(too_deep());
        }
        let grown = part.weight() + key.len();
        if let State::Nothing = self.state {
            self.state = match aggregate.kind {
                AggregateKind::JsonArray => State::Elements(Vec::new()),
                _ => State::Members(Vec::new()),
            };
        }
        match &mut self.state {
            State::Elements(list) => list.push(part),
            State::Members(list) => list.push((key, part)),
            _ => {}
        }
        Ok(grown)
    }

    /// Keeps a text of GROUP_CONCAT. Only what can come before the cut is kept, so that the memory of a group
    /// is bounded by `group_concat_max_len` and not by its rows.
    fn concat(
        &mut self,
        aggregate: &Aggregate,
        first: &Value<'_>,
        cx: &Context<'_>,
    ) -> Result<usize, SqlError> {
        let length_max = usize::try_from(cx.state.settings().group_concat_max_len).unwrap_or(usize::MAX);
        let State::Texts(texts) = &self.state else { return Ok(0) };
        if aggregate.order.is_empty() && texts.bytes >= length_max.saturating_add(aggregate.separator.len()) {
            return Ok(0);
        }
        let mut text = first.to_text().into_owned();
        for argument in &aggregate.arguments[1..] {
            text.extend_from_slice(&argument.eval(cx)?.to_text());
        }
        let mut order = Vec::with_capacity(aggregate.order.len());
        for (expr, _) in &aggregate.order {
            order.push(expr.eval(cx)?.into_owned());
        }
        let State::Texts(texts) = &mut self.state else { return Ok(0) };
        let bytes = text.len() + KEY_BYTES + row_weight(&order);
        texts.bytes += text.len() + aggregate.separator.len();
        texts.list.push((order, text));
        if texts.list.len() >= TEXTS_SORTED && texts.bytes / 2 >= length_max {
            texts.keep_first(aggregate, length_max);
            return Ok(0);
        }
        Ok(bytes)
    }

    /// The aggregate's value.
    pub fn finish(self, aggregate: &Aggregate, state: &SqlContext) -> Value<'static> {
        let count = self.count;
        match (aggregate.kind, self.state) {
            (AggregateKind::Count, _) => Value::Int(count as i64),
            (AggregateKind::Average, State::Integer(sum)) => {
                average(&BigDecimal::from(sum), count, aggregate)
            }
            (AggregateKind::Average, State::Exact(sum)) => average(&sum, count, aggregate),
            (AggregateKind::Average, State::Double(sum)) => Value::Double(sum / count as f64),
            (_, State::Integer(sum)) => Value::Decimal(BigDecimal::from(sum)),
            (_, State::Exact(sum)) => Value::Decimal(sum),
            (_, State::Double(sum)) => Value::Double(sum),
            (_, State::Value(value)) => value,
            (_, State::Bits(bits)) => Value::UInt(bits),
            (AggregateKind::Variance { sample, root }, State::Spread { squares, .. }) => {
                let divisor = if sample { count.saturating_sub(1) } else { count };
                if divisor == 0 {
                    return Value::Null;
                }
                let variance = squares / divisor as f64;
                let result = if root { variance.sqrt() } else { variance };
                if result.is_finite() { Value::Double(result) } else { Value::Null }
            }
            (_, State::Elements(list)) => Json::Array(list).into_value().unwrap_or(Value::Null),
            (_, State::Members(list)) => {
                Json::Object(Members::of_list(list)).into_value().unwrap_or(Value::Null)
            }
            (_, State::Texts(texts)) if !texts.list.is_empty() => concatenated(aggregate, texts, state),
            _ => Value::Null,
        }
    }
}

fn average(sum: &BigDecimal, count: u64, aggregate: &Aggregate) -> Value<'static> {
    let digits = match aggregate.ty.kind {
        kind::NEWDECIMAL => i64::from(aggregate.ty.decimals) - sum.fractional_digit_count(),
        _ => decimal::DIVISION_DIGITS,
    };
    let sum =
        if sum.is_zero() { BigDecimal::new(0.into(), sum.fractional_digit_count()) } else { sum.clone() };
    decimal::divide(&sum, &BigDecimal::from(count), digits.max(0)).map_or(Value::Null, Value::Decimal)
}

/// Bytes that a kept key or text takes beside its own.
const KEY_BYTES: usize = 48;

/// Texts of a group that are sorted at a time, at least.
const TEXTS_SORTED: usize = 256;

/// Texts of a GROUP_CONCAT, each with what it is ordered by.
#[derive(Clone, Debug, Default)]
struct Texts {
    list: Vec<(Vec<Value<'static>>, Vec<u8>)>,
    /// Length of them all with their separators.
    bytes: usize,
    /// How many at the beginning of the list are in their order already.
    sorted: usize,
}

impl Texts {
    /// Of those that are equal in the order the last comes first, as in MySQL.
    fn sort(&mut self, aggregate: &Aggregate) {
        if aggregate.order.is_empty() {
            return;
        }
        let sorted = self.sorted.min(self.list.len());
        self.list[sorted..].reverse();
        self.list.rotate_left(sorted);
        self.list.sort_by(|(left, _), (right, _)| {
            for ((left, right), (_, descending)) in left.iter().zip(right).zip(&aggregate.order) {
                let ordering = compare::order(left, right);
                if ordering.is_ne() {
                    return if *descending { ordering.reverse() } else { ordering };
                }
            }
            Ordering::Equal
        });
        self.sorted = self.list.len();
    }

    /// Forgets what stands behind the cut.
    fn keep_first(&mut self, aggregate: &Aggregate, length_max: usize) {
        self.sort(aggregate);
        let end = length_max.saturating_add(aggregate.separator.len());
        let mut bytes = 0;
        let kept = self.list.iter().take_while(|(_, text)| {
            let before_the_cut = bytes < end;
            if before_the_cut {
                bytes += text.len() + aggregate.separator.len();
            }
            before_the_cut
        });
        let kept = kept.count();
        self.list.truncate(kept);
        self.sorted = kept;
        self.bytes = bytes;
    }
}

/// The texts in one, cut where a character ends.
fn concatenated(aggregate: &Aggregate, mut texts: Texts, state: &SqlContext) -> Value<'static> {
    let length_max = usize::try_from(state.settings().group_concat_max_len).unwrap_or(usize::MAX);
    texts.sort(aggregate);
    let mut text = Vec::with_capacity(texts.bytes.min(length_max));
    for (number, (_, part)) in texts.list.iter().enumerate() {
        if number > 0 {
            text.extend_from_slice(&aggregate.separator);
        }
        text.extend_from_slice(part);
        if text.len() > length_max {
            state.warn(errors::error(errors::CUT_VALUE_GROUP_CONCAT, &[&(number + 1)]));
            let bytes = aggregate.ty.collation == Collation::Binary;
            let begins = |at: &usize| bytes || text.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
            let end = (length_max.saturating_sub(3)..=length_max).rev().find(begins).unwrap_or(length_max);
            text.truncate(end);
            break;
        }
    }
    Value::Text(text.into(), aggregate.ty.collation)
}
