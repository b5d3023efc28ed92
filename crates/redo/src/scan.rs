//! Reading the log after a crash: where it ends, and what is in it.
//!
//! The scan starts at the group the checkpoint block names and follows group after group while each is what
//! was sealed: magic, its own position as LSN, checksum, and an epoch that does not go back. The first that
//! is not ends the log. Why that is right, case by case:
//!
//! - *The last group write was cut off.* Its groups were not durable, so nobody was told so. Some of them may
//!   be whole on the disk after a torn one; they are dropped with it, because the log is a prefix.
//! - *What lies past the end is of an earlier lap*: its LSN is lower than its position. Ended.
//! - *What lies past the end was dropped by an earlier recovery*, has the right LSN and checksum, and the
//!   log then grew up to exactly its start: it has the epoch of an earlier opening, while the group before it
//!   has a later one. Every opening takes a new epoch and makes it durable before it writes its first group.
//!   And when the checkpoint has moved up to that very place, so that there is no group before it: the
//!   checkpoint block carries the lowest epoch that may follow (`epoch floor`).
//! - *A group that had been durable is damaged* (bit rot, a stray write): losing it and all after it would
//!   lose acknowledged commits, so the log refuses to open. It is known to have been durable when the
//!   checkpoint block, or a valid group further on, says that the log was flushed beyond its start. Such a
//!   group is searched for as far as the log may have gone: up to `flushed + reach` of the checkpoint block,
//!   beyond which no group was ever written in this lap ([`crate::high_water_mark`]). So this finds what a
//!   search of the whole circle would find. The whole circle is searched where the block promises no reach,
//!   or where the other block is not the one before it: then a newer one may have been damaged, with which
//!   the log went further.
//! - *Damage that cannot be told from an end*: from some group on everything up to the end of the log is
//!   gone, all of it past the `flushed` of the checkpoint block, so that neither that block nor any whole
//!   group knows of it. The groups written last are no proof of themselves: a group is proved by the first
//!   one that was sealed after its sync.
//! - *The checkpoint block itself is damaged* and the older one leads to a place that was overwritten since:
//!   the group there has the LSN of a later lap, and its `flushed` is beyond: refused as well.

use crate::checkpoint_block::CheckpointBlock;
use crate::group::{FRAME, GroupHeader, HEADER, frames};
use crate::layout::{FRONT, Layout};
use crate::log::{Phase, RedoLog};
use crate::open::block_size;
use crate::scan_window::Window;
use crate::{Error, Lsn, Result};

/// What [`RedoLog::scan`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanSummary {
    /// The checkpoint the scan started at.
    pub checkpoint: Lsn,
    /// End of the log.
    pub end: Lsn,
    /// Mini-transactions given to the visitor.
    pub mini_transactions: u64,
    /// Bytes of their records.
    pub bytes: u64,
}

impl RedoLog {
    /// Recovery: reads every whole mini-transaction that ends after the checkpoint, in order, and calls
    /// `visit(start, end, records)`; `progress(bytes_done, bytes_at_most)` is called now and then. Blocking.
    /// May be repeated until the first append ([`RedoLog::scan_again`] reads a part of it); afterwards the
    /// log goes on after the last valid group. A log just created needs none.
    pub fn scan<E: From<Error>>(
        &self,
        mut visit: impl FnMut(Lsn, Lsn, &[u8]) -> std::result::Result<(), E>,
        mut progress: impl FnMut(u64, u64),
    ) -> std::result::Result<ScanSummary, E> {
        let (block, phase) = {
            let state = self.state.lock();
            assert!(state.appends == 0, "the redo log is scanned before anything is appended");
            (state.block, state.phase)
        };
        let mut summary =
            ScanSummary { checkpoint: block.checkpoint, end: block.scan_start, ..Default::default() };
        let mut starts = Vec::new();
        if !block.closed {
            let mut reader = self.reader(&block)?;
            let mut group_read = |start: Lsn, end: Lsn| {
                starts.push(start);
                progress(end.since(block.scan_start), block.layout.area);
            };
            let ended = self.follow(&mut reader, &block, &mut summary, &mut group_read, &mut visit)?;
            self.check_end(&mut reader, &block, summary.end, ended)?;
        }
        if phase == Phase::NeedsScan {
            self.settle(block, &mut summary, &starts)?;
        }
        Ok(summary)
    }

