//! The simulated disk: calls are numbered, may be told to fail, and end up in file images that know what is durable.

use crate::simulated::file::SimulatedFile;
use crate::simulated::image::{Change, FileImage, Tearing};
use crate::simulated::names::{Names, Node, plain};
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

/// How a faulty call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The device fails (EIO). A write may have happened in part; a sync loses what was not durable yet.
    Eio,
    /// The file system is full (ENOSPC). A write may have happened in part.
    Enospc,
    /// The transfer takes two steps inside the storage: it succeeds, but an atomic write fails instead, and a power
    /// loss may keep one step without the other.
    Short,
    /// From this call on nothing reaches the disk and every call fails: the power is gone.
    PowerLoss,
}

/// A planned fault: the I/O call with this number (counted from 0 since the storage was made) fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Number of the call.
    pub call: u64,
    /// How it fails.
    pub kind: FaultKind,
}

/// A disk in memory that keeps what was synced apart from what was not.
pub struct SimulatedStorage {
    pub(crate) state: Arc<Mutex<State>>,
}

pub(crate) struct State {
    pub(crate) files: Vec<FileImage>,
    names: Names,
    pub(crate) random: Random,
    calls: u64,
    faults: BTreeMap<u64, FaultKind>,
    dead: bool,
    /// What probes are told; the writes themselves work either way.
    pub(crate) offers_atomic: bool,
    tear_atomic: bool,
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
}

impl SimulatedStorage {
    /// An empty disk. The seed decides what failing calls leave behind.
    pub fn new(seed: u64) -> Arc<SimulatedStorage> {
        SimulatedStorage::from_parts(seed, Vec::new(), Names::default())
    }

    fn from_parts(seed: u64, files: Vec<FileImage>, names: Names) -> Arc<SimulatedStorage> {
        let state = State {
            files,
            names,
            random: Random::new(seed),
            calls: 0,
            faults: BTreeMap::new(),
            dead: false,
            offers_atomic: false,
            tear_atomic: false,
            in_flight: Vec::new(),
            counters: IoCounters::default(),
            history: 0xcbf2_9ce4_8422_2325,
            locks: BTreeSet::new(),
        };
        Arc::new(SimulatedStorage { state: Arc::new(Mutex::new(state)) })
    }

    /// What a power loss at this moment leaves: of the writes that were not synced (or still under way) any subset, in
    /// any order, each whole or torn; of the names that were not synced any subset. This disk stays as it is, so that
    /// many crashes can be tried from one moment.
    pub fn crash(&self, seed: u64) -> Arc<SimulatedStorage> {
        let state = self.state.lock();
        let mut random = Random::new(seed);
        let tearing = Tearing {
            keep_of_four: random.below(5),
            sector: if random.one_in(2) { 512 } else { 4096 },
            reorder: random.one_in(2),
            tear_atomic: state.tear_atomic,
        };
        let names = state.names.after_crash(&mut random);
        let named: BTreeSet<usize> = names.files().collect();
        let after = |number: usize, random: &mut Random| {
            let on_the_way: Vec<Change> = state.in_flight_changes(number);
            FileImage::durable(state.files[number].after_crash(&on_the_way, &tearing, random))
        };
        let files = (0..state.files.len())
            .map(
                |number| {
                    if named.contains(&number) { after(number, &mut random) } else { FileImage::default() }
                },
            )
            .collect();
        let left = SimulatedStorage::from_parts(random.next_u64(), files, names);
        {
            let mut left = left.state.lock();
            (left.offers_atomic, left.tear_atomic) = (state.offers_atomic, state.tear_atomic);
        }
        left
    }

    /// Plans a fault.
    pub fn plan(&self, fault: Fault) {
        self.state.lock().faults.insert(fault.call, fault.kind);
    }

    /// Makes the disk one that says it writes pages atomically (and does); it says no when new.
    pub fn offer_atomic_writes(&self) {
        self.state.lock().offers_atomic = true;
    }

    /// Negative control: lets a crash tear atomic writes too.
    pub fn break_atomic_writes(&self) {
        self.state.lock().tear_atomic = true;
    }

