// TLS, compression, LOAD DATA LOCAL, time zones, character sets, and calls of what the server has not.
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.*;
import java.util.Set;
import java.util.concurrent.Executors;

final class Connections {

    static void run() {
        Checks.check("TLS is required", () -> status("sslMode=REQUIRED", "Ssl_cipher", true));
        Checks.check("TLS is off", () -> status("sslMode=DISABLED", "Ssl_cipher", false));
        Checks.check("TLS 1.2", () ->
            value("sslMode=REQUIRED&tlsVersions=TLSv1.2", "SHOW STATUS LIKE 'Ssl_version'", 2, "TLSv1.2")
        );
        Checks.check("compression", Connections::compression);
        Checks.check("LOAD DATA LOCAL from a file and a stream", Connections::load);
        Checks.check("LOAD DATA LOCAL is refused without allowLoadLocalInfile", Connections::loadRefused);
        Checks.check("the session's variables", Connections::variables);
        Checks.check("time zones of instants", Connections::zones);
        Checks.check("another database and back", Connections::catalogs);
        Checks.check("changing the user and resetting", Connections::change);
        Checks.check("network timeout and abort", Connections::abort);
        Checks.check("connection attributes and wrong password", Connections::attributes);
        Checks.check("a call of a missing procedure is refused", Connections::call);
        Checks.check("a packet that is too large", Connections::large);
    }

    static Connection connect(String mode) throws SQLException {
        return DriverManager.getConnection(Checks.url(mode), Checks.USER, Checks.PASSWORD);
    }

