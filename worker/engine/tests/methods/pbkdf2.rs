//! Compared with another implementation.

use ::pbkdf2::pbkdf2_hmac;
use ::sha2::Sha256;

use spillway_engine::Input;
use spillway_engine::pbkdf2::{PORTABLE, Params, available, digests, once};

fn theirs(iterations: u32, input: &Input<'_>) -> Vec<u8> {
    let mut digest = vec![0; input.digest_bytes];
    pbkdf2_hmac::<Sha256>(input.password, input.salt, iterations, &mut digest);
    digest
}

#[test]
fn every_number_of_lanes_gives_what_another_implementation_gives() {
    // Lengths about those of a block of SHA-256, with and without its padding.
    let lengths = [0, 1, 31, 32, 33, 51, 52, 55, 56, 63, 64, 65, 119, 120, 128, 300, 3_072];
    let bytes: Vec<u8> = (0..4_000_u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    for (name, plan) in super::plans([available(), vec![PORTABLE]].concat()) {
        for (iterations, digest_bytes) in [(1, 32), (2, 20), (3, 64), (17, 33)] {
            let params = Params::new(iterations, digest_bytes);
            for count in 1..=lengths.len() {
                let inputs: Vec<_> = lengths[..count]
                    .iter()
                    .enumerate()
                    .map(|(n, &length)| Input {
                        password: &bytes[n..][..length],
                        salt: &bytes[500 + n..][..1 + lengths[count - 1 - n].min(511)],
                        digest_bytes: digest_bytes - n % 2,
                    })
                    .collect();
                let expected: Vec<_> = inputs.iter().map(|input| theirs(iterations, input)).collect();
                assert_eq!(digests(&params, &plan, &inputs), expected, "{count} at a time by {name}");
            }
        }
    }
}

#[test]
fn what_one_iteration_gives_is_the_same() {
    let mut digest = [0; 77];
    once(b"password", b"salt", &mut digest);
    assert_eq!(digest[..], theirs(1, &Input { password: b"password", salt: b"salt", digest_bytes: 77 }));
}

#[test]
fn impossible_costs_are_known() {
    let possible = |iterations, digest_bytes| Params::new(iterations, digest_bytes).is_possible();
    assert!(possible(1, 16) && possible(2_000_000, 32) && possible(1_000_000, 64));
    assert!(!possible(0, 32) && !possible(2_000_001, 32) && !possible(1_000_001, 64) && !possible(u32::MAX, 64));
}
