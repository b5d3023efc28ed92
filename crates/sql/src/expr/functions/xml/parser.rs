//! Reading XPath.
//!
//! There is no going back: what cannot be read ends at the token that fits nowhere, and the error shows the
//! text from there. Parentheses, predicates and calls may stand in each other to a depth; whatever else grows
//! with the text is a list, whose memory is charged.

use super::lexer::{self, Function, FunctionOfPath, Kind, Token};
use super::xpath::{Axis, Call, Comparison, Expr, Nodes, Operator, Start, Step};
use crate::ast::BinaryOperator;
use crate::errors;
use crate::result::SqlError;
use crate::value::convert::parse_number;
use crate::value::json::Room;
use crate::value::{Value, decimal};

/// Expressions that may stand in each other.
const DEPTH_MAX: usize = 32;
/// Bytes of an expression that an error shows.
const SHOWN_MAX: usize = 32;
/// Digits of a number that is exact.
const EXACT_DIGITS_MAX: usize = 65;
/// Memory of an expression with the reserve of its list.
const EXPR_BYTES: usize = 2 * size_of::<(Operator, Expr)>();

/// Why there is no expression.
enum Stopped {
    /// The token that is next fits nowhere.
    Here,
    Error(SqlError),
}

impl From<SqlError> for Stopped {
    fn from(error: SqlError) -> Stopped {
        Stopped::Error(error)
    }
}

type Parsed<T> = Result<T, Stopped>;

/// Reads an expression.
///
/// # Errors
/// 1105: what is wrong with it; 1436: it is nested too deeply; memory.
pub(super) fn parse(text: &str, room: &mut Room<'_>) -> Result<Expr, SqlError> {
    let token = lexer::token(text, 0);
    let mut parser = Parser { text, token, previous: token, has_context: false, depth: 0, room };
    let read = parser.expr().and_then(|expr| match parser.token.kind {
        Kind::End => Ok(expr),
        _ => Err(Stopped::Here),
    });
    read.map_err(|stopped| match stopped {
        Stopped::Here => parser.error("XPATH syntax error", parser.token.begin),
        Stopped::Error(error) => error,
    })
}

struct Parser<'t, 'r, 'a> {
    text: &'t str,
    token: Token,
    previous: Token,
    /// In a predicate: there is a node that it is asked of.
    has_context: bool,
    depth: usize,
    room: &'r mut Room<'a>,
}

fn compute(operator: BinaryOperator) -> Operator {
    Operator::Compute(operator)
}

