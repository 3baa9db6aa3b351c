//! Reads of strided memory at computed offsets.

use crate::number::Number;
use keyway_sdk::author::View;

/// The elements of a strided tensor, by their offset from the first.
#[derive(Clone, Copy)]
pub struct Reads<T> {
    data: *const T,
    /// The offset of the last element; nothing can be read of a tensor without elements.
    last: Option<u64>,
}

// SAFETY: the type reads memory that is not written while its view exists, from any thread.
unsafe impl<T: Sync> Sync for Reads<T> {}

impl<T: Number> Reads<T> {
    /// Reads of a view, for as long as the call that it is of.
    pub fn new(view: &View<'_, T>) -> Reads<T> {
        let reach =
            view.sizes().iter().zip(view.strides()).map(|(n, s)| (n - 1).max(0) as u64 * *s as u64).sum();
        Reads { data: view.as_ptr(), last: (view.numel() > 0).then_some(reach) }
    }

    /// The element at an offset; 0 beyond the last.
    #[inline(always)]
    pub fn at(&self, offset: u64) -> T {
        match self.last {
            // SAFETY: the host guarantees the memory from the first to the last element, and the kernel that made this
            // writes to new memory alone.
            Some(last) if offset <= last => unsafe { self.data.add(offset as usize).read() },
            _ => T::narrow(T::ZERO),
        }
    }
}
