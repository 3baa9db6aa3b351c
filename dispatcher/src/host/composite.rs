//! The services that create composite tensors and read their attributes.

use super::boundary::{Owned, give, no_handle, read_arg, read_dtype, read_sizes, serve};
use crate::base::error::{Error, Result};
use crate::base::key::Layout;
use crate::call::layouts::check_components;
use crate::call::{Holder, tensor_of};
use crate::op::{Arg, LayoutValue};
use crate::tensor::{Attrs, TensorImpl, TensorRef};
use keyway_sdk::abi::host::TensorHandle;
use keyway_sdk::abi::tensor::{RawArg, RawTensor};

/// The parts of a composite tensor from a plugin, without its attributes.
struct Parts {
    layout: u16,
    dtype: u16,
    ndim: u32,
    sizes: *const i64,
    n_components: u32,
    components: *const TensorHandle,
}

impl Parts {
    /// # Safety
    /// `sizes` must point to `ndim` integers and `components` to `n_components` handles; the plugin upholds this.
    unsafe fn make(&self, op: &'static str, attrs: Attrs) -> Result<TensorRef> {
        // SAFETY: the plugin passes `ndim` sizes.
        let sizes = unsafe { read_sizes("sizes", self.ndim, self.sizes)? };
        let components = (0..self.n_components as usize)
            .map(|i| {
                // SAFETY: the plugin passes `n_components` handles.
                let handle = unsafe { *self.components.add(i) }.cast::<Holder>();
                // SAFETY: a handle is null or one that the plugin owns and keeps.
                unsafe { handle.as_ref() }
                    .map(|holder| holder.tensor.clone())
                    .ok_or_else(|| no_handle("components"))
            })
            .collect::<Result<Vec<_>>>()?;
        let layout = Layout(self.layout);
        let attrs = check_components(op, layout, &components, attrs)?;
        TensorImpl::composite(layout, read_dtype(self.dtype)?, sizes, components, attrs)
    }
}

pub(super) unsafe extern "C" fn tensor_composite(
    layout: u16,
    dtype: u16,
    ndim: u32,
    sizes: *const i64,
    n_components: u32,
    components: *const TensorHandle,
    n_attrs: u32,
    attrs: *const i64,
    out: *mut TensorHandle,
) -> i32 {
    serve(|| {
        let attrs = if n_attrs == 0 {
            Vec::new()
        } else {
            // SAFETY: the plugin passes `n_attrs` integers.
            unsafe { std::slice::from_raw_parts(attrs, n_attrs as usize) }.to_vec()
        };
        let parts = Parts { layout, dtype, ndim, sizes, n_components, components };
        // SAFETY: the plugin passes the declared number of sizes and components, and a valid pointer to one handle.
        unsafe { *out = give(parts.make("tensor_composite", attrs.into())?) };
        Ok(())
    })
}

pub(super) unsafe extern "C" fn tensor_composite_of(
    layout: u16,
    dtype: u16,
    ndim: u32,
    sizes: *const i64,
    n_components: u32,
    components: *const TensorHandle,
    n_attrs: u32,
    attrs: *const RawArg,
    out: *mut TensorHandle,
) -> i32 {
    const OP: &str = "tensor_composite_of";
    serve(|| {
        let value = |i: usize| {
            // SAFETY: the plugin passes `n_attrs` attributes, whose addresses are valid according to their tags.
            let owned = unsafe { read_arg(*attrs.add(i))? };
            Ok(match owned {
                Owned::Plain(Arg::Int(v)) => LayoutValue::Int(v),
                Owned::Plain(Arg::Float(v)) => LayoutValue::Float(v),
                Owned::Plain(Arg::Bool(v)) => LayoutValue::Bool(v),
                Owned::Ints(v) => LayoutValue::Ints(v),
                Owned::Floats(v) => LayoutValue::Floats(v),
                Owned::Str(v) => LayoutValue::Str(v),
                other => {
                    return Err(Error::Value {
                        op: OP,
                        argument: "attrs",
                        expected: "ints, floats, bools, texts and lists of ints or floats".to_string(),
                        got: other.describe(),
                    });
                }
            })
        };
        let attrs = (0..n_attrs as usize).map(value).collect::<Result<Vec<_>>>()?;
        let parts = Parts { layout, dtype, ndim, sizes, n_components, components };
        // SAFETY: the plugin passes the declared number of sizes and components, and a valid pointer to one handle.
        unsafe { *out = give(parts.make(OP, attrs.into())?) };
        Ok(())
    })
}

pub(super) unsafe extern "C" fn tensor_attr(tensor: *const RawTensor, index: u32, out: *mut RawArg) -> i32 {
    serve(|| {
        // SAFETY: the plugin passes a raw tensor of the current call, or of a handle that it owns.
        let handle = if tensor.is_null() { std::ptr::null() } else { unsafe { (*tensor).handle } };
        if handle.is_null() {
            return Err(no_handle("tensor"));
        }
        // SAFETY: as above: the handle is that of a tensor that is alive until the plugin lets go of it.
        let tensor = unsafe { tensor_of(handle) };
        let raw = tensor.raw_attr(index as usize).ok_or_else(|| Error::Value {
            op: "tensor_attr",
            argument: "index",
            expected: format!("below {}, the number of attributes of {tensor:?}", tensor.attrs().len()),
            got: index.to_string(),
        })?;
        // SAFETY: the plugin passes a valid pointer to one argument.
        unsafe { *out = raw };
        Ok(())
    })
}
