//! scryptROMix by the vectors of x86-64 processors: each part of 128 bits belongs to a lane.
//!
//! A line is the 64 bytes that Salsa20/8 works on, as a square of words. Its diagonals are kept in vectors, as D. J. Bernstein
//! proposed for Salsa20: a row of quarter rounds is then one of vectors, and turning three of them makes columns of rows.

use std::arch::x86_64::*;

use crate::block::Block;

/// A diagonal.
const ROW_WORDS: usize = 4;
/// A line, and the rows of it.
const LINE_BYTES: usize = 64;
const ROWS: usize = 4;
const LINES_OF_BLOCK: usize = size_of::<Block>() / LINE_BYTES;

/// Where the words of the diagonals stand in a line.
const DIAGONALS: [[usize; ROW_WORDS]; ROWS] = [[0, 5, 10, 15], [4, 9, 14, 3], [8, 13, 2, 7], [12, 1, 6, 11]];

/// The words of a row of a line.
#[inline(always)]
fn row_at(line: usize, row: usize) -> (usize, usize) {
    (line / LINES_OF_BLOCK, (line % LINES_OF_BLOCK) * 8 + row * 2)
}

#[inline]
#[target_feature(enable = "sse2")]
fn load(memory: &[Block], line: usize, row: usize) -> __m128i {
    let (block, at) = row_at(line, row);
    let words: &[u64; 2] = memory[block].0[at..][..2].try_into().expect("a whole row");
    // SAFETY: the words are as many bytes as a vector, and aligned to it, as a block is aligned to 64 bytes.
    unsafe { _mm_load_si128(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn store(memory: &mut [Block], line: usize, row: usize, vector: __m128i) {
    let (block, at) = row_at(line, row);
    let words: &mut [u64; 2] = (&mut memory[block].0[at..][..2]).try_into().expect("a whole row");
    // SAFETY: as above, and they are borrowed for writing.
    unsafe { _mm_store_si128(words.as_mut_ptr().cast(), vector) };
}

/// Has the line brought to the first-level cache while something else is done.
#[inline(always)]
fn prefetch(memory: &[Block], line: usize) {
    let (block, at) = row_at(line, 0);
    // SAFETY: every x86-64 processor has this instruction, and the word is borrowed.
    unsafe { _mm_prefetch::<_MM_HINT_T0>((&raw const memory[block].0[at]).cast()) };
}

/// A diagonal of a line of a lane.
#[inline]
#[target_feature(enable = "sse2")]
fn read(bytes: &[u8], line: usize, row: usize) -> __m128i {
    let [a, b, c, d] = DIAGONALS[row].map(|word| {
        let at = line * LINE_BYTES + 4 * word;
        i32::from_le_bytes(bytes[at..][..4].try_into().expect("four bytes"))
    });
    _mm_setr_epi32(a, b, c, d)
}

#[inline]
#[target_feature(enable = "sse2")]
fn write(bytes: &mut [u8], line: usize, row: usize, vector: __m128i) {
    for (word, value) in DIAGONALS[row].into_iter().zip(words(vector)) {
        bytes[line * LINE_BYTES + 4 * word..][..4].copy_from_slice(&value.to_le_bytes());
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn words(vector: __m128i) -> [u32; ROW_WORDS] {
    let [low, high] = [_mm_cvtsi128_si64(vector), _mm_cvtsi128_si64(_mm_unpackhi_epi64(vector, vector))];
    [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
}

/// Lines of lanes in memory, row by row.
macro_rules! lines_by_rows {
    ($features:literal, $lanes:literal) => {
        #[inline]
        #[target_feature(enable = $features)]
        fn load_line(memories: &[&mut [Block]; $lanes], chosen: [usize; $lanes], line: usize) -> [Vector; ROWS] {
            std::array::from_fn(|row| join(std::array::from_fn(|lane| load(memories[lane], chosen[lane] + line, row))))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn store_line(memories: &mut [&mut [Block]; $lanes], line: usize, rows: [Vector; ROWS]) {
            for (row, vector) in rows.into_iter().enumerate() {
                for (memory, part) in memories.iter_mut().zip(split(vector)) {
                    store(memory, line, row, part);
                }
            }
        }
    };
}

/// Defines `mix` in a module of its own, for vectors that are joined from rows, split, and worked on by what is named.
macro_rules! vectors {
    (
        $name:ident: $vector:ty = $lanes:literal lanes by $features:literal,
        xor $xor:ident, add $add:ident, turn $turn:ident,
        $($conversion:item)+
    ) => {
        pub mod $name {
            use zeroize::Zeroizing;

            use super::super::{Lane, Params};
            use super::*;

            type Vector = $vector;

            /// The same line of all lanes, in `GROUPS` vectors for each row.
            type Lines<const GROUPS: usize> = [[Vector; ROWS]; GROUPS];

            $($conversion)+

            /// Adds, turns and mixes: a step of Salsa20.
            #[inline]
            #[target_feature(enable = $features)]
            fn step<const LEFT: i32, const RIGHT: i32>(target: &mut Vector, a: Vector, b: Vector) {
                *target = $xor(*target, rotate::<LEFT, RIGHT>($add(a, b)));
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn salsa<const GROUPS: usize>(lines: &mut Lines<GROUPS>) {
                let before = *lines;
                for _ in 0..4 {
                    for [a, b, c, d] in lines.iter_mut() {
                        step::<7, 25>(b, *a, *d);
                        step::<9, 23>(c, *b, *a);
                        step::<13, 19>(d, *c, *b);
                        step::<18, 14>(a, *d, *c);
                        (*b, *c, *d) = ($turn::<0x93>(*b), $turn::<0x4e>(*c), $turn::<0x39>(*d));
                    }
                    for [a, b, c, d] in lines.iter_mut() {
                        step::<7, 25>(d, *a, *b);
                        step::<9, 23>(c, *d, *a);
                        step::<13, 19>(b, *c, *d);
                        step::<18, 14>(a, *b, *c);
                        (*b, *c, *d) = ($turn::<0x39>(*b), $turn::<0x4e>(*c), $turn::<0x93>(*d));
                    }
                }
                for (rows, before) in lines.iter_mut().zip(before) {
                    for (row, before) in rows.iter_mut().zip(before) {
                        *row = $add(*row, before);
                    }
                }
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn xor<const GROUPS: usize>(mut lines: Lines<GROUPS>, others: &Lines<GROUPS>) -> Lines<GROUPS> {
                for (row, other) in lines.as_flattened_mut().iter_mut().zip(others.as_flattened()) {
                    *row = $xor(*row, *other);
                }
                lines
            }

            /// scryptBlockMix (section 4): from one to the other. What is done with memory is done line by line, in the time that Salsa20
            /// waits for its own results.
            #[inline]
            #[target_feature(enable = $features)]
            fn block_mix<const GROUPS: usize>(
                from: &[Lines<GROUPS>],
                to: &mut [Lines<GROUPS>],
                last: Lines<GROUPS>,
                mut taken: impl FnMut(usize, Lines<GROUPS>) -> Lines<GROUPS>,
            ) {
                let mut mixed = last;
                for (i, lines) in from.iter().enumerate() {
                    mixed = xor(mixed, &taken(i, *lines));
                    salsa(&mut mixed);
                    to[i / 2 + (i % 2) * (from.len() / 2)] = mixed;
                }
            }

            /// scryptROMix (section 5) of all lanes. Where they are fewer than there is room for, the last one is there several times.
            #[target_feature(enable = $features)]
            pub fn mix<const GROUPS: usize>(params: &Params, memory: &mut [Block], lanes: &mut [Lane]) {
                let count = params.lane_bytes() / LINE_BYTES;
                let n = 1_usize << params.log_n;
                let mut parts = memory.chunks_exact_mut(params.memory_blocks());
                let mut memories: [[&mut [Block]; $lanes]; GROUPS] =
                    std::array::from_fn(|_| std::array::from_fn(|_| parts.next().expect("memory for each")));
                let first = |line: usize| -> Lines<GROUPS> {
                    std::array::from_fn(|group| {
                        std::array::from_fn(|row| {
                            let lane = |part: usize| (group * $lanes + part).min(lanes.len() - 1);
                            join(std::array::from_fn(|part| read(&lanes[lane(part)], line, row)))
                        })
                    })
                };
                let mut from: Zeroizing<Vec<Lines<GROUPS>>> = Zeroizing::new((0..count).map(first).collect());
                let mut to = from.clone();
                for i in 0..n {
                    block_mix(&from, &mut to, from[count - 1], |line, lines| {
                        for (memories, rows) in memories.iter_mut().zip(lines) {
                            store_line(memories, i * count + line, rows);
                        }
                        lines
                    });
                    std::mem::swap(&mut from, &mut to);
                }
                for _ in 0..n {
                    // Which of them is read, the first word of the last line says; N is a power of two of less than 32 bits.
                    let chosen: [[usize; $lanes]; GROUPS] =
                        from[count - 1].map(|rows| split(rows[0]).map(|row| (words(row)[0] as usize % n) * count));
                    for line in std::iter::once(count - 1).chain(0..count - 1) {
                        for (memories, chosen) in memories.iter().zip(&chosen) {
                            for (memory, chosen) in memories.iter().zip(chosen) {
                                prefetch(memory, chosen + line);
                            }
                        }
                    }
                    let taken = |line: usize, lines: Lines<GROUPS>| {
                        let other = std::array::from_fn(|group| load_line(&memories[group], chosen[group], line));
                        xor(lines, &other)
                    };
                    block_mix(&from, &mut to, taken(count - 1, from[count - 1]), taken);
                    std::mem::swap(&mut from, &mut to);
                }
                for (line, lines) in from.iter().enumerate() {
                    for (group, rows) in lines.iter().enumerate() {
                        for (row, vector) in rows.iter().enumerate() {
                            for (lane, part) in lanes.iter_mut().skip(group * $lanes).zip(split(*vector)) {
                                write(lane, line, row, part);
                            }
                        }
                    }
                }
            }
        }
    };
}

vectors! {
    sse2: __m128i = 1 lanes by "sse2",
    xor _mm_xor_si128, add _mm_add_epi32, turn _mm_shuffle_epi32,
    #[inline(always)]
    fn join([part]: [__m128i; 1]) -> Vector {
        part
    }
    #[inline(always)]
    fn split(vector: Vector) -> [__m128i; 1] {
        [vector]
    }
    #[inline]
    #[target_feature(enable = "sse2")]
    fn rotate<const LEFT: i32, const RIGHT: i32>(words: Vector) -> Vector {
        _mm_or_si128(_mm_slli_epi32::<LEFT>(words), _mm_srli_epi32::<RIGHT>(words))
    }
    lines_by_rows!("sse2", 1);
}

vectors! {
    avx2: __m256i = 2 lanes by "avx2",
    xor _mm256_xor_si256, add _mm256_add_epi32, turn _mm256_shuffle_epi32,
    #[inline]
    #[target_feature(enable = "avx2")]
    fn join([low, high]: [__m128i; 2]) -> Vector {
        _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
    }
    #[inline]
    #[target_feature(enable = "avx2")]
    fn split(vector: Vector) -> [__m128i; 2] {
        [_mm256_castsi256_si128(vector), _mm256_extracti128_si256::<1>(vector)]
    }
    #[inline]
    #[target_feature(enable = "avx2")]
    fn rotate<const LEFT: i32, const RIGHT: i32>(words: Vector) -> Vector {
        _mm256_or_si256(_mm256_slli_epi32::<LEFT>(words), _mm256_srli_epi32::<RIGHT>(words))
    }
    lines_by_rows!("avx2", 2);
}

vectors! {
    avx512_quarter: __m128i = 1 lanes by "avx512f,avx512vl",
    xor _mm_xor_si128, add _mm_add_epi32, turn _mm_shuffle_epi32,
    #[inline(always)]
    fn join([part]: [__m128i; 1]) -> Vector {
        part
    }
    #[inline(always)]
    fn split(vector: Vector) -> [__m128i; 1] {
        [vector]
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn rotate<const LEFT: i32, const RIGHT: i32>(words: Vector) -> Vector {
        _mm_rol_epi32::<LEFT>(words)
    }
    lines_by_rows!("avx512f,avx512vl", 1);
}

vectors! {
    avx512_half: __m256i = 2 lanes by "avx512f,avx512vl",
    xor _mm256_xor_si256, add _mm256_add_epi32, turn _mm256_shuffle_epi32,
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn join([low, high]: [__m128i; 2]) -> Vector {
        _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn split(vector: Vector) -> [__m128i; 2] {
        [_mm256_castsi256_si128(vector), _mm256_extracti128_si256::<1>(vector)]
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn rotate<const LEFT: i32, const RIGHT: i32>(words: Vector) -> Vector {
        _mm256_rol_epi32::<LEFT>(words)
    }
    lines_by_rows!("avx512f,avx512vl", 2);
}

vectors! {
    avx512: __m512i = 4 lanes by "avx512f,avx512vl",
    xor _mm512_xor_si512, add _mm512_add_epi32, turn _mm512_shuffle_epi32,
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn join([a, b, c, d]: [__m128i; 4]) -> Vector {
        let [low, high] = [[a, b], [c, d]].map(|[a, b]| _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b));
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn split(vector: Vector) -> [__m128i; 4] {
        [
            _mm512_castsi512_si128(vector),
            _mm512_extracti32x4_epi32::<1>(vector),
            _mm512_extracti32x4_epi32::<2>(vector),
            _mm512_extracti32x4_epi32::<3>(vector),
        ]
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn rotate<const LEFT: i32, const RIGHT: i32>(words: Vector) -> Vector {
        _mm512_rol_epi32::<LEFT>(words)
    }
    /// Of four lines the four rows, and of four rows the lines.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn transposed([a, b, c, d]: [Vector; 4]) -> [Vector; 4] {
        let [first, second] = [[a, b], [c, d]].map(|[a, b]| [_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xdd>(a, b)]);
        [
            _mm512_shuffle_i64x2::<0x88>(first[0], second[0]),
            _mm512_shuffle_i64x2::<0x88>(first[1], second[1]),
            _mm512_shuffle_i64x2::<0xdd>(first[0], second[0]),
            _mm512_shuffle_i64x2::<0xdd>(first[1], second[1]),
        ]
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn load_line(memories: &[&mut [Block]; 4], chosen: [usize; 4], line: usize) -> [Vector; ROWS] {
        transposed(std::array::from_fn(|lane| {
            let (block, at) = row_at(chosen[lane] + line, 0);
            let words: &[u64; 8] = memories[lane][block].0[at..][..8].try_into().expect("a whole line");
            // SAFETY: the words are as many bytes as a vector, and aligned to it, as a block is aligned to 64 bytes.
            unsafe { _mm512_load_si512(words.as_ptr().cast()) }
        }))
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn store_line(memories: &mut [&mut [Block]; 4], line: usize, rows: [Vector; ROWS]) {
        let (block, at) = row_at(line, 0);
        for (memory, vector) in memories.iter_mut().zip(transposed(rows)) {
            let words: &mut [u64; 8] = (&mut memory[block].0[at..][..8]).try_into().expect("a whole line");
            // SAFETY: as above, and they are borrowed for writing.
            unsafe { _mm512_store_si512(words.as_mut_ptr().cast(), vector) };
        }
    }
}
