//! A query as text again: the definition of a view.
//!
//! Names are in backquotes and say where they are from, every column of the select list has its name behind
//! AS, and joins are in parentheses, as MySQL writes them. What only a statement can have is refused.

mod json_table;

use super::conditions::write_condition;
use super::{
    Databases, Style, Unkept, Written, push, quoted_name, symbol, write, write_in, write_list, write_quoted,
};
use crate::ast::{
    Destination, Expr, Frame, FrameBound, FrameUnit, HintKind, JoinKind, Limit, LockWait, Locking, OrderItem,
    Over, Query, Select, SelectItem, TableRef, WindowSpec,
};

impl Query {
    /// The query as text. Where all its tables are in `here` that database is not named.
    ///
    /// # Errors
    /// What it has in it that only a statement can have.
    pub fn to_text(&self, here: Option<&str>) -> Result<String, Unkept> {
        let text = |databases| {
            let mut out = String::new();
            write_query(self, Style { whole: true, databases, unnamed: false }, &mut out).map(|()| out)
        };
        if let Some(here) = here {
            let short = text(Databases::AllBut(here))?;
            if short == text(Databases::None)? {
                return Ok(short);
            }
        }
        text(Databases::All)
    }
}

/// An aggregate with DISTINCT, a star, an order or a separator.
pub(super) fn write_aggregate(call: &Expr, style: Style<'_>, out: &mut String) -> Written {
    let Expr::Function { name, arguments, distinct, star, order_by, separator } = call else {
        return Err(Unkept::Construct);
    };
    if !style.whole {
        return Err(Unkept::Construct);
    }
    out.push_str(&name.to_ascii_lowercase());
    if *star {
        out.push_str("(0)");
        return Ok(());
    }
    write_list(if *distinct { "(distinct " } else { "(" }, arguments, ",", "", style, out)?;
    write_order(order_by, (" ASC", " DESC"), style, out)?;
    if name == "GROUP_CONCAT" {
        out.push_str(" separator ");
        write_quoted(separator.as_deref().unwrap_or(b","), out);
    }
    out.push(')');
    Ok(())
}

/// What only a query has.
pub(super) fn write_part(expr: &Expr, style: Style<'_>, out: &mut String) -> Written {
    if !style.whole {
        return Err(Unkept::Construct);
    }
    let inner = Style { unnamed: true, ..style };
    match expr {
        Expr::Subquery(query) => write_nested("(", query, inner, out)?,
        Expr::Exists(query) => write_nested("exists(", query, inner, out)?,
        Expr::InQuery { operand, query, negated } => {
            write_in(operand, *negated, style, out)?;
            write_nested("(", query, inner, out)?;
            out.push(')');
        }
        Expr::Quantified { operator, operand, query, all } => {
            out.push('(');
            write(operand, style, out)?;
            push(out, format_args!(" {} {} ", symbol(*operator), if *all { "all" } else { "any" }));
            write_nested("(", query, inner, out)?;
            out.push(')');
        }
        Expr::Row(items) => write_list("(", items, ",", ")", style, out)?,
        Expr::Window { call, over } => {
            write(call, style, out)?;
            out.push_str(" OVER ");
            match over {
                Over::Named(name) => out.push_str(&quoted_name(name)),
                Over::Own(window) => {
                    write_window(window, style, out)?;
                    out.push(' ');
                }
            }
        }
        _ => return Err(Unkept::Construct),
    }
    Ok(())
}

fn write_nested(open: &str, query: &Query, style: Style<'_>, out: &mut String) -> Written {
    out.push_str(open);
    write_query(query, style, out)?;
    out.push(')');
    Ok(())
}

