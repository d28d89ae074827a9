//! argon2id, argon2i and argon2d (RFC 9106), versions 19 and 16, several passwords in one thread.

mod compress;
mod fill;
mod long_hash;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use compress::{Compressor, PORTABLE, available};
use long_hash::{blake2b, long_hash};
use zeroize::Zeroizing;

use crate::arena::{Arena, OutOfMemory};
use crate::block::{BLOCK_BYTES, Block};
use crate::{Digests, Input};

/// The most hashes together.
pub const WIDEST: usize = 4;

/// Limits of a stored hash's cost. The worker also bounds its time.
pub const HIGHEST: Cost = Cost { memory_kib: 1_048_576, passes: 64, lanes: 16 };
/// The minimum is of RFC 9106, section 3.1; a longer digest has no use.
pub const DIGEST_BYTES: std::ops::RangeInclusive<usize> = 4..=512;
/// RFC 9106, section 3.1.
pub const SALT_BYTES: std::ops::RangeInclusive<usize> = 8..=u32::MAX as usize;

/// How reference blocks are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// By contents of the memory.
    D = 0,
    /// Independently of the password.
    I = 1,
    /// As [`Variant::I`] in the first half of the first pass, then as [`Variant::D`].
    Id = 2,
}

/// The version in the hash: 16 overwrites in later passes, 19 mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 1.0
    V16 = 16,
    /// 1.3
    V19 = 19,
}

/// The cost of one hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Memory in KiB, which are blocks.
    pub memory_kib: u32,
    /// How often the memory is filled.
    pub passes: u32,
    /// Parts of the memory that could be filled in parallel.
    pub lanes: u32,
}

/// Common to all calls of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// argon2id, argon2i or argon2d.
    pub variant: Variant,
    /// 16 or 19.
    pub version: Version,
    /// Memory, passes, lanes.
    pub cost: Cost,
}

impl Params {
    /// Whether RFC 9106, section 3.1, allows it and [`HIGHEST`] does.
    pub fn is_possible(&self) -> bool {
        let Cost { memory_kib, passes, lanes } = self.cost;
        (1..=HIGHEST.passes).contains(&passes)
            && (1..=HIGHEST.lanes).contains(&lanes)
            && (8 * lanes..=HIGHEST.memory_kib).contains(&memory_kib)
    }

    /// Number of blocks: four slices for each lane, all of the same size.
    pub fn blocks(&self) -> usize {
        self.lane_blocks() * self.cost.lanes as usize
    }

    fn lane_blocks(&self) -> usize {
        4 * self.segment_blocks()
    }

    fn segment_blocks(&self) -> usize {
        (self.cost.memory_kib / (4 * self.cost.lanes)) as usize
    }
}

/// Hashes at most [`WIDEST`] passwords together. The caller wipes the arena.
///
/// # Errors
/// When the system has not enough memory.
///
/// # Panics
/// With no input, more of them, or impossible parameters.
pub fn digests(
    params: &Params,
    compressor: Compressor,
    arena: &mut Arena,
    inputs: &[Input<'_>],
) -> Result<Digests, OutOfMemory> {
    assert!(params.is_possible(), "parameters of argon2");
    let memory = arena.take(params.blocks() * inputs.len())?;
    Ok(for_width!(inputs.len(), of_width::<WIDTH>(params, compressor, memory, inputs), 1 2 3 4))
}

fn of_width<const WIDTH: usize>(
    params: &Params,
    compressor: Compressor,
    memory: &mut [Block],
    inputs: &[Input<'_>],
) -> Digests {
    let mut parts = memory.chunks_exact_mut(params.blocks());
    let mut memories: [&mut [Block]; WIDTH] = std::array::from_fn(|_| parts.next().expect("memory for each"));
    for (memory, input) in memories.iter_mut().zip(inputs) {
        begin(params, memory, input);
    }
    fill::fill(params, compressor, &mut memories);
    memories.iter().zip(inputs).map(|(memory, input)| end(params, memory, input.digest_bytes)).collect()
}

/// The first two blocks of each lane (RFC 9106, section 3.2, steps 1, 3 and 4).
fn begin(params: &Params, memory: &mut [Block], input: &Input<'_>) {
    let Cost { memory_kib, passes, lanes } = params.cost;
    let mut seed = Zeroizing::new([0; 64]);
    let length = |bytes: usize| u32::try_from(bytes).expect("less than 4 GiB").to_le_bytes();
    blake2b(
        &[
            &lanes.to_le_bytes(),
            &length(input.digest_bytes),
            &memory_kib.to_le_bytes(),
            &passes.to_le_bytes(),
            &(params.version as u32).to_le_bytes(),
            &(params.variant as u32).to_le_bytes(),
            &length(input.password.len()),
            input.password,
            &length(input.salt.len()),
            input.salt,
            // Neither a secret nor associated data.
            &length(0),
            &length(0),
        ],
        &mut *seed,
    );
    let mut bytes = Zeroizing::new([0; BLOCK_BYTES]);
    for (lane, blocks) in (0_u32..).zip(memory.chunks_exact_mut(params.lane_blocks())) {
        for (i, block) in (0_u32..2).zip(blocks) {
            long_hash(&[&*seed, &i.to_le_bytes(), &lane.to_le_bytes()], &mut *bytes);
            block.read(&bytes);
        }
    }
}

/// The digest: the last blocks of all lanes, mixed and hashed (steps 7 and 8).
fn end(params: &Params, memory: &[Block], digest_bytes: usize) -> Vec<u8> {
    let mut sum = Zeroizing::new(Block::ZERO);
    for lane in memory.chunks_exact(params.lane_blocks()) {
        sum.mix(lane.last().expect("lanes are not empty"));
    }
    let mut bytes = Zeroizing::new([0; BLOCK_BYTES]);
    sum.write(&mut bytes);
    let mut digest = vec![0; digest_bytes];
    long_hash(&[&*bytes], &mut digest);
    digest
}
