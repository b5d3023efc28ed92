// Storing, loading and changing entities: types, associations, versions, locks, batches, threads.
import jakarta.persistence.LockModeType;
import jakarta.persistence.OptimisticLockException;
import java.math.BigDecimal;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;
import org.hibernate.Hibernate;
import org.hibernate.Session;
import org.hibernate.SessionFactory;

record Entities(SessionFactory f) {
    void run() {
        Checks.check("types", this::types);
        Checks.check("associations and cascades", this::associations);
        Checks.check("orphans", this::orphans);
        Checks.check("a stale version is refused", this::versions);
        Checks.check("a duplicate is refused", () ->
            Checks.refused(1062, () -> f.inTransaction(s -> s.persist(new Model.Customer("x", "anna@x"))))
        );
        Checks.check("inheritance", this::inheritance);
        Checks.check("batches with a sequence and a table of keys", this::batches);
        Checks.check("pessimistic locks", this::locks);
        Checks.check("threads", this::threads);
        Checks.check("stateless session and upsert", this::stateless);
        Checks.check("savepoints and rollback", this::savepoints);
    }

    void types() {
        UUID token = UUID.fromString("01234567-89ab-cdef-0123-456789abcdef");
        byte[] picture = new byte[200_000];
        new Random(1).nextBytes(picture);
        Instant created = Instant.parse("2024-02-29T23:59:59.123456Z");
        f.inTransaction(s -> {
            Model.Customer c = new Model.Customer("Anna 😀 O'Neil", "anna@x");
            c.born = LocalDate.of(1999, 12, 31);
            c.address = new Model.Address("Straße 1", "01234");
            c.settings.putAll(Map.of("theme", "dark", "size", 3, "list", List.of(1, 2, "😀")));
            c.level = Model.Level.HIGH;
            c.standing = Model.Level.MIDDLE;
            c.token = token;
            c.shown = token;
            c.picture = picture;
            c.notes = "ü".repeat(70000);
            c.credit = new BigDecimal("-1234567890123456.7891");
            c.score = 0.1 + 0.2;
            c.created = created;
            c.changed = LocalDateTime.of(2024, 1, 2, 3, 4, 5, 678901000);
            c.wakes = LocalTime.of(6, 30, 15);
            c.phones.addAll(List.of("+49 1", "+49 2"));
            s.persist(c);
        });
        f.inSession(s -> {
            Model.Customer c = s.bySimpleNaturalId(Model.Customer.class).load("anna@x");
            Checks.same("Anna 😀 O'Neil", c.name);
            Checks.same(LocalDate.of(1999, 12, 31), c.born);
            Checks.same("Straße 1", c.address.street);
            Checks.same(List.of(1, 2, "😀"), c.settings.get("list"));
            Checks.same(Model.Level.HIGH, c.level);
            Checks.same(Model.Level.MIDDLE, c.standing);
            Checks.same(token, c.token);
            Checks.same(token, c.shown);
            Checks.that(Arrays.equals(picture, c.picture), "picture");
            Checks.same(70000, c.notes.length());
            Checks.same(new BigDecimal("-1234567890123456.7891"), c.credit);
            Checks.same(0.1 + 0.2, c.score);
            Checks.same(created, c.created);
            Checks.same(LocalDateTime.of(2024, 1, 2, 3, 4, 5, 678901000), c.changed);
            Checks.same(LocalTime.of(6, 30, 15), c.wakes);
            Checks.same(Set.of("+49 1", "+49 2"), new HashSet<>(c.phones));
        });
    }

