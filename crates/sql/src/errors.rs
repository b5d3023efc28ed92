//! MySQL's error numbers, their SQLSTATEs and message texts, in one table.
//!
//! Clients branch on the number and on the SQLSTATE, and a good part of them on the text, so all three are
//! MySQL 8.0's. [`error`] takes the number and the arguments of its template; a number that is missing in the
//! table is a bug here, not a panic: it gets SQLSTATE HY000.

use std::borrow::Cow;

use crate::result::SqlError;

macro_rules! error_table {
    ($($name:ident = $code:literal, $state:literal, $template:literal;)*) => {
        $(
            #[doc = concat!("Error ", stringify!($code), ": ", $template)]
            pub const $name: u16 = $code;
        )*
        /// Number, symbol, SQLSTATE and template (`%` stands for an argument) of every error this server
        /// raises.
        pub const ERRORS: &[(u16, &str, &[u8; 5], &str)] = &[$(($code, stringify!($name), $state, $template),)*];
    };
}

error_table! {
    CANT_CREATE_TABLE = 1005, b"HY000", "Can't create table '%' (errno: %)";
    DB_CREATE_EXISTS = 1007, b"HY000", "Can't create database '%'; database exists";
    DB_DROP_EXISTS = 1008, b"HY000", "Can't drop database '%'; database doesn't exist";
    DISK_FULL = 1021, b"HY000", "Disk full (%); waiting for someone to free some space... (errno: % - %)";
    GET_ERRNO = 1030, b"HY000", "Got error % - '%' from storage engine";
    KEY_NOT_FOUND = 1032, b"HY000", "Can't find record in '%'";
    NOT_KEYFILE = 1034, b"HY000", "Incorrect key file for table '%'; try to repair it";
    DUP_KEY = 1022, b"23000", "Can't write; duplicate key in table '%'";
    OUT_OF_MEMORY = 1037, b"HY001", "Out of memory; restart server and try again (needed % bytes)";
    OUT_OF_SORTMEMORY = 1038, b"HY001", "Out of sort memory, consider increasing server sort buffer size";
    CON_COUNT = 1040, b"08004", "Too many connections";
    OUT_OF_RESOURCES = 1041, b"HY000", "Out of memory; check if mysqld or some other process uses all available memory; if not, you may have to use 'ulimit' to allow mysqld to use more memory or you can add more swap space";
    DBACCESS_DENIED = 1044, b"42000", "Access denied for user '%'@'%' to database '%'";
    ACCESS_DENIED = 1045, b"28000", "Access denied for user '%'@'%' (using password: %)";
    NO_DB = 1046, b"3D000", "No database selected";
    UNKNOWN_COM = 1047, b"08S01", "Unknown command";
    BAD_NULL = 1048, b"23000", "Column '%' cannot be null";
    OPEN_AS_READONLY = 1036, b"HY000", "Table '%' is read only";
    BAD_DB = 1049, b"42000", "Unknown database '%'";
    TABLE_EXISTS = 1050, b"42S01", "Table '%' already exists";
    BAD_TABLE = 1051, b"42S02", "Unknown table '%'";
    NON_UNIQ = 1052, b"23000", "Column '%' in % is ambiguous";
    SERVER_SHUTDOWN = 1053, b"08S01", "Server shutdown in progress";
    BAD_FIELD = 1054, b"42S22", "Unknown column '%' in '%'";
    WRONG_GROUP_FIELD = 1056, b"42000", "Can't group on '%'";
    TOO_LONG_IDENT = 1059, b"42000", "Identifier name '%' is too long";
    DUP_FIELDNAME = 1060, b"42S21", "Duplicate column name '%'";
    DUP_KEYNAME = 1061, b"42000", "Duplicate key name '%'";
    DUP_ENTRY = 1062, b"23000", "Duplicate entry '%' for key '%'";
    WRONG_FIELD_SPEC = 1063, b"42000", "Incorrect column specifier for column '%'";
    PARSE_ERROR = 1064, b"42000", "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '%' at line %";
    EMPTY_QUERY = 1065, b"42000", "Query was empty";
    NONUNIQ_TABLE = 1066, b"42000", "Not unique table/alias: '%'";
    INVALID_DEFAULT = 1067, b"42000", "Invalid default value for '%'";
    MULTIPLE_PRI_KEY = 1068, b"42000", "Multiple primary key defined";
    TOO_MANY_KEYS = 1069, b"42000", "Too many keys specified; max % keys allowed";
    TOO_MANY_KEY_PARTS = 1070, b"42000", "Too many key parts specified; max % parts allowed";
    TOO_LONG_KEY = 1071, b"42000", "Specified key was too long; max key length is % bytes";
    KEY_COLUMN_MISSING = 1072, b"42000", "Key column '%' doesn't exist in table";
    TOO_BIG_FIELDLENGTH = 1074, b"42000", "Column length too big for column '%' (max = %); use BLOB or TEXT instead";
    WRONG_AUTO_KEY = 1075, b"42000", "Incorrect table definition; there can be only one auto column and it must be defined as a key";
    WRONG_SUB_KEY = 1089, b"HY000", "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys";
    CANT_REMOVE_ALL_FIELDS = 1090, b"42000", "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
    CANT_DROP_FIELD_OR_KEY = 1091, b"42000", "Can't DROP '%'; check that column/key exists";
    NO_SUCH_THREAD = 1094, b"HY000", "Unknown thread id: %";
    UPDATE_TABLE_USED = 1093, b"HY000", "You can't specify target table '%' for update in FROM clause";
    KILL_DENIED = 1095, b"HY000", "You are not owner of thread %";
    NO_TABLES_USED = 1096, b"HY000", "No tables used";
    TABLE_NOT_LOCKED_FOR_WRITE = 1099, b"HY000", "Table '%' was locked with a READ lock and can't be updated";
    TABLE_NOT_LOCKED = 1100, b"HY000", "Table '%' was not locked with LOCK TABLES";
    BLOB_CANT_HAVE_DEFAULT = 1101, b"42000", "BLOB, TEXT, GEOMETRY or JSON column '%' can't have a default value";
    WRONG_DB_NAME = 1102, b"42000", "Incorrect database name '%'";
    WRONG_TABLE_NAME = 1103, b"42000", "Incorrect table name '%'";
    TOO_BIG_SELECT = 1104, b"42000", "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET SQL_BIG_SELECTS=1 or SET MAX_JOIN_SIZE=# if the SELECT is okay";
    UNKNOWN_ERROR = 1105, b"HY000", "%";
    UNKNOWN_TABLE = 1109, b"42S02", "Unknown table '%' in %";
    FIELD_SPECIFIED_TWICE = 1110, b"42000", "Column '%' specified twice";
    INVALID_GROUP_FUNC_USE = 1111, b"HY000", "Invalid use of group function";
    TABLE_MUST_HAVE_COLUMNS = 1113, b"42000", "A table must have at least 1 column";
    RECORD_FILE_FULL = 1114, b"HY000", "The table '%' is full";
    UNKNOWN_CHARACTER_SET = 1115, b"42000", "Unknown character set: '%'";
    TOO_MANY_TABLES = 1116, b"HY000", "Too many tables; MySQL can only use % tables in a join";
    TOO_MANY_FIELDS = 1117, b"HY000", "Too many columns";
    TOO_BIG_ROWSIZE = 1118, b"42000", "Row size too large. The maximum row size for the used table type, not counting BLOBs, is %. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs";
    WRONG_VALUE_COUNT_ON_ROW = 1136, b"21S01", "Column count doesn't match value count at row %";
    INVALID_USE_OF_NULL = 1138, b"22004", "Invalid use of NULL value";
    MIX_OF_GROUP_FUNC_AND_FIELDS = 1140, b"42000", "In aggregated query without GROUP BY, expression #% of % contains nonaggregated column '%'; this is incompatible with sql_mode=only_full_group_by";
    NONEXISTING_GRANT = 1141, b"42000", "There is no such grant defined for user '%' on host '%'";
    TABLEACCESS_DENIED = 1142, b"42000", "% command denied to user '%'@'%' for table '%'";
    COLUMNACCESS_DENIED = 1143, b"42000", "% command denied to user '%'@'%' for column '%' in table '%'";
    ILLEGAL_GRANT_FOR_TABLE = 1144, b"42000", "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used";
    NO_SUCH_TABLE = 1146, b"42S02", "Table '%.%' doesn't exist";
    NONEXISTING_TABLE_GRANT = 1147, b"42000", "There is no such grant defined for user '%' on host '%' on table '%'";
    TOO_LONG_STRING = 1162, b"42000", "Result string is longer than 'max_allowed_packet' bytes";
    TABLE_CANT_HANDLE_AUTO_INCREMENT = 1164, b"42000", "The used table type doesn't support AUTO_INCREMENT columns";
    WRONG_COLUMN_NAME = 1166, b"42000", "Incorrect column name '%'";
    WRONG_KEY_COLUMN = 1167, b"42000", "The used storage engine can't index column '%'";
    BLOB_KEY_WITHOUT_LENGTH = 1170, b"42000", "BLOB/TEXT column '%' used in key specification without a key length";
    PRIMARY_CANT_HAVE_NULL = 1171, b"42000", "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead";
    TOO_MANY_ROWS = 1172, b"42000", "Result consisted of more than one row";
    UPDATE_WITHOUT_KEY_IN_SAFE_MODE = 1175, b"HY000", "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column. %";
    KEY_DOES_NOT_EXIST = 1176, b"42000", "Key '%' doesn't exist in table '%'";
    ERROR_DURING_COMMIT = 1180, b"HY000", "Got error % during COMMIT";
    UNKNOWN_SYSTEM_VARIABLE = 1193, b"HY000", "Unknown system variable '%'";
    CRASHED_ON_USAGE = 1194, b"HY000", "Table '%' is marked as crashed and should be repaired";
    LOCK_OR_ACTIVE_TRANSACTION = 1192, b"HY000", "Can't execute the given command because you have active locked tables or an active transaction";
    SET_CONSTANTS_ONLY = 1204, b"HY000", "You may only use constant expressions with SET";
    NOT_A_REPLICA = 1200, b"HY000", "The server is not configured as replica; fix in config file or with CHANGE REPLICATION SOURCE TO";
    LOCK_WAIT_TIMEOUT = 1205, b"HY000", "Lock wait timeout exceeded; try restarting transaction";
    LOCK_TABLE_FULL = 1206, b"HY000", "The total number of locks exceeds the lock table size";
    WRONG_ARGUMENTS = 1210, b"HY000", "Incorrect arguments to %";
    LOCK_DEADLOCK = 1213, b"40001", "Deadlock found when trying to get lock; try restarting transaction";
    CANNOT_ADD_FOREIGN = 1215, b"HY000", "Cannot add foreign key constraint";
    WRONG_FK_DEF = 1239, b"42000", "Incorrect foreign key definition for '%': Key reference and table reference don't match";
    WRONG_USAGE = 1221, b"HY000", "Incorrect usage of % and %";
    WRONG_NUMBER_OF_COLUMNS_IN_SELECT = 1222, b"21000", "The used SELECT statements have a different number of columns";
    CANT_UPDATE_WITH_READLOCK = 1223, b"HY000", "Can't execute the query because you have a conflicting read lock";
    AUTO_CONVERT = 1246, b"HY000", "Converting column '%' from % to %";
    SPECIFIC_ACCESS_DENIED = 1227, b"42000", "Access denied; you need (at least one of) the % privilege(s) for this operation";
    LOCAL_VARIABLE = 1228, b"HY000", "Variable '%' is a SESSION variable and can't be used with SET GLOBAL";
    GLOBAL_VARIABLE = 1229, b"HY000", "Variable '%' is a GLOBAL variable and should be set with SET GLOBAL";
    NO_DEFAULT = 1230, b"42000", "Variable '%' doesn't have a default value";
    WRONG_VALUE_FOR_VAR = 1231, b"42000", "Variable '%' can't be set to the value of '%'";
    WRONG_TYPE_FOR_VAR = 1232, b"42000", "Incorrect argument type to variable '%'";
    CANT_USE_OPTION_HERE = 1234, b"42000", "Incorrect usage/placement of '%'";
    NOT_SUPPORTED_YET = 1235, b"42000", "This version of MySQL doesn't yet support '%'";
    INCORRECT_GLOBAL_LOCAL_VAR = 1238, b"HY000", "Variable '%' is a % variable";
    OPERAND_COLUMNS = 1241, b"21000", "Operand should contain % column(s)";
    SUBQUERY_NO_1_ROW = 1242, b"21000", "Subquery returns more than 1 row";
    UNKNOWN_STMT_HANDLER = 1243, b"HY000", "Unknown prepared statement handler (%) given to %";
    ILLEGAL_REFERENCE = 1247, b"42S22", "Reference '%' not supported (%)";
    DERIVED_MUST_HAVE_ALIAS = 1248, b"42000", "Every derived table must have its own alias";
    TABLENAME_NOT_ALLOWED_HERE = 1250, b"42000", "Table '%' from one of the SELECTs cannot be used in %";
    SPATIAL_CANT_HAVE_NULL = 1252, b"42000", "All parts of a SPATIAL index must be NOT NULL";
    COLLATION_CHARSET_MISMATCH = 1253, b"42000", "COLLATION '%' is not valid for CHARACTER SET '%'";
    WARN_TOO_MANY_RECORDS = 1262, b"01000", "Row % was truncated; it contained more data than there were input columns";
    WARN_NULL_TO_NOTNULL = 1263, b"22004", "Column set to default value; NULL supplied to NOT NULL column '%' at row %";
    NET_PACKET_TOO_LARGE = 1153, b"08S01", "Got a packet bigger than 'max_allowed_packet' bytes";
    NO_SUCH_DB = 3503, b"42Y07", "Database '%' doesn't exist";
    LOCAL_FILES_DISABLED = 3948, b"42000", "Loading local data is disabled; this must be enabled on both the client and server sides";
    WRONG_FIELD_TERMINATORS = 1083, b"42000", "Field separator argument is not what is expected; check the manual";
    FILE_EXISTS = 1086, b"HY000", "File '%' already exists";
    ERROR_ON_WRITE = 1026, b"HY000", "Error writing file '%' (%)";
    CANNOT_CREATE_FILE = 1, b"HY000", "Can't create/write to file '%' (OS errno % - %)";
    TEXT_FILE_NOT_READABLE = 1085, b"HY000", "The file '%' must be in the database directory or be readable by all";
    CANNOT_GET_STAT = 13, b"HY000", "Can't get stat of '%' (OS errno % - %)";
    ERROR_ON_READ = 1024, b"HY000", "Error reading file '%' (%)";
    WARN_TOO_FEW_RECORDS = 1261, b"01000", "Row % doesn't contain data for all columns";
    WARN_DATA_OUT_OF_RANGE = 1264, b"22003", "Out of range value for column '%' at row %";
    WARN_DATA_TRUNCATED = 1265, b"01000", "Data truncated for column '%' at row %";
    WARN_USING_OTHER_HANDLER = 1266, b"HY000", "Using storage engine % for table '%'";
    CANT_AGGREGATE_3COLLATIONS = 1270, b"HY000", "Illegal mix of collations (%), (%), (%) for operation '%'";
    UNKNOWN_KEY_CACHE = 1284, b"HY000", "Unknown key cache '%'";
    CANT_AGGREGATE_NCOLLATIONS = 1271, b"HY000", "Illegal mix of collations for operation '%'";
    CANT_AGGREGATE_2COLLATIONS = 1267, b"HY000", "Illegal mix of collations (%) and (%) for operation '%'";
    UNKNOWN_COLLATION = 1273, b"HY000", "Unknown collation: '%'";
    WRONG_NAME_FOR_INDEX = 1280, b"42000", "Incorrect index name '%'";
    UNKNOWN_STORAGE_ENGINE = 1286, b"42000", "Unknown storage engine '%'";
    WARN_DEPRECATED_SYNTAX = 1287, b"HY000", "'%' is deprecated and will be removed in a future release. Please use % instead";
    NON_UPDATABLE_TABLE = 1288, b"HY000", "The target table % of the % is not updatable";
    OPTION_PREVENTS_STATEMENT = 1290, b"HY000", "The MySQL server is running with the % option so it cannot execute this statement";
    REVOKE_GRANTS = 1269, b"HY000", "Can't revoke all privileges for one or more of the requested users";
    CUT_VALUE_GROUP_CONCAT = 1260, b"HY000", "Row % was cut by GROUP_CONCAT()";
    DUPLICATED_VALUE_IN_TYPE = 1291, b"HY000", "Column '%' has duplicated value '%' in %";
    TOO_BIG_FOR_UNCOMPRESS = 1256, b"HY000", "Uncompressed data size too large; the maximum size is % (probably, length of uncompressed data was corrupted)";
    ZLIB_Z_BUF_ERROR = 1258, b"HY000", "ZLIB: Not enough room in the output buffer (probably, length of uncompressed data was corrupted)";
    ZLIB_Z_DATA_ERROR = 1259, b"HY000", "ZLIB: Input data corrupted";
    TRUNCATED_WRONG_VALUE = 1292, b"22007", "Truncated incorrect % value: '%'";
    UNSUPPORTED_PS = 1295, b"HY000", "This command is not supported in the prepared statement protocol yet";
    UNKNOWN_TIME_ZONE = 1298, b"HY000", "Unknown or incorrect time zone: '%'";
    INVALID_CHARACTER_STRING = 1300, b"HY000", "Invalid % character string: '%'";
    SP_DOES_NOT_EXIST = 1305, b"42000", "% % does not exist";
    QUERY_INTERRUPTED = 1317, b"70100", "Query execution was interrupted";
    VIEW_NO_EXPLAIN = 1345, b"HY000", "EXPLAIN/SHOW can not be issued; lacking privileges for underlying table";
    REPLICATION_ALREADY_STOPPED = 3084, b"HY000", "Replication thread(s) for channel '%' are already stopped.";
    WRONG_OBJECT = 1347, b"HY000", "'%.%' is not %";
    NONUPDATEABLE_COLUMN = 1348, b"HY000", "Column '%' is not updatable";
    VIEW_SELECT_CLAUSE = 1350, b"HY000", "View's SELECT contains a '%' clause";
    VIEW_SELECT_VARIABLE = 1351, b"HY000", "View's SELECT contains a variable or parameter";
    VIEW_SELECT_TMPTABLE = 1352, b"HY000", "View's SELECT refers to a temporary table '%'";
    VIEW_WRONG_LIST = 1353, b"HY000", "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts";
    VIEW_MERGE = 1354, b"HY000", "View merge algorithm can't be used here for now (assumed undefined algorithm)";
    VIEW_INVALID = 1356, b"HY000", "View '%.%' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them";
    FIELD_HAS_NO_DEFAULT = 1364, b"HY000", "Field '%' doesn't have a default value";
    DIVISION_BY_ZERO = 1365, b"22012", "Division by 0";
    TRUNCATED_WRONG_VALUE_FOR_FIELD = 1366, b"HY000", "Incorrect % value: '%' for column '%' at row %";
    ILLEGAL_VALUE_FOR_TYPE = 1367, b"22007", "Illegal % '%' value found during parsing";
    VIEW_NONUPD_CHECK = 1368, b"HY000", "CHECK OPTION on non-updatable view '%.%'";
    VIEW_CHECK_FAILED = 1369, b"HY000", "CHECK OPTION failed '%.%'";
    NO_BINARY_LOGGING = 1381, b"HY000", "You are not using binary logging";
    INVALID_PASSWORD = 1396, b"HY000", "Operation % failed for %";
    RENAME_ROLE = 3532, b"HY000", "Renaming of a role identifier is forbidden";
    UNKNOWN_EXPLAIN_FORMAT = 1791, b"HY000", "Unknown EXPLAIN format name: '%'";
    EXPLAIN_INTO_IMPLICIT_FORMAT = 6006, b"0A000", "EXPLAIN INTO does not support implicit FORMAT.";
    EXPLAIN_INTO_FORMAT = 6007, b"0A000", "EXPLAIN INTO does not support FORMAT=%.";
    EXPLAIN_ANALYZE_JSON = 6412, b"0A000", "EXPLAIN ANALYZE does not support FORMAT=JSON with explain_json_format_version=1.";
    XAER_NOTA = 1397, b"XAE04", "XAER_NOTA: Unknown XID";
    XAER_INVAL = 1398, b"XAE05", "XAER_INVAL: Invalid arguments (or unsupported command)";
    XAER_RMFAIL = 1399, b"XAE07", "XAER_RMFAIL: The command cannot be executed when global transaction is in the  % state";
    XAER_OUTSIDE = 1400, b"XAE09", "XAER_OUTSIDE: Some work is done outside global transaction";
    XAER_RMERR = 1401, b"XAE03", "XAER_RMERR: Fatal error occurred in the transaction branch - check your data for consistency";
    XA_RBROLLBACK = 1402, b"XA100", "XA_RBROLLBACK: Transaction branch was rolled back";
    XAER_DUPID = 1440, b"XAE08", "XAER_DUPID: The XID already exists";
    XA_RBTIMEOUT = 1613, b"XA106", "XA_RBTIMEOUT: Transaction branch was rolled back: took too long";
    XA_RBDEADLOCK = 1614, b"XA102", "XA_RBDEADLOCK: Transaction branch was rolled back: deadlock was detected";
    XA_TEMP_TABLE = 4091, b"HY000", "XA: Temporary tables cannot be accessed inside XA transactions when xa_detach_on_prepare=ON";
    CANT_CREATE_USER_WITH_GRANT = 1410, b"42000", "You are not allowed to create a user with GRANT";
    DATA_TOO_LONG = 1406, b"22001", "Data too long for column '%' at row %";
    TABLE_DEF_CHANGED = 1412, b"HY000", "Table definition has changed, please retry transaction";
    WRONG_STRING_LENGTH = 1470, b"HY000", "String '%' is too long for % (should be no longer than %)";
    NO_DEFAULT_FOR_VIEW_FIELD = 1423, b"HY000", "Field of view '%.%' underlying table doesn't have a default value";
    TOO_BIG_SCALE = 1425, b"42000", "Too big scale % specified for column '%'. Maximum is %.";
    TOO_BIG_PRECISION = 1426, b"42000", "Too-big precision % specified for '%'. Maximum is %.";
    M_BIGGER_THAN_D = 1427, b"42000", "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '%').";
    STACK_OVERRUN = 1436, b"HY000", "Thread stack overrun: the statement is nested too deeply";
    ALLOWED_PACKET_OVERFLOWED = 1301, b"HY000", "Result of %() was larger than max_allowed_packet (%) - truncated";
    TOO_BIG_DISPLAYWIDTH = 1439, b"42000", "Display width out of range for column '%' (max = %)";
    CANNOT_CONVERT_STRING = 3854, b"HY000", "Cannot convert string '%' from % to %";
    VIEW_PREVENT_UPDATE = 1443, b"HY000", "The definition of table '%' prevents operation % on table '%'.";
    NO_SUCH_USER = 1449, b"HY000", "The user specified as a definer ('%'@'%') does not exist";
    FORBID_SCHEMA_CHANGE = 1450, b"HY000", "Changing schema from '%' to '%' is not allowed.";
    VIEW_RECURSIVE = 1462, b"HY000", "`%`.`%` contains view recursion";
    NON_INSERTABLE_TABLE = 1471, b"HY000", "The target table % of the % is not insertable-into";
    DATETIME_FUNCTION_OVERFLOW = 1441, b"22008", "Datetime function: % field overflow";
    ROW_IS_REFERENCED = 1451, b"23000", "Cannot delete or update a parent row: a foreign key constraint fails (%)";
    NO_REFERENCED_ROW = 1452, b"23000", "Cannot add or update a child row: a foreign key constraint fails (%)";
    WRONG_VALUE = 1525, b"HY000", "Incorrect % value: '%'";
    DROP_INDEX_FK = 1553, b"HY000", "Cannot drop index '%': needed in a foreign key constraint";
    TRUNCATE_ILLEGAL_FK = 1701, b"42000", "Cannot truncate a table referenced in a foreign key constraint (%)";
    FOREIGN_DUPLICATE_KEY = 1761, b"23000", "Foreign key constraint for table '%', record '%' would lead to a duplicate entry in table '%', key '%'";
    FK_CANNOT_OPEN_PARENT = 1824, b"HY000", "Failed to open the referenced table '%'";
    FK_NO_INDEX_PARENT = 1822, b"HY000", "Failed to add the foreign key constraint. Missing index for constraint '%' in the referenced table '%'";
    FK_DUP_NAME = 1826, b"HY000", "Duplicate foreign key constraint name '%'";
    FK_COLUMN_CANNOT_DROP = 1828, b"HY000", "Cannot drop column '%': needed in a foreign key constraint '%'";
    FK_COLUMN_CANNOT_DROP_CHILD = 1829, b"HY000", "Cannot drop column '%': needed in a foreign key constraint '%' of table '%'";
    FK_COLUMN_NOT_NULL = 1830, b"HY000", "Column '%' cannot be NOT NULL: needed in a foreign key constraint '%' SET NULL";
    DUP_INDEX = 1831, b"HY000", "Duplicate index '%' defined on the table '%.%'. This is deprecated and will be disallowed in a future release.";
    FK_COLUMN_CANNOT_CHANGE = 1832, b"HY000", "Cannot change column '%': used in a foreign key constraint '%'";
    FK_COLUMN_CANNOT_CHANGE_CHILD = 1833, b"HY000", "Cannot change column '%': used in a foreign key constraint '%' of table '%'";
    FK_DEPTH_EXCEEDED = 3008, b"HY000", "Foreign key cascade delete/update exceeds max depth of %.";
    FK_VIRTUAL_COLUMN = 3733, b"HY000", "Foreign key '%' uses virtual column '%' which is not supported.";
    FK_NO_COLUMN_PARENT = 3734, b"HY000", "Failed to add the foreign key constraint. Missing column '%' for constraint '%' in the referenced table '%'";
    FK_CANNOT_DROP_PARENT = 3730, b"HY000", "Cannot drop table '%' referenced by a foreign key constraint '%' on table '%'.";
    FK_CHECK_COLUMN = 3823, b"HY000", "Column '%' cannot be used in a check constraint '%': needed in a foreign key constraint '%' referential action.";
    FK_INCOMPATIBLE_COLUMNS = 3780, b"HY000", "Referencing column '%' and referenced column '%' in foreign key constraint '%' are incompatible.";
    MAX_PREPARED_STMT_COUNT = 1461, b"42000", "Can't create more than max_prepared_stmt_count statements (current value: %)";
    AUTOINC_READ_FAILED = 1467, b"HY000", "Failed to read auto-increment value from storage engine";
    WRONG_PARAMCOUNT_TO_NATIVE_FCT = 1582, b"42000", "Incorrect parameter count in the call to native function '%'";
    WRONG_VALUE_FOR_TYPE = 1411, b"HY000", "Incorrect % value: '%' for function %";
    WRONG_PARAMETERS_TO_NATIVE_FCT = 1583, b"42000", "Incorrect parameters in the call to native function '%'";
    OPTION_IGNORED = 1618, b"HY000", "<%> option ignored";
    UNKNOWN_LOCALE = 1649, b"HY000", "Unknown locale: '%'";
    MULTI_UPDATE_KEY_CONFLICT = 1706, b"HY000", "Primary key/partition key update is not allowed since the table is updated both as '%' and '%'.";
    UNDO_RECORD_TOO_BIG = 1713, b"HY000", "Undo log record is too big.";
    CANT_EXECUTE_IN_READ_ONLY_TRANSACTION = 1792, b"25006", "Cannot execute statement in a READ ONLY transaction.";
    TOO_LONG_TABLE_COMMENT = 1628, b"HY000", "Comment for table '%' is too long (max = %)";
    TOO_LONG_INDEX_COMMENT = 1688, b"HY000", "Comment for index '%' is too long (max = %)";
    TOO_LONG_FIELD_COMMENT = 1629, b"HY000", "The maximum supported character limit for the field, '%', has been exceeded (max = %)";
    TOO_MANY_CONCURRENT_TRXS = 1637, b"HY000", "Too many active concurrent transactions";
    IO_READ_ERROR = 1810, b"HY000", "IO Read error: (%, %) %";
    TABLESPACE_MISSING = 1812, b"HY000", "Tablespace is missing for table %.";
    INTERNAL_ERROR = 1815, b"HY000", "Internal error: %";
    TABLESPACE_EXISTS = 1813, b"HY000", "Tablespace '%' exists.";
    TABLESPACE_DISCARDED = 1814, b"HY000", "Tablespace has been discarded for table '%'";
    READ_ONLY_MODE = 1836, b"HY000", "Running in read-only mode";
    TABLE_SCHEMA_MISMATCH = 1808, b"HY000", "Schema mismatch (%)";
    CANT_CHANGE_TX_CHARACTERISTICS = 1568, b"25001", "Transaction characteristics can't be changed while a transaction is in progress";
    DATA_OUT_OF_RANGE = 1690, b"22003", "% value is out of range in '%'";
    AES_INVALID_IV = 1882, b"HY000", "The initialization vector supplied to % is too short. Must be at least % bytes long";
    INNODB_FORCED_RECOVERY = 1881, b"HY000", "Operation not allowed when innodb_force_recovery > 0.";
    INVALID_ARGUMENT_FOR_LOGARITHM = 3020, b"2201E", "Invalid argument for logarithm";
    DA_INVALID_CONDITION_NUMBER = 1758, b"35000", "Invalid condition number";
    GET_STACKED_DA_WITHOUT_ACTIVE_HANDLER = 3004, b"0Z002", "GET STACKED DIAGNOSTICS when handler not active";
    MISSING_JSON_VALUE = 3966, b"22035", "No value was found by '%' on the specified path.";
    MULTIPLE_JSON_VALUES = 3967, b"22034", "More than one value was found by '%' on the specified path.";
    FIELD_IN_ORDER_NOT_SELECT = 3065, b"HY000", "Expression #% of ORDER BY clause is not in SELECT list, references column '%' which is not in SELECT list; this is incompatible with %";
    AGGREGATE_IN_ORDER_NOT_SELECT = 3066, b"HY000", "Expression #% of ORDER BY clause is not in SELECT list, contains aggregate function; this is incompatible with %";
    AGGREGATE_ORDER_FOR_UNION = 3028, b"HY000", "Expression #% of ORDER BY contains aggregate function and applies to a UNION, EXCEPT or INTERSECT";
    AGGREGATE_ORDER_NON_AGG_QUERY = 3029, b"HY000", "Expression #% of ORDER BY contains aggregate function and applies to the result of a non-aggregated query";
    PK_INDEX_CANT_BE_INVISIBLE = 3522, b"HY000", "A primary key index cannot be invisible";
    INVALID_BITWISE_OPERANDS_SIZE = 3513, b"HY000", "Binary operands of bitwise operators must be of equal length";
    QUERY_TIMEOUT = 3024, b"HY000", "Query execution was interrupted, maximum statement execution time exceeded";
    WRONG_FIELD_WITH_GROUP = 1055, b"42000", "Expression #% of % is not in GROUP BY clause and contains nonaggregated column '%' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by";
    UNKNOWN_ALTER_ALGORITHM = 1800, b"HY000", "Unknown ALGORITHM '%'";
    UNKNOWN_ALTER_LOCK = 1801, b"HY000", "Unknown LOCK type '%'";
    ALTER_OPERATION_NOT_SUPPORTED = 1845, b"0A000", "% is not supported for this operation. Try %.";
    ALTER_OPERATION_NOT_SUPPORTED_REASON = 1846, b"0A000", "% is not supported. Reason: %. Try %.";
    USER_LOCK_WRONG_NAME = 3057, b"42000", "Incorrect user-level lock name '%'. The name is empty, NULL, or can not be expressed in the current character-set.";
    USER_LOCK_DEADLOCK = 3058, b"HY000", "Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and restarting lock acquisition.";
    WARN_GENERATED_COLUMN_IGNORED = 1906, b"HY000", "The value specified for generated column '%' in table '%' has been ignored";
    GENERATED_COLUMN_CONSTRUCT = 3102, b"HY000", "Expression of generated column '%' contains a disallowed function.";
    REPLACE_INACCESSIBLE_ROWS = 3059, b"HY000", "REPLACE cannot be executed as it requires deleting rows that are not in the view";
    NON_DEFAULT_FOR_GENERATED_COLUMN = 3105, b"HY000", "The value specified for generated column '%' in table '%' is not allowed.";
    UNSUPPORTED_ON_GENERATED_COLUMN = 3106, b"HY000", "'%' is not supported for generated columns.";
    GENERATED_COLUMN_NON_PRIOR = 3107, b"HY000", "Generated column can refer only to generated columns defined prior to it.";
    DEPENDENT_BY_GENERATED_COLUMN = 3108, b"HY000", "Column '%' has a generated column dependency.";
    GENERATED_COLUMN_REF_AUTO_INC = 3109, b"HY000", "Generated column '%' cannot refer to auto-increment column.";
    CTE_RECURSIVE_REQUIRES_UNION = 3573, b"HY000", "Recursive Common Table Expression '%' should contain a UNION";
    CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST = 3574, b"HY000", "Recursive Common Table Expression '%' should have one or more non-recursive query blocks followed by one or more recursive ones";
    CTE_RECURSIVE_FORBIDDEN = 3575, b"HY000", "Recursive Common Table Expression '%' can contain neither aggregation nor window functions in recursive query block";
    CTE_RECURSIVE_NOT_FIRST_IN_JOIN = 3576, b"HY000", "In recursive query block of Recursive Common Table Expression '%', the recursive table must neither be in the right argument of a LEFT JOIN, nor be forced to be non-first with join order hints";
    CTE_RECURSIVE_SINGLE_REFERENCE = 3577, b"HY000", "In recursive query block of Recursive Common Table Expression '%', the recursive table must be referenced only once, and not in any subquery";
    WINDOW_NO_SUCH_WINDOW = 3579, b"HY000", "Window name '%' is not defined.";
    WINDOW_CIRCULARITY = 3580, b"HY000", "There is a circularity in the window dependency graph.";
    WINDOW_NO_CHILD_PARTITIONING = 3581, b"HY000", "A window which depends on another cannot define partitioning.";
    WINDOW_NO_INHERIT_FRAME = 3582, b"HY000", "Window '%' has a frame definition, so cannot be referenced by another window.";
    WINDOW_NO_REDEFINE_ORDER_BY = 3583, b"HY000", "Window '%' cannot inherit '%' since both contain an ORDER BY clause.";
    WINDOW_FRAME_START_ILLEGAL = 3584, b"HY000", "Window '%': frame start cannot be UNBOUNDED FOLLOWING.";
    WINDOW_FRAME_END_ILLEGAL = 3585, b"HY000", "Window '%': frame end cannot be UNBOUNDED PRECEDING.";
    WINDOW_FRAME_ILLEGAL = 3586, b"HY000", "Window '%': frame start or end is negative, NULL or of non-integral type";
    WINDOW_RANGE_FRAME_ORDER_TYPE = 3587, b"HY000", "Window '%' with RANGE N PRECEDING/FOLLOWING frame requires exactly one deterministic ORDER BY expression, of numeric or temporal type";
    WINDOW_RANGE_FRAME_TEMPORAL_TYPE = 3588, b"HY000", "Window '%' with RANGE frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed.";
    WINDOW_RANGE_FRAME_NUMERIC_TYPE = 3589, b"HY000", "Window '%' with RANGE frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed.";
    WINDOW_FRAME_BOUND_NOT_CONSTANT = 3590, b"HY000", "Window '%' has a non-constant frame bound.";
    WINDOW_DUPLICATE_NAME = 3591, b"HY000", "Window '%' is defined twice.";
    WINDOW_ILLEGAL_ORDER_BY = 3592, b"HY000", "Window '%': ORDER BY or PARTITION BY uses legacy position indication which is not supported, use expression.";
    WINDOW_INVALID_WINDOW_FUNC_USE = 3593, b"HY000", "You cannot use the window function '%' in this context.'";
    WINDOW_INVALID_ALIAS_USE = 3594, b"HY000", "You cannot use the alias '%' of an expression containing a window function in this context.'";
    WINDOW_NESTED_IN_SPECIFICATION = 3595, b"HY000", "You cannot nest a window function in the specification of window '%'.";
    WINDOW_ROWS_INTERVAL_USE = 3596, b"HY000", "Window '%': INTERVAL can only be used with RANGE frames.";
    TOO_MANY_FUNCTION_ARGUMENTS = 3601, b"HY000", "Too many arguments for function %: %; maximum allowed is %.";
    FIELD_IN_GROUPING_NOT_GROUP_BY = 3602, b"HY000", "Argument #% of GROUPING function is not in GROUP BY";
    CTE_MAX_RECURSION_DEPTH = 3636, b"HY000", "Recursive query aborted after % iterations. Try increasing @@cte_max_recursion_depth to a larger value.";
    GENERATED_COLUMN_FUNCTION = 3763, b"HY000", "Expression of generated column '%' contains a disallowed function: %.";
    DEFAULT_EXPRESSION_NON_PRIOR = 3767, b"HY000", "Default value expression of column '%' cannot refer to a column defined after it if that column is a generated column or has an expression as default value.";
    DEFAULT_EXPRESSION_REF_AUTO_INC = 3768, b"HY000", "Default value expression of column '%' cannot refer to an auto-increment column.";
    DEFAULT_EXPRESSION_CONSTRUCT = 3769, b"HY000", "Default value expression of column '%' contains a disallowed function.";
    DEFAULT_EXPRESSION_FUNCTION = 3770, b"HY000", "Default value expression of column '%' contains a disallowed function: %.";
    DEFAULT_EXPRESSION_VARIABLE = 3772, b"HY000", "Default value expression of column '%' cannot refer user or system variables.";
    DEFAULT_AS_DEFAULT = 3773, b"HY000", "DEFAULT function cannot be used with default value expressions";
    CHECK_NOT_BOOLEAN = 3812, b"HY000", "An expression of non-boolean type specified to a check constraint '%'.";
    CHECK_OTHER_COLUMN = 3813, b"HY000", "Column check constraint '%' references other column.";
    CHECK_FUNCTION = 3814, b"HY000", "An expression of a check constraint '%' contains disallowed function: %.";
    CHECK_CONSTRUCT = 3815, b"HY000", "An expression of a check constraint '%' contains disallowed function.";
    CHECK_VARIABLE = 3816, b"HY000", "An expression of a check constraint '%' cannot refer to a user or system variable.";
    CHECK_REF_AUTO_INC = 3818, b"HY000", "Check constraint '%' cannot refer to an auto-increment column.";
    CHECK_VIOLATED = 3819, b"HY000", "Check constraint '%' is violated.";
    CHECK_UNKNOWN_COLUMN = 3820, b"HY000", "Check constraint '%' refers to non-existing column '%'.";
    CHECK_DUPLICATE_NAME = 3822, b"HY000", "Duplicate check constraint name '%'.";
    MUST_CHANGE_PASSWORD = 1820, b"HY000", "You must reset your password using ALTER USER statement before executing this statement.";
    TOO_MANY_USER_CONNECTIONS = 1203, b"42000", "User % already has more than 'max_user_connections' active connections";
    USER_LIMIT_REACHED = 1226, b"42000", "User '%' has exceeded the '%' resource (current value: %)";
    CREDENTIALS_CONTRADICT_TO_HISTORY = 3638, b"HY000", "Cannot use these credentials for '%@%' because they contradict the password history policy";
    INCORRECT_CURRENT_PASSWORD = 3891, b"HY000", "Incorrect current password. Specify the correct password which has to be replaced.";
    MISSING_CURRENT_PASSWORD = 3892, b"HY000", "Current password needs to be specified in the REPLACE clause in order to change it.";
    CURRENT_PASSWORD_NOT_REQUIRED = 3893, b"HY000", "Do not specify the current password while changing it for other users.";
    USER_REFERENCED_AS_DEFINER = 4005, b"HY000", "User % is referenced as a definer account in %.";
    CANNOT_USER_REFERENCED_AS_DEFINER = 4006, b"HY000", "Operation % failed for % as it is referenced as a definer account in %.";
    ACCOUNT_BLOCKED = 3955, b"HY000", "Access denied for user '%'@'%'. Account is blocked for % day(s) (% day(s) remaining) due to % consecutive failed logins.";
    ACCOUNT_HAS_BEEN_LOCKED = 3118, b"HY000", "Access denied for user '%'@'%'. Account is locked.";
    INCORRECT_TYPE = 3064, b"HY000", "Incorrect type for argument % in function %.";
    INVALID_JSON_TEXT = 3140, b"22032", "Invalid JSON text: \"%\" at position % in value for column '%'.";
    INVALID_JSON_TEXT_IN_PARAM = 3141, b"22032", "Invalid JSON text in argument % to function %: \"%\" at position %.";
    INVALID_JSON_BINARY_DATA = 3142, b"22032", "The JSON binary value contains invalid data.";
    INVALID_JSON_PATH = 3143, b"42000", "Invalid JSON path expression. The error is around character position %.";
    INVALID_JSON_CHARSET = 3144, b"22032", "Cannot create a JSON value from a string with CHARACTER SET '%'.";
    INVALID_TYPE_FOR_JSON = 3146, b"22032", "Invalid data type for JSON data in argument % to function %; a JSON string or JSON type is required.";
    INVALID_JSON_PATH_WILDCARD = 3149, b"42000", "In this situation, path expressions may not contain the * and ** tokens or an array range.";
    JSON_KEY_TOO_BIG = 3151, b"22032", "The JSON object contains a key name that is too long.";
    JSON_USED_AS_KEY = 3152, b"42000", "JSON column '%' supports indexing only via generated columns on a specified JSON path.";
    JSON_VACUOUS_PATH = 3153, b"42000", "The path expression '$' is not allowed in this context.";
    JSON_BAD_ONE_OR_ALL_ARG = 3154, b"42000", "The oneOrAll argument to % may take these values: 'one' or 'all'.";
    JSON_DOCUMENT_TOO_DEEP = 3157, b"22032", "The JSON document exceeds the maximum depth.";
    JSON_DOCUMENT_NULL_KEY = 3158, b"22032", "JSON documents may not contain NULL member names.";
    MISSING_JSON_TABLE_VALUE = 3665, b"22035", "Missing value for JSON_TABLE column '%'";
    WRONG_JSON_TABLE_VALUE = 3666, b"2203F", "Can't store an array or an object in the scalar JSON_TABLE column '%'";
    JSON_TABLE_VALUE_OUT_OF_RANGE = 3669, b"22003", "Value is out of range for JSON_TABLE's column '%'";
    INVALID_JSON_VALUE_FOR_CAST = 3156, b"22018", "Invalid JSON value for CAST to % from column % at row %";
    TABLE_FUNCTION_MUST_HAVE_ALIAS = 3667, b"42000", "Every table function must have an alias";
    INVALID_JSON_PATH_ARRAY_CELL = 3165, b"42000", "A path expression is not a path to a cell in an array.";
    SECURE_TRANSPORT_REQUIRED = 3159, b"HY000", "Connections using insecure transport are prohibited while --require_secure_transport=ON.";
    NO_SECURE_TRANSPORTS_CONFIGURED = 3160, b"HY000", "No secure transports (SSL or Shared Memory) are configured, unable to set --require_secure_transport=ON.";
    USER_DOES_NOT_EXIST = 3162, b"HY000", "Authorization ID % does not exist.";
    USER_ALREADY_EXISTS = 3163, b"HY000", "Authorization ID % already exists.";
    UNKNOWN_AUTHID = 3523, b"HY000", "Unknown authorization ID %";
    PARSE_ERROR_IN_DIGEST_FN = 3676, b"HY000", "Could not parse argument to digest function: \"%\".";
    ROLE_NOT_GRANTED = 3530, b"HY000", "% is not granted to %";
    MANDATORY_ROLE = 3628, b"HY000", "The role % is a mandatory role and can't be revoked or dropped. The restriction can be lifted by excluding the role identifier from the global variable mandatory_roles.";
    ROLE_GRANTED_TO_ITSELF = 4027, b"HY000", "User account % is directly or indirectly granted to the role %. The GRANT would create a loop";
    NO_VISIBLE_COLUMN = 4028, b"HY000", "A table must have at least one visible column.";
    MUST_CHANGE_PASSWORD_LOGIN = 1862, b"HY000", "Your password has expired. To log in you must change it using a client that supports expired passwords.";
    LOCK_NOWAIT = 3572, b"HY000", "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.";
    UNRESOLVED_TABLE_LOCK = 3568, b"HY000", "Unresolved table name `%` in locking clause.";
    DYNAMIC_PRIVILEGE_NOT_REGISTERED = 3929, b"HY000", "Dynamic privilege '%' is not registered with the server.";
    AES_INVALID_KEY_SIZE = 3237, b"HY000", "AES key size should be % bytes length or secure KDF methods hkdf or pbkdf2_hmac should be used, please provide exact AES key size or use KDF methods for better security.";
    REGEXP_ILLEGAL_ARGUMENT = 3685, b"HY000", "Illegal argument to a regular expression.";
    REGEXP_INDEX_OUT_OF_BOUNDS = 3686, b"HY000", "Index out of bounds in regular expression search.";
    REGEXP_RULE_SYNTAX = 3688, b"HY000", "Syntax error in regular expression on line %, character %.";
    REGEXP_BAD_ESCAPE_SEQUENCE = 3689, b"HY000", "Unrecognized escape sequence in regular expression.";
    REGEXP_UNIMPLEMENTED = 3690, b"HY000", "The regular expression contains a feature that is not implemented in this library version.";
    REGEXP_MISMATCHED_PAREN = 3691, b"HY000", "Mismatched parenthesis in regular expression.";
    REGEXP_BAD_INTERVAL = 3692, b"HY000", "Incorrect description of a {min,max} interval.";
    REGEXP_MAX_LT_MIN = 3693, b"HY000", "The maximum is less than the minumum in a {min,max} interval.";
    REGEXP_INVALID_BACK_REF = 3694, b"HY000", "Invalid back-reference in regular expression.";
    REGEXP_LOOK_BEHIND_LIMIT = 3695, b"HY000", "The look-behind assertion exceeds the limit in regular expression.";
    REGEXP_MISSING_CLOSE_BRACKET = 3696, b"HY000", "The regular expression contains an unclosed bracket expression.";
    REGEXP_INVALID_RANGE = 3697, b"HY000", "The regular expression contains an [x-y] character range where x comes after y.";
    REGEXP_TIME_OUT = 3699, b"HY000", "Timeout exceeded in regular expression match.";
    REGEXP_PATTERN_TOO_BIG = 3700, b"HY000", "The regular expression pattern exceeds limits on size or complexity.";
    REGEXP_INVALID_CAPTURE_GROUP_NAME = 3887, b"HY000", "A capture group has an invalid name.";
    REGEXP_INVALID_FLAG = 3900, b"HY000", "Invalid match mode flag in regular expression.";
    CHARACTER_SET_MISMATCH = 3995, b"HY000", "Character set '%' cannot be used in conjunction with '%' in call to %.";
    REGEXP_NUMBER_TOO_BIG = 4007, b"HY000", "Decimal number in regular expression is too large.";
    DEPENDENT_BY_DEFAULT = 3766, b"HY000", "Column '%' of table '%' has a default value expression dependency and cannot be dropped or renamed.";
    WARN_DATA_TRUNCATED_FUNCTIONAL_INDEX = 3751, b"01000", "Data truncated for functional index '%' at row %";
    FUNCTIONAL_INDEX_ON_JSON = 3753, b"42000", "Cannot create a functional index on a function that returns a JSON or GEOMETRY value.";
    FUNCTIONAL_INDEX_REF_AUTO_INC = 3754, b"HY000", "Functional index '%' cannot refer to an auto-increment column.";
    CANNOT_DROP_COLUMN_FUNCTIONAL_INDEX = 3755, b"HY000", "Cannot drop column '%' because it is used by a functional index. In order to drop the column, you must remove the functional index.";
    FUNCTIONAL_INDEX_PRIMARY_KEY = 3756, b"HY000", "The primary key cannot be a functional index";
    FUNCTIONAL_INDEX_ON_LOB = 3757, b"HY000", "Cannot create a functional index on an expression that returns a BLOB or TEXT. Please consider using CAST.";
    FUNCTIONAL_INDEX_FUNCTION = 3758, b"HY000", "Expression of functional index '%' contains a disallowed function.";
    FULLTEXT_FUNCTIONAL_INDEX = 3759, b"HY000", "Fulltext functional index is not supported.";
    SPATIAL_FUNCTIONAL_INDEX = 3760, b"HY000", "Spatial functional index is not supported.";
    WRONG_KEY_COLUMN_FUNCTIONAL_INDEX = 3761, b"HY000", "The used storage engine cannot index the expression '%'.";
    FUNCTIONAL_INDEX_ON_FIELD = 3762, b"HY000", "Functional index on a column is not supported. Consider using a regular index instead.";
    FUNCTIONAL_INDEX_ROW_VALUE = 3800, b"HY000", "Expression of functional index '%' cannot refer to a row value.";
    DEPENDENT_BY_FUNCTIONAL_INDEX = 3837, b"HY000", "Column '%' has a functional index dependency and cannot be dropped or renamed.";
    CHECK_NOT_FOUND = 3821, b"HY000", "Check constraint '%' is not found in the table.";
    CONSTRAINT_NOT_FOUND = 3940, b"HY000", "Constraint '%' does not exist.";
    MULTIPLE_INTO = 3953, b"HY000", "Multiple INTO clauses in one query block.";
    MISPLACED_INTO = 3954, b"HY000", "Misplaced INTO clause, INTO is not allowed inside subqueries, and must be placed at end of UNION clauses.";
    DEPENDENT_BY_CHECK = 3959, b"HY000", "Check constraint '%' uses column '%', hence column cannot be dropped or renamed.";
    TOO_MANY_WINDOWS = 4086, b"HY000", "Too many windows in SELECT: %. Maximum allowed is %. Use named windows to share windows between window functions.";
    USER_LOCK_OVERLONG_NAME = 4163, b"42000", "User-level lock name '%' should not exceed 64 characters.";
}

