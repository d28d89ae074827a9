//! The processor time that work takes, of several kinds in turn.

use std::time::Duration;

use super::TIMES;
use crate::widths::Widths;

/// Which widths are timed more often than all are: who else uses the core makes wide batches slower by half, and one alone not.
#[derive(Clone, Copy)]
pub struct Again {
    /// The fastest so far.
    pub fastest: usize,
    pub times: usize,
}

/// The shortest processor time of a batch of each width up to `widest`, or to the first one that was not right.
pub fn least_of_widths(widest: usize, again: Again, mut work: impl FnMut(usize, usize) -> bool) -> Vec<Duration> {
    let mut least = least_of_each(widest, &mut work);
    for time in TIMES..TIMES + again.times {
        for width in Widths::from_batches(&least).fastest(again.fastest) {
            time_again(&mut least, width, || work(width, time));
        }
    }
    least
}

/// The shortest processor time of each, of 1 to `count`, up to the first one that was not right. They are timed in turn, so
/// that what disturbs one disturbs them all; with which time it is.
pub fn least_of_each(count: usize, mut work: impl FnMut(usize, usize) -> bool) -> Vec<Duration> {
    let mut least = vec![Duration::MAX; count];
    for time in 0..TIMES {
        for n in 1..=count {
            time_again(&mut least, n, || work(n, time));
        }
    }
    least
}

/// Times the n-th once more. One that is not right ends the list before it.
fn time_again(least: &mut Vec<Duration>, n: usize, work: impl FnOnce() -> bool) {
    if n > least.len() {
        return;
    }
    let start = processor_time();
    if work() {
        least[n - 1] = least[n - 1].min(processor_time() - start);
    } else {
        least.truncate(n - 1);
    }
}

/// Of this thread, because the processor may be busy with others.
#[cfg(unix)]
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The nearest that there is elsewhere.
#[cfg(not(unix))]
pub fn processor_time() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_widths_are_timed_more_often() {
        let mut times = [0; 4];
        // The second one alone takes no time.
        let least = least_of_widths(4, Again { fastest: 3, times: 8 }, |width, _| {
            times[width - 1] += 1;
            let start = processor_time();
            while width != 2 && processor_time() - start < Duration::from_micros(100 * (width * width) as u64) {}
            true
        });
        assert_eq!(times, [12, 12, 12, 4]);
        assert_eq!(Widths::from_batches(&least).best(), 2);
    }

    #[test]
    fn a_width_that_is_wrong_at_last_ends_the_list() {
        let least = least_of_widths(4, Again { fastest: 3, times: 8 }, |width, time| {
            let start = processor_time();
            while width != 3 && processor_time() - start < Duration::from_micros(100) {}
            width != 3 || time < TIMES
        });
        assert_eq!(least.len(), 2);
    }
}
