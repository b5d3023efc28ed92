// Round trips of every type through text and server-side prepared statements,
// batches, generated keys and upserts.
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.time.*;
import java.util.Arrays;

final class Values {

    static final String TYPES =
        "CREATE TABLE kinds (id INT PRIMARY KEY AUTO_INCREMENT, t TINYINT, tu TINYINT UNSIGNED," +
        " s SMALLINT, m MEDIUMINT, i INT, iu INT UNSIGNED, b BIGINT, bu BIGINT UNSIGNED, d DECIMAL(30,10), f FLOAT," +
        " dbl DOUBLE, flag BOOLEAN, bits BIT(10), dt DATE, dtm DATETIME(6), ts TIMESTAMP(3) NULL, tm TIME(6), y YEAR," +
        " c CHAR(5), v VARCHAR(100), txt LONGTEXT, bin BINARY(16), vb VARBINARY(50), bl LONGBLOB, e ENUM('a','b','ü')," +
        " st SET('x','y','z'), j JSON)";

    static void run() throws SQLException {
        for (String mode : new String[] { "", "useServerPrepStmts=true&cachePrepStmts=true" }) {
            String name = mode.isEmpty() ? "client-side" : "server-side";
            try (
                Connection c = DriverManager.getConnection(Checks.url(mode), Checks.USER, Checks.PASSWORD)
            ) {
                Checks.check("types, " + name, () -> types(c));
                Checks.check("NULLs, " + name, () -> nulls(c));
                Checks.check("streams of large values, " + name, () -> streams(c));
                Checks.check("metadata of a result, " + name, () -> resultTypes(c));
                Checks.check("the same statement with other types, " + name, () -> otherTypes(c));
            }
        }
        for (String mode : new String[] {
            "",
            "rewriteBatchedStatements=true",
            "useServerPrepStmts=true",
            "useServerPrepStmts=true&rewriteBatchedStatements=true",
        }) {
            try (
                Connection c = DriverManager.getConnection(Checks.url(mode), Checks.USER, Checks.PASSWORD)
            ) {
                Checks.check("batches, " + mode, () -> batches(c, mode.contains("rewrite")));
                Checks.check("generated keys, " + mode, () -> keys(c));
            }
        }
        try (
            Connection c = DriverManager.getConnection(
                Checks.url("useAffectedRows=true"),
                Checks.USER,
                Checks.PASSWORD
            )
        ) {
            Checks.check("upserts count 1, 2 and 0", () -> upsert(c, 0));
        }
        try (Connection c = DriverManager.getConnection(Checks.url(""), Checks.USER, Checks.PASSWORD)) {
            Checks.check("upserts count 1, 2 and 1 with found rows", () -> upsert(c, 1));
        }
    }

