//! BLAKE2b up to 64 bytes, and argon2's hash of any length, H' (RFC 9106, section 3.3).

use blake2::Blake2bVarCore;
use blake2::digest::block_api::{UpdateCore, VariableOutputCore};
use blake2::digest::block_buffer::LazyBuffer;
use zeroize::Zeroizing;

/// BLAKE2b of the parts, one after the other.
///
/// # Panics
/// When the digest is empty or longer than 64 bytes.
pub fn blake2b(parts: &[&[u8]], digest: &mut [u8]) {
    let mut state = Blake2bVarCore::new(digest.len()).expect("1 to 64 bytes");
    let mut buffer = LazyBuffer::default();
    for part in parts {
        buffer.digest_blocks(part, |blocks| state.update_blocks(blocks));
    }
    let mut longest = Default::default();
    state.finalize_variable_core(&mut buffer, &mut longest);
    digest.copy_from_slice(&longest[..digest.len()]);
}

/// H': chained digests of 64 bytes, of which all but the last give half.
pub fn long_hash(parts: &[&[u8]], digest: &mut [u8]) {
    let length = u32::try_from(digest.len()).expect("less than 4 GiB").to_le_bytes();
    let parts: Vec<&[u8]> = std::iter::once(&length[..]).chain(parts.iter().copied()).collect();
    if digest.len() <= 64 {
        return blake2b(&parts, digest);
    }
    let mut link = Zeroizing::new([0; 64]);
    blake2b(&parts, &mut *link);
    let mut rest = digest;
    loop {
        let (half, others) = rest.split_at_mut(32);
        half.copy_from_slice(&link[..32]);
        rest = others;
        let previous = link.clone();
        if rest.len() <= 64 {
            return blake2b(&[&*previous], rest);
        }
        blake2b(&[&*previous], &mut *link);
    }
}
