//! Measures the processor once: tries all code at every width with known answers, and times it.

mod known_answers;

use std::time::Duration;

use known_answers::{ARGON2, BCRYPT, Batch, PBKDF2, SCRYPT};

use crate::arena::Arena;
use crate::argon2::{Compressor, Cost, Params, Variant, Version};
use crate::plan::{Code, Plan};
use crate::stored::Method;
use crate::system::processor_time;
use crate::widths::{Learned, Widths};
use crate::{Digests, Input, argon2, bcrypt, pbkdf2, scrypt};

/// The result of the measurement.
#[derive(Clone)]
pub struct Profile {
    /// The fastest code for bcrypt.
    pub bcrypt_kind: bcrypt::Kind,
    /// Widths of bcrypt.
    pub bcrypt: Widths,
    /// The fastest code for argon2 that was right.
    pub compressor: Compressor,
    /// Widths of argon2 with the policy's memory.
    pub argon2: Widths,
    /// Code for PBKDF2.
    pub pbkdf2: Plan<pbkdf2::Run>,
    /// Code for scrypt.
    pub scrypt: Plan<scrypt::Run>,
    /// Code that gave wrong answers and is not used.
    pub wrong: Vec<String>,
    /// Whether argon2's memory was on huge pages; `None` where the system does not tell.
    pub huge_pages: Option<bool>,
}

impl Profile {
    /// Takes some tenths of a second of processor time. `room` is a thread's memory in blocks.
    pub fn measure(memory_kib: u32, room: usize) -> Self {
        let mut wrong = Vec::new();
        let bcrypt_kind = fastest_bcrypt();
        let bcrypt = bcrypt_widths(|inputs| bcrypt::digests(bcrypt_kind, 5, inputs), &mut wrong);
        let mut arena = Arena::new(room);
        let compressor = fastest_compressor(&mut arena, &mut wrong);
        let argon2 = compressor.map_or_else(Widths::default, |code| argon2_widths(code, memory_kib, &mut arena));
        let huge_pages = arena.has_huge_pages();
        let pbkdf2 = pbkdf2_plan(&mut wrong);
        let scrypt = scrypt_plan(&mut wrong);
        let compressor = compressor.unwrap_or(argon2::PORTABLE);
        Self { bcrypt_kind, bcrypt, compressor, argon2, pbkdf2, scrypt, wrong, huge_pages }
    }

    /// Portable code of these widths, and none for PBKDF2 and scrypt.
    pub fn portable(bcrypt: Widths, argon2: Widths) -> Self {
        let (bcrypt_kind, compressor) = (bcrypt::Kind::Portable, argon2::PORTABLE);
        let (pbkdf2, scrypt) = (Plan::new(vec![]), Plan::new(vec![]));
        Self { bcrypt_kind, bcrypt, compressor, argon2, pbkdf2, scrypt, wrong: vec![], huge_pages: None }
    }

    /// The widths of a method, as expected from this measurement, with `room` blocks of memory.
    pub fn expected(&self, method: Method, room: usize) -> Learned {
        match method {
            Method::Bcrypt { .. } => Learned::new(&self.bcrypt, usize::MAX),
            Method::Argon2(params) => Learned::new(&self.argon2, room / params.blocks()),
            Method::Pbkdf2(params) => Learned::new(&self.pbkdf2.widths(usize::MAX, params.blocks as usize), usize::MAX),
            Method::Scrypt(params) => {
                let widths = self.scrypt.widths(params.most_lanes(room), params.p as usize);
                Learned::new(&widths, params.most_hashes(room))
            }
        }
    }
}

/// By batches for which a small first-level cache has room.
fn fastest_bcrypt() -> bcrypt::Kind {
    let kinds = bcrypt::available();
    let inputs = [Input { salt: &[0; bcrypt::SALT_BYTES], ..TIMED }; 6];
    let took = least_of_each(kinds.len(), |n, _| !bcrypt::digests(kinds[n - 1], 4, &inputs).is_empty());
    std::iter::zip(took, kinds).min_by_key(|(took, _)| *took).map_or(bcrypt::Kind::Portable, |(_, kind)| *kind)
}

