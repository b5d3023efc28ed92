//! Functions as MySQL writes them: one name for those that have several, and operators and casts for those
//! that are only other words for them. So a definition that comes from MySQL goes back as it came.

use super::{Style, Written, push, write, write_list};
use crate::ast::Expr;

/// The name that stands for this one, which is in lower case.
fn name_of(name: &str) -> &str {
    match name {
        "current_date" => "curdate",
        "current_time" => "curtime",
        "current_timestamp" | "localtime" | "localtimestamp" => "now",
        "schema" => "database",
        "session_user" | "system_user" => "user",
        "day" => "dayofmonth",
        "substring" | "mid" => "substr",
        "ucase" => "upper",
        "lcase" => "lower",
        "octet_length" => "length",
        "character_length" => "char_length",
        "ceil" => "ceiling",
        "power" => "pow",
        "atan2" => "atan",
        name => name,
    }
}

/// A call of this function, whose name is in lower case.
pub(super) fn write_function(name: &str, arguments: &[Expr], style: Style<'_>, out: &mut String) -> Written {
    match (name, arguments) {
        ("isnull", [operand]) => write_around("(", operand, " is null)", style, out),
        ("instr", [text, part]) => {
            write_around("locate(", part, ",", style, out)?;
            write_around("", text, ")", style, out)
        }
        ("date", [moment]) => write_around("cast(", moment, " as date)", style, out),
        ("yearweek", [day]) => write_around("yearweek(", day, ",0)", style, out),
        ("bin", [number]) => write_around("conv(", number, ",10,2)", style, out),
        ("oct", [number]) => write_around("conv(", number, ",10,8)", style, out),
        ("mod", [left, right]) => {
            write_around("(", left, " % ", style, out)?;
            write_around("", right, ")", style, out)
        }
        ("datediff", [left, right]) => {
            write_around("(to_days(", left, ") - to_days(", style, out)?;
            write_around("", right, "))", style, out)
        }
        _ => {
            out.push_str(name_of(name));
            write_list("(", arguments, ",", ")", style, out)
        }
    }
}

/// REGEXP and NOT REGEXP.
pub(super) fn write_regexp(
    (operand, pattern): (&Expr, &Expr),
    negated: bool,
    style: Style<'_>,
    out: &mut String,
) -> Written {
    out.push_str(if negated { "(not(" } else { "" });
    write_around("regexp_like(", operand, ",", style, out)?;
    write_around("", pattern, if negated { ")))" } else { ")" }, style, out)
}

/// LIKE and NOT LIKE.
pub(super) fn write_like(
    (operand, pattern): (&Expr, &Expr),
    escape: Option<&Expr>,
    negated: bool,
    style: Style<'_>,
    out: &mut String,
) -> Written {
    write_around(if negated { "(not((" } else { "(" }, operand, " like ", style, out)?;
    write(pattern, style, out)?;
    if let Some(escape) = escape {
        write_around(" escape ", escape, "", style, out)?;
    }
    out.push_str(if negated { ")))" } else { ")" });
    Ok(())
}

/// An operand with text before and behind it.
pub(super) fn write_around(
    before: &str,
    operand: &Expr,
    behind: &str,
    style: Style<'_>,
    out: &mut String,
) -> Written {
    out.push_str(before);
    write(operand, style, out)?;
    push(out, format_args!("{behind}"));
    Ok(())
}
