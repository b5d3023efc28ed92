// Checks go-sql-driver/mysql: both protocols, times, several statements, LOAD DATA, TLS, compression, pools.
// Every kind of connection runs the same round trip.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

var passed, failed int

func check(name string, body func() error) {
	if err := body(); err != nil {
		failed++
		fmt.Printf("FAIL %s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	passed++
	fmt.Println("ok  ", name)
}

func same(want, got any) error {
	if w, g := fmt.Sprint(want), fmt.Sprint(got); w != g {
		return fmt.Errorf("want %.300s, got %.300s", w, g)
	}
	return nil
}

func all(errs ...error) error { return errors.Join(errs...) }

func code(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

func open(options string) *sql.DB {
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s:%s)/%s?%s", os.Getenv("CLIENT_USER"), os.Getenv("CLIENT_PASSWORD"), os.Getenv("CLIENT_HOST"),
		os.Getenv("CLIENT_PORT"), os.Getenv("CLIENT_DATABASE"), options))
	if err != nil {
		panic(err)
	}
	return db
}

func one(db interface {
	QueryRow(string, ...any) *sql.Row
}, q string, args ...any) string {
	var s sql.NullString
	if err := db.QueryRow(q, args...).Scan(&s); err != nil {
		return err.Error()
	}
	return s.String
}

