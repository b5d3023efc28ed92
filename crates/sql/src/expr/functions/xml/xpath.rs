//! XPath as far as MySQL knows it: what an expression is made of.
//!
//! What gives nodes is a list of steps from a beginning. What gives a value is a tree whose levels are
//! bounded by the parser; operators of one precedence are a list, however many, so that neither reading nor
//! evaluating them goes deeper.

use std::cmp::Ordering;

use crate::ast::BinaryOperator;
use crate::expr::functions::Function;
use crate::value::Value;

/// The direction of a step. MySQL takes all others for `child`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Ancestor { or_self: bool },
    Attribute,
    Child,
    Descendant { or_self: bool },
    Parent,
    Itself,
}

impl Axis {
    /// The axis of this name, whatever its case.
    pub(super) fn of_name(name: &str) -> Option<Axis> {
        Some(match name.to_ascii_lowercase().as_str() {
            "ancestor" => Axis::Ancestor { or_self: false },
            "ancestor-or-self" => Axis::Ancestor { or_self: true },
            "attribute" => Axis::Attribute,
            "descendant" => Axis::Descendant { or_self: false },
            "descendant-or-self" => Axis::Descendant { or_self: true },
            "parent" => Axis::Parent,
            "self" => Axis::Itself,
            "child" | "following" | "following-sibling" | "namespace" | "preceding" | "preceding-sibling" => {
                Axis::Child
            }
            _ => return None,
        })
    }
}

/// A function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Last,
    Position,
    Count,
    Sum,
    Truth,
    Not,
    Number,
    Contains,
    Round,
    /// One of SQL's.
    Sql(&'static Function),
}

/// What two values are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Whether it holds for what stands in this order.
    pub(super) fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Compare(Comparison),
    Compute(BinaryOperator),
}

/// An expression.
#[derive(Debug)]
pub(super) enum Expr {
    /// A number, a truth value.
    Constant(Value<'static>),
    /// A quoted text.
    Text(Vec<u8>),
    /// `$@name`
    Variable(String),
    /// Nodes, and as a value their text.
    Nodes(Nodes),
    Call(Call, Vec<Expr>),
    /// As many minus signs.
    Negate(u32, Box<Expr>),
    /// Operators of one precedence, from left to right.
    Chain(Box<Expr>, Vec<(Operator, Expr)>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    /// `true()`, `false()`.
    Truth(bool),
}

impl Expr {
    /// Whether it is a condition, not a value or nodes: a predicate that is a value is a position.
    pub(super) fn is_condition(&self) -> bool {
        match self {
            Expr::And(_) | Expr::Or(_) | Expr::Truth(_) => true,
            Expr::Call(call, _) => matches!(call, Call::Truth | Call::Not | Call::Contains),
            Expr::Chain(_, links) => {
                matches!(links.last(), Some((Operator::Compare(_), _)))
            }
            _ => false,
        }
    }

    /// Whether it gives nodes.
    pub(super) fn is_nodes(&self) -> bool {
        matches!(self, Expr::Nodes(_))
    }
}

/// What gives nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) start: Start,
    pub(super) steps: Vec<Step>,
}

/// Where steps begin.
#[derive(Debug)]
pub(super) enum Start {
    /// The whole text.
    Root,
    /// The node that a predicate is asked of.
    Context,
    /// `|`
    Union(Vec<Nodes>),
}

/// A step from each node.
#[derive(Debug)]
pub(super) enum Step {
    /// To those in this direction of this name, or of any.
    Walk(Axis, Option<Vec<u8>>),
    /// To those for which a condition holds.
    Filter(Expr),
    /// To those at a position.
    Pick(Expr),
}
