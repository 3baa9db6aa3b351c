//! Tensor handles of plugins: an owned reference together with its raw form.

use crate::memory::Shared;
use crate::tensor::TensorRef;
use keyway_sdk::abi::tensor::RawTensor;
use std::ffi::c_void;

/// An owned tensor and its raw form, which does not move until the holder is dropped. A `TensorHandle` of the contract is a
/// pointer to one of these.
pub(crate) struct Holder {
    pub(crate) tensor: TensorRef,
    raw: RawTensor,
    // The raw form points into these; a child must not move, so it is boxed.
    #[allow(clippy::vec_box)]
    _children: Vec<Box<Holder>>,
    _pointers: Vec<*const RawTensor>,
}

impl Holder {
    pub(crate) fn new(tensor: TensorRef) -> Box<Holder> {
        let children: Vec<Box<Holder>> = tensor.components().iter().map(|c| Holder::new(c.clone())).collect();
        let pointers: Vec<*const RawTensor> = children.iter().map(|c| c.raw()).collect();
        let mut raw = tensor.raw().copied();
        raw.components = pointers.as_ptr();
        raw.n_components = pointers.len() as u32;
        Box::new(Holder { tensor, raw, _children: children, _pointers: pointers })
    }

    pub(crate) fn raw(&self) -> *const RawTensor {
        &self.raw
    }
}

/// The tensor behind `RawTensor::handle`.
///
/// # Safety
/// `handle` must have been written by `OwnRaw::settle`, for a tensor that is still alive; the plugin upholds this by using
/// raw tensors only during the call that passed them, or while it owns their handle.
pub(crate) unsafe fn tensor_of(handle: *const c_void) -> TensorRef {
    // SAFETY: the pointer is to a live tensor, per this function's contract.
    unsafe { Shared::retain(handle.cast::<crate::tensor::TensorImpl>()) }
}
