//! The process's limit of open files.

/// Raises the soft limit of open files to the hard one and returns what it is then. The soft limit is 1,024
/// in most shells and under systemd, for the sake of programs that use `select`; an engine has a file for
/// each table in use and a server one for each connection.
pub fn raise_file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a system call that fills the limit it is given.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return UNKNOWN;
    }
    if limit.rlim_cur < limit.rlim_max {
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        // SAFETY: a system call that reads the limit it is given.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            return raised.rlim_cur;
        }
        tracing::warn!(soft = limit.rlim_cur, hard = limit.rlim_max, "cannot raise the limit of open files");
    }
    limit.rlim_cur
}

/// What POSIX promises at least is less; this is the usual soft limit.
const UNKNOWN: u64 = 1024;
