// Streaming, cursors, scrolling, updatable result sets and several results of one call.
import java.sql.*;

final class ResultSets {

    static void run() throws SQLException {
        try (
            Connection c = DriverManager.getConnection(
                Checks.url("allowMultiQueries=true"),
                Checks.USER,
                Checks.PASSWORD
            )
        ) {
            fill(c);
            Checks.check("streaming row by row", () -> streaming(c));
            Checks.check("scrolling", () -> scrolling(c));
            Checks.check("an updatable result set", () -> updatable(c));
            Checks.check("several statements in one call", () -> several(c));
            Checks.check("maximum of rows", () -> maximum(c));
            Checks.check("query timeout", () -> timeout(c));
            Checks.check("warnings", () -> warnings(c));
            Checks.check("paging", () -> paging(c));
            Checks.check("window functions and common tables", () -> windows(c));
        }
        for (String mode : new String[] {
            "useCursorFetch=true",
            "useCursorFetch=true&useServerPrepStmts=true&defaultFetchSize=10",
        }) {
            try (
                Connection c = DriverManager.getConnection(Checks.url(mode), Checks.USER, Checks.PASSWORD)
            ) {
                Checks.check("cursor, " + mode, () -> cursor(c));
                Checks.check("two cursors at a time, " + mode, () -> cursors(c));
                Checks.check("cursor of a join, SHOW and an empty result, " + mode, () -> cursorKinds(c));
            }
        }
    }

    static void fill(Connection c) throws SQLException {
        Statement s = c.createStatement();
        s.execute("DROP TABLE IF EXISTS numbers");
        s.execute(
            "CREATE TABLE numbers (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL, name VARCHAR(20), d DATETIME(3))"
        );
        s.execute("SET SESSION cte_max_recursion_depth = 10000");
        s.execute(
            "INSERT INTO numbers (n, name, d) WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5000)" +
                " SELECT n, CONCAT('n', n), '2024-01-01 00:00:00.5' + INTERVAL n SECOND FROM r"
        );
    }

