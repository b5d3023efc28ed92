//! DEFAULT expressions, generated columns, CHECK constraints and WITH CHECK OPTION (1369), applied to a row
//! in storage encoding.

use untorn::schema::ColumnDef;
use untorn::write::EncodedRow;

use super::change::{Changes, encode_value};
use crate::context::SqlContext;
use crate::errors;
use crate::expr::{Context, Expr, RowView};
use crate::failure::Failure;
use crate::plan::change::ColumnDefault;
use crate::plan::row_rules::RowRules;
use crate::result::SqlError;
use crate::stored_values::Storing;

/// A row's fields in storage encoding; `None` is NULL.
pub type Fields = Vec<Option<Vec<u8>>>;

/// Computes the columns that `wanted` names, in the order in which they read each other.
///
/// # Errors
/// A value that its column does not take.
pub fn compute(
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
        let (_, warnings) = cx.state.warnings_so_far();
        let encoded = {
            let views = [RowView::Fields(fields, columns)];
            let cx = Context { rows: &views, ..*cx };
            value_of(expr, &columns[at], rules, storing, &cx)
        };
        let encoded = match columns[at].hidden_for() {
            None => encoded?,
            Some(key) => {
                let mut raised = cx.state.warnings.borrow_mut();
                raised.iter_mut().skip(warnings).for_each(|(_, warning)| of_key(warning, key, storing.row));
                encoded.map_err(|mut error| {
                    of_key(&mut error, key, storing.row);
                    error
                })?
            }
        };
        cx.state.release_to(held);
        fields[at] = encoded;
    }
    Ok(())
}

/// The value of a computed column, as it is stored.
fn value_of(
    expr: &Expr,
    column: &ColumnDef,
    rules: &RowRules,
    storing: &Storing<'_>,
    cx: &Context<'_>,
) -> Result<Option<Vec<u8>>, SqlError> {
    let value = expr.eval(cx)?;
    if rules.refuses_null && value.is_null() && !column.nullable {
        return Err(errors::error(errors::BAD_NULL, &[&column.name]));
    }
    encode_value(&value, column, storing, cx)
}

/// Says of a value that is cut for which functional index.
fn of_key(error: &mut SqlError, key: &str, row: u64) {
    const CUT: [u16; 4] = [
        errors::WARN_DATA_TRUNCATED,
        errors::TRUNCATED_WRONG_VALUE,
        errors::TRUNCATED_WRONG_VALUE_FOR_FIELD,
        errors::DATA_TOO_LONG,
    ];
    if CUT.contains(&error.code) {
        *error = errors::error(errors::WARN_DATA_TRUNCATED_FUNCTIONAL_INDEX, &[&key, &row]);
    }
}

/// Errors of a constraint that say that it refuses the row.
const UNDECIDED: [u16; 3] =
    [errors::DIVISION_BY_ZERO, errors::DATA_OUT_OF_RANGE, errors::TRUNCATED_WRONG_VALUE];

/// Checks a row.
///
/// # Errors
/// 3819 if a constraint refuses it. As in MySQL that is also the error where the constraint has no value.
/// 1369 if it is none of the view's that it is written through.
pub fn check(
    rules: &RowRules,
    fields: &[Option<Vec<u8>>],
    columns: &[ColumnDef],
    cx: &Context<'_>,
) -> Result<(), SqlError> {
    let views = [RowView::Fields(fields, columns)];
    let cx = Context { rows: &views, ..*cx };
    for (name, condition) in &rules.checks {
        let refused = match condition.truth(&cx) {
            // NULL is not false.
            Ok(truth) => truth == Some(false),
            Err(error) if UNDECIDED.contains(&error.code) => true,
            Err(error) => return Err(error),
        };
        if refused {
            return Err(errors::error(errors::CHECK_VIOLATED, &[name]));
        }
    }
    let view =
        rules.view.iter().flat_map(|view| view.conditions.iter().map(move |condition| (view, condition)));
    for (view, condition) in view {
        if condition.truth(&cx)? != Some(true) {
            return Err(errors::error(errors::VIEW_CHECK_FAILED, &[&view.database, &view.name]));
        }
    }
    Ok(())
}

/// Applies a statement's changes to the `fields` of a row, those that [`RowRules::needed`] names, then the
/// rules. What the generated columns become is added to the changes. A row that stays as it is is not
/// checked.
///
/// # Errors
/// Those of [`compute`] and [`check`].
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
    // A row that does not change keeps its time.
    for (column, bytes) in stamps.iter().filter(|_| !changes.is_empty()) {
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
    compute(rules, defaults, generated, fields, columns, storing, cx)?;
    for (column, before) in before {
        let field = &fields[usize::from(column)];
        if *field != before {
            changes.push((column, field.clone()));
        }
    }
    if changes.is_empty() { Ok(()) } else { check(rules, fields, columns, cx) }
}

/// Whether a row was refused by a CHECK constraint, a view or a foreign key: IGNORE leaves such a row out.
pub fn is_refusal(error: &SqlError) -> bool {
    const REFUSALS: [u16; 4] = [
        errors::CHECK_VIOLATED,
        errors::VIEW_CHECK_FAILED,
        errors::NO_REFERENCED_ROW,
        errors::ROW_IS_REFERENCED,
    ];
    REFUSALS.contains(&error.code)
}

/// The outcome of a write; `None` for a row that is refused and left out because of IGNORE, which warns.
///
/// # Errors
/// Those of the write.
pub fn ignoring<T>(
    written: Result<T, untorn::Error>,
    ignore: bool,
    state: &SqlContext,
) -> Result<Option<T>, Failure> {
    match written.map_err(Failure::from) {
        Ok(written) => Ok(Some(written)),
        Err(Failure::Sql(error)) if ignore && is_refusal(&error) => {
            state.warn(error);
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
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
