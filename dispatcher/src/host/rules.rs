//! The services of shape rules: a plugin's op states the outputs of a call.

use super::boundary::{not_its_own, read_dtype, read_sizes, serve};
use crate::base::dims::{self, Dims};
use crate::base::error::{Error, Result};
use crate::call::CallContext;
use crate::op::{OutSpec, Plan, Strides};
use keyway_sdk::abi::codes::memory_format;
use keyway_sdk::abi::op::{RawOutput, RawPlan};
use std::ffi::c_void;

#[cold]
fn bad_rule(service: &'static str, argument: &'static str, expected: String, got: String) -> Error {
    Error::Value { op: service, argument, expected, got }
}

/// Reads a structure that a rule passes.
///
/// # Safety
/// `pointer` must be null or valid for the number of bytes in its first field; the plugin upholds this.
unsafe fn read_sized<T: Copy>(service: &'static str, pointer: *const T) -> Result<T> {
    if pointer.is_null() || !pointer.is_aligned() {
        let expected = "the address of a structure".to_string();
        return Err(bad_rule(service, "struct", expected, format!("{pointer:p}")));
    }
    // SAFETY: not null, aligned, and every structure of the contract begins with its size.
    let size = unsafe { pointer.cast::<u32>().read() } as usize;
    if size < size_of::<T>() {
        return Err(bad_rule(
            service,
            "struct_size",
            format!("at least {}", size_of::<T>()),
            size.to_string(),
        ));
    }
    // SAFETY: the structure is large enough, per its first field.
    Ok(unsafe { pointer.read() })
}

/// See `HostApi::rule_output`.
pub(super) unsafe extern "C" fn rule_output(
    context: *mut c_void,
    index: u32,
    output: *const RawOutput,
) -> i32 {
    serve(|| {
        // SAFETY: the plugin passes the context of the current call, which is null in a kernel, and a structure whose lists
        // have `ndim` entries.
        let (context, output) =
            unsafe { (context.cast::<CallContext>().as_mut(), read_sized("rule_output", output)?) };
        let Some(context) = context else { return Err(not_its_own("rule_output")) };
        if index as usize != context.stated.len() {
            let expected = format!("{}: outputs are stated in order", context.stated.len());
            return Err(bad_rule("rule_output", "index", expected, index.to_string()));
        }
        if output.ndim > 0 && output.sizes.is_null() {
            let expected = format!("{} sizes", output.ndim);
            return Err(bad_rule("rule_output", "sizes", expected, "a null pointer".to_string()));
        }
        // SAFETY: as above.
        let sizes = unsafe { read_sizes("sizes", output.ndim, output.sizes)? };
        // SAFETY: as above.
        let strides = unsafe { stated_strides(&output, &sizes, context.n_args)? };
        context.stated.push(OutSpec { sizes, dtype: read_dtype(output.dtype)?, strides });
        Ok(())
    })
}

/// The strides of an output that the rule of an op of `n_args` arguments states.
///
/// # Safety
/// `strides` must be null or point to `ndim` integers; the plugin upholds this.
unsafe fn stated_strides(output: &RawOutput, sizes: &Dims, n_args: usize) -> Result<Strides> {
    let wrong = |argument, expected: &str, got: String| {
        Err(bad_rule("rule_output", argument, expected.to_string(), got))
    };
    Ok(match output.format {
        memory_format::CONTIGUOUS => Strides::Contiguous,
        memory_format::PRESERVE => Strides::Preserve,
        memory_format::LIKE if output.of as usize >= n_args => {
            let expected = format!("an argument index below {n_args}");
            return wrong("of", &expected, output.of.to_string());
        }
        memory_format::LIKE => Strides::Like(output.of as usize),
        memory_format::IMAGES => Strides::Images(output.of),
        memory_format::CHANNELS_LAST if (3..=5).contains(&sizes.len()) => {
            Strides::exact(dims::channels_last_strides(sizes))
        }
        memory_format::CHANNELS_LAST => {
            return wrong("ndim", "3 to 5, for the format channels_last", sizes.len().to_string());
        }
        memory_format::STRIDES if output.strides.is_null() && output.ndim > 0 => {
            return wrong("strides", "given, for the format of strides", "a null pointer".to_string());
        }
        memory_format::STRIDES => {
            // SAFETY: not null, and `ndim` integers per this function's contract.
            let strides = unsafe { read_sizes("strides", output.ndim, output.strides)? };
            if !dims::is_dense(sizes, &strides) {
                return wrong(
                    "strides",
                    "an offset of its own for each element and no gaps",
                    format!("{strides:?} for {sizes:?}"),
                );
            }
            Strides::exact(strides)
        }
        other => return wrong("format", "a code of `memory_format`", other.to_string()),
    })
}

/// See `HostApi::rule_plan`.
pub(super) unsafe extern "C" fn rule_plan(context: *mut c_void, plan: *const RawPlan) -> i32 {
    serve(|| {
        // SAFETY: the plugin passes the context of the current call, which is null in a kernel, and a structure of the
        // size in its first field.
        let (context, plan) =
            unsafe { (context.cast::<CallContext>().as_mut(), read_sized("rule_plan", plan)?) };
        let Some(context) = context else { return Err(not_its_own("rule_plan")) };
        let compute = read_dtype(plan.compute)?;
        context.plan = Some(Plan {
            cast: plan.cast,
            cast_index: plan.cast_index,
            broadcast: plan.broadcast,
            contiguous: plan.contiguous,
            alias: plan.alias != 0,
            ..Plan::one(compute, Dims::new(), compute, Strides::Contiguous)
        });
        Ok(())
    })
}
