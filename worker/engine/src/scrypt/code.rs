//! The mixing of scrypt by what this processor has.

use super::{Lane, Params};
use crate::block::Block;

/// Code for one kind of processor. There is one only for what this processor can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(Kind);

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sse2,
    Avx2,
    Avx2Twice,
    Avx512Quarter,
    Avx512Half,
    Avx512,
}

/// Nothing has been measured elsewhere.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {}

impl Code {
    /// All that this processor can run and that has been measured to pay; nothing elsewhere than on x86-64.
    #[cfg(target_arch = "x86_64")]
    pub fn available() -> Vec<Self> {
        let mut available = vec![Kind::Sse2];
        if is_x86_feature_detected!("avx2") {
            available.extend([Kind::Avx2, Kind::Avx2Twice]);
        }
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            available.extend([Kind::Avx512Quarter, Kind::Avx512Half, Kind::Avx512]);
        }
        available.into_iter().map(Self).collect()
    }

    /// None.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn available() -> Vec<Self> {
        Vec::new()
    }

    /// Mixes all of these lanes, which are no more than the code is for, in memory for as many as it is for.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn mix(self, params: &Params, memory: &mut [Block], lanes: &mut [Lane]) {
        use super::vectors::{avx2, avx512, avx512_half, avx512_quarter, sse2};
        match self.0 {
            // SAFETY: every x86-64 processor has SSE2.
            Kind::Sse2 => unsafe { sse2::mix::<1>(params, memory, lanes) },
            // SAFETY: code of this kind is made in `available` alone, after the processor said that it has AVX2.
            Kind::Avx2 => unsafe { avx2::mix::<1>(params, memory, lanes) },
            // SAFETY: as above.
            Kind::Avx2Twice => unsafe { avx2::mix::<2>(params, memory, lanes) },
            // SAFETY: the same for AVX-512 F and VL.
            Kind::Avx512Quarter => unsafe { avx512_quarter::mix::<1>(params, memory, lanes) },
            // SAFETY: as above.
            Kind::Avx512Half => unsafe { avx512_half::mix::<1>(params, memory, lanes) },
            // SAFETY: as above.
            Kind::Avx512 => unsafe { avx512::mix::<1>(params, memory, lanes) },
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn mix(self, _: &Params, _: &mut [Block], _: &mut [Lane]) {
        match self.0 {}
    }
}

impl crate::plan::Code for Code {
    #[cfg(target_arch = "x86_64")]
    fn lanes(self) -> usize {
        match self.0 {
            Kind::Sse2 | Kind::Avx512Quarter => 1,
            Kind::Avx2 | Kind::Avx512Half => 2,
            Kind::Avx2Twice | Kind::Avx512 => 4,
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn name(self) -> &'static str {
        match self.0 {
            Kind::Sse2 => "sse2",
            Kind::Avx2 => "avx2",
            Kind::Avx2Twice => "avx2, two interleaved",
            Kind::Avx512Quarter => "avx512, a quarter",
            Kind::Avx512Half => "avx512, half",
            Kind::Avx512 => "avx512",
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn lanes(self) -> usize {
        match self.0 {}
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn name(self) -> &'static str {
        match self.0 {}
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use zeroize::Zeroizing;

    use super::*;
    use crate::plan::Code as _;

    fn mixed(code: Code, params: &Params, count: usize) -> Vec<Lane> {
        let lane = |n: usize| (0..params.lane_bytes()).map(|i| (i * 7 + n * 31 + i / 5) as u8).collect();
        let mut lanes: Vec<_> = (0..count).map(|n| Zeroizing::new(lane(n))).collect();
        let mut memory = vec![Block::ZERO; code.lanes() * params.memory_blocks()];
        code.mix(params, &mut memory, &mut lanes);
        lanes
    }

    #[test]
    fn all_that_this_processor_can_run_give_the_same() {
        // Miri, which interprets, is given the smallest alone.
        for r in 1..=if cfg!(miri) { 1 } else { 9 } {
            let params = Params { log_n: r, r, p: 1 };
            for code in Code::available() {
                let alone = mixed(code, &params, 1);
                assert_eq!(alone, mixed(Code(Kind::Sse2), &params, 1), "{}", code.name());
                let together = mixed(code, &params, code.lanes());
                assert_eq!(alone[0], together[0], "{}", code.name());
                for (first, second) in together.iter().zip(&together[1..]) {
                    assert_ne!(first, second, "{}", code.name());
                }
            }
        }
    }
}
