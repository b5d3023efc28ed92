//! Differences of dialect: what two servers say in different words, or one of them not at all, though nothing
//! was lost. Each has its reason, and is printed by a run that meets it.
//!
//! Between two states of our own server nothing is known: what came to us once must come back the same.

use super::Kind;
use super::state::Fact;

/// A difference that is known.
struct Known {
    /// Between us and which server.
    peer: Kind,
    source: &'static str,
    /// Columns of information_schema; none: all.
    columns: &'static [&'static str],
    /// Only of columns of views.
    of_views: bool,
    /// Whether what the peer and we say means the same.
    same: fn(peer: &str, ours: &str) -> bool,
    reason: &'static str,
}

const ANY: fn(&str, &str) -> bool = |_, _| true;

/// Text that MySQL has stored as UTF-8 of UTF-8.
fn encoded_twice(peer: &str, ours: &str) -> bool {
    // Characters are code page 1252, whose gaps are control characters.
    let again: String = ours.bytes().map(character_of_1252).collect();
    peer == again
}

fn character_of_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9F => HIGH[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

/// A constant as MariaDB writes it in COLUMNS: text in quotes, a number bare.
fn same_constant(peer: &str, ours: &str) -> bool {
    let bare = |text: &str| text.trim_matches('\'').replace("''", "'").replace("\\\\", "\\");
    let number =
        |text: &str| text.trim_start_matches('0').trim_end_matches('0').trim_end_matches('.').to_owned();
    let now = |text: &str| text.to_uppercase().replace("()", "");
    let escaped = bare(peer).replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t");
    let hex = |text: &str| text.bytes().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02X}"));
    escaped == ours
        || bare(peer) == ours
        || number(peer) == number(ours)
        || now(peer) == now(ours)
        || hex(&bare(peer).replace("\\0", "")) == ours
        || hex(&escaped) == ours
}

/// Types without the widths that MariaDB shows.
fn same_type(peer: &str, ours: &str) -> bool {
    let without = |text: &str| {
        let bare: String =
            text.split(['(', ')']).enumerate().filter(|(at, _)| at % 2 == 0).map(|(_, t)| t).collect();
        bare.trim_end().to_owned()
    };
    let integer = ["tinyint", "smallint", "mediumint", "int", "bigint", "year"];
    let is_integer = integer.iter().any(|name| peer.split(['(', ' ']).next() == Some(name));
    is_integer && without(peer) == without(ours) || peer.replace('\\', "\\\\") == ours
}

const MARIADB_JSON: &str =
    "MariaDB, CHECK at a column, as its JSON has one: its name is the column's, here table_chk_1";

