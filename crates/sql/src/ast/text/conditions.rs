//! Conditions as MySQL writes them: NOT is carried inwards, what is no condition is compared with 0 where one
//! is wanted, and `IN (x)` is `= x`.

use super::calls::write_around;
use super::{Style, Written, push, symbol, write};
use crate::ast::{BinaryOperator, Expr, UnaryOperator};

/// What stands where a condition is wanted.
pub(super) fn write_condition(expr: &Expr, style: Style<'_>, out: &mut String) -> Written {
    let is_query = matches!(expr, Expr::InQuery { .. } | Expr::Quantified { .. });
    match expr.is_condition() || is_query {
        true => write(expr, style, out),
        false => write_around("(0 <> ", expr, ")", style, out),
    }
}

/// AND and OR of all these, of which those that are the same again are taken in; negated they are each other.
pub(super) fn write_junction(
    list: &[Expr],
    and: bool,
    negated: bool,
    style: Style<'_>,
    out: &mut String,
) -> Written {
    let mut parts = Vec::with_capacity(list.len());
    push_parts(list, and, &mut parts);
    for (at, part) in parts.into_iter().enumerate() {
        out.push_str(match at {
            0 => "(",
            _ if and != negated => " and ",
            _ => " or ",
        });
        match negated {
            true => write_not(part, style, out)?,
            false => write_condition(part, style, out)?,
        }
    }
    out.push(')');
    Ok(())
}

fn push_parts<'e>(list: &'e [Expr], and: bool, parts: &mut Vec<&'e Expr>) {
    for item in list {
        match item {
            Expr::And(inner) if and => push_parts(inner, and, parts),
            Expr::Or(inner) if !and => push_parts(inner, and, parts),
            item => parts.push(item),
        }
    }
}

/// NOT of this.
pub(super) fn write_not(operand: &Expr, style: Style<'_>, out: &mut String) -> Written {
    match operand {
        Expr::Unary(UnaryOperator::Not, inner) => write_condition(inner, style, out),
        Expr::And(list) => write_junction(list, true, true, style, out),
        Expr::Or(list) => write_junction(list, false, true, style, out),
        Expr::Binary2(operator, left, right) if operator.opposite() != *operator => {
            write_pair(left, operator.opposite(), right, style, out)
        }
        Expr::Binary2(BinaryOperator::Xor, left, right) => {
            out.push('(');
            write_not(left, style, out)?;
            out.push_str(" xor ");
            write_condition(right, style, out)?;
            out.push(')');
            Ok(())
        }
        Expr::Chain(first, links) => match &links[..] {
            [(operator, right)] if operator.opposite() != *operator => {
                write_pair(first, operator.opposite(), right, style, out)
            }
            _ => write_refused(operand, style, out),
        },
        Expr::IsNull { operand, negated } => {
            write_around("(", operand, if *negated { " is null)" } else { " is not null)" }, style, out)
        }
        // IS UNKNOWN.
        Expr::IsTruth { operand, truth: None, negated } => {
            write_around("(", operand, if *negated { " is null)" } else { " is not null)" }, style, out)
        }
        Expr::IsTruth { operand, truth: Some(truth), negated } => {
            write_truth(operand, *truth, !*negated, style, out)
        }
        // NOT LIKE is NOT of LIKE.
        Expr::Like { operand, pattern, escape, negated: true } => {
            let (operand, pattern, escape) = (operand.clone(), pattern.clone(), escape.clone());
            write(&Expr::Like { operand, pattern, escape, negated: false }, style, out)
        }
        Expr::Regexp { operand, pattern, negated: true } => {
            let (operand, pattern) = (operand.clone(), pattern.clone());
            write(&Expr::Regexp { operand, pattern, negated: false }, style, out)
        }
        Expr::Between { operand, low, high, negated } => {
            write_around("(", operand, if *negated { " between " } else { " not between " }, style, out)?;
            write_around("", low, " and ", style, out)?;
            write_around("", high, ")", style, out)
        }
        Expr::InList { operand, list, negated } => {
            let (operand, list, negated) = (operand.clone(), list.clone(), !negated);
            write(&Expr::InList { operand, list, negated }, style, out)
        }
        Expr::InConstants { operand, constants, negated } => {
            let (operand, constants, negated) = (operand.clone(), constants.clone(), !negated);
            write(&Expr::InConstants { operand, constants, negated }, style, out)
        }
        Expr::Function { name, arguments, .. } if name.eq_ignore_ascii_case("ISNULL") => match &arguments[..]
        {
            [argument] => write_around("(", argument, " is not null)", style, out),
            _ => write_refused(operand, style, out),
        },
        condition if condition.is_condition() => write_refused(condition, style, out),
        Expr::InQuery { .. } | Expr::Quantified { .. } => write_refused(operand, style, out),
        value => write_around("(0 = ", value, ")", style, out),
    }
}

fn write_refused(operand: &Expr, style: Style<'_>, out: &mut String) -> Written {
    write_around("(not(", operand, "))", style, out)
}

/// Two operands with an operator between them.
pub(super) fn write_pair(
    left: &Expr,
    operator: BinaryOperator,
    right: &Expr,
    style: Style<'_>,
    out: &mut String,
) -> Written {
    let xor = operator == BinaryOperator::Xor;
    out.push('(');
    for (at, operand) in [left, right].into_iter().enumerate() {
        if at > 0 {
            push(out, format_args!(" {} ", symbol(operator)));
        }
        match xor {
            true => write_condition(operand, style, out)?,
            false => write(operand, style, out)?,
        }
    }
    out.push(')');
    Ok(())
}

/// IS TRUE, IS FALSE and their opposites.
pub(super) fn write_truth(
    operand: &Expr,
    truth: bool,
    negated: bool,
    style: Style<'_>,
    out: &mut String,
) -> Written {
    out.push('(');
    write_condition(operand, style, out)?;
    push(out, format_args!(" is {}{truth})", if negated { "not " } else { "" }));
    Ok(())
}
