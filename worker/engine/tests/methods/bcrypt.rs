//! Compared with another implementation.

use spillway_engine::Input;
use spillway_engine::bcrypt::{DIGEST_BYTES, Kind, LOWEST_COST, SALT_BYTES, WIDEST, available, digests};

type Salt = [u8; SALT_BYTES];

/// Passwords and salts that differ in every byte, in number and in length.
fn accounts() -> Vec<(Vec<u8>, Salt)> {
    let of =
        |n: usize| ((0..n * 13).map(|i| (i * 7 + n * 31) as u8).collect(), std::array::from_fn(|i| (i * 29 + n) as u8));
    (0..WIDEST).map(of).collect()
}

#[test]
fn every_width_gives_what_another_implementation_gives() {
    let accounts = accounts();
    for width in 1..=WIDEST {
        for cost in LOWEST_COST..6 {
            for first in 0..WIDEST {
                let some: Vec<_> = accounts.iter().cycle().skip(first).take(width).collect();
                let inputs: Vec<_> =
                    some.iter().map(|(password, salt)| Input { password, salt, digest_bytes: DIGEST_BYTES }).collect();
                let expected: Vec<_> = some.iter().map(|(password, salt)| theirs(cost, password, *salt)).collect();
                for kind in [&[Kind::Portable], available()].concat() {
                    assert_eq!(
                        digests(kind, cost, &inputs),
                        expected,
                        "{kind:?}, width {width}, cost {cost}, first {first}"
                    );
                }
            }
        }
    }
}

fn theirs(cost: u32, password: &[u8], salt: Salt) -> Vec<u8> {
    let mut key = password.to_vec();
    key.push(0);
    key.truncate(72);
    ::bcrypt::bcrypt(cost, salt, &key)[..DIGEST_BYTES].to_vec()
}

#[test]
fn a_password_is_read_to_its_72nd_byte_and_a_nul_ends_nothing() {
    let of =
        |password: &[u8]| digests(Kind::Portable, 4, &[Input { password, salt: &[7; 16], digest_bytes: DIGEST_BYTES }]);
    assert_eq!(of(&[b'x'; 72]), of(&[b'x'; 1_024]));
    assert_ne!(of(&[b'x'; 71]), of(&[b'x'; 72]));
    assert_ne!(of(b"a\0b"), of(b"a\0c"));
    // As with every implementation: the NUL that is put behind a password, and where it begins
    // anew.
    assert_eq!(of(b""), of(b"\0"));
}
