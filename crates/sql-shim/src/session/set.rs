//! SET.
//!
//! All items have their values, and all values are checked, before the first is set: `SET @x = 1, @y = @x`
//! gives the old one to @y, and one invalid value changes nothing. Only what acts on a global variable may
//! still refuse it then; session variables already set are then restored.

use std::sync::Arc;

use sql::ast::{Scope, SetItem};
use sql::errors;
use sql::failure::Failure;
use sql::privilege::Privileges;
use sql::result::{ResultSink, SqlError};
use sql::sql_mode;
use sql::value::Value;
use untorn::types::{Charset, Collation};

use super::{Changed, Outcome, Session};
use crate::server::shared::Server;
use crate::variables::tracked_names::{TrackedNames, not_known};
use crate::variables::{self, Change};

/// What NAMES and CHARACTER SET set.
const CHARACTER_SETS: [&str; 3] =
    ["character_set_client", "character_set_connection", "character_set_results"];

/// The last moment that the clock may be set to: 2038-01-19 03:14:07.
const TIMESTAMP_MAX: f64 = i32::MAX as f64;

/// A checked item.
enum Setting<'s> {
    User(&'s str, Value<'static>),
    LastInsertId(u64),
    InsertId(u64),
    /// Whether it is the first one, and its value.
    RandomSeed(bool, u64),
    /// Seconds; `None` is the clock.
    Timestamp(Option<f64>),
    System(Change),
    /// `@@x` without a scope, of the next transaction alone.
    OfNextTransaction(Change),
    /// NAMES and CHARACTER SET.
    Texts(Vec<Change>),
}

/// A value as the variables table takes it.
fn variable_value(value: &Value<'_>) -> variables::Value {
    match value {
        Value::Null => variables::Value::Null,
        Value::Int(v) => variables::Value::Int(*v),
        Value::UInt(v) => variables::Value::UInt(*v),
        Value::Float(_) | Value::Double(_) => variables::Value::Double(value.to_double()),
        Value::Decimal(_) => variables::Value::Double(value.to_double()),
        other => variables::Value::Text(Arc::from(other.to_string_lossy())),
    }
}

/// Whether the collation that SET NAMES names is one of that character set; what is unknown is complained of
/// elsewhere.
fn belongs(collation: &str, charset: &str) -> Result<(), SqlError> {
    let charset = if charset == "utf8" { "utf8mb3" } else { charset };
    match variables::value::charset_of_collation(collation) {
        Some(of) if of != charset => {
            Err(errors::error(errors::COLLATION_CHARSET_MISMATCH, &[&collation, &charset]))
        }
        _ => Ok(()),
    }
}

fn text_change(name: &str, text: &str) -> Result<Change, SqlError> {
    let value = variables::Value::Text(Arc::from(text));
    Change::check(name, variables::Scope::Session, Some(value))
}

/// Changes a global variable. That may block: more protection of pages waits until all are durable, and who
/// changes any variable meanwhile waits for that. The thread has other connections to serve.
async fn change_global(server: Arc<Server>, change: Change) -> Result<Option<SqlError>, Failure> {
    let apply = move || server.variables.apply(change);
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => Ok(runtime.spawn_blocking(apply).await.map_err(std::io::Error::other)??),
        // Sessions without a server's threads have their thread for themselves.
        Err(_) => Ok(apply()?),
    }
}

