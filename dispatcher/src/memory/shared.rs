//! [`Shared`]: the reference-counted pointer of tensors, storages and nodes of a graph.
//!
//! `std::sync::Arc` was rejected for the cost of the usual case: most tensors have one strong reference all their life, and
//! dropping the last `Arc` takes two locked instructions besides the allocator's work. Here both counts are in one word, so
//! one plain load shows that a reference is unique; and the memory is allocated from thread-local free lists. The subset of
//! `Arc`'s interface has the same meaning.

use super::blocks;
use super::sync::{AtomicU64, Ordering, fence};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// One strong reference, in the lower half of the counts.
const STRONG: u64 = 1;
/// One weak reference, in the upper half. All strong references share one: the implicit weak reference.
const WEAK: u64 = 1 << 32;
/// The counts of a unique reference: one strong and the implicit weak one. No other handle exists, so none can be created
/// concurrently.
const UNIQUE: u64 = STRONG + WEAK;
/// The maximum number of handles; more are treated as a leak that would overflow the counts.
const MAX_COUNT: u64 = 1 << 31;

struct Block<T> {
    counts: AtomicU64,
    value: T,
}

/// A strong reference: dropping the last one drops the value.
pub struct Shared<T> {
    block: NonNull<Block<T>>,
    _owns: PhantomData<Block<T>>,
}

/// A weak reference: it retains the memory of a [`Shared`] value, not the value.
pub struct Weak<T> {
    block: NonNull<Block<T>>,
    _owns: PhantomData<Block<T>>,
}

// SAFETY: as for `Arc`: handles on several threads provide `&T` on each, and the last one drops the value.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as for Send.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}
// SAFETY: as for `Shared`.
unsafe impl<T: Send + Sync> Send for Weak<T> {}
// SAFETY: as for Send.
unsafe impl<T: Send + Sync> Sync for Weak<T> {}
impl<T: std::panic::RefUnwindSafe> std::panic::UnwindSafe for Shared<T> {}
impl<T: std::panic::RefUnwindSafe> std::panic::RefUnwindSafe for Shared<T> {}

// Moving a handle moves no value.
impl<T> Unpin for Shared<T> {}
impl<T> Unpin for Weak<T> {}

#[cold]
#[inline(never)]
fn overflow() -> ! {
    // Aborts: a panic could be caught, and the count would still be wrong.
    std::process::abort()
}

/// Constructs a [`Shared`] structure from a struct literal, field by field in its final location: otherwise the
/// compiler builds a large one on the stack and copies it.
#[doc(hidden)]
#[macro_export]
macro_rules! shared {
    ($type:ident { $($field:ident: $value:expr),* $(,)? }) => {{
        // Names every field, otherwise it does not compile.
        let _all = |$type { $($field: _),* }: &$type| ();
        let write = |to: *mut $type| {
            $(
                let value = $value;
                // SAFETY: the address of a field of the structure at `to`, which is allocated and not yet initialised.
                unsafe { (&raw mut (*to).$field).write(value) };
            )*
        };
        // SAFETY: `write` writes every field, and reads none.
        unsafe { $crate::memory::Shared::in_place(write) }
    }};
}
#[doc(hidden)]
pub use shared;

impl<T> Shared<T> {
    /// Moves a value into a new block.
    #[inline(always)]
    pub fn new(value: T) -> Shared<T> {
        Shared::new_with(|| value)
    }

    /// Creates a value in a new block; a large value is not moved.
    #[inline(always)]
    pub fn new_with(make: impl FnOnce() -> T) -> Shared<T> {
        let block = blocks::take::<Block<T>>();
        // SAFETY: `take` returned memory for a block, uniquely owned. If `make` panics, the memory is lost.
        unsafe {
            (&raw mut (*block.as_ptr()).counts).write(AtomicU64::new(UNIQUE));
            (&raw mut (*block.as_ptr()).value).write(make());
        }
        Shared { block, _owns: PhantomData }
    }

