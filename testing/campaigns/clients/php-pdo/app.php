<?php
// PDO: emulated and native prepared statements, types, several results, transactions, locks, errors, columns.
require __DIR__ . "/check.php";

function connect(array $options = []): PDO
{
    global $server;
    return new PDO(
        "mysql:host={$server["host"]};port={$server["port"]};dbname={$server["database"]};charset=utf8mb4",
        $server["user"],
        $server["password"],
        $options + [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
        ],
    );
}
$kinds = [
    "t" => -128,
    "u" => 255,
    "i" => -2147483648,
    "b" => PHP_INT_MIN,
    "ub" => "18446744073709551615",
    "d" => "12345678901234.567890",
    "f" => 1.5,
    "db" => 0.1,
    "bo" => 1,
    "da" => "2024-02-29",
    "dt" => "2024-02-29 23:59:59.123456",
    "ts" => "2024-02-29 01:02:03",
    "ti" => "-838:59:59",
    "y" => "2155",
    "ch" => "abc",
    "vc" => "gr\u{fc}n \u{1f980}",
    "lt" => str_repeat("\u{fc}", 70000),
    "bi" => str_repeat("\7", 16),
    "bl" => "\0\1'\"\\\xff",
    "js" => '{"a": [1, 2.5, null]}',
    "en" => "two",
    "st" => "a,c",
];
$setup = connect();
$setup->exec("CREATE TABLE kinds (id INT AUTO_INCREMENT PRIMARY KEY, t TINYINT, u TINYINT UNSIGNED, i INT, b BIGINT, ub BIGINT UNSIGNED, d DECIMAL(20,6), f FLOAT,
  db DOUBLE, bo BOOLEAN, da DATE, dt DATETIME(6), ts TIMESTAMP NULL, ti TIME, y YEAR, ch CHAR(10), vc VARCHAR(100), lt LONGTEXT, bi BINARY(16), bl BLOB, js JSON,
  en ENUM('one','two'), st SET('a','b','c'))");
