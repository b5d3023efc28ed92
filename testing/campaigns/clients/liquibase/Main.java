// Checks Liquibase: update, rollback to a tag, rollback of all, the same again, diff and generateChangeLog.
// A change log that is made from the schema must build the same schema.
import java.io.*;
import java.nio.file.*;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;
import liquibase.*;
import liquibase.command.CommandScope;
import liquibase.database.*;
import liquibase.database.jvm.JdbcConnection;
import liquibase.resource.DirectoryResourceAccessor;

public class Main {

    static Connection connect(String database) throws SQLException {
        return DriverManager.getConnection(
            Checks.url("").replace("/" + Checks.DATABASE + "?", "/" + database + "?"),
            Checks.USER,
            Checks.PASSWORD
        );
    }

    static String one(String sql) throws SQLException {
        try (Connection c = connect(Checks.DATABASE); ResultSet r = c.createStatement().executeQuery(sql)) {
            return r.next() ? r.getString(1) : null;
        }
    }

    interface Work {
        void with(Liquibase l) throws Exception;
    }

    static void liquibase(String log, String database, Work work) throws Exception {
        try (Connection c = connect(database)) {
            Database d = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(
                new JdbcConnection(c)
            );
            try (
                Liquibase l = new Liquibase(
                    log,
                    new DirectoryResourceAccessor(new File(".").getAbsoluteFile()),
                    d
                )
            ) {
                work.with(l);
            }
        }
    }

    static void update() throws Exception {
        liquibase("changes.xml", Checks.DATABASE, l -> l.update(new Contexts()));
    }

    static String tables() throws SQLException {
        return one(
            "SELECT GROUP_CONCAT(table_name ORDER BY CAST(table_name AS BINARY)) FROM information_schema.tables WHERE table_schema = DATABASE()"
        );
    }

    static String diff(String from, String to) throws Exception {
        try (Connection a = connect(from); Connection b = connect(to)) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            new CommandScope("diff")
                .addArgumentValue(
                    "referenceDatabase",
                    DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(a))
                )
                .addArgumentValue(
                    "database",
                    DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(b))
                )
                .setOutput(out)
                .execute();
            StringBuilder found = new StringBuilder();
            for (String line : out.toString().split("\n")) {
                if (line.matches("(Missing|Unexpected|Changed) .*") && !line.endsWith("NONE")) found
                    .append(line)
                    .append('|');
                else if (line.startsWith("     ") && !line.isBlank()) found
                    .append(line.strip())
                    .append('|');
            }
            return found.toString();
        }
    }

    static void round(String n) {
        Checks.check("update" + n, () -> {
            update();
            Checks.same("DATABASECHANGELOG,DATABASECHANGELOGLOCK,animal,owners,person", tables());
            Checks.same(
                "Ann 😀 O'Neil|Ulm|3.000|1",
                one("SELECT CONCAT_WS('|', name, city, score, active + 0) FROM person")
            );
            Checks.same("7", one("SELECT COUNT(*) FROM DATABASECHANGELOG WHERE EXECTYPE = 'EXECUTED'"));
        });
        Checks.check("nothing to do" + n, () ->
            liquibase("changes.xml", Checks.DATABASE, l -> {
                Checks.same(0, l.listUnrunChangeSets(new Contexts(), new LabelExpression()).size());
                l.update(new Contexts());
                StringWriter sql = new StringWriter();
                l.update(new Contexts(), sql);
                Checks.that(
                    !sql.toString().contains("ALTER TABLE") && !sql.toString().contains("CREATE TABLE"),
                    sql.toString()
                );
            })
        );
        Checks.check("rollback to a tag" + n, () ->
            liquibase("changes.xml", Checks.DATABASE, l -> {
                l.rollback("tables", new Contexts());
                Checks.same("DATABASECHANGELOG,DATABASECHANGELOGLOCK,person,pet", tables());
                Checks.same(
                    "0",
                    one(
                        "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name IN ('city', 'mass')"
                    )
                );
            })
        );
        Checks.check("update after the rollback" + n, Main::update);
        Checks.check("rollback of all" + n, () ->
            liquibase("changes.xml", Checks.DATABASE, l -> {
                l.rollback(20, "");
                Checks.same("DATABASECHANGELOG,DATABASECHANGELOGLOCK", tables());
            })
        );
    }

    public static void main(String[] args) throws Exception {
        round("");
        round(", again");
        String copy = Checks.DATABASE + "_copy";
        Path made = Path.of("made.xml");
        Checks.check("generateChangeLog", () -> {
            update();
            Files.deleteIfExists(made);
            try (Connection c = connect(Checks.DATABASE)) {
                new CommandScope("generateChangeLog")
                    .addArgumentValue(
                        "database",
                        DatabaseFactory.getInstance().findCorrectDatabaseImplementation(
                            new JdbcConnection(c)
                        )
                    )
                    .addArgumentValue("changelogFile", made.toString())
                    .setOutput(new ByteArrayOutputStream())
                    .execute();
            }
            String text = Files.readString(made);
            for (String x : List.of(
                "tableName=\"person\"",
                "pet_owner",
                "unique=\"true\"",
                "pet_name",
                "<createView",
                "remarks=\"full name\"",
                "onDelete=\"CASCADE\"",
                "ENUM('low', 'high')"
            ))
                Checks.that(text.contains(x), x + " is missing");
        });
        Checks.check("the generated log builds a schema without differences", () -> {
            try (Connection c = connect(Checks.DATABASE)) {
                c.createStatement().execute("DROP DATABASE IF EXISTS " + copy);
                c.createStatement().execute("CREATE DATABASE " + copy);
            }
            liquibase(made.toString(), copy, l -> l.update(new Contexts()));
            Checks.same("", diff(Checks.DATABASE, copy));
        });
        Checks.check("diff finds what is different", () -> {
            try (Connection c = connect(copy)) {
                c.createStatement().execute(
                    "ALTER TABLE person DROP COLUMN notes, MODIFY name VARCHAR(120) NOT NULL, ADD extra INT"
                );
            }
            String all = diff(Checks.DATABASE, copy);
            for (String x : List.of("person.notes", "person.extra", "person.name"))
                Checks.that(all.contains(x), all);
        });
        Checks.check("dropAll", () -> {
            liquibase("changes.xml", copy, Liquibase::dropAll);
            Checks.same(
                "0",
                one("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '" + copy + "'")
            );
        });
        Checks.check("two updates at a time", () -> {
            liquibase("changes.xml", Checks.DATABASE, l -> l.rollback(20, ""));
            ExecutorService pool = Executors.newFixedThreadPool(2);
            List<Future<?>> all = List.of(
                pool.submit(() -> {
                    update();
                    return null;
                }),
                pool.submit(() -> {
                    update();
                    return null;
                })
            );
            for (Future<?> x : all) x.get();
            pool.shutdown();
            Checks.same("8", one("SELECT COUNT(*) FROM DATABASECHANGELOG"));
        });
        Checks.finish();
    }
}
