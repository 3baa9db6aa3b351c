//! Host allocators that a program sets for the memory of tensors on the CPU.
//!
//! A chosen allocator takes precedence over the backend that serves the CPU, whose kernels read any host memory. While none
//! is chosen, an allocation costs one additional load.

use super::host::ALIGN;
use super::{Owner, Storage};
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use std::alloc::Layout;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Allocates and frees the host memory of tensors, from any thread.
///
/// ```
/// # fn main() -> keyway_dispatcher::Result<()> {
/// use keyway_dispatcher::Device;
/// use keyway_dispatcher::memory::{HostAllocator, Storage, use_host_allocator};
/// use std::alloc::{Layout, alloc, dealloc};
/// use std::{ptr::NonNull, sync::Arc};
///
/// struct System;
/// // SAFETY: memory of the system's allocator, of the layout that is asked for.
/// unsafe impl HostAllocator for System {
///     fn name(&self) -> &str {
///         "system"
///     }
///     fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
///         // SAFETY: the size is at least 1.
///         NonNull::new(unsafe { alloc(layout) })
///     }
///     unsafe fn free(&self, memory: NonNull<u8>, layout: Layout) {
///         // SAFETY: `allocate` made it with this layout.
///         unsafe { dealloc(memory.as_ptr(), layout) }
///     }
/// }
///
/// let guard = use_host_allocator(Some(Arc::new(System)));
/// let storage = Storage::allocate(Device::CPU, 64)?;
/// drop(guard);
/// assert_eq!((storage.allocator(), storage.bytes()), ("system", 64));
/// # Ok(()) }
/// ```
///
/// # Safety
/// Memory returned by [`HostAllocator::allocate`] must be valid for reads and writes of the layout's size, aligned to
/// its alignment, and uniquely owned until it is passed to [`HostAllocator::free`]. The implementor upholds this.
pub unsafe trait HostAllocator: Send + Sync + 'static {
    /// The name shown to users by [`Storage::allocator`].
    fn name(&self) -> &str;

    /// Allocates uninitialised memory of this layout; `None` if memory is exhausted. The size is at least 1 byte, the
    /// alignment 64 bytes.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Frees memory. A panic here is caught and logged.
    ///
    /// # Safety
    /// `memory` must be from [`HostAllocator::allocate`] of this allocator with this layout; it is freed once and no longer
    /// used. The storage that owned it upholds this.
    unsafe fn free(&self, memory: NonNull<u8>, layout: Layout);
}

type Choice = Option<Arc<dyn HostAllocator>>;

/// The number of active choices of allocators and of observers of storages.
pub(super) static CHOICES: AtomicUsize = AtomicUsize::new(0);
static GLOBAL: RwLock<Choice> = RwLock::new(None);

thread_local! {
    /// The choices of this thread, each with the number of its guard.
    static SCOPES: RefCell<Vec<(usize, Choice)>> = const { RefCell::new(Vec::new()) };
}

/// Whether an allocator may have been chosen, or storages are observed.
#[inline(always)]
pub(super) fn in_use() -> bool {
    CHOICES.load(Ordering::Relaxed) != 0
}

/// Sets the allocator of the host memory of all tensors, on every thread without its own choice; `None` restores the
/// backend that serves the CPU. Returns the previous one. Memory is freed by the allocator that allocated it.
///
/// ```
/// use keyway_dispatcher::memory::{HostAllocator, set_host_allocator};
/// use std::{alloc::Layout, ptr::NonNull, sync::Arc};
///
/// struct Empty;
/// // SAFETY: it gives no memory.
/// unsafe impl HostAllocator for Empty {
///     fn name(&self) -> &str {
///         "empty"
///     }
///     fn allocate(&self, _: Layout) -> Option<NonNull<u8>> {
///         None
///     }
///     unsafe fn free(&self, _: NonNull<u8>, _: Layout) {}
/// }
///
/// assert!(set_host_allocator(Some(Arc::new(Empty))).is_none());
/// assert!(set_host_allocator(None).is_some_and(|before| before.name() == "empty"));
/// ```
#[doc(alias = "SetCPUAllocator")]
pub fn set_host_allocator(allocator: Option<Arc<dyn HostAllocator>>) -> Option<Arc<dyn HostAllocator>> {
    let mut global = GLOBAL.write().unwrap_or_else(PoisonError::into_inner);
    if allocator.is_some() {
        CHOICES.fetch_add(1, Ordering::Relaxed);
    }
    let before = std::mem::replace(&mut *global, allocator);
    if before.is_some() {
        CHOICES.fetch_sub(1, Ordering::Relaxed);
    }
    before
}

