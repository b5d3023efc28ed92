//! The columns of a table that is made of a query.
//!
//! An item that is a column of a table has its definition: type, default, comment, but neither its keys nor
//! AUTO_INCREMENT. Any other item gets a column of its type. One that is never NULL has the zero of its type
//! for a default, as in MySQL, unless it is a date.

use untorn::schema::{ColumnDef, Default};
use untorn::types::{Collation, ColumnType, SizeClass};

use super::SelectPlan;
use super::source::SourceKind;
use crate::errors;
use crate::expr::Expr;
use crate::expr::types::Type;
use crate::parser::is_wrong_column;
use crate::result::{SqlError, kind};

/// Longer computed text is TEXT.
const VARCHAR_MAX: u32 = 512;

/// Integers of fewer digits than this are INT.
const BIGINT_DIGITS: u32 = 10;

/// The columns.
///
/// # Errors
/// 1060 for a name that comes twice, 1166 for one that no column may have.
pub fn created_columns(plan: &SelectPlan) -> Result<Vec<ColumnDef>, SqlError> {
    let mut columns: Vec<ColumnDef> = Vec::with_capacity(plan.types.len());
    for (at, meta) in plan.columns.metas().iter().enumerate() {
        if is_wrong_column(&meta.name) {
            return Err(errors::error(errors::WRONG_COLUMN_NAME, &[&meta.name]));
        }
        if columns.iter().any(|column| column.name.eq_ignore_ascii_case(&meta.name)) {
            return Err(errors::error(errors::DUP_FIELDNAME, &[&meta.name]));
        }
        columns.push(ColumnDef { name: meta.name.clone(), ..column(plan, at) });
    }
    Ok(columns)
}

pub(super) fn column(plan: &SelectPlan, at: usize) -> ColumnDef {
    let ty = plan.types[at];
    let mut column = match plan.items.get(at) {
        Some(Expr::Column { source, column }) if plan.unions.is_empty() => {
            let (source, column) = (usize::from(*source), usize::from(*column));
            let mut inner = plan.steps.iter().filter_map(|step| Some(step.source..=step.inner_last?));
            let outer = inner.any(|sources| sources.contains(&source));
            let defined = match plan.sources.get(source).map(|source| &source.kind) {
                Some(SourceKind::Table(table)) => table.0.def.columns.get(column).map(copied),
                Some(SourceKind::Derived(inner))
                    if inner.recursion.is_none() && column < inner.types.len() =>
                {
                    Some(self::column(inner, column))
                }
                _ => None,
            };
            let mut defined = defined.unwrap_or_else(|| typed(ty));
            defined.nullable |= outer || ty.nullable;
            defined
        }
        _ => typed(ty),
    };
    (column.auto_increment, column.invisible) = (false, false);
    column
}

/// A column of a table as that of another one.
fn copied(column: &ColumnDef) -> ColumnDef {
    let mut copied = column.clone();
    (copied.generated, copied.is_virtual) = (None, false);
    if column.auto_increment {
        copied.default = Some(Default::Literal(b"0".to_vec()));
    }
    copied
}

/// A column of a computed value.
pub(super) fn typed(ty: Type) -> ColumnDef {
    let kind = column_type(ty);
    let zero = match &kind {
        kind if kind.integer().is_some() => Some("0".to_owned()),
        ColumnType::Float | ColumnType::Double => Some("0".to_owned()),
        ColumnType::Decimal { scale: 0, .. } => Some("0".to_owned()),
        ColumnType::Decimal { scale, .. } => Some(format!("0.{}", "0".repeat(usize::from(*scale)))),
        ColumnType::Time { .. } => Some("00:00:00".to_owned()),
        kind if kind.is_string() && !kind.is_blob() => Some(String::new()),
        _ => None,
    };
    let mut column = ColumnDef::new("", kind);
    column.nullable = ty.nullable;
    if !ty.nullable {
        column.default = zero.map(|zero| Default::Literal(zero.into_bytes()));
    }
    column
}

fn column_type(ty: Type) -> ColumnType {
    let Type { unsigned, length, collation, .. } = ty;
    let fraction = if ty.decimals <= 6 { ty.decimals } else { 0 };
    match ty.kind {
        kind::TINY => ColumnType::TinyInt { unsigned },
        kind::SHORT => ColumnType::SmallInt { unsigned },
        kind::INT24 => ColumnType::MediumInt { unsigned },
        kind::LONG => ColumnType::Int { unsigned },
        kind::LONGLONG if length < BIGINT_DIGITS => ColumnType::Int { unsigned },
        kind::LONGLONG => ColumnType::BigInt { unsigned },
        kind::YEAR => ColumnType::Year,
        kind::FLOAT => ColumnType::Float,
        kind::DOUBLE => ColumnType::Double,
        kind::NEWDECIMAL => {
            let (precision, scale) = ty.digits();
            ColumnType::Decimal { precision: precision.max(scale).max(1), scale: scale.min(30) }
        }
        kind::DATE => ColumnType::Date,
        kind::DATETIME => ColumnType::DateTime { fraction },
        kind::TIMESTAMP => ColumnType::Timestamp { fraction },
        kind::TIME => ColumnType::Time { fraction },
        kind::JSON => ColumnType::Json,
        kind::BIT => ColumnType::Bit { bits: length.clamp(1, 64) as u8 },
        kind::NULL => ColumnType::VarBinary { bytes: 0 },
        kind::BLOB if collation == Collation::Binary => ColumnType::Blob { size: size_class(length) },
        kind::BLOB => ColumnType::Text { size: size_class(length), collation },
        _ if collation == Collation::Binary && length <= VARCHAR_MAX => {
            ColumnType::VarBinary { bytes: length }
        }
        _ if collation == Collation::Binary => ColumnType::Blob { size: long_class(length) },
        _ if length <= VARCHAR_MAX => ColumnType::VarChar { chars: length, collation },
        _ => {
            let bytes = length.saturating_mul(collation.bytes_per_char_max());
            ColumnType::Text { size: long_class(bytes), collation }
        }
    }
}

fn long_class(bytes: u32) -> SizeClass {
    if bytes <= 65_535 { SizeClass::Normal } else { SizeClass::Long }
}

fn size_class(bytes: u32) -> SizeClass {
    match bytes {
        0..=255 => SizeClass::Tiny,
        256..=65_535 => SizeClass::Normal,
        65_536..=16_777_215 => SizeClass::Medium,
        _ => SizeClass::Long,
    }
}
