//! Accounts: CREATE USER and ALTER USER (who, by what password, and under which conditions), SET PASSWORD,
//! GRANT and REVOKE.
//!
//! An option that restricts an account and that this server cannot keep is refused as a whole statement
//! (1235): an account that its administrator believes to be locked, expired or bound to TLS must not be open.
//! The same options with values that restrict nothing are accepted, because dumps of accounts (`SHOW CREATE
//! USER` of MySQL) are full of them.

use super::super::ast::{
    Account, AccountSpecification, Grant, GrantObject, Identification, Requirement, Statement, TableName,
};
use super::super::lexer::TokenKind;
use super::roles::Granted;
use super::{Parsed, Parser};

/// What the options behind the accounts come to.
#[derive(Default)]
pub(super) struct AccountOptions {
    /// `ACCOUNT LOCK` (true) or `UNLOCK`; the last one said counts, as in MySQL.
    lock: Option<bool>,
    /// `REQUIRE`.
    requires: Option<Requirement>,
    /// `PASSWORD EXPIRE`.
    expired: bool,
    /// `WITH GRANT OPTION`, which only GRANT has.
    pub(super) grant_option: bool,
    /// The first option that is not supported.
    pub(super) refused: Option<&'static str>,
}

impl AccountOptions {
    fn refuse_unless(&mut self, harmless: bool, what: &'static str) {
        if !harmless {
            self.refused.get_or_insert(what);
        }
    }
}

