//! The same database for programs with an executor: operations are futures.
//!
//! [`Database`] and [`Transaction`] have the operations of their namesakes at the crate's root, which block
//! the calling thread. [`crate::Database::asynchronous`] gives one for the other; both may be used at the
//! same time.
//!
//! The futures run on any executor, are [`Send`], and block no thread except for the file-system calls of
//! definitions. Every one of them may be dropped at any await point, see the crate's page.
//!
//! ```
//! use untorn::asynchronous::Database;
//! use untorn::schema::{ColumnDef, TableDef};
//! use untorn::types::{Collation, ColumnType, Value};
//! use untorn::{Durability, Lock, Options};
//!
//! # fn main() -> untorn::Result<()> {
//! # let directory = untorn::doc_test_directory();
//! # untorn::asynchronous::block_on(async {
//! let db = Database::open(Options::new(&directory).buffer_pool_bytes(16 << 20)).await?;
//! db.create_database("shop", Collation::Utf8mb4Bin)?;
//! let columns = vec![
//!     ColumnDef::new("id", ColumnType::bigint()),
//!     ColumnDef::new("stock", ColumnType::int()),
//! ];
//! db.create_table("shop", "item", TableDef::new(columns).primary_key(&["id"])).await?;
//! let item = db.table("shop", "item")?;
//!
//! let mut t = db.transaction();
//! t.begin();
//! t.insert(&item, &[Value::Int(1), Value::Int(10)]).await?;
//! t.update(&item, &[Value::Int(1)], &[("stock", Value::Int(9))]).await?;
//! let row = t.get(&item, &[Value::Int(1)], Lock::None).await?;
//! assert_eq!(row, Some(vec![Value::Int(1), Value::Int(9)]));
//! t.commit(Durability::Sync).await?;
//! db.close().await?;
//! # std::fs::remove_dir_all(&directory).ok();
//! # Ok(())
//! # })
//! # }
//! ```

pub use disk::block_on;

pub use crate::database::Database;
pub use crate::rows::Rows;
pub use crate::transaction::{NotUsable, TableLock, TableLockRequest, Transaction};
