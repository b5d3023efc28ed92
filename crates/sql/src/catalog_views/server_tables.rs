//! Views of the server: engines, character sets, connections, variables, status.

use std::collections::HashMap;
use std::time::Duration;

use untorn::engine::Comparison;
use untorn::types::{Charset, Collation};

use super::ViewType::{Number, Small, Text};
use super::declared::{nullable, preset, required};
use super::table_tables::view;
use super::{INFORMATION_SCHEMA, RowSource, View, ViewType, moment, nothing, number, text};
use crate::context::SqlContext;
use crate::facts::Process;
use crate::privilege::{Object, Privileges, Rights};
use crate::value::Value;

/// SHOW ENGINES.
pub fn engines(_: &SqlContext) -> RowSource {
    Box::new(std::iter::once(vec![
        text("InnoDB"),
        text("DEFAULT"),
        text("Untorn: InnoDB file format, pages written once where the storage writes them whole"),
        text("YES"),
        text("YES"),
        text("YES"),
    ]))
}

/// SHOW CHARACTER SET.
pub fn character_sets(_: &SqlContext) -> RowSource {
    let description = |charset: Charset| match charset {
        Charset::Binary => "Binary pseudo charset",
        Charset::Ascii => "US ASCII",
        Charset::Latin1 => "cp1252 West European",
        Charset::Utf8mb3 => "UTF-8 Unicode",
        Charset::Utf8mb4 => "UTF-8 Unicode",
    };
    let mut sets = Charset::ALL;
    sets.sort_by_key(|charset| charset.name());
    Box::new(sets.into_iter().map(move |charset| {
        vec![
            text(charset.name()),
            text(charset.default_collation().name()),
            text(description(charset)),
            number(u64::from(charset.bytes_per_char_max())),
        ]
    }))
}

/// SHOW COLLATION.
pub fn collations(_: &SqlContext) -> RowSource {
    let row = |rule: Collation| {
        let default = rule == rule.charset().default_collation();
        let weights = match rule.comparison() {
            Comparison::Unicode(of) if of.pads() => 8u64,
            Comparison::Unicode(_) => 0,
            _ => 1,
        };
        vec![
            text(rule.name()),
            text(rule.charset().name()),
            number(rule.id()),
            text(if default { "Yes" } else { "" }),
            text("Yes"),
            number(weights),
            text(if rule.pads() { "PAD SPACE" } else { "NO PAD" }),
        ]
    };
    Box::new(Collation::all().map(row))
}

fn applicability(_: &SqlContext) -> RowSource {
    Box::new(Collation::all().map(|rule| vec![text(rule.name()), text(rule.charset().name())]))
}

/// SHOW PROCESSLIST.
pub fn process_list(state: &SqlContext) -> RowSource {
    let all = state.rights().global().has(Privileges::PROCESS);
    let own = state.facts.client().user;
    let row = move |process: Process| {
        if !all && process.user != own {
            return None;
        }
        let info =
            if process.info.is_empty() { Value::Null } else { text(String::from_utf8_lossy(&process.info)) };
        Some(vec![
            number(process.id),
            text(&*process.user),
            text(&*process.host),
            process.database.as_deref().map_or(Value::Null, text),
            text(process.command),
            number(process.seconds),
            text(process.state),
            info,
        ])
    };
    Box::new(state.facts.processes().filter_map(row))
}

fn global_variables(state: &SqlContext) -> RowSource {
    pairs(state.shown_variables(true))
}

fn session_variables(state: &SqlContext) -> RowSource {
    pairs(state.shown_variables(false))
}

fn pairs<N: AsRef<str> + 'static>(list: Vec<(N, String)>) -> RowSource {
    let row = |(name, value): (N, String)| vec![text(name.as_ref().to_ascii_uppercase()), text(value)];
    Box::new(list.into_iter().map(row))
}

fn global_status(state: &SqlContext) -> RowSource {
    pairs(state.facts.status(true))
}

fn session_status(state: &SqlContext) -> RowSource {
    pairs(state.facts.status(false))
}

