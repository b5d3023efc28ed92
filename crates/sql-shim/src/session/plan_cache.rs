//! The plan cache: text statements that differ only in their literals share a plan. A plan is
//! stale once `Session::plan_version` has moved on, or when its tables turn out to have changed
//! (`Failure::Stale`).
//!
//! The lexer runs over the text once, copies everything but literals into a key and collects the literals as
//! parameters. The key carries the kind of each literal, because types depend on it. A literal may be more
//! than a value. In ORDER BY (`ORDER BY 2`) it stays in the key as it is. A statement with one that is an
//! alias or stands in a CAST gets no key. Where only the parsed statement shows it (the name of a result
//! column is made from the expression), the key is remembered as not cacheable.

use std::collections::HashMap;
use std::sync::Arc;

use sql::ast::{Query, SelectItem, Statement, TableRef};
use sql::expr::types::Type;
use sql::lexer::{Lexer, LexicalModes, TokenKind, unquote};
use sql::parser;
use sql::plan::estimate::Wanted;
use sql::plan::{Plan, Planner};
use sql::value::{Collation, Value, decimal};

use super::Session;
use super::state::SessionState;
use crate::statement_stats::digests::DigestRow;

/// Longer statements (bulk inserts) are not worth a key.
const TEXT_BYTES_MAX: usize = 4096;

/// Plans kept for a session.
const PLANS_MAX: usize = 256;

/// Bytes that the kept plans of a session may have been charged: plans of wide tables.
const CHARGED_MAX: usize = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LiteralKind {
    Integer,
    Decimal,
    Float,
    Text,
}

#[derive(Clone, Debug)]
enum Literal {
    Int(i64),
    UInt(u64),
    Decimal(String),
    Double(f64),
    Text(Vec<u8>),
}

/// A statement without its literals.
#[derive(Debug, Default)]
pub struct Fingerprint {
    /// The statement with `?` for literals, then the kinds of the literals, then the modes.
    /// See `Settings::plan_modes`.
    pub key: Vec<u8>,
    /// Length of the statement in `key`.
    text_length: usize,
    /// End of the last token, to copy what is between tokens: names of result columns are made of the text as
    /// typed.
    copied: usize,
    literals: Vec<Literal>,
    kinds: Vec<LiteralKind>,
}

impl Fingerprint {
    /// Takes the fingerprint of `sql` under modes that have a say in plans; `false` when it is not a
    /// statement for the cache.
    pub fn of(&mut self, sql: &[u8], modes: LexicalModes, plan_modes: u64) -> bool {
        self.key.clear();
        self.copied = 0;
        self.literals.clear();
        self.kinds.clear();
        let first = sql.trim_ascii_start();
        let starts =
            |word: &[u8]| first.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
        let fits = sql.len() <= TEXT_BYTES_MAX
            && (starts(b"SELECT")
                || starts(b"INSERT")
                || starts(b"UPDATE")
                || starts(b"DELETE")
                || starts(b"REPLACE"));
        if !(fits && self.walk(sql, modes)) {
            return false;
        }
        self.text_length = self.key.len();
        self.key.extend(self.kinds.iter().map(|kind| match kind {
            LiteralKind::Integer => b'i',
            LiteralKind::Decimal => b'd',
            LiteralKind::Float => b'f',
            LiteralKind::Text => b't',
        }));
        self.key.extend(plan_modes.to_le_bytes());
        true
    }

