//! Memory from the system and back to it, not by way of the allocator, which keeps what it has for later.

use std::ops::{Deref, DerefMut};

use super::OutOfMemory;
use crate::block::Block;

/// The pages that are worth asking for: page tables of argon2's memory do not fit into what a processor remembers of them.
#[cfg(target_os = "linux")]
const HUGE_PAGE_BYTES: usize = 2 * 1_024 * 1_024;

#[cfg(unix)]
pub use unix::Mapping;

#[cfg(unix)]
mod unix {
    use std::ffi::c_void;
    use std::ptr::NonNull;

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    use super::*;

    /// Blocks, at first of zeros, in memory that is mapped for them alone.
    pub struct Mapping {
        start: NonNull<Block>,
        len: usize,
        /// All that was mapped, which begins earlier and ends later.
        mapped: (*mut c_void, usize),
    }

    // SAFETY: it owns its memory, and its pointers are to nothing else.
    unsafe impl Send for Mapping {}

    impl Mapping {
        pub const EMPTY: Self = Self { start: NonNull::dangling(), len: 0, mapped: (std::ptr::null_mut(), 0) };

        pub fn new(len: usize) -> Result<Self, OutOfMemory> {
            let bytes = len.checked_mul(size_of::<Block>()).ok_or(OutOfMemory)?;
            // Pages that are mapped and never touched take no memory.
            let size = bytes.checked_add(alignment()).ok_or(OutOfMemory)?;
            let flags = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
            // SAFETY: memory that nothing else uses, at an address that the system chooses.
            let base = unsafe { mmap_anonymous(std::ptr::null_mut(), size, flags.0, flags.1) };
            let base = base.map_err(|_| OutOfMemory)?;
            // Less than the alignment, by which more was mapped.
            let start = base.wrapping_byte_add(base.align_offset(alignment()));
            let start = NonNull::new(start.cast::<Block>()).ok_or(OutOfMemory)?;
            let mapping = Self { start, len, mapped: (base, size) };
            mapping.ask_for_huge_pages();
            Ok(mapping)
        }

        /// Before the memory is touched: huge pages are only given out for memory that asks for them, and on its first use. The end that
        /// fills no huge page has small pages, so that no more memory is taken than was asked for.
        #[cfg(target_os = "linux")]
        fn ask_for_huge_pages(&self) {
            let bytes = self.len * size_of::<Block>() / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
            if bytes > 0 {
                let start = self.start.as_ptr().cast();
                // SAFETY: the range lies in memory that is ours, and the advice changes nothing that is in it.
                let advised = unsafe { rustix::mm::madvise(start, bytes, rustix::mm::Advice::LinuxHugepage) };
                // Without huge pages the memory is as good, only slower.
                let _ = advised;
            }
        }

        #[cfg(not(target_os = "linux"))]
        fn ask_for_huge_pages(&self) {}

        /// Whether Linux has given huge pages for all that they were asked for; `None` where nothing was.
        #[cfg(target_os = "linux")]
        pub fn has_huge_pages(&self) -> Option<bool> {
            let wanted_kib = self.len * size_of::<Block>() / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES / 1_024;
            let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
            let range = maps.split_inclusive('\n').skip_while(|line| !self.begins_in(line));
            let huge = range.filter_map(|line| line.strip_prefix("AnonHugePages:")).next()?;
            let huge_kib: usize = huge.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
            (wanted_kib > 0).then_some(huge_kib >= wanted_kib)
        }

        /// Whether a line of `smaps` begins the range of addresses in which the blocks begin.
        #[cfg(target_os = "linux")]
        fn begins_in(&self, line: &str) -> bool {
            let address = |text: &str| usize::from_str_radix(text, 16).ok();
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            range
                .and_then(|(from, to)| Some(address(from)?..address(to)?))
                .is_some_and(|range| range.contains(&(self.start.as_ptr() as usize)))
        }

        #[cfg(not(target_os = "linux"))]
        pub fn has_huge_pages(&self) -> Option<bool> {
            None
        }
    }

    #[cfg(target_os = "linux")]
    const fn alignment() -> usize {
        HUGE_PAGE_BYTES
    }

    #[cfg(not(target_os = "linux"))]
    const fn alignment() -> usize {
        align_of::<Block>()
    }

    impl Deref for Mapping {
        type Target = [Block];

        fn deref(&self) -> &[Block] {
            // SAFETY: so many blocks are mapped from there on, aligned, and any bytes are blocks.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
        }
    }

    impl DerefMut for Mapping {
        fn deref_mut(&mut self) -> &mut [Block] {
            // SAFETY: as above, and it is borrowed for writing.
            unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            let (base, size) = self.mapped;
            if size > 0 {
                // SAFETY: it was mapped by this, and borrowed by nobody any more.
                let unmapped = unsafe { munmap(base, size) };
                debug_assert!(unmapped.is_ok());
            }
        }
    }
}

/// Where the system is no Unix, by the allocator.
#[cfg(not(unix))]
pub struct Mapping(Vec<Block>);

#[cfg(not(unix))]
impl Mapping {
    pub const EMPTY: Self = Self(Vec::new());

    pub fn new(len: usize) -> Result<Self, OutOfMemory> {
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(len).map_err(|_| OutOfMemory)?;
        blocks.resize(len, Block::ZERO);
        Ok(Self(blocks))
    }

    pub fn has_huge_pages(&self) -> Option<bool> {
        None
    }
}

#[cfg(not(unix))]
impl Deref for Mapping {
    type Target = [Block];

    fn deref(&self) -> &[Block] {
        &self.0
    }
}

#[cfg(not(unix))]
impl DerefMut for Mapping {
    fn deref_mut(&mut self) -> &mut [Block] {
        &mut self.0
    }
}