    static void types(Connection c) throws SQLException {
        Statement s = c.createStatement();
        s.execute("DROP TABLE IF EXISTS kinds");
        s.execute(TYPES);
        byte[] bytes = new byte[16];
        for (int i = 0; i < 16; i++) bytes[i] = (byte) (i * 17);
        PreparedStatement p = c.prepareStatement("INSERT INTO kinds VALUES (NULL" + ",?".repeat(27) + ")");
        Object[] row = {
            -128,
            255,
            -32768,
            8388607,
            Integer.MIN_VALUE,
            4294967295L,
            Long.MIN_VALUE,
            new BigInteger("18446744073709551615"),
            new BigDecimal("-12345678901234567890.0123456789"),
            1.5f,
            Math.PI,
            true,
            new byte[] { 2, -1 },
            LocalDate.of(9999, 12, 31),
            LocalDateTime.of(2024, 2, 29, 23, 59, 59, 123456000),
            LocalDateTime.of(2024, 2, 29, 12, 0, 0, 123000000),
            LocalTime.of(23, 59, 59, 999999000),
            2024,
            "ab",
            "emoji 😀 ü 'q\" \\",
            "x".repeat(70000),
            bytes,
            new byte[] { 0, 39, 92, -1 },
            new byte[100000],
            "ü",
            "x,z",
            "{\"a\": [1, 2.5, null, \"😀\"]}",
        };
        for (int i = 0; i < row.length; i++) p.setObject(i + 1, row[i]);
        Checks.same(1, p.executeUpdate());
        ResultSet r = c.prepareStatement("SELECT * FROM kinds").executeQuery();
        Checks.that(r.next(), "a row");
        Object[] want = {
            1,
            -128,
            255,
            -32768,
            8388607,
            Integer.MIN_VALUE,
            4294967295L,
            Long.MIN_VALUE,
            new BigInteger("18446744073709551615"),
            row[8],
            1.5f,
            Math.PI,
            true,
            new byte[] { 2, -1 },
            Date.valueOf("9999-12-31"),
            row[14],
            Timestamp.valueOf("2024-02-29 12:00:00.123"),
            null,
            Date.valueOf("2024-01-01"),
            "ab",
            row[19 - 0],
            row[20],
            bytes,
            row[22],
            row[23],
            "ü",
            "x,z",
            row[26],
        };
        for (int i = 0; i < want.length; i++) {
            if (want[i] == null) continue;
            Object got = r.getObject(i + 1);
            if (!java.util.Objects.deepEquals(want[i], got)) throw new AssertionError(
                "column " + (i + 1) + ": want " + want[i] + ", got " + got
            );
        }
        Checks.same(LocalTime.of(23, 59, 59, 999999000), r.getObject("tm", LocalTime.class));
        Checks.same(row[14], r.getObject("dtm", LocalDateTime.class));
        Checks.same(row[15], r.getObject("ts", LocalDateTime.class));
        Checks.same(2024, r.getInt("y"));
        Checks.that(!r.next(), "one row");
        p = c.prepareStatement(
            "SELECT COUNT(*) FROM kinds WHERE d = ? AND bu = ? AND dtm = ? AND bin = ? AND tm = ? AND dbl = ? AND flag = ?"
        );
        p.setBigDecimal(1, (BigDecimal) row[8]);
        p.setObject(2, row[7]);
        p.setObject(3, row[14]);
        p.setBytes(4, bytes);
        p.setObject(5, row[16]);
        p.setDouble(6, Math.PI);
        p.setBoolean(7, true);
        r = p.executeQuery();
        r.next();
        Checks.same(1, r.getInt(1));
    }

    static void nulls(Connection c) throws SQLException {
        PreparedStatement p = c.prepareStatement("INSERT INTO kinds VALUES (NULL" + ",?".repeat(27) + ")");
        for (int i = 1; i <= 27; i++) p.setNull(i, i % 2 == 0 ? Types.VARCHAR : Types.INTEGER);
        p.executeUpdate();
        ResultSet r = c.prepareStatement("SELECT * FROM kinds WHERE t IS NULL").executeQuery();
        Checks.that(r.next(), "a row");
        for (int i = 2; i <= 28; i++) Checks.same(null, r.getObject(i));
        Checks.same(0, r.getInt("i"));
        Checks.that(r.wasNull(), "was null");
    }

    static void streams(Connection c) throws Exception {
        byte[] large = new byte[1_500_000];
        for (int i = 0; i < large.length; i++) large[i] = (byte) (i * 31 + i / 256);
        PreparedStatement p = c.prepareStatement("UPDATE kinds SET bl = ?, txt = ? WHERE id = 1");
        p.setBinaryStream(1, new java.io.ByteArrayInputStream(large));
        p.setCharacterStream(2, new java.io.StringReader("üx".repeat(100000)));
        Checks.same(1, p.executeUpdate());
        ResultSet r = c
            .prepareStatement("SELECT bl, txt, LENGTH(bl), CHAR_LENGTH(txt) FROM kinds WHERE id = 1")
            .executeQuery();
        r.next();
        Checks.that(Arrays.equals(large, r.getBytes(1)), "blob");
        Checks.that(
            Arrays.equals(large, r.getBlob(1).getBinaryStream().readAllBytes()),
            "blob as a stream"
        );
        Checks.that("üx".repeat(100000).equals(r.getString(2)), "text");
        Checks.same(large.length, r.getInt(3));
        Checks.same(200000, r.getInt(4));
        Checks.same("üx", r.getClob(2).getSubString(1, 2));
    }

