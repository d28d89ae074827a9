//! The compression function by the vectors of x86-64 processors.
//!
//! Rows of a block are sixteen words next to each other: two rows share the vectors. Columns are pairs of words, of which a
//! vector has two or four: as many columns are permuted at a time, and nothing has to be moved before or after.

/// Defines `compress` in a module of its own, for vectors that are loaded, stored and worked on by what is named.
macro_rules! compressor {
    (
        $name:ident: $vector:ty = $words:literal words by $features:literal,
        load $load:ident, store $store:ident, xor $xor:ident, add $add:ident, product $product:ident,
        rotate [$by32:expr, $by24:expr, $by16:expr, $by63:expr],
        across $across:ident,
        rows $($rows:item)+
    ) => {
        pub mod $name {
            use std::arch::x86_64::*;

            use crate::block::Block;

            /// How many vectors a block has.
            const VECTORS: usize = 128 / $words;
            /// How many vectors a row has.
            const ROW: usize = 16 / $words;

            type Vector = $vector;

            #[inline]
            #[target_feature(enable = $features)]
            fn load(block: &Block, i: usize) -> Vector {
                let words: &[u64; $words] = block.0[i * $words..][..$words].try_into().expect("a whole vector");
                // SAFETY: the words are as many bytes as a vector, and aligned to it, as a block is aligned to 64 bytes.
                unsafe { $load(words.as_ptr().cast()) }
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn store(block: &mut Block, i: usize, vector: Vector) {
                let words: &mut [u64; $words] = (&mut block.0[i * $words..][..$words]).try_into().expect("a whole vector");
                // SAFETY: as above, and they are borrowed for writing.
                unsafe { $store(words.as_mut_ptr().cast(), vector) }
            }

            /// Addition with a product on top.
            #[inline]
            #[target_feature(enable = $features)]
            fn sum(a: Vector, b: Vector) -> Vector {
                let product = $product(a, b);
                $add($add(a, b), $add(product, product))
            }

            /// GB of as many quadruples of words as a vector has words.
            #[inline]
            #[target_feature(enable = $features)]
            fn quarters([a, b, c, d]: [&mut Vector; 4]) {
                *a = sum(*a, *b);
                *d = $by32($xor(*d, *a));
                *c = sum(*c, *d);
                *b = $by24($xor(*b, *c));
                *a = sum(*a, *b);
                *d = $by16($xor(*d, *a));
                *c = sum(*c, *d);
                *b = $by63($xor(*b, *c));
            }

            $($rows)+

            /// P of the columns whose pairs are in these vectors.
            #[inline]
            #[target_feature(enable = $features)]
            fn permute_columns([a0, a1, b0, b1, c0, c1, d0, d1]: [&mut Vector; 8]) {
                quarters([a0, b0, c0, d0]);
                quarters([a1, b1, c1, d1]);
                // The diagonals: words of the second row move by one, of the third by two, of the fourth by three.
                (*b0, *b1) = ($across::<8>(*b1, *b0), $across::<8>(*b0, *b1));
                (*d0, *d1) = ($across::<8>(*d0, *d1), $across::<8>(*d1, *d0));
                quarters([a0, b0, c1, d0]);
                quarters([a1, b1, c0, d1]);
                (*b0, *b1) = ($across::<8>(*b0, *b1), $across::<8>(*b1, *b0));
                (*d0, *d1) = ($across::<8>(*d1, *d0), $across::<8>(*d0, *d1));
            }

            /// Makes a block from two others; mixes it with what was there before, or overwrites that.
            #[target_feature(enable = $features)]
            pub fn compress(previous: &Block, reference: &Block, target: &mut Block, mix: bool) {
                let mut words: [Vector; VECTORS] = std::array::from_fn(|i| $xor(load(previous, i), load(reference, i)));
                // The words to mix with the permuted ones wait in the target: registers are few.
                for (i, &word) in words.iter().enumerate() {
                    store(target, i, if mix { $xor(word, load(target, i)) } else { word });
                }
                for rows in words.chunks_exact_mut(2 * ROW) {
                    permute_rows(rows.try_into().expect("two rows"));
                }
                for first in 0..ROW {
                    let mut columns = words[first..].iter_mut().step_by(ROW);
                    let mut eight = || columns.next().expect("eight rows");
                    permute_columns([eight(), eight(), eight(), eight(), eight(), eight(), eight(), eight()]);
                }
                for (i, &word) in words.iter().enumerate() {
                    store(target, i, $xor(word, load(target, i)));
                }
            }
        }
    };
}

compressor! {
    avx512: __m512i = 8 words by "avx512f,avx512bw",
    load _mm512_load_si512, store _mm512_store_si512, xor _mm512_xor_si512, add _mm512_add_epi64, product _mm512_mul_epu32,
    rotate [_mm512_ror_epi64::<32>, _mm512_ror_epi64::<24>, _mm512_ror_epi64::<16>, _mm512_ror_epi64::<63>],
    across _mm512_alignr_epi8,
    rows
    /// P of two rows: the halves of each vector change places so that a vector has the same four words of both.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn permute_rows([first_ab, first_cd, second_ab, second_cd]: &mut [Vector; 4]) {
        let mut a = _mm512_shuffle_i64x2::<0x44>(*first_ab, *second_ab);
        let mut b = _mm512_shuffle_i64x2::<0xee>(*first_ab, *second_ab);
        let mut c = _mm512_shuffle_i64x2::<0x44>(*first_cd, *second_cd);
        let mut d = _mm512_shuffle_i64x2::<0xee>(*first_cd, *second_cd);
        quarters([&mut a, &mut b, &mut c, &mut d]);
        b = _mm512_permutex_epi64::<0x39>(b);
        c = _mm512_permutex_epi64::<0x4e>(c);
        d = _mm512_permutex_epi64::<0x93>(d);
        quarters([&mut a, &mut b, &mut c, &mut d]);
        b = _mm512_permutex_epi64::<0x93>(b);
        c = _mm512_permutex_epi64::<0x4e>(c);
        d = _mm512_permutex_epi64::<0x39>(d);
        *first_ab = _mm512_shuffle_i64x2::<0x44>(a, b);
        *second_ab = _mm512_shuffle_i64x2::<0xee>(a, b);
        *first_cd = _mm512_shuffle_i64x2::<0x44>(c, d);
        *second_cd = _mm512_shuffle_i64x2::<0xee>(c, d);
    }
}

