//! Values of SQL as documents, and documents as values of SQL.

use std::borrow::Cow;

use bigdecimal::BigDecimal;
use untorn::types::Collation;

use super::parse::{Fault, parse};
use super::{Json, Room, binary};
use crate::errors;
use crate::result::{SqlError, kind};
use crate::value::{Value, convert};

/// Where a document comes from, for the messages.
#[derive(Clone, Copy)]
pub(crate) enum Source<'n> {
    /// An argument of a function, counted from 1.
    Argument(usize, &'n str),
    /// What is stored in a column of a table.
    Column(&'n str, &'n str),
}

impl Source<'_> {
    /// The error for a text that is no document.
    fn error(self, fault: Fault) -> SqlError {
        match (fault, self) {
            (Fault::Other(error), _) => error,
            (Fault::Syntax(what, at), Source::Argument(number, function)) => {
                errors::error(errors::INVALID_JSON_TEXT_IN_PARAM, &[&number, &function, &what, &at])
            }
            (Fault::Syntax(what, at), Source::Column(table, column)) => {
                errors::error(errors::INVALID_JSON_TEXT, &[&what, &at, &format!("{table}.{column}")])
            }
        }
    }

    /// The error for a value that is neither a text nor a document.
    fn no_text(self) -> SqlError {
        match self {
            Source::Argument(number, function) => {
                errors::error(errors::INVALID_TYPE_FOR_JSON, &[&number, &function])
            }
            Source::Column(..) => self.error(Fault::Syntax("not a JSON text, may need CAST", 0)),
        }
    }
}

impl Json {
    /// The document that a value is, or that its text says; SQL NULL is none.
    pub(crate) fn read(
        value: &Value<'_>,
        source: Source<'_>,
        room: &mut Room<'_>,
    ) -> Result<Option<Json>, SqlError> {
        match value {
            Value::Null => Ok(None),
            Value::Json(bytes) => Json::decoded(bytes, room).map(Some),
            Value::Text(_, Collation::Binary) => {
                Err(errors::error(errors::INVALID_JSON_CHARSET, &[&"binary"]))
            }
            Value::Text(text, _) => parse(text, room).map(Some).map_err(|fault| source.error(fault)),
            _ => Err(source.no_text()),
        }
    }

    /// A document in its binary form. Damaged bytes are an error here, where documents are computed: what is
    /// made of them would be stored over them.
    pub(crate) fn decoded(bytes: &[u8], room: &mut Room<'_>) -> Result<Json, SqlError> {
        let value =
            binary::decode(bytes).ok_or_else(|| errors::error(errors::INVALID_JSON_BINARY_DATA, &[]))?;
        room.copy_of(&value)?;
        Ok(value)
    }

    /// A value as a part of a document: a text is a string.
    pub(crate) fn of_value(value: &Value<'_>, room: &mut Room<'_>) -> Result<Json, SqlError> {
        Ok(match value {
            Value::Null => Json::Null,
            Value::Int(number) => Json::Int(*number),
            Value::UInt(number) => Json::UInt(*number),
            Value::Float(_) | Value::Double(_) => Json::Double(value.to_double()),
            Value::Decimal(number) => Json::Decimal(Box::new(number.clone())),
            Value::Text(bytes, Collation::Binary) => {
                room.take(bytes.len())?;
                Json::Opaque(kind::VARCHAR, bytes.to_vec())
            }
            Value::Text(text, _) => {
                room.take(text.len())?;
                Json::Text(String::from_utf8_lossy(text).into_owned())
            }
            Value::Date(day) => Json::Date(*day),
            Value::DateTime(moment, _) => Json::DateTime(*moment),
            Value::Time(span, _) => Json::Time(*span),
            Value::Json(bytes) => Json::decoded(bytes, room)?,
        })
    }

    /// The name of a member that a value is.
    pub(crate) fn key(value: &Value<'_>) -> Result<String, SqlError> {
        let key = match value {
            Value::Null => return Err(errors::error(errors::JSON_DOCUMENT_NULL_KEY, &[])),
            Value::Json(bytes) => binary::decoded(bytes).unquoted(),
            value => value.to_string_lossy(),
        };
        match key.len() > binary::KEY_BYTES_MAX {
            true => Err(errors::error(errors::JSON_KEY_TOO_BIG, &[])),
            false => Ok(key),
        }
    }

    /// As a value of SQL.
    pub(crate) fn into_value<'a>(self) -> Result<Value<'a>, SqlError> {
        binary::encode(&self).map(|bytes| Value::Json(Cow::Owned(bytes)))
    }

    /// A scalar as the value of SQL that it says; `None` for arrays and objects, and for `null`.
    pub(crate) fn scalar(&self) -> Option<Value<'static>> {
        Some(match self {
            Json::Null | Json::Array(_) | Json::Object(_) => return None,
            Json::Bool(truth) => Value::truth_value(*truth),
            Json::Int(number) => Value::Int(*number),
            Json::UInt(number) => Value::UInt(*number),
            Json::Double(number) => Value::Double(*number),
            Json::Decimal(number) => Value::Decimal(BigDecimal::clone(number)),
            Json::Text(text) => Value::Text(Cow::Owned(text.clone().into_bytes()), Collation::Utf8mb4Bin),
            Json::Date(day) => Value::Date(*day),
            Json::DateTime(moment) => Value::DateTime(*moment, 6),
            Json::Time(span) => Value::Time(*span, 6),
            Json::Opaque(_, bytes) => Value::Text(Cow::Owned(bytes.clone()), Collation::Binary),
        })
    }

    /// The number that a scalar says, if it says one wholly.
    pub(crate) fn numeric(&self) -> Option<Value<'static>> {
        match self.scalar()? {
            Value::Text(text, rule) => {
                let sound = rule != Collation::Binary && convert::parse_number(&text).complete;
                sound.then_some(Value::Text(text, rule))
            }
            // A date or time in a document is no number.
            other => (!other.is_temporal()).then_some(other),
        }
    }
}

/// A document beside which a value of SQL is compared as one.
pub(crate) fn compared(value: &Value<'_>) -> Json {
    Json::of_value(value, &mut Room::new(&|_| Ok(()))).unwrap_or(Json::Null)
}
