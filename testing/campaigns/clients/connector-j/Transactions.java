// Commit, rollback, savepoints, isolation, locks, deadlocks, XA, and threads.
import com.mysql.cj.jdbc.MysqlXADataSource;
import java.sql.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.XAConnection;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;

final class Transactions {

    static Connection connect() throws SQLException {
        return DriverManager.getConnection(Checks.url(""), Checks.USER, Checks.PASSWORD);
    }

    static void run() throws SQLException {
        try (Connection c = connect()) {
            c.createStatement().execute("CREATE TABLE accounts (id INT PRIMARY KEY, balance INT NOT NULL)");
            c.createStatement().execute("INSERT INTO accounts VALUES (1, 100), (2, 100)");
            Checks.check("commit and rollback", () -> commit(c));
            Checks.check("savepoints", () -> savepoints(c));
            Checks.check("isolation levels", () -> isolation(c));
            Checks.check("read-only transactions", () -> readOnly(c));
            Checks.check("lock wait timeout", () -> lockWait(c));
            Checks.check("deadlock", Transactions::deadlock);
            Checks.check("threads", () -> threads(c));
            Checks.check("XA, two phases", Transactions::xa);
            Checks.check("XA, rollback and recover", Transactions::xaRecover);
        }
    }

    static int balance(Connection c, int id) throws SQLException {
        try (
            ResultSet r = c.createStatement().executeQuery("SELECT balance FROM accounts WHERE id = " + id)
        ) {
            r.next();
            return r.getInt(1);
        }
    }

    static void change(Connection c, int id, int by) throws SQLException {
        Checks.same(
            1,
            c
                .createStatement()
                .executeUpdate("UPDATE accounts SET balance = balance + " + by + " WHERE id = " + id)
        );
    }

    static void commit(Connection c) throws SQLException {
        c.setAutoCommit(false);
        change(c, 1, -10);
        c.rollback();
        Checks.same(100, balance(c, 1));
        change(c, 1, -10);
        c.commit();
        c.setAutoCommit(true);
        Checks.same(90, balance(c, 1));
        change(c, 1, 10);
    }

    static void savepoints(Connection c) throws SQLException {
        c.setAutoCommit(false);
        change(c, 1, 1);
        Savepoint a = c.setSavepoint("a b`c");
        change(c, 1, 10);
        Savepoint b = c.setSavepoint();
        change(c, 1, 100);
        c.rollback(b);
        Checks.same(111, balance(c, 1));
        c.rollback(a);
        Checks.same(101, balance(c, 1));
        c.releaseSavepoint(a);
        Checks.refused(1305, () -> c.rollback(a));
        c.rollback();
        c.setAutoCommit(true);
        Checks.same(100, balance(c, 1));
    }

    static void isolation(Connection c) throws SQLException {
        int[] levels = { 1, 2, 4, 8 };
        for (int level : levels) {
            try (Connection other = connect()) {
                other.setTransactionIsolation(level);
                Checks.same(level, other.getTransactionIsolation());
            }
        }
        try (Connection snapshot = connect()) {
            snapshot.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            snapshot.setAutoCommit(false);
            Checks.same(100, balance(snapshot, 2));
            change(c, 2, 5);
            Checks.same(100, balance(snapshot, 2));
            snapshot.commit();
            Checks.same(105, balance(snapshot, 2));
            snapshot.rollback();
            change(c, 2, -5);
        }
    }

    static void readOnly(Connection c) throws SQLException {
        c.setReadOnly(true);
        Checks.refused(1792, () -> {
            try (
                Connection d = DriverManager.getConnection(
                    Checks.url("readOnlyPropagatesToServer=true"),
                    Checks.USER,
                    Checks.PASSWORD
                )
            ) {
                d.setReadOnly(true);
                Checks.that(d.isReadOnly(), "read only");
                d.createStatement().execute("/* hidden */ UPDATE accounts SET balance = 0");
            } catch (SQLException e) {
                throw e.getErrorCode() == 0 ? new SQLException(e.getMessage(), "25006", 1792) : e;
            }
        });
        c.setReadOnly(false);
        c.createStatement().execute("START TRANSACTION READ ONLY");
        Checks.refused(1792, () -> change(c, 1, 1));
        c.createStatement().execute("COMMIT");
    }

