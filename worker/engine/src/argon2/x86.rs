//! The compression function by the vectors of x86-64 processors, written out: a loop over vectors would keep them on the stack.
//!
//! Rows of a block are sixteen words next to each other. Columns are pairs of words, of which a vector has two or four: as many columns are
//! permuted at a time, and nothing has to be moved before or after.

/// GB of quadruples of vectors, step by step of all of them: each waits for its own last step, and the others fill the time. A processor finds
/// only those that are near in the code.
macro_rules! quarters {
    ($([$a:ident $b:ident $c:ident $d:ident])+) => {
        $($a = sum($a, $b);)+
        $($d = turned_by_32(xor($d, $a));)+
        $($c = sum($c, $d);)+
        $($b = turned_by_24(xor($b, $c));)+
        $($a = sum($a, $b);)+
        $($d = turned_by_16(xor($d, $a));)+
        $($c = sum($c, $d);)+
        $($b = turned_by_63(xor($b, $c));)+
    };
}

/// P of the columns whose pairs are in these vectors.
macro_rules! columns {
    ($([$a0:ident $a1:ident $b0:ident $b1:ident $c0:ident $c1:ident $d0:ident $d1:ident])+) => {
        quarters!($([$a0 $b0 $c0 $d0] [$a1 $b1 $c1 $d1])+);
        // The diagonals: words of the second row move by one, of the third by two, of the fourth by three.
        $(($b0, $b1) = (across($b1, $b0), across($b0, $b1));)+
        $(($d0, $d1) = (across($d0, $d1), across($d1, $d0));)+
        quarters!($([$a0 $b0 $c1 $d0] [$a1 $b1 $c0 $d1])+);
        $(($b0, $b1) = (across($b0, $b1), across($b1, $b0));)+
        $(($d0, $d1) = (across($d1, $d0), across($d0, $d1));)+
    };
}

/// Defines what a module needs to know of its vectors.
macro_rules! vectors {
    (
        $vector:ty = $words:literal words by $features:literal,
        load $load:ident, store $store:ident, xor $xor:ident, add $add:ident, product $product:ident, across $across:ident
    ) => {
        use std::arch::x86_64::*;

        use crate::block::Block;

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

        #[inline]
        #[target_feature(enable = $features)]
        fn xor(a: Vector, b: Vector) -> Vector {
            $xor(a, b)
        }

        /// Addition with a product on top.
        #[inline]
        #[target_feature(enable = $features)]
        fn sum(a: Vector, b: Vector) -> Vector {
            let product = $product(a, b);
            $add($add(a, b), $add(product, product))
        }

        /// Of each pair of words in `low` the second, and then of the pair in `high` the first.
        #[inline]
        #[target_feature(enable = $features)]
        fn across(high: Vector, low: Vector) -> Vector {
            $across::<8>(high, low)
        }

        /// The input of the permutations.
        #[inline]
        #[target_feature(enable = $features)]
        fn input(previous: &Block, reference: &Block, i: usize) -> Vector {
            $xor(load(previous, i), load(reference, i))
        }

        /// Mixes a permuted vector with the input, which is computed again: registers are few, and both blocks are in the first-level cache.
        #[inline]
        #[target_feature(enable = $features)]
        fn finish<const MIX: bool>([previous, reference]: [&Block; 2], target: &mut Block, i: usize, permuted: Vector) {
            let made = $xor(permuted, input(previous, reference, i));
            store(target, i, if MIX { $xor(made, load(target, i)) } else { made });
        }

        /// Makes a block from two others; mixes it with what was there before, or overwrites that.
        #[target_feature(enable = $features)]
        pub fn compress(previous: &Block, reference: &Block, target: &mut Block, mix: bool) {
            if mix {
                compress_into::<true>(previous, reference, target);
            } else {
                compress_into::<false>(previous, reference, target);
            }
        }
    };
}

