//! Row operations: point reads, scans, insert, update, put, delete.
//!
//! Each is built of synchronous steps that either complete or say what they wait for, with all latches
//! released. One change of a row is one mini-transaction on the clustered index together with its undo
//! record, then one for each index entry that changes. An operation that fails midway takes itself back.
//!
//! ```text
//!   get       point read by clustered key            view       what a callback sees of a row
//!   scan      over a key_range of any index, from its scan_position on; consistent_scan and locking_scan do
//!             the work
//!   insert, update, put, delete     on top of  clustered (the row) and secondary (the entries); unique looks
//!             for rivals of an entry, write is what they share
//!   external  long values off-page                   remove     what rollback and purge share
//!   implicit_lock   the lock that a change is, made explicit
//! ```

mod clustered;
mod consistent_scan;
mod delete;
pub(crate) mod external;
mod get;
mod implicit_lock;
mod insert;
mod key_range;
mod locking_scan;
mod put;
pub(crate) mod remove;
mod scan;
mod scan_position;
mod secondary;
mod unique;
mod update;
mod view;
pub(crate) mod write;

pub use crate::lock::WaitPolicy;
pub use consistent_scan::{count, scan_at_once};
pub use delete::delete;
pub use external::OffPage;
pub use get::{get, get_at_once, get_step};
pub use insert::{OnDuplicate, insert, insert_with};
pub use key_range::{Direction, KeyRange, ScanIndex};
pub use put::{Put, put};
pub use scan::{Control, ReadMode, Scan, ScanState};
pub use update::update;
pub use view::Row;
pub(crate) use write::WriteBuffers;
