//! HANDLER: reading an index of a table row by row, from wherever one is.
//!
//! A read is a SELECT of the table that follows the index and is limited (`query.rs`), and so has its
//! privileges, locks, read view, time and memory. Behind the table's columns it has those of the index and of
//! the primary key, which are not sent but kept (`kept_key.rs`): they are where the next read goes on.
//!
//! Each open table is charged to the session's memory with the most that its key may take: a key is no longer
//! than one of an index, so nothing grows later.
//!
//! What is open lasts until CLOSE, the end of the session, or a change of the table's definition.

mod kept_key;
mod query;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use sql::ast::{Expr, Handler, HandlerPlace, HandlerRead, Statement, TableName};
use sql::errors;
use sql::failure::Failure;
use sql::privilege::Privileges;
use sql::result::{ResultSink, SqlError};
use untorn::Table;

use super::commands::done;
use super::{Outcome, REPLANS_MAX, Session};
use kept_key::KeyKeeper;
use query::{Order, Part};

/// The open tables of a session, by their names in small letters.
pub(super) type Handlers = HashMap<String, OpenTable>;

/// Tables that a session may have open.
const OPEN_MAX: usize = 1024;
/// What a key takes at most: 3072 bytes of the index, as many of the primary key, and its parts.
const KEY_BYTES: usize = 16 << 10;

/// An open table.
pub(super) struct OpenTable {
    name: TableName,
    /// As it was when it was opened.
    table: Weak<Table>,
    /// The index that was read last (`None`: the rows themselves), and where.
    place: Option<(Option<String>, Place)>,
    /// Seconds east of UTC of the zone in which the place's moments are.
    zone: i32,
    /// Charged.
    bytes: usize,
}

/// Where a reader is.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Before the first row.
    Before,
    /// At the row with these values of the order's columns.
    At(Vec<Expr>),
    /// Behind the last row.
    Behind,
}

fn unknown(name: &str) -> SqlError {
    errors::error(errors::UNKNOWN_TABLE, &[&name, &"HANDLER"])
}

impl Session {
    pub(super) async fn handler<S: ResultSink>(
        &mut self,
        handler: &Handler,
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        match handler {
            Handler::Open { table, alias } => {
                self.refuse_under_locks()?;
                Ok(self.open_handler(table, alias.as_deref())?)
            }
            Handler::Close(name) => match self.close_handler(&name.to_lowercase()) {
                true => Ok(done()),
                false => Err(unknown(name).into()),
            },
            Handler::Read(read) => self.read_handler(read, out).await,
        }
    }

    /// Closes a table; whether it was open.
    fn close_handler(&mut self, key: &str) -> bool {
        let closed = self.handlers.remove(key);
        if let Some(open) = &closed {
            // Giving back is never refused.
            let _ = self.state.memory.keep(open.bytes, 0);
        }
        closed.is_some()
    }

    fn refuse_under_locks(&self) -> Result<(), SqlError> {
        match self.table_locks {
            Some(_) => Err(errors::error(errors::LOCK_OR_ACTIVE_TRANSACTION, &[])),
            None => Ok(()),
        }
    }

    fn open_handler(&mut self, name: &TableName, alias: Option<&str>) -> Result<Outcome, SqlError> {
        let key = alias.unwrap_or(&name.name).to_lowercase();
        let planner = self.planner();
        let name = TableName { database: Some(planner.database_of(name)?), name: name.name.clone() };
        let database = name.database.as_deref().unwrap_or_default();
        if self.open_table(&key).is_ok() {
            return Err(errors::error(errors::NONUNIQ_TABLE, &[&alias.unwrap_or(&name.name)]));
        }
        self.state.require_on_table(database, &name.name, Privileges::SELECT)?;
        if sql::catalog_views::is_view_database(database) || planner.view_named(&name)?.is_some() {
            return Err(errors::error(errors::WRONG_OBJECT, &[&database, &name.name, &"BASE TABLE"]));
        }
        let table = planner.engine_table(&name)?;
        if !query::has_primary_key(&table) {
            return Err(errors::unsupported("HANDLER of a table without a primary key"));
        }
        drop(planner);
        // One of this name that has changed since gives way.
        self.close_handler(&key);
        if self.handlers.len() >= OPEN_MAX {
            return Err(errors::error(errors::OUT_OF_RESOURCES, &[]));
        }
        let bytes = KEY_BYTES + size_of::<OpenTable>() + key.len() + database.len() + name.name.len();
        self.state.memory.keep(0, bytes)?;
        let table = Arc::downgrade(&table);
        self.handlers.insert(key, OpenTable { name, table, place: None, zone: 0, bytes });
        Ok(done())
    }

