//! The simulated disk: calls are numbered, may be told to fail, and end up in file images that know what is
//! durable.

use crate::probe::Atomic;
use crate::simulated::crash::{Crash, FileMoment, Moment};
use crate::simulated::false_reads::{FalseRead, Watch};
use crate::simulated::faults::{Fault, FaultKind, Misbehaviour, Rule, Rules, error_of, power_is_gone};
use crate::simulated::file::SimulatedFile;
use crate::simulated::image::{Change, FileImage};
use crate::simulated::names::{Names, Node, plain};
use crate::simulated::transfer::{change_of, check_aligned};
use crate::{
    Entry, Error, File, Io, IoBuf, IoCounters, IoDone, IoKind, OpenHow, OpenMode, Random, Result, Storage,
};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Offsets and lengths of direct transfers are multiples of this.
pub(crate) const BLOCK: usize = 512;

/// A disk in memory that keeps what was synced apart from what was not.
pub struct SimulatedStorage {
    pub(crate) state: Arc<Mutex<State>>,
}

/// What the disk says and does about atomic writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtomicPromise {
    /// What probes are told; the writes themselves work either way.
    pub(crate) offered: Atomic,
    /// A crash tears them all the same.
    pub(crate) broken: bool,
    /// From this atomic write on (counted from 0) all are refused.
    pub(crate) refused_from: Option<u64>,
    /// None finds the room it needs.
    pub(crate) without_room: bool,
}

impl Default for AtomicPromise {
    fn default() -> AtomicPromise {
        AtomicPromise { offered: Atomic::None, broken: false, refused_from: None, without_room: false }
    }
}

/// Files can be made longer by this many bytes more; what asks for more fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) bytes: usize,
    pub(crate) refusal: FaultKind,
}

/// Who is told of every moment at which something becomes durable.
type Observer = Box<dyn FnMut(Moment) + Send>;

pub(crate) struct State {
    pub(crate) files: Vec<FileImage>,
    names: Names,
    pub(crate) random: Random,
    calls: u64,
    faults: BTreeMap<u64, FaultKind>,
    pub(crate) rules: Rules,
    pub(crate) watch: Watch,
    pub(crate) dead: bool,
    /// What is left to make files longer, where that is little.
    pub(crate) room: Option<Room>,
    pub(crate) atomic: AtomicPromise,
    pub(crate) atomic_writes: u64,
    /// It can reserve blocks without writing them.
    pub(crate) allocates: bool,
    /// How often that was done.
    pub(crate) allocations: u64,
    pub(crate) failing_sync: Option<u64>,
    observer: Option<Observer>,
    in_flight: Vec<InFlight>,
    pub(crate) counters: IoCounters,
    history: u64,
    locks: BTreeSet<PathBuf>,
}

struct InFlight {
    file: Arc<dyn File>,
    number: usize,
    kind: IoKind,
    done: IoDone,
    fault: Option<FaultKind>,
    /// For a sync: which changes it covers.
    mark: u64,
    /// For a read of a watched file: what an honest disk held when it was asked.
    honest: Option<Vec<u8>>,
}

impl SimulatedStorage {
    /// An empty disk. The seed decides what failing calls leave behind.
    pub fn new(seed: u64) -> Arc<SimulatedStorage> {
        SimulatedStorage::from_parts(seed, Vec::new(), Names::default(), AtomicPromise::default())
    }

    pub(crate) fn from_parts(
        seed: u64,
        files: Vec<FileImage>,
        names: Names,
        atomic: AtomicPromise,
    ) -> Arc<SimulatedStorage> {
        let state = State {
            files,
            names,
            random: Random::new(seed),
            calls: 0,
            faults: BTreeMap::new(),
            rules: Rules::default(),
            watch: Watch::default(),
            dead: false,
            room: None,
            atomic,
            atomic_writes: 0,
            allocates: false,
            allocations: 0,
            failing_sync: None,
            observer: None,
            in_flight: Vec::new(),
            counters: IoCounters::default(),
            history: 0xcbf2_9ce4_8422_2325,
            locks: BTreeSet::new(),
        };
        Arc::new(SimulatedStorage { state: Arc::new(Mutex::new(state)) })
    }

