//! How a scan reads: consistently, or with row locks (shared or exclusive), and what it does instead of
//! waiting.
//!
//! FOR UPDATE and FOR SHARE say so; SERIALIZABLE makes every SELECT of a longer transaction a shared locking
//! one; and a statement that changes rows locks those it changes, and what it reads beside them. UPDATE and
//! DELETE of one table lock exclusively (`change.rs`).

use untorn::engine::{Isolation, ReadMode, WaitPolicy};

use super::Executor;
use crate::ast;
use crate::plan::SelectPlan;

impl Executor<'_> {
    /// How a SELECT with this locking clause reads.
    pub fn read_mode(&self, locking: Option<ast::Locking>) -> ReadMode {
        match locking {
            Some(ast::Locking { exclusive, wait }) => ReadMode::Locking {
                exclusive,
                wait: match wait {
                    ast::LockWait::Wait => WaitPolicy::Wait,
                    ast::LockWait::NoWait => WaitPolicy::NoWait,
                    ast::LockWait::SkipLocked => WaitPolicy::SkipLocked,
                },
            },
            None if self.transaction.reads_lock() => {
                ReadMode::Locking { exclusive: false, wait: WaitPolicy::Wait }
            }
            None => ReadMode::Consistent,
        }
    }

    /// How a source of a join is read. A statement that changes some of them reads the newest versions of the
    /// others too, and keeps them so, as InnoDB does from REPEATABLE READ on.
    pub(super) fn source_mode(&self, plan: &SelectPlan, source: usize) -> ReadMode {
        let locking = |exclusive| ReadMode::Locking { exclusive, wait: WaitPolicy::Wait };
        if plan.changed.is_empty() {
            self.read_mode(plan.locking)
        } else if plan.changed.contains(&(source as u16)) {
            locking(true)
        } else {
            match self.transaction.engine().isolation() {
                Isolation::ReadUncommitted | Isolation::ReadCommitted => self.read_mode(None),
                Isolation::RepeatableRead | Isolation::Serializable => locking(false),
            }
        }
    }
}
