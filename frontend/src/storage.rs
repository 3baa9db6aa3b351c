//! Storage: the memory of a tensor, as an object.
//!
//! [`Tensor::storage`](crate::Tensor::storage) returns it: bytes, device, address, allocator and number of handles.
//! Foreign memory becomes a tensor as a [`Blob`], which carries its deleter. [`HostAllocator`] lets a program allocate
//! the host memory of tensors itself.
//!
//! Access to the elements by hand:
//!
//! | call | needs | gives |
//! |---|---|---|
//! | [`Tensor::accessor`](crate::Tensor::accessor) | a shared tensor | copies of elements |
//! | [`Tensor::accessor_ref`](crate::Tensor::accessor_ref), [`as_slice`](crate::Tensor::as_slice) | a uniquely owned tensor, or read-only memory | references, slices |
//! | [`Tensor::accessor_mut`](crate::Tensor::accessor_mut), [`as_slice_mut`](crate::Tensor::as_slice_mut) | a uniquely owned tensor | references to write by |
//! | [`Accessor::assume_unwritten`], [`Storage::as_bytes`] | `unsafe`: the program keeps writers away | references, bytes |
//!
//! Decisions:
//! - ops write in place through shared handles, so a safe reference to elements needs the only handle, as
//!   `Arc::get_mut` does. A flag checked by every in-place op was rejected: two atomic read-modify-writes a call, for a
//!   rare use;
//! - memory that may be shared outside (`Arc<[T]>`, `Bytes`, a mapped file) is read-only for ops too;
//! - memory that processes share is an anonymous file of sealed size, see [`Tensor::to_shared_memory`](crate::Tensor::to_shared_memory):
//!   the kernel frees it whatever happens to its users, and a peer cannot truncate it. A name in `/dev/shm` was rejected: a killed
//!   process leaves it behind;
//! - a blob owns its deleter from the beginning, so it runs once, also if no tensor is created;
//! - overlapping strides, as of `expand`, are allowed over foreign memory; writing to such a tensor is an error, as everywhere.

#[cfg(target_os = "linux")]
pub(crate) mod shared;

#[cfg(target_os = "linux")]
pub use shared::SharedHandle;

/// Bounds-checked reads of a tensor that shares its memory; returned by [`Tensor::accessor`](crate::Tensor::accessor).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.t()?;
/// let a = x.accessor::<f32, 2>()?;
/// assert_eq!((a.sizes(), a.strides()), ([2, 2], [1, 2]));
/// assert_eq!((a.get([0, 1]), a.get([2, 0])), (Some(3.0), None));
/// assert!(x.accessor::<f64, 2>().is_err() && x.accessor::<f32, 1>().is_err());
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::memory::Accessor;
/// Bounds-checked reads and writes of a tensor; returned by [`Tensor::accessor_mut`](crate::Tensor::accessor_mut).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let mut x = Tensor::zeros((2, 3))?;
/// let mut a = x.accessor_mut::<f32, 2>()?;
/// a[[0, 1]] = 5.0;
/// a.row_mut([1]).unwrap().fill(7.0);
/// *a.get_mut([1, 2]).unwrap() += 1.0;
/// assert_eq!(a.as_ref().row([1]), Some(&[7.0, 7.0, 8.0][..]));
/// assert_eq!(a.into_slice().unwrap()[1], 5.0);
/// assert_eq!(x.to_vec::<f32>()?, [0.0, 5.0, 0.0, 7.0, 7.0, 8.0]);
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::memory::AccessorMut;
/// Bounds-checked references to the elements of a tensor; returned by [`Tensor::accessor_ref`](crate::Tensor::accessor_ref).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let mut x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
/// let a = x.accessor_ref::<f32, 2>()?;
/// assert_eq!((a[[1, 0]], a.get([0, 2])), (3.0, None));
/// assert_eq!((a.row([1]), a.as_slice().map(<[f32]>::len)), (Some(&[3.0, 4.0][..]), Some(4)));
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::memory::AccessorRef;
/// The memory of one or more tensors; returned by [`Tensor::storage`](crate::Tensor::storage).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let x = Tensor::zeros((2, 3))?;
/// let storage = x.i(1)?.storage()?.clone();
/// assert_eq!((storage.bytes(), storage.device()), (24, x.device()));
/// assert_eq!(storage.data_ptr(), x.data_ptr());
/// x.fill_(1.0)?;
/// assert_eq!(storage.to_bytes()?, x.to_bytes()?);
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::memory::Storage;
pub use keyway_dispatcher::memory::bytes::{Element, Plain};
/// DLPack 1.x: the structs by which libraries share tensors without a copy.
pub mod dlpack {
    pub use keyway_dispatcher::memory::dlpack::{
        DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
        ManagedTensor, VERSION,
    };
}
pub use keyway_dispatcher::memory::{
    AllocatorGuard, Blob, HostAllocator, set_host_allocator, use_host_allocator,
};
use std::sync::Arc;

/// Runs `run`; the host memory of tensors that this thread creates in it comes from `allocator`, and is freed there when they are
/// dropped, also later and on other threads. Temporary memory of kernels does not come from it. [`set_host_allocator`] applies to
/// the whole program.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::storage::{HostAllocator, with_host_allocator};
/// use keyway::Tensor;
/// use std::alloc::{Layout, alloc_zeroed, dealloc};
/// use std::ptr::NonNull;
///
/// struct Zeroed;
///
/// // SAFETY: memory of the system's allocator, of the layout that is asked for.
/// unsafe impl HostAllocator for Zeroed {
///     fn name(&self) -> &str {
///         "zeroed"
///     }
///     fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
///         // SAFETY: the size is at least 1.
///         NonNull::new(unsafe { alloc_zeroed(layout) })
///     }
///     unsafe fn free(&self, memory: NonNull<u8>, layout: Layout) {
///         // SAFETY: `allocate` made it with this layout.
///         unsafe { dealloc(memory.as_ptr(), layout) }
///     }
/// }
///
/// let x = with_host_allocator(std::sync::Arc::new(Zeroed), || Tensor::empty(3))?;
/// assert_eq!(x.storage()?.allocator(), "zeroed");
/// assert_eq!(x.to_vec::<f32>()?, [0.0; 3]);
/// # Ok(()) }
/// ```
///
/// If the allocator fails, the call that requested memory fails with `OutOfMemory`, which names the allocator and the bytes.
#[doc(alias = "SetAllocator")]
#[doc(alias = "use_mem_pool")]
pub fn with_host_allocator<R>(allocator: Arc<dyn HostAllocator>, run: impl FnOnce() -> R) -> R {
    let _guard = use_host_allocator(Some(allocator));
    run()
}
