//! CAST and CONVERT: what becomes of the operand before it is converted, and the collation of the result.

use untorn::types::Collation;

use super::coercion::{as_part, as_shown, of_days};
use super::collation::{checked, collated, in_bytes};
use super::{Binder, Bound};
use crate::ast;
use crate::expr::types::{Derivation, cast_type};
use crate::expr::{Expr, functions};
use crate::result::SqlError;

impl Binder<'_, '_> {
    pub(super) fn cast(&mut self, said: &ast::Expr, target: &ast::CastType) -> Result<Bound, SqlError> {
        // Without characters a CHAR is bytes, filled up with zeros.
        if let ast::CastType::Char { length, charset: None, bin: false } = target
            && self.connection_rule() == Collation::Binary
        {
            return self.cast(said, &ast::CastType::Binary { length: *length });
        }
        let mut operand = self.bind(said)?;
        let charset = match target {
            ast::CastType::Char { charset, bin, .. } if *bin || charset.is_some() => {
                let rule = match charset {
                    Some(charset) => self.planner.charset_collation(charset)?,
                    None => self.connection_rule(),
                };
                Some(if *bin { rule.charset().bin_collation() } else { rule })
            }
            _ => None,
        };
        let charset = charset.filter(|rule| *rule != Collation::Binary);
        if let Some(rule) = charset
            && operand.1.is_text()
        {
            operand = collated(checked(operand, rule), rule, Derivation::Implicit);
        }
        operand = match target {
            ast::CastType::Char { .. } => self.filled(as_shown(operand)),
            ast::CastType::Binary { .. } => in_bytes(self.filled(as_shown(operand))),
            ast::CastType::Json => as_part(said, operand),
            ast::CastType::Date | ast::CastType::DateTime { .. } => of_days(self.as_number(operand)),
            ast::CastType::Signed | ast::CastType::Unsigned | ast::CastType::Year => self.as_integer(operand),
            // A DECIMAL is made of its text.
            ast::CastType::Decimal { .. } if matches!(&operand.0, Expr::Call(call, _) if call.name == "ELT") => {
                self.as_integer(operand)
            }
            _ => self.as_number(operand),
        };
        // Days that the SQL mode refuses may be stored all the same.
        if *target == ast::CastType::Date
            && operand.1.is_moment()
            && let Some(date) = functions::find("DATE")
        {
            return Ok((Expr::Call(date, vec![operand.0]), cast_type(target)));
        }
        if matches!(target, ast::CastType::DateTime { .. }) && operand.1.is_moment() {
            operand.0 = Expr::Call(&functions::DAY_OF_MODE, vec![operand.0]);
        }
        let cast = (Expr::Cast(Box::new(operand.0), target.clone()), cast_type(target));
        Ok(match charset {
            Some(rule) => collated(cast, rule, Derivation::Implicit),
            None if matches!(target, ast::CastType::Char { charset: None, .. }) => self.in_connection(cast),
            None => cast,
        })
    }
}
