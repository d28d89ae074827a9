//! Measures this processor: every width and every kind of code is tried with known answers and timed, once.

mod lanes;

use std::time::Duration;

use crate::arena::{Arena, KEPT_BLOCKS};
use crate::argon2::{self, Compressor, Cost, Params, Variant, Version};
use crate::bcrypt;
use crate::input::Input;
use crate::plan::Plan;
use crate::stored::{Method, Stored};
use crate::{pbkdf2, scrypt};

/// The result of the measurement.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Of bcrypt.
    pub bcrypt: Widths,
    /// The fastest code for argon2 that was right.
    pub compressor: Compressor,
    /// Of argon2 of a few megabytes.
    pub argon2: Widths,
    /// Of PBKDF2.
    pub pbkdf2: Plan<pbkdf2::Code>,
    /// Of scrypt.
    pub scrypt: Plan<scrypt::Code>,
    /// Code that gave wrong answers and is not used.
    pub wrong: Vec<String>,
}

/// How long one hash takes in a batch of each width, from 1 on. Empty where not even one was right.
#[derive(Clone, Debug, Default)]
pub struct Widths {
    each: Vec<Duration>,
}

impl Widths {
    /// From the times of whole batches.
    pub fn from_batches(took: &[Duration]) -> Self {
        Self { each: (1..).zip(took).map(|(width, took)| *took / width).collect() }
    }

    /// How many are fastest together; 0 where not even one was right.
    pub fn best(&self) -> usize {
        let mut best = (0, Duration::MAX);
        for (width, &each) in (1..).zip(&self.each) {
            if best.0 == 0 || each < best.1.mul_f64(1.0 - WORTH_IT) {
                best = (width, each);
            }
        }
        best.0
    }

    /// The most that take hardly longer for each than the fastest do; 0 where not even one was right.
    pub fn widest(&self) -> usize {
        let least = self.each.iter().min().copied().unwrap_or(Duration::MAX);
        self.each.iter().rposition(|each| *each <= least.mul_f64(1.0 + SHARED)).map_or(0, |at| at + 1)
    }

    /// So many of the widths, the fastest first.
    fn fastest(&self, count: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = (1..=self.each.len()).collect();
        widths.sort_by_key(|width| self.each[width - 1]);
        widths.truncate(count);
        widths
    }

    /// The time of one in a batch of `full`, of its time in a batch of `width`.
    fn ratio(&self, full: usize, width: usize) -> f64 {
        let each = |width: usize| self.each.get(width.wrapping_sub(1)).copied();
        match (each(full), each(width)) {
            (Some(full), Some(width)) => full.div_duration_f64(width),
            _ => 1.0,
        }
    }
}

impl Profile {
    /// Tries everything. Takes some tenths of a second of processor time.
    pub fn measure() -> Self {
        let mut wrong = Vec::new();
        let bcrypt = bcrypt_widths(&mut wrong);
        let (compressor, argon2) = argon2_widths(&mut wrong);
        let pbkdf2 = lanes::pbkdf2_plan(&mut wrong);
        let scrypt = lanes::scrypt_plan(&mut wrong);
        Self { bcrypt, compressor, argon2, pbkdf2, scrypt, wrong }
    }

    /// How many of a method are fastest together; 0 where it cannot be done.
    pub fn width(&self, method: Method) -> usize {
        match method {
            Method::Bcrypt { .. } => self.bcrypt.best(),
            // As many as fit into the memory that is kept: more would be mapped and given back each time.
            Method::Argon2(params) => (KEPT_BLOCKS / params.blocks()).max(1).min(self.argon2.widest()),
            Method::Pbkdf2(params) => self.pbkdf2.width(usize::MAX, params.blocks as usize),
            Method::Scrypt(params) => self.scrypt.width(params.most_lanes(), params.p as usize),
        }
    }