    void associations() {
        f.inTransaction(s -> {
            Model.Tag a = new Model.Tag("new"),
                b = new Model.Tag("good");
            s.persist(a);
            s.persist(b);
            for (int i = 0; i < 5; i++) {
                Model.Customer c = new Model.Customer("c" + i, "c" + i + "@x");
                c.settings.put("size", i);
                c.level = Model.Level.values()[i % 3];
                c.born = LocalDate.of(1990 + i, 1, 1);
                c.tags.add(i % 2 == 0 ? a : b);
                for (int k = 0; k <= i; k++) new Model.Purchase(
                    c,
                    (k + 1) * 10 + ".50",
                    LocalDate.of(2024, 1, 1 + k)
                );
                s.persist(c);
            }
        });
        f.inSession(s -> {
            List<Model.Customer> all = s
                .createQuery(
                    "select distinct c from Customer c left join fetch c.purchases where c.name like 'c_' order by c.name",
                    Model.Customer.class
                )
                .getResultList();
            Checks.same(5, all.size());
            Checks.same(5, all.get(4).purchases.size());
            Checks.same(new BigDecimal("50.50"), all.get(4).purchases.get(4).total);
            Checks.that(all.get(0).purchases.get(0).at != null, "time of creation");
            Checks.same(1, all.get(0).tags.size());
        });
        f.inTransaction(s -> s.remove(s.bySimpleNaturalId(Model.Customer.class).load("c3@x")));
        Checks.same(
            11L,
            f.fromSession(s -> s.createQuery("select count(*) from Purchase", Long.class).getSingleResult())
        );
        f.inTransaction(s ->
            s
                .createNativeMutationQuery(
                    "DELETE FROM customer_tags WHERE customer_id = (SELECT id FROM customers WHERE mail = 'c2@x')"
                )
                .executeUpdate()
        );
        f.inTransaction(s ->
            s.createNativeMutationQuery("DELETE FROM customers WHERE mail = 'c2@x'").executeUpdate()
        );
        Checks.same(
            8L,
            f.fromSession(s -> s.createQuery("select count(*) from Purchase", Long.class).getSingleResult())
        );
        Checks.check("a referenced row is not deleted", () ->
            Checks.refused(1451, () ->
                f.inTransaction(s -> s.createNativeMutationQuery("DELETE FROM tags").executeUpdate())
            )
        );
    }

    void orphans() {
        f.inTransaction(s -> s.bySimpleNaturalId(Model.Customer.class).load("c4@x").purchases.remove(0));
        Checks.same(
            4,
            f.fromSession(s -> s.bySimpleNaturalId(Model.Customer.class).load("c4@x").purchases.size())
        );
    }

    void versions() {
        Model.Customer stale = f.fromSession(s -> s.bySimpleNaturalId(Model.Customer.class).load("c0@x"));
        f.inTransaction(s -> s.bySimpleNaturalId(Model.Customer.class).load("c0@x").score = 5);
        stale.score = 6;
        try {
            f.inTransaction(s -> {
                Model.Customer c = s.find(Model.Customer.class, stale.id);
                s.detach(c);
                c.version = 0;
                c.score = 7;
                c.purchases = null;
                c.tags = null;
                c.phones = null;
                s.merge(c);
            });
            throw new AssertionError("merged");
        } catch (OptimisticLockException | org.hibernate.StaleObjectStateException e) {
            Checks.same(1, f.fromSession(s -> s.find(Model.Customer.class, stale.id).version));
        }
    }

    void inheritance() {
        f.inTransaction(s -> {
            Model.Truck t = new Model.Truck();
            t.plate = "T 1";
            t.wheels = 6;
            t.tons = 7.5;
            s.persist(t);
            Model.Bike b = new Model.Bike();
            b.plate = "B 1";
            b.electric = true;
            s.persist(b);
            Model.CardPayment p = new Model.CardPayment();
            p.amount = new BigDecimal("9.99");
            p.card = "1234";
            s.persist(p);
        });
        f.inSession(s -> {
            Checks.same(
                2,
                s.createQuery("from Vehicle order by plate", Model.Vehicle.class).getResultList().size()
            );
            Checks.same(7.5, s.createQuery("from Truck", Model.Truck.class).getSingleResult().tons);
            Checks.same(
                "1234",
                s
                    .createQuery("select treat(p as CardPayment).card from Payment p", String.class)
                    .getSingleResult()
            );
            Checks.same(
                1L,
                s
                    .createQuery("select count(*) from Vehicle v where type(v) = Bike", Long.class)
                    .getSingleResult()
            );
        });
        Checks.same(
            2,
            f.fromTransaction(s ->
                s.createMutationQuery("update Vehicle v set v.wheels = v.wheels + 1").executeUpdate()
            )
        );
        Checks.same(
            1,
            f.fromTransaction(s ->
                s
                    .createMutationQuery(
                        "update Truck t set t.tons = 8, t.wheels = 10 where t.plate = 'T 1'"
                    )
                    .executeUpdate()
            )
        );
        Checks.same(
            2,
            f.fromTransaction(s -> s.createMutationQuery("delete from Vehicle").executeUpdate())
        );
    }

