//! Hashes several passwords at a time in one thread: bcrypt, argon2, PBKDF2 and scrypt.

pub mod argon2;
pub mod bcrypt;
pub mod calls;
pub mod pbkdf2;
pub mod plan;
pub mod profile;
pub mod scrypt;
pub mod stored;
pub mod threads;
pub mod widths;

#[cfg(feature = "addon")]
mod allocator;
pub mod arena;
mod block;
pub mod input;
mod sha256;
mod slice;

#[cfg(feature = "addon")]
mod addon;
