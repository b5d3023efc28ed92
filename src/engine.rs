//! The layers below, for code that works with rows and keys in storage encoding directly, as SQL does. They
//! may change without notice. Reads and changes of rows are `txn`'s: `crates/txn/src/row/`.

pub use btree::collation::latin1::{Latin1Rule, character_of as latin1_character};
pub use btree::collation::{UnicodeRule, general_ci_weight, pad_space_sort_key, without_trailing_spaces};
pub use btree::compare::compare_values;
pub use btree::{Comparison, Field, FieldRef};
pub use disk::Error as DiskError;
pub use disk::{
    Environment, Event, NotedWait, RealEnvironment, RealOptions, TaskFuture, Wait, WaitKind, block_on, retry,
    thread_cpu_time,
};
pub use pagestore::Error as StoreError;
pub use redo::Error as RedoError;
pub use txn::*;
