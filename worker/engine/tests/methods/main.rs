//! Each method compared with another implementation.

mod argon2;
mod bcrypt;
mod pbkdf2;
mod scrypt;

use std::time::Duration;

use spillway_engine::plan::{Code, Plan};

/// Plans with each code alone, and with all of them as a profile would have them.
fn plans<Run: Copy>(codes: Vec<Code<Run>>) -> Vec<(String, Plan<Run>)> {
    let took = |codes: &[Code<Run>]| codes.iter().map(|code| (*code, Duration::from_millis(1))).collect();
    let each = codes.iter().map(|code| (code.name.to_owned(), Plan::new(took(&[*code]))));
    each.chain([("all".to_owned(), Plan::new(took(&codes)))]).collect()
}
