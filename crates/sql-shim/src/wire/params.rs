//! Parameters of COM_STMT_EXECUTE.
//!
//! A client sends the types with the first execution and may leave them out afterwards (`new parameters
//! bound` = 0), so they are remembered per statement. Long data sent before takes the place of the value in
//! the packet.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use sql::result::{Date, kind};

use super::payload_reader::{Malformed, PayloadReader};
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
    pub fn decode<'a>(&'a mut self, count: usize, arguments: &'a [u8]) -> Result<Params<'a>, ParamError> {
        if let Some(why) = self.refused {
            return Err(why);
        }
        let mut cursor = PayloadReader::new(arguments);
        let _cursor_type = cursor.u8()?;
        let _iterations = cursor.u32()?;
        let mut params = Params::new();
        if count == 0 {
            return Ok(params);
        }
        let nulls = cursor.take(count.div_ceil(8))?;
        if cursor.u8()? == 1 {
            self.read_types(count, &mut cursor)?;
        }
        if self.types.len() != count {
            return Err(ParamError::WrongType);
        }
        for (index, bound) in self.types.iter().enumerate() {
            if let Some(data) = u16::try_from(index).ok().and_then(|index| self.long_data.get(&index)) {
                params.push(Param::Bytes { value: data, binary: is_binary(bound.kind) });
                continue;
            }
            let is_null = nulls.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1);
            params.push(if is_null { Param::Null } else { read_value(*bound, &mut cursor)? });
        }
        Ok(params)
    }

    fn read_types(&mut self, count: usize, cursor: &mut PayloadReader<'_>) -> Result<(), ParamError> {
        self.types.clear();
        for _ in 0..count {
            let bound = BoundType { kind: cursor.u8()?, unsigned: cursor.u8()? & 0x80 != 0 };
            if !is_known(bound.kind) {
                self.types.clear();
                return Err(ParamError::WrongType);
            }
            self.types.push(bound);
        }
        Ok(())
    }
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
fn read_value<'a>(bound: BoundType, cursor: &mut PayloadReader<'a>) -> Result<Param<'a>, ParamError> {
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

    #[test]
    fn types_are_remembered_for_the_next_execution() {
        let mut state = ParamState::default();
        let first = execute(
            &[0],
            Some(&[kind::LONGLONG, 0, kind::VAR_STRING, 0]),
            &[5, 0, 0, 0, 0, 0, 0, 0, 2, b'a', b'b'],
        );
        let params = state.decode(2, &first).unwrap();
        assert_eq!(params.as_slice(), [Param::Int(5), Param::Bytes { value: b"ab", binary: false }]);
        drop(params);
        let second = execute(&[2], None, &[255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(state.decode(2, &second).unwrap().as_slice(), [Param::Int(-1), Param::Null]);
    }

    #[test]
    fn a_first_execution_without_types_and_unknown_types_are_refused() {
        let mut state = ParamState::default();
        let bytes = execute(&[0], None, &[1]);
        assert_eq!(state.decode(1, &bytes), Err(ParamError::WrongType));
        let bytes = execute(&[0], Some(&[100, 0]), &[1]);
        assert_eq!(state.decode(1, &bytes), Err(ParamError::WrongType));
        let bytes = execute(&[0], Some(&[kind::LONG, 0x80]), &[1, 0]);
        assert_eq!(state.decode(1, &bytes), Err(ParamError::Malformed));
        assert_eq!(state.decode(1, &[]), Err(ParamError::Malformed));
    }

    #[test]
    fn long_data_takes_the_place_of_the_value() {
        let mut state = ParamState::default();
        state.append_long_data(2, 1, b"long ", 100);
        state.append_long_data(2, 1, b"data", 100);
        let bytes = execute(&[0], Some(&[kind::TINY, 0x80, kind::BLOB, 0]), &[200]);
        let params = state.decode(2, &bytes).unwrap();
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
        assert_eq!(state.decode(2, &bytes), Err(ParamError::LongDataTooLong));
        state.clear_long_data();
        assert!(state.decode(2, &bytes).is_ok());
        state.append_long_data(2, 2, b"x", 100);
        assert_eq!(state.decode(2, &bytes), Err(ParamError::Malformed), "there is no such parameter");
    }
}
