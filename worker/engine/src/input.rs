//! The input of one hash.

/// What a digest is made from, except for the cost, which calls that are hashed together share.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Any bytes.
    pub password: &'a [u8],
    /// Any bytes, of a length that the method takes.
    pub salt: &'a [u8],
    /// How long the digest shall be.
    pub digest_bytes: usize,
}
