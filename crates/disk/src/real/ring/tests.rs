//! How results of requests are judged, and a ring that breaks.

use super::*;
use crate::real::file::RealFile;
use crate::{AlignedBuf, File, Io, IoBuf, OpenHow};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

fn active(kind: IoKind) -> Active {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("untorn-ring-judge-{}-{number}", std::process::id()));
    let how = OpenHow::CREATE.buffered();
    let file: Arc<dyn File> =
        Arc::new(RealFile::open(&path, how, &Arc::default(), &Arc::default()).unwrap().0);
    std::fs::remove_file(Path::new(&path)).unwrap();
    let request = Request::new(file, Io::new(kind, |_| ()), &Arc::default()).unwrap();
    Active {
        request,
        outstanding: 0,
        transfer_result: None,
        sync_result: None,
        unordered: false,
        fault_seen: false,
    }
}

fn write(sync: bool) -> IoKind {
    IoKind::Write { buf: IoBuf::owned(AlignedBuf::zeroed(8192)), offset: 0, atomic: false, sync }
}

#[test]
fn a_short_write_takes_its_sync_along() {
    let mut active = active(write(true));
    (active.transfer_result, active.sync_result) = (Some(4096), Some(-libc::ECANCELED));
    assert!(matches!(judge(&mut active), Verdict::Again));
    assert_eq!(active.request.transferred, 4096);
    (active.transfer_result, active.sync_result) = (Some(4096), Some(0));
    assert!(matches!(judge(&mut active), Verdict::Done));
}

#[test]
fn a_failed_sync_is_reported_and_not_repeated() {
    let mut active = active(write(true));
    (active.transfer_result, active.sync_result) = (Some(8192), Some(-libc::EFAULT));
    assert!(matches!(judge(&mut active), Verdict::Again), "the thread that submitted it ended");
    (active.transfer_result, active.sync_result) = (None, Some(-libc::EIO));
    assert!(
        matches!(judge(&mut active), Verdict::SyncFailed(error) if error.raw_os_error() == Some(libc::EIO))
    );
}

#[test]
fn a_sync_that_lost_its_link_is_done_again_after_the_write() {
    let mut active = active(write(true));
    active.unordered = true;
    (active.transfer_result, active.sync_result) = (Some(8192), Some(0));
    assert!(matches!(judge(&mut active), Verdict::Again));
    active.unordered = false;
    active.sync_result = Some(0);
    assert!(matches!(judge(&mut active), Verdict::Done));
}

#[test]
fn a_real_error_is_an_error_and_a_cancelled_request_is_submitted_again() {
    let mut active = active(write(false));
    active.transfer_result = Some(-libc::ECANCELED);
    assert!(matches!(judge(&mut active), Verdict::Again));
    active.transfer_result = Some(-libc::EFAULT);
    assert!(matches!(judge(&mut active), Verdict::Again));
    active.transfer_result = Some(-libc::EFAULT);
    assert!(
        matches!(judge(&mut active), Verdict::Failed(error) if error.raw_os_error() == Some(libc::EFAULT))
    );
    active.transfer_result = Some(-libc::ENOSPC);
    assert!(
        matches!(judge(&mut active), Verdict::Failed(error) if error.raw_os_error() == Some(libc::ENOSPC))
    );
}

/// What writing zeros would fail with as well is an error; anything else says that zeros are to be
/// written, and is not asked again.
#[test]
fn an_allocation_of_zeros_is_done_refused_or_failed() {
    let mut active = active(IoKind::AllocateZeros { from: 0, to: 1 << 20, allocated: false });
    let mut judged = |result: i32| {
        active.transfer_result = Some(result);
        let verdict = judge(&mut active);
        let IoKind::AllocateZeros { allocated, .. } = active.request.kind else { unreachable!() };
        (verdict, allocated)
    };
    for code in [libc::EINTR, libc::ECANCELED] {
        assert!(matches!(judged(-code), (Verdict::Again, false)), "{code}");
    }
    assert!(matches!(judged(0), (Verdict::Done, true)));
    for code in [libc::EAGAIN, libc::EOPNOTSUPP, libc::EINVAL, libc::EPERM, libc::ENOSYS] {
        assert!(matches!(judged(-code), (Verdict::Done, false)), "{code}");
    }
    for code in [libc::ENOSPC, libc::EDQUOT, libc::EFBIG, libc::EIO] {
        let (Verdict::Failed(error), false) = judged(-code) else { panic!("{code} is no failure") };
        assert_eq!(error.raw_os_error(), Some(code));
    }
}

