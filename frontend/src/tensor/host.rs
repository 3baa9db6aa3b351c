//! The memory of a tensor as the host sees it: its storage, foreign memory as a tensor, elements by index and as slices.

use super::Tensor;
use super::shape::{IntoShape, not_negative, sizes};
use crate::error::{Error, Result, called};
use keyway_dispatcher::DType;
use keyway_dispatcher::dims::{contiguous_strides, numel};
use keyway_dispatcher::memory::bytes::{Element, Plain};
use keyway_dispatcher::memory::{Accessor, AccessorMut, AccessorRef, Blob, Storage};
use keyway_dispatcher::tensor::TensorImpl;

/// A tensor over the blob's memory with these sizes and strides; errors are those of `from_blob`.
fn laid_over(blob: Blob, sizes: &[usize], strides: &[usize], dtype: DType) -> Result<Tensor> {
    const OP: &str = "from_blob";
    let storage = Storage::from_blob(OP, blob, dtype)?;
    Ok(Tensor { inner: TensorImpl::strided_for(OP, storage, 0, sizes, strides, dtype)? })
}

impl Tensor {
    /// The storage of the tensor, which may be shared with other tensors and larger than this one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Device, Tensor};
    /// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// let storage = x.storage()?;
    /// assert_eq!((storage.bytes(), storage.device(), storage.allocator()), (16, Device::CPU, "vector"));
    /// assert_eq!(storage.data_ptr(), x.data_ptr());
    /// assert_eq!(storage.strong_count(), 1);
    /// let alias = x.detach();
    /// assert_eq!(storage.strong_count(), 2);
    /// assert_eq!(storage.to_bytes()?[..4], 1.0f32.to_ne_bytes());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A composite layout: its components have storages.
    #[doc(alias = "untyped_storage")]
    #[doc(alias = "storage_and_layout")]
    pub fn storage(&self) -> Result<&Storage> {
        Ok(self.inner.storage_for("storage")?)
    }

    /// The address of the first element; null for a composite layout. On a device that the host cannot read it is only a
    /// number. It is valid as long as a tensor over the storage lives.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let x = keyway::Tensor::new([1.0f32, 2.0, 3.0])?;
    /// let tail = x.narrow(0, 1, 2)?;
    /// assert_eq!(tail.data_ptr().addr() - x.data_ptr().addr(), 4);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "const_data_ptr")]
    pub fn data_ptr(&self) -> *const u8 {
        let byte = self.storage_offset().wrapping_mul(self.dtype().size());
        self.inner.storage().map_or(std::ptr::null(), |storage| storage.data_ptr().wrapping_add(byte))
    }

    /// A row-major tensor over foreign memory, without a copy. The blob's deleter runs once, when the last tensor over the memory
    /// is dropped, on any thread; also if this call fails.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::storage::Blob;
    /// use keyway::{DType, Device, Tensor};
    /// let data = Box::into_raw(Box::new([1.0f32, 2.0, 3.0, 4.0]));
    /// let free = |data: *mut u8| {
    ///     // SAFETY: the box was given up below, and the deleter runs once.
    ///     drop(unsafe { Box::from_raw(data.cast::<[f32; 4]>()) })
    /// };
    /// // SAFETY: a box of 16 bytes that nobody else has, and that `free` takes back.
    /// let blob = unsafe { Blob::from_raw_parts(data.cast(), 16, Device::CPU, free)? };
    /// let x = Tensor::from_blob(blob.named("my box"), (2, 2), DType::F32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// assert_eq!(x.storage()?.allocator(), "my box");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes that overflow or need more bytes than the blob has; memory that is not aligned to an element (up to 8 bytes); bytes
    /// of bool that are neither 0 nor 1.
    #[doc(alias = "from_raw_parts")]
    #[doc(alias = "from_raw_buffer")]
    #[doc(alias = "frombuffer")]
    pub fn from_blob(blob: Blob, shape: impl IntoShape, dtype: DType) -> Result<Tensor> {
        called("from_blob", &["blob", "shape", "dtype"], || {
            let sizes = sizes("from_blob", shape)?;
            let (needed, there) = (numel("from_blob", &sizes)?.saturating_mul(dtype.size()), blob.bytes());
            if needed > there {
                let expected = format!("of at most the {there} bytes of the blob as {dtype}");
                let (op, argument, got) = ("from_blob", "shape", sizes.as_slice().into());
                return Err(keyway_dispatcher::Error::Shape { op, argument, expected, got }.into());
            }
            laid_over(blob, &sizes, &contiguous_strides(&sizes), dtype)
        })
    }

