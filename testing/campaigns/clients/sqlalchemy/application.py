"""SQLAlchemy's ORM over PyMySQL, with Alembic's migrations written from the models.
The second autogenerate must find nothing to do."""

import concurrent.futures
import datetime as dt
import decimal
import uuid

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata, produce_migrations
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.dialects.mysql import insert
from sqlalchemy.orm import Session, joinedload, selectinload

import checks
from checks import check, equal, raises
from model import Author, Base, Book, Colour, Genre, Types, book_genre

engine = sa.create_engine(
    sa.URL.create(
        "mysql+pymysql",
        checks.USER,
        checks.PASSWORD or None,
        checks.HOST,
        checks.PORT,
        checks.DATABASE,
        {"charset": "utf8mb4"},
    ),
    pool_size=4,
    pool_pre_ping=True,
)


def migrate():
    """Makes the database what the models say; returns what is left to do and the way back."""
    with engine.begin() as connection:
        context = MigrationContext.configure(
            connection,
            opts={"compare_type": True, "compare_server_default": True, "target_metadata": Base.metadata},
        )
        script = produce_migrations(context, Base.metadata)
        invoke(Operations(context), script.upgrade_ops)
        return compare_metadata(context, Base.metadata), script.downgrade_ops


def invoke(operations, operation):
    for one in getattr(operation, "ops", []):
        invoke(operations, one)
    if not hasattr(operation, "ops"):
        operations.invoke(operation)


@check
def migrations_up_and_down_twice():
    for _ in range(2):
        left, back = migrate()
        equal(left, [])
        left, nothing = migrate()
        equal((left, nothing.is_empty()), ([], True))
        with engine.begin() as connection:
            invoke(Operations(MigrationContext.configure(connection)), back)
        equal(sa.inspect(engine).get_table_names(), [])
    migrate()


@check
def altered_columns_are_noticed():
    with engine.begin() as connection:
        operations = Operations(MigrationContext.configure(connection))
        operations.add_column("author", sa.Column("age", sa.Integer, server_default="7", nullable=False))
        operations.alter_column(
            "author", "age", new_column_name="years", existing_type=sa.Integer, type_=sa.SmallInteger
        )
        operations.create_index("ix_years", "author", ["years"])
    column = [c for c in sa.inspect(engine).get_columns("author") if c["name"] == "years"][0]
    equal((type(column["type"]).__name__, column["nullable"], column["default"]), ("SMALLINT", True, None))
    equal(migrate()[0], [])
    equal([c["name"] for c in sa.inspect(engine).get_columns("author")], ["id", "name"])


VALUES = dict(
    small=-32768,
    big=2**64 - 1,
    exact=decimal.Decimal("-12345678901234567890.123456789"),
    double=2.2250738585072014e-308,
    truth=True,
    day=dt.date(9999, 12, 31),
    moment=dt.datetime(2024, 2, 29, 23, 59, 59, 999999),
    clock=dt.time(23, 59, 59, 123000),
    span=dt.timedelta(days=3, seconds=7),
    key=uuid.uuid4(),
    blob=bytes(range(256)),
    text="text with 😀 and ñ" * 100,
    colour=Colour.green,
    nothing=None,
)


@check
def types_round_trip():
    with Session(engine) as session:
        session.add(Types(id=2**63 - 1, **VALUES))
        session.commit()
    with Session(engine) as session:
        found = session.scalars(
            sa.select(Types).where(
                Types.key == VALUES["key"],
                Types.exact == VALUES["exact"],
                Types.moment == VALUES["moment"],
                Types.truth,
            )
        ).one()
        for name, value in VALUES.items():
            equal((name, getattr(found, name)), (name, value))
        equal(found.id, 2**63 - 1)


@check
def relations_are_stored():
    with Session(engine) as session:
        genres = [Genre(name=name) for name in ("crime", "poetry")]
        for name, count in (("Ann", 3), ("Bob", 2), ("Cid", 0)):
            session.add(
                Author(
                    name=name,
                    books=[
                        Book(
                            title=f"{name} {n}",
                            price=decimal.Decimal(n) + decimal.Decimal("0.5"),
                            genres=genres[:n],
                            data={"n": n, "tags": ["a", {"é": None}], "on": n % 2 == 0},
                        )
                        for n in range(1, count + 1)
                    ],
                )
            )
        session.commit()
        equal(
            [b.doubled for b in session.scalars(sa.select(Book).order_by(Book.id).limit(2))],
            [decimal.Decimal("3.00"), decimal.Decimal("5.00")],
        )