fn write_query(query: &Query, style: Style<'_>, out: &mut String) -> Written {
    if query.into != Destination::Client {
        return Err(Unkept::Construct);
    }
    for (at, table) in query.with.iter().enumerate() {
        let recursive = if at == 0 && table.recursive { "with recursive " } else { "with " };
        push(out, format_args!("{}{}", if at == 0 { recursive } else { ", " }, quoted_name(&table.name)));
        if !table.columns.is_empty() {
            push(out, format_args!(" ({})", names(&table.columns)));
        }
        write_nested(" as (", &table.query, Style { unnamed: false, ..style }, out)?;
    }
    if !query.with.is_empty() {
        out.push(' ');
    }
    for (at, (all, select)) in query.selects.iter().enumerate() {
        if at > 0 {
            push(out, format_args!(" {} {}", query.operation.word(), if *all { "all " } else { "" }));
        }
        write_select(select, style, out)?;
    }
    write_order(&query.order_by, ("", " desc"), style, out)?;
    if let Some(limit) = &query.limit {
        write_limit(limit, style, out)?;
    }
    write_locking(query.locking, out);
    Ok(())
}

fn write_limit(Limit { count, offset }: &Limit, style: Style<'_>, out: &mut String) -> Written {
    out.push_str(" limit ");
    if let Some(offset) = offset {
        write(offset, style, out)?;
        out.push(',');
    }
    write(count, style, out)
}

fn write_locking(locking: Option<Locking>, out: &mut String) {
    let Some(Locking { exclusive, wait }) = locking else { return };
    out.push_str(if exclusive { " for update" } else { " for share" });
    out.push_str(match wait {
        LockWait::Wait => "",
        LockWait::NoWait => " nowait",
        LockWait::SkipLocked => " skip locked",
    });
}

fn names(list: &[String]) -> String {
    list.iter().map(|name| quoted_name(name)).collect::<Vec<_>>().join(",")
}

/// A query in parentheses that stands where a SELECT may.
fn in_parentheses(select: &Select) -> Option<&Query> {
    let all = [SelectItem::Star { database: None, table: None }];
    match &select.from {
        Some(TableRef::Derived { query, alias, .. }) if alias.is_empty() && select.items == all => {
            Some(query)
        }
        _ => None,
    }
}

fn write_select(select: &Select, style: Style<'_>, out: &mut String) -> Written {
    if let Some(query) = in_parentheses(select) {
        return write_nested("(", query, style, out);
    }
    if select.is_values {
        // It has names that nothing else gives.
        return write_values(select, style, out);
    }
    out.push_str("select ");
    if select.straight {
        out.push_str("straight_join ");
    }
    if select.distinct {
        out.push_str("distinct ");
    }
    for (at, item) in select.items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        match item {
            SelectItem::Star { database, table } => {
                for name in [database, table].into_iter().flatten() {
                    push(out, format_args!("{}.", quoted_name(name)));
                }
                out.push('*');
            }
            SelectItem::Expr { expr, alias, text } => {
                write(expr, style, out)?;
                let name = alias.as_ref().unwrap_or(text);
                // Every element has got a name by now, most of them that of their text.
                if !style.unnamed || name != text {
                    push(out, format_args!(" AS {}", quoted_name(name)));
                }
            }
        }
    }
    if let Some(from) = &select.from {
        out.push_str(" from ");
        write_table(from, style, out)?;
    }
    if let Some(filter) = &select.filter {
        out.push_str(" where ");
        write_condition(filter, style, out)?;
    }
    if !select.group_by.is_empty() {
        write_list(" group by ", &select.group_by, ",", "", style, out)?;
        out.push_str(if select.rollup { " with rollup" } else { "" });
    }
    if let Some(having) = &select.having {
        out.push_str(" having ");
        write_condition(having, style, out)?;
    }
    for (at, (name, window)) in select.windows.iter().enumerate() {
        push(out, format_args!("{}{} AS ", if at == 0 { " window " } else { ", " }, quoted_name(name)));
        write_window(window, style, out)?;
        out.push(' ');
    }
    Ok(())
}

fn write_values(select: &Select, style: Style<'_>, out: &mut String) -> Written {
    out.push_str("values row(");
    for (at, item) in select.items.iter().enumerate() {
        out.push_str(if at > 0 { "," } else { "" });
        match item {
            SelectItem::Expr { expr, .. } => write(expr, style, out)?,
            SelectItem::Star { .. } => return Err(Unkept::Construct),
        }
    }
    out.push(')');
    Ok(())
}

