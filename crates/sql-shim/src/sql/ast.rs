//! The syntax tree of the statements, names not yet resolved.
//!
//! The tree owns its bytes: it outlives the packet for prepared statements, and it is dropped as soon as a plan has
//! been made. Literals keep their written form where MySQL's result depends on it (`1.50` is a DECIMAL of scale 2).

// The fields of variants say by their names what they are.
#![allow(missing_docs)]

/// A possibly qualified table name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableName {
    /// Database; `None`: the session's.
    pub database: Option<String>,
    /// Table.
    pub name: String,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `NULL`.
    Null,
    /// An integer literal (up to 2^64-1; larger ones are [`Expr::Decimal`]).
    Integer(u64),
    /// A literal with a point, as written.
    Decimal(String),
    /// A literal with an exponent.
    Float(f64),
    /// A string with its introducer (`_binary`), if any.
    Text { bytes: Vec<u8>, introducer: Option<String> },
    /// `0xAB`, `x'AB'`, `b'01'`.
    Binary(Vec<u8>),
    /// `DATE '…'`, `TIME '…'`, `TIMESTAMP '…'`.
    Temporal { kind: TemporalKind, text: Vec<u8> },
    /// A column, with database and table when qualified.
    Column { database: Option<String>, table: Option<String>, name: String },
    /// The n-th `?`.
    Parameter(u16),
    /// `@name`.
    UserVariable(String),
    /// `@name := value`.
    Assign(String, Box<Expr>),
    /// `@@[scope.]name`.
    SystemVariable { scope: Option<Scope>, name: String },
    /// `DEFAULT` or `DEFAULT(column)`.
    Default(Option<String>),
    /// `VALUES(column)` in ON DUPLICATE KEY UPDATE.
    InsertedValue(String),
    /// Prefix operator.
    Unary(UnaryOperator, Box<Expr>),
    /// Infix operator.
    Binary2(BinaryOperator, Box<Expr>, Box<Expr>),
    /// `x IS [NOT] NULL`.
    IsNull { operand: Box<Expr>, negated: bool },
    /// `x IS [NOT] TRUE|FALSE|UNKNOWN` (`None`: UNKNOWN).
    IsTruth { operand: Box<Expr>, truth: Option<bool>, negated: bool },
    /// `x [NOT] BETWEEN low AND high`.
    Between { operand: Box<Expr>, low: Box<Expr>, high: Box<Expr>, negated: bool },
    /// `x [NOT] IN (list)`.
    InList { operand: Box<Expr>, list: Vec<Expr>, negated: bool },
    /// `x [NOT] IN (SELECT …)`.
    InQuery { operand: Box<Expr>, query: Box<Query>, negated: bool },
    /// `x [NOT] LIKE pattern [ESCAPE c]`.
    Like { operand: Box<Expr>, pattern: Box<Expr>, escape: Option<Box<Expr>>, negated: bool },
    /// `x [NOT] REGEXP pattern`.
    Regexp { operand: Box<Expr>, pattern: Box<Expr>, negated: bool },
    /// `CASE`.
    Case { operand: Option<Box<Expr>>, whens: Vec<(Expr, Expr)>, otherwise: Option<Box<Expr>> },
    /// A function call; `distinct` and `star` for aggregates.
    Function {
        name: String,
        arguments: Vec<Expr>,
        distinct: bool,
        star: bool,
        order_by: Vec<OrderItem>,
        separator: Option<Vec<u8>>,
    },
    /// `CAST(x AS type)` and `CONVERT(x, type)`.
    Cast { operand: Box<Expr>, target: CastType },
    /// `CONVERT(x USING charset)`.
    ConvertCharset { operand: Box<Expr>, charset: String },
    /// `x COLLATE name`.
    Collate { operand: Box<Expr>, collation: String },
    /// `INTERVAL n UNIT`, an operand of `+`, `-`, DATE_ADD, DATE_SUB.
    Interval { amount: Box<Expr>, unit: IntervalUnit },
    /// `EXTRACT(unit FROM x)`.
    Extract { unit: IntervalUnit, operand: Box<Expr> },
    /// `TRIM([side] [what] FROM x)`.
    Trim { side: TrimSide, what: Option<Box<Expr>>, operand: Box<Expr> },
    /// `(SELECT …)` as a scalar.
    Subquery(Box<Query>),
    /// `[NOT] EXISTS (SELECT …)`.
    Exists(Box<Query>),
    /// `(a, b, …)`.
    Row(Vec<Expr>),
}

