//! Roles: CREATE ROLE, GRANT and REVOKE of roles, SET ROLE, SET DEFAULT ROLE; and what GRANT lists, which may
//! be privileges or roles until ON or TO comes.

use super::super::ast::{Account, RoleChoice, RoleGrant, Statement};
use super::super::lexer::{LexicalModes, Token, TokenKind};
use super::{Parsed, Parser};
use crate::privilege::Privileges;
use crate::result::SqlError;

/// What cannot be the name of a role without quotes.
const NO_ROLE: &[&str] = &["ALL", "CURRENT_USER", "DEFAULT", "NONE"];

/// Something in the list of GRANT.
pub(super) enum Granted {
    /// A privilege, in upper case, or a role that is written as one word.
    Words { words: String, role: Option<String> },
    /// A privilege on columns.
    Columns(String, Vec<String>),
    /// What can only be a role.
    Role(Account),
}

impl Granted {
    /// The privilege that it is, unless it is something else.
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Granted::Words { words, .. } => Some(words),
            Granted::Columns(..) | Granted::Role(_) => None,
        }
    }

    /// The role that it is; a name that MySQL has for a privilege is none.
    fn into_role(self) -> Option<Account> {
        match self {
            Granted::Role(role) => Some(role),
            Granted::Words { words, role } if words != "ALL" && !Privileges::is_reserved(&words) => {
                role.map(|user| Account { user, host: "%".into(), current: false })
            }
            Granted::Words { .. } | Granted::Columns(..) => None,
        }
    }
}

impl Parser<'_> {
    /// The name of a role.
    pub(super) fn role(&mut self) -> Parsed<Account> {
        if self.is_any_word(NO_ROLE) { Err(self.unexpected()) } else { self.account() }
    }

    pub(super) fn create_role(&mut self) -> Parsed<Statement> {
        let if_not_exists = self.if_not_exists();
        Ok(Statement::CreateRole { roles: self.list(Self::role)?, if_not_exists })
    }

    /// One or more words, up to `,`, `(`, `ON`, `TO` or `FROM`, or the name of a role.
    pub(super) fn granted(&mut self) -> Parsed<Granted> {
        if matches!(self.current.kind, TokenKind::Text | TokenKind::QuotedName) {
            return Ok(Granted::Role(self.account()?));
        }
        let mut words = Vec::new();
        while self.current.kind == TokenKind::Word && !self.is_any_word(&["ON", "FROM", "TO"]) {
            words.push(String::from_utf8_lossy(self.slice()).into_owned());
            self.advance();
        }
        let role = if let [only] = &words[..] { Some(only.clone()) } else { None };
        if let Some(user) = &role
            && (self.current.kind == TokenKind::UserVariable || self.is_symbol(b"@"))
        {
            return Ok(Granted::Role(Account {
                user: user.clone(),
                host: self.host_part()?,
                current: false,
            }));
        }
        if words.is_empty() {
            return Err(self.unexpected());
        }
        let words = words.join(" ").to_ascii_uppercase();
        if self.is_symbol(b"(") {
            if !["SELECT", "INSERT", "UPDATE", "REFERENCES"].contains(&&*words) {
                return Err(self.unexpected());
            }
            return Ok(Granted::Columns(words, self.parenthesised(Self::name)?));
        }
        let words = if words == "ALL PRIVILEGES" { "ALL".to_owned() } else { words };
        Ok(Granted::Words { words, role })
    }

    /// `GRANT roles TO …`, `REVOKE roles FROM …`, behind the roles; `first` is where they begin.
    pub(super) fn grant_roles(
        &mut self,
        revoke: bool,
        if_exists: bool,
        first: Token,
        granted: Vec<Granted>,
    ) -> Parsed<Statement> {
        let roles = granted.into_iter().map(Granted::into_role).collect::<Option<Vec<_>>>();
        let Some(roles) = roles else {
            let mut error = self.unexpected_at(first);
            if let Some((_, near)) = error.message.split_once(" near ") {
                error.message = format!("Illegal authorization identifier near {near}").into();
            }
            return Err(error);
        };
        self.expect(if revoke { "FROM" } else { "TO" })?;
        let accounts = self.list(Self::account)?;
        let mut grant = RoleGrant { roles, accounts, admin_option: false, if_exists, ignore_unknown: false };
        if revoke {
            grant.ignore_unknown = self.accept_all(&["IGNORE", "UNKNOWN", "USER"]);
            return Ok(Statement::RevokeRoles(grant));
        }
        if self.accept("WITH") {
            self.expect("ADMIN")?;
            self.expect("OPTION")?;
            grant.admin_option = true;
        }
        Ok(Statement::GrantRoles(grant))
    }

    /// `SET ROLE …`, `SET DEFAULT ROLE …`, or `None` with nothing consumed.
    pub(super) fn set_role(&mut self) -> Parsed<Option<Statement>> {
        if self.is_word("DEFAULT") && self.peek_is_word("ROLE") {
            self.advance();
            self.advance();
            let roles = self.all_none_or_list()?;
            self.expect("TO")?;
            let accounts = self.list(Self::account)?;
            return Ok(Some(Statement::SetDefaultRole { roles, accounts, if_exists: false }));
        }
        if !self.is_word("ROLE") || self.peek_is_symbol(b"=") || self.peek_is_symbol(b":=") {
            return Ok(None);
        }
        self.advance();
        if self.accept("DEFAULT") {
            return Ok(Some(Statement::SetRole(RoleChoice::Default)));
        }
        let choice = match self.all_none_or_list()? {
            RoleChoice::All(_) if self.accept("EXCEPT") => RoleChoice::All(self.list(Self::role)?),
            choice => choice,
        };
        Ok(Some(Statement::SetRole(choice)))
    }

    /// `ALTER USER … DEFAULT ROLE`, behind these words.
    pub(super) fn default_roles(&mut self, accounts: Vec<Account>, if_exists: bool) -> Parsed<Statement> {
        Ok(Statement::SetDefaultRole { roles: self.all_none_or_list()?, accounts, if_exists })
    }

    fn all_none_or_list(&mut self) -> Parsed<RoleChoice> {
        Ok(match self.accept_any(&["ALL", "NONE"]) {
            Some("ALL") => RoleChoice::All(Vec::new()),
            Some(_) => RoleChoice::None,
            None => RoleChoice::List(self.list(Self::role)?),
        })
    }
}

/// The roles of a list as `mandatory_roles` has it: names, with or without quotes and hosts.
///
/// # Errors
/// 1064 for anything else.
pub fn parse_roles(text: &str) -> Result<Vec<Account>, SqlError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut parser = Parser::new(text.as_bytes(), LexicalModes::default());
    let roles = parser.list(Parser::role)?;
    if parser.current.kind == TokenKind::End { Ok(roles) } else { Err(parser.unexpected()) }
}
