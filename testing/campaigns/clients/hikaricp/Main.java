// Checks HikariCP over Connector/J: pools, threads, state that is reset, broken connections, read-only, timeouts.
// MySQL's own advice for the driver's properties is used.
import com.zaxxer.hikari.*;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;

public class Main {

    static HikariDataSource source(int size) {
        HikariConfig c = new HikariConfig();
        c.setJdbcUrl(Checks.url(""));
        c.setUsername(Checks.USER);
        c.setPassword(Checks.PASSWORD);
        c.setMaximumPoolSize(size);
        c.setConnectionTimeout(30000);
        c.setCatalog(Checks.DATABASE);
        c.setConnectionInitSql("SET @init = 7");
        for (String p : List.of(
            "cachePrepStmts",
            "useServerPrepStmts",
            "useLocalSessionState",
            "rewriteBatchedStatements",
            "cacheResultSetMetadata",
            "cacheServerConfiguration",
            "elideSetAutoCommits"
        ))
            c.addDataSourceProperty(p, "true");
        c.addDataSourceProperty("maintainTimeStats", "false");
        return new HikariDataSource(c);
    }

    static String one(Connection c, String sql) throws SQLException {
        try (PreparedStatement p = c.prepareStatement(sql); ResultSet r = p.executeQuery()) {
            return r.next() ? r.getString(1) : null;
        }
    }

    public static void main(String[] args) throws Exception {
        try (HikariDataSource s = source(5)) {
            Checks.check("many threads on few connections", () -> {
                try (Connection c = s.getConnection()) {
                    c.createStatement().execute(
                        "CREATE TABLE counter (id INT PRIMARY KEY, n INT NOT NULL)"
                    );
                    c.createStatement().execute("INSERT INTO counter VALUES (1, 0), (2, 0)");
                }
                ExecutorService pool = Executors.newFixedThreadPool(20);
                List<Future<?>> all = new ArrayList<>();
                for (int i = 0; i < 200; i++) {
                    int k = i;
                    all.add(
                        pool.submit(() -> {
                            try (
                                Connection c = s.getConnection();
                                PreparedStatement p = c.prepareStatement(
                                    "UPDATE counter SET n = n + ? WHERE id = ?"
                                )
                            ) {
                                p.setInt(1, 1);
                                p.setInt(2, 1 + (k % 2));
                                p.executeUpdate();
                            }
                            return null;
                        })
                    );
                }
                for (Future<?> f : all) f.get();
                pool.shutdown();
                try (Connection c = s.getConnection()) {
                    Checks.same("200", one(c, "SELECT SUM(n) FROM counter"));
                    Checks.same("7", one(c, "SELECT @init"));
                }
            });
            Checks.check("what is not committed is rolled back", () -> {
                try (Connection c = s.getConnection()) {
                    c.setAutoCommit(false);
                    c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                    c.setReadOnly(false);
                    c.createStatement().executeUpdate("UPDATE counter SET n = 0");
                }
                try (Connection c = s.getConnection()) {
                    Checks.same("200", one(c, "SELECT SUM(n) FROM counter"));
                    Checks.same(true, c.getAutoCommit());
                    Checks.same(Connection.TRANSACTION_REPEATABLE_READ, c.getTransactionIsolation());
                }
            });
            Checks.check("another database is reset", () -> {
                try (Connection c = s.getConnection()) {
                    c.setCatalog("information_schema");
                }
                try (Connection c = s.getConnection()) {
                    Checks.same(Checks.DATABASE, one(c, "SELECT DATABASE()"));
                }
            });
            Checks.check("a killed connection is replaced", () -> {
                Connection c1 = s.getConnection();
                try (Connection k = s.getConnection()) {
                    k.createStatement().execute("KILL " + one(c1, "SELECT CONNECTION_ID()"));
                    Thread.sleep(200);
                    Checks.that(!c1.isValid(1), "killed");
                }
                try {
                    c1.close();
                } catch (SQLException e) {
                    Checks.same("08", e.getSQLState().substring(0, 2));
                }
                for (int i = 0; i < 10; i++) {
                    try (Connection c = s.getConnection()) {
                        Checks.same("1", one(c, "SELECT 1"));
                    }
                }
            });
            Checks.check("a read-only connection", () -> {
                try (Connection c = s.getConnection()) {
                    c.setReadOnly(true);
                    try {
                        c.createStatement().executeUpdate("UPDATE counter SET n = 0");
                        throw new AssertionError("changed");
                    } catch (SQLException e) {
                        Checks.that(c.isReadOnly(), "read only");
                    }
                }
            });
            Checks.check("NULL and other types through cached statements", () -> {
                for (int i = 0; i < 5; i++) {
                    try (
                        Connection c = s.getConnection();
                        PreparedStatement p = c.prepareStatement("SELECT COALESCE(?, 'none'), ? IS NULL")
                    ) {
                        p.setString(1, i % 2 == 0 ? null : "x" + i);
                        p.setObject(2, i % 2 == 0 ? null : i);
                        ResultSet r = p.executeQuery();
                        r.next();
                        Checks.same(i % 2 == 0 ? "none" : "x" + i, r.getString(1));
                        Checks.same(i % 2 == 0, r.getBoolean(2));
                    }
                }
            });
        }
        Checks.check("an exhausted pool says so", () -> {
            try (HikariDataSource s = source(1); Connection c = s.getConnection()) {
                s.setConnectionTimeout(300);
                try (Connection d = s.getConnection()) {
                    throw new AssertionError("second connection");
                } catch (SQLTransientConnectionException e) {
                    Checks.same("1", one(c, "SELECT 1"));
                }
            }
        });
        Checks.finish();
    }
}
