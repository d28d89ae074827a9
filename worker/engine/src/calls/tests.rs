//! What a batch leaves behind on the stack of its thread.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

use super::*;
use crate::arena::KEPT_BLOCKS;
use crate::profile::Profile;
use crate::sha256::Key;

static PROFILE: LazyLock<Profile> = LazyLock::new(|| Profile::measure(4_096, KEPT_BLOCKS));
const PASSWORD: &[u8] = b"correct horse battery staple";
const SALT: &[u8] = b"somesaltsomesalt";

/// The stack below this frame, as the system sees it: nothing of the program may look there.
#[inline(never)]
fn stack_below() -> Vec<u8> {
    let mut bytes = vec![0; STACK_BYTES];
    let here = 0_u8;
    let start = (&raw const here) as u64 - STACK_BYTES as u64;
    File::open("/proc/self/mem").and_then(|memory| memory.read_exact_at(&mut bytes, start)).expect("the own memory");
    bytes
}

/// Whether what hashing with this setting leaves on a stack has one of the words next to each other.
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
    let word = |value: usize| (value as u32).to_le_bytes();
    let mut seed = [0; 64];
    let parts: [&[u8]; 12] = [
        &word(1),
        &word(32),
        &word(64),
        &word(1),
        &word(19),
        &word(2),
        &word(PASSWORD.len()),
        PASSWORD,
        &word(SALT.len()),
        SALT,
        &word(0),
        &word(0),
    ];
    argon2::blake2b(&parts, &mut seed);
    seed.chunks_exact(8).map(|word| word.try_into().expect("a word")).collect()
}

/// What code does that wipes nothing, so far below that looking does not overwrite it.
fn leave_a_state() {
    #[inline(never)]
    fn make_state() {
        std::hint::black_box(&Key::new(PASSWORD));
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
    let key = Key::new(PASSWORD);
    let cases = [
        ("$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHRzb21lc2FsdA", argon2_seed()),
        ("$pbkdf2-sha256$i=2$c29tZXNhbHRzb21lc2FsdA", [pairs(&key.inner), pairs(&key.outer)].concat()),
        ("$scrypt$ln=4,r=1,p=1$c29tZXNhbHRzb21lc2FsdA", [pairs(&key.inner), pairs(&key.outer)].concat()),
    ];
    let is_left = |perform| cases.clone().map(|(setting, words)| leaves(setting, perform, words));
    // What nobody wipes is seen, or this would not look where it is.
    assert_eq!(is_left(unwiped), [false, true, true]);
    assert_eq!(is_left(wiped), [false; 3]);
}
