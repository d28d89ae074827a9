//! Stored hashes as text: bcrypt's modular crypt format, and PHC strings of the others. Without a digest they are settings,
//! which say how to make one.
//!
//! A text that its own encoder would write differently is refused: another implementation may accept it.

use std::ops::RangeInclusive;

use base64ct::{Base64Bcrypt, Base64Unpadded, Encoding};

use crate::{argon2, bcrypt, pbkdf2, scrypt};

/// The method and cost that calls must share to be hashed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// bcrypt at a cost.
    Bcrypt {
        /// The logarithm of its rounds.
        cost: u32,
    },
    /// argon2.
    Argon2(argon2::Params),
    /// PBKDF2 with HMAC-SHA-256.
    Pbkdf2(pbkdf2::Params),
    /// scrypt.
    Scrypt(scrypt::Params),
}

impl Method {
    /// How many blocks of memory each of a batch takes, where that may take so many.
    pub fn memory_blocks(&self, room: usize) -> usize {
        match self {
            Self::Bcrypt { .. } | Self::Pbkdf2(_) => 0,
            Self::Argon2(params) => params.blocks(),
            Self::Scrypt(params) => params.memory_blocks() * params.most_lanes(room).min(params.p as usize),
        }
    }
}

/// A stored hash, or a setting when it has no digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Algorithm and cost.
    pub method: Method,
    /// Of 16 bytes for bcrypt.
    pub salt: Vec<u8>,
    /// The expected digest of the password.
    pub digest: Option<Vec<u8>>,
    /// All that stands before the digest.
    setting: String,
}

/// It is not written like a hash of an algorithm that is known here, or costs more than is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported;

/// A new digest is that long, except for bcrypt.
const NEW_DIGEST_BYTES: usize = 32;
/// The length of bcrypt's salt as text.
const BCRYPT_SALT_CHARS: usize = 22;

impl Stored {
    /// Reads a stored hash or a setting.
    ///
    /// # Errors
    /// [`Unsupported`]
    pub fn parse(text: &str) -> Result<Self, Unsupported> {
        let parse = match text {
            bcrypt if bcrypt.starts_with("$2") => parse_bcrypt,
            pbkdf2 if pbkdf2.starts_with("$p") => parse_pbkdf2,
            scrypt if scrypt.starts_with("$s") => parse_scrypt,
            _ => parse_argon2,
        };
        parse(text).ok_or(Unsupported)
    }

    /// How long the digest is, or shall be.
    pub fn digest_bytes(&self) -> usize {
        let new = match self.method {
            Method::Bcrypt { .. } => size_of::<bcrypt::Digest>(),
            Method::Argon2(_) | Method::Pbkdf2(_) | Method::Scrypt(_) => NEW_DIGEST_BYTES,
        };
        self.digest.as_ref().map_or(new, Vec::len)
    }

    /// The stored hash that this setting and a digest make.
    pub fn with_digest(&self, digest: &[u8]) -> String {
        match self.method {
            Method::Bcrypt { .. } => format!("{}{}", self.setting, Base64Bcrypt::encode_string(digest)),
            Method::Argon2(_) | Method::Pbkdf2(_) | Method::Scrypt(_) => {
                format!("{}${}", self.setting, Base64Unpadded::encode_string(digest))
            }
        }
    }
}

/// `$2b$10$` with 22 characters of salt and 31 of digest. `2a` and `2y` are the same algorithm.
fn parse_bcrypt(text: &str) -> Option<Stored> {
    let (head, rest) = text.split_at_checked(7)?;
    let cost = head.strip_prefix("$2")?.strip_prefix(['a', 'b', 'y'])?.strip_prefix('$')?.strip_suffix('$')?;
    // Two digits, of which the first may be a zero.
    let cost = number(cost.strip_prefix('0').unwrap_or(cost))?;
    let (salt, digest) = rest.split_at_checked(BCRYPT_SALT_CHARS)?;
    let digest = if digest.is_empty() { None } else { Some(Base64Bcrypt::decode_vec(digest).ok()?) };
    let stored = Stored {
        method: Method::Bcrypt { cost },
        salt: Base64Bcrypt::decode_vec(salt).ok()?,
        digest,
        setting: text[..head.len() + salt.len()].to_owned(),
    };
    let right_digest = stored.digest_bytes() == size_of::<bcrypt::Digest>();
    ((bcrypt::LOWEST_COST..=bcrypt::HIGHEST_COST).contains(&cost) && stored.salt.len() == 16 && right_digest)
        .then_some(stored)
}

