//! Expressions.

// The fields of variants say by their names what they are.
#![allow(missing_docs)]

use std::sync::Arc;

use super::{OrderItem, Over, Query};
use crate::expr::ValueSet;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `NULL`.
    Null,
    /// An integer literal (up to 2^64-1; larger ones are [`Expr::Decimal`]).
    Integer(u64),
    /// A literal with a point, as written.
    Decimal(String),
    /// `TRUE`, `FALSE`.
    Truth(bool),
    /// A literal with an exponent.
    Float(f64),
    /// A string with its introducer (`_binary`), if any.
    Text { bytes: Vec<u8>, introducer: Option<String> },
    /// `0xAB`, `x'AB'`, `b'01'`.
    Binary(Vec<u8>),
    /// `DATE '…'`, `TIME '…'`, `TIMESTAMP '…'`.
    Temporal { kind: TemporalKind, text: Vec<u8> },
    /// A column, with database and table when qualified.
    Column { database: Option<String>, table: Option<String>, name: String },
    /// The n-th `?`.
    Parameter(u16),
    /// `@name`.
    UserVariable(String),
    /// `@name := value`.
    Assign(String, Box<Expr>),
    /// `@@[scope.]name`.
    SystemVariable { scope: Option<Scope>, name: String },
    /// `DEFAULT` or `DEFAULT(column)`.
    Default(Option<Box<Expr>>),
    /// `VALUES(column)` in ON DUPLICATE KEY UPDATE.
    InsertedValue(String),
    /// Prefix operator.
    Unary(UnaryOperator, Box<Expr>),
    /// `a AND b AND c …`.
    And(Vec<Expr>),
    /// `a OR b OR c …`.
    Or(Vec<Expr>),
    /// Infix operator, neither AND nor OR.
    Binary2(BinaryOperator, Box<Expr>, Box<Expr>),
    /// Arithmetic with two operators or more, from left to right: `((a + b) - c) …`.
    Chain(Box<Expr>, Vec<(BinaryOperator, Expr)>),
    /// `x IS [NOT] NULL`.
    IsNull { operand: Box<Expr>, negated: bool },
    /// `x IS [NOT] TRUE|FALSE|UNKNOWN` (`None`: UNKNOWN).
    IsTruth { operand: Box<Expr>, truth: Option<bool>, negated: bool },
    /// `x [NOT] BETWEEN low AND high`.
    Between { operand: Box<Expr>, low: Box<Expr>, high: Box<Expr>, negated: bool },
    /// `x [NOT] IN (list)`.
    InList { operand: Box<Expr>, list: Vec<Expr>, negated: bool },
    /// The same with many constants of one kind.
    InConstants { operand: Box<Expr>, constants: Arc<ValueSet>, negated: bool },
    /// `x [NOT] IN (SELECT …)`.
    InQuery { operand: Box<Expr>, query: Box<Query>, negated: bool },
    /// `operand > ALL (query)` and its like.
    Quantified { operator: BinaryOperator, operand: Box<Expr>, query: Box<Query>, all: bool },
    /// `x [NOT] LIKE pattern [ESCAPE c]`.
    Like { operand: Box<Expr>, pattern: Box<Expr>, escape: Option<Box<Expr>>, negated: bool },
    /// `x [NOT] REGEXP pattern`.
    Regexp { operand: Box<Expr>, pattern: Box<Expr>, negated: bool },
    /// `CASE`.
    Case { operand: Option<Box<Expr>>, whens: Vec<(Expr, Expr)>, otherwise: Option<Box<Expr>> },
    /// A function call; `distinct` and `star` for aggregates.
    Function {
        name: String,
        arguments: Vec<Expr>,
        distinct: bool,
        star: bool,
        order_by: Vec<OrderItem>,
        separator: Option<Vec<u8>>,
    },
    /// A function over a window.
    Window { call: Box<Expr>, over: Over },
    /// `CAST(x AS type)` and `CONVERT(x, type)`.
    Cast { operand: Box<Expr>, target: CastType },
    /// `CONVERT(x USING charset)`.
    ConvertCharset { operand: Box<Expr>, charset: String },
    /// `x COLLATE name`.
    Collate { operand: Box<Expr>, collation: String },
    /// `INTERVAL n UNIT`, an operand of `+`, `-`, DATE_ADD, DATE_SUB.
    Interval { amount: Box<Expr>, unit: IntervalUnit },
    /// `JSON_VALUE(document, path RETURNING type … ON EMPTY … ON ERROR)`.
    JsonValue(Box<JsonValue>),
    /// `EXTRACT(unit FROM x)`.
    Extract { unit: IntervalUnit, operand: Box<Expr> },
    /// `TRIM([side] [what] FROM x)`.
    Trim { side: TrimSide, what: Option<Box<Expr>>, operand: Box<Expr> },
    /// `(SELECT …)` as a scalar.
    Subquery(Box<Query>),
    /// `[NOT] EXISTS (SELECT …)`.
    Exists(Box<Query>),
    /// `(a, b, …)`.
    Row(Vec<Expr>),
}

