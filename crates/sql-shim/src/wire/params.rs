//! Parameters of COM_STMT_EXECUTE.
//!
//! A client sends the types with the first execution and may leave them out afterwards (`new parameters
//! bound` = 0), so they are remembered per statement. Long data sent before takes the place of the value in
//! the packet.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use sql::result::{Date, kind};

use super::payload_reader::{Malformed, PayloadReader};
use super::query_attributes;
use super::temporal::{read_datetime, read_time};
use crate::session_interface::Param;

/// A parameter type as bound by the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundType {
    /// One of [`kind`].
    pub kind: u8,
    /// Integers without sign.
    pub unsigned: bool,
}

/// What a connection remembers of one statement's parameters.
#[derive(Debug, Default)]
pub struct ParamState {
    types: Vec<BoundType>,
    long_data: BTreeMap<u16, Vec<u8>>,
    /// Bytes of long data.
    long_bytes: usize,
    /// Long data that could not be taken: the next execution fails with it.
    refused: Option<ParamError>,
}

/// Why parameters cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamError {
    /// The packet is too short or a value in it is impossible.
    Malformed,
    /// A type nobody knows, or none bound at the first execution.
    WrongType,
    /// Fewer parameters than the statement has.
    TooFew,
    /// More long data than a packet may have.
    LongDataTooLong,
}

impl From<Malformed> for ParamError {
    fn from(_: Malformed) -> Self {
        ParamError::Malformed
    }
}

/// Parameters of one execution; few enough not to need memory of their own.
pub type Params<'a> = SmallVec<[Param<'a>; 4]>;

impl ParamState {
    /// Appends to a parameter's long data, when the statement has such a parameter and no more than `limit`
    /// bytes gather. COM_STMT_SEND_LONG_DATA has no answer: what could not be taken makes the next execution
    /// fail.
    pub fn append_long_data(&mut self, count: usize, parameter: u16, data: &[u8], limit: usize) {
        if self.refused.is_some() {
            return;
        }
        if usize::from(parameter) >= count {
            return self.refuse(ParamError::Malformed);
        }
        if self.long_bytes.saturating_add(data.len()) > limit {
            return self.refuse(ParamError::LongDataTooLong);
        }
        self.long_data.entry(parameter).or_default().extend_from_slice(data);
        self.long_bytes += data.len();
    }

    fn has_long_data(&self, index: usize) -> bool {
        u16::try_from(index).is_ok_and(|index| self.long_data.contains_key(&index))
    }

    fn refuse(&mut self, why: ParamError) {
        self.clear_long_data();
        self.refused = Some(why);
    }

    /// Bytes of long data that wait for an execution.
    pub fn long_bytes(&self) -> usize {
        self.long_bytes
    }

    /// Forgets long data (COM_STMT_RESET, and after each execution).
    pub fn clear_long_data(&mut self) {
        self.long_data.clear();
        self.long_bytes = 0;
        self.refused = None;
    }