func main() {
	for _, options := range []string{"", "interpolateParams=true", "parseTime=true&loc=Europe%2FBerlin", "tls=skip-verify", "compress=true", "compress=true&tls=skip-verify",
		"collation=utf8mb4_0900_as_cs", "interpolateParams=true&parseTime=true", "maxAllowedPacket=0&multiStatements=true", "columnsWithAlias=true&clientFoundRows=true"} {
		db := open(options)
		check("round trip, "+options, func() error { return types(db, strings.Contains(options, "parseTime")) })
		check("prepared statements, "+options, func() error { return prepared(db) })
		db.Close()
	}
	db := open("multiStatements=true&parseTime=true")
	check("several statements", func() error { return several(db) })
	check("types of columns", func() error { return columns(db) })
	check("upserts", func() error { return upserts(db) })
	check("transactions", func() error { return transactions(db) })
	check("LOAD DATA from a reader", func() error { return load(db) })
	check("a cancelled context ends the query", func() error {
		ctx, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer stop()
		start := time.Now()
		_, err := db.ExecContext(ctx, "SELECT SLEEP(10)")
		return all(same(true, err != nil), same(true, time.Since(start) < 5*time.Second), same("1", one(db, "SELECT 1")))
	})
	check("errors", func() error {
		_, e1 := db.Exec("SELEC")
		_, e2 := db.Query("SELECT * FROM missing WHERE id = ?", 1)
		_, e3 := db.Exec("SELECT 1; SELECT * FROM missing")
		return all(same(1064, code(e1)), same(1146, code(e2)), same(1146, code(e3)), same("1", one(db, "SELECT 1")))
	})
	check("many goroutines", func() error { return pool(db) })
	check("connection attributes and session variables", func() error {
		v := open("connectionAttributes=program_name:checks&sql_mode=%27ANSI_QUOTES%27&transaction_isolation=%27READ-COMMITTED%27")
		return all(same("ANSI_QUOTES", one(v, "SELECT @@sql_mode")), same("READ-COMMITTED", one(v, "SELECT @@transaction_isolation")))
	})
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

func types(db *sql.DB, parse bool) error {
	if _, err := db.Exec("DROP TABLE IF EXISTS kinds"); err != nil {
		return err
	}
	if _, err := db.Exec("CREATE TABLE kinds (id INT PRIMARY KEY AUTO_INCREMENT, b BIGINT, bu BIGINT UNSIGNED, d DECIMAL(30,10), f FLOAT, dbl DOUBLE, flag BOOLEAN, dt DATE," +
		" dtm DATETIME(6), tm TIME(6), v VARCHAR(100), bin BINARY(16), bl LONGBLOB, e ENUM('a','b'), j JSON, y YEAR)"); err != nil {
		return err
	}
	raw := bytes.Repeat([]byte{0, 1, 39, 92, 255}, 60000)
	moment := time.Date(2024, 7, 1, 12, 34, 56, 123456000, time.UTC)
	var day, at any = "2024-02-29", "2024-07-01 12:34:56.123456"
	if parse {
		at = moment
	}
	insert := "INSERT INTO kinds VALUES (NULL" + strings.Repeat(", ?", 15) + ")"
	r, err := db.Exec(insert, int64(-9223372036854775808), uint64(18446744073709551615), "-12345678901234567890.0123456789", float32(1.5), 0.1, true, day, at,
		"-838:59:58.000001", "😀 'ü' \\ \" \x00", raw[:16], raw, "b", `{"a": [1, "😀"]}`, 2024)
	if err != nil {
		return err
	}
	id, _ := r.LastInsertId()
	_, err = db.Exec(insert, make([]any, 15)...)
	if err != nil {
		return fmt.Errorf("NULLs: %w", err)
	}
	var b int64
	var bu uint64
	var d, tm, v, e, j string
	var f float32
	var dbl float64
	var flag bool
	var got any
	var bin, bl []byte
	var y int
	err = db.QueryRow("SELECT b, bu, d, f, dbl, flag, dtm, tm, v, bin, bl, e, j, y FROM kinds WHERE id = ?", id).Scan(&b, &bu, &d, &f, &dbl, &flag, &got, &tm, &v, &bin, &bl, &e, &j, &y)
	if err != nil {
		return err
	}
	if t, ok := got.(time.Time); ok != parse || ok && !t.Equal(moment) {
		return fmt.Errorf("time %v", got)
	}
	return all(same(1, id), same(int64(-9223372036854775808), b), same(uint64(18446744073709551615), bu), same("-12345678901234567890.0123456789", d), same(1.5, f), same(0.1, dbl),
		same(true, flag), same("-838:59:58.000001", tm), same("😀 'ü' \\ \" \x00", v), same(true, bytes.Equal(raw[:16], bin)), same(true, bytes.Equal(raw, bl)), same("b", e),
		same(`{"a": [1, "😀"]}`, j), same(2024, y), same("1", one(db, "SELECT COUNT(*) FROM kinds WHERE bu IS NULL AND j IS NULL AND bl IS NULL")),
		same("1", one(db, "SELECT COUNT(*) FROM kinds WHERE bu = ? AND d = ? AND dbl = ? AND bl = ?", uint64(18446744073709551615), "-12345678901234567890.0123456789", 0.1, raw)))
}

func prepared(db *sql.DB) error {
	s, err := db.Prepare("SELECT ?, ? + 1, CONCAT(?, 'x'), ? IS NULL")
	if err != nil {
		return err
	}
	defer s.Close()
	for _, c := range [][]any{{1, 2, "a", nil}, {"x", 2.5, 7, 0}, {nil, nil, nil, nil}, {int64(1) << 62, uint64(1) << 63, []byte("b"), true}} {
		var x [4]sql.NullString
		if err := s.QueryRow(c...).Scan(&x[0], &x[1], &x[2], &x[3]); err != nil {
			return err
		}
		if (c[0] == nil) == x[0].Valid || (c[3] == nil) != (x[3].String == "1") {
			return fmt.Errorf("%v gave %v", c, x)
		}
	}
	return nil
}

func several(db *sql.DB) error {
	rows, err := db.Query("SELECT 1; SELECT 'a', 2 UNION ALL SELECT 'b', 3; DO 1; SELECT 9")
	if err != nil {
		return err
	}
	defer rows.Close()
	var got []string
	for {
		cols, _ := rows.Columns()
		n := 0
		for rows.Next() {
			n++
		}
		got = append(got, fmt.Sprint(len(cols), "x", n))
		if !rows.NextResultSet() {
			break
		}
	}
	return all(rows.Err(), same("[1x1 2x2 1x1]", strings.ReplaceAll(fmt.Sprint(got), " x ", "x")))
}

func columns(db *sql.DB) error {
	rows, err := db.Query("SELECT * FROM kinds")
	if err != nil {
		return err
	}
	defer rows.Close()
	types, _ := rows.ColumnTypes()
	var got []string
	for _, t := range types {
		null, _ := t.Nullable()
		got = append(got, fmt.Sprintf("%s %s %v", t.DatabaseTypeName(), t.ScanType(), null))
	}
	want := "INT int32 false, BIGINT sql.NullInt64 true, UNSIGNED BIGINT sql.Null[uint64] true, DECIMAL sql.NullString true, FLOAT sql.NullFloat64 true, DOUBLE sql.NullFloat64 true," +
		" TINYINT sql.NullInt64 true, DATE sql.NullTime true, DATETIME sql.NullTime true, TIME sql.NullString true, VARCHAR sql.NullString true, BINARY []uint8 true," +
		" BLOB []uint8 true, ENUM sql.NullString true, JSON sql.NullString true, YEAR sql.NullInt64 true"
	p, s, _ := types[3].DecimalSize()
	return all(same(want, strings.Join(got, ", ")), same("30 10", fmt.Sprint(p, s)))
}

func upserts(db *sql.DB) error {
	db.Exec("DROP TABLE IF EXISTS counters")
	db.Exec("CREATE TABLE counters (id INT PRIMARY KEY AUTO_INCREMENT, k VARCHAR(9) UNIQUE, n INT)")
	var got []string
	for _, n := range []int{1, 2, 2} {
		r, err := db.Exec("INSERT INTO counters (k, n) VALUES ('a', ?) ON DUPLICATE KEY UPDATE n = VALUES(n), id = LAST_INSERT_ID(id)", n)
		if err != nil {
			return err
		}
		id, _ := r.LastInsertId()
		rows, _ := r.RowsAffected()
		got = append(got, fmt.Sprint(id, ":", rows))
	}
	r, err := db.Exec("INSERT INTO counters VALUES (77, 'explicit', 1)")
	if err != nil {
		return err
	}
	id, _ := r.LastInsertId()
	return all(same("[1:1 1:2 1:0]", strings.ReplaceAll(fmt.Sprint(got), " : ", ":")), same(77, id))
}

func transactions(db *sql.DB) error {
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		return err
	}
	tx.Exec("UPDATE counters SET n = 50")
	tx.Exec("SAVEPOINT a")
	tx.Exec("UPDATE counters SET n = 60")
	tx.Exec("ROLLBACK TO a")
	inside := one(tx, "SELECT n FROM counters WHERE k = 'a'")
	tx.Rollback()
	ro, err := db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	_, e := ro.Exec("UPDATE counters SET n = 1")
	ro.Commit()
	return all(same("50", inside), same("2", one(db, "SELECT n FROM counters WHERE k = 'a'")), same(1792, code(e)))
}