/// Times of the widths below the first wrong one.
fn bcrypt_widths(digests: impl Fn(&[Input<'_>]) -> Digests, wrong: &mut Vec<String>) -> Widths {
    let took = least_of_each(bcrypt::WIDEST, |width, round| {
        Batch::mixed(&BCRYPT, width, round).is_right(|_, inputs| Some(digests(inputs)))
    });
    if took.len() < bcrypt::WIDEST {
        wrong.push(format!("bcrypt, {} at a time", took.len() + 1));
    }
    Widths::from_batches(&took)
}

/// Keeps code that is right in every lane of every number of lanes, and times it.
fn plan<Run: Copy>(
    name: &str,
    mut codes: Vec<Code<Run>>,
    (batch, rounds): (impl Fn(usize, usize) -> Batch, usize),
    timed: Method,
    mut digests: impl FnMut(Code<Run>, Method, &[Input<'_>]) -> Option<Digests>,
    wrong: &mut Vec<String>,
) -> Plan<Run> {
    codes.retain(|&code| {
        let mut is_right = |count, round| batch(count, round).is_right(|method, inputs| digests(code, method, inputs));
        let all_right = (1..=code.lanes).all(|count| (0..rounds).all(|round| is_right(count, round)));
        if !all_right {
            wrong.push(format!("{name}, {}", code.name));
        }
        all_right
    });
    let took = least_of_each(codes.len(), |n, _| {
        let code = codes[n - 1];
        digests(code, timed, &vec![TIMED; code.lanes]).is_some()
    });
    Plan::new(codes.into_iter().zip(took).collect())
}

const TIMED: Input<'_> = Input { password: b"timed", salt: b"timedtimed", digest_bytes: 32 };

fn pbkdf2_plan(wrong: &mut Vec<String>) -> Plan<pbkdf2::Run> {
    let digests = |code, method, inputs: &[Input<'_>]| {
        let Method::Pbkdf2(params) = method else { return None };
        Some(pbkdf2::digests(&params, &Plan::only(code), inputs))
    };
    let batches = (|count, round| Batch::mixed(&PBKDF2, count, round), PBKDF2.len());
    let timed = Method::Pbkdf2(pbkdf2::Params::new(200, 32));
    plan("pbkdf2", pbkdf2::available(), batches, timed, digests, wrong)
}

/// Timed with 512 KiB, which a second-level cache holds.
fn scrypt_plan(wrong: &mut Vec<String>) -> Plan<scrypt::Run> {
    let mut arena = Arena::default();
    let digests = |code, method, inputs: &[Input<'_>]| {
        let Method::Scrypt(params) = method else { return None };
        scrypt::digests(&params, &Plan::only(code), &mut arena, inputs).ok()
    };
    let batches = (|count, round| Batch::mixed(&SCRYPT, count, round), SCRYPT.len());
    let timed = Method::Scrypt(scrypt::Params { log_n: 9, r: 8, p: 1 });
    plan("scrypt", scrypt::available(), batches, timed, digests, wrong)
}

/// Timed with 1 MiB for each of four, together more than most second-level caches hold: prefetches count.
fn fastest_compressor(arena: &mut Arena, wrong: &mut Vec<String>) -> Option<Compressor> {
    let digests = |code, method, inputs: &[Input<'_>]| {
        let Method::Argon2(params) = method else { return None };
        argon2::digests(&params, code, arena, inputs).ok()
    };
    let batches = (Batch::argon2, ARGON2.len() * argon2::WIDEST);
    plan("argon2", argon2::available(), batches, Method::Argon2(argon2id(1_024)), digests, wrong).fastest()
}

/// Two passes, as in a login. Hashing together saves no time in the first pass, which only writes.
fn argon2id(memory_kib: u32) -> Params {
    Params { variant: Variant::Id, version: Version::V19, cost: Cost { memory_kib, passes: 2, lanes: 1 } }
}

fn argon2_widths(compressor: Compressor, memory_kib: u32, arena: &mut Arena) -> Widths {
    /// More than a second-level cache holds: less memory is measured too coarsely.
    const LEAST_TIMED_KIB: u32 = 4_096;
    let room = arena.room();
    let params = argon2id(memory_kib.min(room as u32).max(LEAST_TIMED_KIB));
    // The first call maps the memory, for the widest.
    let mut run = |width: usize| argon2::digests(&params, compressor, arena, &vec![TIMED; width]).is_ok();
    let most = (room / params.blocks()).clamp(1, argon2::WIDEST);
    let widest = if run(most) { most } else { 1 };
    Widths::from_batches(&least_of_each(widest, |width, _| run(width)))
}

/// Each is timed so often, and its shortest time counts: disturbances make times longer.
const TIMES: usize = 4;

/// The shortest processor times of `work(n, time)` for n from 1 to `count`, up to the first wrong
/// one. They alternate, so that a disturbance meets all of them.
fn least_of_each(count: usize, mut work: impl FnMut(usize, usize) -> bool) -> Vec<Duration> {
    let mut least = vec![Duration::MAX; count];
    for time in 0..TIMES {
        for n in 1..=count.min(least.len()) {
            let start = processor_time();
            if !work(n, time) {
                least.truncate(n - 1);
                break;
            }
            least[n - 1] = least[n - 1].min(processor_time() - start);
        }
    }
    least
}

#[cfg(test)]
mod tests;
