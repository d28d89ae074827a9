//! argon2: known answers by all code at every width, the fastest code, and its widths.

use super::timing::least_of_each;
use crate::arena::Arena;
use crate::argon2::{Compressor, Cost, Params, Variant, Version, WIDEST, digests};
use crate::input::Input;
use crate::stored::{Method, Stored};
use crate::widths::Widths;

/// Of "password", by the original implementation (test.c): 32 bytes at 256 KiB, two passes.
const ANSWERS: [&str; 5] = [
    "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
    "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc",
    "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8",
    "$argon2i$v=19$m=256,t=2,p=2$c29tZXNhbHQ$T/XOJ2mh1/TIpJHfCdQan76Q5esCFVoT5MAeIM1Oq2E",
    "$argon2i$v=16$m=256,t=2,p=1$c29tZXNhbHQ$/U3YPXYsSb3q9XxHvc0MLxur+GP960kN9j7emXX8zwY",
];

/// The fastest code that was right, what it takes, and in which memory.
pub struct Measured {
    pub compressor: Compressor,
    pub widths: Widths,
    pub huge_pages: Option<bool>,
}

/// Times the widths with so much memory, as far as there is room.
pub fn measure(memory_kib: u32, room: usize, wrong: &mut Vec<String>) -> Measured {
    let mut arena = Arena::new(room);
    let right: Vec<_> = Compressor::available()
        .into_iter()
        .filter(|&compressor| {
            let right = (1..=WIDEST).all(|width| is_right(compressor, width, &mut arena));
            if !right {
                wrong.push(format!("argon2, {}", compressor.name()));
            }
            right
        })
        .collect();
    let took = least_of_each(right.len(), |n, _| is_right(right[n - 1], 1, &mut arena));
    match took.iter().zip(&right).min_by_key(|(took, _)| **took) {
        Some((_, &compressor)) => {
            let widths = timed_widths(compressor, memory_kib, &mut arena);
            Measured { compressor, widths, huge_pages: arena.has_huge_pages() }
        }
        None => Measured { compressor: Compressor::PORTABLE, widths: Widths::default(), huge_pages: None },
    }
}

/// One lane has the right password, each in turn, and the others have wrong ones that differ.
fn is_right(compressor: Compressor, width: usize, arena: &mut Arena) -> bool {
    ANSWERS.iter().all(|text| {
        let stored = Stored::parse(text).expect("a known answer");
        let Method::Argon2(params) = stored.method else { unreachable!("an answer of argon2") };
        (0..width).all(|right| {
            let passwords: Vec<_> =
                (0..width).map(|n| if n == right { "password".to_owned() } else { format!("password{n}") }).collect();
            let inputs: Vec<_> = passwords
                .iter()
                .map(|password| Input { password: password.as_bytes(), salt: &stored.salt, digest_bytes: 32 })
                .collect();
            let Ok(made) = digests(&params, compressor, arena, &inputs) else { return false };
            made.into_iter().enumerate().all(|(n, digest)| (Some(digest) == stored.digest) == (n == right))
        })
    })
}

/// Two passes of argon2id, as in a login. The first pass only writes memory; what is hashed together saves time in those that also read it.
fn timed_widths(compressor: Compressor, memory_kib: u32, arena: &mut Arena) -> Widths {
    let room = arena.room();
    let memory_kib = memory_kib.min(room as u32).max(LEAST_TIMED_KIB);
    let cost = Cost { memory_kib, passes: 2, lanes: 1 };
    let params = Params { variant: Variant::Id, version: Version::V19, cost };
    let input = Input { password: b"timed", salt: b"timedtimed", digest_bytes: 32 };
    // The first call maps the memory, for the widest.
    let mut run = |width: usize| digests(&params, compressor, arena, &vec![input; width]).is_ok();
    let most = (room / params.blocks()).clamp(1, WIDEST);
    let widest = if run(most) { most } else { 1 };
    Widths::from_batches(&least_of_each(widest, |width, _| run(width)))
}

/// More memory than a second-level cache has: less is measured too coarsely.
const LEAST_TIMED_KIB: u32 = 4_096;
