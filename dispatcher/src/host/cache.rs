//! The services that keep derived data beside the memory that it is derived from.

use super::services::{give, no_handle, serve};
use crate::base::error::{Error, Result};
use crate::call::{Holder, tensor_of};
use crate::memory::Storage;
use crate::tensor::{Derived, TensorRef};
use keyway_sdk::abi::host::TensorHandle;
use keyway_sdk::abi::tensor::RawTensor;

/// The tensor behind a raw one.
///
/// # Safety
/// `raw` must be null, or a raw tensor of the call under way or of a handle that the plugin owns; the plugin upholds this.
unsafe fn read(raw: *const RawTensor) -> Result<TensorRef> {
    // SAFETY: per this function's contract.
    match unsafe { raw.as_ref() }.map(|raw| raw.handle) {
        // SAFETY: the handle is that of a tensor which lives during this call.
        Some(handle) if !handle.is_null() => Ok(unsafe { tensor_of(handle) }),
        _ => Err(no_handle("tensor")),
    }
}

fn storage(tensor: &TensorRef) -> Result<&Storage> {
    tensor.storage().ok_or_else(|| Error::Value {
        op: "host service",
        argument: "tensor",
        expected: "a strided tensor; what belongs to a composite one is kept beside one of its components"
            .into(),
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
        // SAFETY: the plugin gives a tensor of the call under way, or of a handle that it owns.
        let tensor = unsafe { read(tensor)? };
        // Read before the data is: a change in between makes `cache_put` keep nothing.
        let now = storage(&tensor)?.version();
        let found = tensor.derived(key);
        // SAFETY: the plugin gives places for one number and one handle.
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
        let tensor = unsafe { read(tensor)? };
        let storage = storage(&tensor)?;
        // SAFETY: the plugin gives null or a handle that it owns and keeps.
        let Some(value) = (unsafe { value.cast::<Holder>().as_ref() }) else {
            return Err(no_handle("value"));
        };
        if value.tensor.uses(storage) {
            return Err(Error::Value {
                op: "cache_put",
                argument: "value",
                expected: "a tensor with memory of its own".into(),
                got: "one over the memory that it is kept beside".into(),
            });
        }
        tensor.keep_derived(Derived { key, version, value: value.tensor.clone() });
        Ok(())
    })
}
