"""Peewee over PyMySQL: models, playhouse.migrate, foreign keys, upserts, a pool, and pwiz's introspection.
The tables are created and dropped twice."""

import datetime as dt
import decimal
import threading
import uuid

import peewee as pw
from playhouse.migrate import MySQLMigrator, migrate
from playhouse.mysql_ext import JSONField, Match  # noqa: F401
from playhouse.pool import PooledMySQLDatabase
from playhouse.reflection import Introspector

import checks
from checks import check, equal, raises

database = PooledMySQLDatabase(
    checks.DATABASE,
    host=checks.HOST,
    port=checks.PORT,
    user=checks.USER,
    password=checks.PASSWORD,
    charset="utf8mb4",
    max_connections=8,
    stale_timeout=60,
    timeout=20,
)


class Model(pw.Model):
    class Meta:
        database = database


class Author(Model):
    name = pw.CharField(50, unique=True)


class Book(Model):
    author = pw.ForeignKeyField(Author, backref="books", on_delete="CASCADE")
    title = pw.CharField(100, index=True)
    price = pw.DecimalField(10, 2, default=0, constraints=[pw.Check("price >= 0")])
    data = JSONField(null=True)


class Loan(Model):
    book = pw.ForeignKeyField(Book, backref="loans", on_delete="RESTRICT")
    day = pw.DateField()

    class Meta:
        primary_key = pw.CompositeKey("book", "day")


class Types(Model):
    small = pw.SmallIntegerField()
    big = pw.BigIntegerField()
    exact = pw.DecimalField(40, 9, auto_round=False)
    double = pw.DoubleField()
    truth = pw.BooleanField()
    day = pw.DateField()
    moment = pw.DateTimeField()
    clock = pw.TimeField()
    key = pw.UUIDField()
    raw = pw.BlobField()
    text = pw.TextField()
    bits = pw.BitField(default=0)
    nothing = pw.IntegerField(null=True)


TABLES = [Author, Book, Loan, Types]


@check
def tables_up_and_down_twice():
    for _ in range(2):
        database.create_tables(TABLES, safe=False)
        database.create_tables(TABLES)
        equal(sorted(database.get_tables()), ["author", "book", "loan", "types"])
        database.drop_tables(TABLES)
        equal(database.get_tables(), [])
    database.create_tables(TABLES)


@check
def migrations_there_and_back():
    migrator = MySQLMigrator(database)
    for _ in range(2):
        migrate(
            migrator.add_column("author", "born", pw.DateField(null=True)),
            migrator.add_column("author", "age", pw.IntegerField(default=7)),
            migrator.add_index("author", ("born", "age"), False),
        )
        migrate(
            migrator.rename_column("author", "age", "years"),
            migrator.drop_not_null("author", "years"),
            migrator.alter_column_type("author", "years", pw.BigIntegerField(null=True)),
        )
        columns = {
            column.name: (column.data_type, column.null) for column in database.get_columns("author")
        }
        equal((columns["years"], columns["born"]), (("bigint", True), ("date", True)))
        migrate(migrator.rename_table("author", "writer"), migrator.rename_table("writer", "author"))
        migrate(
            migrator.drop_index("author", "author_born_age"),
            migrator.drop_column("author", "years"),
            migrator.drop_column("author", "born"),
        )
        equal([column.name for column in database.get_columns("author")], ["id", "name"])
        equal(database.get_foreign_keys("book")[0].dest_table, "author")


VALUES = dict(
    small=-32768,
    big=-(2**63),
    exact=decimal.Decimal("-12345678901234567890.123456789"),
    double=1.7976931348623157e308,
    truth=True,
    day=dt.date(1000, 1, 1),
    moment=dt.datetime(2024, 2, 29, 23, 59, 59),
    clock=dt.time(23, 59, 59),
    key=uuid.uuid4(),
    raw=bytes(range(256)),
    text="text with 😀 and ñ",
    bits=5,
    nothing=None,
)


@check
def types_round_trip():
    made = Types.create(**VALUES)
    found = Types.get(
        (Types.id == made.id)
        & (Types.key == VALUES["key"])
        & (Types.exact == VALUES["exact"])
        & (Types.moment == VALUES["moment"])
        & Types.nothing.is_null()
    )
    for name, value in VALUES.items():
        one = getattr(found, name)
        equal((name, bytes(one) if name == "raw" else one), (name, value))


