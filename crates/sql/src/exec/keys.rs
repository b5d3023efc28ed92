//! From the alternatives of an access path to ranges of keys in storage encoding.
//!
//! A value that has no exact storage form in the column (`id > 2.5`, text compared with a number) makes the
//! range wider than the condition; the caller then checks all conditions on each row. Ranges are sorted and
//! merged, so that no row comes twice and rows come in the order of the index.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use untorn::engine::{KeyRange, OwnedKey, TimeSlice, compare_values};
use untorn::schema::ColumnDef;
use untorn::types::{Collation, ColumnType};

use super::Executor;
use super::integer_key::integer_key;
use super::merged_ranges::Leg;
use super::prefix_keys::{self, Beginning};
use crate::expr::{Context, Expr, ValueSet, strict};
use crate::failure::Failure;
use crate::memory::{Charge, refused};
use crate::plan::access_path::{Alternative, Path};
use crate::result::SqlError;
use crate::stored_values::{self, Storing};
use crate::value::{Value, collation, compare, decimal, temporal};

/// More alternatives than this become ranges in slices of time.
const FEW: usize = 16;

/// Intervals that are sorted in one go.
const RUN: usize = 256;

/// Bytes that a range takes while it is made and kept.
const RANGE_BYTES: usize = 256;

/// How often a key is copied on the way from a value to both ends of a range.
const KEY_COPIES: usize = 4;

/// What a value is as a key.
pub(super) enum Piece {
    /// These bytes exactly.
    Key(Vec<u8>),
    /// These bytes, but other values compare equal to it too, or not all of them do.
    Near(Vec<u8>),
    /// The nearest key on the inner side of the range, which belongs to it.
    Inside(Vec<u8>),
    /// The nearest key on the outer side of the range, which does not belong to it.
    Outside(Vec<u8>),
    /// No limit at all.
    Unlimited,
    /// No row can match.
    Nothing,
    /// It cannot be said.
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Equal,
    Lower,
    Upper,
}

/// A limit of a range on one column: `None` is NULL.
type Edge = Option<(Option<Vec<u8>>, bool)>;

struct Interval {
    lower: Edge,
    upper: Edge,
}

impl Interval {
    /// Bytes of its keys.
    fn bytes(&self) -> usize {
        [&self.lower, &self.upper]
            .into_iter()
            .flatten()
            .map(|(key, _)| key.as_ref().map_or(0, Vec::len))
            .sum()
    }
}

/// The ranges of a path.
pub struct Ranges {
    /// In the order of the index.
    pub ranges: RangeList,
    /// The ranges say exactly what the consumed conditions say.
    pub exact: bool,
}

/// Ranges that are read one after the other.
pub enum RangeList {
    /// The one row with this key; `None` once it was given out.
    Row(Option<OwnedKey>),
    /// All made already.
    All(std::vec::IntoIter<KeyRange>),
    /// One for each of many constants, made when it is asked for.
    Points(Points),
    /// Those of several indexes: a cursor takes them apart.
    Merged(Vec<Leg>),
}

/// Values of the columns that have one; `None` is NULL.
type Prefix = smallvec::SmallVec<[Option<Vec<u8>>; 2]>;

/// The keys of many constants.
pub struct Points {
    constants: Arc<ValueSet>,
    /// The columns before.
    prefix: Prefix,
    /// Width and sign of an integer column; `None` for texts.
    integer: Option<(usize, bool)>,
    /// Constants that are still to come.
    left: std::ops::Range<usize>,
    backward: bool,
}

impl Iterator for RangeList {
    type Item = KeyRange;

    fn next(&mut self) -> Option<KeyRange> {
        match self {
            RangeList::Row(key) => key.take().map(KeyRange::equal),
            RangeList::All(ranges) => ranges.next(),
            RangeList::Points(points) => points.next(),
            RangeList::Merged(_) => None,
        }
    }
}

impl RangeList {
    /// A single one.
    pub fn one(range: KeyRange) -> RangeList {
        RangeList::All(vec![range].into_iter())
    }

    /// The key that the only one begins with, if there is one that begins with a key.
    pub fn only_key(&self) -> Option<&OwnedKey> {
        match self {
            RangeList::Row(key) => key.as_ref(),
            RangeList::All(ranges) => match ranges.as_slice() {
                [KeyRange { lower: Bound::Included(key), .. }] => Some(key),
                _ => None,
            },
            RangeList::Points(_) | RangeList::Merged(_) => None,
        }
    }
}

