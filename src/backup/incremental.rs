//! Backups that hold only what their *base* does not have: an earlier backup, whole or incremental itself.
//!
//! A page is left out if the base's list of pages ([`super::page_list`]) has it with the same LSN and the
//! same checksum. So what is left out lies in the base byte for byte, whatever has happened since, to this
//! directory or to another one: a base of a directory that was restored and went another way from there only
//! has fewer pages in common. Nothing is concluded from a moment, a checkpoint or an identity.
//!
//! Every page is read for that; what is saved is room, and writing. The manifest has the checksum of the
//! whole file, as it is when the base's pages and the changed ones are put together, and restoring compares
//! it.
//!
//! A tablespace is found in the base by its number, under whatever name. One that the base does not have is
//! copied whole. The redo log, the catalog and small files are always whole.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{AlignedBuf, File, IoBuf, OpenHow, Storage, sync_async, write_async};
use page::PageSize;

#[cfg(test)]
use super::Broken;
use super::manifest::{Base, ChangedEntry, FileEntry, Manifest, TablespaceEntry, path_of_changes};
use super::page_list::{PageList, PageMark};
use super::{INCOMPLETE, MANIFEST, failed};
use crate::error::{Error, Result};

/// The base of a backup that is being made.
pub(super) struct OpenBase {
    chain: Chain,
    pages: PageList,
    entry: Base,
}

impl OpenBase {
    /// Looks whether what will be restored with the backup in `target` is there, down to the whole backup,
    /// and reads the base's list of pages. `go_on` says, now and then, whether anybody still wants it.
    pub async fn open(
        storage: &dyn Storage,
        directory: &Path,
        target: &Path,
        page_bytes: usize,
        go_on: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<OpenBase> {
        // By the name that stays: a link may lead elsewhere by the end.
        let real = storage.real_path(directory)?;
        if storage.exists(&real.join(INCOMPLETE))? {
            return Err(failed(directory, "it is a backup that was not finished: use another one"));
        }
        let chain = Chain::read(storage, &real)?;
        if chain.0.len() >= CHAIN_MAX {
            let why = format!("it adds to {} others, which is enough: make a whole backup", CHAIN_MAX - 1);
            return Err(failed(directory, why));
        }
        chain.refuse_what_is_cut(storage)?;
        let manifest = chain.newest();
        let pages = PageList::open(storage, &real, manifest, page_bytes, go_on).await?;
        if real.to_str().is_none() {
            return Err(failed(directory, "its path is no UTF-8, and cannot be written down: rename it"));
        }
        let is_beside = real.parent() == storage.real_path(target)?.parent();
        let beside = real.file_name().filter(|_| is_beside).map(PathBuf::from);
        let entry = Base { directory: real, beside, manifest_crc32c: manifest.checksum };
        Ok(OpenBase { chain, pages, entry })
    }

    /// For the manifest of the backup that is made, if the base is what it was when that was begun.
    pub fn entry(&self, storage: &dyn Storage) -> Result<Base> {
        let now = Chain::read(storage, &self.entry.directory)?;
        let sums = |chain: &Chain| chain.0.iter().map(|(_, manifest)| manifest.checksum).collect::<Vec<_>>();
        if sums(&now) != sums(&self.chain) {
            return Err(failed(&self.entry.directory, "somebody replaced it meanwhile, or what it adds to"));
        }
        now.refuse_what_is_cut(storage)?;
        Ok(self.entry.clone())
    }

    /// Directories of the backups that it needs, itself first.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.chain.directories()
    }

    fn tablespace(&self, id: u32) -> Option<TablespaceEntry> {
        self.chain.newest().tablespace(id)?.tablespace
    }
}

/// Where the pages of a tablespace go.
pub(super) enum Destination<'b> {
    Whole { file: Arc<dyn File> },
    Changed(ChangedPages<'b>),
}

/// Those that the base does not have, one behind the other.
pub(super) struct ChangedPages<'b> {
    base: &'b OpenBase,
    known: TablespaceEntry,
    path: PathBuf,
    /// Made with the first of them.
    file: Option<Arc<dyn File>>,
    entry: ChangedEntry,
    /// Of the tablespace, looked at so far.
    pages: u32,
    #[cfg(test)]
    pub leave_out: bool,
}

