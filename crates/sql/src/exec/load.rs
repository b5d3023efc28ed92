//! LOAD DATA: lines of a file as rows of INSERT.
//!
//! The file comes in pieces ([`Pieces`]): from the server's disk or from a client, which may send anything at
//! any pace. What is kept of it is a piece and the line that is being read, charged to the statement; a line
//! is at most `max_allowed_packet` long.

use std::future::Future;

use super::Executor;
use super::change::CHANGE_UNITS;
use super::insert::{Changed, Given, Inserting};
use super::text_lines::{Found, Line};
use crate::ast::TextFormat;
use crate::context::SqlContext;
use crate::errors;
use crate::expr::Expr;
use crate::failure::Failure;
use crate::memory::{Charge, refused};
use crate::plan::change::Assigned;
use crate::plan::load::{Encoding, Field, LoadPlan};
use crate::value::Value;
use untorn::types::{Charset, Collation};

/// A file.
pub trait Pieces {
    /// Appends what comes next of it, at least a byte; false at its end.
    fn next(&mut self, into: &mut Vec<u8>) -> impl Future<Output = Result<bool, Failure>>;
}

/// Bytes of a line that are looked at before others may run.
const PORTION_BYTES: usize = 64 * 1024;

/// The work of a portion.
const PORTION_UNITS: u32 = 16;

/// The bytes that have come and are not dealt with: a piece, and a separator that has begun.
struct Buffer<'a, P> {
    pieces: &'a mut P,
    bytes: Vec<u8>,
    begin: usize,
    ended: bool,
    bytes_max: usize,
    charge: Charge<'a>,
    line_charge: Charge<'a>,
}

impl<P: Pieces> Buffer<'_, P> {
    async fn more(&mut self) -> Result<(), Failure> {
        self.bytes.drain(..self.begin);
        self.begin = 0;
        self.ended = !self.pieces.next(&mut self.bytes).await?;
        if self.charge.reach(self.bytes.capacity()) { Ok(()) } else { Err(refused().into()) }
    }

    /// Reads a line with this number of fields, or skips one; false: there is none.
    async fn line(
        &mut self,
        executor: &Executor<'_>,
        format: &TextFormat,
        wanted: Option<usize>,
        line: &mut Line,
    ) -> Result<bool, Failure> {
        line.begin(wanted.is_none());
        let mut length = 0;
        loop {
            let rest = self.bytes.get(self.begin..).unwrap_or_default();
            let portion = &rest[..rest.len().min(PORTION_BYTES)];
            let is_all = portion.len() == rest.len();
            if !self.line_charge.reach(line.weight() + portion.len()) {
                return Err(refused().into());
            }
            let (done, found) = line.read(format, portion, self.ended && is_all, wanted.unwrap_or(0));
            self.begin += done;
            length += done;
            if length > self.bytes_max {
                return Err(errors::error(errors::NET_PACKET_TOO_LARGE, &[]).into());
            }
            match found {
                Found::Line => return Ok(true),
                Found::End => return Ok(false),
                Found::Part => executor.tick(PORTION_UNITS).await?,
            }
            if is_all {
                self.more().await?;
                // A client that sends little at a time has the statement polled for each piece, and never
                // uses up a slice.
                executor.state.check_killed()?;
            }
        }
    }
}

impl<'e> Executor<'e> {
    /// Executes LOAD DATA.
    pub async fn load(&mut self, plan: &LoadPlan, pieces: &mut impl Pieces) -> Result<Changed, Failure> {
        let state: &'e SqlContext = self.state;
        let Some(mut inserting) = self.inserting(&plan.insert, true).await? else {
            return Ok(Changed::default());
        };
        let mut buffer = Buffer {
            pieces,
            bytes: Vec::new(),
            begin: 0,
            ended: false,
            bytes_max: state.terms().packet_bytes_max,
            charge: state.memory.charge(),
            line_charge: state.memory.charge(),
        };
        let mut line = Line::default();
        let (format, wanted) = (&plan.format, plan.fields.len());
        let mut ignored = 0;
        while ignored < plan.ignored_lines
            && !format.line_end.is_empty()
            && buffer.line(self, format, None, &mut line).await?
        {
            self.tick(CHANGE_UNITS).await?;
            ignored += 1;
        }
        let mut number = 0;
        while buffer.line(self, format, Some(wanted), &mut line).await? {
            self.tick(CHANGE_UNITS).await?;
            number += 1;
            self.load_line(plan, &mut inserting, number, &line).await?;
        }
        Ok(inserting.loaded(number, state))
    }

    async fn load_line(
        &mut self,
        plan: &LoadPlan,
        inserting: &mut Inserting<'_, '_>,
        number: u64,
        line: &Line,
    ) -> Result<(), Failure> {
        let state = self.state;
        let mut row = Vec::with_capacity(plan.insert.columns.len());
        inserting.missing = 0..0;
        for (at, field) in plan.fields.iter().enumerate() {
            let is_there = at < line.len();
            match field {
                Field::Nothing if !is_there => inserting.miss(number, state)?,
                Field::Nothing => {}
                Field::Variable(name) => {
                    self.state.set_user_variable(name, plan.value(line.field(at)).into_owned())?;
                }
                Field::Column if is_there => row.push(plan.value(line.field(at))),
                Field::Column => {
                    let first =
                        if inserting.missing.is_empty() { row.len() } else { inserting.missing.start };
                    row.push(Value::Null);
                    inserting.missing = first..row.len();
                }
            }
        }
        if plan.insert.columns.len() == row.len() {
            self.insert_row(inserting, number, Given::Values(&row)).await?;
        } else {
            let said = plan.insert.rows.first().and_then(|said| said.get(row.len()..)).unwrap_or_default();
            let loaded = row.into_iter().map(|value| Assigned::Value(Expr::Literal(value.into_owned())));
            let row: Vec<Assigned> = loaded.chain(said.iter().cloned()).collect();
            self.insert_row(inserting, number, Given::Expressions(&row)).await?;
        }
        if line.cut {
            let error = errors::error(errors::WARN_TOO_MANY_RECORDS, &[&number]);
            if !inserting.lenient {
                return Err(error.into());
            }
            state.warn(error);
        }
        Ok(())
    }
}

impl LoadPlan {
    /// A field as a value.
    fn value<'f>(&self, field: Option<&'f [u8]>) -> Value<'f> {
        let Some(bytes) = field else { return Value::Null };
        match self.encoding {
            Encoding::Binary => Value::Text(bytes.into(), Collation::Binary),
            Encoding::Latin1 => Value::Text(Charset::Latin1.to_utf8(bytes), Collation::Utf8mb4GeneralCi),
            Encoding::Utf8 => Value::Text(bytes.into(), Collation::Utf8mb4GeneralCi),
        }
    }
}
