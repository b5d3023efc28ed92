//! Slots that no transaction owns.
//!
//! They lie on several stacks, so that transactions do not meet at one mutex. Each session has a stack of its
//! own choice and takes from another one only when that is empty; the most recently used slot comes first,
//! its page is warm.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::tablespace::Slot;

const STACKS: usize = 16;

/// On cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Stack(Mutex<Vec<(u16, Slot)>>);

#[derive(Default)]
pub(crate) struct FreeSlots {
    stacks: [Stack; STACKS],
    next_home: AtomicUsize,
    /// Slots that must not be used again before a restart; empty but after damage.
    retired: Mutex<BTreeSet<u16>>,
    retired_count: AtomicUsize,
}

impl FreeSlots {
    /// Adds slots, the ones to be taken first at the end.
    pub fn add(&self, slots: impl Iterator<Item = (u16, Slot)>) {
        for (number, slot) in slots {
            self.stacks[usize::from(number) % STACKS].0.lock().push((number, slot));
        }
    }

    /// The stack a new session takes its slots from.
    pub fn choose_home(&self) -> u16 {
        (self.next_home.fetch_add(1, Ordering::Relaxed) % STACKS) as u16
    }

    /// Takes a slot. `None`: all are taken.
    pub fn take(&self, home: u16) -> Option<(u16, Slot)> {
        let home = usize::from(home);
        (home..home + STACKS).find_map(|stack| self.stacks[stack % STACKS].0.lock().pop())
    }

    pub fn give_back(&self, home: u16, number: u16, slot: Slot) {
        if self.is_retired(number) {
            return;
        }
        self.stacks[usize::from(home) % STACKS].0.lock().push((number, slot));
    }

    /// Takes one particular slot, if it is free.
    pub fn take_number(&self, number: u16) -> Option<Slot> {
        self.stacks.iter().find_map(|stack| {
            let mut stack = stack.0.lock();
            let position = stack.iter().position(|(other, _)| *other == number)?;
            Some(stack.remove(position).1)
        })
    }

    /// Takes all slots that are so.
    pub fn take_all(&self, is_one: impl Fn(&Slot) -> bool) -> Vec<(u16, Slot)> {
        let mut taken = Vec::new();
        for stack in &self.stacks {
            taken.extend(stack.0.lock().extract_if(.., |(_, slot)| is_one(slot)));
        }
        taken
    }

    pub fn is_retired(&self, number: u16) -> bool {
        self.retired_count.load(Ordering::Relaxed) > 0 && self.retired.lock().contains(&number)
    }

    /// Keeps a slot from being taken again.
    pub fn retire(&self, number: u16) {
        self.retired.lock().insert(number);
        self.retired_count.fetch_add(1, Ordering::Relaxed);
        let _ = self.take_number(number);
    }
}
