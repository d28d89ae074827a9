//! Rounds in assembler; compiled rounds are longer by half. All but halves and a few registers is a
//! memory operand. The processor interleaves the ciphers.
//!
//! BEXTR takes a byte without changing the half. AMD's processors do that in one slot, Intel's
//! Golden Cove in two, once a cycle. There SHRX, RORX, PEXT and MOVZX take one slot each. MOVZX of
//! al to dl or r8b to r11b into another register takes no time. SHRX takes three cycles if a 64-bit
//! instruction wrote its count.

use std::arch::asm;
use std::mem::offset_of;

use super::{Cipher, Halves, begin, end};

/// Offset of a part of the n-th cipher from the first cipher.
const fn at(n: usize, part: usize) -> usize {
    n * size_of::<Cipher>() + part
}

const fn subkey(n: usize, subkey: usize) -> usize {
    assert!(subkey < 18);
    at(n, offset_of!(Cipher, subkeys) + 4 * subkey)
}

/// Assembler for the n-th cipher, with its boxes at `first` to `fourth`.
macro_rules! of_cipher {
    ($n:ident of $ciphers:ident: [$($line:literal)+] $($operands:tt)+) => {{
        assert!($n < WIDTH, "one of the ciphers");
        // SAFETY: it reads words of the n-th cipher: subkeys, and from each box a word by a byte
        // index.
        unsafe {
            asm!(
                $($line,)+
                ciphers = in(reg) $ciphers.as_ptr(),
                first = const at($n, 0), second = const at($n, 1_024),
                third = const at($n, 2_048), fourth = const at($n, 3_072),
                $($operands)+
                options(pure, readonly, nostack),
            );
        }
    }};
}

/// Repeats the block with the number `N` of each cipher.
macro_rules! each {
    ($block:block) => { each!($block 0 1 2 3 4 5 6 7 8 9) };
    ($block:block $($n:literal)+) => {$(if $n < WIDTH {
        const N: usize = $n;
        $block
    })+};
}

/// Sixteen rounds with a register for each half, as far as there are registers.
#[inline]
#[target_feature(enable = "bmi1,bmi2")]
pub fn encrypt<const WIDTH: usize, const SHRX: bool>(ciphers: &[Cipher; WIDTH], halves: &mut Halves<WIDTH>) {
    begin(ciphers, halves);
    let [left, right] = halves;
    sixteen_times!({
        let (half, other) = if I.is_multiple_of(2) { (&*left, &mut *right) } else { (&*right, &mut *left) };
        each!({ other[N % WIDTH] = round::<WIDTH, N, { I + 1 }, SHRX>(ciphers, half[N % WIDTH], other[N % WIDTH]) });
    });
    end(ciphers, halves);
}

/// The other half of the n-th cipher, mixed with a subkey and this half's round function.
#[inline]
#[target_feature(enable = "bmi1,bmi2")]
fn round<const WIDTH: usize, const N: usize, const SUBKEY: usize, const SHRX: bool>(
    ciphers: &[Cipher; WIDTH],
    half: u32,
    mut other: u32,
) -> u32 {
    if SHRX {
        of_cipher!(N of ciphers: [
            "xor {other:e}, dword ptr [{ciphers} + {subkey}]"
            "shrx {a:e}, {half:e}, {by_24:e}"
            "mov {a:e}, dword ptr [{ciphers} + 4*{a} + {first}]"
            "rorx {b:e}, {half:e}, 16"
            "movzx {c:e}, {b:l}"
            "add {a:e}, dword ptr [{ciphers} + 4*{c} + {second}]"
            "rorx {b:e}, {half:e}, 8"
            "movzx {c:e}, {b:l}"
            "xor {a:e}, dword ptr [{ciphers} + 4*{c} + {third}]"
            "movzx {b:e}, {half:l}"
            "add {a:e}, dword ptr [{ciphers} + 4*{b} + {fourth}]"
            "xor {other:e}, {a:e}"
        ] half = in(reg) half, other = inout(reg) other, subkey = const subkey(N, SUBKEY),
            a = out(reg) _, b = out(reg_abcd) _, c = out(reg) _, by_24 = in(reg) 24,);
    } else {
        of_cipher!(N of ciphers: [
            "mov {a:e}, {half:e}"
            "xor {other:e}, dword ptr [{ciphers} + {subkey}]"
            "shr {a:e}, 24"
            "bextr {b:e}, {half:e}, {second_byte:e}"
            "mov {a:e}, dword ptr [{ciphers} + 4*{a} + {first}]"
            "add {a:e}, dword ptr [{ciphers} + 4*{b} + {second}]"
            "bextr {b:e}, {half:e}, {third_byte:e}"
            "xor {a:e}, dword ptr [{ciphers} + 4*{b} + {third}]"
            "movzx {b:e}, {half:l}"
            "add {a:e}, dword ptr [{ciphers} + 4*{b} + {fourth}]"
            "xor {other:e}, {a:e}"
        ] half = in(reg) half, other = inout(reg) other, subkey = const subkey(N, SUBKEY), a = out(reg) _, b = out(reg) _,
            // Number of bits, and the first of them.
            second_byte = in(reg) 0x0810, third_byte = in(reg) 0x0808,);
    }
    other
}

/// The same for Intel with both halves in one register. The half that is read is the lower.
#[inline]
#[target_feature(enable = "bmi1,bmi2")]
pub fn encrypt_packed<const WIDTH: usize>(ciphers: &[Cipher; WIDTH], blocks: &mut [u64; WIDTH]) {
    for n in 0..WIDTH {
        blocks[n] ^= u64::from(ciphers[n].subkeys[0]);
    }
    sixteen_times!({
        each!({ blocks[N % WIDTH] = packed_round::<WIDTH, N, { I + 1 }>(ciphers, blocks[N % WIDTH]) });
    });
    for n in 0..WIDTH {
        blocks[n] = blocks[n].rotate_left(32) ^ u64::from(ciphers[n].subkeys[17]);
    }
}

/// A round of the n-th cipher, after which its halves have changed places.
#[inline]
#[target_feature(enable = "bmi1,bmi2")]
fn packed_round<const WIDTH: usize, const N: usize, const SUBKEY: usize>(
    ciphers: &[Cipher; WIDTH],
    mut block: u64,
) -> u64 {
    macro_rules! round {
        ($($mix:literal)?) => {
            of_cipher!(N of ciphers: [
                "rorx {a:e}, {block:e}, 16"
                "movzx {b:e}, {a:l}"
                "shrx {a:e}, {block:e}, {by_24:e}"
                "mov {a:e}, dword ptr [{ciphers} + 4*{a} + {first}]"
                "add {a:e}, dword ptr [{ciphers} + 4*{b} + {second}]"
                "pext {b:e}, {block:e}, {third_byte:e}"
                "xor {a:e}, dword ptr [{ciphers} + 4*{b} + {third}]"
                "movzx {b:e}, {block:l}"
                "add {a:e}, dword ptr [{ciphers} + 4*{b} + {fourth}]"
                "ror {block}, 32"
                $($mix)?
                "xor {block}, {a}"
            ] block = inout(reg) block, a = out(reg_abcd) _, b = out(reg) _, by_24 = in(reg) 24, third_byte = in(reg) 0xff00,
                $(subkeys = const { let _ = $mix; subkey(N, SUBKEY) },)?)
        };
    }
    // One load for this round and the next one.
    if SUBKEY % 2 == 1 {
        round!("xor {block}, qword ptr [{ciphers} + {subkeys}]")
    } else {
        round!()
    }
    block
}