/// Accounts this one may know of: itself, and all for those who may look at the system's tables.
pub(super) fn known_accounts(state: &SqlContext) -> Vec<(String, Rights)> {
    let all = state.rights().global().has_any(Privileges::SELECT | Privileges::CREATE_USER);
    let own = state.facts.client();
    let list = state.facts.accounts().into_iter();
    list.filter(|known| all || (&*known.user, &*known.host) == (&*own.user, &*own.account_host))
        .map(|known| (format!("'{}'@'{}'", known.user, known.host), known.rights))
        .collect()
}

/// A row for each privilege: grantee, `def`, then what `object` says, the privilege and whether it may be
/// handed on.
fn privilege_rows(
    accounts: Vec<(String, Rights)>,
    object: impl Fn(&Object) -> Option<Vec<Value<'static>>> + 'static,
) -> impl Iterator<Item = Vec<Value<'static>>> {
    accounts.into_iter().flat_map(move |(grantee, rights)| {
        let mut rows = Vec::new();
        for (held_on, what) in rights.all() {
            let Some(columns) = object(held_on) else { continue };
            let option = text(if what.has(Privileges::GRANT_OPTION) { "YES" } else { "NO" });
            let plain = what.without(Privileges::GRANT_OPTION);
            let names: Vec<&str> = if plain.is_empty() { vec!["USAGE"] } else { plain.names().collect() };
            for name in names {
                let mut row = vec![text(&*grantee), text("def")];
                row.extend(columns.iter().cloned());
                row.extend([text(name), option.clone()]);
                rows.push(row);
            }
        }
        rows
    })
}

fn user_privileges(state: &SqlContext) -> RowSource {
    let accounts = known_accounts(state);
    // An account without anything on everything has USAGE.
    let without = accounts.iter().filter(|(_, rights)| rights.global().is_empty());
    let without: Vec<String> = without.map(|(grantee, _)| grantee.clone()).collect();
    let usage =
        without.into_iter().map(|grantee| vec![text(grantee), text("def"), text("USAGE"), text("NO")]);
    let held = privilege_rows(accounts, |object| (*object == Object::Everything).then(Vec::new));
    Box::new(held.chain(usage))
}

fn schema_privileges(state: &SqlContext) -> RowSource {
    Box::new(privilege_rows(known_accounts(state), |object| match object {
        Object::Database(name) => Some(vec![text(name)]),
        _ => None,
    }))
}

fn table_privileges(state: &SqlContext) -> RowSource {
    Box::new(privilege_rows(known_accounts(state), |object| match object {
        Object::Table(database, table) => Some(vec![text(database), text(table)]),
        _ => None,
    }))
}

fn transactions(state: &SqlContext) -> RowSource {
    let list = state.database.transaction_system().transactions();
    let running = |process: Process| (!process.info.is_empty()).then_some((process.id, process.info));
    let mut statements: HashMap<u32, Vec<u8>> = state.facts.processes().filter_map(running).collect();
    let zone = state.time_zone_offset();
    let moment = move |since: Duration| text(moment(Duration::from_secs(since.as_secs()), zone).to_string());
    Box::new(list.into_iter().map(move |info| {
        let statement = u32::try_from(info.tag).ok().and_then(|connection| statements.remove(&connection));
        let (wanted, since) = info.waits.map(|wait| (wait.lock, wait.since)).unzip();
        vec![
            number(info.id),
            text(if wanted.is_some() { "LOCK WAIT" } else { "RUNNING" }),
            info.started.map_or(Value::Null, moment),
            wanted.map_or(Value::Null, text),
            since.map_or(Value::Null, moment),
            number(info.locks as u64 + info.undo_records),
            number(info.tag),
            statement.map_or(Value::Null, |sql| text(String::from_utf8_lossy(&sql[..sql.len().min(1024)]))),
            number(info.locks),
            number(info.undo_records),
        ]
    }))
}

/// How the pages of each file are kept from tearing.
fn page_protection(state: &SqlContext) -> RowSource {
    let row = |file: untorn::FileProtection| {
        vec![
            text(file.file.display().to_string()),
            text(file.verdict.to_string()),
            text(file.reason),
            text(file.mode.name()),
        ]
    };
    Box::new(state.database.page_protection().into_iter().map(row))
}

/// INT NOT NULL as MySQL's own tables have it.
const INT: ViewType = preset("", required("int"));

