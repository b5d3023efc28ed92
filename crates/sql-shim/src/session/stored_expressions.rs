//! What a new table's definition keeps of expressions: defaults, generated columns, CHECK constraints.

use sql::ast::{self, Expr, Unkept};
use sql::errors;
use sql::expr::bind::Binder;
use sql::expr::types::Type;
use sql::parser::check_length;
use sql::result::SqlError;
use sql::stored_values::Storing;
use sql::value::Value;
use untorn::schema::{self, TableDef};
use untorn::types::ColumnType;

use super::Session;

/// The name that the `number`-th CHECK constraint of a table gets when it is given none.
pub(super) fn generated_name(table: &str, number: usize) -> String {
    format!("{table}_chk_{number}")
}

/// Constraints that are new in a table which has `others`, in the order of their names: that is how they are
/// checked and shown.
pub(super) fn checks(
    table: &str,
    said: &[ast::Check],
    others: &[schema::Check],
) -> Result<Vec<schema::Check>, SqlError> {
    let number = |check: &schema::Check| {
        let rest = check.name.strip_prefix(table)?.strip_prefix("_chk_")?;
        rest.parse::<usize>().ok()
    };
    let mut unnamed = others.iter().filter_map(number).max().unwrap_or(0);
    let mut checks: Vec<schema::Check> = Vec::with_capacity(said.len());
    for check in said {
        let said = check.name.clone().filter(|name| !name.is_empty());
        let name = said.unwrap_or_else(|| {
            unnamed += 1;
            generated_name(table, unnamed)
        });
        if checks.iter().chain(others).any(|other| other.name.eq_ignore_ascii_case(&name)) {
            return Err(errors::error(errors::CHECK_DUPLICATE_NAME, &[&name]));
        }
        let expression = check.expression.to_text().map_err(|why| match why {
            Unkept::Variable => errors::error(errors::CHECK_VARIABLE, &[&name]),
            Unkept::Construct | Unkept::Default => errors::error(errors::CHECK_CONSTRUCT, &[&name]),
        })?;
        checks.push(schema::Check {
            name,
            expression,
            enforced: check.enforced,
            column: check.column.clone(),
        });
    }
    schema::sort_checks(&mut checks);
    Ok(checks)
}

/// GENERATED ALWAYS AS of a column.
pub(super) fn set_generated(column: &ast::ColumnDef, def: &mut schema::ColumnDef) -> Result<(), SqlError> {
    let Some(generated) = &column.generated else { return Ok(()) };
    for (said, what) in [
        (column.default.is_some(), "DEFAULT"),
        (column.auto_increment, "AUTO_INCREMENT"),
        (column.on_update_now, "ON UPDATE"),
    ] {
        if said {
            return Err(errors::error(errors::WRONG_USAGE, &[&what, &"generated column"]));
        }
    }
    let text = generated.expression.to_text().map_err(|why| match why {
        Unkept::Variable => errors::error(errors::DEFAULT_EXPRESSION_VARIABLE, &[&column.name]),
        Unkept::Construct | Unkept::Default => {
            errors::error(errors::GENERATED_COLUMN_CONSTRUCT, &[&column.name])
        }
    })?;
    (def.generated, def.is_virtual) = (Some(text), !generated.stored);
    Ok(())
}

impl Session {
    /// DEFAULT of a column.
    pub(super) fn set_default(
        &self,
        name: &str,
        default: Option<&ast::ColumnDefault>,
        def: &mut schema::ColumnDef,
    ) -> Result<(), SqlError> {
        def.default = match default {
            None => None,
            Some(ast::ColumnDefault::Value(value)) => self.constant_default(name, value, def)?,
            Some(ast::ColumnDefault::Expression(_)) if def.auto_increment => {
                return Err(errors::error(errors::INVALID_DEFAULT, &[&name]));
            }
            Some(ast::ColumnDefault::Expression(expr)) => {
                let text = expr.to_text().map_err(|why| match why {
                    Unkept::Variable => errors::error(errors::DEFAULT_EXPRESSION_VARIABLE, &[&name]),
                    Unkept::Default => errors::error(errors::DEFAULT_AS_DEFAULT, &[]),
                    Unkept::Construct => errors::error(errors::DEFAULT_EXPRESSION_CONSTRUCT, &[&name]),
                })?;
                Some(schema::Default::Expression(text))
            }
        };
        Ok(())
    }

    fn constant_default(
        &self,
        name: &str,
        value: &Expr,
        def: &schema::ColumnDef,
    ) -> Result<Option<schema::Default>, SqlError> {
        let invalid = || errors::error(errors::INVALID_DEFAULT, &[&name]);
        let is_now = |name: &str| ["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"].contains(&name);
        match value {
            Expr::Null if def.nullable => return Ok(None),
            Expr::Null => return Err(invalid()),
            Expr::Function { name, .. } if is_now(name) => {
                if !matches!(def.kind, ColumnType::DateTime { .. } | ColumnType::Timestamp { .. }) {
                    return Err(invalid());
                }
                return Ok(Some(schema::Default::CurrentTimestamp));
            }
            _ if def.kind.is_blob() => {
                return Err(errors::error(errors::BLOB_CANT_HAVE_DEFAULT, &[&name]));
            }
            _ if def.auto_increment => return Err(invalid()),
            _ => {}
        }
        let planner = self.planner();
        let ty = Type::of_column(&def.kind, def.nullable);
        let value = Binder::new(&planner, &[]).constant_for(value, ty)?;
        let mut bytes = Vec::new();
        let storing = Storing { state: &self.state, table: "", row: 1, lenient: false };
        storing.encode(&value, def, &mut bytes).map_err(|_| invalid())?;
        let stored = sql::stored_values::decode(&bytes, &def.kind, self.state.time_zone_offset());
        let text = match &value {
            Value::Text(text, _) if def.kind.is_string() => text.to_vec(),
            _ => stored.to_text().into_owned(),
        };
        Ok(Some(schema::Default::Literal(text)))
    }

    /// Names of CHECK constraints are as long as names may be, and unique in a database.
    /// `own` is the table whose they are, if it is there.
    pub(super) fn require_free_check_names(
        &self,
        database: &str,
        own: Option<&str>,
        def: &TableDef,
    ) -> Result<(), SqlError> {
        if def.checks.is_empty() {
            return Ok(());
        }
        def.checks.iter().try_for_each(|check| check_length(&check.name))?;
        for table in self.state.database.all_tables() {
            if !table.database.eq_ignore_ascii_case(database) || own == Some(&table.name) {
                continue;
            }
            for check in &table.def.checks {
                if def.checks.iter().any(|new| new.name.eq_ignore_ascii_case(&check.name)) {
                    return Err(errors::error(errors::CHECK_DUPLICATE_NAME, &[&check.name]));
                }
            }
        }
        Ok(())
    }
}
