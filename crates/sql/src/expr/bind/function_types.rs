//! Types of calls that the types of their arguments do not decide alone, and calls that mean something else
//! with some arguments.

use std::sync::Arc;

use untorn::types::{Collation, ColumnType};

use super::{Binder, Bound};
use crate::ast;
use crate::context::SqlContext;
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Expr, functions};
use crate::plan::Planner;
use crate::result::{SqlError, kind};
use crate::value::Value;

/// The type of functions whose type depends on more: those that change the digits behind the point on the
/// value of their argument, names of days and months on their language.
pub(super) fn type_of_call(
    name: &str,
    arguments: &[Expr],
    types: &[Type],
    state: &SqlContext,
) -> Option<Type> {
    let names = state.settings().time_names;
    if let Some(Expr::Literal(digits)) = arguments.first() {
        let digits = digits.to_i64().clamp(0, 6) as u8;
        match name {
            "NOW" | "CURRENT_TIMESTAMP" | "LOCALTIME" | "LOCALTIMESTAMP" | "SYSDATE" | "UTC_TIMESTAMP" => {
                return Some(Type::datetime(digits).not_null());
            }
            "CURTIME" | "CURRENT_TIME" | "UTC_TIME" => return Some(Type::time(digits).not_null()),
            _ => {}
        }
    }
    match name {
        "DAYNAME" => return Some(Type::text(names.day_chars_max())),
        "MONTHNAME" => return Some(Type::text(names.month_chars_max())),
        "TIME" | "TIMEDIFF" => return Some(Type::time(second_digits(arguments, types))),
        "ADDTIME" | "SUBTIME" if types[0].is_temporal() => {
            let digits = second_digits(arguments, types);
            let of_span = types[0].kind == kind::TIME;
            return Some(if of_span { Type::time(digits) } else { Type::datetime(digits) });
        }
        "TIMESTAMP" => return Some(Type::datetime(second_digits(arguments, types))),
        _ => {}
    }
    if let Some(ty) =
        functions::type_of_constants(name, arguments).or_else(|| made_of(name, arguments, types))
    {
        return Some(ty);
    }
    let operand = *types.first().filter(|ty| ty.kind == kind::NEWDECIMAL)?;
    let (precision, scale) = operand.digits();
    let wanted = match (name, arguments.get(1)) {
        ("CEIL" | "CEILING" | "FLOOR", _) if precision - scale.min(precision) < 18 => {
            return Some(Type { nullable: operand.nullable, ..Type::INT });
        }
        ("CEIL" | "CEILING" | "FLOOR", _) => 0,
        ("ROUND" | "TRUNCATE", Some(Expr::Literal(digits))) => {
            digits.to_i64().clamp(0, i64::from(scale)) as u8
        }
        ("ROUND", None) => 0,
        _ => return None,
    };
    let whole = precision - scale.min(precision) + 1;
    Some(Type { nullable: operand.nullable, ..Type::decimal((whole + wanted).min(65), wanted) })
}

/// The type of a text that is as long as constants say.
fn made_of(name: &str, arguments: &[Expr], types: &[Type]) -> Option<Type> {
    // The text of a number has room for a sign.
    let chars = |at: usize| match (arguments.get(at), types.get(at)) {
        (Some(Expr::Literal(Value::Int(_) | Value::UInt(_))), Some(ty)) => ty.length.saturating_add(1),
        (_, Some(ty)) => ty.length,
        _ => 0,
    };
    let count = |at: usize| match arguments.get(at) {
        Some(Expr::Literal(Value::Null)) => None,
        Some(Expr::Literal(count)) => u32::try_from(count.to_integer()).ok(),
        _ => None,
    };
    let length = match name {
        "REPEAT" => count(1)?.saturating_mul(chars(0)),
        "LPAD" | "RPAD" => count(1)?,
        "SPACE" if matches!(arguments, [Expr::Literal(_)]) => count(0).unwrap_or(0),
        "MAKE_SET" => {
            let texts = (1..types.len()).map(chars);
            texts.fold(types.len().saturating_sub(2) as u32, u32::saturating_add)
        }
        "EXPORT_SET" => {
            let separator = if types.len() > 3 { chars(3) } else { 1 };
            let bits = chars(1).max(chars(2)).saturating_mul(64);
            bits.saturating_add(separator.saturating_mul(63))
        }
        _ => return None,
    };
    let rule = types.iter().skip(usize::from(name.ends_with("_SET")));
    let rule = rule.filter(|ty| ty.is_text()).map(|ty| ty.collation).reduce(crate::value::collation::common);
    let nullable = name != "MAKE_SET" || types.iter().any(|ty| ty.nullable);
    let text = match rule {
        Some(Collation::Binary) => Type::bytes(length),
        Some(collation) => Type { collation, ..Type::text(length) },
        None => Type::text(length),
    };
    Some(Type { nullable, ..text })
}