impl Iterator for Points {
    type Item = KeyRange;

    fn next(&mut self) -> Option<KeyRange> {
        loop {
            let number = if self.backward { self.left.next_back() } else { self.left.next() }?;
            let value = self.constants.ordered(number)?;
            let key = match (self.integer, value) {
                (Some((width, unsigned)), value) => integer_piece(value, width, unsigned, Side::Equal),
                (None, Value::Text(text, rule)) => match stored_text(text, *rule, *rule) {
                    Some(stored) => Piece::Key(stored),
                    None => Piece::Nothing,
                },
                _ => Piece::Nothing,
            };
            // One that the column cannot have has no rows.
            if let Piece::Key(bytes) = key {
                return Some(KeyRange::equal(owned(&self.prefix, Some(&Some(bytes)))));
            }
        }
    }
}

/// Below this every integer has a double of its own.
const DOUBLE_WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

fn integer_piece(value: &Value<'_>, width: usize, unsigned: bool, side: Side) -> Piece {
    let (wide, whole) = match value {
        Value::Int(v) => (i128::from(*v), true),
        Value::UInt(v) => (i128::from(*v), true),
        Value::Date(_) | Value::DateTime(..) | Value::Time(..) | Value::Json(_) | Value::Null => {
            return Piece::Unknown;
        }
        other => {
            let number = match other {
                // Compared as doubles: from here on several integers are equal to one.
                Value::Float(_) | Value::Double(_) if other.to_double().abs() >= DOUBLE_WHOLE_MAX => {
                    return Piece::Unknown;
                }
                Value::Float(_) | Value::Double(_) if other.to_double().is_nan() => return Piece::Unknown,
                other => other.to_decimal(),
            };
            let truncated = number.with_scale(0);
            let whole = truncated == number;
            // A text whose digits a double does not have.
            if matches!(other, Value::Text(..)) && whole != (other.to_double().fract() == 0.0) {
                return Piece::Unknown;
            }
            let base = decimal::to_integer(&truncated);
            let floor = if whole || number.sign() == bigdecimal::num_bigint::Sign::Plus {
                base
            } else {
                base.saturating_sub(1)
            };
            (
                if whole {
                    base
                } else if side == Side::Lower {
                    floor.saturating_add(1)
                } else {
                    floor
                },
                whole,
            )
        }
    };
    let bits = 8 * width as u32;
    let (least, most) = match unsigned {
        true => (0, (1i128 << bits) - 1),
        false => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
    };
    match side {
        Side::Equal if !whole || wide < least || wide > most => return Piece::Nothing,
        Side::Lower if wide > most => return Piece::Nothing,
        Side::Upper if wide < least => return Piece::Nothing,
        Side::Lower if wide < least => return Piece::Unlimited,
        Side::Upper if wide > most => return Piece::Unlimited,
        _ => {}
    }
    let mut bytes = Vec::with_capacity(width);
    untorn::types::encode_int(wide as u64, width, unsigned, &mut bytes);
    if whole { Piece::Key(bytes) } else { Piece::Inside(bytes) }
}

/// A text as a column of this collation holds it; `None` if that cannot.
fn stored_text(text: &[u8], of_value: Collation, rule: Collation) -> Option<Vec<u8>> {
    match of_value {
        Collation::Binary => Some(text.to_vec()),
        _ => rule.charset().from_utf8(text).ok().map(Cow::into_owned),
    }
}