    /// Drops the requests under way, unanswered. They hold their files, and those the disk: without this a
    /// disk that is not run to the end of its requests is never freed. For after the last
    /// [`SimulatedStorage::moment`].
    pub fn abandon_requests(&self) {
        // Outside the lock, and repeated: those who waited may add others.
        loop {
            let under_way = std::mem::take(&mut self.state.lock().in_flight);
            if under_way.is_empty() {
                return;
            }
        }
    }

    /// The disk as it is at this moment, to try crashes on.
    pub fn moment(&self) -> Moment {
        self.state.lock().moment()
    }

    /// What a power loss at this moment leaves: of the writes that were not synced (or still under way) any
    /// subset, in any order, each whole or torn; of the names that were not synced any subset. This disk
    /// stays as it is, so that many crashes can be tried from one moment.
    pub fn crash(&self, seed: u64) -> Arc<SimulatedStorage> {
        self.moment().crash(Crash::Random(seed)).0
    }

    /// Calls `observer` with every moment just before something becomes durable (a sync of a file or of a
    /// directory): those are all moments at which a crash can make a difference. It runs inside the storage
    /// and must not call it.
    pub fn observe_syncs(&self, observer: impl FnMut(Moment) + Send + 'static) {
        self.state.lock().observer = Some(Box::new(observer));
    }

    /// Ends [`SimulatedStorage::observe_syncs`].
    pub fn stop_observing(&self) {
        self.state.lock().observer = None;
    }

    /// Plans a fault.
    pub fn plan(&self, fault: Fault) {
        self.state.lock().faults.insert(fault.call, fault.kind);
    }

    /// Takes back the faults that have not struck yet.
    pub fn forget_faults(&self) {
        self.state.lock().faults.clear();
    }

    /// From now on calls on files whose path contains `files` go wrong this way, one in `one_in` on average
    /// (1: all). Several rules may be in force; the first that strikes a call counts.
    pub fn misbehave(&self, files: &str, what: Misbehaviour, one_in: usize) {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.rules.rules.push(Rule { files: files.to_owned(), what, one_in: one_in.max(1) });
        if state.rules.want_old_contents() {
            state.files.iter_mut().for_each(FileImage::remember_before);
        }
    }

    /// Fills the file system up, or makes room again: until then no file can be made longer (ENOSPC).
    pub fn fill_up(&self, full: bool) {
        self.state.lock().room = full.then_some(Room { bytes: 0, refusal: FaultKind::Enospc });
    }

    /// Leaves room to make files longer by this many bytes. What asks for more gets the part there is, and
    /// fails in this way. What is cut off a file is room again.
    pub fn leave_room(&self, bytes: usize, refusal: FaultKind) {
        self.state.lock().room = Some(Room { bytes, refusal });
    }

    /// Ends every [`SimulatedStorage::misbehave`].
    pub fn behave(&self) {
        self.state.lock().rules.rules.clear();
    }

    /// How often calls were made to fail or to misbehave.
    pub fn misbehaved(&self) -> u64 {
        self.state.lock().rules.struck
    }

    /// From now on reads of files whose path contains `files` are compared with what an honest disk would
    /// have returned.
    pub fn watch_reads(&self, files: &str) {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.watch.begin(files);
        let watched: Vec<usize> = state
            .names
            .visible_files()
            .filter_map(|(path, number)| state.watch.concerns(path).then_some(number))
            .collect();
        for number in watched {
            state.files[number].remember_honest();
        }
    }

    /// The reads of watched files that returned something else, oldest first.
    pub fn false_reads(&self) -> Vec<FalseRead> {
        self.state.lock().watch.seen.clone()
    }

    /// Makes the disk one that says it writes pages atomically (and does); it says no when new.
    pub fn offer_atomic_writes(&self) {
        self.offer(Atomic::Hardware);
    }

