//! The rows and columns of a JSON_TABLE as text, as MySQL writes them.

use untorn::types::Collation;

use super::{Unkept, Written, push, quoted_name, write_quoted};
use crate::ast::{DataType, JsonColumn, JsonInstead, JsonRows, JsonValueColumn};
use crate::catalog_views::column_type_text;
use crate::column_types::{chosen, column_type};

pub(super) fn write_rows(rows: &JsonRows, out: &mut String) -> Written {
    write_quoted(rows.path.as_bytes(), out);
    out.push_str(" columns (");
    for (at, column) in rows.columns.iter().enumerate() {
        out.push_str(if at > 0 { ", " } else { "" });
        match column {
            JsonColumn::Ordinality(name) => push(out, format_args!("{} for ordinality", quoted_name(name))),
            JsonColumn::Nested(rows) => {
                out.push_str("nested path ");
                write_rows(rows, out)?;
            }
            JsonColumn::Value(column) => write_column(column, out)?,
        }
    }
    out.push(')');
    Ok(())
}

fn write_column(column: &JsonValueColumn, out: &mut String) -> Written {
    push(out, format_args!("{} ", quoted_name(&column.name)));
    write_type(&column.data_type, out)?;
    out.push_str(if column.exists { " exists path " } else { " path " });
    write_quoted(column.path.as_bytes(), out);
    for (instead, when) in [(&column.on_empty, "empty"), (&column.on_error, "error")] {
        match instead {
            None => continue,
            Some(JsonInstead::Null) => out.push_str(" null"),
            Some(JsonInstead::Error) => out.push_str(" error"),
            Some(JsonInstead::Default(text)) => {
                out.push_str(" default ");
                write_quoted(text, out);
            }
        }
        push(out, format_args!(" on {when}"));
    }
    Ok(())
}

fn write_type(said: &DataType, out: &mut String) -> Written {
    let rule = Collation::Utf8mb4GeneralCi;
    let kind = column_type("", said, rule).map_err(|_| Unkept::Construct)?;
    out.push_str(&column_type_text(&kind));
    if said.charset.is_some() || said.collation.is_some() {
        let chosen = chosen(said.charset.as_deref(), said.collation.as_deref(), rule);
        let chosen = chosen.map_err(|_| Unkept::Construct)?;
        push(out, format_args!(" character set {}", chosen.charset().name()));
        if said.collation.is_some() {
            push(out, format_args!(" collate {}", chosen.name()));
        }
    }
    Ok(())
}
