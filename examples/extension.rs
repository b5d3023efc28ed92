//! The buffer pool extension from the embedded API, with futures: a small buffer pool, a tier beside it, and
//! where the reads go.
//!
//! `cargo run --release --example extension [directory] [tier file]` (put the tier on the faster disk)

use untorn::asynchronous::Database;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass, Value};
use untorn::{Durability, Lock, Options, Result};

const ROWS: i64 = 20_000;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| "untorn-buffer-pool-extension".to_owned());
    let file = arguments.next().unwrap_or_else(|| "tier".to_owned());
    // Data of about 40 MiB, a pool of 8 MiB, a tier of 64 MiB.
    let options = Options::new(directory).buffer_pool_bytes(8 << 20).extension(file, 64 << 20);
    untorn::engine::block_on(async {
        let db = Database::open(options).await?;
        println!("{}", db.report());
        if db.database("shop").is_none() {
            fill(&db).await?;
        }
        for round in 1..=4 {
            let before = db.extension();
            look_up_all(&db).await?;
            let after = db.extension();
            println!(
                "round {round}: {} pages from the tier, {} from the data file, {} pages kept in the tier ({})",
                after.hits - before.hits,
                after.misses - before.misses,
                after.pages,
                after.state.name()
            );
        }
        // What is in the tier now serves again after the next start, also after a crash.
        db.close().await
    })
}

async fn fill(db: &Database) -> Result<()> {
    db.create_database("shop", Collation::Utf8mb4Bin).await?;
    let columns = vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("text", ColumnType::Blob { size: SizeClass::Long }),
    ];
    db.create_table("shop", "item", TableDef::new(columns).primary_key(&["id"])).await?;
    let table = db.table("shop", "item")?;
    let text = [b'x'; 2000];
    let mut transaction = db.transaction();
    for start in (0..ROWS).step_by(500) {
        transaction.begin();
        for id in start..start + 500 {
            transaction.insert(&table, &[Value::Int(id), Value::bytes(&text)]).await?;
        }
        transaction.commit(Durability::Sync).await?;
    }
    Ok(())
}

async fn look_up_all(db: &Database) -> Result<()> {
    let table = db.table("shop", "item")?;
    let mut transaction = db.transaction();
    for step in 0..ROWS {
        // All of them, in an order that no read-ahead helps.
        let id = step * 7919 % ROWS;
        transaction.begin();
        let row = transaction.get(&table, &[Value::Int(id)], Lock::None).await?;
        assert!(row.is_some(), "row {id} is gone");
        transaction.commit(Durability::Sync).await?;
    }
    Ok(())
}
