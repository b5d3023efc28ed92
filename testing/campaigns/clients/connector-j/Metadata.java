// Every call of DatabaseMetaData, with the answers that tools depend on,
// once through SHOW and once through information_schema.
import java.sql.*;
import java.util.*;

final class Metadata {

    static void run() throws SQLException {
        try (Connection c = DriverManager.getConnection(Checks.url(""), Checks.USER, Checks.PASSWORD)) {
            Statement s = c.createStatement();
            s.execute(
                "CREATE TABLE parent (a INT NOT NULL, b VARCHAR(10) NOT NULL DEFAULT 'x''y', PRIMARY KEY (b, a)) COMMENT='the parents'"
            );
            s.execute(
                "CREATE TABLE child (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, pa INT, pb VARCHAR(10)," +
                    " price DECIMAL(12,3) DEFAULT 1.5 COMMENT 'in euro', made DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3)," +
                    " seen TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, kind ENUM('x','y'), flags SET('p','q'), j JSON, bl BLOB, tx TEXT," +
                    " flag TINYINT(1), bits BIT(4), dbl DECIMAL(13,3) GENERATED ALWAYS AS (price * 2) STORED, y YEAR, f FLOAT, u VARCHAR(20) UNIQUE," +
                    " KEY two (pa, pb DESC), CONSTRAINT fk_p FOREIGN KEY (pb, pa) REFERENCES parent (b, a) ON DELETE CASCADE ON UPDATE SET NULL)"
            );
            s.execute("CREATE VIEW some AS SELECT id, price FROM child");
        }
        for (String mode : new String[] {
            "",
            "useInformationSchema=true",
            "databaseTerm=SCHEMA",
            "tinyInt1isBit=false&useInformationSchema=true",
        }) {
            try (
                Connection c = DriverManager.getConnection(Checks.url(mode), Checks.USER, Checks.PASSWORD)
            ) {
                boolean schema = mode.startsWith("databaseTerm");
                Meta m = new Meta(
                    c.getMetaData(),
                    schema ? null : Checks.DATABASE,
                    schema ? Checks.DATABASE : null
                );
                String at = mode.isEmpty() ? "" : ", " + mode;
                Checks.check("tables" + at, m::tables);
                Checks.check("columns" + at, () -> m.columns(mode.contains("tinyInt1isBit")));
                Checks.check("keys" + at, m::keys);
                Checks.check("indexes" + at, m::indexes);
                Checks.check("all the other calls" + at, m::others);
            }
        }
    }

    record Meta(DatabaseMetaData m, String catalog, String schema) {
        static List<String> rows(ResultSet r, String... names) throws SQLException {
            List<String> all = new ArrayList<>();
            while (r.next()) {
                StringBuilder line = new StringBuilder();
                for (String n : names) line.append(line.isEmpty() ? "" : " ").append(r.getString(n));
                all.add(line.toString());
            }
            return all;
        }

        void tables() throws SQLException {
            Checks.same(
                List.of("child TABLE ", "parent TABLE the parents"),
                rows(
                    m.getTables(catalog, schema, "%", new String[] { "TABLE" }),
                    "TABLE_NAME",
                    "TABLE_TYPE",
                    "REMARKS"
                )
                    .stream()
                    .filter(x -> x.startsWith("child") || x.startsWith("parent"))
                    .toList()
            );
            Checks.same(
                List.of("some VIEW"),
                rows(
                    m.getTables(catalog, schema, "so%", new String[] { "VIEW" }),
                    "TABLE_NAME",
                    "TABLE_TYPE"
                )
            );
            Checks.same(
                List.of("child", "some"),
                rows(m.getTables(catalog, schema, "%", null), "TABLE_NAME")
                    .stream()
                    .filter(x -> x.equals("child") || x.equals("some"))
                    .sorted()
                    .toList()
            );
            Checks.that(
                rows(
                    schema == null ? m.getCatalogs() : m.getSchemas(),
                    schema == null ? "TABLE_CAT" : "TABLE_SCHEM"
                ).contains(Checks.DATABASE),
                "databases"
            );
            Checks.same(
                List.of("LOCAL TEMPORARY", "SYSTEM TABLE", "SYSTEM VIEW", "TABLE", "VIEW"),
                rows(m.getTableTypes(), "TABLE_TYPE")
            );
        }

