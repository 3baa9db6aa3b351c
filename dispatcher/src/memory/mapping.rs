//! [`Mapping`]: a file that is mapped to memory.

use rustix::mm;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

/// Device and inode of a file, which identify it among all open files.
pub type FileId = (u64, u64);

/// A mapping, unmapped on drop.
pub(super) struct Mapping {
    pub(super) pointer: NonNull<u8>,
    /// Length of the mapping, above 0.
    pub(super) length: usize,
    pub(super) file: OwnedFd,
    pub(super) id: FileId,
    /// For an anonymous file of sealed size, the function that is called before the file is unmapped.
    pub(super) sealed: Option<fn(FileId)>,
}

// SAFETY: a mapping belongs to the process and may be used and removed on any thread.
unsafe impl Send for Mapping {}
// SAFETY: as for Send; a shared mapping only returns its fields.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Some(forget) = self.sealed {
            forget(self.id);
        }
        // SAFETY: the range is the one that `mapped::map` received from the kernel, and the storage that owned it is gone, so
        // nothing refers to it.
        let result = unsafe { mm::munmap(self.pointer.as_ptr().cast(), self.length) };
        if let Err(error) = result {
            crate::base::log::warn(&format!("mapped memory of {} bytes was not freed: {error}", self.length));
        }
    }
}

impl Mapping {
    pub(super) fn name(&self) -> &'static str {
        if self.sealed.is_some() { "shared memory" } else { "mapped file" }
    }
}
