//! Members of ENUM and SET columns where a number is wanted: of the column itself, and of what NULLIF, IF,
//! CASE and ELT choose. So a member that is chosen is true as a condition, whatever its name says.

use std::sync::Arc;

use untorn::types::ColumnType;

use super::coercion::is_number;
use super::common_type::converted;
use super::{Binder, Bound, coercion};
use crate::ast::{self, BinaryOperator, CastType};
use crate::expr::Expr;
use crate::expr::types::Type;
use crate::result::kind;
use crate::value::Value;

fn has_members(ty: Type) -> bool {
    matches!(ty.kind, kind::ENUM | kind::SET)
}

impl Binder<'_, '_> {
    /// Notes parameters among operands that are compared with each other, if members are there.
    pub(super) fn note_among(&self, said: &[&ast::Expr], operands: &[Bound]) {
        for said in said {
            self.note_parameter(said, operands.iter().map(|(_, ty)| *ty));
        }
    }

    /// The same of one, beside operands of these types.
    pub(super) fn note_parameter(&self, said: &ast::Expr, mut types: impl Iterator<Item = Type>) {
        if let ast::Expr::Parameter(index) = said
            && let Some(ty) = types.find(|ty| has_members(*ty))
        {
            self.planner.state.parameters.note_members(*index, ty);
        }
    }

    /// The same of the arguments of functions that compare them with each other.
    pub(super) fn note_arguments(&self, name: &str, arguments: &[ast::Expr], types: &[Type]) {
        if matches!(name, "NULLIF" | "FIELD" | "GREATEST" | "LEAST") {
            arguments.iter().for_each(|said| self.note_parameter(said, types.iter().copied()));
        }
    }

    /// The definition of an ENUM or SET column.
    pub(super) fn members(&self, expr: &Expr) -> Option<&ColumnType> {
        let (source, column) = self.source_column(expr)?;
        source.members(column)
    }

    /// Whether it chooses among values of which one is a member.
    pub(super) fn chooses_members(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Case { whens, otherwise, .. } => {
                whens.iter().map(|(_, then)| then).chain([&**otherwise]).any(|one| self.answers_member(one))
            }
            Expr::NullIf(left, _) => self.answers_member(left),
            Expr::Call(function, arguments) if function.name == "ELT" => {
                arguments.iter().skip(1).any(|one| self.answers_member(one))
            }
            Expr::Shared(inner) => self.chooses_members(inner),
            _ => false,
        }
    }

    fn answers_member(&self, expr: &Expr) -> bool {
        match expr {
            // Put around by the common type of what is chosen.
            Expr::Collate(inner, _) => self.answers_member(inner),
            other => self.members(other).is_some() || self.chooses_members(other),
        }
    }

    /// What IF, CASE, NULLIF and ELT choose, as a number.
    pub(super) fn number_of_chosen(&self, (expr, ty): Bound) -> Bound {
        let chosen = Expr::Cast(Box::new(self.member_number(expr)), CastType::Double);
        (chosen, Type { nullable: ty.nullable, ..Type::DOUBLE })
    }

    fn member_number(&self, expr: Expr) -> Expr {
        if let Some(members) = self.members(&expr) {
            let members = Arc::new(members.clone());
            return Expr::MemberNumber(Box::new(expr), members);
        }
        match expr {
            Expr::Shared(inner) => self.member_number((*inner).clone()),
            Expr::Collate(inner, _) if self.answers_member(&inner) => self.member_number(*inner),
            Expr::Case { operand, whens, otherwise } => {
                let whens = whens.into_iter().map(|(when, then)| (when, self.member_number(then))).collect();
                Expr::Case { operand, whens, otherwise: Box::new(self.member_number(*otherwise)) }
            }
            Expr::Call(function, mut arguments) if function.name == "ELT" => {
                let chosen = arguments.drain(1..).map(|one| self.member_number(one)).collect::<Vec<_>>();
                arguments.extend(chosen);
                Expr::Call(function, arguments)
            }
            Expr::NullIf(left, right) => {
                let otherwise = Box::new(self.member_number((*left).clone()));
                null_where_equal(*left, *right, otherwise)
            }
            other => other,
        }
    }

    /// NULLIF; `said`: the first operand's type by itself.
    pub(super) fn null_if(&self, operands: Vec<Expr>, types: [Type; 2], said: Type) -> Bound {
        match self.null_if_member(&operands, types) {
            Some(answer) => answer,
            None => coercion::null_if(operands, types, said),
        }
    }

    /// NULLIF of a member and a number, which compares its number and answers its name.
    fn null_if_member(&self, operands: &[Expr], [left, right]: [Type; 2]) -> Option<Bound> {
        let [member, number] = operands else { return None };
        let chosen = has_members(left) || self.answers_member(member);
        if !chosen || !is_number(right) {
            return None;
        }
        let (compared, _) = self.as_number((member.clone(), left));
        let answer = null_where_equal(compared, number.clone(), Box::new(member.clone()));
        Some((answer, Type { nullable: true, ..left }))
    }
}

/// The arguments of ELT, those that it may answer as what they have in common; of any other function as they
/// are.
pub(super) fn each_of_elt(name: &str, arguments: Vec<Expr>, types: &[Type], common: Type) -> Vec<Expr> {
    if name != "ELT" {
        return arguments;
    }
    let each = arguments.into_iter().zip(types).enumerate();
    each.map(|(at, (expr, ty))| if at == 0 { expr } else { converted((expr, *ty), common) }).collect()
}

fn null_where_equal(left: Expr, right: Expr, otherwise: Box<Expr>) -> Expr {
    let equal = Expr::Compare(BinaryOperator::Equal, Box::new(left), Box::new(right));
    Expr::Case { operand: None, whens: vec![(equal, Expr::Literal(Value::Null))], otherwise }
}