    static void streaming(Connection c) throws SQLException {
        Statement s = c.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY);
        s.setFetchSize(Integer.MIN_VALUE);
        ResultSet r = s.executeQuery("SELECT id, n FROM numbers ORDER BY id");
        long sum = 0;
        while (r.next()) sum += r.getInt(2);
        Checks.same(12502500L, sum);
        r = s.executeQuery("SELECT id FROM numbers ORDER BY id");
        r.next();
        r.close();
        Checks.that(c.isValid(5), "usable after an early close");
    }

    static void cursor(Connection c) throws SQLException {
        PreparedStatement p = c.prepareStatement(
            "SELECT id, n, name, d FROM numbers WHERE n > ? ORDER BY n DESC"
        );
        p.setFetchSize(100);
        for (int from : new int[] { 0, 4000, 5000 }) {
            p.setInt(1, from);
            ResultSet r = p.executeQuery();
            int want = 5000;
            while (r.next()) {
                Checks.same(want, r.getInt(2));
                Checks.same("n" + want, r.getString(3));
                want--;
            }
            Checks.same(from, want);
        }
        Statement s = c.createStatement();
        s.setFetchSize(7);
        ResultSet r = s.executeQuery("SELECT COUNT(*) FROM numbers");
        r.next();
        Checks.same(5000, r.getInt(1));
    }

    static void cursors(Connection c) throws SQLException {
        c.setAutoCommit(false);
        Statement a = c.createStatement();
        Statement b = c.createStatement();
        a.setFetchSize(10);
        b.setFetchSize(10);
        ResultSet r = a.executeQuery("SELECT n FROM numbers ORDER BY n LIMIT 100");
        ResultSet q = b.executeQuery("SELECT n FROM numbers ORDER BY n DESC LIMIT 100");
        for (int i = 0; i < 100; i++) {
            Checks.that(r.next() && q.next(), "row " + i);
            Checks.same(5001, r.getInt(1) + q.getInt(1));
            if (i == 50) c.createStatement().executeUpdate("UPDATE numbers SET name = name WHERE id = 1");
        }
        r.close();
        Checks.that(!q.next(), "the end");
        c.rollback();
        c.setAutoCommit(true);
    }

    static void cursorKinds(Connection c) throws SQLException {
        Statement s = c.createStatement();
        s.setFetchSize(5);
        ResultSet r = s.executeQuery(
            "SELECT a.n, b.n FROM numbers a JOIN numbers b ON b.n = a.n + 1 WHERE a.n <= 20 ORDER BY 1"
        );
        int k = 0;
        while (r.next()) Checks.same(++k + 1, r.getInt(2));
        Checks.same(20, k);
        Checks.that(!s.executeQuery("SELECT * FROM numbers WHERE n < 0").next(), "nothing");
        r = s.executeQuery("SHOW COLUMNS FROM numbers");
        k = 0;
        while (r.next()) k++;
        Checks.same(4, k);
        r = s.executeQuery("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3");
        k = 0;
        while (r.next()) k += r.getInt(1);
        Checks.same(6, k);
    }

    static void scrolling(Connection c) throws SQLException {
        Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY);
        ResultSet r = s.executeQuery("SELECT n FROM numbers ORDER BY n");
        Checks.that(r.last(), "last");
        Checks.same(5000, r.getRow());
        Checks.that(r.absolute(10), "tenth");
        Checks.same(10, r.getInt(1));
        Checks.that(r.relative(-3) && r.getInt(1) == 7, "seventh");
        Checks.that(r.absolute(-1) && r.getInt(1) == 5000, "from the end");
    }

    static void updatable(Connection c) throws SQLException {
        c.createStatement().execute("DROP TABLE IF EXISTS edits");
        c.createStatement().execute(
            "CREATE TABLE edits (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) NOT NULL DEFAULT 'none'," +
                " price DECIMAL(8,2), at DATETIME DEFAULT '2024-01-01')"
        );
        c.createStatement().execute("INSERT INTO edits (name, price) VALUES ('a', 1), ('b', 2), ('c', 3)");
        Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
        ResultSet r = s.executeQuery("SELECT * FROM edits ORDER BY id");
        Checks.same(ResultSet.CONCUR_UPDATABLE, r.getConcurrency());
        r.next();
        r.updateString("name", "ä😀");
        r.updateRow();
        Checks.same("ä😀", r.getString("name"));
        r.next();
        r.deleteRow();
        r.moveToInsertRow();
        r.updateBigDecimal("price", new java.math.BigDecimal("9.99"));
        r.updateString("name", "new");
        r.insertRow();
        r = s.executeQuery("SELECT CONCAT_WS(':', id, name, price, at) FROM edits ORDER BY id");
        String all = "";
        while (r.next()) all += r.getString(1) + "|";
        Checks.that(
            all.startsWith("1:ä😀:1.00:2024-01-01 00:00:00|3:c:3.00:2024-01-01 00:00:00|4:new:9.99"),
            all
        );
    }

    static void several(Connection c) throws SQLException {
        Statement s = c.createStatement();
        Checks.that(
            s.execute(
                "SELECT 1; UPDATE numbers SET name = 'z' WHERE id = 2; SELECT name FROM numbers WHERE id = 2"
            ),
            "a result first"
        );
        s.getResultSet().next();
        Checks.that(!s.getMoreResults(), "then a count");
        Checks.same(1, s.getUpdateCount());
        Checks.that(s.getMoreResults(), "then a result");
        ResultSet r = s.getResultSet();
        r.next();
        Checks.same("z", r.getString(1));
        Checks.that(!s.getMoreResults() && s.getUpdateCount() == -1, "the end");
        s.execute("UPDATE numbers SET name = 'n2' WHERE id = 2");
        Checks.refused(1146, () -> {
            s.execute("SELECT 1; SELECT * FROM missing");
            s.getMoreResults();
        });
        Checks.that(c.isValid(5), "usable after an error");
    }

    static void maximum(Connection c) throws SQLException {
        Statement s = c.createStatement();
        s.setMaxRows(10);
        ResultSet r = s.executeQuery("SELECT n FROM numbers");
        int n = 0;
        while (r.next()) n++;
        Checks.same(10, n);
        r = c.createStatement().executeQuery("SELECT n FROM numbers");
        n = 0;
        while (r.next()) n++;
        Checks.same(5000, n);
    }

    static void timeout(Connection c) throws SQLException {
        Statement s = c.createStatement();
        s.setQueryTimeout(1);
        try {
            s.executeQuery("SELECT SLEEP(20)");
            throw new AssertionError("no timeout");
        } catch (SQLTimeoutException e) {
            Checks.that(c.isValid(5), "usable after a timeout");
        }
    }

    static void warnings(Connection c) throws SQLException {
        Statement s = c.createStatement();
        s.execute("DROP TABLE IF EXISTS missing");
        Checks.same(1051, s.getWarnings().getErrorCode());
        s.executeQuery("SELECT CAST('12x' AS SIGNED)");
        Checks.same(1292, s.getWarnings().getErrorCode());
        s.executeQuery("SELECT 1");
        Checks.same(null, s.getWarnings());
    }

    static void paging(Connection c) throws SQLException {
        PreparedStatement p = c.prepareStatement("SELECT n FROM numbers ORDER BY n LIMIT ? OFFSET ?");
        for (int page = 0; page < 3; page++) {
            p.setInt(1, 10);
            p.setInt(2, page * 10);
            ResultSet r = p.executeQuery();
            r.next();
            Checks.same(page * 10 + 1, r.getInt(1));
        }
    }

    static void windows(Connection c) throws SQLException {
        ResultSet r = c
            .createStatement()
            .executeQuery(
                "WITH t AS (SELECT n, n % 3 AS g FROM numbers WHERE n <= 9)" +
                    " SELECT g, n, ROW_NUMBER() OVER w, SUM(n) OVER w, LAG(n, 1, 0) OVER w FROM t WINDOW w AS (PARTITION BY g ORDER BY n)" +
                    " ORDER BY g, n"
            );
        String all = "";
        while (r.next())
            all +=
                r.getInt(1) +
                ":" +
                r.getInt(2) +
                ":" +
                r.getInt(3) +
                ":" +
                r.getInt(4) +
                ":" +
                r.getInt(5) +
                " ";
        Checks.same(
            "0:3:1:3:0 0:6:2:9:3 0:9:3:18:6 1:1:1:1:0 1:4:2:5:1 1:7:3:12:4 2:2:1:2:0 2:5:2:7:2 2:8:3:15:5 ",
            all
        );
    }
}