    /// The time of a thread for each of a batch that took so long, as it would be in a full batch.
    pub fn time_in_full_batch(&self, method: Method, took: Duration, width: usize) -> Duration {
        let full = self.width(method);
        let ratio = match method {
            Method::Bcrypt { .. } => self.bcrypt.ratio(full, width),
            Method::Argon2(_) => self.argon2.ratio(full, width),
            Method::Pbkdf2(params) => self.pbkdf2.ratio(usize::MAX, params.blocks as usize, full, width),
            Method::Scrypt(params) => self.scrypt.ratio(params.most_lanes(), params.p as usize, full, width),
        };
        took.div_f64(width as f64).mul_f64(ratio)
    }
}

/// A wider batch is used when it saves at least this share of the time of each: it makes the others in it wait longer.
const WORTH_IT: f64 = 0.02;
/// A wider batch of argon2 is used unless each takes this share longer. The hash itself hardly gains by it, but jobs that are hashed together
/// are also fetched, finished and answered together, which costs more where each is alone.
const SHARED: f64 = 0.05;
/// The shortest of so many times counts: what disturbs makes them longer.
const TIMES: usize = 4;
/// The fastest widths so far are timed so many times more, because who else uses the core makes wide batches slower by half, and one alone not.
const MORE_TIMES: usize = 8;
const FASTEST: usize = 3;

