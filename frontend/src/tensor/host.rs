//! The memory of a tensor as the host sees it: its storage, foreign memory as a tensor, elements by index and as slices.

use super::Tensor;
use super::shape::{IntoShape, not_negative, sizes};
use crate::autograd::{AutogradError, is_grad_enabled};
use crate::error::{Error, Result, called};
use keyway_dispatcher::DType;
use keyway_dispatcher::dims::{contiguous_strides, numel};
use keyway_dispatcher::memory::bytes::{Element, Plain};
use keyway_dispatcher::memory::{Accessor, AccessorMut, AccessorRef, Blob, Storage};
use keyway_dispatcher::tensor::TensorImpl;

/// The blob's memory with these sizes and strides; errors are those of `from_blob`.
fn laid_over(blob: Blob, sizes: &[usize], strides: &[usize], dtype: DType) -> Result<Tensor> {
    const OP: &str = "from_blob";
    let storage = Storage::from_blob(OP, blob, dtype)?;
    Ok(Tensor { inner: TensorImpl::strided_for(OP, storage, 0, sizes, strides, dtype)? })
}

impl Tensor {
    /// The memory that the tensor lies in, which it may share with others and show in part.
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

    /// A row-major tensor over memory of somebody else, without a copy. The blob's deleter runs once, when the last tensor over
    /// the memory is dropped, on whatever thread; also when this call fails.
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

    /// As [`Tensor::from_blob`], with strides in elements. Strides that show an element twice are allowed, as `expand` makes them;
    /// such a tensor is not written to.
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
    /// As [`Tensor::from_blob`]; another number of strides than of sizes; elements outside the blob.
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

    /// A row-major tensor over the slice that `owner` shows, without a copy: an `Arc<[T]>`, a `Bytes`, a mapped file. The owner is
    /// dropped with the last tensor. Others may hold the memory, so the tensor is read-only: a change in place is an error. What
    /// nobody else holds may be written to with [`Tensor::from_vec`], or [`Blob::from_owner_mut`] and [`Tensor::from_blob`].
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

    /// Whether the memory may not be written to, see [`Tensor::from_owner`].
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

    /// The elements by their indices, where the host can read them. Others may hold the tensor and change it, so elements are
    /// copied out; [`Tensor::accessor_ref`] gives references. A tensor of bool is read as `u8`.
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
    /// Another dtype or number of dimensions than the tensor's; a device that the host cannot read; a composite layout.
    #[doc(alias = "packed_accessor")]
    pub fn accessor<T: Element, const N: usize>(&self) -> Result<Accessor<'_, T, N>> {
        Ok(self.inner.accessor()?)
    }

    /// The elements by reference, `a[[i, j]]`, for as long as the tensor is borrowed; it must be the only handle of its memory, or lie
    /// in read-only memory.
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
    /// As [`Tensor::accessor`]; memory that others hold: clones, views, graphs that saved it.
    pub fn accessor_ref<T: Element, const N: usize>(&mut self) -> Result<AccessorRef<'_, T, N>> {
        Ok(TensorImpl::accessor_ref(&mut self.inner)?)
    }

    /// The elements by mutable reference, `a[[i, j]] = 1.0`, for as long as the tensor is borrowed; it must be the only handle of
    /// its memory, as for `Arc::get_mut`. Counts as one change in place.
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
    /// The tensor cannot be read or changed otherwise meanwhile:
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
    /// As [`Tensor::accessor_ref`]; read-only memory; strides that show an element twice; a tensor that requires grad, outside
    /// [`no_grad`](crate::autograd::no_grad), since what is written is not recorded.
    pub fn accessor_mut<T: Element, const N: usize>(&mut self) -> Result<AccessorMut<'_, T, N>> {
        self.check_unrecorded("accessor_mut")?;
        Ok(TensorImpl::accessor_mut(&mut self.inner)?)
    }

    /// All elements of a contiguous tensor as a slice, for as long as the tensor is borrowed; it must be the only handle of its
    /// memory, or lie in read-only memory. [`Tensor::to_vec`] copies any tensor.
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
    /// As [`Tensor::accessor_ref`]; elements that do not lie in row-major order without gaps.
    #[doc(alias = "const_data_ptr")]
    pub fn as_slice<T: Element>(&mut self) -> Result<&[T]> {
        Ok(TensorImpl::as_slice(&mut self.inner)?)
    }

    /// As [`Tensor::as_slice`], for a change. Counts as one change in place.
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
    /// As [`Tensor::accessor_mut`]; elements that do not lie in row-major order without gaps.
    #[doc(alias = "data_ptr")]
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        self.check_unrecorded("as_slice_mut")?;
        Ok(TensorImpl::as_slice_mut(&mut self.inner)?)
    }

    fn check_unrecorded(&self, op: &'static str) -> Result<()> {
        if is_grad_enabled() && self.requires_grad() {
            return Err(AutogradError::WrittenByHand { op }.into());
        }
        Ok(())
    }
}
