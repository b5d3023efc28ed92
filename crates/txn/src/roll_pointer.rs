//! DB_ROLL_PTR: where the undo record is that leads to the previous version of a row.
//!
//! 56 bits as in InnoDB: bit 55 insert flag, bits 48-54 undo slot (modulo 128; for people, the page says it
//! all), bits 16-47 page of the undo tablespace, bits 0-15 offset of the undo record in it.

/// A decoded roll pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RollPtr(pub u64);

impl RollPtr {
    const INSERT: u64 = 1 << 55;

    pub fn new(insert: bool, slot: u16, page: u32, offset: u16) -> RollPtr {
        let flag = if insert { RollPtr::INSERT } else { 0 };
        RollPtr(flag | u64::from(slot & 0x7F) << 48 | u64::from(page) << 16 | u64::from(offset))
    }

    /// The row was inserted by the change: there is no older version.
    pub fn is_insert(self) -> bool {
        self.0 & RollPtr::INSERT != 0
    }

    pub fn page(self) -> u32 {
        (self.0 >> 16) as u32
    }

    pub fn offset(self) -> usize {
        usize::from(self.0 as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_is_that_of_the_format() {
        // Bytes of a record written by a real server: insert, slot 6, page 0x12D, offset 0x110.
        let pointer = RollPtr(0x86_0000_012D_0110);
        assert!(pointer.is_insert());
        assert_eq!((pointer.page(), pointer.offset()), (0x12D, 0x110));
        assert_eq!(RollPtr::new(true, 6, 0x12D, 0x110), pointer);
    }
}
