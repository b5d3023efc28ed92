// Drizzle: drizzle-kit's push twice (the second finds nothing) and its migrations, queries, relations in JSON,
// upserts, common tables, set operations, transactions with savepoints, iterators.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import mysql from "mysql2/promise";
import { drizzle } from "drizzle-orm/mysql2";
import { migrate } from "drizzle-orm/mysql2/migrator";
import {
  and,
  asc,
  count,
  countDistinct,
  desc,
  eq,
  exists,
  gt,
  inArray,
  like,
  notExists,
  sql,
  sum,
} from "drizzle-orm";
import { union, except, intersect } from "drizzle-orm/mysql-core";
import { check, finish, server } from "./check.mjs";
import * as schema from "./schema.mjs";

const { users, posts, labels, postLabels, popular } = schema;
const pool = mysql.createPool({
  ...server,
  connectionLimit: 4,
  charset: "utf8mb4",
  multipleStatements: true,
});
const db = drizzle(pool, { schema, mode: "default" });
const kit = (...a) =>
  execFileSync("npx", ["drizzle-kit", ...a], {
    encoding: "utf8",
    env: { ...process.env, CI: "1", NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60000,
  });
const ddl = async () =>
  (
    await pool.query(
      `SELECT TABLE_NAME t, COLUMN_NAME c, COLUMN_TYPE y, COLUMN_DEFAULT d, EXTRA e FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1, 2`,
    )
  )[0];

await check("push twice: the second finds nothing", async () => {
  kit("push", "--force");
  const before = await ddl();
  assert.ok(before.length > 35, `${before.length} columns`);
  const said = kit("push", "--force", "--verbose");
  assert.deepEqual(await ddl(), before);
  assert.match(said, /No changes detected/, said.slice(-300));
});
await check("introspection", async () => {
  rmSync("./pulled", { recursive: true, force: true });
  const said = kit("pull", "--config", "./pull.config.js");
  assert.match(said, /tables fetched/);
  const pulled = readFileSync("./pulled/schema.ts", "utf8");
  for (const part of [
    'mysqlTable("post_labels"',
    "datetime({ mode: 'string', fsp: 6",
    "mysqlEnum(['admin','user'])",
    'onDelete: "cascade"',
    "generatedAlwaysAs",
    'mysqlView("popular"',
    'check("money_ok"',
  ])
    assert.ok(pulled.includes(part), part);
});
await check("types", async () => {
  const row = {
    name: "Ann 🦀",
    email: "ann@x",
    role: "admin",
    active: false,
    money: "123456789.125",
    score: 0.1,
    rate: 1.5,
    tiny: -128,
    small: 65535,
    medium: -8388608,
    big: 9007199254740991n,
    meta: { a: [1, { b: "é" }], n: null },
    born: "2000-02-29",
    seen: "2024-02-29 01:02:03.456789",
    at: "10:11:12.345",
    y: 2024,
    code: "abcd",
    bio: "x".repeat(60000),
    long: "🦀".repeat(30000),
  };
  const [r] = await db.insert(users).values(row).$returningId();
  assert.deepEqual(r, { id: 1 });
  const [u] = await db.select().from(users).where(eq(users.id, 1));
  for (const [k, v] of Object.entries(row)) assert.deepEqual(u[k], v, k);
  assert.deepEqual([u.metaDefault, u.upper, u.virt, u.uid.length], [{ a: 1 }, "ANN 🦀", -8388607, 36]);
  await assert.rejects(
    db.insert(users).values({ name: "neg", money: "-1" }),
    (e) => (e.cause ?? e).errno === 3819,
  );
});
await check("ids, upsert, ignore, update, delete with limit", async () => {
  const r = await db
    .insert(users)
    .values([
      { name: "Bob", email: "b@x" },
      { name: "Cid", email: "c@x" },
    ])
    .$returningId();
  assert.equal(r.length, 2);
  const [u] = await db
    .insert(users)
    .values({ name: "Bobby", email: "b@x" })
    .onDuplicateKeyUpdate({ set: { name: sql`values(${users.name})`, tiny: 9 } });
  assert.equal(u.affectedRows, 2);
  const [i] = await db.insert(users).ignore().values({ name: "no", email: "b@x" });
  assert.equal(i.affectedRows, 0);
  const [n] = await db
    .update(users)
    .set({ small: sql`coalesce(${users.small}, 0) + 1` })
    .where(inArray(users.email, ["b@x", "c@x"]))
    .orderBy(asc(users.id))
    .limit(1);
  assert.equal(n.changedRows, 1);
  assert.deepEqual(
    await db
      .select({ n: users.name, t: users.tiny, s: users.small })
      .from(users)
      .where(eq(users.email, "b@x")),
    [{ n: "Bobby", t: 9, s: 1 }],
  );
});
await check("relations", async () => {
  const ids = (await db.select({ id: users.id }).from(users).orderBy(users.id)).map((x) => x.id);
  await db
    .insert(posts)
    .values(ids.flatMap((author) => [0, 1, 2].map((views) => ({ author, title: `p${views}`, views }))));
  await db.insert(labels).values([{ name: "x" }, { name: "y" }]);
  await db
    .insert(postLabels)
    .select(
      db
        .select({ post: posts.id, label: labels.name })
        .from(posts)
        .crossJoin(labels)
        .where(gt(posts.views, 0)),
    );
  const r = await db.query.users.findMany({
    columns: { name: true, big: true },
    with: {
      posts: {
        where: (p, o) => o.gt(p.views, 0),
        orderBy: (p, o) => [o.desc(p.views)],
        limit: 5,
        with: { labels: { with: { tag: true } } },
        extras: { twice: sql`views * 2`.as("twice") },
      },
    },
    orderBy: (u) => [u.id],
    limit: 2,
  });
  assert.deepEqual(
    [r.length, r[0].posts.map((p) => [p.views, p.twice, p.labels.map((l) => l.tag.name).sort()])],
    [
      2,
      [
        [2, 4, ["x", "y"]],
        [1, 2, ["x", "y"]],
      ],
    ],
  );
  const p = await db.query.posts.findFirst({
    with: { user: { columns: { name: true } } },
    where: eq(posts.views, 2),
    orderBy: posts.id,
  });
  assert.equal(p.user.name, "Ann 🦀");
  assert.equal((await db.select().from(popular)).length, 3);
});
await check("joins, subqueries, groups, paging", async () => {
  const q = db
    .select({ author: posts.author, n: count().as("n"), s: sum(posts.views).as("s") })
    .from(posts)
    .groupBy(posts.author)
    .having(({ n }) => gt(n, 2))
    .as("q");
  const r = await db
    .select({ name: users.name, n: q.n, s: q.s })
    .from(users)
    .leftJoin(q, eq(users.id, q.author))
    .orderBy(desc(users.id))
    .limit(2)
    .offset(1);
  assert.deepEqual(
    r.map((x) => [x.n, x.s]),
    [
      [3, "3"],
      [3, "3"],
    ],
  );
  assert.equal(
    (
      await db
        .select()
        .from(users)
        .where(
          exists(
            db
              .select({ x: sql`1` })
              .from(posts)
              .where(and(eq(posts.author, users.id), gt(posts.views, 1))),
          ),
        )
    ).length,
    3,
  );
  assert.equal(
    (
      await db
        .select()
        .from(users)
        .where(notExists(db.select().from(posts).where(eq(posts.author, users.id))))
    ).length,
    0,
  );
  assert.deepEqual(
    [
      await db.$count(users, like(users.name, "B%")),
      (await db.select({ d: countDistinct(posts.title) }).from(posts))[0].d,
    ],
    [1, 3],
  );
  const w = db
    .$with("w")
    .as(
      db
        .select({
          a: posts.author,
          rn: sql`row_number() over (partition by ${posts.author} order by ${posts.views} desc)`.as("rn"),
          t: posts.title,
        })
        .from(posts),
    );
  assert.deepEqual(
    (await db.with(w).select().from(w).where(eq(w.rn, 1))).map((x) => x.t),
    ["p2", "p2", "p2"],
  );
  const l = db
    .select({ t: posts.title })
    .from(posts)
    .where(eq(posts.author, users.id))
    .orderBy(desc(posts.views))
    .limit(1)
    .as("l");
  assert.equal(
    (
      await db
        .select({ n: users.name, t: l.t })
        .from(users)
        .innerJoinLateral(l, sql`true`)
    ).length,
    3,
  );
  assert.equal((await db.select().from(posts, { useIndex: "once" }).where(eq(posts.author, 1))).length, 3);
});
await check("set operations", async () => {
  const a = () => db.select({ v: posts.views }).from(posts);
  const b = () => db.select({ v: posts.views }).from(posts).where(gt(posts.views, 0));
  assert.equal(
    (
      await union(a(), b())
        .orderBy(sql`views desc`)
        .limit(2)
    ).length,
    2,
  );
  assert.deepEqual([(await except(a(), b())).length, (await intersect(a(), b())).length], [1, 2]);
});
await check("prepared statements, iterator, locks", async () => {
  const p = db
    .select({ n: users.name })
    .from(users)
    .where(eq(users.id, sql.placeholder("id")))
    .prepare();
  assert.deepEqual([await p.execute({ id: 1 }), await p.execute({ id: 99 })], [[{ n: "Ann 🦀" }], []]);
  let n = 0;
  for await (const r of await db.select().from(posts).iterator()) n += r.id ? 1 : 0;
  assert.equal(n, 9);
  await db.transaction(async (t) => {
    assert.equal(
      (await t.select().from(users).where(eq(users.id, 1)).for("update", { skipLocked: true })).length,
      1,
    );
    await t.select().from(users).for("share", { noWait: true });
  });
});
await check("transactions and savepoints", async () => {
  await assert.rejects(
    db.transaction(async (t) => {
      await t.delete(users);
      t.rollback();
    }),
  );
  await db.transaction(
    async (t) => {
      await t.insert(labels).values({ name: "outer" });
      await assert.rejects(
        t.transaction(async (s) => {
          await s.insert(labels).values({ name: "inner" });
          throw new Error("in");
        }),
        /in/,
      );
    },
    { isolationLevel: "read committed", accessMode: "read write", withConsistentSnapshot: false },
  );
  assert.deepEqual(
    (await db.select().from(labels).orderBy(labels.name)).map((l) => l.name),
    ["outer", "x", "y"],
  );
});
await check("cascade and restrict", async () => {
  await assert.rejects(db.delete(labels).where(eq(labels.name, "x")), (e) => (e.cause ?? e).errno === 1451);
  await db.delete(users).where(eq(users.id, 1));
  assert.equal((await db.select().from(posts)).length, 6);
});
await check("generated migrations in an empty database", async () => {
  rmSync("./generated", { recursive: true, force: true });
  kit("generate");
  await pool.query("DROP VIEW popular; DROP TABLE post_labels, posts, labels, users");
  for (let i = 0; i < 2; i += 1) await migrate(db, { migrationsFolder: "./generated" });
  assert.equal((await pool.query("SELECT COUNT(*) AS n FROM __drizzle_migrations"))[0][0].n, 1);
});
await pool.end();
finish();