/// What kind of temporal literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemporalKind {
    /// `DATE '…'`.
    Date,
    /// `TIME '…'`.
    Time,
    /// `TIMESTAMP '…'`.
    DateTime,
}

/// Which side TRIM works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimSide {
    /// Both.
    Both,
    /// Leading.
    Leading,
    /// Trailing.
    Trailing,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `~`
    BitNot,
    /// `NOT`, `!`
    Not,
    /// `BINARY`
    Binary,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryOperator {
    Or,
    Xor,
    And,
    Equal,
    NullSafeEqual,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    BitOr,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
    BitXor,
    Concat,
}

/// Units of INTERVAL, EXTRACT, TIMESTAMPDIFF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IntervalUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    MinuteSecond,
    HourMinute,
    HourSecond,
    DayHour,
    DayMinute,
    DaySecond,
    YearMonth,
}

/// Target of CAST.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CastType {
    Signed,
    Unsigned,
    Char { length: Option<u32>, charset: Option<String> },
    Binary { length: Option<u32> },
    Decimal { precision: u8, scale: u8 },
    Double,
    Float,
    Date,
    DateTime { fraction: u8 },
    Time { fraction: u8 },
    Year,
    Json,
}

/// `GLOBAL`, `SESSION`, or for SET TRANSACTION neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Scope {
    Global,
    Session,
    Persist,
}

/// A query expression: SELECTs connected by UNION, then what applies to the whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The first SELECT and those united with it (`true`: UNION ALL). Empty `from` and values for VALUES ROW are not supported.
    pub selects: Vec<(bool, Select)>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`.
    pub limit: Option<Limit>,
    /// `FOR UPDATE` and such.
    pub locking: Option<Locking>,
}

/// One SELECT.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Select {
    /// `DISTINCT`.
    pub distinct: bool,
    /// The select list.
    pub items: Vec<SelectItem>,
    /// `FROM`.
    pub from: Option<TableRef>,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `GROUP BY`.
    pub group_by: Vec<Expr>,
    /// `WITH ROLLUP`.
    pub rollup: bool,
    /// `HAVING`.
    pub having: Option<Expr>,
    /// `INTO @a, @b`.
    pub into: Vec<String>,
}

/// An element of the select list.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*` or `t.*` or `db.t.*`.
    Star { database: Option<String>, table: Option<String> },
    /// An expression; its column name is the alias or its text as typed.
    Expr { expr: Expr, alias: Option<String>, text: String },
}

/// An element of FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    /// A named table.
    Table { name: TableName, alias: Option<String>, hints: Vec<IndexHint> },
    /// `(SELECT …) alias`.
    Derived { query: Box<Query>, alias: String },
    /// A join.
    Join {
        left: Box<TableRef>,
        right: Box<TableRef>,
        kind: JoinKind,
        on: Option<Expr>,
        using: Vec<String>,
        natural: bool,
    },
}

/// Kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// `,`, `JOIN`, `INNER JOIN`, `CROSS JOIN`.
    Inner,
    /// `STRAIGHT_JOIN`: the left table is read first.
    Straight,
    /// `LEFT JOIN`.
    Left,
    /// `RIGHT JOIN`.
    Right,
}

/// `FORCE|USE|IGNORE INDEX (…)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHint {
    /// What to do with them.
    pub kind: HintKind,
    /// The names (`PRIMARY` for the primary key).
    pub indexes: Vec<String>,
}

/// Kinds of index hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintKind {
    /// `USE`
    Use,
    /// `FORCE`
    Force,
    /// `IGNORE`
    Ignore,
}

/// An ORDER BY element.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    /// What to sort by.
    pub expr: Expr,
    /// `DESC`.
    pub descending: bool,
}