/// A block has sixteen vectors, which all have a register.
pub mod avx512 {
    vectors! {
        __m512i = 8 words by "avx512f,avx512bw",
        load _mm512_load_si512, store _mm512_store_si512, xor _mm512_xor_si512, add _mm512_add_epi64,
        product _mm512_mul_epu32, across _mm512_alignr_epi8
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn turned_by_32(vector: Vector) -> Vector {
        _mm512_ror_epi64::<32>(vector)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn turned_by_24(vector: Vector) -> Vector {
        _mm512_ror_epi64::<24>(vector)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn turned_by_16(vector: Vector) -> Vector {
        _mm512_ror_epi64::<16>(vector)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn turned_by_63(vector: Vector) -> Vector {
        _mm512_ror_epi64::<63>(vector)
    }

    /// P of pairs of rows: the halves of each vector change places so that a vector has the same four words of both.
    macro_rules! rows {
        ($([$a:ident $c:ident $b:ident $d:ident])+) => {
            $(($a, $b) = (_mm512_shuffle_i64x2::<0x44>($a, $b), _mm512_shuffle_i64x2::<0xee>($a, $b));)+
            $(($c, $d) = (_mm512_shuffle_i64x2::<0x44>($c, $d), _mm512_shuffle_i64x2::<0xee>($c, $d));)+
            quarters!($([$a $b $c $d])+);
            $($b = _mm512_permutex_epi64::<0x39>($b);)+
            $($c = _mm512_permutex_epi64::<0x4e>($c);)+
            $($d = _mm512_permutex_epi64::<0x93>($d);)+
            quarters!($([$a $b $c $d])+);
            $($b = _mm512_permutex_epi64::<0x93>($b);)+
            $($c = _mm512_permutex_epi64::<0x4e>($c);)+
            $($d = _mm512_permutex_epi64::<0x39>($d);)+
            $(($a, $b) = (_mm512_shuffle_i64x2::<0x44>($a, $b), _mm512_shuffle_i64x2::<0xee>($a, $b));)+
            $(($c, $d) = (_mm512_shuffle_i64x2::<0x44>($c, $d), _mm512_shuffle_i64x2::<0xee>($c, $d));)+
        };
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn compress_into<const MIX: bool>(previous: &Block, reference: &Block, target: &mut Block) {
        /// The same for each vector and its number.
        macro_rules! each {
            (begin $($i:literal $vector:ident),+) => {$(let mut $vector = input(previous, reference, $i);)+};
            (end $($i:literal $vector:ident),+) => {$(finish::<MIX>([previous, reference], target, $i, $vector);)+};
        }
        each!(begin 0 v0, 1 v1, 2 v2, 3 v3, 4 v4, 5 v5, 6 v6, 7 v7);
        each!(begin 8 v8, 9 v9, 10 v10, 11 v11, 12 v12, 13 v13, 14 v14, 15 v15);
        rows!([v0 v1 v2 v3] [v4 v5 v6 v7] [v8 v9 v10 v11] [v12 v13 v14 v15]);
        columns!([v0 v2 v4 v6 v8 v10 v12 v14] [v1 v3 v5 v7 v9 v11 v13 v15]);
        each!(end 0 v0, 1 v1, 2 v2, 3 v3, 4 v4, 5 v5, 6 v6, 7 v7);
        each!(end 8 v8, 9 v9, 10 v10, 11 v11, 12 v12, 13 v13, 14 v14, 15 v15);
    }
}

/// A block has 32 vectors, for which there are 16 registers: rows wait in memory for their columns.
pub mod avx2 {
    vectors! {
        __m256i = 4 words by "avx2",
        load _mm256_load_si256, store _mm256_store_si256, xor _mm256_xor_si256, add _mm256_add_epi64,
        product _mm256_mul_epu32, across _mm256_alignr_epi8
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn turned_by_32(vector: Vector) -> Vector {
        _mm256_shuffle_epi32::<0xb1>(vector)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn turned_by_24(vector: Vector) -> Vector {
        turned_by_bytes::<3>(vector)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn turned_by_16(vector: Vector) -> Vector {
        turned_by_bytes::<2>(vector)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn turned_by_bytes<const BYTES: i64>(vector: Vector) -> Vector {
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
    fn turned_by_63(vector: Vector) -> Vector {
        _mm256_xor_si256(_mm256_add_epi64(vector, vector), _mm256_srli_epi64::<63>(vector))
    }

    #[inline(never)]
    #[target_feature(enable = "avx2")]
    fn compress_into<const MIX: bool>(previous: &Block, reference: &Block, target: &mut Block) {
        let mut words = Block::ZERO;
        /// P of rows, of which a vector has four words.
        macro_rules! rows {
            ($([$first:literal $a:ident $b:ident $c:ident $d:ident])+) => {
                $(let mut $a = input(previous, reference, $first);)+
                $(let mut $b = input(previous, reference, $first + 1);)+
                $(let mut $c = input(previous, reference, $first + 2);)+
                $(let mut $d = input(previous, reference, $first + 3);)+
                quarters!($([$a $b $c $d])+);
                $($b = _mm256_permute4x64_epi64::<0x39>($b);)+
                $($c = _mm256_permute4x64_epi64::<0x4e>($c);)+
                $($d = _mm256_permute4x64_epi64::<0x93>($d);)+
                quarters!($([$a $b $c $d])+);
                $(store(&mut words, $first, $a);)+
                $(store(&mut words, $first + 1, _mm256_permute4x64_epi64::<0x93>($b));)+
                $(store(&mut words, $first + 2, _mm256_permute4x64_epi64::<0x4e>($c));)+
                $(store(&mut words, $first + 3, _mm256_permute4x64_epi64::<0x39>($d));)+
            };
        }
        macro_rules! column {
            ($($first:literal)+) => {$(column!($first: 0 a0, 4 a1, 8 b0, 12 b1, 16 c0, 20 c1, 24 d0, 28 d1);)+};
            ($first:literal: $($further:literal $vector:ident),+) => {
                $(let mut $vector = load(&words, $first + $further);)+
                columns!([$($vector)+]);
                $(finish::<MIX>([previous, reference], target, $first + $further, $vector);)+
            };
        }
        rows!([0 a0 b0 c0 d0] [4 a1 b1 c1 d1]);
        rows!([8 a0 b0 c0 d0] [12 a1 b1 c1 d1]);
        rows!([16 a0 b0 c0 d0] [20 a1 b1 c1 d1]);
        rows!([24 a0 b0 c0 d0] [28 a1 b1 c1 d1]);
        column!(0 1 2 3);
    }
}
