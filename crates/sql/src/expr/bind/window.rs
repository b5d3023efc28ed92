//! Window functions: what they are, and the window that each is computed over.

use super::common_type::converted;
use super::{Binder, Bound, NameRule, number_of};
use crate::ast::{self, FrameBound, FrameUnit, Over, WindowSpec};
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Expr};
use crate::plan::aggregate::AggregateKind;
use crate::plan::window::{self, Frame, Offset, WindowCall, WindowFunction};
use crate::result::{SqlError, kind};
use crate::value::Value;

/// What messages call a window without a name.
pub const UNNAMED: &str = "<unnamed window>";

/// PARTITION BY, ORDER BY and the frame of a window.
type Place = (Vec<Expr>, Vec<(Expr, bool)>, Frame);

/// A window with all that it has from others.
struct Resolved<'w> {
    name: &'w str,
    partition_by: &'w [ast::Expr],
    order_by: &'w [ast::OrderItem],
    frame: Option<&'w ast::Frame>,
}

/// Result of the functions that number rows.
const NUMBER: Type = Type { nullable: false, length: 21, ..Type::UINT };

fn named<'w>(windows: &'w [(String, WindowSpec)], name: &str) -> Result<&'w (String, WindowSpec), SqlError> {
    let mut found = windows.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
    found.next().ok_or_else(|| errors::error(errors::WINDOW_NO_SUCH_WINDOW, &[&name]))
}

/// The window with what it inherits; `depth` are those that inherit from it.
fn resolved<'w>(
    windows: &'w [(String, WindowSpec)],
    name: &'w str,
    spec: &'w WindowSpec,
    depth: usize,
) -> Result<Resolved<'w>, SqlError> {
    let own = Resolved {
        name,
        partition_by: &spec.partition_by,
        order_by: &spec.order_by,
        frame: spec.frame.as_ref(),
    };
    let Some(base) = &spec.base else { return Ok(own) };
    if depth > windows.len() {
        return Err(errors::error(errors::WINDOW_CIRCULARITY, &[]));
    }
    let (base_name, base) = named(windows, base)?;
    let base = resolved(windows, base_name, base, depth + 1)?;
    if !spec.partition_by.is_empty() {
        return Err(errors::error(errors::WINDOW_NO_CHILD_PARTITIONING, &[]));
    }
    if base.frame.is_some() {
        return Err(errors::error(errors::WINDOW_NO_INHERIT_FRAME, &[&base_name]));
    }
    if !base.order_by.is_empty() && !spec.order_by.is_empty() {
        return Err(errors::error(errors::WINDOW_NO_REDEFINE_ORDER_BY, &[&name, &base_name]));
    }
    let order_by = if spec.order_by.is_empty() { base.order_by } else { own.order_by };
    Ok(Resolved { partition_by: base.partition_by, order_by, ..own })
}

/// Windows of one SELECT.
const WINDOWS_MAX: usize = 127;

/// What a call takes, and each expression that its window has.
const CALL_BYTES: usize = size_of::<WindowCall>() + 2 * size_of::<Expr>();

/// Fails when a SELECT has more windows than it may have.
pub fn check_count(count: usize) -> Result<(), SqlError> {
    if count <= WINDOWS_MAX {
        return Ok(());
    }
    Err(errors::error(errors::TOO_MANY_WINDOWS, &[&count, &WINDOWS_MAX]))
}

/// Checks the windows of a WINDOW, also those that nothing uses.
pub fn check(windows: &[(String, WindowSpec)]) -> Result<(), SqlError> {
    check_count(windows.len())?;
    for (at, (name, spec)) in windows.iter().enumerate() {
        if windows[..at].iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            return Err(errors::error(errors::WINDOW_DUPLICATE_NAME, &[name]));
        }
        resolved(windows, name, spec, 0)?;
    }
    Ok(())
}

impl Binder<'_, '_> {
    /// `call OVER …`.
    pub(super) fn window(&mut self, call: &ast::Expr, over: &Over) -> Result<Bound, SqlError> {
        let ast::Expr::Function { name, arguments, distinct, star, .. } = call else {
            return Err(errors::error(errors::UNKNOWN_ERROR, &[&"not a function"]));
        };
        if !self.windows_allowed {
            let name = name.to_ascii_lowercase();
            return Err(errors::error(errors::WINDOW_INVALID_WINDOW_FUNC_USE, &[&name]));
        }
        let windows = self.named_windows;
        let window = match over {
            Over::Named(name) => {
                let (name, spec) = named(windows, name)?;
                resolved(windows, name, spec, 0)?
            }
            Over::Own(spec) => resolved(windows, UNNAMED, spec, 0)?,
        };
        // A window that is named many times is bound each time.
        let parts = 1 + window.partition_by.len() + window.order_by.len();
        self.planner.expand(parts, CALL_BYTES)?;
        let (partition, order, frame) = self.placed(&window)?;
        let rule = std::mem::replace(&mut self.rule, NameRule::Tables);
        self.windows_allowed = false;
        let (function, ty) = self.window_function(name, arguments, *distinct, *star)?;
        self.windows_allowed = true;
        self.rule = rule;
        let call = WindowCall { function, partition, order, frame, window: window.name.to_owned() };
        self.windows.push(call);
        Ok((Expr::Window(number_of(self.windows.len() - 1)?), ty))
    }

