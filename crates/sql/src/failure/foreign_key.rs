//! Why a foreign key is refused, as MySQL says it.

use untorn::schema::ForeignKeyRefusal;

use crate::errors::{self, error};
use crate::result::SqlError;

/// The error of a definition that is refused.
pub fn refused(why: &ForeignKeyRefusal) -> SqlError {
    use ForeignKeyRefusal as Why;
    match why {
        Why::NoParent(parent) => error(errors::FK_CANNOT_OPEN_PARENT, &[parent]),
        Why::NoColumn(column) => error(errors::KEY_COLUMN_MISSING, &[column]),
        Why::NoParentColumn { column, key, parent } => {
            error(errors::FK_NO_COLUMN_PARENT, &[column, key, parent])
        }
        Why::ColumnCount(key) => error(errors::WRONG_FK_DEF, &[key]),
        Why::Incompatible { column, referenced, key } => {
            error(errors::FK_INCOMPATIBLE_COLUMNS, &[column, referenced, key])
        }
        Why::NoParentIndex { key, parent } => error(errors::FK_NO_INDEX_PARENT, &[key, parent]),
        Why::NotNull { column, key } => error(errors::FK_COLUMN_NOT_NULL, &[column, key]),
        Why::ColumnInUse { column, key } => error(errors::FK_COLUMN_CANNOT_CHANGE, &[column, key]),
        Why::ParentColumnInUse { column, broken } => {
            let table = format!("{}.{}", broken.database, broken.table);
            error(errors::FK_COLUMN_CANNOT_CHANGE_CHILD, &[column, &broken.key.name, &table])
        }
        Why::DropColumn { column, key } => error(errors::FK_COLUMN_CANNOT_DROP, &[column, key]),
        Why::DropParentColumn { column, broken } => {
            error(errors::FK_COLUMN_CANNOT_DROP_CHILD, &[column, &broken.key.name, &broken.table])
        }
        Why::Virtual { key, column } => error(errors::FK_VIRTUAL_COLUMN, &[key, column]),
        Why::Checked { key, column, check } => error(errors::FK_CHECK_COLUMN, &[column, check, key]),
        Why::Exists(name) => error(errors::FK_DUP_NAME, &[name]),
        Why::Missing(name) => error(errors::CANT_DROP_FIELD_OR_KEY, &[name]),
        Why::DropParent { parent, key, child } => error(errors::FK_CANNOT_DROP_PARENT, &[parent, key, child]),
        Why::TruncateParent(broken) => {
            let (database, table) = (&broken.database, &broken.table);
            let shown = format!("`{database}`.`{table}`, CONSTRAINT `{}`", broken.key.name);
            error(errors::TRUNCATE_ILLEGAL_FK, &[&shown])
        }
        Why::DiscardParent(_) => error(errors::ROW_IS_REFERENCED, &[&""]),
        Why::NeedsIndex(index) => error(errors::DROP_INDEX_FK, &[index]),
        _ => error(errors::CANNOT_ADD_FOREIGN, &[]),
    }
}
