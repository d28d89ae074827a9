//! scrypt (RFC 7914), several blocks of one or several passwords at a time in one thread.

mod code;
#[cfg(target_arch = "x86_64")]
mod vectors;

pub use code::Code;
use zeroize::Zeroizing;

use crate::arena::{Arena, OutOfMemory};
use crate::block::BLOCK_BYTES;
use crate::input::Input;
use crate::pbkdf2::once;
use crate::plan::{Code as _, Plan};

/// The limits of stored hashes' costs, so that a single one cannot take a worker down: of memory, of N × r × p,
pub const HIGHEST_MEMORY_BYTES: u64 = 128 * 1_024 * 1_024;
/// OWASP's Password Storage Cheat Sheet gives 2^20.
pub const HIGHEST_WORK: u64 = 1 << 22;
/// and of r × p: as many times 128 bytes are made from the password and hashed again by PBKDF2, whatever N is.
pub const HIGHEST_BLOCKS: u64 = 1 << 15;
/// Shorter keys are texts that were cut off; longer ones say no more.
pub const DIGEST_BYTES: std::ops::RangeInclusive<usize> = 16..=64;
/// Of a salt that is believed.
pub const SALT_BYTES: std::ops::RangeInclusive<usize> = 1..=512;

/// All that calls hashed together have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The logarithm of N, which is how often the memory is written and read.
    pub log_n: u32,
    /// How many times 128 bytes are written and read at a time.
    pub r: u32,
    /// How many such blocks a password is made into, each with memory of its own.
    pub p: u32,
}

impl Params {
    /// Whether RFC 7914, section 2, allows it and the limits do.
    pub fn is_possible(&self) -> bool {
        let [r, p] = [u64::from(self.r), u64::from(self.p)];
        let Some(n) = 1_u64.checked_shl(self.log_n) else { return false };
        let [memory, work] = [(n + p).checked_mul(128 * r), n.checked_mul(r * p)];
        (1..16 * r).contains(&u64::from(self.log_n))
            && p >= 1
            && memory.is_some_and(|bytes| bytes <= HIGHEST_MEMORY_BYTES)
            && work.is_some_and(|work| work <= HIGHEST_WORK)
            && r * p <= HIGHEST_BLOCKS
    }

    /// How many lanes can be done at a time in a room of so many blocks; one at least.
    pub fn most_lanes(&self, room: usize) -> usize {
        (room / self.memory_blocks()).max(1)
    }

    /// How many hashes can be done at a time, of which all lanes are there twice beside that memory; one at least.
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

/// One of a password's blocks, as the bytes that scryptROMix takes and gives.
type Lane = Zeroizing<Vec<u8>>;

/// Hashes all of them together. The arena holds what it was filled with until it is wiped.
///
/// # Errors
/// When there is not so much memory.
pub fn digests(
    params: &Params,
    plan: &Plan<Code>,
    arena: &mut Arena,
    inputs: &[Input<'_>],
) -> Result<Vec<Vec<u8>>, OutOfMemory> {
    let mut lanes: Vec<Lane> = Vec::with_capacity(inputs.len() * params.p as usize);
    for input in inputs {
        let mut bytes = Zeroizing::new(vec![0; params.lane_bytes() * params.p as usize]);
        once(input.password, input.salt, &mut bytes);
        lanes.extend(bytes.chunks_exact(params.lane_bytes()).map(|lane| Zeroizing::new(lane.to_vec())));
    }
    for (code, lanes) in plan.parts(params.most_lanes(arena.room()), &mut lanes) {
        let memory = arena.take(code.lanes() * params.memory_blocks())?;
        code.mix(params, memory, lanes);
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
mod tests;
