//! SET, SHOW and DESCRIBE.

use std::sync::Arc;

use super::super::ast::{
    ExplainFormat, Expr, Isolation, Scope, SetItem, Show, ShowFilter, ShowKind, Statement, TableName,
};
use super::super::lexer::TokenKind;
use super::{Parsed, Parser};
use crate::errors;

/// Those of SHOW SLAVE STATUS that somebody reads.
const SLAVE_STATUS: &[&str] = &["Slave_IO_State", "Master_Host"];

/// The columns of SHOW REPLICA STATUS, which has no rows.
const REPLICA_STATUS: &[&str] = &[
    "Replica_IO_State",
    "Source_Host",
    "Source_User",
    "Source_Port",
    "Connect_Retry",
    "Source_Log_File",
    "Read_Source_Log_Pos",
    "Relay_Log_File",
    "Relay_Log_Pos",
    "Relay_Source_Log_File",
    "Replica_IO_Running",
    "Replica_SQL_Running",
    "Replicate_Do_DB",
    "Replicate_Ignore_DB",
    "Replicate_Do_Table",
    "Replicate_Ignore_Table",
    "Replicate_Wild_Do_Table",
    "Replicate_Wild_Ignore_Table",
    "Last_Errno",
    "Last_Error",
    "Skip_Counter",
    "Exec_Source_Log_Pos",
    "Relay_Log_Space",
    "Until_Condition",
    "Until_Log_File",
    "Until_Log_Pos",
    "Source_SSL_Allowed",
    "Source_SSL_CA_File",
    "Source_SSL_CA_Path",
    "Source_SSL_Cert",
    "Source_SSL_Cipher",
    "Source_SSL_Key",
    "Seconds_Behind_Source",
    "Source_SSL_Verify_Server_Cert",
    "Last_IO_Errno",
    "Last_IO_Error",
    "Last_SQL_Errno",
    "Last_SQL_Error",
    "Replicate_Ignore_Server_Ids",
    "Source_Server_Id",
    "Source_UUID",
    "Source_Info_File",
    "SQL_Delay",
    "SQL_Remaining_Delay",
    "Replica_SQL_Running_State",
    "Source_Retry_Count",
    "Source_Bind",
    "Last_IO_Error_Timestamp",
    "Last_SQL_Error_Timestamp",
    "Source_SSL_Crl",
    "Source_SSL_Crlpath",
    "Retrieved_Gtid_Set",
    "Executed_Gtid_Set",
    "Auto_Position",
    "Replicate_Rewrite_DB",
    "Channel_Name",
    "Source_TLS_Version",
    "Source_public_key_path",
    "Get_Source_public_key",
    "Network_Namespace",
];

const BINARY_LOG_STATUS: &[&str] =
    &["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set"];

