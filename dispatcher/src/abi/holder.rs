//! Tensors that plugins hold: an owned reference together with its raw form.

use crate::tensor::TensorRef;
use keyway_sdk::abi::codes::tensor_flag;
use keyway_sdk::abi::tensor::RawTensor;
use std::ffi::c_void;
use std::sync::Arc;

/// An owned tensor and its raw form, which stays where it is until the holder is dropped. A
/// `TensorHandle` of the contract is a pointer to one of these.
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
        let mut raw = raw_tensor(&tensor);
        raw.components = pointers.as_ptr();
        raw.n_components = pointers.len() as u32;
        Box::new(Holder { tensor, raw, _children: children, _pointers: pointers })
    }

    pub(crate) fn raw(&self) -> *const RawTensor {
        &self.raw
    }
}

/// The raw form of a tensor without its components; it points into the tensor.
#[inline]
pub(crate) fn raw_tensor(tensor: &TensorRef) -> RawTensor {
    let data = match tensor.storage() {
        Some(storage) => {
            storage.pointer().as_ptr().wrapping_add(tensor.offset() * tensor.dtype().size()).cast::<c_void>()
        }
        None => std::ptr::null_mut(),
    };
    let device = tensor.device();
    RawTensor {
        struct_size: size_of::<RawTensor>() as u32,
        ndim: tensor.ndim() as u32,
        dtype: tensor.dtype().code(),
        layout: tensor.layout().id(),
        device: device.kind,
        device_index: device.index,
        flags: if tensor.is_contiguous() { tensor_flag::CONTIGUOUS } else { 0 },
        n_components: 0,
        data,
        sizes: tensor.sizes().as_ptr().cast(),
        strides: if tensor.is_strided() { tensor.strides().as_ptr().cast() } else { std::ptr::null() },
        numel: tensor.numel() as i64,
        handle: Arc::as_ptr(tensor).cast(),
        components: std::ptr::null(),
        attrs: tensor.attrs().as_ptr(),
        n_attrs: tensor.attrs().len() as u32,
        reserved: 0,
    }
}

/// The tensor behind `RawTensor::handle`.
///
/// # Safety
/// `handle` must be one that [`raw_tensor`] wrote, of a tensor that is still alive; the plugin upholds this
/// by using raw tensors only for the time of the call that gave them, or while it holds their handle.
pub(crate) unsafe fn tensor_of(handle: *const c_void) -> TensorRef {
    let pointer = handle.cast::<crate::tensor::TensorImpl>();
    // SAFETY: the pointer is that of a living `Arc`, per this function's contract.
    unsafe {
        Arc::increment_strong_count(pointer);
        Arc::from_raw(pointer)
    }
}
