//! Statements that come as text: by the plan cache, which parses and plans what it may keep, or parsed and
//! planned for this once (`planning.rs`).

use std::sync::Arc;

use sql::ast::Statement;
use sql::digest::Shape;
use sql::errors;
use sql::failure::Failure;
use sql::memory::StatementCharge;
use sql::parser;
use sql::result::ResultSink;

use super::com_counters;
use super::plan_cache::{self, Fingerprint};
use super::planning::FETCHES_MAX;
use super::{Changed, REPLANS_MAX, Session};

/// What a syntax error quotes may reach into the next statement.
const NEAR_BYTES: usize = 128;

impl Session {
    /// Runs the first statement of a trimmed text that is not in the cache; returns the bytes it took.
    pub(super) async fn run_text<S: ResultSink>(
        &mut self,
        sql: &[u8],
        many: bool,
        out: &mut S,
    ) -> Result<usize, Failure> {
        let result = self.run_measured_text(sql, many, out).await;
        if result.is_err() && !self.current.run_begun {
            // It was refused before anybody forgot the warnings of the one before.
            self.state.clear_warnings();
        }
        result
    }

    async fn run_measured_text<S: ResultSink>(
        &mut self,
        sql: &[u8],
        many: bool,
        out: &mut S,
    ) -> Result<usize, Failure> {
        let extent = self.extent(sql).await?;
        let charge = self.charge_text(extent.as_ref())?;
        let end = extent.map_or(sql.len(), |extent| extent.end);
        self.run_charged_text(sql, end, many, charge.as_ref(), out).await
    }

    /// Runs the statement that ends at `end` or before.
    async fn run_charged_text<S: ResultSink>(
        &mut self,
        sql: &[u8],
        end: usize,
        many: bool,
        charge: Option<&Arc<StatementCharge>>,
        out: &mut S,
    ) -> Result<usize, Failure> {
        let modes = self.state.lexical_modes();
        let text = &sql[..sql.len().min(end + NEAR_BYTES)];
        let parsed = self.parse_text(text, modes, charge).await?;
        let consumed = parsed.consumed;
        let rest = sql.get(consumed..).unwrap_or_default();
        let more = many && !rest.is_empty();
        if !many && !parser::is_blank(rest, modes) {
            return Err(errors::syntax(rest.trim_ascii_start(), 1).into());
        }
        if parsed.parameters > 0 {
            return Err(errors::syntax(b"?", 1).into());
        }
        if matches!(parsed.statement, Statement::Empty) {
            // MySQL answers OK to a comment, 1065 to nothing at all.
            if sql.is_empty() {
                return Err(errors::error(errors::EMPTY_QUERY, &[]).into());
            }
            out.ok(&self.completion(&Changed::default(), more));
            return Ok(consumed);
        }
        self.statement_is_parsed();
        self.admit(&parsed.statement)?;
        self.count(com_counters::of_statement(&parsed.statement));
        let mut statement = Some(parsed.statement);
        out.another_follows(more);
        for _ in 0..REPLANS_MAX {
            // Planning takes the tree apart.
            let statement = match statement.take() {
                Some(statement) => statement,
                None => self.parse_text(text, modes, charge).await?.statement,
            };
            let plan = self.plan_text(statement, end).await?;
            match self.run(&plan, &[], out, more).await {
                Err(Failure::Stale) => {}
                result => return result.map(|()| consumed),
            }
        }
        Err(Failure::Stale)
    }

    /// Runs a text statement through the cache. `None`: it does not belong there.
    pub(super) async fn run_cached<S: ResultSink>(
        &mut self,
        sql: &[u8],
        out: &mut S,
    ) -> Option<Result<(), Failure>> {
        if self.is_restricted() {
            return None;
        }
        let modes = self.state.lexical_modes();
        let mut fingerprint = self.cache.take_scratch();
        let found = fingerprint.of(sql, modes, self.state.settings().sql.plan_modes());
        let result = if found { self.run_fingerprint(&fingerprint, out).await } else { None };
        self.cache.put_scratch(fingerprint);
        result
    }

    async fn run_fingerprint<S: ResultSink>(
        &mut self,
        fingerprint: &Fingerprint,
        out: &mut S,
    ) -> Option<Result<(), Failure>> {
        let database = self.state.current_database();
        let mut fetches = 0;
        for _ in 0..REPLANS_MAX {
            let version = self.plan_version();
            let plan = match self.cache.find(&fingerprint.key, version, database.as_deref()) {
                Some(plan) => plan?,
                None => {
                    let mut wanted = Vec::new();
                    let modes = self.state.lexical_modes();
                    let plan = plan_cache::plan(fingerprint, modes, &self.state, &mut wanted);
                    fetches += 1;
                    if fetches <= FETCHES_MAX {
                        let reads = fingerprint.text().trim_ascii_start();
                        let reads = reads.get(..6).is_some_and(|word| word.eq_ignore_ascii_case(b"SELECT"));
                        let limit = if reads { self.time_limit() } else { None };
                        match self.fetch_for_plan(&wanted, limit).await {
                            Ok(true) => continue,
                            Ok(false) => {}
                            Err(failure) => return Some(Err(failure)),
                        }
                    }
                    let plan = self.cache.add(fingerprint.key.clone(), version, database.clone(), plan);
                    plan?
                }
            };
            let mut digest = plan.digest;
            if self.lacks_digest(digest.as_ref()) {
                digest = self.digest_of(fingerprint.text(), Shape::Whole, database.clone());
                self.cache.set_digest(&fingerprint.key, digest.clone());
            }
            self.keep_digest(digest);
            let parameters = fingerprint.parameters(self.state.settings().sql.connection_collation);
            match self.run(&plan.plan, &parameters, out, false).await {
                Err(Failure::Stale) => self.cache.remove(&fingerprint.key),
                result => return Some(result),
            }
        }
        Some(Err(Failure::Stale))
    }
}