impl<'b> Destination<'b> {
    /// For a tablespace that lies at `path`, under the target. Its directory is there.
    pub fn of(
        base: Option<&'b OpenBase>,
        storage: &dyn Storage,
        id: u32,
        path: &Path,
        #[cfg(test)] broken: Option<Broken>,
    ) -> Result<Destination<'b>> {
        match base.and_then(|base| Some((base, base.tablespace(id)?))) {
            None => Ok(Destination::Whole { file: storage.open(path, OpenHow::CREATE_NEW)? }),
            Some((base, known)) => Ok(Destination::Changed(ChangedPages {
                base,
                known,
                path: path_of_changes(path, id),
                file: None,
                entry: ChangedEntry { bytes: 0, crc32c: 0, zeros: Vec::new() },
                pages: 0,
                #[cfg(test)]
                leave_out: broken == Some(Broken::LeavesOutAPage),
            })),
        }
    }

    /// Takes the pages behind those before.
    pub async fn take(
        &mut self,
        storage: &dyn Storage,
        at: u64,
        stretch: AlignedBuf,
        marks: &[PageMark],
    ) -> Result<()> {
        match self {
            Destination::Whole { file } => {
                Ok(write_async(storage, file, IoBuf::owned(stretch), at, false).await?)
            }
            Destination::Changed(pages) => pages.take(storage, stretch, marks).await,
        }
    }

    /// Makes it durable. What is there in place of the whole file, if that is not.
    pub async fn finish(self, storage: &dyn Storage) -> Result<Option<ChangedEntry>> {
        let (file, changed) = match self {
            Destination::Whole { file } => (Some(file), None),
            Destination::Changed(pages) => (pages.file, Some(pages.entry)),
        };
        if let Some(file) = file {
            sync_async(storage, &file).await?;
        }
        Ok(changed)
    }
}

impl ChangedPages<'_> {
    async fn take(
        &mut self,
        storage: &dyn Storage,
        mut stretch: AlignedBuf,
        marks: &[PageMark],
    ) -> Result<()> {
        let page_bytes = stretch.len() / marks.len().max(1);
        let known = self.base.pages.marks(storage, self.known, self.pages, marks.len()).await?;
        let mut kept = 0;
        for (at, mark) in marks.iter().enumerate() {
            let number = self.pages + at as u32;
            if known.get(at) == Some(mark) {
                continue;
            }
            let bytes = at * page_bytes..(at + 1) * page_bytes;
            if page::is_all_zero(&stretch[bytes.clone()]) {
                // Behind the base's end there are zeros anyway.
                if known.get(at).is_some() {
                    self.note_zero(number);
                }
                continue;
            }
            #[cfg(test)]
            if std::mem::take(&mut self.leave_out) {
                continue;
            }
            stretch.copy_within(bytes, kept);
            kept += page_bytes;
        }
        self.pages += marks.len() as u32;
        if kept == 0 {
            return Ok(());
        }
        let kept = if kept < stretch.len() { AlignedBuf::copy_of(&stretch[..kept]) } else { stretch };
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(storage.open(&self.path, OpenHow::CREATE_NEW)?),
        };
        let at = self.entry.bytes;
        self.entry.crc32c = crc32c::crc32c_append(self.entry.crc32c, &kept);
        self.entry.bytes += kept.len() as u64;
        Ok(write_async(storage, file, IoBuf::owned(kept), at, false).await?)
    }

    fn note_zero(&mut self, page: u32) {
        match self.entry.zeros.last_mut() {
            Some((first, count)) if *first + *count == page => *count += 1,
            _ => self.entry.zeros.push((page, 1)),
        }
    }
}

/// A backup and those it adds to, newest first.
pub(super) struct Chain(Vec<(PathBuf, Manifest)>);

/// More of them than this are not followed: a manifest that somebody made may lead back to itself.
const CHAIN_MAX: usize = 1000;

impl Chain {
    pub fn read(storage: &dyn Storage, backup: &Path) -> Result<Chain> {
        let real = storage.real_path(backup)?;
        let mut seen = BTreeSet::from([real]);
        let mut chain = vec![(backup.to_owned(), Manifest::read(storage, backup)?)];
        while let Some((directory, Manifest { base: Some(base), .. })) = chain.last() {
            let next = find_base(storage, directory, base)?;
            if chain.len() >= CHAIN_MAX || !seen.insert(storage.real_path(&next.0)?) {
                return Err(failed(backup, format!("it adds to more than {CHAIN_MAX} others, or to itself")));
            }
            chain.push(next);
        }
        Ok(Chain(chain))
    }

    /// Whether the pages of each tablespace are all there; what they are is seen when it is restored.
    fn refuse_what_is_cut(&self, storage: &dyn Storage) -> Result<()> {
        for space in self.newest().files.iter().filter_map(|file| file.tablespace) {
            for layer in self.layers(space.id)? {
                let (path, bytes) = layer.stored();
                let found = match bytes {
                    0 => 0,
                    _ => storage.open(&path, OpenHow::READ_ONLY.buffered())?.len()?,
                };
                if found != bytes {
                    let why = format!(
                        "it has {found} bytes, the manifest says {bytes}: the backup is damaged; use another one"
                    );
                    return Err(failed(&path, why));
                }
            }
        }
        Ok(())
    }

    /// The one that is restored.
    pub fn newest(&self) -> &Manifest {
        &self.0[0].1
    }

