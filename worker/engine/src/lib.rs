//! Hashes several passwords at a time in one thread: bcrypt, argon2, PBKDF2 and scrypt.

/// Defines functions on `Vector`s with a common attribute: the processor features that they use.
macro_rules! functions {
    // Recursive, because a repetition cannot repeat the attribute.
    (#$attribute:tt) => {};
    (
        #$attribute:tt
        $(#[$docs:meta])*
        $name:ident $(<$($constant:ident),+>)? ($($argument:ident),+) = $body:expr;
        $($others:tt)*
    ) => {
        $(#[$docs])*
        #[inline]
        #$attribute
        fn $name $(<$(const $constant: i32),+>)? ($($argument: Vector),+) -> Vector {
            $body
        }
        functions! { #$attribute $($others)* }
    };
}

/// Repeats the block with the constant `I` from 0 to 15. The compiler does not unroll so long a
/// loop, and would index memory in place of registers.
macro_rules! sixteen_times {
    ($block:block) => {
        sixteen_times!($block 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($block:block $($i:literal)+) => {$({
        const I: usize = $i;
        $block
    })+};
}

/// The expression with the constant `WIDTH`, of which there are these.
macro_rules! for_width {
    ($width:expr, $value:expr, $($literal:literal)+) => {
        match $width {
            $($literal => {
                const WIDTH: usize = $literal;
                $value
            })+
            other => panic!("no code for {other} at a time"),
        }
    };
}

pub mod argon2;
pub mod bcrypt;
pub mod pbkdf2;
pub mod scrypt;
mod sha256;

pub mod plan;
pub mod profile;
pub mod stored;
pub mod widths;

pub mod calls;
pub mod threads;

pub mod arena;
mod block;
mod system;

#[cfg(all(feature = "addon", not(test)))]
mod addon;

/// The input of one digest. Its cost is common to the batch.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Any bytes.
    pub password: &'a [u8],
    /// Any bytes, of a length that the method takes.
    pub salt: &'a [u8],
    /// How long the digest shall be.
    pub digest_bytes: usize,
}

/// The digests of a batch, one for each input.
pub type Digests = Vec<Vec<u8>>;
