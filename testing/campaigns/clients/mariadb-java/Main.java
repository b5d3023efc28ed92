// Checks MariaDB Connector/J: values in both protocols, batches, keys, streaming, metadata, pools, TLS, LOAD DATA.
// It says "mariadb" in its address, but the server is one that speaks MySQL's protocol.
import java.io.ByteArrayInputStream;
import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;

public class Main {

    static String url(String more) {
        return (
            "jdbc:mariadb://" +
            Checks.HOST +
            ":" +
            Checks.PORT +
            "/" +
            Checks.DATABASE +
            "?allowPublicKeyRetrieval=true&" +
            more
        );
    }

    static Connection connect(String more) throws SQLException {
        return DriverManager.getConnection(url(more), Checks.USER, Checks.PASSWORD);
    }

    static String one(Connection c, String sql) throws SQLException {
        try (ResultSet r = c.createStatement().executeQuery(sql)) {
            return r.next() ? r.getString(1) : null;
        }
    }

    public static void main(String[] args) throws Exception {
        for (String mode : new String[] {
            "useServerPrepStmts=false",
            "useServerPrepStmts=true",
            "useServerPrepStmts=true&cachePrepStmts=false&disablePipeline=true",
        }) {
            Checks.check("types, " + mode, () -> types(mode));
            Checks.check("batches and keys, " + mode, () -> batches(mode));
            Checks.check("streaming, " + mode, () -> streaming(mode));
        }
        Checks.check("bulk statements", () -> batches("useBulkStmts=true&rewriteBatchedStatements=true"));
        Checks.check("upserts", Main::upsert);
        Checks.check("savepoints", Main::savepoints);
        Checks.check("metadata", Main::metadata);
        Checks.check("TLS", () -> {
            try (Connection c = connect("sslMode=trust")) {
                Checks.that(
                    !c.createStatement().executeQuery("SHOW STATUS LIKE 'Ssl_cipher'").toString().isEmpty(),
                    "cipher"
                );
                Checks.that(one(c, "SELECT 1").equals("1"), "select");
            }
        });
        Checks.check("compression", () -> {
            try (Connection c = connect("useCompression=true")) {
                Checks.same("x".repeat(1_000_000), one(c, "SELECT REPEAT('x', 1000000)"));
            }
        });
        Checks.check("LOAD DATA LOCAL from a stream", Main::load);
        Checks.check("several statements", Main::several);
        Checks.check("query timeout", Main::timeout);
        Checks.check("pool", Main::pool);
        Checks.check("errors", Main::errors);
        Checks.check("XA", Main::xa);
        Checks.finish();
    }

