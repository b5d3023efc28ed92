//! Which of SHOW STATUS' `Com_…` a statement belongs to.
//!
//! A statement counts when it has been parsed, whatever becomes of it; a plan that is kept counts when it
//! runs. Other counters are added where they happen (`connection.rs`, `client_stream.rs`), and SHOW STATUS
//! gathers all of them in `status.rs`.

use sql::ast::{Insert, InsertSource, Maintenance, Show, ShowKind, Statement, Xa};
use sql::plan::Plan;

use crate::status::Counter;

/// Of a statement that came as text.
pub(super) fn of_statement(statement: &Statement) -> Option<Counter> {
    Some(match statement {
        Statement::Select(_) => Counter::ComSelect,
        Statement::Insert(insert) => of_insert(insert),
        Statement::LoadData(_) => Counter::ComLoad,
        Statement::Update(update) if update.is_joined() => Counter::ComUpdateMulti,
        Statement::Update(_) => Counter::ComUpdate,
        Statement::Delete(delete) if delete.is_joined() => Counter::ComDeleteMulti,
        Statement::Delete(_) => Counter::ComDelete,
        // As what is explained, as in MySQL.
        Statement::Explain { statement, .. } => return of_statement(statement),
        Statement::Begin { .. } => Counter::ComBegin,
        Statement::Commit { .. } => Counter::ComCommit,
        Statement::Rollback { .. } => Counter::ComRollback,
        Statement::Savepoint(_) => Counter::ComSavepoint,
        Statement::RollbackTo(_) => Counter::ComRollbackToSavepoint,
        Statement::Xa(Xa::Start(..)) => Counter::ComXaStart,
        Statement::Xa(Xa::End(..)) => Counter::ComXaEnd,
        Statement::Xa(Xa::Prepare(_)) => Counter::ComXaPrepare,
        Statement::Xa(Xa::Commit(..)) => Counter::ComXaCommit,
        Statement::Xa(Xa::Rollback(_)) => Counter::ComXaRollback,
        Statement::Xa(Xa::Recover(_)) => Counter::ComXaRecover,
        Statement::ReleaseSavepoint(_) => Counter::ComReleaseSavepoint,
        Statement::Set(_) | Statement::SetTransaction { .. } => Counter::ComSetOption,
        Statement::Use(_) => Counter::ComChangeDb,
        Statement::Show(show) => of_show(show),
        Statement::Describe { .. } => Counter::ComShowFields,
        Statement::Maintain { what, .. } => of_maintenance(*what),
        Statement::Kill { .. } => Counter::ComKill,
        Statement::Flush(_) => Counter::ComFlush,
        Statement::LockTables(_) => Counter::ComLockTables,
        Statement::UnlockTables => Counter::ComUnlockTables,
        Statement::Do(_) => Counter::ComDo,
        Statement::Prepare { .. } => Counter::ComPrepareSql,
        Statement::Execute { .. } => Counter::ComExecuteSql,
        Statement::Deallocate(_) => Counter::ComDeallocSql,
        Statement::Shutdown => Counter::ComShutdown,
        Statement::Unsupported(what) => return of_unsupported(what),
        other => return of_definition(other),
    })
}

fn of_insert(insert: &Insert) -> Counter {
    match (insert.replace, matches!(insert.source, InsertSource::Query(_))) {
        (false, false) => Counter::ComInsert,
        (false, true) => Counter::ComInsertSelect,
        (true, false) => Counter::ComReplace,
        (true, true) => Counter::ComReplaceSelect,
    }
}

/// Of statements that change definitions and accounts.
fn of_definition(statement: &Statement) -> Option<Counter> {
    Some(match statement {
        Statement::CreateTable(_) => Counter::ComCreateTable,
        Statement::DropTable { .. } => Counter::ComDropTable,
        Statement::RenameTable(_) => Counter::ComRenameTable,
        Statement::Truncate(_) => Counter::ComTruncate,
        Statement::AlterTable(_) => Counter::ComAlterTable,
        Statement::CreateIndex { .. } => Counter::ComCreateIndex,
        Statement::DropIndex { .. } => Counter::ComDropIndex,
        // ALTER VIEW as well.
        Statement::CreateView(_) => Counter::ComCreateView,
        Statement::DropView { .. } => Counter::ComDropView,
        Statement::CreateDatabase { .. } => Counter::ComCreateDb,
        Statement::AlterDatabase { .. } => Counter::ComAlterDb,
        Statement::DropDatabase { .. } => Counter::ComDropDb,
        Statement::CreateUser { .. } => Counter::ComCreateUser,
        Statement::AlterUser { .. } => Counter::ComAlterUser,
        Statement::DropUser { .. } => Counter::ComDropUser,
        Statement::RenameUser(_) => Counter::ComRenameUser,
        Statement::CreateRole { .. } => Counter::ComCreateRole,
        Statement::DropRole { .. } => Counter::ComDropRole,
        Statement::GrantRoles(_) => Counter::ComGrantRoles,
        Statement::RevokeRoles(_) => Counter::ComRevokeRoles,
        Statement::SetRole(_) => Counter::ComSetRole,
        Statement::SetDefaultRole { .. } => Counter::ComAlterUserDefaultRole,
        Statement::Grant(_) => Counter::ComGrant,
        Statement::Revoke(revoke) if revoke.object.is_none() => Counter::ComRevokeAll,
        Statement::Revoke(_) => Counter::ComRevoke,
        Statement::SetPassword { .. } => Counter::ComSetPassword,
        Statement::GetDiagnostics(_) => Counter::ComGetDiagnostics,
        _ => return None,
    })
}