const KNOWN: [Known; 22] = [
    Known {
        peer: Kind::MariaDb,
        source: "SHOW CREATE",
        columns: &[],
        of_views: false,
        same: ANY,
        reason: "MariaDB, SHOW CREATE: widths of integers, bare numbers, current_timestamp() and its own text of \
                 expressions; what it says of columns, keys and constraints is compared from information_schema",
    },
    Known {
        peer: Kind::MariaDb,
        source: "COLUMNS",
        columns: &["COLUMN_DEFAULT"],
        of_views: false,
        same: same_constant,
        reason: "MariaDB, COLUMN_DEFAULT: text in quotes, numbers bare, 'NULL' as a word",
    },
    Known {
        peer: Kind::MariaDb,
        source: "COLUMNS",
        columns: &["COLUMN_TYPE"],
        of_views: false,
        same: same_type,
        reason: "MariaDB, COLUMN_TYPE: integers and YEAR with a width, members without escapes",
    },
    Known {
        peer: Kind::MariaDb,
        source: "COLUMNS",
        columns: &["EXTRA"],
        of_views: false,
        same: |peer, ours| {
            peer.to_lowercase().replace("()", "")
                == ours.to_lowercase().replace("default_generated", "").trim()
        },
        reason: "MariaDB, EXTRA: no DEFAULT_GENERATED, current_timestamp() in lower case",
    },
    Known {
        peer: Kind::MariaDb,
        source: "COLUMNS",
        columns: &["GENERATION_EXPRESSION"],
        of_views: false,
        same: |peer, ours| peer == "NULL" && ours.is_empty() || !peer.is_empty() && !ours.is_empty(),
        reason: "MariaDB, GENERATION_EXPRESSION: NULL where there is none; its own text where there is one",
    },
    Known {
        peer: Kind::MariaDb,
        source: "COLUMNS",
        columns: &["NUMERIC_PRECISION", "NUMERIC_SCALE", "CHARACTER_OCTET_LENGTH"],
        of_views: false,
        same: ANY,
        reason: "MariaDB, COLUMNS: the digits of integers with their sign, and how many bytes members take",
    },
    Known {
        peer: Kind::MariaDb,
        source: "CHECK_CONSTRAINTS",
        columns: &["CHECK_CLAUSE"],
        of_views: false,
        same: |peer, ours| !peer.is_empty() && !ours.is_empty(),
        reason: "MariaDB, CHECK_CLAUSE: its own text of expressions",
    },
    Known {
        peer: Kind::MariaDb,
        source: "CHECK_CONSTRAINTS",
        columns: &["CHECK_CLAUSE"],
        of_views: false,
        same: |peer, ours| {
            [peer, ours].contains(&"") && [peer, ours].iter().any(|it| it.contains("json_valid"))
        },
        reason: MARIADB_JSON,
    },
    Known {
        peer: Kind::MariaDb,
        source: "TABLE_CONSTRAINTS",
        columns: &["CONSTRAINT_TYPE"],
        of_views: false,
        same: |peer, ours| [peer, ours].contains(&"") && [peer, ours].contains(&"CHECK"),
        reason: MARIADB_JSON,
    },
    Known {
        peer: Kind::MariaDb,
        source: "VIEWS",
        columns: &["IS_UPDATABLE"],
        of_views: false,
        same: |peer, ours| peer == "YES" && ours == "NO",
        reason: "MariaDB, VIEWS: some views of joins and with computed columns are updatable there, here none",
    },
    Known {
        peer: Kind::MariaDb,
        source: "STATISTICS",
        columns: &["IS_VISIBLE", "EXPRESSION"],
        of_views: false,
        same: ANY,
        reason: "MariaDB, STATISTICS: no IS_VISIBLE and no EXPRESSION",
    },
    Known {
        peer: Kind::MariaDb,
        source: "TABLE_CONSTRAINTS",
        columns: &["ENFORCED"],
        of_views: false,
        same: ANY,
        reason: "MariaDB, TABLE_CONSTRAINTS: no ENFORCED",
    },
    Known {
        peer: Kind::MariaDb,
        source: "REFERENTIAL_CONSTRAINTS",
        columns: &["UPDATE_RULE", "DELETE_RULE"],
        of_views: false,
        same: |peer, ours| {
            ["RESTRICT", "NO ACTION"].contains(&peer) && ["RESTRICT", "NO ACTION"].contains(&ours)
        },
        reason: "MariaDB, foreign keys: RESTRICT where nothing is said, in MySQL NO ACTION; they are the same",
    },
    Known {
        peer: Kind::MariaDb,
        source: "COLUMNS",
        columns: &[],
        of_views: true,
        same: ANY,
        reason: "MariaDB, COLUMNS of views: its own types and defaults of expressions",
    },
    Known {
        peer: Kind::MariaDb,
        source: "TABLES",
        columns: &["TABLE_COMMENT"],
        of_views: false,
        same: |peer, ours| peer == "VIEW" && ours == "VIEW",
        reason: "MariaDB, TABLES: the comment of a view",
    },
    Known {
        peer: Kind::MySql,
        source: "COLUMNS",
        columns: &[],
        of_views: true,
        same: ANY,
        reason: "MySQL, COLUMNS of views: the defaults of expressions that may be no NULL, and digits of constants",
    },
    Known {
        peer: Kind::MySql,
        source: "COLUMNS",
        columns: &["GENERATION_EXPRESSION", "COLUMN_DEFAULT"],
        of_views: false,
        same: encoded_twice,
        reason: "MySQL, GENERATION_EXPRESSION and COLUMN_DEFAULT: texts beyond ASCII are encoded twice",
    },
    Known {
        peer: Kind::MySql,
        source: "CHECK_CONSTRAINTS",
        columns: &["CHECK_CLAUSE"],
        of_views: false,
        same: encoded_twice,
        reason: "MySQL, CHECK_CLAUSE: texts beyond ASCII are encoded twice",
    },
    Known {
        peer: Kind::MySql,
        source: "COLUMNS",
        columns: &["COLUMN_DEFAULT"],
        of_views: false,
        same: |peer, ours| peer.starts_with("0x") && ours.starts_with(peer),
        reason: "MySQL, COLUMN_DEFAULT of VARBINARY: it ends before the first zero byte",
    },
    Known {
        peer: Kind::MySql,
        source: "VIEWS",
        columns: &["IS_UPDATABLE"],
        of_views: false,
        same: |peer, ours| peer == "YES" && ours == "NO",
        reason: "MySQL, VIEWS: some views of joins are updatable there, here none",
    },
    Known {
        peer: Kind::MySql,
        source: "SHOW CREATE",
        columns: &[],
        of_views: false,
        same: |peer, ours| peer.contains(" VIEW ") && without_parentheses(peer) == without_parentheses(ours),
        reason: "MySQL, SHOW CREATE VIEW: no parentheses around IN and ANY of a subquery, and around JSON_TABLE",
    },
    Known {
        peer: Kind::MySql,
        source: "SHOW CREATE",
        columns: &[],
        of_views: false,
        same: |peer, ours| collations_alone(peer) == collations_alone(ours),
        reason: "MySQL, SHOW CREATE: a collation that was said at a column has its character set before it, though \
                 it is the table's",
    },
];

