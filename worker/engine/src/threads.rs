//! Threads that hash, and the calls that wait for them.
//!
//! A free thread takes the oldest call and others of its method, up to the best width: at once,
//! without waiting for more, and leaving calls for other free threads. A hash beyond a thread's
//! share of the memory begins when the other threads have nothing in hand and have given back their
//! memory; until it ends, nothing else begins.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::arena::{Arena, WIPED_AFTER};
use crate::calls::{Call, Outcome, perform};
use crate::profile::Profile;
use crate::stored::Method;
use crate::system::{processor_time, take_long_slices};
use crate::widths::Learned;

/// The time of one call in a full batch.
#[derive(Clone, Copy)]
pub struct Took {
    /// Elapsed time.
    pub wall: Duration,
    /// Processor time.
    pub cpu: Duration,
}

/// Receives the outcomes of a batch on its thread, with the time of each call.
pub type Settle = dyn Fn(Vec<(u32, Outcome)>, Took) + Send + Sync;

/// Time from wiping an idle thread's memory to giving it back: the next storm must map it anew.
const GIVEN_BACK_AFTER: Duration = Duration::from_secs(3);
/// Most methods with learned widths: the policy's, and those of imported accounts.
const LEARNED: usize = 16;

/// Threads that end when this is dropped, after the batches in hand. Waiting calls are wiped.
pub struct Threads(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    profile: &'static Profile,
    /// Memory of a thread, in blocks.
    share: usize,
    /// Memory of a thread's batch of several hashes, in blocks.
    room: usize,
    settle: Box<Settle>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Call>,
    /// Calls in hand.
    running: usize,
    /// Threads that have nothing in hand.
    free: usize,
    /// Threads that have something in hand, or keep memory.
    keeping: usize,
    /// Whether a hash beyond a thread's share is in hand.
    is_alone: bool,
    /// Learned widths, the most recent method first.
    learned: Vec<(Method, Learned)>,
    ended: bool,
}

impl Threads {
    /// Starts threads. `share`, in blocks, bounds the memory of each; a larger hash runs alone.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub fn start(count: usize, share: usize, profile: &'static Profile, settle: Box<Settle>) -> io::Result<Self> {
        let room = Arena::new(share).room();
        let shared = Shared { state: Mutex::default(), changed: Condvar::new(), profile, share, room, settle };
        let threads = Self(Arc::new(shared));
        for n in 0..count {
            let shared = Arc::clone(&threads.0);
            thread::Builder::new().name(format!("hash {n}")).spawn(move || shared.work())?;
            // Counted here, so that calls are spread over threads that are just starting.
            threads.0.lock().free += 1;
        }
        Ok(threads)
    }

    /// Adds a call behind the waiting ones.
    pub fn submit(&self, call: Call) {
        let mut state = self.0.lock();
        state.waiting.push_back(call);
        if state.is_next_alone(&self.0) {
            self.0.changed.notify_all();
        } else {
            self.0.changed.notify_one();
        }
    }

    /// Takes back a call that has not begun.
    pub fn cancel(&self, id: u32) -> bool {
        let mut state = self.0.lock();
        let found = state.waiting.iter().position(|call| call.id == id);
        // Another call may be the next one.
        self.0.changed.notify_all();
        found.and_then(|at| state.waiting.remove(at)).is_some()
    }

    /// The best known width of a method; 0 where no code is right.
    pub fn width(&self, method: Method) -> usize {
        let Shared { profile, room, .. } = *self.0;
        self.0.lock().learned(method, profile, room).best()
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.0.lock().waiting.len()
    }

    /// How many calls are in hand.
    pub fn running(&self) -> usize {
        self.0.lock().running
    }

    /// Ends the threads after the batches in hand. Waiting calls are wiped.
    pub fn end(&self) {
        let mut state = self.0.lock();
        state.ended = true;
        state.waiting.clear();
        self.0.changed.notify_all();
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        take_long_slices();
        let mut arena = Arena::new(self.room);
        while let Some(calls) = self.next_batch(&mut arena) {
            let (start, started) = (Instant::now(), processor_time());
            let outcomes = perform(&calls, self.profile, &mut arena);
            let (took, computed) = (start.elapsed(), processor_time() - started);
            let (method, count) = (calls[0].stored.method, calls.len());
            // Wipes the passwords before the outcomes are announced.
            drop(calls);
            if method.memory_blocks(self.room) > self.share {
                arena.give_back();
            }
            let ratio = {
                let mut state = self.lock();
                state.running -= count;
                state.free += 1;
                state.keeping -= usize::from(arena.is_empty());
                if state.is_alone {
                    state.is_alone = false;
                    self.changed.notify_all();
                }
                let learned = state.learned(method, self.profile, self.room);
                learned.took(count, computed);
                learned.ratio(count)
            };
            let each = |time: Duration| time.div_f64(count as f64).mul_f64(ratio);
            (self.settle)(outcomes, Took { wall: each(took), cpu: each(computed) });
        }
    }

    /// Waits for calls; `None` ends the thread. It counts as free until it has calls.
    fn next_batch(&self, arena: &mut Arena) -> Option<Vec<Call>> {
        let mut state = self.lock();
        loop {
            if state.ended {
                return None;
            }
            let is_alone = state.is_next_alone(self);
            if is_alone && !arena.is_empty() {
                state = self.tidied(state, arena, Arena::give_back);
                continue;
            }
            if !state.is_alone && (!is_alone || state.keeping == 0) {
                let calls = state.take_batch(self.profile, self.room);
                if !calls.is_empty() {
                    state.free -= 1;
                    state.running += calls.len();
                    state.keeping += usize::from(arena.is_empty());
                    state.is_alone = is_alone;
                    if state.is_next_alone(self) {
                        self.changed.notify_all();
                    }
                    return Some(calls);
                }
            }
            if arena.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let idle = if arena.is_clean() { GIVEN_BACK_AFTER } else { WIPED_AFTER };
            let waited = self.changed.wait_timeout(state, idle).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            if waited.1.timed_out() && state.waiting.is_empty() {
                state = self.tidied(state, arena, if arena.is_clean() { Arena::give_back } else { Arena::wipe });
            }
        }
    }

    /// Tidies the memory of a thread that has nothing in hand, without the lock meanwhile.
    fn tidied<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        arena: &mut Arena,
        tidy: fn(&mut Arena),
    ) -> MutexGuard<'a, State> {
        drop(state);
        tidy(arena);
        let mut state = self.lock();
        state.keeping -= usize::from(arena.is_empty());
        state
    }
}

