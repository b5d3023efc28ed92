//! Asynchronous requests through one io_uring ring.
//!
//! Any thread submits: under one mutex it puts its whole batch into the submission queue and enters the
//! kernel once. One reaper thread waits for completions, takes all there are, and calls their `done` outside
//! the mutex. What the kernel reads or writes is kept alive in a slab until the completion came; the slot's
//! generation is part of the completion's identity, so a completion can never be taken for that of a later
//! request in the same slot.
//!
//! Invariants:
//! - Completions never overflow: no more entries are given to the kernel than the completion queue holds; the
//!   rest waits in `queue`, and the reaper goes on with it.
//! - A write with sync is a linked pair of entries. It is judged when both have completed: a short or
//!   interrupted write is continued, together with a new sync; a sync that failed is reported and never
//!   repeated. Should the kernel take only the first of a pair, the link does not hold, and the sync is done
//!   once more, after the write.
//! - When a submitting thread ends, the kernel gives up what it had queued for it: ECANCELED for queued work,
//!   EFAULT for the second of a pair (seen on Linux 6.18). Such requests never ran, and the reaper, which
//!   does not end before they do, submits them again.
//! - What the kernel has taken it may write to until its completion was seen, so nothing of it is ever freed
//!   or answered before. A ring that refuses to be waited on is looked at from time to time until the last
//!   completion has come.

use crate::IoKind;
use crate::real::file::fails_writes_too;
use crate::real::request::Request;
use crate::real::transfer::RWF_ATOMIC;
use io_uring::{IoUring, Probe, opcode, squeue, types};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

const SUBMISSION_ENTRIES: u32 = 1024;
const COMPLETION_ENTRIES: u32 = 4096;
/// The kernel takes up to 2 GiB less a page per transfer; larger ones are continued like short ones.
const LARGEST_TRANSFER: usize = 1 << 30;
/// A registered buffer may have up to 1 GiB.
const LARGEST_REGISTERED: usize = 1 << 30;

/// How long to wait where the kernel has no memory for requests, or cannot be waited on.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Identity of an entry: slot in the low 32 bits, generation above, and which entry of a pair in the top bit.
const SYNC_PART: u64 = 1 << 63;
const GENERATION_MASK: u32 = (1 << 31) - 1;
/// Identity of the entry that only wakes the reaper.
const WAKE: u64 = u64::MAX;

/// The ring and its reaper.
pub(crate) struct Ring {
    shared: Arc<Shared>,
    reaper: Option<JoinHandle<()>>,
}

struct Shared {
    ring: IoUring,
    state: Mutex<State>,
    /// Address ranges the kernel knows; the index is the buffer's number.
    registered: OnceLock<Vec<(usize, usize)>>,
}

#[derive(Default)]
struct State {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots whose next entries are still to be put into the submission queue.
    queue: VecDeque<u32>,
    /// Entries put into the submission queue and not yet taken by the kernel.
    offered: VecDeque<u64>,
    /// Entries taken by the kernel whose completion has not been seen.
    in_flight: usize,
    stopping: bool,
    /// The kernel refuses the ring itself; nothing can be submitted any more.
    broken: Option<i32>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    active: Option<Active>,
}

struct Active {
    request: Request,
    /// Entries not yet completed.
    outstanding: u8,
    transfer_result: Option<i32>,
    sync_result: Option<i32>,
    /// The sync may have overtaken its write.
    unordered: bool,
    /// A transfer was given up with EFAULT once; the second time the address is really bad.
    fault_seen: bool,
}

/// What the completions of a request mean.
enum Verdict {
    Again,
    Done,
    Failed(io::Error),
    SyncFailed(io::Error),
}

/// What entering the kernel came to.
enum Entered {
    /// It may take more.
    GoOn,
    /// It has taken what there is, or the reaper will go on.
    Enough,
    /// It takes nothing now, and nothing is under way.
    Starved,
}

