//! CREATE VIEW and ALTER VIEW, behind their first words.

use untorn::view::{CheckOption, ViewAlgorithm, ViewSecurity};

use super::super::ast::{CreateView, Statement};
use super::{Parsed, Parser};

impl Parser<'_> {
    /// Whether what follows CREATE or ALTER is a view: its options, or VIEW itself.
    pub(super) fn starts_view(&self) -> bool {
        self.is_any_word(&["VIEW", "OR", "ALGORITHM", "SQL"])
    }

    /// `[OR REPLACE] [ALGORITHM = x] [DEFINER = y] [SQL SECURITY z] VIEW …`, from OR on. `None` when DEFINER
    /// was that of a stored program.
    pub(super) fn view(&mut self, alter: bool) -> Parsed<Option<Statement>> {
        let or_replace = !alter && self.accept_all(&["OR", "REPLACE"]);
        let mut algorithm = ViewAlgorithm::Undefined;
        if self.accept("ALGORITHM") {
            self.expect_symbol(b"=")?;
            algorithm = match self.accept_any(&["UNDEFINED", "MERGE", "TEMPTABLE"]) {
                Some("MERGE") => ViewAlgorithm::Merge,
                Some("TEMPTABLE") => ViewAlgorithm::TempTable,
                Some(_) => ViewAlgorithm::Undefined,
                None => return Err(self.unexpected()),
            };
        }
        let mut definer = None;
        if self.accept("DEFINER") {
            self.expect_symbol(b"=")?;
            definer = Some(self.account()?);
        }
        let mut security = None;
        if self.accept_all(&["SQL", "SECURITY"]) {
            security = match self.accept_any(&["DEFINER", "INVOKER"]) {
                Some("INVOKER") => Some(ViewSecurity::Invoker),
                Some(_) => Some(ViewSecurity::Definer),
                None => return Err(self.unexpected()),
            };
        }
        if self.is_any_word(&["TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "AGGREGATE"]) {
            return Ok(None);
        }
        self.expect("VIEW")?;
        let if_not_exists = !alter && !or_replace && self.if_not_exists();
        let name = self.table_name()?;
        let columns = match self.is_symbol(b"(") {
            true => self.parenthesised(Self::name)?,
            false => Vec::new(),
        };
        columns.iter().try_for_each(|column| super::check_length(column))?;
        self.expect("AS")?;
        let query = Box::new(self.query()?);
        let mut check_option = CheckOption::None;
        if self.accept("WITH") {
            check_option = match self.accept_any(&["LOCAL", "CASCADED"]) {
                Some("LOCAL") => CheckOption::Local,
                _ => CheckOption::Cascaded,
            };
            self.expect("CHECK")?;
            self.expect("OPTION")?;
        }
        Ok(Some(Statement::CreateView(Box::new(CreateView {
            name,
            or_replace,
            if_not_exists,
            alter,
            algorithm,
            definer,
            security,
            columns,
            query,
            check_option,
        }))))
    }
}
