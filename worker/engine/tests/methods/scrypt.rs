//! Compared with another implementation.

use spillway_engine::Input;
use spillway_engine::arena::Arena;
use spillway_engine::scrypt::{Params, available, digests};

fn theirs(params: &Params, input: &Input<'_>) -> Vec<u8> {
    let theirs = ::scrypt::Params::new(params.log_n as u8, params.r, params.p).unwrap();
    let mut digest = vec![0; input.digest_bytes];
    ::scrypt::scrypt(input.password, input.salt, &theirs, &mut digest).unwrap();
    digest
}

/// Five that differ in password, salt and length.
fn inputs() -> [Input<'static>; 5] {
    [
        Input { password: b"password", salt: b"NaCl", digest_bytes: 64 },
        Input { password: b"", salt: b"another salt, and a longer one", digest_bytes: 16 },
        Input { password: &[0; 300], salt: &[255; 8], digest_bytes: 48 },
        Input { password: "pässwörd\0".as_bytes(), salt: b"s", digest_bytes: 33 },
        Input { password: b"U*U", salt: &[7; 200], digest_bytes: 20 },
    ]
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "there is code for x86-64 alone")]
fn every_number_of_lanes_gives_what_another_implementation_gives() {
    let mut arena = Arena::default();
    for (name, plan) in super::plans(available()) {
        for (log_n, r, p) in [(1, 1, 1), (4, 1, 1), (6, 3, 2), (7, 8, 1), (5, 8, 5), (9, 2, 3), (3, 17, 1)] {
            let params = Params { log_n, r, p };
            let expected = inputs().map(|input| theirs(&params, &input));
            for count in 1..=inputs().len() {
                let ours = digests(&params, &plan, &mut arena, &inputs()[..count]).unwrap();
                assert_eq!(ours, expected[..count], "{params:?}, {count} at a time by {name}");
            }
        }
    }
}

#[test]
fn impossible_costs_are_known() {
    let possible = |log_n, r, p| Params { log_n, r, p }.is_possible();
    assert!(
        possible(1, 1, 1)
            && possible(14, 8, 1)
            && possible(17, 8, 1)
            && possible(16, 8, 8)
            && possible(15, 1, 1)
            && possible(18, 2, 8)
            && possible(1, 1, 32_768)
    );
    for (log_n, r, p) in
        [(0, 8, 1), (14, 0, 1), (16, 1, 1), (20, 8, 1), (16, 8, 9), (64, 8, 1), (1, 1, 32_769), (1, u32::MAX, u32::MAX)]
    {
        assert!(!possible(log_n, r, p), "{log_n} {r} {p}");
    }
}
