//! A block: 1 KiB of memory, as 128 words.

use zeroize::Zeroize;

pub const BLOCK_BYTES: usize = 1_024;
const WORDS: usize = BLOCK_BYTES / 8;

/// Aligned to a cache line, so that no vector of it crosses one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(64))]
pub struct Block(pub [u64; WORDS]);

impl Block {
    pub const ZERO: Self = Self([0; WORDS]);
    #[cfg(test)]
    pub const ONES: Self = Self([u64::MAX; WORDS]);

    pub fn read(&mut self, bytes: &[u8; BLOCK_BYTES]) {
        for (word, bytes) in self.0.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
    }

    pub fn write(&self, bytes: &mut [u8; BLOCK_BYTES]) {
        for (word, bytes) in self.0.iter().zip(bytes.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    pub fn mix(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word ^= other;
        }
    }
}

impl Zeroize for Block {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}
