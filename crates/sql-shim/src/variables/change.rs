//! Whether a variable may be set to a value there: the rules of SET, and what it warns of.
//!
//! A [`Change`] has passed them: it names a variable that may be set in that scope and a value that fits it.
//! So the changes of one SET are all checked before the first is done, by
//! [`SessionVariables::apply`](super::SessionVariables::apply). What a change does to the open engine is
//! `session/engine_settings.rs`.

use sql::errors::{self, OPTION_IGNORED};
use sql::result::SqlError;

use super::table::{Definition, Effect, Reach, SET_BY_CLIENTS};
use super::value::{self, Value, wrong_value};
use super::{Scope, lookup};

/// What to tell who gives a variable this value, if it changes nothing. A constant that is given its value is
/// left alone.
pub(super) fn without_effect(definition: &Definition, value: &Value) -> Option<SqlError> {
    let name = definition.name;
    let why = match definition.effect {
        Effect::Acts | Effect::Triggers => return None,
        Effect::None => format!("'{name}' is accepted for compatibility and has no effect"),
        Effect::Constant => {
            let is = value::from_text(definition, definition.default).ok()?;
            if is == *value {
                return None;
            }
            format!("'{name}' is accepted for compatibility and has no effect: it stays '{}'", is.show())
        }
    };
    Some(SqlError::new(OPTION_IGNORED, b"HY000", why))
}

/// The same for SET, where what clients set by themselves is not worth a warning.
pub(super) fn warning_of_set(definition: &Definition, value: &Value) -> Option<SqlError> {
    let by_clients = SET_BY_CLIENTS.iter().any(|(name, _)| *name == definition.name);
    without_effect(definition, value).filter(|_| !by_clients)
}

pub(super) fn wrong_scope(name: &str, is: &str) -> SqlError {
    SqlError::new(1238, b"HY000", format!("Variable '{name}' is a {is} variable"))
}

/// A capacity of the redo log is whole mebibytes, as in MySQL.
fn whole_mebibytes(definition: &Definition, value: Value) -> Value {
    match value {
        Value::UInt(bytes) if definition.name == "innodb_redo_log_capacity" => Value::UInt(bytes >> 20 << 20),
        value => value,
    }
}

/// A checked change of a variable.
#[derive(Debug)]
pub struct Change {
    pub(super) index: usize,
    pub(super) definition: &'static Definition,
    pub(super) global: bool,
    /// `None` is the global value, as it is then.
    pub(super) to: Option<Value>,
    /// Whether the global value is kept for later starts, too.
    pub(super) persists: bool,
    /// DEFAULT was asked for.
    pub(super) is_default: bool,
    /// What was asked for, if that is beyond the bounds and `to` is the nearest inside.
    adjusted: Option<String>,
}

impl Change {
    /// Checks what SET asks for; `None` is DEFAULT. 1193 unknown, 1238 read-only, 1231 wrong value, 1232
    /// wrong type, 1228/1229 wrong scope, 1621 fixed in a session. `Either` means session.
    pub fn check(name: &str, scope: Scope, value: Option<Value>) -> Result<Change, SqlError> {
        let (index, definition) = lookup(name)?;
        let name = definition.name;
        if !definition.dynamic {
            return Err(wrong_scope(name, "read only"));
        }
        let global = scope == Scope::Global;
        if global && definition.reach == Reach::Session {
            let message =
                format!("Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL");
            return Err(SqlError::new(1228, b"HY000", message));
        }
        if !global && matches!(name, "max_allowed_packet" | "max_user_connections" | "net_buffer_length") {
            let message =
                format!("SESSION variable '{name}' is read-only. Use SET GLOBAL to assign the value");
            return Err(SqlError::new(1621, b"HY000", message));
        }
        if !global && definition.reach == Reach::Global {
            let message = format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL");
            return Err(SqlError::new(1229, b"HY000", message));
        }
        let (mut adjusted, is_default) = (None, value.is_none());
        let to = match value {
            Some(value) => {
                let to = whole_mebibytes(definition, value::convert(definition, &value)?);
                adjusted = value::is_adjusted(&value, &to).then(|| value.show());
                Some(to)
            }
            None if global || definition.reach == Reach::Session => {
                Some(value::from_text(definition, definition.default)?)
            }
            None => None,
        };
        Ok(Change { index, definition, global, to, persists: false, is_default, adjusted })
    }

    /// SET PERSIST: the value that this sets is kept for later starts.
    pub fn persisting(self) -> Change {
        Change { persists: true, ..self }
    }

    /// Whether it acts on the server, not on the session.
    pub fn is_global(&self) -> bool {
        self.global || self.definition.effect == Effect::Triggers
    }

    /// What is said of a value that was beyond the bounds: a warning, an error in the strictest mode.
    pub fn adjustment(&self, strict: bool) -> Result<Option<SqlError>, SqlError> {
        let (name, Some(asked)) = (self.definition.name, &self.adjusted) else { return Ok(None) };
        match strict {
            _ if self.definition.effect != Effect::Acts => Ok(None),
            true => Err(wrong_value(name, asked)),
            false => Ok(Some(errors::error(errors::TRUNCATED_WRONG_VALUE, &[&name, asked]))),
        }
    }

    /// Whether it says what transactions are like.
    pub fn is_of_transactions(&self) -> bool {
        !self.global
            && self.to.is_some()
            && matches!(self.definition.name, "transaction_isolation" | "transaction_read_only")
    }

    /// The value, unless that is the global one.
    pub fn value(&self) -> Option<&Value> {
        self.to.as_ref()
    }

    /// The variable's name.
    pub fn name(&self) -> &'static str {
        self.definition.name
    }
}