/// `$argon2id$v=19$m=19456,t=2,p=1$salt$digest`, its parameters in this order and no others.
fn parse_argon2(text: &str) -> Option<Stored> {
    let ([name, version, cost], parts) = parse_phc(text)?;
    let variant = match name {
        "argon2d" => argon2::Variant::D,
        "argon2i" => argon2::Variant::I,
        "argon2id" => argon2::Variant::Id,
        _ => return None,
    };
    let version = match version {
        "v=16" => argon2::Version::V16,
        "v=19" => argon2::Version::V19,
        _ => return None,
    };
    let [memory_kib, passes, lanes] = parameters(cost, ["m=", "t=", "p="])?;
    let params = argon2::Params { variant, version, cost: argon2::Cost { memory_kib, passes, lanes } };
    let right_sizes = parts.are_within(argon2::SALT_BYTES, argon2::DIGEST_BYTES);
    (params.is_possible() && right_sizes).then(|| parts.stored(Method::Argon2(params)))
}

/// `$pbkdf2-sha256$i=600000$salt$digest`
fn parse_pbkdf2(text: &str) -> Option<Stored> {
    let (["pbkdf2-sha256", cost], parts) = parse_phc(text)? else { return None };
    let [iterations] = parameters(cost, ["i="])?;
    let params = pbkdf2::Params::new(iterations, parts.digest_bytes());
    let right_sizes = parts.are_within(pbkdf2::SALT_BYTES, pbkdf2::DIGEST_BYTES);
    (params.is_possible() && right_sizes).then(|| parts.stored(Method::Pbkdf2(params)))
}

/// `$scrypt$ln=14,r=8,p=1$salt$digest`
fn parse_scrypt(text: &str) -> Option<Stored> {
    let (["scrypt", cost], parts) = parse_phc(text)? else { return None };
    let [log_n, r, p] = parameters(cost, ["ln=", "r=", "p="])?;
    let params = scrypt::Params { log_n, r, p };
    let right_sizes = parts.are_within(scrypt::SALT_BYTES, scrypt::DIGEST_BYTES);
    (params.is_possible() && right_sizes).then(|| parts.stored(Method::Scrypt(params)))
}

/// The end of a PHC string.
struct Parts<'a> {
    salt: Vec<u8>,
    digest: Option<Vec<u8>>,
    setting: &'a str,
}

/// A PHC string: fields that say how it was made, as many as are asked for, then salt and digest.
fn parse_phc<const FIELDS: usize>(text: &str) -> Option<([&str; FIELDS], Parts<'_>)> {
    let mut parts = text.strip_prefix('$')?.split('$');
    let mut fields = [""; FIELDS];
    for field in &mut fields {
        *field = parts.next()?;
    }
    let salt = Base64Unpadded::decode_vec(parts.next()?).ok()?;
    let digest = parts.next();
    let setting = &text[..text.len() - digest.map_or(0, |digest| digest.len() + 1)];
    let digest = match digest {
        None => None,
        Some(digest) => Some(Base64Unpadded::decode_vec(digest).ok()?),
    };
    parts.next().is_none().then_some((fields, Parts { salt, digest, setting }))
}

impl Parts<'_> {
    fn digest_bytes(&self) -> usize {
        self.digest.as_ref().map_or(NEW_DIGEST_BYTES, Vec::len)
    }

    fn are_within(&self, salt: RangeInclusive<usize>, digest: RangeInclusive<usize>) -> bool {
        salt.contains(&self.salt.len()) && digest.contains(&self.digest_bytes())
    }

    fn stored(self, method: Method) -> Stored {
        Stored { method, salt: self.salt, digest: self.digest, setting: self.setting.to_owned() }
    }
}

/// Numbers with these names, in this order and no others.
fn parameters<const COUNT: usize>(text: &str, names: [&str; COUNT]) -> Option<[u32; COUNT]> {
    let mut parts = text.split(',');
    let mut values = [0; COUNT];
    for (value, name) in values.iter_mut().zip(names) {
        *value = number(parts.next()?.strip_prefix(name)?)?;
    }
    parts.next().is_none().then_some(values)
}