    /// Decodes the part of COM_STMT_EXECUTE after the statement id for a statement with `count` parameters.
    /// `with_attributes`: the client may send query attributes, which follow the parameters as if they were
    /// more of them.
    pub fn decode<'a>(
        &'a mut self,
        count: usize,
        arguments: &'a [u8],
        with_attributes: bool,
    ) -> Result<Params<'a>, ParamError> {
        if let Some(why) = self.refused {
            return Err(why);
        }
        let mut cursor = PayloadReader::new(arguments);
        let flags = cursor.u8()?;
        let _iterations = cursor.u32()?;
        let mut params = Params::new();
        let sent = match with_attributes && (count > 0 || flags & PARAMETER_COUNT_AVAILABLE != 0) {
            true => query_attributes::read_count(&mut cursor)?,
            false => count,
        };
        if sent < count {
            return Err(ParamError::TooFew);
        }
        if sent == 0 {
            return Ok(params);
        }
        let nulls = cursor.take(sent.div_ceil(8))?;
        let mut attributes = Vec::new();
        if cursor.u8()? == 1 {
            attributes = self.read_types(count, sent, with_attributes, &mut cursor)?;
        }
        if attributes.len() != sent - count {
            return Err(ParamError::Malformed);
        }
        if self.types.len() != count {
            // Who has bound none yet may leave the types out where there is no value: Connector/J does.
            let without_value = |index: usize| is_null(nulls, index) && !self.has_long_data(index);
            if !(0..count).all(without_value) {
                return Err(ParamError::WrongType);
            }
            // Those of a packet that was cut count for nothing.
            self.types.clear();
            params.extend((0..count).map(|_| Param::Null));
        }
        for (index, bound) in self.types.iter().enumerate() {
            if let Some(data) = u16::try_from(index).ok().and_then(|index| self.long_data.get(&index)) {
                params.push(Param::Bytes { value: data, binary: is_binary(bound.kind) });
                continue;
            }
            params.push(if is_null(nulls, index) { Param::Null } else { read_value(*bound, &mut cursor)? });
        }
        query_attributes::skip_values((count..).zip(&attributes), nulls, &mut cursor)?;
        Ok(params)
    }

    /// Keeps the types of the parameters; those of the attributes behind them are good for this once.
    fn read_types(
        &mut self,
        count: usize,
        sent: usize,
        named: bool,
        cursor: &mut PayloadReader<'_>,
    ) -> Result<Vec<BoundType>, ParamError> {
        self.types.clear();
        let mut attributes = Vec::new();
        for index in 0..sent {
            let bound = read_type(cursor)?;
            if named {
                cursor.length_encoded_bytes()?;
            }
            if !is_known(bound.kind) {
                self.types.clear();
                return Err(ParamError::WrongType);
            }
            let list = if index < count { &mut self.types } else { &mut attributes };
            list.push(bound);
        }
        Ok(attributes)
    }
}

/// Flag of COM_STMT_EXECUTE: the count is there although the statement has no parameters.
const PARAMETER_COUNT_AVAILABLE: u8 = 8;

pub(super) fn read_type(cursor: &mut PayloadReader<'_>) -> Result<BoundType, Malformed> {
    Ok(BoundType { kind: cursor.u8()?, unsigned: cursor.u8()? & 0x80 != 0 })
}

