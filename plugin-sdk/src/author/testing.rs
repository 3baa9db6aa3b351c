//! Calls on plain vectors, for the unit tests of this crate and of `keyway-cpu-loops`.

// Each of the two crates uses a part of this file.
#![allow(dead_code)]

use keyway_sdk::abi::codes::{tag, tensor_flag};
use keyway_sdk::abi::tensor::{RawArg, RawCall, RawTensor};
use keyway_sdk::author::{Call, Element};

/// A tensor over memory that outlives it.
pub(crate) struct TestTensor {
    pub(crate) raw: RawTensor,
    _sizes: Vec<i64>,
    _strides: Vec<i64>,
}

pub(crate) fn row_major(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sizes.len()];
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d] * sizes[d].max(1);
    }
    strides
}

/// A tensor of `T` at `data`; the test guarantees that the memory lives and is large enough.
pub(crate) fn tensor<T: Element>(data: *mut T, sizes: &[i64], strides: &[i64]) -> TestTensor {
    let (sizes, strides) = (sizes.to_vec(), strides.to_vec());
    let numel = sizes.iter().product();
    let packed = row_major(&sizes);
    let contiguous =
        numel == 0 || sizes.iter().zip(&strides).zip(&packed).all(|((n, s), p)| *n == 1 || s == p);
    let raw = RawTensor {
        struct_size: size_of::<RawTensor>() as u32,
        ndim: sizes.len() as u32,
        dtype: T::dtype(),
        layout: 0,
        device: 0,
        device_index: 0,
        flags: if contiguous { tensor_flag::CONTIGUOUS } else { 0 },
        n_components: 0,
        data: data.cast(),
        sizes: sizes.as_ptr(),
        strides: strides.as_ptr(),
        numel,
        handle: std::ptr::null(),
        components: std::ptr::null(),
        attrs: std::ptr::null(),
        n_attrs: 0,
        reserved: 0,
    };
    TestTensor { raw, _sizes: sizes, _strides: strides }
}

pub(crate) fn arg(t: &TestTensor) -> RawArg {
    RawArg { tag: tag::TENSOR, len: 0, value: std::ptr::from_ref(&t.raw) as u64 }
}

pub(crate) fn raw_arg(tag: u32, len: usize, value: u64) -> RawArg {
    RawArg { tag, len: len as u32, value }
}

/// Runs `body` on a call with these arguments and outputs.
pub(crate) fn with_call<R>(args: &[RawArg], outputs: &[&TestTensor], body: impl FnOnce(&Call<'_>) -> R) -> R {
    let outputs: Vec<*const RawTensor> = outputs.iter().map(|o| std::ptr::from_ref(&o.raw)).collect();
    let raw = RawCall {
        struct_size: size_of::<RawCall>() as u32,
        n_args: args.len() as u32,
        args: args.as_ptr(),
        outputs: outputs.as_ptr(),
        n_outputs: outputs.len() as u32,
        reserved: 0,
        stream: std::ptr::null_mut(),
        context: std::ptr::null_mut(),
    };
    // SAFETY: the test keeps arguments, outputs and their memory alive for this call.
    let call = unsafe { Call::new(&raw) };
    body(&call)
}
