//! The compression function for vectors of x86-64. Loops are written out: the compiler would keep
//! vectors on the stack.
//!
//! A row is sixteen adjacent words. A column consists of pairs of words, of which a vector holds
//! two or four: as many columns are permuted together, and no word is moved before or after.

/// GB of quadruples of vectors, each step of all of them in turn: a step waits for the one before,
/// and a processor finds other work only near in the code. The block runs after each pair of steps.
macro_rules! quarters {
    ($between:block $([$a:ident $b:ident $c:ident $d:ident])+) => {
        $($a = sum($a, $b);)+
        $($d = turned_by_32(xor($d, $a));)+
        $between
        $($c = sum($c, $d);)+
        $($b = turned_by_24(xor($b, $c));)+
        $between
        $($a = sum($a, $b);)+
        $($d = turned_by_16(xor($d, $a));)+
        $between
        $($c = sum($c, $d);)+
        $($b = turned_by_63(xor($b, $c));)+
        $between
    };
}

/// P of the columns whose pairs are in these vectors.
macro_rules! columns {
    ($([$a0:ident $a1:ident $b0:ident $b1:ident $c0:ident $c1:ident $d0:ident $d1:ident])+) => {
        quarters!({} $([$a0 $b0 $c0 $d0] [$a1 $b1 $c1 $d1])+);
        // The diagonals: the second row moves by one word, the third by two, the fourth by three.
        $(($b0, $b1) = (across($b1, $b0), across($b0, $b1));)+
        $(($d0, $d1) = (across($d0, $d1), across($d1, $d0));)+
        quarters!({} $([$a0 $b0 $c1 $d0] [$a1 $b1 $c0 $d1])+);
        $(($b0, $b1) = (across($b0, $b1), across($b1, $b0));)+
        $(($d0, $d1) = (across($d1, $d0), across($d0, $d1));)+
    };
}

/// Defines a module except for its permutations, from the operations on its vectors.
macro_rules! vectors {
    ($vector:ty, #$attribute:tt $($operations:tt)+) => {
        use std::arch::x86_64::*;

        use super::super::compress::Ahead;
        use crate::block::Block;

        type Vector = $vector;

        functions! {
            #$attribute
            $($operations)+
            /// Addition with a product on top.
            sum(a, b) = {
                let product = product(a, b);
                add(add(a, b), add(product, product))
            };
        }

        /// The input of the permutations.
        #[inline]
        #$attribute
        fn input(previous: &Block, reference: &Block, i: usize) -> Vector {
            xor(previous.vector(i), reference.vector(i))
        }

        /// Mixes a permuted vector with the input. Computing the input again takes no registers,
        /// and both blocks are in the first-level cache.
        #[inline]
        #$attribute
        fn finish<const MIX: bool>([previous, reference]: [&Block; 2], target: &mut Block, i: usize, permuted: Vector) {
            let made = xor(permuted, input(previous, reference, i));
            target.set_vector(i, if MIX { xor(made, target.vector(i)) } else { made });
        }
    };
}

/// A block has sixteen vectors, which all have a register.
pub mod avx512 {
    vectors! {
        __m512i, #[target_feature(enable = "avx512f,avx512bw")]
        xor(a, b) = _mm512_xor_si512(a, b);
        add(a, b) = _mm512_add_epi64(a, b);
        product(a, b) = _mm512_mul_epu32(a, b);
        /// Of each pair of words in `low` the second, and then of the pair in `high` the first.
        across(high, low) = _mm512_alignr_epi8::<8>(high, low);
        turned_by_32(words) = _mm512_ror_epi64::<32>(words);
        turned_by_24(words) = _mm512_ror_epi64::<24>(words);
        turned_by_16(words) = _mm512_ror_epi64::<16>(words);
        turned_by_63(words) = _mm512_ror_epi64::<63>(words);
    }

    /// P of pairs of rows. Halves of vectors change places, so that a vector has the same four
    /// words of both.
    macro_rules! rows {
        ($between:block $([$a:ident $c:ident $b:ident $d:ident])+) => {
            $(($a, $b) = (_mm512_shuffle_i64x2::<0x44>($a, $b), _mm512_shuffle_i64x2::<0xee>($a, $b));)+
            $(($c, $d) = (_mm512_shuffle_i64x2::<0x44>($c, $d), _mm512_shuffle_i64x2::<0xee>($c, $d));)+
            quarters!($between $([$a $b $c $d])+);
            $($b = _mm512_permutex_epi64::<0x39>($b);)+
            $($c = _mm512_permutex_epi64::<0x4e>($c);)+
            $($d = _mm512_permutex_epi64::<0x93>($d);)+
            quarters!($between $([$a $b $c $d])+);
            $($b = _mm512_permutex_epi64::<0x93>($b);)+
            $($c = _mm512_permutex_epi64::<0x4e>($c);)+
            $($d = _mm512_permutex_epi64::<0x39>($d);)+
            $(($a, $b) = (_mm512_shuffle_i64x2::<0x44>($a, $b), _mm512_shuffle_i64x2::<0xee>($a, $b));)+
            $(($c, $d) = (_mm512_shuffle_i64x2::<0x44>($c, $d), _mm512_shuffle_i64x2::<0xee>($c, $d));)+
        };
    }