/// From Openwall's crypt_blowfish (wrapper.c), where most implementations took their tests. Cost 5.
const BCRYPT_ANSWERS: [(&[u8], &str); 6] = [
    (b"U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"),
    (b"U*U*", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK"),
    (b"U*U*U", "$2a$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a"),
    (b"", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy"),
    (
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789chars after 72 are ignored",
        "$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui",
    ),
    (b"\xff\xff\xa3", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e"),
];

fn bcrypt_widths(wrong: &mut Vec<String>) -> Widths {
    let took = least_of_widths(bcrypt::WIDEST, bcrypt_is_right);
    if took.len() < bcrypt::WIDEST {
        wrong.push(format!("bcrypt, {} at a time", took.len() + 1));
    }
    Widths::from_batches(&took)
}

/// All lanes different; every third password is wrong, beginning with another one each time.
fn bcrypt_is_right(width: usize, round: usize) -> bool {
    let lanes: Vec<_> = (0..width)
        .map(|n| {
            let (password, text) = BCRYPT_ANSWERS[(n + round) % BCRYPT_ANSWERS.len()];
            let right = (n + round) % 3 != 2 && n < BCRYPT_ANSWERS.len();
            let password = if right { password.to_vec() } else { [b"x", password].concat() };
            (password, Stored::parse(text).expect("a known answer"), right)
        })
        .collect();
    let inputs: Vec<_> = lanes
        .iter()
        .map(|(password, stored, _)| bcrypt::Input {
            password,
            salt: stored.salt.as_slice().try_into().expect("16 bytes, as parsed"),
        })
        .collect();
    let digests = bcrypt::digests(5, &inputs);
    lanes.iter().zip(digests).all(|((_, stored, right), digest)| (stored.digest.as_deref() == Some(&digest)) == *right)
}

/// Of "password", by the original implementation (test.c): 32 bytes at 256 KiB, two passes.
const ARGON2_ANSWERS: [&str; 5] = [
    "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
    "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc",
    "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8",
    "$argon2i$v=19$m=256,t=2,p=2$c29tZXNhbHQ$T/XOJ2mh1/TIpJHfCdQan76Q5esCFVoT5MAeIM1Oq2E",
    "$argon2i$v=16$m=256,t=2,p=1$c29tZXNhbHQ$/U3YPXYsSb3q9XxHvc0MLxur+GP960kN9j7emXX8zwY",
];

/// The fastest code that was right, and its widths.
fn argon2_widths(wrong: &mut Vec<String>) -> (Compressor, Widths) {
    let mut arena = Arena::default();
    let right: Vec<_> = Compressor::available()
        .into_iter()
        .filter(|&compressor| {
            let right = (1..=argon2::WIDEST).all(|width| argon2_is_right(compressor, width, &mut arena));
            if !right {
                wrong.push(format!("argon2, {}", compressor.name()));
            }
            right
        })
        .collect();
    let took = least_of_each(right.len(), |n, _| argon2_is_right(right[n - 1], 1, &mut arena));
    let fastest = took.iter().zip(&right).min_by_key(|(took, _)| **took);
    match fastest {
        Some((_, &compressor)) => (compressor, timed_widths(compressor, &mut arena)),
        None => (Compressor::PORTABLE, Widths::default()),
    }
}

/// One lane has the right password, each in turn, and the others have wrong ones that differ.
fn argon2_is_right(compressor: Compressor, width: usize, arena: &mut Arena) -> bool {
    ARGON2_ANSWERS.iter().all(|text| {
        let stored = Stored::parse(text).expect("a known answer");
        let Method::Argon2(params) = stored.method else { unreachable!("an answer of argon2") };
        (0..width).all(|right| {
            let passwords: Vec<_> =
                (0..width).map(|n| if n == right { "password".to_owned() } else { format!("password{n}") }).collect();
            let inputs: Vec<_> = passwords
                .iter()
                .map(|password| Input { password: password.as_bytes(), salt: &stored.salt, digest_bytes: 32 })
                .collect();
            let Ok(digests) = argon2::digests(&params, compressor, arena, &inputs) else { return false };
            digests.into_iter().enumerate().all(|(n, digest)| (Some(digest) == stored.digest) == (n == right))
        })
    })
}

/// Timed with more memory than a second-level cache has.
fn timed_widths(compressor: Compressor, arena: &mut Arena) -> Widths {
    let cost = Cost { memory_kib: 4_096, passes: 1, lanes: 1 };
    let params = Params { variant: Variant::D, version: Version::V19, cost };
    let input = Input { password: b"timed", salt: b"timedtimed", digest_bytes: 32 };
    // The first call maps the memory, for the widest.
    let mut run = |width: usize| argon2::digests(&params, compressor, arena, &vec![input; width]).is_ok();
    let widest = if run(argon2::WIDEST) { argon2::WIDEST } else { 1 };
    Widths::from_batches(&least_of_widths(widest, |width, _| run(width)))
}

/// The shortest processor time of a batch of each width up to `widest`, or to the first one that was not right.
fn least_of_widths(widest: usize, mut work: impl FnMut(usize, usize) -> bool) -> Vec<Duration> {
    let mut least = least_of_each(widest, &mut work);
    for time in TIMES..TIMES + MORE_TIMES {
        for width in Widths::from_batches(&least).fastest(FASTEST) {
            time_again(&mut least, width, || work(width, time));
        }
    }
    least
}

/// The shortest processor time of each, of 1 to `count`, up to the first one that was not right. They are timed in turn, so
/// that what disturbs one disturbs them all; with which time it is.
fn least_of_each(count: usize, mut work: impl FnMut(usize, usize) -> bool) -> Vec<Duration> {
    let mut least = vec![Duration::MAX; count];
    for time in 0..TIMES {
        for n in 1..=count {
            time_again(&mut least, n, || work(n, time));
        }
    }
    least
}

/// Times the n-th once more. One that is not right ends the list before it.
fn time_again(least: &mut Vec<Duration>, n: usize, work: impl FnOnce() -> bool) {
    if n > least.len() {
        return;
    }
    let start = processor_time();
    if work() {
        least[n - 1] = least[n - 1].min(processor_time() - start);
    } else {
        least.truncate(n - 1);
    }
}

/// Of this thread, because the processor may be busy with others.
#[cfg(unix)]
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The nearest that there is elsewhere.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(each_ms: &[u64]) -> Widths {
        Widths { each: each_ms.iter().copied().map(Duration::from_millis).collect() }
    }

    fn argon2id(memory_kib: u32) -> Method {
        let cost = Cost { memory_kib, passes: 2, lanes: 1 };
        Method::Argon2(Params { variant: Variant::Id, version: Version::V19, cost })
    }

    fn pbkdf2(iterations: u32, digest_bytes: usize) -> Method {
        Method::Pbkdf2(pbkdf2::Params::new(iterations, digest_bytes))
    }

    fn scrypt(log_n: u32) -> Method {
        Method::Scrypt(scrypt::Params { log_n, r: 8, p: 1 })
    }

    /// Of these widths, and without code for the other methods.
    fn profile(bcrypt: Widths, argon2: Widths) -> Profile {
        let (pbkdf2, scrypt) = (Plan::default(), Plan::default());
        Profile { bcrypt, compressor: Compressor::PORTABLE, argon2, pbkdf2, scrypt, wrong: vec![] }
    }

    #[test]
    fn all_known_answers_are_right_here_at_every_width() {
        let profile = Profile::measure();
        assert_eq!(profile.wrong, Vec::<String>::new());
        assert!((1..=bcrypt::WIDEST).contains(&profile.bcrypt.best()));
        assert!((1..=argon2::WIDEST).contains(&profile.argon2.best()));
        assert!(!cfg!(target_arch = "x86_64") || (1..=16).contains(&profile.width(pbkdf2(1_000, 32))));
        assert!(!cfg!(target_arch = "x86_64") || (1..=4).contains(&profile.width(scrypt(14))));
    }

    #[test]
    fn the_widest_batch_is_bounded_by_the_memory_that_is_kept() {
        let profile = profile(widths(&[6, 5, 4, 3, 2, 1]), widths(&[3, 2, 1]));
        let width = |memory_kib| profile.width(argon2id(memory_kib));
        assert_eq!([8, 19_456, 24_576, 32_768, 65_536, 1_048_576].map(width), [3, 3, 2, 2, 1, 1]);
        assert_eq!(profile.width(Method::Bcrypt { cost: 10 }), 6);
        assert_eq!([profile.width(pbkdf2(1_000, 32)), profile.width(scrypt(14))], [0, 0]);
    }

    #[test]
    fn a_width_is_best_that_saves_time_for_each() {
        assert_eq!(widths(&[]).best(), 0);
        assert_eq!(widths(&[100]).best(), 1);
        assert_eq!(widths(&[100, 120, 110]).best(), 1);
        assert_eq!(widths(&[1000, 500, 400, 399, 450]).best(), 3);
    }

    #[test]
    fn argon2_is_hashed_in_the_widest_batch_that_hardly_takes_longer() {
        assert_eq!(widths(&[]).widest(), 0);
        assert_eq!(widths(&[100, 104, 106]).widest(), 2);
        assert_eq!(widths(&[100, 104, 99, 103]).widest(), 4);
        assert_eq!(widths(&[100, 80, 85, 90]).widest(), 2);
    }

    #[test]
    fn the_fastest_widths_are_timed_more_often() {
        let mut times = [0; 4];
        // The second one alone takes none.
        let least = least_of_widths(4, |width, _| {
            times[width - 1] += 1;
            let start = processor_time();
            while width != 2 && processor_time() - start < Duration::from_micros(100 * (width * width) as u64) {}
            true
        });
        assert_eq!(times, [12, 12, 12, 4]);
        assert_eq!(Widths::from_batches(&least).best(), 2);
    }

    #[test]
    fn a_width_that_is_wrong_at_last_ends_the_list() {
        let least = least_of_widths(4, |width, time| {
            let start = processor_time();
            while width != 3 && processor_time() - start < Duration::from_micros(100) {}
            width != 3 || time < TIMES
        });
        assert_eq!(least.len(), 2);
    }

    #[test]
    fn the_time_of_a_batch_tells_the_time_of_one_in_a_full_batch() {
        let profile = profile(widths(&[60, 40, 20]), widths(&[10, 5]));
        let time_ms = |method, took_ms, width| {
            profile.time_in_full_batch(method, Duration::from_millis(took_ms), width).as_secs_f64() * 1e3
        };
        // A batch of three takes 60 ms: one alone takes as long.
        assert_eq!(time_ms(Method::Bcrypt { cost: 10 }, 60, 3), 20.0);
        assert_eq!(time_ms(Method::Bcrypt { cost: 10 }, 60, 1), 20.0);
        assert_eq!(time_ms(Method::Bcrypt { cost: 12 }, 320, 2), 80.0);
        // Two of these do not fit into the memory that is kept.
        assert_eq!(time_ms(argon2id(65_536), 30, 1), 30.0);
        assert_eq!(time_ms(argon2id(19_456), 30, 1), 15.0);
    }
}