pub(super) fn piece(
    value: &Value<'_>,
    column: &ColumnDef,
    side: Side,
    cx: &Context<'_>,
) -> Result<Piece, SqlError> {
    if value.is_null() {
        return Ok(Piece::Nothing);
    }
    if cx.state.changes_strictly.get() && !cx.state.sent_parameters.get() {
        strict::check_beside_column(value, (&column.kind, &column.name), cx.state)?;
    }
    if let Some((width, unsigned)) = column.kind.integer() {
        return Ok(integer_piece(value, width, unsigned, side));
    }
    if column.kind.is_string() {
        let rule = column.kind.collation();
        return Ok(match value {
            Value::Text(text, of_value) => {
                cx.state.hold(KEY_COPIES * text.len())?;
                // Keys of such a CHAR are compared without spaces at the end, but those of the value count.
                let blind = matches!(column.kind, ColumnType::Char { .. }) && !rule.pads();
                if blind && text.last() == Some(&b' ') {
                    return Ok(Piece::Unknown);
                }
                let Some(stored) = stored_text(text, *of_value, rule) else { return Ok(Piece::Unknown) };
                match collation::common(rule, *of_value) {
                    common if common == rule => Piece::Key(stored),
                    common if collation::is_finest(common, rule.pads()) => Piece::Near(stored),
                    _ => Piece::Unknown,
                }
            }
            _ => Piece::Unknown,
        });
    }
    if let Some(piece) = piece_of_day(value, column, side, cx) {
        return Ok(piece);
    }
    let mut bytes = Vec::new();
    let storing = Storing { state: cx.state, table: "", row: 1, lenient: false };
    let warnings = cx.state.warnings_so_far();
    let stored = storing.encode(value, column, &mut bytes).is_ok() && cx.state.warnings_so_far() == warnings;
    // What is not stored is compared, as in MySQL without a word.
    cx.state.forget_warnings_since(warnings);
    let back = stored_values::decode(&bytes, &column.kind, cx.state.time_zone_offset());
    Ok(match stored && compare::compare_two(&back, value) == Some(Ordering::Equal) {
        true => Piece::Key(bytes),
        false => Piece::Unknown,
    })
}

/// What a moment that is not the beginning of its day, or the number of one, is as a key of days.
fn piece_of_day(value: &Value<'_>, column: &ColumnDef, side: Side, cx: &Context<'_>) -> Option<Piece> {
    let is_moment = matches!(value, Value::DateTime(..)) || value.is_number();
    if !is_moment || column.kind != ColumnType::Date {
        return None;
    }
    let (moment, _) = value.to_datetime(cx.state.today())?;
    if !temporal::has_clock(moment) {
        return None;
    }
    let mut day = Vec::new();
    untorn::types::encode(&untorn::types::Value::Date(moment.date), &column.kind, &mut day).ok()?;
    Some(match side {
        Side::Equal => Piece::Nothing,
        Side::Lower => Piece::Outside(day),
        Side::Upper => Piece::Inside(day),
    })
}

/// What a condition becomes.
struct Made<T> {
    value: T,
    /// It says what the condition says. Otherwise it lets more rows through.
    exact: bool,
}

impl<T> Made<T> {
    fn exact(value: T) -> Self {
        Self { value, exact: true }
    }

    fn wider(value: T) -> Self {
        Self { value, exact: false }
    }
}

/// The lower edge of all values but NULL.
fn no_null(column: &ColumnDef) -> Edge {
    if column.nullable { Some((None, false)) } else { None }
}

/// A lower or upper edge; `None` when nothing can match.
fn edge(
    end: &Option<(Expr, bool)>,
    column: &ColumnDef,
    side: Side,
    cx: &Context<'_>,
) -> Result<Option<Made<Edge>>, SqlError> {
    let unlimited = || if side == Side::Lower { no_null(column) } else { None };
    let Some((expr, inclusive)) = end else { return Ok(Some(Made::exact(unlimited()))) };
    Ok(match piece(&expr.eval(cx)?, column, side, cx)? {
        Piece::Key(bytes) => Some(Made::exact(Some((Some(bytes), *inclusive)))),
        // Texts before it under one collation need not stand before it under another.
        Piece::Near(_) => Some(Made::wider(unlimited())),
        Piece::Inside(bytes) => Some(Made::exact(Some((Some(bytes), true)))),
        Piece::Outside(bytes) => Some(Made::exact(Some((Some(bytes), false)))),
        Piece::Unlimited => Some(Made::exact(unlimited())),
        Piece::Unknown => Some(Made::wider(unlimited())),
        Piece::Nothing => None,
    })
}

