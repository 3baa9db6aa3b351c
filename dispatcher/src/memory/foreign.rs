//! [`Blob`]: foreign memory, with its deleter.

use super::bytes::{Element, Plain};
use super::{Owner, Storage};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use crate::device::{self as device_abi, ensure, server};
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// Memory with its deleter, which is called once, on drop.
pub(super) struct Foreign {
    pub(super) name: Box<str>,
    release: Option<Box<dyn FnOnce() + Send>>,
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let Some(release) = self.release.take() else { return };
        let deleter = Deleter { name: std::mem::take(&mut self.name), release };
        if RUNNING.replace(true) {
            WAITING.with_borrow_mut(|waiting| waiting.push(deleter));
            return;
        }
        deleter.run();
        while let Some(deleter) = WAITING.with_borrow_mut(|waiting| waiting.pop()) {
            deleter.run();
        }
        drop(ManuallyDrop::into_inner(WAITING.replace(ManuallyDrop::new(Vec::new()))));
        RUNNING.set(false);
    }
}

/// The function that frees foreign memory, and the owner's name.
struct Deleter {
    name: Box<str>,
    release: Box<dyn FnOnce() + Send>,
}

impl Deleter {
    fn run(self) {
        if catch_unwind(AssertUnwindSafe(self.release)).is_err() {
            crate::base::log::warn(&format!("the deleter of memory of `{}` panicked", self.name));
        }
    }
}

