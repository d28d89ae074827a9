//! Memory mapped from the system. The allocator would keep it after use.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::OutOfMemory;
use crate::block::Block;

/// With small pages, argon2's memory exceeds the processor's cache of page tables.
const HUGE_PAGE_BYTES: usize = 2 * 1_024 * 1_024;
/// Alignment of the first block.
const ALIGNMENT: usize = if cfg!(target_os = "linux") { HUGE_PAGE_BYTES } else { align_of::<Block>() };

/// Zeroed blocks in a mapping of their own.
pub struct Mapping {
    start: NonNull<Block>,
    len: usize,
    /// The whole mapping, which begins earlier and ends later.
    mapped: (*mut c_void, usize),
}

// SAFETY: it owns its memory, and its pointers are to nothing else.
unsafe impl Send for Mapping {}

impl Mapping {
    pub const EMPTY: Self = Self { start: NonNull::dangling(), len: 0, mapped: (std::ptr::null_mut(), 0) };

    pub fn new(len: usize) -> Result<Self, OutOfMemory> {
        let bytes = len.checked_mul(size_of::<Block>()).ok_or(OutOfMemory)?;
        // Pages that are mapped and never touched take no memory.
        let size = bytes.checked_add(ALIGNMENT).ok_or(OutOfMemory)?;
        let flags = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: memory that nothing else uses, at an address that the system chooses.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), size, flags.0, flags.1) };
        let base = base.map_err(|_| OutOfMemory)?;
        // Less than the alignment, by which more was mapped.
        let start = base.wrapping_byte_add(base.align_offset(ALIGNMENT));
        let start = NonNull::new(start.cast::<Block>()).ok_or(OutOfMemory)?;
        let mapping = Self { start, len, mapped: (base, size) };
        mapping.ask_for_huge_pages();
        Ok(mapping)
    }

    /// Size of the part with huge pages. The rest has small pages, so that no memory is wasted.
    fn huge_bytes(&self) -> usize {
        self.len * size_of::<Block>() / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
    }

    /// Before the memory is touched: huge pages are only given out for memory that asks for them,
    /// and on its first use.
    fn ask_for_huge_pages(&self) {
        #[cfg(target_os = "linux")]
        if self.huge_bytes() > 0 {
            let (start, advice) = (self.start.as_ptr().cast(), rustix::mm::Advice::LinuxHugepage);
            // SAFETY: the range lies in memory that is ours, and the advice changes nothing that is
            // in it.
            let advised = unsafe { rustix::mm::madvise(start, self.huge_bytes(), advice) };
            // Without huge pages the memory is as good, only slower.
            let _ = advised;
        }
    }

    /// Whether Linux has given huge pages for all that they were asked for; `None` where nothing
    /// was, or the system does not tell.
    pub fn has_huge_pages(&self) -> Option<bool> {
        let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let range = maps.split_inclusive('\n').skip_while(|line| !self.begins_in(line));
        let huge = range.filter_map(|line| line.strip_prefix("AnonHugePages:")).next()?;
        let huge_kib: usize = huge.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
        (self.huge_bytes() > 0).then_some(huge_kib >= self.huge_bytes() / 1_024)
    }

    /// Whether a line of `smaps` begins the range of addresses in which the blocks begin.
    fn begins_in(&self, line: &str) -> bool {
        let address = |text: &str| usize::from_str_radix(text, 16).ok();
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        range
            .and_then(|(from, to)| Some(address(from)?..address(to)?))
            .is_some_and(|range| range.contains(&(self.start.as_ptr() as usize)))
    }
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