func load(db *sql.DB) error {
	before := one(db, "SELECT @@GLOBAL.local_infile")
	defer db.Exec("SET GLOBAL local_infile = " + before)
	db.Exec("SET GLOBAL local_infile = 1")
	db.Exec("CREATE TABLE loaded (a INT, b VARCHAR(30))")
	mysql.RegisterReaderHandler("data", func() io.Reader {
		var b strings.Builder
		for i := 0; i < 50000; i++ {
			fmt.Fprintf(&b, "%d,\"row, %d\"\n", i, i)
		}
		return strings.NewReader(b.String())
	})
	r, err := db.Exec("LOAD DATA LOCAL INFILE 'Reader::data' INTO TABLE loaded FIELDS TERMINATED BY ',' ENCLOSED BY '\"'")
	if err != nil {
		return err
	}
	n, _ := r.RowsAffected()
	return all(same(50000, n), same("row, 49999", one(db, "SELECT b FROM loaded WHERE a = 49999")))
}

func pool(db *sql.DB) error {
	db.SetMaxOpenConns(8)
	errs := make([]error, 16)
	var wg sync.WaitGroup
	for g := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; i < 20 && errs[g] == nil; i++ {
				_, errs[g] = db.Exec("UPDATE counters SET n = n + 1 WHERE k = ?", "a")
			}
		}()
	}
	wg.Wait()
	return all(append(errs, same("322", one(db, "SELECT n FROM counters WHERE k = 'a'")))...)
}
