//! `mysql.user`: the accounts, to be read only. CREATE USER and its like change them. `mysql.role_edges` and
//! `mysql.default_roles`: which roles are granted to whom, and which of them are active after a login.
//!
//! Columns are MySQL's; what there is no such thing of here (subjects of certificates) has the value that an
//! account of MySQL without it has. The stored form of a password is for those who may give the account
//! another one, which is less than MySQL shows: an account that may read all tables, as those of monitoring
//! often may, would otherwise get what guesses of passwords are checked with.

use std::time::Duration;

use untorn::types::Collation;

use super::ViewType;
use super::declared::{keyed, nullable, preset, required};
use super::{MYSQL, RowSource, View, moment, number, text};
use crate::context::SqlContext;
use crate::facts::KnownAccount;
use crate::privilege::{Privileges, RoleName};
use crate::value::Value;

/// A column of `Y` and `N`.
const FLAG: ViewType = preset("N", required("enum('N','Y')"));

/// The privileges behind `User`, in the order of their columns.
const FIRST: [Privileges; 29] = [
    Privileges::SELECT,
    Privileges::INSERT,
    Privileges::UPDATE,
    Privileges::DELETE,
    Privileges::CREATE,
    Privileges::DROP,
    Privileges::RELOAD,
    Privileges::SHUTDOWN,
    Privileges::PROCESS,
    Privileges::FILE,
    Privileges::GRANT_OPTION,
    Privileges::REFERENCES,
    Privileges::INDEX,
    Privileges::ALTER,
    Privileges::SHOW_DATABASES,
    Privileges::SUPER,
    Privileges::CREATE_TEMPORARY_TABLES,
    Privileges::LOCK_TABLES,
    Privileges::EXECUTE,
    Privileges::REPLICATION_SLAVE,
    Privileges::REPLICATION_CLIENT,
    Privileges::CREATE_VIEW,
    Privileges::SHOW_VIEW,
    Privileges::CREATE_ROUTINE,
    Privileges::ALTER_ROUTINE,
    Privileges::CREATE_USER,
    Privileges::EVENT,
    Privileges::TRIGGER,
    Privileges::CREATE_TABLESPACE,
];

fn flag(set: bool) -> Value<'static> {
    text(if set { "Y" } else { "N" })
}

fn row(account: KnownAccount, reader: Privileges, zone: i32) -> Vec<Value<'static>> {
    let held = account.rights.global();
    let mut row = vec![text(account.host), text(account.user)];
    row.extend(FIRST.map(|privilege| flag(held.has(privilege))));
    row.push(text(account.ssl_type));
    row.extend(std::iter::repeat_n(Value::Text(Vec::new().into(), Collation::Binary), 3));
    row.extend(account.limits.map(|limit| number(u64::from(limit))));
    let protected = account.is_system_user && !reader.has(Privileges::SYSTEM_USER);
    let may_change = reader.has(Privileges::CREATE_USER) && !protected;
    row.extend([
        text(account.plugin),
        if may_change { text(account.authentication) } else { Value::Null },
        flag(account.expired),
        Value::DateTime(moment(Duration::from_secs(account.password_set_unix_s), zone), 0),
        account.password_lifetime_days.map_or(Value::Null, |days| number(u64::from(days))),
        flag(account.locked),
        flag(held.has(Privileges::CREATE_ROLE)),
        flag(held.has(Privileges::DROP_ROLE)),
    ]);
    let small = |number_of: Option<u32>| number_of.map_or(Value::Null, |n| number(u64::from(n.min(65_535))));
    row.extend([
        small(account.password_history),
        small(account.password_reuse_days),
        account.requires_current.map_or(Value::Null, flag),
        attributes(account.failed_attempts, account.lock_days),
    ]);
    row
}

/// `User_attributes`.
fn attributes(failed_attempts: u16, lock_days: i16) -> Value<'static> {
    if (failed_attempts, lock_days) == (0, 0) {
        return Value::Null;
    }
    text(format!(
        "{{\"Password_locking\": {{\"failed_login_attempts\": {failed_attempts}, \
         \"password_lock_time_days\": {lock_days}}}}}"
    ))
}

fn users(state: &SqlContext) -> RowSource {
    let reader = state.rights().global();
    let mut accounts = state.facts.accounts();
    accounts.sort_by(|one, other| (&one.host, &one.user).cmp(&(&other.host, &other.user)));
    let zone = state.time_zone_offset();
    Box::new(accounts.into_iter().map(move |account| row(account, reader, zone)))
}

/// Rows of which each account gives some.
fn rows_of(
    state: &SqlContext,
    rows: fn(&KnownAccount) -> Vec<[String; 5]>,
) -> std::vec::IntoIter<[String; 5]> {
    let mut all: Vec<_> = state.facts.accounts().iter().flat_map(rows).collect();
    all.sort();
    all.into_iter()
}

