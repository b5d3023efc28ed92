//! XA.

use untorn::Xid;

use super::super::ast::{Statement, Xa, XaStart};
use super::super::lexer::{TokenKind, bit_value, hex_value, unquote};
use super::{Parsed, Parser};

/// What an XID is made of where nobody says so.
const FORMAT: i64 = 1;

impl Parser<'_> {
    pub(super) fn xa(&mut self) -> Parsed<Statement> {
        self.expect("XA")?;
        let verbs = ["START", "BEGIN", "END", "PREPARE", "COMMIT", "ROLLBACK", "RECOVER"];
        let verb = self.accept_any(&verbs).ok_or_else(|| self.unexpected())?;
        Ok(Statement::Xa(match verb {
            "START" | "BEGIN" => {
                let xid = self.xid()?;
                let how = self.accept_any(&["JOIN", "RESUME"]);
                let how = how.map(|how| if how == "JOIN" { XaStart::Join } else { XaStart::Resume });
                Xa::Start(xid, how)
            }
            "END" => {
                let xid = self.xid()?;
                let suspends = self.accept("SUSPEND");
                if suspends && self.accept("FOR") {
                    self.expect("MIGRATE")?;
                }
                Xa::End(xid, suspends)
            }
            "PREPARE" => Xa::Prepare(self.xid()?),
            "COMMIT" => {
                let xid = self.xid()?;
                let one_phase = self.accept("ONE");
                if one_phase {
                    self.expect("PHASE")?;
                }
                Xa::Commit(xid, one_phase)
            }
            "ROLLBACK" => Xa::Rollback(self.xid()?),
            _ => {
                let converts = self.accept("CONVERT");
                if converts {
                    self.expect("XID")?;
                }
                Xa::Recover(converts)
            }
        }))
    }

    /// `gtrid[, bqual[, format]]`. Parts that are too long are complained of at the format or, without one,
    /// behind the last of them.
    fn xid(&mut self) -> Parsed<Xid> {
        let gtrid = self.xid_part()?;
        let (mut bqual, mut format, mut at) = (Vec::new(), FORMAT, None);
        if self.accept_symbol(b",") {
            bqual = self.xid_part()?;
            if self.accept_symbol(b",") {
                at = Some(self.current);
                format = self.xid_format()?;
            }
        }
        Xid::new(format, &gtrid, &bqual).ok_or_else(|| self.unexpected_at(at.unwrap_or(self.current)))
    }

    /// A text, or bytes as hexadecimal or binary digits.
    fn xid_part(&mut self) -> Parsed<Vec<u8>> {
        let token = self.current;
        let bytes = self.token_bytes(token);
        let value = match token.kind {
            TokenKind::Text => Some(unquote(bytes, self.modes()).into_owned()),
            TokenKind::Hex => hex_value(bytes),
            TokenKind::Bits => bit_value(bytes),
            _ => None,
        };
        let value = value.ok_or_else(|| self.unexpected())?;
        self.advance();
        Ok(value)
    }

    /// A number; of one with a point or an exponent the digits before.
    fn xid_format(&mut self) -> Parsed<i64> {
        let bytes = self.slice();
        let number = match self.current.kind {
            TokenKind::Integer | TokenKind::Decimal | TokenKind::Float => {
                let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
                std::str::from_utf8(&bytes[..digits]).ok().and_then(|digits| match digits {
                    "" => Some(0),
                    digits => digits.parse().ok(),
                })
            }
            TokenKind::Hex => hex_value(bytes).filter(|bytes| bytes.len() <= 8).and_then(|bytes| {
                let number = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
                i64::try_from(number).ok()
            }),
            _ => None,
        };
        let number = number.ok_or_else(|| self.unexpected())?;
        self.advance();
        Ok(number)
    }
}
