//! Which of SHOW STATUS' `Com_…` a statement belongs to.
//!
//! A statement counts when it has been parsed, whatever becomes of it; a plan that is kept counts when it
//! runs. Other counters are added where they happen (`connection.rs`, `client_stream.rs`), and SHOW STATUS
//! gathers all of them in `status.rs`.

use sql::ast::{InsertSource, Statement};
use sql::plan::Plan;

use crate::status::Counter;

/// Of a statement that came as text.
pub(super) fn of_statement(statement: &Statement) -> Option<Counter> {
    Some(match statement {
        Statement::Select(_) => Counter::ComSelect,
        Statement::Insert(insert) if insert.replace => Counter::ComReplace,
        Statement::Insert(insert) if matches!(insert.source, InsertSource::Query(_)) => {
            Counter::ComInsertSelect
        }
        Statement::Insert(_) => Counter::ComInsert,
        Statement::LoadData(_) => Counter::ComLoad,
        Statement::Update(update) if update.is_joined() => Counter::ComUpdateMulti,
        Statement::Update(_) => Counter::ComUpdate,
        Statement::Delete(delete) if delete.is_joined() => Counter::ComDeleteMulti,
        Statement::Delete(_) => Counter::ComDelete,
        Statement::Begin { .. } => Counter::ComBegin,
        Statement::Commit { .. } => Counter::ComCommit,
        Statement::Rollback { .. } => Counter::ComRollback,
        Statement::Set(_) => Counter::ComSetOption,
        Statement::Use(_) => Counter::ComChangeDb,
        Statement::CreateTable(_) => Counter::ComCreateTable,
        Statement::DropTable { .. } => Counter::ComDropTable,
        Statement::CreateIndex { .. } => Counter::ComCreateIndex,
        Statement::CreateDatabase { .. } => Counter::ComCreateDb,
        Statement::DropDatabase { .. } => Counter::ComDropDb,
        Statement::AlterTable(_) => Counter::ComAlterTable,
        _ => return None,
    })
}

/// Of a plan.
pub(super) fn of_plan(plan: &Plan) -> Option<Counter> {
    Some(match plan {
        Plan::Select(_) => Counter::ComSelect,
        Plan::Insert(insert) if insert.replace => Counter::ComReplace,
        Plan::Insert(insert) if insert.query.is_some() => Counter::ComInsertSelect,
        Plan::Insert(_) => Counter::ComInsert,
        Plan::Load(_) => Counter::ComLoad,
        Plan::Update(_) => Counter::ComUpdate,
        Plan::Delete(_) => Counter::ComDelete,
        Plan::MultiTableChange(change) if change.updates() => Counter::ComUpdateMulti,
        Plan::MultiTableChange(_) => Counter::ComDeleteMulti,
        Plan::Command(statement) => return of_statement(statement),
    })
}
