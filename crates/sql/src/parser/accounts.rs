//! Accounts: CREATE USER and ALTER USER (who, by what password, and under which conditions), SET PASSWORD,
//! GRANT and REVOKE.
//!
//! An option that restricts an account and that this server cannot keep is refused as a whole statement
//! (1235): an account that its administrator believes to be bound to a certificate must not be open.

use super::super::ast::{
    Account, AccountOptions, AccountSpecification, Grant, GrantObject, Identification, PasswordOptions,
    Requirement, Statement, TableName,
};
use super::super::errors;
use super::super::lexer::TokenKind;
use super::roles::Granted;
use super::{Parsed, Parser};

/// Most failed logins, and most days, that MySQL counts.
const SMALL_MAX: u64 = 32_767;

/// What the options behind the accounts come to.
#[derive(Default)]
pub(super) struct SaidOptions {
    said: AccountOptions,
    /// `WITH GRANT OPTION`, which only GRANT has.
    pub(super) grant_option: bool,
    /// The first option that is not supported.
    pub(super) refused: Option<&'static str>,
}

impl SaidOptions {
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
        if let Some(refused) = options.refused.or_else(|| refused_identification(&accounts)) {
            return self.refuse(refused);
        }
        self.no_grant_option(&options)?;
        Ok(Statement::CreateUser { accounts, if_not_exists, options: Box::new(options.said), default_roles })
    }

    pub(crate) fn alter_user(&mut self) -> Parsed<Statement> {
        let if_exists = self.if_exists();
        let accounts = self.list(Self::altered_account)?;
        if let [AccountSpecification { account, identification: None, .. }] = &accounts[..]
            && self.accept_all(&["DEFAULT", "ROLE"])
        {
            return self.default_roles(vec![account.clone()], if_exists);
        }
        let options = self.account_options()?;
        let cleared = accounts.iter().any(|account| {
            account.identification.as_ref().is_some_and(|by| by.password.is_none() && by.hash.is_none())
        });
        let cleared = cleared.then_some("ALTER USER … IDENTIFIED WITH without BY or AS");
        if let Some(refused) = options.refused.or_else(|| refused_identification(&accounts)).or(cleared) {
            return self.refuse(refused);
        }
        self.no_grant_option(&options)?;
        Ok(Statement::AlterUser { accounts, if_exists, options: Box::new(options.said) })
    }

    fn no_grant_option(&self, options: &SaidOptions) -> Parsed<()> {
        if options.grant_option { Err(self.unexpected()) } else { Ok(()) }
    }

    fn account_specification(&mut self) -> Parsed<AccountSpecification> {
        let (account, identification) = (self.account()?, self.identification()?);
        Ok(AccountSpecification { account, identification, replaced: None })
    }

    /// The same in ALTER USER, which may say the old password behind the new one.
    fn altered_account(&mut self) -> Parsed<AccountSpecification> {
        let mut account = self.account_specification()?;
        let by_password = account.identification.as_ref().is_some_and(|by| by.password.is_some());
        if by_password && self.accept("REPLACE") {
            account.replaced = Some(self.text()?);
        }
        Ok(account)
    }

    /// `REQUIRE …`, `WITH …`, `PASSWORD …`, `ACCOUNT …` and the rest, in any order.
    pub(super) fn account_options(&mut self) -> Parsed<SaidOptions> {
        let mut options = SaidOptions::default();
        loop {
            if self.accept("ACCOUNT") {
                options.said.lock = Some(match self.accept_any(&["LOCK", "UNLOCK"]) {
                    Some(word) => word == "LOCK",
                    None => return Err(self.unexpected()),
                });
            } else if self.accept("REQUIRE") {
                options.said.requires = match self.accept_any(&["NONE", "SSL", "X509"]) {
                    Some("NONE") => Some(Requirement::None),
                    Some("SSL") => Some(Requirement::Ssl),
                    Some(_) => Some(Requirement::X509),
                    None => None,
                };
                let known = options.said.requires.is_some();
                options.refuse_unless(known, "REQUIRE of an issuer, subject or cipher");
            } else if self.accept("WITH") {
                self.resources(&mut options)?;
            } else if self.accept("PASSWORD") {
                self.password_option(&mut options.said.password)?;
            } else if self.accept("FAILED_LOGIN_ATTEMPTS") {
                let attempts = self.number_within("FAILED_LOGIN_ATTEMPTS", 0, SMALL_MAX)?;
                options.said.password.failed_attempts = Some(attempts as u16);
            } else if self.accept("PASSWORD_LOCK_TIME") {
                let unbounded = self.accept("UNBOUNDED");
                options.said.password.lock_days = Some(match unbounded {
                    true => -1,
                    false => self.number_within("PASSWORD_LOCK_TIME", 0, SMALL_MAX)? as i16,
                });
            } else if self.is_any_word(&["COMMENT", "ATTRIBUTE"]) {
                options.refuse_unless(false, "COMMENT and ATTRIBUTE of an account");
            } else if self.is_any_word(&["DISCARD", "RETAIN", "AND", "ADD", "MODIFY", "INITIATE"]) {
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

    /// A number that is refused with error 1525 beyond these bounds.
    fn number_within(&mut self, what: &str, least: u64, most: u64) -> Parsed<u64> {
        let number = self.integer()?;
        match (least..=most).contains(&number) {
            true => Ok(number),
            false => Err(errors::error(errors::WRONG_VALUE, &[&what, &number])),
        }
    }

    /// The number, or the greatest that is kept.
    fn capped_number(&mut self) -> Parsed<u32> {
        Ok(u32::try_from(self.integer()?).unwrap_or(u32::MAX))
    }

    /// `WITH GRANT OPTION`, `WITH MAX_QUERIES_PER_HOUR n …`.
    fn resources(&mut self, options: &mut SaidOptions) -> Parsed<()> {
        let mut any = false;
        loop {
            let limits = &mut options.said.limits;
            if self.accept_all(&["GRANT", "OPTION"]) {
                options.grant_option = true;
            } else if self.accept("MAX_QUERIES_PER_HOUR") {
                limits.queries = Some(self.capped_number()?);
            } else if self.accept("MAX_UPDATES_PER_HOUR") {
                limits.updates = Some(self.capped_number()?);
            } else if self.accept("MAX_CONNECTIONS_PER_HOUR") {
                limits.connections = Some(self.capped_number()?);
            } else if self.accept("MAX_USER_CONNECTIONS") {
                limits.user_connections = Some(self.capped_number()?);
            } else {
                return if any { Ok(()) } else { Err(self.unexpected()) };
            }
            any = true;
        }
    }

    /// `PASSWORD EXPIRE …`, `HISTORY …`, `REUSE INTERVAL …`, `REQUIRE CURRENT …`.
    fn password_option(&mut self, options: &mut PasswordOptions) -> Parsed<()> {
        if self.accept("EXPIRE") {
            if self.accept("NEVER") {
                options.lifetime_days = Some(Some(0));
            } else if self.accept("DEFAULT") {
                options.lifetime_days = Some(None);
            } else if self.accept("INTERVAL") {
                let days = self.number_within("DAY", 1, u64::from(u16::MAX))?;
                self.expect("DAY")?;
                options.lifetime_days = Some(Some(days as u16));
            } else {
                options.expire = true;
            }
        } else if self.accept("HISTORY") {
            let default = self.accept("DEFAULT");
            options.history = Some(if default { None } else { Some(self.capped_number()?) });
        } else if self.accept_all(&["REUSE", "INTERVAL"]) {
            if self.accept("DEFAULT") {
                options.reuse_days = Some(None);
            } else {
                options.reuse_days = Some(Some(self.capped_number()?));
                self.expect("DAY")?;
            }
        } else if self.accept_all(&["REQUIRE", "CURRENT"]) {
            let said = self.accept_any(&["DEFAULT", "OPTIONAL"]);
            options.requires_current =
                Some(if said == Some("DEFAULT") { None } else { Some(said.is_none()) });
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
        let replaced = if self.accept("REPLACE") { Some(self.text()?) } else { None };
        if self.is_word("RETAIN") {
            return self.refuse("a second password or factor of an account");
        }
        Ok(Statement::SetPassword { account, password, replaced })
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
        // Those that restrict nothing are in old scripts.
        let AccountOptions { lock, requires, password, limits } = &restriction.said;
        let nothing = lock.is_none()
            && requires.is_none_or(|requirement| requirement == Requirement::None)
            && *password == PasswordOptions::default()
            && !limits.limit_anything();
        let more = (!nothing).then_some("options of an account in GRANT");
        if let Some(refused) = restriction.refused.or(more) {
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
