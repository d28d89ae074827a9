//! Widths of methods, by what was measured and by memory.

use std::time::Duration;

use super::*;

/// Room for 64 MiB.
const ROOM: usize = 64 * 1_024;

fn widths(each_ms: &[u64]) -> Widths {
    let batches: Vec<_> = (1..).zip(each_ms).map(|(width, &ms)| Duration::from_millis(width * ms)).collect();
    Widths::from_batches(&batches)
}

fn pbkdf2(iterations: u32, digest_bytes: usize) -> Method {
    Method::Pbkdf2(pbkdf2::Params::new(iterations, digest_bytes))
}

fn scrypt(log_n: u32) -> Method {
    Method::Scrypt(scrypt::Params { log_n, r: 8, p: 1 })
}

#[test]
fn all_known_answers_are_right_here_at_every_width() {
    let profile = Profile::measure(19_456, ROOM);
    assert_eq!(profile.wrong, Vec::<String>::new());
    assert!((1..=crate::bcrypt::WIDEST).contains(&profile.bcrypt.best()));
    assert!((1..=3).contains(&profile.argon2.best()));
    let width = |method| profile.expected(method, ROOM).best();
    assert!(!cfg!(target_arch = "x86_64") || (1..=16).contains(&width(pbkdf2(1_000, 32))));
    assert!(!cfg!(target_arch = "x86_64") || (1..=4).contains(&width(scrypt(14))));
}

#[test]
fn the_widest_batch_is_bounded_by_the_memory_that_there_is() {
    let profile = Profile::portable(widths(&[6, 5, 4, 3, 2, 1]), widths(&[3, 2, 1]));
    let width = |method, mib: usize| profile.expected(method, mib * 1_024).best();
    let of_memory = |memory_kib| width(Method::Argon2(argon2id(memory_kib)), 64);
    assert_eq!([8, 19_456, 24_576, 32_768, 65_536, 1_048_576].map(of_memory), [3, 3, 2, 2, 1, 1]);
    let in_room = |mib| width(Method::Argon2(argon2id(19_456)), mib);
    assert_eq!([0, 19, 37, 38, 57].map(in_room), [1, 1, 1, 2, 3]);
    assert_eq!(width(Method::Bcrypt { cost: 10 }, 0), 6);
    assert_eq!([width(pbkdf2(1_000, 32), 64), width(scrypt(14), 64)], [0, 0]);
}

/// Flips a bit in this lane of batches of this width.
fn flipped(mut digests: Digests, width: usize, lane: usize) -> Digests {
    if digests.len() == width {
        digests[lane][22] ^= 1;
    }
    digests
}

#[test]
fn a_flipped_bit_in_any_lane_of_any_width_is_found() {
    for width in 1..=crate::bcrypt::WIDEST {
        for lane in 0..width {
            let wrong =
                |_, inputs: &[Input<'_>]| Some(flipped(bcrypt::digests(fastest_bcrypt(), 5, inputs), width, lane));
            let is_found = |round| !Batch::mixed(&BCRYPT, width, round).is_right(wrong);
            assert!((0..TIMES).any(is_found), "lane {lane} of {width}");
        }
    }
}

#[test]
fn widths_that_are_wrong_are_named_and_not_used() {
    let mut wrong = Vec::new();
    let widths = bcrypt_widths(|inputs| flipped(bcrypt::digests(fastest_bcrypt(), 5, inputs), 8, 7), &mut wrong);
    assert!((1..=7).contains(&widths.best()));
    assert_eq!(wrong, ["bcrypt, 8 at a time"]);
}

#[test]
fn code_that_is_wrong_in_one_lane_of_one_number_of_lanes_is_not_used() {
    for broken_at in 1..=16 {
        let mut wrong = Vec::new();
        let digests = |code, method, inputs: &[Input<'_>]| {
            let Method::Pbkdf2(params) = method else { return None };
            Some(flipped(pbkdf2::digests(&params, &Plan::only(code), inputs), broken_at, broken_at - 1))
        };
        let codes = pbkdf2::available();
        let wide = codes.iter().filter(|code| code.lanes >= broken_at).count();
        let batches = (|count, round| Batch::mixed(&PBKDF2, count, round), PBKDF2.len());
        plan("pbkdf2", codes, batches, pbkdf2(2, 32), digests, &mut wrong);
        assert_eq!(wrong.len(), wide, "{broken_at}: {wrong:?}");
    }
}

#[test]
fn a_width_that_is_wrong_at_last_ends_the_list() {
    let least = least_of_each(4, |width, time| {
        let start = processor_time();
        while width != 3 && processor_time() - start < Duration::from_micros(100) {}
        width != 3 || time < TIMES - 1
    });
    assert_eq!(least.len(), 2);
}
