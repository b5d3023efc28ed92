//! fjall = "3"
use fjall::{Database, KeyspaceCreateOptions, PersistMode};

fn main() {
    let directory = std::env::args().nth(1).expect("a directory");
    let database = Database::builder(directory).open().expect("open");
    let table = database.keyspace("pairs", KeyspaceCreateOptions::default).expect("a table");
    report("opened");
    let mut batch = database.batch().durability(Some(PersistMode::SyncAll));
    for pair in pairs() {
        batch.insert(&table, &pair[..24], &pair[24..]);
    }
    batch.commit().expect("commit");
    for pair in pairs() {
        let found = table.get(&pair[..24]).expect("get");
        assert_eq!(found.as_deref(), Some(&pair[24..]));
    }
    report("used");
}
