//! The prepared statements of one connection.
//!
//! Ids are a slot number (low 16 bits, from 1) and a generation, so that looking one up is an index, and a
//! stale id of a closed statement does not find the next one in its slot.

use crate::service::Prepared;
use crate::wire::params::ParamState;

/// A statement and what the wire remembers for it.
pub struct Statement<P> {
    /// The session's.
    pub prepared: Prepared<P>,
    /// Parameter types and long data.
    pub params: ParamState,
}

struct Slot<P> {
    generation: u16,
    statement: Option<Statement<P>>,
}

/// Statements by id.
pub struct Statements<P> {
    slots: Vec<Slot<P>>,
    free: Vec<u16>,
    count: usize,
}

impl<P> Default for Statements<P> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), count: 0 }
    }
}

fn slot_of(id: u32) -> Option<usize> {
    (id & 0xffff).checked_sub(1).map(|slot| slot as usize)
}

impl<P> Statements<P> {
    /// Keeps a statement; `None` when 65,535 are open.
    pub fn insert(&mut self, prepared: Prepared<P>) -> Option<u32> {
        let statement = Statement { prepared, params: ParamState::default() };
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
        self.count += 1;
        Some(u32::from(slot.generation) << 16 | (u32::from(index) + 1))
    }

    /// An open statement.
    #[inline]
    pub fn get(&mut self, id: u32) -> Option<&mut Statement<P>> {
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
        self.count -= 1;
        true
    }

    /// Closes all; how many there were.
    pub fn clear(&mut self) -> usize {
        let count = self.count;
        *self = Self::default();
        count
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use sql::result::ResultColumns;

    use super::*;

    fn prepared(plan: u32) -> Prepared<u32> {
        let none = ResultColumns::new(Vec::new());
        Prepared { sql: Arc::from(&b"x"[..]), params: Arc::clone(&none), columns: none, plan }
    }

    #[test]
    fn a_closed_id_stays_closed() {
        let mut statements = Statements::default();
        let first = statements.insert(prepared(1)).unwrap();
        let second = statements.insert(prepared(2)).unwrap();
        assert_eq!((first, second), (1, 2));
        assert!(statements.close(first));
        assert!(!statements.close(first));
        let third = statements.insert(prepared(3)).unwrap();
        assert_ne!(third, first);
        assert!(statements.get(first).is_none());
        assert_eq!(statements.get(third).map(|statement| statement.prepared.plan), Some(3));
        assert!(statements.get(0).is_none() && statements.get(u32::MAX).is_none());
        assert_eq!(statements.clear(), 2);
    }
}