        void columns(boolean tiny) throws SQLException {
            List<String> want = new ArrayList<>(
                List.of(
                    "id -5 BIGINT UNSIGNED 20 null 0 null YES NO",
                    "pa 4 INT 10 null 1 null NO NO",
                    "pb 12 VARCHAR 10 null 1 null NO NO",
                    "price 3 DECIMAL 12 3 1 1.500 NO NO",
                    "made 93 DATETIME 23 null 1 CURRENT_TIMESTAMP(3) NO YES",
                    "seen 93 TIMESTAMP 19 null 1 null NO NO",
                    "kind 1 ENUM 1 null 1 null NO NO",
                    "flags 1 SET 3 null 1 null NO NO",
                    "j -1 JSON 1073741824 null 1 null NO NO",
                    "bl -4 BLOB 65535 null 1 null NO NO",
                    "tx -1 TEXT 65535 null 1 null NO NO",
                    "flag -7 BIT 1 null 1 null NO NO",
                    "bits -7 BIT 4 null 1 null NO NO",
                    "dbl 3 DECIMAL 13 3 1 null NO YES",
                    "y 91 YEAR 4 null 1 null NO NO",
                    "f 7 FLOAT 12 0 1 null NO NO",
                    "u 12 VARCHAR 20 null 1 null NO NO"
                )
            );
            if (tiny) want.set(11, "flag -6 TINYINT 3 null 1 null NO NO");
            List<String> got = rows(
                m.getColumns(catalog, schema, "child", "%"),
                "COLUMN_NAME",
                "DATA_TYPE",
                "TYPE_NAME",
                "COLUMN_SIZE",
                "DECIMAL_DIGITS",
                "NULLABLE",
                "COLUMN_DEF",
                "IS_AUTOINCREMENT",
                "IS_GENERATEDCOLUMN"
            );
            for (int i = 0; i < want.size(); i++) Checks.same(want.get(i), got.get(i));
            Checks.same(want.size(), got.size());
            Checks.same(
                List.of("b x'y 2", "a null 1"),
                rows(
                    m.getColumns(catalog, schema, "par_nt", "_"),
                    "COLUMN_NAME",
                    "COLUMN_DEF",
                    "ORDINAL_POSITION"
                )
                    .stream()
                    .sorted(Comparator.comparing(x -> !x.startsWith("b")))
                    .toList()
            );
            Checks.same(
                List.of("price in euro"),
                rows(m.getColumns(catalog, schema, "child", "pri%"), "COLUMN_NAME", "REMARKS")
            );
            Checks.same(2, rows(m.getColumns(catalog, schema, "some", null), "COLUMN_NAME").size());
            Checks.that(m.getColumns(null, null, "child", "pa").next(), "without a database");
        }

        void keys() throws SQLException {
            Checks.same(
                List.of("a 2 PRIMARY", "b 1 PRIMARY"),
                rows(m.getPrimaryKeys(catalog, schema, "parent"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME")
            );
            String[] names = {
                "PKTABLE_NAME",
                "PKCOLUMN_NAME",
                "FKTABLE_NAME",
                "FKCOLUMN_NAME",
                "KEY_SEQ",
                "UPDATE_RULE",
                "DELETE_RULE",
                "FK_NAME",
            };
            List<String> want = List.of("parent b child pb 1 2 0 fk_p", "parent a child pa 2 2 0 fk_p");
            Checks.same(want, rows(m.getImportedKeys(catalog, schema, "child"), names));
            Checks.same(want, rows(m.getExportedKeys(catalog, schema, "parent"), names));
            Checks.same(
                want,
                rows(m.getCrossReference(catalog, schema, "parent", catalog, schema, "child"), names)
            );
            Checks.same(
                List.of("id 20"),
                rows(
                    m.getBestRowIdentifier(catalog, schema, "child", DatabaseMetaData.bestRowSession, true),
                    "COLUMN_NAME",
                    "COLUMN_SIZE"
                )
            );
            Checks.same(
                List.of("seen"),
                rows(m.getVersionColumns(catalog, schema, "child"), "COLUMN_NAME")
            );
        }

        void indexes() throws SQLException {
            Checks.same(
                List.of(
                    "0 PRIMARY 1 id A",
                    "0 u 1 u A",
                    "1 fk_p 1 pb A",
                    "1 fk_p 2 pa A",
                    "1 two 1 pa A",
                    "1 two 2 pb D"
                ),
                rows(
                    m.getIndexInfo(catalog, schema, "child", false, true),
                    "NON_UNIQUE",
                    "INDEX_NAME",
                    "ORDINAL_POSITION",
                    "COLUMN_NAME",
                    "ASC_OR_DESC"
                )
            );
            Checks.same(
                2,
                rows(m.getIndexInfo(catalog, schema, "child", true, false), "INDEX_NAME").size()
            );
        }

        void others() throws SQLException {
            for (ResultSet r : new ResultSet[] {
                m.getProcedures(catalog, schema, "%"),
                m.getFunctions(catalog, schema, "%"),
                m.getProcedureColumns(catalog, schema, "%", "%"),
                m.getFunctionColumns(catalog, schema, "%", "%"),
                m.getUDTs(catalog, schema, "%", null),
                m.getSuperTables(catalog, schema, "%"),
                m.getSuperTypes(catalog, schema, "%"),
                m.getAttributes(catalog, schema, "%", "%"),
                m.getTablePrivileges(catalog, schema, "child"),
                m.getPseudoColumns(catalog, schema, "child", "%"),
            }) {
                rows(r, r.getMetaData().getColumnName(1));
            }
            rows(m.getColumnPrivileges(catalog, schema, "child", "%"), "COLUMN_NAME");
            Checks.that(rows(m.getTypeInfo(), "TYPE_NAME").contains("BIGINT UNSIGNED"), "types");
            Checks.that(rows(m.getClientInfoProperties(), "NAME") != null, "properties");
            Checks.same("MySQL", m.getDatabaseProductName());
            Checks.that(m.getDatabaseMajorVersion() >= 8, "version");
            Checks.that(
                Arrays.asList(m.getSQLKeywords().split(",")).contains("AUTO_INCREMENT") ||
                    m.getSQLKeywords().length() > 100,
                "keywords"
            );
            for (java.lang.reflect.Method call : DatabaseMetaData.class.getMethods()) {
                if (call.getParameterCount() == 0) {
                    try {
                        call.invoke(m);
                    } catch (ReflectiveOperationException e) {
                        throw new AssertionError(call.getName() + ": " + e.getCause());
                    }
                }
            }
        }
    }
}