/// Ends a choice of [`use_host_allocator`] when dropped; guards may be dropped in any order.
///
/// ```
/// # use keyway_dispatcher::memory::{HostAllocator, set_host_allocator};
/// # use std::{alloc::Layout, ptr::NonNull};
/// # struct Empty;
/// # // SAFETY: it gives no memory.
/// # unsafe impl HostAllocator for Empty {
/// #     fn name(&self) -> &str {
/// #         "empty"
/// #     }
/// #     fn allocate(&self, _: Layout) -> Option<NonNull<u8>> {
/// #         None
/// #     }
/// #     unsafe fn free(&self, _: NonNull<u8>, _: Layout) {}
/// # }
/// use keyway_dispatcher::Device;
/// use keyway_dispatcher::memory::{Storage, use_host_allocator};
/// let empty = use_host_allocator(Some(std::sync::Arc::new(Empty)));
/// assert!(Storage::allocate(Device::CPU, 8).is_err(), "it has no memory");
/// drop(empty);
/// assert!(Storage::allocate(Device::CPU, 8).is_ok());
/// ```
#[derive(Debug)]
pub struct AllocatorGuard {
    number: usize,
    // The choice belongs to the thread that made it.
    _not_send: PhantomData<*const ()>,
}

/// [`set_host_allocator`] for this thread while the guard lives; `None` selects the backend that serves the CPU.
///
/// ```
/// # use keyway_dispatcher::memory::{HostAllocator, set_host_allocator};
/// # use std::{alloc::Layout, ptr::NonNull};
/// # struct Empty;
/// # // SAFETY: it gives no memory.
/// # unsafe impl HostAllocator for Empty {
/// #     fn name(&self) -> &str {
/// #         "empty"
/// #     }
/// #     fn allocate(&self, _: Layout) -> Option<NonNull<u8>> {
/// #         None
/// #     }
/// #     unsafe fn free(&self, _: NonNull<u8>, _: Layout) {}
/// # }
/// use keyway_dispatcher::Device;
/// use keyway_dispatcher::memory::{Storage, use_host_allocator};
/// let _empty = use_host_allocator(Some(std::sync::Arc::new(Empty)));
/// let error = Storage::allocate(Device::CPU, 8).unwrap_err().to_string();
/// assert!(error.contains("empty"), "{error}");
/// std::thread::spawn(|| assert!(Storage::allocate(Device::CPU, 8).is_ok(), "another thread")).join().unwrap();
/// ```
#[must_use = "the choice ends when the guard is dropped"]
pub fn use_host_allocator(allocator: Option<Arc<dyn HostAllocator>>) -> AllocatorGuard {
    CHOICES.fetch_add(1, Ordering::Relaxed);
    let number = SCOPES.with_borrow_mut(|scopes| {
        let number = scopes.last().map_or(0, |(last, _)| last + 1);
        scopes.push((number, allocator));
        number
    });
    AllocatorGuard { number, _not_send: PhantomData }
}

impl Drop for AllocatorGuard {
    fn drop(&mut self) {
        let ended = SCOPES.try_with(|scopes| {
            let mut scopes = scopes.borrow_mut();
            let at = scopes.iter().rposition(|(number, _)| *number == self.number);
            at.map(|at| scopes.remove(at))
        });
        CHOICES.fetch_sub(1, Ordering::Relaxed);
        // The last handle of an allocator may run code of the program's, so not under the borrow.
        drop(ended);
    }
}

fn chosen() -> Choice {
    let own = SCOPES.try_with(|scopes| scopes.borrow().last().map(|(_, choice)| choice.clone()));
    match own {
        Ok(Some(choice)) => choice,
        _ => GLOBAL.read().unwrap_or_else(PoisonError::into_inner).clone(),
    }
}

/// Allocates memory from the chosen allocator; `None` if none is chosen.
#[cold]
pub(super) fn allocate(bytes: usize) -> Option<Result<Storage>> {
    let allocator = chosen()?;
    if bytes == 0 {
        let nothing = NonNull::<u128>::dangling().cast();
        return Some(Ok(Storage::new(nothing, 0, Device::CPU, Owner::Nobody)));
    }
    let failed = |what: &str| {
        let detail = format!("the host allocator `{}` {what}", allocator.name());
        Some(Err(Error::OutOfMemory { device: Device::CPU, requested: bytes as u64, detail }))
    };
    let Ok(layout) = Layout::from_size_align(bytes, ALIGN) else {
        return failed("was not asked: it is more than an address can count");
    };
    match allocator.allocate(layout) {
        None => failed("has no more"),
        Some(pointer) if !pointer.addr().get().is_multiple_of(ALIGN) => {
            let got = format!("{pointer:p} from `{}`", allocator.name());
            // SAFETY: the allocator just returned this memory for this layout, and it is uniquely owned.
            unsafe { allocator.free(pointer, layout) };
            let expected = format!("an address that is a multiple of {ALIGN}");
            Some(Err(Error::Value { op: "allocate", argument: "host allocator's memory", expected, got }))
        }
        Some(pointer) => Some(Ok(Storage::new(pointer, bytes, Device::CPU, Owner::Allocator(allocator)))),
    }
}

