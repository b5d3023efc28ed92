//! Members of ENUM and SET that are there twice, as the column's collation sees them: an error in strict
//! mode.

use std::cmp::Ordering;

use sql::context::SqlContext;
use sql::errors;
use sql::result::SqlError;
use sql::value::collation;
use untorn::types::ColumnType;

/// Refuses or notes each member that comes once more.
///
/// # Errors
/// 1291 in strict mode.
pub(super) fn check_different(state: &SqlContext, column: &str, kind: &ColumnType) -> Result<(), SqlError> {
    let (members, rule, name) = match kind {
        ColumnType::Enum { members, collation } => (members, *collation, "ENUM"),
        ColumnType::Set { members, collation } => (members, *collation, "SET"),
        _ => return Ok(()),
    };
    let compared = |left: usize, right: usize| -> Ordering {
        let [left, right] = [left, right].map(|at| members.get(at).map_or(&b""[..], |text| text.as_bytes()));
        collation::compare(left, right, rule)
    };
    // There may be tens of thousands: equal ones are side by side when they are sorted.
    let mut sorted: Vec<usize> = (0..members.len()).collect();
    sorted.sort_by(|left, right| compared(*left, *right));
    let pairs = sorted.windows(2).filter(|pair| compared(pair[0], pair[1]).is_eq());
    let mut again: Vec<usize> = pairs.map(|pair| pair[0]).collect();
    again.sort_unstable();
    for member in again.into_iter().filter_map(|at| members.get(at)) {
        let error = errors::error(errors::DUPLICATED_VALUE_IN_TYPE, &[&column, member, &name]);
        if state.is_strict() {
            return Err(error);
        }
        state.note(error);
    }
    Ok(())
}
