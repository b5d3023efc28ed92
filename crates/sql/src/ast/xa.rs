//! XA.

use untorn::Xid;

/// `XA …`.
#[derive(Clone, Debug, PartialEq)]
pub enum Xa {
    /// `START` or `BEGIN`.
    Start(Xid, Option<XaStart>),
    /// `END`; whether it says `SUSPEND`.
    End(Xid, bool),
    /// `PREPARE`.
    Prepare(Xid),
    /// `COMMIT`; whether it says `ONE PHASE`.
    Commit(Xid, bool),
    /// `ROLLBACK`.
    Rollback(Xid),
    /// `RECOVER`; whether it says `CONVERT XID`.
    Recover(bool),
}

/// What START may say besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XaStart {
    /// `JOIN`.
    Join,
    /// `RESUME`.
    Resume,
}