impl Parser<'_> {
    pub(crate) fn set(&mut self) -> Parsed<Statement> {
        self.expect("SET")?;
        if self.is_word("PASSWORD") {
            return self.set_password();
        }
        if let Some(statement) = self.set_role()? {
            return Ok(statement);
        }
        if let Some(statement) = self.set_transaction()? {
            return Ok(statement);
        }
        Ok(Statement::Set(self.list(Self::set_item)?))
    }

    /// `SET [GLOBAL|SESSION] TRANSACTION …`, or `None` with nothing consumed.
    fn set_transaction(&mut self) -> Parsed<Option<Statement>> {
        let scope = if self.is_any_word(&["GLOBAL", "SESSION", "LOCAL"]) && self.peek_is_word("TRANSACTION") {
            let global = self.is_word("GLOBAL");
            self.advance();
            Some(if global { Scope::Global } else { Scope::Session })
        } else {
            None
        };
        if !(self.is_word("TRANSACTION") && (self.peek_is_word("ISOLATION") || self.peek_is_word("READ"))) {
            return Ok(None);
        }
        self.advance();
        let (mut isolation, mut read_only) = (None, None);
        loop {
            if self.accept_all(&["ISOLATION", "LEVEL"]) {
                isolation = Some(self.isolation()?);
            } else {
                read_only = Some(self.access_mode()?);
            }
            if !self.accept_symbol(b",") {
                return Ok(Some(Statement::SetTransaction { scope, isolation, read_only }));
            }
        }
    }

    fn isolation(&mut self) -> Parsed<Isolation> {
        if self.accept_all(&["READ", "UNCOMMITTED"]) {
            Ok(Isolation::ReadUncommitted)
        } else if self.accept_all(&["READ", "COMMITTED"]) {
            Ok(Isolation::ReadCommitted)
        } else if self.accept_all(&["REPEATABLE", "READ"]) {
            Ok(Isolation::RepeatableRead)
        } else if self.accept("SERIALIZABLE") {
            Ok(Isolation::Serializable)
        } else {
            Err(self.unexpected())
        }
    }

    fn set_item(&mut self) -> Parsed<SetItem> {
        if self.current.kind == TokenKind::UserVariable {
            let token = self.advance();
            let name = self.user_variable_name(token)?;
            self.assignment_sign()?;
            return Ok(SetItem::User(name, Arc::new(self.expr()?)));
        }
        if self.accept("NAMES") {
            if self.accept("DEFAULT") {
                return Ok(SetItem::Names(None, None));
            }
            let charset = self.name_or_text()?.to_ascii_lowercase();
            let collation =
                if self.accept("COLLATE") { Some(self.name_or_text()?.to_ascii_lowercase()) } else { None };
            return Ok(SetItem::Names(Some(charset), collation));
        }
        if self.accept_all(&["CHARACTER", "SET"])
            || (self.is_word("CHARSET") && !self.peek_is_symbol(b"=") && {
                self.advance();
                true
            })
        {
            if self.accept("DEFAULT") {
                return Ok(SetItem::CharacterSet(None));
            }
            return Ok(SetItem::CharacterSet(Some(self.name_or_text()?.to_ascii_lowercase())));
        }
        let with_signs = self.current.kind == TokenKind::SystemVariable;
        let (scope, name) = if with_signs {
            self.advance();
            self.system_variable_name()?
        } else {
            let scope = if self.peek_is_symbol(b"=") || self.peek_is_symbol(b":=") {
                None
            } else {
                match self.accept_any(&["GLOBAL", "SESSION", "LOCAL", "PERSIST", "PERSIST_ONLY"]) {
                    Some("GLOBAL") => Some(Scope::Global),
                    Some("PERSIST" | "PERSIST_ONLY") => Some(Scope::Persist),
                    Some(_) => Some(Scope::Session),
                    None => None,
                }
            };
            let (_, name) = self.system_variable_name()?;
            (scope, name)
        };
        self.assignment_sign()?;
        let unscoped = with_signs && scope.is_none();
        Ok(SetItem::System { scope, name, value: self.set_value()?.map(Arc::new), unscoped })
    }

    fn assignment_sign(&mut self) -> Parsed<()> {
        if self.accept_symbol(b"=") || self.accept_symbol(b":=") { Ok(()) } else { Err(self.unexpected()) }
    }

    /// A value: `DEFAULT`, a bare word (`ON`, `NONE`, `binary`), or an expression.
    fn set_value(&mut self) -> Parsed<Option<Expr>> {
        let next = self.peek();
        let ends = next.kind == TokenKind::End
            || (next.kind == TokenKind::Symbol && matches!(self.token_bytes(next), b"," | b";"));
        if ends && self.accept("DEFAULT") {
            return Ok(None);
        }
        let plain = !self.is_any_word(&["NULL", "TRUE", "FALSE"]);
        if ends && plain && matches!(self.current.kind, TokenKind::Word | TokenKind::QuotedName) {
            let word = self.any_name()?;
            return Ok(Some(Expr::Text { bytes: word.into_bytes(), introducer: None }));
        }
        self.expr().map(Some)
    }

    pub(crate) fn show(&mut self) -> Parsed<Statement> {
        self.expect("SHOW")?;
        let scope = self.accept_any(&["GLOBAL", "SESSION", "LOCAL"]);
        let full = self.accept("FULL");
        let _ = self.accept("EXTENDED");
        let kind = match self.show_kind(scope == Some("GLOBAL"), full)? {
            Some(kind) => kind,
            None => return Err(self.unexpected()),
        };
        let filter = if self.accept("LIKE") {
            Some(ShowFilter::Like(self.text()?))
        } else if self.accept("WHERE") {
            Some(ShowFilter::Where(Arc::new(self.expr()?)))
        } else {
            None
        };
        Ok(Statement::Show(Box::new(Show { kind, filter })))
    }

    fn show_kind(&mut self, global: bool, full: bool) -> Parsed<Option<ShowKind>> {
        let word = String::from_utf8_lossy(self.slice()).to_ascii_uppercase();
        if self.current.kind != TokenKind::Word {
            return Ok(None);
        }
        if word == "COUNT" {
            return self.show_count().map(Some);
        }
        self.advance();
        Ok(Some(match word.as_str() {
            "DATABASES" | "SCHEMAS" => ShowKind::Databases,
            "TABLES" => ShowKind::Tables { full, database: self.database_clause()? },
            "TABLE" => {
                self.expect("STATUS")?;
                ShowKind::TableStatus { database: self.database_clause()? }
            }
            "OPEN" => {
                self.expect("TABLES")?;
                ShowKind::OpenTables { database: self.database_clause()? }
            }
            "COLUMNS" | "FIELDS" => ShowKind::Columns { full, table: self.table_clause()? },
            "INDEX" | "INDEXES" | "KEYS" => ShowKind::Index { table: self.table_clause()? },
            "CREATE" => return self.show_create(),
            "VARIABLES" => ShowKind::Variables { global },
            "STATUS" => ShowKind::Status { global },
            "PROCESSLIST" => ShowKind::ProcessList { full },
            "WARNINGS" | "ERRORS" => {
                let limit = if self.is_word("LIMIT") { Some(self.limit()?) } else { None };
                match word.as_str() {
                    "WARNINGS" => ShowKind::Warnings { limit, count: false },
                    _ => ShowKind::Errors { limit, count: false },
                }
            }
            "ENGINES" => ShowKind::Engines,
            "STORAGE" => {
                self.expect("ENGINES")?;
                ShowKind::Engines
            }
            "ENGINE" => {
                let engine = self.name_or_text()?;
                ShowKind::EngineStatus { engine, what: self.any_name()?.to_ascii_uppercase() }
            }
            "PLUGINS" => ShowKind::Plugins,
            "PRIVILEGES" => ShowKind::Privileges,
            "CHARSET" => ShowKind::CharacterSets,
            "CHARACTER" => {
                self.expect("SET")?;
                ShowKind::CharacterSets
            }
            "COLLATION" => ShowKind::Collations,
            "GRANTS" => {
                let account = if self.accept("FOR") { Some(self.account()?) } else { None };
                let using = account.is_some() && self.accept("USING");
                ShowKind::Grants(account, if using { self.list(Self::role)? } else { Vec::new() })
            }
            _ => return self.show_empty(&word),
        }))
    }

    /// `COUNT(*) WARNINGS|ERRORS`
    fn show_count(&mut self) -> Parsed<ShowKind> {
        self.advance();
        self.expect_symbol(b"(")?;
        self.expect_symbol(b"*")?;
        self.expect_symbol(b")")?;
        match self.accept_any(&["WARNINGS", "ERRORS"]) {
            Some("WARNINGS") => Ok(ShowKind::Warnings { limit: None, count: true }),
            Some(_) => Ok(ShowKind::Errors { limit: None, count: true }),
            None => Err(self.unexpected()),
        }
    }

    fn show_create(&mut self) -> Parsed<Option<ShowKind>> {
        Ok(
            match self.accept_any(&[
                "TABLE",
                "VIEW",
                "DATABASE",
                "SCHEMA",
                "TRIGGER",
                "PROCEDURE",
                "FUNCTION",
                "USER",
            ]) {
                Some("USER") => Some(ShowKind::CreateUser(self.account()?)),
                Some("TABLE") => Some(ShowKind::CreateTable(self.table_name()?)),
                Some("VIEW") => Some(ShowKind::CreateView(self.table_name()?)),
                Some("DATABASE" | "SCHEMA") => {
                    let if_not_exists = self.if_not_exists();
                    Some(ShowKind::CreateDatabase { name: self.database_name()?, if_not_exists })
                }
                Some(object) => {
                    self.table_name()?;
                    let what = match object {
                        "TRIGGER" => "CREATE TRIGGER",
                        "PROCEDURE" => "CREATE PROCEDURE",
                        _ => "CREATE FUNCTION",
                    };
                    Some(ShowKind::Empty(what, &["Trigger", "sql_mode", "SQL Original Statement"]))
                }
                None => None,
            },
        )
    }

    /// What this server never has anything of.
    fn show_empty(&mut self, word: &str) -> Parsed<Option<ShowKind>> {
        let (what, columns): (_, &'static [&'static str]) = match word {
            "TRIGGERS" => {
                self.database_clause()?;
                (
                    "TRIGGERS",
                    &[
                        "Trigger",
                        "Event",
                        "Table",
                        "Statement",
                        "Timing",
                        "Created",
                        "sql_mode",
                        "Definer",
                        "character_set_client",
                        "collation_connection",
                        "Database Collation",
                    ],
                )
            }
            "EVENTS" => {
                self.database_clause()?;
                (
                    "EVENTS",
                    &[
                        "Db",
                        "Name",
                        "Definer",
                        "Time zone",
                        "Type",
                        "Execute at",
                        "Interval value",
                        "Interval field",
                        "Starts",
                        "Ends",
                        "Status",
                        "Originator",
                        "character_set_client",
                        "collation_connection",
                        "Database Collation",
                    ],
                )
            }
            "FUNCTION" | "PROCEDURE" => {
                self.expect("STATUS")?;
                (
                    if word == "FUNCTION" { "FUNCTION STATUS" } else { "PROCEDURE STATUS" },
                    &[
                        "Db",
                        "Name",
                        "Type",
                        "Definer",
                        "Modified",
                        "Created",
                        "Security_type",
                        "Comment",
                        "character_set_client",
                        "collation_connection",
                        "Database Collation",
                    ],
                )
            }
            "MASTER" | "BINARY" => match self.accept_any(&["STATUS", "LOGS", "LOG"]) {
                Some("LOGS") => ("BINARY LOGS", &["Log_name", "File_size", "Encrypted"]),
                Some(which) => {
                    if which == "LOG" {
                        self.expect("STATUS")?;
                    }
                    ("BINARY LOG STATUS", BINARY_LOG_STATUS)
                }
                None => return Ok(None),
            },
            "SLAVE" => self.of_replica(SLAVE_STATUS)?,
            "REPLICA" => self.of_replica(REPLICA_STATUS)?,
            "ALL" => {
                self.expect("SLAVES")?;
                self.expect("STATUS")?;
                let _ = self.accept_any(&["NONBLOCKING", "NOLOCK"]);
                ("REPLICA STATUS", &["Connection_name", "Slave_IO_State", "Master_Host"])
            }
            "REPLICAS" => ("REPLICAS", &["Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"]),
            "BINLOG" => {
                self.expect("EVENTS")?;
                self.skip_statement();
                ("BINLOG EVENTS", &["Log_name", "Pos", "Event_type", "Server_id", "End_log_pos", "Info"])
            }
            "PROFILE" => ("PROFILE", self.profile()),
            "PROFILES" => ("PROFILES", &["Query_ID", "Duration", "Query"]),
            _ => return Ok(None),
        };
        Ok(Some(ShowKind::Empty(what, columns)))
    }

    /// Behind SHOW REPLICA: what it asks for, and the columns.
    fn of_replica(
        &mut self,
        status: &'static [&'static str],
    ) -> Parsed<(&'static str, &'static [&'static str])> {
        if self.accept("HOSTS") {
            return Ok(("REPLICAS", &["Server_id", "Host", "Port", "Master_id", "Slave_UUID"]));
        }
        self.expect("STATUS")?;
        let _ = self.accept_any(&["NONBLOCKING", "NOLOCK"]);
        Ok(("REPLICA STATUS", status))
    }

    /// Behind SHOW PROFILE: nothing is profiled, and the statement may name what it likes of that.
    fn profile(&mut self) -> &'static [&'static str] {
        self.skip_statement();
        &["Status", "Duration"]
    }

    fn database_clause(&mut self) -> Parsed<Option<String>> {
        if self.accept_any(&["FROM", "IN"]).is_some() { self.database_name().map(Some) } else { Ok(None) }
    }

    /// `FROM table [FROM database]`
    fn table_clause(&mut self) -> Parsed<TableName> {
        if self.accept_any(&["FROM", "IN"]).is_none() {
            return Err(self.unexpected());
        }
        let mut table = self.table_name()?;
        if let Some(database) = self.database_clause()? {
            table.database = Some(database);
        }
        Ok(table)
    }

    /// `DESCRIBE table [column]`, or EXPLAIN of a statement.
    pub(crate) fn describe(&mut self) -> Parsed<Statement> {
        self.advance();
        let analyze = self.accept("ANALYZE");
        let mut named = None;
        if self.is_any_word(&["FORMAT"]) {
            self.advance();
            self.expect_symbol(b"=")?;
            named = Some(self.name_or_text()?);
        }
        let format = match named.as_deref() {
            None if analyze => ExplainFormat::Analyze,
            None => ExplainFormat::Table,
            Some(name) => explain_format(name, analyze)?,
        };
        let into =
            if self.accept("INTO") { Some(self.explained_into(named.is_some(), format)?) } else { None };
        let _ = self.accept_any(&["EXTENDED", "PARTITIONS"]);
        let of_statement = ["SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "REPLACE", "TABLE", "VALUES"];
        if self.is_any_word(&of_statement) || self.is_symbol(b"(") {
            let statement = self.statement()?;
            return Ok(Statement::Explain { statement: Arc::new(statement), format, into });
        }
        if analyze || named.is_some() || into.is_some() {
            return Err(self.unexpected());
        }
        let table = self.table_name()?;
        let column = match self.current.kind {
            TokenKind::Text => Some(self.text()?),
            TokenKind::Word | TokenKind::QuotedName => Some(self.any_name()?.into_bytes()),
            _ => None,
        };
        Ok(Statement::Describe { table, column })
    }

    /// The variable behind INTO of EXPLAIN.
    fn explained_into(&mut self, has_format: bool, format: ExplainFormat) -> Parsed<String> {
        let refused = match format {
            _ if !has_format => Some(errors::error(errors::EXPLAIN_INTO_IMPLICIT_FORMAT, &[])),
            ExplainFormat::Json => None,
            ExplainFormat::Table => Some(errors::error(errors::EXPLAIN_INTO_FORMAT, &[&"TRADITIONAL"])),
            ExplainFormat::Tree | ExplainFormat::Analyze => {
                Some(errors::error(errors::EXPLAIN_INTO_FORMAT, &[&"TREE"]))
            }
        };
        let name = self.user_variable_operand()?;
        refused.map_or(Ok(name), Err)
    }
}

/// What EXPLAIN's FORMAT says.
fn explain_format(name: &str, analyze: bool) -> Parsed<ExplainFormat> {
    match name.to_ascii_uppercase().as_str() {
        "TREE" if analyze => Ok(ExplainFormat::Analyze),
        "TREE" => Ok(ExplainFormat::Tree),
        "JSON" if analyze => Err(errors::error(errors::EXPLAIN_ANALYZE_JSON, &[])),
        "JSON" => Ok(ExplainFormat::Json),
        "TRADITIONAL" if analyze => Err(errors::unsupported("EXPLAIN ANALYZE with TRADITIONAL format")),
        "TRADITIONAL" => Ok(ExplainFormat::Table),
        _ => Err(errors::error(errors::UNKNOWN_EXPLAIN_FORMAT, &[&name])),
    }
}