    fn walk(&mut self, sql: &[u8], modes: LexicalModes) -> bool {
        let mut lexer = Lexer::new(sql, modes);
        let mut lifting = true;
        // Whether a string here can only be a value.
        let mut value_place = false;
        // Parentheses around the token, and around the ORDER whose list is being read.
        let (mut depth, mut ordered_at) = (0u32, 0);
        loop {
            let token = lexer.next_token();
            let bytes = lexer.slice(token);
            if token.kind != TokenKind::End && bytes != b";" {
                self.key.extend_from_slice(sql.get(self.copied..token.start as usize).unwrap_or_default());
                self.copied = token.end as usize;
            }
            match token.kind {
                TokenKind::End => return true,
                TokenKind::Integer | TokenKind::Decimal | TokenKind::Float if lifting => {
                    if !self.number(token.kind, bytes) {
                        return false;
                    }
                    value_place = false;
                }
                TokenKind::Text if lifting && value_place => {
                    self.literals.push(Literal::Text(unquote(bytes, modes).into_owned()));
                    self.placeholder(LiteralKind::Text);
                    value_place = false;
                }
                TokenKind::Integer | TokenKind::Decimal | TokenKind::Float | TokenKind::Text if !lifting => {
                    self.copy(bytes);
                }
                TokenKind::Word => {
                    let is = |word: &str| bytes.eq_ignore_ascii_case(word.as_bytes());
                    // The type of STR_TO_DATE is that of its format.
                    if ["CAST", "CONVERT", "GROUP", "INTO", "STR_TO_DATE"].iter().any(|w| is(w))
                        && !(is("INTO") && self.is_insert())
                    {
                        return false;
                    }
                    if is("ORDER") && lifting {
                        (lifting, ordered_at) = (false, depth);
                    }
                    // The LIMIT of a subquery inside ORDER BY is none of its end.
                    lifting |= is("LIMIT") && depth <= ordered_at;
                    value_place =
                        ["LIKE", "AND", "OR", "NOT", "BETWEEN", "THEN", "ELSE", "WHEN", "WHERE", "ON", "XOR"]
                            .iter()
                            .any(|w| is(w));
                    self.copy(bytes);
                }
                TokenKind::QuotedName => {
                    value_place = false;
                    self.copy(bytes);
                }
                TokenKind::Symbol => {
                    match bytes {
                        b"(" => depth += 1,
                        b")" => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    if bytes == b";" {
                        // Only at the end.
                        let rest = sql.get(token.end as usize..).unwrap_or_default();
                        return parser::trimmed(rest).is_empty();
                    }
                    value_place = matches!(
                        bytes,
                        b"(" | b"," | b"=" | b"<" | b">" | b"<=" | b">=" | b"<>" | b"!=" | b"+" | b"-"
                    );
                    self.copy(bytes);
                }
                _ => return false,
            }
        }
    }

    fn is_insert(&self) -> bool {
        self.key.first().is_some_and(|b| matches!(b, b'I' | b'i' | b'R' | b'r'))
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.key.extend_from_slice(bytes);
    }

    fn placeholder(&mut self, kind: LiteralKind) {
        self.kinds.push(kind);
        self.key.push(b'?');
    }

    fn number(&mut self, kind: TokenKind, bytes: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(bytes) else { return false };
        let (literal, kind) = match kind {
            TokenKind::Integer => match (text.parse::<i64>(), text.parse::<u64>()) {
                (Ok(v), _) => (Literal::Int(v), LiteralKind::Integer),
                (_, Ok(v)) => (Literal::UInt(v), LiteralKind::Integer),
                _ => return false,
            },
            TokenKind::Decimal => (Literal::Decimal(text.to_owned()), LiteralKind::Decimal),
            _ => match text.parse() {
                Ok(v) => (Literal::Double(v), LiteralKind::Float),
                Err(_) => return false,
            },
        };
        self.literals.push(literal);
        self.placeholder(kind);
        true
    }

    /// The statement with `?` for literals.
    pub fn text(&self) -> &[u8] {
        self.key.get(..self.text_length).unwrap_or_default()
    }

    /// The literals as parameters; texts under the collation of the connection.
    pub fn parameters(&self, rule: Collation) -> smallvec::SmallVec<[Value<'_>; 4]> {
        self.literals
            .iter()
            .map(|literal| match literal {
                Literal::Int(v) => Value::Int(*v),
                Literal::UInt(v) => Value::UInt(*v),
                Literal::Double(v) => Value::Double(*v),
                Literal::Decimal(text) => decimal::parse(text).map_or(Value::Null, Value::Decimal),
                Literal::Text(bytes) => Value::Text(std::borrow::Cow::Borrowed(bytes), rule),
            })
            .collect()
    }

    fn types(&self, rule: Collation) -> Vec<Type> {
        self.kinds
            .iter()
            .map(|kind| match kind {
                LiteralKind::Integer => Type::INT,
                LiteralKind::Decimal => Type::decimal(30, 10),
                LiteralKind::Float => Type::DOUBLE,
                LiteralKind::Text => Type { collation: rule, ..Type::text(255) },
            })
            .map(Type::not_null)
            .collect()
    }
}

/// Whether the answer's shape does not depend on the literals.
fn is_shapely(statement: &Statement) -> bool {
    fn query(query: &Query) -> bool {
        query.with.is_empty()
            && query.selects.len() == 1
            && query.into.is_client()
            && query.selects.iter().all(|(_, select)| {
                select.from.as_ref().is_none_or(plain)
                    && select.items.iter().all(|item| match item {
                        SelectItem::Star { .. } => true,
                        SelectItem::Expr { text, .. } => !text.contains('?'),
                    })
            })
    }
    fn plain(table: &TableRef) -> bool {
        match table {
            TableRef::Table { .. } => true,
            TableRef::Derived { .. } | TableRef::JsonTable { .. } => false,
            TableRef::Join { left, right, .. } => plain(left) && plain(right),
        }
    }
    match statement {
        Statement::Select(select) => query(select),
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => true,
        _ => false,
    }
}

/// Plans a fingerprint; `None` when the statement has to be run with its literals in place: another plan may
/// be better for others. Errors too are left to the run with literals, so that their texts are right. What
/// the plan was in want of is added to `wanted`.
pub fn plan(
    fingerprint: &Fingerprint,
    modes: LexicalModes,
    state: &SessionState,
    wanted: &mut Vec<Wanted>,
) -> Option<SmallPlan> {
    let parsed = parser::parse(fingerprint.text(), modes).ok()?;
    if usize::from(parsed.parameters) != fingerprint.literals.len() || !is_shapely(&parsed.statement) {
        return None;
    }
    let types = fingerprint.types(state.settings().sql.connection_collation);
    let mut planner = Planner::brief(state);
    planner.parameter_types = &types;
    let plan = planner.data(&parsed.statement).ok()??;
    *wanted = planner.take_wanted();
    if planner.value_dependent.get() {
        return None;
    }
    let charged = planner.charged();
    (charged <= CHARGED_MAX / 8).then_some(SmallPlan { plan, charged })
}

impl Session {
    /// What a plan is made for: a state of the catalog, of the grants, of the active roles and of the
    /// temporary tables. Each of the four numbers only grows, so their sum stays the same only while all do.
    pub(super) fn plan_version(&self) -> u64 {
        let catalog = self.state.database.catalog_version();
        let accounts = self.state.server.accounts.generation();
        let grants = accounts.wrapping_add(self.state.role_changes());
        catalog.wrapping_add(grants).wrapping_add(self.state.temporary.version())
    }
}

/// A plan that may be kept.
pub struct SmallPlan {
    plan: Plan,
    /// What it has been charged: it keeps that.
    charged: usize,
}

/// A kept plan.
#[derive(Clone)]
pub struct CachedPlan {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Where its runs are counted.
    pub digest: Option<Arc<DigestRow>>,
}

struct Entry {
    plan: Option<CachedPlan>,
    version: u64,
    database: Option<Arc<str>>,
    charged: usize,
}

/// The plans of a session.
#[derive(Default)]
pub struct PlanCache {
    entries: HashMap<Vec<u8>, Entry>,
    /// What the plans have been charged.
    charged: usize,
    scratch: Option<Fingerprint>,
}

impl PlanCache {
    /// A fingerprint to reuse.
    pub fn take_scratch(&mut self) -> Fingerprint {
        self.scratch.take().unwrap_or_default()
    }