    static void types(String mode) throws SQLException {
        try (Connection c = connect(mode)) {
            Statement s = c.createStatement();
            s.execute("DROP TABLE IF EXISTS kinds");
            s.execute(
                "CREATE TABLE kinds (id INT PRIMARY KEY AUTO_INCREMENT, b BIGINT UNSIGNED, d DECIMAL(30,10), f FLOAT, dbl DOUBLE, flag BOOLEAN," +
                    " dt DATE, dtm DATETIME(6), tm TIME(6), c CHAR(36), v VARCHAR(100), bin BINARY(16), bl LONGBLOB, e ENUM('a','b'), j JSON, y YEAR)"
            );
            PreparedStatement p = c.prepareStatement(
                "INSERT INTO kinds VALUES (NULL" + ",?".repeat(15) + ")"
            );
            UUID u = UUID.fromString("01234567-89ab-cdef-0123-456789abcdef");
            byte[] large = new byte[300_000];
            new Random(2).nextBytes(large);
            Object[] row = {
                new java.math.BigInteger("18446744073709551615"),
                new BigDecimal("-0.0123456789"),
                1.25f,
                1e300,
                true,
                LocalDate.of(2024, 2, 29),
                LocalDateTime.of(2024, 12, 31, 23, 59, 59, 1000),
                LocalTime.of(1, 2, 3, 4000),
                u.toString(),
                "😀 'ü' \\ \"",
                new byte[16],
                large,
                "b",
                "{\"a\": [1, \"😀\"]}",
                2024,
            };
            for (int i = 0; i < row.length; i++) p.setObject(i + 1, row[i]);
            if (!mode.contains("=false")) p.setObject(1, new BigDecimal("18446744073709551615"));
            Checks.same(1, p.executeUpdate());
            for (int i = 0; i < row.length; i++) p.setObject(i + 1, null);
            Checks.same(1, p.executeUpdate());
            ResultSet r = c.prepareStatement("SELECT * FROM kinds WHERE id = 1").executeQuery();
            Checks.that(r.next(), "row");
            Checks.same(row[0], r.getObject("b"));
            Checks.same(row[1], r.getBigDecimal("d"));
            Checks.same(1.25f, r.getFloat("f"));
            Checks.same(1e300, r.getDouble("dbl"));
            Checks.same(true, r.getObject("flag"));
            Checks.same(row[5], r.getObject("dt", LocalDate.class));
            Checks.same(row[6], r.getObject("dtm", LocalDateTime.class));
            Checks.same(row[7], r.getObject("tm", LocalTime.class));
            Checks.same(u.toString(), r.getString("c"));
            Checks.same(row[9], r.getString("v"));
            Checks.that(Arrays.equals(large, r.getBytes("bl")), "blob");
            Checks.same("b", r.getString("e"));
            Checks.same("{\"a\": [1, \"😀\"]}", r.getString("j"));
            Checks.same(2024, r.getInt("y"));
            r = c.prepareStatement("SELECT * FROM kinds WHERE id = 2").executeQuery();
            r.next();
            for (int i = 2; i <= 16; i++) Checks.same(null, r.getObject(i));
            ResultSetMetaData m = r.getMetaData();
            Checks.same("kinds", m.getTableName(1));
            Checks.same("BIGINT UNSIGNED", m.getColumnTypeName(2));
            Checks.same(30, m.getPrecision(3));
            Checks.that(m.isAutoIncrement(1), "auto increment");
            Checks.same(
                2,
                c.prepareStatement("SELECT ? + 1", 1).getParameterMetaData().getParameterCount() + 1
            );
        }
    }

    static void batches(String mode) throws SQLException {
        try (Connection c = connect(mode)) {
            c.createStatement().execute("DROP TABLE IF EXISTS items");
            c.createStatement().execute(
                "CREATE TABLE items (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) UNIQUE, n INT)"
            );
            PreparedStatement p = c.prepareStatement(
                "INSERT INTO items (name, n) VALUES (?, ?)",
                Statement.RETURN_GENERATED_KEYS
            );
            for (int i = 0; i < 500; i++) {
                p.setString(1, "item " + i);
                p.setInt(2, i);
                p.addBatch();
            }
            Checks.same(500, p.executeBatch().length);
            ResultSet k = p.getGeneratedKeys();
            Set<Integer> seen = new HashSet<>();
            while (k.next()) seen.add(k.getInt(1));
            Checks.same(500, seen.size());
            Checks.same("124750", one(c, "SELECT SUM(n) FROM items"));
            p.setString(1, "item 1");
            p.setInt(2, 1);
            Checks.refused(1062, p::executeUpdate);
        }
    }

    static void streaming(String mode) throws SQLException {
        try (Connection c = connect(mode)) {
            PreparedStatement p = c.prepareStatement(
                "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 900)" +
                    " SELECT a.n, b.n FROM r a JOIN r b ON b.n <= 20 ORDER BY a.n, b.n"
            );
            p.setFetchSize(50);
            ResultSet r = p.executeQuery();
            long sum = 0;
            while (r.next()) sum += r.getInt(1) * (long) r.getInt(2);
            Checks.same(405450L * 210, sum);
            Checks.same("1", one(c, "SELECT 1"));
        }
    }

    static void upsert() throws SQLException {
        try (Connection c = connect("useAffectedRows=true")) {
            c.createStatement().execute("DROP TABLE IF EXISTS counters");
            c.createStatement().execute("CREATE TABLE counters (k VARCHAR(10) PRIMARY KEY, n INT)");
            int[][] steps = { { 1, 1 }, { 2, 2 }, { 2, 0 } };
            PreparedStatement p = c.prepareStatement(
                "INSERT INTO counters VALUES ('a', ?) ON DUPLICATE KEY UPDATE n = VALUES(n)"
            );
            for (int[] s : steps) {
                p.setInt(1, s[0]);
                Checks.same(s[1], p.executeUpdate());
            }
        }
    }

