// Kysely: schema builder, introspection, query builder with JSON, common tables, windows, upserts, migrations
// with its lock table, transactions with savepoints, streams.
import assert from "node:assert/strict";
import { Kysely, MysqlDialect, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { jsonArrayFrom, jsonObjectFrom, jsonBuildObject } from "kysely/helpers/mysql";
import mysql from "mysql2";
import { check, finish, server } from "./check.mjs";

const db = new Kysely({
  dialect: new MysqlDialect({
    pool: mysql.createPool({ ...server, connectionLimit: 4, charset: "utf8mb4" }),
  }),
});
const migrations = {
  m1: {
    up: async (k) => {
      await k.schema
        .createTable("person")
        .ifNotExists()
        .addColumn("id", "integer", (c) => c.primaryKey().autoIncrement())
        .addColumn("name", "varchar(60)", (c) => c.notNull())
        .addColumn("meta", "json", (c) => c.defaultTo(sql`(json_object('k', 1))`))
        .addColumn("money", "decimal(10, 2)", (c) => c.unsigned().defaultTo(0))
        .addColumn("born", "date")
        .addColumn("seen", "datetime(6)", (c) =>
          c.defaultTo(sql`CURRENT_TIMESTAMP(6)`).modifyEnd(sql`ON UPDATE CURRENT_TIMESTAMP(6)`),
        )
        .addColumn("upper_name", "varchar(60)", (c) => c.generatedAlwaysAs(sql`upper(name)`).stored())
        .addCheckConstraint("money_check", sql`money < 1000000`)
        .execute();
      await k.schema.createIndex("person_name").on("person").columns(["name", "born desc"]).execute();
    },
    down: async (k) => {
      await k.schema.dropTable("person").execute();
    },
  },
  m2: {
    up: async (k) => {
      await k.schema
        .createTable("pet")
        .addColumn("id", "bigint", (c) => c.primaryKey().autoIncrement())
        .addColumn("owner", "integer", (c) => c.notNull())
        .addColumn("name", "varchar(30)")
        .addColumn("kind", sql`enum('cat','dog')`)
        .addForeignKeyConstraint("pet_owner", ["owner"], "person", ["id"], (f) =>
          f.onDelete("cascade").onUpdate("restrict"),
        )
        .addUniqueConstraint("pet_once", ["owner", "name"])
        .execute();
      await k.schema
        .alterTable("pet")
        .addColumn("age", "smallint", (c) =>
          c
            .unsigned()
            .defaultTo(1)
            .modifyEnd(sql`after name`),
        )
        .execute();
      await k.schema
        .alterTable("pet")
        .modifyColumn("name", "varchar(40)", (c) => c.notNull())
        .execute();
      await k.schema.alterTable("pet").renameColumn("age", "years").execute();
      await k.schema
        .alterTable("pet")
        .alterColumn("years", (c) => c.setDefault(2))
        .execute();
      await k.schema
        .createView("cats")
        .orReplace()
        .as(k.selectFrom("pet").select(["id", "name"]).where("kind", "=", sql.lit("cat")))
        .execute();
    },
    down: async (k) => {
      await k.schema.dropView("cats").ifExists().execute();
      await k.schema.dropTable("pet").execute();
    },
  },
};
await check("migrations up and down twice", async () => {
  const m = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const run = async (f) => {
    const r = await f();
    if (r.error) throw r.error;
    return r.results.map((x) => x.status);
  };
  for (let i = 0; i < 2; i += 1) {
    assert.deepEqual(await run(() => m.migrateToLatest()), ["Success", "Success"]);
    assert.deepEqual(await run(() => m.migrateToLatest()), []);
    assert.deepEqual(await run(() => m.migrateDown()), ["Success"]);
    assert.deepEqual(await run(() => m.migrateDown()), ["Success"]);
  }
  await run(() => m.migrateToLatest());
});
await check("introspection", async () => {
  const t = await db.introspection.getTables();
  assert.deepEqual(
    t.map((x) => [x.name, x.isView]),
    [
      ["cats", true],
      ["person", false],
      ["pet", false],
    ],
  );
  const p = t.find((x) => x.name === "person").columns;
  assert.deepEqual(
    p.map((c) => [c.name, c.dataType, c.isNullable, c.isAutoIncrementing, c.hasDefaultValue]),
    [
      ["id", "int", false, true, false],
      ["name", "varchar", false, false, false],
      ["meta", "json", true, false, true],
      ["money", "decimal", true, false, true],
      ["born", "date", true, false, false],
      ["seen", "datetime", true, false, true],
      ["upper_name", "varchar", true, false, false],
    ],
  );
  assert.ok((await db.introspection.getSchemas()).some((s) => s.name === server.database));
});
await check("insert, upsert, ignore", async () => {
  const r = await db
    .insertInto("person")
    .values({
      name: "Ann",
      meta: JSON.stringify({ a: [1, { b: "é" }] }),
      money: "12.50",
      born: "2000-02-29",
    })
    .executeTakeFirst();
  assert.deepEqual([r.insertId, r.numInsertedOrUpdatedRows], [1n, 1n]);
  await db
    .insertInto("person")
    .values([{ name: "Bob" }, { name: "Cid" }])
    .execute();
  await db
    .insertInto("pet")
    .values([
      { owner: 1, name: "Tom", kind: "cat" },
      { owner: 1, name: "Rex", kind: "dog" },
      { owner: 2, name: "Kit", kind: "cat" },
    ])
    .execute();
  const u = await db
    .insertInto("pet")
    .values({ owner: 1, name: "Tom", years: 5 })
    .onDuplicateKeyUpdate({ years: sql`values(years) + 1` })
    .executeTakeFirst();
  assert.equal(u.numInsertedOrUpdatedRows, 2n);
  const i = await db.insertInto("pet").ignore().values({ owner: 1, name: "Tom" }).executeTakeFirst();
  assert.equal(i.numInsertedOrUpdatedRows, 0n);
  await db.replaceInto("pet").values({ owner: 2, name: "Kit", kind: "cat", years: 9 }).execute();
  await db
    .insertInto("pet")
    .columns(["owner", "name"])
    .expression((e) =>
      e
        .selectFrom("person")
        .select(["id", sql`concat('pet of ', name)`.as("x")])
        .where("id", "=", 3),
    )
    .execute();
});
await check("defaults and generated columns", async () => {
  const r = await db
    .selectFrom("person")
    .select(["meta", "upper_name", "money"])
    .where("id", "=", 2)
    .executeTakeFirst();
  assert.deepEqual(r, { meta: { k: 1 }, upper_name: "BOB", money: "0.00" });
});
await check("nested rows as JSON", async () => {
  const q = db
    .selectFrom("person")
    .select((e) => [
      "person.id",
      jsonArrayFrom(
        e
          .selectFrom("pet")
          .select(["pet.id as pet_id", "pet.name", "pet.years"])
          .whereRef("pet.owner", "=", "person.id")
          .orderBy("pet.name"),
      ).as("pets"),
      jsonObjectFrom(
        e.selectFrom("pet").select(["name"]).whereRef("pet.owner", "=", "person.id").orderBy("id").limit(1),
      ).as("first"),
      jsonBuildObject({ n: e.ref("person.name"), big: sql`1.50` }).as("obj"),
    ])
    .orderBy("person.id");
  const r = await q.execute();
  assert.deepEqual(r[0].pets.map((p) => [p.name, p.years]).sort(), [
    ["Rex", 2],
    ["Tom", 6],
  ]);
  assert.deepEqual([r[0].first, r[0].obj, r[2].pets.length], [{ name: "Tom" }, { n: "Ann", big: 1.5 }, 1]);
});
await check("JSON paths", async () => {
  const r = await db
    .selectFrom("person")
    .select((e) => [
      e.ref("meta", "->$").key("a").at(1).key("b").as("b"),
      e.fn("json_unquote", [e.ref("meta", "->$").key("a").at(1).key("b")]).as("u"),
    ])
    .where("id", "=", 1)
    .execute();
  assert.deepEqual(r, [{ b: "é", u: "é" }]);
});
await check("with, union, windows, groups", async () => {
  const r = await db
    .with("w", (d) =>
      d
        .selectFrom("pet")
        .select(["owner", (e) => e.fn.countAll().as("n")])
        .groupBy("owner")
        .having((e) => e.fn.countAll(), ">", 1),
    )
    .selectFrom("w")
    .selectAll()
    .execute();
  assert.deepEqual(r, [{ owner: 1, n: 2 }]);
  const f = await db
    .withRecursive("t(i)", (d) =>
      d.selectNoFrom(sql`1`.as("i")).unionAll(
        d
          .selectFrom("t")
          .select(sql`i + 1`.as("i"))
          .where("i", "<", 10),
      ),
    )
    .selectFrom("t")
    .select((e) => e.fn.sum("i").as("s"))
    .execute();
  assert.deepEqual(f, [{ s: "55" }]);
  const w = await db
    .selectFrom("pet")
    .select((e) => [
      "name",
      e.fn
        .agg("row_number")
        .over((o) => o.partitionBy("owner").orderBy("name", "desc"))
        .as("rn"),
      e.fn
        .sum("years")
        .over((o) => o.partitionBy("owner"))
        .as("s"),
    ])
    .orderBy("owner")
    .orderBy("name")
    .execute();
  assert.deepEqual(w.slice(0, 2), [
    { name: "Rex", rn: 2, s: "8" },
    { name: "Tom", rn: 1, s: "8" },
  ]);
  const l = await db
    .selectFrom("person")
    .innerJoinLateral(
      (e) =>
        e
          .selectFrom("pet")
          .select("pet.name as pet")
          .whereRef("pet.owner", "=", "person.id")
          .orderBy("pet.id")
          .limit(1)
          .as("x"),
      (j) => j.onTrue(),
    )
    .select(["person.name", "x.pet"])
    .orderBy("person.id")
    .execute();
  assert.deepEqual(l[0], { name: "Ann", pet: "Tom" });
  const s = await db
    .selectFrom("person")
    .select("id")
    .except(db.selectFrom("pet").select("owner as id").where("owner", "<", 3))
    .execute();
  assert.deepEqual(s, [{ id: 3 }]);
});
await check("update and delete with joins", async () => {
  const u = await db
    .updateTable(["pet as p", "person as o"])
    .set("p.years", sql`o.id * 10`)
    .whereRef("p.owner", "=", "o.id")
    .where("o.name", "=", "Ann")
    .executeTakeFirst();
  assert.deepEqual([u.numUpdatedRows, u.numChangedRows], [2n, 2n]);
  const d = await db
    .deleteFrom("pet")
    .using(["pet", "person"])
    .whereRef("pet.owner", "=", "person.id")
    .where("person.name", "=", "Cid")
    .executeTakeFirst();
  assert.equal(d.numDeletedRows, 1n);
  assert.equal(
    (await db.updateTable("pet").set({ years: 1 }).orderBy("id").limit(1).executeTakeFirst())
      .numUpdatedRows,
    1n,
  );
  await db.deleteFrom("person").where("id", "=", 2).execute();
  assert.equal((await db.selectFrom("pet").where("owner", "=", 2).select("id").execute()).length, 0);
});
await check("transactions and savepoints", async () => {
  await db
    .transaction()
    .setIsolationLevel("repeatable read")
    .execute(async (t) => {
      await t.insertInto("person").values({ name: "T" }).execute();
    });
  await assert.rejects(
    db.transaction().execute(async (t) => {
      await t.deleteFrom("person").execute();
      throw new Error("no");
    }),
    /no/,
  );
  const t = await db.startTransaction().setAccessMode("read write").execute();
  await t.insertInto("person").values({ name: "S1" }).execute();
  const s = await t.savepoint("one").execute();
  await s.insertInto("person").values({ name: "S2" }).execute();
  await s.rollbackToSavepoint("one").execute();
  await t.commit().execute();
  assert.deepEqual(await db.selectFrom("person").select("name").where("name", "like", "S%").execute(), [
    { name: "S1" },
  ]);
  assert.equal(
    (await db.selectFrom("person").select("id").where("id", "=", 1).forUpdate().skipLocked().execute())
      .length,
    1,
  );
});
await check("stream, several clients", async () => {
  let n = 0;
  for await (const r of db.selectFrom("person").select("id").stream(2)) n += r.id ? 1 : 0;
  assert.equal(n, 4);
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, i) => db.selectNoFrom(sql`${i} + 0`.as("v")).executeTakeFirst()),
  );
  assert.deepEqual(
    all.map((r) => Number(r.v)),
    Array.from({ length: 20 }, (_, i) => i),
  );
});
await db.destroy();
finish();
