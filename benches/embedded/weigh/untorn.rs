//! untorn = { path = "…" }
use untorn::{Database, KeyValue, Options};

fn main() {
    let directory = std::env::args().nth(1).expect("a directory");
    let database = Database::open(Options::new(std::path::Path::new(&directory))).expect("open");
    let table: KeyValue<Vec<u8>, Vec<u8>> = database.key_value("pairs").expect("a table");
    report("opened");
    let mut transaction = database.begin();
    for pair in pairs() {
        table.put(&mut transaction, &pair[..24], &pair[24..]).expect("put");
    }
    transaction.commit().expect("commit");
    let mut transaction = database.begin();
    for pair in pairs() {
        let found = table.get(&mut transaction, &pair[..24]).expect("get");
        assert_eq!(found.as_deref(), Some(&pair[24..]));
    }
    report("used");
    drop(transaction);
    database.close().expect("close");
}