    /// Gives it back.
    pub fn put_scratch(&mut self, scratch: Fingerprint) {
        self.scratch = Some(scratch);
    }

    /// What is known of a key: nothing, that it is not cacheable, or its plan.
    pub fn find(&self, key: &[u8], version: u64, database: Option<&str>) -> Option<Option<CachedPlan>> {
        let entry = self.entries.get(key)?;
        (entry.version == version && entry.database.as_deref() == database).then(|| entry.plan.clone())
    }

    /// Remembers a plan, or that there is none. The cache is emptied when it is full.
    pub fn add(
        &mut self,
        key: Vec<u8>,
        version: u64,
        database: Option<Arc<str>>,
        plan: Option<SmallPlan>,
    ) -> Option<CachedPlan> {
        let charged = plan.as_ref().map_or(0, |plan| plan.charged);
        if self.entries.len() >= PLANS_MAX || self.charged + charged > CHARGED_MAX {
            self.entries.clear();
            self.charged = 0;
        }
        self.charged += charged;
        let plan = plan.map(|small| CachedPlan { plan: Arc::new(small.plan), digest: None });
        if let Some(old) = self.entries.insert(key, Entry { plan: plan.clone(), version, database, charged })
        {
            self.charged -= old.charged;
        }
        plan
    }

    /// Where the runs of a kept plan are counted from now on.
    pub fn set_digest(&mut self, key: &[u8], digest: Option<Arc<DigestRow>>) {
        if let Some(plan) = self.entries.get_mut(key).and_then(|entry| entry.plan.as_mut()) {
            plan.digest = digest;
        }
    }

    /// Forgets a key.
    pub fn remove(&mut self, key: &[u8]) {
        if let Some(entry) = self.entries.remove(key) {
            self.charged -= entry.charged;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(sql: &str) -> Option<String> {
        let mut fingerprint = Fingerprint::default();
        let found = fingerprint.of(sql.as_bytes(), LexicalModes::default(), 0);
        let text =
            fingerprint.key.len().checked_sub(size_of::<u64>()).and_then(|end| fingerprint.key.get(..end));
        text.filter(|_| found).map(|text| String::from_utf8_lossy(text).into_owned())
    }

    #[test]
    fn literals_are_lifted() {
        assert_eq!(key("SELECT c FROM t WHERE id=5"), key("SELECT c FROM t WHERE id=77;"));
        assert_ne!(key("SELECT c FROM t WHERE id=5"), key("SELECT c FROM t WHERE id='5'"));
        assert_eq!(key("INSERT INTO t VALUES (1,'a''b')"), key("INSERT INTO t VALUES (2,'x')"));
        assert_ne!(key("SELECT a FROM t ORDER BY 1"), key("SELECT a FROM t ORDER BY 2"));
        assert_eq!(key("SELECT a FROM t ORDER BY a LIMIT 1"), key("SELECT a FROM t ORDER BY a LIMIT 9"));
    }

    #[test]
    fn some_statements_stay_out() {
        for sql in [
            "SELECT a 'alias' FROM t",
            "SELECT DATE '2024-01-01'",
            "SELECT @x",
            "SELECT CAST(a AS CHAR(3)) FROM t",
            "SET a = 1",
            "SELECT 1; SELECT 2",
            "SELECT a FROM t WHERE b = 'x' 'y'",
        ] {
            assert_eq!(key(sql), None, "{sql}");
        }
    }
}
