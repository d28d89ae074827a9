//! Fills the memory (RFC 9106, section 3.4) of several passwords in step. While one computes a
//! block, the next reference blocks of the others are prefetched.

use super::compress::{Ahead, Compressor, compress};
use super::{Params, Variant, Version};
use crate::block::{Block, prefetch_line};

/// Addresses in a block.
const ADDRESSES: usize = 128;

/// The position of the work in the memory.
#[derive(Clone, Copy)]
struct Segment {
    pass: usize,
    slice: usize,
    lane: usize,
}

pub fn fill<const WIDTH: usize>(params: &Params, compressor: Compressor, memories: &mut [&mut [Block]; WIDTH]) {
    for pass in 0..params.cost.passes as usize {
        for slice in 0..4 {
            // A lane reads only finished slices of other lanes, so the order is free.
            for lane in 0..params.cost.lanes as usize {
                let segment = Segment { pass, slice, lane };
                if segment.is_independent(params.variant) {
                    fill_independent(params, compressor, segment, memories);
                } else {
                    fill_dependent(params, compressor, segment, memories);
                }
            }
        }
    }
}

/// A segment whose references depend on the previous block.
fn fill_dependent<const WIDTH: usize>(
    params: &Params,
    compressor: Compressor,
    segment: Segment,
    memories: &mut [&mut [Block]; WIDTH],
) {
    let first = segment.first_block();
    let mut references = [0; WIDTH];
    for (memory, reference) in memories.iter().zip(&mut references) {
        let previous = &memory[segment.previous(params, first)];
        *reference = segment.reference(params, first, previous.0[0]);
    }
    let mut ahead = None;
    for i in first..params.segment_blocks() {
        for (memory, reference) in memories.iter_mut().zip(&mut references) {
            let chosen_by = make_block(params, compressor, segment, i, memory, *reference, ahead);
            if i + 1 < params.segment_blocks() {
                *reference = segment.reference(params, i + 1, chosen_by);
                ahead = prefetch::<WIDTH>(compressor, segment, memory, [*reference, segment.target(params, i + 1)]);
            }
        }
    }
}

/// A segment whose references depend only on the position, and are the same for every password.
fn fill_independent<const WIDTH: usize>(
    params: &Params,
    compressor: Compressor,
    segment: Segment,
    memories: &mut [&mut [Block]; WIDTH],
) {
    let mut addresses = Addresses::new(params, segment);
    let first = segment.first_block();
    let mut reference = segment.reference(params, first, addresses.at(compressor, first));
    for i in first..params.segment_blocks() {
        let next = (i + 1 < params.segment_blocks())
            .then(|| segment.reference(params, i + 1, addresses.at(compressor, i + 1)));
        for memory in memories.iter_mut() {
            let ahead = next
                .and_then(|next| prefetch::<WIDTH>(compressor, segment, memory, [next, segment.target(params, i + 1)]));
            make_block(params, compressor, segment, i, memory, reference, ahead);
        }
        reference = next.unwrap_or_default();
    }
}

/// Makes the `i`th block of a segment and returns its word that chooses a reference.
#[inline(always)]
fn make_block(
    params: &Params,
    compressor: Compressor,
    segment: Segment,
    i: usize,
    memory: &mut [Block],
    reference: usize,
    ahead: Option<Ahead>,
) -> u64 {
    let target = segment.target(params, i);
    let (before, rest) = memory.split_at_mut(target);
    let (block, after) = rest.split_first_mut().expect("the target is in the memory");
    let other = |at: usize| if at < target { &before[at] } else { &after[at - target - 1] };
    let mix = segment.pass > 0 && params.version == Version::V19;
    compress(compressor, [other(segment.previous(params, i)), other(reference)], block, mix, ahead);
    block.0[0]
}

impl Segment {
    fn is_independent(self, variant: Variant) -> bool {
        match variant {
            Variant::D => false,
            Variant::I => true,
            Variant::Id => self.pass == 0 && self.slice < 2,
        }
    }

    /// The first two blocks of a lane are made from the password.
    fn first_block(self) -> usize {
        if self.pass == 0 && self.slice == 0 { 2 } else { 0 }
    }

    fn target(self, params: &Params, i: usize) -> usize {
        self.lane * params.lane_blocks() + self.slice * params.segment_blocks() + i
    }