/// The SQLSTATE of an error number (`HY000` when unknown).
pub fn sqlstate(code: u16) -> &'static [u8; 5] {
    ERRORS.iter().find(|row| row.0 == code).map_or(b"HY000", |row| row.2)
}

/// The error `code` with its template filled with `arguments` in their order.
pub fn error(code: u16, arguments: &[&dyn std::fmt::Display]) -> SqlError {
    let template = ERRORS.iter().find(|row| row.0 == code).map_or("Unknown error", |row| row.3);
    if arguments.is_empty() {
        return SqlError::new(code, sqlstate(code), Cow::Borrowed(template));
    }
    let mut message = String::with_capacity(template.len() + 32);
    let mut arguments = arguments.iter();
    for (index, piece) in template.split('%').enumerate() {
        if index > 0
            && let Some(argument) = arguments.next()
        {
            push_cut(&mut message, *argument);
        }
        message.push_str(piece);
    }
    SqlError::new(code, sqlstate(code), message)
}

/// Bytes of an argument that a message shows: it may be a text of megabytes, and warnings are kept.
const ARGUMENT_BYTES_MAX: usize = 512;

/// Bytes that a message shows of what is no text.
const PRINTABLE_BYTES_MAX: usize = 6;

fn push_cut(message: &mut String, argument: &dyn std::fmt::Display) {
    struct Cut<'m>(&'m mut String, usize);
    impl std::fmt::Write for Cut<'_> {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            let part = &text[..text.floor_char_boundary(self.1)];
            self.0.push_str(part);
            self.1 -= part.len();
            if part.len() == text.len() { Ok(()) } else { Err(std::fmt::Error) }
        }
    }
    // The error says that the rest has been cut off.
    let _ = std::fmt::Write::write_fmt(&mut Cut(message, ARGUMENT_BYTES_MAX), format_args!("{argument}"));
}

