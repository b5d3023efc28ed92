//! From a table's definition and the clauses of ALTER TABLE to the definition that it is to have.

use untorn::Table;
use untorn::schema::{ColumnDef, KeyKind, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass};

use super::super::Session;
use super::super::definition::Options;
use super::columns::Column;
use sql::ast::Alteration;
use sql::column_types::chosen;
use sql::errors;
use sql::result::SqlError;

/// What a table is to become.
pub(super) struct Target {
    pub def: TableDef,
    /// For each column which one it was.
    pub origins: Vec<Option<u16>>,
    /// AUTO_INCREMENT, if it is said.
    pub next_number: Option<u64>,
    /// The AUTO_INCREMENT column is the one that it was.
    pub keeps_counter: bool,
    /// The statement asks for a new file.
    pub rebuild: bool,
    /// Rows are to be checked by constraints that are new.
    pub verify: bool,
    /// Values of a column change.
    pub converts: bool,
    /// MySQL copies the rows, and counts them in its answer.
    pub counts_rows: bool,
}

/// The type with another collation, if it is text. One of the four sizes of TEXT is large enough for as many
/// of the longest characters.
fn collated(kind: &ColumnType, rule: Collation) -> ColumnType {
    let mut kind = kind.clone();
    match &mut kind {
        ColumnType::Text { size, collation } => {
            let longest = |of: Collation| u64::from(of.bytes_per_char_max());
            let bytes = size.bytes_max() / longest(*collation) * longest(rule);
            let classes = [SizeClass::Tiny, SizeClass::Normal, SizeClass::Medium];
            let fits = classes.into_iter().find(|class| bytes <= class.bytes_max());
            *size = fits.unwrap_or(SizeClass::Long).max(*size);
            *collation = rule;
        }
        ColumnType::Char { collation, .. }
        | ColumnType::VarChar { collation, .. }
        | ColumnType::Enum { collation, .. }
        | ColumnType::Set { collation, .. }
            if *collation != Collation::Binary =>
        {
            *collation = rule;
        }
        _ => {}
    }
    kind
}

impl Session {
    /// What the clauses make of the table.
    pub(super) fn target_of(&self, table: &Table, changes: &[Alteration]) -> Result<Target, SqlError> {
        let old = &table.def;
        let mut def = TableDef { columns: Vec::new(), keys: Vec::new(), checks: Vec::new(), ..old.clone() };
        let (mut next_number, mut rebuild) = (None, false);
        let mut options = Options::default();
        for change in changes {
            match change {
                Alteration::Option(name, value) => {
                    options.take(name, value, &table.name, &self.state)?;
                    match name.as_str() {
                        "ENGINE" => rebuild = true,
                        "COMMENT" => def.comment.clone_from(value),
                        "AUTO_INCREMENT" => next_number = options.auto_increment,
                        _ => {}
                    }
                }
                Alteration::Rebuild => rebuild = true,
                _ => {}
            }
        }
        def.collation = chosen(options.charset.as_deref(), options.collation.as_deref(), def.collation)?;
        let mut conversion = None;
        for change in changes {
            let Alteration::Convert(charset, collation) = change else { continue };
            let charset = (charset != "default").then_some(charset.as_str());
            let rule = chosen(charset, collation.as_deref(), def.collation)?;
            if rule == Collation::Binary {
                return Err(errors::unsupported("CONVERT TO CHARACTER SET binary"));
            }
            (def.collation, conversion) = (rule, Some(rule));
        }
        let mut columns = self.altered_columns(table, changes, def.collation)?;
        if let Some(rule) = conversion {
            for column in columns.iter_mut().filter(|column| !column.said) {
                column.def.kind = collated(&column.def.kind, rule);
            }
        }
        def.checks = self.altered_checks(table, &columns, changes)?;
        refuse_to_change_storage(old, &columns)?;
        let mut origins: Vec<Option<u16>> = columns.iter().map(|column| column.origin).collect();
        def.columns = columns.into_iter().map(|Column { def, .. }| def).collect();
        self.alter_keys(table, &mut def, &mut origins, changes)?;
        self.alter_foreign_keys(table, &mut def, changes)?;
        def.validate().map_err(|error| sql::failure::engine(&error.into()))?;
        self.planner().check_expressions(&table.database, &table.name, &def)?;
        // In strict mode a NULL is refused without a copy.
        let counts_rows = !self.state.is_strict()
            && origins.iter().zip(&def.columns).any(|(origin, new)| {
                origin.is_some_and(|at| old.columns[usize::from(at)].nullable && !new.nullable)
            });
        Ok(judged(
            old,
            Target {
                def,
                origins,
                next_number,
                keeps_counter: false,
                rebuild,
                verify: false,
                converts: false,
                counts_rows,
            },
        ))
    }
}

