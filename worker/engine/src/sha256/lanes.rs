//! SHA-256's compression function and chains of HMACs, for one lane or for a lane in each word of a
//! vector.

use super::{K, Key, State};

/// A chain of HMACs under one key: the message of each is the HMAC before.
#[derive(Clone)]
pub struct Lane {
    pub key: Key,
    /// The last HMAC.
    pub last: State,
    /// The exclusive or of them all.
    pub sum: State,
}

impl zeroize::Zeroize for Lane {
    fn zeroize(&mut self) {
        self.key.zeroize();
        self.last.zeroize();
        self.sum.zeroize();
    }
}

/// SHA-256's padding after an HMAC. Its length counts the padded key, too.
pub const PADDING: [u32; 8] = [0x8000_0000, 0, 0, 0, 0, 0, 0, 768];

/// Defines a module with `compress` and `iterate`, from the operations on its vectors.
macro_rules! lanes {
    ($name:ident: $vector:ty = $lanes:literal lanes, #$attribute:tt splat $splat:expr, $($operations:tt)+) => {
        pub mod $name {
            #[cfg(target_arch = "x86_64")]
            #[allow(unused_imports, reason = "one lane is no vector")]
            use std::arch::x86_64::*;

            use super::*;

            type Vector = $vector;

            functions! {
                #$attribute
                sum(a, b, c) = add(add(a, b), c);
                spread_early(w) = parity(rotate::<7, 25>(w), rotate::<18, 14>(w), shift_by_3(w));
                spread_late(w) = parity(rotate::<17, 15>(w), rotate::<19, 13>(w), shift_by_10(w));
                spread_a(a) = parity(rotate::<2, 30>(a), rotate::<13, 19>(a), rotate::<22, 10>(a));
                spread_e(e) = parity(rotate::<6, 26>(e), rotate::<11, 21>(e), rotate::<25, 7>(e));
                $($operations)+
            }

            #[inline]
            #$attribute
            fn round([a, b, c, d, e, f, g, h]: [Vector; 8], word: Vector, constant: u32) -> [Vector; 8] {
                let input = add(word, $splat(constant.cast_signed()));
                let made = add(sum(h, input, choose(e, f, g)), spread_e(e));
                [add(made, add(spread_a(a), majority(a, b, c))), a, b, c, add(d, made), e, f, g]
            }

            /// The state after a block, whose words are overwritten.
            #[inline]
            #$attribute
            pub fn compress(before: &[Vector; 8], words: &mut [Vector; 16]) -> [Vector; 8] {
                let mut state = *before;
                // Apart from the loop: the compiler folds words that are constants.
                sixteen_times!({ state = round(state, words[I], K[I]) });
                for t in 1..4 {
                    sixteen_times!({
                        let [early, late] = [spread_early(words[(I + 1) % 16]), spread_late(words[(I + 14) % 16])];
                        words[I] = add(add(words[I], early), add(words[(I + 9) % 16], late));
                        state = round(state, words[I], K[16 * t + I]);
                    });
                }
                std::array::from_fn(|i| add(before[i], state[i]))
            }

            /// Transposes lanes. The last lane is repeated where lanes are fewer.
            #[inline]
            #$attribute
            fn load(lanes: &[Lane], state: impl Fn(&Lane) -> &State) -> [Vector; 8] {
                std::array::from_fn(|word| {
                    let words: [u32; $lanes] = std::array::from_fn(|n| state(&lanes[n.min(lanes.len() - 1)])[word]);
                    // SAFETY: both have the same size, and any bytes are valid.
                    unsafe { std::mem::transmute::<[u32; $lanes], Vector>(words) }
                })
            }

            #[inline]
            #$attribute
            fn store(lanes: &mut [Lane], state: impl Fn(&mut Lane) -> &mut State, vectors: &[Vector; 8]) {
                for (word, &vector) in vectors.iter().enumerate() {
                    // SAFETY: as above.
                    let words = unsafe { std::mem::transmute::<Vector, [u32; $lanes]>(vector) };
                    for (lane, value) in lanes.iter_mut().zip(words) {
                        state(lane)[word] = value;
                    }
                }
            }

            /// Continues all chains.
            #$attribute
            pub fn iterate(lanes: &mut [Lane], iterations: u32) {
                let inner = load(lanes, |lane| &lane.key.inner);
                let outer = load(lanes, |lane| &lane.key.outer);
                let mut last = load(lanes, |lane| &lane.last);
                let mut sum = load(lanes, |lane| &lane.sum);
                let padding = PADDING.map(|word| $splat(word.cast_signed()));
                for _ in 0..iterations {
                    for before in [&inner, &outer] {
                        let mut words = std::array::from_fn(|i| if i < 8 { last[i] } else { padding[i - 8] });
                        last = compress(before, &mut words);
                    }
                    for (sum, last) in sum.iter_mut().zip(last) {
                        *sum = xor(*sum, last);
                    }
                }
                store(lanes, |lane| &mut lane.last, &last);
                store(lanes, |lane| &mut lane.sum, &sum);
            }
        }
    };
}

// For every processor.
lanes! {
    one: u32 = 1 lanes, #[cfg(all())] splat i32::cast_unsigned,
    add(a, b) = a.wrapping_add(b);
    xor(a, b) = a ^ b;
    rotate<RIGHT, LEFT>(word) = word.rotate_right(RIGHT as u32);
    shift_by_3(word) = word >> 3;
    shift_by_10(word) = word >> 10;
    parity(a, b, c) = a ^ b ^ c;
    choose(e, f, g) = g ^ (e & (f ^ g));
    majority(a, b, c) = (a & b) ^ (c & (a ^ b));
}

#[cfg(target_arch = "x86_64")]
lanes! {
    avx2: __m256i = 8 lanes, #[target_feature(enable = "avx2")] splat _mm256_set1_epi32,
    add(a, b) = _mm256_add_epi32(a, b);
    xor(a, b) = _mm256_xor_si256(a, b);
    rotate<RIGHT, LEFT>(words) = _mm256_or_si256(_mm256_srli_epi32::<RIGHT>(words), _mm256_slli_epi32::<LEFT>(words));
    shift_by_3(words) = _mm256_srli_epi32::<3>(words);
    shift_by_10(words) = _mm256_srli_epi32::<10>(words);
    parity(a, b, c) = xor(xor(a, b), c);
    choose(e, f, g) = xor(g, _mm256_and_si256(e, xor(f, g)));
    majority(a, b, c) = xor(_mm256_and_si256(a, b), _mm256_and_si256(c, xor(a, b)));
}

#[cfg(target_arch = "x86_64")]
lanes! {
    avx512: __m512i = 16 lanes, #[target_feature(enable = "avx512f")] splat _mm512_set1_epi32,
    add(a, b) = _mm512_add_epi32(a, b);
    xor(a, b) = _mm512_xor_si512(a, b);
    rotate<RIGHT, LEFT>(words) = _mm512_ror_epi32::<RIGHT>(words);
    shift_by_3(words) = _mm512_srli_epi32::<3>(words);
    shift_by_10(words) = _mm512_srli_epi32::<10>(words);
    // Any function of three bits in one instruction, by the table of its values.
    parity(a, b, c) = _mm512_ternarylogic_epi32::<0x96>(a, b, c);
    choose(e, f, g) = _mm512_ternarylogic_epi32::<0xca>(e, f, g);
    majority(a, b, c) = _mm512_ternarylogic_epi32::<0xe8>(a, b, c);
}
