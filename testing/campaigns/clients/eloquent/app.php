<?php
// Eloquent (Laravel's illuminate/database): the schema builder, models with relations, JSON columns, upserts,
// paging, windows through raw expressions, transactions with savepoints, locks.
require "/usr/share/php/Illuminate/Database/autoload.php";
require __DIR__ . "/check.php";

use Illuminate\Database\Capsule\Manager as DB;
use Illuminate\Database\Eloquent\{Model, SoftDeletes};
use Illuminate\Database\Schema\Blueprint;

$m = new DB();
$m->addConnection([
    "driver" => "mysql",
    "host" => $server["host"],
    "port" => $server["port"],
    "database" => $server["database"],
    "username" => $server["user"],
    "password" => $server["password"],
    "charset" => "utf8mb4",
    "collation" => "utf8mb4_unicode_ci",
    "prefix" => "",
    "strict" => true,
    "engine" => "InnoDB",
]);
$m->setAsGlobal();
$m->bootEloquent();
$s = DB::schema();
class Author extends Model
{
    use SoftDeletes;
    protected $guarded = [];
    protected $casts = ["meta" => "array", "active" => "boolean", "born" => "date"];
    public function books()
    {
        return $this->hasMany(Book::class);
    }
    public function tags()
    {
        return $this->morphToMany(Tag::class, "taggable");
    }
}
class Book extends Model
{
    protected $guarded = [];
    public $timestamps = false;
    public function author()
    {
        return $this->belongsTo(Author::class);
    }
}
class Tag extends Model
{
    protected $guarded = [];
    public $timestamps = false;
}
check("schema: create, alter, rename, drop twice", function () use ($s) {
    for ($i = 0; $i < 2; $i++) {
        $s->create("authors", function (Blueprint $t) {
            $t->id();
            $t->string("name", 80)->comment("it's");
            $t->string("email")->nullable()->unique();
            $t->enum("kind", ["a", "one"])->default("a");
            $t->set("flags", ["x", "y"])->nullable();
            $t->boolean("active")->default(true);
            $t->decimal("money", 12, 3)->default(0);
            $t->double("score")->nullable();
            $t->unsignedBigInteger("big")->nullable();
            $t->tinyInteger("tiny")->default(-1);
            $t->json("meta")->nullable();
            $t->date("born")->nullable();
            $t->dateTime("seen", 6)->nullable();
            $t->time("at", 3)->nullable();
            $t->year("y")->nullable();
            $t->uuid("uid")->nullable();
            $t->binary("raw")->nullable();
            $t->longText("bio")->nullable();
            $t->char("code", 4)->charset("latin1")->collation("latin1_bin")->nullable();
            $t->ipAddress("ip")->nullable();
            $t->string("upper_name")->storedAs("upper(`name`)");
            $t->integer("virt")->virtualAs("`tiny` + 1")->nullable();
            $t->timestamp("stamp")->useCurrent()->useCurrentOnUpdate();
            $t->timestamps();
            $t->softDeletes();
            $t->index(["name", "born"]);
            $t->rawIndex("`name`(10)", "prefix");
        });
        $s->create("books", function (Blueprint $t) {
            $t->bigIncrements("id");
            $t->foreignId("author_id")->constrained()->cascadeOnDelete();
            $t->string("title");
            $t->integer("views")->default(0);
            $t->unique(["author_id", "title"]);
        });
        $s->create("tags", function (Blueprint $t) {
            $t->increments("id");
            $t->string("label", 40)->unique();
        });
        $s->create("taggables", function (Blueprint $t) {
            $t->unsignedInteger("tag_id");
            $t->morphs("taggable");
            $t->foreign("tag_id")->references("id")->on("tags")->onDelete("restrict")->onUpdate("cascade");
            $t->primary(["tag_id", "taggable_id", "taggable_type"]);
        });
        $s->table("books", function (Blueprint $t) {
            $t->integer("pages")->unsigned()->default(1)->after("title");
            $t->string("isbn", 13)->nullable()->first();
            $t->index("pages");
        });
        $s->table("books", function (Blueprint $t) {
            $t->dropIndex(["pages"]);
            $t->dropColumn(["pages", "isbn"]);
            $t->renameIndex("books_author_id_title_unique", "once");
        });
        same(
            ["author_id", "id", "title", "views"],
            (function ($n) {
                sort($n);
                return $n;
            })($s->getColumnListing("books")),
        );
        same(
            [true, false, true],
            [$s->hasTable("books"), $s->hasTable("nope"), $s->hasColumns("authors", ["name", "virt"])],
        );
        $s->rename("tags", "labels");
        $s->rename("labels", "tags");
        if ($i === 0) {
            $s->dropAllTables();
            same([], $s->getAllTables());
        }
    }
});
check("types", function () {
    $row = [
        "name" => "Ann \u{1f980}",
        "email" => "ann@x",
        "kind" => "one",
        "flags" => "x,y",
        "active" => false,
        "money" => "123456789.125",
        "score" => 0.1,
        "big" => "18446744073709551615",
        "tiny" => -128,
        "meta" => ["a" => ["b" => [1, "é"]], "n" => null, "on" => true],
        "seen" => "2024-02-29 01:02:03.456789",
        "at" => "10:11:12.345",
        "y" => 2024,
        "uid" => str_repeat("a", 36),
        "raw" => "\0\xff'",
        "bio" => str_repeat("\u{1f980}", 20000),
        "code" => "abc",
        "ip" => "::1",
    ];
    $a = Author::create($row + ["born" => "2000-02-29"])->fresh();
    foreach ($row as $k => $v) {
        same(is_int($v) && $k === "y" ? (string) $v : $v, $k === "y" ? (string) $a->$k : $a->$k, $k);
    }
    same(["2000-02-29", "ANN \u{1f980}", -127], [$a->born->format("Y-m-d"), $a->upper_name, $a->virt]);
});
check("inserts, upserts", function () {
    Author::insert(
        array_map(
            fn($i) => [
                "name" => "u$i",
                "email" => "u$i@x",
                "meta" => json_encode(["i" => $i, "tags" => ["t", $i]]),
            ],
            range(0, 4),
        ),
    );
    same(0, Author::insertOrIgnore([["name" => "no", "email" => "u1@x"]]));
    same(
        3,
        Author::upsert(
            [["name" => "changed", "email" => "u1@x"], ["name" => "new", "email" => "u9@x"]],
            ["email"],
            ["name"],
        ),
    );
    same(
        ["changed", 8],
        [
            Author::firstWhere("email", "u1@x")->name,
            Author::updateOrCreate(["email" => "u10@x"], ["name" => "u10"])->wasRecentlyCreated
                ? Author::count()
                : 0,
        ],
    );
    same(1, DB::table("authors")->updateOrInsert(["email" => "u2@x"], ["tiny" => 5]) ? 1 : 0);
    DB::table("authors")->insertUsing(
        ["name", "email"],
        DB::table("authors")->selectRaw("concat(name, '2'), null")->where("tiny", 5),
    );
    same(9, Author::count());
    fails(1062, fn() => Author::create(["name" => "d", "email" => "u1@x"]));
});
check("relations", function () {
    $tags = collect(["x", "y"])->map(fn($l) => Tag::create(["label" => $l])->id);
    foreach (Author::orderBy("id")->limit(3)->get() as $a) {
        $a->books()->createMany(array_map(fn($v) => ["title" => "p$v", "views" => $v], [0, 1, 2]));
        $a->tags()->sync($tags);
    }
    $r = Author::with(["books" => fn($q) => $q->where("views", ">", 0)->orderByDesc("views"), "tags"])
        ->withCount(["books", "books as big" => fn($q) => $q->where("views", 2)])
        ->withSum("books", "views")
        ->withExists("books")
        ->whereHas("books", fn($q) => $q->where("views", 2))
        ->orderByDesc("id")
        ->forPage(1, 2)
        ->get();
    same(
        [2, 2, [2, 1], 3, 1, "3", 2],
        [
            $r->count(),
            $r->count(),
            $r[0]->books->pluck("views")->all(),
            $r[0]->books_count,
            $r[0]->big,
            $r[0]->books_sum_views,
            $r[0]->tags->count(),
        ],
    );
    same([6, 3], [Author::doesntHave("books")->count(), Author::has("books", ">=", 3)->count()]);
    same(
        2,
        Author::whereHas("tags", null, "=", 2)
            ->first()
            ->tags()
            ->wherePivot("taggable_type", Author::class)
            ->count(),
    );
});
check("JSON", function () {
    same(
        [1, 1, 5, 1],
        [
            Author::whereRaw("json_extract(meta, '$.a.b[1]') = 'é'")->count(),
            Author::where("meta->on", true)->count(),
            Author::whereJsonContains("meta->tags", "t")->count(),
            Author::whereJsonContains("meta->tags", 3)->count(),
        ],
    );
    same(
        [5, 2, 1],
        [
            Author::whereJsonLength("meta->tags", 2)->count(),
            Author::where("meta->i", ">=", 3)->count(),
            Author::whereNull("meta->n")->where("id", 1)->count(),
        ],
    );
    same(1, Author::where("id", 1)->update(["meta->a->c" => "new", "meta->on" => false]));
    same(["b" => [1, "é"], "c" => "new"], Author::find(1)->meta["a"]);
    same(4, Author::orderByDesc("meta->i")->whereNotNull("meta->i")->first()->meta["i"]);
});
check("query builder", function () {
    same(
        [3, 3, 3],
        DB::table("books")
            ->join(
                "authors",
                fn($j) => $j->on("authors.id", "=", "books.author_id")->whereNull("deleted_at"),
            )
            ->groupBy("authors.id")
            ->havingRaw("count(*) > ?", [2])
            ->orderBy("authors.id")
            ->selectRaw("count(*) as n")
            ->pluck("n")
            ->all(),
    );
    same(
        [2, 2, 2],
        DB::query()
            ->fromSub(
                DB::table("books")
                    ->select("*")
                    ->selectRaw("row_number() over (partition by author_id order by views desc) as rn"),
                "w",
            )
            ->where("rn", 1)
            ->pluck("views")
            ->all(),
    );
    same(
        2,
        DB::table("books")
            ->select("views")
            ->union(DB::table("books")->selectRaw("7"))
            ->orderByDesc("views")
            ->limit(2)
            ->get()
            ->count(),
    );
    same(
        [2, 1],
        [
            DB::table("authors")
                ->whereRowValues(["tiny", "kind"], "=", [-1, "a"])
                ->whereDate("stamp", ">", "2000-01-01")
                ->whereYear("stamp", ">", 2000)
                ->whereTime("stamp", ">=", "00:00")
                ->whereBetween("id", [2, 4])
                ->count(),
            DB::table("authors")->where("name", "regexp", "^ann")->count(),
        ],
    );
    same(
        3,
        DB::table("books")
            ->leftJoinSub(DB::table("authors")->select("id as aid"), "x", "x.aid", "books.author_id")
            ->whereColumn("views", "<", "author_id")
            ->where("views", 2)
            ->orWhere(
                fn($q) => $q
                    ->whereIn("books.id", [1])
                    ->whereExists(fn($e) => $e->from("tags")->whereColumn("tags.id", "books.id")),
            )
            ->count() + 1,
    );
    same(
        3,
        DB::table("books")
            ->where("views", 0)
            ->orderBy("id")
            ->limit(3)
            ->update(["views" => DB::raw("views + 10")]),
    );
    same(
        1,
        DB::table("books")
            ->join("authors", "authors.id", "=", "books.author_id")
            ->where("authors.id", 1)
            ->where("views", 10)
            ->update(["books.views" => 0, "authors.tiny" => 3]) > 0
            ? 1
            : 0,
    );
    same(1, DB::table("books")->where("views", 2)->orderByDesc("id")->limit(1)->delete());
    same(8, Book::query()->chunkById(3, fn($c) => true) ? Book::lazy()->count() : 0);
    same(8, iterator_count(Book::cursor()->getIterator()));
});
check("transactions, savepoints, locks", function () {
    DB::transaction(function () {
        Tag::create(["label" => "outer"]);
        try {
            DB::transaction(function () {
                Tag::create(["label" => "inner"]);
                throw new Exception("in");
            });
        } catch (Exception $e) {
            same("in", $e->getMessage());
        }
        same(1, Author::lockForUpdate()->where("id", 1)->get()->count());
        same(1, Author::sharedLock()->where("id", 1)->get()->count());
    }, 3);
    same(["outer", "x", "y"], Tag::orderBy("label")->pluck("label")->all());
});
check("soft delete, cascade, restrict, truncate", function () use ($s) {
    Author::find(3)->delete();
    same([8, 9], [Author::count(), Author::withTrashed()->count()]);
    Author::withTrashed()->find(3)->restore();
    Author::find(2)->forceDelete();
    same(0, Book::where("author_id", 2)->count());
    fails(1451, fn() => Tag::where("label", "x")->delete());
    $s->disableForeignKeyConstraints();
    Tag::truncate();
    $s->enableForeignKeyConstraints();
    same(0, Tag::count());
});
exit($failed ? 1 : 0);
