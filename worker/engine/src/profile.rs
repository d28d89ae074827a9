//! Measures this processor: every width and every kind of code is tried with known answers and timed, once.

mod argon2;
mod bcrypt;
mod lanes;
mod timing;

pub use timing::processor_time;

use crate::argon2::Compressor;
use crate::plan::Plan;
use crate::stored::Method;
use crate::widths::{Learned, Widths};
use crate::{pbkdf2, scrypt};

/// The result of the measurement.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Of bcrypt.
    pub bcrypt: Widths,
    /// The fastest code for argon2 that was right.
    pub compressor: Compressor,
    /// Of argon2, with the memory that was asked for.
    pub argon2: Widths,
    /// Of PBKDF2.
    pub pbkdf2: Plan<pbkdf2::Code>,
    /// Of scrypt.
    pub scrypt: Plan<scrypt::Code>,
    /// Code that gave wrong answers and is not used.
    pub wrong: Vec<String>,
    /// Whether the system gave huge pages for the memory of argon2; `None` where that is not known.
    pub huge_pages: Option<bool>,
}

impl Profile {
    /// Tries everything, argon2 with so much memory and in room for so many blocks. Takes some tenths of a second of processor time.
    pub fn measure(memory_kib: u32, room: usize) -> Self {
        let mut wrong = Vec::new();
        let bcrypt = bcrypt::widths(&mut wrong);
        let argon2::Measured { compressor, widths: argon2, huge_pages } = argon2::measure(memory_kib, room, &mut wrong);
        let pbkdf2 = lanes::pbkdf2_plan(&mut wrong);
        let scrypt = lanes::scrypt_plan(&mut wrong);
        Self { bcrypt, compressor, argon2, pbkdf2, scrypt, wrong, huge_pages }
    }

    /// How many of a method are fastest together in a room of so many blocks; 0 where it cannot be done.
    pub fn width(&self, method: Method, room: usize) -> usize {
        match method {
            Method::Bcrypt { .. } => self.bcrypt.best(),
            Method::Argon2(params) => self.argon2.best_of((room / params.blocks()).max(1)),
            Method::Pbkdf2(params) => self.pbkdf2.width(usize::MAX, params.blocks as usize),
            Method::Scrypt(params) => {
                self.scrypt.width(params.most_lanes(room), params.p as usize).min(params.most_hashes(room))
            }
        }
    }

    /// What its real batches are compared with; `None` for what is made of lanes, whose number says enough.
    pub fn expected(&self, method: Method, room: usize) -> Option<Learned> {
        match method {
            Method::Bcrypt { .. } => Some(Learned::new(&self.bcrypt, crate::bcrypt::WIDEST)),
            Method::Argon2(params) => Some(Learned::new(&self.argon2, room / params.blocks())),
            Method::Pbkdf2(_) | Method::Scrypt(_) => None,
        }
    }

    /// The time of one of a method that is made of lanes in a full batch, of its time in a batch of `width`.
    pub fn ratio_of_lanes(&self, method: Method, room: usize, width: usize) -> f64 {
        let full = self.width(method, room);
        match method {
            Method::Pbkdf2(params) => self.pbkdf2.ratio(usize::MAX, params.blocks as usize, full, width),
            Method::Scrypt(params) => self.scrypt.ratio(params.most_lanes(room), params.p as usize, full, width),
            Method::Bcrypt { .. } | Method::Argon2(_) => 1.0,
        }
    }
}

/// The shortest of so many times counts: what disturbs makes them longer.
const TIMES: usize = 4;

/// Of some passwords with their salts, all at a time; `None` where they cannot be done.
type Digests = Option<Vec<Vec<u8>>>;

#[cfg(test)]
mod tests;
