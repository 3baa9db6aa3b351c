//! The extension slot of a tensor or a storage: one value of a type that only a higher layer knows, such as autograd
//! metadata.
//!
//! `OnceLock<Box<dyn Any>>` was rejected for its cost: a tensor of a graph gets such a value when it is created and drops
//! it with itself, and the lock and the system's allocator took a tenth of the time of a recorded call.

use super::blocks;
use std::any::TypeId;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The type-independent part of a block.
struct Header {
    of: TypeId,
    /// Drops the value and frees its block.
    free: unsafe fn(NonNull<Header>),
}

#[repr(C)]
struct Block<T> {
    header: Header,
    value: T,
}

/// A slot for one value, written at most once.
pub(crate) struct Extension(AtomicPtr<Header>);

/// # Safety
/// `block` is an initialised `Block<T>` whose ownership the caller passes.
unsafe fn free<T>(block: NonNull<Header>) {
    let block = block.cast::<Block<T>>();
    // SAFETY: the caller owns the block and its value.
    unsafe {
        block.drop_in_place();
        blocks::give(block);
    }
}

fn make<T: Send + Sync + 'static>(value: T) -> NonNull<Block<T>> {
    let block = blocks::take::<Block<T>>();
    // SAFETY: `take` returned memory for a block, uniquely owned.
    unsafe { block.write(Block { header: Header { of: TypeId::of::<T>(), free: free::<T> }, value }) };
    block
}

impl Extension {
    /// An empty slot.
    #[inline(always)]
    pub(crate) fn empty() -> Extension {
        Extension(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The value; `None` if there is none of this type.
    #[inline]
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        // Acquire: the value was written before its address was.
        let block = NonNull::new(self.0.load(Ordering::Acquire))?;
        // SAFETY: the address is that of a block which lives as long as this does; its header has its type.
        unsafe { (block.as_ref().of == TypeId::of::<T>()).then(|| &block.cast::<Block<T>>().as_ref().value) }
    }

    /// The value, created if there is none; `None` if there is one of another type.
    pub(crate) fn get_or_init<T: Send + Sync + 'static>(&self, value: impl FnOnce() -> T) -> Option<&T> {
        if self.0.load(Ordering::Acquire).is_null() {
            let block = make(value()).cast::<Header>();
            let none = std::ptr::null_mut();
            if self.0.compare_exchange(none, block.as_ptr(), Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: another thread was first, so this block was never published.
                unsafe { free::<T>(block) };
            }
        }
        self.get()
    }

    /// Writes the value into an empty slot; returns it mutably.
    #[inline(always)]
    pub(crate) fn set_new<T: Send + Sync + 'static>(&mut self, value: T) -> Option<&mut T> {
        if !self.0.get_mut().is_null() {
            return None;
        }
        let mut block = make(value);
        *self.0.get_mut() = block.cast().as_ptr();
        // SAFETY: the block was just created, and is borrowed as this is.
        Some(unsafe { &mut block.as_mut().value })
    }
}

impl Default for Extension {
    fn default() -> Extension {
        Extension::empty()
    }
}

impl Drop for Extension {
    #[inline]
    fn drop(&mut self) {
        if let Some(block) = NonNull::new(*self.0.get_mut()) {
            // SAFETY: the block is this one's alone, and `free` was written for its type.
            unsafe { (block.as_ref().free)(block) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_value_is_set_once_and_dropped_once() {
        let counted = Arc::new(());
        let mut slot = Extension::empty();
        assert!(slot.get::<Arc<()>>().is_none());
        assert!(slot.set_new(counted.clone()).is_some());
        assert!(slot.set_new(counted.clone()).is_none());
        assert!(slot.get_or_init(|| 7u8).is_none() && slot.get::<u8>().is_none());
        assert!(slot.get_or_init(|| counted.clone()).is_some());
        assert_eq!(Arc::strong_count(&counted), 2);
        drop(slot);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn threads_agree_on_one_value() {
        let counted = Arc::new(());
        for _ in 0..50 {
            let slot = Extension::empty();
            let addresses: Vec<usize> = std::thread::scope(|scope| {
                let seen = || slot.get_or_init(|| counted.clone()).map(|v| std::ptr::from_ref(v).addr());
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(seen)).collect();
                threads.into_iter().map(|t| t.join().unwrap().unwrap()).collect()
            });
            assert!(addresses.iter().all(|a| *a == addresses[0]));
            assert_eq!(Arc::strong_count(&counted), 2);
        }
    }
}