    static void lockWait(Connection c) throws SQLException {
        try (Connection d = connect()) {
            d.createStatement().execute("SET SESSION innodb_lock_wait_timeout = 1");
            c.setAutoCommit(false);
            change(c, 1, 1);
            Checks.refused(1205, () -> change(d, 1, 1));
            Checks.refused(3572, () ->
                d.createStatement().executeQuery("SELECT * FROM accounts WHERE id = 1 FOR UPDATE NOWAIT")
            );
            ResultSet r = d
                .createStatement()
                .executeQuery("SELECT id FROM accounts ORDER BY id FOR UPDATE SKIP LOCKED");
            r.next();
            Checks.same(2, r.getInt(1));
        } finally {
            c.rollback();
            c.setAutoCommit(true);
        }
    }

    static void deadlock() throws Exception {
        AtomicInteger victims = new AtomicInteger();
        CyclicBarrier both = new CyclicBarrier(2);
        ExecutorService pool = Executors.newFixedThreadPool(2);
        for (int t = 0; t < 2; t++) {
            int first = t + 1;
            pool.submit(() -> {
                try (Connection c = connect()) {
                    c.setAutoCommit(false);
                    change(c, first, 0);
                    c.createStatement().executeUpdate(
                        "UPDATE accounts SET balance = balance + 7 WHERE id = " + first
                    );
                    both.await();
                    change(c, 3 - first, -7);
                    c.rollback();
                } catch (SQLTransactionRollbackException e) {
                    if (
                        e.getErrorCode() == 1213 && e.getSQLState().equals("40001")
                    ) victims.incrementAndGet();
                }
                return null;
            });
        }
        pool.shutdown();
        Checks.that(pool.awaitTermination(30, TimeUnit.SECONDS), "no end");
        Checks.same(1, victims.get());
    }

    static void threads(Connection c) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(8);
        Future<?>[] all = new Future<?>[8];
        for (int t = 0; t < all.length; t++) {
            all[t] = pool.submit(() -> {
                try (Connection d = connect()) {
                    for (int i = 0; i < 50; i++) change(d, 1, 1);
                }
                return null;
            });
        }
        for (Future<?> f : all) f.get();
        pool.shutdown();
        Checks.same(500, balance(c, 1));
        change(c, 1, -400);
    }

    record Id(byte[] global, byte[] branch) implements Xid {
        public int getFormatId() {
            return 7;
        }

        public byte[] getGlobalTransactionId() {
            return global;
        }

        public byte[] getBranchQualifier() {
            return branch;
        }
    }

    static XAConnection xaConnection() throws SQLException {
        MysqlXADataSource source = new MysqlXADataSource();
        source.setUrl(Checks.url(""));
        source.setUser(Checks.USER);
        source.setPassword(Checks.PASSWORD);
        return source.getXAConnection();
    }

    static void xa() throws Exception {
        Id id = new Id(new byte[] { 1, 2, 3 }, new byte[] { 9 });
        XAConnection x = xaConnection();
        XAResource r = x.getXAResource();
        Connection c = x.getConnection();
        r.start(id, XAResource.TMNOFLAGS);
        change(c, 1, 50);
        r.end(id, XAResource.TMSUCCESS);
        Checks.same(XAResource.XA_OK, r.prepare(id));
        r.commit(id, false);
        Checks.same(150, balance(c, 1));
        r.start(id, XAResource.TMNOFLAGS);
        change(c, 1, -50);
        r.end(id, XAResource.TMSUCCESS);
        r.commit(id, true);
        Checks.same(100, balance(c, 1));
        try {
            r.commit(id, true);
            throw new AssertionError("an unknown transaction was committed");
        } catch (XAException e) {
            Checks.same(XAException.XAER_NOTA, e.errorCode);
        }
        x.close();
    }

    static void xaRecover() throws Exception {
        Id id = new Id(new byte[] { 5 }, new byte[] { 1 });
        XAConnection x = xaConnection();
        XAResource r = x.getXAResource();
        r.start(id, XAResource.TMNOFLAGS);
        change(x.getConnection(), 2, 1);
        r.end(id, XAResource.TMSUCCESS);
        r.prepare(id);
        x.close();
        XAConnection y = xaConnection();
        XAResource q = y.getXAResource();
        boolean found = false;
        for (Xid other : q.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN)) {
            found |= other.getFormatId() == 7 && other.getGlobalTransactionId()[0] == 5;
        }
        Checks.that(found, "the prepared transaction is in the list");
        q.rollback(id);
        Checks.same(100, balance(y.getConnection(), 2));
        y.close();
    }
}
