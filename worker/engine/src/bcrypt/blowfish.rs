//! Blowfish as bcrypt keys it, several independent ciphers side by side.
//!
//! A round is a chain of about ten cycles, because each load needs the result of the load before.
//! It occupies a core for less than three cycles, so that rounds of other ciphers fit in between.
//! The compiler interleaves them: loops over the constant `WIDTH` are unrolled, and an index of
//! eight bits needs no check against 256 words. A round has 16 instructions on x86-64, or 11 to 12
//! in `x86`.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86;

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
use std::arch::asm;

use zeroize::Zeroize;

use super::tables::{BOXES, SUBKEYS};

/// A key or a salt as it is mixed into the subkeys: its bytes over and over, big-endian.
pub type Words = [u32; 18];

/// Code for the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// For every processor.
    Portable,
    /// The fastest on AMD's.
    Bextr,
    /// The fastest on Intel's.
    Shrx,
}

/// The second subkey begins a cache line, so that no pair that is loaded crosses one.
#[derive(Clone)]
#[repr(C, align(64))]
struct Cipher {
    boxes: [[u32; 256]; 4],
    unused: [u32; 15],
    subkeys: [u32; 18],
}

/// Code that this processor can run: alone the portable code, or faster ones.
pub fn available() -> &'static [Kind] {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") {
        return &[Kind::Bextr, Kind::Shrx];
    }
    &[Kind::Portable]
}

/// Ciphers that are keyed and encrypt in step. Wiped when dropped.
pub struct Ciphers<const WIDTH: usize>(Box<[Cipher]>);

/// Both halves of the block that each cipher works on.
pub type Halves<const WIDTH: usize> = [[u32; WIDTH]; 2];

impl<const WIDTH: usize> Ciphers<WIDTH> {
    pub fn new() -> Self {
        let fresh = Cipher { boxes: BOXES, unused: [0; 15], subkeys: SUBKEYS };
        Self(vec![fresh; WIDTH].into_boxed_slice())
    }

    /// ExpandKey of the bcrypt paper without a salt, repeated 2^cost times: nearly all of the time.
    pub fn expand(&mut self, kind: Kind, keys: &[Words; WIDTH]) {
        let mut halves = [[0; WIDTH]; 2];
        self.expand_subkeys(keys, |ciphers| {
            encrypt_apart(ciphers, &mut halves);
            halves
        });
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if kind != Kind::Portable && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") {
            let by_x86 = if kind == Kind::Shrx { Self::expand_by_x86::<true> } else { Self::expand_by_x86::<false> };
            // SAFETY: the processor has just said that it has BMI1 and BMI2.
            return unsafe { by_x86(self, halves) };
        }
        self.expand_portably(halves);
    }

    #[inline(never)]
    fn expand_portably(&mut self, halves: Halves<WIDTH>) {
        // A copy without references elsewhere, or each half would also be kept in memory.
        let mut own = halves;
        self.expand_boxes(|ciphers| {
            encrypt(ciphers, &mut own);
            own
        });
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(never)]
    #[target_feature(enable = "bmi1,bmi2")]
    fn expand_by_x86<const SHRX: bool>(&mut self, halves: Halves<WIDTH>) {
        let mut own = halves;
        // Intel's slots are few: more ciphers pay once they fit into the registers.
        if WIDTH <= 5 || !SHRX {
            return self.expand_boxes(|ciphers| {
                x86::encrypt::<WIDTH, SHRX>(ciphers, &mut own);
                own
            });
        }
        let mut blocks = std::array::from_fn(|n| u64::from(own[1][n]) << 32 | u64::from(own[0][n]));
        self.expand_boxes(|ciphers| {
            x86::encrypt_packed(ciphers, &mut blocks);
            [blocks.map(|block| block as u32), blocks.map(|block| (block >> 32) as u32)]
        });
    }

    /// ExpandKey with a salt: its next two words are mixed into each block before encryption.
    pub fn expand_salted(&mut self, keys: &[Words; WIDTH], salts: &[Words; WIDTH]) {
        let mut halves = [[0; WIDTH]; 2];
        let mut next = 0;
        let mut encrypt_salted = |ciphers: &[Cipher; WIDTH]| {
            for n in 0..WIDTH {
                halves[0][n] ^= salts[n][next];
                halves[1][n] ^= salts[n][next + 1];
            }
            next = (next + 2) % 4;
            encrypt_apart(ciphers, &mut halves);
            halves
        };
        self.expand_subkeys(keys, &mut encrypt_salted);
        self.expand_boxes(encrypt_salted);
    }

    /// Encrypts one block with each cipher.
    pub fn encrypt(&self, halves: &mut Halves<WIDTH>) {
        encrypt_apart((&*self.0).try_into().expect("as many as were made"), halves);
    }

    fn expand_subkeys(&mut self, keys: &[Words; WIDTH], mut next: impl FnMut(&[Cipher; WIDTH]) -> Halves<WIDTH>) {
        let ciphers = self.array_mut();
        for (cipher, key) in ciphers.iter_mut().zip(keys) {
            for (subkey, word) in cipher.subkeys.iter_mut().zip(key) {
                *subkey ^= word;
            }
        }
        for i in (0..18).step_by(2) {
            let [left, right] = next(ciphers);
            for n in 0..WIDTH {
                ciphers[n].subkeys[i] = left[n];
                ciphers[n].subkeys[i + 1] = right[n];
            }
        }
    }

    #[inline(always)]
    fn expand_boxes(&mut self, mut next: impl FnMut(&[Cipher; WIDTH]) -> Halves<WIDTH>) {
        let ciphers = self.array_mut();
        for b in 0..4 {
            for i in (0..256).step_by(2) {
                let [left, right] = next(ciphers);
                for n in 0..WIDTH {
                    ciphers[n].boxes[b][i] = left[n];
                    ciphers[n].boxes[b][i + 1] = right[n];
                }
            }
        }
    }

    fn array_mut(&mut self) -> &mut [Cipher; WIDTH] {
        (&mut *self.0).try_into().expect("as many as were made")
    }
}