pub(super) static VIEWS: &[View] = &[
    view!("ENGINES", [
        "ENGINE" Text(64), "SUPPORT" Text(8), "COMMENT" Text(80), "TRANSACTIONS" Text(3), "XA" Text(3),
        "SAVEPOINTS" Text(3),
    ], |state| engines(state)),
    view!("CHARACTER_SETS", [
        "CHARACTER_SET_NAME" Text(64), "DEFAULT_COLLATE_NAME" Text(64), "DESCRIPTION" Text(60), "MAXLEN" Small,
    ], character_sets),
    view!("COLLATIONS", [
        "COLLATION_NAME" Text(64), "CHARACTER_SET_NAME" Text(64), "ID" Number, "IS_DEFAULT" Text(3),
        "IS_COMPILED" Text(3), "SORTLEN" Small, "PAD_ATTRIBUTE" Text(9),
    ], collations),
    view!("COLLATION_CHARACTER_SET_APPLICABILITY", [
        "COLLATION_NAME" Text(64), "CHARACTER_SET_NAME" Text(64),
    ], applicability),
    view!("PROCESSLIST", [
        "ID" preset("", required("bigint unsigned")), "USER" preset("", required("varchar(32)")),
        "HOST" preset("", required("varchar(261)")), "DB" preset("", nullable("varchar(64)")),
        "COMMAND" preset("", required("varchar(16)")), "TIME" INT, "STATE" preset("", nullable("varchar(64)")),
        "INFO" preset("", nullable("varchar(65535)")),
    ], process_list),
    view!("GLOBAL_VARIABLES", ["VARIABLE_NAME" Text(64), "VARIABLE_VALUE" Text(1024)], global_variables),
    view!("SESSION_VARIABLES", ["VARIABLE_NAME" Text(64), "VARIABLE_VALUE" Text(1024)], session_variables),
    view!("GLOBAL_STATUS", ["VARIABLE_NAME" Text(64), "VARIABLE_VALUE" Text(1024)], global_status),
    view!("SESSION_STATUS", ["VARIABLE_NAME" Text(64), "VARIABLE_VALUE" Text(1024)], session_status),
    view!("USER_PRIVILEGES", [
        "GRANTEE" Text(292), "TABLE_CATALOG" Text(512), "PRIVILEGE_TYPE" Text(64), "IS_GRANTABLE" Text(3),
    ], user_privileges),
    view!("SCHEMA_PRIVILEGES", [
        "GRANTEE" Text(292), "TABLE_CATALOG" Text(512), "TABLE_SCHEMA" Text(64), "PRIVILEGE_TYPE" Text(64),
        "IS_GRANTABLE" Text(3),
    ], schema_privileges),
    view!("TABLE_PRIVILEGES", [
        "GRANTEE" Text(292), "TABLE_CATALOG" Text(512), "TABLE_SCHEMA" Text(64), "TABLE_NAME" Text(64),
        "PRIVILEGE_TYPE" Text(64), "IS_GRANTABLE" Text(3),
    ], table_privileges),
    view!("INNODB_TRX", [
        "TRX_ID" Number, "TRX_STATE" Text(13), "TRX_STARTED" Text(19), "TRX_REQUESTED_LOCK_ID" Text(128),
        "TRX_WAIT_STARTED" Text(19), "TRX_WEIGHT" Number, "TRX_MYSQL_THREAD_ID" Number, "TRX_QUERY" Text(1024),
        "TRX_ROWS_LOCKED" Number, "TRX_ROWS_MODIFIED" Number,
    ], transactions),
    view!("UNTORN_PAGE_PROTECTION", [
        "FILE" Text(512), "VERDICT" Text(16), "REASON" Text(2048), "MODE" Text(16),
    ], page_protection),
    view!("INNODB_CMP", [
        "page_size" INT, "compress_ops" INT, "compress_ops_ok" INT, "compress_time" INT, "uncompress_ops" INT,
        "uncompress_time" INT,
    ], nothing),
    view!("INNODB_CMPMEM", [
        "page_size" INT, "buffer_pool_instance" INT, "pages_used" INT, "pages_free" INT,
        "relocation_ops" preset("", required("bigint")), "relocation_time" INT,
    ], nothing),
];
