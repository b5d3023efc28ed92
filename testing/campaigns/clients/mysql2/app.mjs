// mysql2 as programs use it: text and prepared statements, types, streams, pools, compression, TLS, several
// statements in one packet, type casts, transactions, errors.
import assert from "node:assert/strict";
import mysql from "mysql2/promise";
import core from "mysql2";
import { check, finish, server } from "./check.mjs";

const base = { ...server, charset: "utf8mb4" };
const c = await mysql.createConnection({
  ...base,
  supportBigNumbers: true,
  bigNumberStrings: false,
  timezone: "Z",
});
const rows = async (sql, p) => (await c.query(sql, p))[0];
const prows = async (sql, p) => (await c.execute(sql, p))[0];

await c.query(`CREATE TABLE kinds (id INT AUTO_INCREMENT PRIMARY KEY, t TINYINT, ut TINYINT UNSIGNED, s SMALLINT,
  m MEDIUMINT, i INT, ui INT UNSIGNED, b BIGINT, ub BIGINT UNSIGNED, d DECIMAL(20,6), f FLOAT, db DOUBLE, bo BOOLEAN,
  da DATE, dt DATETIME, dt6 DATETIME(6), ts TIMESTAMP NULL, ti TIME, ti6 TIME(6), y YEAR, ch CHAR(10),
  vc VARCHAR(100), tx TEXT, lt LONGTEXT, bi BINARY(16), vb VARBINARY(32), bl BLOB, js JSON,
  en ENUM('one','two'), st SET('a','b','c'), bt BIT(10))`);
