//! The undo log of one active transaction.

use pagestore::{Mtr, PageHandle, PageRead, Pin};

use super::page::*;
use super::record::{bytes_at, start_before};
use super::tablespace::{Hint, Slot, UndoSpace, corrupt, undo_id};
use crate::error::{Error, Interrupt};
use crate::roll_pointer::RollPtr;
use crate::row_count::RowChanges;

/// Pages a log may have gone on to before its slot is worth trimming.
const SPARE_PAGES_MAX: u32 = 4;

/// Where a transaction's log stands; to roll back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogMark {
    /// Records before the mark.
    pub records: u64,
    /// End of the log at the mark; `None`: it had not begun.
    pub end: Option<Place>,
}

/// An active transaction's log. Owns its slot.
pub(crate) struct UndoLog {
    slot: u16,
    /// The stack that the slot goes back to.
    home: u16,
    pub trx_id: u64,
    /// The log header, once the first record is written.
    header: Option<Place>,
    /// Where the next record goes; the page is pinned once room was made on it.
    end: Option<Place>,
    pin: Option<Pin>,
    /// Records in the log.
    pub records: u64,
    /// Pages the log has gone on to.
    continued: u32,
    /// Pages the slot got since the directory was given a hint.
    since_hint: u16,
    /// Whether older versions exist that purge must remove (anything but inserts).
    pub needs_purge: bool,
    /// By how many rows what stands in the log has changed tables.
    pub row_changes: RowChanges,
    /// It is prepared: behind its end stands the record with its name.
    prepared: bool,
}

/// A log that ended with something to purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommittedLog {
    pub slot: u16,
    pub trx_id: u64,
    pub header: Place,
    pub end: Place,
}

impl CommittedLog {
    /// Whether the undo page with this number has something of it.
    pub fn is_on(&self, page: &[u8], number: u32) -> bool {
        if slot_of(page) != self.slot {
            return false;
        }
        if number != self.header.page {
            return owner_of(page) == self.trx_id;
        }
        let header = has_header(page, self.header).then(|| LogHeader::read(page, self.header.offset.into()));
        header.is_some_and(|header| header.trx_id == self.trx_id && header.state == STATE_COMMITTED)
    }
}

impl UndoLog {
    /// The log of a transaction that has just taken a slot. Nothing is written yet.
    pub fn new(home: u16, slot: u16, state: Slot, trx_id: u64) -> UndoLog {
        UndoLog {
            slot,
            home,
            trx_id,
            header: None,
            end: state.next_log,
            pin: None,
            records: 0,
            continued: 0,
            since_hint: state.since_hint,
            needs_purge: false,
            row_changes: RowChanges::default(),
            prepared: false,
        }
    }

    /// An unfinished log found by recovery, with what a [`super::recovery::Survey`] found out about it.
    pub fn resurrect(slot: u16, trx_id: u64, header: Place, end: Place, records: u64) -> UndoLog {
        UndoLog {
            slot,
            home: slot,
            trx_id,
            header: Some(header),
            end: Some(end),
            pin: None,
            records,
            continued: SPARE_PAGES_MAX + 1,
            since_hint: 0,
            needs_purge: true,
            row_changes: RowChanges::unknown(),
            prepared: false,
        }
    }

    /// A prepared log found by recovery.
    pub fn resurrect_prepared(slot: u16, trx_id: u64, header: Place, end: Place, records: u64) -> UndoLog {
        UndoLog { prepared: true, ..UndoLog::resurrect(slot, trx_id, header, end, records) }
    }

    pub fn is_prepared(&self) -> bool {
        self.prepared
    }

    fn header_bytes(&self) -> usize {
        if self.header.is_some() { 0 } else { LOG_HEADER_LEN }
    }

    /// Where a record of `size` bytes would go, if there is room for it on the pinned page: its roll
    /// pointer's page and offset.
    pub fn place_for(&self, space: &UndoSpace, size: usize) -> Option<Place> {
        let (Some(end), Some(pin)) = (self.end, &self.pin) else { return None };
        debug_assert_eq!(pin.page_id(), undo_id(end.page));
        let start = usize::from(end.offset) + self.header_bytes();
        (start + size <= space.limit()).then_some(Place { page: end.page, offset: start as u16 })
    }

