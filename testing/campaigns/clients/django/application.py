"""Django's ORM over PyMySQL: makemigrations and migrate, up and down twice, then queries.
The second makemigrations must find nothing to do."""

import concurrent.futures
import datetime as dt
import decimal
import io
import os
import shutil
import uuid

import pymysql

pymysql.version_info = (2, 2, 1, "final", 0)
pymysql.install_as_MySQLdb()

import django  # noqa: E402
from django.conf import settings  # noqa: E402

import checks  # noqa: E402
from checks import check, equal, raises  # noqa: E402

settings.configure(
    INSTALLED_APPS=[
        "django.contrib.contenttypes",
        "django.contrib.auth",
        "django.contrib.sessions",
        "library",
    ],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
    SECRET_KEY="none",
    DATABASES={
        "default": dict(
            ENGINE="django.db.backends.mysql",
            NAME=checks.DATABASE,
            HOST=checks.HOST,
            PORT=checks.PORT,
            USER=checks.USER,
            PASSWORD=checks.PASSWORD,
        )
    },
)
shutil.rmtree("library/migrations", ignore_errors=True)
os.mkdir("library/migrations")
open("library/migrations/__init__.py", "w").close()
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, OperationalError, connection, transaction  # noqa: E402
from django.db.models import Avg, Count, Exists, F, OuterRef, Prefetch, Q, Sum, Window  # noqa: E402
from django.db.models.functions import Lower, Rank, TruncYear  # noqa: E402
from library.models import Author, Book, Genre, Types  # noqa: E402


def manage(*arguments, **options):
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=out, verbosity=1, **options)
    return out.getvalue()


@check
def migrations_up_and_down_twice():
    manage("makemigrations", "library")
    for _ in range(2):
        manage("migrate")
        equal("No changes" in manage("makemigrations", "library", dry_run=True), True)
        equal("No migrations to apply" in manage("migrate"), True)
        for application in ("library", "sessions", "auth", "contenttypes"):
            manage("migrate", application, "zero")
        equal(connection.introspection.table_names(), ["django_migrations"])
    manage("migrate")
    equal(len(connection.introspection.table_names()), 14)


VALUES = dict(
    small=-32768,
    big=-(2**63),
    exact=decimal.Decimal("-12345678901234567890.123456789"),
    double=1e308,
    truth=True,
    day=dt.date(9999, 12, 31),
    moment=dt.datetime(2024, 2, 29, 23, 59, 59, 999999, dt.timezone.utc),
    clock=dt.time(23, 59, 59, 999999),
    span=dt.timedelta(days=-3, microseconds=7),
    key=uuid.uuid4(),
    raw=bytes(range(256)),
    text="text with 😀 and ñ" * 50,
    address="2001:db8::1",
    nothing=None,
)


@check
def types_round_trip():
    Types.objects.create(**VALUES)
    found = Types.objects.get(
        key=VALUES["key"],
        exact=VALUES["exact"],
        moment=VALUES["moment"],
        span=VALUES["span"],
        nothing__isnull=True,
    )
    for name, value in VALUES.items():
        equal((name, getattr(found, name)), (name, value))
    equal(
        Types.objects.annotate(year=TruncYear("day")).values_list("year", flat=True)[0], dt.date(9999, 1, 1)
    )


@check
def objects_with_given_keys_keep_them():
    equal(Author.objects.create(id=70, name="Eve").pk, 70)
    equal(Author.objects.create(name="Fay").pk, 71)
    equal(Author.objects.filter(id__gte=70).delete()[0], 2)


@check
def relations():
    genres = Genre.objects.bulk_create([Genre(name="crime"), Genre(name="poetry")])
    genres = list(Genre.objects.order_by("name"))
    for name, count in (("Ann", 3), ("Bob", 2), ("Cid", 0)):
        author = Author.objects.create(name=name)
        for n in range(1, count + 1):
            book = author.books.create(
                title=f"{name} {n}",
                price=decimal.Decimal(n) + decimal.Decimal("0.5"),
                data={"n": n, "tags": ["a", {"é": None}], "on": n % 2 == 0, "none": None},
            )
            book.genres.set(genres[:n])
    equal(list(Book.objects.order_by("id").values_list("doubled", flat=True)[:2]), [3, 5])
    authors = Author.objects.order_by("name").prefetch_related(
        Prefetch("books", Book.objects.order_by("id").prefetch_related("genres"))
    )
    equal(
        [(a.name, [[g.name for g in b.genres.all()] for b in a.books.all()]) for a in authors][1:],
        [("Bob", [["crime"], ["crime", "poetry"]]), ("Cid", [])],
    )
    equal(
        [(b.author.name, b.title) for b in Book.objects.select_related("author").order_by("-id")[1:3]],
        [("Bob", "Bob 1"), ("Ann", "Ann 3")],
    )


