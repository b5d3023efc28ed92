//! heed = { version = "0.22", default-features = false }
use heed::EnvOpenOptions;
use heed::types::Bytes;

fn main() {
    let directory = std::env::args().nth(1).expect("a directory");
    let mut options = EnvOpenOptions::new();
    options.map_size(1 << 30);
    // SAFETY: the directory is this program's own; nobody else opens or changes the file.
    let environment = unsafe { options.open(directory) }.expect("open");
    let mut transaction = environment.write_txn().expect("begin");
    let table: heed::Database<Bytes, Bytes> =
        environment.create_database(&mut transaction, None).expect("a table");
    transaction.commit().expect("commit");
    report("opened");
    let mut transaction = environment.write_txn().expect("begin");
    for pair in pairs() {
        table.put(&mut transaction, &pair[..24], &pair[24..]).expect("put");
    }
    transaction.commit().expect("commit");
    let transaction = environment.read_txn().expect("begin");
    for pair in pairs() {
        assert_eq!(table.get(&transaction, &pair[..24]).expect("get"), Some(&pair[24..]));
    }
    report("used");
}
