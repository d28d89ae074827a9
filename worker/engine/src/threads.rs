//! Threads that hash, and the calls that wait for them.
//!
//! A thread that is free takes the call that has waited longest, and with it as many others of the same method as it does
//! best together: at once, without waiting for more, and not so many that another free thread gets none.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::arena::{Arena, WIPED_AFTER};
use crate::calls::{Call, Outcome, perform};
use crate::profile::{Profile, processor_time};
use crate::slice::take_long_slices;
use crate::stored::Method;
use crate::widths::Learned;

/// The time of a thread for one call of a batch, as it is in a full one.
#[derive(Clone, Copy)]
pub struct Took {
    /// From the begin of the batch to its end.
    pub wall: Duration,
    /// On a processor.
    pub cpu: Duration,
}

/// Is told what became of the calls of a batch, on the thread that did it, and what each took.
pub type Settle = dyn Fn(Vec<(u32, Outcome)>, Took) + Send + Sync;

/// A thread that has nothing to do gives its memory back this long after it has wiped it: the next storm has to map it anew.
const GIVEN_BACK_AFTER: Duration = Duration::from_secs(3);
/// Methods whose widths are learned: a worker has one or two of its own, and those of accounts that moved in.
const LEARNED: usize = 16;

/// A number of threads. When dropped they end after the batch in hand, and what waits is wiped and never done.
pub struct Threads(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    profile: &'static Profile,
    /// How many blocks of memory a batch may take in each thread.
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
    /// What batches have shown, the method of the last one first.
    learned: Vec<(Method, Learned)>,
    ended: bool,
}

impl Threads {
    /// Starts them. In each a batch takes as many hashes as there is room for in so many blocks; one that takes more is done alone.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub fn start(count: usize, room: usize, profile: &'static Profile, settle: Box<Settle>) -> io::Result<Self> {
        let room = Arena::new(room).room();
        let shared = Shared { state: Mutex::default(), changed: Condvar::new(), profile, room, settle };
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

    /// How many calls of a method are fastest together, as far as is known; 0 where it cannot be done.
    pub fn width(&self, method: Method) -> usize {
        let Shared { profile, room, .. } = *self.0;
        self.0
            .lock()
            .learned(method, profile, room)
            .map_or_else(|| profile.width(method, room), |learned| learned.best())
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
        take_long_slices();
        let mut arena = Arena::new(self.room);
        while let Some(calls) = self.next_batch(&mut arena) {
            let (start, started) = (Instant::now(), processor_time());
            let outcomes = perform(&calls, self.profile, &mut arena);
            let (took, computed) = (start.elapsed(), processor_time() - started);
            let (method, count) = (calls[0].stored.method, calls.len());
            // The passwords are wiped before anyone hears of them.
            drop(calls);
            let ratio = {
                let mut state = self.lock();
                state.running -= count;
                state.free += 1;
                match state.learned(method, self.profile, self.room) {
                    Some(learned) => {
                        learned.took(count, computed);
                        learned.ratio(count)
                    }
                    None => self.profile.ratio_of_lanes(method, self.room, count),
                }
            };
            let each = |time: Duration| time.div_f64(count as f64).mul_f64(ratio);
            (self.settle)(outcomes, Took { wall: each(took), cpu: each(computed) });
        }
    }

    /// Waits for calls. The thread counts as free until it has some. `None` is the end.
    fn next_batch(&self, arena: &mut Arena) -> Option<Vec<Call>> {
        let mut state = self.lock();
        loop {
            if state.ended {
                return None;
            }
            let calls = state.take_batch(self.profile, self.room);
            if !calls.is_empty() {
                state.free -= 1;
                state.running += calls.len();
                return Some(calls);
            }
            if arena.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let idle = if arena.is_clean() { GIVEN_BACK_AFTER } else { WIPED_AFTER };
            let waited = self.changed.wait_timeout(state, idle).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            if waited.1.timed_out() && state.waiting.is_empty() {
                drop(state);
                if arena.is_clean() {
                    arena.give_back()
                } else {
                    arena.wipe()
                }
                state = self.lock();
            }
        }
    }
}

impl State {
    /// What is known of the batches of a method; `None` for one whose widths are not learned.
    fn learned(&mut self, method: Method, profile: &Profile, room: usize) -> Option<&mut Learned> {
        match self.learned.iter().position(|(known, _)| *known == method) {
            Some(at) => self.learned[..=at].rotate_right(1),
            None => {
                self.learned.truncate(LEARNED - 1);
                self.learned.insert(0, (method, profile.expected(method, room)?));
            }
        }
        self.learned.first_mut().map(|(_, learned)| learned)
    }

    /// The oldest call and others like it: the best width at most, and no more than an equal share of all that wait.
    fn take_batch(&mut self, profile: &Profile, room: usize) -> Vec<Call> {
        let Some(oldest) = self.waiting.front() else { return Vec::new() };
        let method = oldest.stored.method;
        let share = self.waiting.len().div_ceil(self.free.max(1));
        let width = match self.learned(method, profile, room) {
            Some(learned) => learned.next(share),
            None => profile.width(method, room).min(share),
        };
        let mut left = width.max(1);
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
mod tests;
