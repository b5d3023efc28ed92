// Knex: migrations up and down twice, the schema builder, the query builder with JSON, common tables, windows,
// upserts, locks, transactions with savepoints, streams, a pool.
import assert from "node:assert/strict";
import knexModule from "knex";
import { check, finish, server } from "./check.mjs";

const knex = knexModule({
  client: "mysql2",
  connection: { ...server, charset: "utf8mb4" },
  pool: { min: 0, max: 5 },
});
const steps = {
  "01_authors": {
    up: (k) =>
      k.schema.createTable("authors", (t) => {
        t.increments("id");
        t.string("name", 80).notNullable().index("by_name");
        t.json("meta");
        t.enu("kind", ["a", "b"]).defaultTo("a");
        t.decimal("money", 14, 4);
        t.boolean("active").defaultTo(true);
        t.uuid("uid");
        t.binary("raw", 20);
        t.date("born");
        t.datetime("seen", { precision: 6 });
        t.timestamps(true, true);
        t.bigInteger("big").unsigned();
        t.specificType("flags", "SET('x','y')");
        t.comment("writers");
        t.charset("utf8mb4");
        t.engine("InnoDB");
        t.text("bio", "longtext");
        t.time("at", { precision: 3 });
      }),
    down: (k) => k.schema.dropTable("authors"),
  },
  "02_books": {
    up: async (k) => {
      await k.schema.createTable("books", (t) => {
        t.bigIncrements("id");
        t.integer("author_id")
          .unsigned()
          .notNullable()
          .references("id")
          .inTable("authors")
          .onDelete("CASCADE");
        t.string("title").notNullable();
        t.integer("year");
        t.unique(["author_id", "title"], { indexName: "one_title" });
        t.check("?? > ?", ["year", 0], "positive_year");
      });
      await k.schema.alterTable("books", (t) => {
        t.float("price").after("title");
        t.string("isbn", 13).first();
        t.index(["year", "price"], "year_price");
        t.integer("pages").unsigned().defaultTo(0).comment("count of pages");
      });
    },
    down: (k) => k.schema.dropTableIfExists("books"),
  },
  "03_changes": {
    up: async (k) => {
      await k.schema.alterTable("books", (t) => {
        t.renameColumn("isbn", "code");
        t.string("title", 120).notNullable().alter();
        t.dropIndex(["year", "price"], "year_price");
      });
      await k.schema.alterTable("books", (t) => {
        t.setNullable("title");
        t.dropNullable("year");
        t.dropColumn("pages");
      });
      await k.schema.createView("titles", (v) => {
        v.columns(["t", "y"]);
        v.as(k("books").select("title", "year").where("year", ">", 1900));
      });
      await k.schema.createViewOrReplace("titles", (v) => {
        v.columns(["t", "y"]);
        v.as(k("books").select("title", "year").where("year", ">", 1950));
      });
    },
    down: async (k) => {
      await k.schema.dropView("titles");
      await k.schema.alterTable("books", (t) => {
        t.renameColumn("code", "isbn");
        t.integer("pages").unsigned();
        t.index(["year", "price"], "year_price");
      });
    },
  },
};
const migrationSource = {
  getMigrations: async () => Object.keys(steps),
  getMigrationName: (m) => m,
  getMigration: async (m) => steps[m],
};

