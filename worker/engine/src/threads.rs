//! Threads that hash, and the calls that wait for them.
//!
//! A thread that is free takes the call that has waited longest, and with it as many others of the same method as it does
//! best together: at once, without waiting for more, and not so many that another free thread gets none.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::calls::{Call, Outcome, perform};
use crate::profile::Profile;

/// Is told what became of the calls of a batch, on the thread that did it, and the time of a thread for each as it is in a full batch.
pub type Settle = dyn Fn(Vec<(u32, Outcome)>, Duration) + Send + Sync;

/// A thread that has nothing to do wipes its memory after that long. Not at once: under load the next call is on its way, and
/// overwrites it anyway.
const WIPED_AFTER: Duration = Duration::from_millis(100);

/// A number of threads. When dropped they end after the batch in hand, and what waits is wiped and never done.
pub struct Threads(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    profile: &'static Profile,
    settle: Box<Settle>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Call>,
    /// Calls in hand.
    running: usize,
    /// Threads that have nothing in hand.
    free: usize,
    ended: bool,
}

impl Threads {
    /// Starts them.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub fn start(count: usize, profile: &'static Profile, settle: Box<Settle>) -> io::Result<Self> {
        let shared = Shared { state: Mutex::default(), changed: Condvar::new(), profile, settle };
        let threads = Self(Arc::new(shared));
        for n in 0..count {
            let shared = Arc::clone(&threads.0);
            thread::Builder::new().name(format!("hash {n}")).spawn(move || shared.work())?;
            // Counted here, so that calls are spread over threads that are just starting.
            threads.0.lock().free += 1;
        }
        Ok(threads)
    }

    /// Has a call done after those that wait already.
    pub fn submit(&self, call: Call) {
        self.0.lock().waiting.push_back(call);
        self.0.changed.notify_one();
    }

    /// Takes a call back, if it has not begun.
    pub fn cancel(&self, id: u32) -> bool {
        let mut state = self.0.lock();
        let found = state.waiting.iter().position(|call| call.id == id);
        found.and_then(|at| state.waiting.remove(at)).is_some()
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.0.lock().waiting.len()
    }

    /// How many calls are in hand.
    pub fn running(&self) -> usize {
        self.0.lock().running
    }

    /// Ends the threads after the batch in hand. What waits is wiped and never done.
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
        // Nothing panics while it holds the lock; what is in it is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut arena = Arena::default();
        while let Some(calls) = self.next_batch(&mut arena) {
            let start = Instant::now();
            let outcomes = perform(&calls, self.profile, &mut arena);
            let count = calls.len();
            let each = self.profile.time_in_full_batch(calls[0].stored.method, start.elapsed(), count);
            // The passwords are wiped before anyone hears of them.
            drop(calls);
            {
                let mut state = self.lock();
                state.running -= count;
                state.free += 1;
            }
            (self.settle)(outcomes, each);
        }
    }

    /// Waits for calls. The thread counts as free until it has some. `None` is the end.
    fn next_batch(&self, arena: &mut Arena) -> Option<Vec<Call>> {
        let mut state = self.lock();
        loop {
            if state.ended {
                return None;
            }
            let calls = state.take_batch(self.profile);
            if !calls.is_empty() {
                state.free -= 1;
                state.running += calls.len();
                return Some(calls);
            }
            if arena.is_clean() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let waited = self.changed.wait_timeout(state, WIPED_AFTER).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            if waited.1.timed_out() && state.waiting.is_empty() {
                drop(state);
                arena.wipe();
                state = self.lock();
            }
        }
    }
}

impl State {
    /// The oldest call and others like it: the best width at most, and no more than an equal share of all that wait.
    fn take_batch(&mut self, profile: &Profile) -> Vec<Call> {
        let Some(oldest) = self.waiting.front() else { return Vec::new() };
        let method = oldest.stored.method;
        let share = self.waiting.len().div_ceil(self.free.max(1));
        let mut room = profile.width(method).max(1).min(share);
        let mut taken = Vec::with_capacity(room);
        let mut at = 0;
        while room > 0 && at < self.waiting.len() {
            if self.waiting[at].stored.method != method {
                at += 1;
            } else if let Some(call) = self.waiting.remove(at) {
                taken.push(call);
                room -= 1;
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests;