/// `LIMIT [offset,] count`.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Rows at most.
    pub count: Expr,
    /// Rows skipped.
    pub offset: Option<Expr>,
}

/// A locking clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Locking {
    /// `FOR UPDATE` rather than `FOR SHARE`.
    pub exclusive: bool,
    /// What to do about rows locked by others.
    pub wait: LockWait,
}

/// What a locking read does about rows locked by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockWait {
    /// Waits.
    Wait,
    /// Error 3572.
    NoWait,
    /// Leaves them out.
    SkipLocked,
}

/// `INSERT` or `REPLACE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// Into which table.
    pub table: TableName,
    /// Column list; empty: all in their order.
    pub columns: Vec<String>,
    /// Where the rows come from.
    pub source: InsertSource,
    /// `IGNORE`.
    pub ignore: bool,
    /// `REPLACE`.
    pub replace: bool,
    /// `ON DUPLICATE KEY UPDATE`.
    pub on_duplicate: Vec<(String, Expr)>,
    /// Name of the inserted row (`VALUES (…) AS new`).
    pub row_alias: Option<String>,
}

/// Where inserted rows come from.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// `VALUES (…), (…)`, or `SET a = …`.
    Values(Vec<Vec<Expr>>),
    /// `SELECT …`.
    Query(Box<Query>),
}

/// `UPDATE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The table or join.
    pub table: TableRef,
    /// `SET`: column (with qualifier) and value.
    pub assignments: Vec<((Option<String>, String), Expr)>,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`.
    pub limit: Option<Limit>,
    /// `IGNORE`.
    pub ignore: bool,
}

/// `DELETE` from one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// The table.
    pub table: TableRef,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`.
    pub limit: Option<Limit>,
}

/// A data type as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataType {
    /// Upper-case name with synonyms resolved (`INTEGER` → `INT`).
    pub name: String,
    /// The numbers in parentheses.
    pub arguments: Vec<u32>,
    /// Members of ENUM and SET.
    pub members: Vec<Vec<u8>>,
    /// `UNSIGNED`.
    pub unsigned: bool,
    /// `CHARACTER SET`.
    pub charset: Option<String>,
    /// `COLLATE`.
    pub collation: Option<String>,
    /// `SERIAL`: BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE.
    pub serial: bool,
}

/// A column definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    /// Name.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// `NOT NULL` (`Some(false)`), `NULL` (`Some(true)`), or nothing said.
    pub nullable: Option<bool>,
    /// `DEFAULT`.
    pub default: Option<Expr>,
    /// `ON UPDATE CURRENT_TIMESTAMP`.
    pub on_update_now: bool,
    /// `AUTO_INCREMENT`.
    pub auto_increment: bool,
    /// `PRIMARY KEY` behind the column.
    pub primary: bool,
    /// `UNIQUE` behind the column.
    pub unique: bool,
    /// `COMMENT`.
    pub comment: String,
}

/// A part of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Column.
    pub column: String,
    /// Prefix length in characters.
    pub length: Option<u32>,
    /// `DESC`.
    pub descending: bool,
}

/// Kinds of indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// `PRIMARY KEY`
    Primary,
    /// `UNIQUE`
    Unique,
    /// `KEY`
    Plain,
    /// `FULLTEXT`, `SPATIAL`: refused.
    Other,
}

/// An index definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDef {
    /// Name, made up when missing.
    pub name: Option<String>,
    /// Kind.
    pub kind: KeyKind,
    /// Parts.
    pub parts: Vec<KeyPart>,
}

/// A foreign key: parsed and remembered, not enforced yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Constraint name.
    pub name: Option<String>,
    /// Columns of this table.
    pub columns: Vec<String>,
    /// The other table.
    pub references: TableName,
    /// Its columns.
    pub referenced_columns: Vec<String>,
}

