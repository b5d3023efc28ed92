// Checks Flyway: migrate, info, validate, a failed migration, repair, baseline, clean, and all of it once more.
// Two migrators at a time must wait for each other.
import java.nio.file.*;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.*;
import org.flywaydb.core.api.configuration.FluentConfiguration;

public class Main {

    static FluentConfiguration base(String... more) {
        List<String> places = new ArrayList<>(List.of("filesystem:sql"));
        places.addAll(List.of(more));
        return Flyway.configure()
            .dataSource(Checks.url(""), Checks.USER, Checks.PASSWORD)
            .cleanDisabled(false)
            .locations(places.toArray(new String[0]))
            .placeholders(Map.of("note", "it''s"));
    }

    static String one(String sql) throws SQLException {
        try (
            Connection c = DriverManager.getConnection(Checks.url(""), Checks.USER, Checks.PASSWORD);
            ResultSet r = c.createStatement().executeQuery(sql)
        ) {
            return r.next() ? r.getString(1) : null;
        }
    }

    static void round(String n) throws Exception {
        Path extra = Files.createTempDirectory("flyway");
        Flyway f = base("filesystem:" + extra).load();
        Checks.check("migrate an empty database" + n, () -> {
            Checks.same(3, f.migrate().migrationsExecuted);
            Checks.same("2", one("SELECT COUNT(*) FROM people WHERE mail LIKE '%@x'"));
            Checks.same("it's", one("SELECT IFNULL(MAX(note), 'it''s') FROM pet_owners"));
        });
        Checks.check("nothing to do" + n, () -> Checks.same(0, f.migrate().migrationsExecuted));
        Checks.check("validate" + n, f::validate);
        Checks.check("info" + n, () -> Checks.same("1:Success 2:Success null:Success ", states(f)));
        Checks.check("a failed migration" + n, () -> {
            Files.writeString(
                extra.resolve("V3__broken.sql"),
                "CREATE TABLE half (a INT);\nALTER TABLE missing ADD b INT;\n"
            );
            try {
                f.migrate();
                throw new AssertionError("migrated");
            } catch (FlywayException e) {
                Checks.that(e.getMessage().contains("1146"), e.getMessage());
            }
            Checks.same("1:Success 2:Success null:Success 3:Failed ".length(), states(f).length());
        });
        Checks.check("repair" + n, () -> {
            one("SELECT 1");
            f.repair();
            try (Connection c = DriverManager.getConnection(Checks.url(""), Checks.USER, Checks.PASSWORD)) {
                c.createStatement().execute("DROP TABLE half");
            }
            Files.writeString(
                extra.resolve("V3__broken.sql"),
                "CREATE TABLE half (a INT);\nINSERT INTO half VALUES (1);\n"
            );
            Checks.same(1, f.migrate().migrationsExecuted);
            Checks.same("1", one("SELECT a FROM half"));
        });
        Checks.check("a changed migration is seen and repaired" + n, () -> {
            Files.writeString(
                extra.resolve("V3__broken.sql"),
                "CREATE TABLE half (a INT);\nINSERT INTO half VALUES (2);\n"
            );
            try {
                f.validate();
                throw new AssertionError("valid");
            } catch (FlywayException e) {
                Checks.that(e.getMessage().contains("checksum"), e.getMessage());
            }
            f.repair();
            f.validate();
        });
        Checks.check("clean" + n, () -> {
            f.clean();
            Checks.same(
                "0",
                one("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()")
            );
        });
        Checks.check("baseline" + n, () -> {
            try (Connection c = DriverManager.getConnection(Checks.url(""), Checks.USER, Checks.PASSWORD)) {
                c.createStatement().execute(
                    "CREATE TABLE people (id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(100), born DATE)"
                );
                c.createStatement().execute(
                    "CREATE TABLE pets (id INT PRIMARY KEY, owner BIGINT, name VARCHAR(40))"
                );
            }
            Flyway b = base().baselineOnMigrate(true).baselineVersion("1").load();
            Checks.same(2, b.migrate().migrationsExecuted);
            b.clean();
        });
    }

    static String states(Flyway f) {
        StringBuilder all = new StringBuilder();
        for (MigrationInfo i : f.info().all())
            all.append(i.getVersion()).append(':').append(i.getState().getDisplayName()).append(' ');
        return all.toString();
    }

    static void together() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Integer>> all = new ArrayList<>();
        for (int i = 0; i < 4; i++) all.add(pool.submit(() -> base().load().migrate().migrationsExecuted));
        int sum = 0;
        for (Future<Integer> x : all) sum += x.get();
        pool.shutdown();
        Checks.same(3, sum);
        base().load().clean();
    }

    public static void main(String[] args) throws Exception {
        round("");
        round(", again");
        Checks.check("four migrators at a time", Main::together);
        Checks.check("schemas that Flyway creates and drops", () -> {
            String name = Checks.DATABASE + "_own";
            Flyway f = base().schemas(name).load();
            f.migrate();
            Checks.same("2", one("SELECT COUNT(*) FROM " + name + ".people"));
            f.clean();
            Checks.same(
                "0",
                one("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '" + name + "'")
            );
        });
        Checks.finish();
    }
}