impl Ring {
    pub(crate) fn new() -> io::Result<Ring> {
        let ring =
            IoUring::builder().setup_cqsize(COMPLETION_ENTRIES).dontfork().build(SUBMISSION_ENTRIES)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Read::CODE,
            opcode::Write::CODE,
            opcode::ReadFixed::CODE,
            opcode::WriteFixed::CODE,
            opcode::Fsync::CODE,
            opcode::Nop::CODE,
        ];
        if !needed.iter().all(|code| probe.is_supported(*code)) {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel's io_uring lacks needed operations",
            ));
        }
        let shared = Arc::new(Shared { ring, state: Mutex::default(), registered: OnceLock::new() });
        let reaper = {
            let shared = shared.clone();
            std::thread::Builder::new().name("untorn-io".into()).spawn(move || shared.reap())?
        };
        Ok(Ring { shared, reaper: Some(reaper) })
    }

    /// Starts all requests with as few entries into the kernel as the queues allow (one, up to their sizes).
    pub(crate) fn submit(&self, requests: Vec<Request>) {
        let mut finished = Vec::new();
        let starved = {
            let mut state = self.shared.state.lock();
            for request in requests {
                let slot = state.insert(request);
                if state.nothing_to_do(slot) {
                    finished.extend(state.take(slot).map(|request| (request, Verdict::Done)));
                } else {
                    state.queue.push_back(slot);
                }
            }
            let starved = self.shared.start(&mut state);
            state.collect_broken(&mut finished);
            starved
        };
        if starved {
            self.shared.start_patiently(&mut finished);
        }
        answer(finished);
    }

    /// # Safety
    /// The memory stays mapped until the ring is dropped.
    pub(crate) unsafe fn register_buffers(&self, buffers: &[(*mut u8, usize)]) -> bool {
        let mut parts = Vec::new();
        for (start, length) in buffers {
            let mut at = 0;
            while at < *length {
                let step = (*length - at).min(LARGEST_REGISTERED);
                parts.push((*start as usize + at, step));
                at += step;
            }
        }
        let described: Vec<libc::iovec> = parts
            .iter()
            .map(|(start, length)| libc::iovec { iov_base: *start as *mut libc::c_void, iov_len: *length })
            .collect();
        // Under the state's lock, so that of two callers only one can register.
        let _one_at_a_time = self.shared.state.lock();
        if parts.is_empty() || self.shared.registered.get().is_some() {
            return false;
        }
        // SAFETY: promised by the caller; the kernel pins the pages until the ring is closed.
        match unsafe { self.shared.ring.submitter().register_buffers(&described) } {
            Ok(()) => self.shared.registered.set(parts).is_ok(),
            Err(error) => {
                tracing::debug!(%error, "the kernel refuses to register buffers; plain transfers are used");
                false
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let reachable = {
            let mut state = self.shared.state.lock();
            state.stopping = true;
            if self.shared.wake(&mut state) {
                drop(state);
                self.shared.start_patiently(&mut Vec::new());
                state = self.shared.state.lock();
            }
            // A ring that takes nothing cannot wake its reaper either; the thread is left behind.
            state.broken.is_none()
        };
        if let Some(reaper) = self.reaper.take()
            && reachable
            // A completion may drop the last reference to the storage; the reaper then ends by itself.
            && reaper.thread().id() != std::thread::current().id()
            && reaper.join().is_err()
        {
            tracing::error!("the completion thread had panicked");
        }
    }
}

fn answer(finished: Vec<(Request, Verdict)>) {
    for (request, verdict) in finished {
        match verdict {
            Verdict::Done => request.succeed(),
            Verdict::Failed(error) => request.fail(error),
            Verdict::SyncFailed(error) => request.fail_sync(error),
            Verdict::Again => unreachable!("a request to be continued is not finished"),
        }
    }
}

impl Shared {
    /// The reaper thread.
    fn reap(&self) {
        let mut seen: Vec<(u64, i32)> = Vec::new();
        let mut wait_failed = false;
        loop {
            if wait_failed {
                std::thread::sleep(LOOK_AGAIN);
            } else if let Err(error) = self.wait() {
                tracing::error!(%error, "waiting for I/O completions failed");
                wait_failed = true;
                self.state.lock().broken = Some(error.raw_os_error().unwrap_or(libc::EIO));
            }
            // SAFETY: only this thread ever touches the completion queue.
            let completions = unsafe { self.ring.completion_shared() };
            seen.extend(completions.map(|entry| (entry.user_data(), entry.result())));
            let mut finished = Vec::new();
            let (starved, mut stop) = {
                let mut state = self.state.lock();
                for (identity, result) in seen.drain(..) {
                    finished.extend(state.complete(identity, result));
                }
                let starved = self.start(&mut state);
                state.collect_broken(&mut finished);
                (starved, state.may_stop())
            };
            if starved {
                stop = self.start_patiently(&mut finished);
            }
            answer(finished);
            if stop {
                return;
            }
        }
    }

    /// Waits until there is a completion, or there may be.
    fn wait(&self) -> io::Result<()> {
        // SAFETY: no argument is passed; waiting for completions touches none of our memory.
        let waited =
            unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, 1, IORING_ENTER_GETEVENTS, None) };
        match waited {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Gives the kernel what is queued, as far as the queues have room. True when it takes nothing for the
    /// time being and no completion is to come that would make us try again: see [`Shared::start_patiently`].
    fn start(&self, state: &mut State) -> bool {
        while state.broken.is_none() {
            self.offer(state);
            if state.offered.is_empty() {
                return false;
            }
            match self.enter(state) {
                Entered::GoOn => {}
                Entered::Enough => return false,
                Entered::Starved => return true,
            }
        }
        false
    }

    /// Tries again until the kernel takes something, and sleeps in between without the mutex, which
    /// completions and other submitters need. Returns whether the reaper may stop.
    fn start_patiently(&self, finished: &mut Vec<(Request, Verdict)>) -> bool {
        loop {
            std::thread::sleep(LOOK_AGAIN);
            let mut state = self.state.lock();
            let starved = self.start(&mut state);
            state.collect_broken(finished);
            if !starved {
                return state.may_stop();
            }
        }
    }

    /// Puts queued requests into the submission queue.
    fn offer(&self, state: &mut State) {
        // SAFETY: the submission queue is touched only under the state's mutex, which `state` proves.
        let mut entries = unsafe { self.ring.submission_shared() };
        while let Some(slot) = state.queue.front().copied() {
            let Slot { generation, active } = &mut state.slots[slot as usize];
            let Some(active) = active else { unreachable!("a queued slot is in use") };
            let identity = identity(slot, *generation);
            let built = self.build(&active.request, identity);
            let needed = built.iter().flatten().count();
            let started = state.in_flight + state.offered.len();
            // One entry is left for waking the reaper.
            if entries.capacity() - entries.len() < needed || started + needed >= COMPLETION_ENTRIES as usize
            {
                return;
            }
            active.outstanding = needed as u8;
            active.unordered = false;
            state.queue.pop_front();
            for entry in built.iter().flatten() {
                // SAFETY: the file and the buffers the entry names are kept alive in the slab until it has
                // completed.
                let pushed = unsafe { entries.push(entry) };
                assert!(pushed.is_ok(), "there was room in the submission queue");
                state.offered.push_back(entry.get_user_data());
            }
        }
    }

    /// Enters the kernel once.
    fn enter(&self, state: &mut State) -> Entered {
        // SAFETY: as for the entries offered; no argument is passed.
        let taken =
            unsafe { self.ring.submitter().enter::<libc::sigset_t>(state.offered.len() as u32, 0, 0, None) };
        match taken {
            Ok(count) => {
                state.note_taken(count);
                match !state.offered.is_empty() || !state.queue.is_empty() && count > 0 {
                    true => Entered::GoOn,
                    false => Entered::Enough,
                }
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR) => Entered::GoOn,
                // Out of memory for requests, or completions to be fetched first: the reaper goes on after
                // the next completion, and when there is none to come, we do.
                Some(libc::EAGAIN | libc::EBUSY) if state.in_flight > 0 => Entered::Enough,
                Some(libc::EAGAIN | libc::EBUSY) => Entered::Starved,
                other => {
                    tracing::error!(%error, "the kernel refuses I/O submissions");
                    state.broken = Some(other.unwrap_or(libc::EIO));
                    Entered::Enough
                }
            },
        }
    }

    /// Makes the reaper look around. True as [`Shared::start`].
    fn wake(&self, state: &mut State) -> bool {
        {
            // SAFETY: under the state's mutex, see `offer`.
            let mut entries = unsafe { self.ring.submission_shared() };
            // SAFETY: a no-op names no memory.
            if unsafe { entries.push(&opcode::Nop::new().build().user_data(WAKE)) }.is_err() {
                // The queue is full of requests whose completions will wake the reaper as well.
                return false;
            }
            state.offered.push_back(WAKE);
        }
        self.start(state)
    }

    /// The entries that continue a request.
    fn build(&self, request: &Request, identity: u64) -> [Option<squeue::Entry>; 2] {
        let fd = types::Fd(request.fd());
        let sync = || {
            opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build().user_data(identity | SYNC_PART)
        };
        match &request.kind {
            IoKind::Sync => [Some(sync()), None],
            IoKind::Write { sync: true, .. } if request.transferred == request.length() => {
                [Some(sync()), None]
            }
            IoKind::Write { sync: true, .. } => {
                let write = self.transfer(request, fd).user_data(identity).flags(squeue::Flags::IO_LINK);
                [Some(write), Some(sync())]
            }
            // The kernel does it on a thread of its own. One that does not know it says that it cannot.
            IoKind::AllocateZeros { from, .. } => {
                let entry = opcode::Fallocate::new(fd, request.length() as u64)
                    .offset(*from)
                    .mode(libc::FALLOC_FL_ZERO_RANGE)
                    .build();
                [Some(entry.user_data(identity)), None]
            }
            _ => [Some(self.transfer(request, fd).user_data(identity)), None],
        }
    }

    /// The entry that transfers what is left of a request.
    fn transfer(&self, request: &Request, fd: types::Fd) -> squeue::Entry {
        let (buf, offset, write_flags) = match &request.kind {
            IoKind::Read { buf, offset } => (buf, *offset, None),
            IoKind::Write { buf, offset, atomic, .. } => {
                (buf, *offset, Some(if *atomic { RWF_ATOMIC } else { 0 }))
            }
            IoKind::AllocateZeros { .. } | IoKind::Sync => unreachable!("it transfers nothing"),
        };
        let left = (request.length() - request.transferred).min(LARGEST_TRANSFER);
        let address = buf.address().wrapping_add(request.transferred);
        let at = offset + request.transferred as u64;
        let length = left as u32;
        // The kernel takes an atomic write from plain user memory only and refuses one from registered
        // buffers.
        let plain_only = write_flags.is_some_and(|flags| flags & RWF_ATOMIC != 0);
        let registered = if plain_only { None } else { self.registered_number(address as usize, left) };
        match (write_flags, registered) {
            (None, None) => opcode::Read::new(fd, address, length).offset(at).build(),
            (None, Some(number)) => opcode::ReadFixed::new(fd, address, length, number).offset(at).build(),
            (Some(flags), None) => opcode::Write::new(fd, address, length).offset(at).rw_flags(flags).build(),
            (Some(flags), Some(number)) => {
                opcode::WriteFixed::new(fd, address, length, number).offset(at).rw_flags(flags).build()
            }
        }
    }

    /// The number of the registered buffer that holds the whole range.
    fn registered_number(&self, address: usize, length: usize) -> Option<u16> {
        let ranges = self.registered.get()?;
        let holds = |(start, size): &(usize, usize)| *start <= address && address + length <= *start + *size;
        ranges.iter().position(holds).and_then(|number| u16::try_from(number).ok())
    }
}

