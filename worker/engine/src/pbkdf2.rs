//! PBKDF2 with HMAC-SHA-256 (RFC 8018, section 5.2), several blocks of one or several passwords at a time in one thread.

mod code;
#[cfg(target_arch = "x86_64")]
mod sha_ni;
#[cfg(target_arch = "x86_64")]
mod vectors;

pub use code::Code;
use zeroize::{Zeroize, Zeroizing};

use crate::input::Input;
use crate::plan::Plan;
use crate::sha256::{Key, State, bytes_of, compress};

/// The most iterations of all blocks of a stored hash, so that a single one cannot take a worker down.
pub const HIGHEST_WORK: u32 = 2_000_000;
/// Shorter keys are texts that were cut off; longer ones say no more.
pub const DIGEST_BYTES: std::ops::RangeInclusive<usize> = 16..=64;
/// Of a salt that is believed.
pub const SALT_BYTES: std::ops::RangeInclusive<usize> = 1..=512;

const BLOCK_BYTES: usize = size_of::<State>();

/// All that calls hashed together have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Of each block.
    pub iterations: u32,
    /// How many blocks the digest takes.
    pub blocks: u32,
}

impl Params {
    /// For a digest of so many bytes.
    pub fn new(iterations: u32, digest_bytes: usize) -> Self {
        Self { iterations, blocks: digest_bytes.div_ceil(BLOCK_BYTES) as u32 }
    }

    /// Whether it is an iteration at least, and no more than [`HIGHEST_WORK`].
    pub fn is_possible(&self) -> bool {
        self.iterations >= 1 && self.iterations.checked_mul(self.blocks).is_some_and(|work| work <= HIGHEST_WORK)
    }
}

/// A block of a digest: the last of its codes, and the sum of them all.
#[derive(Clone)]
struct Lane {
    key: Key,
    last: State,
    sum: State,
}

impl Zeroize for Lane {
    fn zeroize(&mut self) {
        self.key.zeroize();
        self.last.zeroize();
        self.sum.zeroize();
    }
}

/// What fills the block after a code: SHA-256's padding, with the bits of the padded key and of the code as its length.
const PADDING: [u32; 8] = [0x8000_0000, 0, 0, 0, 0, 0, 0, 768];

/// As many iterations of one lane, by portable code.
fn iterate_one(lane: &mut Lane, iterations: u32) {
    for _ in 0..iterations {
        for before in [&lane.key.inner, &lane.key.outer] {
            let mut words = std::array::from_fn(|i| if i < 8 { lane.last[i] } else { PADDING[i - 8] });
            lane.last = compress(before, &mut words);
        }
        for (sum, last) in lane.sum.iter_mut().zip(lane.last) {
            *sum ^= last;
        }
    }
}

/// Hashes all of them together.
pub fn digests(params: &Params, plan: &Plan<Code>, inputs: &[Input<'_>]) -> Vec<Vec<u8>> {
    let mut lanes = Zeroizing::new(Vec::with_capacity(inputs.len() * params.blocks as usize));
    for input in inputs {
        let key = Zeroizing::new(Key::new(input.password));
        lanes.extend((1..=params.blocks).map(|block| {
            let first = key.authenticate(&[input.salt, &block.to_be_bytes()]);
            Lane { key: *key, last: first, sum: first }
        }));
    }
    for (code, lanes) in plan.parts(usize::MAX, &mut lanes) {
        code.iterate(lanes, params.iterations - 1);
    }
    let blocks = lanes.chunks_exact(params.blocks as usize);
    blocks.zip(inputs).map(|(blocks, input)| digest(blocks, input.digest_bytes)).collect()
}

fn digest(blocks: &[Lane], digest_bytes: usize) -> Vec<u8> {
    blocks.iter().flat_map(|block| bytes_of(&block.sum)).take(digest_bytes).collect()
}

/// Of one iteration: what scrypt begins and ends with.
pub fn once(password: &[u8], salt: &[u8], digest: &mut [u8]) {
    let key = Zeroizing::new(Key::new(password));
    for (block, bytes) in (1_u32..).zip(digest.chunks_mut(BLOCK_BYTES)) {
        bytes.copy_from_slice(&bytes_of(&key.authenticate(&[salt, &block.to_be_bytes()]))[..bytes.len()]);
    }
}

#[cfg(test)]
mod tests;