    fn previous(self, params: &Params, i: usize) -> usize {
        let target = self.target(params, i);
        if self.slice == 0 && i == 0 { target + params.lane_blocks() - 1 } else { target - 1 }
    }

    /// The reference of the `i`th block by its random word (sections 3.4.1.3 and 3.4.2).
    #[inline(always)]
    fn reference(self, params: &Params, i: usize, random: u64) -> usize {
        let [blocks, segment] = [params.lane_blocks(), params.segment_blocks()];
        let lane = if self.pass == 0 && self.slice == 0 {
            self.lane
        } else {
            (random >> 32) as usize % params.cost.lanes as usize
        };
        let finished = if self.pass == 0 { self.slice * segment } else { blocks - segment };
        // In its own lane also this segment's blocks but the previous one, which is used anyway. In
        // other lanes all finished blocks, but the last one for a segment's first block.
        let candidates = if lane == self.lane { finished + i - 1 } else { finished - usize::from(i == 0) };
        let skewed = (random & 0xffff_ffff).pow(2) >> 32;
        let back = 1 + ((candidates as u64 * skewed) >> 32) as usize;
        let start = if self.pass == 0 || self.slice == 3 { 0 } else { (self.slice + 1) * segment };
        let at = start + candidates - back;
        lane * blocks + if at >= blocks { at - blocks } else { at }
    }
}

/// The random words of a segment whose references depend on no password.
struct Addresses {
    counted: Block,
    current: Block,
}

impl Addresses {
    fn new(params: &Params, Segment { pass, slice, lane }: Segment) -> Self {
        let mut counted = Block::ZERO;
        let [passes, variant] = [params.cost.passes as usize, params.variant as usize];
        for (word, value) in counted.0.iter_mut().zip([pass, lane, slice, params.blocks(), passes, variant]) {
            *word = value as u64;
        }
        Self { counted, current: Block::ZERO }
    }

    /// The word for the `i`th block. Calls are in order.
    fn at(&mut self, compressor: Compressor, i: usize) -> u64 {
        if self.counted.0[6] == 0 || i.is_multiple_of(ADDRESSES) {
            self.counted.0[6] += 1;
            let mut once = Block::ZERO;
            compress(compressor, [&Block::ZERO, &self.counted], &mut once, false, None);
            compress(compressor, [&Block::ZERO, &once], &mut self.current, false, None);
        }
        self.current.0[i % ADDRESSES]
    }
}

/// Prefetches a reference, and the target that it is mixed into; the first pass only overwrites, and
/// reading that took 5 to 20 % more. Into the first-level cache, or for more than two hashes into
/// the second: the first fetches few lines at a time, and three hashes took a fifth longer. With more
/// than two, code that spreads the prefetches over a compression gets the blocks instead.
#[inline(always)]
fn prefetch<const WIDTH: usize>(
    compressor: Compressor,
    segment: Segment,
    memory: &[Block],
    [reference, target]: [usize; 2],
) -> Option<Ahead> {
    if WIDTH > 2 && compressor.run.spread.is_some() {
        return Some([&memory[reference], &memory[target]]);
    }
    let blocks = if segment.pass > 0 { &[reference, target][..] } else { &[reference] };
    for line in blocks.iter().flat_map(|&at| memory[at].0.chunks_exact(8)) {
        if WIDTH > 2 { prefetch_line::<false>(line) } else { prefetch_line::<true>(line) }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argon2::{Cost, available};

    fn begun(params: &Params, seed: u64) -> Vec<Block> {
        let word = |at: usize, i: usize| (at as u64 * 128 + i as u64 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..params.blocks()).map(|at| Block(std::array::from_fn(|i| word(at, i)))).collect()
    }

    #[test]
    fn two_are_filled_side_by_side_as_each_alone() {
        let cost = Cost { memory_kib: 8, passes: 1, lanes: 1 };
        for variant in [Variant::D, Variant::Id] {
            let params = Params { variant, version: Version::V19, cost };
            // One is enough for Miri, which is slow.
            for compressor in available().into_iter().take(if cfg!(miri) { 1 } else { usize::MAX }) {
                let mut alone = [1, 2].map(|seed| begun(&params, seed));
                let mut together = alone.clone();
                alone.iter_mut().for_each(|memory| fill(&params, compressor, &mut [memory]));
                let [first, second] = &mut together;
                fill(&params, compressor, &mut [first, second]);
                assert_eq!(alone, together, "{}", compressor.name);
            }
        }
    }
}
