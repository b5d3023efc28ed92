<?php
// Doctrine: schema tool (the second update is empty), comparison of introspected tables, entities with relations,
// DQL, paging, locks, savepoints, the query builder of DBAL.
require "/usr/share/php/Doctrine/Common/autoload.php";
require "/usr/share/php/Doctrine/ORM/autoload.php";
require "/usr/share/php/Symfony/Component/Cache/autoload.php";
require __DIR__ . "/check.php";

use Doctrine\DBAL\{DriverManager, LockMode, ParameterType, ArrayParameterType};
use Doctrine\DBAL\Schema\Schema;
use Doctrine\ORM\{EntityManager, ORMSetup, Mapping as ORM};
use Doctrine\ORM\Tools\{SchemaTool, Pagination\Paginator};

#[
    ORM\Entity,
    ORM\Table(name: "users", options: ["comment" => "user's table"]),
    ORM\Index(name: "by_name", columns: ["name", "born"]),
    ORM\UniqueConstraint(name: "one_email", columns: ["email"]),
]
class User
{
    #[ORM\Id, ORM\Column(type: "integer", options: ["unsigned" => true]), ORM\GeneratedValue]
    public ?int $id = null;
    #[ORM\Column(type: "string", length: 80, options: ["comment" => "it's"])]
    public string $name = "";
    #[ORM\Column(type: "string", length: 120, nullable: true)]
    public ?string $email = null;
    #[ORM\Column(type: "boolean")]
    public bool $active = true;
    #[ORM\Column(type: "decimal", precision: 12, scale: 3, options: ["default" => "0.000"])]
    public string $money = "0.000";
    #[ORM\Column(type: "float", nullable: true)]
    public ?float $score = null;
    #[ORM\Column(type: "smallint", options: ["default" => -1])]
    public int $small = -1;
    #[ORM\Column(type: "bigint", nullable: true, options: ["unsigned" => true])]
    public ?string $big = null;
    #[ORM\Column(type: "json", nullable: true)]
    public ?array $meta = null;
    #[ORM\Column(type: "simple_array", nullable: true)]
    public ?array $list = null;
    #[ORM\Column(type: "date_immutable", nullable: true)]
    public ?DateTimeImmutable $born = null;
    #[ORM\Column(type: "datetime_immutable", nullable: true)]
    public ?DateTimeImmutable $seen = null;
    #[ORM\Column(type: "time_immutable", nullable: true)]
    public ?DateTimeImmutable $at = null;
    #[ORM\Column(type: "guid", nullable: true)]
    public ?string $uid = null;
    #[ORM\Column(type: "binary", length: 16, nullable: true)]
    public $raw = null;
    #[ORM\Column(type: "blob", nullable: true)]
    public $data = null;
    #[ORM\Column(type: "text", nullable: true)]
    public ?string $bio = null;
    #[ORM\Column(type: "string", length: 5, options: ["fixed" => true, "default" => "o'ne"])]
    public string $code = "o'ne";
    #[ORM\Version, ORM\Column(type: "integer")]
    public int $version = 1;
    #[ORM\Embedded(class: Address::class)]
    public Address $home;
    #[ORM\OneToMany(targetEntity: Post::class, mappedBy: "author", cascade: ["persist"])]
    public $posts;
    public function __construct(string $name)
    {
        $this->name = $name;
        $this->home = new Address();
        $this->posts = new Doctrine\Common\Collections\ArrayCollection();
    }
}
#[ORM\Embeddable]
class Address
{
    #[ORM\Column(type: "string", nullable: true)]
    public ?string $street = null;
}
#[
    ORM\Entity,
    ORM\Table(name: "posts"),
    ORM\InheritanceType("JOINED"),
    ORM\DiscriminatorColumn(name: "kind", type: "string", length: 10),
    ORM\DiscriminatorMap(["post" => Post::class, "video" => Video::class]),
]
class Post
{
    #[ORM\Id, ORM\Column(type: "integer"), ORM\GeneratedValue]
    public ?int $id = null;
    #[ORM\Column(type: "string", length: 100)]
    public string $title = "";
    #[ORM\Column(type: "integer")]
    public int $views = 0;
    #[ORM\ManyToOne(inversedBy: "posts"), ORM\JoinColumn(nullable: false, onDelete: "CASCADE")]
    public User $author;
    #[
        ORM\ManyToMany(targetEntity: Label::class, cascade: ["persist"]),
        ORM\JoinTable(name: "post_labels"),
        ORM\InverseJoinColumn(name: "label_name", referencedColumnName: "name"),
    ]
    public $labels;
    public function __construct(User $author, string $title, int $views)
    {
        [$this->author, $this->title, $this->views] = [$author, $title, $views];
        $this->labels = new Doctrine\Common\Collections\ArrayCollection();
    }
}
#[ORM\Entity, ORM\Table(name: "videos")]
class Video extends Post
{
    #[ORM\Column(type: "integer", nullable: true)]
    public ?int $length = null;
}
#[ORM\Entity, ORM\Table(name: "labels")]
class Label
{
    #[ORM\Id, ORM\Column(type: "string", length: 40)]
    public string $name;
    public function __construct(string $n)
    {
        $this->name = $n;
    }
}