    /// As [`Tensor::from_blob`], with strides in elements. Overlapping strides are allowed, as `expand` returns them; such a
    /// tensor cannot be written to.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::storage::Blob;
    /// use keyway::{DType, Tensor};
    /// let columns = Blob::from_owner_mut(vec![1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// let x = Tensor::from_blob_strided(columns, (2, 3), (1, 2), DType::F64)?;
    /// assert_eq!(x.to_vec::<f64>()?, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::from_blob`]; a number of strides that differs from the number of sizes; elements outside the blob.
    pub fn from_blob_strided(
        blob: Blob,
        shape: impl IntoShape,
        strides: impl IntoShape,
        dtype: DType,
    ) -> Result<Tensor> {
        called("from_blob_strided", &["blob", "shape", "strides", "dtype"], || {
            const OP: &str = "from_blob";
            let (sizes, strides) = (sizes(OP, shape)?, not_negative(OP, "strides", &strides.into_ints())?);
            if sizes.len() != strides.len() {
                let expected = format!("{} strides, one for each size", sizes.len());
                let (argument, got) = ("strides", format!("{:?}", strides.as_slice()));
                return Err(keyway_dispatcher::Error::Value { op: OP, argument, expected, got }.into());
            }
            laid_over(blob, &sizes, &strides, dtype)
        })
    }

    /// A row-major tensor over the slice of `owner`, without a copy: an `Arc<[T]>`, a `Bytes`, a mapped file. The owner is
    /// dropped with the last tensor. The memory may be shared, so the tensor is read-only: an in-place change is an error. For
    /// uniquely owned memory use [`Tensor::from_vec`], or [`Blob::from_owner_mut`] and [`Tensor::from_blob`], which are writable.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let weights: std::sync::Arc<[f32]> = vec![1.0, 2.0, 3.0].into();
    /// let x = Tensor::from_owner(weights.clone(), 3)?;
    /// assert_eq!(x.data_ptr(), weights.as_ptr().cast());
    /// assert_eq!(x.add(1.0)?.to_vec::<f32>()?, [2.0, 3.0, 4.0]);
    /// assert!(x.add_(1.0).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A slice whose length does not fit the sizes.
    #[doc(alias = "frombuffer")]
    #[doc(alias = "from_numpy")]
    #[doc(alias = "asarray")]
    pub fn from_owner<T: Plain>(
        owner: impl AsRef<[T]> + Send + Sync + 'static,
        shape: impl IntoShape,
    ) -> Result<Tensor> {
        called("from_owner", &["owner", "shape"], || {
            let sizes = sizes("from_owner", shape)?;
            let expected = numel("from_owner", &sizes)?;
            let blob = Blob::from_owner(owner);
            let got = blob.bytes() / size_of::<T>();
            if got != expected {
                return Err(Error::Length { op: "from_owner", sizes: sizes.to_vec(), expected, got });
            }
            Tensor::from_blob(blob, &sizes, T::DTYPE)
        })
    }

    /// Whether the memory is read-only, see [`Tensor::from_owner`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert!(!Tensor::zeros(3)?.is_read_only());
    /// assert!(Tensor::from_owner(vec![1.0f32, 2.0], 2)?.is_read_only());
    /// # Ok(()) }
    /// ```
    pub fn is_read_only(&self) -> bool {
        self.inner.is_read_only()
    }

