//! PBKDF2 with HMAC-SHA-256 (RFC 8018, section 5.2), several blocks together in one thread.

use zeroize::Zeroizing;

use crate::plan::Plan;
use crate::sha256::lanes::{self, Lane};
use crate::sha256::{Key, State, bytes_of};
use crate::{Digests, Input, plan};

/// Limit of a stored hash's iterations, all its blocks together.
pub const HIGHEST_WORK: u32 = 2_000_000;
/// Shorter keys are truncated text; longer keys have no use.
pub const DIGEST_BYTES: std::ops::RangeInclusive<usize> = 16..=64;
/// Lengths of a plausible salt.
pub const SALT_BYTES: std::ops::RangeInclusive<usize> = 1..=512;

const BLOCK_BYTES: usize = size_of::<State>();

/// Common to all calls of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Iterations of each block.
    pub iterations: u32,
    /// Blocks of the digest.
    pub blocks: u32,
}

impl Params {
    /// From the length of the digest.
    pub fn new(iterations: u32, digest_bytes: usize) -> Self {
        Self { iterations, blocks: digest_bytes.div_ceil(BLOCK_BYTES) as u32 }
    }

    /// At least one iteration, and no more work than [`HIGHEST_WORK`].
    pub fn is_possible(&self) -> bool {
        self.iterations >= 1 && self.iterations.checked_mul(self.blocks).is_some_and(|work| work <= HIGHEST_WORK)
    }
}

/// Does this number of iterations of all lanes.
pub type Run = unsafe fn(&mut [Lane], u32);
/// Code for the iterations of blocks.
pub type Code = plan::Code<Run>;

/// For every processor.
pub const PORTABLE: Code = Code { name: "portable", lanes: 1, run: lanes::one::iterate };

/// Code that this processor can run; only on x86-64. Elsewhere `node:crypto` hashes: it uses ARM's
/// SHA-256 instructions and is faster than portable code.
pub fn available() -> Vec<Code> {
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
    let mut available = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        use crate::sha256::sha_ni;
        available.push(PORTABLE);
        if is_x86_feature_detected!("sha") && is_x86_feature_detected!("sse4.1") {
            available.push(Code { name: "sha", lanes: 1, run: sha_ni::iterate::<1> });
            available.push(Code { name: "sha, two interleaved", lanes: 2, run: sha_ni::iterate::<2> });
            available.push(Code { name: "sha, four interleaved", lanes: 4, run: sha_ni::iterate::<4> });
        }
        if is_x86_feature_detected!("avx2") {
            available.push(Code { name: "avx2", lanes: 8, run: lanes::avx2::iterate });
        }
        if is_x86_feature_detected!("avx512f") {
            available.push(Code { name: "avx512", lanes: 16, run: lanes::avx512::iterate });
        }
    }
    available
}

/// Hashes passwords together.
pub fn digests(params: &Params, plan: &Plan<Run>, inputs: &[Input<'_>]) -> Digests {
    let mut lanes = Zeroizing::new(Vec::with_capacity(inputs.len() * params.blocks as usize));
    for input in inputs {
        let key = Zeroizing::new(Key::new(input.password));
        lanes.extend((1..=params.blocks).map(|block| {
            let first = key.authenticate(&[input.salt, &block.to_be_bytes()]);
            Lane { key: *key, last: first, sum: first }
        }));
    }
    for (code, lanes) in plan.parts(usize::MAX, &mut lanes) {
        // SAFETY: `available` made the code, after the processor said that it has the features.
        unsafe { (code.run)(lanes, params.iterations - 1) };
    }
    let blocks = lanes.chunks_exact(params.blocks as usize);
    blocks.zip(inputs).map(|(blocks, input)| digest(blocks, input.digest_bytes)).collect()
}

fn digest(blocks: &[Lane], digest_bytes: usize) -> Vec<u8> {
    blocks.iter().flat_map(|block| bytes_of(&block.sum)).take(digest_bytes).collect()
}

/// With one iteration: the begin and the end of scrypt.
pub fn once(password: &[u8], salt: &[u8], digest: &mut [u8]) {
    let key = Zeroizing::new(Key::new(password));
    for (block, bytes) in (1_u32..).zip(digest.chunks_mut(BLOCK_BYTES)) {
        bytes.copy_from_slice(&bytes_of(&key.authenticate(&[salt, &block.to_be_bytes()]))[..bytes.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lanes that differ in every word.
    fn lanes(count: usize) -> Vec<Lane> {
        let state = |seed: u32| std::array::from_fn(|i| (i as u32 + 97 * seed).wrapping_mul(0x9e37_79b9));
        let lane = |n: u32| {
            let key = Key { inner: state(4 * n), outer: state(4 * n + 1) };
            Lane { key, last: state(4 * n + 2), sum: state(4 * n + 3) }
        };
        (0..count as u32).map(lane).collect()
    }

    #[test]
    fn all_that_this_processor_can_run_give_the_same() {
        for code in available() {
            let widest = code.lanes;
            // Two lanes are enough for Miri, which is slow; others are idle.
            let (counts, iterations) = if cfg!(miri) { (widest.min(2)..=widest.min(2), 1) } else { (1..=widest, 3) };
            for count in counts {
                let [mut ours, mut expected] = [lanes(count), lanes(count)];
                // SAFETY: the processor can run what is available.
                unsafe { (code.run)(&mut ours, iterations) };
                expected.chunks_mut(1).for_each(|lane| crate::sha256::lanes::one::iterate(lane, iterations));
                let states = |lanes: &[Lane]| lanes.iter().map(|lane| [lane.last, lane.sum]).collect::<Vec<_>>();
                assert_eq!(states(&ours), states(&expected), "{count} by {}", code.name);
            }
        }
    }
}