    /// The roll pointer of a record at `place`.
    pub fn roll_ptr(&self, place: Place, insert: bool) -> RollPtr {
        RollPtr::new(insert, self.slot, place.page, place.offset)
    }

    /// Makes room for a record of `size` bytes, in mini-transactions of its own: pins the page, or goes on to
    /// the next one.
    pub fn make_room(&mut self, space: &UndoSpace, size: usize) -> Result<(), Interrupt> {
        debug_assert!(!self.prepared, "nothing is added to a prepared log");
        let max = space.limit() - RECORDS - self.header_bytes();
        if size > max {
            return Err(Error::UndoRecordTooBig { bytes: size, max }.into());
        }
        loop {
            match (self.end, &self.pin) {
                (None, _) => {
                    let page = space.add_page(self.slot, None, 0, Hint::Keep)?;
                    self.end = Some(Place::start_of(page));
                    self.pin = None;
                }
                (Some(end), None) => self.pin = Some(space.store().pin(undo_id(end.page))?),
                (Some(_), Some(_)) if self.place_for(space, size).is_some() => return Ok(()),
                (Some(end), Some(pin)) => {
                    assert!(
                        usize::from(end.offset) > RECORDS,
                        "an undo record of {size} bytes does not fit an empty page"
                    );
                    let (next, hinted) = self.next_page(space, pin)?;
                    self.end = Some(Place::start_of(next));
                    self.pin = None;
                    self.continued += 1;
                    self.since_hint = if hinted { 0 } else { self.since_hint.saturating_add(1) };
                }
            }
        }
    }

    /// Pins the page where the next record will probably go, if there is one and it is not pinned: a
    /// transaction's first change would find that out only when it stands at its row with everything
    /// computed, and do all of it again. A page is not made here: the change may find nothing to do.
    pub fn pin_page(&mut self, space: &UndoSpace) -> Result<(), Interrupt> {
        if let (Some(end), None) = (self.end, &self.pin) {
            self.pin = Some(space.store().pin(undo_id(end.page))?);
        }
        Ok(())
    }

    /// Unpins the page before a wait within a change: many changes that wait for frames would otherwise keep
    /// them from each other for ever, and a change whose future is dropped would keep its frame as long as
    /// the transaction is open.
    pub fn unpin(&mut self) {
        self.pin = None;
    }

    /// The page after the current one, ready for this log, and whether the directory got a hint with it.
    fn next_page(&self, space: &UndoSpace, current: &Pin) -> Result<(u32, bool), Interrupt> {
        // A log that has begun goes on there; otherwise it begins there.
        let owner = if self.header.is_some() { self.trx_id } else { 0 };
        let spare = pagestore::page::next(&current.read());
        if spare == pagestore::page::NULL_PAGE {
            let hint = match self.header {
                _ if !space.wants_hint(self.since_hint) => Hint::Keep,
                Some(header) => Hint::Log(header),
                None => Hint::NewPage,
            };
            let page = space.add_page(self.slot, Some(current), owner, hint)?;
            return Ok((page, hint != Hint::Keep));
        }
        let mut mtr = space.store().mtr()?;
        let page = mtr.x(undo_id(spare))?;
        match pagestore::page::next(mtr.page(page)) {
            pagestore::page::NULL_PAGE => {}
            after => {
                // What was cut off may have reached so far. It must not become this log's continuation again.
                let after = mtr.x(undo_id(after))?;
                if owner_of(mtr.page(after)) == self.trx_id {
                    disown(&mut mtr, after);
                }
            }
        }
        mtr.write_u64(page, OWNER, owner);
        mtr.write_u16(page, FREE, RECORDS as u16);
        // Pages between the two may have been freed, and be another slot's by now: a rollback goes back this
        // way.
        mtr.write_u32(page, pagestore::page::PREVIOUS, current.page_id().page);
        mtr.commit();
        Ok((spare, false))
    }

    /// X-latches the page the next record goes to: after all index pages of the mini-transaction.
    pub fn latch(&self, mtr: &mut Mtr<'_>) -> Option<PageHandle> {
        self.pin.as_ref().map(|pin| mtr.x_pin(pin.clone()))
    }