    /// Access to elements by index, where the host can read them. The tensor may be shared and change, so elements are copied
    /// out; [`Tensor::accessor_ref`] returns references. A tensor of bool is read as `u8`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let x = keyway::Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?.t()?;
    /// let a = x.accessor::<f32, 2>()?;
    /// assert_eq!((a.get([0, 1]), a.get([0, 2])), (Some(3.0), None));
    /// x.zero_()?;
    /// assert_eq!(a.get([0, 1]), Some(0.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype or rank other than the tensor's; a device that the host cannot read; a composite layout.
    #[doc(alias = "packed_accessor")]
    pub fn accessor<T: Element, const N: usize>(&self) -> Result<Accessor<'_, T, N>> {
        Ok(self.inner.accessor()?)
    }

    /// The elements by reference, `a[[i, j]]`, for the lifetime of the borrow; the tensor must be the only handle of its memory,
    /// or the memory be read-only.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let mut x = keyway::Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// let a = x.accessor_ref::<f32, 2>()?;
    /// assert_eq!(a[[0, 1]] + a[[1, 1]], 6.0);
    /// assert_eq!(a.row([1]), Some(&[3.0, 4.0][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::accessor`]; shared memory: clones, views, graphs that saved it.
    pub fn accessor_ref<T: Element, const N: usize>(&mut self) -> Result<AccessorRef<'_, T, N>> {
        Ok(TensorImpl::accessor_ref(&mut self.inner)?)
    }

    /// The elements by mutable reference, `a[[i, j]] = 1.0`, for the lifetime of the borrow; the tensor must be the only handle
    /// of its memory, as for `Arc::get_mut`. Counts as one in-place change.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let mut x = keyway::Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// let mut a = x.accessor_mut::<f32, 2>()?;
    /// a[[0, 1]] = 7.0;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 7.0, 3.0, 4.0]);
    /// let clone = x.clone();
    /// assert!(x.accessor_mut::<f32, 2>().is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// The borrow excludes other accesses to the tensor:
    ///
    /// ```compile_fail,E0502
    /// # fn main() -> keyway::Result<()> {
    /// let mut x = keyway::Tensor::new([1.0f32, 2.0])?;
    /// let mut a = x.accessor_mut::<f32, 1>()?;
    /// x.zero_()?;
    /// a[[0]] = 1.0;
    /// # Ok(()) }
    /// ```
    ///
    /// ```compile_fail,E0505
    /// # fn main() -> keyway::Result<()> {
    /// let mut x = keyway::Tensor::new([1.0f32, 2.0])?;
    /// let a = x.accessor_mut::<f32, 1>()?;
    /// drop(x);
    /// println!("{}", a[[0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::accessor_ref`]; read-only memory; overlapping strides; a tensor that requires grad, outside
    /// [`no_grad`](crate::autograd::no_grad), since such writes are not recorded.
    pub fn accessor_mut<T: Element, const N: usize>(&mut self) -> Result<AccessorMut<'_, T, N>> {
        self.check_unrecorded("accessor_mut")?;
        Ok(TensorImpl::accessor_mut(&mut self.inner)?)
    }

    /// All elements of a contiguous tensor as a slice, for the lifetime of the borrow; the tensor must be the only handle of its
    /// memory, or the memory be read-only. [`Tensor::to_vec`] copies any tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let x = keyway::Tensor::new([1.0f32, 2.0])?;
    /// let mut y = x.add(&x)?;
    /// assert_eq!(y.as_slice::<f32>()?, [2.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// A slice does not outlive the borrow:
    ///
    /// ```compile_fail,E0502
    /// # fn main() -> keyway::Result<()> {
    /// let mut x = keyway::Tensor::new([1.0f32, 2.0])?;
    /// let first = &x.as_slice::<f32>()?[0];
    /// let other = x.clone();
    /// println!("{first}");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::accessor_ref`]; a tensor that is not contiguous.
    #[doc(alias = "const_data_ptr")]
    pub fn as_slice<T: Element>(&mut self) -> Result<&[T]> {
        Ok(TensorImpl::as_slice(&mut self.inner)?)
    }

    /// As [`Tensor::as_slice`], mutably. Counts as one in-place change.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let mut x = keyway::Tensor::new([3.0f32, 1.0, 2.0])?;
    /// x.as_slice_mut::<f32>()?.sort_by(f32::total_cmp);
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::accessor_mut`]; a tensor that is not contiguous.
    #[doc(alias = "data_ptr")]
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        self.check_unrecorded("as_slice_mut")?;
        Ok(TensorImpl::as_slice_mut(&mut self.inner)?)
    }
}
