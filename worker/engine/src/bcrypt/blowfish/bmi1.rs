//! Rounds in assembler; compiled rounds are longer by half. BEXTR takes a byte without changing the
//! half. A round needs two registers beside its halves, and all else is a memory operand. The
//! processor interleaves the ciphers.

use std::arch::asm;
use std::mem::offset_of;

use super::{Cipher, Halves, begin, end};

/// Offset of a part of the n-th cipher from the first cipher.
const fn at(n: usize, part: usize) -> usize {
    n * size_of::<Cipher>() + part
}

/// Sixteen rounds.
#[inline]
#[target_feature(enable = "bmi1")]
pub fn encrypt<const WIDTH: usize>(ciphers: &[Cipher; WIDTH], halves: &mut Halves<WIDTH>) {
    begin(ciphers, halves);
    let [left, right] = halves;
    sixteen_times!({
        if I.is_multiple_of(2) {
            round::<WIDTH, { I + 1 }>(ciphers, left, right);
        } else {
            round::<WIDTH, { I + 1 }>(ciphers, right, left);
        }
    });
    end(ciphers, halves);
}

/// One round of all ciphers.
#[inline]
#[target_feature(enable = "bmi1")]
fn round<const WIDTH: usize, const SUBKEY: usize>(
    ciphers: &[Cipher; WIDTH],
    half: &[u32; WIDTH],
    other: &mut [u32; WIDTH],
) {
    macro_rules! each {
        ($($n:literal)+) => {
            $(if $n < WIDTH { other[$n % WIDTH] = mixed::<WIDTH, $n, SUBKEY>(ciphers, half[$n % WIDTH], other[$n % WIDTH]); })+
        };
    }
    each!(0 1 2 3 4 5 6 7);
}

/// The other half of the n-th cipher, mixed with a subkey and this half's round function.
#[inline]
#[target_feature(enable = "bmi1")]
fn mixed<const WIDTH: usize, const N: usize, const SUBKEY: usize>(
    ciphers: &[Cipher; WIDTH],
    half: u32,
    mut other: u32,
) -> u32 {
    const { assert!(SUBKEY < 18) };
    assert!(N < WIDTH, "one of the ciphers");
    // SAFETY: it reads words of the n-th cipher: a subkey, and from each box a word by a byte
    // index.
    unsafe {
        asm!(
            "mov {a:e}, {half:e}",
            "xor {other:e}, dword ptr [{ciphers} + {subkey}]",
            "shr {a:e}, 24",
            "bextr {b:e}, {half:e}, {second_byte:e}",
            "mov {a:e}, dword ptr [{ciphers} + 4*{a} + {first}]",
            "add {a:e}, dword ptr [{ciphers} + 4*{b} + {second}]",
            "bextr {b:e}, {half:e}, {third_byte:e}",
            "xor {a:e}, dword ptr [{ciphers} + 4*{b} + {third}]",
            "movzx {b:e}, {half:l}",
            "add {a:e}, dword ptr [{ciphers} + 4*{b} + {fourth}]",
            "xor {other:e}, {a:e}",
            ciphers = in(reg) ciphers.as_ptr(),
            half = in(reg) half,
            other = inout(reg) other,
            a = out(reg) _,
            b = out(reg) _,
            // Number of bits, and the first of them.
            second_byte = in(reg) 0x0810,
            third_byte = in(reg) 0x0808,
            subkey = const at(N, offset_of!(Cipher, subkeys) + 4 * SUBKEY),
            first = const at(N, 0),
            second = const at(N, 1_024),
            third = const at(N, 2_048),
            fourth = const at(N, 3_072),
            options(pure, readonly, nostack),
        );
    }
    other
}
