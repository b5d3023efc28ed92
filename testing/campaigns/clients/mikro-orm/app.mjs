// MikroORM: schema generator (the second update is empty), migrations up and down twice, relations loaded by joins
// and by queries, JSON conditions, upserts, optimistic and pessimistic locks, paging, savepoints.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import {
  MikroORM,
  EntitySchema,
  LockMode,
  UniqueConstraintViolationException,
  ForeignKeyConstraintViolationException,
  NotNullConstraintViolationException,
  CheckConstraintViolationException,
  raw,
  sql,
} from "@mikro-orm/mysql";
import { Migrator } from "@mikro-orm/migrations";
import { check, finish, server } from "./check.mjs";

const User = new EntitySchema({
  name: "User",
  tableName: "users",
  comment: "users of it",
  indexes: [{ properties: ["name", "born"] }],
  checks: [{ name: "money_ok", expression: "money >= 0" }],
  properties: {
    id: { type: "integer", primary: true, unsigned: true },
    name: { type: "string", length: 80, comment: "name of it" },
    email: { type: "string", unique: true, nullable: true },
    role: { enum: true, items: ["admin", "user"], default: "user", type: "string" },
    active: { type: "boolean", default: true },
    money: { type: "decimal", precision: 12, scale: 3, defaultRaw: "0.000" },
    score: { type: "double", nullable: true },
    big: { type: "bigint", unsigned: true, nullable: true },
    small: { type: "smallint", default: -1 },
    meta: { type: "json", nullable: true },
    born: { type: "date", nullable: true },
    seen: { type: "datetime", length: 6, nullable: true },
    at: { type: "time", nullable: true },
    uid: { type: "uuid", nullable: true },
    data: { type: "blob", nullable: true },
    bio: { type: "text", columnType: "longtext", nullable: true },
    list: { type: "array", nullable: true },
    upper: { type: "string", generated: "(upper(`name`)) stored", nullable: true },
    createdAt: { type: "datetime", defaultRaw: "current_timestamp(3)", length: 3 },
    version: { type: "integer", version: true },
    posts: { kind: "1:m", entity: "Post", mappedBy: "author" },
  },
});
const Post = new EntitySchema({
  name: "Post",
  tableName: "posts",
  uniques: [{ properties: ["author", "title"] }],
  properties: {
    id: { type: "bigint", primary: true },
    title: { type: "string", length: 100 },
    views: { type: "integer", default: 0 },
    author: { kind: "m:1", entity: "User", deleteRule: "cascade", updateRule: "no action" },
    labels: { kind: "m:n", entity: "Label", pivotTable: "post_labels" },
  },
});
const Label = new EntitySchema({
  name: "Label",
  tableName: "labels",
  properties: { name: { type: "string", length: 40, primary: true } },
});
rmSync("./migrations", { recursive: true, force: true });
const orm = await MikroORM.init({
  entities: [User, Post, Label],
  dbName: server.database,
  host: server.host,
  port: server.port,
  user: server.user,
  password: server.password,
  charset: "utf8mb4",
  extensions: [Migrator],
  migrations: { path: "./migrations", emit: "cjs", snapshot: false },
  pool: { min: 0, max: 5 },
  timezone: "Z",
  debug: false,
});
const schema = orm.schema;
await check("schema: create, the second update is empty, drop", async () => {
  await schema.updateSchema();
  assert.equal(await schema.getUpdateSchemaSQL({ wrap: false }), "");
  await schema.dropSchema();
  await schema.createSchema();
  assert.equal(await schema.getUpdateSchemaSQL({ wrap: false }), "");
  await schema.dropSchema();
});
await check("migrations: created, up, down, up; then there is none to create", async () => {
  const m = orm.migrator;
  const r = await m.createMigration();
  assert.ok(r.diff.up.length > 3);
  for (let i = 0; i < 2; i += 1) {
    assert.equal((await m.up()).length, 1);
    assert.equal((await m.up()).length, 0);
    if (i === 0) assert.equal((await m.down()).length, 1);
  }
  assert.equal(await m.checkMigrationNeeded(), false);
});
const em = () => orm.em.fork();
await check("types", async () => {
  const seen = new Date("2024-02-29T01:02:03.456Z");
  const row = {
    name: "Ann 🦀",
    email: "ann@x",
    role: "admin",
    active: false,
    money: "123456789.125",
    score: 0.1,
    big: 18446744073709551615n,
    small: -32768,
    meta: { a: [1, { b: "é" }], n: null },
    born: "2000-02-29",
    seen,
    at: "10:11:12",
    uid: "a".repeat(36),
    data: Buffer.alloc(60000, 1),
    bio: "🦀".repeat(20000),
    list: ["x", "y"],
  };
  const e = em();
  e.create("User", row);
  await e.flush();
  const u = await em().findOneOrFail("User", { email: "ann@x" });
  for (const [k, v] of Object.entries(row)) {
    if (k === "data") assert.equal(Buffer.compare(Buffer.from(u[k]), v), 0);
    else if (k === "big") assert.equal(String(u[k]), String(v));
    else assert.deepEqual(u[k], v, k);
  }
  assert.deepEqual([u.id, u.upper, u.version], [1, "ANN 🦀", 1]);
});
await check("inserts, upserts, updates", async () => {
  const e = em();
  await e.insertMany(
    "User",
    Array.from({ length: 5 }, (_, i) => ({
      name: `u${i}`,
      email: `u${i}@x`,
      meta: { i, t: ["t", i] },
      version: 1,
    })),
  );
  const u = await e.upsert("User", { name: "changed", email: "u1@x", version: 1 });
  assert.deepEqual([u.id, u.name], [3, "changed"]);
  await e.upsertMany("User", [
    { name: "c2", email: "u2@x", version: 1 },
    { name: "new", email: "u9@x", version: 1 },
  ]);
  assert.equal(await em().count("User"), 7);
  assert.equal(
    await e.nativeUpdate("User", { email: { $in: ["u1@x", "u2@x"] } }, { small: raw("small + 5") }),
    2,
  );
  await assert.rejects(
    em().insert("User", { name: "d", email: "u1@x" }),
    UniqueConstraintViolationException,
  );
  await assert.rejects(
    em().insert("User", { name: "neg", money: "-1" }),
    CheckConstraintViolationException,
  );
  await assert.rejects(
    em().insert("Post", { title: "t", author: 999 }),
    ForeignKeyConstraintViolationException,
  );
  await assert.rejects(em().insert("User", { name: null }), NotNullConstraintViolationException);
});
await check("relations", async () => {
  const e = em();
  const labels = ["x", "y"].map((name) => e.create("Label", { name }));
  await e.flush();
  for (const author of await e.find("User", {}, { orderBy: { id: 1 }, limit: 3 }))
    for (const views of [0, 1, 2]) e.create("Post", { title: `p${views}`, views, author, labels });
  await e.flush();
  for (const strategy of ["joined", "select-in"]) {
    const [r, n] = await em().findAndCount(
      "User",
      { posts: { views: { $gt: 0 } } },
      {
        populate: ["posts.labels"],
        populateWhere: "infer",
        strategy,
        orderBy: { id: -1, posts: { views: -1 } },
        limit: 2,
        offset: 1,
      },
    );
    assert.deepEqual(
      [
        n,
        r.map((u) => u.id),
        r[0].posts
          .getItems()
          .map((p) => p.views)
          .sort(),
        r[0].posts[0].labels.length,
      ],
      [3, [2, 1], [1, 2], 2],
      strategy,
    );
  }
  assert.equal(
    (await em().find("Post", { author: { name: "Ann 🦀" } }, { populate: ["author"] })).length,
    3,
  );
  assert.equal(await em().count("User", { posts: { $none: { views: 2 } } }), 4);
  assert.equal(await em().count("User", { posts: { $every: { views: { $gte: 0 } } } }), 7);
  assert.equal((await em().findByCursor("User", {}, { first: 3, orderBy: { id: 1 } })).items.length, 3);
});
await check("JSON and other conditions", async () => {
  const n = (w) => em().count("User", w);
  assert.deepEqual(
    [
      await n({ meta: { i: 3 } }),
      await n({ meta: { i: { $gte: 3 } } }),
      await n({ name: /^u/ }),
      await n({ name: { $like: "u%" } }),
      await n({ $or: [{ id: 1 }, { $not: { small: -1 } }] }),
      await n({ score: null }),
      await n({ [sql`lower(name)`]: "new" }),
    ],
    [1, 2, 3, 3, 3, 6, 1],
  );
  assert.deepEqual(
    (await em().find("User", { meta: { $ne: null } }, { orderBy: { meta: { i: "desc" } }, limit: 1 })).map(
      (u) => u.meta.i,
    ),
    [4],
  );
});
await check("query builder", async () => {
  const q = em().createQueryBuilder("User", "u");
  const r = await q
    .select(["u.name", raw("count(p.id) as n")])
    .leftJoin("u.posts", "p")
    .groupBy("u.id")
    .having("count(p.id) > ?", [2])
    .orderBy({ "u.id": 1 })
    .execute("all", false);
  assert.deepEqual(
    r.map((x) => x.n),
    [3, 3, 3],
  );
  const sub = em().createQueryBuilder("Post", "p").select("p.author").where({ views: 2 });
  assert.equal(
    (
      await em()
        .createQueryBuilder("User", "u")
        .select("u.id")
        .where({ id: { $in: sub.getKnexQuery() } })
        .execute()
    ).length,
    3,
  );
  assert.equal(
    (await em().createQueryBuilder("Post").update({ views: 9 }).where({ views: 2 }).execute()).affectedRows,
    3,
  );
  assert.equal((await em().createQueryBuilder("Post").delete({ views: 0 }).execute()).affectedRows, 3);
});
await check("locks, versions, savepoints", async () => {
  await em().transactional(async (e) => {
    const u = await e.findOne("User", 1, { lockMode: LockMode.PESSIMISTIC_WRITE });
    u.small = 7;
    await e.lock(u, LockMode.PESSIMISTIC_READ);
  });
  const u = await em().findOneOrFail("User", 1);
  assert.deepEqual([u.small, u.version], [7, 2]);
  await assert.rejects(
    em().findOne("User", 1, { lockMode: LockMode.OPTIMISTIC, lockVersion: 1 }),
    /version/,
  );
  await em().transactional(async (e) => {
    e.create("Label", { name: "outer" });
    await e.flush();
    await assert.rejects(
      e.transactional(async (s) => {
        s.create("Label", { name: "inner" });
        await s.flush();
        throw new Error("in");
      }),
      /in/,
    );
  });
  assert.deepEqual(
    (await em().find("Label", {}, { orderBy: { name: 1 } })).map((l) => l.name),
    ["outer", "x", "y"],
  );
  await Promise.all(
    Array.from({ length: 10 }, () =>
      em().transactional(async (e) => {
        const p = await e.findOne("User", 1, { lockMode: LockMode.PESSIMISTIC_PARTIAL_WRITE });
        if (p) p.small += 1;
      }),
    ),
  );
});
await check("cascade", async () => {
  await em().nativeDelete("User", { id: 1 });
  assert.equal(await em().count("Post", { author: 1 }), 0);
});
await orm.close();
finish();
