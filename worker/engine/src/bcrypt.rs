//! bcrypt (Provos and Mazières, 1999), several passwords at a time in one thread.

mod blowfish;
mod tables;

use blowfish::{Ciphers, Halves, Words};
use zeroize::Zeroizing;

/// So many at a time there is code for. Each has 4 KiB of tables: more would leave no room in a first-level cache of 48 KiB.
pub const WIDEST: usize = 8;

/// The costs that the format knows begin here.
pub const LOWEST_COST: u32 = 4;
/// Stored hashes may ask for this much: at 2^17 rounds one takes seconds, and nothing takes back what has begun.
pub const HIGHEST_COST: u32 = 17;

/// The password is read to this byte, the rest of a longer one is ignored.
const READ: usize = 72;

/// Passwords are copied with a NUL behind them.
type Salt = [u8; 16];
/// The last byte of the cipher text is left out, as all implementations do since the first one.
pub type Digest = [u8; 23];

/// The input of one hash.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Any bytes, NULs included.
    pub password: &'a [u8],
    /// Sixteen bytes that belong to the account.
    pub salt: &'a Salt,
}

/// Hashes all of them together, at most [`WIDEST`]. Their keys and ciphers are wiped.
///
/// # Panics
/// When there are none or more, or the cost is out of bounds.
pub fn digests(cost: u32, inputs: &[Input<'_>]) -> Vec<Digest> {
    assert!((LOWEST_COST..=HIGHEST_COST).contains(&cost), "a cost of bcrypt");
    match inputs.len() {
        1 => of_width::<1>(cost, inputs),
        2 => of_width::<2>(cost, inputs),
        3 => of_width::<3>(cost, inputs),
        4 => of_width::<4>(cost, inputs),
        5 => of_width::<5>(cost, inputs),
        6 => of_width::<6>(cost, inputs),
        7 => of_width::<7>(cost, inputs),
        8 => of_width::<8>(cost, inputs),
        other => panic!("no code for {other} at a time"),
    }
}

#[inline(never)]
fn of_width<const WIDTH: usize>(cost: u32, inputs: &[Input<'_>]) -> Vec<Digest> {
    let mut keys = Zeroizing::new([[0; 18]; WIDTH]);
    let mut salts = [[0; 18]; WIDTH];
    for ((key, salt), input) in keys.iter_mut().zip(&mut salts).zip(inputs) {
        read_password(input.password, key);
        read_words(input.salt, salt);
    }
    let mut ciphers = Ciphers::<WIDTH>::new();
    ciphers.expand_salted(&keys, &salts);
    for _ in 0..1_u32 << cost {
        ciphers.expand(&keys);
        ciphers.expand(&salts);
    }
    encrypted_magic(&ciphers)
}

/// "OrpheanBeholderScryDoubt", encrypted 64 times.
fn encrypted_magic<const WIDTH: usize>(ciphers: &Ciphers<WIDTH>) -> Vec<Digest> {
    let mut texts = vec![[0; 24]; WIDTH];
    for (i, magic) in b"OrpheanBeholderScryDoubt".chunks_exact(8).enumerate() {
        let [left, right] = [word(&magic[..4]), word(&magic[4..])];
        let mut halves: Halves<WIDTH> = [[left; WIDTH], [right; WIDTH]];
        for _ in 0..64 {
            ciphers.encrypt(&mut halves);
        }
        for (n, text) in texts.iter_mut().enumerate() {
            text[8 * i..][..4].copy_from_slice(&halves[0][n].to_be_bytes());
            text[8 * i + 4..][..4].copy_from_slice(&halves[1][n].to_be_bytes());
        }
    }
    texts.iter().map(|text| text[..23].try_into().expect("23 of 24 bytes")).collect()
}

/// The password to its 72nd byte and a NUL, over and over: the rule of `2b`, of the package `bcrypt` under that name, and of
/// every implementation for passwords of 72 bytes and less. A NUL within counts like any byte.
fn read_password(password: &[u8], words: &mut Words) {
    let mut key = Zeroizing::new([0; READ + 1]);
    let read = password.len().min(READ);
    key[..read].copy_from_slice(&password[..read]);
    read_words(&key[..=read], words);
}

/// Bytes over and over. Written in place, so that no copy of a key is left behind.
fn read_words(bytes: &[u8], words: &mut Words) {
    let mut endless = bytes.iter().cycle();
    for word in words {
        for &byte in endless.by_ref().take(4) {
            *word = *word << 8 | u32::from(byte);
        }
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passwords and salts that differ in every byte, in number and in length.
    fn accounts() -> Vec<(Vec<u8>, Salt)> {
        let of = |n: usize| {
            ((0..n * 13).map(|i| (i * 7 + n * 31) as u8).collect(), std::array::from_fn(|i| (i * 29 + n) as u8))
        };
        (0..WIDEST).map(of).collect()
    }

    #[test]
    fn every_width_gives_what_another_implementation_gives() {
        let accounts = accounts();
        for width in 1..=WIDEST {
            for cost in LOWEST_COST..6 {
                for first in 0..WIDEST {
                    let some: Vec<_> = accounts.iter().cycle().skip(first).take(width).collect();
                    let inputs: Vec<_> = some.iter().map(|(password, salt)| Input { password, salt }).collect();
                    for ((password, salt), digest) in some.iter().zip(digests(cost, &inputs)) {
                        assert_eq!(digest, theirs(cost, password, *salt), "width {width}, cost {cost}, first {first}");
                    }
                }
            }
        }
    }

    fn theirs(cost: u32, password: &[u8], salt: Salt) -> Digest {
        let mut key = password.to_vec();
        key.push(0);
        key.truncate(READ);
        bcrypt::bcrypt(cost, salt, &key)[..23].try_into().unwrap()
    }

    #[test]
    fn a_password_is_read_to_its_72nd_byte_and_a_nul_ends_nothing() {
        let of = |password: &[u8]| digests(4, &[Input { password, salt: &[7; 16] }]);
        assert_eq!(of(&[b'x'; 72]), of(&[b'x'; 1_024]));
        assert_ne!(of(&[b'x'; 71]), of(&[b'x'; 72]));
        assert_ne!(of(b"a\0b"), of(b"a\0c"));
        // As with every implementation: the NUL that is put behind a password, and where it begins anew.
        assert_eq!(of(b""), of(b"\0"));
    }

    #[test]
    fn the_tables_are_the_fraction_of_pi() {
        assert_eq!(tables::SUBKEYS[0], 0x243f_6a88);
        assert_eq!(tables::BOXES[3][255], 0x3ac3_72e6);
    }
}
