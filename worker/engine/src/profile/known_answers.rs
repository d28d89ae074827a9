//! Known answers of other implementations, and whether code gives them in every lane.

use crate::stored::{Method, Stored};
use crate::{Digests, Input};

/// From Openwall's crypt_blowfish (wrapper.c). A different one for each lane.
#[rustfmt::skip]
pub const BCRYPT: [(&[u8], &str); 10] = [
    (b"U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"),
    (b"U*U*", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK"),
    (b"U*U*U", "$2a$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a"),
    (b"", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy"),
    (b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789chars after 72 are ignored",
     "$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui"),
    (b"\xff\xff\xa3", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e"),
    (b"\xa3", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.Sa7shbm4.OzKpvFnX1pQLmQW96oUlCq"),
    (b"\xff\xa334\xff\xff\xff\xa3345", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.o./n25XVfn6oAPaUvHe.Csk4zRfsYPi"),
    (&[0xaa; 72], "$2a$05$/OK.fbVrR/bpIqNJ5ianF.swQOIzjOiJ9GHEPuhEkvqrUyvWhEMx6"),
    (b"\xff\xa3345", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.nRht2l/HRhr6zmCp9vYUvvsqynflf9e"),
];

/// Of "password", by the original implementation (test.c): 32 bytes at 256 KiB, two passes.
pub const ARGON2: [&str; 5] = [
    "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
    "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc",
    "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8",
    "$argon2i$v=19$m=256,t=2,p=2$c29tZXNhbHQ$T/XOJ2mh1/TIpJHfCdQan76Q5esCFVoT5MAeIM1Oq2E",
    "$argon2i$v=16$m=256,t=2,p=1$c29tZXNhbHQ$/U3YPXYsSb3q9XxHvc0MLxur+GP960kN9j7emXX8zwY",
];

const LONG: &str = "correct horse battery staple, and more: a password that is longer than a block of SHA-256";

/// By OpenSSL.
#[rustfmt::skip]
pub const PBKDF2: [(&[u8], &str); 5] = [
    (b"password", "$pbkdf2-sha256$i=20$c2FsdA$g+sQC2o6l18P4//NwkGYUjIVTmhova8bJhzLGP7kyQg"),
    (b"", "$pbkdf2-sha256$i=20$YW5vdGhlciBzYWx0$VATsWxOIUxvouIfIt1dHQqASTXvw0G8HhcFpE1ENSJE"),
    (LONG.as_bytes(), "$pbkdf2-sha256$i=20$cw$KB/idMN2dYDQJ/ZteFfpMWfKdJKsvuaIf/WHzOtNCpk"),
    ("pässwörd\0".as_bytes(), "$pbkdf2-sha256$i=20$YSBzYWx0IHRoYXQgaXMgbG9uZ2VyIHRoYW4gb3RoZXJzOiBzaXh0eS1mb3VyIGJ5dGVzIG9yIG1vcmUgb2YgaXQsIHNv$e7FOS78ClF9xx9cipXW7My8qCaOeTgYQCOH9itEqvIg"),
    (b"U*U", "$pbkdf2-sha256$i=20$TmFDbA$6Jx5/lrUVMqRmBOxkoa/T5sUl2/RlcVrcHbbNlYK2mQ"),
];

/// Of the same passwords, also by OpenSSL.
#[rustfmt::skip]
pub const SCRYPT: [(&[u8], &str); 5] = [
    (b"password", "$scrypt$ln=4,r=2,p=1$c2FsdA$NUJ4TjpnKfytPoMazeBlk1hjrFndx33caQQ7tV8aiDc"),
    (b"", "$scrypt$ln=4,r=2,p=1$YW5vdGhlciBzYWx0$29sAm1COoyJkDId7ZsYsypZTdnkDrb7+wZzTjETt6iM"),
    (LONG.as_bytes(), "$scrypt$ln=4,r=2,p=1$cw$A4kf1bCkdmwdJVl4K8Tow9fNbp28nX/Yfr4ChpeBQZg"),
    ("pässwörd\0".as_bytes(), "$scrypt$ln=4,r=2,p=1$YSBzYWx0IHRoYXQgaXMgbG9uZ2VyIHRoYW4gb3RoZXJzOiBzaXh0eS1mb3VyIGJ5dGVzIG9yIG1vcmUgb2YgaXQsIHNv$EqhUovYfWfIh3yjCBK+txJ/HqLHJkbipme/LpRyWcbU"),
    (b"U*U", "$scrypt$ln=4,r=2,p=1$TmFDbA$I3jXhrpz0gg3wlH51s4Tv3zUs1B8KQihag/WvIY+GRw"),
];

/// Passwords and stored hashes, and which of the passwords are right.
pub struct Batch(Vec<(Vec<u8>, Stored, bool)>);

impl Batch {
    /// Different neighbours. Every third password is wrong, with an offset that changes by round:
    /// in three rounds each lane has right and wrong passwords.
    pub fn mixed(answers: &[(&[u8], &str)], count: usize, round: usize) -> Self {
        let lane = |n: usize| {
            let (password, text) = answers[(n + round) % answers.len()];
            (n, password, text, (n + round) % 3 != 2)
        };
        Self::of((0..count).map(lane))
    }

    /// One lane has the right password, another one each round; all wrong passwords differ.
    pub fn argon2(count: usize, round: usize) -> Self {
        let (text, right) = (ARGON2[round % ARGON2.len()], round / ARGON2.len() % count);
        Self::of((0..count).map(|n| (n, &b"password"[..], text, n == right)))
    }

    fn of<'a>(lanes: impl Iterator<Item = (usize, &'a [u8], &'a str, bool)>) -> Self {
        let lane = |(n, password, text, right): (usize, &[u8], &str, bool)| {
            let before = if right { String::new() } else { n.to_string() };
            ([before.as_bytes(), password].concat(), Stored::parse(text).expect("a known answer"), right)
        };
        Self(lanes.map(lane).collect())
    }

    /// Whether the right passwords have the stored digests, and the wrong ones others.
    pub fn is_right(&self, digests: impl FnOnce(Method, &[Input<'_>]) -> Option<Digests>) -> bool {
        let inputs: Vec<_> = self
            .0
            .iter()
            .map(|(password, stored, _)| Input { password, salt: &stored.salt, digest_bytes: stored.digest_bytes() })
            .collect();
        let Some(digests) = digests(self.0[0].1.method, &inputs) else { return false };
        self.0.iter().zip(digests).all(|((_, stored, right), digest)| (stored.digest == Some(digest)) == *right)
    }
}
