//! redb = "4"
use redb::{Database, ReadableDatabase, TableDefinition};

const PAIRS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("pairs");

fn main() {
    let directory = std::env::args().nth(1).expect("a directory");
    let database = Database::create(std::path::Path::new(&directory).join("data.redb")).expect("open");
    let transaction = database.begin_write().expect("begin");
    transaction.open_table(PAIRS).expect("a table");
    transaction.commit().expect("commit");
    report("opened");
    let transaction = database.begin_write().expect("begin");
    {
        let mut table = transaction.open_table(PAIRS).expect("a table");
        for pair in pairs() {
            table.insert(&pair[..24], &pair[24..]).expect("put");
        }
    }
    transaction.commit().expect("commit");
    let table = database.begin_read().expect("begin").open_table(PAIRS).expect("a table");
    for pair in pairs() {
        let found = table.get(&pair[..24]).expect("get");
        assert_eq!(found.as_ref().map(|found| found.value()), Some(&pair[24..]));
    }
    report("used");
}
