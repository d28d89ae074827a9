//! What the engine asks of the operating system: a thread's processor time and slices, and memory
//! that goes back.

use std::time::Duration;

/// Processor time of this thread: the processor may be busy with others.
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Makes glibc return freed memory of more than a MiB at once, for Node and OpenSSL too. Otherwise
/// it keeps 32 MiB a thread: 200 MiB after a few scrypt hashes of Node. Other allocators return it.
#[cfg(all(feature = "addon", not(test)))]
pub fn keep_no_large_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: glibc takes its own lock, and memory in use is not affected.
        let set = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20) };
        debug_assert_eq!(set, 1);
    }
}

/// Each switch costs argon2 its cache. On a core shared by gateway, Redis and worker, slices of 10
/// to 30 ms give some 6 % more logins than the kernel's 1 to 3 ms. At 100 ms an endpoint's p99
/// doubles.
#[cfg(target_os = "linux")]
const SLICE_NS: u64 = 20_000_000;

/// Asks for long slices for this thread. Its share of the core stays the same, and so does its nice
/// value. Linux has slices since 6.12; an older kernel, a sandbox without these system calls, or
/// another system changes nothing.
pub fn take_long_slices() {
    #[cfg(target_os = "linux")]
    {
        const SIZE: libc::c_uint = size_of::<libc::sched_attr>() as libc::c_uint;
        const THIS_THREAD: libc::c_long = 0;
        const NO_FLAGS: libc::c_uint = 0;
        // SAFETY: it consists of numbers, for which zeros are valid.
        let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes at most `SIZE` bytes into `attr`, where any value is valid.
        let got = unsafe { libc::syscall(libc::SYS_sched_getattr, THIS_THREAD, &raw mut attr, SIZE, NO_FLAGS) };
        // The runtime is the slice only under this policy.
        if got == 0 && attr.sched_policy == libc::SCHED_OTHER as u32 {
            (attr.size, attr.sched_runtime) = (SIZE, SLICE_NS);
            // SAFETY: the kernel reads the `size` bytes of `attr`.
            unsafe { libc::syscall(libc::SYS_sched_setattr, THIS_THREAD, &raw const attr, NO_FLAGS) };
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
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