fn write_table(table: &TableRef, style: Style<'_>, out: &mut String) -> Written {
    match table {
        TableRef::Table { name, alias, hints } => {
            if let Some(database) =
                name.database.as_deref().filter(|database| style.databases.names(database))
            {
                push(out, format_args!("{}.", quoted_name(database)));
            }
            out.push_str(&quoted_name(&name.name));
            if let Some(alias) = alias {
                push(out, format_args!(" {}", quoted_name(alias)));
            }
            for hint in hints {
                let kind = match hint.kind {
                    HintKind::Use => "use",
                    HintKind::Force | HintKind::Handler => "force",
                    HintKind::Ignore => "ignore",
                };
                push(out, format_args!(" {kind} index ({})", names(&hint.indexes)));
            }
        }
        TableRef::Derived { query, alias, columns, lateral } => {
            let style = Style { unnamed: false, ..style };
            write_nested(if *lateral { "lateral (" } else { "(" }, query, style, out)?;
            push(out, format_args!(" {}", quoted_name(alias)));
            if !columns.is_empty() {
                push(out, format_args!(" ({})", names(columns)));
            }
        }
        TableRef::JsonTable { table, alias } => {
            out.push_str("json_table(");
            write(&table.document, style, out)?;
            out.push_str(", ");
            json_table::write_rows(&table.rows, out)?;
            push(out, format_args!(") {}", quoted_name(alias)));
        }
        TableRef::Join { left, right, kind, on, using, natural } => {
            out.push('(');
            write_table(left, style, out)?;
            out.push_str(if *natural { " natural" } else { "" });
            out.push_str(match kind {
                JoinKind::Inner => " join ",
                JoinKind::Straight => " straight_join ",
                JoinKind::Left => " left join ",
                JoinKind::Right => " right join ",
            });
            write_table(right, style, out)?;
            if let Some(on) = on {
                out.push_str(" on(");
                write_condition(on, style, out)?;
                out.push(')');
            }
            if !using.is_empty() {
                push(out, format_args!(" using ({})", names(using)));
            }
            out.push(')');
        }
    }
    Ok(())
}

fn write_order(
    order_by: &[OrderItem],
    (ascending, descending): (&str, &str),
    style: Style<'_>,
    out: &mut String,
) -> Written {
    for (at, item) in order_by.iter().enumerate() {
        out.push_str(if at == 0 { " order by " } else { "," });
        write(&item.expr, style, out)?;
        out.push_str(if item.descending { descending } else { ascending });
    }
    Ok(())
}

fn write_window(window: &WindowSpec, style: Style<'_>, out: &mut String) -> Written {
    out.push('(');
    if let Some(base) = &window.base {
        push(out, format_args!("{} ", quoted_name(base)));
    }
    if !window.partition_by.is_empty() {
        write_list("PARTITION BY ", &window.partition_by, ",", " ", style, out)?;
    }
    for (at, item) in window.order_by.iter().enumerate() {
        out.push_str(if at == 0 { "ORDER BY " } else { "," });
        write(&item.expr, style, out)?;
        out.push_str(if item.descending { " desc" } else { "" });
    }
    if !window.order_by.is_empty() {
        out.push(' ');
    }
    if let Some(Frame { unit, start, end }) = &window.frame {
        out.push_str(match unit {
            FrameUnit::Rows => "ROWS BETWEEN ",
            FrameUnit::Range => "RANGE BETWEEN ",
        });
        write_bound(start, style, out)?;
        out.push_str(" AND ");
        write_bound(end, style, out)?;
    }
    out.push(')');
    Ok(())
}

fn write_bound(bound: &FrameBound, style: Style<'_>, out: &mut String) -> Written {
    match bound {
        FrameBound::UnboundedPreceding => out.push_str("UNBOUNDED PRECEDING"),
        FrameBound::UnboundedFollowing => out.push_str("UNBOUNDED FOLLOWING"),
        FrameBound::CurrentRow => out.push_str("CURRENT ROW"),
        FrameBound::Preceding(offset) => {
            write(offset, style, out)?;
            out.push_str(" PRECEDING");
        }
        FrameBound::Following(offset) => {
            write(offset, style, out)?;
            out.push_str(" FOLLOWING");
        }
    }
    Ok(())
}