    /// Number of I/O calls so far (opening, transfers, syncs, changes of names; each request of a batch is one).
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
        Some(state.files[number].durable_bytes().to_vec())
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
            let InFlight { file, number, mut kind, done, fault, mark } = request;
            let outcome = state.perform(number, &mut kind, fault, mark);
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
            Ok(_) => act(&mut state, &path),
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
        let fault = self.faults.get(&call).copied();
        if fault == Some(FaultKind::PowerLoss) {
            self.dead = true;
        }
        if self.dead {
            return Err(power_is_gone());
        }
        Ok(fault)
    }

    /// Takes bytes into the digest of the history (FNV-1a, with the length against ambiguity).
    fn note(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes();
        for byte in length.iter().chain(bytes) {
            self.history = (self.history ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
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
        let change = |request: &InFlight| match &request.kind {
            IoKind::Write { buf, offset, atomic, .. } if request.number == number => {
                Some(Change::Write { offset: *offset as usize, bytes: buf.bytes().to_vec(), atomic: *atomic })
            }
            _ => None,
        };
        self.in_flight.iter().filter_map(change).collect()
    }

    fn perform(
        &mut self,
        number: usize,
        kind: &mut IoKind,
        fault: Option<FaultKind>,
        mark: u64,
    ) -> io::Result<()> {
        if self.dead {
            if let IoKind::Write { buf, offset, atomic, .. } = kind {
                let change =
                    Change::Write { offset: *offset as usize, bytes: buf.bytes().to_vec(), atomic: *atomic };
                self.files[number].remember(change);
            }
            return Err(power_is_gone());
        }
        match kind {
            IoKind::Read { buf, offset } => match buf.bytes_mut() {
                Some(bytes) => self.read(number, bytes, *offset, fault),
                None => Err(io::Error::new(io::ErrorKind::InvalidInput, "reading into a shared buffer")),
            },
            IoKind::Write { buf, offset, atomic, sync } => {
                // The fault of a write with a sync hits either of the two.
                let hits_sync =
                    *sync && fault.is_some() && fault != Some(FaultKind::Short) && self.random.one_in(2);
                let (write_fault, sync_fault) = if hits_sync { (None, fault) } else { (fault, None) };
                self.write(number, buf.bytes(), *offset, *atomic, write_fault)?;
                let everything = self.files[number].mark();
                if *sync { self.sync(number, everything, sync_fault) } else { Ok(()) }
            }
            IoKind::Sync => self.sync(number, mark, fault),
        }
    }

    pub(crate) fn read(
        &mut self,
        number: usize,
        buf: &mut [u8],
        offset: u64,
        fault: Option<FaultKind>,
    ) -> io::Result<()> {
        if let Some(error) = fault.and_then(error_of) {
            return Err(error);
        }
        self.counters.reads += 1;
        self.counters.bytes_read += buf.len() as u64;
        let content = self.files[number].current();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let Some(bytes) = content.get(start..start.saturating_add(buf.len())) else {
            let text = format!("the file ends after {} of these bytes", content.len() - start);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        };
        buf.copy_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn write(
        &mut self,
        number: usize,
        bytes: &[u8],
        offset: u64,
        atomic: bool,
        fault: Option<FaultKind>,
    ) -> io::Result<()> {
        self.counters.writes += 1;
        self.counters.bytes_written += bytes.len() as u64;
        let offset = offset as usize;
        let part = |state: &mut State, from: usize, to: usize| {
            if from < to {
                let bytes = bytes[from..to].to_vec();
                state.files[number].change(Change::Write { offset: offset + from, bytes, atomic });
            }
        };
        let cut = |state: &mut State| state.random.below(bytes.len() / BLOCK + 1) * BLOCK;
        match fault {
            None => part(self, 0, bytes.len()),
            Some(FaultKind::Short) if !atomic => {
                let cut = cut(self);
                part(self, 0, cut);
                part(self, cut, bytes.len());
            }
            Some(fault) => {
                if !atomic {
                    let cut = cut(self);
                    part(self, 0, cut);
                }
                return Err(error_of(fault).unwrap_or_else(|| io::Error::other("an atomic write was torn")));
            }
        }
        Ok(())
    }

    pub(crate) fn sync(&mut self, number: usize, mark: u64, fault: Option<FaultKind>) -> io::Result<()> {
        self.counters.syncs += 1;
        if let Some(error) = fault.and_then(error_of) {
            self.files[number].fail_sync(&mut self.random);
            return Err(error);
        }
        self.files[number].sync(mark);
        Ok(())
    }
}

fn power_is_gone() -> io::Error {
    io::Error::other("the power of the simulated disk is gone")
}

/// The error of a fault; `None` for a short transfer, which the storage hides.
fn error_of(fault: FaultKind) -> Option<io::Error> {
    match fault {
        FaultKind::Eio => Some(io::Error::from_raw_os_error(libc::EIO)),
        FaultKind::Enospc => Some(io::Error::from_raw_os_error(libc::ENOSPC)),
        FaultKind::PowerLoss => Some(power_is_gone()),
        FaultKind::Short => None,
    }
}

/// Fails unless a direct transfer is aligned, so that the engine finds out here and not on a real disk.
pub(crate) fn check_aligned(direct: bool, offset: u64, length: usize) -> io::Result<()> {
    if !direct || (offset.is_multiple_of(BLOCK as u64) && length.is_multiple_of(BLOCK)) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("direct transfers need multiples of {BLOCK} bytes"),
    ))
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
                state.files.push(FileImage::default());
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
            let text = "another process uses this directory; only one database may have it open";
            return Err(Error::new("lock", path, io::Error::new(io::ErrorKind::WouldBlock, text)));
        }
        Ok(Box::new(HeldLock { state: self.state.clone(), path }))
    }

    fn submit(&self, batch: Vec<(Arc<dyn File>, Io)>) {
        let mut refused = Vec::new();
        {
            let mut state = self.state.lock();
            state.counters.batches += 1;
            for (file, Io { kind, done }) in batch {
                match state.accept(&file, &kind) {
                    Ok((number, fault)) => {
                        let mark = state.files[number].mark();
                        state.in_flight.push(InFlight { file, number, kind, done, fault, mark });
                    }
                    Err(error) => refused.push((done, kind.error(file.path(), error))),
                }
            }
        }
        for (done, error) in refused {
            done(Err(error));
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
            IoKind::Write { .. } if !simulated.writable => return Err(io::ErrorKind::PermissionDenied.into()),
            IoKind::Write { buf, .. } => buf.bytes(),
            IoKind::Read { .. } | IoKind::Sync => &[],
        };
        let fault = self.begin(kind.operation(), simulated.path(), offset, data)?;
        Ok((simulated.number, fault))
    }
}