/// A column is VIRTUAL, or is not, as long as it exists.
fn refuse_to_change_storage(old: &TableDef, columns: &[Column]) -> Result<(), SqlError> {
    let changes = |column: &&Column| {
        column.origin.is_some_and(|at| old.columns[usize::from(at)].is_virtual != column.def.is_virtual)
    };
    match columns.iter().find(changes) {
        Some(_) => {
            Err(errors::error(errors::UNSUPPORTED_ON_GENERATED_COLUMN, &[&"Changing the STORED status"]))
        }
        None => Ok(()),
    }
}

/// Whether the bytes that say how long a value is grow from one to two.
fn lengthens(was: &ColumnDef, is: &ColumnDef) -> bool {
    let is_short = |kind: &ColumnType| match kind {
        ColumnType::VarChar { chars, collation } => {
            Some(u64::from(*chars) * u64::from(collation.bytes_per_char_max()) <= 255)
        }
        ColumnType::VarBinary { bytes } => Some(*bytes <= 255),
        _ => None,
    };
    is_short(&was.kind) == Some(true) && is_short(&is.kind) == Some(false)
}

/// Whether values stay as they are: another collation of the same character set orders them only.
fn keeps_values(was: &ColumnDef, is: &ColumnDef) -> bool {
    let mut reordered = was.clone();
    if was.kind.collation().charset() == is.kind.collation().charset() {
        reordered.kind = collated(&was.kind, is.kind.collation());
    }
    reordered.stores_alike(is)
}

/// Finds out what the change means for the rows.
fn judged(old: &TableDef, mut target: Target) -> Target {
    let pairs: Vec<_> = target
        .origins
        .iter()
        .zip(&target.def.columns)
        .map(|(origin, new)| (origin.map(|at| &old.columns[usize::from(at)]), new))
        .collect();
    let in_a_key = |at: usize| {
        target.def.keys.iter().any(|key| key.parts.iter().any(|part| usize::from(part.column) == at))
    };
    let kept = |at: usize, was: &ColumnDef, is: &ColumnDef| {
        !lengthens(was, is) && (was.stores_alike(is) || !in_a_key(at) && keeps_values(was, is))
    };
    let converted = |(at, (was, is)): (usize, &(Option<&ColumnDef>, &ColumnDef))| {
        was.is_some_and(|was| !is.hidden && !kept(at, was, is))
    };
    let converts = pairs.iter().enumerate().any(converted);
    let renumbers =
        pairs.iter().any(|(was, is)| was.is_some_and(|was| was.auto_increment != is.auto_increment));
    let regenerates = pairs.iter().any(|(was, is)| match was {
        Some(was) => was.generated != is.generated,
        // MySQL computes those that are VIRTUAL when they are read.
        None => is.generated.is_some() && !is.is_virtual,
    });
    let enforced = |def: &TableDef, name: &str| {
        def.checks.iter().any(|check| check.enforced && check.name.eq_ignore_ascii_case(name))
    };
    let verify = target.def.checks.iter().any(|check| check.enforced && !enforced(old, &check.name));
    let has_primary = |def: &TableDef| def.keys.iter().any(|key| key.kind == KeyKind::Primary);
    let numbered = |def: &TableDef| def.auto_increment_column();
    target.keeps_counter = numbered(&target.def)
        .and_then(|at| target.origins[usize::from(at)])
        .is_some_and(|origin| numbered(old) == Some(origin));
    target.counts_rows |=
        converts || renumbers || regenerates || verify || has_primary(old) && !has_primary(&target.def);
    (target.converts, target.verify) = (converts, verify);
    target
}
