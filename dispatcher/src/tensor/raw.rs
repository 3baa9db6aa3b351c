//! The form of a tensor that is passed to plugins.

use crate::base::dtype::DType;
use crate::base::key::{Device, Layout};
use keyway_sdk::abi::codes::tensor_flag;
use keyway_sdk::abi::tensor::RawTensor;
use std::ffi::c_void;

/// The raw form stored in a tensor itself, so that a call only passes a pointer. It contains addresses within the tensor,
/// which therefore never moves; [`OwnRaw::settle`] writes them once the tensor is in its final location.
pub(crate) struct OwnRaw(RawTensor);

// SAFETY: the addresses point into the tensor that contains this and into its storage; both live as long as this does,
// are shared between threads with it, and the tensor is never written through them.
unsafe impl Send for OwnRaw {}
// SAFETY: as for Send.
unsafe impl Sync for OwnRaw {}

impl OwnRaw {
    /// An empty raw form.
    // A function: a constant of this size would be copied from memory, piece by piece.
    #[inline(always)]
    pub(crate) fn empty() -> OwnRaw {
        OwnRaw(RawTensor {
            struct_size: size_of::<RawTensor>() as u32,
            ndim: 0,
            dtype: 0,
            layout: 0,
            device: 0,
            device_index: 0,
            flags: 0,
            n_components: 0,
            data: std::ptr::null_mut(),
            sizes: std::ptr::null(),
            strides: std::ptr::null(),
            numel: 0,
            handle: std::ptr::null(),
            components: std::ptr::null(),
            attrs: std::ptr::null(),
            n_attrs: 0,
            reserved: 0,
        })
    }

    /// Writes all fields but the addresses of the tensor's own parts. `data` is null for a composite tensor.
    #[inline(always)]
    pub(crate) fn set(
        &mut self,
        dtype: DType,
        layout: Layout,
        device: Device,
        contiguous: bool,
        data: *mut u8,
        numel: usize,
    ) {
        self.0.dtype = dtype.code();
        self.0.layout = layout.id();
        self.0.device = device.kind;
        self.0.device_index = device.index;
        self.0.flags = if contiguous { tensor_flag::CONTIGUOUS } else { 0 };
        self.0.data = data.cast();
        self.0.numel = numel as i64;
    }

    /// Writes the addresses of a tensor's own parts; `strides` only if the tensor is strided.
    #[inline(always)]
    pub(crate) fn settle(
        &mut self,
        sizes: &[usize],
        strides: Option<&[usize]>,
        attrs: &[i64],
        handle: *const c_void,
    ) {
        self.0.ndim = sizes.len() as u32;
        self.0.sizes = sizes.as_ptr().cast();
        self.0.strides = strides.map_or(std::ptr::null(), |strides| strides.as_ptr().cast());
        self.0.attrs = attrs.as_ptr();
        self.0.n_attrs = attrs.len() as u32;
        self.0.handle = handle;
    }

    /// The raw form, valid while the tensor lives.
    #[inline(always)]
    pub(crate) fn get(&self) -> &RawTensor {
        &self.0
    }

    /// A raw form with the same content as `raw`, not yet in its final location.
    #[inline(always)]
    pub(crate) fn of(raw: &RawTensor) -> OwnRaw {
        OwnRaw(RawTensor { ..*raw })
    }

    /// A mutable copy of the raw form.
    #[inline(always)]
    pub(crate) fn copied(&self) -> RawTensor {
        RawTensor { ..self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::key::DispatchKey;
    use crate::memory::Storage;
    use crate::tensor::TensorImpl;

    #[test]
    fn a_new_tensor_is_extended_once_and_its_raw_form_stays_whole() {
        let mut tensor =
            TensorImpl::strided(Storage::from_vec(vec![0f32; 6]), 1, &[2, 2], &[2, 1], DType::F32).unwrap();
        *TensorImpl::extend_new::<u32>(&mut tensor, DispatchKey::AUTOGRAD).unwrap() = 7;
        assert!(TensorImpl::extend_new::<u32>(&mut tensor, DispatchKey::AUTOGRAD).is_none());
        assert!(tensor.extension::<u32>() == Some(&7) && tensor.extension::<u8>().is_none());
        assert!(tensor.keys().has(DispatchKey::AUTOGRAD));
        let copy = tensor.raw().copied();
        // SAFETY: the tensor lives, and has two sizes.
        let sizes = unsafe { std::slice::from_raw_parts(copy.sizes, copy.ndim as usize) };
        assert_eq!(sizes, [2, 2]);
        let shared = tensor.clone();
        assert!(TensorImpl::extend_new::<u32>(&mut tensor, DispatchKey::AUTOGRAD).is_none());
        drop(shared);
    }
}