/// `CREATE TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// Name.
    pub name: TableName,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `TEMPORARY`: refused.
    pub temporary: bool,
    /// Columns.
    pub columns: Vec<ColumnDef>,
    /// Indexes.
    pub keys: Vec<KeyDef>,
    /// Foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// Options, upper-case names.
    pub options: Vec<(String, String)>,
    /// `LIKE other`.
    pub like: Option<TableName>,
    /// `AS SELECT`: refused for now.
    pub as_query: Option<Box<Query>>,
}

/// One clause of `ALTER TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub enum Alteration {
    /// `ADD KEY`.
    AddKey(KeyDef),
    /// `DROP KEY`; `None`: the primary key.
    DropKey(Option<String>),
    /// `ADD CONSTRAINT … FOREIGN KEY`.
    AddForeignKey(ForeignKey),
    /// `DROP FOREIGN KEY`.
    DropForeignKey(String),
    /// `ADD COLUMN`, with the column it comes after (`Some(None)`: first).
    AddColumn(ColumnDef, Option<Option<String>>),
    /// `DROP COLUMN`.
    DropColumn(String),
    /// `MODIFY`/`CHANGE`: the old name.
    ChangeColumn(String, ColumnDef),
    /// `RENAME TO`.
    RenameTo(TableName),
    /// `RENAME INDEX a TO b`.
    RenameKey(String, String),
    /// `ENABLE|DISABLE KEYS`: nothing to do.
    Keys,
    /// `FORCE`, `ENGINE=InnoDB`: rebuild.
    Rebuild,
    /// `DISCARD TABLESPACE`.
    DiscardTablespace,
    /// `IMPORT TABLESPACE`.
    ImportTablespace,
    /// A table option.
    Option(String, String),
}

/// One element of SET.
#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    /// `@x = …`.
    User(String, Expr),
    /// `[scope] x = …`; `None` as value: DEFAULT.
    System { scope: Option<Scope>, name: String, value: Option<Expr> },
    /// `NAMES x [COLLATE y]` (`None`: DEFAULT).
    Names(Option<String>, Option<String>),
    /// `CHARACTER SET x`.
    CharacterSet(Option<String>),
}

/// What to lock in `LOCK TABLES`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockTable {
    /// Table.
    pub table: TableName,
    /// Alias.
    pub alias: Option<String>,
    /// `WRITE`.
    pub write: bool,
}

/// Filter of a SHOW statement.
#[derive(Clone, Debug, PartialEq)]
pub enum ShowFilter {
    /// `LIKE 'pattern'`.
    Like(Vec<u8>),
    /// `WHERE expr`.
    Where(Expr),
}

/// The object of a SHOW statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ShowKind {
    Databases,
    Tables {
        full: bool,
        database: Option<String>,
    },
    TableStatus {
        database: Option<String>,
    },
    OpenTables {
        database: Option<String>,
    },
    Columns {
        full: bool,
        table: TableName,
    },
    Index {
        table: TableName,
    },
    CreateTable(TableName),
    CreateDatabase {
        name: String,
        if_not_exists: bool,
    },
    Variables {
        global: bool,
    },
    Status {
        global: bool,
    },
    ProcessList {
        full: bool,
    },
    Warnings {
        limit: Option<Limit>,
        count: bool,
    },
    Errors {
        limit: Option<Limit>,
        count: bool,
    },
    Engines,
    EngineStatus {
        engine: String,
        what: String,
    },
    Plugins,
    Privileges,
    CharacterSets,
    Collations,
    Grants(Option<Account>),
    /// Replication and stored programs: always empty. The column names answer the question.
    Empty(&'static [&'static str]),
}

/// `SHOW …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Show {
    /// What.
    pub kind: ShowKind,
    /// Which rows.
    pub filter: Option<ShowFilter>,
}

/// `'user'@'host'`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Account {
    /// User; empty: anonymous.
    pub user: String,
    /// Host pattern, `%` when not given.
    pub host: String,
    /// `CURRENT_USER()`.
    pub current: bool,
}

impl Account {
    /// `CURRENT_USER()`.
    pub fn current() -> Account {
        Account { user: String::new(), host: String::new(), current: true }
    }
}

/// What privileges are granted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantObject {
    /// `*.*`.
    Everything,
    /// `*`: the current database.
    CurrentDatabase,
    /// `db.*`.
    Database(String),
    /// `[db.]table`.
    Table(TableName),
}

