//! Stored hashes as text: bcrypt's modular crypt format and argon2's PHC string. Without a digest they are settings, which
//! say how to make one.
//!
//! A text that its own encoder would write differently is refused: another implementation may accept it.

use base64ct::{Base64Bcrypt, Base64Unpadded, Encoding};

use crate::{argon2, bcrypt};

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

/// A new digest of argon2 is that long.
const NEW_DIGEST_BYTES: usize = 32;
/// The length of bcrypt's salt as text.
const BCRYPT_SALT_CHARS: usize = 22;

impl Stored {
    /// Reads a stored hash or a setting.
    ///
    /// # Errors
    /// [`Unsupported`]
    pub fn parse(text: &str) -> Result<Self, Unsupported> {
        if text.starts_with("$2") { parse_bcrypt(text) } else { parse_argon2(text) }.ok_or(Unsupported)
    }

    /// How long the digest is, or shall be.
    pub fn digest_bytes(&self) -> usize {
        let new = match self.method {
            Method::Bcrypt { .. } => size_of::<bcrypt::Digest>(),
            Method::Argon2(_) => NEW_DIGEST_BYTES,
        };
        self.digest.as_ref().map_or(new, Vec::len)
    }

    /// The stored hash that this setting and a digest make.
    pub fn with_digest(&self, digest: &[u8]) -> String {
        match self.method {
            Method::Bcrypt { .. } => format!("{}{}", self.setting, Base64Bcrypt::encode_string(digest)),
            Method::Argon2(_) => format!("{}${}", self.setting, Base64Unpadded::encode_string(digest)),
        }
    }
}

/// `$2b$10$` with 22 characters of salt and 31 of digest. `2a` and `2y` are the same algorithm.
fn parse_bcrypt(text: &str) -> Option<Stored> {
    let (head, rest) = text.split_at_checked(7)?;
    let cost = head.strip_prefix("$2")?.strip_prefix(['a', 'b', 'y'])?.strip_prefix('$')?.strip_suffix('$')?;
    let cost = number(cost)?;
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
    let mut parts = text.split('$');
    if !parts.next()?.is_empty() {
        return None;
    }
    let variant = match parts.next()? {
        "argon2d" => argon2::Variant::D,
        "argon2i" => argon2::Variant::I,
        "argon2id" => argon2::Variant::Id,
        _ => return None,
    };
    let version = match parts.next()? {
        "v=16" => argon2::Version::V16,
        "v=19" => argon2::Version::V19,
        _ => return None,
    };
    let mut cost = parts.next()?.split(',');
    let mut parameter = |name: &str| number(cost.next()?.strip_prefix(name)?);
    let params = argon2::Params {
        variant,
        version,
        cost: argon2::Cost { memory_kib: parameter("m=")?, passes: parameter("t=")?, lanes: parameter("p=")? },
    };
    let salt = Base64Unpadded::decode_vec(parts.next()?).ok()?;
    let digest = parts.next();
    let setting = &text[..text.len() - digest.map_or(0, |digest| digest.len() + 1)];
    let digest = match digest {
        None => None,
        Some(digest) => Some(Base64Unpadded::decode_vec(digest).ok()?),
    };
    let stored = Stored { method: Method::Argon2(params), salt, digest, setting: setting.to_owned() };
    let all_read = cost.next().is_none() && parts.next().is_none();
    let right_sizes =
        argon2::SALT_BYTES.contains(&stored.salt.len()) && argon2::DIGEST_BYTES.contains(&stored.digest_bytes());
    (all_read && params.is_possible() && right_sizes).then_some(stored)
}

/// Digits alone: no sign.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const BCRYPT: &str = "$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
    const ARGON2: &str = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

    #[test]
    fn what_is_read_is_written_again() {
        for text in [BCRYPT, &BCRYPT.replace("2b", "2a"), &BCRYPT.replace("2b", "2y"), ARGON2] {
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
            let text = if BCRYPT.contains(from) { BCRYPT } else { ARGON2 };
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        };
        let malformed = [
            changed("$2b", "$2x"),
            changed("$2b", "$2"),
            changed("$2b", "2b"),
            changed("$05", "$5"),
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
