//! SHA-256 (FIPS 180-4), and HMAC with it (RFC 2104).

pub mod lanes;
#[cfg(target_arch = "x86_64")]
pub mod sha_ni;

use zeroize::{Zeroize, Zeroizing};

pub type State = [u32; 8];

const BLOCK_BYTES: usize = 64;

const START: State =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The constants of the rounds.
#[rustfmt::skip]
pub static K: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// Absorbs the parts and the padding. The state has absorbed `blocks_before` blocks.
fn absorb(mut state: State, blocks_before: usize, parts: &[&[u8]]) -> State {
    let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
    let padded = (bytes + 1 + size_of::<u64>()).next_multiple_of(BLOCK_BYTES);
    let mut message = Zeroizing::new(Vec::with_capacity(padded));
    parts.iter().for_each(|part| message.extend_from_slice(part));
    message.push(0x80);
    message.resize(padded - size_of::<u64>(), 0);
    message.extend_from_slice(&(8 * (blocks_before * BLOCK_BYTES + bytes) as u64).to_be_bytes());
    for block in message.chunks_exact(BLOCK_BYTES) {
        state = compress_bytes(&state, block.try_into().expect("a whole block"));
    }
    state
}

fn compress_bytes(state: &State, block: &[u8; BLOCK_BYTES]) -> State {
    let mut words = Zeroizing::new([0; 16]);
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes(bytes.try_into().expect("four bytes"));
    }
    lanes::one::compress(state, &mut words)
}

/// HMAC's states after the padded key, where all messages under this key begin.
#[derive(Clone, Copy)]
pub struct Key {
    pub inner: State,
    pub outer: State,
}

impl Key {
    pub fn new(key: &[u8]) -> Self {
        let mut padded = Zeroizing::new([0; BLOCK_BYTES]);
        if key.len() > BLOCK_BYTES {
            padded[..32].copy_from_slice(&*Zeroizing::new(bytes_of(&absorb(START, 0, &[key]))));
        } else {
            padded[..key.len()].copy_from_slice(key);
        }
        let state_after = |pad: u8| compress_bytes(&START, &Zeroizing::new(padded.map(|byte| byte ^ pad)));
        Self { inner: state_after(0x36), outer: state_after(0x5c) }
    }

    /// The HMAC of a message in parts.
    pub fn authenticate(&self, parts: &[&[u8]]) -> State {
        let inner = Zeroizing::new(bytes_of(&absorb(self.inner, 1, parts)));
        absorb(self.outer, 1, &[&*inner])
    }
}

impl Zeroize for Key {
    fn zeroize(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}

/// A state as a digest is written.
pub fn bytes_of(state: &State) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}
