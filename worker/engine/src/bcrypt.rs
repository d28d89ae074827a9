//! bcrypt (Provos and Mazières, 1999), several passwords at a time in one thread.

mod blowfish;
mod tables;

use blowfish::{Ciphers, Halves, Words};
pub use blowfish::{Kind, available};
use zeroize::Zeroizing;

use crate::{Digests, Input};

/// The most hashes together. Each has 4 KiB of tables, and a first-level cache has 32 to 48 KiB.
pub const WIDEST: usize = 10;

/// The format's lowest cost.
pub const LOWEST_COST: u32 = 4;
/// The limit for stored hashes: 2^17 rounds take seconds, and a batch cannot be cancelled.
pub const HIGHEST_COST: u32 = 17;

/// The bytes of a password that count; the rest is ignored.
const READ: usize = 72;

/// The length of a salt.
pub const SALT_BYTES: usize = 16;
/// Without the last byte of the cipher text, as in every implementation.
pub const DIGEST_BYTES: usize = 23;

/// Hashes at most [`WIDEST`] passwords together. Keys and ciphers are wiped.
///
/// # Panics
/// With no input, more of them, a cost out of bounds, or a salt of another length.
pub fn digests(kind: Kind, cost: u32, inputs: &[Input<'_>]) -> Digests {
    assert!((LOWEST_COST..=HIGHEST_COST).contains(&cost), "a cost of bcrypt");
    assert!(inputs.iter().all(|input| input.salt.len() == SALT_BYTES), "a salt of bcrypt");
    for_width!(inputs.len(), of_width::<WIDTH>(kind, cost, inputs), 1 2 3 4 5 6 7 8 9 10)
}

#[inline(never)]
fn of_width<const WIDTH: usize>(kind: Kind, cost: u32, inputs: &[Input<'_>]) -> Digests {
    let mut keys = Zeroizing::new([[0; 18]; WIDTH]);
    let mut salts = [[0; 18]; WIDTH];
    for ((key, salt), input) in keys.iter_mut().zip(&mut salts).zip(inputs) {
        read_password(input.password, key);
        read_words(input.salt, salt);
    }
    let mut ciphers = Ciphers::<WIDTH>::new();
    ciphers.expand_salted(&keys, &salts);
    for _ in 0..1_u32 << cost {
        ciphers.expand(kind, &keys);
        ciphers.expand(kind, &salts);
    }
    encrypted_magic(&ciphers)
}

/// "OrpheanBeholderScryDoubt", encrypted 64 times.
fn encrypted_magic<const WIDTH: usize>(ciphers: &Ciphers<WIDTH>) -> Digests {
    let mut texts = vec![vec![0; 24]; WIDTH];
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
    texts.iter_mut().for_each(|text| text.truncate(DIGEST_BYTES));
    texts
}

/// The password to its 72nd byte and a NUL, repeated: the rule of `2b` and of the package `bcrypt`.
/// Every implementation agrees up to 72 bytes. A NUL inside counts like any byte.
fn read_password(password: &[u8], words: &mut Words) {
    let mut key = Zeroizing::new([0; READ + 1]);
    let read = password.len().min(READ);
    key[..read].copy_from_slice(&password[..read]);
    read_words(&key[..=read], words);
}

/// Repeats bytes. Written in place, so that no copy of a key remains.
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
