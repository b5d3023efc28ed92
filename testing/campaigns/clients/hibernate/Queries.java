// HQL: paging, grouping, subqueries, windows, common tables, JSON, functions, set operations, bulk changes.
// The answers are those for the rows that Entities leaves behind.
import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.*;
import org.hibernate.SessionFactory;

record Queries(SessionFactory f) {
    void run() {
        Checks.check("paging", () -> {
            Checks.same(
                "[tag 10, tag 100]",
                list("select label from Tag where label like 'tag 10%' order by label", 0, 2)
            );
            Checks.same(
                "[tag 101, tag 102]",
                list("select label from Tag where label like 'tag 10%' order by label", 2, 2)
            );
        });
        Checks.check("grouping", () ->
            Checks.same(
                "[c0:1:10.50, c1:2:31.00, c4:4:142.00]",
                list(
                    "select c.name || ':' || cast(count(p) as String) || ':' || cast(sum(p.total) as String) from Customer c join c.purchases p" +
                        " group by c.name having count(p) > 0 order by c.name",
                    0,
                    9
                )
            )
        );
        Checks.check("exists and in", () -> {
            Checks.same(
                "[c1, c4]",
                list(
                    "select c.name from Customer c where exists (select 1 from Purchase p where p.customer = c and p.total > 15)" +
                        " order by c.name",
                    0,
                    9
                )
            );
            Checks.same(
                "[Anna 😀 O'Neil]",
                list(
                    "select c.name from Customer c where c.id not in (select p.customer.id from Purchase p)" +
                        " and c.name not like 'thread%'",
                    0,
                    9
                )
            );
            Checks.same("[c4]", list("select c.name from Customer c where size(c.purchases) > 3", 0, 9));
            Checks.same(
                "[c1]",
                list(
                    "select c.name from Customer c where (select max(p.total) from Purchase p where p.customer = c) = 20.50",
                    0,
                    9
                )
            );
        });
        Checks.check("window functions", () -> Checks.same("7", windows()));
        Checks.check("common tables", () ->
            Checks.same(
                "[c4]",
                list(
                    "with t as (select p.customer.id as cid, sum(p.total) as s from Purchase p group by p.customer.id)" +
                        " select c.name from Customer c join t x on x.cid = c.id where x.s > 100",
                    0,
                    9
                )
            )
        );
        Checks.check("recursive common tables", () ->
            Checks.same(
                "[root, b, c]",
                list(
                    "with tree as (select n.id as id, n.label as label, 0 as depth from Node n" +
                        " where n.parent is null union all select n.id as id, n.label as label, t.depth + 1 as depth from Node n join tree t on n.parent.id = t.id)" +
                        " select t.label from tree t order by t.depth",
                    0,
                    9
                )
            )
        );
        Checks.check("JSON functions", () -> {
            Checks.same(
                "[c4]",
                list(
                    "select c.name from Customer c where json_value(c.settings, '$.size' returning Integer) = 4",
                    0,
                    9
                )
            );
            Checks.same(
                "[c0, c1, c4]",
                list(
                    "select c.name from Customer c where c.name like 'c_' and json_exists(c.settings, '$.size') order by c.name",
                    0,
                    9
                )
            );
            Checks.same(
                "[dark]",
                list(
                    "select json_value(c.settings, '$.theme') from Customer c where c.mail = 'anna@x'",
                    0,
                    9
                )
            );
            Checks.same(
                "[[\"c0\",\"c1\",\"c4\"]]",
                list(
                    "select json_arrayagg(c.name order by c.name) from Customer c where c.name like 'c_'",
                    0,
                    9
                ).replace(", ", ",")
            );
        });
        Checks.check("set operations", () -> {
            Checks.same(
                "[good, new, c0, c1, c4]".length(),
                list(
                    "select t.label from Tag t where t.label not like 'tag%' union all" +
                        " select c.name from Customer c where c.name like 'c_'",
                    0,
                    9
                ).length()
            );
            Checks.same(
                "[c1]",
                list(
                    "select c.name from Customer c where c.name like 'c_' intersect select c.name from Customer c where c.mail = 'c1@x'",
                    0,
                    9
                )
            );
            Checks.same(
                "2",
                "" +
                    f.fromSession(s ->
                        s
                            .createQuery(
                                "select c.name from Customer c where c.name like 'c_' except select c.name from Customer c" +
                                    " where c.mail = 'c1@x'",
                                String.class
                            )
                            .getResultList()
                            .size()
                    )
            );
        });
        Checks.check("functions", () -> {
            Checks.same(
                "[2024-02-01]",
                list("select cast(max(p.day) + 27 day as String) from Purchase p", 0, 9)
            );
            Checks.same(
                "[1]",
                list("select cast(extract(month from min(p.day)) as String) from Purchase p", 0, 9)
            );
            Checks.same(
                "[NEW|3|ew]",
                list(
                    "select upper(t.label) || '|' || cast(length(t.label) as String) || '|' || substring(t.label, 2)" +
                        " from Tag t where t.label = 'new'",
                    0,
                    9
                )
            );
            Checks.same(
                "[good,new]",
                list(
                    "select listagg(t.label, ',') within group (order by t.label) from Tag t where t.label not like 'tag%'",
                    0,
                    9
                )
            );
            Checks.same(
                "[c0]",
                list(
                    "select c.name from Customer c where c.name like 'c_' and regexp_like(c.name, '^c[0]$')",
                    0,
                    9
                )
            );
            Checks.same(
                "[HIGH]",
                list(
                    "select cast(c.level as String) from Customer c where c.level = Level.HIGH".replace(
                        "Level.HIGH",
                        "'HIGH'"
                    ),
                    0,
                    1
                )
            );
        });
        Checks.check("lateral joins", () ->
            Checks.same(
                "[c0 10.50, c1 20.50, c4 50.50]",
                list(
                    "select c.name || ' ' || cast(x.t as String) from Customer c" +
                        " join lateral (select p.total as t from c.purchases p order by p.total desc limit 1) x order by c.name",
                    0,
                    9
                )
            )
        );
        Checks.check("criteria", this::criteria);
        Checks.check("bulk update with a subquery", () ->
            Checks.same(
                2,
                f.fromTransaction(s ->
                    s
                        .createMutationQuery(
                            "update Customer c set c.active = false," +
                                " c.score = (select count(*) from Purchase p where p.customer = c) where c.id in (select p.customer.id from Purchase p where p.total > 15)"
                        )
                        .executeUpdate()
                )
            )
        );
        Checks.check("bulk update with a join", () ->
            Checks.same(
                4,
                f.fromTransaction(s ->
                    s
                        .createMutationQuery(
                            "update Purchase p set p.total = p.total + 1 where p.customer.name = 'c4'"
                        )
                        .executeUpdate()
                )
            )
        );
        Checks.check("insert from select and on conflict", () -> {
            Checks.same(
                3,
                f.fromTransaction(s ->
                    s
                        .createMutationQuery(
                            "insert into Node (id, label) select n.id + 100, n.label from Node n"
                        )
                        .executeUpdate()
                )
            );
            f.inTransaction(s ->
                s
                    .createMutationQuery(
                        "insert into Node (id, label) values (101, 'again'), (200, 'fresh') on conflict(id) do update" +
                            " set label = excluded.label"
                    )
                    .executeUpdate()
            );
            Checks.same(
                "[again, fresh]",
                list("select label from Node where label in ('again', 'fresh') order by id", 0, 9)
            );
        });
        Checks.check("bulk delete with a join", () -> {
            Checks.same(
                1,
                f.fromTransaction(s ->
                    s
                        .createMutationQuery("delete from Purchase p where p.customer.name = 'c0'")
                        .executeUpdate()
                )
            );
            Checks.same(
                3,
                f.fromTransaction(s ->
                    s
                        .createMutationQuery(
                            "delete from Customer c where c.name like 'thread%' and c.mail like '%.7' and c.mail < 't3'"
                        )
                        .executeUpdate()
                )
            );
        });
    }

