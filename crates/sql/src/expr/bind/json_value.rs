//! JSON_VALUE: its type is said in the call, and so is what it answers where there is no such value.

use super::{Binder, Bound, coercion};
use crate::ast::{self, CastType, InsteadOfValue};
use crate::errors;
use crate::expr::Expr;
use crate::expr::functions::json::value::{
    BYTES_MAX, DEFAULT, ERROR, NULL, OF_DATE, OF_DATETIME, OF_DECIMAL, OF_DOUBLE, OF_FLOAT, OF_JSON,
    OF_SIGNED, OF_TEXT, OF_TIME, OF_UNSIGNED, OF_YEAR, VALUE,
};
use crate::expr::types::{Type, cast_type};
use crate::result::SqlError;
use crate::value::Value;
use untorn::types::Collation;

impl Binder<'_, '_> {
    /// `JSON_VALUE(…)`.
    pub(super) fn json_value(&mut self, call: &ast::JsonValue) -> Result<Bound, SqlError> {
        let document = self.bind(&call.document)?.0;
        let path = self.bind(&call.path)?.0;
        let text = CastType::Char { length: Some(BYTES_MAX), charset: None, bin: false };
        let target = call.returning.as_ref().unwrap_or(&text);
        let (kind, first, second) = match target {
            CastType::Signed => (OF_SIGNED, 0, 0),
            CastType::Unsigned => (OF_UNSIGNED, 0, 0),
            CastType::Char { length, charset: None, .. } => {
                (OF_TEXT, i64::from(length.unwrap_or(BYTES_MAX)), 0)
            }
            CastType::Decimal { precision, scale } => (OF_DECIMAL, i64::from(*precision), i64::from(*scale)),
            CastType::Double => (OF_DOUBLE, 0, 0),
            CastType::Float => (OF_FLOAT, 0, 0),
            CastType::Date => (OF_DATE, 0, 0),
            CastType::DateTime { fraction } => (OF_DATETIME, i64::from(*fraction), 0),
            CastType::Time { fraction } => (OF_TIME, i64::from(*fraction), 0),
            CastType::Year => (OF_YEAR, 0, 0),
            CastType::Json => (OF_JSON, 0, 0),
            CastType::Char { .. } | CastType::Binary { .. } => {
                return Err(errors::unsupported("JSON_VALUE of a character set"));
            }
        };
        let mut arguments = vec![document, path, Expr::int(kind), Expr::int(first), Expr::int(second)];
        for instead in [&call.on_empty, &call.on_error] {
            let (what, default) = match instead {
                InsteadOfValue::Null => (NULL, Expr::Literal(Value::Null)),
                InsteadOfValue::Error => (ERROR, Expr::Literal(Value::Null)),
                InsteadOfValue::Default(default) => {
                    let default = match target {
                        CastType::Json => coercion::as_part(default, self.bind(default)?),
                        _ => self.bind(default)?,
                    };
                    (DEFAULT, Expr::Cast(Box::new(default.0), target.clone()))
                }
            };
            arguments.extend([Expr::int(what), default]);
        }
        let ty = Type { nullable: true, ..cast_type(target) };
        let ty = match target {
            CastType::Char { .. } => Type { collation: Collation::Utf8mb4Bin, ..ty },
            _ => ty,
        };
        Ok((Expr::Call(&VALUE, arguments), ty))
    }
}