impl Session {
    /// Executes SET.
    pub(super) async fn set<S: ResultSink>(
        &mut self,
        items: &[SetItem],
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.push(match item {
                SetItem::User(_, expr) | SetItem::System { value: Some(expr), .. } => {
                    Some(self.value(expr, out).await?)
                }
                _ => None,
            });
            self.transaction.engine().slice().work(1).await?;
        }
        let mut settings = Vec::with_capacity(items.len());
        for (item, value) in items.iter().zip(values) {
            settings.push(self.checked(item, value)?);
            self.transaction.engine().slice().work(1).await?;
        }
        // A single one has nothing before it.
        let system = (items.len() > 1).then(|| self.state.variables());
        let mut user = Vec::new();
        for setting in settings {
            if let Setting::User(name, _) = &setting {
                user.push((*name, self.state.user_variable(name).into_owned()));
            }
            if let Err(failure) = self.apply(setting).await {
                if let Some(system) = system {
                    self.state_mut().change_variables(|variables, _| *variables = system);
                    self.variables_are_as_before();
                }
                for (name, value) in user.into_iter().rev() {
                    self.state.set_user_variable(name, value)?;
                }
                return Err(failure);
            }
            self.transaction.engine().slice().work(1).await?;
        }
        Ok(Outcome::Done(Changed::default()))
    }

    fn checked<'s>(&self, item: &'s SetItem, value: Option<Value<'static>>) -> Result<Setting<'s>, SqlError> {
        Ok(match item {
            SetItem::User(name, _) => Setting::User(name, value.unwrap_or(Value::Null)),
            SetItem::System { scope, name, unscoped, .. } => {
                let setting = self.checked_system(*scope, name, value.as_ref())?;
                match setting {
                    Setting::System(change) if *unscoped && change.is_of_transactions() => {
                        Setting::OfNextTransaction(change)
                    }
                    other => other,
                }
            }
            SetItem::Names(charset, collation) => {
                let charset = charset.as_deref().unwrap_or("utf8mb4");
                let changes = CHARACTER_SETS.map(|name| (name, charset)).into_iter();
                if let Some(collation) = collation {
                    belongs(collation, charset)?;
                }
                let collation = collation.as_deref().map(|collation| ("collation_connection", collation));
                let changes = changes.chain(collation).map(|(name, text)| text_change(name, text));
                Setting::Texts(changes.collect::<Result<_, _>>()?)
            }
            SetItem::CharacterSet(charset) => {
                let charset = charset.as_deref().unwrap_or("utf8mb4");
                let names = ["character_set_client", "character_set_results"].into_iter();
                Setting::Texts(names.map(|name| text_change(name, charset)).collect::<Result<_, _>>()?)
            }
        })
    }

    fn checked_system(
        &self,
        scope: Option<Scope>,
        name: &str,
        value: Option<&Value<'static>>,
    ) -> Result<Setting<'static>, SqlError> {
        let persist = scope == Some(Scope::Persist);
        let scope = match scope {
            Some(Scope::Global | Scope::Persist) => {
                self.state.require_any(Privileges::SUPER | Privileges::SYSTEM_VARIABLES_ADMIN)?;
                // What it names is granted to everybody.
                if name == "mandatory_roles" {
                    self.state.require_any(Privileges::SUPER | Privileges::ROLE_ADMIN)?;
                    let text = value.map(Value::to_text).unwrap_or_default();
                    let accounts = &self.state.server.accounts;
                    accounts.check_mandatory(&String::from_utf8_lossy(text.as_ref()), self.authority())?;
                }
                variables::Scope::Global
            }
            _ => variables::Scope::Session,
        };
        Ok(match (scope, name, value) {
            (variables::Scope::Session, "last_insert_id" | "identity", Some(value)) => {
                Setting::LastInsertId(value.to_bits())
            }
            (variables::Scope::Session, "insert_id", Some(value)) => Setting::InsertId(value.to_bits()),
            (variables::Scope::Session, "rand_seed1" | "rand_seed2", Some(value)) => {
                Setting::RandomSeed(name == "rand_seed1", value.to_bits())
            }
            (variables::Scope::Session, "timestamp", value) => {
                let seconds = value.map(Value::to_double);
                if let (Some(value), Some(_)) = (value, seconds.filter(|seconds| *seconds > TIMESTAMP_MAX)) {
                    let shown = value.to_string_lossy();
                    return Err(errors::error(errors::WRONG_VALUE_FOR_VAR, &[&"timestamp", &shown]));
                }
                Setting::Timestamp(seconds)
            }
            _ => {
                let change = Change::check(name, scope, value.map(variable_value))?;
                Setting::System(if persist { change.persisting() } else { change })
            }
        })
    }

    /// What a client says of its character set at the handshake, where texts are converted for it; SET NAMES
    /// says the same. Other clients get UTF-8 whatever they said.
    pub(super) fn obey_handshake(&mut self) {
        let said = self.state.connection.client_flags().charset;
        let converted = |known: &Collation| known.charset() == Charset::Latin1;
        let Some(collation) = Collation::all().filter(converted).find(|known| known.id() == said) else {
            return;
        };
        let names = CHARACTER_SETS.map(|name| (name, collation.charset().name())).into_iter();
        for (name, text) in names.chain([("collation_connection", collation.name())]) {
            // Both are known names, so nothing is refused.
            if let Ok(change) = text_change(name, text) {
                let applied =
                    self.state_mut().change_variables(|variables, globals| variables.apply(globals, change));
                debug_assert!(applied.is_ok());
            }
        }
    }

    async fn apply(&mut self, setting: Setting<'_>) -> Result<(), Failure> {
        match setting {
            Setting::User(name, value) => {
                self.state.set_user_variable(name, value)?;
                self.state_is_changed();
            }
            Setting::LastInsertId(id) => {
                self.state.last_insert_id.set(id);
                self.variable_is_set("last_insert_id");
            }
            Setting::InsertId(id) => {
                self.state.insert_id.set(id);
                self.variable_is_set("insert_id");
            }
            Setting::RandomSeed(is_first, seed) => {
                self.state.seeded_numbers.set(is_first, seed);
                self.variable_is_set(if is_first { "rand_seed1" } else { "rand_seed2" });
            }
            Setting::Timestamp(seconds) => {
                self.state.set_timestamp(seconds);
                self.variable_is_set("timestamp");
            }
            Setting::Texts(changes) => {
                for change in changes {
                    self.state_mut()
                        .change_variables(|variables, globals| variables.apply(globals, change))?;
                }
                CHARACTER_SETS.iter().for_each(|name| self.variable_is_set(name));
            }
            Setting::OfNextTransaction(change) => self.characterize_next(&change)?,
            Setting::System(change) => {
                let strict = self.state.settings().sql.sql_mode & sql_mode::STRICT_ALL_TABLES != 0;
                if let Some(warning) = change.adjustment(strict)? {
                    self.state.warn(warning);
                }
                let name = change.name();
                if let ("session_track_system_variables", Some(variables::Value::Text(list))) =
                    (name, change.value())
                {
                    for unknown in TrackedNames::parse(list).unknown {
                        self.state.warn(not_known(&unknown));
                    }
                }
                if name == "autocommit"
                    && !change.is_global()
                    && !self.state.settings().autocommit
                    && change.value().is_none_or(|value| value.as_u64() == Some(1))
                {
                    self.check_xa_autocommit()?;
                }
                let (before, of_session) = (self.state.settings().autocommit, !change.is_global());
                let applied = if change.is_global() {
                    change_global(self.state.server.clone(), change).await
                } else {
                    let set = self
                        .state_mut()
                        .change_variables(|variables, globals| variables.apply(globals, change));
                    set.map_err(Failure::from)
                };
                if let Some(warning) = applied? {
                    self.state.warn(warning);
                }
                if !before && self.state.settings().autocommit {
                    self.commit_open().await?;
                    self.track_transaction(|tracker| tracker.ended(false));
                }
                if of_session {
                    self.characteristic_is_set(name);
                    self.variable_is_set(name);
                }
            }
        }
        Ok(())
    }
}
