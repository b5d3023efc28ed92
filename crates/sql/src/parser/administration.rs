//! Transaction control, locks, maintenance, and the other statements that begin with a word of their own.

use std::sync::Arc;

use super::super::ast::{Flush, GetDiagnostics, LockTable, Maintenance, Show, ShowKind, Statement};
use super::super::lexer::TokenKind;
use super::{Parsed, Parser};
use crate::errors;

impl Parser<'_> {
    pub(crate) fn transaction_control(&mut self) -> Parsed<Statement> {
        if self.accept("BEGIN") {
            let _ = self.accept("WORK");
            return Ok(Statement::Begin { snapshot: false, read_only: None });
        }
        if self.accept("START") {
            if self.is_any_word(&["SLAVE", "REPLICA"]) {
                self.skip_statement();
                return Ok(Statement::Unsupported("START REPLICA"));
            }
            return self.start_transaction();
        }
        if self.accept("SAVEPOINT") {
            return Ok(Statement::Savepoint(self.name()?));
        }
        if self.accept("RELEASE") {
            self.expect("SAVEPOINT")?;
            return Ok(Statement::ReleaseSavepoint(self.name()?));
        }
        let commit = self.accept("COMMIT");
        if !commit {
            self.expect("ROLLBACK")?;
        }
        let _ = self.accept("WORK");
        if !commit && self.accept("TO") {
            let _ = self.accept("SAVEPOINT");
            return Ok(Statement::RollbackTo(self.name()?));
        }
        let mut chain = false;
        if self.accept("AND") {
            chain = !self.accept("NO");
            self.expect("CHAIN")?;
        }
        let mut release = false;
        if self.accept_all(&["NO", "RELEASE"]) {
        } else if !chain && self.accept("RELEASE") {
            // A new transaction needs the connection.
            release = true;
        }
        Ok(if commit { Statement::Commit { chain, release } } else { Statement::Rollback { chain, release } })
    }

    fn start_transaction(&mut self) -> Parsed<Statement> {
        self.expect("TRANSACTION")?;
        let (mut snapshot, mut read_only) = (false, None);
        while !self.at_end() {
            if self.accept_all(&["WITH", "CONSISTENT", "SNAPSHOT"]) {
                snapshot = true;
            } else {
                if read_only.is_some() {
                    return Err(self.unexpected());
                }
                read_only = Some(self.access_mode()?);
            }
            if !self.accept_symbol(b",") {
                break;
            }
        }
        Ok(Statement::Begin { snapshot, read_only })
    }

    /// `READ ONLY` (true) or `READ WRITE`.
    pub(crate) fn access_mode(&mut self) -> Parsed<bool> {
        if self.accept_all(&["READ", "ONLY"]) {
            Ok(true)
        } else if self.accept_all(&["READ", "WRITE"]) {
            Ok(false)
        } else {
            Err(self.unexpected())
        }
    }

    /// Statements that begin with a word of their own.
    pub(crate) fn administration(&mut self) -> Parsed<Statement> {
        let word = String::from_utf8_lossy(self.slice()).to_ascii_uppercase();
        match word.as_str() {
            "USE" => {
                self.advance();
                Ok(Statement::Use(self.database_name()?))
            }
            "ANALYZE" | "CHECK" | "OPTIMIZE" | "REPAIR" | "CHECKSUM" => self.maintenance(&word),
            "KILL" => {
                self.advance();
                let query_only = self.accept("QUERY");
                let _ = !query_only && self.accept("CONNECTION");
                Ok(Statement::Kill { query_only, connection: self.expr()? })
            }
            "FLUSH" => self.flush(),
            "LOCK" => self.lock_tables(),
            "UNLOCK" => {
                self.advance();
                if self.accept_any(&["TABLES", "TABLE"]).is_none() && !self.accept_all(&["INSTANCE"]) {
                    return Err(self.unexpected());
                }
                Ok(Statement::UnlockTables)
            }
            "GRANT" | "REVOKE" => self.grant(),
            "DO" => {
                self.advance();
                Ok(Statement::Do(self.list(|parser| parser.expr().map(Arc::new))?))
            }
            "PREPARE" => {
                self.advance();
                let name = self.name()?;
                self.expect("FROM")?;
                Ok(Statement::Prepare { name, source: self.primary()? })
            }
            "EXECUTE" => {
                self.advance();
                let name = self.name()?;
                let using =
                    if self.accept("USING") { self.list(Self::user_variable_operand)? } else { Vec::new() };
                Ok(Statement::Execute { name, using })
            }
            "DEALLOCATE" => {
                self.advance();
                self.expect("PREPARE")?;
                Ok(Statement::Deallocate(self.name()?))
            }
            "GET" => {
                self.advance();
                self.get_diagnostics()
            }
            "SHUTDOWN" => {
                self.advance();
                Ok(Statement::Shutdown)
            }
            "BACKUP" => {
                self.advance();
                self.expect("SERVER")?;
                self.expect("TO")?;
                let name = self.text()?;
                let since = if self.accept("SINCE") { Some(self.text()?) } else { None };
                Ok(Statement::Backup { name, since })
            }
            "LOAD" if self.peek_is_word("INDEX") => self.load_index(),
            "LOAD" => self.load(),
            "CACHE" => self.cache_index(),
            "CALL" => self.refuse("CALL"),
            "HANDLER" => self.handler(),
            "XA" => self.xa(),
            "HELP" => {
                // The texts are MySQL's own.
                self.advance();
                self.name_or_text()?;
                let kind = ShowKind::Empty("help", &["name", "is_it_category"]);
                Ok(Statement::Show(Box::new(Show { kind, filter: None })))
            }
            "RESET" if self.peek_is_word("PERSIST") => self.refuse("RESET PERSIST"),
            "STOP" if self.peek_is_word("REPLICA") => self.refuse("STOP REPLICA"),
            "RESET" if self.peek_is_word("REPLICA") => self.refuse("RESET REPLICA"),
            "RESET" if self.peek_is_word("BINARY") => self.refuse("RESET BINARY LOGS AND GTIDS"),
            "CHANGE" | "STOP" | "PURGE" | "RESET" => self.refuse("replication"),
            "INSTALL" | "UNINSTALL" => self.refuse("plug-ins"),
            _ => Err(self.unexpected()),
        }
    }

    fn get_diagnostics(&mut self) -> Parsed<Statement> {
        const OF_STATEMENT: &[&str] = &["NUMBER", "ROW_COUNT"];
        const OF_CONDITION: &[&str] = &[
            "CLASS_ORIGIN",
            "SUBCLASS_ORIGIN",
            "CONSTRAINT_CATALOG",
            "CONSTRAINT_SCHEMA",
            "CONSTRAINT_NAME",
            "CATALOG_NAME",
            "SCHEMA_NAME",
            "TABLE_NAME",
            "COLUMN_NAME",
            "CURSOR_NAME",
            "MESSAGE_TEXT",
            "MYSQL_ERRNO",
            "RETURNED_SQLSTATE",
        ];
        // There are no handlers, in which STACKED would mean something.
        let stacked = self.accept("STACKED");
        let _ = !stacked && self.accept("CURRENT");
        self.expect("DIAGNOSTICS")?;
        let condition = if self.accept("CONDITION") { Some(Arc::new(self.bit_expr(0)?)) } else { None };
        let names = if condition.is_some() { OF_CONDITION } else { OF_STATEMENT };
        let items = self.list(|parser| {
            let variable = parser.user_variable_operand()?;
            parser.expect_symbol(b"=")?;
            let item = parser.accept_any(names).ok_or_else(|| parser.unexpected())?;
            Ok((variable, item))
        })?;
        if stacked {
            return Err(errors::error(errors::GET_STACKED_DA_WITHOUT_ACTIVE_HANDLER, &[]));
        }
        Ok(Statement::GetDiagnostics(Box::new(GetDiagnostics { condition, items })))
    }

    pub(super) fn refuse(&mut self, what: &'static str) -> Parsed<Statement> {
        self.skip_statement();
        Ok(Statement::Unsupported(what))
    }

    pub(super) fn user_variable_operand(&mut self) -> Parsed<String> {
        if self.current.kind != TokenKind::UserVariable {
            return Err(self.unexpected());
        }
        let token = self.advance();
        self.user_variable_name(token)
    }

    fn maintenance(&mut self, word: &str) -> Parsed<Statement> {
        let what = match word {
            "ANALYZE" => Maintenance::Analyze,
            "CHECK" => Maintenance::Check,
            "OPTIMIZE" => Maintenance::Optimize,
            "REPAIR" => Maintenance::Repair,
            _ => Maintenance::Checksum,
        };
        self.advance();
        let _ = self.accept_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        if self.accept_any(&["TABLE", "TABLES"]).is_none() {
            return Err(self.unexpected());
        }
        let tables = self.list(Self::table_name)?;
        // No table keeps a checksum.
        let quick = what == Maintenance::Checksum && self.accept("QUICK");
        let what = if quick { Maintenance::KeptChecksum } else { what };
        while self.accept_any(&["QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM"]).is_some()
            || self.accept_all(&["FOR", "UPGRADE"])
        {}
        if self.is_any_word(&["UPDATE", "DROP"]) {
            // UPDATE HISTOGRAM: there are no histograms.
            self.skip_statement();
        }
        Ok(Statement::Maintain { what, tables })
    }

    /// `CACHE INDEX tables IN cache`. Key caches are MyISAM's: there is only the default one (1284).
    fn cache_index(&mut self) -> Parsed<Statement> {
        self.advance();
        self.expect("INDEX")?;
        let tables = self.list(|parser| {
            let table = parser.table_name()?;
            parser.keys_to_cache()?;
            Ok(table)
        })?;
        self.expect("IN")?;
        let cache = if self.accept("DEFAULT") { "default".to_owned() } else { self.name()? };
        if !cache.eq_ignore_ascii_case("default") {
            return Err(errors::error(errors::UNKNOWN_KEY_CACHE, &[&cache]));
        }
        Ok(Statement::Maintain { what: Maintenance::AssignToKeyCache, tables })
    }

    /// `LOAD INDEX INTO CACHE tables`.
    fn load_index(&mut self) -> Parsed<Statement> {
        self.advance();
        for word in ["INDEX", "INTO", "CACHE"] {
            self.expect(word)?;
        }
        let tables = self.list(|parser| {
            let table = parser.table_name()?;
            parser.keys_to_cache()?;
            let _ = parser.accept_all(&["IGNORE", "LEAVES"]);
            Ok(table)
        })?;
        Ok(Statement::Maintain { what: Maintenance::PreloadKeys, tables })
    }

    fn keys_to_cache(&mut self) -> Parsed<()> {
        if self.accept_any(&["INDEX", "KEY"]).is_some() {
            self.parenthesised(Self::any_name)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Parsed<Statement> {
        self.advance();
        let _ = self.accept_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        if self.accept_any(&["TABLES", "TABLE"]).is_none() {
            // Of several, which are all alike but for the wait, the one that waits.
            let mut flush = self.flush_option()?;
            while self.accept_symbol(b",") {
                let next = self.flush_option()?;
                flush = if flush == Flush::Logs { flush } else { next };
            }
            return Ok(Statement::Flush(flush));
        }
        let mut tables = Vec::new();
        if !self.at_end() && !self.is_any_word(&["WITH", "FOR"]) {
            tables = self.list(Self::table_name)?;
        }
        let flush = if self.accept_all(&["WITH", "READ", "LOCK"]) {
            Flush::ReadLock(tables)
        } else if self.accept_all(&["FOR", "EXPORT"]) {
            Flush::ForExport(tables)
        } else {
            Flush::Tables(tables)
        };
        Ok(Statement::Flush(flush))
    }

    /// What FLUSH may name in a list.
    fn flush_option(&mut self) -> Parsed<Flush> {
        const LOGS: &[&str] = &["BINARY", "ENGINE", "ERROR", "GENERAL", "RELAY", "SLOW"];
        const OTHERS: &[&str] = &["HOSTS", "OPTIMIZER_COSTS", "THREADS"];
        if let Some(log) = self.accept_any(LOGS) {
            self.expect("LOGS")?;
            if log == "RELAY" && self.accept_all(&["FOR", "CHANNEL"]) {
                self.advance();
            }
            return Ok(if log == "SLOW" { Flush::Logs } else { Flush::Other });
        }
        match self.accept_any(&["LOGS", "PRIVILEGES", "STATUS", "USER_RESOURCES"]) {
            Some("LOGS") => Ok(Flush::Logs),
            Some("PRIVILEGES") => Ok(Flush::Privileges),
            Some("USER_RESOURCES") => Ok(Flush::UserResources),
            Some(_) => Ok(Flush::Status),
            None if self.accept_any(OTHERS).is_some() => Ok(Flush::Other),
            None => Err(self.unexpected()),
        }
    }

    fn lock_tables(&mut self) -> Parsed<Statement> {
        self.advance();
        if self.accept_any(&["TABLES", "TABLE"]).is_none() {
            return self.refuse("LOCK INSTANCE");
        }
        let locks = self.list(|parser| {
            let table = parser.table_name()?;
            let _ = parser.accept("AS");
            let mut alias = None;
            if !parser.is_any_word(&["READ", "WRITE", "LOW_PRIORITY"]) {
                alias = Some(parser.name()?);
            }
            let _ = parser.accept("LOW_PRIORITY");
            let write = parser.accept("WRITE");
            if !write {
                parser.expect("READ")?;
                let _ = parser.accept("LOCAL");
            }
            Ok(LockTable { table, alias, write })
        })?;
        Ok(Statement::LockTables(locks))
    }
}