thread_local! {
    /// Whether a deleter runs further up on the stack: nested foreign memory is freed iteratively, not recursively.
    static RUNNING: Cell<bool> = const { Cell::new(false) };
    // Without a destructor, so that it is available to values that a thread drops while it ends. The code that empties it
    // frees its memory.
    static WAITING: RefCell<ManuallyDrop<Vec<Deleter>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Waits until no work on the device uses foreign memory any more, since its owner may reuse it immediately.
pub(super) fn quiet(device: Device) {
    if device == Device::CPU {
        return;
    }
    if let Some(entry) = server(device.kind)
        && let Err(error) = device_abi::synchronize_with(entry, device)
    {
        crate::base::log::warn(&format!("{device}: foreign memory goes back after failed work: {error}"));
    }
}

/// An address that may be sent to another thread; its uses are documented at its creation.
struct Address<T: ?Sized>(*mut T);

// SAFETY: the address is used once, by the code that drops the last handle; `Blob`'s constructors ask for memory and owners
// that may go to any thread.
unsafe impl<T: ?Sized> Send for Address<T> {}

impl<T: ?Sized> Address<T> {
    // A method, so that a closure captures the whole structure and not only the field.
    fn get(self) -> *mut T {
        self.0
    }
}

/// Foreign memory with its deleter, which runs exactly once, on the thread that drops the last tensor that uses the memory, or
/// that drops the blob if it did not become a tensor, also because that was refused.
///
/// ```
/// use keyway_dispatcher::memory::{Blob, Storage};
/// use keyway_dispatcher::DType;
/// # fn main() -> keyway_dispatcher::Result<()> {
/// let blob = Blob::from_owner_mut(vec![1u32, 2, 3]).named("numbers");
/// assert_eq!((blob.bytes(), blob.device().to_string().as_str()), (12, "cpu"));
/// let storage = Storage::from_blob("example", blob, DType::U32)?;
/// assert_eq!((storage.allocator(), storage.is_read_only()), ("numbers", false));
/// # Ok(()) }
/// ```
#[doc(alias = "DataPtr")]
pub struct Blob {
    pointer: NonNull<u8>,
    bytes: usize,
    device: Device,
    read_only: bool,
    owner: Box<Foreign>,
}

// SAFETY: the constructors ask for memory that may be used from any thread, and for an owner that may be dropped on any.
unsafe impl Send for Blob {}
// SAFETY: as for Send; a shared blob only returns its fields.
unsafe impl Sync for Blob {}

fn value(argument: &'static str, expected: impl Into<String>, got: impl Into<String>) -> Error {
    Error::Value { op: "from_raw_parts", argument, expected: expected.into(), got: got.into() }
}

impl Blob {
    /// Creates a blob of memory at an address with its deleter, which is passed the address. The call owns the memory from
    /// the beginning: the deleter also runs if the call fails.
    ///
    /// ```
    /// use keyway_dispatcher::{Device, memory::Blob};
    /// # fn main() -> keyway_dispatcher::Result<()> {
    /// let data = Box::into_raw(Box::new(7u64));
    /// // SAFETY: the box was given up, and comes back in the deleter alone.
    /// let blob = unsafe {
    ///     Blob::from_raw_parts(data.cast(), 8, Device::CPU, |data| drop(Box::from_raw(data.cast::<u64>())))?
    /// };
    /// assert_eq!(blob.data_ptr(), data.cast_const().cast());
    /// # Ok(()) }
    /// ```
    ///
    /// # Safety
    /// Until the deleter runs, `data` must be valid for reads and writes of `bytes` bytes on `device` from every
    /// thread, and it may be read or written only through tensors created from the blob. If a bool tensor is created
    /// from memory that the host cannot read, each of its bytes must be 0 or 1. The caller upholds this.
    ///
    /// # Errors
    /// `Value` for a null address of more than 0 bytes, or more bytes than the address space holds; `NoDevice`,
    /// `NoSuchDevice`.
    #[doc(alias = "from_blob")]
    pub unsafe fn from_raw_parts(
        data: *mut u8,
        bytes: usize,
        device: Device,
        deleter: impl FnOnce(*mut u8) + Send + 'static,
    ) -> Result<Blob> {
        let address = Address(data);
        let release: Box<dyn FnOnce() + Send> = Box::new(move || deleter(address.get()));
        // From here on the deleter runs when this is dropped.
        let owner = Box::new(Foreign { name: "foreign".into(), release: Some(release) });
        let pointer = match NonNull::new(data) {
            Some(pointer) => pointer,
            None if bytes == 0 => NonNull::<u128>::dangling().cast(),
            None => {
                let got = format!("a null pointer for {bytes} bytes");
                return Err(value("data", "the address of the first byte", got));
            }
        };
        if bytes > isize::MAX as usize || pointer.addr().get().checked_add(bytes).is_none() {
            let got = format!("{bytes} bytes at {pointer:p}");
            return Err(value("bytes", "a size that an address can count", got));
        }
        match server(device.kind) {
            Some(entry) => ensure(entry, device)?,
            None if device == Device::CPU => {}
            None if device.kind == Device::CPU.kind => {
                let reason = "there is one host memory".to_string();
                return Err(Error::NoSuchDevice { device, count: 1, reason });
            }
            None => return Err(Error::NoDevice { device }),
        }
        Ok(Blob { pointer, bytes, device, read_only: false, owner })
    }

    /// Creates a blob of the slice that `owner` borrows, without a copy: an `Arc<[T]>`, a `Bytes`, a mapped file. The
    /// memory may be shared, so tensors over it are read-only.
    ///
    /// ```
    /// use keyway_dispatcher::memory::Blob;
    /// let values: std::sync::Arc<[f32]> = vec![1.0, 2.0].into();
    /// let blob = Blob::from_owner(values.clone());
    /// assert_eq!(blob.data_ptr(), values.as_ptr().cast());
    /// ```
    pub fn from_owner<T: Plain>(owner: impl AsRef<[T]> + Send + Sync + 'static) -> Blob {
        let owner = Box::into_raw(Box::new(owner));
        // SAFETY: the box was just given up, and is borrowed from here until `release` takes it back, through this
        // reference alone; it does not move, nor does data stored in the owner itself.
        let slice = unsafe { &*owner }.as_ref();
        let (pointer, bytes) = (NonNull::from(slice).cast(), size_of_val(slice));
        Blob::of_owner(pointer, bytes, true, Address(owner))
    }

    /// Creates a blob of the slice of `owner`, which owns it uniquely, without a copy: a `Vec<T>`, a `Box<[T]>`, a private
    /// mapping. Tensors over it may be written.
    ///
    /// ```
    /// # fn main() -> keyway_dispatcher::Result<()> {
    /// use keyway_dispatcher::{DType, memory::{Blob, Storage}};
    /// let mut storage = Storage::from_blob("example", Blob::from_owner_mut(vec![1u8, 2]), DType::U8)?;
    /// storage.as_bytes_mut()?[0] = 7;
    /// assert_eq!(storage.to_bytes()?, [7, 2]);
    /// # Ok(()) }
    /// ```
    pub fn from_owner_mut<T: Element>(owner: impl AsMut<[T]> + Send + Sync + 'static) -> Blob {
        let owner = Box::into_raw(Box::new(owner));
        // SAFETY: as in `from_owner`; a mutable borrow excludes other access to the slice until it ends with the box.
        let slice = unsafe { &mut *owner }.as_mut();
        let bytes = size_of_val(slice);
        Blob::of_owner(NonNull::from(slice).cast(), bytes, false, Address(owner))
    }

    fn of_owner<O: Send + Sync + 'static>(
        pointer: NonNull<u8>,
        bytes: usize,
        read_only: bool,
        owner: Address<O>,
    ) -> Blob {
        // SAFETY: the address is that of a box that was given up, and this runs once, when the memory is no longer
        // used.
        let release = move || drop(unsafe { Box::from_raw(owner.get()) });
        let name = std::any::type_name::<O>().into();
        let owner = Box::new(Foreign { name, release: Some(Box::new(release)) });
        Blob { pointer, bytes, device: Device::CPU, read_only, owner }
    }

    /// Sets the name of the memory's source, which [`Storage::allocator`] shows.
    #[must_use]
    pub fn named(mut self, name: &str) -> Blob {
        self.owner.name = name.into();
        self
    }

    /// Makes tensors over the memory read-only.
    ///
    /// ```
    /// # fn main() -> keyway_dispatcher::Result<()> {
    /// use keyway_dispatcher::{DType, memory::{Blob, Storage}};
    /// let blob = Blob::from_owner_mut(vec![1u8, 2]).named("table").read_only();
    /// let mut storage = Storage::from_blob("example", blob, DType::U8)?;
    /// assert!(storage.is_read_only() && storage.as_bytes_mut().is_err());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn read_only(mut self) -> Blob {
        self.read_only = true;
        self
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The device of the memory.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The first byte.
    pub fn data_ptr(&self) -> *const u8 {
        self.pointer.as_ptr()
    }

    /// Checks that the memory is valid for elements of `dtype`: aligned to an element, up to 8 bytes unless `dtype` is
    /// built in; bytes of bool must be 0 or 1, if the host can read them.
    pub(super) fn check(&self, op: &'static str, dtype: DType) -> Result<()> {
        let most = if dtype.is_built_in() { 16 } else { 8 };
        let align = (1 << dtype.storage_size()?.max(1).trailing_zeros()).min(most);
        if self.bytes > 0 && !self.pointer.addr().get().is_multiple_of(align) {
            return Err(Error::Value {
                op,
                argument: "data",
                expected: format!("aligned to {align} bytes for {dtype}"),
                got: format!("{:p}", self.pointer),
            });
        }
        if dtype == DType::BOOL && self.device == Device::CPU {
            // SAFETY: host memory of this many bytes by the constructors' contract, which no one else writes.
            let bytes = unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.bytes) };
            if let Some(at) = bytes.iter().position(|byte| *byte > 1) {
                let got = format!("{} at byte {at}", bytes[at]);
                let expected = "bytes of 0 or 1 for bool".to_string();
                return Err(Error::Value { op, argument: "data", expected, got });
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Blob({} bytes of {} on {})", self.bytes, self.owner.name, self.device)
    }
}