/// How an account proves itself.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Identification {
    /// Plug-in name.
    pub plugin: Option<String>,
    /// `BY 'password'`.
    pub password: Option<Vec<u8>>,
    /// `AS 'hash'` (or `BY PASSWORD 'hash'`).
    pub hash: Option<Vec<u8>>,
}

/// `GRANT`/`REVOKE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Upper-case privilege names; `ALL` for all.
    pub privileges: Vec<String>,
    /// On what; `None`: REVOKE ALL PRIVILEGES, GRANT OPTION.
    pub object: Option<GrantObject>,
    /// To whom.
    pub accounts: Vec<(Account, Option<Identification>)>,
    /// `WITH GRANT OPTION`.
    pub grant_option: bool,
}

/// Maintenance statements on tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Maintenance {
    Analyze,
    Check,
    Optimize,
    Repair,
    Checksum,
}

/// `FLUSH …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flush {
    /// `FLUSH TABLES [list]`.
    Tables(Vec<TableName>),
    /// `FLUSH TABLES list FOR EXPORT`.
    ForExport(Vec<TableName>),
    /// `FLUSH TABLES [list] WITH READ LOCK`.
    ReadLock(Vec<TableName>),
    /// `FLUSH PRIVILEGES`.
    Privileges,
    /// `FLUSH STATUS`.
    Status,
    /// `FLUSH LOGS` and the like: accepted.
    Other,
}

/// Isolation levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Statement {
    /// Only comments.
    Empty,
    Select(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Explain(Box<Statement>),
    CreateDatabase {
        name: String,
        if_not_exists: bool,
        charset: Option<String>,
        collation: Option<String>,
    },
    AlterDatabase {
        name: Option<String>,
        charset: Option<String>,
        collation: Option<String>,
    },
    DropDatabase {
        name: String,
        if_exists: bool,
    },
    Use(String),
    CreateTable(Box<CreateTable>),
    DropTable {
        names: Vec<TableName>,
        if_exists: bool,
    },
    /// Views do not exist here: `DROP VIEW IF EXISTS` is a no-op with a note.
    DropView {
        names: Vec<TableName>,
        if_exists: bool,
    },
    Truncate(TableName),
    CreateIndex {
        key: KeyDef,
        table: TableName,
    },
    DropIndex {
        name: String,
        table: TableName,
    },
    AlterTable {
        table: TableName,
        changes: Vec<Alteration>,
    },
    RenameTable(Vec<(TableName, TableName)>),
    Begin {
        snapshot: bool,
        read_only: Option<bool>,
    },
    Commit {
        chain: bool,
        release: bool,
    },
    Rollback {
        chain: bool,
        release: bool,
    },
    Savepoint(String),
    RollbackTo(String),
    ReleaseSavepoint(String),
    Set(Vec<SetItem>),
    SetTransaction {
        scope: Option<Scope>,
        isolation: Option<Isolation>,
        read_only: Option<bool>,
    },
    SetPassword {
        account: Option<Account>,
        password: Vec<u8>,
    },
    Show(Box<Show>),
    Describe {
        table: TableName,
        column: Option<Vec<u8>>,
    },
    Maintain {
        what: Maintenance,
        tables: Vec<TableName>,
    },
    Kill {
        query_only: bool,
        connection: Expr,
    },
    Flush(Flush),
    LockTables(Vec<LockTable>),
    UnlockTables,
    CreateUser {
        accounts: Vec<(Account, Identification)>,
        if_not_exists: bool,
    },
    AlterUser {
        accounts: Vec<(Account, Identification)>,
    },
    DropUser {
        accounts: Vec<Account>,
        if_exists: bool,
    },
    Grant(Grant),
    Revoke(Grant),
    Do(Vec<Expr>),
    Prepare {
        name: String,
        source: Expr,
    },
    Execute {
        name: String,
        using: Vec<String>,
    },
    Deallocate(String),
    Shutdown,
    /// Known to MySQL, not supported here (1235 with this name).
    Unsupported(&'static str),
}