/// Frees the memory of a storage.
pub(super) fn free(allocator: &dyn HostAllocator, pointer: NonNull<u8>, bytes: usize) {
    let Ok(layout) = Layout::from_size_align(bytes, ALIGN) else { return };
    // SAFETY: `allocate` above got the memory for this layout from this allocator; its storage frees it once, at its end.
    let freed = catch_unwind(AssertUnwindSafe(|| unsafe { allocator.free(pointer, layout) }));
    if freed.is_err() {
        crate::base::log::warn(&format!(
            "the host allocator `{}` panicked while it freed {bytes} bytes",
            allocator.name()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;

    /// An allocator that counts its live bytes, fails beyond `most` bytes, and returns addresses misaligned by `skew`.
    #[derive(Default)]
    struct Counting {
        held: AtomicUsize,
        most: usize,
        skew: usize,
    }

    // SAFETY: memory of the system's allocator, with capacity for the skew.
    unsafe impl HostAllocator for Counting {
        fn name(&self) -> &str {
            "counting"
        }

        fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
            if self.held.load(SeqCst) + layout.size() > self.most {
                return None;
            }
            self.held.fetch_add(layout.size(), SeqCst);
            let wide = Layout::from_size_align(layout.size() + self.skew, layout.align()).ok()?;
            // SAFETY: the size is not 0; the skew is within the block.
            NonNull::new(unsafe { std::alloc::alloc(wide).add(self.skew) })
        }

        unsafe fn free(&self, memory: NonNull<u8>, layout: Layout) {
            self.held.fetch_sub(layout.size(), SeqCst);
            let wide = Layout::from_size_align(layout.size() + self.skew, layout.align()).unwrap();
            // SAFETY: `allocate` used this layout.
            unsafe { std::alloc::dealloc(memory.as_ptr().sub(self.skew), wide) };
        }
    }

    fn with<R>(allocator: &Arc<Counting>, run: impl FnOnce() -> R) -> R {
        let _guard = use_host_allocator(Some(allocator.clone()));
        run()
    }

    #[test]
    fn a_scope_is_of_its_thread_and_memory_goes_back_to_its_giver() {
        let allocator = Arc::new(Counting { most: 1000, ..Counting::default() });
        let storage = with(&allocator, || {
            let other = std::thread::spawn(|| Storage::allocate(Device::CPU, 10).unwrap());
            assert_ne!(other.join().unwrap().allocator(), "counting");
            Storage::allocate(Device::CPU, 600).unwrap()
        });
        assert_eq!((storage.allocator(), storage.bytes()), ("counting", 600));
        assert_eq!(allocator.held.load(SeqCst), 600);
        assert_ne!(Storage::allocate(Device::CPU, 10).unwrap().allocator(), "counting");
        // Freed on another thread than the one that allocated it.
        std::thread::spawn(move || drop(storage)).join().unwrap();
        assert_eq!(allocator.held.load(SeqCst), 0);
        assert_eq!(with(&allocator, || Storage::allocate(Device::CPU, 0).unwrap().bytes()), 0);
    }

    #[test]
    fn no_memory_and_crooked_memory_are_errors() {
        let allocator = Arc::new(Counting { most: 100, ..Counting::default() });
        let error = with(&allocator, || Storage::allocate(Device::CPU, 101).unwrap_err());
        assert!(matches!(&error, Error::OutOfMemory { requested: 101, .. }), "{error}");
        assert!(error.to_string().contains("`counting` has no more"), "{error}");
        let crooked = Arc::new(Counting { most: 100, skew: 4, ..Counting::default() });
        let error = with(&crooked, || Storage::allocate(Device::CPU, 50).unwrap_err());
        assert!(error.to_string().contains("a multiple of 64"), "{error}");
        assert_eq!(crooked.held.load(SeqCst), 0, "refused memory was freed");
    }

    #[test]
    fn guards_end_in_any_order_and_the_innermost_counts() {
        let (a, b) = (
            Arc::new(Counting { most: 100, ..Counting::default() }),
            Arc::new(Counting { most: 200, ..Counting::default() }),
        );
        let outer = use_host_allocator(Some(a.clone()));
        let inner = use_host_allocator(Some(b.clone()));
        let of_b = Storage::allocate(Device::CPU, 150).unwrap();
        drop(outer);
        let again = Storage::allocate(Device::CPU, 50).unwrap();
        assert_eq!((a.held.load(SeqCst), b.held.load(SeqCst)), (0, 200));
        drop((inner, of_b, again));
        assert_eq!(b.held.load(SeqCst), 0);
        let none = use_host_allocator(None);
        assert_ne!(Storage::allocate(Device::CPU, 10).unwrap().allocator(), "counting");
        drop(none);
    }
}
