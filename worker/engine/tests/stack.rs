//! What a batch leaves behind on the stack of its thread.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

use ::blake2::{Blake2b512, Digest};
use ::sha2::block_api::compress256;
use spillway_engine::arena::{Arena, KEPT_BLOCKS};
use spillway_engine::calls::{Call, perform};
use spillway_engine::profile::Profile;
use spillway_engine::stored::Stored;
use zeroize::Zeroizing;

static PROFILE: LazyLock<Profile> = LazyLock::new(|| Profile::measure(4_096, KEPT_BLOCKS));
const PASSWORD: &[u8] = b"correct horse battery staple";
const SALT: &[u8] = b"somesaltsomesalt";
/// More than any code takes.
const STACK_BYTES: usize = 64 * 1_024;

/// The stack below this frame, as the system sees it: nothing of the program may look there.
#[inline(never)]
fn stack_below() -> Vec<u8> {
    let mut bytes = vec![0; STACK_BYTES];
    let here = 0_u8;
    let start = (&raw const here) as u64 - STACK_BYTES as u64;
    File::open("/proc/self/mem").and_then(|memory| memory.read_exact_at(&mut bytes, start)).expect("the own memory");
    bytes
}

/// Whether what hashing with this setting leaves on a stack has one of the words next to each
/// other.
fn leaves(setting: &'static str, perform: fn(&[Call], &Profile, &mut Arena), words: Vec<[u8; 8]>) -> bool {
    LazyLock::force(&PROFILE);
    let work = move || {
        let call = Call {
            id: 1,
            password: Zeroizing::new(PASSWORD.to_vec()),
            stored: Stored::parse(setting).expect("a setting"),
        };
        perform(&[call], &PROFILE, &mut Arena::default());
        let left = stack_below();
        words.iter().any(|word| left.windows(word.len()).any(|window| window == word))
    };
    std::thread::spawn(work).join().expect("a thread that hashed")
}

/// Pairs of the words that a state has in memory.
fn pairs(state: &[u32; 8]) -> Vec<[u8; 8]> {
    let bytes: Vec<u8> = state.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.chunks_exact(8).map(|pair| pair.try_into().expect("two words")).collect()
}

/// H0 of [RFC 9106, section 3.2], from which all memory can be computed.
fn argon2_seed() -> Vec<[u8; 8]> {
    let words = |values: &[usize]| values.iter().flat_map(|value| (*value as u32).to_le_bytes()).collect::<Vec<u8>>();
    let before = words(&[1, 32, 64, 1, 19, 2, PASSWORD.len()]);
    let after = [&words(&[SALT.len()]), SALT, &words(&[0, 0])].concat();
    let seed = Blake2b512::digest([&before, PASSWORD, &after].concat());
    seed.chunks_exact(8).map(|word| word.try_into().expect("a word")).collect()
}

/// HMAC-SHA-256's state after the password and this padding.
fn state_after(padding: u8) -> [u32; 8] {
    let mut block = [0; 64];
    block[..PASSWORD.len()].copy_from_slice(PASSWORD);
    let mut state =
        [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
    compress256(&mut state, &[block.map(|byte| byte ^ padding)]);
    state
}

/// What code does that wipes nothing, so far below that looking does not overwrite it.
fn leave_a_state() {
    #[inline(never)]
    fn make_state() {
        std::hint::black_box(&state_after(0x36));
    }
    let above = [0_u8; STACK_BYTES / 2];
    std::hint::black_box(&above);
    make_state();
    std::hint::black_box(&above);
}

#[test]
fn no_state_is_left_on_the_stack() {
    let wiped = |calls: &[Call], profile: &Profile, arena: &mut Arena| drop(perform(calls, profile, arena));
    let unwiped = |_: &[Call], _: &Profile, _: &mut Arena| leave_a_state();
    let states = [0x36, 0x5c].map(|padding| pairs(&state_after(padding))).concat();
    let cases = [
        ("$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHRzb21lc2FsdA", argon2_seed()),
        ("$pbkdf2-sha256$i=2$c29tZXNhbHRzb21lc2FsdA", states.clone()),
        ("$scrypt$ln=4,r=1,p=1$c29tZXNhbHRzb21lc2FsdA", states),
    ];
    let is_left = |perform| cases.clone().map(|(setting, words)| leaves(setting, perform, words));
    // What nobody wipes is seen, or this would not look where it is.
    assert_eq!(is_left(unwiped), [false, true, true]);
    assert_eq!(is_left(wiped), [false; 3]);
}