@check
def eager_loads_exists_and_paging():
    with Session(engine) as session:
        authors = session.scalars(
            sa.select(Author)
            .options(selectinload(Author.books).joinedload(Book.genres))
            .order_by(Author.name)
        ).all()
        equal(
            [(a.name, [[g.name for g in b.genres] for b in a.books]) for a in authors][1:],
            [("Bob", [["crime"], ["crime", "poetry"]]), ("Cid", [])],
        )
        equal(session.scalars(sa.select(Author.name).where(~Author.books.any())).all(), ["Cid"])
        page = session.scalars(
            sa.select(Book).options(joinedload(Book.author)).order_by(Book.id.desc()).limit(2).offset(1)
        ).all()
        equal([(b.author.name, b.title) for b in page], [("Bob", "Bob 1"), ("Ann", "Ann 3")])
        total = sa.select(sa.func.count()).where(Book.author_id == Author.id).scalar_subquery()
        equal(
            session.execute(sa.select(Author.name, total).order_by(total.desc(), Author.name)).all(),
            [("Ann", 3), ("Bob", 2), ("Cid", 0)],
        )


@check
def json_filters():
    with Session(engine) as session:
        equal(session.scalar(sa.select(sa.func.count()).where(Book.data["n"].as_integer() >= 2)), 3)
        equal(
            session.scalars(
                sa.select(Book.title).where(Book.data["on"].as_boolean()).order_by(Book.id)
            ).all(),
            ["Ann 2", "Bob 2"],
        )
        equal(session.scalar(sa.select(sa.func.count()).where(Book.data["tags", 0].as_string() == "a")), 5)
        equal(session.scalar(sa.select(Book.data["tags"]).limit(1)), ["a", {"é": None}])


@check
def upserts_and_their_counts():
    statement = insert(Genre).values([{"name": "crime"}, {"name": "drama"}])
    statement = statement.on_duplicate_key_update(name=sa.func.upper(statement.inserted.name))
    with engine.begin() as connection:
        equal(connection.execute(statement).rowcount, 3)
        equal(
            connection.execute(sa.update(Genre).values(name="CRIME").where(Genre.name == "crime")).rowcount,
            1,
        )
        equal(
            connection.scalars(sa.select(Genre.name).order_by(Genre.name)).all(),
            ["CRIME", "drama", "poetry"],
        )


@check
def window_functions_and_recursion():
    with Session(engine) as session:
        rank = sa.func.rank().over(partition_by=Book.author_id, order_by=Book.price.desc())
        equal(
            session.execute(sa.select(Book.title, rank).order_by(Book.id)).all()[:3],
            [("Ann 1", 3), ("Ann 2", 2), ("Ann 3", 1)],
        )
        numbers = sa.select(sa.literal(1).label("n")).cte(recursive=True)
        numbers = numbers.union_all(sa.select(numbers.c.n + 1).where(numbers.c.n < 100))
        equal(session.scalar(sa.select(sa.func.sum(numbers.c.n))), 5050)


@check
def savepoints_and_rollback():
    with Session(engine) as session:
        session.add(Author(name="X"))
        session.flush()
        nested = session.begin_nested()
        session.add(Author(name="ann"))
        raises(sa.exc.IntegrityError, 1062, session.flush)
        nested.rollback()
        equal(session.scalar(sa.select(sa.func.count()).where(Author.name == "X")), 1)
        session.rollback()
        equal(session.scalar(sa.select(sa.func.count()).where(Author.name == "X")), 0)


@check
def cascade_and_restrict():
    with engine.begin() as connection:
        raises(
            sa.exc.IntegrityError,
            1451,
            lambda: connection.execute(sa.delete(Genre).where(Genre.name == "crime")),
        )
        raises(sa.exc.OperationalError, 3819, lambda: connection.execute(sa.update(Book).values(price=-1)))
        connection.execute(sa.delete(Author).where(Author.name == "Ann"))
        equal(connection.scalar(sa.select(sa.func.count()).select_from(book_genre)), 3)


@check
def pool_with_threads():
    with Session(engine) as session:
        number = session.scalar(sa.select(Book.id).where(Book.title == "Bob 1"))

    def work(_):
        with Session(engine) as session:
            book = session.get_one(Book, number, with_for_update=True)
            book.price += 1
            session.commit()
            return 1

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        equal(sum(threads.map(work, range(40))), 40)
    with Session(engine) as session:
        equal(
            session.scalar(sa.select(Book.doubled).where(Book.title == "Bob 1")), decimal.Decimal("83.00")
        )


@check
def introspection():
    inspector = sa.inspect(engine)
    equal(inspector.get_foreign_keys("book")[0]["options"], {"ondelete": "CASCADE"})
    equal(
        [(i["name"], i["column_names"]) for i in inspector.get_indexes("book")][-1:],
        [("ix_book_title_price", ["title", "price"])],
    )
    equal(inspector.get_check_constraints("book"), [{"name": "ck_book_price", "sqltext": "(`price` >= 0)"}])
    equal(inspector.get_table_comment("book"), {"text": "what authors write"})
    equal(
        [type(c["type"]).__name__ for c in inspector.get_columns("types")][:6],
        ["BIGINT", "SMALLINT", "BIGINT", "DECIMAL", "DOUBLE", "TINYINT"],
    )


checks.run()
