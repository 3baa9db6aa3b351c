//! System allocations: blocks of a size class, and large mappings.

use super::{ALIGNMENT, release, reserve};
use std::alloc::Layout;
use std::ptr::NonNull;

/// Alignment of large blocks: a huge page.
pub(super) const HUGE_PAGE: usize = 2 << 20;

/// Allocates a block of `size` bytes, a positive multiple of [`ALIGNMENT`].
pub(super) fn allocate_block(size: usize) -> Option<NonNull<u8>> {
    let layout = Layout::from_size_align(size, ALIGNMENT).ok()?;
    // SAFETY: the layout's size is positive: size classes have no class of zero bytes.
    let block = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
    reserve(size);
    Some(block)
}

/// # Safety
/// `block` was returned by [`allocate_block`] with the same `size`, and is not used any more.
pub(super) unsafe fn free_block(block: NonNull<u8>, size: usize) {
    // SAFETY: the layout is valid, because `allocate_block` allocated a block with it; the caller guarantees that `block`
    // has this size.
    unsafe {
        let layout = Layout::from_size_align_unchecked(size, ALIGNMENT);
        std::alloc::dealloc(block.as_ptr(), layout);
    }
    release(size);
}

/// Maps `size` bytes, a positive multiple of the page size, aligned to [`HUGE_PAGE`].
#[cfg(target_os = "linux")]
pub(super) fn map(size: usize) -> Option<NonNull<u8>> {
    let padded = size.checked_add(HUGE_PAGE)?;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), padded, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let start = start.cast::<u8>();
    let head = start.align_offset(HUGE_PAGE);
    let tail = HUGE_PAGE - head;
    // SAFETY: `head + size + tail` is the length of the new mapping, and the trimmed parts are whole pages that were never
    // returned. The advice is about the remaining pages, and may be refused.
    unsafe {
        let block = start.add(head);
        if head > 0 {
            libc::munmap(start.cast(), head);
        }
        if tail > 0 {
            libc::munmap(block.add(size).cast(), tail);
        }
        libc::madvise(block.cast(), size, libc::MADV_HUGEPAGE);
        reserve(size);
        NonNull::new(block)
    }
}

/// # Safety
/// `block` was returned by [`map`] with the same `size`, and is not used any more.
#[cfg(target_os = "linux")]
pub(super) unsafe fn unmap(block: NonNull<u8>, size: usize) {
    // SAFETY: the caller guarantees that exactly this mapping exists and is unused.
    unsafe { libc::munmap(block.as_ptr().cast(), size) };
    release(size);
}

/// Allocates `size` bytes, aligned to [`HUGE_PAGE`].
#[cfg(not(target_os = "linux"))]
pub(super) fn map(size: usize) -> Option<NonNull<u8>> {
    let layout = Layout::from_size_align(size, HUGE_PAGE).ok()?;
    // SAFETY: the layout's size is positive: large blocks have at least 1 MiB.
    let block = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
    reserve(size);
    Some(block)
}

/// # Safety
/// `block` was returned by [`map`] with the same `size`, and is not used any more.
#[cfg(not(target_os = "linux"))]
pub(super) unsafe fn unmap(block: NonNull<u8>, size: usize) {
    // SAFETY: the layout is valid, because `map` allocated a block with it; the caller guarantees that `block` has this
    // size.
    unsafe {
        let layout = Layout::from_size_align_unchecked(size, HUGE_PAGE);
        std::alloc::dealloc(block.as_ptr(), layout);
    }
    release(size);
}

/// Bytes of memory this process may use: those of the machine or of its control group, whichever is less; 4 GiB if neither
/// is known.
pub(super) fn physical_memory() -> usize {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
    });
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse::<usize>().ok());
    [machine, group].into_iter().flatten().min().unwrap_or(4 << 30)
}
