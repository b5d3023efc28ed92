//! The smallest use: a durable map from names to numbers.
//!
//! `cargo run --release --example key_value [directory]`

use untorn::{Database, Options, Result};

fn main() -> Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "untorn-key-value".to_owned());
    let db = Database::open(Options::new(directory).buffer_pool_bytes(32 << 20))?;
    let visits = db.key_value::<String, u64>("visits")?;

    let mut t = db.begin();
    for name in ["Ada", "Alan", "Grace"] {
        visits.change(&mut t, name, |count| Some(count.unwrap_or(0) + 1))?;
    }
    t.commit()?;

    let mut t = db.begin();
    for pair in visits.iter(&mut t) {
        let (name, count) = pair?;
        println!("{name}: {count}");
    }
    drop(t);
    db.close()
}
