//! Calls: a password to hash or to verify, done together with others of the same method.

use std::panic::{AssertUnwindSafe, catch_unwind};

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use crate::arena::{Arena, OutOfMemory};
use crate::profile::Profile;
use crate::stored::{Method, Stored};
use crate::{Input, argon2, bcrypt, pbkdf2, scrypt};

/// A call. Its password is wiped with it.
pub struct Call {
    /// Unique among the calls of an engine.
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
    /// The reason.
    Failed(&'static str),
}

/// Performs calls of one method together. A panic fails them all.
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

/// Overwrites the stack below the caller: the compiler spills keys and states of hash functions
/// there, which no variable names.
#[inline(never)]
fn wipe_stack() {
    let mut below = [0_u8; STACK_BYTES];
    below.zeroize();
}

fn outcomes(calls: &[Call], profile: &Profile, arena: &mut Arena) -> Vec<Outcome> {
    let Some(first) = calls.first() else { return Vec::new() };
    let inputs: Vec<_> = calls.iter().map(Call::input).collect();
    let digests = match first.stored.method {
        Method::Bcrypt { cost } => Ok(bcrypt::digests(profile.bcrypt_kind, cost, &inputs)),
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

fn outcome(stored: &Stored, digest: &[u8]) -> Outcome {
    match &stored.digest {
        Some(expected) => Outcome::Verified(bool::from(digest.ct_eq(expected))),
        None => Outcome::Hashed(stored.with_digest(digest)),
    }
}