    void batches() {
        f.inTransaction(s -> {
            for (int i = 0; i < 130; i++) {
                s.persist(new Model.Tag("tag " + i));
                Model.Bike b = new Model.Bike();
                b.plate = "B " + i;
                s.persist(b);
            }
        });
        Checks.same(
            132L,
            f.fromSession(s -> s.createQuery("select count(*) from Tag", Long.class).getSingleResult())
        );
        Checks.same(
            130L,
            f.fromSession(s ->
                s.createQuery("select count(distinct id) from Bike", Long.class).getSingleResult()
            )
        );
    }

    void locks() {
        f.inTransaction(s -> {
            Model.Tag t = s
                .createQuery("from Tag where label = 'tag 5'", Model.Tag.class)
                .setLockMode(LockModeType.PESSIMISTIC_WRITE)
                .getSingleResult();
            Checks.refused(3572, () ->
                f.inTransaction(q ->
                    q.find(
                        Model.Tag.class,
                        t.id,
                        LockModeType.PESSIMISTIC_WRITE,
                        Map.of("jakarta.persistence.lock.timeout", 0)
                    )
                )
            );
            List<Model.Tag> rest = f.fromTransaction(q ->
                q
                    .createQuery("from Tag where label like 'tag 5%'", Model.Tag.class)
                    .setLockMode(LockModeType.PESSIMISTIC_WRITE)
                    .setHint("jakarta.persistence.lock.timeout", -2)
                    .getResultList()
            );
            Checks.that(rest.stream().noneMatch(x -> x.label.equals("tag 5")), "the locked row is skipped");
        });
    }

    void threads() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(5);
        List<Future<?>> all = new ArrayList<>();
        for (int t = 0; t < 5; t++) {
            int k = t;
            all.add(
                pool.submit(() ->
                    f.inTransaction(s -> {
                        for (int i = 0; i < 20; i++) s.persist(
                            new Model.Customer("thread " + k, "t" + k + "." + i)
                        );
                    })
                )
            );
        }
        for (Future<?> x : all) x.get();
        pool.shutdown();
        Checks.same(
            100L,
            f.fromSession(s ->
                s
                    .createQuery("select count(*) from Customer where name like 'thread%'", Long.class)
                    .getSingleResult()
            )
        );
    }

    void stateless() {
        f.inStatelessTransaction(s -> {
            Model.Node root = new Model.Node(1, "root", null);
            s.upsert(root);
            s.upsert(new Model.Node(2, "a", root));
            s.upsert(new Model.Node(2, "b", root));
            s.upsert(new Model.Node(3, "c", new Model.Node(2, "b", root)));
        });
        Checks.same(
            List.of("root", "b", "c"),
            f.fromSession(s ->
                s.createQuery("select label from Node order by id", String.class).getResultList()
            )
        );
    }

    void savepoints() {
        f.inTransaction(s ->
            s.doWork(c -> {
                java.sql.Savepoint p = c.setSavepoint("one");
                c.createStatement().executeUpdate("DELETE FROM nodes WHERE id = 3");
                c.rollback(p);
            })
        );
        Checks.same(
            3L,
            f.fromSession(s -> s.createQuery("select count(*) from Node", Long.class).getSingleResult())
        );
    }
}
