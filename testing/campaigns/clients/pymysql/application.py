"""PyMySQL without an ORM: types, parameters, cursors, upserts, savepoints, threads.
Everything goes through the text protocol."""

import datetime as dt
import decimal
import threading
import uuid

import pymysql
from pymysql.constants import CLIENT, FIELD_TYPE

import checks
from checks import check, equal, raises


def connect(**options):
    return pymysql.connect(
        host=checks.HOST,
        port=checks.PORT,
        user=checks.USER,
        password=checks.PASSWORD,
        database=checks.DATABASE,
        charset="utf8mb4",
        **options,
    )


main = connect(autocommit=True)


def execute(sql, arguments=None, connection=main):
    with connection.cursor() as cursor:
        affected = cursor.execute(sql, arguments)
        return cursor.fetchall() if cursor.description else affected


@check
def schema_up_and_down_twice():
    for _ in range(2):
        execute(
            "CREATE TABLE author (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50) NOT NULL UNIQUE,"
            " born DATE, INDEX (born)) COMMENT 'people who write'"
        )
        execute(
            "CREATE TABLE book (id INT AUTO_INCREMENT PRIMARY KEY, author_id INT NOT NULL, title VARCHAR(100),"
            " price DECIMAL(10,2) NOT NULL DEFAULT 0, tags JSON,"
            " CONSTRAINT book_author FOREIGN KEY (author_id) REFERENCES author (id) ON DELETE CASCADE)"
        )
        execute("ALTER TABLE book ADD COLUMN pages INT NULL AFTER title, ADD INDEX pages_index (pages)")
        execute("ALTER TABLE book RENAME COLUMN pages TO page_count, MODIFY title VARCHAR(200) NOT NULL")
        execute("ALTER TABLE book DROP COLUMN page_count")
        raises(pymysql.err.Error, 3730, lambda: execute("DROP TABLE author"))
        execute("DROP TABLE book, author")
    equal(execute("SHOW TABLES"), ())


ROW = (
    -128,
    255,
    -32768,
    -8388608,
    -2147483648,
    -9223372036854775808,
    18446744073709551615,
    decimal.Decimal("12345678901234567890.123456789"),
    1.7976931348623157e308,
    1,
    dt.date(9999, 12, 31),
    dt.datetime(2024, 2, 29, 23, 59, 59, 999999),
    dt.timedelta(hours=-838),
    2155,
    "text with 😀 and ñ",
    b"\x00\xff\\'\"\n",
    uuid.UUID(int=1).bytes,
    "b",
    '{"a": [1, null, "é"]}',
)


@check
def types_round_trip():
    execute(
        "CREATE TABLE types (id INT AUTO_INCREMENT PRIMARY KEY, t TINYINT, tu TINYINT UNSIGNED, s SMALLINT,"
        " m MEDIUMINT, i INT, b BIGINT, bu BIGINT UNSIGNED, d DECIMAL(40,9), f DOUBLE, bo BOOL, da DATE,"
        " dt DATETIME(6), ti TIME, y YEAR, x VARCHAR(100), bl BLOB, u BINARY(16), e ENUM('a','b'), j JSON)"
    )
    marks = ",".join(["%s"] * len(ROW))
    execute(f"INSERT INTO types (t,tu,s,m,i,b,bu,d,f,bo,da,dt,ti,y,x,bl,u,e,j) VALUES ({marks})", ROW)
    found = execute("SELECT t,tu,s,m,i,b,bu,d,f,bo,da,dt,ti,y,x,bl,u,e,j FROM types")[0]
    for one, expected in zip(found, ROW):
        equal(one, expected)


@check
def metadata_of_columns():
    with main.cursor() as cursor:
        cursor.execute("SELECT t, bu, d, dt, x, bl, e, j, COUNT(*) AS n FROM types GROUP BY id")
        kinds = [column[1] for column in cursor.description]
        equal(
            kinds,
            [
                FIELD_TYPE.TINY,
                FIELD_TYPE.LONGLONG,
                FIELD_TYPE.NEWDECIMAL,
                FIELD_TYPE.DATETIME,
                FIELD_TYPE.VAR_STRING,
                FIELD_TYPE.BLOB,
                FIELD_TYPE.STRING,
                FIELD_TYPE.JSON,
                FIELD_TYPE.LONGLONG,
            ],
        )
        fields = cursor._result.fields
        equal([field.name for field in fields][-1], "n")
        equal(fields[0].table_name, "types")
        equal(fields[2].scale, 9)