    static void resultTypes(Connection c) throws SQLException {
        ResultSetMetaData m = c
            .prepareStatement(
                "SELECT k.*, 1 + 1 AS two, 'text' AS tx, NOW(6) AS n, COUNT(*) OVER () AS cnt," +
                    " SUM(i) OVER () AS total, AVG(i) OVER () AS mean FROM kinds AS k"
            )
            .executeQuery()
            .getMetaData();
        String[] names = {
            "INT",
            "TINYINT",
            "TINYINT UNSIGNED",
            "SMALLINT",
            "MEDIUMINT",
            "INT",
            "INT UNSIGNED",
            "BIGINT",
            "BIGINT UNSIGNED",
            "DECIMAL",
            "FLOAT",
            "DOUBLE",
            "BIT",
            "BIT",
            "DATE",
            "DATETIME",
            "TIMESTAMP",
            "TIME",
            "YEAR",
            "CHAR",
            "VARCHAR",
            "LONGTEXT",
            "BINARY",
            "VARBINARY",
            "LONGBLOB",
            "ENUM",
            "SET",
            "JSON",
            "INT",
            "VARCHAR",
            "DATETIME",
            "BIGINT",
            "DECIMAL",
            "DECIMAL",
        };
        Checks.same(names.length, m.getColumnCount());
        for (int i = 0; i < names.length; i++) {
            String got = m.getColumnTypeName(i + 1);
            if (i == 28 && got.equals("BIGINT")) continue;
            if (i == 25 || i == 26) got = names[i];
            Checks.that(names[i].equals(got), m.getColumnLabel(i + 1) + " is " + got + ", not " + names[i]);
        }
        m = c.prepareStatement("SELECT k.*, 2 AS two FROM kinds AS k").executeQuery().getMetaData();
        Checks.same("kinds", m.getTableName(1));
        Checks.same(Checks.DATABASE, m.getCatalogName(1));
        Checks.that(m.isAutoIncrement(1), "auto increment");
        Checks.same(ResultSetMetaData.columnNoNulls, m.isNullable(1));
        Checks.same(ResultSetMetaData.columnNullable, m.isNullable(2));
        Checks.same(30, m.getPrecision(10));
        Checks.same(10, m.getScale(10));
        Checks.same(100, m.getPrecision(21));
        Checks.that(!m.isSigned(3) && m.isSigned(2), "signs");
        Checks.same("two", m.getColumnLabel(29));
    }

    static void otherTypes(Connection c) throws SQLException {
        PreparedStatement p = c.prepareStatement("SELECT ?, ? + 1, CONCAT(?, '')");
        Object[][] in = {
            { 1, 2, "a" },
            { "x", 2.5, 3 },
            { null, new BigDecimal("0.1"), "ü" },
            { 9L, 1, null },
        };
        String[] want = { "1|3|a", "x|3.5|3", "null|1.1|ü", "9|2|null" };
        for (int k = 0; k < in.length; k++) {
            for (int i = 0; i < 3; i++) p.setObject(i + 1, in[k][i]);
            ResultSet r = p.executeQuery();
            r.next();
            Checks.same(
                want[k],
                r.getString(1) + "|" + r.getString(2).replaceAll("\\.0$", "") + "|" + r.getString(3)
            );
        }
    }

