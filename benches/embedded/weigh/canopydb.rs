//! canopydb = "0.2"
use canopydb::{EnvOptions, Environment};

const PAIRS: &[u8] = b"pairs";

fn main() {
    let directory = std::env::args().nth(1).expect("a directory");
    let environment = Environment::with_options(EnvOptions::new(directory)).expect("open");
    let database = environment.get_or_create_database("pairs").expect("a database");
    let transaction = database.begin_write().expect("begin");
    drop(transaction.get_or_create_tree(PAIRS).expect("a tree"));
    transaction.commit_with(true).expect("commit");
    report("opened");
    let transaction = database.begin_write().expect("begin");
    {
        let mut tree = transaction.get_or_create_tree(PAIRS).expect("a tree");
        for pair in pairs() {
            tree.insert(&pair[..24], &pair[24..]).expect("put");
        }
    }
    transaction.commit_with(true).expect("commit");
    let transaction = database.begin_read().expect("begin");
    let tree = transaction.get_tree(PAIRS).expect("a tree").expect("a tree");
    for pair in pairs() {
        let found = tree.get(&pair[..24]).expect("get");
        assert_eq!(found.as_deref(), Some(&pair[24..]));
    }
    report("used");
}