    /// Makes the disk one whose files can have blocks reserved without writing them; it cannot when new.
    pub fn offer_allocation(&self) {
        self.state.lock().allocates = true;
    }

    /// How often blocks were reserved.
    pub fn allocations(&self) -> u64 {
        self.state.lock().allocations
    }

    /// Makes the disk say this about atomic writes.
    pub fn offer(&self, offered: Atomic) {
        self.state.lock().atomic.offered = offered;
    }

    /// Negative control: lets a crash tear atomic writes too.
    pub fn break_atomic_writes(&self) {
        self.state.lock().atomic.broken = true;
    }

    /// Refuses (EINVAL) every atomic write but the next `good` ones, whatever the disk says.
    pub fn refuse_atomic_writes_after(&self, good: u64) {
        let mut state = self.state.lock();
        state.atomic.refused_from = Some(state.atomic_writes + good);
    }

    /// Lets atomic writes fail for lack of room (ENOSPC) while writes in place find theirs, as on a full file
    /// system that does them by copy-on-write; or no longer.
    pub fn leave_no_room_for_atomic_writes(&self, none: bool) {
        self.state.lock().atomic.without_room = none;
    }

    /// Lets one sync of a file fail with EIO: the one with this number, counted from 0
    /// ([`IoCounters::syncs`]) since the storage was made.
    pub fn fail_sync(&self, number: u64) {
        self.state.lock().failing_sync = Some(number);
    }

    /// Removes a file behind everybody's back, durably. Whether there was one.
    pub fn lose_file(&self, path: &Path) -> bool {
        self.state.lock().names.lose(&plain(path))
    }

    /// Number of I/O calls so far (opening, transfers, syncs, changes of names; each request of a batch is
    /// one).
    pub fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    /// A digest of every call so far with its data: equal for equal histories.
    pub fn history(&self) -> u64 {
        self.state.lock().history
    }

    /// What a reader sees of a file; `None` when there is none of this name.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state.lock();
        let number = state.file_number(path)?;
        Some(state.files[number].current().to_vec())
    }

    /// What is durable of a file, whatever happens; `None` when there is none of this name.
    pub fn durable_content(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state.lock();
        let number = state.file_number(path)?;
        Some(state.files[number].durable_content().to_vec())
    }

    /// Overwrites bytes of a file behind everybody's back, durably. Whether there is a file of this name.
    pub fn corrupt(&self, path: &Path, offset: usize, bytes: &[u8]) -> bool {
        let mut state = self.state.lock();
        let Some(number) = state.file_number(path) else { return false };
        state.files[number].corrupt(offset, bytes);
        true
    }

    /// Number of requests under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.state.lock().in_flight.len()
    }

    /// Completes the request at `index` of those under way and calls its `done`.
    pub(crate) fn complete(&self, index: usize) {
        let (done, result, file) = {
            let mut state = self.state.lock();
            let request = state.in_flight.swap_remove(index);
            let path = request.file.path().to_path_buf();
            let InFlight { file, number, mut kind, done, fault, mark, honest } = request;
            let outcome = state.perform(&path, number, &mut kind, fault, mark);
            if let (Ok(()), IoKind::Read { buf, offset }) = (&outcome, &kind) {
                state.watch.judge(&path, *offset, honest, buf.bytes());
            }
            let result = match outcome {
                Ok(()) => Ok(kind),
                Err(error) => Err(kind.error(&path, error)),
            };
            (done, result, file)
        };
        done(result);
        drop(file);
    }

    fn call<T>(
        &self,
        operation: &'static str,
        path: &Path,
        act: impl FnOnce(&mut State, &Path) -> io::Result<T>,
    ) -> Result<T> {
        let mut state = self.state.lock();
        let path = plain(path);
        let outcome = match state.begin(operation, &path, 0, &[]) {
            Ok(fault) => match fault.and_then(error_of) {
                Some(error) => Err(error),
                None => act(&mut state, &path),
            },
            Err(error) => Err(error),
        };
        outcome.map_err(|error| Error::new(operation, path, error))
    }
}

