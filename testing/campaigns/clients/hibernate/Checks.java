// Counts and prints the checks of an application: `ok   <check>` or `FAIL <check>: <why>`.
// Each check is a block that throws when the answer is not the right one.
import java.util.Arrays;
import java.util.Objects;

final class Checks {

    interface Body {
        void run() throws Throwable;
    }

    private static int failed;
    private static int passed;

    static String env(String name) {
        return Objects.requireNonNullElse(System.getenv(name), "");
    }

    static final String HOST = env("CLIENT_HOST");
    static final String PORT = env("CLIENT_PORT");
    static final String USER = env("CLIENT_USER");
    static final String PASSWORD = env("CLIENT_PASSWORD");
    static final String DATABASE = env("CLIENT_DATABASE");

    /** The address for a driver, with what an application adds to it. */
    static String url(String more) {
        return (
            "jdbc:mysql://" +
            HOST +
            ":" +
            PORT +
            "/" +
            DATABASE +
            "?allowPublicKeyRetrieval=true" +
            (more.isEmpty() ? "" : "&" + more)
        );
    }

    static void check(String name, Body body) {
        try {
            body.run();
            passed++;
            System.out.println("ok   " + name);
        } catch (Throwable t) {
            failed++;
            Throwable root = t;
            while (root.getCause() != null) root = root.getCause();
            String why = t + (root == t ? "" : " <- " + root);
            if (why.length() > 600) why = why.substring(0, 600);
            System.out.println("FAIL " + name + ": " + why.replaceAll("\\s+", " "));
            if (!env("CLIENT_TRACE").isEmpty()) t.printStackTrace(System.out);
        }
    }

    static void same(Object want, Object got) {
        if (!Objects.deepEquals(want, got)) {
            throw new AssertionError("want " + show(want) + ", got " + show(got));
        }
    }

    static void that(boolean truth, String what) {
        if (!truth) throw new AssertionError(what);
    }

    /** The body must fail with that error number of the server. */
    static void refused(int code, Body body) {
        try {
            body.run();
        } catch (Throwable t) {
            for (Throwable c = t; c != null; c = c.getCause()) {
                if (c instanceof java.sql.SQLException s && s.getErrorCode() != 0) {
                    same(code, s.getErrorCode());
                    return;
                }
            }
            throw new AssertionError("want error " + code + ", got " + t);
        }
        throw new AssertionError("want error " + code + ", got none");
    }

    private static String show(Object o) {
        return o instanceof byte[] b
            ? Arrays.toString(b)
            : o instanceof Object[] a
              ? Arrays.deepToString(a)
              : "" + o;
    }

    static void finish() {
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }
}