    /// Creates a value in its final location, see [`shared!`].
    ///
    /// # Safety
    /// `write` initialises the whole value at its argument, and reads nothing from it; [`shared!`] upholds this.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn in_place(write: impl FnOnce(*mut T)) -> Shared<T> {
        let block = blocks::take::<Block<T>>();
        // SAFETY: `take` returned memory for a block, uniquely owned; the caller writes the value. If that panics, the
        // memory is lost.
        unsafe {
            (&raw mut (*block.as_ptr()).counts).write(AtomicU64::new(UNIQUE));
            write(&raw mut (*block.as_ptr()).value);
        }
        Shared { block, _owns: PhantomData }
    }

    #[inline(always)]
    fn counts(&self) -> &AtomicU64 {
        // SAFETY: the block lives while there is a handle. Only the counts are borrowed: the value may be being dropped.
        unsafe { &(*self.block.as_ptr()).counts }
    }

    /// Whether both refer to the same object.
    #[inline]
    pub fn ptr_eq(a: &Shared<T>, b: &Shared<T>) -> bool {
        a.block == b.block
    }

    /// The value's address.
    #[inline]
    pub fn as_ptr(this: &Shared<T>) -> *const T {
        // SAFETY: the block lives while there is a handle.
        unsafe { &raw const (*this.block.as_ptr()).value }
    }

    /// The number of strong references at some moment during the call.
    #[inline]
    pub fn strong_count(this: &Shared<T>) -> usize {
        (this.counts().load(Ordering::Relaxed) & (WEAK - 1)) as usize
    }

    /// The value for a change, if this is the only reference, strong or weak.
    #[inline]
    pub fn get_mut(this: &mut Shared<T>) -> Option<&mut T>
    where
        T: Unpin,
    {
        Shared::get_pinned_mut(this)
    }

    /// As [`Shared::get_mut`], for a value that must not be moved; the caller upholds this.
    #[inline(always)]
    pub(crate) fn get_pinned_mut(this: &mut Shared<T>) -> Option<&mut T> {
        // Acquire: accesses through other references before they were dropped happen before the change.
        if this.counts().load(Ordering::Acquire) != UNIQUE {
            return None;
        }
        // SAFETY: this is the only handle, and it is borrowed mutably.
        Some(unsafe { &mut (*this.block.as_ptr()).value })
    }

    /// Returns the value if this is the last strong reference, otherwise `None`; as `Arc::into_inner`.
    pub fn into_inner(this: Shared<T>) -> Option<T>
    where
        T: Unpin,
    {
        let block = std::mem::ManuallyDrop::new(this).block;
        // SAFETY: this handle is given up here, once; if it was the last, the value is this function's.
        unsafe {
            if !release_strong(block) {
                return None;
            }
            let value = (&raw const (*block.as_ptr()).value).read();
            release_implicit_weak(block);
            Some(value)
        }
    }

    /// A weak reference.
    pub fn downgrade(this: &Shared<T>) -> Weak<T> {
        if this.counts().fetch_add(WEAK, Ordering::Relaxed) >> 32 > MAX_COUNT {
            overflow();
        }
        Weak { block: this.block, _owns: PhantomData }
    }

    /// Creates another strong reference to the value at this address.
    ///
    /// # Safety
    /// `value` must be from [`Shared::as_ptr`] of a live handle; the caller upholds this.
    #[inline]
    pub(crate) unsafe fn retain(value: *const T) -> Shared<T> {
        // SAFETY: the caller guarantees that the value is in a block.
        let block = unsafe { value.byte_sub(std::mem::offset_of!(Block<T>, value)) };
        let block = NonNull::new(block.cast_mut().cast::<Block<T>>());
        let Some(block) = block else { overflow() };
        let borrowed = std::mem::ManuallyDrop::new(Shared { block, _owns: PhantomData });
        Shared::clone(&borrowed)
    }
}

/// Releases a strong reference. Returns whether it was the last, so that the value is unreachable.
///
/// # Safety
/// The caller owns the reference and no longer uses it.
#[inline(always)]
unsafe fn release_strong<T>(block: NonNull<Block<T>>) -> bool {
    // SAFETY: the block lives while the caller has its reference.
    let counts = unsafe { &(*block.as_ptr()).counts };
    // Acquire: as for `get_mut`. There is no other handle that could change the counts.
    if counts.load(Ordering::Acquire) == UNIQUE {
        return true;
    }
    if counts.fetch_sub(STRONG, Ordering::Release) & (WEAK - 1) != STRONG {
        return false;
    }
    fence(Ordering::Acquire);
    true
}

/// Releases the implicit weak reference, and frees the block if it was the last.
///
/// # Safety
/// [`release_strong`] returned true for the caller, and the value was moved or dropped.
#[inline(always)]
unsafe fn release_implicit_weak<T>(block: NonNull<Block<T>>) {
    // SAFETY: the implicit weak reference keeps the block; it is given up once, after the last strong one.
    unsafe {
        let counts = &(*block.as_ptr()).counts;
        // A unique reference did not decrement its own count.
        if counts.load(Ordering::Acquire) == UNIQUE {
            blocks::give(block);
        } else {
            release_weak(block);
        }
    }
}

