//! Privileges: what there is to grant, where it may be granted, and what an account holds.
//!
//! A set of privileges is the bits of one integer, named and ordered as MySQL's SHOW GRANTS prints them. They
//! are held on three levels: on everything (`*.*`), on a database (whose name may be a pattern with `%` and
//! `_`, as in MySQL), and on a table; what an account may do with a table is the union of the three. Of
//! several database entries that fit, the most specific one counts, a literal name before any pattern. Some
//! may be held on single columns, too (`columns.rs`).

mod columns;
mod role;

use std::collections::BTreeMap;
use std::ops::{BitOr, BitOrAssign};

use crate::errors::{self, error};
use crate::result::SqlError;

pub use columns::{ColumnRights, OnColumns};
pub use role::RoleName;

/// A set of privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Privileges(u64);

/// The levels a privilege may be granted on, the lower ones included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `*.*` only.
    Global,
    /// `*.*` and `db.*`.
    Database,
    /// Everywhere.
    Table,
}

macro_rules! privileges {
    ($($bit:literal $symbol:ident $name:literal $level:ident;)*) => {
        impl Privileges {
            $(#[doc = concat!("`", $name, "`")] pub const $symbol: Privileges = Privileges(1 << $bit);)*
        }
        /// Bit, name and deepest level, in the order of SHOW GRANTS.
        const NAMES: &[(Privileges, &str, Level)] = &[$((Privileges::$symbol, $name, Level::$level),)*];
        // Two privileges with one bit would be one privilege.
        const _: () = {
            let (all, sum) = (0 $(| (1_u128 << $bit))*, 0 $(+ (1_u128 << $bit))*);
            assert!(all == sum, "two privileges have the same bit");
        };
    };
}

privileges! {
    0 SELECT "SELECT" Table;
    1 INSERT "INSERT" Table;
    2 UPDATE "UPDATE" Table;
    3 DELETE "DELETE" Table;
    4 CREATE "CREATE" Table;
    5 DROP "DROP" Table;
    6 RELOAD "RELOAD" Global;
    7 SHUTDOWN "SHUTDOWN" Global;
    8 PROCESS "PROCESS" Global;
    9 FILE "FILE" Global;
    10 REFERENCES "REFERENCES" Table;
    11 INDEX "INDEX" Table;
    12 ALTER "ALTER" Table;
    13 SHOW_DATABASES "SHOW DATABASES" Global;
    14 SUPER "SUPER" Global;
    15 CREATE_TEMPORARY_TABLES "CREATE TEMPORARY TABLES" Database;
    16 LOCK_TABLES "LOCK TABLES" Database;
    17 EXECUTE "EXECUTE" Database;
    18 REPLICATION_SLAVE "REPLICATION SLAVE" Global;
    19 REPLICATION_CLIENT "REPLICATION CLIENT" Global;
    20 CREATE_VIEW "CREATE VIEW" Table;
    21 SHOW_VIEW "SHOW VIEW" Table;
    22 CREATE_ROUTINE "CREATE ROUTINE" Database;
    23 ALTER_ROUTINE "ALTER ROUTINE" Database;
    24 CREATE_USER "CREATE USER" Global;
    25 EVENT "EVENT" Database;
    26 TRIGGER "TRIGGER" Table;
    27 CREATE_TABLESPACE "CREATE TABLESPACE" Global;
    28 CREATE_ROLE "CREATE ROLE" Global;
    29 DROP_ROLE "DROP ROLE" Global;
    30 BACKUP_ADMIN "BACKUP_ADMIN" Global;
    31 CONNECTION_ADMIN "CONNECTION_ADMIN" Global;
    32 FLUSH_TABLES "FLUSH_TABLES" Global;
    33 PERSIST_RO_VARIABLES_ADMIN "PERSIST_RO_VARIABLES_ADMIN" Global;
    37 ROLE_ADMIN "ROLE_ADMIN" Global;
    34 SESSION_VARIABLES_ADMIN "SESSION_VARIABLES_ADMIN" Global;
    36 SYSTEM_USER "SYSTEM_USER" Global;
    35 SYSTEM_VARIABLES_ADMIN "SYSTEM_VARIABLES_ADMIN" Global;
    38 XA_RECOVER_ADMIN "XA_RECOVER_ADMIN" Global;
    63 GRANT_OPTION "GRANT OPTION" Table;
}

impl BitOr for Privileges {
    type Output = Privileges;
    fn bitor(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }
}

impl BitOrAssign for Privileges {
    fn bitor_assign(&mut self, other: Privileges) {
        self.0 |= other.0;
    }
}

impl Privileges {
    /// USAGE: nothing.
    pub const NONE: Privileges = Privileges(0);

    /// `ALL PRIVILEGES` on a level: all that can be granted there but GRANT OPTION.
    pub fn all(level: Level) -> Privileges {
        let fitting = NAMES.iter().filter(|row| row.2 >= level && row.0 != Privileges::GRANT_OPTION);
        fitting.fold(Privileges::NONE, |all, row| all | row.0)
    }

    /// Whether every one of `wanted` is in the set.
    pub fn has(self, wanted: Privileges) -> bool {
        wanted.without(self).is_empty()
    }

    /// Whether any one of `wanted` is in the set.
    pub fn has_any(self, wanted: Privileges) -> bool {
        self.0 & wanted.0 != 0
    }

    /// The set without those of another.
    #[must_use]
    pub fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// Those of the set that are in another.
    #[must_use]
    pub fn only(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Names of the privileges, in MySQL's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter(move |row| self.has(row.0)).map(|row| row.1)
    }

    /// Each of the set, in MySQL's order.
    pub fn each(self) -> impl Iterator<Item = Privileges> {
        NAMES.iter().filter(move |row| self.has(row.0)).map(|row| row.0)
    }

    /// The names as a message lists them.
    pub fn list(self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }

    /// The privileges of a GRANT or REVOKE by their upper-case names.
    ///
    /// # Errors
    /// 3929 for a name nobody knows, 1221 and 1144 for one that cannot be granted on this level.
    pub fn parse(names: &[String], level: Level) -> Result<Privileges, SqlError> {
        let mut found = Privileges::NONE;
        for name in names {
            match name.as_str() {
                "ALL" | "ALL PRIVILEGES" => found |= Privileges::all(level),
                "USAGE" => {}
                name => {
                    let row = NAMES.iter().find(|row| row.1 == name);
                    let row = row.ok_or_else(|| error(errors::DYNAMIC_PRIVILEGE_NOT_REGISTERED, &[&name]))?;
                    if row.2 < level {
                        return Err(match level {
                            Level::Database => {
                                error(errors::WRONG_USAGE, &[&"DB GRANT", &"GLOBAL PRIVILEGES"])
                            }
                            _ => error(errors::ILLEGAL_GRANT_FOR_TABLE, &[]),
                        });
                    }
                    found |= row.0;
                }
            }
        }
        Ok(found)
    }

    /// Whether this (upper-case) name is one that MySQL's grammar knows, and so none of a role.
    pub fn is_reserved(name: &str) -> bool {
        name == "USAGE" || NAMES.iter().any(|row| row.1 == name && !name.contains('_'))
    }

    /// A set from stored names; those of a newer version are left out.
    pub fn from_names<'n>(names: impl Iterator<Item = &'n str>) -> Privileges {
        let known = names.filter_map(|name| NAMES.iter().find(|row| row.1 == name));
        known.fold(Privileges::NONE, |all, row| all | row.0)
    }
}

