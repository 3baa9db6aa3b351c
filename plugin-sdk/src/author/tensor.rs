//! Tensors as passed to a kernel, without their element type.

use super::connection::{host_api, no_host};
use super::dtype_size::dtype_name;
use super::element::ElementType;
use super::error::Error;
use super::extent::{Extent, entries, extent};
use super::reach::reaches;
use crate::abi::codes::tensor_flag;
use crate::abi::host::TensorHandle;
use crate::abi::tensor::RawTensor;
use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;

/// The origin of a tensor, which determines whether its memory may be shared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin<'a> {
    /// An argument of the call that has these outputs; they may share its memory.
    Argument(&'a [*const RawTensor]),
    /// An output of the call: memory is accessed through `Call::out` alone.
    Output,
    /// A tensor of this plugin that no other library has had access to.
    Fresh,
    /// A tensor that another op returned or has had access to; it may share memory with any other.
    Shared,
}

/// An argument or output of a call, or a tensor that the plugin owns. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    pub(crate) raw: &'a RawTensor,
    pub(crate) origin: Origin<'a>,
}

impl<'a> Tensor<'a> {
    /// The sizes, in elements.
    #[inline]
    pub fn sizes(&self) -> &'a [i64] {
        // SAFETY: `RawTensor::sizes` has `ndim` entries while the tensor lives; the host upholds this.
        unsafe { entries(self.raw.sizes, self.raw.ndim as usize) }
    }

    /// The strides, in elements, never negative; empty for a composite tensor.
    #[inline]
    pub fn strides(&self) -> &'a [i64] {
        // SAFETY: `RawTensor::strides` is null or has `ndim` entries; the host upholds this.
        unsafe { entries(self.raw.strides, self.raw.ndim as usize) }
    }

    /// The number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.raw.ndim as usize
    }

    /// The product of the sizes.
    #[inline]
    pub fn numel(&self) -> usize {
        self.raw.numel.max(0) as usize
    }

    /// The dtype code, see [`crate::abi::codes::dtype`].
    #[inline]
    pub fn dtype(&self) -> u16 {
        self.raw.dtype
    }

    /// The layout's number; 0 is `strided`.
    #[inline]
    pub fn layout(&self) -> u16 {
        self.raw.layout
    }

    /// The device's number; 0 is `cpu`.
    #[inline]
    pub fn device(&self) -> u16 {
        self.raw.device
    }

    /// The index of the device among those of its name.
    #[inline]
    pub fn device_index(&self) -> u16 {
        self.raw.device_index
    }

    /// Whether the tensor is contiguous (row-major, without gaps).
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.raw.flags & tensor_flag::CONTIGUOUS != 0
    }

    /// Whether the data is one element in host memory although the call runs on another device.
    #[inline]
    pub fn is_host_scalar(&self) -> bool {
        self.raw.flags & tensor_flag::HOST_SCALAR != 0
    }

    /// The scalar that the caller passed instead of a tensor, if this tensor represents one: not rounded to the dtype, for
    /// kernels that compute in a wider type than the element type.
    #[inline]
    pub fn number(&self) -> Option<f64> {
        const FLAGS: u32 = tensor_flag::HOST_SCALAR | tensor_flag::NUMBER;
        if self.raw.flags & FLAGS != FLAGS {
            return None;
        }
        // SAFETY: with these flags an f64 is stored 8 bytes after the element, in host memory that outlives the call; the host
        // upholds this.
        Some(unsafe { self.raw.data.cast::<u8>().add(8).cast::<f64>().read_unaligned() })
    }

    /// The address of element (0, ..., 0): a device address unless the device's memory is the host's.
    #[inline]
    pub fn data_ptr(&self) -> *mut c_void {
        self.raw.data
    }

    /// The host's handle; null for a temporary.
    #[inline]
    pub fn handle(&self) -> TensorHandle {
        self.raw.handle
    }

    /// The raw form.
    #[inline]
    pub fn raw(&self) -> &'a RawTensor {
        self.raw
    }

    /// The number of components of a composite tensor, otherwise 0.
    #[inline]
    pub fn n_components(&self) -> usize {
        self.raw.n_components as usize
    }

    /// Component `index` of a composite tensor, in the order of the layout's component names.
    #[inline]
    pub fn component(&self, index: usize) -> Result<Tensor<'a>, Error> {
        // SAFETY: `components` has `n_components` entries, each a valid tensor; the host upholds this.
        let all = unsafe { entries(self.raw.components, self.n_components()) };
        match all.get(index) {
            // SAFETY: as above.
            Some(&raw) => Ok(Tensor { raw: unsafe { &*raw }, origin: self.origin }),
            None => Err(no_component(index, all.len())),
        }
    }

    /// All components of a composite tensor; empty for a strided one.
    pub fn components(&self) -> impl ExactSizeIterator<Item = Tensor<'a>> + use<'a> {
        // SAFETY: `components` has `n_components` entries, each a valid tensor; the host upholds this.
        let all: &'a [*const RawTensor] = unsafe { entries(self.raw.components, self.n_components()) };
        let origin = self.origin;
        // SAFETY: as above.
        all.iter().map(move |&raw| Tensor { raw: unsafe { &*raw }, origin })
    }

    /// The attributes of a composite tensor, in the order of the layout's attribute names.
    #[inline]
    pub fn attrs(&self) -> &'a [i64] {
        // SAFETY: `attrs` has `n_attrs` entries; the host upholds this.
        unsafe { entries(self.raw.attrs, self.raw.n_attrs as usize) }
    }

    /// The checks of every typed view.
    #[inline(always)]
    pub(crate) fn check(&self, element: ElementType) -> Result<(), Error> {
        let raw = self.raw;
        let strided = raw.n_components == 0 && (raw.ndim == 0 || !raw.strides.is_null());
        let addressed =
            raw.numel <= 0 || (!raw.data.is_null() && raw.data.addr() & (element.bytes() - 1) == 0);
        let fits = raw.dtype == element.dtype()
            && strided
            && addressed
            && (reaches(raw.device) || self.is_host_scalar());
        if fits { Ok(()) } else { Err(misfit(raw, element)) }
    }

    /// The address range of the elements, or `None` if the tensor is empty or the range is unknown.
    pub(crate) fn range(&self) -> Extent {
        extent(self.raw)
    }
}