    /// After [`RedoLog::scan`]: reads once more what it gave to its visitor, from the mini-transaction on
    /// that starts at `from`; what lies before it is read as far as its group begins with it. Blocking.
    pub fn scan_again<E: From<Error>>(
        &self,
        from: Lsn,
        mut visit: impl FnMut(Lsn, Lsn, &[u8]) -> std::result::Result<(), E>,
        mut progress: impl FnMut(u64, u64),
    ) -> std::result::Result<(), E> {
        let (block, end, group) = {
            let state = self.state.lock();
            assert!(
                state.appends == 0 && state.phase != Phase::NeedsScan,
                "a log is scanned once, then again"
            );
            let starts = &state.groups.starts;
            let before = starts.partition_point(|start| *start <= from).checked_sub(1);
            let group = before.and_then(|at| starts.get(at)).copied().unwrap_or(state.block.scan_start);
            (state.block, state.last_end, group)
        };
        let mut reader = self.reader(&block)?;
        let mut summary = ScanSummary { checkpoint: block.checkpoint, end: group, ..Default::default() };
        let mut group_read = |_: Lsn, end: Lsn| progress(end.since(block.scan_start), block.layout.area);
        let mut visit = |start: Lsn, end: Lsn, records: &[u8]| {
            if start < from { Ok(()) } else { visit(start, end, records) }
        };
        let ended = self.follow(&mut reader, &block, &mut summary, &mut group_read, &mut visit)?;
        if summary.end != end {
            return Err(self
                .damaged(block.layout, summary.end, &format!("{ended}, and was there before"))
                .into());
        }
        Ok(())
    }

    /// Reads the circle as far as it exists.
    fn reader(&self, block: &CheckpointBlock) -> Result<Reader> {
        let exists = self.file.len()?.saturating_sub(FRONT).min(block.layout.area);
        let (layout, scan_start) = (block.layout, block.scan_start);
        let mut limit = scan_start.plus(layout.area);
        if block.reach > 0 {
            limit = limit.min(block.flushed.plus(block.reach));
        }
        let window = Window::new(self.env.clone(), self.file.clone(), layout, scan_start..limit, exists);
        Ok(Reader { window, layout, scan_start, limit })
    }

    /// Goes from group to group, and says why the last one was the last.
    fn follow<E: From<Error>>(
        &self,
        reader: &mut Reader,
        block: &CheckpointBlock,
        summary: &mut ScanSummary,
        group_read: &mut dyn FnMut(Lsn, Lsn),
        visit: &mut impl FnMut(Lsn, Lsn, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<&'static str, E> {
        let mut epoch = block.epoch_floor;
        loop {
            let at = summary.end;
            let group = match reader.group(at, epoch, block.epoch)? {
                Ok(group) => group,
                Err(why) => return Ok(why),
            };
            for frame in frames(group.bytes) {
                let (offset, records) =
                    frame.ok_or_else(|| self.damaged(block.layout, at, "its frames do not add up"))?;
                let start = at.plus(offset as u64);
                let end = start.plus((FRAME + records.len()) as u64);
                if end > block.checkpoint {
                    summary.mini_transactions += 1;
                    summary.bytes += records.len() as u64;
                    visit(start, end, records)?;
                }
            }
            epoch = group.header.epoch;
            summary.end = block.layout.align(at.plus(group.header.used()));
            group_read(at, summary.end);
        }
    }

    /// Makes sure that the log ends at `end` because it was never longer, not because it is damaged there.
    fn check_end(&self, reader: &mut Reader, block: &CheckpointBlock, end: Lsn, ended: &str) -> Result<()> {
        if end < block.flushed {
            let why = format!(
                "{ended}, but the checkpoint block says that the log was durable up to LSN {}",
                block.flushed
            );
            return Err(self.damaged(block.layout, end, &why));
        }
        if let Some(proof) = reader.find_proof(end, block)? {
            let why = format!(
                "{ended}, but the valid group of LSN {} further on says that the log was durable up to LSN {}",
                proof.lsn, proof.flushed
            );
            return Err(self.damaged(block.layout, end, &why));
        }
        Ok(())
    }

    fn damaged(&self, layout: Layout, lsn: Lsn, why: &str) -> Error {
        let path = self.file.path().to_path_buf();
        Error::Damaged { path, offset: layout.physical(lsn), lsn, why: why.to_owned() }
    }

    /// The end is known: takes a new epoch, and another size where the log is empty.
    fn settle(&self, old: CheckpointBlock, summary: &mut ScanSummary, starts: &[Lsn]) -> Result<()> {
        let mut block = CheckpointBlock {
            sequence: old.sequence + 1,
            epoch: old.epoch + 1,
            flushed: summary.end,
            closed: false,
            owner: if self.options.owner != 0 { self.options.owner } else { old.owner },
            ..old
        };
        let length = self.file.len()?;
        let area_max = self.state.lock().area_wanted();
        let unit = block_size(&self.options, &*self.file)?;
        if summary.end == old.scan_start && old.checkpoint == old.scan_start {
            // It starts over at the front; a multiple of 4096 suits every block size.
            let origin = Lsn(summary.end.0.next_multiple_of(4096));
            let exists = length.saturating_sub(FRONT) & !4095;
            let area = exists.max(self.options.area_first()).min(area_max);
            block.layout = Layout { origin, area, block: unit };
            block.checkpoint = origin;
            block.scan_start = origin;
            block.flushed = origin;
            block.epoch_floor = block.epoch;
            summary.end = origin;
        } else if old.layout.area > area_max || old.layout.block != unit {
            // Also the log of a backup, which is as large as what it holds and a whole log more.
            tracing::info!(
                "the redo log has {} KiB, in blocks of {}; the settings ask for {} KiB, to which it is cut as it comes round, in blocks of {unit}, which it has after the next clean shutdown",
                old.layout.file_size() >> 10,
                old.layout.block,
                (FRONT + area_max) >> 10
            );
        }
        block.reach = block.layout.reach(&self.options);
        if length < block.layout.file_size() {
            self.file.write_zeros(length & !4095, block.layout.file_size())?;
            self.file.sync_data()?;
        }
        self.file.write_at(&block.encode(), block.place())?;
        self.file.sync_data()?;
        if length > block.layout.file_size() {
            self.file.set_len(block.layout.file_size())?;
            self.file.sync_data()?;
        }
        {
            let mut state = self.state.lock();
            self.restart_at(&mut state, block, summary.end);
            for start in starts {
                state.groups.remember_start(*start);
            }
        }
        self.start_tasks();
        Ok(())
    }
}

/// A group that is what was sealed.
struct Group<'r> {
    header: GroupHeader,
    bytes: &'r [u8],
}