impl<const WIDTH: usize> Drop for Ciphers<WIDTH> {
    fn drop(&mut self) {
        for cipher in &mut self.0 {
            cipher.boxes.zeroize();
            cipher.subkeys.zeroize();
        }
    }
}

/// Not inlined where speed does not matter: the code is long, and slow to compile.
#[inline(never)]
fn encrypt_apart<const WIDTH: usize>(ciphers: &[Cipher; WIDTH], halves: &mut Halves<WIDTH>) {
    encrypt(ciphers, halves);
}

/// Sixteen rounds.
#[inline(always)]
fn encrypt<const WIDTH: usize>(ciphers: &[Cipher; WIDTH], halves: &mut Halves<WIDTH>) {
    begin(ciphers, halves);
    let [left, right] = halves;
    sixteen_times!({
        if I.is_multiple_of(2) { round(ciphers, left, right, I + 1) } else { round(ciphers, right, left, I + 1) }
    });
    end(ciphers, halves);
}

/// Before the rounds.
#[inline(always)]
fn begin<const WIDTH: usize>(ciphers: &[Cipher; WIDTH], halves: &mut Halves<WIDTH>) {
    for n in 0..WIDTH {
        halves[0][n] ^= ciphers[n].subkeys[0];
    }
}

/// After the rounds.
#[inline(always)]
fn end<const WIDTH: usize>(ciphers: &[Cipher; WIDTH], [left, right]: &mut Halves<WIDTH>) {
    for n in 0..WIDTH {
        let last = right[n] ^ ciphers[n].subkeys[17];
        right[n] = left[n];
        left[n] = last;
    }
}

/// The subkey is mixed into the other half, which keeps it off the chain.
#[inline(always)]
fn round<const WIDTH: usize>(ciphers: &[Cipher; WIDTH], half: &[u32; WIDTH], other: &mut [u32; WIDTH], subkey: usize) {
    for n in 0..WIDTH {
        other[n] = grouped::<WIDTH>(other[n] ^ ciphers[n].subkeys[subkey]);
        other[n] ^= ciphers[n].chosen(half[n]);
    }
}

/// Hides an exclusive or from the compiler, which would mix the subkey into the result of the round
/// function, on the chain: a cycle of eleven. More than four ciphers wait for execution ports and
/// not for their chains, and are faster if the compiler may choose.
#[inline(always)]
fn grouped<const WIDTH: usize>(half: u32) -> u32 {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    if WIDTH <= 4 {
        let mut hidden = u64::from(half);
        // SAFETY: there is no instruction in it, and the register stays as it is.
        unsafe { asm!("/* {0} */", inout(reg) hidden, options(pure, nomem, nostack, preserves_flags)) };
        return hidden as u32;
    }
    half
}

impl Cipher {
    #[inline(always)]
    fn chosen(&self, half: u32) -> u32 {
        let [first, second, third, fourth] = &self.boxes;
        // By shifts: the bytes of `to_be_bytes` cost a swap that the whole chain would wait for.
        let a = first[(half >> 24) as usize];
        let b = second[usize::from((half >> 16) as u8)];
        let c = third[usize::from((half >> 8) as u8)];
        let d = fourth[usize::from(half as u8)];
        (a.wrapping_add(b) ^ c).wrapping_add(d)
    }
}