impl Expr {
    /// Whether it is a value that stands in the text, a number with its sign too.
    pub fn is_literal(&self) -> bool {
        match self {
            Expr::Unary(UnaryOperator::Minus | UnaryOperator::Plus, operand) => operand.is_literal(),
            Expr::Null
            | Expr::Integer(_)
            | Expr::Decimal(_)
            | Expr::Float(_)
            | Expr::Text { .. }
            | Expr::Binary(_)
            | Expr::Truth(_)
            | Expr::Temporal { .. } => true,
            _ => false,
        }
    }

    /// Whether it is a condition, as far as its outermost operator says.
    pub fn is_condition(&self) -> bool {
        match self {
            Expr::And(_)
            | Expr::Or(_)
            | Expr::Truth(_)
            | Expr::Unary(UnaryOperator::Not, _)
            | Expr::IsNull { .. }
            | Expr::IsTruth { .. }
            | Expr::Between { .. }
            | Expr::InList { .. }
            | Expr::InConstants { .. }
            | Expr::InQuery { .. }
            | Expr::Exists(_)
            | Expr::Like { .. }
            | Expr::Regexp { .. } => true,
            Expr::Binary2(operator, ..) => !operator.is_arithmetic(),
            Expr::Chain(_, links) => links.last().is_some_and(|(operator, _)| !operator.is_arithmetic()),
            Expr::Function { name, .. } => CONDITIONS.iter().any(|known| known.eq_ignore_ascii_case(name)),
            _ => false,
        }
    }
}

/// Functions that are conditions.
const CONDITIONS: [&str; 9] = [
    "ISNULL",
    "STRCMP",
    "REGEXP_LIKE",
    "IS_UUID",
    "JSON_VALID",
    "JSON_CONTAINS",
    "JSON_CONTAINS_PATH",
    "JSON_OVERLAPS",
    "MEMBER OF",
];

/// What kind of temporal literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemporalKind {
    /// `DATE '…'`.
    Date,
    /// `TIME '…'`.
    Time,
    /// `TIMESTAMP '…'`.
    DateTime,
}

/// Which side TRIM works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimSide {
    /// Both.
    Both,
    /// Leading.
    Leading,
    /// Trailing.
    Trailing,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `~`
    BitNot,
    /// `NOT`, `!`
    Not,
    /// `BINARY`
    Binary,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryOperator {
    Xor,
    Equal,
    NullSafeEqual,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    BitOr,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
    BitXor,
    Concat,
}

impl BinaryOperator {
    /// `<<` or `>>`.
    pub fn is_shift(self) -> bool {
        matches!(self, BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight)
    }

    /// The comparison that holds where this one does not.
    pub fn opposite(self) -> BinaryOperator {
        use BinaryOperator::*;
        match self {
            Equal => NotEqual,
            NotEqual => Equal,
            Less => GreaterEqual,
            LessEqual => Greater,
            Greater => LessEqual,
            GreaterEqual => Less,
            other => other,
        }
    }

    /// Neither a comparison nor logic.
    pub fn is_arithmetic(self) -> bool {
        use BinaryOperator::*;
        !matches!(self, Xor | Equal | NullSafeEqual | NotEqual | Less | LessEqual | Greater | GreaterEqual)
    }
}

/// Units of INTERVAL, EXTRACT, TIMESTAMPDIFF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IntervalUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    MinuteSecond,
    HourMinute,
    HourSecond,
    DayHour,
    DayMinute,
    DaySecond,
    SecondMicrosecond,
    MinuteMicrosecond,
    HourMicrosecond,
    DayMicrosecond,
    YearMonth,
}

impl IntervalUnit {
    /// Whether an amount of it is one number.
    pub fn is_single(self) -> bool {
        use IntervalUnit::*;
        matches!(self, Microsecond | Second | Minute | Hour | Day | Week | Month | Quarter | Year)
    }
}

/// Target of CAST.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CastType {
    Signed,
    Unsigned,
    /// `bin`: in the `_bin` collation of its character set.
    Char {
        length: Option<u32>,
        charset: Option<String>,
        bin: bool,
    },
    Binary {
        length: Option<u32>,
    },
    Decimal {
        precision: u8,
        scale: u8,
    },
    Double,
    Float,
    Date,
    DateTime {
        fraction: u8,
    },
    Time {
        fraction: u8,
    },
    Year,
    Json,
}

/// `GLOBAL`, `SESSION`, or for SET TRANSACTION neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Scope {
    Global,
    Session,
    Persist,
}

/// `JSON_VALUE(…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonValue {
    /// What is looked into.
    pub document: Expr,
    /// Where.
    pub path: Expr,
    /// The type of the result; `None` is a text.
    pub returning: Option<CastType>,
    /// Where nothing is there.
    pub on_empty: InsteadOfValue,
    /// Where it is not of that type, or there are several.
    pub on_error: InsteadOfValue,
}

/// What JSON_VALUE answers instead of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum InsteadOfValue {
    /// NULL.
    Null,
    /// An error.
    Error,
    /// This.
    Default(Expr),
}
