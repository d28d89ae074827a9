//! The processor time that work takes, of several kinds in turn.

use std::time::Duration;

use super::TIMES;

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
    fn a_width_that_is_wrong_at_last_ends_the_list() {
        let least = least_of_each(4, |width, time| {
            let start = processor_time();
            while width != 3 && processor_time() - start < Duration::from_micros(100) {}
            width != 3 || time < TIMES - 1
        });
        assert_eq!(least.len(), 2);
    }
}