foreach ([true, false] as $emulated) {
    $how = $emulated ? "emulated" : "native";
    $db = connect([PDO::ATTR_EMULATE_PREPARES => $emulated]);
    check("types, $how", function () use ($db, $kinds, $emulated) {
        $names = array_keys($kinds);
        $q = $db->prepare(
            "INSERT INTO kinds (" . implode(",", $names) . ") VALUES (:" . implode(",:", $names) . ")",
        );
        $q->execute($kinds);
        same(1, $q->rowCount());
        $r = $db->prepare("SELECT * FROM kinds WHERE id = ?");
        $r->execute([$db->lastInsertId()]);
        $row = $r->fetch();
        foreach ($kinds as $k => $v) {
            same($v, $row[$k], $k);
        }
    });
    check("columns of a result, $how", function () use ($db) {
        $q = $db->query("SELECT id, vc AS v, d, js, dt, bl FROM kinds LIMIT 1");
        $got = array_map(
            fn($i) => [
                $q->getColumnMeta($i)["name"],
                $q->getColumnMeta($i)["native_type"] ?? null,
                $q->getColumnMeta($i)["len"],
                $q->getColumnMeta($i)["precision"],
            ],
            range(0, 5),
        );
        same(
            [
                ["id", "LONG", 11, 0],
                ["v", "VAR_STRING", 400, 0],
                ["d", "NEWDECIMAL", 22, 6],
                ["js", null, 4294967295, 0],
                ["dt", "DATETIME", 26, 6],
                ["bl", "BLOB", 65535, 0],
            ],
            $got,
        );
        same(["not_null", "primary_key"], $q->getColumnMeta(0)["flags"]);
    });
    check("parameters by kind, $how", function () use ($db) {
        $q = $db->prepare("SELECT id FROM kinds ORDER BY id LIMIT :n OFFSET :o");
        $q->bindValue("n", 1, PDO::PARAM_INT);
        $q->bindValue("o", 0, PDO::PARAM_INT);
        $q->execute();
        same([1], $q->fetchAll(PDO::FETCH_COLUMN));
        $q = $db->prepare("SELECT ? + 1, CONCAT(?, ?), ? IS NULL, ? AND TRUE");
        foreach (
            [
                [1, 41, PDO::PARAM_INT],
                [2, "a", PDO::PARAM_STR],
                [3, "b", PDO::PARAM_LOB],
                [4, null, PDO::PARAM_NULL],
                [5, true, PDO::PARAM_BOOL],
            ]
            as [$i, $v, $t]
        ) {
            $q->bindValue($i, $v, $t);
        }
        $q->execute();
        same(
            [42, "ab", 1, 1],
            array_map(fn($x) => is_float($x) ? (int) $x : $x, $q->fetch(PDO::FETCH_NUM)),
        );
    });
    check("several results, $how", function () use ($db, $emulated) {
        if (!$emulated) {
            fails(1064, fn() => $db->prepare("SELECT 1; SELECT 2")->execute());
            return;
        }
        $q = $db->query("SELECT 1 AS a; SELECT 2 AS b UNION SELECT 3");
        same([["a" => 1]], $q->fetchAll());
        same(true, $q->nextRowset());
        same([["b" => 2], ["b" => 3]], $q->fetchAll());
    });
    check("upserts and counts, $how", function () use ($db) {
        $db->exec(
            "CREATE TABLE IF NOT EXISTS ups (id INT AUTO_INCREMENT PRIMARY KEY, k INT UNIQUE, v INT)",
        );
        $db->exec("TRUNCATE ups");
        same(2, $db->exec("INSERT INTO ups (k, v) VALUES (1, 1), (2, 2)"));
        same("1", $db->lastInsertId());
        $q = $db->prepare(
            "INSERT INTO ups (k, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE v = VALUES(v), id = LAST_INSERT_ID(id)",
        );
        $q->execute([2, 20]);
        same([2, "2"], [$q->rowCount(), $db->lastInsertId()]);
        $q->execute([3, 30]);
        same(1, $q->rowCount());
        same(0, $db->exec("UPDATE ups SET v = 20 WHERE k = 2"));
        same(2, $db->exec("REPLACE INTO ups (k, v) VALUES (1, 5)"));
        fails(1062, fn() => $db->exec("INSERT INTO ups (k) VALUES (1)"));
    });
    check("transactions, $how", function () use ($db) {
        $db->beginTransaction();
        $db->exec("DELETE FROM ups");
        same(true, $db->inTransaction());
        $db->rollBack();
        $db->beginTransaction();
        $db->exec("INSERT INTO ups (k) VALUES (100)");
        $db->exec("SAVEPOINT s");
        $db->exec("INSERT INTO ups (k) VALUES (101)");
        $db->exec("ROLLBACK TO SAVEPOINT s");
        $db->commit();
        same(
            [4, 1],
            [
                (int) $db->query("SELECT COUNT(*) FROM ups")->fetchColumn(),
                (int) $db->query("SELECT COUNT(*) FROM ups WHERE k >= 100")->fetchColumn(),
            ],
        );
        $db->beginTransaction();
        $db->exec("CREATE TABLE IF NOT EXISTS implicit (i INT)");
        same(false, $db->inTransaction());
    });
}
check("unbuffered, scrollable by key", function () {
    $db = connect([PDO::MYSQL_ATTR_USE_BUFFERED_QUERY => false]);
    $n = 0;
    foreach (
        $db->query(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i FROM n",
        )
        as $r
    ) {
        $n += $r["i"];
    }
    same(405450, $n);
    same(
        [1 => "x", 2 => "y"],
        $db->query("SELECT 1, 'x' UNION SELECT 2, 'y'")->fetchAll(PDO::FETCH_KEY_PAIR),
    );
});
check("found rows, initial command, compression, TLS", function () {
    $db = connect([
        PDO::MYSQL_ATTR_FOUND_ROWS => true,
        PDO::MYSQL_ATTR_INIT_COMMAND => "SET SESSION sql_mode = 'ANSI', time_zone = '+02:00'",
        PDO::MYSQL_ATTR_COMPRESS => true,
    ]);
    same(1, $db->exec("UPDATE ups SET v = 20 WHERE k = 2"));
    same("+02:00", $db->query('SELECT @@time_zone AS "z"')->fetchColumn());
    $tls = connect([PDO::MYSQL_ATTR_SSL_VERIFY_SERVER_CERT => false, PDO::MYSQL_ATTR_SSL_CA => ""]);
    same(1, (int) $tls->query("SELECT 1")->fetchColumn());
    same(true, version_compare($db->getAttribute(PDO::ATTR_SERVER_VERSION), "8.0", ">="));
    same(1, preg_match("/Uptime: \d+  Threads: \d+/", $db->getAttribute(PDO::ATTR_SERVER_INFO)));
});
check("errors", function () {
    $db = connect();
    fails(1146, fn() => $db->query("SELECT * FROM nosuch"));
    fails(1054, fn() => $db->query("SELECT nosuch FROM kinds"));
    fails(1064, fn() => $db->query("SELEKT"));
    fails(1264, fn() => $db->exec("INSERT INTO kinds (t) VALUES (128)"));
    fails(1406, fn() => $db->exec("INSERT INTO kinds (ch) VALUES ('12345678901')"));
    fails(3140, fn() => $db->exec("INSERT INTO kinds (js) VALUES ('{')"));
    fails(1265, fn() => $db->exec("INSERT INTO kinds (en) VALUES ('three')"));
});
exit($failed ? 1 : 0);