fn role_edges(state: &SqlContext) -> RowSource {
    let rows = rows_of(state, |account| {
        let edge = |(role, admin): &(RoleName, bool)| {
            let (from, to) = ([&role.host, &role.user], [&account.host, &account.user]);
            let admin = if *admin { "Y" } else { "N" }.to_owned();
            [from[0].clone(), from[1].clone(), to[0].clone(), to[1].clone(), admin]
        };
        account.roles.iter().map(edge).collect()
    });
    Box::new(rows.map(|row| row.map(text).into()))
}

fn default_roles(state: &SqlContext) -> RowSource {
    let rows = rows_of(state, |account| {
        let row = |role: &RoleName| {
            let (host, user) = (account.host.clone(), account.user.clone());
            [host, user, role.host.clone(), role.user.clone(), String::new()]
        };
        account.default_roles.iter().map(row).collect()
    });
    Box::new(rows.map(|[host, user, of_role, role, _]| [host, user, of_role, role].map(text).into()))
}

const HOST: ViewType = keyed("PRI", preset("", required("char(255)")));
const USER: ViewType = keyed("PRI", preset("", required("char(32)")));

const ROLE_EDGES: View = View {
    database: MYSQL,
    name: "role_edges",
    columns: &[
        ("FROM_HOST", HOST),
        ("FROM_USER", USER),
        ("TO_HOST", HOST),
        ("TO_USER", USER),
        ("WITH_ADMIN_OPTION", FLAG),
    ],
    make: role_edges,
};

const DEFAULT_ROLES: View = View {
    database: MYSQL,
    name: "default_roles",
    columns: &[
        ("HOST", HOST),
        ("USER", USER),
        ("DEFAULT_ROLE_HOST", keyed("PRI", preset("%", required("char(255)")))),
        ("DEFAULT_ROLE_USER", USER),
    ],
    make: default_roles,
};

pub(super) static VIEWS: &[View] = &[
    ROLE_EDGES,
    DEFAULT_ROLES,
    View {
        database: MYSQL,
        name: "user",
        columns: &[
            ("Host", keyed("PRI", preset("", required("char(255)")))),
            ("User", keyed("PRI", preset("", required("char(32)")))),
            ("Select_priv", FLAG),
            ("Insert_priv", FLAG),
            ("Update_priv", FLAG),
            ("Delete_priv", FLAG),
            ("Create_priv", FLAG),
            ("Drop_priv", FLAG),
            ("Reload_priv", FLAG),
            ("Shutdown_priv", FLAG),
            ("Process_priv", FLAG),
            ("File_priv", FLAG),
            ("Grant_priv", FLAG),
            ("References_priv", FLAG),
            ("Index_priv", FLAG),
            ("Alter_priv", FLAG),
            ("Show_db_priv", FLAG),
            ("Super_priv", FLAG),
            ("Create_tmp_table_priv", FLAG),
            ("Lock_tables_priv", FLAG),
            ("Execute_priv", FLAG),
            ("Repl_slave_priv", FLAG),
            ("Repl_client_priv", FLAG),
            ("Create_view_priv", FLAG),
            ("Show_view_priv", FLAG),
            ("Create_routine_priv", FLAG),
            ("Alter_routine_priv", FLAG),
            ("Create_user_priv", FLAG),
            ("Event_priv", FLAG),
            ("Trigger_priv", FLAG),
            ("Create_tablespace_priv", FLAG),
            ("ssl_type", preset("", required("enum('','ANY','X509','SPECIFIED')"))),
            ("ssl_cipher", required("blob")),
            ("x509_issuer", required("blob")),
            ("x509_subject", required("blob")),
            ("max_questions", preset("0", required("int unsigned"))),
            ("max_updates", preset("0", required("int unsigned"))),
            ("max_connections", preset("0", required("int unsigned"))),
            ("max_user_connections", preset("0", required("int unsigned"))),
            ("plugin", preset("caching_sha2_password", required("char(64)"))),
            ("authentication_string", nullable("text")),
            ("password_expired", FLAG),
            ("password_last_changed", nullable("timestamp")),
            ("password_lifetime", nullable("smallint unsigned")),
            ("account_locked", FLAG),
            ("Create_role_priv", FLAG),
            ("Drop_role_priv", FLAG),
            ("Password_reuse_history", nullable("smallint unsigned")),
            ("Password_reuse_time", nullable("smallint unsigned")),
            ("Password_require_current", nullable("enum('N','Y')")),
            ("User_attributes", nullable("json")),
        ],
        make: users,
    },
];
