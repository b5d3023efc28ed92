//! Aggregates: what they are. How they gather values is in `crates/sql/src/exec/aggregate.rs`.

use untorn::types::ColumnType;

use super::Source;
use crate::expr::Expr;
use crate::expr::types::Type;
use crate::result::kind;

/// Which aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AggregateKind {
    Count,
    Sum,
    Average,
    Min,
    Max,
    GroupConcat,
    BitAnd,
    BitOr,
    BitXor,
    /// JSON_ARRAYAGG.
    JsonArray,
    /// JSON_OBJECTAGG.
    JsonObject,
    /// Variance and standard deviation: population or sample, root or not.
    Variance {
        sample: bool,
        root: bool,
    },
}

impl AggregateKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Average => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::GroupConcat => "group_concat",
            Self::BitAnd => "bit_and",
            Self::BitOr => "bit_or",
            Self::BitXor => "bit_xor",
            Self::JsonArray => "json_arrayagg",
            Self::JsonObject => "json_objectagg",
            Self::Variance { sample: false, root: false } => "variance",
            Self::Variance { sample: false, root: true } => "std",
            Self::Variance { sample: true, root: false } => "var_samp",
            Self::Variance { sample: true, root: true } => "stddev_samp",
        }
    }

    /// The aggregate of this upper-case name.
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "COUNT" => Self::Count,
            "SUM" => Self::Sum,
            "AVG" => Self::Average,
            "MIN" => Self::Min,
            "MAX" => Self::Max,
            "GROUP_CONCAT" => Self::GroupConcat,
            "BIT_AND" => Self::BitAnd,
            "BIT_OR" => Self::BitOr,
            "BIT_XOR" => Self::BitXor,
            "JSON_ARRAYAGG" => Self::JsonArray,
            "JSON_OBJECTAGG" => Self::JsonObject,
            "STD" | "STDDEV" | "STDDEV_POP" => Self::Variance { sample: false, root: true },
            "STDDEV_SAMP" => Self::Variance { sample: true, root: true },
            "VARIANCE" | "VAR_POP" => Self::Variance { sample: false, root: false },
            "VAR_SAMP" => Self::Variance { sample: true, root: false },
            _ => return None,
        })
    }

    /// Its type from its argument's.
    pub fn result_type(self, argument: Option<Type>, division_digits: u8) -> Type {
        let argument = argument.unwrap_or(Type::INT);
        let exact = argument.is_integer() || argument.kind == kind::NEWDECIMAL || argument.kind == kind::NULL;
        let (precision, scale) = argument.digits();
        match self {
            Self::Count => Type { length: 21, ..Type::INT }.not_null(),
            Self::BitAnd | Self::BitOr | Self::BitXor => Type::UINT.not_null(),
            Self::Sum if exact => Type::decimal(precision.saturating_add(22).min(65), scale),
            Self::Average if exact => {
                let scale = (scale + division_digits).min(30);
                Type::decimal(precision.saturating_add(division_digits).clamp(scale, 65), scale)
            }
            // FLOAT(M,D) and DOUBLE(M,D) show that many digits, their average some more.
            Self::Sum if argument.decimals <= 30 => Type { decimals: argument.decimals, ..Type::DOUBLE },
            Self::Average if argument.decimals <= 30 && argument.is_double() => {
                Type { decimals: (argument.decimals + division_digits).min(30), ..Type::DOUBLE }
            }
            Self::Sum | Self::Average | Self::Variance { .. } => Type::DOUBLE,
            Self::Min | Self::Max => Type { nullable: true, ..argument },
            Self::GroupConcat => Type::text(1024),
            Self::JsonArray | Self::JsonObject => Type::JSON,
        }
    }
}

/// A bound aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Which.
    pub kind: AggregateKind,
    /// Arguments; none for `COUNT(*)`.
    pub arguments: Vec<Expr>,
    /// DISTINCT.
    pub distinct: bool,
    /// ORDER BY of GROUP_CONCAT.
    pub order: Vec<(Expr, bool)>,
    /// SEPARATOR of GROUP_CONCAT.
    pub separator: Vec<u8>,
    /// Its type.
    pub ty: Type,
}

impl Aggregate {
    /// The definition of the ENUM or SET column of which it answers a value.
    pub fn members<'s>(&self, sources: &'s [Source]) -> Option<&'s ColumnType> {
        match (self.kind, &self.arguments[..]) {
            (AggregateKind::Min | AggregateKind::Max, [Expr::Column { source, column }]) => {
                sources.get(usize::from(*source))?.members(*column)
            }
            _ => None,
        }
    }
}
