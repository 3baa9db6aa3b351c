//! [`Published`]: one value that readers access without a lock, replaced as a whole.

use super::sync::{AtomicPtr, Ordering};

/// A pointer to the current value; values are never changed or freed.
///
/// `arc-swap` and hazard pointers were rejected: values are created only when a plugin is loaded or retired, so they may
/// leak, and a reader costs one load.
pub(crate) struct Published<T: 'static>(AtomicPtr<T>);

impl<T: Send + Sync + 'static> Published<T> {
    /// A pointer without a value.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Published(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// A pointer without a value. Loom's atomics cannot be created at compile time.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Published(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The current value.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // Acquire: the value was written before its address was.
        // SAFETY: the pointer is null or from `publish`, which leaks
        // the value and leaves no way to change it.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The current value, or the first one, created under the lock that all publishers hold. If several threads find no
    /// value, one creates it, and a value published meanwhile is not replaced by an older one.
    pub(crate) fn get_or_first<G>(
        &self,
        lock: impl FnOnce() -> G,
        first: impl FnOnce(G) -> &'static T,
    ) -> &'static T {
        self.get().unwrap_or_else(|| {
            let guard = lock();
            match self.get() {
                Some(value) => value,
                None => first(guard),
            }
        })
    }

    /// Makes a value the current one. Publishers are serialised by a lock of their own.
    pub(crate) fn publish(&self, value: T) -> &'static T {
        let value: *mut T = Box::leak(Box::new(value));
        // Release: for the Acquire of `get`.
        self.0.store(value, Ordering::Release);
        // SAFETY: leaked above, and the mutable reference no longer exists.
        unsafe { &*value }
    }
}