/// Bytes as messages show them: a few of them, with `\xNN` for those that are no printable ASCII.
pub fn printable(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for byte in bytes.iter().take(PRINTABLE_BYTES_MAX) {
        match byte {
            b' '..=0x7f => shown.push(char::from(*byte)),
            _ => shown.push_str(&format!("\\x{byte:02X}")),
        }
    }
    shown + if bytes.len() > PRINTABLE_BYTES_MAX { "..." } else { "" }
}

/// Error 1235 for something this server does not do.
pub fn unsupported(what: &str) -> SqlError {
    error(NOT_SUPPORTED_YET, &[&what])
}

/// Error 1064 at `near` (cut after 80 bytes as MySQL does) on `line`.
pub fn syntax(near: &[u8], line: usize) -> SqlError {
    let near = String::from_utf8_lossy(near.get(..80).unwrap_or(near)).into_owned();
    error(PARSE_ERROR, &[&near, &line])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_fills_its_template() {
        for (code, name, state, template) in ERRORS {
            let wanted = template.matches('%').count();
            let arguments: Vec<String> = (0..wanted).map(|n| format!("<{n}>")).collect();
            let arguments: Vec<&dyn std::fmt::Display> = arguments.iter().map(|a| a as _).collect();
            let made = error(*code, &arguments);
            assert_eq!(made.code, *code, "{name}");
            assert!(state.iter().all(u8::is_ascii_alphanumeric), "{name}");
            assert!(wanted == 0 || made.message.contains(&format!("<{}>", wanted - 1)), "{name}");
            assert!(!made.message.contains('%'), "{name}: {}", made.message);
            assert_eq!(ERRORS.iter().filter(|row| row.0 == *code).count(), 1, "{code} twice");
        }
    }

    #[test]
    fn texts_that_clients_match_on() {
        let duplicate = error(DUP_ENTRY, &[&"5", &"t.PRIMARY"]);
        assert_eq!(duplicate.to_string(), "ERROR 1062 (23000): Duplicate entry '5' for key 't.PRIMARY'");
        assert_eq!(
            error(NO_SUCH_TABLE, &[&"d", &"t"]).to_string(),
            "ERROR 1146 (42S02): Table 'd.t' doesn't exist"
        );
        assert_eq!(&error(LOCK_DEADLOCK, &[]).sqlstate, b"40001");
        assert_eq!(syntax(b"FORM t", 1).message.split("near ").nth(1), Some("'FORM t' at line 1"));
    }
}