/// The keys of one alternative; `None` when nothing can match.
fn interval(
    one: &Alternative,
    column: &ColumnDef,
    cx: &Context<'_>,
) -> Result<Option<Made<Interval>>, SqlError> {
    let everything = Interval { lower: None, upper: None };
    Ok(match one {
        Alternative::Null => {
            Some(Made::exact(Interval { lower: Some((None, true)), upper: Some((None, true)) }))
        }
        Alternative::Equal(expr) => match piece(&expr.eval(cx)?, column, Side::Equal, cx)? {
            Piece::Nothing => None,
            Piece::Key(bytes) => Some(Made::exact(point(bytes))),
            Piece::Near(bytes) | Piece::Inside(bytes) => Some(Made::wider(point(bytes))),
            Piece::Unlimited | Piece::Unknown | Piece::Outside(_) => Some(Made::wider(everything)),
        },
        // Alone they have their own ranges; planning does not put them among others.
        Alternative::AnyOf(_) | Alternative::Row(_) => Some(Made::wider(everything)),
        Alternative::Like { pattern, escape } => {
            let pattern = pattern.eval(cx)?;
            if pattern.is_null() {
                return Ok(None);
            }
            cx.state.hold(KEY_COPIES * pattern.to_text().len())?;
            let Beginning { lower, upper } = prefix_keys::of_pattern(&pattern, &escape.eval(cx)?, column)?;
            let lower = lower.map(|key| (Some(key), true)).or(no_null(column));
            Some(Made::wider(Interval { lower, upper: upper.map(|key| (Some(key), false)) }))
        }
        Alternative::Range { lower, upper } => {
            let lower = edge(lower, column, Side::Lower, cx)?;
            let upper = edge(upper, column, Side::Upper, cx)?;
            lower.zip(upper).map(|(lower, upper)| Made {
                value: Interval { lower: lower.value, upper: upper.value },
                exact: lower.exact && upper.exact,
            })
        }
    })
}

fn point(bytes: Vec<u8>) -> Interval {
    Interval { lower: Some((Some(bytes.clone()), true)), upper: Some((Some(bytes), true)) }
}

pub(super) fn compare_keys(left: &Option<Vec<u8>>, right: &Option<Vec<u8>>, column: &ColumnDef) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) if column.kind.is_string() => {
            compare_values(column.kind.collation().stored_comparison(), left, right)
        }
        (left, right) => left.cmp(right),
    }
}

fn lower_order(left: &Interval, right: &Interval, column: &ColumnDef) -> Ordering {
    match (&left.lower, &right.lower) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Less,
        (_, None) => Ordering::Greater,
        (Some((left, a)), Some((right, b))) => compare_keys(left, right, column).then(b.cmp(a)),
    }
}

fn upper_order(left: &Interval, right: &Interval, column: &ColumnDef) -> Ordering {
    match (&left.upper, &right.upper) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Greater,
        (_, None) => Ordering::Less,
        (Some((left, a)), Some((right, b))) => compare_keys(left, right, column).then(a.cmp(b)),
    }
}

/// Adds the next interval by lower edge: to the last one, if they overlap.
fn join(merged: &mut Vec<Interval>, next: Interval, column: &ColumnDef) {
    let Some(last) = merged.last_mut() else {
        merged.push(next);
        return;
    };
    let touches = match (&last.upper, &next.lower) {
        (None, _) | (_, None) => true,
        (Some((upper, a)), Some((lower, b))) => match compare_keys(upper, lower, column) {
            Ordering::Greater => true,
            Ordering::Equal => *a || *b,
            Ordering::Less => false,
        },
    };
    if !touches {
        merged.push(next);
    } else if upper_order(&next, last, column).is_gt() {
        last.upper = next.upper;
    }
}

/// Sorts many by lower edge, in slices of time: runs, then two of them into one until there is one.
async fn sort_in_turns(
    intervals: Vec<Interval>,
    column: &ColumnDef,
    slice: &TimeSlice,
) -> Result<Vec<Interval>, Failure> {
    let mut runs = VecDeque::new();
    let mut left = intervals.into_iter();
    loop {
        let mut run: Vec<Interval> = left.by_ref().take(RUN).collect();
        if run.is_empty() {
            break;
        }
        run.sort_by(|left, right| lower_order(left, right, column));
        let bytes: usize = run.iter().map(Interval::bytes).sum();
        slice.work(u32::try_from(run.len() + bytes / 1024).unwrap_or(u32::MAX)).await?;
        runs.push_back(run);
    }
    while runs.len() > 1 {
        let (Some(one), Some(other)) = (runs.pop_front(), runs.pop_front()) else { break };
        let mut merged = Vec::with_capacity(one.len() + other.len());
        let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
        loop {
            let next = match (one.peek(), other.peek()) {
                (Some(left), Some(right)) if lower_order(left, right, column).is_le() => one.next(),
                (Some(_), None) => one.next(),
                _ => other.next(),
            };
            let Some(next) = next else { break };
            merged.push(next);
            slice.work(1).await?;
        }
        runs.push_back(merged);
    }
    Ok(runs.pop_front().unwrap_or_default())
}

