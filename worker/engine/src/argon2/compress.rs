//! The compression function G (RFC 9106, sections 3.5 and 3.6): portable, or by what this processor has.

use crate::block::Block;

/// Code for one kind of processor. There is one only for what this processor can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressor(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Compressor {
    /// For every processor, ARM included.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// All that this processor can run, the portable one first.
    pub fn available() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
        let mut available = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                available.push(Self(Kind::Avx2));
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                available.push(Self(Kind::Avx512));
            }
        }
        available
    }

    /// As it is called in logs.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// Makes a block from two others; mixes it with what was there before, or overwrites that.
    #[inline]
    pub(super) fn compress(self, previous: &Block, reference: &Block, target: &mut Block, mix: bool) {
        match self.0 {
            Kind::Portable => portable(previous, reference, target, mix),
            // SAFETY: a compressor of this kind is made in `available` alone, after the processor said that it has AVX2.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { super::x86::avx2::compress(previous, reference, target, mix) },
            // SAFETY: the same for AVX-512 F and BW.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { super::x86::avx512::compress(previous, reference, target, mix) },
        }
    }
}

fn portable(previous: &Block, reference: &Block, target: &mut Block, mix: bool) {
    let mut input = *previous;
    input.mix(reference);
    let mut words = input;
    for row in 0..8 {
        permute(&mut words.0, |i| 16 * row + i);
    }
    for column in 0..8 {
        permute(&mut words.0, |i| 2 * column + 16 * (i / 2) + i % 2);
    }
    words.mix(&input);
    if mix {
        target.mix(&words);
    } else {
        *target = words;
    }
}

/// The permutation P of sixteen words, which stand where `at` says.
#[inline(always)]
fn permute(words: &mut [u64; 128], at: impl Fn(usize) -> usize) {
    for i in 0..4 {
        quarter(words, [at(i), at(i + 4), at(i + 8), at(i + 12)]);
    }
    for i in 0..4 {
        quarter(words, [at(i), at((i + 1) % 4 + 4), at((i + 2) % 4 + 8), at((i + 3) % 4 + 12)]);
    }
}

/// GB: BLAKE2b's quarter round, its additions with a product on top.
#[inline(always)]
fn quarter(words: &mut [u64; 128], [a, b, c, d]: [usize; 4]) {
    let mut step = |to: usize, from: usize, turned: usize, by: u32| {
        let product = (words[to] & 0xffff_ffff) * (words[from] & 0xffff_ffff);
        words[to] = words[to].wrapping_add(words[from]).wrapping_add(product.wrapping_mul(2));
        words[turned] = (words[turned] ^ words[to]).rotate_right(by);
    };
    step(a, b, d, 32);
    step(c, d, b, 24);
    step(a, b, d, 16);
    step(c, d, b, 63);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_this_processor_can_run_give_the_same() {
        let block = |seed: u64| {
            Block(std::array::from_fn(|i| {
                (i as u64 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(seed as u32)
            }))
        };
        for mix in [false, true] {
            // Miri, which interprets, is given one alone.
            for seed in 1..if cfg!(miri) { 2 } else { 100 } {
                let [first, second, before] = [block(seed), block(seed + 1_000), block(seed + 2_000)];
                let mut expected = before;
                portable(&first, &second, &mut expected, mix);
                for compressor in Compressor::available() {
                    let mut target = before;
                    compressor.compress(&first, &second, &mut target, mix);
                    assert_eq!(target, expected, "{}", compressor.name());
                }
            }
        }
    }
}
