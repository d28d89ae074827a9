//! Memory of a thread's hashes, kept while there is work: fresh memory costs page faults.

mod mapping;

use std::time::{Duration, Instant};

use mapping::Mapping;
use zeroize::Zeroize;

use crate::block::Block;

/// 64 MiB: the most for a batch of several hashes, and the most that is kept for the next batch.
pub const KEPT_BLOCKS: usize = 64 * 1_024;

/// Age at which unused contents are wiped: under load the next batch overwrites them before.
pub const WIPED_AFTER: Duration = Duration::from_millis(100);

/// Reused blocks. [`Arena::prepare`] or [`Arena::wipe`] wipe what hashes leave in them.
pub struct Arena {
    blocks: Mapping,
    /// How many blocks a batch may take. A hash that is alone in its batch may take more.
    room: usize,
    /// Number of first blocks that may hold secrets.
    used: usize,
    /// Time of the last batch that used as many.
    used_at: Instant,
}

/// The system has not enough memory for a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory;

impl Default for Arena {
    fn default() -> Self {
        Self::new(KEPT_BLOCKS)
    }
}

impl Arena {
    /// Room in blocks, [`KEPT_BLOCKS`] at most.
    pub fn new(room: usize) -> Self {
        Self { blocks: Mapping::EMPTY, room: room.min(KEPT_BLOCKS), used: 0, used_at: Instant::now() }
    }

    /// How many blocks a batch may take.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Before a batch of `count` blocks, or 0: gives back memory beyond the room, and wipes old
    /// contents.
    pub fn prepare(&mut self, count: usize) {
        if self.blocks.len() > self.room.max(count) {
            self.give_back();
        } else if self.used > count && self.used_at.elapsed() >= WIPED_AFTER {
            self.blocks[count..self.used].iter_mut().zeroize();
            self.used = count;
        }
    }

    /// The first `count` blocks, with old contents.
    pub(crate) fn take(&mut self, count: usize) -> Result<&mut [Block], OutOfMemory> {
        if count > self.blocks.len() {
            self.give_back();
            self.blocks = Mapping::new(count)?;
        }
        if count >= self.used {
            self.used = count;
            self.used_at = Instant::now();
        }
        Ok(&mut self.blocks[..count])
    }

    /// Overwrites used blocks with zeros.
    pub fn wipe(&mut self) {
        self.blocks[..self.used].iter_mut().zeroize();
        self.used = 0;
        if self.blocks.len() > self.room {
            self.blocks = Mapping::EMPTY;
        }
    }

    /// Wipes all memory and gives it back to the system.
    pub fn give_back(&mut self) {
        self.wipe();
        self.blocks = Mapping::EMPTY;
    }

    /// Whether there is nothing to wipe.
    pub fn is_clean(&self) -> bool {
        self.used == 0
    }

    /// Whether there is no memory to give back.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether the system has given huge pages for it; `None` where that is not known.
    pub fn has_huge_pages(&self) -> Option<bool> {
        self.blocks.has_huge_pages()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.wipe();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(arena: &mut Arena, count: usize) {
        arena.prepare(count);
        arena.take(count).unwrap().fill(Block::ONES);
    }

    #[test]
    fn what_is_kept_is_bounded_and_wiped() {
        let mut arena = Arena::new(64);
        for count in [16, 8, 65] {
            fill(&mut arena, count);
            assert!(!arena.is_clean());
            arena.wipe();
            assert!(arena.is_clean());
            assert!(arena.blocks.iter().all(|block| *block == Block::ZERO));
            assert!(arena.blocks.len() <= 64);
        }
        assert_eq!(arena.take(usize::MAX / 4_096).err(), Some(OutOfMemory));
        assert!(arena.take(8).is_ok());
        arena.give_back();
        assert!(arena.is_empty());
    }

    #[test]
    fn one_large_hash_is_given_back_before_the_next_small_one() {
        let mut arena = Arena::new(64);
        for next in [0, 8, 64] {
            fill(&mut arena, 1_000);
            arena.prepare(next);
            assert!(arena.is_empty());
        }
        fill(&mut arena, 1_000);
        arena.prepare(1_000);
        assert_eq!(arena.blocks.len(), 1_000, "the next one takes as much");
    }

    #[test]
    fn what_later_batches_do_not_overwrite_is_wiped() {
        let mut arena = Arena::new(64);
        fill(&mut arena, 32);
        fill(&mut arena, 8);
        assert_eq!(arena.blocks[31], Block::ONES, "the next batch may be as large again");
        arena.used_at -= WIPED_AFTER;
        arena.prepare(8);
        assert!(arena.blocks[8..32].iter().all(|block| *block == Block::ZERO));
        assert_eq!(arena.blocks[7], Block::ONES);
        arena.used_at -= WIPED_AFTER;
        arena.prepare(0);
        assert!(arena.is_clean() && arena.blocks[..32].iter().all(|block| *block == Block::ZERO));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn huge_pages_are_seen_where_there_are_any() {
        let mut arena = Arena::default();
        assert_eq!(arena.has_huge_pages(), None);
        fill(&mut arena, 16 * 1_024);
        assert!(arena.has_huge_pages().is_some());
    }
}
