<?php
// mysqli as WordPress and its kind use it: their SQL mode, zero dates, DESCRIBE, SHOW INDEX, ALTER TABLE as
// dbDelta writes it, SQL_CALC_FOUND_ROWS; prepared statements, several results, pings, asynchronous queries.
require __DIR__ . "/check.php";

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
function connect(): mysqli
{
    global $server;
    $db = mysqli_init();
    $db->real_connect(
        $server["host"],
        $server["user"],
        $server["password"],
        $server["database"],
        $server["port"],
        null,
        0,
    );
    return $db;
}
$db = connect();
$all = fn(string $sql) => $db->query($sql)->fetch_all(MYSQLI_ASSOC);
check("session as WordPress sets it", function () use ($db, $all) {
    $db->set_charset("utf8mb4");
    $db->query("SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'");
    $modes = explode(",", $all("SELECT @@SESSION.sql_mode AS m")[0]["m"]);
    $left = array_diff($modes, [
        "NO_ZERO_DATE",
        "ONLY_FULL_GROUP_BY",
        "STRICT_TRANS_TABLES",
        "STRICT_ALL_TABLES",
        "TRADITIONAL",
        "ANSI",
    ]);
    $db->query("SET SESSION sql_mode='" . implode(",", $left) . "'");
    same("utf8mb4_unicode_520_ci", $all("SHOW VARIABLES LIKE 'collation_connection'")[0]["Value"]);
});
check("tables of WordPress", function () use ($db, $all) {
    $c = "DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci";
    $db->query("CREATE TABLE wp_posts (ID bigint(20) unsigned NOT NULL auto_increment, post_author bigint(20) unsigned NOT NULL default '0',
      post_date datetime NOT NULL default '0000-00-00 00:00:00', post_date_gmt datetime NOT NULL default '0000-00-00 00:00:00', post_content longtext NOT NULL,
      post_title text NOT NULL, post_status varchar(20) NOT NULL default 'publish', post_name varchar(200) NOT NULL default '', post_parent bigint(20) unsigned NOT NULL default '0',
      post_type varchar(20) NOT NULL default 'post', comment_count bigint(20) NOT NULL default '0', PRIMARY KEY  (ID), KEY post_name (post_name(191)),
      KEY type_status_date (post_type,post_status,post_date,ID), KEY post_parent (post_parent), KEY post_author (post_author)) $c");
    $db->query("CREATE TABLE wp_postmeta (meta_id bigint(20) unsigned NOT NULL auto_increment, post_id bigint(20) unsigned NOT NULL default '0',
      meta_key varchar(255) default NULL, meta_value longtext, PRIMARY KEY  (meta_id), KEY post_id (post_id), KEY meta_key (meta_key(191))) $c");
    $db->query("CREATE TABLE wp_options (option_id bigint(20) unsigned NOT NULL auto_increment, option_name varchar(191) NOT NULL default '', option_value longtext NOT NULL,
      autoload varchar(20) NOT NULL default 'yes', PRIMARY KEY  (option_id), UNIQUE KEY option_name (option_name), KEY autoload (autoload)) $c");
    $d = array_column($all("DESCRIBE wp_posts;"), null, "Field");
    same(["bigint unsigned", "NO", "PRI", null, "auto_increment"], array_slice(array_values($d["ID"]), 1));
    same(["datetime", "NO", "", "0000-00-00 00:00:00", ""], array_slice(array_values($d["post_date"]), 1));
    $k = $all("SHOW INDEX FROM wp_posts;");
    same(
        ["PRIMARY" => 1, "post_name" => 1, "type_status_date" => 4, "post_parent" => 1, "post_author" => 1],
        array_count_values(array_column($k, "Key_name")),
    );
    same(
        [["0", "1", "post_name", "191"]],
        array_map(
            fn($r) => ["0", (string) $r["Non_unique"], $r["Column_name"], (string) $r["Sub_part"]],
            array_values(array_filter($k, fn($r) => $r["Key_name"] === "post_name")),
        ),
    );
    same(
        "utf8mb4_unicode_520_ci",
        array_column($all("SHOW FULL COLUMNS FROM `wp_posts`"), "Collation", "Field")["post_title"],
    );
    same(
        [["Tables_in_" . getenv("CLIENT_DATABASE") . " (wp\\_options)" => "wp_options"]],
        $all("SHOW TABLES LIKE 'wp\\_options'"),
    );
});
check("alterations as dbDelta writes them", function () use ($db, $all) {
    $db->query(
        "ALTER TABLE wp_posts CHANGE COLUMN `post_status` post_status varchar(25) NOT NULL default 'publish'",
    );
    $db->query("ALTER TABLE wp_posts ADD COLUMN post_mime_type varchar(100) NOT NULL default ''");
    $db->query(
        "ALTER TABLE wp_posts ADD KEY `mime` (`post_mime_type`(20))",
    );
    $db->query("ALTER TABLE wp_posts ALTER COLUMN `post_status` SET DEFAULT 'draft'");
    $db->query("ALTER TABLE wp_posts DROP INDEX mime");
    $db->query("ALTER TABLE wp_postmeta DROP INDEX meta_key, ADD INDEX meta_key(meta_key(150))");
    $db->query("ALTER TABLE wp_options CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci");
});
check("zero dates and lenient values", function () use ($db, $all) {
    $db->query(
        "INSERT INTO wp_posts (post_title, post_content, post_date) VALUES ('one', 'x', '0000-00-00 00:00:00'), ('two', 'y', '2024-02-31 10:00:00'), ('three', 'z', '2024-03-01 12:30:00')",
    );
    same(
        ["0000-00-00 00:00:00", "0000-00-00 00:00:00", "2024-03-01 12:30:00"],
        array_column($all("SELECT post_date FROM wp_posts ORDER BY ID"), "post_date"),
    );
    same(
        1,
        $db->query(
            "INSERT INTO wp_posts (post_title, post_content, post_name, post_parent) VALUES ('four', '', '" .
                str_repeat("n", 250) .
                "', '12abc')",
        )
            ? 1
            : 0,
    );
    same(
        ["200", "12"],
        array_values(
            $all("SELECT LENGTH(post_name) l, post_parent p FROM wp_posts WHERE post_title = 'four'")[0],
        ),
    );
    same(
        [["y" => "2024", "m" => "3", "n" => "1"]],
        $all(
            "SELECT YEAR(post_date) AS y, MONTH(post_date) AS m, count(ID) as n FROM wp_posts WHERE post_date > '0000-00-00 00:00:00' GROUP BY YEAR(post_date), MONTH(post_date) ORDER BY post_date DESC",
        ),
    );
});
check("options: upserts, LIKE with escapes", function () use ($db, $all) {
    $db->query(
        "INSERT INTO `wp_options` (`option_name`, `option_value`, `autoload`) VALUES ('_transient_a', 'v1', 'yes') ON DUPLICATE KEY UPDATE `option_name` = VALUES(`option_name`), `option_value` = VALUES(`option_value`), `autoload` = VALUES(`autoload`)",
    );
    $db->query(
        "INSERT INTO `wp_options` (`option_name`, `option_value`, `autoload`) VALUES ('_transient_a', 'v2', 'yes') ON DUPLICATE KEY UPDATE `option_name` = VALUES(`option_name`), `option_value` = VALUES(`option_value`), `autoload` = VALUES(`autoload`)",
    );
    same([2, 1], [$db->affected_rows, $db->insert_id]);
    $db->query(
        "INSERT IGNORE INTO `wp_options` ( `option_name`, `option_value`, `autoload` ) VALUES ('lock', '1', 'no') /* LOCK */",
    );
    same(
        [["option_value" => "v2"]],
        $all(
            "SELECT option_value FROM wp_options WHERE option_name LIKE '\\_transient\\_%' AND autoload IN ('yes') LIMIT 1",
        ),
    );
    $db->query(
        "DELETE a, b FROM wp_options a, wp_options b WHERE a.option_name LIKE '\\_transient\\_%' AND b.option_name = 'lock' AND b.option_value < 5",
    );
    same(2, $db->affected_rows);
});
check("found rows, meta queries", function () use ($db, $all) {
    $db->query(
        "INSERT INTO wp_postmeta (post_id, meta_key, meta_value) SELECT ID, 'price', ID * 10 FROM wp_posts",
    );
    $r = $all(
        "SELECT SQL_CALC_FOUND_ROWS  wp_posts.ID FROM wp_posts  INNER JOIN wp_postmeta ON ( wp_posts.ID = wp_postmeta.post_id ) WHERE 1=1  AND ( ( wp_postmeta.meta_key = 'price' AND CAST(wp_postmeta.meta_value AS SIGNED) >= '20' ) ) AND wp_posts.post_type = 'post' GROUP BY wp_posts.ID ORDER BY wp_postmeta.meta_value+0 DESC, wp_posts.post_date DESC LIMIT 0, 2",
    );
    same([["ID" => "4"], ["ID" => "3"]], $r);
    same([["FOUND_ROWS()" => "3"]], $all("SELECT FOUND_ROWS()"));
    same(
        [["ID" => "3"], ["ID" => "1"]],
        $all("SELECT ID FROM wp_posts WHERE ID IN (1,3) ORDER BY FIELD( wp_posts.ID, 3,1 )"),
    );
    same(
        "1",
        $all(
            "SELECT COUNT( * ) AS c FROM wp_posts WHERE post_title REGEXP '^t' AND post_title RLIKE 'ee$'",
        )[0]["c"],
    );
});
check("prepared statements", function () use ($db) {
    $q = $db->prepare(
        "SELECT ID, post_title, ? + 0.5 AS n FROM wp_posts WHERE ID > ? AND post_title <> ? ORDER BY ID",
    );
    [$a, $b, $c] = [1.5, 1, "three"];
    $q->bind_param("dis", $a, $b, $c);
    $q->execute();
    same(
        [["ID" => 2, "post_title" => "two", "n" => 2.0], ["ID" => 4, "post_title" => "four", "n" => 2.0]],
        $q->get_result()->fetch_all(MYSQLI_ASSOC),
    );
    $q = $db->prepare("INSERT INTO wp_postmeta (post_id, meta_key, meta_value) VALUES (1, ?, ?)");
    [$k, $null] = ["blob", null];
    $q->bind_param("sb", $k, $null);
    foreach (str_split(str_repeat("\0\xff", 50000), 30000) as $part) {
        $q->send_long_data(1, $part);
    }
    fails(1366, fn() => $db->query("SET sql_mode = 'STRICT_TRANS_TABLES'") && $q->execute());
    $db->query("ALTER TABLE wp_postmeta MODIFY meta_value LONGBLOB");
    foreach (str_split(str_repeat("\0\xff", 50000), 30000) as $part) {
        $q->send_long_data(1, $part);
    }
    $q->execute();
    same(
        100000,
        (int) $db
            ->query("SELECT LENGTH(meta_value) FROM wp_postmeta WHERE meta_key = 'blob'")
            ->fetch_row()[0],
    );
});
check("several results, asynchronous query, ping, thread", function () use ($db) {
    $db->multi_query("SELECT 1; SET @a = 2; SELECT @a; SELECT 3 UNION SELECT 4");
    $got = [];
    do {
        if ($r = $db->store_result()) {
            $got[] = $r->fetch_all();
        }
    } while ($db->more_results() && $db->next_result());
    same([[["1"]], [["2"]], [["3"], ["4"]]], $got);
    $other = connect();
    $other->query("SELECT SLEEP(0.1), 7", MYSQLI_ASYNC);
    $r = [$other];
    $e = [];
    $j = [];
    same(1, mysqli_poll($r, $e, $j, 5));
    same(["0", "7"], $other->reap_async_query()->fetch_row());
    same(true, $db->ping());
    same(false, $db->thread_id === $other->thread_id);
    $other->change_user(getenv("CLIENT_USER"), getenv("CLIENT_PASSWORD") ?: "", getenv("CLIENT_DATABASE"));
    same(true, $db->query("KILL " . $other->thread_id));
    fails(2006, fn() => $other->query("SELECT 1"));
});
check("fields of a result", function () use ($db) {
    $f = $db->query("SELECT ID, post_title AS t, post_date FROM wp_posts AS p")->fetch_fields();
    same(
        [
            ["ID", "ID", "p", "wp_posts", 8, 20],
            ["t", "post_title", "p", "wp_posts", 252, 262140],
            ["post_date", "post_date", "p", "wp_posts", 12, 19],
        ],
        array_map(fn($x) => [$x->name, $x->orgname, $x->table, $x->orgtable, $x->type, $x->length], $f),
    );
    same(
        [MYSQLI_NOT_NULL_FLAG | MYSQLI_PRI_KEY_FLAG | MYSQLI_UNSIGNED_FLAG | MYSQLI_AUTO_INCREMENT_FLAG],
        [$f[0]->flags & (1 | 2 | 32 | 512)],
    );
    same(1, (int) preg_match("/^\d+\.\d+/", $db->server_info));
});
exit($failed ? 1 : 0);