    /// Binds the windows of WINDOW that nothing uses: they may be wrong, too.
    pub fn bind_unused_windows(&mut self) -> Result<(), SqlError> {
        let windows = self.named_windows;
        for (name, spec) in windows {
            if !self.windows.iter().any(|call| call.window == *name) {
                let window = resolved(windows, name, spec, 0)?;
                self.placed(&window)?;
            }
        }
        Ok(())
    }

    /// PARTITION BY, ORDER BY and the frame of a window.
    fn placed(&mut self, window: &Resolved<'_>) -> Result<Place, SqlError> {
        let allowed = std::mem::take(&mut self.windows_allowed);
        let rule = std::mem::replace(&mut self.rule, NameRule::Tables);
        let clause = self.clause;
        let (mut partition, mut order) = (Vec::new(), Vec::new());
        self.clause = "window partition by";
        for expr in window.partition_by {
            partition.push(self.sorted_by(expr, window.name)?.0);
        }
        self.clause = "window order by";
        let mut order_type = Type::NULL;
        for item in window.order_by {
            let (expr, ty) = self.sorted_by(&item.expr, window.name)?;
            order.push((expr, item.descending));
            order_type = ty;
        }
        self.clause = clause;
        let frame = self.frame(window, &order, order_type)?;
        self.rule = rule;
        self.windows_allowed = allowed;
        Ok((partition, order, frame))
    }

    fn sorted_by(&mut self, expr: &ast::Expr, window: &str) -> Result<Bound, SqlError> {
        if matches!(expr, ast::Expr::Integer(_)) {
            return Err(errors::error(errors::WINDOW_ILLEGAL_ORDER_BY, &[&window]));
        }
        self.bind(expr).map_err(|error| match error.code {
            errors::WINDOW_INVALID_WINDOW_FUNC_USE => {
                errors::error(errors::WINDOW_NESTED_IN_SPECIFICATION, &[&window])
            }
            _ => error,
        })
    }

    fn frame(
        &mut self,
        window: &Resolved<'_>,
        sorted_by: &[(Expr, bool)],
        order: Type,
    ) -> Result<Frame, SqlError> {
        let Some(ast::Frame { unit, start, end }) = window.frame else {
            let (start, end) = (window::Bound::Unbounded, window::Bound::CurrentRow);
            return Ok(Frame { unit: FrameUnit::Range, start, end });
        };
        let fails = |code| Err(errors::error(code, &[&window.name]));
        match (start, end) {
            (FrameBound::UnboundedFollowing, _) => return fails(errors::WINDOW_FRAME_START_ILLEGAL),
            (_, FrameBound::UnboundedPreceding) => return fails(errors::WINDOW_FRAME_END_ILLEGAL),
            (FrameBound::CurrentRow, FrameBound::Preceding(_))
            | (FrameBound::Following(_), FrameBound::CurrentRow | FrameBound::Preceding(_)) => {
                return fails(errors::WINDOW_FRAME_ILLEGAL);
            }
            _ => {}
        }
        let volatile = sorted_by.iter().any(|(expr, _)| expr.has_volatile());
        if *unit == FrameUnit::Range && volatile {
            return fails(errors::WINDOW_RANGE_FRAME_ORDER_TYPE);
        }
        let mut bounds = Vec::with_capacity(2);
        for bound in [start, end] {
            let (offset, following) = match bound {
                FrameBound::UnboundedPreceding | FrameBound::UnboundedFollowing => {
                    bounds.push(window::Bound::Unbounded);
                    continue;
                }
                FrameBound::CurrentRow => {
                    bounds.push(window::Bound::CurrentRow);
                    continue;
                }
                FrameBound::Preceding(offset) => (offset, false),
                FrameBound::Following(offset) => (offset, true),
            };
            let (amount, interval) = match offset {
                ast::Expr::Interval { amount, unit } => (&**amount, Some(*unit)),
                amount => (amount, None),
            };
            let number = order.is_integer() || order.is_double() || order.kind == kind::NEWDECIMAL;
            match unit {
                FrameUnit::Rows if interval.is_some() => return fails(errors::WINDOW_ROWS_INTERVAL_USE),
                FrameUnit::Rows => {}
                FrameUnit::Range if window.order_by.len() != 1 || !(number || order.is_temporal()) => {
                    return fails(errors::WINDOW_RANGE_FRAME_ORDER_TYPE);
                }
                FrameUnit::Range if number && interval.is_some() => {
                    return fails(errors::WINDOW_RANGE_FRAME_NUMERIC_TYPE);
                }
                FrameUnit::Range if !number && interval.is_none() => {
                    return fails(errors::WINDOW_RANGE_FRAME_TEMPORAL_TYPE);
                }
                FrameUnit::Range => {}
            }
            let amount = self.bind(amount)?.0;
            if !amount.visit(&mut |inner| inner.may_be_constant() && !matches!(inner, Expr::Outer(_))) {
                return fails(errors::WINDOW_FRAME_BOUND_NOT_CONSTANT);
            }
            let offset = Offset { amount, unit: interval, following };
            if offset.amount.visit(&mut |inner| inner.is_known()) {
                offset.value(*unit, window.name, &Context::constant(self.planner.state, &[]))?;
            }
            bounds.push(window::Bound::Offset(offset));
        }
        let end = bounds.pop().unwrap_or(window::Bound::CurrentRow);
        let start = bounds.pop().unwrap_or(window::Bound::Unbounded);
        Ok(Frame { unit: *unit, start, end })
    }

