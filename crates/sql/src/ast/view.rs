//! CREATE VIEW and ALTER VIEW.

use untorn::view::{CheckOption, ViewAlgorithm, ViewSecurity};

use super::{Account, Query, TableName};

/// `CREATE [OR REPLACE] VIEW`, `ALTER VIEW`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    /// Name.
    pub name: TableName,
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// ALTER: there is one.
    pub alter: bool,
    /// `ALGORITHM`.
    pub algorithm: ViewAlgorithm,
    /// `DEFINER`; `None`: who makes it, or of ALTER who made it.
    pub definer: Option<Account>,
    /// `SQL SECURITY`; `None`: the definer's, or of ALTER what it was.
    pub security: Option<ViewSecurity>,
    /// Names of the columns; empty: those of the query.
    pub columns: Vec<String>,
    /// What it is.
    pub query: Box<Query>,
    /// `WITH CHECK OPTION`.
    pub check_option: CheckOption,
}
