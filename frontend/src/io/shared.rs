//! Tensors in memory that processes share, and tensors over files.

use super::raw;
use crate::error::{Error, Result, called};
use crate::storage::SharedHandle;
use crate::storage::shared::{self, Geometry};
use crate::tensor::IntoShape;
use crate::tensor::shape::sizes;
use crate::{Tensor, autograd};
use keyway_dispatcher::dims::{contiguous_strides, numel};
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet};
use keyway_dispatcher::memory::Storage;
use keyway_dispatcher::tensor::TensorImpl;
use keyway_dispatcher::{DType, Device};
use std::path::Path;

fn wrong(
    op: &'static str,
    argument: &'static str,
    expected: impl Into<String>,
    got: impl Into<String>,
) -> Error {
    keyway_dispatcher::Error::Value { op, argument, expected: expected.into(), got: got.into() }.into()
}

/// The strides of a copy: the tensor's own if its elements fill a range of memory without gaps, otherwise row-major.
fn strides_of_copy(tensor: &Tensor) -> Vec<usize> {
    let mut by_stride: Vec<(usize, usize)> = tensor
        .strides()
        .iter()
        .copied()
        .zip(tensor.shape().iter().copied())
        .filter(|(_, n)| *n != 1)
        .collect();
    by_stride.sort_unstable();
    let mut expected = 1;
    let dense = by_stride.iter().all(|&(stride, n)| {
        let fits = stride == expected;
        expected *= n;
        fits
    });
    if dense { tensor.strides().to_vec() } else { contiguous_strides(tensor.shape()).to_vec() }
}

