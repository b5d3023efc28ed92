//! AUTO_INCREMENT, an insert that was dropped, and a crash.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Environment, SimulatedEnvironment};
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Options, Range};

async fn open(environment: &Arc<SimulatedEnvironment>) -> Database {
    let shared: Arc<dyn Environment> = environment.clone();
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(96 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 2 << 20;
    options.log_buffer_bytes = 1 << 20;
    Database::open_in(shared, options).await.unwrap()
}

#[test]
fn the_counter_goes_on_behind_what_was_committed() {
    let mut environment = SimulatedEnvironment::new(1);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        db.create_database("test", Collation::Utf8mb4Bin).unwrap();
        let def = TableDef::new(vec![ColumnDef::new("id", ColumnType::int()).auto_increment()]);
        db.create_table("test", "t", def.primary_key(&["id"])).await.unwrap();
        let table = db.table("test", "t").unwrap();
        let mut first = db.transaction();
        first.begin();
        first.insert(&table, &[Value::Null]).await.unwrap();
        first.commit(Durability::Sync).await.unwrap();
        // Much is read, and the root page is in memory no longer: the insert waits for it, and is dropped there.
        let def = TableDef::new(vec![
            ColumnDef::new("id", ColumnType::int()),
            ColumnDef::new("text", ColumnType::VarBinary { bytes: 2000 }),
        ]);
        db.create_table("test", "large", def.primary_key(&["id"])).await.unwrap();
        let large = db.table("test", "large").unwrap();
        let mut filler = db.transaction();
        filler.begin();
        for id in 0..600 {
            filler.insert(&large, &[Value::Int(id), Value::bytes(&[7; 1500]).into_owned()]).await.unwrap();
        }
        filler.commit(Durability::Sync).await.unwrap();
        for _ in 0..3 {
            filler.begin();
            filler.for_each(&large, &Range::all(), |_| true).await.unwrap();
            filler.commit(Durability::Sync).await.unwrap();
        }
        let mut cut = db.transaction();
        cut.begin();
        {
            let values = [Value::Int(5000)];
            let mut insert = Box::pin(cut.insert(&table, &values));
            assert!(insert.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        drop(cut);
        let mut second = db.transaction();
        second.begin();
        second.insert(&table, &[Value::Int(5000)]).await.unwrap();
        second.commit(Durability::Sync).await.unwrap();
        std::mem::forget((db, first, second));
    });
    let disk = environment.disk().crash(1);
    environment.shutdown();
    environment = SimulatedEnvironment::with_storage(1, disk);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        let table = db.table("test", "t").unwrap();
        let mut t = db.transaction();
        t.begin();
        assert!(t.get(&table, &[Value::Int(5000)], untorn::Lock::None).await.unwrap().is_some());
        let next = t.insert(&table, &[Value::Null]).await.unwrap();
        assert!(next > Some(5000), "the table has a row 5000, and the next number is {next:?}");
    });
}