/// Releases a weak reference, and frees the block if it was the last.
///
/// # Safety
/// The caller owns the reference and no longer uses it.
unsafe fn release_weak<T>(block: NonNull<Block<T>>) {
    // SAFETY: the block lives while the caller has its reference; the handle that decrements the counts to zero frees it.
    unsafe {
        if (*block.as_ptr()).counts.fetch_sub(WEAK, Ordering::Release) == WEAK {
            fence(Ordering::Acquire);
            blocks::give(block);
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the value lives while there is a strong reference, and changes only through `get_mut`, which needs a unique one.
        unsafe { &(*self.block.as_ptr()).value }
    }
}

impl<T> Clone for Shared<T> {
    #[inline(always)]
    fn clone(&self) -> Shared<T> {
        if self.counts().fetch_add(STRONG, Ordering::Relaxed) & (WEAK - 1) > MAX_COUNT {
            overflow();
        }
        Shared { block: self.block, _owns: PhantomData }
    }
}

impl<T> Drop for Shared<T> {
    #[inline(always)]
    fn drop(&mut self) {
        /// # Safety
        /// As for [`release_implicit_weak`], but the value still exists.
        #[inline(never)]
        unsafe fn last<T>(block: NonNull<Block<T>>) {
            // SAFETY: the caller's was the last strong reference.
            unsafe {
                (&raw mut (*block.as_ptr()).value).drop_in_place();
                release_implicit_weak(block);
            }
        }
        // SAFETY: this handle is consumed; the value is dropped by the last.
        unsafe {
            if release_strong(self.block) {
                last(self.block);
            }
        }
    }
}

impl<T> Weak<T> {
    /// Returns a strong reference if the value still exists.
    pub fn upgrade(&self) -> Option<Shared<T>> {
        // SAFETY: the block lives while there is a weak reference.
        let counts = unsafe { &(*self.block.as_ptr()).counts };
        let more = |now: u64| match now & (WEAK - 1) {
            0 => None,
            strong if strong > MAX_COUNT => overflow(),
            _ => Some(now + STRONG),
        };
        counts.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).ok()?;
        Some(Shared { block: self.block, _owns: PhantomData })
    }
}

impl<T> Drop for Weak<T> {
    fn drop(&mut self) {
        // SAFETY: this handle is consumed.
        unsafe { release_weak(self.block) }
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A value whose drop can be observed.
    fn noted() -> (Shared<Arc<()>>, Arc<()>) {
        let mark = Arc::new(());
        (Shared::new(mark.clone()), mark)
    }

    #[test]
    fn the_last_strong_reference_drops_the_value() {
        let (a, mark) = noted();
        let b = a.clone();
        assert!(Shared::ptr_eq(&a, &b) && Shared::strong_count(&a) == 2);
        drop(a);
        assert_eq!(Arc::strong_count(&mark), 2);
        drop(b);
        assert_eq!(Arc::strong_count(&mark), 1);
    }

    #[test]
    fn a_weak_reference_upgrades_only_while_there_is_a_strong_one() {
        let (a, mark) = noted();
        let weak = Shared::downgrade(&a);
        assert!(weak.upgrade().is_some_and(|b| Shared::ptr_eq(&a, &b)));
        drop(a);
        assert_eq!(Arc::strong_count(&mark), 1);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn a_change_needs_a_unique_reference() {
        let mut a = Shared::new(5);
        let weak = Shared::downgrade(&a);
        assert!(Shared::get_mut(&mut a).is_none());
        drop(weak);
        let b = a.clone();
        assert!(Shared::get_mut(&mut a).is_none());
        drop(b);
        *Shared::get_mut(&mut a).unwrap() += 1;
        assert_eq!(*a, 6);
    }

    #[test]
    fn the_last_strong_reference_may_take_the_value_out() {
        let (a, mark) = noted();
        let (b, weak) = (a.clone(), Shared::downgrade(&a));
        assert!(Shared::into_inner(a).is_none());
        let value = Shared::into_inner(b).unwrap();
        assert_eq!(Arc::strong_count(&mark), 2);
        assert!(weak.upgrade().is_none());
        drop(value);
        assert_eq!(Arc::strong_count(&mark), 1);
    }

    #[test]
    fn a_strong_reference_is_made_of_an_address() {
        let (a, mark) = noted();
        // SAFETY: the address is of a value that `a` keeps alive.
        let b = unsafe { Shared::retain(Shared::as_ptr(&a)) };
        drop(a);
        assert_eq!(Arc::strong_count(&mark), 2);
        drop(b);
        assert_eq!(Arc::strong_count(&mark), 1);
    }

    #[test]
    fn threads_drop_and_upgrade_at_once() {
        for _ in 0..if cfg!(miri) { 5 } else { 500 } {
            let (a, mark) = noted();
            let (b, weak) = (a.clone(), Shared::downgrade(&a));
            let threads = [
                std::thread::spawn(move || drop(a)),
                std::thread::spawn(move || drop(Shared::into_inner(b))),
                std::thread::spawn(move || drop(weak.upgrade())),
            ];
            threads.into_iter().for_each(|t| t.join().unwrap());
            assert_eq!(Arc::strong_count(&mark), 1);
        }
    }
}