fn owned(prefix: &[Option<Vec<u8>>], last: Option<&Option<Vec<u8>>>) -> OwnedKey {
    let mut fields: smallvec::SmallVec<[Option<&[u8]>; 8]> =
        prefix.iter().map(|field| field.as_deref()).collect();
    fields.extend(last.map(|field| field.as_deref()));
    OwnedKey::from_fields(&fields)
}

fn bound(prefix: &[Option<Vec<u8>>], edge: &Edge) -> Bound<OwnedKey> {
    match edge {
        None if prefix.is_empty() => Bound::Unbounded,
        None => Bound::Included(owned(prefix, None)),
        Some((key, true)) => Bound::Included(owned(prefix, Some(key))),
        Some((key, false)) => Bound::Excluded(owned(prefix, Some(key))),
    }
}

/// What the ranges of a path begin with.
enum Start<'c> {
    /// There are none.
    Nothing,
    /// They are made when they are read.
    Points(Points),
    /// They are these.
    Made(Vec<KeyRange>),
    /// The columns that have one value, and the one behind them if it is limited.
    Prefix(Prefix, Option<&'c ColumnDef>),
}

fn start<'c>(path: &Path, columns: &'c [ColumnDef], cx: &Context<'_>) -> Result<Made<Start<'c>>, SqlError> {
    let mut exact = true;
    let mut prefix = Prefix::with_capacity(path.equal.len());
    for (one, number) in path.equal.iter().zip(&path.columns) {
        let Some(column) = columns.get(usize::from(*number)) else { break };
        match one {
            Alternative::Null => prefix.push(None),
            Alternative::Equal(expr) => match piece(&expr.eval(cx)?, column, Side::Equal, cx)? {
                Piece::Key(bytes) => prefix.push(Some(bytes)),
                Piece::Near(bytes) => {
                    exact = false;
                    prefix.push(Some(bytes));
                }
                Piece::Nothing => return Ok(Made::exact(Start::Nothing)),
                _ => {
                    exact = false;
                    break;
                }
            },
            _ => break,
        }
    }
    let whole_prefix = prefix.len() == path.equal.len();
    let last = path.columns.get(path.equal.len()).and_then(|number| columns.get(usize::from(*number)));
    let Some(column) = last.filter(|_| whole_prefix && !path.last.is_empty()) else {
        return Ok(Made { value: Start::Prefix(prefix, None), exact });
    };
    if let [Alternative::AnyOf(constants)] = &path.last[..] {
        let (constants, integer) = (constants.clone(), column.kind.integer());
        let left = 0..constants.distinct();
        let points = Points { constants, prefix, integer, left, backward: path.backward };
        return Ok(Made { value: Start::Points(points), exact });
    }
    if let [Alternative::Row(_), ..] = &path.last[..] {
        let made = row_ranges(path, columns, &prefix, cx)?;
        return Ok(Made { value: Start::Made(made.value), exact: exact && made.exact });
    }
    // Both ends of each range have the columns before in front.
    let prefix_bytes: usize = prefix.iter().flatten().map(Vec::len).sum();
    cx.state.hold(2 * path.last.len() * prefix_bytes)?;
    Ok(Made { value: Start::Prefix(prefix, Some(column)), exact })
}

