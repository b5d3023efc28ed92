//! ONLY_FULL_GROUP_BY without GROUP BY: all rows are one group, in which a column has no value unless it is
//! aggregated. Windows are over that group.

use super::Planner;
use super::source::Source;
use super::window::WindowCall;
use crate::errors;
use crate::expr::{Expr, functions};
use crate::result::SqlError;
use crate::sql_mode;

impl Planner<'_> {
    /// No bare columns beside aggregates.
    pub(super) fn check_full_group(
        &self,
        items: &[Expr],
        windows: &[WindowCall],
        sources: &[Source],
    ) -> Result<(), SqlError> {
        if self.state.settings().sql_mode & sql_mode::ONLY_FULL_GROUP_BY == 0 {
            return Ok(());
        }
        let check = |number: usize, place: &str, expr: &Expr| {
            let Some((source, column)) = self.bare_column(expr, windows)? else { return Ok(()) };
            let source = &sources[usize::from(source)];
            let name = source.columns.get(usize::from(column)).map_or("", |column| &column.name);
            let shown = format!("{}.{}.{name}", source.database, source.alias);
            Err(errors::error(errors::MIX_OF_GROUP_FUNC_AND_FIELDS, &[&(number + 1), &place, &shown]))
        };
        for (number, item) in items.iter().enumerate() {
            check(number, "SELECT list", item)?;
        }
        for call in windows {
            let place = format!("PARTITION BY or ORDER BY clause of window '{}'", call.window);
            let sorted_by = call.partition.iter().chain(call.order.iter().map(|(expr, _)| expr));
            for (number, expr) in sorted_by.enumerate() {
                check(number, &place, expr)?;
            }
        }
        Ok(())
    }

    /// A column that the expression or the arguments of its window functions read of a single row.
    fn bare_column(&self, expr: &Expr, windows: &[WindowCall]) -> Result<Option<(u16, u16)>, SqlError> {
        let (mut bare, mut calls) = (None, Vec::new());
        // Nodes that are inside ANY_VALUE and still to be seen.
        let mut inside = 0usize;
        expr.visit(&mut |inner| {
            if inside > 0 {
                inside -= 1;
                return self.walk();
            }
            match inner {
                Expr::Call(function, arguments) if **function == functions::ANY_VALUE => {
                    arguments.iter().for_each(|argument| {
                        argument.visit(&mut |_| {
                            inside += 1;
                            self.walk()
                        });
                    });
                }
                Expr::Column { source, column } => bare = Some((*source, *column)),
                Expr::Window(number) => calls.push(usize::from(*number)),
                _ => {}
            }
            bare.is_none() && self.walk()
        });
        self.outcome()?;
        for argument in
            calls.into_iter().filter_map(|at| windows.get(at)).flat_map(|call| call.function.exprs())
        {
            bare = bare.or(self.bare_column(argument, &[])?);
        }
        Ok(bare)
    }
}
