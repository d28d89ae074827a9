//! Widths of methods, by what was measured and by memory.

use std::time::Duration;

use super::*;
use crate::argon2::{Cost, Params, Variant, Version};

/// Room for 64 MiB.
const ROOM: usize = 64 * 1_024;

fn widths(each_ms: &[u64]) -> Widths {
    let batches: Vec<_> = (1..).zip(each_ms).map(|(width, &ms)| Duration::from_millis(width * ms)).collect();
    Widths::from_batches(&batches)
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
    Profile { bcrypt, compressor: Compressor::PORTABLE, argon2, pbkdf2, scrypt, wrong: vec![], huge_pages: None }
}

#[test]
fn all_known_answers_are_right_here_at_every_width() {
    let profile = Profile::measure(19_456, ROOM);
    assert_eq!(profile.wrong, Vec::<String>::new());
    assert!((1..=crate::bcrypt::WIDEST).contains(&profile.bcrypt.best()));
    assert!((1..=3).contains(&profile.argon2.best()));
    assert!(!cfg!(target_arch = "x86_64") || (1..=16).contains(&profile.width(pbkdf2(1_000, 32), ROOM)));
    assert!(!cfg!(target_arch = "x86_64") || (1..=4).contains(&profile.width(scrypt(14), ROOM)));
}

#[test]
fn the_widest_batch_is_bounded_by_the_memory_that_there_is() {
    let profile = profile(widths(&[6, 5, 4, 3, 2, 1]), widths(&[3, 2, 1]));
    let width = |memory_kib| profile.width(argon2id(memory_kib), ROOM);
    assert_eq!([8, 19_456, 24_576, 32_768, 65_536, 1_048_576].map(width), [3, 3, 2, 2, 1, 1]);
    assert_eq!([0, 19, 37, 38, 57].map(|mib| profile.width(argon2id(19_456), mib * 1_024)), [1, 1, 1, 2, 3]);
    let learned = |mib: usize| profile.expected(argon2id(19_456), mib * 1_024).map(|learned| learned.best());
    assert_eq!([0, 37, 38, 57].map(learned), [Some(1), Some(1), Some(2), Some(3)]);
    assert_eq!(profile.width(Method::Bcrypt { cost: 10 }, 0), 6);
    assert_eq!([profile.width(pbkdf2(1_000, 32), ROOM), profile.width(scrypt(14), ROOM)], [0, 0]);
    assert!(profile.expected(scrypt(14), ROOM).is_none());
}
