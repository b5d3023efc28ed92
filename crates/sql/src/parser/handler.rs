//! HANDLER.

use super::super::ast::{BinaryOperator, Handler, HandlerPlace, HandlerRead, Statement};
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn handler(&mut self) -> Parsed<Statement> {
        self.expect("HANDLER")?;
        let table = self.table_name()?;
        if self.accept("OPEN") {
            let named = self.accept("AS") || !self.at_end();
            let alias = if named { Some(self.name()?) } else { None };
            return Ok(Statement::Handler(Handler::Open { table, alias }));
        }
        // What is open has a name of its own, without a database.
        if table.database.is_some() {
            return Err(self.unexpected());
        }
        if self.accept("CLOSE") {
            return Ok(Statement::Handler(Handler::Close(table.name)));
        }
        self.expect("READ")?;
        let (index, place) = match self.accept_any(&["FIRST", "NEXT"]) {
            Some("FIRST") => (None, HandlerPlace::First),
            Some(_) => (None, HandlerPlace::Next),
            None => (Some(self.name()?), self.handler_place()?),
        };
        let filter = if self.accept("WHERE") { Some(self.expr()?) } else { None };
        let limit = if self.is_word("LIMIT") { Some(self.limit()?) } else { None };
        let read = HandlerRead { name: table.name, index, place, filter, limit };
        Ok(Statement::Handler(Handler::Read(Box::new(read))))
    }

    fn handler_place(&mut self) -> Parsed<HandlerPlace> {
        match self.accept_any(&["FIRST", "NEXT", "PREV", "LAST"]) {
            Some("FIRST") => return Ok(HandlerPlace::First),
            Some("NEXT") => return Ok(HandlerPlace::Next),
            Some("PREV") => return Ok(HandlerPlace::Previous),
            Some(_) => return Ok(HandlerPlace::Last),
            None => {}
        }
        let operators = [
            (&b"="[..], BinaryOperator::Equal),
            (b">=", BinaryOperator::GreaterEqual),
            (b"<=", BinaryOperator::LessEqual),
            (b">", BinaryOperator::Greater),
            (b"<", BinaryOperator::Less),
        ];
        for (symbol, operator) in operators {
            if self.accept_symbol(symbol) {
                return Ok(HandlerPlace::Key(operator, self.parenthesised(Self::expr)?));
            }
        }
        Err(self.unexpected())
    }
}
