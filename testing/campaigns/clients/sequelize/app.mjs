// Sequelize: models, synchronizing with alter twice, relations with include and limit, JSON and regular
// expressions in conditions, upserts, transactions, introspection by its query interface.
import assert from "node:assert/strict";
import { Sequelize, DataTypes, Op } from "sequelize";
import { check, finish, server } from "./check.mjs";

const log = [];
const db = new Sequelize(server.database, server.user, server.password, {
  host: server.host,
  port: server.port,
  dialect: "mysql",
  logging: (s) => log.push(s),
  pool: { max: 5 },
});
const User = db.define(
  "User",
  {
    id: { type: DataTypes.BIGINT.UNSIGNED, autoIncrement: true, primaryKey: true },
    name: { type: DataTypes.STRING(80), allowNull: false, comment: "the user's name" },
    email: { type: DataTypes.STRING, unique: "email_unique" },
    role: { type: DataTypes.ENUM("admin", "user", "o'ne"), defaultValue: "user" },
    active: { type: DataTypes.BOOLEAN, defaultValue: true },
    balance: { type: DataTypes.DECIMAL(12, 2), defaultValue: 0 },
    score: DataTypes.DOUBLE,
    rate: DataTypes.FLOAT(7, 4),
    small: DataTypes.SMALLINT.UNSIGNED,
    tiny: DataTypes.TINYINT,
    meta: DataTypes.JSON,
    born: DataTypes.DATEONLY,
    at: DataTypes.TIME,
    seen: DataTypes.DATE(6),
    uid: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 },
    bin: DataTypes.STRING(16, true),
    data: DataTypes.BLOB("medium"),
    bio: DataTypes.TEXT("long"),
    code: DataTypes.CHAR(4),
  },
  {
    tableName: "users",
    paranoid: true,
    version: true,
    indexes: [
      { fields: ["name", "born"] },
      { fields: [{ name: "name", length: 10, order: "DESC" }], name: "name_prefix" },
    ],
    comment: "users of it",
  },
);
const Post = db.define(
  "Post",
  { title: DataTypes.STRING, body: DataTypes.TEXT, views: { type: DataTypes.INTEGER, defaultValue: 0 } },
  { tableName: "posts", underscored: true },
);
const Tag = db.define(
  "Tag",
  { label: { type: DataTypes.STRING(50), primaryKey: true } },
  { tableName: "tags", timestamps: false },
);
const Category = db.define("Category", { name: DataTypes.STRING }, { timestamps: false });
User.hasMany(Post, { as: "posts", foreignKey: { name: "userId", allowNull: false }, onDelete: "CASCADE" });
Post.belongsTo(User, {
  as: "author",
  foreignKey: { name: "userId", allowNull: false },
  onDelete: "CASCADE",
});
Post.belongsToMany(Tag, { through: "post_tags" });
Tag.belongsToMany(Post, { through: "post_tags" });
Category.hasMany(Category, { as: "children", foreignKey: "parentId", onDelete: "RESTRICT" });