/// What privileges are held on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// `*.*`.
    Everything,
    /// `db.*`; the name may be a pattern.
    Database(String),
    /// `db.table`.
    Table(String, String),
}

impl Object {
    /// The level it is of.
    pub fn level(&self) -> Level {
        match self {
            Object::Everything => Level::Global,
            Object::Database(_) => Level::Database,
            Object::Table(..) => Level::Table,
        }
    }
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        match self {
            Object::Everything => f.write_str("*.*"),
            Object::Database(name) => write!(f, "{}.*", quoted(name)),
            Object::Table(database, table) => write!(f, "{}.{}", quoted(database), quoted(table)),
        }
    }
}

/// What an account may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    held: Vec<(Object, Privileges)>,
    columns: columns::Columns,
}

impl Rights {
    /// From what is held on each object, in the order of SHOW GRANTS.
    pub fn new(mut held: Vec<(Object, Privileges)>) -> Rights {
        held.sort_by(|one, other| one.0.cmp(&other.0));
        Rights { held, columns: BTreeMap::new() }
    }

    /// What is held on this very object.
    pub fn exactly_on(&self, object: &Object) -> Privileges {
        self.held.iter().find(|(held, _)| held == object).map_or(Privileges::NONE, |(_, what)| *what)
    }

    /// All that is held, and on what.
    pub fn all(&self) -> &[(Object, Privileges)] {
        &self.held
    }

