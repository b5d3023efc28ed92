//! COM_QUERY: one statement after the other, from the client's bytes to the answer. A text goes through
//! `text.rs`: by the plan cache, or planned for this once. Statements that were prepared are served in
//! `prepared.rs`.

use std::io;
use std::time::Instant;

use sql::parser;
use sql::result::ResultSink;

use super::Session;
use crate::status::Counter;

impl Session {
    pub(super) async fn run_query(&mut self, sql: &[u8], out: &mut impl ResultSink) -> io::Result<()> {
        let mut begun = Instant::now();
        self.begin_stats();
        self.state.begin_statement();
        let sql = parser::trimmed(sql);
        out.charset(self.state.settings().results_charset);
        if let Some(result) = self.run_cached(sql, out).await {
            self.end_stats(begun, sql, result.is_err());
            return match result {
                Ok(()) => Ok(()),
                Err(failure) => self.answer_failure(failure, out),
            };
        }
        let many = self.state.connection.client_flags().multi_statements;
        let mut rest = sql;
        loop {
            out.charset(self.state.settings().results_charset);
            let result = self.run_text(rest, many, out).await;
            let consumed = result.as_ref().ok().and_then(|consumed| rest.get(..*consumed));
            begun = self.end_stats(begun, consumed.unwrap_or(rest), result.is_err());
            match result {
                Ok(consumed) => {
                    rest = rest.get(consumed..).unwrap_or_default();
                    if !many || rest.is_empty() {
                        return Ok(());
                    }
                    self.begin_stats();
                    // Many short ones are together as long as a long one. A kill meets the next of them.
                    let slice = self.transaction.engine().slice().clone();
                    _ = slice.give_way().await;
                    self.state.begin_statement();
                    if !parser::is_blank(rest, self.state.lexical_modes()) {
                        self.state.connection.counters.add(Counter::Questions, 1);
                    }
                }
                Err(failure) => return self.answer_failure(failure, out),
            }
        }
    }
}