#[test]
fn a_ring_that_refuses_submissions_fails_what_it_has_not_taken_and_nothing_else() {
    let mut state = State::default();
    let slots: Vec<u32> = (0..4).map(|_| state.insert(active(write(true)).request)).collect();
    let identities: Vec<u64> = slots.iter().map(|slot| identity(*slot, 0)).collect();
    // The first pair is taken, the second is cut in two, the third is offered, the fourth is queued.
    for (slot, identity) in slots.iter().zip(&identities).take(3) {
        state.slots[*slot as usize].active.as_mut().unwrap().outstanding = 2;
        state.offered.extend([*identity, *identity | SYNC_PART]);
    }
    state.queue.push_back(slots[3]);
    state.note_taken(3);
    assert!(state.slots[slots[1] as usize].active.as_ref().unwrap().unordered);
    state.broken = Some(libc::EBADF);
    let mut finished = Vec::new();
    state.collect_broken(&mut finished);
    assert_eq!(finished.len(), 2);
    assert!(state.complete(identities[0], 8192).is_none());
    let first = state.complete(identities[0] | SYNC_PART, 0);
    assert!(matches!(first, Some((_, Verdict::Done))));
    let second = state.complete(identities[1], 8192);
    assert!(matches!(second, Some((_, Verdict::SyncFailed(_)))));
    assert!(state.is_idle());
}

/// A file that has nothing to read until somebody writes into it.
fn fifo(name: &str) -> Arc<dyn File> {
    let path = std::env::temp_dir().join(format!("untorn-ring-{name}-{}", std::process::id()));
    let text = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a path that ends with zero.
    assert_eq!(unsafe { libc::mkfifo(text.as_ptr(), 0o600) }, 0);
    let pipe = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    Arc::new(RealFile::of_pipe(pipe, &path))
}

#[test]
fn what_the_kernel_has_taken_is_answered_by_its_completion_even_when_the_ring_is_gone() {
    const LENGTH: usize = 512;
    let Ok(ring) = Ring::new() else { return };
    let (answers, answered) = std::sync::mpsc::channel();
    let read = |file: &Arc<dyn File>, name: &'static str| {
        let answers = answers.clone();
        let kind = IoKind::Read { buf: IoBuf::owned(AlignedBuf::zeroed(LENGTH)), offset: 0 };
        let io = Io::new(kind, move |result| answers.send((name, result.is_ok())).unwrap());
        Request::new(file.clone(), io, &Arc::default()).unwrap()
    };
    let give = |file: &Arc<dyn File>| {
        let fd = file.as_any().downcast_ref::<RealFile>().unwrap().descriptor().unwrap().as_raw_fd();
        // SAFETY: a buffer of that length.
        let count = unsafe { libc::write(fd, [7u8; LENGTH].as_ptr().cast(), LENGTH) };
        assert_eq!(count, LENGTH as isize);
    };
    let (first, second) = (fifo("first"), fifo("second"));
    ring.submit(vec![read(&first, "first"), read(&second, "second")]);
    // Something else takes the place of the ring's descriptor, as a bug elsewhere in the process might
    // do.
    let null = std::fs::File::open("/dev/null").unwrap();
    let place = std::os::fd::AsRawFd::as_raw_fd(&ring.shared.ring);
    // SAFETY: both descriptors are open; the ring's memory stays mapped.
    assert!(unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), place) } >= 0);
    ring.submit(vec![read(&first, "third")]);
    let next = || answered.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(next(), ("third", false), "nothing can be submitted any more");
    give(&first);
    assert_eq!(next(), ("first", true));
    give(&second);
    assert_eq!(next(), ("second", true));
}

#[test]
fn a_late_completion_does_not_match_the_next_request_in_its_slot() {
    let mut state = State::default();
    let slot = state.insert(active(write(false)).request);
    let old = identity(slot, state.slots[slot as usize].generation);
    assert!(state.take(slot).is_some());
    let again = state.insert(active(write(false)).request);
    assert_eq!(again, slot);
    assert!(state.complete(old, 8192).is_none());
    assert!(state.slots[slot as usize].active.as_ref().unwrap().transfer_result.is_none());
}
