//! The sources of a query: tables of the engine, virtual tables, derived tables.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use untorn::Table;
use untorn::schema::{ColumnDef, Default, KeyKind, TableDef};
use untorn::types::{Charset, ColumnType};

use super::json_table::JsonTable;
use super::view::Below;
use super::{Condition, SelectPlan};
use crate::ast::HintKind;
use crate::catalog_views::{View, filled_width};
use crate::exec::Rows;
use crate::expr::Expr;
use crate::expr::types::Type;
use crate::privilege_checks::ColumnAccess;
use crate::result::{ColumnMeta, charset, column_flag, kind};
use crate::value::Value;

/// A column of a source.
#[derive(Clone, Debug)]
pub struct SourceColumn {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: Type,
    /// Key and other flags for the column definition.
    pub flags: u16,
    /// The length that clients are told, where the definition says one.
    pub shown_length: Option<u32>,
    /// Merged with a column of the same name by USING or NATURAL.
    pub merged: bool,
    /// INVISIBLE: `*` leaves it out, and so do INSERT without names of columns and NATURAL.
    pub invisible: bool,
}

impl SourceColumn {
    /// What one takes that has such a name, which stands in the index of names as well.
    pub fn bytes(name: &str) -> usize {
        size_of::<SourceColumn>() + 64 + 2 * name.len()
    }
}

/// What a source is.
#[derive(Debug)]
pub enum SourceKind {
    /// A table of the engine.
    Table(TableHandle),
    /// A view of the catalog or of the server's state.
    View(&'static View),
    /// `(SELECT …) alias`.
    Derived(Box<SelectPlan>),
    /// `JSON_TABLE(…) alias`
    JsonTable(Box<JsonTable>),
    /// The rows that came new in the recursive common table of this number.
    Recursion(u32),
    /// These rows.
    Given(Arc<Rows>),
    /// A table that is to be made, with these columns: its expressions are bound to it, nothing is read from
    /// it.
    Definition(Vec<ColumnDef>),
}

impl SourceKind {
    /// The flag and width of a ZEROFILL column that a derived table shows.
    pub(super) fn filled(&self, column: u16) -> Option<(u16, Option<u32>)> {
        let SourceKind::Derived(plan) = self else { return None };
        if !plan.unions.is_empty() || plan.recursion.is_some() {
            return None;
        }
        let Expr::Column { source, column } = plan.items.get(usize::from(column))?.unshared() else {
            return None;
        };
        let shown = plan.sources.get(usize::from(*source))?.columns.get(usize::from(*column))?;
        let flag = shown.flags & column_flag::ZEROFILL;
        (flag != 0).then_some((flag, shown.shown_length))
    }
}

/// A table, printable.
#[derive(Clone)]
pub struct TableHandle(pub Arc<Table>);

impl std::fmt::Debug for TableHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0.database, self.0.name)
    }
}

/// A table as a view shows it, whose name and columns the source has: columns that the view has not have no
/// name.
#[derive(Debug, std::default::Default)]
pub struct Mask {
    /// The columns of the view in their order: name, and number of the column; of a computed one the number
    /// behind those of the table.
    pub shown: Vec<(String, u16)>,
    /// Columns that are computed.
    pub computed: Vec<(Expr, Type)>,
    /// Rows that are not so are none of the view's.
    pub conditions: Vec<Condition>,
    /// Rows that are written must be so.
    pub check: Vec<Condition>,
    /// What the view reads, and in whose name.
    pub below: Vec<Below>,
    /// Columns of the view that may not be read below it.
    pub denied: Vec<String>,
    /// Index hints of the view.
    pub hints: Vec<(HintKind, Vec<String>)>,
}

/// A source.
#[derive(Debug)]
pub struct Source {
    /// Database it belongs to; empty for derived tables.
    pub database: String,
    /// Name in the statement.
    pub alias: String,
    /// Its own name.
    pub table: String,
    /// Columns.
    pub columns: Vec<SourceColumn>,
    /// Their numbers by name, in lower case: made when the first name is looked for among many.
    numbers: OnceLock<HashMap<String, u16>>,
    /// What it is.
    pub kind: SourceKind,
    /// It is a view of a table.
    pub mask: Option<Box<Mask>>,
    /// What may be done with each column, where that is not said by who may name the table.
    pub access: Option<Box<ColumnAccess>>,
    /// It is on the inner side of an outer join: clients are told that any of its columns may be NULL.
    pub may_be_missing: bool,
    /// Whether MySQL puts the query below in its place: found out once for all of its columns.
    replaced: OnceLock<bool>,
}

/// Names are looked for one by one among so few.
const COLUMNS_FEW: usize = 24;

