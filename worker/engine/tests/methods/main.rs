//! Each method compared with another implementation, and with answers of the original one.

mod argon2;
mod bcrypt;
mod pbkdf2;
mod scrypt;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