    static void savepoints() throws SQLException {
        try (Connection c = connect("")) {
            c.setAutoCommit(false);
            c.createStatement().executeUpdate("DELETE FROM counters");
            Savepoint p = c.setSavepoint("p`1");
            c.createStatement().executeUpdate("INSERT INTO counters VALUES ('b', 1)");
            c.rollback(p);
            Checks.same("0", one(c, "SELECT COUNT(*) FROM counters"));
            c.rollback();
            Checks.same("1", one(c, "SELECT COUNT(*) FROM counters"));
        }
    }

    static void metadata() throws SQLException {
        try (Connection c = connect("")) {
            c.createStatement().execute("DROP TABLE IF EXISTS child, parent");
            c.createStatement().execute(
                "CREATE TABLE parent (a INT, b INT, PRIMARY KEY (b, a)) COMMENT='the parents'"
            );
            c.createStatement().execute(
                "CREATE TABLE child (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, pa INT DEFAULT 7, pb INT COMMENT 'b', e ENUM('x','yy')," +
                    " w INT, g INT AS (w + 1), UNIQUE KEY u (pb DESC, pa), CONSTRAINT fk FOREIGN KEY (pb, pa) REFERENCES parent (b, a) ON DELETE SET NULL)"
            );
            DatabaseMetaData m = c.getMetaData();
            Checks.same(
                "[child BASE TABLE , parent BASE TABLE the parents]".replace("BASE TABLE", "TABLE"),
                rows(
                    m.getTables(Checks.DATABASE, null, "%", new String[] { "TABLE" }),
                    "TABLE_NAME",
                    "TABLE_TYPE",
                    "REMARKS"
                )
                    .stream()
                    .filter(x -> x.startsWith("child") || x.startsWith("parent"))
                    .toList()
                    .toString()
            );
            Checks.same(
                "[id -5 YES 20 null, pa 4 NO 10 7, pb 4 NO 10 null, e 12 NO 2 null, w 4 NO 10 null, g 4 NO 10 null]",
                rows(
                    m.getColumns(Checks.DATABASE, null, "child", "%"),
                    "COLUMN_NAME",
                    "DATA_TYPE",
                    "IS_AUTOINCREMENT",
                    "COLUMN_SIZE",
                    "COLUMN_DEF"
                ).toString()
            );
            Checks.same(
                "[a 2, b 1]",
                rows(m.getPrimaryKeys(Checks.DATABASE, null, "parent"), "COLUMN_NAME", "KEY_SEQ").toString()
            );
            Checks.same(
                "[parent b child pb 1 2, parent a child pa 2 2]",
                rows(
                    m.getImportedKeys(Checks.DATABASE, null, "child"),
                    "PKTABLE_NAME",
                    "PKCOLUMN_NAME",
                    "FKTABLE_NAME",
                    "FKCOLUMN_NAME",
                    "KEY_SEQ",
                    "DELETE_RULE"
                ).toString()
            );
            Checks.same(2, rows(m.getExportedKeys(Checks.DATABASE, null, "parent"), "FK_NAME").size());
            Checks.same(
                "[PRIMARY id, u pb, u pa, fk pb, fk pa]",
                rows(
                    m.getIndexInfo(Checks.DATABASE, null, "child", false, false),
                    "INDEX_NAME",
                    "COLUMN_NAME"
                ).toString()
            );
            Checks.same(
                "[id]",
                rows(
                    m.getBestRowIdentifier(Checks.DATABASE, null, "child", 0, true),
                    "COLUMN_NAME"
                ).toString()
            );
            rows(m.getProcedures(Checks.DATABASE, null, "%"), "PROCEDURE_NAME");
            rows(m.getFunctions(Checks.DATABASE, null, "%"), "FUNCTION_NAME");
            rows(m.getTablePrivileges(Checks.DATABASE, null, "%"), "PRIVILEGE");
            rows(m.getColumnPrivileges(Checks.DATABASE, null, "child", "%"), "PRIVILEGE");
            rows(m.getProcedureColumns(Checks.DATABASE, null, "%", "%"), "COLUMN_NAME");
            rows(m.getTypeInfo(), "TYPE_NAME");
            Checks.that(rows(m.getCatalogs(), "TABLE_CAT").contains(Checks.DATABASE), "databases");
        }
    }

    static List<String> rows(ResultSet r, String... names) throws SQLException {
        List<String> all = new ArrayList<>();
        while (r.next()) {
            StringJoiner line = new StringJoiner(" ");
            for (String n : names) line.add(r.getString(n));
            all.add(line.toString());
        }
        return all;
    }