/// `IORING_ENTER_GETEVENTS` (include/uapi/linux/io_uring.h).
const IORING_ENTER_GETEVENTS: u32 = 1;

fn identity(slot: u32, generation: u32) -> u64 {
    u64::from(slot) | u64::from(generation & GENERATION_MASK) << 32
}

impl State {
    fn may_stop(&self) -> bool {
        (self.stopping || self.broken.is_some()) && self.is_idle()
    }

    fn insert(&mut self, request: Request) -> u32 {
        let active = Active {
            request,
            outstanding: 0,
            transfer_result: None,
            sync_result: None,
            unordered: false,
            fault_seen: false,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize].active = Some(active);
        slot
    }

    /// Frees a slot; completions of its former request no longer match it.
    fn take(&mut self, slot: u32) -> Option<Request> {
        let entry = &mut self.slots[slot as usize];
        let active = entry.active.take()?;
        entry.generation = entry.generation.wrapping_add(1) & GENERATION_MASK;
        self.free.push(slot);
        Some(active.request)
    }

    /// An empty transfer without a sync.
    fn nothing_to_do(&self, slot: u32) -> bool {
        self.slots[slot as usize].active.as_ref().is_some_and(|active| {
            active.request.length() == 0
                && matches!(active.request.kind, IoKind::Read { .. } | IoKind::Write { sync: false, .. })
        })
    }

    fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.offered.is_empty() && self.queue.is_empty()
    }

    /// The kernel took the first `count` entries offered.
    fn note_taken(&mut self, count: usize) {
        for _ in 0..count {
            self.offered.pop_front();
        }
        self.in_flight += count;
        // A pair that was cut in two has lost its link.
        if let Some(next) = self.offered.front().copied()
            && next != WAKE
            && next & SYNC_PART != 0
            && let Some(active) = self.find(next)
        {
            active.unordered = true;
        }
    }

    fn find(&mut self, identity: u64) -> Option<&mut Active> {
        let slot = self.slots.get_mut(identity as u32 as usize)?;
        let generation = (identity & !SYNC_PART) >> 32;
        if u64::from(slot.generation) != generation { None } else { slot.active.as_mut() }
    }

    /// Takes in one completion; gives the request back when it is finished.
    fn complete(&mut self, identity: u64, result: i32) -> Option<(Request, Verdict)> {
        self.in_flight = self.in_flight.saturating_sub(1);
        if identity == WAKE {
            return None;
        }
        let Some(active) = self.find(identity) else {
            tracing::error!(identity, result, "a completion that belongs to no request");
            return None;
        };
        if identity & SYNC_PART == 0 {
            active.transfer_result = Some(result);
        } else {
            active.sync_result = Some(result);
        }
        active.outstanding = active.outstanding.saturating_sub(1);
        if active.outstanding > 0 {
            return None;
        }
        let slot = identity as u32;
        match judge(active) {
            Verdict::Again => {
                self.queue.push_back(slot);
                None
            }
            verdict => self.take(slot).map(|request| (request, verdict)),
        }
    }

    /// When the kernel refuses submissions, fails every request it has not taken. What it has taken still
    /// completes, and keeps its buffers until then.
    fn collect_broken(&mut self, finished: &mut Vec<(Request, Verdict)>) {
        let Some(code) = self.broken else { return };
        let mut untaken: Vec<u32> = self.queue.drain(..).collect();
        for identity in std::mem::take(&mut self.offered) {
            if let Some(active) = self.find(identity) {
                active.outstanding = active.outstanding.saturating_sub(1);
                if active.outstanding == 0 {
                    untaken.push(identity as u32);
                } else {
                    // The write of a pair was taken and its sync was not, or neither was and the sync comes
                    // next.
                    active.sync_result = Some(-code);
                }
            }
        }
        for slot in untaken {
            let error = io::Error::from_raw_os_error(code);
            finished.extend(self.take(slot).map(|request| (request, Verdict::Failed(error))));
        }
    }
}

