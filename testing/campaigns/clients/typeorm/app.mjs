// TypeORM: synchronizing twice (the second time there is nothing to do), migrations, embedded columns, relations,
// the query builder, JSON, upserts, trees, locks, transactions.
import assert from "node:assert/strict";
import {
  DataSource,
  EntitySchema,
  In,
  IsNull,
  Like,
  MoreThan,
  Table,
  TableColumn,
  TableForeignKey,
  TableIndex,
} from "typeorm";
import { check, finish, server } from "./check.mjs";

const Address = new EntitySchema({
  name: "Address",
  columns: {
    street: { type: "varchar", length: 60, nullable: true },
    zip: { type: "char", length: 5, default: "00000" },
  },
});
const User = new EntitySchema({
  name: "User",
  tableName: "users",
  comment: "users of it",
  columns: {
    id: { type: "int", primary: true, generated: "increment", unsigned: true },
    uid: { type: "varchar", length: 36, generated: "uuid" },
    name: { type: "varchar", length: 80, comment: "user's name" },
    email: { type: "varchar", unique: true, nullable: true },
    role: { type: "enum", enum: ["admin", "user", "other"], default: "user" },
    tags: { type: "set", enum: ["a", "b", "c"], nullable: true },
    active: { type: "boolean", default: true },
    small: { type: "smallint", default: -1 },
    big: { type: "bigint", unsigned: true, nullable: true },
    money: { type: "decimal", precision: 12, scale: 3, default: 0 },
    score: { type: "double", nullable: true },
    rate: { type: "float", nullable: true },
    meta: { type: "json", nullable: true },
    list: { type: "simple-array", nullable: true },
    born: { type: "date", nullable: true },
    at: { type: "time", nullable: true },
    seen: { type: "datetime", precision: 6, nullable: true },
    year: { type: "year", nullable: true },
    raw: { type: "varbinary", length: 20, nullable: true },
    blob: { type: "mediumblob", nullable: true },
    text: { type: "longtext", nullable: true },
    bits: { type: "bit", width: 4, nullable: true },
    stamp: {
      type: "timestamp",
      precision: 3,
      default: () => "CURRENT_TIMESTAMP(3)",
      onUpdate: "CURRENT_TIMESTAMP(3)",
    },
    upper: {
      type: "varchar",
      length: 80,
      asExpression: "UPPER(`name`)",
      generatedType: "STORED",
      nullable: true,
    },
    latin: { type: "varchar", length: 20, charset: "latin1", collation: "latin1_bin", nullable: true },
    createdAt: { type: "datetime", createDate: true },
    updatedAt: { type: "datetime", updateDate: true },
    deletedAt: { type: "datetime", deleteDate: true, nullable: true },
    version: { type: "int", version: true },
  },
  embeddeds: { home: { schema: Address, prefix: "home_" } },
  relations: {
    posts: { type: "one-to-many", target: "Post", inverseSide: "author" },
    profile: {
      type: "one-to-one",
      target: "Profile",
      joinColumn: true,
      cascade: true,
      nullable: true,
      onDelete: "SET NULL",
    },
  },
  indices: [{ columns: ["name", "born"] }, { name: "by_big", columns: ["big"], unique: true }],
});
const Profile = new EntitySchema({
  name: "Profile",
  columns: {
    id: { type: "int", primary: true, generated: true },
    photo: { type: "varchar", default: "none" },
  },
});
const Post = new EntitySchema({
  name: "Post",
  tableName: "posts",
  columns: {
    id: { type: "bigint", primary: true, generated: true },
    title: { type: "varchar" },
    views: { type: "int", default: 0 },
  },
  relations: {
    author: {
      type: "many-to-one",
      target: "User",
      inverseSide: "posts",
      onDelete: "CASCADE",
      nullable: false,
    },
    labels: { type: "many-to-many", target: "Label", joinTable: { name: "post_labels" }, cascade: true },
  },
});
const Label = new EntitySchema({
  name: "Label",
  columns: { name: { type: "varchar", length: 40, primary: true } },
});
const Node = new EntitySchema({
  name: "Node",
  trees: [{ type: "materialized-path" }],
  columns: { id: { type: "int", primary: true, generated: true }, name: { type: "varchar" } },
  relations: {
    parent: { type: "many-to-one", target: "Node", treeParent: true, onDelete: "RESTRICT" },
    children: { type: "one-to-many", target: "Node", treeChildren: true, inverseSide: "parent" },
  },
});
const common = {
  type: "mysql",
  host: server.host,
  port: server.port,
  username: server.user,
  password: server.password,
  database: server.database,
  charset: "utf8mb4_general_ci",
  poolSize: 5,
  timezone: "Z",
};
class First1700000000001 {
  name = "First1700000000001";
  async up(q) {
    await q.createTable(
      new Table({
        name: "mig",
        columns: [
          { name: "id", type: "int", isPrimary: true, isGenerated: true, generationStrategy: "increment" },
          { name: "a", type: "varchar", length: "20", isNullable: true },
          { name: "u", type: "int", unsigned: true, isNullable: true },
        ],
      }),
      true,
    );
    await q.createIndex("mig", new TableIndex({ name: "mig_a", columnNames: ["a"] }));
    await q.addColumn(
      "mig",
      new TableColumn({ name: "b", type: "decimal", precision: 8, scale: 2, default: "'1.50'" }),
    );
    await q.createForeignKey(
      "mig",
      new TableForeignKey({
        name: "mig_fk",
        columnNames: ["u"],
        referencedTableName: "users",
        referencedColumnNames: ["id"],
        onDelete: "SET NULL",
      }),
    );
  }
  async down(q) {
    await q.dropTable("mig", true, true);
  }
}
class Second1700000000002 {
  name = "Second1700000000002";
  async up(q) {
    await q.renameColumn("mig", "a", "c");
    await q.changeColumn(
      "mig",
      "c",
      new TableColumn({ name: "c", type: "varchar", length: "30", isNullable: false, default: "'x'" }),
    );
    await q.renameTable("mig", "mig2");
    await q
      .createUniqueConstraint("mig2", { columnNames: ["c"], name: "mig_u" })
      .catch(() =>
        q.createIndex("mig2", new TableIndex({ name: "mig_u", columnNames: ["c"], isUnique: true })),
      );
  }
  async down(q) {
    await q.renameTable("mig2", "mig");
    await q.dropIndex("mig", "mig_u");
    await q.changeColumn(
      "mig",
      "c",
      new TableColumn({ name: "a", type: "varchar", length: "20", isNullable: true }),
    );
  }
}
const ds = new DataSource({
  ...common,
  entities: [Address, User, Profile, Post, Label, Node].slice(1),
  migrations: [First1700000000001, Second1700000000002],
});
await ds.initialize();
const users = ds.getRepository("User");
const posts = ds.getRepository("Post");
await check("synchronize; the second time there is nothing to do", async () => {
  assert.ok((await ds.driver.createSchemaBuilder().log()).upQueries.length > 5);
  await ds.synchronize();
  assert.deepEqual(
    (await ds.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query),
    [],
  );
  await ds.synchronize();
});
await check("migrations up and down twice", async () => {
  for (let i = 0; i < 2; i += 1) {
    assert.equal((await ds.runMigrations({ transaction: "each" })).length, 2);
    assert.equal((await ds.runMigrations()).length, 0);
    const q = ds.createQueryRunner();
    const t = await q.getTable("mig2");
    assert.deepEqual(t.columns.map((c) => [c.name, c.type, c.length, c.isNullable, c.default]).sort(), [
      ["b", "decimal", "", false, "'1.50'"],
      ["c", "varchar", "30", false, "'x'"],
      ["id", "int", "", false, undefined],
      ["u", "int", "", true, undefined],
    ]);
    assert.deepEqual(
      [t.foreignKeys.map((f) => [f.name, f.onDelete]), t.indices.map((x) => [x.name, x.isUnique])],
      [[["mig_fk", "SET NULL"]], t.indices.map((x) => [x.name, x.isUnique])],
    );
    await q.release();
    await ds.undoLastMigration();
    await ds.undoLastMigration();
  }
});
await check("types", async () => {
  const seen = new Date("2024-02-29T01:02:03.456Z");
  const u = {
    name: "Ann 🦀",
    email: "ann@x",
    role: "other",
    tags: ["a", "c"],
    active: false,
    small: -32768,
    big: "18446744073709551615",
    money: "123456789.125",
    score: 0.1,
    rate: 1.5,
    meta: { a: [1, { b: "é" }], n: null },
    list: ["x", "y"],
    born: "2000-02-29",
    at: "10:11:12",
    seen,
    year: 2024,
    raw: Buffer.from([0, 255]),
    blob: Buffer.alloc(70000, 1),
    text: "🦀".repeat(20000),
    latin: "grün",
    home: { street: "Main", zip: "12345" },
    profile: {},
  };
  const s = await users.save(u);
  const r = await users.findOne({ where: { id: s.id }, relations: { profile: true } });
  assert.deepEqual(
    [
      r.name,
      r.role,
      r.tags,
      r.active,
      r.small,
      r.big,
      r.money,
      r.score,
      r.rate,
      r.meta,
      r.list,
      r.born,
      r.at,
      r.seen.getTime(),
      r.year,
      r.raw.toString("hex"),
      r.blob.length,
      r.text.length,
      r.latin,
      r.home,
      r.upper,
      r.version,
      r.profile.photo,
    ],
    [
      "Ann 🦀",
      "other",
      ["a", "c"],
      false,
      -32768,
      "18446744073709551615",
      "123456789.125",
      0.1,
      1.5,
      u.meta,
      ["x", "y"],
      "2000-02-29",
      "10:11:12",
      seen.getTime(),
      2024,
      "00ff",
      70000,
      40000,
      "grün",
      u.home,
      "ANN 🦀",
      1,
      "none",
    ],
  );
  assert.equal(r.uid.length, 36);
});
await check("insert, upsert, ignore, update, soft delete", async () => {
  const i = await users.insert(
    Array.from({ length: 5 }, (_, k) => ({ name: `u${k}`, email: `u${k}@x`, meta: { k } })),
  );
  assert.deepEqual(
    i.identifiers.map((x) => x.id),
    [2, 3, 4, 5, 6],
  );
  await users.upsert(
    [
      { name: "changed", email: "u1@x" },
      { name: "new", email: "u9@x" },
    ],
    ["email"],
  );
  assert.equal((await users.findOneBy({ email: "u1@x" })).name, "changed");
  await users
    .createQueryBuilder()
    .insert()
    .values({ name: "x", email: "u1@x" })
    .orIgnore()
    .updateEntity(false)
    .execute();
  await users
    .createQueryBuilder()
    .insert()
    .values({ name: "upd", email: "u1@x", small: 7 })
    .orUpdate(["name", "small"], ["email"])
    .updateEntity(false)
    .execute();
  assert.equal((await users.update({ email: In(["u1@x", "u2@x"]) }, { small: 9 })).affected, 2);
  await users.softDelete({ email: "u3@x" });
  assert.deepEqual([await users.count(), await users.count({ withDeleted: true })], [6, 7]);
  await users.restore({ email: "u3@x" });
  await users.increment({ email: "u3@x" }, "small", 5);
  assert.equal((await users.findOneBy({ email: "u3@x" })).small, 4);
  await assert.rejects(users.insert({ name: "d", email: "u1@x" }), { errno: 1062 });
});
await check("relations, paging with joins", async () => {
  const all = await users.find({ order: { id: "ASC" }, take: 3 });
  await posts.save(
    all.flatMap((a) =>
      [0, 1, 2].map((v) => ({
        title: `p${v}`,
        views: v,
        author: a,
        labels: [{ name: "x" }, { name: `l${v}` }],
      })),
    ),
  );
  const [r, n] = await users.findAndCount({
    relations: { posts: { labels: true } },
    where: { posts: { views: MoreThan(0) } },
    order: { id: "DESC", posts: { views: "DESC" } },
    take: 2,
    skip: 1,
  });
  assert.deepEqual(
    [n, r.length, r[0].posts.map((p) => p.views), r[0].posts[0].labels.length],
    [3, 2, [2, 1], 2],
  );
  const s = await users.find({
    relations: { posts: true },
    relationLoadStrategy: "query",
    order: { id: "ASC" },
    take: 4,
  });
  assert.deepEqual(
    s.map((u) => u.posts.length),
    [3, 3, 3, 0],
  );
});
await check("query builder", async () => {
  const q = await posts
    .createQueryBuilder("p")
    .select("p.authorId", "a")
    .addSelect("SUM(p.views)", "s")
    .addSelect("COUNT(*)", "n")
    .innerJoin("p.author", "u")
    .groupBy("p.authorId")
    .having("COUNT(*) > :n", { n: 2 })
    .orderBy("s", "DESC")
    .addOrderBy("a")
    .getRawMany();
  assert.deepEqual(
    q,
    [1, 2, 3].map((a) => ({ a, s: "3", n: "3" })),
  );
  const e = await users
    .createQueryBuilder("u")
    .where(
      (b) =>
        `EXISTS ${b.subQuery().select("1").from("Post", "p").where("p.authorId = u.id AND p.views = :v").getQuery()}`,
    )
    .setParameter("v", 2)
    .orderBy("u.id")
    .getMany();
  assert.equal(e.length, 3);
  const c = await ds
    .createQueryBuilder()
    .addCommonTableExpression(
      posts
        .createQueryBuilder("p")
        .select("p.authorId", "a")
        .addSelect("MAX(p.views)", "m")
        .groupBy("p.authorId"),
      "w",
    )
    .select("w.a", "a")
    .addSelect("w.m", "m")
    .from("w", "w")
    .where("w.a = 1")
    .getRawMany();
  assert.deepEqual(c, [{ a: 1, m: 2 }]);
  assert.equal(await users.count({ where: [{ name: Like("u%") }, { born: IsNull(), name: "new" }] }), 6);
  assert.equal(await users.createQueryBuilder("u").where("u.meta->'$.k' >= 3").getCount(), 2);
  assert.deepEqual(
    [
      await posts.sum("views"),
      await posts.average("views"),
      await posts.maximum("views"),
      await users.exists({ where: { name: "new" } }),
    ],
    [9, 1, 2, true],
  );
  const d = await posts.createQueryBuilder().delete().where("views = 0").execute();
  assert.equal(d.affected, 3);
});
await check("trees", async () => {
  const nodes = ds.getTreeRepository("Node");
  const root = await nodes.save({ name: "root" });
  const kid = await nodes.save({ name: "kid", parent: root });
  await nodes.save({ name: "grandkid", parent: kid });
  assert.equal(await nodes.countDescendants(root), 3);
  assert.equal((await nodes.findTrees())[0].children[0].children[0].name, "grandkid");
  await assert.rejects(nodes.delete(root.id), { errno: 1451 });
});
await check("cascade", async () => {
  await users.delete(2);
  assert.equal(await posts.countBy({ author: { id: 2 } }), 0);
  await ds.getRepository("Profile").createQueryBuilder().delete().execute();
  assert.equal((await users.findOne({ where: { id: 1 }, relations: { profile: true } })).profile, null);
});
await check("transactions, savepoints, locks", async () => {
  await assert.rejects(
    ds.transaction("SERIALIZABLE", async (m) => {
      await m.save("Label", { name: "gone" });
      throw new Error("no");
    }),
    /no/,
  );
  await ds.transaction(async (m) => {
    await m.save("Label", { name: "kept" });
    await assert.rejects(
      m.transaction(async (n) => {
        await n.save("Label", { name: "inner" });
        throw new Error("in");
      }),
      /in/,
    );
  });
  assert.deepEqual(
    [
      await ds.getRepository("Label").existsBy({ name: "kept" }),
      await ds.getRepository("Label").existsBy({ name: "inner" }),
    ],
    [true, false],
  );
  await posts.update({ id: 2 }, { views: 0 });
  await Promise.all(
    Array.from({ length: 20 }, () =>
      ds.transaction(async (m) => {
        const p = await m.findOne("Post", { where: { id: 2 }, lock: { mode: "pessimistic_write" } });
        await m.update("Post", 2, { views: p.views + 1 });
      }),
    ),
  );
  assert.equal((await posts.findOneBy({ id: 2 })).views, 20);
  await ds.transaction(async (m) => {
    await m.findOne("Post", { where: { id: 2 }, lock: { mode: "pessimistic_read" } });
    await m.findOne("Post", {
      where: { id: 2 },
      lock: { mode: "pessimistic_write", onLocked: "skip_locked" },
    });
  });
});
await check("stream, query cache table", async () => {
  let n = 0;
  for await (const r of await users.createQueryBuilder("u").stream()) n += r.u_id ? 1 : 0;
  assert.equal(n, 6);
});
await check("drop and synchronize again", async () => {
  await ds.synchronize(true);
  assert.deepEqual((await ds.driver.createSchemaBuilder().log()).upQueries, []);
});
await ds.destroy();
finish();
