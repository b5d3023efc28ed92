//! What a session may do.
//!
//! Accounts either may do everything or hold grants on databases; the check is made once for each statement, on the
//! tables of its plan.

use super::Session;
use crate::result::SqlError;
use crate::sql::plan::Plan;

impl Session {
    /// Checks the tables of a plan against LOCK TABLES.
    pub(super) fn check_access(&self, plan: &Plan) -> Result<(), SqlError> {
        if self.table_locks.is_none() {
            return Ok(());
        }
        let target = match plan {
            Plan::Insert(plan) => plan.source.engine_table(),
            Plan::Update(plan) => plan.target.source.engine_table(),
            Plan::Delete(plan) => plan.target.source.engine_table(),
            _ => None,
        };
        for table in plan.tables() {
            let writes = target.is_some_and(|target| std::sync::Arc::ptr_eq(target, &table));
            self.check_locked(&table.database, &table.name, writes)?;
        }
        Ok(())
    }
}