#[cold]
#[inline(never)]
fn misfit(raw: &RawTensor, element: ElementType) -> Error {
    if raw.dtype != element.dtype() {
        return wrong_dtype(element.dtype(), raw.dtype);
    }
    unreachable_memory(raw)
}

#[cold]
fn no_component(index: usize, len: usize) -> Error {
    Error::InvalidArgument {
        argument: "component",
        expected: format!("an index below {len}, the number of components"),
        got: index.to_string(),
    }
}

#[cold]
pub(super) fn is_an_output() -> Error {
    Error::InvalidArgument {
        argument: "output",
        expected: "an argument; an output is written through `Call::out`".into(),
        got: "an output".into(),
    }
}

#[cold]
fn wrong_dtype(expected: u16, got: u16) -> Error {
    Error::InvalidArgument {
        argument: "dtype",
        expected: dtype_name(expected).into(),
        got: format!("{} ({got})", dtype_name(got)),
    }
}

#[cold]
fn unreachable_memory(raw: &RawTensor) -> Error {
    let got = if raw.n_components != 0 || (raw.ndim != 0 && raw.strides.is_null()) {
        format!("a composite tensor of layout {}; view its components", raw.layout)
    } else if !reaches(raw.device) {
        format!("memory of device {}, whose plugin does not call it host-accessible", raw.device)
    } else {
        "a null or unaligned address".into()
    };
    Error::InvalidArgument {
        argument: "tensor",
        expected: "strided elements that the host can read".into(),
        got,
    }
}

/// A tensor that the plugin owns: created by a host service, released on drop.
#[derive(Debug)]
pub struct OwnedTensor {
    handle: TensorHandle,
    raw: *const RawTensor,
    /// Whether another library may have access to the memory.
    shared: Cell<bool>,
    _not_sync: PhantomData<*const ()>,
}

impl OwnedTensor {
    /// Takes ownership of a handle that a host service returned.
    ///
    /// # Safety
    /// `handle` must be an owned handle of the host; the caller passes ownership.
    pub(crate) unsafe fn from_handle(handle: TensorHandle, shared: bool) -> Result<Self, Error> {
        let host = host_api().ok_or_else(no_host)?;
        // SAFETY: the caller guarantees an owned handle.
        let raw = unsafe { (host.tensor_raw)(handle) };
        let tensor = OwnedTensor { handle, raw, shared: Cell::new(shared), _not_sync: PhantomData };
        if raw.is_null() {
            return Err(Error::Failed {
                detail: "the host has no raw form of a tensor that it just made".into(),
            });
        }
        Ok(tensor)
    }

    /// The tensor's metadata and, through [`Tensor::view`], its elements.
    pub fn tensor(&self) -> Tensor<'_> {
        let origin = if self.shared.get() { Origin::Shared } else { Origin::Fresh };
        // SAFETY: `tensor_raw` is valid until the handle is released, which `self` does on drop.
        Tensor { raw: unsafe { &*self.raw }, origin }
    }

    /// The tensor, if its memory is uniquely owned and its elements are of this type.
    pub(super) fn own(&self, element: ElementType) -> Result<Tensor<'_>, Error> {
        if self.shared.get() {
            return Err(Error::InvalidArgument {
                argument: "tensor",
                expected: "a tensor that this kernel made and gave to no other op".into(),
                got: "a tensor that another op made or has seen".into(),
            });
        }
        let tensor = self.tensor();
        tensor.check(element)?;
        Ok(tensor)
    }

    /// Marks that another library may have access to the memory, and returns the handle without passing ownership.
    pub(crate) fn lend(&self) -> TensorHandle {
        self.shared.set(true);
        self.handle
    }

    /// Passes ownership of the handle to the host.
    pub(crate) fn into_handle(self) -> TensorHandle {
        std::mem::ManuallyDrop::new(self).handle
    }
}

impl Drop for OwnedTensor {
    fn drop(&mut self) {
        if let Some(host) = host_api() {
            // SAFETY: the handle is owned and is released this once.
            unsafe { (host.tensor_release)(self.handle) };
        }
    }
}
