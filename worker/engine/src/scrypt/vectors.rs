//! scryptROMix by the vectors of x86-64 processors: each part of 128 bits belongs to a lane.
//!
//! A line is a block of Salsa20/8: 64 bytes, as a square of words. Vectors hold its diagonals, as
//! D. J. Bernstein proposed for Salsa20: four quarter rounds are then one of vectors, and turning
//! three vectors makes columns of rows.

use std::arch::x86_64::*;

use crate::block::{Block, prefetch_line, words};

/// A diagonal.
const ROW_WORDS: usize = 4;
/// A line and its rows.
const LINE_BYTES: usize = 64;
const ROWS: usize = 4;
const LINES_OF_BLOCK: usize = size_of::<Block>() / LINE_BYTES;

/// Where the words of the diagonals stand in a line.
const DIAGONALS: [[usize; ROW_WORDS]; ROWS] = [[0, 5, 10, 15], [4, 9, 14, 3], [8, 13, 2, 7], [12, 1, 6, 11]];

/// The block of a line, and which line of the block it is.
#[inline(always)]
fn at(line: usize) -> (usize, usize) {
    (line / LINES_OF_BLOCK, line % LINES_OF_BLOCK)
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

#[inline(always)]
fn join_one([part]: [__m128i; 1]) -> __m128i {
    part
}

#[inline(always)]
fn split_one(vector: __m128i) -> [__m128i; 1] {
    [vector]
}

#[inline]
#[target_feature(enable = "avx2")]
fn join_two([low, high]: [__m128i; 2]) -> __m256i {
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
}

#[inline]
#[target_feature(enable = "avx2")]
fn split_two(vector: __m256i) -> [__m128i; 2] {
    [_mm256_castsi256_si128(vector), _mm256_extracti128_si256::<1>(vector)]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn join_four([a, b, c, d]: [__m128i; 4]) -> __m512i {
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(join_two([a, b])), join_two([c, d]))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn split_four(vector: __m512i) -> [__m128i; 4] {
    [
        _mm512_castsi512_si128(vector),
        _mm512_extracti32x4_epi32::<1>(vector),
        _mm512_extracti32x4_epi32::<2>(vector),
        _mm512_extracti32x4_epi32::<3>(vector),
    ]
}

/// Lines of lanes in memory, for vectors of one and two lanes row by row.
macro_rules! lines {
    (by_rows, $lanes:literal, #$attribute:tt $join:ident $split:ident) => {
        #[inline]
        #$attribute
        fn load_line(memories: &[&mut [Block]; $lanes], chosen: [usize; $lanes], line: usize) -> [Vector; ROWS] {
            std::array::from_fn(|row| {
                $join(std::array::from_fn(|lane| {
                    let (block, line) = at(chosen[lane] + line);
                    memories[lane][block].vector(ROWS * line + row)
                }))
            })
        }

        #[inline]
        #$attribute
        fn store_line(memories: &mut [&mut [Block]; $lanes], line: usize, rows: [Vector; ROWS]) {
            let (block, line) = at(line);
            for (row, vector) in rows.into_iter().enumerate() {
                for (memory, part) in memories.iter_mut().zip($split(vector)) {
                    memory[block].set_vector(ROWS * line + row, part);
                }
            }
        }
    };
    // A vector of four lanes is as large as a line of one: four lines make four rows.
    (transposed, $lanes:literal, #$attribute:tt $join:ident $split:ident) => {
        /// Of four lines the four rows, and of four rows the lines.
        #[inline]
        #$attribute
        fn transposed([a, b, c, d]: [Vector; 4]) -> [Vector; 4] {
            let [first, second] =
                [[a, b], [c, d]].map(|[a, b]| [_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xdd>(a, b)]);
            [
                _mm512_shuffle_i64x2::<0x88>(first[0], second[0]),
                _mm512_shuffle_i64x2::<0x88>(first[1], second[1]),
                _mm512_shuffle_i64x2::<0xdd>(first[0], second[0]),
                _mm512_shuffle_i64x2::<0xdd>(first[1], second[1]),
            ]
        }

        #[inline]
        #$attribute
        fn load_line(memories: &[&mut [Block]; 4], chosen: [usize; 4], line: usize) -> [Vector; ROWS] {
            transposed(std::array::from_fn(|lane| {
                let (block, line) = at(chosen[lane] + line);
                memories[lane][block].vector(line)
            }))
        }

        #[inline]
        #$attribute
        fn store_line(memories: &mut [&mut [Block]; 4], line: usize, rows: [Vector; ROWS]) {
            let (block, line) = at(line);
            for (memory, vector) in memories.iter_mut().zip(transposed(rows)) {
                memory[block].set_vector(line, vector);
            }
        }
    };
}

/// Defines a module with `mix`, from the operations on its vectors.
macro_rules! vectors {
    (
        $name:ident: $vector:ty = $lanes:literal lanes, #$attribute:tt
        join $join:ident, split $split:ident, lines $lines:ident, $($operations:tt)+
    ) => {
        pub mod $name {
            use zeroize::Zeroizing;

            use super::super::{Lane, Params};
            use super::*;

            type Vector = $vector;

            /// The same line of all lanes, in `GROUPS` vectors for each row.
            type Lines<const GROUPS: usize> = [[Vector; ROWS]; GROUPS];

            lines! { $lines, $lanes, #$attribute $join $split }

            functions! {
                #$attribute
                $($operations)+
                /// Adds, turns and mixes: a step of Salsa20.
                step<LEFT, RIGHT>(row, a, b) = xor(row, rotate::<LEFT, RIGHT>(add(a, b)));
            }

            #[inline]
            #$attribute
            fn salsa<const GROUPS: usize>(lines: &mut Lines<GROUPS>) {
                let before = *lines;
                for _ in 0..4 {
                    for [a, b, c, d] in lines.iter_mut() {
                        *b = step::<7, 25>(*b, *a, *d);
                        *c = step::<9, 23>(*c, *b, *a);
                        *d = step::<13, 19>(*d, *c, *b);
                        *a = step::<18, 14>(*a, *d, *c);
                        (*b, *c, *d) = (turn::<0x93>(*b), turn::<0x4e>(*c), turn::<0x39>(*d));
                    }
                    for [a, b, c, d] in lines.iter_mut() {
                        *d = step::<7, 25>(*d, *a, *b);
                        *c = step::<9, 23>(*c, *d, *a);
                        *b = step::<13, 19>(*b, *c, *d);
                        *a = step::<18, 14>(*a, *b, *c);
                        (*b, *c, *d) = (turn::<0x39>(*b), turn::<0x4e>(*c), turn::<0x93>(*d));
                    }
                }
                for (rows, before) in lines.iter_mut().zip(before) {
                    for (row, before) in rows.iter_mut().zip(before) {
                        *row = add(*row, before);
                    }
                }
            }

            #[inline]
            #$attribute
            fn xor_lines<const GROUPS: usize>(mut lines: Lines<GROUPS>, others: &Lines<GROUPS>) -> Lines<GROUPS> {
                for (row, other) in lines.as_flattened_mut().iter_mut().zip(others.as_flattened()) {
                    *row = xor(*row, *other);
                }
                lines
            }

            /// scryptBlockMix (section 4). Memory is accessed line by line, while Salsa20 waits for
            /// its own results.
            #[inline]
            #$attribute
            fn block_mix<const GROUPS: usize>(
                from: &[Lines<GROUPS>],
                to: &mut [Lines<GROUPS>],
                last: Lines<GROUPS>,
                mut taken: impl FnMut(usize, Lines<GROUPS>) -> Lines<GROUPS>,
            ) {
                let mut mixed = last;
                for (i, lines) in from.iter().enumerate() {
                    mixed = xor_lines(mixed, &taken(i, *lines));
                    salsa(&mut mixed);
                    to[i / 2 + (i % 2) * (from.len() / 2)] = mixed;
                }
            }

            /// scryptROMix (section 5) of all lanes. The last lane is repeated where lanes are
            /// fewer.
            #$attribute
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
                            $join(std::array::from_fn(|part| read(&lanes[lane(part)], line, row)))
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
                    // Integerify: the first word of the last line is enough, as N is below 2^32.
                    let chosen: [[usize; $lanes]; GROUPS] =
                        from[count - 1].map(|rows| $split(rows[0]).map(|row| (words(row)[0] as usize % n) * count));
                    for line in std::iter::once(count - 1).chain(0..count - 1) {
                        for (memories, chosen) in memories.iter().zip(&chosen) {
                            for (memory, chosen) in memories.iter().zip(chosen) {
                                let (block, line) = at(chosen + line);
                                prefetch_line::<true>(&memory[block].0[8 * line..]);
                            }
                        }
                    }
                    let taken = |line: usize, lines: Lines<GROUPS>| {
                        let other = std::array::from_fn(|group| load_line(&memories[group], chosen[group], line));
                        xor_lines(lines, &other)
                    };
                    block_mix(&from, &mut to, taken(count - 1, from[count - 1]), taken);
                    std::mem::swap(&mut from, &mut to);
                }
                for (line, lines) in from.iter().enumerate() {
                    for (group, rows) in lines.iter().enumerate() {
                        for (row, vector) in rows.iter().enumerate() {
                            for (lane, part) in lanes.iter_mut().skip(group * $lanes).zip($split(*vector)) {
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
    sse2: __m128i = 1 lanes, #[target_feature(enable = "sse2")] join join_one, split split_one, lines by_rows,
    xor(a, b) = _mm_xor_si128(a, b);
    add(a, b) = _mm_add_epi32(a, b);
    turn<BY>(row) = _mm_shuffle_epi32::<BY>(row);
    rotate<LEFT, RIGHT>(row) = _mm_or_si128(_mm_slli_epi32::<LEFT>(row), _mm_srli_epi32::<RIGHT>(row));
}

vectors! {
    avx2: __m256i = 2 lanes, #[target_feature(enable = "avx2")] join join_two, split split_two, lines by_rows,
    xor(a, b) = _mm256_xor_si256(a, b);
    add(a, b) = _mm256_add_epi32(a, b);
    turn<BY>(row) = _mm256_shuffle_epi32::<BY>(row);
    rotate<LEFT, RIGHT>(row) = _mm256_or_si256(_mm256_slli_epi32::<LEFT>(row), _mm256_srli_epi32::<RIGHT>(row));
}

vectors! {
    avx512_quarter: __m128i = 1 lanes, #[target_feature(enable = "avx512f,avx512vl")]
    join join_one, split split_one, lines by_rows,
    xor(a, b) = _mm_xor_si128(a, b);
    add(a, b) = _mm_add_epi32(a, b);
    turn<BY>(row) = _mm_shuffle_epi32::<BY>(row);
    rotate<LEFT, RIGHT>(row) = _mm_rol_epi32::<LEFT>(row);
}

vectors! {
    avx512_half: __m256i = 2 lanes, #[target_feature(enable = "avx512f,avx512vl")]
    join join_two, split split_two, lines by_rows,
    xor(a, b) = _mm256_xor_si256(a, b);
    add(a, b) = _mm256_add_epi32(a, b);
    turn<BY>(row) = _mm256_shuffle_epi32::<BY>(row);
    rotate<LEFT, RIGHT>(row) = _mm256_rol_epi32::<LEFT>(row);
}

vectors! {
    avx512: __m512i = 4 lanes, #[target_feature(enable = "avx512f,avx512vl")]
    join join_four, split split_four, lines transposed,
    xor(a, b) = _mm512_xor_si512(a, b);
    add(a, b) = _mm512_add_epi32(a, b);
    turn<BY>(row) = _mm512_shuffle_epi32::<BY>(row);
    rotate<LEFT, RIGHT>(row) = _mm512_rol_epi32::<LEFT>(row);
}