    /// Directories of the backups.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|(directory, _)| &**directory)
    }

    /// Where a tablespace of the newest has its pages: the backup with the whole file first, then those with
    /// changed pages, oldest first.
    pub fn layers(&self, id: u32) -> Result<Vec<Layer<'_>>> {
        let mut layers = Vec::new();
        for (directory, manifest) in &self.0 {
            let Some(file) = manifest.tablespace(id) else {
                return Err(failed(
                    directory,
                    format!("it has no tablespace {id}, to which others add: use another backup"),
                ));
            };
            let page_bytes = manifest.page_list.as_ref().map_or(0, |list| list.page_bytes);
            let pages = file.tablespace.map_or(0, |space| space.pages);
            let is_size = usize::try_from(page_bytes).ok().and_then(PageSize::new).is_some();
            if !is_size || file.bytes != u64::from(pages) * page_bytes {
                let why = format!("{} bytes are not {pages} pages of {page_bytes}", file.bytes);
                return Err(failed(&directory.join(&file.path), why));
            }
            layers.push(Layer { directory, file, id, page_bytes });
            if file.changed.is_none() {
                layers.reverse();
                return Ok(layers);
            }
        }
        Err(failed(&self.0[0].0, format!("no backup has the whole of tablespace {id}: use another one")))
    }
}

/// A base is looked for beside the backup, if it was there, and then where it was.
fn find_base(storage: &dyn Storage, directory: &Path, base: &Base) -> Result<(PathBuf, Manifest)> {
    let real = storage.real_path(directory)?;
    let beside = base.beside.as_ref().and_then(|name| Some(real.parent()?.join(name)));
    let (mut another, mut unreadable) = (None, None);
    for path in beside.iter().chain([&base.directory]) {
        let is_there = storage.exists(&path.join(MANIFEST)).map_err(Error::from);
        match is_there.and_then(|is_there| is_there.then(|| Manifest::read(storage, path)).transpose()) {
            Ok(None) => {}
            Ok(Some(manifest)) if manifest.checksum == base.manifest_crc32c => {
                return Ok((path.clone(), manifest));
            }
            Ok(Some(_)) => _ = another.get_or_insert(path),
            // It may be a damaged copy of the one that is where it was.
            Err(error) => _ = unreadable.get_or_insert(error),
        }
    }
    if let Some(error) = unreadable {
        return Err(error);
    }
    let why = match another {
        None => {
            let place = beside.as_ref().unwrap_or(&base.directory).display();
            format!("it is incremental, and its base {place} is not there: put it back")
        }
        Some(path) => {
            let place = path.display();
            format!(
                "it is incremental, and {place} is another backup than the one it adds to: put that one back"
            )
        }
    };
    Err(failed(directory, why))
}

/// What one backup has of a tablespace.
pub(super) struct Layer<'c> {
    pub directory: &'c Path,
    pub file: &'c FileEntry,
    id: u32,
    page_bytes: u64,
}

impl Layer<'_> {
    /// Where its pages lie in the backup, and how many bytes of them there are.
    fn stored(&self) -> (PathBuf, u64) {
        match &self.file.changed {
            None => (self.directory.join(&self.file.path), self.file.bytes),
            Some(changed) => (self.directory.join(path_of_changes(&self.file.path, self.id)), changed.bytes),
        }
    }

    /// Puts its changed pages into the file as it was in its base, with `base_bytes` bytes. The file may be
    /// shorter than that, if a later backup has less of it.
    pub fn apply(
        &self,
        storage: &dyn Storage,
        changed: &ChangedEntry,
        base_bytes: u64,
        file: &dyn File,
    ) -> Result<()> {
        let (page_bytes, length, present) = (self.page_bytes, self.file.bytes, file.len()?);
        let (path, _) = self.stored();
        let damaged = |why: String| failed(&path, format!("{why}: the backup is damaged; use another one"));
        if !changed.bytes.is_multiple_of(page_bytes) {
            return Err(damaged(format!("{} bytes are no whole pages of {page_bytes}", changed.bytes)));
        }
        file.set_len(length)?;
        let mut behind = 0;
        for &(first, count) in &changed.zeros {
            let (from, to) =
                (u64::from(first) * page_bytes, (u64::from(first) + u64::from(count)) * page_bytes);
            // Nothing else is written down: what lies behind the base's end is zero by itself.
            if from < behind || to > length.min(base_bytes) {
                return Err(damaged(format!("{count} pages from page {first} on cannot have become zero")));
            }
            // The same holds for what lies behind the end of the file, though the base had bytes there.
            if from < present {
                file.write_zeros(from, to.min(present))?;
            }
            behind = to;
        }
        if changed.bytes == 0 {
            return Ok(());
        }
        let source = storage.open(&path, OpenHow::READ_ONLY.buffered())?;
        let found = source.len()?;
        if found != changed.bytes {
            return Err(damaged(format!("it has {found} bytes, the manifest says {}", changed.bytes)));
        }
        let mut page = AlignedBuf::zeroed(page_bytes as usize);
        let (mut at, mut sum) = (0, 0);
        while at < changed.bytes {
            source.read_at(&mut page, at)?;
            sum = crc32c::crc32c_append(sum, &page);
            let offset = u64::from(page::page_number(&page)) * page_bytes;
            if offset + page_bytes > length {
                return Err(damaged(format!("its page at {at} says a number behind the end of the file")));
            }
            file.write_at(&page, offset)?;
            at += page_bytes;
        }
        if sum != changed.crc32c {
            let expected = changed.crc32c;
            return Err(damaged(format!("its checksum is {sum:08x}, the manifest says {expected:08x}")));
        }
        Ok(())
    }
}