    static String one(Connection c, String sql, int column) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            return r.next() ? r.getString(column) : null;
        }
    }

    static void value(String mode, String sql, int column, String want) throws SQLException {
        try (Connection c = connect(mode)) {
            Checks.same(want, one(c, sql, column));
        }
    }

    static void status(String mode, String name, boolean full) throws SQLException {
        try (Connection c = connect(mode)) {
            Checks.same(full, !one(c, "SHOW SESSION STATUS LIKE '" + name + "'", 2).isEmpty());
        }
    }

    static void compression() throws SQLException {
        try (Connection c = connect("useCompression=true")) {
            Checks.same("ON", one(c, "SHOW SESSION STATUS LIKE 'Compression'", 2));
            Checks.same("a".repeat(3_000_000), one(c, "SELECT REPEAT('a', 3000000)", 1));
            PreparedStatement p = c.prepareStatement("SELECT LENGTH(?)");
            byte[] random = new byte[2_000_000];
            new java.util.Random(1).nextBytes(random);
            p.setBytes(1, random);
            ResultSet r = p.executeQuery();
            r.next();
            Checks.same(2_000_000, r.getInt(1));
        }
    }

    static void load() throws Exception {
        try (Connection c = connect("allowLoadLocalInfile=true")) {
            Statement s = c.createStatement();
            String before = one(c, "SELECT @@GLOBAL.local_infile", 1);
            s.execute("SET GLOBAL local_infile = ON");
            s.execute("CREATE TABLE loaded (a INT PRIMARY KEY, b VARCHAR(50), d DATE)");
            Path file = Files.createTempFile("load", ".csv");
            Files.writeString(file, "a,b,d\n1,\"ü, 😀\",2024-01-02\n2,\\N,\\N\n3,\"q\\\"q\",2024-12-31\n");
            Checks.same(
                3,
                s.executeUpdate(
                    "LOAD DATA LOCAL INFILE '" +
                        file +
                        "' INTO TABLE loaded CHARACTER SET utf8mb4" +
                        " FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' IGNORE 1 LINES"
                )
            );
            Checks.same(
                "1:ü, 😀:2024-01-02|2:~:~|3:q\"q:2024-12-31",
                one(
                    c,
                    "SELECT GROUP_CONCAT(CONCAT(a, ':', IFNULL(b, '~'), ':', IFNULL(d, '~')) ORDER BY a SEPARATOR '|') FROM loaded",
                    1
                )
            );
            com.mysql.cj.jdbc.JdbcStatement local = s.unwrap(com.mysql.cj.jdbc.JdbcStatement.class);
            StringBuilder rows = new StringBuilder();
            for (int i = 10; i < 30000; i++) rows.append(i)
                .append("\trow ")
                .append(i)
                .append("\t2024-01-01\n");
            local.setLocalInfileInputStream(
                new ByteArrayInputStream(rows.toString().getBytes(StandardCharsets.UTF_8))
            );
            Checks.same(29990, s.executeUpdate("LOAD DATA LOCAL INFILE 'x' INTO TABLE loaded"));
            local.setLocalInfileInputStream(
                new ByteArrayInputStream("1\tdouble\t\\N\n5\tbad\tnot a date\n".getBytes())
            );
            Checks.same(1, s.executeUpdate("LOAD DATA LOCAL INFILE 'x' INTO TABLE loaded"));
            String all = "";
            for (SQLWarning w = s.getWarnings(); w != null; w = w.getNextWarning()) all +=
                w.getErrorCode() + " ";
            Checks.same("1062 1265 ", all);
            s.execute("SET GLOBAL local_infile = " + before);
            Files.delete(file);
        }
    }

    static void loadRefused() throws Exception {
        try (Connection c = connect("")) {
            try {
                c.createStatement().execute("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE loaded");
                throw new AssertionError("loaded");
            } catch (SQLException e) {
                Checks.that(c.isValid(5), "usable after the refusal");
            }
        }
    }

    static void variables() throws SQLException {
        try (
            Connection c = connect(
                "sessionVariables=sql_mode='ANSI_QUOTES,STRICT_TRANS_TABLES',group_concat_max_len=5000," +
                    "transaction_isolation='READ-COMMITTED'&connectionCollation=utf8mb4_0900_as_cs"
            )
        ) {
            Checks.same("5000", one(c, "SELECT @@group_concat_max_len", 1));
            Checks.same("READ-COMMITTED", one(c, "SELECT @@transaction_isolation", 1));
            Checks.same("utf8mb4_0900_as_cs", one(c, "SELECT @@collation_connection", 1));
            Checks.same("0", one(c, "SELECT 'a' = 'A'", 1));
            Checks.same("1", one(c, "SELECT \"x\" FROM (SELECT 1 AS \"x\") \"t\"", 1));
            Checks.same(Connection.TRANSACTION_READ_COMMITTED, c.getTransactionIsolation());
        }
    }

    static void zones() throws SQLException {
        java.time.Instant moment = java.time.Instant.parse("2024-07-01T12:34:56.123456Z");
        for (String mode : new String[] {
            "connectionTimeZone=%2B05:30&forceConnectionTimeZoneToSession=true",
            "connectionTimeZone=SERVER",
            "connectionTimeZone=UTC&forceConnectionTimeZoneToSession=true&useServerPrepStmts=true",
        }) {
            if (mode.contains("=UTC")) mode = mode.replace("=UTC", "=%2B00:00");
            try (Connection c = connect(mode)) {
                Statement s = c.createStatement();
                s.execute("DROP TABLE IF EXISTS moments");
                s.execute("CREATE TABLE moments (t TIMESTAMP(6) NULL, d DATETIME(6))");
                PreparedStatement p = c.prepareStatement("INSERT INTO moments VALUES (?, ?)");
                p.setTimestamp(1, Timestamp.from(moment));
                p.setObject(2, moment.atOffset(java.time.ZoneOffset.ofHours(3)));
                p.executeUpdate();
                ResultSet r = c.prepareStatement("SELECT t, d FROM moments").executeQuery();
                r.next();
                Checks.same(moment, r.getTimestamp(1).toInstant());
                Checks.same(moment, r.getObject(2, java.time.OffsetDateTime.class).toInstant());
                Checks.same("1719837296.123456", one(c, "SELECT UNIX_TIMESTAMP(t) FROM moments", 1));
            }
        }
    }

    static void catalogs() throws SQLException {
        try (Connection c = connect("")) {
            c.setCatalog("information_schema");
            Checks.same("information_schema", one(c, "SELECT DATABASE()", 1));
            c.setCatalog(Checks.DATABASE);
            Checks.same(Checks.DATABASE, c.getCatalog());
            Checks.refused(1049, () -> c.setCatalog("no_such_database"));
            Checks.same(Checks.DATABASE, one(c, "SELECT DATABASE()", 1));
        }
    }

    static void change() throws SQLException {
        try (Connection c = connect("")) {
            c.createStatement().execute("SET @x = 1");
            c.createStatement().execute("CREATE TEMPORARY TABLE t1 (a INT)");
            com.mysql.cj.jdbc.JdbcConnection j = c.unwrap(com.mysql.cj.jdbc.JdbcConnection.class);
            j.changeUser(Checks.USER, Checks.PASSWORD);
            Checks.same(null, one(c, "SELECT @x", 1));
            Checks.refused(1146, () -> one(c, "SELECT * FROM " + Checks.DATABASE + ".t1", 1));
            c.setCatalog(Checks.DATABASE);
            c.createStatement().execute("SET @x = 1");
            j.resetServerState();
            Checks.same(null, one(c, "SELECT @x", 1));
        }
    }

    static void abort() throws Exception {
        try (Connection c = connect("")) {
            c.setNetworkTimeout(
                Executors.newSingleThreadExecutor(r -> {
                    Thread t = new Thread(r);
                    t.setDaemon(true);
                    return t;
                }),
                500
            );
            try {
                one(c, "SELECT SLEEP(5)", 1);
                throw new AssertionError("no timeout");
            } catch (SQLException e) {
                Checks.same("08S01", e.getSQLState());
            }
        }
        try (Connection c = connect("")) {
            String id = one(c, "SELECT CONNECTION_ID()", 1);
            try (Connection d = connect("")) {
                d.createStatement().execute("KILL " + id);
            }
            Thread.sleep(100);
            Checks.that(!c.isValid(2), "a killed connection is not valid");
        }
    }

    static void attributes() throws SQLException {
        try (Connection c = connect("connectionAttributes=program_name:checks,x:y")) {
            Checks.that(c.isValid(1), "valid");
        }
        Checks.refused(1045, () ->
            DriverManager.getConnection(Checks.url(""), Checks.USER, "wrong " + Checks.PASSWORD)
        );
        Checks.refused(1049, () ->
            DriverManager.getConnection(
                Checks.url("").replace("/" + Checks.DATABASE, "/no_such_database"),
                Checks.USER,
                Checks.PASSWORD
            )
        );
    }

    static void call() throws SQLException {
        try (Connection c = connect("")) {
            try {
                CallableStatement s = c.prepareCall("{call no_such_procedure(?, ?)}");
                s.setInt(1, 1);
                s.setInt(2, 1);
                s.execute();
                throw new AssertionError("called");
            } catch (SQLException e) {
                Checks.that(Set.of(1305, 1235).contains(e.getErrorCode()), "" + e);
            }
            Checks.that(c.isValid(5), "usable after it");
        }
    }

    static void large() throws SQLException {
        try (Connection c = connect("maxAllowedPacket=1073741824")) {
            long limit = Long.parseLong(one(c, "SELECT @@max_allowed_packet", 1));
            PreparedStatement p = c.prepareStatement("SELECT LENGTH(?)");
            p.setBytes(1, new byte[(int) limit / 3]);
            ResultSet r = p.executeQuery();
            r.next();
            Checks.same((int) limit / 3, r.getInt(1));
        }
    }
}