    static void load() throws SQLException {
        try (Connection c = connect("allowLocalInfile=true")) {
            String before = one(c, "SELECT @@GLOBAL.local_infile");
            c.createStatement().execute("SET GLOBAL local_infile = ON");
            c.createStatement().execute("CREATE TABLE loaded (a INT, b VARCHAR(20))");
            org.mariadb.jdbc.Statement s = c.createStatement().unwrap(org.mariadb.jdbc.Statement.class);
            s.setLocalInfileInputStream(new ByteArrayInputStream("1\tx\n2\t\\N\n".getBytes()));
            Checks.same(2, s.executeUpdate("LOAD DATA LOCAL INFILE 'none' INTO TABLE loaded"));
            Checks.same(
                "1x|2~",
                one(c, "SELECT GROUP_CONCAT(a, IFNULL(b, '~') ORDER BY a SEPARATOR '|') FROM loaded")
            );
            c.createStatement().execute("SET GLOBAL local_infile = " + before);
        }
    }

    static void several() throws SQLException {
        try (Connection c = connect("allowMultiQueries=true")) {
            Statement s = c.createStatement();
            s.execute("SELECT 1; SELECT 2, 3; DO 1");
            s.getResultSet().next();
            Checks.that(s.getMoreResults(), "second");
            s.getResultSet().next();
            Checks.same(3, s.getResultSet().getInt(2));
            Checks.that(!s.getMoreResults(), "third");
            Checks.same(0, s.getUpdateCount());
        }
    }

    static void timeout() throws SQLException {
        try (Connection c = connect("")) {
            Statement s = c.createStatement();
            s.setQueryTimeout(1);
            long start = System.nanoTime();
            try {
                s.executeQuery("SELECT SLEEP(10)");
            } catch (SQLException e) {
                Checks.that(e.getErrorCode() == 1317 || e.getErrorCode() == 3024, "" + e);
            }
            Checks.that(System.nanoTime() - start < 5e9, "no timeout");
            Checks.that(c.isValid(2), "usable");
        }
    }

    static void pool() throws Exception {
        try (
            org.mariadb.jdbc.MariaDbPoolDataSource source = new org.mariadb.jdbc.MariaDbPoolDataSource(
                url(
                    "maxPoolSize=4&user=" +
                        Checks.USER +
                        (Checks.PASSWORD.isEmpty() ? "" : "&password=" + Checks.PASSWORD)
                )
            )
        ) {
            ExecutorService threads = Executors.newFixedThreadPool(8);
            List<Future<String>> all = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                all.add(
                    threads.submit(() -> {
                        try (Connection c = source.getConnection()) {
                            c.setAutoCommit(false);
                            c.createStatement().executeUpdate("UPDATE counters SET n = n + 1");
                            return one(c, "SELECT n FROM counters");
                        }
                    })
                );
            }
            for (Future<String> f : all) Checks.same("3", f.get());
            threads.shutdown();
        }
    }

    static void errors() throws SQLException {
        try (Connection c = connect("useServerPrepStmts=true")) {
            Checks.refused(1146, () -> c.prepareStatement("SELECT * FROM missing").executeQuery());
            Checks.refused(1064, () -> c.createStatement().execute("SELEC 1"));
            Checks.that(c.isValid(2), "usable");
        }
        Checks.refused(1045, () -> DriverManager.getConnection(url(""), Checks.USER, "wrong"));
    }

    static void xa() throws Exception {
        org.mariadb.jdbc.MariaDbDataSource source = new org.mariadb.jdbc.MariaDbDataSource(url(""));
        source.setUser(Checks.USER);
        source.setPassword(Checks.PASSWORD);
        javax.sql.XAConnection x = source.getXAConnection();
        javax.transaction.xa.Xid id = new javax.transaction.xa.Xid() {
            public int getFormatId() {
                return 3;
            }

            public byte[] getGlobalTransactionId() {
                return new byte[] { 1, 7 };
            }

            public byte[] getBranchQualifier() {
                return new byte[] { 2 };
            }
        };
        javax.transaction.xa.XAResource r = x.getXAResource();
        r.start(id, 0);
        x.getConnection().createStatement().executeUpdate("UPDATE counters SET n = 99");
        r.end(id, javax.transaction.xa.XAResource.TMSUCCESS);
        r.prepare(id);
        r.rollback(id);
        Checks.same("2", one(x.getConnection(), "SELECT n FROM counters"));
        x.close();
    }
}