/// Whether this result of a sync means that it was given up before it started: its write failed or was short,
/// or the thread that submitted it ended. A sync names no memory, so EFAULT means nothing else.
fn never_ran(result: i32) -> bool {
    matches!(-result, libc::ECANCELED | libc::EFAULT)
}

/// Decides what the results of a request's entries mean. Results are negative error numbers or byte counts.
fn judge(active: &mut Active) -> Verdict {
    let error = |result: i32| io::Error::from_raw_os_error(-result);
    let allocates = matches!(active.request.kind, IoKind::AllocateZeros { .. });
    let sync = active.sync_result.take();
    if let Some(failed) = sync
        && failed < 0
        && !never_ran(failed)
    {
        return if matches!(active.request.kind, IoKind::Sync) {
            Verdict::Failed(error(failed))
        } else {
            Verdict::SyncFailed(error(failed))
        };
    }
    match active.transfer_result.take() {
        None => {}
        Some(result) if matches!(-result, libc::EINTR | libc::ECANCELED) => return Verdict::Again,
        // Of an allocation it is the file system's answer, which another try would get again.
        Some(result) if -result == libc::EAGAIN && !allocates => return Verdict::Again,
        Some(result) if -result == libc::EFAULT && !active.fault_seen => {
            active.fault_seen = true;
            return Verdict::Again;
        }
        Some(result) if allocates => {
            if fails_writes_too(-result) {
                return Verdict::Failed(error(result));
            }
            active.request.note_allocated(result == 0);
            return Verdict::Done;
        }
        Some(result) if result < 0 => return Verdict::Failed(error(result)),
        Some(count) => match active.request.transfer(count as usize) {
            Ok(true) => {}
            Ok(false) => return Verdict::Again,
            Err(error) => return Verdict::Failed(error),
        },
    }
    match (&active.request.kind, sync) {
        (IoKind::Read { .. } | IoKind::Write { sync: false, .. }, _) => Verdict::Done,
        (_, Some(result)) if result >= 0 && !active.unordered => Verdict::Done,
        // Cancelled because its write was short, or never ran, or may have run too early.
        _ => Verdict::Again,
    }
}

#[cfg(test)]
mod tests;
