"""Connector/Python without an ORM: prepared cursors (binary protocol), pools, cursors of several kinds.
Once with the C extension and once without, where the installation has both."""

import datetime as dt
import decimal
import threading

import mysql.connector
from mysql.connector import errorcode, errors, pooling

import checks
from checks import check, equal, raises

OPTIONS = dict(
    host=checks.HOST, port=checks.PORT, user=checks.USER, password=checks.PASSWORD, database=checks.DATABASE
)
KINDS = [True, False] if mysql.connector.HAVE_CEXT else [True]
mains = {pure: mysql.connector.connect(use_pure=pure, autocommit=True, **OPTIONS) for pure in KINDS}
main = mains[True]


def execute(sql, arguments=(), connection=None, **kind):
    cursor = (connection or main).cursor(**kind)
    try:
        cursor.execute(sql, arguments)
        return cursor.fetchall() if cursor.with_rows else cursor.rowcount
    finally:
        cursor.close()


SCHEMA = [
    "CREATE TABLE author (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50) NOT NULL UNIQUE)",
    "CREATE TABLE book (id INT AUTO_INCREMENT PRIMARY KEY, author_id INT NOT NULL, title VARCHAR(100) NOT NULL,"
    " price DECIMAL(10,2), tags JSON, KEY title_index (title),"
    " CONSTRAINT book_author FOREIGN KEY (author_id) REFERENCES author (id) ON DELETE CASCADE)",
]


@check
def schema_up_and_down_twice():
    for _ in range(2):
        for statement in SCHEMA:
            execute(statement)
        execute("ALTER TABLE book ADD pages INT UNSIGNED DEFAULT 1 CHECK (pages > 0)")
        raises(
            errors.DatabaseError,
            errorcode.ER_CHECK_CONSTRAINT_VIOLATED,
            lambda: execute("INSERT INTO book (author_id, title, pages) VALUES (1, 'x', 0)"),
        )
        execute("DROP TABLE book, author")
    equal(execute("SHOW TABLES"), [])
    for statement in SCHEMA:
        execute(statement)


ROW = (
    -128,
    255,
    -32768,
    -8388608,
    -2147483648,
    -9223372036854775808,
    9223372036854775807,
    decimal.Decimal("-12345678901234567890.123456789"),
    1.7976931348623157e308,
    0.25,
    1,
    dt.date(1000, 1, 1),
    dt.datetime(2024, 2, 29, 23, 59, 59, 999999),
    dt.timedelta(hours=22, minutes=59, seconds=59),
    "text with 😀 and ñ",
    b"\x00\xff\\'\"\n",
    "b",
    None,
)
COLUMNS = "t, tu, s, m, i, b, bu, d, f, fl, bo, da, dt, ti, x, bl, e, n"


@check
def types_round_trip_in_both_protocols():
    execute(
        "CREATE TABLE types (id INT AUTO_INCREMENT PRIMARY KEY, t TINYINT, tu TINYINT UNSIGNED, s SMALLINT,"
        " m MEDIUMINT, i INT, b BIGINT, bu BIGINT UNSIGNED, d DECIMAL(40,9), f DOUBLE, fl FLOAT, bo BOOL,"
        " da DATE, dt DATETIME(6), ti TIME, x VARCHAR(100), bl BLOB, e ENUM('a','b'), n INT)"
    )
    marks = ", ".join(["%s"] * len(ROW))
    for pure, connection in mains.items():
        for prepared in (False, True) if pure else (False,):  # the C extension sends no TIME
            execute("TRUNCATE TABLE types")
            execute(f"INSERT INTO types ({COLUMNS}) VALUES ({marks})", ROW, connection, prepared=prepared)
            for read in (False, True):
                found = execute(
                    f"SELECT {COLUMNS} FROM types WHERE id > %s", (0,), connection, prepared=read
                )[0]
                for name, one, expected in zip(COLUMNS.split(", "), found, ROW):
                    if isinstance(one, bytearray):
                        one = bytes(one) if isinstance(expected, bytes) else one.decode()
                    equal((pure, prepared, read, name, one), (pure, prepared, read, name, expected))


@check
def a_prepared_cursor_is_used_again():
    for connection in mains.values():
        execute("DELETE FROM author", connection=connection)
        cursor = connection.cursor(prepared=True)
        sql = "INSERT INTO author (name) VALUES (?)"
        for name in ("Ann", "Bob", "Cid", "Dän 😀"):
            cursor.execute(sql, (name,))
            equal(cursor.rowcount, 1)
        cursor.close()
        cursor = connection.cursor(prepared=True)
        for name in ("Bob", "Dän 😀", "nobody"):
            cursor.execute("SELECT name, CHAR_LENGTH(name) FROM author WHERE name = ?", (name,))
            equal(cursor.fetchall(), [] if name == "nobody" else [(name, len(name))])
        cursor.close()


@check
def last_insert_id_of_generated_and_given_values():
    for connection in mains.values():
        execute("TRUNCATE TABLE types")
        for prepared in (False, True):
            cursor = connection.cursor(prepared=prepared)
            cursor.execute("INSERT INTO types (id, n) VALUES (%s, %s)", (500 + prepared * 100, 1))
            equal(cursor.lastrowid, 500 + prepared * 100)
            cursor.execute("INSERT INTO types (n) VALUES (%s)", (1,))
            equal(cursor.lastrowid, 501 + prepared * 100)
            cursor.close()


