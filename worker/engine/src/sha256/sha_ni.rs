//! Chains of HMACs by the SHA instructions of x86-64. Lanes are interleaved: an instruction waits
//! for its predecessor in its own lane only.

use std::arch::x86_64::*;

use super::lanes::{Lane, PADDING};
use super::{K, State};
use crate::block;

/// The instructions' order of a state: F, E, B, A in the first vector, H, G, D, C in the second.
type Halves = [__m128i; 2];

/// Continues all chains. With fewer lanes than `LANES`, the last lane is repeated.
#[target_feature(enable = "sha,sse4.1")]
pub fn iterate<const LANES: usize>(lanes: &mut [Lane], iterations: u32) {
    let load = |state: &dyn Fn(&Lane) -> State| -> [Halves; LANES] {
        std::array::from_fn(|n| halves(state(&lanes[n.min(lanes.len() - 1)])))
    };
    let inner = load(&|lane| lane.key.inner);
    let outer = load(&|lane| lane.key.outer);
    let mut last = load(&|lane| lane.last);
    let mut sum = load(&|lane| lane.sum);
    let padding = [0, 4].map(|i| words(PADDING[i..][..4].try_into().expect("four words")));
    for _ in 0..iterations {
        for before in [&inner, &outer] {
            let mut block = last.map(|last| {
                let [first, second] = in_order(last);
                [first, second, padding[0], padding[1]]
            });
            last = compress(before, &mut block);
        }
        for (sum, last) in sum.iter_mut().zip(last) {
            *sum = [_mm_xor_si128(sum[0], last[0]), _mm_xor_si128(sum[1], last[1])];
        }
    }
    for (lane, (last, sum)) in lanes.iter_mut().zip(last.into_iter().zip(sum)) {
        lane.last = state(last);
        lane.sum = state(sum);
    }
}

#[inline]
#[target_feature(enable = "sha,sse4.1")]
fn compress<const LANES: usize>(before: &[Halves; LANES], blocks: &mut [[__m128i; 4]; LANES]) -> [Halves; LANES] {
    let mut after = *before;
    sixteen_times!({
        let constants = words([K[4 * I], K[4 * I + 1], K[4 * I + 2], K[4 * I + 3]]);
        for ([abef, cdgh], block) in after.iter_mut().zip(&mut *blocks) {
            if (4..).contains(&I) {
                let [w0, w1, w2, w3] = [block[I % 4], block[(I + 1) % 4], block[(I + 2) % 4], block[(I + 3) % 4]];
                let sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8::<4>(w3, w2));
                block[I % 4] = _mm_sha256msg2_epu32(sum, w3);
            }
            let input = _mm_add_epi32(block[I % 4], constants);
            *cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, input);
            *abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32::<0x0e>(input));
        }
    });
    for (after, before) in after.iter_mut().zip(before) {
        *after = [_mm_add_epi32(after[0], before[0]), _mm_add_epi32(after[1], before[1])];
    }
    after
}

/// The first word in the lowest place.
#[inline]
#[target_feature(enable = "sse4.1")]
fn words(words: [u32; 4]) -> __m128i {
    let [a, b, c, d] = words.map(u32::cast_signed);
    _mm_setr_epi32(a, b, c, d)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn halves([a, b, c, d, e, f, g, h]: State) -> Halves {
    [words([f, e, b, a]), words([h, g, d, c])]
}

/// The words from A to H.
#[inline]
#[target_feature(enable = "ssse3,sse4.1")]
fn in_order([abef, cdgh]: Halves) -> [__m128i; 2] {
    let [abef, ghcd] = [_mm_shuffle_epi32::<0x1b>(abef), _mm_shuffle_epi32::<0xb1>(cdgh)];
    [_mm_blend_epi16::<0xf0>(abef, ghcd), _mm_alignr_epi8::<8>(ghcd, abef)]
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn state(state: Halves) -> State {
    let [[a, b, c, d], [e, f, g, h]] = in_order(state).map(block::words);
    [a, b, c, d, e, f, g, h]
}
