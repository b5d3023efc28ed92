//! Statements as trees of text, so that a finding can be made smaller without knowing any SQL.
//!
//! Only how a piece may be reduced is known of it. A reduction that makes no sense gives the same error at
//! every server, shows no difference and is thereby refused.

/// A piece of a statement.
#[derive(Clone, Debug)]
pub enum Sql {
    Text(String),
    Part(Kind, Vec<Sql>),
}

/// What a piece is, as far as reducing and rewriting it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its pieces, one behind the other.
    All,
    /// A value: one inside of it may take its place, or a constant.
    Value,
    /// A query: one inside of it may take its place.
    Query,
    /// May be left out.
    Optional,
    /// Members with commas between them, all but one of which may be left out.
    List,
    /// The condition of the outermost query, with its WHERE.
    Partition,
    /// An aggregate in a subquery: it, the aliases of the subquery's own tables, and of those around it. The
    /// aliases, with blanks between them and a point behind each, are not written.
    Aggregate,
    /// A table in FROM: its name, its alias, the names of its indexes (which are not written).
    Table,
}

/// How a tree is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    /// Tables are read without any index.
    WithoutIndexes,
    /// The condition is left out.
    Whole,
    /// The condition is negated.
    Negated,
    /// The condition is unknown.
    Unknown,
    /// The condition stands where a plan cannot take it to pieces.
    Hidden,
}

impl Sql {
    pub fn text(text: impl Into<String>) -> Sql {
        Sql::Text(text.into())
    }

    pub fn all(pieces: Vec<Sql>) -> Sql {
        Sql::Part(Kind::All, pieces)
    }

    pub fn optional(pieces: Vec<Sql>) -> Sql {
        Sql::Part(Kind::Optional, pieces)
    }

    pub fn list(members: Vec<Sql>) -> Sql {
        Sql::Part(Kind::List, members)
    }

    /// The statement's text.
    pub fn written(&self, style: Style) -> String {
        let mut text = String::new();
        self.write(style, &mut text);
        text
    }

    fn write(&self, style: Style, text: &mut String) {
        match self {
            Sql::Text(piece) => text.push_str(piece),
            Sql::Part(Kind::List, members) => {
                for (at, member) in members.iter().enumerate() {
                    text.push_str(if at == 0 { "" } else { ", " });
                    member.write(style, text);
                }
            }
            Sql::Part(Kind::Aggregate, pieces) => {
                pieces.iter().take(1).for_each(|piece| piece.write(style, text));
            }
            Sql::Part(Kind::Table, pieces) => {
                for piece in pieces.iter().take(2) {
                    piece.write(style, text);
                }
                let names = match pieces.get(2) {
                    Some(Sql::Text(names)) if !names.is_empty() => Some(names),
                    _ => None,
                };
                if let (Style::WithoutIndexes, Some(names)) = (style, names) {
                    text.push_str(&format!(" IGNORE INDEX ({names})"));
                }
            }
            Sql::Part(Kind::Partition, pieces) => {
                let (before, after) = match style {
                    Style::Whole => return,
                    Style::Plain | Style::WithoutIndexes => ("", ""),
                    Style::Negated => ("NOT ", ""),
                    Style::Unknown => ("", " IS NULL"),
                    Style::Hidden => ("IF(", ", 1, 0) > RAND()"),
                };
                text.push_str(" WHERE ");
                text.push_str(before);
                text.push('(');
                pieces.iter().for_each(|piece| piece.write(style, text));
                text.push(')');
                text.push_str(after);
            }
            Sql::Part(_, pieces) => pieces.iter().for_each(|piece| piece.write(style, text)),
        }
    }

    /// Whether an aggregate in a subquery reads nothing of the subquery's own tables, but something of those
    /// around it: it belongs to the query around, whose rows are then one group.
    pub fn has_outer_aggregate(&self) -> bool {
        let Sql::Part(kind, pieces) = self else { return false };
        if let (Kind::Aggregate, [aggregate, Sql::Text(own), Sql::Text(around)]) = (kind, &pieces[..]) {
            let text = aggregate.written(Style::Plain);
            let reads = |aliases: &str| aliases.split_whitespace().any(|alias| names(&text, alias));
            if reads(around) && !reads(own) {
                return true;
            }
        }
        pieces.iter().any(Sql::has_outer_aggregate)
    }

    /// Every tree that is smaller by one step, the largest steps first.
    pub fn reductions(&self) -> Vec<Sql> {
        let mut found = self.own_reductions();
        if let Sql::Part(kind, pieces) = self {
            for (at, piece) in pieces.iter().enumerate() {
                for smaller in piece.reductions() {
                    let mut pieces = pieces.clone();
                    pieces[at] = smaller;
                    found.push(Sql::Part(*kind, pieces));
                }
            }
        }
        found.sort_by_key(Sql::size);
        found
    }

