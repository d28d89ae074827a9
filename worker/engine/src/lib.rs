//! Hashes several passwords at a time in one thread: bcrypt and argon2.

pub mod argon2;
pub mod bcrypt;
pub mod calls;
pub mod profile;
pub mod stored;
pub mod threads;

#[cfg(feature = "addon")]
mod addon;
