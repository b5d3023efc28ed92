//! The collation of texts that functions write themselves.
//!
//! HEX, a number in CONCAT, a CAST to CHAR and the like answer text in the connection's collation, as a
//! literal has: in a view that of the session that made it, in a table's definition always the same. What
//! tells names of the server (DATABASE, USER, VERSION) answers in that of the server's names. Functions give
//! the first collation that there is, and it is put right here, once, where they are bound.

use untorn::types::Collation;

use super::collation::{checked, counts, under};
use super::{Binder, Bound};
use crate::expr::functions::{Function, TextOf};
use crate::expr::types::{Derivation, Type};

/// Functions that tell names of the server.
const OF_THE_SERVER: [&str; 13] = [
    "CHARSET",
    "COLLATION",
    "CURRENT_ROLE",
    "CURRENT_USER",
    "DATABASE",
    "FORMAT_BYTES",
    "FORMAT_PICO_TIME",
    "ICU_VERSION",
    "SCHEMA",
    "SESSION_USER",
    "SYSTEM_USER",
    "USER",
    "VERSION",
];

/// What functions write in unless they are told otherwise.
const UNSAID: Collation = Collation::Utf8mb4GeneralCi;

impl Binder<'_, '_> {
    /// A function's text, unless an argument says what its collation is.
    pub(super) fn own_text(&self, function: &Function, result: Bound, arguments: &[Type]) -> Bound {
        let said = match function.text_of {
            TextOf::Connection => false,
            TextOf::First => arguments.first().copied().is_some_and(counts),
            TextOf::Arguments => arguments.iter().copied().any(counts),
        };
        let name = function.name;
        if OF_THE_SERVER.contains(&name) || name == "UUID" {
            let (expr, ty) = under(result, Collation::Utf8mb3GeneralCi);
            let derivation = if name == "UUID" { ty.derivation } else { Derivation::System };
            return (expr, Type { derivation, ..ty });
        }
        // Documents are in UTF-8, whatever the connection is in.
        if said || name.starts_with("JSON_") { result } else { self.in_connection(result) }
    }

    /// The connection's collation. What a table's definition keeps must not depend on who evaluates it: there
    /// it is always the same one.
    pub(super) fn connection_rule(&self) -> Collation {
        if self.is_kept { UNSAID } else { self.planner.literal_collation() }
    }

    /// A text of no collation in that of the connection.
    pub(super) fn in_connection(&self, text: Bound) -> Bound {
        let rule = self.connection_rule();
        match counts(text.1) && text.1.collation == UNSAID && rule != UNSAID {
            true => under(checked(text, rule), rule),
            false => text,
        }
    }
}
