//! Calls: a password to hash or to verify, done together with others of the same method.

use std::panic::{AssertUnwindSafe, catch_unwind};

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::profile::Profile;
use crate::stored::{Method, Stored};
use crate::{argon2, bcrypt};

/// A call. Its password is wiped with it.
pub struct Call {
    /// By which it can be told from the others.
    pub id: u32,
    /// Any bytes.
    pub password: Zeroizing<Vec<u8>>,
    /// With a digest to verify, without one to hash.
    pub stored: Stored,
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
pub fn perform(calls: &[Call], profile: &Profile, arena: &mut argon2::Arena) -> Vec<(u32, Outcome)> {
    let outcomes = catch_unwind(AssertUnwindSafe(|| outcomes(calls, profile, arena))).unwrap_or_else(|_| {
        // A panic's unfinished memory is wiped with the rest.
        *arena = argon2::Arena::default();
        vec![Outcome::Failed("the engine failed"); calls.len()]
    });
    calls.iter().map(|call| call.id).zip(outcomes).collect()
}

fn outcomes(calls: &[Call], profile: &Profile, arena: &mut argon2::Arena) -> Vec<Outcome> {
    let Some(first) = calls.first() else { return Vec::new() };
    let digests: Result<Vec<Zeroizing<Vec<u8>>>, &'static str> = match first.stored.method {
        Method::Bcrypt { cost } => {
            let inputs: Vec<_> = calls
                .iter()
                .map(|call| bcrypt::Input {
                    password: &call.password,
                    salt: call.stored.salt.as_slice().try_into().expect("16 bytes, as parsed"),
                })
                .collect();
            Ok(bcrypt::digests(cost, &inputs).iter().map(|digest| Zeroizing::new(digest.to_vec())).collect())
        }
        Method::Argon2(params) => {
            let inputs: Vec<_> = calls
                .iter()
                .map(|call| argon2::Input {
                    password: &call.password,
                    salt: &call.stored.salt,
                    digest_bytes: call.stored.digest_bytes(),
                })
                .collect();
            argon2::digests(&params, profile.compressor, arena, &inputs)
                .map(|digests| digests.into_iter().map(Zeroizing::new).collect())
                .map_err(|argon2::OutOfMemory| "there is not so much memory")
        }
    };
    match digests {
        Err(reason) => vec![Outcome::Failed(reason); calls.len()],
        Ok(digests) => calls.iter().zip(digests).map(|(call, digest)| outcome(&call.stored, &digest)).collect(),
    }
}

fn outcome(stored: &Stored, digest: &[u8]) -> Outcome {
    match &stored.digest {
        Some(expected) => Outcome::Verified(bool::from(digest.ct_eq(expected))),
        None => Outcome::Hashed(stored.with_digest(digest)),
    }
}
