// The tables of the Drizzle application: columns of all kinds, keys, checks, generated columns, a view.
import { sql, relations } from "drizzle-orm";
import {
  mysqlTable,
  mysqlView,
  int,
  bigint,
  serial,
  varchar,
  text,
  boolean,
  decimal,
  double,
  float,
  date,
  datetime,
  timestamp,
  time,
  year,
  json,
  mysqlEnum,
  binary,
  varbinary,
  char,
  tinyint,
  smallint,
  mediumint,
  longtext,
  index,
  uniqueIndex,
  unique,
  primaryKey,
  foreignKey,
  check,
} from "drizzle-orm/mysql-core";

export const users = mysqlTable(
  "users",
  {
    id: int("id", { unsigned: true }).autoincrement().primaryKey(),
    name: varchar("name", { length: 80 }).notNull(),
    email: varchar("email", { length: 120 }).unique(),
    role: mysqlEnum("role", ["admin", "user"]).default("user").notNull(),
    active: boolean("active").default(true),
    money: decimal("money", { precision: 12, scale: 3 }).default("0.000"),
    score: double("score"),
    rate: float("rate"),
    tiny: tinyint("tiny").default(-1),
    small: smallint("small", { unsigned: true }),
    medium: mediumint("medium"),
    big: bigint("big", { mode: "bigint", unsigned: true }),
    meta: json("meta"),
    metaDefault: json("meta_default").default({ a: 1 }),
    born: date("born", { mode: "string" }),
    seen: datetime("seen", { mode: "string", fsp: 6 }),
    stamp: timestamp("stamp").defaultNow().onUpdateNow().notNull(),
    at: time("at", { fsp: 3 }),
    y: year("y"),
    raw: binary("raw", { length: 8 }),
    vraw: varbinary("vraw", { length: 16 }),
    code: char("code", { length: 4 }),
    bio: text("bio"),
    long: longtext("long"),
    upper: varchar("upper", { length: 80 }).generatedAlwaysAs(sql`(upper(\`name\`))`, { mode: "stored" }),
    virt: int("virt").generatedAlwaysAs(sql`(\`medium\` + 1)`, { mode: "virtual" }),
    uid: varchar("uid", { length: 36 }).default(sql`(uuid())`),
  },
  (t) => [
    index("by_name").on(t.name, t.born),
    uniqueIndex("by_big").on(t.big),
    check("money_ok", sql`${t.money} >= 0`),
  ],
);
export const posts = mysqlTable(
  "posts",
  {
    id: serial("id").primaryKey(),
    author: int("author", { unsigned: true })
      .notNull()
      .references(() => users.id, { onDelete: "cascade", onUpdate: "no action" }),
    title: varchar("title", { length: 100 }).notNull(),
    views: int("views").default(0).notNull(),
  },
  (t) => [unique("once").on(t.author, t.title)],
);
export const labels = mysqlTable("labels", { name: varchar("name", { length: 40 }).primaryKey() });
export const postLabels = mysqlTable(
  "post_labels",
  {
    post: bigint("post", { mode: "number", unsigned: true }).notNull(),
    label: varchar("label", { length: 40 }).notNull(),
  },
  (t) => [
    primaryKey({ name: "post_labels_post_label", columns: [t.post, t.label] }),
    foreignKey({ columns: [t.post], foreignColumns: [posts.id], name: "pl_post" }).onDelete("cascade"),
    foreignKey({ columns: [t.label], foreignColumns: [labels.name], name: "pl_label" }).onDelete(
      "restrict",
    ),
  ],
);
export const popular = mysqlView("popular").as((q) =>
  q
    .select({ id: posts.id, title: posts.title })
    .from(posts)
    .where(sql`${posts.views} > 1`),
);
export const usersRelations = relations(users, ({ many }) => ({ posts: many(posts) }));
export const postsRelations = relations(posts, ({ one, many }) => ({
  user: one(users, { fields: [posts.author], references: [users.id] }),
  labels: many(postLabels),
}));
export const postLabelsRelations = relations(postLabels, ({ one }) => ({
  post: one(posts, { fields: [postLabels.post], references: [posts.id] }),
  tag: one(labels, { fields: [postLabels.label], references: [labels.name] }),
}));