/// Reads groups of the circle.
struct Reader {
    window: Window,
    layout: Layout,
    scan_start: Lsn,
    /// The log has not gone further.
    limit: Lsn,
}

impl Reader {
    /// The group at `lsn`, or why there is none.
    fn group(
        &mut self,
        lsn: Lsn,
        epoch_min: u32,
        epoch_max: u32,
    ) -> Result<std::result::Result<Group<'_>, &'static str>> {
        let Some(header) = self.header(lsn)? else { return Ok(Err("there is no group header")) };
        if header.lsn != lsn {
            return Ok(Err("the group there has another LSN"));
        }
        if header.epoch < epoch_min || header.epoch > epoch_max {
            return Ok(Err("the group there belongs to another opening of the log"));
        }
        if header.flushed > lsn {
            return Ok(Err("the group header there contradicts itself"));
        }
        match self.verified(lsn, &header)? {
            Some(bytes) => Ok(Ok(Group { header, bytes })),
            None => Ok(Err("the group there has a bad checksum")),
        }
    }

    fn header(&mut self, lsn: Lsn) -> Result<Option<GroupHeader>> {
        if lsn.since(self.scan_start) >= self.layout.area {
            return Ok(None);
        }
        Ok(self.window.bytes(lsn, HEADER)?.and_then(GroupHeader::decode))
    }

    /// Header and frames of the group at `lsn`, if their checksum is good.
    fn verified(&mut self, lsn: Lsn, header: &GroupHeader) -> Result<Option<&[u8]>> {
        let room = self.layout.area - lsn.since(self.scan_start);
        if header.used() > room {
            return Ok(None);
        }
        Ok(self.window.bytes(lsn, header.used() as usize)?.filter(|bytes| header.verify(bytes)))
    }

    /// Searches past the end for a valid group that proves that the log was durable beyond `end`: as far as
    /// the log can have gone.
    fn find_proof(&mut self, end: Lsn, block: &CheckpointBlock) -> Result<Option<GroupHeader>> {
        let mut at = end;
        while at < self.limit {
            if let Some(header) = self.header(at)?
                && header.lsn >= at
                && header.lsn.since(at).is_multiple_of(self.layout.area)
                && header.epoch <= block.epoch
                && header.flushed > end
                && self.verified(at, &header)?.is_some()
            {
                return Ok(Some(header));
            }
            at = at.plus(self.layout.block);
        }
        Ok(None)
    }
}
