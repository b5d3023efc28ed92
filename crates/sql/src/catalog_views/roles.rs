//! Views of roles and of privileges on columns in `information_schema`.
//!
//! Who granted something is not kept: GRANTOR is NULL. MySQL names the account.

use std::collections::{HashMap, HashSet};

use super::ViewType::Text;
use super::server_tables::known_accounts;
use super::table_tables::view;
use super::{INFORMATION_SCHEMA, RowSource, View, text};
use crate::context::SqlContext;
use crate::exec::Rows;
use crate::facts::KnownAccount;
use crate::privilege::{Object, Privileges, RoleName};
use crate::value::Value;

fn yes(is: bool) -> Value<'static> {
    text(if is { "YES" } else { "NO" })
}

/// The accounts, to be found by their names.
struct Known(HashMap<(String, String), KnownAccount>);

impl Known {
    fn new(state: &SqlContext) -> Known {
        let key = |account: &KnownAccount| (account.user.clone(), account.host.to_lowercase());
        Known(state.facts.accounts().into_iter().map(|account| (key(&account), account)).collect())
    }

    fn get(&self, role: &RoleName) -> Option<&KnownAccount> {
        self.0.get(&(role.user.clone(), role.host.to_lowercase()))
    }

    /// These accounts and the roles that are granted to them, directly or by others.
    fn with_their_roles(&self, first: Vec<RoleName>) -> Vec<&KnownAccount> {
        let (mut seen, mut found, mut left) = (HashSet::new(), Vec::new(), first);
        while let Some(name) = left.pop() {
            let Some(account) = self.get(&name) else { continue };
            if seen.insert((account.user.clone(), account.host.clone())) {
                left.extend(account.roles.iter().map(|(role, _)| role.clone()));
                found.push(account);
            }
        }
        found.sort_by(|one, other| (&one.user, &one.host).cmp(&(&other.user, &other.host)));
        found
    }
}

/// The account that is logged in.
fn own_name(state: &SqlContext) -> RoleName {
    let client = state.facts.client();
    RoleName { user: client.user.to_string(), host: client.account_host.to_string() }
}

/// Rows of APPLICABLE_ROLES: each role that may become active, and by which grant.
fn applicable(state: &SqlContext, only_grantable: bool) -> Rows {
    let (known, own, mandatory) = (Known::new(state), own_name(state), state.facts.mandatory_roles());
    let defaults = known.get(&own).map(|account| account.default_roles.clone()).unwrap_or_default();
    let mut rows = Vec::new();
    let mut row = |grantee: &RoleName, role: &RoleName, admin: bool| {
        if only_grantable && !admin {
            return;
        }
        rows.push(vec![
            text(&*own.user),
            text(&*own.host),
            text(&*grantee.user),
            text(&*grantee.host),
            text(&*role.user),
            text(&*role.host),
            yes(admin),
            yes(*grantee == own && defaults.contains(role)),
            yes(*grantee == own && mandatory.contains(role)),
        ]);
    };
    let of_all = mandatory.iter().filter(|role| known.get(role).is_some());
    let granted = |role: &&RoleName| {
        known.get(&own).is_some_and(|account| account.roles.iter().any(|(of, _)| of == *role))
    };
    let of_all: Vec<RoleName> = of_all.filter(|role| !granted(role)).cloned().collect();
    of_all.iter().for_each(|role| row(&own, role, false));
    let first = std::iter::once(own.clone()).chain(of_all.clone()).collect();
    for account in known.with_their_roles(first) {
        let grantee = RoleName { user: account.user.clone(), host: account.host.clone() };
        account.roles.iter().for_each(|(role, admin)| row(&grantee, role, *admin));
    }
    rows
}

fn applicable_roles(state: &SqlContext) -> RowSource {
    Box::new(applicable(state, false).into_iter())
}

fn administrable_roles(state: &SqlContext) -> RowSource {
    Box::new(applicable(state, true).into_iter())
}

fn enabled_roles(state: &SqlContext) -> RowSource {
    let (known, mandatory) = (Known::new(state), state.facts.mandatory_roles());
    let defaults = known.get(&own_name(state)).map(|own| own.default_roles.clone()).unwrap_or_default();
    Box::new(state.facts.active_roles().into_iter().map(move |role| {
        let (is_default, is_mandatory) = (defaults.contains(&role), mandatory.contains(&role));
        vec![text(role.user), text(role.host), yes(is_default), yes(is_mandatory)]
    }))
}

/// Names of privileges as the sets of MySQL's tables have them: `Select,Create View,Grant`.
fn as_set(what: Privileges) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at(1.min(word.len()));
        first.to_owned() + &rest.to_lowercase()
    };
    let name = |name: &str| match name {
        "GRANT OPTION" => "Grant".to_owned(),
        name => name.split(' ').map(capital).collect::<Vec<_>>().join(" "),
    };
    let order = Privileges::SELECT | Privileges::INSERT | Privileges::UPDATE | Privileges::DELETE;
    let order = order | Privileges::CREATE | Privileges::DROP;
    let [first, grant, rest] = [
        what.only(order),
        what.only(Privileges::GRANT_OPTION),
        what.without(order | Privileges::GRANT_OPTION),
    ];
    [first, grant, rest].into_iter().flat_map(Privileges::names).map(name).collect::<Vec<_>>().join(",")
}

