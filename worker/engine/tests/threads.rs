//! Every call comes to an end, with its own outcome.

use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use spillway_engine::calls::{Call, Outcome};
use spillway_engine::profile::Profile;
use spillway_engine::stored::Stored;
use spillway_engine::threads::Threads;
use spillway_engine::widths::Widths;
use zeroize::Zeroizing;

static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
    // A batch takes as long as one alone, up to this width.
    let widths = |best: usize| Widths::from_batches(&vec![Duration::from_millis(1); best]);
    Profile::portable(widths(4), widths(2))
});

const SHARE: usize = 1_024;
const SETTING: &str = "$2b$04$CCCCCCCCCCCCCCCCCCCCC.";
const OTHER_COST: &str = "$2b$05$CCCCCCCCCCCCCCCCCCCCC.";
const ARGON2: &str = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ";
/// Takes seconds, longer than the test that has it in hand.
const ENDLESS: &str = "$2b$17$CCCCCCCCCCCCCCCCCCCCC.";
/// Take more than a thread's share of the memory; the second takes seconds, too.
const LARGE: &str = "$argon2id$v=19$m=1028,t=1,p=1$c29tZXNhbHQ";
const ENDLESS_LARGE: &str = "$argon2id$v=19$m=65536,t=64,p=1$c29tZXNhbHQ";

fn call(id: u32, setting: &str) -> Call {
    Call { id, password: Zeroizing::new(b"U*U".to_vec()), stored: Stored::parse(setting).unwrap() }
}

fn start(count: usize) -> (Threads, Receiver<Vec<(u32, Outcome)>>) {
    let (sender, settled) = channel();
    let settle = Box::new(move |outcomes, _| sender.send(outcomes).unwrap_or_default());
    (Threads::start(count, SHARE, &PROFILE, settle).unwrap(), settled)
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
    for id in 0..100 {
        threads.submit(call(id, [right, wrong, OTHER_COST, ARGON2, LARGE][id as usize % 5]));
    }
    for (id, outcome) in outcomes(&settled, 100) {
        match (id % 5, outcome) {
            (0, outcome) => assert_eq!(outcome, Outcome::Verified(true)),
            (1, outcome) => assert_eq!(outcome, Outcome::Verified(false)),
            (2, outcome) => assert_eq!(outcome, Outcome::Hashed(right.to_owned())),
            (3, Outcome::Hashed(hash)) => assert!(hash.starts_with(ARGON2), "{hash}"),
            (4, Outcome::Hashed(hash)) => assert!(hash.starts_with(LARGE), "{hash}"),
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
fn a_hash_beyond_a_threads_share_is_alone() {
    let (threads, settled) = start(3);
    // Threads keep memory then.
    for id in 0..3 {
        threads.submit(call(id, ARGON2));
    }
    outcomes(&settled, 3);
    for (id, setting) in (3..).zip([ENDLESS_LARGE, SETTING, SETTING]) {
        threads.submit(call(id, setting));
    }
    while threads.running() == 0 {
        thread::yield_now();
    }
    // Time enough for the other threads.
    thread::sleep(Duration::from_millis(100));
    assert_eq!((threads.waiting(), threads.running()), (2, 1));
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
    assert!(settled.recv_timeout(Duration::from_secs(60)).is_err_and(|error| error == RecvTimeoutError::Disconnected));
}