    /// The table that is open under this name; error 1109 where there is none, or it has changed since.
    fn open_table(&self, name: &str) -> Result<(TableName, Arc<Table>), SqlError> {
        let open = self.handlers.get(&name.to_lowercase()).ok_or_else(|| unknown(name))?;
        let table = self.planner().engine_table(&open.name).map_err(|_| unknown(name))?;
        match Weak::ptr_eq(&open.table, &Arc::downgrade(&table)) {
            true => Ok((open.name.clone(), table)),
            false => Err(unknown(name)),
        }
    }

    async fn read_handler<S: ResultSink>(
        &mut self,
        read: &HandlerRead,
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        let key = read.name.to_lowercase();
        let (name, table) = match self.open_table(&read.name) {
            Ok(open) => open,
            Err(error) => {
                self.close_handler(&key);
                return Err(error.into());
            }
        };
        self.refuse_under_locks()?;
        let order = Order::of(&table, read.index.as_deref())?;
        let (place, kept_zone) =
            self.handlers.get(&key).map_or((None, 0), |open| (open.place.clone(), open.zone));
        let zone = self.state.time_zone_offset();
        let index = read.index.is_some().then(|| order.index.clone());
        let place = place.filter(|(known, _)| *known == index).map(|(_, place)| place);
        let part = match (&read.place, place) {
            (HandlerPlace::First, _) | (HandlerPlace::Next, None | Some(Place::Before)) => Part::FROM_FIRST,
            (HandlerPlace::Last, _) | (HandlerPlace::Previous, None | Some(Place::Behind)) => Part::FROM_LAST,
            (HandlerPlace::Next, Some(Place::At(values))) => {
                Part::behind(order.in_zone(values, kept_zone, zone))
            }
            (HandlerPlace::Previous, Some(Place::At(values))) => {
                Part::before(order.in_zone(values, kept_zone, zone))
            }
            (HandlerPlace::Next, Some(Place::Behind)) => Part::nothing(false),
            (HandlerPlace::Previous, Some(Place::Before)) => Part::nothing(true),
            (HandlerPlace::Key(operator, values), _) => {
                order.check_length(values.len())?;
                let mut known = Vec::with_capacity(values.len());
                for (at, value) in values.iter().enumerate() {
                    known.push(order.key_value(at, &self.key_value(value, &table)?));
                }
                Part::of_key(*operator, known)
            }
        };
        let descending = part.descending;
        let bytes = part.text_bytes();
        let statement = query::statement(name, read, &table, &order, part);
        let shown = table.def.visible_columns().iter().filter(|column| !column.invisible).count();
        let mut keeper = KeyKeeper::new(out, shown, order.kinds());
        let outcome = self.read_rows(statement, bytes, &mut keeper).await?;
        let (rows, last) = keeper.finish();
        let place = match last {
            // As many as were asked for: there may be more.
            Some(last) if query::is_count(read, rows) => Some(Place::At(last)),
            _ if query::is_count(read, 0) => None,
            _ if descending => Some(Place::Before),
            _ => Some(Place::Behind),
        };
        if let (Some(open), Some(place)) = (self.handlers.get_mut(&key), place) {
            open.place = Some((index, place));
            open.zone = zone;
        }
        Ok(outcome)
    }

    /// A value of a key: a constant.
    fn key_value(&self, expr: &Expr, table: &Table) -> Result<sql::value::Value<'static>, SqlError> {
        if let Expr::Column { name, .. } = expr
            && table.def.visible_columns().iter().any(|column| column.name.eq_ignore_ascii_case(name))
        {
            return Err(errors::error(errors::WRONG_ARGUMENTS, &[&"HANDLER ... READ"]));
        }
        self.constant(expr)
    }

    async fn read_rows<S: ResultSink>(
        &mut self,
        statement: Statement,
        bytes: usize,
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        for _ in 0..REPLANS_MAX {
            let plan = self.plan_text(statement.clone(), bytes).await?;
            match Box::pin(self.run_data(&plan, &[], out)).await {
                Err(Failure::Stale) => {}
                result => return result,
            }
        }
        Err(Failure::Stale)
    }
}
