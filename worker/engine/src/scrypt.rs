//! scrypt (RFC 7914), several blocks of one or several passwords at a time in one thread.

#[cfg(target_arch = "x86_64")]
mod vectors;

use zeroize::Zeroizing;

use crate::arena::{Arena, OutOfMemory};
use crate::block::{BLOCK_BYTES, Block};
use crate::pbkdf2::once;
pub use crate::pbkdf2::{DIGEST_BYTES, SALT_BYTES};
use crate::plan::Plan;
use crate::{Digests, Input, plan};

/// Limits of a stored hash's cost, whose memory the worker bounds: N × r × p, for which OWASP's
/// Password Storage Cheat Sheet gives 2^20,
pub const HIGHEST_WORK: u64 = 1 << 22;
/// and r × p, the number of 128-byte parts that PBKDF2 makes and hashes, whatever N is.
pub const HIGHEST_BLOCKS: u64 = 1 << 15;

/// Common to all calls of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The binary logarithm of N, the number of writes and of reads.
    pub log_n: u32,
    /// The size of a write, in units of 128 bytes.
    pub r: u32,
    /// The number of blocks of a password, each with memory of its own.
    pub p: u32,
}

impl Params {
    /// Whether RFC 7914, section 2, allows it and the limits do.
    pub fn is_possible(&self) -> bool {
        let [r, p] = [u64::from(self.r), u64::from(self.p)];
        let Some(n) = 1_u64.checked_shl(self.log_n) else { return false };
        (1..16 * r).contains(&u64::from(self.log_n))
            && p >= 1
            && n.checked_mul(r * p).is_some_and(|work| work <= HIGHEST_WORK)
            && r * p <= HIGHEST_BLOCKS
    }

    /// How many lanes fit into `room` blocks; at least 1.
    pub fn most_lanes(&self, room: usize) -> usize {
        (room / self.memory_blocks()).max(1)
    }

    /// How many hashes, whose lanes exist twice beside that memory; at least 1.
    pub fn most_hashes(&self, room: usize) -> usize {
        (room * BLOCK_BYTES / (2 * self.lane_bytes() * self.p as usize)).max(1)
    }

    /// The memory of a lane, in whole blocks.
    pub(crate) fn memory_blocks(&self) -> usize {
        (self.lane_bytes() << self.log_n).div_ceil(BLOCK_BYTES)
    }

    fn lane_bytes(&self) -> usize {
        128 * self.r as usize
    }
}

/// A block of a password, before and after scryptROMix.
pub type Lane = Zeroizing<Vec<u8>>;
/// Mixes all lanes, in memory for as many as the code is for.
pub type Run = unsafe fn(&Params, &mut [Block], &mut [Lane]);
/// Code for the mixing of blocks.
pub type Code = plan::Code<Run>;

/// Code that this processor can run; only on x86-64, because nothing else was measured.
pub fn available() -> Vec<Code> {
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
    let mut available = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        use vectors::{avx2, avx512, avx512_half, avx512_quarter, sse2};
        available.push(Code { name: "sse2", lanes: 1, run: sse2::mix::<1> });
        if is_x86_feature_detected!("avx2") {
            available.push(Code { name: "avx2", lanes: 2, run: avx2::mix::<1> });
            available.push(Code { name: "avx2, two interleaved", lanes: 4, run: avx2::mix::<2> });
        }
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            available.push(Code { name: "avx512, a quarter", lanes: 1, run: avx512_quarter::mix::<1> });
            available.push(Code { name: "avx512, half", lanes: 2, run: avx512_half::mix::<1> });
            available.push(Code { name: "avx512", lanes: 4, run: avx512::mix::<1> });
        }
    }
    available
}

/// Hashes passwords together. The caller wipes the arena.
///
/// # Errors
/// When the system has not enough memory.
pub fn digests(
    params: &Params,
    plan: &Plan<Run>,
    arena: &mut Arena,
    inputs: &[Input<'_>],
) -> Result<Digests, OutOfMemory> {
    let mut lanes: Vec<Lane> = Vec::with_capacity(inputs.len() * params.p as usize);
    for input in inputs {
        let mut bytes = Zeroizing::new(vec![0; params.lane_bytes() * params.p as usize]);
        once(input.password, input.salt, &mut bytes);
        lanes.extend(bytes.chunks_exact(params.lane_bytes()).map(|lane| Zeroizing::new(lane.to_vec())));
    }
    for (code, lanes) in plan.parts(params.most_lanes(arena.room()), &mut lanes) {
        let memory = arena.take(code.lanes * params.memory_blocks())?;
        // SAFETY: `available` made the code, after the processor said that it has the features.
        unsafe { (code.run)(params, memory, lanes) };
    }
    let mixed = lanes.chunks_exact(params.p as usize).zip(inputs);
    Ok(mixed
        .map(|(lanes, input)| {
            digest(input, &Zeroizing::new(lanes.iter().map(|lane| &***lane).collect::<Vec<_>>().concat()))
        })
        .collect())
}

fn digest(input: &Input<'_>, mixed: &[u8]) -> Vec<u8> {
    let mut digest = vec![0; input.digest_bytes];
    once(input.password, mixed, &mut digest);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(code: Code, params: &Params, count: usize) -> Vec<Lane> {
        let lane = |n: usize| (0..params.lane_bytes()).map(|i| (i * 7 + n * 31 + i / 5) as u8).collect();
        let mut lanes: Vec<_> = (0..count).map(|n| Zeroizing::new(lane(n))).collect();
        let mut memory = vec![Block::ZERO; code.lanes * params.memory_blocks()];
        // SAFETY: the processor can run what is available.
        unsafe { (code.run)(params, &mut memory, &mut lanes) };
        lanes
    }

    #[test]
    fn all_that_this_processor_can_run_give_the_same() {
        // The smallest is enough for Miri, which is slow.
        for r in 1..=if cfg!(miri) { 1 } else { 9 } {
            let params = Params { log_n: r, r, p: 1 };
            for code in available() {
                let alone = mixed(code, &params, 1);
                assert_eq!(alone, mixed(available()[0], &params, 1), "{}", code.name);
                let together = mixed(code, &params, code.lanes);
                assert_eq!(alone[0], together[0], "{}", code.name);
                for (first, second) in together.iter().zip(&together[1..]) {
                    assert_ne!(first, second, "{}", code.name);
                }
            }
        }
    }

    #[test]
    fn memory_bounds_the_lanes() {
        let most = |log_n, r| Params { log_n, r, p: 1 }.most_lanes(64 * 1_024);
        assert_eq!([most(14, 8), most(15, 8), most(16, 8), most(10, 8)], [4, 2, 1, 64]);
    }
}