    /// Adds privileges on an object.
    pub fn grant(&mut self, object: &Object, what: Privileges) {
        match self.held.iter_mut().find(|(held, _)| held == object) {
            Some((_, before)) => *before |= what,
            None => {
                let mut held = std::mem::take(&mut self.held);
                held.push((object.clone(), what));
                self.held = Rights::new(held).held;
            }
        }
    }

    /// Adds all that others hold.
    pub fn add(&mut self, others: &[Rights]) {
        let mut all: BTreeMap<Object, Privileges> = std::mem::take(&mut self.held).into_iter().collect();
        for (object, what) in others.iter().flat_map(|other| &other.held) {
            *all.entry(object.clone()).or_default() |= *what;
        }
        self.held = all.into_iter().collect();
        others.iter().for_each(|other| self.add_columns(other));
    }

    /// Takes privileges on an object back, and on the columns of a table; false when nothing was held on it.
    pub fn revoke(&mut self, object: &Object, what: Privileges) -> bool {
        let of_columns = self.revoke_from_columns(object, what);
        let Some((_, before)) = self.held.iter_mut().find(|(held, _)| held == object) else {
            return of_columns;
        };
        *before = before.without(what);
        self.held.retain(|(_, what)| !what.is_empty());
        true
    }

    /// On everything.
    pub fn global(&self) -> Privileges {
        self.exactly_on(&Object::Everything)
    }

    /// On a database as a whole.
    pub fn on_database(&self, database: &str) -> Privileges {
        let entries = self.held.iter().filter_map(|(object, what)| match object {
            Object::Database(pattern) if pattern == database => Some(((true, pattern.len()), *what)),
            Object::Database(pattern) if matches(pattern.as_bytes(), database.as_bytes()) => {
                Some(((false, pattern.len()), *what))
            }
            _ => None,
        });
        let best = entries.max_by_key(|(specificity, _)| *specificity);
        self.global() | best.map_or(Privileges::NONE, |(_, what)| what)
    }

    /// On a table.
    pub fn on_table(&self, database: &str, table: &str) -> Privileges {
        let own = self
            .held
            .iter()
            .find(|(object, _)| matches!(object, Object::Table(d, t) if d == database && t == table));
        self.on_database(database) | own.map_or(Privileges::NONE, |(_, what)| *what)
    }

    /// Whether the account has anything to do with a database.
    pub fn sees_database(&self, database: &str) -> bool {
        let of_databases = Privileges::all(Level::Database);
        self.on_database(database).has_any(of_databases)
            || self.held.iter().any(|(object, _)| matches!(object, Object::Table(d, _) if d == database))
            || self.columns.keys().any(|(d, _)| d == database)
    }
}

