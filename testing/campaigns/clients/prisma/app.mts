// Prisma without its engine, over the MariaDB connector: types, nested writes, relations loaded by queries,
// JSON conditions, upserts, groups, raw statements, transactions.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { PrismaMariaDb } from "@prisma/adapter-mariadb";
import { PrismaClient } from "./client/client.ts";
import { check, finish, server } from "./check.mjs";

const db = new PrismaClient({
  adapter: new PrismaMariaDb({ ...server, connectionLimit: 4, allowPublicKeyRetrieval: true }),
});
await check("tables as its migrations write them", async () => {
  for (const sql of readFileSync("migration.sql", "utf8")
    .split(/;\s*\n/)
    .filter((s) => s.trim()))
    await db.$executeRawUnsafe(sql);
});
await check("types", async () => {
  const seen = new Date("2024-02-29T01:02:03.456Z");
  const born = new Date("2000-02-29T00:00:00Z");
  const data = {
    name: "Ann 🦀",
    email: "ann@x",
    role: "admin",
    active: false,
    money: "123456789.125",
    score: 0.1,
    big: -9223372036854775808n,
    small: -32768,
    meta: { a: [1, { b: "é" }], n: null },
    born,
    seen,
    raw: new Uint8Array([0, 39, 255]),
    bio: "🦀".repeat(20000),
  };
  const c = await db.user.create({ data });
  const u = await db.user.findUniqueOrThrow({ where: { id: c.id } });
  assert.deepEqual(
    { ...u, money: String(u.money), raw: [...u.raw] },
    { id: 1, ...data, raw: [0, 39, 255] },
  );
});
await check("bulk, upserts, errors", async () => {
  assert.equal(
    (
      await db.user.createMany({
        data: Array.from({ length: 5 }, (_, i) => ({
          name: `u${i}`,
          email: `u${i}@x`,
          meta: { i, t: ["t", i] },
        })),
      })
    ).count,
    5,
  );
  assert.equal(
    (await db.user.createMany({ data: [{ name: "no", email: "u1@x" }], skipDuplicates: true })).count,
    0,
  );
  assert.equal(
    (
      await db.user.upsert({
        where: { email: "u1@x" },
        update: { name: "changed", small: { increment: 5 } },
        create: { name: "x", email: "u1@x" },
      })
    ).small,
    4,
  );
  assert.equal(
    (await db.user.upsert({ where: { email: "u9@x" }, update: {}, create: { name: "new", email: "u9@x" } }))
      .name,
    "new",
  );
  assert.equal(
    (
      await db.user.updateMany({
        where: { email: { in: ["u2@x", "u3@x"] } },
        data: { small: { multiply: 3 } },
      })
    ).count,
    2,
  );
  await assert.rejects(db.user.create({ data: { name: "d", email: "u1@x" } }), { code: "P2002" });
  await assert.rejects(db.post.create({ data: { title: "t", authorId: 999 } }), { code: "P2003" });
  await assert.rejects(db.user.create({ data: { name: "x".repeat(81) } }), { code: "P2000" });
});
await check("nested writes and reads", async () => {
  for (const id of [1, 2, 3]) {
    await db.user.update({
      where: { id },
      data: {
        posts: {
          create: [0, 1, 2].map((views) => ({
            title: `p${views}`,
            views,
            labels: { connectOrCreate: ["x", "y"].map((name) => ({ where: { name }, create: { name } })) },
          })),
        },
      },
    });
  }
  const r = await db.user.findMany({
    where: { posts: { some: { views: { gt: 0 }, labels: { every: { name: { not: "z" } } } } } },
    include: {
      posts: { where: { views: { gt: 0 } }, orderBy: { views: "desc" }, include: { labels: true } },
      _count: { select: { posts: true } },
    },
    orderBy: { id: "desc" },
    take: 2,
    skip: 1,
  });
  assert.deepEqual(
    r.map((u) => [u.id, u.posts.map((p) => p.views), u.posts[0].labels.length, u._count.posts]),
    [
      [2, [2, 1], 2, 3],
      [1, [2, 1], 2, 3],
    ],
  );
  assert.deepEqual(
    [
      await db.user.count({ where: { posts: { none: {} } } }),
      await db.post.count({ where: { author: { is: { name: "Ann 🦀" } } } }),
    ],
    [4, 3],
  );
  assert.equal((await db.user.findMany({ cursor: { id: 3 }, take: 2, orderBy: { id: "asc" } })).length, 2);
  assert.deepEqual(
    (await db.user.findMany({ orderBy: [{ posts: { _count: "desc" } }, { id: "asc" }], take: 1 })).map(
      (u) => u.id,
    ),
    [1],
  );
});
await check("conditions and JSON", async () => {
  const n = (where) => db.user.count({ where });
  assert.deepEqual(
    [
      await n({ meta: { path: "$.i", equals: 3 } }),
      await n({ meta: { path: "$.i", gte: 3 } }),
      await n({ meta: { path: "$.t", array_contains: ["t"] } }),
      await n({ meta: { path: "$.a[1].b", string_contains: "é" } }),
      await n({ name: { startsWith: "u" } }),
      await n({ OR: [{ name: { contains: "an" } }, { NOT: { small: -1 } }] }),
      await n({ email: { endsWith: "@x" }, score: null }),
    ],
    [1, 2, 5, 1, 4, 4, 6],
  );
});
await check("groups and aggregates", async () => {
  const g = await db.post.groupBy({
    by: ["authorId"],
    _sum: { views: true },
    _avg: { views: true },
    _count: true,
    having: { views: { _sum: { gt: 2 } } },
    orderBy: { authorId: "asc" },
  });
  assert.deepEqual(
    g.map((x) => [x.authorId, x._sum.views, x._avg.views, x._count]),
    [
      [1, 3, 1, 3],
      [2, 3, 1, 3],
      [3, 3, 1, 3],
    ],
  );
  assert.deepEqual(
    String((await db.user.aggregate({ _sum: { money: true }, _max: { small: true } }))._sum.money),
    "123456789.125",
  );
  assert.equal((await db.post.findMany({ distinct: ["views"] })).length, 3);
});
await check("raw statements, transactions", async () => {
  const r =
    await db.$queryRaw`SELECT ${1} + 1 AS a, ${"x"} AS b, COUNT(*) AS n, SUM(views) AS s, MAX(CAST('2024-01-02' AS DATE)) AS d FROM Post WHERE views > ${0}`;
  assert.deepEqual(
    [Number(r[0].a), r[0].b, r[0].n, String(r[0].s), r[0].d.toISOString().slice(0, 10)],
    [2, "x", 6n, "9", "2024-01-02"],
  );
  await assert.rejects(
    db.$transaction(
      async (t) => {
        await t.label.create({ data: { name: "gone" } });
        throw new Error("no");
      },
      { isolationLevel: "Serializable" },
    ),
    /no/,
  );
  await db.$transaction([
    db.label.create({ data: { name: "kept" } }),
    db.post.deleteMany({ where: { views: 0 } }),
  ]);
  assert.deepEqual(
    [(await db.label.findMany({ orderBy: { name: "asc" } })).map((l) => l.name), await db.post.count()],
    [["kept", "x", "y"], 6],
  );
  await Promise.all(
    Array.from({ length: 10 }, () =>
      db.user.update({ where: { id: 1 }, data: { small: { increment: 1 } } }),
    ),
  );
  assert.equal((await db.user.findUnique({ where: { id: 1 } })).small, -32758);
});
await check("cascade", async () => {
  await db.user.delete({ where: { id: 1 } });
  assert.equal(await db.post.count({ where: { authorId: 1 } }), 0);
});
await db.$disconnect();
finish();