impl State {
    /// Counts a call and says how it is to fail: at once, or (`Ok(Some)`) in its own way.
    pub(crate) fn begin(
        &mut self,
        operation: &str,
        path: &Path,
        offset: u64,
        data: &[u8],
    ) -> io::Result<Option<FaultKind>> {
        let call = self.calls;
        self.calls += 1;
        self.note(operation.as_bytes());
        self.note(path.as_os_str().as_encoded_bytes());
        self.note(&offset.to_le_bytes());
        self.note(data);
        let fault = self.faults.get(&call).copied().filter(|kind| kind.concerns(operation));
        self.rules.struck += u64::from(fault.is_some());
        if fault == Some(FaultKind::PowerLoss) {
            self.dead = true;
        }
        if self.dead {
            return Err(power_is_gone());
        }
        Ok(fault)
    }

    /// Takes bytes into the digest of the history (FNV-1a over words, with the length against ambiguity).
    fn note(&mut self, bytes: &[u8]) {
        let mut take =
            |word: u64| self.history = (self.history ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
        take(bytes.len() as u64);
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let mut value = [0; 8];
            value.copy_from_slice(word);
            take(u64::from_le_bytes(value));
        }
        words.remainder().iter().for_each(|byte| take(u64::from(*byte)));
    }

    fn moment(&self) -> Moment {
        let file = |(number, image): (usize, &FileImage)| FileMoment {
            image: image.clone(),
            under_way: self.in_flight_changes(number),
        };
        Moment {
            files: self.files.iter().enumerate().map(file).collect(),
            names: self.names.clone(),
            atomic: self.atomic,
            calls: self.calls,
        }
    }

    /// Tells the observer that something is about to become durable.
    pub(crate) fn observe(&mut self) {
        if let Some(mut observer) = self.observer.take() {
            observer(self.moment());
            self.observer = Some(observer);
        }
    }

    fn file_number(&self, path: &Path) -> Option<usize> {
        match self.names.get(&plain(path)) {
            Some(Node::File(number)) => Some(number),
            _ => None,
        }
    }

    /// Writes of requests under way: a power loss may keep them.
    fn in_flight_changes(&self, number: usize) -> Vec<Change> {
        let own = self.in_flight.iter().filter(|request| request.number == number);
        own.filter_map(|request| change_of(&request.kind)).collect()
    }
}

struct HeldLock {
    state: Arc<Mutex<State>>,
    path: PathBuf,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.state.lock().locks.remove(&self.path);
    }
}