    /// Unpins the page if there are too many transactions for all of them to keep theirs, or the buffer pool
    /// becomes smaller and waits for it. The next record pins it again.
    pub fn let_go(&mut self, space: &UndoSpace) {
        let is_wanted = |pin: &Pin| !space.may_keep_pin(self.slot) || space.store().wants_back(pin);
        self.pin = self.pin.take().filter(|pin| !is_wanted(pin));
    }

    /// Writes a record at the place [`Self::place_for`] gave, with the log header before it if it is the
    /// first.
    pub fn append(&mut self, mtr: &mut Mtr<'_>, page: PageHandle, record: &[u8], insert: bool) {
        let Some(end) = self.end else { unreachable!("room was made") };
        debug_assert_eq!(mtr.page_id(page), undo_id(end.page));
        let mut at = usize::from(end.offset);
        if self.header.is_none() {
            mtr.write(page, at, &LogHeader::begin(self.trx_id));
            self.header = Some(end);
            at += LOG_HEADER_LEN;
        }
        mtr.write(page, at, record);
        let free = (at + record.len()) as u16;
        mtr.write_u16(page, FREE, free);
        self.end = Some(Place { page: end.page, offset: free });
        self.records += 1;
        self.needs_purge |= !insert;
    }

    /// Where the log stands.
    pub fn mark(&self) -> LogMark {
        LogMark { records: self.records, end: self.header.and(self.end) }
    }

