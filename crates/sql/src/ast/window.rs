//! Windows: OVER and WINDOW.

// The fields of variants say by their names what they are.
#![allow(missing_docs)]

use super::{Expr, OrderItem};

/// Behind OVER.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// `OVER w`.
    Named(String),
    /// `OVER (…)`.
    Own(Box<WindowSpec>),
}

/// `([base] [PARTITION BY …] [ORDER BY …] [frame])`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowSpec {
    /// The window that this one adds to.
    pub base: Option<String>,
    /// `PARTITION BY`.
    pub partition_by: Vec<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `ROWS …`, `RANGE …`.
    pub frame: Option<Frame>,
}

/// The rows around the one at hand.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    pub end: FrameBound,
}

/// What an offset of a frame counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    /// Rows.
    Rows,
    /// The difference of what is sorted by.
    Range,
}

/// An end of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}