impl Storage {
    /// A storage over foreign memory for elements of `dtype`; if it is refused, its deleter runs.
    ///
    /// ```
    /// # fn main() -> keyway_dispatcher::Result<()> {
    /// use keyway_dispatcher::{DType, memory::{Blob, Storage}};
    /// let storage = Storage::from_blob("example", Blob::from_owner(vec![1.0f32, 2.0]), DType::F32)?;
    /// assert_eq!((storage.bytes(), storage.is_read_only()), (8, true));
    /// assert!(Storage::from_blob("example", Blob::from_owner(vec![2u8]), DType::BOOL).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Value` for memory that is not aligned to an element, up to 8 bytes, and for bytes of bool that are neither 0 nor 1;
    /// `Undescribed`.
    pub fn from_blob(op: &'static str, blob: Blob, dtype: DType) -> Result<Storage> {
        blob.check(op, dtype)?;
        let Blob { pointer, bytes, device, read_only, owner } = blob;
        let owner = if read_only { Owner::ReadOnly(owner) } else { Owner::Foreign(owner) };
        Ok(Storage::new(pointer, bytes, device, owner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{read_bytes, write_bytes};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A blob of `bytes` bytes over 16 allocated ones, and a counter of deleter calls.
    fn counted(bytes: usize) -> (Result<Blob>, Arc<AtomicUsize>) {
        let runs = Arc::new(AtomicUsize::new(0));
        let count = runs.clone();
        let data = Box::into_raw(Box::new([7u64; 2]));
        let back = Address(data);
        // SAFETY: the box was given up and is reclaimed in the deleter alone; more bytes than it has are refused.
        let blob = unsafe {
            Blob::from_raw_parts(data.cast(), bytes, Device::CPU, move |_| {
                count.fetch_add(1, Ordering::SeqCst);
                drop(Box::from_raw(back.get()));
            })
        };
        (blob, runs)
    }

    #[test]
    fn the_deleter_runs_once_when_the_last_handle_goes_on_any_thread() {
        let (blob, runs) = counted(16);
        let storage = Storage::from_blob("t", blob.unwrap().named("mine"), DType::I32).unwrap();
        assert_eq!((storage.allocator(), storage.bytes(), storage.is_read_only()), ("mine", 16, false));
        let other = storage.clone();
        write_bytes(&storage, 4, &[1, 2]).unwrap();
        drop(storage);
        assert_eq!(runs.load(Ordering::SeqCst), 0);
        std::thread::spawn(move || {
            let mut two = [0; 2];
            read_bytes(&other, 4, &mut two).unwrap();
            assert_eq!(two, [1, 2]);
        })
        .join()
        .unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn what_is_refused_goes_back_once() {
        let (blob, runs) = counted(usize::MAX / 2 + 8);
        assert!(blob.unwrap_err().to_string().contains("`bytes`"));
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        let count = Arc::new(AtomicUsize::new(0));
        let seen = count.clone();
        // SAFETY: a null pointer is refused, so it is never dereferenced.
        let null = unsafe {
            Blob::from_raw_parts(std::ptr::null_mut(), 4, Device::CPU, move |data| {
                assert!(data.is_null());
                seen.fetch_add(1, Ordering::SeqCst);
            })
        };
        assert!(null.unwrap_err().to_string().contains("a null pointer for 4 bytes"));
        assert_eq!(count.load(Ordering::SeqCst), 1);
        let (blob, runs) = counted(16);
        assert!(
            Storage::from_blob("t", blob.unwrap(), DType::BOOL).unwrap_err().to_string().contains("0 or 1")
        );
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        // Dropped without having become a tensor.
        let (blob, runs) = counted(16);
        drop(blob);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_deleter_that_panics_is_only_reported() {
        // SAFETY: no byte is reached.
        let blob =
            unsafe { Blob::from_raw_parts(std::ptr::null_mut(), 0, Device::CPU, |_| panic!("of the test")) };
        drop(Storage::from_blob("t", blob.unwrap(), DType::F32).unwrap());
    }

    #[test]
    fn owners_keep_memory_that_is_part_of_themselves() {
        struct Inline([f32; 4], #[allow(dead_code)] Arc<()>);
        impl AsRef<[f32]> for Inline {
            fn as_ref(&self) -> &[f32] {
                &self.0
            }
        }
        impl AsMut<[f32]> for Inline {
            fn as_mut(&mut self) -> &mut [f32] {
                &mut self.0
            }
        }
        let mark = Arc::new(());
        let blobs = [
            Blob::from_owner(Inline([1.0, 2.0, 3.0, 4.0], mark.clone())),
            Blob::from_owner_mut(Inline([1.0, 2.0, 3.0, 4.0], mark.clone())),
        ];
        let storages = blobs.map(|blob| Storage::from_blob("t", blob, DType::F32).unwrap());
        assert_eq!(storages.each_ref().map(Storage::is_read_only), [true, false]);
        assert!(write_bytes(&storages[0], 0, &[0]).is_err());
        write_bytes(&storages[1], 0, &5.0f32.to_ne_bytes()).unwrap();
        for (storage, first) in storages.iter().zip([1.0f32, 5.0]) {
            let mut bytes = [0; 16];
            read_bytes(storage, 0, &mut bytes).unwrap();
            assert_eq!(f32::read(&bytes[..4]), first);
            assert_eq!(f32::read(&bytes[12..]), 4.0);
        }
        assert_eq!(Arc::strong_count(&mark), 3);
        drop(storages);
        assert_eq!(Arc::strong_count(&mark), 1);
    }

    #[test]
    fn elements_must_be_aligned() {
        struct Part(Vec<u64>);
        impl AsRef<[u8]> for Part {
            fn as_ref(&self) -> &[u8] {
                &crate::memory::bytes::of(&self.0)[4..]
            }
        }
        let error = Storage::from_blob("t", Blob::from_owner(Part(vec![0; 4])), DType::F64).unwrap_err();
        assert!(error.to_string().contains("aligned to 8 bytes for f64"), "{error}");
    }
}
