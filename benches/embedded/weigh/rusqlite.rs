//! rusqlite = { version = "0.39", features = ["bundled"] }
use rusqlite::Connection;

fn main() {
    let directory = std::env::args().nth(1).expect("a directory");
    let mut connection =
        Connection::open(std::path::Path::new(&directory).join("data.sqlite")).expect("open");
    connection.pragma_update(None, "journal_mode", "wal").expect("WAL");
    connection
        .execute_batch("CREATE TABLE pairs (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID")
        .expect("a table");
    report("opened");
    let transaction = connection.transaction().expect("begin");
    {
        let mut put = transaction.prepare("INSERT INTO pairs VALUES (?1, ?2)").expect("prepare");
        for pair in pairs() {
            put.execute((&pair[..24], &pair[24..])).expect("put");
        }
    }
    transaction.commit().expect("commit");
    let mut get = connection.prepare("SELECT v FROM pairs WHERE k = ?1").expect("prepare");
    for pair in pairs() {
        let found: Vec<u8> = get.query_row((&pair[..24],), |row| row.get(0)).expect("get");
        assert_eq!(found, &pair[24..]);
    }
    report("used");
}