await check("sync with force, with alter twice", async () => {
  await db.sync({ force: true });
  const before = (await db.query("SHOW CREATE TABLE posts"))[0][0]["Create Table"];
  await db.sync({ alter: true });
  await db.sync({ alter: true });
  const after = (await db.query("SHOW CREATE TABLE posts"))[0][0]["Create Table"];
  assert.equal(after.replace(/_ibfk_\d+/g, ""), before.replace(/_ibfk_\d+/g, ""));
});
await check("alter drops and adds columns", async () => {
  const q = db.getQueryInterface();
  await q.addColumn("tags", "extra", {
    type: DataTypes.INTEGER,
    allowNull: false,
    defaultValue: 3,
    after: "label",
  });
  await q.changeColumn("tags", "extra", { type: DataTypes.STRING(20), allowNull: true, comment: "c" });
  await q.renameColumn("tags", "extra", "more");
  await q.addIndex("tags", ["more"], { unique: true, name: "more_u" });
  assert.deepEqual(
    (await q.showIndex("tags")).map((i) => [i.name, i.unique, i.primary]),
    [
      ["PRIMARY", true, true],
      ["more_u", true, false],
    ],
  );
  await q.removeIndex("tags", "more_u");
  await q.addConstraint("tags", { fields: ["more"], type: "unique", name: "cu" });
  await q.removeConstraint("tags", "cu");
  await q.removeColumn("tags", "more");
  assert.deepEqual(Object.keys(await q.describeTable("tags")), ["label"]);
});
await check("introspection", async () => {
  const q = db.getQueryInterface();
  const d = await q.describeTable("users");
  assert.deepEqual(
    [
      d.id.type,
      d.id.autoIncrement,
      d.id.primaryKey,
      d.name.allowNull,
      d.name.comment,
      d.role.type,
      d.role.defaultValue,
      d.active.type,
      d.balance.type,
      d.balance.defaultValue,
      d.rate.type,
      d.small.type,
      d.meta.type,
      d.seen.type,
      d.uid.type,
    ],
    [
      "BIGINT UNSIGNED",
      true,
      true,
      false,
      "the user's name",
      "ENUM('admin','user','o''ne')",
      "user",
      "TINYINT(1)",
      "DECIMAL(12,2)",
      "0.00",
      "FLOAT(7,4)",
      "SMALLINT UNSIGNED",
      "JSON",
      "DATETIME(6)",
      "CHAR(36)",
    ],
  );
  assert.deepEqual((await q.showAllTables()).map((t) => t.tableName ?? t).sort(), [
    "Categories",
    "post_tags",
    "posts",
    "tags",
    "users",
  ]);
  const idx = await q.showIndex("users");
  assert.deepEqual(idx.map((i) => i.name).sort(), [
    "PRIMARY",
    "email_unique",
    "name_prefix",
    "users_name_born",
  ]);
  assert.deepEqual(
    idx.find((i) => i.name === "name_prefix").fields.map((f) => [f.attribute, f.length, f.order]),
    [["name", 10, undefined]],
  );
  const fk = await q.getForeignKeyReferencesForTable("posts");
  assert.deepEqual(
    fk.map((k) => [k.tableName, k.columnName, k.referencedTableName, k.referencedColumnName]),
    [["posts", "user_id", "users", "id"]],
  );
  const fks = await q.getForeignKeysForTables(["posts", "post_tags"]);
  assert.equal(fks.post_tags.length, 2);
  assert.equal(await db.databaseVersion().then((v) => /^\d+\.\d+\.\d+/.test(v)), true);
});
let ann;
await check("types", async () => {
  const seen = new Date("2024-02-29T12:34:56.789Z");
  ann = await User.create({
    name: "Ann 🦀",
    email: "ann@x",
    role: "o'ne",
    active: false,
    balance: "1234567890.12",
    score: 0.1,
    rate: 1.5,
    small: 65535,
    tiny: -128,
    meta: { a: { b: [1, 2, { c: "é" }] }, n: null, "k.x": 1 },
    born: "2000-02-29",
    at: "12:34:56",
    seen,
    data: Buffer.from([0, 39, 92, 255]),
    bio: "l".repeat(70000),
    code: "ab",
  });
  const u = await User.findByPk(ann.id);
  assert.deepEqual(
    [
      u.name,
      u.role,
      u.active,
      u.balance,
      u.score,
      u.rate,
      u.small,
      u.tiny,
      u.meta,
      u.born,
      u.at,
      u.seen.getTime(),
      u.data.toString("hex"),
      u.bio.length,
      u.code,
      u.uid,
    ],
    [
      "Ann 🦀",
      "o'ne",
      false,
      "1234567890.12",
      0.1,
      1.5,
      65535,
      -128,
      { a: { b: [1, 2, { c: "é" }] }, n: null, "k.x": 1 },
      "2000-02-29",
      "12:34:56",
      seen.getTime(),
      "00275cff",
      70000,
      "ab",
      ann.uid,
    ],
  );
});
await check("bulk create, duplicates, upsert", async () => {
  await User.bulkCreate(
    Array.from({ length: 9 }, (_, i) => ({ name: `u${i}`, email: `u${i}@x`, meta: { i, tags: ["t", i] } })),
  );
  await User.bulkCreate(
    [
      { name: "changed", email: "u1@x" },
      { name: "new", email: "u9@x" },
    ],
    { updateOnDuplicate: ["name"] },
  );
  assert.equal((await User.findOne({ where: { email: "u1@x" } })).name, "changed");
  await User.bulkCreate([{ name: "ignored", email: "u1@x" }], { ignoreDuplicates: true });
  assert.equal(await User.count(), 11);
  const [, created] = await User.upsert({ name: "up", email: "u2@x" });
  const [, second] = await User.upsert({ name: "fresh", email: "fresh@x" });
  assert.deepEqual([created, second], [false, true]);
  const [f, made] = await User.findOrCreate({ where: { email: "foc@x" }, defaults: { name: "foc" } });
  assert.ok(made && f.id);
  await assert.rejects(User.create({ name: "d", email: "foc@x" }), {
    name: "SequelizeUniqueConstraintError",
    fields: { email: "foc@x" },
  });
});
await check("relations: include, limit, order, exists", async () => {
  for (const u of await User.findAll({ limit: 3, order: ["id"] })) {
    for (let i = 0; i < 3; i += 1) {
      const p = await u.createPost({ title: `p${i}`, body: "b", views: i });
      await p.addTags(
        await Promise.all(
          ["x", "y"].map((label) => Tag.findOrCreate({ where: { label } }).then((r) => r[0])),
        ),
      );
    }
  }
  const r = await User.findAndCountAll({
    include: [{ model: Post, as: "posts", where: { views: { [Op.gt]: 0 } }, include: [Tag] }],
    limit: 2,
    offset: 1,
    order: [
      ["id", "DESC"],
      [{ model: Post, as: "posts" }, "views", "DESC"],
    ],
    distinct: true,
  });
  assert.deepEqual(
    [r.count, r.rows.length, r.rows[0].posts.map((p) => p.views), r.rows[0].posts[0].Tags.length],
    [3, 2, [2, 1], 2],
  );
  const s = await User.findAll({
    include: [{ model: Post, as: "posts", separate: true, limit: 2, order: [["views", "DESC"]] }],
    limit: 2,
    order: ["id"],
  });
  assert.deepEqual(
    s.map((u) => u.posts.length),
    [2, 2],
  );
  const e = await User.findAll({
    where: db.literal("EXISTS (SELECT 1 FROM posts p WHERE p.user_id = User.id AND p.views = 2)"),
  });
  assert.equal(e.length, 3);
  assert.equal((await Post.findAll({ where: { "$author.name$": "Ann 🦀" }, include: "author" })).length, 3);
});
await check("conditions", async () => {
  const n = (where) => User.count({ where });
  assert.deepEqual(
    [
      await n({ name: { [Op.regexp]: "^u[0-9]$" } }),
      await n({ name: { [Op.notRegexp]: "^u" } }),
      await n({ meta: { i: 3 } }),
      await n(
        db.where(
          db.fn("JSON_UNQUOTE", db.fn("JSON_EXTRACT", db.col("meta"), db.literal("'$.a.b[2].c'"))),
          "é",
        ),
      ),
      await n({ meta: { i: { [Op.gte]: 5 } } }),
      await n({ email: { [Op.startsWith]: "u" } }),
      await n({ [Op.or]: [{ name: { [Op.like]: "%an%" } }, { id: { [Op.between]: [3, 4] } }] }),
      await n({ score: null }),
      await n({ born: { [Op.lt]: new Date() } }),
      await n({ name: { [Op.in]: ["u3", "u4"] } }),
      await n(db.where(db.fn("lower", db.col("name")), "up")),
      await n(db.where(db.fn("JSON_CONTAINS", db.col("meta"), '"t"', db.literal("'$.tags'")), 1)),
    ],
    [7, 5, 1, 1, 4, 10, 3, 12, 1, 2, 1, 9],
  );
  assert.equal((await User.findAll({ order: [[db.json("meta.i"), "DESC"]], limit: 1 }))[0].meta.i, 8);
});
await check("aggregates and groups", async () => {
  const g = await Post.findAll({
    attributes: ["userId", [db.fn("COUNT", db.col("id")), "n"], [db.fn("SUM", db.col("views")), "s"]],
    group: ["userId"],
    having: db.where(db.fn("COUNT", db.col("id")), { [Op.gt]: 2 }),
    raw: true,
    order: ["userId"],
  });
  assert.deepEqual(
    g.map((x) => [x.n, x.s]),
    [
      [3, "3"],
      [3, "3"],
      [3, "3"],
    ],
  );
  assert.deepEqual(
    [await Post.sum("views"), await Post.max("views"), await User.min("born")],
    [9, 2, "2000-02-29"],
  );
});
await check("increment, paranoid delete, restore, version lock", async () => {
  const p = await Post.findOne();
  await p.increment("views", { by: 5 });
  await p.reload();
  assert.equal(p.views, 5);
  const u = await User.findOne({ where: { name: "u5" } });
  await u.destroy();
  assert.equal(await User.count({ where: { name: "u5" } }), 0);
  await u.restore();
  const a = await User.findByPk(u.id);
  const b = await User.findByPk(u.id);
  await a.update({ name: "A" });
  await assert.rejects(b.update({ name: "B" }), { name: "SequelizeOptimisticLockError" });
});
await check("cascade and restrict", async () => {
  await (await User.findOne({ order: ["id"] })).destroy({ force: true });
  assert.equal(await Post.count(), 6);
  const c = await Category.create({ name: "root" });
  await c.createChild({ name: "leaf" });
  await assert.rejects(c.destroy(), {
    name: "SequelizeForeignKeyConstraintError",
    table: "Categories",
    fields: ["parentId"],
  });
  await assert.rejects(Category.create({ name: "x", parentId: 999 }), {
    name: "SequelizeForeignKeyConstraintError",
  });
});
await check("transactions, savepoints, locks, pool", async () => {
  await assert.rejects(
    db.transaction(async (t) => {
      await Tag.create({ label: "gone" }, { transaction: t });
      throw new Error("back");
    }),
    /back/,
  );
  await db.transaction({ isolationLevel: "SERIALIZABLE" }, async (t) => {
    await Tag.create({ label: "kept" }, { transaction: t });
    await assert.rejects(
      db.transaction({ transaction: t }, async (s) => {
        await Tag.create({ label: "inner" }, { transaction: s });
        throw new Error("in");
      }),
      /in/,
    );
  });
  assert.deepEqual(
    (await Tag.findAll({ order: ["label"] })).map((t) => t.label),
    ["kept", "x", "y"],
  );
  const id = (await Post.findOne()).id;
  await Post.update({ views: 0 }, { where: { id } });
  await Promise.all(
    Array.from({ length: 20 }, () =>
      db.transaction(async (t) => {
        const p = await Post.findByPk(id, { transaction: t, lock: t.LOCK.UPDATE });
        await p.update({ views: p.views + 1 }, { transaction: t });
      }),
    ),
  );
  assert.equal((await Post.findByPk(id)).views, 20);
  assert.deepEqual(
    await Post.findAll({ where: { id }, lock: true, skipLocked: true }).then((r) => r.length),
    1,
  );
});
await check("drop and sync again", async () => {
  await db.drop();
  assert.deepEqual(await db.getQueryInterface().showAllTables(), []);
  await db.sync();
});
await db.close();
finish();
