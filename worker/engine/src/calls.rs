//! Calls: a password to hash or to verify, done together with others of the same method.

use std::panic::{AssertUnwindSafe, catch_unwind};

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use crate::arena::{Arena, OutOfMemory};
use crate::input::Input;
use crate::profile::Profile;
use crate::stored::{Method, Stored};
use crate::{argon2, bcrypt, pbkdf2, scrypt};

/// A call. Its password is wiped with it.
pub struct Call {
    /// By which it can be told from the others.
    pub id: u32,
    /// Any bytes.
    pub password: Zeroizing<Vec<u8>>,
    /// With a digest to verify, without one to hash.
    pub stored: Stored,
}

impl Call {
    fn input(&self) -> Input<'_> {
        Input { password: &self.password, salt: &self.stored.salt, digest_bytes: self.stored.digest_bytes() }
    }
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Whether the password is the one of the stored hash.
    Verified(bool),
    /// A new stored hash.
    Hashed(String),
    /// It could not be done, and why.
    Failed(&'static str),
}

/// Does all of these calls, which have one method in common. A panic is an outcome, too.
pub fn perform(calls: &[Call], profile: &Profile, arena: &mut Arena) -> Vec<(u32, Outcome)> {
    arena.prepare(calls.first().map_or(0, |first| first.stored.method.memory_blocks(arena.room()) * calls.len()));
    let outcomes = catch_unwind(AssertUnwindSafe(|| outcomes(calls, profile, arena))).unwrap_or_else(|_| {
        // A panic's unfinished memory is wiped with the rest.
        arena.give_back();
        vec![Outcome::Failed("the engine failed"); calls.len()]
    });
    wipe_stack();
    calls.iter().map(|call| call.id).zip(outcomes).collect()
}

/// More than any code here takes.
const STACK_BYTES: usize = 64 * 1_024;

/// Overwrites what has been on the stack below the caller: states of hash functions, keys and words that are in no variable that could be
/// wiped, because the compiler put them there.
#[inline(never)]
fn wipe_stack() {
    let mut below = [0_u8; STACK_BYTES];
    below.zeroize();
}

fn outcomes(calls: &[Call], profile: &Profile, arena: &mut Arena) -> Vec<Outcome> {
    let Some(first) = calls.first() else { return Vec::new() };
    let inputs: Vec<_> = calls.iter().map(Call::input).collect();
    let digests = match first.stored.method {
        Method::Bcrypt { cost } => Ok(bcrypt_digests(cost, &inputs)),
        Method::Argon2(params) => argon2::digests(&params, profile.compressor, arena, &inputs),
        Method::Pbkdf2(params) => Ok(pbkdf2::digests(&params, &profile.pbkdf2, &inputs)),
        Method::Scrypt(params) => scrypt::digests(&params, &profile.scrypt, arena, &inputs),
    };
    match digests {
        Err(OutOfMemory) => vec![Outcome::Failed("there is not so much memory"); calls.len()],
        Ok(digests) => {
            let digests = digests.into_iter().map(Zeroizing::new);
            calls.iter().zip(digests).map(|(call, digest)| outcome(&call.stored, &digest)).collect()
        }
    }
}

fn bcrypt_digests(cost: u32, inputs: &[Input<'_>]) -> Vec<Vec<u8>> {
    let inputs: Vec<_> = inputs
        .iter()
        .map(|input| bcrypt::Input {
            password: input.password,
            salt: input.salt.try_into().expect("16 bytes, as parsed"),
        })
        .collect();
    bcrypt::digests(cost, &inputs).iter().map(|digest| digest.to_vec()).collect()
}

fn outcome(stored: &Stored, digest: &[u8]) -> Outcome {
    match &stored.digest {
        Some(expected) => Outcome::Verified(bool::from(digest.ct_eq(expected))),
        None => Outcome::Hashed(stored.with_digest(digest)),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
