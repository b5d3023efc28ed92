//! The text of SHOW CREATE TABLE, and how SHOW CREATE quotes names.

use sql::catalog_views::{current_timestamp, default_clause, quoted, type_text};
use sql::sql_mode;
use untorn::Table;
use untorn::schema::{Default, KeyKind};
use untorn::types::{Charset, Collation, ColumnType};

/// A text whose names are in backquotes with them as a session with this SQL mode is shown names: ANSI_QUOTES
/// has them in quotes.
pub(super) fn requoted(text: &str, mode: u64) -> String {
    if mode & sql_mode::ANSI_QUOTES == 0 {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            // A text: its own quotes and backslashes have one before them.
            '\'' => {
                shown.push(letter);
                while let Some(inner) = rest.next() {
                    shown.push(inner);
                    match inner {
                        '\\' => shown.extend(rest.next()),
                        '\'' => break,
                        _ => {}
                    }
                }
            }
            '`' => {
                shown.push('"');
                while let Some(inner) = rest.next() {
                    match inner {
                        '`' if rest.next_if_eq(&'`').is_some() => shown.push('`'),
                        '`' => break,
                        '"' => shown.push_str("\"\""),
                        other => shown.push(other),
                    }
                }
                shown.push('"');
            }
            other => shown.push(other),
        }
    }
    shown
}

/// The statement that makes such a table, as a session with this SQL mode is shown it. As in MySQL the names
/// in expressions are in backquotes whatever it says.
pub(super) fn create_statement(table: &Table, mode: u64) -> String {
    let mut lines = Vec::new();
    let name = |name: &str| requoted(&format!("`{}`", name.replace('`', "``")), mode);
    for column in table.def.visible_columns() {
        let mut line = format!("  {} {}", name(&column.name), type_text(column));
        let rule = column.kind.collation();
        let said_by_table = rule == table.def.collation;
        if rule != Collation::Binary && !said_by_table {
            line.push_str(&format!(" CHARACTER SET {}", rule.charset().name()));
        }
        // As MySQL: what is not the default of its character set there is said at the column, too.
        if rule != Collation::Binary && !(said_by_table && is_default_in_mysql(rule)) {
            line.push_str(&format!(" COLLATE {}", rule.name()));
        }
        if let Some(expression) = &column.generated {
            let kept = if column.is_virtual { "VIRTUAL" } else { "STORED" };
            line.push_str(&format!(" GENERATED ALWAYS AS ({expression}) {kept}"));
        }
        if !column.nullable {
            line.push_str(" NOT NULL");
        } else if matches!(column.kind, ColumnType::Timestamp { .. }) {
            line.push_str(" NULL");
        }
        let now = current_timestamp(column);
        match &column.default {
            Some(Default::CurrentTimestamp) => line.push_str(&format!(" DEFAULT {now}")),
            Some(Default::Literal(_)) => {
                line.push_str(&format!(" DEFAULT {}", default_clause(column).unwrap_or_default()));
            }
            Some(Default::Expression(expression)) => line.push_str(&format!(" DEFAULT ({expression})")),
            None if column.generated.is_some() || column.without_default => {}
            None if column.nullable && shows_null(&column.kind) && !column.auto_increment => {
                line.push_str(" DEFAULT NULL")
            }
            None => {}
        }
        push_last_attributes(column, &mut line);
        lines.push(line);
    }
    for key in &table.def.keys {
        let parts: Vec<String> = key
            .parts
            .iter()
            .map(|part| {
                let column = &table.def.columns[usize::from(part.column)];
                let column = match &column.generated {
                    Some(expression) if column.hidden => format!("({expression})"),
                    _ => name(&column.name),
                };
                let column = part.prefix_chars.map_or(column.clone(), |chars| format!("{column}({chars})"));
                column + if part.descending { " DESC" } else { "" }
            })
            .collect();
        let parts = parts.join(",");
        let mut line = match key.kind {
            KeyKind::Primary => format!("  PRIMARY KEY ({parts})"),
            KeyKind::Unique => format!("  UNIQUE KEY {} ({parts})", name(&key.name)),
            KeyKind::Secondary => format!("  KEY {} ({parts})", name(&key.name)),
        };
        if !key.comment.is_empty() {
            line.push_str(&format!(" COMMENT {}", quoted(&key.comment)));
        }
        line.push_str(if key.invisible { " /*!80000 INVISIBLE */" } else { "" });
        lines.push(line);
    }
    for key in &table.def.foreign_keys {
        lines.push(format!("  {}", requoted(&key.clause(&table.database), mode)));
    }
    for check in &table.def.checks {
        let not_enforced = if check.enforced { "" } else { " /*!80016 NOT ENFORCED */" };
        lines.push(format!("  CONSTRAINT {} CHECK ({}){not_enforced}", name(&check.name), check.expression));
    }
    let temporary = if untorn::private::is_temporary(&table.database) { "TEMPORARY " } else { "" };
    let definition = format!("CREATE {temporary}TABLE {} (\n{}\n)", name(&table.name), lines.join(",\n"));
    if mode & sql_mode::ANSI != 0 {
        return definition;
    }
    let mut options = "ENGINE=InnoDB".to_owned();
    if let Some(next) = table.next_auto_increment().filter(|next| *next > 1) {
        options.push_str(&format!(" AUTO_INCREMENT={next}"));
    }
    let rule = table.def.collation;
    options.push_str(&format!(" DEFAULT CHARSET={}", rule.charset().name()));
    // As MySQL: another server's default of utf8mb4 may be another one.
    if rule.charset() == Charset::Utf8mb4 || rule != rule.charset().default_collation() {
        options.push_str(&format!(" COLLATE={}", rule.name()));
    }
    if !table.def.comment.is_empty() {
        options.push_str(&format!(" COMMENT={}", quoted(&table.def.comment)));
    }
    format!("{definition} {options}")
}

/// Whether MySQL gives this collation to texts that say only their character set.
fn is_default_in_mysql(rule: Collation) -> bool {
    match rule.charset() {
        Charset::Utf8mb4 => rule == Collation::Utf8mb40900AiCi,
        charset => rule == charset.default_collation(),
    }
}

/// Whether a column of this type is shown with the default NULL that it has: TEXT and BLOB are not.
fn shows_null(kind: &ColumnType) -> bool {
    !kind.is_blob() || *kind == ColumnType::Json
}

/// What is said of a column behind its default.
fn push_last_attributes(column: &untorn::schema::ColumnDef, line: &mut String) {
    if column.on_update_now {
        line.push_str(&format!(" ON UPDATE {}", current_timestamp(column)));
    }
    if column.auto_increment {
        line.push_str(" AUTO_INCREMENT");
    }
    if column.invisible {
        line.push_str(" /*!80023 INVISIBLE */");
    }
    if !column.comment.is_empty() {
        line.push_str(&format!(" COMMENT {}", quoted(&column.comment)));
    }
}
