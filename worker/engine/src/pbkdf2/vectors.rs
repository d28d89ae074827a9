//! Iterations by the vectors of x86-64 processors: the same word of as many lanes in each.

/// Defines `iterate` in a module of its own, for vectors that are loaded, stored and worked on by what is named.
macro_rules! vectors {
    (
        $name:ident: $vector:ty = $lanes:literal lanes by $features:literal,
        load $load:ident, store $store:ident, xor $xor:ident, splat $splat:ident, add $add:ident, shift $shift:ident,
        parity [$parity:expr], choose [$choose:expr], majority [$majority:expr],
        $($rotate:item)+
    ) => {
        pub mod $name {
            use std::arch::x86_64::*;

            use super::super::{Lane, PADDING};
            use crate::sha256::State;
            use crate::sha256::rounds::define_compress;

            type Vector = $vector;

            $($rotate)+

            #[inline]
            #[target_feature(enable = $features)]
            fn splat(word: u32) -> Vector {
                $splat(word.cast_signed())
            }

            define_compress! {
                Vector, [target_feature(enable = $features)],
                splat splat, add $add, rotate rotate, shift $shift,
                parity [$parity], choose [$choose], majority [$majority]
            }

            /// Each word of all lanes. Where lanes are fewer, the last one is there several times.
            #[inline]
            #[target_feature(enable = $features)]
            fn load(lanes: &[Lane], state: impl Fn(&Lane) -> &State) -> [Vector; 8] {
                std::array::from_fn(|word| {
                    let words: [u32; $lanes] = std::array::from_fn(|n| state(&lanes[n.min(lanes.len() - 1)])[word]);
                    // SAFETY: the words are as many bytes as a vector, which may lie anywhere.
                    unsafe { $load(words.as_ptr().cast()) }
                })
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn store(lanes: &mut [Lane], state: impl Fn(&mut Lane) -> &mut State, vectors: &[Vector; 8]) {
                for (word, &vector) in vectors.iter().enumerate() {
                    let mut words = [0_u32; $lanes];
                    // SAFETY: as above, and they are borrowed for writing.
                    unsafe { $store(words.as_mut_ptr().cast(), vector) };
                    for (lane, value) in lanes.iter_mut().zip(words) {
                        state(lane)[word] = value;
                    }
                }
            }

            /// As many iterations of all lanes.
            #[target_feature(enable = $features)]
            pub fn iterate(lanes: &mut [Lane], iterations: u32) {
                let inner = load(lanes, |lane| &lane.key.inner);
                let outer = load(lanes, |lane| &lane.key.outer);
                let mut last = load(lanes, |lane| &lane.last);
                let mut sum = load(lanes, |lane| &lane.sum);
                for _ in 0..iterations {
                    for before in [&inner, &outer] {
                        let mut words = std::array::from_fn(|i| if i < 8 { last[i] } else { splat(PADDING[i - 8]) });
                        last = compress(before, &mut words);
                    }
                    for (sum, last) in sum.iter_mut().zip(last) {
                        *sum = $xor(*sum, last);
                    }
                }
                store(lanes, |lane| &mut lane.last, &last);
                store(lanes, |lane| &mut lane.sum, &sum);
            }
        }
    };
}

vectors! {
    avx2: __m256i = 8 lanes by "avx2",
    load _mm256_loadu_si256, store _mm256_storeu_si256, xor _mm256_xor_si256, splat _mm256_set1_epi32, add _mm256_add_epi32,
    shift _mm256_srli_epi32,
    parity [|a, b, c| _mm256_xor_si256(_mm256_xor_si256(a, b), c)],
    choose [|e, f, g| _mm256_xor_si256(g, _mm256_and_si256(e, _mm256_xor_si256(f, g)))],
    majority [|a, b, c| _mm256_xor_si256(_mm256_and_si256(a, b), _mm256_and_si256(c, _mm256_xor_si256(a, b)))],
    #[inline]
    #[target_feature(enable = "avx2")]
    fn rotate<const RIGHT: i32, const LEFT: i32>(words: Vector) -> Vector {
        _mm256_or_si256(_mm256_srli_epi32::<RIGHT>(words), _mm256_slli_epi32::<LEFT>(words))
    }
}

vectors! {
    avx512: __m512i = 16 lanes by "avx512f",
    load _mm512_loadu_si512, store _mm512_storeu_si512, xor _mm512_xor_si512, splat _mm512_set1_epi32, add _mm512_add_epi32,
    shift _mm512_srli_epi32,
    // Any function of three bits in one instruction, by the table of its values.
    parity [_mm512_ternarylogic_epi32::<0x96>],
    choose [_mm512_ternarylogic_epi32::<0xca>],
    majority [_mm512_ternarylogic_epi32::<0xe8>],
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn rotate<const RIGHT: i32, const LEFT: i32>(words: Vector) -> Vector {
        _mm512_ror_epi32::<RIGHT>(words)
    }
}