    /// Prefetches the next two lines of the reference ahead, and of its target that is mixed into. The
    /// vector passes through, or the compiler would gather all prefetches at one place.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn prefetch<const MIX: bool>(ahead: &mut Ahead, vector: &mut Vector) {
        for block in &mut ahead[..1 + usize::from(MIX)] {
            // Not under Miri, which knows no assembler.
            if !cfg!(miri) {
                // SAFETY: prefetches change nothing and fault at no address, and the vector stays as it is.
                unsafe {
                    std::arch::asm!(
                        "prefetcht1 [{block}]",
                        "prefetcht1 [{block} + 64]",
                        "/* {vector} */",
                        block = in(reg) *block,
                        vector = inout(zmm_reg) *vector,
                        options(readonly, nostack, preserves_flags),
                    );
                }
            }
            *block = block.wrapping_byte_add(128);
        }
    }

    /// Makes a block from two others; mixes it with its old contents, or overwrites them. With `SPREAD`
    /// it prefetches what is ahead.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn compress<const MIX: bool, const SPREAD: bool>(
        previous: &Block,
        reference: &Block,
        target: &mut Block,
        mut ahead: Ahead,
    ) {
        /// The same for each vector and its number.
        macro_rules! each {
            (begin $($i:literal $vector:ident),+) => {$(let mut $vector = input(previous, reference, $i);)+};
            (end $($i:literal $vector:ident),+) => {$(finish::<MIX>([previous, reference], target, $i, $vector);)+};
        }
        each!(begin 0 v0, 1 v1, 2 v2, 3 v3, 4 v4, 5 v5, 6 v6, 7 v7);
        each!(begin 8 v8, 9 v9, 10 v10, 11 v11, 12 v12, 13 v13, 14 v14, 15 v15);
        rows!({
            if SPREAD {
                prefetch::<MIX>(&mut ahead, &mut v15);
            }
        } [v0 v1 v2 v3] [v4 v5 v6 v7] [v8 v9 v10 v11] [v12 v13 v14 v15]);
        columns!([v0 v2 v4 v6 v8 v10 v12 v14] [v1 v3 v5 v7 v9 v11 v13 v15]);
        each!(end 0 v0, 1 v1, 2 v2, 3 v3, 4 v4, 5 v5, 6 v6, 7 v7);
        each!(end 8 v8, 9 v9, 10 v10, 11 v11, 12 v12, 13 v13, 14 v14, 15 v15);
    }
}

/// A block has 32 vectors, for which there are 16 registers: rows wait in memory for their columns.
pub mod avx2 {
    vectors! {
        __m256i, #[target_feature(enable = "avx2")]
        xor(a, b) = _mm256_xor_si256(a, b);
        add(a, b) = _mm256_add_epi64(a, b);
        product(a, b) = _mm256_mul_epu32(a, b);
        /// Of each pair of words in `low` the second, and then of the pair in `high` the first.
        across(high, low) = _mm256_alignr_epi8::<8>(high, low);
        turned_by_32(words) = _mm256_shuffle_epi32::<0xb1>(words);
        turned_by_24(words) = turned_by_bytes::<3>(words);
        turned_by_16(words) = turned_by_bytes::<2>(words);
        /// Right by 63 is left by one: the word added to itself, and the bit that it lost.
        turned_by_63(words) = xor(add(words, words), _mm256_srli_epi64::<63>(words));
        turned_by_bytes<BYTES>(words) = {
            let bytes: [i64; 2] = const { [word_from(BYTES), word_from(BYTES) + 0x0808_0808_0808_0808] };
            _mm256_shuffle_epi8(words, _mm256_setr_epi64x(bytes[0], bytes[1], bytes[0], bytes[1]))
        };
    }

    /// Which byte of a word each byte of it is taken from.
    const fn word_from(bytes: i32) -> i64 {
        0x0706_0504_0302_0100_u64.rotate_right(8 * bytes as u32) as i64
    }

    /// Makes a block from two others; mixes it with its old contents, or overwrites them.
    #[target_feature(enable = "avx2")]
    pub fn compress<const MIX: bool>(previous: &Block, reference: &Block, target: &mut Block, _: Ahead) {
        let mut words = Block::ZERO;
        /// P of rows, of which a vector has four words.
        macro_rules! rows {
            ($([$first:literal $a:ident $b:ident $c:ident $d:ident])+) => {
                $(let mut $a = input(previous, reference, $first);)+
                $(let mut $b = input(previous, reference, $first + 1);)+
                $(let mut $c = input(previous, reference, $first + 2);)+
                $(let mut $d = input(previous, reference, $first + 3);)+
                quarters!({} $([$a $b $c $d])+);
                $($b = _mm256_permute4x64_epi64::<0x39>($b);)+
                $($c = _mm256_permute4x64_epi64::<0x4e>($c);)+
                $($d = _mm256_permute4x64_epi64::<0x93>($d);)+
                quarters!({} $([$a $b $c $d])+);
                $(words.set_vector($first, $a);)+
                $(words.set_vector($first + 1, _mm256_permute4x64_epi64::<0x93>($b));)+
                $(words.set_vector($first + 2, _mm256_permute4x64_epi64::<0x4e>($c));)+
                $(words.set_vector($first + 3, _mm256_permute4x64_epi64::<0x39>($d));)+
            };
        }
        macro_rules! column {
            ($($first:literal)+) => {$(column!($first: 0 a0, 4 a1, 8 b0, 12 b1, 16 c0, 20 c1, 24 d0, 28 d1);)+};
            ($first:literal: $($further:literal $vector:ident),+) => {
                $(let mut $vector: Vector = words.vector($first + $further);)+
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