    fn window_function(
        &mut self,
        name: &str,
        arguments: &[ast::Expr],
        distinct: bool,
        star: bool,
    ) -> Result<(WindowFunction, Type), SqlError> {
        if let Some(aggregate) = AggregateKind::of_name(name) {
            // The least and the greatest are the same among all and among those that differ.
            if distinct && !matches!(aggregate, AggregateKind::Min | AggregateKind::Max) {
                return Err(errors::unsupported("<window function>(DISTINCT ..)"));
            }
            if matches!(aggregate, AggregateKind::JsonArray | AggregateKind::JsonObject) {
                // Each row of the window would make the document again.
                return Err(errors::unsupported("JSON_ARRAYAGG and JSON_OBJECTAGG as window functions"));
            }
            if aggregate == AggregateKind::GroupConcat {
                return Err(errors::unsupported("group_concat as window function"));
            }
            let made = self.aggregate_of(aggregate, arguments, (false, star), &[], None)?;
            let ty = made.ty;
            return Ok((WindowFunction::Aggregate(made), ty));
        }
        let mut bound = Vec::with_capacity(arguments.len());
        for argument in arguments {
            bound.push(self.bind(argument)?);
        }
        let mut bound = bound.into_iter();
        let first = bound.next();
        let share = Type::DOUBLE.not_null();
        Ok(match (name, first) {
            ("ROW_NUMBER", _) => (WindowFunction::RowNumber, NUMBER),
            ("RANK", _) => (WindowFunction::Rank, NUMBER),
            ("DENSE_RANK", _) => (WindowFunction::DenseRank, NUMBER),
            ("PERCENT_RANK", _) => (WindowFunction::PercentRank, share),
            ("CUME_DIST", _) => (WindowFunction::CumeDist, share),
            ("NTILE", Some((tiles, _))) => (WindowFunction::Tiles(tiles), NUMBER),
            ("FIRST_VALUE", Some((value, ty))) => {
                (WindowFunction::Value(value, Some(Expr::int(1))), Type { nullable: true, ..ty })
            }
            ("LAST_VALUE", Some((value, ty))) => {
                (WindowFunction::Value(value, None), Type { nullable: true, ..ty })
            }
            ("NTH_VALUE", Some((value, ty))) => {
                let number = bound.next().map_or(Expr::Literal(Value::Null), |(number, _)| number);
                (WindowFunction::Value(value, Some(number)), Type { nullable: true, ..ty })
            }
            ("LAG" | "LEAD", Some(value)) => {
                let offset = bound.next().map_or(Expr::int(1), |(offset, _)| offset);
                let forward = name == "LEAD";
                let (value, default, ty) = match bound.next() {
                    Some(default) => {
                        let ty = value.1.union(default.1);
                        (converted(value, ty), converted(default, ty), ty)
                    }
                    None => {
                        let ty = Type { nullable: true, ..value.1 };
                        (value.0, Expr::Literal(Value::Null), ty)
                    }
                };
                (WindowFunction::Shift { value, offset, default, forward }, ty)
            }
            _ => return Err(errors::error(errors::INTERNAL_ERROR, &[&"a window function without code"])),
        })
    }
}
