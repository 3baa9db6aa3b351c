//! DLPack: tensors that other libraries and Keyway share without a copy.

use super::Tensor;
use crate::error::{Result, called};
use keyway_dispatcher::Error;
use keyway_dispatcher::memory::dlpack::{ManagedTensor, Strided};
use keyway_dispatcher::tensor::TensorImpl;

impl Tensor {
    /// Exports the tensor as DLPack 1.x, without a copy. The struct owns a handle of the storage until its deleter is called;
    /// [`ManagedTensor::into_raw`] yields the address that a C interface takes.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?.t()?;
    /// let exported = x.to_dlpack()?;
    /// let described = exported.dl_tensor();
    /// assert_eq!((described.ndim, described.dtype.bits), (2, 32));
    /// assert_eq!(described.data.cast_const().cast(), x.data_ptr());
    /// let y = Tensor::from_dlpack(exported)?;
    /// x.zero_()?;
    /// assert_eq!((y.strides(), y.to_vec::<f32>()?), (&[1, 2][..], vec![0.0; 4]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor that requires a gradient: the consumer could not record its ops, so [`detach`](Tensor::detach) it. A composite
    /// layout; memory of a device; a dtype without a code in DLPack.
    #[doc(alias = "__dlpack__")]
    pub fn to_dlpack(&self) -> Result<ManagedTensor> {
        const OP: &str = "to_dlpack";
        if self.requires_grad() {
            let expected = "a tensor that requires no gradient; call `detach()` first".to_string();
            let got = "a tensor that requires a gradient".to_string();
            return Err(Error::Value { op: OP, argument: "self", expected, got }.into());
        }
        let strided = Strided {
            storage: self.inner.storage_for(OP)?.clone(),
            offset: self.storage_offset(),
            sizes: self.shape().as_ref().into(),
            strides: self.strides().into(),
            dtype: self.dtype(),
        };
        Ok(ManagedTensor::new(strided)?)
    }

    /// A tensor over the memory of a DLPack struct, without a copy. Its deleter runs once, when the last tensor over the memory is
    /// dropped, or if this call fails. A struct of [`Tensor::to_dlpack`] yields a tensor with the same storage.
    ///
    /// Of another library, take the struct over by [`ManagedTensor::from_raw`], whose safety contract says who may use the memory.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, storage::dlpack::ManagedTensor};
    /// let x = Tensor::new([1.0f32, 2.0])?;
    /// let raw = x.to_dlpack()?.into_raw();
    /// // SAFETY: the struct is that of `into_raw`, which is taken back once.
    /// let y = Tensor::from_dlpack(unsafe { ManagedTensor::from_raw(raw) }?)?;
    /// assert_eq!(y.data_ptr(), x.data_ptr());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Memory of a device; a dtype that Keyway lacks; more than 64 dimensions; negative sizes or strides; sizes whose bytes
    /// overflow; memory that is not aligned to an element; bytes of bool that are neither 0 nor 1.
    pub fn from_dlpack(tensor: ManagedTensor) -> Result<Tensor> {
        const OP: &str = "from_dlpack";
        called(OP, &["tensor"], || {
            let Strided { storage, offset, sizes, strides, dtype } = tensor.into_strided(OP)?;
            Ok(Tensor { inner: TensorImpl::strided_for(OP, storage, offset, &sizes, &strides, dtype)? })
        })
    }
}
