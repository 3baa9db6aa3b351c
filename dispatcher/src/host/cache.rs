//! Services that store derived data with the storage that it is derived from.

use super::boundary::{give, no_handle, serve};
use crate::base::error::{Error, Result};
use crate::call::{Holder, tensor_of};
use crate::memory::Storage;
use crate::tensor::{Derived, Elements, TensorRef};
use keyway_sdk::abi::host::TensorHandle;
use keyway_sdk::abi::tensor::RawTensor;
use smallvec::SmallVec;

/// The tensor of a raw tensor, and the elements that the raw one describes.
///
/// # Safety
/// `raw` must be null, or a raw tensor of the current call or of a handle that the plugin owns; the plugin upholds this.
unsafe fn read(raw: *const RawTensor) -> Result<(TensorRef, Elements)> {
    // SAFETY: per this function's contract.
    let Some(raw) = (unsafe { raw.as_ref() }).filter(|raw| !raw.handle.is_null()) else {
        return Err(no_handle("tensor"));
    };
    let numbers = |list: *const i64| match list.is_null() {
        true => SmallVec::new(),
        // SAFETY: sizes, and strides if present, have `ndim` entries.
        false => SmallVec::from_slice(unsafe { std::slice::from_raw_parts(list, raw.ndim as usize) }),
    };
    let (data, dtype) = (raw.data.addr(), raw.dtype);
    let elements = Elements { data, dtype, sizes: numbers(raw.sizes), strides: numbers(raw.strides) };
    // SAFETY: the handle is of a tensor that lives during this call.
    Ok((unsafe { tensor_of(raw.handle) }, elements))
}

fn storage(tensor: &TensorRef) -> Result<&Storage> {
    tensor.storage().ok_or_else(|| Error::Value {
        op: "host service",
        argument: "tensor",
        expected: "a strided tensor; cache a value of a composite tensor at one of its components".into(),
        got: format!("{tensor:?}"),
    })
}

pub(super) unsafe extern "C" fn cache_get(
    tensor: *const RawTensor,
    key: u64,
    version: *mut u32,
    out: *mut TensorHandle,
) -> i32 {
    serve(|| {
        // SAFETY: the plugin passes a tensor of the current call, or of a handle that it owns.
        let (tensor, elements) = unsafe { read(tensor)? };
        // Read before the data is: after a concurrent change, `cache_put` then stores nothing.
        let now = storage(&tensor)?.version();
        let found = tensor.derived(key, &elements);
        // SAFETY: the plugin passes pointers valid for writing one number and one handle.
        unsafe {
            version.write(now);
            out.write(found.map_or(std::ptr::null(), give));
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn cache_put(
    tensor: *const RawTensor,
    key: u64,
    version: u32,
    value: TensorHandle,
) -> i32 {
    serve(|| {
        // SAFETY: as in `cache_get`.
        let (tensor, elements) = unsafe { read(tensor)? };
        let storage = storage(&tensor)?;
        // SAFETY: the plugin passes null or a handle that it owns and keeps.
        let Some(value) = (unsafe { value.cast::<Holder>().as_ref() }) else {
            return Err(no_handle("value"));
        };
        if value.tensor.uses(storage) {
            return Err(Error::Value {
                op: "cache_put",
                argument: "value",
                expected: "a tensor with memory of its own".into(),
                got: "one over the memory of the tensor that caches it".into(),
            });
        }
        tensor.keep_derived(Derived { key, version, value: value.tensor.clone() }, elements);
        Ok(())
    })
}