/// The most digits of a second that one of the arguments has.
fn second_digits(arguments: &[Expr], types: &[Type]) -> u8 {
    let digits = |(argument, ty): (&Expr, &Type)| match argument {
        Expr::Literal(Value::Text(text, _)) => {
            let point = text.iter().rposition(|byte| *byte == b'.');
            let behind = point.map_or(&[][..], |at| &text[at + 1..]);
            behind.iter().take_while(|byte| byte.is_ascii_digit()).count().min(6) as u8
        }
        _ if ty.is_integer() || matches!(ty.kind, kind::DATE | kind::NULL) => 0,
        _ if ty.is_temporal() || ty.kind == kind::NEWDECIMAL => ty.decimals.min(6),
        _ => 6,
    };
    arguments.iter().zip(types).map(digits).max().unwrap_or(0)
}

/// The path of EXTRACTVALUE and UPDATEXML is one for all rows, and is read even if there are none.
pub(super) fn check_path(arguments: &[Bound], planner: &Planner<'_>) -> Result<(), SqlError> {
    let Some((path, _)) = arguments.get(1) else { return Ok(()) };
    if !path.visit(&mut |inner| inner.may_be_constant()) {
        return Err(errors::error(errors::UNKNOWN_ERROR, &[&"Only constant XPATH queries are supported"]));
    }
    match path {
        Expr::Literal(path) => functions::xml::check_path(path, planner.state),
        Expr::Parameter(_) => {
            // Of a plan for other literals, too: one of them may be none.
            planner.value_dependent.set(true);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// CHARSET and COLLATION of a NULL are those of its type.
pub(super) fn null_by_type(name: &str, arguments: &mut Vec<Expr>, types: &[Type]) {
    if matches!(name, "CHARSET" | "COLLATION") && types[0].is_text() {
        arguments.push(Expr::Literal(Value::Text(Default::default(), types[0].collation)));
        *arguments = vec![Expr::Coalesce(std::mem::take(arguments))];
    }
}

/// A TIME or DATETIME of text whose digits are not known before it is read has all six of a second.
pub(super) fn with_six_digits(call: Expr, types: &[Type], ty: Type) -> Expr {
    let Expr::Call(function, arguments) = &call else { return call };
    let cast = match ty.kind {
        kind::TIME => ast::CastType::Time { fraction: 6 },
        kind::DATETIME => ast::CastType::DateTime { fraction: 6 },
        _ => return call,
    };
    let shows = functions::temporal::shows_six_digits(function.name, arguments, types);
    if shows { Expr::Cast(Box::new(call), cast) } else { call }
}

impl Binder<'_, '_> {
    /// A call that is another word for something else.
    pub(super) fn otherwise_called(
        &mut self,
        name: &str,
        arguments: &[ast::Expr],
    ) -> Result<Option<Bound>, SqlError> {
        match (name, arguments) {
            ("DATE", [moment]) => self.cast(moment, &ast::CastType::Date).map(Some),
            ("FIND_IN_SET", [wanted, set]) => self.place_in_set(wanted, set),
            _ => Ok(None),
        }
    }

    /// FIND_IN_SET in a SET column, which answers where its definition has the member.
    fn place_in_set(&mut self, wanted: &ast::Expr, set: &ast::Expr) -> Result<Option<Bound>, SqlError> {
        if !matches!(set, ast::Expr::Column { .. }) {
            return Ok(None);
        }
        let set = self.bind(set)?;
        let Expr::Column { source, column } = set.0 else { return Ok(None) };
        let members = self.sources.get(usize::from(source)).and_then(|source| source.members(column));
        let Some(ColumnType::Set { members, collation }) = members else { return Ok(None) };
        let kind = Arc::new(ColumnType::Set { members: members.clone(), collation: *collation });
        let all = Expr::Literal(Value::Text(members.join(",").into_bytes().into(), *collation));
        let wanted = self.bind(wanted)?;
        let mut arguments = self.together("FIND_IN_SET", vec![wanted, (all, set.1)])?;
        arguments.push((Expr::MemberNumber(Box::new(set.0), kind), Type::UINT));
        let arguments = arguments.into_iter().map(|(expr, _)| expr).collect();
        Ok(Some((Expr::Call(&functions::PLACE_OF_MEMBER, arguments), Type::INT)))
    }
}
