//! Reads of strided memory at computed offsets.

use crate::number::Number;
use keyway_sdk::author::View;

/// Checked reads of a strided tensor's elements, by offset from the first element.
#[derive(Clone, Copy)]
pub struct Reads<T> {
    data: *const T,
    /// The offset of the last element; `None` if the tensor is empty.
    last: Option<u64>,
}

// SAFETY: the type reads memory that is not written while its view exists, from any thread.
unsafe impl<T: Sync> Sync for Reads<T> {}

impl<T: Number> Reads<T> {
    /// Reads from a view during its call.
    pub fn new(view: &View<'_, T>) -> Reads<T> {
        let reach =
            view.sizes().iter().zip(view.strides()).map(|(n, s)| (n - 1).max(0) as u64 * *s as u64).sum();
        Reads { data: view.as_ptr(), last: (view.numel() > 0).then_some(reach) }
    }

    /// The element at an offset; 0 beyond the last element.
    #[inline(always)]
    pub fn at(&self, offset: u64) -> T {
        match self.last {
            // SAFETY: the host guarantees the memory from the first to the last element, and the kernel that made this
            // writes only to new memory.
            Some(last) if offset <= last => unsafe { self.data.add(offset as usize).read() },
            _ => T::narrow(T::ZERO),
        }
    }
}
