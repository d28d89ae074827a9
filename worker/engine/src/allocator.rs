//! The allocator of the process, which Node, OpenSSL and other addons use for their hashes too.

/// Has what is larger go back to the system as soon as it is free. glibc would soon keep 32 MiB of it for each thread: 200 MiB after a few scrypt
/// hashes of Node's.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn keep_no_large_memory() {
    /// From malloc.h.
    const M_MMAP_THRESHOLD: i32 = -3;
    const LARGE_BYTES: i32 = 1 << 20;
    unsafe extern "C" {
        fn mallopt(parameter: i32, value: i32) -> i32;
    }
    // SAFETY: a setting of glibc that takes its own lock, and says nothing of memory that is in use.
    let set = unsafe { mallopt(M_MMAP_THRESHOLD, LARGE_BYTES) };
    debug_assert_eq!(set, 1);
}

/// Other allocators do so by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_no_large_memory() {}
