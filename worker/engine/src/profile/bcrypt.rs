//! bcrypt: known answers at every width, and its widths.

use super::timing::least_of_each;
use crate::bcrypt::{Digest, Input, WIDEST, digests};
use crate::stored::Stored;
use crate::widths::Widths;

/// From Openwall's crypt_blowfish (wrapper.c), where most implementations took their tests. Cost 5. One for each lane, all different.
const ANSWERS: [(&[u8], &str); 8] = [
    (b"U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"),
    (b"U*U*", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK"),
    (b"U*U*U", "$2a$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a"),
    (b"", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy"),
    (
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789chars after 72 are ignored",
        "$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui",
    ),
    (b"\xff\xff\xa3", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e"),
    (b"\xa3", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.Sa7shbm4.OzKpvFnX1pQLmQW96oUlCq"),
    (b"\xff\xa334\xff\xff\xff\xa3345", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.o./n25XVfn6oAPaUvHe.Csk4zRfsYPi"),
];

/// The widths that were right, with their times.
pub fn widths(wrong: &mut Vec<String>) -> Widths {
    widths_of(|inputs| digests(5, inputs), wrong)
}

fn widths_of(digests: impl Fn(&[Input<'_>]) -> Vec<Digest>, wrong: &mut Vec<String>) -> Widths {
    let took = least_of_each(WIDEST, |width, round| is_right(width, round, &digests));
    if took.len() < WIDEST {
        wrong.push(format!("bcrypt, {} at a time", took.len() + 1));
    }
    Widths::from_batches(&took)
}

/// Every third password is wrong, beginning with another one each round: after three rounds each lane had right ones and a wrong one.
fn is_right(width: usize, round: usize, digests: impl Fn(&[Input<'_>]) -> Vec<Digest>) -> bool {
    let lanes: Vec<_> = (0..width)
        .map(|n| {
            let (password, text) = ANSWERS[(n + round) % ANSWERS.len()];
            let right = (n + round) % 3 != 2;
            let password = if right { password.to_vec() } else { [b"x", password].concat() };
            (password, Stored::parse(text).expect("a known answer"), right)
        })
        .collect();
    let inputs: Vec<_> = lanes
        .iter()
        .map(|(password, stored, _)| Input {
            password,
            salt: stored.salt.as_slice().try_into().expect("16 bytes, as parsed"),
        })
        .collect();
    let digests = digests(&inputs);
    lanes.iter().zip(digests).all(|((_, stored, right), digest)| (stored.digest.as_deref() == Some(&digest)) == *right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::TIMES;

    #[test]
    fn a_flipped_bit_in_any_lane_of_any_width_is_found() {
        for width in 1..=WIDEST {
            for lane in 0..width {
                let flipped = |inputs: &[Input<'_>]| {
                    let mut digests = digests(5, inputs);
                    digests[lane][22] ^= 1;
                    digests
                };
                assert!((0..TIMES).any(|round| !is_right(width, round, flipped)), "lane {lane} of {width}");
            }
        }
    }

    #[test]
    fn widths_that_are_wrong_are_named_and_not_used() {
        let flipped = |inputs: &[Input<'_>]| {
            let mut digests = digests(5, inputs);
            if inputs.len() == 8 {
                digests[7][22] ^= 1;
            }
            digests
        };
        let mut wrong = Vec::new();
        assert!((1..=7).contains(&widths_of(flipped, &mut wrong).best()));
        assert_eq!(wrong, ["bcrypt, 8 at a time"]);
    }
}