impl Parser<'_> {
    pub(crate) fn create_user(&mut self) -> Parsed<Statement> {
        let if_not_exists = self.if_not_exists();
        let accounts = self.list(Self::account_specification)?;
        let roles = self.accept_all(&["DEFAULT", "ROLE"]);
        let default_roles = if roles { self.list(Self::role)? } else { Vec::new() };
        let options = self.account_options()?;
        // An account that nobody may log in to is what CREATE ROLE makes; SHOW CREATE USER shows it so.
        let expired = options.expired && options.lock == Some(true);
        let refused = options.refused.or((options.expired && !expired).then_some("PASSWORD EXPIRE"));
        if let Some(refused) = refused.or_else(|| refused_identification(&accounts)) {
            return self.refuse(refused);
        }
        self.no_grant_option(&options)?;
        let (lock, requires) = (options.lock, options.requires);
        Ok(Statement::CreateUser { accounts, if_not_exists, lock, requires, expired, default_roles })
    }

    pub(crate) fn alter_user(&mut self) -> Parsed<Statement> {
        let if_exists = self.if_exists();
        let accounts = self.list(Self::account_specification)?;
        if let [AccountSpecification { account, identification: None }] = &accounts[..]
            && self.accept_all(&["DEFAULT", "ROLE"])
        {
            return self.default_roles(vec![account.clone()], if_exists);
        }
        let options = self.account_options()?;
        let cleared = accounts.iter().any(|account| {
            account.identification.as_ref().is_some_and(|by| by.password.is_none() && by.hash.is_none())
        });
        let cleared = cleared.then_some("ALTER USER … IDENTIFIED WITH without BY or AS");
        let refused = options.refused.or(options.expired.then_some("PASSWORD EXPIRE"));
        if let Some(refused) = refused.or_else(|| refused_identification(&accounts)).or(cleared) {
            return self.refuse(refused);
        }
        self.no_grant_option(&options)?;
        Ok(Statement::AlterUser { accounts, if_exists, lock: options.lock, requires: options.requires })
    }

    fn no_grant_option(&self, options: &AccountOptions) -> Parsed<()> {
        if options.grant_option { Err(self.unexpected()) } else { Ok(()) }
    }

    fn account_specification(&mut self) -> Parsed<AccountSpecification> {
        Ok(AccountSpecification { account: self.account()?, identification: self.identification()? })
    }

    /// `REQUIRE …`, `WITH …`, `PASSWORD …`, `ACCOUNT …` and the rest, in any order.
    pub(super) fn account_options(&mut self) -> Parsed<AccountOptions> {
        let mut options = AccountOptions::default();
        loop {
            if self.accept("ACCOUNT") {
                options.lock = Some(match self.accept_any(&["LOCK", "UNLOCK"]) {
                    Some(word) => word == "LOCK",
                    None => return Err(self.unexpected()),
                });
            } else if self.accept("REQUIRE") {
                options.requires = match self.accept_any(&["NONE", "SSL", "X509"]) {
                    Some("NONE") => Some(Requirement::None),
                    Some("SSL") => Some(Requirement::Ssl),
                    Some(_) => Some(Requirement::X509),
                    None => None,
                };
                options.refuse_unless(options.requires.is_some(), "REQUIRE of an issuer, subject or cipher");
            } else if self.accept("WITH") {
                self.resources(&mut options)?;
            } else if self.accept("PASSWORD") {
                self.password_option(&mut options)?;
            } else if self.accept("FAILED_LOGIN_ATTEMPTS") {
                options.refuse_unless(self.integer()? == 0, "FAILED_LOGIN_ATTEMPTS");
            } else if self.accept("PASSWORD_LOCK_TIME") {
                let unbounded = self.accept("UNBOUNDED");
                options.refuse_unless(!unbounded && self.integer()? == 0, "PASSWORD_LOCK_TIME");
            } else if self.is_any_word(&["COMMENT", "ATTRIBUTE"]) {
                options.refuse_unless(false, "COMMENT and ATTRIBUTE of an account");
            } else if self.is_any_word(&["DISCARD", "RETAIN", "REPLACE", "AND", "ADD", "MODIFY", "INITIATE"])
            {
                options.refuse_unless(false, "a second password or factor of an account");
            } else if self.at_end() || options.refused.is_some() {
                return Ok(options);
            } else {
                return Err(self.unexpected());
            }
            if options.refused.is_some() {
                return Ok(options);
            }
        }
    }

    /// `WITH GRANT OPTION`, `WITH MAX_QUERIES_PER_HOUR n …`.
    fn resources(&mut self, options: &mut AccountOptions) -> Parsed<()> {
        let known = [
            "MAX_QUERIES_PER_HOUR",
            "MAX_UPDATES_PER_HOUR",
            "MAX_CONNECTIONS_PER_HOUR",
            "MAX_USER_CONNECTIONS",
        ];
        let mut any = false;
        loop {
            if self.accept_all(&["GRANT", "OPTION"]) {
                options.grant_option = true;
            } else if self.accept_any(&known).is_some() {
                // 0 is no limit.
                options.refuse_unless(self.integer()? == 0, "limits on an account's resources");
            } else {
                return if any { Ok(()) } else { Err(self.unexpected()) };
            }
            any = true;
        }
    }

    /// `PASSWORD EXPIRE …`, `HISTORY …`, `REUSE INTERVAL …`, `REQUIRE CURRENT …`.
    fn password_option(&mut self, options: &mut AccountOptions) -> Parsed<()> {
        if self.accept("EXPIRE") {
            options.expired = self.accept_any(&["NEVER", "DEFAULT"]).is_none();
            options.refuse_unless(!self.accept("INTERVAL"), "PASSWORD EXPIRE");
        } else if self.accept("HISTORY") {
            let none = self.accept("DEFAULT") || self.integer()? == 0;
            options.refuse_unless(none, "PASSWORD HISTORY");
        } else if self.accept_all(&["REUSE", "INTERVAL"]) {
            let none = self.accept("DEFAULT") || (self.integer()? == 0 && self.accept("DAY"));
            options.refuse_unless(none, "PASSWORD REUSE");
        } else if self.accept_all(&["REQUIRE", "CURRENT"]) {
            let none = self.accept_any(&["DEFAULT", "OPTIONAL"]).is_some();
            options.refuse_unless(none, "PASSWORD REQUIRE CURRENT");
        } else {
            return Err(self.unexpected());
        }
        Ok(())
    }

    /// `IDENTIFIED [WITH plugin] BY 'password'`, `… AS 'hash'`.
    pub(super) fn identification(&mut self) -> Parsed<Option<Identification>> {
        if !self.accept("IDENTIFIED") {
            return Ok(None);
        }
        let mut found = Identification::default();
        if self.accept("WITH") || self.accept("VIA") {
            found.plugin = Some(self.name_or_text()?);
            if self.accept("AS") || self.accept("USING") {
                found.hash = Some(self.hash_text()?);
                return Ok(Some(found));
            }
        }
        if self.accept("BY") {
            if self.accept("PASSWORD") {
                found.hash = Some(self.text()?);
            } else if self.accept_all(&["RANDOM", "PASSWORD"]) {
                found.random = true;
            } else {
                found.password = Some(self.text()?);
            }
        } else if found.plugin.is_none() {
            return Err(self.unexpected());
        }
        Ok(Some(found))
    }

    fn hash_text(&mut self) -> Parsed<Vec<u8>> {
        if self.current.kind == TokenKind::Hex {
            let token = self.advance();
            let value = super::super::lexer::hex_value(self.token_bytes(token));
            return value.ok_or_else(|| self.unexpected_at(token));
        }
        self.text()
    }

    /// `'user'@'host'`, `user`, `CURRENT_USER[()]`
    pub(crate) fn account(&mut self) -> Parsed<Account> {
        if self.accept("CURRENT_USER") {
            if self.accept_symbol(b"(") {
                self.expect_symbol(b")")?;
            }
            return Ok(Account::current());
        }
        if self.is_word("USER") && self.peek_is_symbol(b"(") {
            self.advance();
            self.expect_symbol(b"(")?;
            self.expect_symbol(b")")?;
            return Ok(Account::current());
        }
        let user = self.name_or_text()?;
        let host = self.host_part()?;
        Ok(Account { user, host, current: false })
    }

    /// `@'host'`; without it `%`.
    pub(super) fn host_part(&mut self) -> Parsed<String> {
        let mut host = "%".to_owned();
        if self.current.kind == TokenKind::UserVariable {
            // The lexer sees `@'host'` as a user variable.
            let token = self.advance();
            let bytes = self.token_bytes(token).get(1..).unwrap_or_default();
            let text = super::unquote(bytes, self.modes());
            host = String::from_utf8_lossy(&text).into_owned();
        } else if self.accept_symbol(b"@") {
            host = self.name_or_text()?;
        }
        Ok(host)
    }

    pub(crate) fn set_password(&mut self) -> Parsed<Statement> {
        self.expect("PASSWORD")?;
        let account = if self.accept("FOR") { Some(self.account()?) } else { None };
        self.expect_symbol(b"=")?;
        let call = self.is_word("PASSWORD") && self.peek_is_symbol(b"(");
        if call {
            self.advance();
            self.advance();
        }
        let password = self.text()?;
        if call {
            self.expect_symbol(b")")?;
        }
        Ok(Statement::SetPassword { account, password })
    }

    /// `GRANT …` and `REVOKE …`
    pub(crate) fn grant(&mut self) -> Parsed<Statement> {
        let revoke = self.accept("REVOKE");
        if !revoke {
            self.expect("GRANT")?;
        }
        let if_exists = revoke && self.if_exists();
        let first = self.current;
        let granted = self.list(Self::granted)?;
        let everything = granted.iter().map(Granted::word).eq([Some("ALL"), Some("GRANT OPTION")]);
        if self.is_any_word(&["TO", "FROM"]) && !(revoke && everything) {
            return self.grant_roles(revoke, if_exists, first, granted);
        }
        if if_exists {
            return self.refuse("REVOKE IF EXISTS of privileges");
        }
        let mut grant = Grant {
            privileges: Vec::new(),
            columns: Vec::new(),
            object: None,
            accounts: Vec::new(),
            grant_option: false,
        };
        for granted in granted {
            match granted {
                Granted::Words { words, .. } => grant.privileges.push(words),
                Granted::Columns(privilege, columns) => grant.columns.push((privilege, columns)),
                Granted::Role(_) => return Err(self.unexpected_at(first)),
            }
        }
        if revoke && self.accept("FROM") {
            grant.accounts = self.list(|parser| Ok((parser.account()?, None)))?;
            return Ok(Statement::Revoke(grant));
        }
        self.expect("ON")?;
        let _ = self.accept("TABLE");
        grant.object = Some(self.privilege_level()?);
        self.expect(if revoke { "FROM" } else { "TO" })?;
        grant.accounts = self.list(|parser| Ok((parser.account()?, parser.identification()?)))?;
        let restriction = self.account_options()?;
        let require = restriction.requires.filter(|requirement| *requirement != Requirement::None);
        if let Some(refused) = restriction.refused.or(require.map(|_| "REQUIRE in GRANT")) {
            return self.refuse(refused);
        }
        grant.grant_option = restriction.grant_option;
        Ok(if revoke { Statement::Revoke(grant) } else { Statement::Grant(grant) })
    }

    /// `*`, `*.*`, `db.*`, `db.table`, `table`
    fn privilege_level(&mut self) -> Parsed<GrantObject> {
        if self.accept_symbol(b"*") {
            if !self.accept_symbol(b".") {
                return Ok(GrantObject::CurrentDatabase);
            }
            self.expect_symbol(b"*")?;
            return Ok(GrantObject::Everything);
        }
        let first = self.name_or_text()?;
        super::check_length(&first)?;
        if !self.accept_symbol(b".") {
            return Ok(GrantObject::Table(TableName { database: None, name: first }));
        }
        if self.accept_symbol(b"*") {
            return Ok(GrantObject::Database(first));
        }
        Ok(GrantObject::Table(TableName { database: Some(first), name: self.any_name()? }))
    }
}

fn refused_identification(accounts: &[AccountSpecification]) -> Option<&'static str> {
    let random = accounts.iter().filter_map(|account| account.identification.as_ref()).any(|by| by.random);
    random.then_some("IDENTIFIED BY RANDOM PASSWORD")
}