/// The ranges of rows of values, sorted, each once.
fn row_ranges(
    path: &Path,
    columns: &[ColumnDef],
    prefix: &[Option<Vec<u8>>],
    cx: &Context<'_>,
) -> Result<Made<Vec<KeyRange>>, SqlError> {
    let numbers = path.columns.get(path.equal.len()..).unwrap_or_default();
    let columns: Vec<&ColumnDef> = numbers.iter().filter_map(|n| columns.get(usize::from(*n))).collect();
    let mut exact = true;
    let mut rows: Vec<Prefix> = Vec::with_capacity(path.last.len());
    let mut bytes = 0;
    'rows: for one in &path.last {
        let Alternative::Row(values) = one else { continue };
        let mut row = Prefix::with_capacity(columns.len());
        for (value, column) in values.iter().zip(&columns) {
            match piece(&value.eval(cx)?, column, Side::Equal, cx)? {
                Piece::Key(key) => row.push(Some(key)),
                Piece::Near(key) | Piece::Inside(key) => {
                    exact = false;
                    row.push(Some(key));
                }
                Piece::Nothing => continue 'rows,
                Piece::Unlimited | Piece::Unknown | Piece::Outside(_) => {
                    let everything = Interval { lower: None, upper: None };
                    return Ok(Made::wider(vec![key_range(prefix, &everything)]));
                }
            }
        }
        bytes += row.iter().chain(prefix).flatten().map(Vec::len).sum::<usize>();
        rows.push(row);
    }
    cx.state.hold(2 * bytes)?;
    let order = |left: &Prefix, right: &Prefix| {
        let fields = left.iter().zip(right).zip(&columns);
        fields.map(|((left, right), column)| compare_keys(left, right, column)).find(|order| order.is_ne())
    };
    rows.sort_by(|left, right| order(left, right).unwrap_or(Ordering::Equal));
    rows.dedup_by(|left, right| order(left, right).is_none());
    let whole = |row: Prefix| KeyRange::equal(owned(&[prefix, &row].concat(), None));
    Ok(Made { value: rows.into_iter().map(whole).collect(), exact })
}

fn key_range(prefix: &[Option<Vec<u8>>], interval: &Interval) -> KeyRange {
    KeyRange { lower: bound(prefix, &interval.lower), upper: bound(prefix, &interval.upper) }
}

impl Ranges {
    fn points(points: Points, exact: bool) -> Option<Ranges> {
        Some(Ranges { ranges: RangeList::Points(points), exact })
    }

    fn all(mut ranges: Vec<KeyRange>, path: &Path, exact: bool) -> Option<Ranges> {
        if path.backward {
            ranges.reverse();
        }
        (!ranges.is_empty()).then(|| Ranges { ranges: RangeList::All(ranges.into_iter()), exact })
    }
}

impl Executor<'_> {
    /// The ranges of a path; `None` when no row can match. Many are charged, and made in slices of time.
    pub async fn ranges(
        &self,
        path: &Path,
        columns: &[ColumnDef],
        cx: &Context<'_>,
        charge: &mut Charge<'_>,
    ) -> Result<Option<Ranges>, Failure> {
        if path.merged.is_empty() {
            return self.ranges_of_one(path, columns, cx, charge).await;
        }
        let mut legs = Vec::with_capacity(path.merged.len());
        for path in &path.merged {
            // What was charged for one is charged until the next.
            if let Some(made) = self.ranges_of_one(path, columns, cx, charge).await? {
                legs.push(Leg { index: path.index, ranges: made.ranges });
            }
        }
        // Each says less than the OR does, and is checked with it.
        Ok((!legs.is_empty()).then_some(Ranges { ranges: RangeList::Merged(legs), exact: false }))
    }

    async fn ranges_of_one(
        &self,
        path: &Path,
        columns: &[ColumnDef],
        cx: &Context<'_>,
        charge: &mut Charge<'_>,
    ) -> Result<Option<Ranges>, Failure> {
        let (state, held, count) = (self.state, self.state.held(), path.last.len());
        let (made, bytes) = if count <= FEW {
            (ranges(path, columns, cx)?, 0)
        } else {
            let bytes = count * RANGE_BYTES;
            if !charge.reach(bytes) {
                return Err(refused().into());
            }
            (many_ranges(path, columns, cx, self.slice()).await?, bytes)
        };
        // What long keys were charged while they were made is charged for as long as the ranges last.
        let long_keys = state.held().saturating_sub(held);
        if long_keys > 0 {
            state.give_back_to(held);
            if !charge.reach(bytes + long_keys) {
                return Err(refused().into());
            }
        }
        Ok(made)
    }
}

