//! Batches are taken as promised, and every call comes to an end.

use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use zeroize::Zeroizing;

use super::*;
use crate::argon2::Compressor;
use crate::pbkdf2;
use crate::plan::Plan;
use crate::stored::Stored;
use crate::widths::Widths;

static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
    // A batch takes as long as one alone, up to this width.
    let widths = |best: usize| Widths::from_batches(&vec![Duration::from_millis(1); best]);
    Profile {
        bcrypt: widths(4),
        compressor: Compressor::PORTABLE,
        argon2: widths(2),
        pbkdf2: Plan::new(vec![(pbkdf2::Code::PORTABLE, Duration::from_millis(1))]),
        scrypt: Plan::default(),
        wrong: Vec::new(),
        huge_pages: None,
    }
});

const ROOM: usize = 1_024;
const SETTING: &str = "$2b$04$CCCCCCCCCCCCCCCCCCCCC.";
const OTHER_COST: &str = "$2b$05$CCCCCCCCCCCCCCCCCCCCC.";
const ARGON2: &str = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ";
/// Takes seconds, longer than the test that has it in hand.
const ENDLESS: &str = "$2b$17$CCCCCCCCCCCCCCCCCCCCC.";

fn call(id: u32, setting: &str) -> Call {
    Call { id, password: Zeroizing::new(b"U*U".to_vec()), stored: Stored::parse(setting).unwrap() }
}

/// Which calls a free thread takes of these, one setting each, and which the next ones do.
fn batches(free: usize, settings: &[&str]) -> Vec<Vec<u32>> {
    let waiting = (0..).zip(settings).map(|(id, setting)| call(id, setting)).collect();
    let mut state = State { waiting, free, ..State::default() };
    let mut batches = Vec::new();
    while !state.waiting.is_empty() {
        batches.push(state.take_batch(&PROFILE, ROOM).iter().map(|call| call.id).collect());
        state.free = state.free.saturating_sub(1);
    }
    batches
}

#[test]
fn a_free_thread_takes_as_many_as_it_does_best() {
    assert_eq!(batches(1, &[SETTING; 3]), [vec![0, 1, 2]]);
    assert_eq!(batches(1, &[SETTING; 6]), [vec![0, 1, 2, 3], vec![4, 5]]);
    assert_eq!(batches(1, &[ARGON2; 3]), [vec![0, 1], vec![2]]);
}

#[test]
fn few_calls_are_spread_over_the_free_threads() {
    assert_eq!(batches(2, &[SETTING; 2]), [vec![0], vec![1]]);
    assert_eq!(batches(2, &[SETTING; 5]), [vec![0, 1, 2], vec![3, 4]]);
    assert_eq!(batches(4, &[SETTING; 5]), [vec![0, 1], vec![2], vec![3], vec![4]]);
    assert_eq!(batches(2, &[SETTING; 12]), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9, 10, 11]]);
}

#[test]
fn only_calls_of_one_method_share_a_batch_and_the_oldest_comes_first() {
    let mixed = [SETTING, ARGON2, OTHER_COST, SETTING, ARGON2, SETTING];
    assert_eq!(batches(1, &mixed), [vec![0, 3, 5], vec![1, 4], vec![2]]);
}

fn start(count: usize) -> (Threads, Receiver<Vec<(u32, Outcome)>>) {
    let (sender, settled) = channel();
    let settle = Box::new(move |outcomes, _| sender.send(outcomes).unwrap_or_default());
    (Threads::start(count, ROOM, &PROFILE, settle).unwrap(), settled)
}

/// The outcomes of so many calls, by their ids.
fn outcomes(settled: &Receiver<Vec<(u32, Outcome)>>, count: usize) -> Vec<(u32, Outcome)> {
    let mut all = Vec::new();
    while all.len() < count {
        all.extend(settled.recv_timeout(Duration::from_secs(60)).expect("an outcome"));
    }
    all.sort_by_key(|(id, _)| *id);
    all
}

#[test]
fn every_call_gets_its_own_outcome() {
    let (threads, settled) = start(3);
    let right = "$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
    let wrong = "$2b$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK";
    for id in 0..40 {
        threads.submit(call(id, [right, wrong, OTHER_COST, ARGON2][id as usize % 4]));
    }
    for (id, outcome) in outcomes(&settled, 40) {
        match (id % 4, outcome) {
            (0, outcome) => assert_eq!(outcome, Outcome::Verified(true)),
            (1, outcome) => assert_eq!(outcome, Outcome::Verified(false)),
            (2, outcome) => assert_eq!(outcome, Outcome::Hashed(right.to_owned())),
            (_, Outcome::Hashed(hash)) => assert!(hash.starts_with(ARGON2), "{hash}"),
            (_, outcome) => panic!("{outcome:?}"),
        }
    }
    assert_eq!((threads.waiting(), threads.running()), (0, 0));
}

#[test]
fn a_call_that_waits_can_be_taken_back_and_one_that_began_cannot() {
    let (threads, settled) = start(1);
    threads.submit(call(1, ENDLESS));
    while threads.running() == 0 {
        thread::yield_now();
    }
    threads.submit(call(2, SETTING));
    assert_eq!((threads.waiting(), threads.running()), (1, 1));
    assert!(threads.cancel(2));
    assert!(!threads.cancel(2));
    assert!(!threads.cancel(1));
    assert!(!threads.cancel(3));
    assert_eq!((threads.waiting(), threads.running()), (0, 1));
    assert!(settled.try_recv().is_err());
}

#[test]
fn a_panic_fails_its_batch_and_nothing_else() {
    let (threads, settled) = start(1);
    let mut impossible = call(1, SETTING);
    // A call that cannot come from the parser.
    impossible.stored.salt.clear();
    threads.submit(impossible);
    assert_eq!(outcomes(&settled, 1), [(1, Outcome::Failed("the engine failed"))]);
    threads.submit(call(2, SETTING));
    assert!(matches!(outcomes(&settled, 1)[..], [(2, Outcome::Hashed(_))]));
}

#[test]
fn threads_end_when_nobody_needs_them() {
    let (threads, settled) = start(2);
    threads.submit(call(1, SETTING));
    outcomes(&settled, 1);
    drop(threads);
    // The sender is gone with the last thread.
    assert!(
        settled
            .recv_timeout(Duration::from_secs(60))
            .is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Disconnected)
    );
}