/// The active roles, and those that come with them.
fn active(state: &SqlContext, mut rows: impl FnMut(&KnownAccount, &mut Rows)) -> RowSource {
    let known = Known::new(state);
    let mut all = Vec::new();
    for role in known.with_their_roles(state.facts.active_roles()) {
        rows(role, &mut all);
    }
    Box::new(all.into_iter())
}

fn role_table_grants(state: &SqlContext) -> RowSource {
    active(state, |role, rows| {
        for (object, what) in role.rights.all() {
            let Object::Table(database, table) = object else { continue };
            rows.push(vec![
                Value::Null,
                Value::Null,
                text(&*role.user),
                text(&*role.host),
                text("def"),
                text(&**database),
                text(&**table),
                text(as_set(*what)),
                yes(what.has(Privileges::GRANT_OPTION)),
            ]);
        }
    })
}

fn role_column_grants(state: &SqlContext) -> RowSource {
    active(state, |role, rows| {
        for (database, table, columns) in role.rights.all_columns() {
            let on_table = Object::Table(database.to_owned(), table.to_owned());
            let grantable = role.rights.exactly_on(&on_table).has(Privileges::GRANT_OPTION);
            for (name, what) in columns.values() {
                rows.push(vec![
                    Value::Null,
                    Value::Null,
                    text(&*role.user),
                    text(&*role.host),
                    text("def"),
                    text(database),
                    text(table),
                    text(&**name),
                    text(as_set(*what)),
                    yes(grantable),
                ]);
            }
        }
    })
}

/// COLUMN_PRIVILEGES: a row for each privilege and column.
fn column_privileges(state: &SqlContext) -> RowSource {
    let of_account = |(grantee, rights): (String, crate::privilege::Rights)| {
        let mut rows = Vec::new();
        for (database, table, columns) in rights.all_columns() {
            let on_table = Object::Table(database.to_owned(), table.to_owned());
            let grantable = rights.exactly_on(&on_table).has(Privileges::GRANT_OPTION);
            for privilege in Privileges::of_columns().each() {
                for (name, _) in columns.values().filter(|(_, what)| what.has(privilege)) {
                    rows.push(vec![
                        text(&*grantee),
                        text("def"),
                        text(database),
                        text(table),
                        text(&**name),
                        text(privilege.list()),
                        yes(grantable),
                    ]);
                }
            }
        }
        rows
    };
    Box::new(known_accounts(state).into_iter().flat_map(of_account))
}

pub(super) static VIEWS: &[View] = &[
    view!("COLUMN_PRIVILEGES", [
        "GRANTEE" Text(292), "TABLE_CATALOG" Text(512), "TABLE_SCHEMA" Text(64), "TABLE_NAME" Text(64),
        "COLUMN_NAME" Text(64), "PRIVILEGE_TYPE" Text(64), "IS_GRANTABLE" Text(3),
    ], column_privileges),
    view!("APPLICABLE_ROLES", [
        "USER" Text(97), "HOST" Text(256), "GRANTEE" Text(97), "GRANTEE_HOST" Text(256), "ROLE_NAME" Text(255),
        "ROLE_HOST" Text(256), "IS_GRANTABLE" Text(3), "IS_DEFAULT" Text(3), "IS_MANDATORY" Text(3),
    ], applicable_roles),
    view!("ADMINISTRABLE_ROLE_AUTHORIZATIONS", [
        "USER" Text(97), "HOST" Text(256), "GRANTEE" Text(97), "GRANTEE_HOST" Text(256), "ROLE_NAME" Text(255),
        "ROLE_HOST" Text(256), "IS_GRANTABLE" Text(3), "IS_DEFAULT" Text(3), "IS_MANDATORY" Text(3),
    ], administrable_roles),
    view!("ENABLED_ROLES", [
        "ROLE_NAME" Text(255), "ROLE_HOST" Text(255), "IS_DEFAULT" Text(3), "IS_MANDATORY" Text(3),
    ], enabled_roles),
    view!("ROLE_TABLE_GRANTS", [
        "GRANTOR" Text(97), "GRANTOR_HOST" Text(256), "GRANTEE" Text(32), "GRANTEE_HOST" Text(255),
        "TABLE_CATALOG" Text(3), "TABLE_SCHEMA" Text(64), "TABLE_NAME" Text(64), "PRIVILEGE_TYPE" Text(131),
        "IS_GRANTABLE" Text(3),
    ], role_table_grants),
    view!("ROLE_COLUMN_GRANTS", [
        "GRANTOR" Text(97), "GRANTOR_HOST" Text(256), "GRANTEE" Text(32), "GRANTEE_HOST" Text(255),
        "TABLE_CATALOG" Text(3), "TABLE_SCHEMA" Text(64), "TABLE_NAME" Text(64), "COLUMN_NAME" Text(64),
        "PRIVILEGE_TYPE" Text(31), "IS_GRANTABLE" Text(3),
    ], role_column_grants),
];