impl Parser<'_, '_, '_> {
    fn error(&self, what: &str, from: usize) -> SqlError {
        let rest = self.text.get(from..).unwrap_or_default();
        let mut length = rest.len().min(SHOWN_MAX);
        while !rest.is_char_boundary(length) {
            length -= 1;
        }
        errors::error(errors::UNKNOWN_ERROR, &[&format!("{what}: '{}'", &rest[..length])])
    }

    fn advance(&mut self) {
        self.previous = self.token;
        self.token = lexer::token(self.text, self.token.end);
    }

    fn is(&self, mark: u8) -> bool {
        matches!(self.token.kind, Kind::Mark(other) if other == mark)
    }

    fn accept(&mut self, mark: u8) -> bool {
        let is = self.is(mark);
        if is {
            self.advance();
        }
        is
    }

    fn expect(&mut self, mark: u8) -> Parsed<()> {
        if self.accept(mark) { Ok(()) } else { Err(Stopped::Here) }
    }

    /// The text of the token before.
    fn said(&self) -> &str {
        self.text.get(self.previous.begin..self.previous.end).unwrap_or_default()
    }

    fn expr(&mut self) -> Parsed<Expr> {
        if self.depth >= DEPTH_MAX {
            return Err(errors::error(errors::STACK_OVERRUN, &[]).into());
        }
        self.depth += 1;
        let mut alternatives = vec![self.conjunction()?];
        while matches!(self.token.kind, Kind::Or) {
            self.advance();
            self.room.take(EXPR_BYTES)?;
            alternatives.push(self.conjunction()?);
        }
        self.depth -= 1;
        Ok(if alternatives.len() > 1 { Expr::Or(alternatives) } else { alternatives.remove(0) })
    }

    fn conjunction(&mut self) -> Parsed<Expr> {
        let mut parts = vec![self.binary(0)?];
        while matches!(self.token.kind, Kind::And) {
            self.advance();
            self.room.take(EXPR_BYTES)?;
            parts.push(self.binary(0)?);
        }
        Ok(if parts.len() > 1 { Expr::And(parts) } else { parts.remove(0) })
    }

    /// Operands with the operators between them: equality, order, sums, products from the loosest on.
    fn binary(&mut self, precedence: usize) -> Parsed<Expr> {
        if precedence > 3 {
            return self.unary();
        }
        let first = self.binary(precedence + 1)?;
        let mut links = Vec::new();
        loop {
            let begin = self.token.begin;
            let Some(operator) = self.operator(precedence) else { break };
            let operand = self.binary(precedence + 1)?;
            let two_sets = links.is_empty() && first.is_nodes() && operand.is_nodes();
            if two_sets && matches!(operator, Operator::Compare(_)) {
                return Err(self.two_sets(begin).into());
            }
            self.room.take(EXPR_BYTES)?;
            links.push((operator, operand));
        }
        Ok(if links.is_empty() { first } else { Expr::Chain(Box::new(first), links) })
    }

    fn two_sets(&self, from: usize) -> SqlError {
        self.error("XPATH error: comparison of two nodesets is not supported", from)
    }

    fn operator(&mut self, precedence: usize) -> Option<Operator> {
        let before = (self.token, self.previous);
        let operator = match (precedence, self.token.kind) {
            (0, Kind::Mark(b'=')) => Operator::Compare(Comparison::Equal),
            (0, Kind::Mark(b'!')) => Operator::Compare(Comparison::NotEqual),
            (1, Kind::Mark(b'<')) => Operator::Compare(Comparison::Less),
            (1, Kind::Mark(b'>')) => Operator::Compare(Comparison::Greater),
            (2, Kind::Mark(b'+')) => compute(BinaryOperator::Add),
            (2, Kind::Mark(b'-')) => compute(BinaryOperator::Subtract),
            (3, Kind::Mark(b'*')) => compute(BinaryOperator::Multiply),
            (3, Kind::Div) => compute(BinaryOperator::IntegerDivide),
            (3, Kind::Mod) => compute(BinaryOperator::Modulo),
            _ => return None,
        };
        self.advance();
        Some(match operator {
            Operator::Compare(Comparison::Less) if self.accept(b'=') => {
                Operator::Compare(Comparison::LessOrEqual)
            }
            Operator::Compare(Comparison::Greater) if self.accept(b'=') => {
                Operator::Compare(Comparison::GreaterOrEqual)
            }
            Operator::Compare(Comparison::NotEqual) if !self.accept(b'=') => {
                (self.token, self.previous) = before;
                return None;
            }
            operator => operator,
        })
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let mut signs = 0;
        while self.accept(b'-') {
            signs += 1;
        }
        let operand = self.union()?;
        Ok(if signs > 0 { Expr::Negate(signs, Box::new(operand)) } else { operand })
    }

    fn union(&mut self) -> Parsed<Expr> {
        let first = self.path()?;
        if !self.accept(b'|') {
            return Ok(first);
        }
        let Expr::Nodes(first) = first else { return Err(Stopped::Here) };
        let mut sets = vec![first];
        while sets.len() == 1 || self.accept(b'|') {
            self.room.take(EXPR_BYTES)?;
            match self.path()? {
                Expr::Nodes(nodes) => sets.push(nodes),
                _ => return Err(Stopped::Here),
            }
        }
        Ok(Expr::Nodes(Nodes { start: Start::Union(sets), steps: Vec::new() }))
    }

    /// A path, or what else may be an operand.
    fn path(&mut self) -> Parsed<Expr> {
        let start = if self.has_context { Start::Context } else { Start::Root };
        let mut relative = Nodes { start, steps: Vec::new() };
        if self.steps(&mut relative)? {
            return Ok(Expr::Nodes(relative));
        }
        if self.accept(b'/') {
            let mut absolute = Nodes { start: Start::Root, steps: Vec::new() };
            let all = self.is(b'/');
            self.double_slash(&mut absolute)?;
            return match self.steps(&mut absolute)? || !all {
                true => Ok(Expr::Nodes(absolute)),
                false => Err(Stopped::Here),
            };
        }
        let begin = self.primary()?;
        if !self.is(b'/') {
            return Ok(begin);
        }
        let Expr::Nodes(mut nodes) = begin else { return Err(Stopped::Here) };
        self.advance();
        self.double_slash(&mut nodes)?;
        match self.steps(&mut nodes)? {
            true => Ok(Expr::Nodes(nodes)),
            false => Err(Stopped::Here),
        }
    }

    /// The second slash of `//`: all that is in the nodes, and they themselves.
    fn double_slash(&mut self, nodes: &mut Nodes) -> Parsed<()> {
        if self.accept(b'/') {
            self.room.take(EXPR_BYTES)?;
            nodes.steps.push(Step::Walk(Axis::Descendant { or_self: true }, None));
        }
        Ok(())
    }

    /// Steps with slashes between them; whether there are any.
    fn steps(&mut self, nodes: &mut Nodes) -> Parsed<bool> {
        if !self.step(nodes)? {
            return Ok(false);
        }
        while self.accept(b'/') {
            self.double_slash(nodes)?;
            if !self.step(nodes)? {
                return Err(Stopped::Here);
            }
        }
        Ok(true)
    }

    fn step(&mut self, nodes: &mut Nodes) -> Parsed<bool> {
        self.room.take(EXPR_BYTES)?;
        let mut begun = true;
        let axis = match self.token.kind {
            Kind::Axis(axis) => {
                self.advance();
                self.expect(b':')?;
                self.expect(b':')?;
                axis
            }
            Kind::Mark(b'@') => {
                self.advance();
                Axis::Attribute
            }
            _ => {
                begun = false;
                Axis::Child
            }
        };
        let name = match self.token.kind {
            Kind::Mark(b'*') => {
                self.advance();
                Some(None)
            }
            // Nodes of a type are those before, of which the texts are shown in any case.
            Kind::NodeType => {
                self.advance();
                self.expect(b'(')?;
                self.expect(b')')?;
                None
            }
            _ if self.is_name() => Some(Some(self.name()?)),
            Kind::Mark(b'.') => {
                self.advance();
                if self.accept(b'.') {
                    nodes.steps.push(Step::Walk(Axis::Parent, None));
                }
                return Ok(true);
            }
            _ if begun => return Err(Stopped::Here),
            _ => return Ok(false),
        };
        if let Some(name) = name {
            nodes.steps.push(Step::Walk(axis, name));
        }
        while self.accept(b'[') {
            let had_context = std::mem::replace(&mut self.has_context, true);
            self.room.take(EXPR_BYTES)?;
            let predicate = self.expr()?;
            self.expect(b']')?;
            self.has_context = had_context;
            let filters = predicate.is_condition() || predicate.is_nodes();
            nodes.steps.push(if filters { Step::Filter(predicate) } else { Step::Pick(predicate) });
        }
        Ok(true)
    }

    /// Words of operators are names, too.
    fn is_name(&self) -> bool {
        matches!(self.token.kind, Kind::Name | Kind::Or | Kind::And | Kind::Div | Kind::Mod)
    }

    /// A name, which may have a prefix.
    fn name(&mut self) -> Parsed<Vec<u8>> {
        let begin = self.token.begin;
        self.advance();
        if self.accept(b':') {
            if !self.is_name() {
                return Err(Stopped::Here);
            }
            self.advance();
        }
        let name = self.text.get(begin..self.previous.end).unwrap_or_default();
        self.room.take(name.len())?;
        Ok(name.into())
    }

    fn primary(&mut self) -> Parsed<Expr> {
        self.room.take(EXPR_BYTES)?;
        match self.token.kind {
            Kind::Mark(b'(') => {
                self.advance();
                let expr = self.expr()?;
                self.expect(b')')?;
                Ok(expr)
            }
            Kind::Mark(b'$') => self.variable(),
            Kind::Quoted => {
                self.advance();
                let said = self.said();
                let text: Vec<u8> = said.get(1..said.len() - 1).unwrap_or_default().into();
                self.room.take(text.len())?;
                Ok(Expr::Text(text))
            }
            Kind::Digits => self.number(),
            Kind::Function(function) => self.call(function),
            _ => Err(Stopped::Here),
        }
    }

    fn variable(&mut self) -> Parsed<Expr> {
        let begin = self.token.begin;
        self.advance();
        let of_user = self.accept(b'@');
        if !matches!(self.token.kind, Kind::Name) {
            return Err(Stopped::Here);
        }
        self.advance();
        if !of_user {
            return Err(self.error("Unknown XPATH variable at", begin).into());
        }
        Ok(Expr::Variable(self.said().to_lowercase()))
    }

    /// Digits, which may have a point behind them and more digits behind that.
    fn number(&mut self) -> Parsed<Expr> {
        let begin = self.token.begin;
        self.advance();
        if !self.is(b'.') {
            // What does not fit is the largest number, whose bits are those of -1.
            let number = self.said().parse().unwrap_or(u64::MAX);
            return Ok(Expr::Constant(Value::Int(number as i64)));
        }
        self.advance();
        if matches!(self.token.kind, Kind::Digits) {
            self.advance();
        }
        let digits = self.text.get(begin..self.previous.end).unwrap_or_default();
        let exact = if digits.len() <= EXACT_DIGITS_MAX { decimal::parse(digits) } else { None };
        let double = || Value::Double(parse_number(digits.as_bytes()).value);
        Ok(Expr::Constant(exact.map_or_else(double, Value::Decimal)))
    }

    fn call(&mut self, function: FunctionOfPath) -> Parsed<Expr> {
        let FunctionOfPath { call, least, most } = function;
        self.advance();
        self.expect(b'(')?;
        let mut arguments = Vec::new();
        while arguments.len() < most && !(arguments.len() >= least && self.is(b')')) {
            self.room.take(EXPR_BYTES)?;
            arguments.push(self.expr()?);
            if !self.accept(b',') {
                break;
            }
        }
        if arguments.len() < least {
            return Err(Stopped::Here);
        }
        self.expect(b')')?;
        let call = match call {
            Function::Truth(truth) => return Ok(Expr::Truth(truth)),
            Function::Call(call) => call,
        };
        let of_context = matches!(call, Call::Last | Call::Position) || arguments.is_empty();
        if of_context && !self.has_context {
            return Err(Stopped::Here);
        }
        let nodes = matches!(call, Call::Count | Call::Sum);
        if nodes && !arguments.iter().all(Expr::is_nodes) {
            return Err(Stopped::Here);
        }
        if arguments.is_empty() && !matches!(call, Call::Last | Call::Position) {
            arguments.push(Expr::Nodes(Nodes { start: Start::Context, steps: Vec::new() }));
        }
        // MySQL joins two texts and forgets the others.
        if matches!(call, Call::Sql(function) if function.name == "CONCAT") {
            arguments.truncate(2);
        }
        Ok(Expr::Call(call, arguments))
    }
}
