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

    /// The `i`th vector of the block.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn vector<V: Vector>(&self, i: usize) -> V {
        let words = &self.0[i * (size_of::<V>() / 8)..][..size_of::<V>() / 8];
        // SAFETY: the words are as many bytes as the vector, which all are valid, and aligned to
        // it, as a block is aligned to 64 bytes.
        unsafe { words.as_ptr().cast::<V>().read() }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn set_vector<V: Vector>(&mut self, i: usize, vector: V) {
        let words = &mut self.0[i * (size_of::<V>() / 8)..][..size_of::<V>() / 8];
        // SAFETY: as above, and they are borrowed for writing.
        unsafe { words.as_mut_ptr().cast::<V>().write(vector) };
    }

    pub fn mix(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word ^= other;
        }
    }
}

/// A vector that the processor loads.
///
/// # Safety
/// Any bytes are a valid vector, and its alignment is its size, 64 bytes at most.
#[cfg(target_arch = "x86_64")]
pub unsafe trait Vector: Copy {}
// SAFETY: 16 bytes.
#[cfg(target_arch = "x86_64")]
unsafe impl Vector for std::arch::x86_64::__m128i {}
// SAFETY: 32 bytes.
#[cfg(target_arch = "x86_64")]
unsafe impl Vector for std::arch::x86_64::__m256i {}
// SAFETY: 64 bytes.
#[cfg(target_arch = "x86_64")]
unsafe impl Vector for std::arch::x86_64::__m512i {}

/// The words of a vector, the lowest first.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn words(vector: std::arch::x86_64::__m128i) -> [u32; 4] {
    // SAFETY: both have the same size, and any bytes are valid.
    unsafe { std::mem::transmute(vector) }
}

impl Zeroize for Block {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Prefetches a cache line into the first-level cache, or with `NEAREST` false into the second.
#[inline(always)]
pub fn prefetch_line<const NEAREST: bool>(line: &[u64]) {
    let line = line.as_ptr();
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let line = line.cast();
        // SAFETY: every x86-64 processor has this instruction, and the line is borrowed.
        unsafe { if NEAREST { _mm_prefetch::<_MM_HINT_T0>(line) } else { _mm_prefetch::<_MM_HINT_T1>(line) } };
    }
    // Not under Miri, which knows no assembler.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: every AArch64 processor has this instruction, it changes nothing, and the line is
    // borrowed.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{line}]", line = in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", not(miri)))))]
    let _ = line;
}