@check
def out_of_range_is_refused():
    raises(pymysql.err.DataError, 1264, lambda: execute("INSERT INTO types (t) VALUES (%s)", (128,)))
    raises(pymysql.err.DataError, 1406, lambda: execute("INSERT INTO types (x) VALUES (%s)", ("x" * 101,)))
    raises(pymysql.err.Error, 1265, lambda: execute("INSERT INTO types (e) VALUES ('c')"))


def books():
    execute("DROP TABLE IF EXISTS book, author")
    execute("CREATE TABLE author (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50) NOT NULL UNIQUE)")
    execute(
        "CREATE TABLE book (id INT AUTO_INCREMENT PRIMARY KEY, author_id INT NOT NULL, title VARCHAR(100),"
        " price DECIMAL(10,2), tags JSON, FOREIGN KEY (author_id) REFERENCES author (id) ON DELETE CASCADE)"
    )
    with main.cursor() as cursor:
        equal(
            cursor.executemany("INSERT INTO author (name) VALUES (%s)", [("Ann",), ("Bob",), ("Cid",)]), 3
        )
        equal(cursor.lastrowid, 1)
        cursor.executemany(
            "INSERT INTO book (author_id, title, price, tags) VALUES (%s, %s, %s, %s)",
            [
                (1 + n % 2, f"Book {n}", n, f'{{"n": {n}, "even": {str(n % 2 == 0).lower()}}}')
                for n in range(1, 11)
            ],
        )


@check
def last_insert_id_of_generated_and_given_values():
    books()
    with main.cursor() as cursor:
        cursor.execute("INSERT INTO author (name) VALUES ('Dan')")
        equal(cursor.lastrowid, 4)
        cursor.execute("INSERT INTO author (id, name) VALUES (50, 'Eve')")
        equal(cursor.lastrowid, 50)
        cursor.execute("INSERT INTO author (id, name) VALUES (60, 'F'), (61, 'G')")
        equal(cursor.lastrowid, 61)
        cursor.execute("SELECT LAST_INSERT_ID()")
        equal(cursor.fetchone(), (4,))
        cursor.execute("DELETE FROM author WHERE id > 3")
        equal(cursor.rowcount, 4)


@check
def upserts_and_their_counts():
    sql = "INSERT INTO author (name) VALUES (%s) AS new ON DUPLICATE KEY UPDATE name = new.name"
    equal(execute(sql, ("Zoe",)), 1)
    equal(execute(sql, ("Zoe",)), 0)
    equal(execute(sql, ("ZOE",)), 2)
    equal(execute("UPDATE author SET name = 'ZOE' WHERE name = 'zoe'"), 0)
    found = connect(autocommit=True, client_flag=CLIENT.FOUND_ROWS)
    equal(execute("UPDATE author SET name = 'ZOE' WHERE name = 'zoe'", connection=found), 1)
    equal(execute(sql, ("ZOE",), found), 1)
    found.close()
    equal(execute("INSERT IGNORE INTO author (name) VALUES ('ZOE')"), 0)
    execute("DELETE FROM author WHERE name = 'zoe'")


@check
def joins_subqueries_and_paging():
    equal(
        execute(
            "SELECT a.name, COUNT(b.id), SUM(b.price) FROM author a LEFT JOIN book b ON b.author_id = a.id"
            " GROUP BY a.id ORDER BY a.id"
        ),
        (("Ann", 5, decimal.Decimal("30.00")), ("Bob", 5, decimal.Decimal("25.00")), ("Cid", 0, None)),
    )
    equal(
        execute("SELECT name FROM author a WHERE NOT EXISTS (SELECT 1 FROM book WHERE author_id = a.id)"),
        (("Cid",),),
    )
    equal(execute("SELECT id FROM book ORDER BY id DESC LIMIT %s OFFSET %s", (3, 4)), ((6,), (5,), (4,)))


