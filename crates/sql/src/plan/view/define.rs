//! What becomes of CREATE VIEW: the text that the catalog keeps.

use std::collections::HashSet;

use super::{HEIGHT_MAX, Opened, UsedView, is_plain_but_for_order};
use crate::ast::{self, Statement, Unkept};
use crate::errors;
use crate::expr::types::Type;
use crate::lexer::LexicalModes;
use crate::parser;
use crate::plan::Planner;
use crate::plan::with::Around;
use crate::result::SqlError;

/// A view that is to be made.
#[derive(Debug, Default)]
pub struct NewView {
    /// Its query, names written out.
    pub query: String,
    /// Rows can be changed through it.
    pub updatable: bool,
    /// It may become part of the statements that use it.
    pub merges: bool,
}

impl Planner<'_> {
    /// Checks the query of a view, and writes it as text.
    ///
    /// # Errors
    /// Whatever is wrong with the query; 1350, 1351, 1352 for what no view may have in it, 1353, 1060 and
    /// 1166 for names of columns.
    pub fn new_view(&self, create: &ast::CreateView, itself: &UsedView) -> Result<NewView, SqlError> {
        let mut query = create.query.clone();
        // A view locks nothing by itself.
        query.locking = None;
        // A view that is replaced cannot be meant: it has no columns until this one is made.
        self.enter(itself);
        let planned = self.query(&query, Around::default());
        let written = match &planned {
            Ok(_) => self.write_out(&mut query),
            Err(_) => Ok(Vec::new()),
        };
        self.leave();
        let plan = planned.map_err(|error| unknown_itself(error, itself))?;
        let names = written?;
        self.check_names(create, &names, &mut query)?;
        let text = query.to_text(None).map_err(|unkept| match unkept {
            Unkept::Variable => errors::error(errors::VIEW_SELECT_VARIABLE, &[]),
            Unkept::Construct | Unkept::Default => errors::unsupported("this query as a view"),
        })?;
        // What is kept must mean what was said.
        let refused = || errors::unsupported("this query as a view");
        let parsed = parser::parse(text.as_bytes(), LexicalModes::default()).map_err(|_| refused())?;
        let Statement::Select(kept) = &parsed.statement else {
            return Err(refused());
        };
        // It must not be too high to be used.
        let height = parsed.height + 1;
        if height > HEIGHT_MAX {
            return Err(errors::error(errors::STACK_OVERRUN, &[]));
        }
        self.views.height.set(height);
        self.enter(itself);
        let again = self.unfinished(kept, Around::default());
        self.leave();
        self.views.height.set(0);
        let again = again?;
        let alike = |(one, other): (&Type, &Type)| one.kind == other.kind && one.collation == other.collation;
        let alike = again.types.len() == plan.types.len() && again.types.iter().zip(&plan.types).all(alike);
        if !alike {
            return Err(refused());
        }
        Ok(NewView {
            query: text,
            updatable: is_plain_but_for_order(&again, itself),
            merges: plan.grouping.is_none()
                && !plan.distinct
                && plan.limit.is_none()
                && plan.windowed.is_none()
                && plan.unions.is_empty()
                && !plan.sources.is_empty(),
        })
    }

    fn enter(&self, itself: &UsedView) {
        let (database, name) = (itself.database.clone(), itself.name.clone());
        let opened = Opened { database, name, rights: None, collation: None, denied: Vec::new() };
        self.views.opened.borrow_mut().push(opened);
        self.views.only_defined.set(true);
    }

    fn leave(&self) {
        self.views.opened.borrow_mut().pop();
        self.views.only_defined.set(false);
    }

    /// The names of the columns: those given, or those of the query, where what was made of a text and is
    /// there already becomes another.
    fn check_names(
        &self,
        create: &ast::CreateView,
        names: &[String],
        query: &mut ast::Query,
    ) -> Result<(), SqlError> {
        if !create.columns.is_empty() && create.columns.len() != names.len() {
            return Err(errors::error(errors::VIEW_WRONG_LIST, &[]));
        }
        let given = if create.columns.is_empty() { names } else { &create.columns };
        if create.columns.is_empty() {
            self.make_unique(query)?;
        }
        let mut seen = HashSet::with_capacity(given.len());
        for name in given {
            if name.is_empty() || name.ends_with(' ') {
                return Err(errors::error(errors::WRONG_COLUMN_NAME, &[name]));
            }
            parser::check_length(name)?;
            if !create.columns.is_empty() && !seen.insert(name.to_lowercase()) {
                return Err(errors::error(errors::DUP_FIELDNAME, &[name]));
            }
        }
        Ok(())
    }

    fn make_unique(&self, query: &mut ast::Query) -> Result<(), SqlError> {
        let Some((_, select)) = query.selects.first_mut() else { return Ok(()) };
        let mut seen = HashSet::with_capacity(select.items.len());
        for item in &mut select.items {
            let ast::SelectItem::Expr { expr, alias: Some(name), text } = item else { continue };
            if seen.insert(name.to_lowercase()) {
                continue;
            }
            if name != text || matches!(expr, ast::Expr::Column { .. }) {
                return Err(errors::error(errors::DUP_FIELDNAME, &[name]));
            }
            let mut unique = format!("Name_exp_{name}");
            let mut number = 1;
            while !seen.insert(unique.to_lowercase()) {
                unique = format!("Name_exp_{number}_{name}");
                number += 1;
            }
            *name = unique;
        }
        Ok(())
    }
}

/// A view cannot read itself: there is no such table, as far as its query goes.
fn unknown_itself(error: SqlError, itself: &UsedView) -> SqlError {
    if error.code == errors::VIEW_RECURSIVE && error.message.contains(&format!("`{}`", itself.name)) {
        let UsedView { database, name, .. } = itself;
        return errors::error(errors::NO_SUCH_TABLE, &[database, name]);
    }
    error
}
