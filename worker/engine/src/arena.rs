//! The memory that a thread hashes in: mapped once and kept, because fresh memory costs a page fault for each page.

use zeroize::Zeroize;

use crate::block::Block;

/// The memory that each thread keeps between batches: 64 MiB. More is mapped when a hash asks for it and given back afterwards.
pub const KEPT_BLOCKS: usize = 64 * 1_024;

/// Blocks that are reused. They are not wiped between hashes, which overwrite them; wipe them when there is nothing to do.
#[derive(Default)]
pub struct Arena {
    blocks: Vec<Block>,
    /// So many of the first blocks may hold what belongs to a password.
    used: usize,
}

/// The memory that a hash asks for is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory;

impl Arena {
    /// The first `count` blocks, with whatever is in them.
    pub(crate) fn take(&mut self, count: usize) -> Result<&mut [Block], OutOfMemory> {
        if count > self.blocks.len() {
            self.wipe();
            self.blocks = Vec::new();
            self.blocks.try_reserve_exact(count).map_err(|_| OutOfMemory)?;
            ask_for_huge_pages(&mut self.blocks);
            self.blocks.resize(count, Block::ZERO);
        }
        self.used = self.used.max(count);
        Ok(&mut self.blocks[..count])
    }

    /// Overwrites what was used with zeros, and gives memory back that is over the bound.
    pub fn wipe(&mut self) {
        self.blocks[..self.used].iter_mut().zeroize();
        self.used = 0;
        if self.blocks.len() > KEPT_BLOCKS {
            self.blocks = Vec::new();
        }
    }

    /// Whether there is nothing to wipe.
    pub fn is_clean(&self) -> bool {
        self.used == 0
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// Before the memory is touched: pages of 2 MiB are only given out for memory that asks for them, and on its first use.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(blocks: &mut Vec<Block>) {
    const PAGE: usize = 4_096;
    let memory = blocks.spare_capacity_mut();
    let address = memory.as_mut_ptr() as usize;
    let start = address.next_multiple_of(PAGE);
    let end = address + size_of_val(memory);
    if start < end {
        // SAFETY: the range lies in memory that is ours, and the advice changes nothing that is in it.
        let advised = unsafe {
            rustix::mm::madvise(start as *mut std::ffi::c_void, end - start, rustix::mm::Advice::LinuxHugepage)
        };
        // Without huge pages the memory is as good as before, only slower.
        let _ = advised;
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_: &mut Vec<Block>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_wiped() {
        let mut arena = Arena::default();
        for count in [16, 8, KEPT_BLOCKS + 1] {
            arena.take(count).unwrap().fill(Block::ONES);
            assert!(!arena.is_clean());
            arena.wipe();
            assert!(arena.is_clean());
            assert!(arena.blocks.iter().all(|block| *block == Block::ZERO));
            assert!(arena.blocks.len() <= KEPT_BLOCKS);
        }
        assert_eq!(arena.take(usize::MAX / 4_096).err(), Some(OutOfMemory));
        assert!(arena.take(8).is_ok());
    }
}
