// The MariaDB connector for Node: text and binary statements, pipelining, batches, streams, pools, compression,
// TLS, types, errors, session state.
import assert from "node:assert/strict";
import mariadb from "mariadb";

import { check, finish, server } from "./check.mjs";

const base = { ...server, allowPublicKeyRetrieval: true, dateStrings: true };
const c = await mariadb.createConnection(base);
await c.query(
  `CREATE TABLE kinds (id INT AUTO_INCREMENT PRIMARY KEY, t TINYINT, ut TINYINT UNSIGNED, i INT, b BIGINT, ub BIGINT UNSIGNED, d DECIMAL(20,6), f FLOAT, db DOUBLE, da DATE, dt DATETIME(6), ti TIME(6), y YEAR, vc VARCHAR(100), lt LONGTEXT, bl BLOB, js JSON, en ENUM('one','two'), bt BIT(1), bo BOOLEAN)`,
);
const values = {
  t: -128,
  ut: 255,
  i: -2147483648,
  b: -9223372036854775808n,
  ub: 18446744073709551615n,
  d: "12345678901234.567890",
  f: 1.5,
  db: 0.1,
  da: "2024-02-29",
  dt: "2024-02-29 23:59:59.123456",
  ti: "-100:59:59.250000",
  y: 2155,
  vc: "grün 🦀",
  lt: "ü".repeat(100000),
  bl: Buffer.from("\0\x01\"'\\"),
  js: { a: [1, null, "é"] },
  en: "two",
  bt: true,
  bo: 1,
};
const names = Object.keys(values);
for (const how of ["query", "execute"]) {
  await check(`types, ${how}`, async () => {
    const r = await c[how](
      `INSERT INTO kinds (${names}) VALUES (${names.map(() => "?")})`,
      names.map((n) => (n === "js" ? JSON.stringify(values.js) : values[n])),
    );
    assert.equal(r.affectedRows, 1);
    const [row] = await c[how]("SELECT * FROM kinds WHERE id = ?", [r.insertId]);
    for (const n of names)
      assert.deepEqual(
        n === "js" && typeof row.js === "string" ? JSON.parse(row.js) : row[n],
        values[n],
        n,
      );
  });
  await check(`parameters, ${how}`, async () => {
    const [r] = await c[how]("SELECT ? AS a, ? AS b, CAST(? AS SIGNED) + 1 AS n, ? IS NULL AS e", [
      5,
      "x",
      41,
      null,
    ]);
    assert.deepEqual([Number(r.a), r.b, Number(r.n), Number(r.e)], [5, "x", 42, 1]);
    assert.equal((await c[how]("SELECT id FROM kinds ORDER BY id LIMIT ?", [1])).length, 1);
  });
}
await check("columns", async () => {
  const r = await c.query("SELECT id, vc AS v, js, d, lt FROM kinds k LIMIT 1");
  assert.deepEqual(
    r.meta.map((m) => [m.name(), m.orgName(), m.table(), m.orgTable(), m.type, m.columnLength]),
    [
      ["id", "id", "k", "kinds", "INT", 11],
      ["v", "vc", "k", "kinds", "VAR_STRING", 400],
      ["js", "js", "k", "kinds", "JSON", 4294967295],
      ["d", "d", "k", "kinds", "NEWDECIMAL", 22],
      ["lt", "lt", "k", "kinds", "BLOB", 4294967295],
    ],
  );
  const [n] = await c.query({
    sql: "SELECT a.id, b.id, 1 AS x FROM kinds a JOIN kinds b ON a.id = b.id LIMIT 1",
    nestTables: true,
  });
  assert.deepEqual([n.a.id, n.b.id], [1, 1]);
});
await check("batches", async () => {
  await c.query("CREATE TABLE bt (id INT PRIMARY KEY AUTO_INCREMENT, k INT UNIQUE, v VARCHAR(20))");
  const sum = (r) => (Array.isArray(r) ? r.reduce((a, x) => a + x.affectedRows, 0) : r.affectedRows);
  assert.equal(
    sum(
      await c.batch(
        "INSERT INTO bt (k, v) VALUES (?, ?)",
        Array.from({ length: 1000 }, (_, i) => [i, `v${i}`]),
      ),
    ),
    1000,
  );
  assert.equal(
    sum(
      await c.batch("INSERT INTO bt (k, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE v = VALUES(v)", [
        [1, "x"],
        [2000, "y"],
      ]),
    ),
    3,
  );
  assert.equal(
    sum(
      await c.batch("UPDATE bt SET v = ? WHERE k = ?", [
        ["a", 3],
        ["b", 4],
      ]),
    ),
    2,
  );
  assert.equal((await c.query("SELECT COUNT(*) AS n FROM bt"))[0].n, 1001n);
});
await check("pipeline", async () => {
  const r = await Promise.all(Array.from({ length: 100 }, (_, i) => c.query("SELECT ? + 0 AS v", [i])));
  assert.deepEqual(
    r.map((x) => Number(x[0].v)),
    Array.from({ length: 100 }, (_, i) => i),
  );
  const mixed = await Promise.allSettled([
    c.query("SELECT 1"),
    c.query("SELECT * FROM nosuch"),
    c.execute("SELECT 2"),
    c.execute("SELECT nosuch"),
  ]);
  assert.deepEqual(
    mixed.map((m) => m.reason?.errno),
    [undefined, 1146, undefined, 1054],
  );
});
await check("stream", async () => {
  let n = 0;
  for await (const r of c.queryStream("SELECT id FROM bt")) n += r.id ? 1 : 0;
  assert.equal(n, 1001);
});
await check("pool", async () => {
  const pool = mariadb.createPool({ ...base, connectionLimit: 4 });
  await pool.query("CREATE TABLE n (n INT)");
  await pool.query("INSERT INTO n VALUES (0)");
  await Promise.all(
    Array.from({ length: 40 }, async () => {
      const k = await pool.getConnection();
      try {
        await k.beginTransaction();
        const [{ n }] = await k.query("SELECT n FROM n FOR UPDATE");
        await k.execute("UPDATE n SET n = ?", [n + 1]);
        await k.commit();
      } finally {
        await k.release();
      }
    }),
  );
  assert.equal((await pool.query("SELECT n FROM n"))[0].n, 40);
  await pool.end();
});
await check("compression, TLS, several statements, session variables", async () => {
  const k = await mariadb.createConnection({
    ...base,
    compress: true,
    ssl: { rejectUnauthorized: false },
    multipleStatements: true,
    sessionVariables: { wait_timeout: 1234 },
    initSql: ["SET @a = 7"],
    timezone: "Z",
  });
  const r = await k.query(
    "SELECT @@wait_timeout AS w, @a AS a; SELECT 2 AS b",
  );
  assert.deepEqual(
    [Number(r[0][0].w), Number(r[0][0].a), Number(r[1][0].b)],
    [1234, 7, 2],
  );
  const x = "y".repeat(5 << 20);
  assert.equal((await k.execute("SELECT ? AS x", [x]))[0].x, x);
  await k.reset();
  assert.equal(Number((await k.query("SELECT @a AS a"))[0].a), 7);
  await k.ping();
  await k.end();
});
await check("prepare, errors, transactions", async () => {
  const p = await c.prepare("SELECT v FROM bt WHERE k = ?");
  assert.deepEqual([(await p.execute([3]))[0].v, (await p.execute([4]))[0].v], ["a", "b"]);
  p.close();
  await assert.rejects(c.query("INSERT INTO bt (k) VALUES (1)"), {
    errno: 1062,
    sqlState: "23000",
    code: "ER_DUP_ENTRY",
  });
  await c.beginTransaction();
  await c.query("DELETE FROM bt");
  await c.rollback();
  assert.equal((await c.query("SELECT COUNT(*) AS n FROM bt"))[0].n, 1001n);
});
await c.end();
finish();