$db = DriverManager::getConnection([
    "driver" => getenv("CLIENT_DRIVER") ?: "pdo_mysql",
    "host" => $server["host"],
    "port" => $server["port"],
    "user" => $server["user"],
    "password" => $server["password"],
    "dbname" => $server["database"],
    "charset" => "utf8mb4",
]);
$config = ORMSetup::createAttributeMetadataConfiguration(
    [__DIR__],
    true,
    sys_get_temp_dir(),
    new Symfony\Component\Cache\Adapter\ArrayAdapter(),
);
$em = new EntityManager($db, $config);
$classes = array_map(fn($c) => $em->getClassMetadata($c), [
    User::class,
    Post::class,
    Video::class,
    Label::class,
]);
$tool = new SchemaTool($em);
check("schema: create, the second update is empty, drop, create", function () use ($tool, $classes) {
    $tool->createSchema($classes);
    same([], $tool->getUpdateSchemaSql($classes));
    $tool->dropSchema($classes);
    $tool->updateSchema($classes);
    same([], $tool->getUpdateSchemaSql($classes));
});
check("introspection and alterations", function () use ($db) {
    $manager = $db->createSchemaManager();
    $from = new Schema();
    $t = $from->createTable("alt");
    $t->addColumn("id", "integer", ["autoincrement" => true]);
    $t->addColumn("a", "string", ["length" => 20, "notnull" => false, "default" => "x", "comment" => "c"]);
    $t->addColumn("d", "datetime", ["default" => "CURRENT_TIMESTAMP"]);
    $t->addColumn("l", "text", [
        "length" => 70000,
        "notnull" => false,
        "platformOptions" => ["collation" => "utf8mb4_bin"],
    ]);
    $t->setPrimaryKey(["id"]);
    $t->addIndex(["a"], "ia", [], ["lengths" => [5]]);
    foreach ($from->toSql($db->getDatabasePlatform()) as $sql) {
        $db->executeStatement($sql);
    }
    same(
        true,
        $manager->createComparator()->compareTables($manager->introspectTable("alt"), $t)->isEmpty(),
    );
    $u = clone $t;
    $u->changeColumn("a", ["length" => 30, "notnull" => true, "default" => "o'ne"]);
    $u->addColumn("n", "integer", ["unsigned" => true, "default" => 5]);
    $u->dropColumn("l");
    $u->dropIndex("ia");
    $u->addUniqueIndex(["n", "a"], "una");
    $u->addForeignKeyConstraint(
        "users",
        ["n"],
        ["id"],
        ["onDelete" => "RESTRICT", "onUpdate" => "CASCADE"],
        "fk_alt",
    );
    foreach (
        $db->getDatabasePlatform()->getAlterTableSQL($manager->createComparator()->compareTables($t, $u))
        as $sql
    ) {
        $db->executeStatement($sql);
    }
    same(
        true,
        $manager->createComparator()->compareTables($manager->introspectTable("alt"), $u)->isEmpty(),
    );
    same(
        ["fk_alt", ["n"], "users", ["id"], "RESTRICT", "CASCADE"],
        (fn($f) => [
            $f->getName(),
            $f->getLocalColumns(),
            $f->getForeignTableName(),
            $f->getForeignColumns(),
            $f->getOption("onDelete") ?? "RESTRICT",
            $f->getOption("onUpdate"),
        ])(array_values($manager->listTableForeignKeys("alt"))[0]),
    );
    $db->executeStatement("CREATE VIEW va AS SELECT id, a FROM alt");
    same(1, count($manager->listViews()));
    same(true, in_array($db->getDatabase(), $manager->listDatabases(), true));
    $manager->dropView("va");
    $manager->dropTable("alt");
    same(
        ["labels", "post_labels", "posts", "users", "videos"],
        (function ($n) {
            sort($n);
            return $n;
        })($manager->listTableNames()),
    );
});
check("types", function () use ($em) {
    $u = new User("Ann \u{1f980}");
    [$u->email, $u->active, $u->money, $u->score, $u->small, $u->big, $u->meta, $u->list] = [
        "ann@x",
        false,
        "123456789.125",
        0.1,
        -32768,
        "18446744073709551615",
        ["a" => [1, ["b" => "é"]], "n" => null],
        ["x", "y"],
    ];
    [$u->born, $u->seen, $u->at, $u->uid, $u->raw, $u->data, $u->bio] = [
        new DateTimeImmutable("2000-02-29"),
        new DateTimeImmutable("2024-02-29 01:02:03"),
        new DateTimeImmutable("10:11:12"),
        str_repeat("a", 36),
        "\0\xff",
        str_repeat("\1", 70000),
        str_repeat("x", 60000),
    ];
    $u->home->street = "Main";
    $em->persist($u);
    $em->flush();
    $em->clear();
    $r = $em->find(User::class, $u->id);
    same(
        [
            "Ann \u{1f980}",
            false,
            "123456789.125",
            0.1,
            -32768,
            "18446744073709551615",
            ["a" => [1, ["b" => "é"]], "n" => null],
            ["x", "y"],
            "2000-02-29",
            "2024-02-29 01:02:03",
            "10:11:12",
            "o'ne",
            "Main",
            1,
        ],
        [
            $r->name,
            $r->active,
            $r->money,
            $r->score,
            $r->small,
            $r->big,
            $r->meta,
            $r->list,
            $r->born->format("Y-m-d"),
            $r->seen->format("Y-m-d H:i:s"),
            $r->at->format("H:i:s"),
            $r->code,
            $r->home->street,
            $r->version,
        ],
    );
    same(
        [70000, 60000, "\0\xff"],
        [
            strlen(stream_get_contents($r->data)),
            strlen($r->bio),
            is_resource($r->raw) ? stream_get_contents($r->raw) : $r->raw,
        ],
    );
});
check("relations, DQL, paging", function () use ($em) {
    $labels = ["x" => new Label("x"), "y" => new Label("y")];
    foreach (["Bob", "Cid", "Dan"] as $n) {
        $em->persist($u = new User($n));
        foreach ([0, 1, 2] as $v) {
            $p = $v === 2 ? new Video($u, "p$v", $v) : new Post($u, "p$v", $v);
            foreach ($labels as $l) {
                $p->labels->add($l);
            }
            $em->persist($p);
        }
    }
    $em->flush();
    $em->clear();
    $q = $em
        ->createQuery(
            "SELECT u, p, l FROM User u JOIN u.posts p JOIN p.labels l WHERE p.views > 0 ORDER BY u.id DESC, p.views DESC",
        )
        ->setFirstResult(1)
        ->setMaxResults(2);
    $page = new Paginator($q, true);
    same([3, ["Cid", "Bob"]], [count($page), array_map(fn($u) => $u->name, iterator_to_array($page))]);
    same(
        [
            ["n" => "Bob", "c" => 3, "s" => "3"],
            ["n" => "Cid", "c" => 3, "s" => "3"],
            ["n" => "Dan", "c" => 3, "s" => "3"],
        ],
        $em
            ->createQuery(
                "SELECT u.name n, COUNT(p) c, SUM(p.views) s FROM User u JOIN u.posts p GROUP BY u.id, u.name HAVING COUNT(p) > 2 ORDER BY n",
            )
            ->getArrayResult(),
    );
    same(
        1,
        count(
            $em
                ->createQuery(
                    "SELECT u FROM User u WHERE u.posts IS EMPTY AND NOT EXISTS (SELECT p FROM Post p WHERE p.author = u)",
                )
                ->getResult(),
        ),
    );
    same(
        3,
        (int) $em
            ->createQuery(
                "SELECT COUNT(DISTINCT v.author) FROM Video v WHERE v INSTANCE OF Video AND v.author IN (SELECT u FROM User u WHERE u.name LIKE :n)",
            )
            ->setParameter("n", "%")
            ->getSingleScalarResult(),
    );
    same(
        [["d" => "2000-03-05", "m" => "BOB", "x" => "Bob!", "l" => 3]],
        $em
            ->createQuery(
                "SELECT DATE_ADD('2000-02-29', 5, 'DAY') d, UPPER(u.name) m, CONCAT(u.name, '!') x, LENGTH(u.name) l FROM User u WHERE u.name = 'Bob' AND MOD(u.id, 2) = 0 AND SUBSTRING(u.name, 1, 1) = 'B'",
            )
            ->getArrayResult(),
    );
    same(9, $em->createQuery("UPDATE Post p SET p.views = p.views + 10 WHERE p.views < 10")->execute());
    same(3, $em->createQuery("DELETE Video v WHERE v.views = 12")->execute());
});
check("locks, versions", function () use ($em) {
    $u = $em->find(User::class, 2);
    $u->small = 5;
    $em->flush();
    same(2, $u->version);
    $em->wrapInTransaction(function () use ($em, $u) {
        $em->lock($u, LockMode::PESSIMISTIC_WRITE);
        $em->lock($u, LockMode::PESSIMISTIC_READ);
        same(
            1,
            count(
                $em
                    ->createQuery("SELECT u FROM User u WHERE u.id = 2")
                    ->setLockMode(LockMode::PESSIMISTIC_WRITE)
                    ->getResult(),
            ),
        );
    });
    try {
        $em->lock($u, LockMode::OPTIMISTIC, 1);
        throw new Exception("lock of an old version");
    } catch (Doctrine\ORM\OptimisticLockException) {
    }
});
check("transactions with savepoints, errors", function () use ($db) {
    $db->setNestTransactionsWithSavepoints(true);
    $db->beginTransaction();
    $db->insert("labels", ["name" => "outer"]);
    $db->beginTransaction();
    $db->insert("labels", ["name" => "inner"]);
    $db->rollBack();
    $db->commit();
    same(["outer", "x", "y"], $db->fetchFirstColumn("SELECT name FROM labels ORDER BY name"));
    foreach (
        [
            ["INSERT INTO labels VALUES (?)", ["x"], "UniqueConstraintViolationException"],
            ["DELETE FROM labels WHERE name = ?", ["x"], "ForeignKeyConstraintViolationException"],
            ['INSERT INTO post_labels VALUES (?, \'x\')', [999], "ForeignKeyConstraintViolationException"],
            ["INSERT INTO labels VALUES (?)", [null], "NotNullConstraintViolationException"],
            ["SELECT ? FROM nosuch", [1], "TableNotFoundException"],
            ["SELECT nosuch, ? FROM labels", [1], "InvalidFieldNameException"],
            ["SELECT name, ? FROM labels, labels l2", [1], "NonUniqueFieldNameException"],
            ["SELEKT ?", [1], "SyntaxErrorException"],
            ["CREATE TABLE labels (i INT)", [], "TableExistsException"],
        ]
        as [$sql, $p, $class]
    ) {
        try {
            $db->executeStatement($sql, $p);
            same("", $class, $sql);
        } catch (Doctrine\DBAL\Exception $e) {
            same($class, (new ReflectionClass($e))->getShortName(), $sql);
        }
    }
});
check("query builder, lists, cascade", function () use ($db) {
    $q = $db
        ->createQueryBuilder()
        ->select("u.name", "COUNT(p.id) AS n")
        ->from("users", "u")
        ->leftJoin("u", "posts", "p", "p.author_id = u.id")
        ->where("u.id IN (:ids)")
        ->groupBy("u.id")
        ->orderBy("u.id")
        ->setMaxResults(2)
        ->setParameter("ids", [1, 2, 3], ArrayParameterType::INTEGER);
    same(
        [["name" => "Ann \u{1f980}", "n" => 0], ["name" => "Bob", "n" => 2]],
        $q->executeQuery()->fetchAllAssociative(),
    );
    same(1, $db->delete("users", ["id" => 2]));
    same(0, (int) $db->fetchOne("SELECT COUNT(*) FROM posts WHERE author_id = 2"));
    same(3, iterator_count($db->iterateAssociative("SELECT * FROM users")));
});
exit($failed ? 1 : 0);
