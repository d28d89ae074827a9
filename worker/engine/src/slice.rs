//! How long a thread that hashes keeps a contended core before others have their turn.

/// Each switch costs argon2 its cache and the next one theirs. Slices of 10 to 30 ms give a core that gateway, Redis and worker
/// share some 6 % more logins than the kernel's 1 to 3 ms. With 100 ms an endpoint beside it waits twice as long at p99.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
const SLICE_NS: u64 = 20_000_000;

/// Asks for long slices for this thread. Its share of the core stays the same, and so does its nice value. Linux has slices
/// since 6.12; an older kernel, or a sandbox without these system calls, changes nothing.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn take_long_slices() {
    use std::ffi::{c_long, c_uint};

    /// `struct sched_attr` of linux/sched/types.h, in its first version.
    #[repr(C)]
    #[derive(Default)]
    struct SchedAttr {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        /// Of an ordinary thread: its slice.
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    const SIZE: c_uint = size_of::<SchedAttr>() as c_uint;
    const THIS_THREAD: c_long = 0;
    const NO_FLAGS: c_uint = 0;
    /// Ordinary threads. The runtime of other policies means something else.
    const SCHED_OTHER: u32 = 0;
    const SYS_SCHED_SETATTR: c_long = if cfg!(target_arch = "x86_64") { 314 } else { 274 };
    const SYS_SCHED_GETATTR: c_long = SYS_SCHED_SETATTR + 1;
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }

    let mut attr = SchedAttr::default();
    // SAFETY: the kernel writes at most `SIZE` bytes into `attr`, in which every value is valid.
    let got = unsafe { syscall(SYS_SCHED_GETATTR, THIS_THREAD, &raw mut attr, SIZE, NO_FLAGS) };
    if got != 0 || attr.policy != SCHED_OTHER {
        return;
    }
    (attr.size, attr.runtime) = (SIZE, SLICE_NS);
    // SAFETY: the kernel reads the `size` bytes of `attr`.
    unsafe { syscall(SYS_SCHED_SETATTR, THIS_THREAD, &raw const attr, NO_FLAGS) };
}

/// Elsewhere the system decides.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub fn take_long_slices() {}

#[cfg(all(test, target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use std::fs::read_to_string;
    use std::thread;

    use super::*;

    /// The slice and the weight of this thread, where the kernel tells them.
    fn scheduling() -> Option<(u64, u64)> {
        let text = read_to_string("/proc/thread-self/sched").ok()?;
        let of = |name: &str| text.lines().find(|line| line.starts_with(name))?.rsplit(' ').next()?.parse().ok();
        Some((of("se.slice")?, of("se.load.weight")?))
    }

    #[test]
    fn a_thread_has_long_slices_and_its_share() {
        // Kernels before 6.12 tell a slice that nobody can change.
        let release = read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut parts = release.split('.').map(|part| part.parse().unwrap_or(0));
        let kernel = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        let Some((_, weight)) = scheduling().filter(|_| kernel >= (6, 12)) else { return };
        let thread = thread::spawn(|| {
            take_long_slices();
            scheduling()
        });
        assert_eq!(thread.join().unwrap(), Some((SLICE_NS, weight)));
    }
}