/// Whether a bitmap says NULL.
#[inline]
pub(super) fn is_null(nulls: &[u8], index: usize) -> bool {
    nulls.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

fn is_known(kind: u8) -> bool {
    kind <= kind::BIT || kind >= kind::JSON
}

fn is_binary(kind: u8) -> bool {
    matches!(
        kind,
        kind::TINY_BLOB | kind::BLOB | kind::MEDIUM_BLOB | kind::LONG_BLOB | kind::BIT | kind::GEOMETRY
    )
}

#[inline]
pub(super) fn read_value<'a>(
    bound: BoundType,
    cursor: &mut PayloadReader<'a>,
) -> Result<Param<'a>, ParamError> {
    let value = match (bound.kind, bound.unsigned) {
        (kind::NULL, _) => Param::Null,
        (kind::TINY, false) => Param::Int(i64::from(cursor.u8()? as i8)),
        (kind::TINY, true) => Param::UInt(u64::from(cursor.u8()?)),
        (kind::SHORT | kind::YEAR, false) => Param::Int(i64::from(cursor.u16()? as i16)),
        (kind::SHORT | kind::YEAR, true) => Param::UInt(u64::from(cursor.u16()?)),
        (kind::LONG | kind::INT24, false) => Param::Int(i64::from(cursor.u32()? as i32)),
        (kind::LONG | kind::INT24, true) => Param::UInt(u64::from(cursor.u32()?)),
        (kind::LONGLONG, false) => Param::Int(cursor.u64()? as i64),
        (kind::LONGLONG, true) => Param::UInt(cursor.u64()?),
        (kind::FLOAT, _) => Param::Float(f32::from_bits(cursor.u32()?)),
        (kind::DOUBLE, _) => Param::Double(f64::from_bits(cursor.u64()?)),
        (kind::DECIMAL | kind::NEWDECIMAL, _) => Param::Decimal(cursor.length_encoded_bytes()?),
        (kind::DATE | kind::NEWDATE, _) => {
            let value = read_datetime(cursor)?;
            Param::Date(Date { year: value.year, month: value.month, day: value.day })
        }
        (kind::DATETIME | kind::TIMESTAMP, _) => Param::DateTime(read_datetime(cursor)?),
        (kind::TIME, _) => Param::Time(read_time(cursor)?),
        (other, _) if is_known(other) => {
            Param::Bytes { value: cursor.length_encoded_bytes()?, binary: is_binary(other) }
        }
        _ => return Err(ParamError::WrongType),
    };
    Ok(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn execute(nulls: &[u8], types: Option<&[u8]>, values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 1, 0, 0, 0];
        bytes.extend_from_slice(nulls);
        bytes.push(u8::from(types.is_some()));
        bytes.extend_from_slice(types.unwrap_or_default());
        bytes.extend_from_slice(values);
        bytes
    }

    /// Parameters and attributes of a client that may send both.
    fn named(flags: u8, count: u8, nulls: u8, types: &[&[u8]], values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![flags, 1, 0, 0, 0, count, nulls, u8::from(!types.is_empty())];
        bytes.extend(types.concat());
        bytes.extend_from_slice(values);
        bytes
    }

    #[test]
    fn attributes_follow_the_parameters() {
        let mut state = ParamState::default();
        let types: [&[u8]; 2] = [b"\x01\0\0", b"\xfd\0\x04name"];
        let both = named(8, 2, 0, &types, &[5, 3, b'a', b'b', b'c']);
        assert_eq!(state.decode(1, &both, true).unwrap().as_slice(), [Param::Int(5)]);
        // A NULL among the attributes; the count is there without the flag, because there are parameters.
        let null = named(0, 2, 2, &types, &[6]);
        assert_eq!(state.decode(1, &null, true).unwrap().as_slice(), [Param::Int(6)]);
        let again = named(8, 1, 0, &[], &[7]);
        assert_eq!(state.decode(1, &again, true).unwrap().as_slice(), [Param::Int(7)]);
        // Attributes alone, none of them, and a client that sends no count.
        let alone = named(8, 1, 0, &[types[1]], &[1, b'a']);
        assert!(state.decode(0, &alone, true).unwrap().is_empty());
        assert!(state.decode(0, &[8, 1, 0, 0, 0, 0], true).unwrap().is_empty());
        assert!(state.decode(0, &[8, 1, 0, 0, 0], false).unwrap().is_empty());
        assert!(state.decode(0, &[0, 1, 0, 0, 0], true).unwrap().is_empty());
    }

    #[test]
    fn attributes_that_are_cut_or_impossible_are_refused() {
        let types: [&[u8]; 2] = [b"\x01\0\0", b"\xfd\0\x04name"];
        let whole = named(8, 2, 0, &types, &[5, 3, b'a', b'b', b'c']);
        for length in 0..whole.len() {
            let mut state = ParamState::default();
            assert!(state.decode(1, &whole[..length], true).is_err(), "{length}");
        }
        let mut state = ParamState::default();
        assert!(state.decode(1, &whole, true).is_ok());
        // Types of attributes are not remembered; fewer than the statement's parameters are too few.
        assert_eq!(state.decode(1, &named(8, 2, 0, &[], &[5, 0]), true), Err(ParamError::Malformed));
        assert_eq!(state.decode(1, &[8, 1, 0, 0, 0, 0], true), Err(ParamError::TooFew));
        let huge = [&[8, 1, 0, 0, 0, 0xfe][..], &[0xff; 8], &[0; 9]].concat();
        assert_eq!(state.decode(1, &huge, true), Err(ParamError::Malformed));
    }

    #[test]
    fn types_are_remembered_for_the_next_execution() {
        let mut state = ParamState::default();
        let first = execute(
            &[0],
            Some(&[kind::LONGLONG, 0, kind::VAR_STRING, 0]),
            &[5, 0, 0, 0, 0, 0, 0, 0, 2, b'a', b'b'],
        );
        let params = state.decode(2, &first, false).unwrap();
        assert_eq!(params.as_slice(), [Param::Int(5), Param::Bytes { value: b"ab", binary: false }]);
        drop(params);
        let second = execute(&[2], None, &[255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(state.decode(2, &second, false).unwrap().as_slice(), [Param::Int(-1), Param::Null]);
    }

    #[test]
    fn a_first_execution_without_types_and_unknown_types_are_refused() {
        let mut state = ParamState::default();
        let bytes = execute(&[0], None, &[1]);
        assert_eq!(state.decode(1, &bytes, false), Err(ParamError::WrongType));
        assert_eq!(state.decode(2, &execute(&[1], None, &[1]), false), Err(ParamError::WrongType));
        let bytes = execute(&[0], Some(&[100, 0]), &[1]);
        assert_eq!(state.decode(1, &bytes, false), Err(ParamError::WrongType));
        let bytes = execute(&[0], Some(&[kind::LONG, 0x80]), &[1, 0]);
        assert_eq!(state.decode(1, &bytes, false), Err(ParamError::Malformed));
        assert_eq!(state.decode(1, &[], false), Err(ParamError::Malformed));
    }

    /// As Connector/J sends them.
    #[test]
    fn a_first_execution_of_nothing_but_nulls_needs_no_types() {
        let mut state = ParamState::default();
        let bytes = named(8, 1, 1, &[], &[]);
        assert_eq!(state.decode(1, &bytes, true).unwrap().as_slice(), [Param::Null]);
        let two = execute(&[3], None, &[]);
        assert_eq!(state.decode(2, &two, false).unwrap().as_slice(), [Param::Null, Param::Null]);
        // Types that were cut are none.
        let cut = execute(&[0], Some(&[kind::LONG, 0]), &[]);
        assert_eq!(state.decode(2, &cut, false), Err(ParamError::Malformed));
        assert_eq!(state.decode(2, &two, false).unwrap().as_slice(), [Param::Null, Param::Null]);
        // Long data is a value, and nobody knows of what type.
        state.append_long_data(2, 1, b"data", 100);
        assert_eq!(state.decode(2, &two, false), Err(ParamError::WrongType));
    }

    #[test]
    fn long_data_takes_the_place_of_the_value() {
        let mut state = ParamState::default();
        state.append_long_data(2, 1, b"long ", 100);
        state.append_long_data(2, 1, b"data", 100);
        let bytes = execute(&[0], Some(&[kind::TINY, 0x80, kind::BLOB, 0]), &[200]);
        let params = state.decode(2, &bytes, false).unwrap();
        assert_eq!(params.as_slice(), [Param::UInt(200), Param::Bytes { value: b"long data", binary: true }]);
    }

    /// A value with a hole in it must never be stored: what did not fit fails the execution, smaller pieces
    /// behind it too.
    #[test]
    fn long_data_that_does_not_fit_fails_the_execution() {
        let bytes = execute(&[0], Some(&[kind::BLOB, 0, kind::BLOB, 0]), &[1, b'x', 1, b'y']);
        let mut state = ParamState::default();
        state.append_long_data(2, 0, &[1; 60], 100);
        state.append_long_data(2, 1, &[2; 60], 100);
        state.append_long_data(2, 1, &[3; 10], 100);
        assert_eq!(state.long_bytes(), 0, "kept although it will not be used");
        assert_eq!(state.decode(2, &bytes, false), Err(ParamError::LongDataTooLong));
        state.clear_long_data();
        assert!(state.decode(2, &bytes, false).is_ok());
        state.append_long_data(2, 2, b"x", 100);
        assert_eq!(state.decode(2, &bytes, false), Err(ParamError::Malformed), "there is no such parameter");
    }
}
