//! DEFAULT expressions, generated columns and CHECK constraints, applied to a row in storage encoding.

use untorn::schema::ColumnDef;
use untorn::write::EncodedRow;

use super::change::{Changes, encode_value};
use crate::errors;
use crate::result::SqlError;
use crate::sql::expr::{Context, RowView};
use crate::sql::plan::change::ColumnDefault;
use crate::sql::plan::row_rules::RowRules;
use crate::sql::store::Storing;

/// A row's fields in storage encoding; `None` is NULL.
pub type Fields = Vec<Option<Vec<u8>>>;

/// Computes the columns that `wanted` names, in the order in which they read each other, and checks the row.
///
/// # Errors
/// A value that its column does not take; 3819 for a row that a constraint refuses.
pub fn apply(
    rules: &RowRules,
    defaults: &[ColumnDefault],
    wanted: impl Fn(u16) -> bool,
    fields: &mut [Option<Vec<u8>>],
    columns: &[ColumnDef],
    storing: &Storing<'_>,
    cx: &Context<'_>,
) -> Result<(), SqlError> {
    for column in rules.order.iter().copied().filter(|column| wanted(*column)) {
        let at = usize::from(column);
        let (ColumnDefault::Expression(expr) | ColumnDefault::Generated(expr)) = &defaults[at] else {
            continue;
        };
        let held = cx.state.held();
        let encoded = {
            let views = [RowView::Fields(fields, columns)];
            let value = expr.eval(&Context { rows: &views, ..*cx })?;
            encode_value(&value, &columns[at], storing, cx)?
        };
        cx.state.release_to(held);
        fields[at] = encoded;
    }
    let views = [RowView::Fields(fields, columns)];
    let cx = Context { rows: &views, ..*cx };
    for (name, condition) in &rules.checks {
        // NULL is not false.
        if condition.truth(&cx)? == Some(false) {
            return Err(errors::error(errors::CHECK_VIOLATED, &[name]));
        }
    }
    Ok(())
}

/// Applies a statement's changes to the `fields` of a row, those that [`RowRules::needed`] names, then the
/// rules. What the generated columns become is added to the changes.
///
/// # Errors
/// Those of [`apply`].
#[allow(clippy::too_many_arguments)]
pub fn change(
    rules: &RowRules,
    defaults: &[ColumnDefault],
    fields: &mut [Option<Vec<u8>>],
    stamps: &[(u16, Vec<u8>)],
    changes: &mut Changes,
    columns: &[ColumnDef],
    storing: &Storing<'_>,
    cx: &Context<'_>,
) -> Result<(), SqlError> {
    for (column, bytes) in stamps {
        fields[usize::from(*column)] = Some(bytes.clone());
    }
    for (column, field) in changes.iter() {
        fields[usize::from(*column)].clone_from(field);
    }
    let generated = |column: u16| matches!(defaults[usize::from(column)], ColumnDefault::Generated(_));
    let before: Vec<(u16, Option<Vec<u8>>)> = rules
        .order
        .iter()
        .filter(|column| generated(**column))
        .map(|column| (*column, fields[usize::from(*column)].clone()))
        .collect();
    apply(rules, defaults, generated, fields, columns, storing, cx)?;
    for (column, before) in before {
        let field = &fields[usize::from(column)];
        if *field != before {
            changes.push((column, field.clone()));
        }
    }
    Ok(())
}

/// Whether a row was refused by a CHECK constraint: IGNORE leaves such a row out.
pub fn is_refusal(error: &SqlError) -> bool {
    error.code == errors::CHECK_VIOLATED
}

/// The fields of a row, to be changed.
pub fn fields_of(row: &EncodedRow) -> Fields {
    row.fields().iter().map(|field| field.map(<[u8]>::to_vec)).collect()
}

/// The row of these fields.
pub fn set_fields(row: &mut EncodedRow, fields: &[Option<Vec<u8>>]) {
    row.clear();
    for field in fields {
        match field {
            Some(bytes) => row.push_bytes(bytes),
            None => row.push_null(),
        }
    }
}