await check("migrate latest, rollback, latest, twice", async () => {
  for (let i = 0; i < 2; i += 1) {
    assert.deepEqual((await knex.migrate.latest({ migrationSource }))[1], Object.keys(steps));
    assert.deepEqual((await knex.migrate.latest({ migrationSource }))[1], []);
    assert.equal((await knex.migrate.rollback({ migrationSource }, true))[1].length, 3);
  }
  for (const m of Object.keys(steps))
    assert.deepEqual((await knex.migrate.up({ migrationSource }))[1], [m]);
  assert.equal((await knex.migrate.down({ migrationSource }))[1][0], "03_changes");
  await knex.migrate.latest({ migrationSource });
  assert.deepEqual(
    (await knex.migrate.list({ migrationSource })).map((l) => l.length),
    [3, 0],
  );
  assert.equal(await knex.migrate.currentVersion(), "03");
});
await check("introspection", async () => {
  assert.deepEqual(
    [
      await knex.schema.hasTable("books"),
      await knex.schema.hasTable("nope"),
      await knex.schema.hasColumn("books", "code"),
      await knex.schema.hasColumn("books", "isbn"),
    ],
    [true, false, true, false],
  );
  const info = await knex("books").columnInfo();
  assert.deepEqual(info.title, { defaultValue: null, type: "varchar", maxLength: 120, nullable: true });
  assert.deepEqual(Object.keys(info).sort(), ["author_id", "code", "id", "price", "title", "year"]);
  const a = await knex("authors").columnInfo();
  assert.deepEqual(
    [a.active, a.money.type, a.seen.type, a.created_at.defaultValue],
    [
      { defaultValue: "1", type: "tinyint", maxLength: null, nullable: true },
      "decimal",
      "datetime",
      "CURRENT_TIMESTAMP",
    ],
  );
  assert.deepEqual(
    await knex("titles")
      .columnInfo("t")
      .then((c) => c.maxLength),
    120,
  );
});
await check("insert gives ids, types come back", async () => {
  const seen = new Date("2024-02-29T10:11:12.345Z");
  assert.deepEqual(
    await knex("authors").insert(
      [
        {
          name: "Ann",
          meta: JSON.stringify({ a: { b: 1 }, t: ["x", "y"] }),
          kind: "b",
          money: "1234.5678",
          uid: "a".repeat(36),
          raw: Buffer.from([0, 255]),
          born: "2000-02-29",
          seen,
          big: "18446744073709551615",
          flags: "x,y",
          bio: "🦀",
          at: "10:11:12.345",
        },
        { name: "Bob", meta: JSON.stringify({ a: { b: 2 }, t: [] }) },
        { name: "Cid" },
      ],
      ["id"],
    ),
    [1],
  );
  const r = await knex("authors").first().where({ id: 1 });
  assert.deepEqual(
    [
      r.meta,
      r.kind,
      r.money,
      r.active,
      r.raw.toString("hex").slice(0, 4),
      r.seen.getTime(),
      r.flags,
      r.bio,
      r.at,
    ],
    [
      { a: { b: 1 }, t: ["x", "y"] },
      "b",
      "1234.5678",
      1,
      "00ff",
      seen.getTime(),
      "x,y",
      "🦀",
      "10:11:12.345",
    ],
  );
  const [id] = await knex("books").insert({ author_id: 1, title: "t1", year: 1999, price: 1.5 });
  assert.equal(id, 1);
  await knex.batchInsert(
    "books",
    Array.from({ length: 40 }, (_, i) => ({ author_id: 1 + (i % 3), title: `b${i}`, year: 1950 + i })),
    7,
  );
  await assert.rejects(knex("books").insert({ author_id: 1, title: "z", year: -1 }), { errno: 3819 });
});
await check("upsert, ignore, update, increment, delete", async () => {
  assert.equal(
    (
      await knex("books")
        .insert({ author_id: 1, title: "t1", year: 2001 })
        .onConflict(["author_id", "title"])
        .merge()
    )[0] > 0,
    true,
  );
  await knex("books")
    .insert({ author_id: 1, title: "t1", year: 2005, price: 7 })
    .onConflict()
    .merge(["price"]);
  await knex("books").insert({ author_id: 1, title: "t1", year: 2005 }).onConflict().ignore();
  assert.deepEqual(await knex("books").where({ title: "t1" }).select("year", "price"), [
    { year: 2001, price: 7 },
  ]);
  assert.equal(
    await knex("books")
      .where("year", "<", 1952)
      .update({ price: knex.raw("?? * 2 + 1", ["year"]) }),
    2,
  );
  assert.equal(await knex("books").where({ title: "t1" }).increment({ year: 2 }).decrement("price", 1), 1);
  assert.equal(await knex("books").where("title", "b39").del(), 1);
  assert.equal(await knex("books").orderBy("id", "desc").limit(1).update({ price: 3 }), 1);
});
await check("JSON", async () => {
  const names = async (q) => (await q.orderBy("name")).map((r) => r.name);
  assert.deepEqual(await names(knex("authors").whereJsonPath("meta", "$.a.b", ">", 1)), ["Bob"]);
  assert.deepEqual(await names(knex("authors").whereJsonObject("meta", { a: { b: 1 }, t: ["x", "y"] })), [
    "Ann",
  ]);
  assert.deepEqual(await names(knex("authors").whereJsonSupersetOf("meta", { a: { b: 2 } })), ["Bob"]);
  assert.deepEqual(await names(knex("authors").whereJsonSubsetOf("meta", { a: { b: 2, c: 3 }, t: [] })), [
    "Bob",
  ]);
  assert.deepEqual(
    await knex("authors")
      .jsonExtract([
        ["meta", "$.a.b", "b"],
        ["meta", "$.t[0]", "t"],
      ])
      .where({ id: 1 }),
    [{ b: "1", t: "x" }],
  );
  await knex("authors")
    .where({ id: 2 })
    .update({ meta: knex.jsonInsert("meta", "$.z", 5) });
  await knex("authors")
    .where({ id: 2 })
    .update({ meta: knex.jsonSet("meta", "$.a.b", 9) });
  await knex("authors")
    .where({ id: 2 })
    .update({ meta: knex.jsonRemove("meta", "$.t") });
  assert.deepEqual((await knex("authors").where({ id: 2 }).first()).meta, { a: { b: 9 }, z: 5 });
});
await check("with, union, windows", async () => {
  const r = await knex
    .with("w", knex("books").select("author_id").count("* as n").groupBy("author_id"))
    .select("*")
    .from("w")
    .where("n", ">", 13)
    .orderBy("author_id");
  assert.deepEqual(r, [{ author_id: 1, n: 14 }]);
  const f = await knex
    .withRecursive("n", ["i"], (q) =>
      q
        .select(knex.raw("1"))
        .from(knex.raw("DUAL"))
        .unionAll((u) => u.select(knex.raw("i+1")).from("n").where("i", "<", 5)),
    )
    .sum("i as s")
    .from("n");
  assert.deepEqual(f, [{ s: "15" }]);
  const w = await knex("books")
    .select("id")
    .rowNumber("rn", "year", "author_id")
    .rank("rk", (b) => b.orderBy("year", "desc").partitionBy("author_id"))
    .denseRank("dr", ["year"])
    .orderBy("id")
    .limit(2);
  assert.deepEqual(
    w.map((x) => [x.rk, x.rn]),
    [
      [1, 14],
      [14, 1],
    ],
  );
  assert.equal(
    (
      await knex("authors")
        .select("id")
        .union([knex("books").select("author_id")])
        .orderBy("id")
    ).length,
    3,
  );
  assert.deepEqual(
    await knex("authors")
      .select("id")
      .intersect(knex("books").select("author_id").where("author_id", "<", 3))
      .then((x) => x.length),
    2,
  );
});
await check("joins, groups, subqueries, paging", async () => {
  const r = await knex("authors as a")
    .leftJoin("books as b", function on() {
      this.on("a.id", "b.author_id").andOnVal("b.year", ">", 1980);
    })
    .groupBy("a.id")
    .having(knex.raw("COUNT(b.id)"), ">=", 1)
    .select("a.name", knex.raw("COUNT(b.id) AS n"))
    .orderBy([{ column: "n", order: "desc" }, "a.id"]);
  assert.deepEqual(r, [
    { name: "Ann", n: 3 },
    { name: "Bob", n: 3 },
    { name: "Cid", n: 3 },
  ]);
  assert.equal(
    (await knex("authors").whereExists(knex("books").select(1).whereRaw("books.author_id = authors.id")))
      .length,
    3,
  );
  assert.deepEqual(await knex("books").orderBy("year").offset(5).limit(2).pluck("title"), ["b5", "b6"]);
  assert.equal((await knex("books").orderBy("year").offset(30)).length, 10);
  assert.deepEqual(
    await knex("books")
      .countDistinct({ n: ["author_id", "year"] })
      .avg("year as a")
      .first()
      .then((x) => x.n),
    40,
  );
  assert.equal(
    (await knex("books").where("title", "like", "B1_").orWhereILike("title", "T%").whereNot("id", 2))
      .length,
    11,
  );
});
await check("transactions, savepoints, locks", async () => {
  await knex.transaction(
    async (t) => {
      await t("authors").insert({ name: "in" });
      await assert.rejects(
        t.transaction(async (s) => {
          await s("authors").insert({ name: "inner" });
          throw new Error("x");
        }),
        /x/,
      );
      assert.equal((await t("authors").where({ name: "Ann" }).forUpdate().skipLocked()).length, 1);
      await t("authors").where({ name: "Ann" }).forShare();
      const o = await knex.transaction();
      assert.equal((await o("authors").where({ id: 1 }).forUpdate().skipLocked()).length, 0);
      await assert.rejects(o("authors").where({ id: 1 }).forUpdate().noWait(), { errno: 3572 });
      await o.rollback();
    },
    { isolationLevel: "read committed" },
  );
  assert.deepEqual(await knex("authors").whereIn("name", ["in", "inner"]).pluck("name"), ["in"]);
  const ro = await knex.transaction({ readOnly: true });
  await assert.rejects(ro("authors").insert({ name: "ro" }), { errno: 1792 });
  await ro.rollback();
});
await check("stream and concurrent queries", async () => {
  let n = 0;
  for await (const r of knex("books").select("id").stream()) n += r.id > 0 ? 1 : 0;
  assert.equal(n, 40);
  const all = await Promise.all(Array.from({ length: 30 }, (_, i) => knex.select(knex.raw("? AS i", [i]))));
  assert.deepEqual(
    all.map((x) => x[0].i),
    Array.from({ length: 30 }, (_, i) => i),
  );
});
await check("renames, foreign keys, primary keys", async () => {
  await knex.schema.createTable("pk", (t) => {
    t.integer("a").notNullable();
    t.integer("b").notNullable();
    t.primary(["a", "b"]);
  });
  await knex.schema.alterTable("pk", (t) => {
    t.dropPrimary();
    t.primary(["b"]);
    t.integer("x").unsigned();
    t.foreign("x", "fk_x").references("authors.id").onUpdate("CASCADE").onDelete("SET NULL");
  });
  await knex.schema.renameTable("pk", "pk2");
  await knex.schema.alterTable("pk2", (t) => {
    t.dropForeign("x", "fk_x");
    t.unique("x");
    t.renameColumn("b", "c");
  });
  await knex.schema.createTableLike("pk3", "pk2", (t) => t.string("more"));
  await knex.raw("TRUNCATE TABLE pk3");
  await knex("pk2").truncate();
  await knex("authors").where({ id: 3 }).del();
  assert.deepEqual(await knex("books").where({ author_id: 3 }).count("* as n"), [{ n: 0 }]);
});
await knex.destroy();
finish();
