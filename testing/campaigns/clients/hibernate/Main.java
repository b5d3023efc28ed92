// Checks Hibernate: schema tools (create, validate, update twice, drop), entities, queries, bulk changes.
// The statements that the second update would send must be none.
import java.util.*;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.hibernate.resource.jdbc.spi.StatementInspector;

public class Main {

    static final List<String> STATEMENTS = Collections.synchronizedList(new ArrayList<>());

    static SessionFactory factory(String ddl, Class<?>... more) {
        Configuration c = new Configuration();
        c.setProperty("hibernate.connection.url", Checks.url("rewriteBatchedStatements=true"));
        c.setProperty("hibernate.connection.username", Checks.USER);
        c.setProperty("hibernate.connection.password", Checks.PASSWORD);
        c.setProperty("hibernate.hbm2ddl.auto", ddl);
        c.setProperty("hibernate.hbm2ddl.halt_on_error", ddl.equals("update") ? "true" : "false");
        c.setProperty("hibernate.jdbc.batch_size", "20");
        c.setProperty("hibernate.jdbc.time_zone", "UTC");
        c.setProperty("hibernate.query.hql.json_functions_enabled", "true");
        c.setProperty("hibernate.connection.pool_size", "5");
        StatementInspector see = sql -> {
            STATEMENTS.add(sql);
            return sql;
        };
        c.setStatementInspector(see);
        for (Class<?> k : Model.ALL) c.addAnnotatedClass(k);
        for (Class<?> k : more) c.addAnnotatedClass(k);
        return c.buildSessionFactory();
    }

    static String script() throws Exception {
        java.nio.file.Path file = java.nio.file.Files.createTempFile("update", ".sql");
        Configuration c = new Configuration();
        for (Class<?> k : Model.ALL) c.addAnnotatedClass(k);
        c.setProperty("hibernate.connection.url", Checks.url(""));
        c.setProperty("hibernate.connection.username", Checks.USER);
        c.setProperty("hibernate.connection.password", Checks.PASSWORD);
        c.setProperty("jakarta.persistence.schema-generation.scripts.action", "update");
        c.setProperty("jakarta.persistence.schema-generation.scripts.create-target", file.toString());
        c.buildSessionFactory().close();
        return java.nio.file.Files.readString(file).strip();
    }

    public static void main(String[] args) {
        Checks.check("create", () -> factory("create").close());
        Checks.check("validate", () -> factory("validate").close());
        Checks.check("update finds nothing", () -> {
            factory("update").close();
            Checks.same("", script());
        });
        Checks.check("drop and create again, twice", () -> {
            factory("create-drop").close();
            factory("create-drop").close();
        });
        Checks.check("update of an empty database, then nothing to do", () -> {
            factory("update").close();
            Checks.same("", script());
            factory("validate").close();
        });
        Checks.check("update adds a column and a table", () -> {
            try (SessionFactory f = factory("validate")) {
                f.inTransaction(s -> {
                    s.createNativeMutationQuery("ALTER TABLE customers DROP COLUMN notes").executeUpdate();
                    s.createNativeMutationQuery("DROP TABLE phones").executeUpdate();
                });
            }
            Checks.that(script().contains("add column notes"), script());
            factory("update").close();
            factory("validate").close();
            Checks.same("", script());
        });
        try (SessionFactory f = factory("create")) {
            new Entities(f).run();
            new Queries(f).run();
        }
        Checks.finish();
    }
}
