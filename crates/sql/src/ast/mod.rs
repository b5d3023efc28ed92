//! The syntax tree of the statements, names not yet resolved.
//!
//! The tree owns its bytes: it outlives the packet for prepared statements, and it is dropped as soon as a
//! plan has been made. Literals keep their written form where MySQL's result depends on it (`1.50` is a
//! DECIMAL of scale 2).

// The fields of variants say by their names what they are.
#![allow(missing_docs)]

use std::sync::Arc;

mod administration;
mod alteration;
mod change;
mod definition;
mod expression;
mod handler;
mod json_table;
mod load;
mod query;
pub mod text;
mod view;
mod window;
mod xa;

pub use administration::*;
pub use alteration::*;
pub use change::*;
pub use definition::*;
pub use expression::*;
pub use handler::*;
pub use json_table::*;
pub use load::*;
pub use query::*;
pub use text::{Unkept, quoted_name};
pub use view::*;
pub use window::*;
pub use xa::*;

/// How a plan is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainFormat {
    /// A row for each table.
    Table,
    /// A text with a line for each operation.
    Tree,
    /// The same, with what was measured while the statement ran.
    Analyze,
    /// A JSON document, in the shape of `explain_json_format_version = 1`.
    Json,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Statement {
    /// Only comments.
    Empty,
    Select(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Explain {
        statement: Arc<Statement>,
        format: ExplainFormat,
        /// The user variable that takes the document in the client's place.
        into: Option<String>,
    },
    CreateDatabase {
        name: String,
        if_not_exists: bool,
        charset: Option<String>,
        collation: Option<String>,
    },
    AlterDatabase {
        name: Option<String>,
        charset: Option<String>,
        collation: Option<String>,
    },
    DropDatabase {
        name: String,
        if_exists: bool,
    },
    Use(String),
    CreateTable(Box<CreateTable>),
    DropTable {
        names: Vec<TableName>,
        if_exists: bool,
        temporary: bool,
    },
    CreateView(Box<CreateView>),
    DropView {
        names: Vec<TableName>,
        if_exists: bool,
    },
    Truncate(TableName),
    CreateIndex {
        key: KeyDef,
        table: TableName,
    },
    DropIndex {
        name: String,
        table: TableName,
    },
    AlterTable(Box<AlterTable>),
    RenameTable(Vec<(TableName, TableName)>),
    Begin {
        snapshot: bool,
        read_only: Option<bool>,
    },
    Commit {
        chain: bool,
        release: bool,
    },
    Rollback {
        chain: bool,
        release: bool,
    },
    Savepoint(String),
    RollbackTo(String),
    ReleaseSavepoint(String),
    Xa(Xa),
    Set(Vec<SetItem>),
    SetTransaction {
        scope: Option<Scope>,
        isolation: Option<Isolation>,
        read_only: Option<bool>,
    },
    SetPassword {
        account: Option<Account>,
        password: Vec<u8>,
        /// `REPLACE`: the password as it was.
        replaced: Option<Vec<u8>>,
    },
    Show(Box<Show>),
    Describe {
        table: TableName,
        column: Option<Vec<u8>>,
    },
    Maintain {
        what: Maintenance,
        tables: Vec<TableName>,
    },
    Kill {
        query_only: bool,
        connection: Expr,
    },
    Flush(Flush),
    LockTables(Vec<LockTable>),
    UnlockTables,
    LoadData(Box<LoadData>),
    CreateUser {
        accounts: Vec<AccountSpecification>,
        if_not_exists: bool,
        options: Box<AccountOptions>,
        default_roles: Vec<Account>,
    },
    AlterUser {
        accounts: Vec<AccountSpecification>,
        if_exists: bool,
        options: Box<AccountOptions>,
    },
    RenameUser(Vec<(Account, Account)>),
    DropUser {
        accounts: Vec<Account>,
        if_exists: bool,
    },
    Grant(Grant),
    Revoke(Grant),
    CreateRole {
        roles: Vec<Account>,
        if_not_exists: bool,
    },
    DropRole {
        roles: Vec<Account>,
        if_exists: bool,
    },
    GrantRoles(RoleGrant),
    RevokeRoles(RoleGrant),
    SetRole(RoleChoice),
    /// `SET DEFAULT ROLE`, `ALTER USER … DEFAULT ROLE`.
    SetDefaultRole {
        roles: RoleChoice,
        accounts: Vec<Account>,
        if_exists: bool,
    },
    Do(Vec<Arc<Expr>>),
    Prepare {
        name: String,
        source: Expr,
    },
    Execute {
        name: String,
        using: Vec<String>,
    },
    Deallocate(String),
    /// `GET DIAGNOSTICS`.
    GetDiagnostics(Box<GetDiagnostics>),
    Handler(Handler),
    Shutdown,
    /// `BACKUP SERVER TO 'name' [SINCE 'name']`.
    Backup {
        name: Vec<u8>,
        since: Option<Vec<u8>>,
    },
    /// Known to MySQL, not supported here (1235 with this name).
    Unsupported(&'static str),
}

impl Statement {
    /// Whether it makes or drops temporary tables and nothing else: it commits nothing.
    pub fn is_of_temporary_tables(&self) -> bool {
        match self {
            Statement::CreateTable(create) => create.temporary,
            Statement::DropTable { temporary, .. } => *temporary,
            _ => false,
        }
    }
}