impl Source {
    /// What a statement knows as `alias`.
    pub fn new(
        database: String,
        alias: String,
        table: String,
        columns: Vec<SourceColumn>,
        kind: SourceKind,
    ) -> Source {
        let numbers = OnceLock::new();
        Source {
            database,
            alias,
            table,
            columns,
            numbers,
            kind,
            mask: None,
            access: None,
            may_be_missing: false,
            replaced: OnceLock::new(),
        }
    }

    /// Whether a view has this name.
    pub(super) fn is_of_view(&self) -> bool {
        self.mask.is_some() || matches!(self.kind, SourceKind::Derived(_)) && !self.database.is_empty()
    }

    /// The same, of whose columns only this is allowed.
    pub(super) fn with_access(mut self, access: Option<Box<ColumnAccess>>) -> Source {
        self.access = access;
        self
    }

    /// A table of the engine.
    pub fn table(table: Arc<Table>, alias: Option<&str>) -> Source {
        let columns = Source::columns_of(&table.def);
        let (database, name) = (table.database.clone(), table.name.clone());
        let alias = alias.unwrap_or(&name).to_owned();
        Source::new(database, alias, name, columns, SourceKind::Table(TableHandle(table)))
    }

    /// The columns of a table but for hidden ones, with what the definition says of them.
    pub(super) fn columns_of(def: &TableDef) -> Vec<SourceColumn> {
        let visible = def.visible_columns();
        let mut columns: Vec<SourceColumn> = Vec::with_capacity(visible.len());
        for (number, column) in visible.iter().enumerate() {
            let mut flags = 0;
            for key in &def.keys {
                let Some(position) = key.parts.iter().position(|part| usize::from(part.column) == number)
                else {
                    continue;
                };
                flags |= column_flag::PART_KEY;
                match key.kind {
                    _ if def.is_shown_as_primary(key) => flags |= column_flag::PRIMARY_KEY,
                    KeyKind::Unique if key.parts.len() == 1 => flags |= column_flag::UNIQUE_KEY,
                    _ if position == 0 => flags |= column_flag::MULTIPLE_KEY,
                    _ => {}
                }
            }
            if column.auto_increment {
                flags |= column_flag::AUTO_INCREMENT;
            }
            if (!column.nullable || column.without_default)
                && column.default.is_none()
                && column.generated.is_none()
                && !column.auto_increment
            {
                flags |= column_flag::NO_DEFAULT_VALUE;
            }
            let mut ty = Type::of_column(&column.kind, column.nullable);
            if column.on_update_now && ty.kind == kind::TIMESTAMP {
                flags |= column_flag::ON_UPDATE_NOW;
            }
            let by_itself = matches!(column.default, Some(Default::CurrentTimestamp)) || column.on_update_now;
            if ty.kind == kind::TIMESTAMP && by_itself {
                flags |= column_flag::TIMESTAMP;
            }
            if column.zerofill {
                flags |= column_flag::ZEROFILL;
            }
            if column.unsigned {
                flags |= column_flag::UNSIGNED;
            }
            ty.decimals = column.decimals.unwrap_or(ty.decimals);
            let without_sign = (column.unsigned && ty.kind == kind::NEWDECIMAL).then(|| ty.length - 1);
            let shown_length = column.width.map(u32::from).or_else(|| filled_width(column)).or(without_sign);
            columns.push(SourceColumn {
                name: column.name.clone(),
                ty,
                flags,
                shown_length,
                merged: false,
                invisible: column.invisible,
            });
        }
        columns
    }

    /// The engine's table, when it is one.
    pub fn engine_table(&self) -> Option<&Arc<Table>> {
        match &self.kind {
            SourceKind::Table(TableHandle(table)) => Some(table),
            _ => None,
        }
    }

    /// What it reads of the sources before it: of a LATERAL derived table, or a JSON_TABLE.
    pub fn reads(&self) -> impl Iterator<Item = &Expr> {
        let read = match &self.kind {
            SourceKind::Derived(plan) => &plan.captures[..],
            SourceKind::JsonTable(table) => std::slice::from_ref(&table.document),
            _ => &[],
        };
        read.iter()
    }