    /// Copies the last record before `end` into `bytes` and gives its place; `None` when there is none after
    /// `stop` (the end of the log at some earlier time) or after the start of the log.
    pub fn record_before(
        &self,
        space: &UndoSpace,
        end: Place,
        stop: Option<Place>,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<Place>, Interrupt> {
        let Some(header) = self.header else { return Ok(None) };
        let mut end = end;
        loop {
            let first = usize::from(header.offset) + LOG_HEADER_LEN;
            if Some(end) == stop || end.page == header.page && usize::from(end.offset) <= first {
                return Ok(None);
            }
            let page = self.read_own(space, header, end.page)?;
            if usize::from(end.offset) == RECORDS {
                let previous = pagestore::page::previous(&page);
                drop(page);
                let page = self.read_own(space, header, previous)?;
                end = Place { page: previous, offset: free_of(&page) };
                continue;
            }
            let start = start_before(&page, usize::from(end.offset))
                .ok_or_else(|| corrupt(end.page, "no undo record ends where one should"))?;
            let record = bytes_at(&page, start).unwrap_or(&[]);
            bytes.clear();
            bytes.extend_from_slice(record);
            return Ok(Some(Place { page: end.page, offset: start as u16 }));
        }
    }

    /// Reads a page of this log. What is on another one must not be taken for its records: they would be
    /// undone.
    fn read_own(&self, space: &UndoSpace, header: Place, number: u32) -> Result<PageRead, Interrupt> {
        let page = space.read_page(number)?;
        if slot_of(&page) != self.slot || number != header.page && owner_of(&page) != self.trx_id {
            return Err(corrupt(number, "the log leads to a page that is not its own").into());
        }
        Ok(page)
    }

    /// Its slot, and where the slot's next record goes.
    #[cfg(test)]
    pub fn slot(&self) -> u16 {
        self.slot
    }

    #[cfg(test)]
    pub fn is_pinned(&self) -> bool {
        self.pin.is_some()
    }

    #[cfg(test)]
    pub fn end_of_slot(&self) -> Option<Place> {
        self.end
    }

    /// End of the log, if it has begun.
    pub fn end(&self) -> Option<Place> {
        self.header.and(self.end)
    }

    /// Cuts the log back to `mark`: what followed has been undone. A sequence of steps; repeat it as a whole
    /// after a wait.
    pub fn truncate(&mut self, space: &UndoSpace, mark: LogMark) -> Result<(), Interrupt> {
        let (Some(header), Some(end)) = (self.header, self.end) else { return Ok(()) };
        let to = mark.end.unwrap_or(header);
        if to == end {
            return Ok(());
        }
        let mut mtr = space.store().mtr()?;
        let page = mtr.x(undo_id(to.page))?;
        if to.page != end.page {
            // The pages after must not look like a continuation of this log; the next one is where a reader
            // would go on. Those after that are disowned by the purge worker that reaches the page before
            // them.
            let next = pagestore::page::next(mtr.page(page));
            let next = mtr.x(undo_id(next))?;
            disown(&mut mtr, next);
        }
        mtr.write_u16(page, FREE, to.offset);
        mtr.commit();
        self.end = Some(to);
        self.records = mark.records;
        if to.page != end.page {
            self.pin = None;
        }
        if mark.end.is_none() {
            self.header = None;
            self.needs_purge = false;
        }
        Ok(())
    }

    /// The mark of a prepared log, with the record that names it. A sequence of steps; repeat it as a whole
    /// after a wait.
    pub fn prepare(&mut self, space: &UndoSpace, record: &[u8]) -> Result<(), Interrupt> {
        self.make_room(space, record.len())?;
        let (Some(place), Some(begin)) = (self.place_for(space, record.len()), self.end) else {
            unreachable!("room was made")
        };
        let mut mtr = space.store().mtr()?;
        let apart = self.header.filter(|header| header.page != place.page);
        let header_page = apart.map(|header| mtr.x(undo_id(header.page))).transpose()?;
        let Some(page) = self.latch(&mut mtr) else { unreachable!("room was made") };
        let header = *self.header.get_or_insert_with(|| {
            mtr.write(page, begin.offset.into(), &LogHeader::begin(self.trx_id));
            begin
        });
        mtr.write(page, place.offset.into(), record);
        mtr.write_u16(page, FREE, place.offset + record.len() as u16);
        let mark = LogHeader::prepared_mark(self.records, place);
        mtr.write(header_page.unwrap_or(page), usize::from(header.offset) + LOG_COMMIT, &mark);
        mtr.commit();
        self.end = Some(place);
        self.pin = None;
        self.prepared = true;
        Ok(())
    }

    /// Makes a prepared log an active one again, to be rolled back.
    pub fn unprepare(&mut self, space: &UndoSpace) -> Result<(), Interrupt> {
        let (Some(header), Some(end), true) = (self.header, self.end, self.prepared) else { return Ok(()) };
        let mut mtr = space.store().mtr()?;
        let page = mtr.x(undo_id(header.page))?;
        let last = if end.page == header.page { page } else { mtr.x(undo_id(end.page))? };
        mtr.write_u16(last, FREE, end.offset);
        mtr.write(page, header.offset.into(), &LogHeader::begin(self.trx_id));
        mtr.commit();
        self.prepared = false;
        Ok(())
    }

    /// The commit mark. Returns what purge has to do; `None`: nothing, the log is gone. The slot is still
    /// owned.
    pub fn commit(
        &mut self,
        space: &UndoSpace,
        commit_number: u64,
    ) -> Result<Option<CommittedLog>, Interrupt> {
        let (Some(header), Some(end)) = (self.header, self.end) else { return Ok(None) };
        if !self.needs_purge {
            self.truncate(space, LogMark { records: 0, end: None })?;
            self.prepared = false;
            return Ok(None);
        }
        let mut mtr = space.store().mtr()?;
        let page = match &self.pin {
            Some(pin) if header.page == end.page => mtr.x_pin(pin.clone()),
            _ => mtr.x(undo_id(header.page))?,
        };
        if self.prepared {
            // The next log begins where its name stood.
            let last = if end.page == header.page { page } else { mtr.x(undo_id(end.page))? };
            mtr.write_u16(last, FREE, end.offset);
        }
        let at = usize::from(header.offset) + LOG_COMMIT;
        mtr.write(page, at, &LogHeader::commit_mark(commit_number, end));
        mtr.commit();
        self.prepared = false;
        Ok(Some(CommittedLog { slot: self.slot, trx_id: self.trx_id, header, end }))
    }

    /// Gives the slot back. The log must have been committed or cut back to nothing.
    pub fn release(self, space: &UndoSpace) {
        let state = Slot { next_log: self.end, since_hint: self.since_hint };
        space.give_back(self.home, self.slot, state);
        if self.continued > SPARE_PAGES_MAX && !self.needs_purge {
            space.note_spare_pages(self.slot);
        }
    }
}

/// Makes a page nobody's continuation, with nothing on it.
fn disown(mtr: &mut Mtr<'_>, page: PageHandle) {
    mtr.write_u64(page, OWNER, 0);
    mtr.write_u16(page, FREE, RECORDS as u16);
}