const values = {
  t: -128,
  ut: 255,
  s: -32768,
  m: 8388607,
  i: -2147483648,
  ui: 4294967295,
  b: "-9223372036854775808",
  ub: "18446744073709551615",
  d: "12345678901234.567890",
  f: 1.5,
  db: 0.1,
  bo: 1,
  da: "2024-02-29",
  dt: "2024-02-29 23:59:59",
  dt6: "2024-02-29 23:59:59.123456",
  ts: "2024-02-29 01:02:03",
  ti: "-838:59:59",
  ti6: "12:34:56.654321",
  y: 2155,
  ch: "abc",
  vc: "grün 🦀",
  tx: "x".repeat(65535),
  lt: "ü".repeat(100000),
  bi: Buffer.alloc(16, 7),
  vb: Buffer.from([0, 1, 255]),
  bl: Buffer.from("\0\x01\"'\\"),
  js: JSON.stringify({ a: [1, 2.5, null, true, "é"] }),
  en: "two",
  st: "a,c",
  bt: Buffer.from([3, 1]),
};
function same(row) {
  for (const [k, v] of Object.entries(values)) {
    let got = row[k];
    if (k === "js") {
      assert.deepEqual(got, JSON.parse(v), k);
      continue;
    }
    if (Buffer.isBuffer(v)) {
      assert.ok(Buffer.isBuffer(got) && got.equals(v), `${k}: ${got?.toString?.("hex")}`);
      continue;
    }
    assert.equal(String(got), String(v), k);
  }
}
const asText = { dateStrings: true, bigNumberStrings: true, supportBigNumbers: true };
const ct = await mysql.createConnection({ ...base, ...asText });
await check("types, text", async () => {
  const [r] = await ct.query("INSERT INTO kinds SET ?", values);
  assert.equal(r.insertId, 1);
  same((await ct.query("SELECT * FROM kinds WHERE id = ?", [1]))[0][0]);
});
await check("types, prepared", async () => {
  const names = Object.keys(values);
  const [r] = await ct.execute(
    `INSERT INTO kinds (${names}) VALUES (${names.map(() => "?")})`,
    Object.values(values),
  );
  assert.equal(r.affectedRows, 1);
  same((await ct.execute("SELECT * FROM kinds WHERE id = ?", [r.insertId]))[0][0]);
});
await check("nulls", async () => {
  const [r] = await c.execute("INSERT INTO kinds (id) VALUES (?)", [null]);
  for (const row of [
    (await rows("SELECT * FROM kinds WHERE id=?", [r.insertId]))[0],
    (await prows("SELECT * FROM kinds WHERE id=?", [r.insertId]))[0],
  ]) {
    assert.equal(Object.values(row).filter((v) => v !== null).length, 1);
  }
});
await check("dates as Date", async () => {
  const d = new Date(Date.UTC(2021, 5, 7, 8, 9, 10, 123));
  await c.query("UPDATE kinds SET dt6=? WHERE id=1", [d]);
  assert.equal((await rows("SELECT dt6 FROM kinds WHERE id=1"))[0].dt6.getTime(), d.getTime());
  await c.execute("UPDATE kinds SET dt6=? WHERE id=1", [d]);
  assert.equal((await prows("SELECT dt6 FROM kinds WHERE id=1"))[0].dt6.getTime(), d.getTime());
});
await check("columns of a result", async () => {
  const [, f] = await c.query("SELECT id, vc AS v, js, bt, d FROM kinds k LIMIT 0");
  assert.deepEqual(
    f.map((x) => [x.name, x.orgName, x.table, x.orgTable, x.columnType]),
    [
      ["id", "id", "k", "kinds", 3],
      ["v", "vc", "k", "kinds", 253],
      ["js", "js", "k", "kinds", 245],
      ["bt", "bt", "k", "kinds", 16],
      ["d", "d", "k", "kinds", 246],
    ],
  );
  assert.deepEqual(
    f.map((x) => x.columnLength),
    [11, 400, 4294967295, 10, 22],
  );
  const [, p] = await c.execute("SELECT id, vc AS v, js, bt, d FROM kinds k LIMIT 0");
  assert.deepEqual(
    p.map((x) => x.columnType),
    [3, 253, 245, 16, 246],
  );
});
await check("parameters of several kinds", async () => {
  const [[r]] = await c.execute(
    "SELECT ? AS a, ? AS b, ? AS c, ? + 1 AS d, CONCAT(?, ?) AS e, ? IS NULL AS f",
    [1, "x", 2.5, 41, "a", "b", null],
  );
  assert.deepEqual(r, { a: 1, b: "x", c: 2.5, d: 42, e: "ab", f: 1 });
  const [l] = await c.execute("SELECT id FROM kinds ORDER BY id LIMIT ? OFFSET ?", ["1", "1"]);
  assert.equal(l.length, 1);
});
await check("rows as arrays, nested tables", async () => {
  assert.deepEqual((await c.query({ sql: "SELECT 1, 2, 1", rowsAsArray: true }))[0], [[1, 2, 1]]);
  const [n] = await c.query({
    sql: "SELECT a.id, b.id FROM kinds a JOIN kinds b ON a.id=b.id WHERE a.id=1",
    nestTables: true,
  });
  assert.deepEqual(n, [{ a: { id: 1 }, b: { id: 1 } }]);
  const [p] = await c.execute({
    sql: "SELECT a.id, b.id, 1 AS x FROM kinds a JOIN kinds b ON a.id=b.id WHERE a.id=1",
    nestTables: "_",
  });
  assert.deepEqual(p, [{ a_id: 1, b_id: 1, _x: 1 }]);
});
await check("named placeholders", async () => {
  const n = await mysql.createConnection({ ...base, namedPlaceholders: true });
  assert.deepEqual((await n.execute("SELECT :a + :b AS s, :a AS a", { a: 1, b: 2 }))[0], [{ s: 3, a: 1 }]);
  await n.end();
});
await check("typeCast", async () => {
  const cast = (field, next) =>
    field.type === "TINY" && field.length === 1
      ? field.string() === "1"
      : field.type === "JSON"
        ? field.string("utf8")
        : field.type === "BIT"
          ? field.buffer()[1]
          : next();
  for (const how of ["query", "execute"]) {
    const [[r]] = await c[how]({ sql: "SELECT t, bo, js, bt FROM kinds WHERE id=1", typeCast: cast });
    assert.deepEqual(
      { ...r, js: JSON.parse(r.js) },
      { t: -128, bo: true, js: { a: [1, 2.5, null, true, "é"] }, bt: 1 },
      how,
    );
  }
});
await check("several statements", async () => {
  const m = await mysql.createConnection({ ...base, multipleStatements: true });
  const [r, f] = await m.query(
    "SELECT 1 AS a; CREATE TEMPORARY TABLE q (i INT); INSERT INTO q VALUES (1),(2); SELECT * FROM q; DO 1",
  );
  assert.deepEqual([r[0], r[2].affectedRows, r[3]], [[{ a: 1 }], 2, [{ i: 1 }, { i: 2 }]]);
  assert.equal(f[1], undefined);
  await assert.rejects(m.query("SELECT 1; SELECT * FROM nosuch; SELECT 2"), {
    errno: 1146,
    sqlState: "42S02",
  });
  assert.deepEqual((await m.query("SELECT 3 AS x"))[0], [{ x: 3 }]);
  await assert.rejects(c.query("SELECT 1; SELECT 2"), { errno: 1064 });
  await m.end();
});
await check("affected, changed and found rows", async () => {
  await c.query("CREATE TABLE aff (id INT PRIMARY KEY, v INT, UNIQUE KEY uv (v))");
  assert.match(
    (await c.query("INSERT INTO aff VALUES (1,1),(2,2),(3,3)"))[0].info,
    /Records: 3  Duplicates: 0  Warnings: 0/,
  );
  let [r] = await c.query("UPDATE aff SET v = 1 WHERE id = 1");
  assert.deepEqual(
    [r.affectedRows, r.changedRows, r.info],
    [1, 0, "Rows matched: 1  Changed: 0  Warnings: 0"],
  );
  [r] = await c.query("INSERT INTO aff VALUES (1, 10) ON DUPLICATE KEY UPDATE v = VALUES(v)");
  assert.equal(r.affectedRows, 2);
  [r] = await c.query("INSERT INTO aff VALUES (1, 10) AS n ON DUPLICATE KEY UPDATE v = n.v");
  assert.equal(r.affectedRows, 1);
  const f = await mysql.createConnection({ ...base, flags: "-FOUND_ROWS" });
  assert.equal(
    (await f.query("INSERT INTO aff VALUES (1, 10) AS n ON DUPLICATE KEY UPDATE v = n.v"))[0].affectedRows,
    0,
  );
  assert.equal((await f.query("UPDATE aff SET v = 10 WHERE id = 1"))[0].affectedRows, 0);
  await f.end();
  [r] = await c.execute("REPLACE INTO aff VALUES (2, 3)");
  assert.equal(r.affectedRows, 3);
});
await check("streams", async () => {
  await c.query(
    `INSERT INTO aff WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i+1 FROM n WHERE i<1000) SELECT i,i FROM n`,
  );
  const raw = core.createConnection(base);
  for (const how of ["query", "execute"]) {
    let count = 0;
    for await (const r of raw[how]("SELECT * FROM aff WHERE id >= 100").stream({ highWaterMark: 5 }))
      count += r.v / r.id;
    assert.equal(count, 901, how);
  }
  await new Promise((done) => raw.end(done));
});
await check("compression", async () => {
  const z = await mysql.createConnection({ ...base, compress: true });
  const big = "abc🦀".repeat(300000);
  const [[r]] = await z.execute("SELECT ? AS x, LENGTH(?) AS l", [big, big]);
  assert.ok(r.x === big && r.l === (big.length / 5) * 7);
  assert.equal((await z.query("SHOW STATUS LIKE 'Compression'"))[0][0].Value, "ON");
  await z.end();
});
await check("TLS", async () => {
  for (const compress of [false, true]) {
    const s = await mysql.createConnection({ ...base, compress, ssl: { rejectUnauthorized: false } });
    const [[r]] = await s.query("SHOW STATUS LIKE 'Ssl_cipher'");
    assert.ok(r.Value.length > 5, r.Value);
    const x = "y".repeat(1 << 20);
    assert.equal((await s.execute("SELECT ? AS x", [x]))[0][0].x, x);
    await s.end();
  }
});
await check("large packets", async () => {
  const [[{ m }]] = await c.query("SELECT @@max_allowed_packet AS m");
  assert.ok(m >= 20000000, `max_allowed_packet ${m}`);
  await c.query("CREATE TABLE large (b LONGBLOB)");
  const big = Buffer.alloc(17000000, 0xab);
  await c.execute("INSERT INTO large VALUES (?)", [big]);
  assert.ok((await rows("SELECT b FROM large"))[0].b.equals(big));
  assert.ok((await prows("SELECT b FROM large"))[0].b.equals(big));
});
await check("pool", async () => {
  const pool = mysql.createPool({ ...base, connectionLimit: 5, maxIdle: 2, idleTimeout: 1000 });
  await pool.query("CREATE TABLE counter (id INT PRIMARY KEY, n INT)");
  await pool.query("INSERT INTO counter VALUES (1, 0)");
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      const k = await pool.getConnection();
      try {
        await k.beginTransaction();
        const [[{ n }]] = await k.execute("SELECT n FROM counter WHERE id = 1 FOR UPDATE");
        await k.execute("UPDATE counter SET n = ? WHERE id = 1", [n + 1]);
        await k.commit();
      } finally {
        k.release();
      }
    }),
  );
  assert.equal((await pool.query("SELECT n FROM counter"))[0][0].n, 50);
  await pool.end();
});
await check("transactions and savepoints", async () => {
  await c.beginTransaction();
  await c.query("INSERT INTO aff VALUES (5001, 5001)");
  await c.query("SAVEPOINT a");
  await c.query("INSERT INTO aff VALUES (5002, 5002)");
  await c.query("ROLLBACK TO SAVEPOINT a");
  await c.commit();
  assert.deepEqual(await rows("SELECT id FROM aff WHERE id > 5000"), [{ id: 5001 }]);
  await c.beginTransaction();
  await c.query("DELETE FROM aff");
  await c.rollback();
  assert.equal((await rows("SELECT COUNT(*) AS n FROM aff WHERE id > 5000"))[0].n, 1);
});
await check("errors", async () => {
  await assert.rejects(c.query("INSERT INTO aff VALUES (5001, 1)"), {
    code: "ER_DUP_ENTRY",
    errno: 1062,
    sqlState: "23000",
    sqlMessage: "Duplicate entry '5001' for key 'aff.PRIMARY'",
  });
  await assert.rejects(c.execute("SELECT nosuch FROM aff"), { code: "ER_BAD_FIELD_ERROR", errno: 1054 });
  await assert.rejects(c.query("SELEKT 1"), { code: "ER_PARSE_ERROR" });
  await assert.rejects(mysql.createConnection({ ...base, database: "no_such_database_here" }), {
    errno: 1049,
  });
  await assert.rejects(mysql.createConnection({ ...base, user: "nobody_here", password: "x" }), {
    errno: 1045,
  });
});
await check("change of user, reset, ping, statistics", async () => {
  const k = await mysql.createConnection(base);
  await k.query("SET @x = 1");
  await k.changeUser({ database: server.database, user: server.user, password: server.password });
  assert.equal((await k.query("SELECT @x AS x, DATABASE() AS d"))[0][0].d, server.database);
  assert.equal((await k.query("SELECT @x AS x"))[0][0].x, null);
  await k.ping();
  const s = await k.prepare("SELECT ? AS a UNION ALL SELECT ?");
  assert.deepEqual((await s.execute([1, 2]))[0], [{ a: 1 }, { a: 2 }]);
  assert.deepEqual((await s.execute([3, 4]))[0], [{ a: 3 }, { a: 4 }]);
  await s.close();
  await k.end();
});
await check("bulk insert of nested arrays and lists", async () => {
  await c.query("CREATE TABLE bulk (a INT, b VARCHAR(10), c DATETIME)");
  const [r] = await c.query("INSERT INTO bulk (a,b,c) VALUES ?", [
    Array.from({ length: 500 }, (_, i) => [i, `v'${i}`, new Date(0)]),
  ]);
  assert.equal(r.affectedRows, 500);
  assert.equal(
    (await rows("SELECT COUNT(*) AS n FROM ?? WHERE ?? IN (?)", ["bulk", "a", [1, 2, 3]]))[0].n,
    3,
  );
});
await check("local infile", async () => {
  const k = await mysql.createConnection({ ...base, infileStreamFactory: () => null });
  await assert.rejects(k.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE bulk"), { errno: 3948 });
  await k.end();
});
await c.end();
await ct.end();
finish();
