//! Rounds in assembler, which a compiler makes longer by half: BEXTR takes a byte and leaves the half as it is, two registers are all that a
//! round needs beside its halves, and everything else is read where it is. In which order the ciphers come is left to the processor.

use std::arch::asm;
use std::mem::offset_of;

use super::{Cipher, Halves, begin, end};

/// Where a part of the n-th cipher is from the first one on.
const fn at(n: usize, part: usize) -> usize {
    n * size_of::<Cipher>() + part
}

/// Sixteen rounds.
#[inline]
#[target_feature(enable = "bmi1")]
pub fn encrypt<const WIDTH: usize>(ciphers: &[Cipher; WIDTH], halves: &mut Halves<WIDTH>) {
    begin(ciphers, halves);
    two_rounds::<WIDTH, 1, 2>(ciphers, halves);
    two_rounds::<WIDTH, 3, 4>(ciphers, halves);
    two_rounds::<WIDTH, 5, 6>(ciphers, halves);
    two_rounds::<WIDTH, 7, 8>(ciphers, halves);
    two_rounds::<WIDTH, 9, 10>(ciphers, halves);
    two_rounds::<WIDTH, 11, 12>(ciphers, halves);
    two_rounds::<WIDTH, 13, 14>(ciphers, halves);
    two_rounds::<WIDTH, 15, 16>(ciphers, halves);
    end(ciphers, halves);
}

/// With these two subkeys.
#[inline]
#[target_feature(enable = "bmi1")]
fn two_rounds<const WIDTH: usize, const FIRST: usize, const SECOND: usize>(
    ciphers: &[Cipher; WIDTH],
    [left, right]: &mut Halves<WIDTH>,
) {
    macro_rules! each {
        ($($n:literal)+) => {
            $(if $n < WIDTH { right[$n % WIDTH] = round::<WIDTH, $n, FIRST>(ciphers, left[$n % WIDTH], right[$n % WIDTH]); })+
            $(if $n < WIDTH { left[$n % WIDTH] = round::<WIDTH, $n, SECOND>(ciphers, right[$n % WIDTH], left[$n % WIDTH]); })+
        };
    }
    each!(0 1 2 3 4 5 6 7);
}

/// The other half of the n-th cipher, mixed with a subkey and with what the boxes make of this half.
#[inline]
#[target_feature(enable = "bmi1")]
fn round<const WIDTH: usize, const N: usize, const SUBKEY: usize>(
    ciphers: &[Cipher; WIDTH],
    half: u32,
    mut other: u32,
) -> u32 {
    const { assert!(SUBKEY < 18) };
    assert!(N < WIDTH, "one of the ciphers");
    // SAFETY: it reads words of the n-th cipher alone: a subkey, and of each box one that a byte chooses.
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
            // How many bits, and from which on.
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
