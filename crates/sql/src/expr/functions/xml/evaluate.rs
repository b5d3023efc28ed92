//! What an expression of XPath is in a document: nodes or a value, by SQL's rules for values.
//!
//! Nodes beside a value are compared with it text by text: it is enough that one of them answers.

use std::borrow::Cow;

use untorn::types::Collation;

use super::document::{Document, Kind};
use super::meter::Meter;
use super::node_set::{Found, NODE_WORK, Set, Walker};
use super::xpath::{Call, Comparison, Expr, Nodes, Operator, Start, Step};
use crate::expr::functions;
use crate::expr::{Context, Evaluated, NODE_BYTES, arithmetic};
use crate::result::SqlError;
use crate::value::{Value, compare};

/// Evaluates expressions in a document.
pub(super) struct Evaluator<'c, 't, 'v> {
    pub(super) document: &'c Document<'t>,
    pub(super) cx: &'c Context<'v>,
    /// Of the texts.
    pub(super) collation: Collation,
    pub(super) meter: Meter<'c>,
}

impl Evaluator<'_, '_, '_> {
    fn walker(&self) -> Walker<'_, '_> {
        Walker { document: self.document, meter: &self.meter }
    }

    /// The nodes that a path gives; in a predicate, from the node it is asked of.
    pub(super) fn nodes(&self, path: &Nodes, context: Option<Found>) -> Result<Vec<Found>, SqlError> {
        self.meter.work(NODE_BYTES)?;
        let root = Found { node: 0, position: 0, among: 0 };
        let mut set = match &path.start {
            Start::Root => vec![root],
            Start::Context => vec![context.unwrap_or(root)],
            Start::Union(paths) => {
                let sets: Result<Vec<_>, _> = paths.iter().map(|path| self.nodes(path, context)).collect();
                self.walker().union(&sets?)?
            }
        };
        let held = self.cx.state.held();
        for step in &path.steps {
            // Also where there is no node left.
            self.meter.work(NODE_BYTES)?;
            set = match step {
                Step::Walk(axis, name) => self.walker().walk(&set, *axis, name.as_deref())?,
                Step::Filter(condition) => {
                    self.chosen(&set, |node| Ok(self.truth(condition, Some(node))? == Some(true)))?
                }
                Step::Pick(position) => self.chosen(&set, |node| {
                    let wanted = self.value(position, Some(node))?;
                    Ok(wanted.to_i64().checked_sub(1) == Some(i64::from(node.position)))
                })?,
            };
            // The set before this one is gone.
            self.cx.state.give_back_to(held);
            self.cx.state.hold(set.capacity() * size_of::<Found>())?;
        }
        Ok(set)
    }

    /// Those of a set that a predicate chooses, with new positions.
    fn chosen(
        &self,
        set: &[Found],
        predicate: impl Fn(Found) -> Result<bool, SqlError>,
    ) -> Result<Vec<Found>, SqlError> {
        let mut chosen = Set::new(self.cx.state);
        let mut position = 0;
        for found in set {
            let held = self.cx.state.held();
            self.meter.work(NODE_BYTES)?;
            let chooses = predicate(Found { among: set.len() as u32, ..*found })?;
            self.cx.state.give_back_to(held);
            if chooses {
                chosen.push(found.node, position)?;
                position += 1;
            }
        }
        Ok(chosen.finish())
    }

    fn text<'r>(&self, text: impl Into<Cow<'r, [u8]>>) -> Value<'r> {
        Value::Text(text.into(), self.collation)
    }

    /// The value of an expression; of nodes their text.
    pub(super) fn value<'r>(&'r self, expr: &'r Expr, context: Option<Found>) -> Evaluated<'r> {
        self.meter.work(NODE_BYTES)?;
        Ok(match expr {
            Expr::Constant(value) => value.borrowed(),
            Expr::Text(text) => self.text(&text[..]),
            Expr::Truth(truth) => Value::truth_value(*truth),
            Expr::Variable(name) => {
                let value = self.cx.state.user_variable_held(name)?;
                self.meter.work_on(&value)?;
                match value {
                    Value::Text(text, _) => self.text(text),
                    other => other,
                }
            }
            Expr::Nodes(path) => self.text(self.walker().text(&self.nodes(path, context)?)?),
            Expr::Call(call, arguments) => self.call(*call, arguments, context)?,
            Expr::Negate(signs, operand) => {
                let mut value = self.value(operand, context)?;
                self.meter.work_on(&value)?;
                for _ in 0..*signs {
                    self.meter.work(NODE_BYTES)?;
                    value = arithmetic::negate(value)?;
                }
                value
            }
            Expr::Chain(first, links) => self.chain(first, links, context)?,
            Expr::And(_) | Expr::Or(_) => truth_value(self.truth(expr, context)?),
        })
    }

    /// Whether an expression is true: nodes are when there are any.
    fn truth(&self, expr: &Expr, context: Option<Found>) -> Result<Option<bool>, SqlError> {
        let among = |list: &[Expr], decides: bool| {
            let mut known = Some(!decides);
            for expr in list {
                match self.truth(expr, context)? {
                    Some(truth) if truth == decides => return Ok(Some(decides)),
                    Some(_) => {}
                    None => known = None,
                }
            }
            Ok(known)
        };
        let held = self.cx.state.held();
        let truth = match expr {
            Expr::Nodes(path) => Some(!self.nodes(path, context)?.is_empty()),
            Expr::And(list) => among(list, false)?,
            Expr::Or(list) => among(list, true)?,
            other => {
                let value = self.value(other, context)?;
                self.meter.work_on(&value)?;
                value.truth()
            }
        };
        // What it was asked of is gone.
        self.cx.state.give_back_to(held);
        Ok(truth)
    }

    fn chain<'r>(
        &'r self,
        first: &'r Expr,
        links: &'r [(Operator, Expr)],
        context: Option<Found>,
    ) -> Evaluated<'r> {
        let held = self.cx.state.held();
        let mut links = links.iter();
        let mut value = match (first, links.clone().next()) {
            (Expr::Nodes(path), Some((Operator::Compare(comparison), operand))) => {
                links.next();
                self.any_text(path, *comparison, &self.value(operand, context)?, false, context)?
            }
            _ => self.value(first, context)?,
        };
        for (operator, operand) in links {
            self.meter.work(NODE_BYTES)?;
            self.meter.work_on(&value)?;
            value = match (operator, operand) {
                (Operator::Compare(comparison), Expr::Nodes(path)) => {
                    self.any_text(path, *comparison, &value, true, context)?
                }
                (Operator::Compare(comparison), operand) => {
                    let operand = self.value(operand, context)?;
                    self.meter.work_on(&operand)?;
                    let order = compare::compare(&value, &operand);
                    truth_value(order.map(|order| comparison.holds(order)))
                }
                (Operator::Compute(operator), operand) => {
                    let operand = self.value(operand, context)?;
                    self.meter.work_on(&operand)?;
                    arithmetic::binary(*operator, value, operand, self.cx.state)?
                }
            };
            // The operands are gone, and what they gave is a number.
            self.cx.state.give_back_to(held);
        }
        Ok(value)
    }

    /// Whether one of the nodes' texts compares with a value; `behind`: they stand behind it.
    fn any_text(
        &self,
        path: &Nodes,
        comparison: Comparison,
        value: &Value<'_>,
        behind: bool,
        context: Option<Found>,
    ) -> Evaluated<'static> {
        self.meter.work_on(value)?;
        let wanted = compare::Wanted::new(value);
        for found in self.nodes(path, context)? {
            for bytes in self.texts(found.node) {
                let bytes = bytes?;
                self.meter.work(NODE_BYTES + bytes.len())?;
                let text = self.text(bytes);
                let holds = match comparison {
                    Comparison::Equal => wanted.is_equal(&text),
                    Comparison::NotEqual => wanted.is_equal(&text).map(|equal| !equal),
                    _ => compare::compare(&text, value)
                        .map(|order| comparison.holds(if behind { order.reverse() } else { order })),
                };
                if holds == Some(true) {
                    return Ok(Value::truth_value(true));
                }
            }
        }
        Ok(Value::truth_value(false))
    }

    fn call<'r>(&'r self, call: Call, arguments: &'r [Expr], context: Option<Found>) -> Evaluated<'r> {
        Ok(match (call, arguments) {
            (Call::Last, _) => Value::Int(context.map_or(0, |found| i64::from(found.among))),
            (Call::Position, _) => Value::Int(context.map_or(0, |found| i64::from(found.position) + 1)),
            (Call::Count, [Expr::Nodes(path)]) => Value::Int(match self.nodes(path, context)?[..] {
                // The node itself that a predicate is asked of stands for all of them.
                [Found { among: among @ 1.., .. }] => i64::from(among),
                ref nodes => nodes.len() as i64,
            }),
            (Call::Sum, [Expr::Nodes(path)]) => Value::Double(self.sum(path, context)?),
            (Call::Truth, [argument @ (Expr::Nodes(_) | Expr::And(_) | Expr::Or(_))]) => {
                truth_value(self.truth(argument, context)?)
            }
            (Call::Truth, [argument]) => {
                Value::truth_value(self.argument(argument, context)?.to_double() != 0.0)
            }
            (Call::Not, [argument]) => truth_value(self.truth(argument, context)?.map(|truth| !truth)),
            (Call::Number, [argument]) => match self.argument(argument, context)? {
                Value::Null => Value::Null,
                value => Value::Double(value.to_double()),
            },
            (Call::Round, [argument]) => {
                // Numbers are doubles there: 2.5 becomes 2.
                let value = match self.argument(argument, context)? {
                    integer @ (Value::Int(_) | Value::UInt(_) | Value::Null) => integer,
                    other => Value::Double(other.to_double()),
                };
                self.sql("ROUND", &[value, Value::Int(0)])?
            }
            (Call::Contains, [text, wanted]) => {
                let values = [self.argument(text, context)?, self.argument(wanted, context)?];
                Value::truth_value(self.sql("INSTR", &values)?.to_i64() > 0)
            }
            (Call::Sql(function), arguments) => {
                let values: Result<Vec<_>, _> =
                    arguments.iter().map(|argument| self.argument(argument, context)).collect();
                (function.eval)(&values?, self.cx)?.into_owned()
            }
            _ => Value::Null,
        })
    }

    /// The value of a function's argument, which the function reads.
    fn argument<'r>(&'r self, expr: &'r Expr, context: Option<Found>) -> Evaluated<'r> {
        let value = self.value(expr, context)?;
        self.meter.work_on(&value)?;
        Ok(value)
    }

    /// The texts directly in a node; each child counts as work.
    fn texts(&self, of: u32) -> impl Iterator<Item = Result<&[u8], SqlError>> {
        self.document.children(of).filter_map(|child| {
            let node = self.document.node(child);
            match self.meter.work(NODE_WORK) {
                Ok(()) => (node.kind == Kind::Text).then(|| Ok(self.document.text_of(node))),
                Err(error) => Some(Err(error)),
            }
        })
    }

    fn sql(&self, name: &str, values: &[Value<'_>]) -> Evaluated<'static> {
        match functions::find(name) {
            Some(function) => Ok((function.eval)(values, self.cx)?.into_owned()),
            None => Ok(Value::Null),
        }
    }

    /// The sum of the nodes' texts.
    fn sum(&self, path: &Nodes, context: Option<Found>) -> Result<f64, SqlError> {
        let mut sum = 0.0;
        for found in self.nodes(path, context)? {
            for text in self.texts(found.node) {
                let text = text?;
                self.meter.work(NODE_BYTES + text.len())?;
                sum += self.text(text).to_double();
            }
        }
        Ok(sum)
    }
}

fn truth_value(truth: Option<bool>) -> Value<'static> {
    truth.map_or(Value::Null, Value::truth_value)
}