fn of_maintenance(what: Maintenance) -> Counter {
    match what {
        Maintenance::Analyze => Counter::ComAnalyze,
        Maintenance::Check => Counter::ComCheck,
        Maintenance::Optimize => Counter::ComOptimize,
        Maintenance::Repair => Counter::ComRepair,
        Maintenance::AssignToKeyCache => Counter::ComAssignToKeycache,
        Maintenance::PreloadKeys => Counter::ComPreloadKeys,
        Maintenance::Checksum | Maintenance::KeptChecksum => Counter::ComChecksum,
    }
}

fn of_show(show: &Show) -> Counter {
    match &show.kind {
        ShowKind::Databases => Counter::ComShowDatabases,
        ShowKind::Tables { .. } => Counter::ComShowTables,
        ShowKind::TableStatus { .. } => Counter::ComShowTableStatus,
        ShowKind::OpenTables { .. } => Counter::ComShowOpenTables,
        ShowKind::Columns { .. } => Counter::ComShowFields,
        ShowKind::Index { .. } => Counter::ComShowKeys,
        ShowKind::CreateTable(_) | ShowKind::CreateView(_) => Counter::ComShowCreateTable,
        ShowKind::CreateDatabase { .. } => Counter::ComShowCreateDb,
        ShowKind::Variables { .. } => Counter::ComShowVariables,
        ShowKind::Status { .. } => Counter::ComShowStatus,
        ShowKind::ProcessList { .. } => Counter::ComShowProcesslist,
        // MySQL makes a SELECT of a variable of it.
        ShowKind::Warnings { count: true, .. } | ShowKind::Errors { count: true, .. } => Counter::ComSelect,
        ShowKind::Warnings { .. } => Counter::ComShowWarnings,
        ShowKind::Errors { .. } => Counter::ComShowErrors,
        ShowKind::Engines => Counter::ComShowStorageEngines,
        ShowKind::EngineStatus { what, .. } if what == "MUTEX" => Counter::ComShowEngineMutex,
        ShowKind::EngineStatus { .. } => Counter::ComShowEngineStatus,
        ShowKind::Plugins => Counter::ComShowPlugins,
        ShowKind::Privileges => Counter::ComShowPrivileges,
        ShowKind::CharacterSets => Counter::ComShowCharsets,
        ShowKind::Collations => Counter::ComShowCollations,
        ShowKind::Grants(..) => Counter::ComShowGrants,
        ShowKind::CreateUser(_) => Counter::ComShowCreateUser,
        ShowKind::Empty(what, _) => of_show_empty(what),
    }
}

fn of_show_empty(what: &str) -> Counter {
    match what {
        "TRIGGERS" => Counter::ComShowTriggers,
        "EVENTS" => Counter::ComShowEvents,
        "FUNCTION STATUS" => Counter::ComShowFunctionStatus,
        "PROCEDURE STATUS" => Counter::ComShowProcedureStatus,
        "BINARY LOGS" => Counter::ComShowBinlogs,
        "BINARY LOG STATUS" => Counter::ComShowMasterStatus,
        "BINLOG EVENTS" => Counter::ComShowBinlogEvents,
        "REPLICAS" => Counter::ComShowReplicas,
        "PROFILE" | "PROFILES" => Counter::ComShowProfiles,
        "help" => Counter::ComHelp,
        "CREATE TRIGGER" => Counter::ComShowCreateTrigger,
        "CREATE PROCEDURE" => Counter::ComShowCreateProc,
        "CREATE FUNCTION" => Counter::ComShowCreateFunc,
        _ => Counter::ComShowReplicaStatus,
    }
}

/// Of what is refused by its name: it was asked for.
fn of_unsupported(what: &str) -> Option<Counter> {
    Some(match what {
        "CALL" => Counter::ComCallProcedure,
        "RENAME USER" => Counter::ComRenameUser,
        "CREATE TRIGGER" => Counter::ComCreateTrigger,
        "DROP TRIGGER" => Counter::ComDropTrigger,
        "CREATE PROCEDURE" => Counter::ComCreateProcedure,
        "ALTER PROCEDURE" => Counter::ComAlterProcedure,
        "DROP PROCEDURE" => Counter::ComDropProcedure,
        "CREATE FUNCTION" => Counter::ComCreateFunction,
        "ALTER FUNCTION" => Counter::ComAlterFunction,
        "DROP FUNCTION" => Counter::ComDropFunction,
        "CREATE EVENT" => Counter::ComCreateEvent,
        "ALTER EVENT" => Counter::ComAlterEvent,
        "DROP EVENT" => Counter::ComDropEvent,
        "CREATE ROLE" => Counter::ComCreateRole,
        "DROP ROLE" => Counter::ComDropRole,
        _ => return None,
    })
}

/// Of a plan.
pub(super) fn of_plan(plan: &Plan) -> Option<Counter> {
    Some(match plan {
        Plan::Select(_) => Counter::ComSelect,
        Plan::Insert(insert) => match (insert.replace, insert.query.is_some()) {
            (false, false) => Counter::ComInsert,
            (false, true) => Counter::ComInsertSelect,
            (true, false) => Counter::ComReplace,
            (true, true) => Counter::ComReplaceSelect,
        },
        Plan::Load(_) => Counter::ComLoad,
        Plan::Update(_) => Counter::ComUpdate,
        Plan::Delete(_) => Counter::ComDelete,
        Plan::MultiTableChange(change) if change.updates() => Counter::ComUpdateMulti,
        Plan::MultiTableChange(_) => Counter::ComDeleteMulti,
        Plan::Command(statement) => return of_statement(statement),
    })
}