/// Digits alone: no sign, and no zeros before others.
fn number(text: &str) -> Option<u32> {
    let is_written_so = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_written_so.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const BCRYPT: &str = "$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
    const ARGON2: &str = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
    const PBKDF2: &str = "$pbkdf2-sha256$i=20$c2FsdA$g+sQC2o6l18P4//NwkGYUjIVTmhova8bJhzLGP7kyQg";
    const SCRYPT: &str = "$scrypt$ln=4,r=2,p=1$TmFDbA$I3jXhrpz0gg3wlH51s4Tv3zUs1B8KQihag/WvIY+GRw";

    #[test]
    fn what_is_read_is_written_again() {
        for text in [BCRYPT, &BCRYPT.replace("2b", "2a"), &BCRYPT.replace("2b", "2y"), ARGON2, PBKDF2, SCRYPT] {
            let stored = Stored::parse(text).unwrap();
            assert_eq!(stored.with_digest(stored.digest.as_ref().unwrap()), text);
            let setting = Stored::parse(&stored.setting).unwrap();
            assert_eq!(setting.digest, None);
            assert_eq!((setting.method, &setting.salt), (stored.method, &stored.salt));
            assert_eq!(setting.with_digest(stored.digest.as_ref().unwrap()), text);
            assert_eq!(setting.digest_bytes(), stored.digest_bytes());
        }
    }

    #[test]
    fn what_is_malformed_or_costs_too_much_is_refused() {
        let changed = |from: &str, to: &str| {
            let text = [BCRYPT, ARGON2, PBKDF2, SCRYPT].into_iter().find(|text| text.contains(from)).expect(from);
            text.replacen(from, to, 1)
        };
        let malformed = [
            changed("$2b", "$2x"),
            changed("$2b", "$2"),
            changed("$2b", "2b"),
            changed("$05", "$5"),
            changed("$05", "$005"),
            changed("$05", "$0"),
            changed("$05", "$03"),
            changed("$05", "$18"),
            changed("$05", "$+5"),
            changed("OeW", "Oe"),
            changed("OeW", "OeWW"),
            // Bits of the last character that mean nothing.
            changed("OeW", "OeX"),
            changed("C.E5", "C/E5"),
            changed("yOeW", "y+eW"),
            changed("argon2id", "argon2x"),
            changed("v=19", "v=20"),
            changed("$v=19", ""),
            changed("m=256", "m=7"),
            changed("m=256", "m=1048577"),
            changed("m=256", "m=99999999999999999999"),
            changed("m=256", "m=+256"),
            changed("m=256", "m="),
            changed("m=256", "m=0256"),
            changed("t=2", "t=02"),
            changed("p=1", "p=01"),
            changed("i=20", "i=020"),
            changed("ln=4", "ln=04"),
            changed("t=2", "t=0"),
            changed("t=2", "t=65"),
            changed("t=2,p=1", "p=1,t=2"),
            changed("p=1", "p=0"),
            changed("p=1", "p=17"),
            changed("p=1", "p=1,data=AAAA"),
            changed("c29tZXNhbHQ", "c29tZXNhbA"),
            changed("c29tZXNhbHQ", "c29tZXNhbHQ="),
            changed("Gi/4", "Gi/5"),
            changed("$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "$nf65"),
            changed("$nf65", "$$nf65"),
            changed("pbkdf2-sha256", "pbkdf2-sha1"),
            changed("pbkdf2-sha256", "pbkdf2"),
            changed("$i=20", "$20"),
            changed("i=20", "i=0"),
            changed("i=20", "i=2000001"),
            changed("i=20", "i=20,l=32"),
            changed("$c2FsdA", "$"),
            changed("$c2FsdA", "$c2FsdB"),
            changed("7kyQg", "7ky"),
            changed("$g+sQC2o6l18P4//NwkGYUjIVTmhova8bJhzLGP7kyQg", "$g+sQC2o6l18P4//NwkGY"),
            changed("ln=4", "ln=0"),
            changed("ln=4", "n=4"),
            changed("ln=4", "ln=19"),
            changed("ln=4,r=2", "ln=4,r=0"),
            changed("ln=4,r=2", "ln=17,r=8"),
            changed("ln=4,r=2,p=1", "ln=4,r=2,p=0"),
            changed("ln=4,r=2,p=1", "ln=4,p=1,r=2"),
            changed("ln=4,r=2,p=1", "ln=4,r=2"),
            changed("ln=4,r=2,p=1", "ln=4,r=2,p=16385"),
            changed("ln=4,r=2,p=1", "ln=1,r=999,p=999"),
            changed("TmFDbA", "TmFDbA=="),
            changed("+GRw", "+GRw$"),
            format!("{ARGON2}$"),
            format!("{ARGON2}\n"),
            format!(" {ARGON2}"),
            format!("{BCRYPT}\n"),
            String::new(),
            "$".into(),
            "$2b$05$é".into(),
            "$2".into(),
            "password".into(),
        ];
        for text in malformed {
            assert_eq!(Stored::parse(&text), Err(Unsupported), "{text}");
        }
    }
}