/// The ranges of a path whose values are literals, for an estimate: none when no row can match. `None` when
/// there are more than `most`, or they cannot be said.
pub(crate) fn known_ranges(
    path: &Path,
    columns: &[ColumnDef],
    cx: &Context<'_>,
    most: usize,
) -> Option<Vec<KeyRange>> {
    if path.last.len() > most {
        return None;
    }
    // What there is to say of the values is said when the statement runs.
    let (held, warnings) = (cx.state.held(), cx.state.warnings_so_far());
    let made = ranges(path, columns, cx);
    cx.state.give_back_to(held);
    cx.state.forget_warnings_since(warnings);
    let Some(made) = made.ok()? else { return Some(Vec::new()) };
    let found: Vec<KeyRange> = made.ranges.take(most + 1).collect();
    (found.len() <= most).then_some(found)
}

/// The ranges of `path`; `None` when no row can match. More than [`FEW`] alternatives by [`many_ranges`].
fn ranges(path: &Path, columns: &[ColumnDef], cx: &Context<'_>) -> Result<Option<Ranges>, SqlError> {
    if let Some(key) = integer_key(path, columns, cx) {
        return Ok(Some(Ranges { ranges: RangeList::Row(Some(key)), exact: true }));
    }
    let Made { value: start, mut exact } = start(path, columns, cx)?;
    let (prefix, column) = match start {
        Start::Nothing => return Ok(None),
        Start::Points(points) => return Ok(Ranges::points(points, exact)),
        Start::Made(ranges) => return Ok(Ranges::all(ranges, path, exact)),
        Start::Prefix(prefix, column) => (prefix, column),
    };
    let Some(column) = column else {
        let everything = Interval { lower: None, upper: None };
        return Ok(Ranges::all(vec![key_range(&prefix, &everything)], path, exact));
    };
    let mut intervals = Vec::with_capacity(path.last.len());
    for one in &path.last {
        let Some(made) = interval(one, column, cx)? else { continue };
        exact &= made.exact && path.prefix_chars.is_none();
        intervals.push(shortened(made.value, path, column));
    }
    intervals.sort_by(|left, right| lower_order(left, right, column));
    let mut merged = Vec::with_capacity(intervals.len());
    intervals.into_iter().for_each(|interval| join(&mut merged, interval, column));
    let whole = merged.iter().filter(|interval| !is_empty(interval, column));
    Ok(Ranges::all(whole.map(|interval| key_range(&prefix, interval)).collect(), path, exact))
}

/// [`ranges`], made in slices of time.
async fn many_ranges(
    path: &Path,
    columns: &[ColumnDef],
    cx: &Context<'_>,
    slice: &TimeSlice,
) -> Result<Option<Ranges>, Failure> {
    let Made { value: start, mut exact } = start(path, columns, cx)?;
    let (prefix, column) = match start {
        Start::Prefix(prefix, Some(column)) => (prefix, column),
        Start::Made(ranges) => return Ok(Ranges::all(ranges, path, exact)),
        _ => return Ok(ranges(path, columns, cx)?),
    };
    let mut intervals = Vec::with_capacity(path.last.len());
    for one in &path.last {
        slice.work(1).await?;
        let Some(made) = interval(one, column, cx)? else { continue };
        exact &= made.exact && path.prefix_chars.is_none();
        intervals.push(shortened(made.value, path, column));
    }
    let mut merged = Vec::new();
    for interval in sort_in_turns(intervals, column, slice).await? {
        join(&mut merged, interval, column);
        slice.work(1).await?;
    }
    let mut ranges = Vec::with_capacity(merged.len());
    for interval in merged {
        if !is_empty(&interval, column) {
            ranges.push(key_range(&prefix, &interval));
        }
        slice.work(1).await?;
    }
    Ok(Ranges::all(ranges, path, exact))
}

/// The interval over the characters that the index has: its ends belong to it, as others begin like them.
fn shortened(interval: Interval, path: &Path, column: &ColumnDef) -> Interval {
    let Some(chars) = path.prefix_chars else { return interval };
    let short = |edge: Edge| match edge {
        Some((Some(key), _)) => Some((Some(prefix_keys::shortened(key, chars, column)), true)),
        other => other,
    };
    Interval { lower: short(interval.lower), upper: short(interval.upper) }
}

/// `BETWEEN 5 AND 3` and the like.
fn is_empty(interval: &Interval, column: &ColumnDef) -> bool {
    match (&interval.lower, &interval.upper) {
        (Some((lower, a)), Some((upper, b))) => match compare_keys(lower, upper, column) {
            Ordering::Greater => true,
            Ordering::Equal => !(*a && *b),
            Ordering::Less => false,
        },
        _ => false,
    }
}