fn geometry_of(tensor: &Tensor) -> Geometry {
    let (sizes, strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
    Geometry { dtype: tensor.dtype(), offset: tensor.storage_offset(), sizes, strides }
}

/// The tensor of this geometry, which is checked.
fn opened(op: &'static str, storage: Storage, geometry: &Geometry) -> Result<Tensor> {
    let Geometry { dtype, offset, sizes, strides } = geometry;
    if sizes.len() != strides.len() {
        let expected = format!("{} strides, one for each size", sizes.len());
        return Err(wrong(op, "strides", expected, format!("{strides:?}")));
    }
    let tensor = Tensor::from_ref(TensorImpl::strided_for(op, storage, *offset, sizes, strides, *dtype)?);
    if let (&DType::BOOL, Some(reach)) = (dtype, tensor.as_ref().reach()) {
        tensor.storage()?.check_bools(op, *offset, reach.len())?;
    }
    Ok(tensor)
}

impl Tensor {
    /// Whether other processes can map the tensor's memory, see [`Tensor::to_shared_memory`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::ones(3)?;
    /// assert!(!x.is_shared() && x.to_shared_memory()?.i(1..)?.is_shared());
    /// # Ok(()) }
    /// ```
    pub fn is_shared(&self) -> bool {
        self.as_ref().storage().is_some_and(|storage| storage.shared_file().is_some())
    }

    /// A copy in memory that other processes can map, without history; the tensor itself, detached, if it is in such memory.
    /// Strides are preserved if the elements have no gaps between them.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.to_shared_memory()?;
    /// let same = Tensor::from_shared_handle(&x.shared_handle()?)?;
    /// same.mul_(2.0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// The memory is an anonymous file: the kernel frees it when no process maps it and no descriptor of it is open, also
    /// after a crash. Processes that write to the same elements without locks see each other's values in no fixed order; ops
    /// that read integers or bools (indices, masks) are not protected from writers in other processes.
    ///
    /// # Errors
    /// A tensor on another device or of a composite layout; `OutOfMemory`; too many open files.
    #[doc(alias = "share_memory_")]
    pub fn to_shared_memory(&self) -> Result<Tensor> {
        called("to_shared_memory", &["self"], || self.shared_copy("to_shared_memory"))
    }

    fn shared_copy(&self, op: &'static str) -> Result<Tensor> {
        if self.is_shared() {
            return Ok(self.detach());
        }
        self.storage()?;
        if self.device() != Device::CPU {
            let got = format!("one on {}; copy it with `to_device`", self.device());
            return Err(wrong(op, "self", "a tensor in host memory", got));
        }
        let made = Tensor::empty_shared_for(op, self.shape(), &strides_of_copy(self), self.dtype())?;
        let _off = KeyGuard::exclude(KeySet::of(DispatchKey::AUTOGRAD));
        made.copy_(&self.detach())?;
        Ok(made)
    }

    fn empty_shared_for(
        op: &'static str,
        sizes: &[usize],
        strides: &[usize],
        dtype: DType,
    ) -> Result<Tensor> {
        let bytes = numel(op, sizes)?.saturating_mul(dtype.storage_size()?);
        let storage = Storage::allocate_shared(op, bytes)?;
        Ok(Tensor::from_ref(TensorImpl::strided_for(op, storage, 0, sizes, strides, dtype)?))
    }

    /// A row-major tensor of zeros in memory that other processes can map.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Tensor};
    /// let x = Tensor::zeros_shared((2, 3), DType::F32)?;
    /// assert!(x.is_shared() && x.to_vec::<f32>()? == [0.0; 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Negative sizes, sizes whose product overflows; `OutOfMemory`; too many open files.
    pub fn zeros_shared(shape: impl IntoShape, dtype: DType) -> Result<Tensor> {
        called("zeros_shared", &["shape", "dtype"], || {
            const OP: &str = "zeros_shared";
            let sizes = sizes(OP, shape)?;
            Tensor::empty_shared_for(OP, &sizes, &contiguous_strides(&sizes), dtype)
        })
    }

    /// Moves this handle to memory that other processes can map: a copy of its elements, with its gradient, which is moved
    /// too. No effect if it is there already. Returns the tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let mut w = Tensor::ones(2)?.requires_grad_(true)?;
    /// w.share_memory_()?;
    /// assert!(w.is_shared() && w.requires_grad());
    /// # Ok(()) }
    /// ```
    ///
    /// As with [`Tensor::set_`], other handles of the old tensor, such as views and clones, are unchanged: they keep the old
    /// memory.
    ///
    /// # Errors
    /// As [`Tensor::to_shared_memory`]; the result of an op that requires grad; a tensor with hooks, or whose gradient a graph
    /// still computes, since it would go to the old tensor.
    pub fn share_memory_(&mut self) -> Result<Tensor> {
        called("share_memory_", &["self"], || {
            const OP: &str = "share_memory_";
            if self.is_shared() {
                return Ok(self.clone());
            }
            if self.requires_grad() && !self.is_leaf() {
                let got = "the result of an op; `detach` it, or share its inputs";
                return Err(wrong(OP, "self", "a leaf, or a tensor that does not require grad", got));
            }
            if let Some(got) = autograd::bound_to_handle(self.as_ref()) {
                return Err(wrong(OP, "self", "a tensor without hooks that no graph uses", got));
            }
            let shared = self.shared_copy(OP)?;
            if self.requires_grad() {
                shared.requires_grad_(true)?;
            }
            if let Some(grad) = self.grad() {
                let strided = grad.as_ref().is_strided();
                shared.set_grad(if strided { grad.shared_copy(OP)? } else { grad })?;
            }
            *self = shared;
            Ok(self.clone())
        })
    }

    /// The handle by which another process opens the tensor's memory, with a descriptor of its own.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Tensor};
    /// let x = Tensor::zeros_shared((2, 3), DType::F32)?;
    /// let handle = x.t()?.i(1..)?.shared_handle()?;
    /// assert_eq!((handle.offset(), handle.sizes(), handle.strides()), (1, &[2, 2][..], &[1, 3][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor that is not in shared memory; too many open files.
    pub fn shared_handle(&self) -> Result<SharedHandle> {
        const OP: &str = "shared_handle";
        called(OP, &["self"], || SharedHandle::of(OP, self.storage()?, geometry_of(self)))
    }

    /// The tensor of a handle, over the same memory. A handle that describes elements outside its file, or a file whose size
    /// is not sealed, is refused.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Tensor, storage::SharedHandle};
    /// let x = Tensor::zeros_shared(4, DType::I64)?;
    /// let file = x.shared_handle()?.into_file();
    /// let lie = SharedHandle::new(file, DType::I64, 0, &[5], &[1]);
    /// assert!(Tensor::from_shared_handle(&lie).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Elements outside the file; bytes of bool that are neither 0 nor 1; a file that its owner may truncate.
    pub fn from_shared_handle(handle: &SharedHandle) -> Result<Tensor> {
        called("from_shared_handle", &["handle"], || {
            const OP: &str = "from_shared_handle";
            opened(OP, handle.storage(OP)?, handle.geometry())
        })
    }

    /// A text by which processes of the same user open the tensor's memory, see [`Tensor::open_shared`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Tensor};
    /// assert!(Tensor::zeros_shared(2, DType::F32)?.shared_name()?.starts_with("keyway-memory:"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor that is not in shared memory.
    pub fn shared_name(&self) -> Result<String> {
        const OP: &str = "shared_name";
        called(OP, &["self"], || shared::name(OP, self.storage()?, &geometry_of(self)))
    }

    /// The tensor of a [`Tensor::shared_name`], over the same memory. A name is valid as long as the process that wrote it has
    /// a tensor over the memory; afterwards the name is refused unless this process has the memory open.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Tensor};
    /// let x = Tensor::zeros_shared(2, DType::F32)?;
    /// let name = x.shared_name()?;
    /// Tensor::open_shared(&name)?.add_(1.0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 1.0]);
    /// drop(x);
    /// assert!(Tensor::open_shared(&name).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A text that is no name; a process that has ended, has dropped the memory or belongs to another user; as
    /// [`Tensor::from_shared_handle`].
    pub fn open_shared(name: &str) -> Result<Tensor> {
        called("open_shared", &["name"], || {
            let (storage, geometry) = shared::open("open_shared", name)?;
            opened("open_shared", storage, &geometry)
        })
    }

    /// The first elements of a file of raw values in this machine's byte order.
    ///
    /// With `shared`, the file is mapped: writes to the tensor reach the file and every process that maps it, and a file that
    /// is shorter or absent is extended or created. If another program truncates the file meanwhile, an access ends this
    /// process with SIGBUS. Without `shared`, the values are read into memory of the tensor's own.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Tensor};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("values");
    /// Tensor::from_file(&path, true, 3, DType::F32)?.fill_(2.0)?;
    /// assert_eq!(Tensor::from_file(&path, false, 3, DType::F32)?.to_vec::<f32>()?, [2.0; 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A file that cannot be opened, or without `shared` has fewer values; bytes of bool that are neither 0 nor 1.
    pub fn from_file(path: impl AsRef<Path>, shared: bool, size: usize, dtype: DType) -> Result<Tensor> {
        called("from_file", &["path", "shared", "size", "dtype"], || {
            const OP: &str = "from_file";
            let path = path.as_ref();
            let bytes = numel(OP, &[size])?.saturating_mul(dtype.storage_size()?);
            if !shared || bytes == 0 {
                return raw::read(OP, path, size, dtype);
            }
            let storage = Storage::map_file(OP, path, bytes)?;
            let geometry = Geometry { dtype, offset: 0, sizes: vec![size], strides: vec![1] };
            opened(OP, storage, &geometry)
        })
    }
}