    String list(String hql, int first, int max) {
        return f.fromSession(s ->
            s
                .createQuery(hql, Object.class)
                .setFirstResult(first)
                .setMaxResults(max)
                .getResultList()
                .toString()
        );
    }

    String windows() {
        List<Object[]> rows = f.fromSession(s ->
            s
                .createQuery(
                    "select c.name, row_number() over (partition by c.id order by p.id)," +
                        " sum(p.total) over (partition by c.id order by p.id rows between unbounded preceding and current row)," +
                        " lag(p.total) over (partition by c.id order by p.id), rank() over (order by p.total desc)" +
                        " from Customer c join c.purchases p order by c.name, p.id",
                    Object[].class
                )
                .getResultList()
        );
        StringBuilder got = new StringBuilder();
        for (Object[] r : rows)
            got.append(r[0])
                .append(':')
                .append(r[1])
                .append(':')
                .append(r[2])
                .append(':')
                .append(r[3])
                .append(' ');
        Checks.same(
            "c0:1:10.50:null c1:1:10.50:null c1:2:31.00:10.50 c4:1:20.50:null c4:2:51.00:20.50 c4:3:91.50:30.50 c4:4:142.00:40.50 ",
            got.toString()
        );
        return "" + rows.size();
    }

    void criteria() {
        List<String> names = f.fromSession(s -> {
            var b = s.getCriteriaBuilder();
            var q = b.createQuery(String.class);
            var c = q.from(Model.Customer.class);
            q.select(c.get("name"))
                .where(
                    b.and(
                        b.like(c.get("name"), "c_"),
                        b.greaterThan(c.<LocalDate>get("born"), LocalDate.of(1990, 6, 1)),
                        b.or(b.equal(c.get("level"), Model.Level.MIDDLE), b.isTrue(c.get("active")))
                    )
                )
                .orderBy(b.desc(c.get("name")));
            return s.createQuery(q).getResultList();
        });
        Checks.same(List.of("c4", "c1"), names);
    }
}