impl State {
    /// Whether the oldest call takes more than a thread's share of the memory.
    fn is_next_alone(&self, &Shared { share, room, .. }: &Shared) -> bool {
        self.waiting.front().is_some_and(|call| call.stored.method.memory_blocks(room) > share)
    }

    /// The learned widths of a method.
    fn learned(&mut self, method: Method, profile: &Profile, room: usize) -> &mut Learned {
        match self.learned.iter().position(|(known, _)| *known == method) {
            Some(at) => self.learned[..=at].rotate_right(1),
            None => {
                self.learned.truncate(LEARNED - 1);
                self.learned.insert(0, (method, profile.expected(method, room)));
            }
        }
        &mut self.learned[0].1
    }

    /// The oldest call and others of its method: up to the best width, and an equal share of all
    /// waiting calls.
    fn take_batch(&mut self, profile: &Profile, room: usize) -> Vec<Call> {
        let Some(oldest) = self.waiting.front() else { return Vec::new() };
        let method = oldest.stored.method;
        let share = self.waiting.len().div_ceil(self.free.max(1));
        let mut left = self.learned(method, profile, room).next(share).max(1);
        let mut taken = Vec::with_capacity(left);
        let mut at = 0;
        while left > 0 && at < self.waiting.len() {
            if self.waiting[at].stored.method != method {
                at += 1;
            } else if let Some(call) = self.waiting.remove(at) {
                taken.push(call);
                left -= 1;
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;
    use crate::stored::Stored;
    use crate::widths::Widths;

    const SETTING: &str = "$2b$04$CCCCCCCCCCCCCCCCCCCCC.";
    const OTHER_COST: &str = "$2b$05$CCCCCCCCCCCCCCCCCCCCC.";
    const ARGON2: &str = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ";

    /// Which calls a free thread takes of these, one setting each, and which the next ones do.
    fn batches(free: usize, settings: &[&str]) -> Vec<Vec<u32>> {
        // A batch takes as long as one alone, up to this width.
        let widths = |best: usize| Widths::from_batches(&vec![Duration::from_millis(1); best]);
        let profile = Profile::portable(widths(4), widths(2));
        let call = |id, setting| {
            let stored = Stored::parse(setting).unwrap();
            Call { id, password: Zeroizing::new(b"U*U".to_vec()), stored }
        };
        let waiting = (0..).zip(settings).map(|(id, setting)| call(id, setting)).collect();
        let mut state = State { waiting, free, ..State::default() };
        let mut batches = Vec::new();
        while !state.waiting.is_empty() {
            batches.push(state.take_batch(&profile, 1_024).iter().map(|call| call.id).collect());
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
}
