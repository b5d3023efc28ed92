//! The same database for programs with an executor: operations are futures.
//!
//! [`Database`], [`Definitions`], [`Transaction`], [`KeyValue`] and their iterators have the operations of
//! their namesakes at the crate's root, which block the calling thread. [`crate::Database::asynchronous`]
//! gives one for the other; both may be used at the same time.
//!
//! The futures run on any executor and are [`Send`]. Definitions change on threads of the engine; two things
//! block the caller's: [`Database::open`], which reads files and recovers, and
//! [`Database::set_doublewrite`].
//!
//! Every future may be dropped at any await point. If an operation's future is dropped, it is rolled back
//! completely before the transaction's next operation. What happens to others that are dropped is said with
//! each: [definitions](Definitions), [`Database::transact`], [`Transaction::commit`],
//! [`Database::resize_buffer_pool`], [`Database::close`], which is begun again by the next call.
//!
//! ```
//! use untorn::asynchronous::Database;
//! use untorn::schema::{ColumnDef, TableDef};
//! use untorn::types::{ColumnType, Value};
//! use untorn::{Durability, Lock, Options};
//!
//! # fn main() -> untorn::Result<()> {
//! # let directory = untorn::doc_test_directory();
//! # untorn::asynchronous::block_on(async {
//! let db = Database::open(Options::new(&directory).buffer_pool_bytes(16 << 20)).await?;
//! let columns = vec![
//!     ColumnDef::new("id", ColumnType::bigint()),
//!     ColumnDef::new("stock", ColumnType::int()),
//! ];
//! let def = TableDef::new(columns).primary_key(&["id"]);
//! let item = db.create_table_if_missing("shop", "item", def).await?;
//!
//! let mut t = db.begin();
//! t.insert(&item, &[Value::Int(1), Value::Int(10)]).await?;
//! t.update(&item, &[Value::Int(1)], &[("stock", Value::Int(9))]).await?;
//! let row = t.get(&item, &[Value::Int(1)], Lock::None).await?;
//! assert_eq!(row, Some(vec![Value::Int(1), Value::Int(9)]));
//! t.commit(Durability::Sync).await?;
//!
//! // Run again after a deadlock, committed durably.
//! let sold = db.transact(async |mut t| t.delete(&item, &[Value::Int(1)]).await).await?;
//! assert!(sold);
//! db.close().await?;
//! # std::fs::remove_dir_all(&directory).ok();
//! # Ok(())
//! # })
//! # }
//! ```

pub use disk::block_on;

pub use crate::changes::ChangeFeed;
pub use crate::database::Database;
pub use crate::definitions::Definitions;
pub use crate::key_value::{KeyValue, Pairs};
#[doc(hidden)]
pub use crate::prepared::{Patience, XidReservation};
pub use crate::rows::Rows;
pub use crate::transact::Run;
pub use crate::transaction::{NotUsable, TableLock, TableLockRequest, Transaction};