@check
def rows_with_relations():
    for name, count in (("Ann", 3), ("Bob", 2), ("Cid", 0)):
        author = Author.create(name=name)
        (
            Book.insert_many(
                [
                    dict(author=author, title=f"{name} {n}", price=n, data={"n": n, "tags": ["a", n]})
                    for n in range(1, count + 1)
                ]
            ).execute()
            if count
            else None
        )
    equal(
        [
            (a.name, a.number)
            for a in Author.select(Author, pw.fn.COUNT(Book.id).alias("number"))
            .join(Book, pw.JOIN.LEFT_OUTER)
            .group_by(Author.id)
            .order_by(Author.name)
        ],
        [("Ann", 3), ("Bob", 2), ("Cid", 0)],
    )
    equal(
        [
            [b.title for b in a.books]
            for a in pw.prefetch(Author.select().order_by(Author.id), Book.select())
        ][1:],
        [["Bob 1", "Bob 2"], []],
    )
    books = Book.select(pw.SQL("1")).where(Book.author == Author.id)
    equal([a.name for a in Author.select().where(~pw.fn.EXISTS(books))], ["Cid"])
    equal([b.title for b in Book.select().order_by(Book.id).paginate(2, 2)], ["Ann 3", "Bob 1"])
    equal(Author.create(id=77, name="Eve").id, 77)
    equal(Author.get_by_id(77).delete_instance(), 1)


@check
def last_insert_id_of_given_values():
    equal(Author.insert(id=90, name="Fay").execute(), 90)
    equal(Author.insert(name="Gus").execute(), 91)
    equal(Author.delete().where(Author.id >= 90).execute(), 2)


@check
def json_filters():
    n = pw.fn.JSON_EXTRACT(Book.data, "$.n")
    equal([b.title for b in Book.select().where(n > 1).order_by(Book.id)], ["Ann 2", "Ann 3", "Bob 2"])
    equal(Book.select().where(Book.data.extract("$.tags[0]") == "a").count(), 5)
    equal(Book.get(Book.title == "Ann 1").data, {"n": 1, "tags": ["a", 1]})


@check
def upserts_and_their_counts():
    new = pw.fn.CONCAT(Author.name, "!")
    equal(Author.insert(name="Ann").on_conflict(update={Author.name: new}).as_rowcount().execute(), 2)
    equal(Author.insert(name="Zoe").on_conflict(update={Author.name: new}).as_rowcount().execute(), 1)
    equal(Author.insert(name="zoe").on_conflict_ignore().as_rowcount().execute(), 0)
    equal(Author.replace(name="Zoe").as_rowcount().execute(), 1 + 1)
    equal(Author.update(name="Ann").where(Author.name == "ann!").execute(), 1)
    equal(Author.delete().where(Author.name == "Zoe").execute(), 1)


@check
def windows_unions_and_recursion():
    rank = pw.fn.RANK().over(partition_by=[Book.author], order_by=[Book.price.desc()])
    equal(
        list(Book.select(Book.title, rank.alias("r")).order_by(Book.id).limit(2).tuples()),
        [("Ann 1", 3), ("Ann 2", 2)],
    )
    base = Book.select(pw.Value(1).alias("n")).limit(1).cte("numbers", recursive=True, columns=("n",))
    more = base.union_all(pw.Select([base], [base.c.n + 1]).where(base.c.n < 20))
    equal([row[0] for row in more.select_from(pw.fn.SUM(more.c.n)).tuples()], [210])
    names = (Author.select(Author.name) | Book.select(Book.title)).order_by(pw.SQL("1")).limit(3)
    equal([row[0] for row in names.tuples()], ["Ann", "Ann 1", "Ann 2"])


@check
def savepoints_and_rollback():
    with database.atomic() as outer:
        Author.create(name="X")
        with database.atomic() as inner:
            Author.create(name="Y")
            inner.rollback()
        equal(Author.select().where(Author.name << ["X", "Y"]).count(), 1)
        outer.rollback()
    equal(Author.select().where(Author.name << ["X", "Y"]).count(), 0)


@check
def cascade_restrict_and_checks():
    loan = Loan.create(book=Book.get(Book.title == "Bob 1"), day=dt.date(2024, 1, 1))
    raises(pw.IntegrityError, 1451, lambda: Author.delete().where(Author.name == "Bob").execute())
    raises(pw.IntegrityError, 1062, lambda: Loan.create(book=loan.book, day=loan.day))
    raises(pw.OperationalError, 3819, lambda: Book.update(price=-1).execute())
    equal(loan.delete_instance(), 1)
    equal(Author.get(Author.name == "Bob").delete_instance(), 1)
    equal(Book.select().count(), 3)


@check
def pool_with_threads():
    book = Book.get(Book.title == "Ann 1").id

    def work():
        with database.connection_context():
            for _ in range(10):
                with database.atomic():
                    one = Book.select().where(Book.id == book).for_update().get()
                    Book.update(price=one.price + 1).where(Book.id == book).execute()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(Book.get_by_id(book).price, decimal.Decimal(61))


@check
def introspection():
    models = Introspector.from_database(database).generate_models()
    equal(sorted(models), ["author", "book", "loan", "types"])
    equal(models["book"].author.rel_model, models["author"])
    equal(
        [type(field).__name__ for field in models["types"]._meta.sorted_fields][1:5],
        ["IntegerField", "BigIntegerField", "DecimalField", "FloatField"],
    )
    equal(models["author"].name.unique, True)


database.connect()
checks.run()
