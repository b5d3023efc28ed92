//! The prepared statements of one connection, and how many all connections may have
//! (`max_prepared_stmt_count`).
//!
//! What counts against the limit holds a [`CountedStatement`]: a statement of the protocol here, one of
//! PREPARE in its session. So nothing is to be counted down by hand, after a panic either.
//!
//! Ids are a slot number (low 16 bits, from 1) and a generation, so that looking one up is an index, and a
//! stale id of a closed statement does not find the next one in its slot.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sql::errors::{self, error};
use sql::result::SqlError;

use super::shared::Server;
use crate::session_interface::Prepared;
use crate::wire::params::ParamState;

/// A statement and what the wire remembers for it.
pub struct PreparedStatement<P> {
    /// The session's.
    pub prepared: Prepared<P>,
    /// Parameter types and long data.
    pub params: ParamState,
    _counted: CountedStatement,
}

struct Slot<P> {
    generation: u16,
    statement: Option<PreparedStatement<P>>,
}

/// Statements by id.
pub struct PreparedStatements<P> {
    slots: Vec<Slot<P>>,
    free: Vec<u16>,
}

impl<P> Default for PreparedStatements<P> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

fn slot_of(id: u32) -> Option<usize> {
    (id & 0xffff).checked_sub(1).map(|slot| slot as usize)
}

impl<P> PreparedStatements<P> {
    /// Keeps a statement and counts it; error 1461 when there are too many, here or on the server.
    pub fn insert(&mut self, prepared: Prepared<P>, server: &Server) -> Result<u32, SqlError> {
        let _counted = CountedStatement::new(server)?;
        let statement = PreparedStatement { prepared, params: ParamState::default(), _counted };
        self.keep(statement).ok_or_else(|| too_many(server))
    }

    /// `None` when 65,535 are open.
    fn keep(&mut self, statement: PreparedStatement<P>) -> Option<u32> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u16::try_from(self.slots.len()).ok().filter(|index| *index < u16::MAX)?;
                self.slots.push(Slot { generation: 0, statement: None });
                index
            }
        };
        let slot = self.slots.get_mut(usize::from(index))?;
        slot.statement = Some(statement);
        Some(u32::from(slot.generation) << 16 | (u32::from(index) + 1))
    }

    /// An open statement.
    #[inline]
    pub fn get(&mut self, id: u32) -> Option<&mut PreparedStatement<P>> {
        let slot = self.slots.get_mut(slot_of(id)?)?;
        if u32::from(slot.generation) != id >> 16 {
            return None;
        }
        slot.statement.as_mut()
    }

    /// Long data of COM_STMT_SEND_LONG_DATA, of which all statements of a connection together may hold
    /// `limit` bytes.
    pub fn append_long_data(&mut self, id: u32, parameter: u16, data: &[u8], limit: usize) {
        let others: usize =
            self.slots.iter().flat_map(|slot| &slot.statement).map(|open| open.params.long_bytes()).sum();
        if let Some(found) = self.get(id) {
            let own = found.params.long_bytes();
            let count = found.prepared.params.len();
            found.params.append_long_data(count, parameter, data, limit.saturating_sub(others - own));
        }
    }

    /// Closes a statement; true if it was open.
    pub fn close(&mut self, id: u32) -> bool {
        let Some(index) = slot_of(id) else { return false };
        let Some(slot) = self.slots.get_mut(index) else { return false };
        if u32::from(slot.generation) != id >> 16 || slot.statement.take().is_none() {
            return false;
        }
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index as u16);
        true
    }

    /// Closes all.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// One of `max_prepared_stmt_count`, given back when this is dropped.
#[derive(Debug)]
pub struct CountedStatement {
    server_count: Arc<AtomicUsize>,
}

impl CountedStatement {
    /// Counts one more, or is error 1461 when the limit is reached.
    pub fn new(server: &Server) -> Result<CountedStatement, SqlError> {
        let server_count = Arc::clone(&server.prepared_statements);
        if server_count.fetch_add(1, Ordering::Relaxed) >= server.variables.max_prepared_stmt_count() {
            server_count.fetch_sub(1, Ordering::Relaxed);
            return Err(too_many(server));
        }
        Ok(CountedStatement { server_count })
    }
}

impl Drop for CountedStatement {
    fn drop(&mut self) {
        self.server_count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Error 1461.
fn too_many(server: &Server) -> SqlError {
    error(errors::MAX_PREPARED_STMT_COUNT, &[&server.variables.max_prepared_stmt_count()])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use sql::result::ResultColumns;

    use super::*;
    use crate::auth::accounts::Accounts;
    use crate::variables::GlobalVariables;

    fn prepared(plan: u32) -> Prepared<u32> {
        let none = ResultColumns::new(Vec::new());
        Prepared { sql: Arc::from(&b"x"[..]), params: Arc::clone(&none), columns: none, plan }
    }

    #[test]
    fn a_closed_id_stays_closed() {
        let server = Server::new(Accounts::in_memory(), GlobalVariables::default());
        let counted = || server.prepared_statements.load(Ordering::Relaxed);
        let mut statements = PreparedStatements::default();
        let first = statements.insert(prepared(1), &server).unwrap();
        let second = statements.insert(prepared(2), &server).unwrap();
        assert_eq!((first, second), (1, 2));
        assert!(statements.close(first));
        assert!(!statements.close(first));
        let third = statements.insert(prepared(3), &server).unwrap();
        assert_ne!(third, first);
        assert!(statements.get(first).is_none());
        assert_eq!(statements.get(third).map(|statement| statement.prepared.plan), Some(3));
        assert!(statements.get(0).is_none() && statements.get(u32::MAX).is_none());
        assert_eq!(counted(), 2);
        statements.clear();
        assert_eq!(counted(), 0);
    }
}