@check
def aggregates_subqueries_and_windows():
    equal(
        list(
            Author.objects.annotate(n=Count("books"), s=Sum("books__price"))
            .order_by("-n", "name")
            .values_list("name", "n", "s")
        ),
        [("Ann", 3, decimal.Decimal("7.50")), ("Bob", 2, decimal.Decimal("4.00")), ("Cid", 0, None)],
    )
    books = Book.objects.filter(author=OuterRef("pk"))
    equal(list(Author.objects.filter(~Exists(books)).values_list("name", flat=True)), ["Cid"])
    equal(
        Book.objects.filter(Q(title__icontains="ANN") & ~Q(price__lt=2)).aggregate(a=Avg("price"))["a"], 3
    )
    rank = Window(Rank(), partition_by="author", order_by="-price")
    equal(
        list(Book.objects.annotate(r=rank).filter(r=1).order_by("id").values_list("title", flat=True)),
        ["Ann 3", "Bob 2"],
    )
    equal(
        list(
            Genre.objects.annotate(low=Lower("name")).filter(low__regex="^C").values_list("low", flat=True)
        ),
        [],
    )


@check
def json_filters():
    def titles(**filters):
        return list(Book.objects.filter(**filters).order_by("id").values_list("title", flat=True))

    equal(titles(data__n__gt=1), ["Ann 2", "Ann 3", "Bob 2"])
    equal(titles(data__on=True), ["Ann 2", "Bob 2"])
    equal(titles(data__contains={"n": 3}), ["Ann 3"])
    equal(len(titles(data__tags__0="a")), 5)
    equal(len(titles(data__none=None)), 5)
    equal(len(titles(data__missing__isnull=True)), 5)
    equal(titles(data__n__in=[1, 7]), ["Ann 1", "Bob 1"])


@check
def upserts():
    Genre.objects.bulk_create(
        [Genre(name="crime"), Genre(name="drama")], update_conflicts=True, update_fields=["name"]
    )
    Genre.objects.bulk_create([Genre(name="crime"), Genre(name="essay")], ignore_conflicts=True)
    equal(Genre.objects.count(), 4)
    author, made = Author.objects.update_or_create(name="Ann", defaults={"name": "Anna"})
    equal(
        (
            made,
            Author.objects.filter(name="Anna").update(name="Ann"),
            Author.objects.get(pk=author.pk).name,
        ),
        (False, 1, "Ann"),
    )
    equal(Book.objects.filter(author__name="Ann").update(price=F("price") + 1), 3)


@check
def savepoints_and_rollback():
    try:
        with transaction.atomic():
            Author.objects.create(name="X")
            try:
                with transaction.atomic():
                    Author.objects.create(name="ann")
            except IntegrityError as error:
                equal(error.args[0], 1062)
            equal(Author.objects.filter(name="X").count(), 1)
            raise KeyError
    except KeyError:
        equal(Author.objects.filter(name="X").count(), 0)


@check
def constraints_and_cascade():
    raises((IntegrityError, OperationalError), 3819, lambda: Book.objects.update(price=-1))
    raises(IntegrityError, 1451, lambda: Author.objects.filter(name="Ann")._raw_delete("default"))
    equal(Author.objects.get(name="Ann").delete()[1]["library.Book"], 3)


@check
def threads_that_lock_the_same_row():
    key = Book.objects.get(title="Bob 1").pk

    def work(_):
        with transaction.atomic():
            book = Book.objects.select_for_update().get(pk=key)
            book.price += 1
            book.save()
        connection.close()
        return 1

    with concurrent.futures.ThreadPoolExecutor(6) as threads:
        equal(sum(threads.map(work, range(30))), 30)
    equal(Book.objects.get(pk=key).doubled, 63)


@check
def introspection():
    text = manage("inspectdb", "library_book")
    for part in (
        "author = models.ForeignKey('LibraryAuthor', models.DO_NOTHING)",
        "max_digits=10, decimal_places=2",
        "data = models.JSONField(blank=True, null=True)",
        "db_table_comment = 'what authors write'",
    ):
        equal((part, part in text), (part, True))
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, "library_book")
    equal(
        (
            found["title_price"]["columns"],
            found["author_title"]["unique"],
            found["price_not_negative"]["check"],
        ),
        (["title", "price"], True, True),
    )


checks.run()
