//! Stored hashes as text: bcrypt's modular crypt format, and PHC strings of the others. Without a
//! digest they are settings, which say how to make one.
//!
//! Text that its own encoder would write differently is refused, even if others accept it.

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
    /// Memory of each hash in a batch, in blocks, with `room` blocks for the batch.
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
    /// 16 bytes for bcrypt.
    pub salt: Vec<u8>,
    /// The expected digest of the password.
    pub digest: Option<Vec<u8>>,
    /// The text before the digest.
    setting: String,
}

/// The text is of no known algorithm, not in its strict form, or over the cost limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported;

/// The length of new digests, except for bcrypt.
const NEW_DIGEST_BYTES: usize = 32;
/// The length of bcrypt's salt as text.
const BCRYPT_SALT_CHARS: usize = 22;

impl Stored {
    /// Reads a stored hash or a setting.
    ///
    /// # Errors
    /// [`Unsupported`]
    pub fn parse(text: &str) -> Result<Self, Unsupported> {
        let parse = if text.starts_with("$2") { parse_bcrypt } else { parse_phc };
        parse(text).ok_or(Unsupported)
    }

    /// The length of the digest, or of a new one.
    pub fn digest_bytes(&self) -> usize {
        let new = match self.method {
            Method::Bcrypt { .. } => bcrypt::DIGEST_BYTES,
            Method::Argon2(_) | Method::Pbkdf2(_) | Method::Scrypt(_) => NEW_DIGEST_BYTES,
        };
        self.digest.as_ref().map_or(new, Vec::len)
    }

    /// The stored hash of this setting and a digest.
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
    // Two digits; the first may be a zero.
    let cost = number(cost.strip_prefix('0').unwrap_or(cost))?;
    let (salt, digest) = rest.split_at_checked(BCRYPT_SALT_CHARS)?;
    let digest = if digest.is_empty() { None } else { Some(Base64Bcrypt::decode_vec(digest).ok()?) };
    let stored = Stored {
        method: Method::Bcrypt { cost },
        salt: Base64Bcrypt::decode_vec(salt).ok()?,
        digest,
        setting: text[..head.len() + salt.len()].to_owned(),
    };
    let right_digest = stored.digest_bytes() == bcrypt::DIGEST_BYTES;
    ((bcrypt::LOWEST_COST..=bcrypt::HIGHEST_COST).contains(&cost)
        && stored.salt.len() == bcrypt::SALT_BYTES
        && right_digest)
        .then_some(stored)
}

/// A PHC string: `$argon2id$v=19$m=19456,t=2,p=1$salt$digest`,
/// `$pbkdf2-sha256$i=600000$salt$digest` or `$scrypt$ln=14,r=8,p=1$salt$digest`, with parameters in
/// this order and no others.
fn parse_phc(text: &str) -> Option<Stored> {
    let fields: Vec<&str> = text.strip_prefix('$')?.split('$').collect();
    let (made_by, end) = fields.split_at_checked(if text.starts_with("$argon2") { 3 } else { 2 })?;
    let (salt, digest) = match *end {
        [salt] => (salt, None),
        [salt, digest] => (salt, Some(digest)),
        _ => return None,
    };
    let setting = text[..text.len() - digest.map_or(0, |digest| digest.len() + 1)].to_owned();
    let salt = Base64Unpadded::decode_vec(salt).ok()?;
    let digest = digest.map(Base64Unpadded::decode_vec).transpose().ok()?;
    let digest_bytes = digest.as_ref().map_or(NEW_DIGEST_BYTES, Vec::len);
    let (method, is_possible, salts, digests) = match *made_by {
        [variant, version, cost] => {
            let variant = match variant {
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
            (Method::Argon2(params), params.is_possible(), argon2::SALT_BYTES, argon2::DIGEST_BYTES)
        }
        ["pbkdf2-sha256", cost] => {
            let [iterations] = parameters(cost, ["i="])?;
            let params = pbkdf2::Params::new(iterations, digest_bytes);
            (Method::Pbkdf2(params), params.is_possible(), pbkdf2::SALT_BYTES, pbkdf2::DIGEST_BYTES)
        }
        ["scrypt", cost] => {
            let [log_n, r, p] = parameters(cost, ["ln=", "r=", "p="])?;
            let params = scrypt::Params { log_n, r, p };
            (Method::Scrypt(params), params.is_possible(), scrypt::SALT_BYTES, scrypt::DIGEST_BYTES)
        }
        _ => return None,
    };
    (is_possible && salts.contains(&salt.len()) && digests.contains(&digest_bytes)).then_some(Stored {
        method,
        salt,
        digest,
        setting,
    })
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

/// Digits only: no sign, no leading zeros.
fn number(text: &str) -> Option<u32> {
    let is_written_so = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_written_so.then(|| text.parse().ok())?
}