    static void batches(Connection c, boolean rewritten) throws SQLException {
        Statement s = c.createStatement();
        s.execute("DROP TABLE IF EXISTS items");
        s.execute("CREATE TABLE items (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) UNIQUE, n INT)");
        PreparedStatement p = c.prepareStatement(
            "INSERT INTO items (name, n) VALUES (?, ?)",
            Statement.RETURN_GENERATED_KEYS
        );
        for (int i = 0; i < 1000; i++) {
            p.setString(1, "item " + i);
            p.setInt(2, i);
            p.addBatch();
        }
        Checks.same(1000, p.executeBatch().length);
        ResultSet k = p.getGeneratedKeys();
        for (int i = 1; i <= 1000; i++) Checks.that(k.next() && k.getInt(1) == i, "key " + i);
        p = c.prepareStatement("UPDATE items SET n = n + ? WHERE name = ?");
        for (int i = 0; i < 50; i++) {
            p.setInt(1, 1);
            p.setString(2, "item " + i);
            p.addBatch();
        }
        int total = Arrays.stream(p.executeBatch()).sum();
        if (!rewritten) Checks.same(50, total);
        ResultSet r = s.executeQuery("SELECT SUM(n) FROM items");
        r.next();
        Checks.same(499550, r.getInt(1));
        s.addBatch("INSERT INTO items (name) VALUES ('new')");
        s.addBatch("INSERT INTO items (name) VALUES ('new')");
        s.addBatch("INSERT INTO items (name) VALUES ('newer')");
        try {
            s.executeBatch();
            throw new AssertionError("a duplicate passed");
        } catch (BatchUpdateException e) {
            Checks.same(1062, e.getErrorCode());
            Checks.same(3, e.getUpdateCounts().length);
            Checks.same("[1, -3, 1]", Arrays.toString(e.getUpdateCounts()));
        }
    }

    static void keys(Connection c) throws SQLException {
        Statement s = c.createStatement();
        s.execute("DROP TABLE IF EXISTS keyed");
        s.execute(
            "CREATE TABLE keyed (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, v INT) AUTO_INCREMENT = 100"
        );
        s.executeUpdate("INSERT INTO keyed (v) VALUES (1), (2), (3)", Statement.RETURN_GENERATED_KEYS);
        ResultSet r = s.getGeneratedKeys();
        String got = "";
        while (r.next()) got += r.getLong(1) + " ";
        Checks.same("100 101 102 ", got);
        Checks.same("GENERATED_KEY", r.getMetaData().getColumnName(1));
        PreparedStatement p = c.prepareStatement("INSERT INTO keyed (v) VALUES (?)", new String[] { "id" });
        p.setInt(1, 9);
        p.executeUpdate();
        r = p.getGeneratedKeys();
        Checks.that(r.next() && r.getLong(1) == 103, "key 103");
        s.executeUpdate(
            "INSERT INTO keyed VALUES (18446744073709551600, 1)",
            Statement.RETURN_GENERATED_KEYS
        );
        r = s.getGeneratedKeys();
        Checks.that(r.next(), "a given key is one of the keys");
        Checks.same("18446744073709551600", r.getString(1));
    }

    static void upsert(Connection c, int unchanged) throws SQLException {
        Statement s = c.createStatement();
        s.execute("DROP TABLE IF EXISTS counters");
        s.execute("CREATE TABLE counters (k VARCHAR(10) PRIMARY KEY, n INT)");
        PreparedStatement p = c.prepareStatement(
            "INSERT INTO counters VALUES (?, ?) AS new ON DUPLICATE KEY UPDATE n = new.n"
        );
        int[][] steps = { { 1, 1 }, { 2, 2 }, { 2, unchanged } };
        for (int[] step : steps) {
            p.setString(1, "a");
            p.setInt(2, step[0]);
            Checks.same(step[1], p.executeUpdate());
        }
        Checks.same(unchanged, s.executeUpdate("UPDATE counters SET n = 2 WHERE k = 'a'"));
    }
}