@check
def json_filters():
    equal(execute("SELECT id FROM book WHERE tags->>'$.n' > 8 ORDER BY id"), ((9,), (10,)))
    equal(execute("SELECT COUNT(*) FROM book WHERE JSON_CONTAINS(tags, 'true', '$.even')"), ((5,),))
    equal(execute("UPDATE book SET tags = JSON_SET(tags, '$.new', %s) WHERE id = 1", ("é",)), 1)
    equal(execute("SELECT tags->>'$.new' FROM book WHERE id = 1"), (("é",),))


@check
def window_functions_and_recursion():
    equal(
        execute(
            "SELECT id, ROW_NUMBER() OVER (PARTITION BY author_id ORDER BY id), SUM(price) OVER (ORDER BY id)"
            " FROM book ORDER BY id LIMIT 2"
        ),
        ((1, 1, decimal.Decimal("1.00")), (2, 1, decimal.Decimal("3.00"))),
    )
    equal(
        execute(
            "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 50)"
            " SELECT SUM(n) FROM c"
        ),
        ((decimal.Decimal(1275),),),
    )


@check
def transactions_and_savepoints():
    connection = connect()
    execute("INSERT INTO author (name) VALUES ('X')", connection=connection)
    execute("SAVEPOINT one", connection=connection)
    execute("INSERT INTO author (name) VALUES ('Y')", connection=connection)
    execute("ROLLBACK TO SAVEPOINT one", connection=connection)
    equal(execute("SELECT name FROM author WHERE name IN ('X', 'Y')", connection=connection), (("X",),))
    equal(execute("SELECT name FROM author WHERE name IN ('X', 'Y')"), ())
    connection.rollback()
    raises(pymysql.err.Error, 1305, lambda: execute("RELEASE SAVEPOINT one", connection=connection))
    connection.close()


@check
def cascade_and_restrict():
    raises(pymysql.err.IntegrityError, 1452, lambda: execute("INSERT INTO book (author_id) VALUES (99)"))
    raises(pymysql.err.IntegrityError, 1062, lambda: execute("INSERT INTO author (name) VALUES ('ann')"))
    execute("DELETE FROM author WHERE name = 'Bob'")
    equal(execute("SELECT COUNT(*) FROM book"), ((5,),))


@check
def several_statements_and_cursors():
    connection = connect(client_flag=CLIENT.MULTI_STATEMENTS, autocommit=True)
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute("SELECT 1 AS a; DO 0; SELECT 'x' AS b")
        equal(cursor.fetchall(), [{"a": 1}])
        equal(cursor.nextset(), True)
        equal(cursor.nextset(), True)
        equal(cursor.fetchall(), [{"b": "x"}])
        equal(cursor.nextset(), None)
    with connection.cursor(pymysql.cursors.SSCursor) as cursor:
        cursor.execute(
            "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 900)"
            " SELECT n, REPEAT('x', 100) FROM c"
        )
        equal(sum(row[0] for row in cursor.fetchall_unbuffered()), 900 * 901 // 2)
    connection.close()


@check
def threads_that_lock_the_same_row():
    execute("CREATE TABLE counter (id INT PRIMARY KEY, n INT NOT NULL)")
    execute("INSERT INTO counter VALUES (1, 0)")

    def work():
        connection = connect()
        for _ in range(20):
            ((n,),) = execute("SELECT n FROM counter WHERE id = 1 FOR UPDATE", connection=connection)
            execute("UPDATE counter SET n = %s WHERE id = 1", (n + 1,), connection)
            connection.commit()
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(execute("SELECT n FROM counter"), ((120,),))


@check
def introspection():
    equal(
        execute(
            "SELECT column_name, column_key, extra FROM information_schema.columns"
            " WHERE table_schema = DATABASE() AND table_name = 'author' ORDER BY ordinal_position"
        ),
        (("id", "PRI", "auto_increment"), ("name", "UNI", "")),
    )
    equal(
        execute(
            "SELECT referenced_table_name, delete_rule FROM information_schema.referential_constraints"
            " WHERE constraint_schema = DATABASE()"
        ),
        (("author", "CASCADE"),),
    )
    equal(main.ping(), None)
    equal(main.select_db(checks.DATABASE), None)


checks.run()