compressor! {
    avx2: __m256i = 4 words by "avx2",
    load _mm256_load_si256, store _mm256_store_si256, xor _mm256_xor_si256, add _mm256_add_epi64, product _mm256_mul_epu32,
    rotate [_mm256_shuffle_epi32::<0xb1>, rotate_bytes::<3>, rotate_bytes::<2>, rotate_63],
    across _mm256_alignr_epi8,
    rows
    /// Right by whole bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn rotate_bytes<const BYTES: i64>(vector: Vector) -> Vector {
        let bytes: [i64; 2] = const { [word_from(BYTES), word_from(BYTES) + 0x0808_0808_0808_0808] };
        _mm256_shuffle_epi8(vector, _mm256_setr_epi64x(bytes[0], bytes[1], bytes[0], bytes[1]))
    }
    /// Which byte of a word each byte of it is taken from.
    const fn word_from(bytes: i64) -> i64 {
        0x0706_0504_0302_0100_u64.rotate_right(8 * bytes as u32) as i64
    }
    /// Right by 63 is left by one: the word added to itself, and the bit that it lost.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn rotate_63(vector: Vector) -> Vector {
        _mm256_xor_si256(_mm256_add_epi64(vector, vector), _mm256_srli_epi64::<63>(vector))
    }
    /// P of two rows, one after the other: a vector has four words of one.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn permute_rows(rows: &mut [Vector; 8]) {
        let [a0, b0, c0, d0, a1, b1, c1, d1] = rows;
        for [a, b, c, d] in [[a0, b0, c0, d0], [a1, b1, c1, d1]] {
            quarters([&mut *a, &mut *b, &mut *c, &mut *d]);
            *b = _mm256_permute4x64_epi64::<0x39>(*b);
            *c = _mm256_permute4x64_epi64::<0x4e>(*c);
            *d = _mm256_permute4x64_epi64::<0x93>(*d);
            quarters([&mut *a, &mut *b, &mut *c, &mut *d]);
            *b = _mm256_permute4x64_epi64::<0x93>(*b);
            *c = _mm256_permute4x64_epi64::<0x4e>(*c);
            *d = _mm256_permute4x64_epi64::<0x39>(*d);
        }
    }
}