@check
def many_rows_at_once():
    cursor = main.cursor()
    ann = execute("SELECT id FROM author WHERE name = 'Ann'")[0][0]
    cursor.executemany(
        "INSERT INTO book (author_id, title, price, tags) VALUES (%s, %s, %s, %s)",
        [(ann, f"Book {n:04}", n, f'{{"n": {n}}}') for n in range(1, 1001)],
    )
    equal(cursor.rowcount, 1000)
    cursor.execute("SELECT id FROM book ORDER BY id")
    equal(len(cursor.fetchmany(300)), 300)
    equal(len(cursor.fetchall()), 700)
    cursor.close()
    found = execute(
        "SELECT title FROM book WHERE tags->>'$.n' >= %s ORDER BY title LIMIT %s OFFSET %s",
        (900, 2, 5),
        prepared=True,
    )
    equal(found, [("Book 0905",), ("Book 0906",)])


@check
def kinds_of_cursors():
    equal(execute("SELECT 1 AS a, 'x' AS b", dictionary=True), [{"a": 1, "b": "x"}])
    equal(execute("SELECT 1 AS a, 'x' AS b", named_tuple=True)[0].b, "x")
    equal(
        execute("SELECT DATE'2024-02-29', 1.50", raw=True), [(bytearray(b"2024-02-29"), bytearray(b"1.50"))]
    )
    cursor = main.cursor(buffered=True)
    cursor.execute("SELECT id FROM book")
    equal(cursor.rowcount, 1000)
    cursor.close()
    equal(execute("SELECT n + ?, ? FROM (SELECT 1 AS n) x", (2, "é"), prepared=True), [(3, "é")])


@check
def upserts_and_their_counts():
    sql = "INSERT INTO author (name) VALUES (%s) ON DUPLICATE KEY UPDATE name = VALUES(name)"
    for prepared in (False, True):
        equal(execute(sql, ("Eve",), prepared=prepared), 1)
        equal(execute(sql, ("EVE",), prepared=prepared), 2)
        equal(execute("UPDATE author SET name = 'EVE' WHERE name = %s", ("eve",), prepared=prepared), 0)
        equal(execute("DELETE FROM author WHERE name = %s", ("eve",), prepared=prepared), 1)


@check
def transactions_and_savepoints():
    connection = mysql.connector.connect(use_pure=True, **OPTIONS)
    connection.start_transaction(isolation_level="READ COMMITTED", consistent_snapshot=False)
    equal(connection.in_transaction, True)
    execute("INSERT INTO author (name) VALUES ('X')", connection=connection)
    execute("SAVEPOINT one", connection=connection)
    execute("INSERT INTO author (name) VALUES ('Y')", connection=connection)
    execute("ROLLBACK TO one", connection=connection)
    equal(execute("SELECT name FROM author WHERE name IN ('X', 'Y')", connection=connection), [("X",)])
    connection.rollback()
    equal(connection.in_transaction, False)
    equal(execute("SELECT name FROM author WHERE name IN ('X', 'Y')"), [])
    connection.close()


@check
def errors_have_numbers_and_states():
    for prepared in (False, True):
        for sql, number, state in (
            ("SELECT * FROM missing", 1146, "42S02"),
            ("SELEC 1", 1064, "42000"),
            ("INSERT INTO author (name) VALUES ('Ann')", 1062, "23000"),
            ("INSERT INTO book (author_id, title) VALUES (0, 'x')", 1452, "23000"),
        ):
            try:
                execute(sql, prepared=prepared)
            except mysql.connector.Error as error:
                equal((error.errno, error.sqlstate), (number, state))
            else:
                raise AssertionError(sql)


@check
def several_results_and_warnings():
    cursor = main.cursor()
    found = [result.fetchall() for result in cursor.execute("SELECT 1; SELECT 2, 3", multi=True)]
    equal(found, [[(1,)], [(2, 3)]])
    cursor.close()
    main.get_warnings = True
    cursor = main.cursor()
    cursor.execute("SELECT CAST('12x' AS SIGNED)")
    equal(cursor.fetchall(), [(12,)])
    equal([(level, number) for level, number, _ in cursor.fetchwarnings()], [("Warning", 1292)])
    cursor.close()
    main.get_warnings = False


@check
def a_pool_with_threads():
    pool = pooling.MySQLConnectionPool(pool_name="small", pool_size=4, pool_reset_session=True, **OPTIONS)
    execute("CREATE TABLE counter (id INT PRIMARY KEY, n INT NOT NULL)")
    execute("INSERT INTO counter VALUES (1, 0)")
    problems = []

    def work():
        try:
            for _ in range(15):
                connection = pool.get_connection()
                equal(execute("SELECT @left", connection=connection), [(None,)])
                execute("SET @left = 1", connection=connection)
                execute("UPDATE counter SET n = n + 1 WHERE id = %s", (1,), connection, prepared=True)
                connection.commit()
                connection.close()
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(problems, [])
    equal(execute("SELECT n FROM counter"), [(60,)])


@check
def cascade_and_introspection():
    equal(execute("DELETE FROM author WHERE name = 'Ann'"), 1)
    equal(execute("SELECT COUNT(*) FROM book"), [(0,)])
    equal(
        execute(
            "SELECT column_name, data_type, character_maximum_length FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = 'author' ORDER BY ordinal_position",
            (checks.DATABASE,),
        ),
        [("id", "int", None), ("name", "varchar", 50)],
    )
    equal(main.is_connected(), True)
    main.cmd_reset_connection()
    main.cmd_change_user(checks.USER, checks.PASSWORD, checks.DATABASE)
    equal(execute("SELECT DATABASE()"), [(checks.DATABASE,)])


checks.run()
