//! The iterations of PBKDF2 by what this processor has.

use super::Lane;

/// Code for one kind of processor. There is one only for what this processor can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Sha,
    #[cfg(target_arch = "x86_64")]
    ShaTwice,
    #[cfg(target_arch = "x86_64")]
    ShaFourTimes,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Code {
    /// For every processor.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// All that this processor can run and that has been measured to pay. Elsewhere than on x86-64 there is none: `node:crypto`
    /// uses the SHA-256 instructions of ARM, which portable code is no match for.
    pub fn available() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
        let mut available = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            available.push(Self::PORTABLE);
            if is_x86_feature_detected!("sha") && is_x86_feature_detected!("sse4.1") {
                available.extend([Self(Kind::Sha), Self(Kind::ShaTwice), Self(Kind::ShaFourTimes)]);
            }
            if is_x86_feature_detected!("avx2") {
                available.push(Self(Kind::Avx2));
            }
            if is_x86_feature_detected!("avx512f") {
                available.push(Self(Kind::Avx512));
            }
        }
        available
    }

    /// As many iterations of all of these lanes, which are no more than the code is for.
    pub(super) fn iterate(self, lanes: &mut [Lane], iterations: u32) {
        match self.0 {
            Kind::Portable => super::iterate_one(&mut lanes[0], iterations),
            // SAFETY: code of this kind is made in `available` alone, after the processor said that it has SHA and SSE4.1.
            #[cfg(target_arch = "x86_64")]
            Kind::Sha => unsafe { super::sha_ni::iterate::<1>(lanes, iterations) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::ShaTwice => unsafe { super::sha_ni::iterate::<2>(lanes, iterations) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::ShaFourTimes => unsafe { super::sha_ni::iterate::<4>(lanes, iterations) },
            // SAFETY: the same for AVX2.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { super::vectors::avx2::iterate(lanes, iterations) },
            // SAFETY: the same for AVX-512 F.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { super::vectors::avx512::iterate(lanes, iterations) },
        }
    }
}

impl crate::plan::Code for Code {
    fn lanes(self) -> usize {
        match self.0 {
            Kind::Portable => 1,
            #[cfg(target_arch = "x86_64")]
            Kind::Sha => 1,
            #[cfg(target_arch = "x86_64")]
            Kind::ShaTwice => 2,
            #[cfg(target_arch = "x86_64")]
            Kind::ShaFourTimes => 4,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => 8,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => 16,
        }
    }

    fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Sha => "sha",
            #[cfg(target_arch = "x86_64")]
            Kind::ShaTwice => "sha, two interleaved",
            #[cfg(target_arch = "x86_64")]
            Kind::ShaFourTimes => "sha, four interleaved",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::iterate_one;
    use super::*;
    use crate::plan::Code as _;
    use crate::sha256::Key;

    /// Lanes that differ in every word.
    fn lanes(count: u32) -> Vec<Lane> {
        let state = |seed: u32| std::array::from_fn(|i| (i as u32 + 97 * seed).wrapping_mul(0x9e37_79b9));
        let lane = |n: u32| {
            let key = Key { inner: state(4 * n), outer: state(4 * n + 1) };
            Lane { key, last: state(4 * n + 2), sum: state(4 * n + 3) }
        };
        (0..count).map(lane).collect()
    }

    #[test]
    fn all_that_this_processor_can_run_give_the_same() {
        for code in Code::available() {
            let widest = code.lanes() as u32;
            // Miri, which interprets, is given two lanes alone, so that others are idle.
            let (counts, iterations) = if cfg!(miri) { (widest.min(2)..=widest.min(2), 1) } else { (1..=widest, 3) };
            for count in counts {
                let [mut ours, mut expected] = [lanes(count), lanes(count)];
                code.iterate(&mut ours, iterations);
                expected.iter_mut().for_each(|lane| iterate_one(lane, iterations));
                let states = |lanes: &[Lane]| lanes.iter().map(|lane| [lane.last, lane.sum]).collect::<Vec<_>>();
                assert_eq!(states(&ours), states(&expected), "{count} by {}", code.name());
            }
        }
    }
}
