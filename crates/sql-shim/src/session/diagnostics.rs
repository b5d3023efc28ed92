//! GET DIAGNOSTICS: what the last statement warned of, or failed with, into user variables. It reads what
//! SHOW WARNINGS shows, and leaves it as it is.

use std::borrow::Cow;

use sql::ast::GetDiagnostics;
use sql::errors;
use sql::failure::Failure;
use sql::result::{ResultSink, SqlError};
use sql::value::Value;
use untorn::types::Collation;

use super::{Changed, Outcome, Session};

impl Session {
    pub(super) async fn get_diagnostics<S: ResultSink>(
        &mut self,
        get: &GetDiagnostics,
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        let (number, rows) = (self.state.warnings.borrow().len() as u64, self.state.row_count.get());
        let condition = match &get.condition {
            None => None,
            Some(number) => {
                let number = self.value(number, out).await?.to_i64();
                let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                let found =
                    at.and_then(|at| self.state.warnings.borrow().get(at).map(|(_, found)| found.clone()));
                let Some(found) = found else {
                    self.state.warn_of_error(errors::error(errors::DA_INVALID_CONDITION_NUMBER, &[]));
                    return Ok(Outcome::Done(Changed::default()));
                };
                Some(found)
            }
        };
        for (variable, item) in &get.items {
            let value = match &condition {
                Some(condition) => of_condition(condition, item),
                None if *item == "NUMBER" => Value::UInt(number),
                None => Value::Int(rows),
            };
            self.state.set_user_variable(variable, value)?;
        }
        Ok(Outcome::Done(Changed::default()))
    }
}

fn of_condition(condition: &SqlError, item: &str) -> Value<'static> {
    // The classes of the standard have letters up to H and digits up to 4 first.
    let of_standard = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b'0'..=b'4' | b'A'..=b'H'));
    let origin = |standard: bool| if standard { "ISO 9075" } else { "MySQL" };
    let state = condition.sqlstate;
    let text = match item {
        "MYSQL_ERRNO" => return Value::UInt(u64::from(condition.code)),
        "MESSAGE_TEXT" => condition.message.to_string(),
        "RETURNED_SQLSTATE" => String::from_utf8_lossy(&state).into_owned(),
        "CLASS_ORIGIN" => origin(of_standard(state.first())).to_owned(),
        "SUBCLASS_ORIGIN" => origin(of_standard(state.first()) && of_standard(state.get(2))).to_owned(),
        _ => String::new(),
    };
    Value::Text(Cow::Owned(text.into_bytes()), Collation::Utf8mb3GeneralCi)
}