    fn own_reductions(&self) -> Vec<Sql> {
        let Sql::Part(kind, pieces) = self else { return Vec::new() };
        match kind {
            Kind::Optional => vec![Sql::all(Vec::new())],
            Kind::List if pieces.len() > 1 => (0..pieces.len())
                .map(|at| {
                    let mut pieces = pieces.clone();
                    pieces.remove(at);
                    Sql::Part(Kind::List, pieces)
                })
                .collect(),
            Kind::Value | Kind::Query => {
                let mut inner = Vec::new();
                pieces.iter().for_each(|piece| piece.parts_of(*kind, &mut inner));
                if *kind == Kind::Value && self.size() > 8 {
                    inner.extend(["NULL", "1"].map(Sql::text));
                }
                inner
            }
            _ => Vec::new(),
        }
    }

    fn parts_of(&self, wanted: Kind, found: &mut Vec<Sql>) {
        if let Sql::Part(kind, pieces) = self {
            if *kind == wanted {
                found.push(self.clone());
            } else {
                pieces.iter().for_each(|piece| piece.parts_of(wanted, found));
            }
        }
    }

    /// Letters in it.
    pub fn size(&self) -> usize {
        match self {
            Sql::Text(text) => text.len(),
            Sql::Part(_, pieces) => pieces.iter().map(Sql::size).sum(),
        }
    }
}

/// Whether a text has this alias with its point, and not as the end of another.
fn names(text: &str, alias: &str) -> bool {
    let begins = |at: usize| !text[..at].ends_with(|before: char| before.is_ascii_alphanumeric());
    text.match_indices(alias).any(|(at, _)| begins(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(pieces: Vec<Sql>) -> Sql {
        Sql::Part(Kind::Value, pieces)
    }

    #[test]
    fn the_condition_and_the_tables_are_written_in_each_style() {
        let table = Sql::Part(Kind::Table, ["t", " AS a", "k, l"].map(Sql::text).to_vec());
        let condition = Sql::Part(Kind::Partition, vec![Sql::text("x = 1")]);
        let query = Sql::all(vec![Sql::text("SELECT x FROM "), table, condition]);
        assert_eq!(query.written(Style::Plain), "SELECT x FROM t AS a WHERE (x = 1)");
        assert_eq!(query.written(Style::Whole), "SELECT x FROM t AS a");
        assert_eq!(query.written(Style::Negated), "SELECT x FROM t AS a WHERE NOT (x = 1)");
        assert_eq!(query.written(Style::Unknown), "SELECT x FROM t AS a WHERE (x = 1) IS NULL");
        let without = "SELECT x FROM t AS a IGNORE INDEX (k, l) WHERE (x = 1)";
        assert_eq!(query.written(Style::WithoutIndexes), without);
        let hidden = "SELECT x FROM t AS a WHERE IF((x = 1), 1, 0) > RAND()";
        assert_eq!(query.written(Style::Hidden), hidden);
        let bare = Sql::Part(Kind::Table, ["t", " AS a", ""].map(Sql::text).to_vec());
        assert_eq!(bare.written(Style::WithoutIndexes), "t AS a");
    }

    #[test]
    fn an_aggregate_belongs_to_the_query_whose_columns_it_reads() {
        let of = |argument: &str| {
            let aggregate = Sql::text(format!("MAX({argument})"));
            let pieces = vec![aggregate, Sql::text("a2. d3."), Sql::text("a1.")];
            let query =
                value(vec![Sql::text("(SELECT "), Sql::Part(Kind::Aggregate, pieces), Sql::text(")")]);
            assert_eq!(query.written(Style::Plain), format!("(SELECT MAX({argument}))"));
            query.has_outer_aggregate()
        };
        assert!(of("a1.c1"));
        assert!(!of("a1.c1 + d3.c1"));
        assert!(!of("a2.c1") && !of("7") && !of("(SELECT 1 FROM t AS a21 WHERE a21.c1 = 3)"));
    }

    #[test]
    fn reductions_drop_members_and_take_what_is_inside() {
        let sum = value(vec![value(vec![Sql::text("a1.c1")]), Sql::text(" + "), value(vec![Sql::text("2")])]);
        let list = Sql::list(vec![sum, Sql::text("x")]);
        let texts: Vec<String> =
            list.reductions().iter().map(|smaller| smaller.written(Style::Plain)).collect();
        for expected in ["x", "a1.c1 + 2", "a1.c1, x", "2, x", "NULL, x"] {
            assert!(texts.contains(&expected.to_owned()), "{expected}: {texts:?}");
        }
    }
}