/// Whether a name fits a pattern of `%`, `_` and `\` before either of them. Of all `%` only the last one met
/// is ever tried again, so the steps are at most the product of both lengths.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Behind the last `%`, and the byte of the text it has swallowed up to.
    let mut again: Option<(usize, usize)> = None;
    loop {
        let fits = match (pattern.get(at), pattern.get(at + 1), text.get(read)) {
            (None, _, None) => return true,
            (Some(b'%'), ..) => {
                at += 1;
                again = Some((at, read));
                continue;
            }
            (Some(b'\\'), Some(wanted @ (b'%' | b'_')), Some(got)) => (wanted == got).then_some(2),
            (Some(b'_'), _, Some(_)) => Some(1),
            (Some(wanted), _, Some(got)) => (wanted == got).then_some(1),
            _ => None,
        };
        match (fits, &mut again) {
            (Some(taken), _) => {
                at += taken;
                read += 1;
            }
            (None, Some((behind, swallowed))) if *swallowed < text.len() => {
                *swallowed += 1;
                (at, read) = (*behind, *swallowed);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_table_has_what_is_held_above_it() {
        let mut rights = Rights::default();
        rights.grant(&Object::Everything, Privileges::PROCESS);
        rights.grant(&Object::Database("shop".into()), Privileges::SELECT);
        rights.grant(&Object::Table("shop".into(), "cart".into()), Privileges::INSERT);
        assert!(rights.on_table("shop", "cart").has(Privileges::SELECT | Privileges::INSERT));
        assert!(!rights.on_table("shop", "other").has(Privileges::INSERT));
        assert!(!rights.on_table("elsewhere", "cart").has_any(Privileges::SELECT | Privileges::INSERT));
        assert!(rights.sees_database("shop") && !rights.sees_database("elsewhere"));
        assert!(rights.revoke(&Object::Database("shop".into()), Privileges::SELECT));
        assert!(!rights.on_table("shop", "cart").has(Privileges::SELECT));
        assert!(rights.sees_database("shop"), "by its table");
        assert!(!rights.revoke(&Object::Database("shop".into()), Privileges::SELECT), "no longer there");
    }

    #[test]
    fn a_literal_database_comes_before_a_pattern() {
        let mut rights = Rights::default();
        rights.grant(&Object::Database("app%".into()), Privileges::SELECT | Privileges::DROP);
        rights.grant(&Object::Database("app_log".into()), Privileges::INSERT);
        rights.grant(&Object::Database(r"x\_y".into()), Privileges::SELECT);
        assert_eq!(rights.on_database("app1"), Privileges::SELECT | Privileges::DROP);
        assert_eq!(rights.on_database("app_log"), Privileges::INSERT);
        assert_eq!(rights.on_database("x_y"), Privileges::SELECT);
        assert_eq!(rights.on_database("xzy"), Privileges::NONE);
    }

    #[test]
    fn patterns() {
        for (pattern, text, wanted) in [
            ("", "", true),
            ("%", "", true),
            ("%%", "abc", true),
            ("a%c", "abbc", true),
            ("a%c", "abcb", false),
            ("a_c", "abc", true),
            ("_", "", false),
            (r"x\_y", "x_y", true),
            (r"x\_y", "xzy", false),
            (r"%\%", "50%", true),
            (r"%\%", "50", false),
            ("%ab%ab%", "xxabab", true),
            ("%ab%ab%", "xxab", false),
            (r"a\", r"a\", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), wanted, "{pattern} and {text}");
        }
        // Backtracking over every `%` would take longer than anybody waits.
        let many = "%a".repeat(30) + "b";
        assert!(!matches(many.as_bytes(), "a".repeat(10_000).as_bytes()));
    }

    #[test]
    fn privileges_belong_to_levels() {
        let parse = |list: &[&str], level| Privileges::parse(&names(list), level);
        let code = |list: &[&str], level| parse(list, level).unwrap_err().code;
        assert_eq!(parse(&["SELECT", "LOCK TABLES"], Level::Database).unwrap().list(), "SELECT, LOCK TABLES");
        assert_eq!(parse(&["USAGE"], Level::Table).unwrap(), Privileges::NONE);
        assert!(!parse(&["ALL"], Level::Database).unwrap().has(Privileges::PROCESS));
        assert!(!parse(&["ALL"], Level::Global).unwrap().has(Privileges::GRANT_OPTION));
        assert_eq!(code(&["PROCESS"], Level::Database), 1221);
        assert_eq!(code(&["LOCK TABLES"], Level::Table), 1144);
        assert_eq!(code(&["FLY"], Level::Global), 3929);
        for level in [Level::Global, Level::Database, Level::Table] {
            let all = Privileges::all(level);
            assert_eq!(Privileges::from_names(all.names()), all);
        }
    }
}