/// Without the character sets that stand before their collations.
fn collations_alone(text: &str) -> String {
    let mut parts = text.split(" CHARACTER SET ");
    let mut alone = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(' ') {
            Some((_, rest)) if rest.starts_with("COLLATE ") => alone.extend([" ", rest]),
            _ => alone.extend([" CHARACTER SET ", part]),
        }
    }
    alone
}

fn without_parentheses(text: &str) -> String {
    text.replace(['(', ')', ' '], "")
}

/// Why two such servers say different things of the same, if it is known.
pub fn reason(
    fact: &Fact,
    of_view: bool,
    (was, is): (Option<&String>, Option<&String>),
    between: (Kind, Kind),
) -> Option<&'static str> {
    let (peer, (theirs, ours)) = match between {
        (Kind::Ours, peer) => (peer, (is, was)),
        (peer, Kind::Ours) => (peer, (was, is)),
        _ => return None,
    };
    let text = |value: Option<&String>| value.cloned().unwrap_or_default();
    let (theirs, ours) = (text(theirs), text(ours));
    let known = KNOWN.iter().find(|known| {
        known.peer == peer
            && known.source == fact.source
            && known.of_views == of_view
            && (known.columns.is_empty() || known.columns.contains(&fact.column))
            && (known.same)(&theirs, &ours)
    })?;
    Some(known.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_set_is_left_out_where_its_collation_says_it() {
        let bare = "`a` text COLLATE utf8mb4_bin, `b` text COLLATE latin1_bin";
        let said = "`a` text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, `b` text COLLATE latin1_bin";
        assert_eq!((collations_alone(bare), collations_alone(said)), (bare.to_owned(), bare.to_owned()));
        let other = "`a` text CHARACTER SET latin1, `b` int";
        assert_eq!(collations_alone(other), other);
    }
}
