//! The compression function G (RFC 9106, sections 3.5 and 3.6), and which code this processor runs.

use super::WIDEST;
use crate::block::Block;
use crate::plan::Code;

/// Makes the third block from the first two: overwrites its contents, or mixes with them.
type Make = [unsafe fn(&Block, &Block, &mut Block, Ahead); 2];

/// The reference and the target of a block to be made soon. They are only prefetched.
pub type Ahead = [*const Block; 2];

/// The functions of a compressor.
#[derive(Clone, Copy)]
pub struct Run {
    /// Prefetches nothing.
    plain: Make,
    /// Prefetches what is ahead, a few lines at a time: for more than two hashes together.
    pub(super) spread: Option<Make>,
}

/// Code for one kind of processor and any number of hashes: it makes one block at a time.
pub type Compressor = Code<Run>;

/// For every processor, ARM included.
pub const PORTABLE: Compressor = code("portable", [portable::<false>, portable::<true>], None);

const fn code(name: &'static str, plain: Make, spread: Option<Make>) -> Compressor {
    Code { name, lanes: WIDEST, run: Run { plain, spread } }
}

/// Code that this processor can run, the portable code first.
pub fn available() -> Vec<Compressor> {
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
    let mut available = vec![PORTABLE];
    #[cfg(target_arch = "x86_64")]
    {
        use super::x86::{avx2, avx512};
        if is_x86_feature_detected!("avx2") {
            available.push(code("avx2", [avx2::compress::<false>, avx2::compress::<true>], None));
        }
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
            let plain: Make = [avx512::compress::<false, false>, avx512::compress::<true, false>];
            let spread: Make = [avx512::compress::<false, true>, avx512::compress::<true, true>];
            available.push(code("avx512", plain, None));
            available.push(code("avx512, spread prefetches", plain, Some(spread)));
        }
    }
    available
}

/// Makes a block by this code. Only code that spreads prefetches takes what is ahead.
#[inline(always)]
pub(super) fn compress(
    compressor: Compressor,
    [previous, reference]: [&Block; 2],
    target: &mut Block,
    mix: bool,
    ahead: Option<Ahead>,
) {
    let mix = usize::from(mix);
    // SAFETY: `available` made the code, after the processor said that it has the features.
    unsafe {
        match (compressor.run.spread, ahead) {
            (Some(spread), Some(ahead)) => spread[mix](previous, reference, target, ahead),
            _ => compressor.run.plain[mix](previous, reference, target, [reference; 2]),
        }
    }
}

fn portable<const MIX: bool>(previous: &Block, reference: &Block, target: &mut Block, _: Ahead) {
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
    if MIX {
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
            // One is enough for Miri, which is slow.
            for seed in 1..if cfg!(miri) { 2 } else { 100 } {
                let [first, second, before] = [block(seed), block(seed + 1_000), block(seed + 2_000)];
                let mut expected = before;
                compress(PORTABLE, [&first, &second], &mut expected, mix, None);
                for compressor in available() {
                    let mut target = before;
                    compress(compressor, [&first, &second], &mut target, mix, Some([&first, &second]));
                    assert_eq!(target, expected, "{}", compressor.name);
                }
            }
        }
    }
}