    /// The definition of an ENUM or SET column, also where a derived table shows it.
    pub fn members(&self, column: u16) -> Option<&ColumnType> {
        match &self.kind {
            SourceKind::Table(table) => {
                let kind = &table.0.def.columns.get(usize::from(column))?.kind;
                matches!(kind, ColumnType::Enum { .. } | ColumnType::Set { .. }).then_some(kind)
            }
            SourceKind::Definition(columns) => {
                let kind = &columns.get(usize::from(column))?.kind;
                matches!(kind, ColumnType::Enum { .. } | ColumnType::Set { .. }).then_some(kind)
            }
            SourceKind::JsonTable(table) => {
                let kind = &table.columns.get(usize::from(column))?.kind;
                matches!(kind, ColumnType::Enum { .. } | ColumnType::Set { .. }).then_some(kind)
            }
            SourceKind::Derived(plan) if plan.unions.is_empty() && plan.recursion.is_none() => {
                match plan.items.get(usize::from(column))?.unshared() {
                    Expr::Column { source, column } => {
                        plan.sources.get(usize::from(*source))?.members(*column)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The definition by whose numbers a column is sorted: also that of MIN and MAX of such a column.
    pub fn members_of_order(&self, column: u16) -> Option<&ColumnType> {
        if let SourceKind::Derived(plan) = &self.kind
            && plan.unions.is_empty()
            && let Expr::Aggregate(at) = plan.items.get(usize::from(column))?.unshared()
        {
            return plan.grouping.as_ref()?.aggregates.get(usize::from(*at))?.members(&plan.sources);
        }
        self.members(column)
    }

    /// The definition of a column of a stored table, also where a derived table shows it.
    pub fn stored_column(&self, column: u16) -> Option<&ColumnDef> {
        match &self.kind {
            SourceKind::Table(table) => table.0.def.columns.get(usize::from(column)),
            SourceKind::Derived(plan) if plan.unions.is_empty() && plan.recursion.is_none() => {
                match plan.items.get(usize::from(column))?.unshared() {
                    Expr::Column { source, column } => {
                        plan.sources.get(usize::from(*source))?.stored_column(*column)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether this is a table of the engine itself, not a view of one.
    pub fn is_plain_table(&self) -> bool {
        matches!(self.kind, SourceKind::Table(_)) && self.mask.is_none()
    }

    /// Whether a qualifier means this source. Names of views are case-insensitive.
    pub fn answers_to(&self, database: Option<&str>, table: Option<&str>) -> bool {
        let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
        table.is_none_or(|table| same(table, &self.alias))
            && database.is_none_or(|database| self.database.is_empty() || same(database, &self.database))
    }

    /// The numbers of the columns that `*` shows, in their order.
    pub fn shown(&self) -> impl Iterator<Item = u16> + '_ {
        let of_mask = self.mask.iter().flat_map(|mask| mask.shown.iter().map(|(_, number)| *number));
        let all = if self.mask.is_some() { 0 } else { self.columns.len() as u16 };
        of_mask.chain((0..all).filter(|number| !self.columns[usize::from(*number)].invisible))
    }

    /// Their names.
    pub fn shown_names(&self) -> impl Iterator<Item = &str> {
        let of_mask = self.mask.iter().flat_map(|mask| mask.shown.iter().map(|(name, _)| name.as_str()));
        let all = if self.mask.is_some() { &[][..] } else { &self.columns[..] };
        let shown = all.iter().filter(|column| !column.invisible);
        of_mask.chain(shown.map(|column| column.name.as_str()))
    }

    /// The numbers and names of all columns that can be named, the INVISIBLE ones too.
    pub fn named(&self) -> impl Iterator<Item = (u16, &str)> {
        let of_mask = self.mask.iter().flat_map(|mask| &mask.shown);
        let all = if self.mask.is_some() { &[][..] } else { &self.columns[..] };
        let all = all.iter().enumerate().map(|(number, column)| (number as u16, column.name.as_str()));
        of_mask.map(|(name, number)| (*number, name.as_str())).chain(all)
    }

    /// What a column is, as an expression of the source number `at`, which a computed column belongs to.
    pub fn column(&self, at: u16, number: u16) -> (Expr, Type) {
        if let Some(column) = self.columns.get(usize::from(number)) {
            return (Expr::Column { source: at, column: number }, column.ty);
        }
        let computed = usize::from(number).checked_sub(self.columns.len());
        let computed = computed.and_then(|at| self.mask.as_ref()?.computed.get(at).cloned());
        computed.unwrap_or((Expr::Literal(Value::Null), Type::NULL))
    }

    /// Whether a column is computed by a view.
    pub fn is_computed(&self, number: u16) -> bool {
        usize::from(number) >= self.columns.len()
    }

    /// Number of the column of this name.
    pub fn column_number(&self, name: &str) -> Option<u16> {
        if let Some(mask) = &self.mask {
            let found = mask.shown.iter().find(|(shown, _)| shown.eq_ignore_ascii_case(name))?;
            return Some(found.1);
        }
        if self.columns.len() <= COLUMNS_FEW {
            let at = self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))?;
            return Some(at as u16);
        }
        let numbers = self.numbers.get_or_init(|| {
            let mut numbers = HashMap::with_capacity(self.columns.len());
            for (at, column) in self.columns.iter().enumerate() {
                numbers.entry(column.name.to_ascii_lowercase()).or_insert(at as u16);
            }
            numbers
        });
        numbers.get(&name.to_ascii_lowercase()).copied()
    }

    /// The column that `_rowid` means: the only one of the key that orders the rows, if it is an integer.
    pub fn row_id(&self) -> Option<u16> {
        let def = &self.engine_table().filter(|_| self.mask.is_none())?.def;
        let [part] = &def.clustered_key()?.parts[..] else { return None };
        let kind = &def.columns.get(usize::from(part.column))?.kind;
        let counts = kind.integer().is_some() || matches!(kind, ColumnType::Year | ColumnType::Bit { .. });
        counts.then_some(part.column)
    }

    /// Whether `*` leaves it out; a view shows what it names.
    pub fn is_invisible(&self, column: u16) -> bool {
        let column = self.columns.get(usize::from(column));
        self.mask.is_none() && column.is_some_and(|column| column.invisible)
    }

    /// Whether this column was merged away by USING.
    pub fn is_merged(&self, column: u16) -> bool {
        self.columns.get(usize::from(column)).is_some_and(|column| column.merged)
    }

    /// The name that a client is told of a column, whatever letters the statement has for it: MySQL puts the
    /// query below in the place of such a source, and with it the names there.
    pub fn own_name(&self, column: u16) -> Option<&str> {
        if let Some(mask) = &self.mask {
            return mask.shown.iter().find(|(_, number)| *number == column).map(|(name, _)| name.as_str());
        }
        self.is_replaced()
            .then(|| self.columns.get(usize::from(column)).map(|column| column.name.as_str()))?
    }

    fn is_replaced(&self) -> bool {
        *self.replaced.get_or_init(|| match &self.kind {
            SourceKind::Derived(plan) => plan.has_rows_of_sources(),
            SourceKind::View(view) => view.is_replaced(),
            _ => false,
        })
    }

    /// The column of a table that a column of a derived table is, as clients see it there.
    fn column_below(&self, column: u16) -> Option<&ColumnMeta> {
        let SourceKind::Derived(plan) = &self.kind else { return None };
        let is_column = matches!(plan.items.get(usize::from(column))?.unshared(), Expr::Column { .. });
        let meta = plan.columns.metas().get(usize::from(column))?;
        (is_column && plan.unions.is_empty() && plan.recursion.is_none()).then_some(meta)
    }

    /// What the definition of a column for a client takes, under a name of this many bytes.
    pub fn meta_bytes(&self, column: &str, name: usize) -> usize {
        size_of::<ColumnMeta>()
            + self.database.len()
            + self.alias.len()
            + self.table.len()
            + column.len()
            + name
    }

    /// The column definition for a client, under the name it has in the statement.
    pub fn meta(&self, column: u16, name: &str) -> ColumnMeta {
        let Some(source) = self.columns.get(usize::from(column)) else { return ColumnMeta::default() };
        let mut meta = source.ty.meta(name);
        // A stored number is not BINARY as a computed one is, but a text in the order of its bytes is.
        let order = match source.ty.kind {
            kind::YEAR => column_flag::ZEROFILL | column_flag::UNSIGNED,
            kind::BIT | kind::NULL => 0,
            _ if source.ty.is_integer() || source.ty.is_double() || source.ty.kind == kind::NEWDECIMAL => 0,
            _ if source.ty.collation.is_bin() => column_flag::BINARY,
            _ => meta.flags & column_flag::BINARY,
        };
        meta.flags = meta.flags & !column_flag::BINARY | order | source.flags;
        meta.length = source.shown_length.unwrap_or(meta.length);
        meta.latin1 = meta.charset != charset::BINARY && source.ty.collation.charset() == Charset::Latin1;
        // A view has its name for its columns, whatever they are made of.
        let is_view = matches!(self.kind, SourceKind::Derived(_)) && !self.database.is_empty();
        let below = self.column_below(column);
        if is_view || matches!(self.kind, SourceKind::Table(_) | SourceKind::View(_)) {
            meta.schema = self.database.clone();
            meta.org_table = self.table.clone();
            meta.org_name = source.name.clone();
        } else if let Some(below) = below {
            meta.schema = below.schema.clone();
            meta.org_table = below.org_table.clone();
            meta.org_name = below.org_name.clone();
        }
        if let Some(below) = below {
            meta.length = below.length;
            if self.is_replaced() {
                meta.flags = below.flags & !column_flag::NOT_NULL | meta.flags & column_flag::NOT_NULL;
            }
        }
        if self.may_be_missing {
            meta.flags &= !column_flag::NOT_NULL;
        }
        meta.table = self.alias.clone();
        meta
    }
}