impl Storage for SimulatedStorage {
    fn open(&self, path: &Path, how: OpenHow) -> Result<Arc<dyn File>> {
        let number = self.call("open", path, |state, path| match (state.names.get(path), how.mode) {
            (Some(Node::Directory), _) => Err(io::ErrorKind::IsADirectory.into()),
            (Some(Node::File(_)), OpenMode::CreateNew) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(Node::File(number)), _) => Ok(number),
            (None, OpenMode::ReadOnly | OpenMode::Existing) => Err(io::ErrorKind::NotFound.into()),
            (None, _) if !state.names.has_parent(path) => Err(io::ErrorKind::NotFound.into()),
            (None, _) => {
                let mut image = FileImage::default();
                if state.rules.want_old_contents() {
                    image.remember_before();
                }
                if state.watch.concerns(path) {
                    image.remember_honest();
                }
                state.files.push(image);
                let number = state.files.len() - 1;
                state.names.link(path.into(), number);
                Ok(number)
            }
        })?;
        let writable = how.mode != OpenMode::ReadOnly;
        Ok(Arc::new(SimulatedFile {
            state: self.state.clone(),
            number,
            path: path.into(),
            direct: how.direct,
            writable,
        }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.state.lock().names.get(&plain(path)).is_some())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.call("remove", path, |state, path| {
            state.file_number(path).ok_or(io::ErrorKind::NotFound)?;
            state.names.unlink(path);
            Ok(())
        })
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.call("remove the directory", path, |state, path| {
            if state.names.get(path) != Some(Node::Directory) {
                return Err(io::ErrorKind::NotFound.into());
            }
            if !state.names.below(path).is_empty() {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            state.names.remove_directory(path);
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let to = plain(to);
        self.call("rename", from, |state, from| {
            let number = state.file_number(from).ok_or(io::ErrorKind::NotFound)?;
            if !state.names.has_parent(&to) {
                return Err(io::ErrorKind::NotFound.into());
            }
            state.names.rename(from, &to, number);
            Ok(())
        })
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.call("create the directory", path, |state, path| {
            state.names.create_directory(path);
            Ok(())
        })
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.call("sync the directory", path, |state, path| {
            if state.names.get(path) != Some(Node::Directory) {
                return Err(io::ErrorKind::NotFound.into());
            }
            state.observe();
            state.names.sync(path);
            Ok(())
        })
    }

    fn list(&self, path: &Path) -> Result<Vec<Entry>> {
        let state = self.state.lock();
        let path = plain(path);
        if state.names.get(&path) != Some(Node::Directory) {
            return Err(Error::new("list the directory", path, io::ErrorKind::NotFound.into()));
        }
        let entry = |(name, node)| Entry { name, is_directory: node == Node::Directory };
        let mut entries: Vec<Entry> = state.names.below(&path).into_iter().map(entry).collect();
        entries.sort();
        Ok(entries)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let path = plain(path);
        if !self.state.lock().locks.insert(path.clone()) {
            return Err(Error::new("lock", path, io::Error::new(io::ErrorKind::WouldBlock, "a process")));
        }
        Ok(Box::new(HeldLock { state: self.state.clone(), path }))
    }

    fn submit(&self, batch: Vec<(Arc<dyn File>, Io)>) {
        let mut refused = Vec::new();
        {
            let mut state = self.state.lock();
            state.counters.batches += 1;
            for (file, Io { kind, done }) in batch {
                if matches!(kind, IoKind::AllocateZeros { .. }) && !state.allocates {
                    refused.push((done, Ok(kind)));
                    continue;
                }
                match state.accept(&file, &kind) {
                    Ok((number, fault)) => {
                        let mark = state.files[number].mark();
                        let honest = match &kind {
                            IoKind::Read { .. } => {
                                let (offset, length) = kind.place();
                                state.watch.expect(file.path(), &state.files[number], offset, length)
                            }
                            _ => None,
                        };
                        state.in_flight.push(InFlight { file, number, kind, done, fault, mark, honest });
                    }
                    Err(error) => refused.push((done, Err(kind.error(file.path(), error)))),
                }
            }
        }
        for (done, result) in refused {
            done(result);
        }
    }

    fn counters(&self) -> IoCounters {
        self.state.lock().counters
    }
}

impl State {
    /// Checks and counts a request.
    fn accept(&mut self, file: &Arc<dyn File>, kind: &IoKind) -> io::Result<(usize, Option<FaultKind>)> {
        let Some(simulated) = file.as_any().downcast_ref::<SimulatedFile>() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file belongs to another storage"));
        };
        let (offset, length) = kind.place();
        check_aligned(simulated.direct, offset, length)?;
        let data: &[u8] = match kind {
            IoKind::Read { buf, .. } | IoKind::Write { buf, .. }
                if simulated.direct && !(buf.address() as usize).is_multiple_of(BLOCK) =>
            {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the memory of a direct transfer is not aligned",
                ));
            }
            IoKind::Read { buf: IoBuf::Shared(..), .. } => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "reading into a shared buffer"));
            }
            IoKind::Write { .. } | IoKind::AllocateZeros { .. } if !simulated.writable => {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            IoKind::Write { buf, .. } => buf.bytes(),
            IoKind::Read { .. } | IoKind::AllocateZeros { .. } | IoKind::Sync => &[],
        };
        let fault = self.begin(kind.operation(), simulated.path(), offset, data)?;
        Ok((simulated.number, fault))
    }
}
