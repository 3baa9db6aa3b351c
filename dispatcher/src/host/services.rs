//! The services that plugins call.

use super::boundary::{
    Owned, give, no_handle, not_its_own, null_argument, read_arg, read_dtype, read_sizes, serve, take,
    values_of,
};
use super::cache::{cache_get, cache_put};
use super::composite::{tensor_attr, tensor_composite, tensor_composite_of};
use super::rules::{rule_output, rule_plan};
use crate::base::dims::{self};
use crate::base::error::{Error, Result};
use crate::base::intern::{DEVICES, DTYPES, LAYOUTS};
use crate::base::key::Device;
use crate::base::message::{set_message, shown};
use crate::base::progress::{self, Nested};
use crate::base::scratch_count;
use crate::base::settings;
use crate::call::{CallContext, Holder, tensor_of};
use crate::device::DeviceEntry;
use crate::memory::{allocate_scratch, free_scratch};
use crate::op::{Args, Out, Outputs};
use crate::tensor::TensorImpl;
use keyway_sdk::abi::codes::{self, memory_format, name_kind};
use keyway_sdk::abi::host::{HostApi, ParallelBody, TensorHandle};
use keyway_sdk::abi::tensor::{RawArg, RawTensor};
use keyway_sdk::abi::{ABI_MAX, RawStr};
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::ptr::NonNull;

static TABLE: HostApi = HostApi {
    struct_size: size_of::<HostApi>() as u32,
    abi_version: ABI_MAX,
    log,
    set_error,
    parallel_for,
    num_threads,
    intern,
    allocate,
    free,
    tensor_new,
    tensor_composite,
    tensor_raw,
    tensor_release,
    set_output,
    call_op,
    rule_output,
    tensor_retain,
    rule_plan,
    cache_get,
    cache_put,
    name,
    setting,
    tensor_composite_of,
    tensor_attr,
};

/// The table of services that is passed to every plugin.
pub fn table() -> &'static HostApi {
    super::fork::watch();
    &TABLE
}

unsafe extern "C" fn log(level: u32, message: RawStr) {
    // SAFETY: the plugin keeps the bytes alive until this returns.
    let text = unsafe { message.read() };
    let _ = catch_unwind(|| crate::base::log::write(level, &shown(&text)));
}

unsafe extern "C" fn set_error(message: RawStr) {
    // SAFETY: the plugin keeps the bytes alive until this returns.
    let text = unsafe { message.read() };
    set_message(&shown(&text));
}

/// The plugin's context pointer, which the contract allows several threads to use.
struct Shared(*mut c_void);
// SAFETY: by the contract of `parallel_for`, `body` may be called from several threads with the context.
unsafe impl Sync for Shared {}

impl Shared {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

unsafe extern "C" fn parallel_for(
    n: u64,
    grain: u64,
    body: Option<ParallelBody>,
    context: *mut c_void,
) -> i32 {
    let shared = Shared(context);
    serve(|| {
        let body = body.ok_or_else(|| null_argument("parallel_for", "body", "a function"))?;
        crate::base::parallel::parallel_for(n as usize, grain as usize, &|range| {
            // SAFETY: the plugin passes a body that may be called with its context for any range within n.
            unsafe { body(shared.get(), range.start as u64, range.end as u64) }
        });
        Ok(())
    })
}

extern "C" fn num_threads() -> u32 {
    crate::base::parallel::num_threads() as u32
}

unsafe extern "C" fn setting(which: u32) -> u32 {
    match which {
        codes::setting::FLOAT32_MATMUL_PRECISION => settings::float32_matmul_precision() as u32,
        _ => 0,
    }
}

unsafe extern "C" fn intern(kind: u32, name: RawStr) -> u16 {
    // SAFETY: the plugin keeps the bytes alive until this returns.
    let name = unsafe { name.read() };
    let list = match kind {
        name_kind::DEVICE => &DEVICES,
        name_kind::LAYOUT => &LAYOUTS,
        name_kind::DTYPE => &DTYPES,
        _ => return u16::MAX,
    };
    list.intern(&name).unwrap_or(u16::MAX)
}

unsafe extern "C" fn name(kind: u32, number: u16, out: *mut RawStr) -> i32 {
    serve(|| {
        let list = match kind {
            name_kind::DEVICE => &DEVICES,
            name_kind::LAYOUT => &LAYOUTS,
            name_kind::DTYPE => &DTYPES,
            _ => return Err(no_name("kind", "one of `name_kind`", kind)),
        };
        let Some(name) = list.known(number) else {
            return Err(no_name("number", "one that `intern` gave", u32::from(number)));
        };
        // SAFETY: the plugin passes a pointer valid for writing one `RawStr`.
        unsafe { *out = RawStr::new(name) };
        Ok(())
    })
}

#[cold]
fn no_name(argument: &'static str, expected: &str, got: u32) -> Error {
    Error::Value { op: "name", argument, expected: expected.to_string(), got: got.to_string() }
}

unsafe extern "C" fn allocate(
    kind: u16,
    index: u16,
    bytes: u64,
    out: *mut *mut c_void,
    owner: *mut *const c_void,
) -> i32 {
    serve(|| {
        if out.is_null() || owner.is_null() {
            let argument = if out.is_null() { "out" } else { "owner" };
            return Err(null_argument("allocate", argument, "an address for a pointer"));
        }
        let (pointer, entry) = allocate_scratch(Device { kind, index }, bytes as usize)?;
        scratch_count::add(bytes);
        // SAFETY: not null, and the plugin passes pointers valid for writing one pointer each.
        unsafe {
            *out = pointer.as_ptr().cast();
            *owner = entry.map_or(std::ptr::null(), |entry| std::ptr::from_ref(entry).cast());
        }
        Ok(())
    })
}

unsafe extern "C" fn free(owner: *const c_void, kind: u16, index: u16, pointer: *mut c_void, bytes: u64) {
    let Some(pointer) = NonNull::new(pointer.cast::<u8>()) else { return };
    let _ = serve(|| {
        // SAFETY: the plugin passes the owner returned by `allocate`, which is null or an entry that lives as long as
        // the process, and frees the memory allocated for this device and size once.
        unsafe {
            let owner = owner.cast::<DeviceEntry>().as_ref();
            free_scratch(owner, Device { kind, index }, pointer, bytes as usize);
        }
        Ok(())
    });
}

unsafe extern "C" fn tensor_new(
    dtype: u16,
    device: u16,
    index: u16,
    ndim: u32,
    sizes: *const i64,
    format: u32,
    strides: *const i64,
    out: *mut TensorHandle,
) -> i32 {
    serve(|| {
        // SAFETY: the plugin passes `ndim` sizes.
        let sizes = unsafe { read_sizes("sizes", ndim, sizes)? };
        let device = Device { kind: device, index };
        let wrong = |argument, expected: &str, got: String| {
            Err(Error::Value { op: "tensor_new", argument, expected: expected.to_string(), got })
        };
        let strides = match format {
            memory_format::CONTIGUOUS => None,
            memory_format::CHANNELS_LAST if (3..=5).contains(&sizes.len()) => {
                Some(dims::channels_last_strides(&sizes))
            }
            memory_format::CHANNELS_LAST => {
                return wrong("sizes", "3 to 5 of them for channels_last", format!("{sizes:?}"));
            }
            memory_format::STRIDES if ndim > 0 && strides.is_null() => {
                return wrong("strides", "one for each size", "null".to_string());
            }
            // SAFETY: the plugin passes `ndim` strides.
            memory_format::STRIDES => Some(unsafe { read_sizes("strides", ndim, strides)? }),
            other => return wrong("format", "the number of a memory format", other.to_string()),
        };
        let tensor = match strides {
            None => TensorImpl::empty(&sizes, read_dtype(dtype)?, device)?,
            Some(strides) if dims::may_self_overlap(&sizes, &strides) => {
                return wrong("strides", "an offset of its own for each element", format!("{strides:?}"));
            }
            Some(strides) => TensorImpl::empty_strided(sizes, strides, read_dtype(dtype)?, device)?,
        };
        // SAFETY: the plugin passes a pointer valid for writing one handle.
        unsafe { *out = give(tensor) };
        Ok(())
    })
}

unsafe extern "C" fn tensor_raw(tensor: TensorHandle) -> *const RawTensor {
    // SAFETY: the plugin passes a handle that it owns.
    unsafe { (*tensor.cast::<Holder>()).raw() }
}

unsafe extern "C" fn tensor_retain(tensor: *const RawTensor) -> TensorHandle {
    if tensor.is_null() {
        return std::ptr::null();
    }
    // SAFETY: the plugin passes a raw tensor of the current call, or of a handle that it owns.
    unsafe { if (*tensor).handle.is_null() { std::ptr::null() } else { give(tensor_of((*tensor).handle)) } }
}

unsafe extern "C" fn tensor_release(tensor: TensorHandle) {
    if !tensor.is_null() {
        // SAFETY: the plugin releases a handle that it owns, once.
        drop(unsafe { take(tensor) });
    }
}

unsafe extern "C" fn set_output(context: *mut c_void, index: u32, tensor: TensorHandle) -> i32 {
    serve(|| {
        if tensor.is_null() {
            return Err(no_handle("tensor"));
        }
        // SAFETY: the plugin passes ownership of the handle, and the context of the current call, which is null where
        // the host allocates the outputs.
        let (holder, context) = unsafe { (take(tensor), context.cast::<CallContext>().as_mut()) };
        let Some(context) = context else { return Err(not_its_own("set_output")) };
        let index = index as usize;
        if index > 64 {
            return Err(Error::Value {
                op: "set_output",
                argument: "index",
                expected: "the index of an output".to_string(),
                got: index.to_string(),
            });
        }
        if context.made.len() <= index {
            context.made.resize(index + 1, None);
        }
        context.made[index] = Some(holder.tensor.clone());
        Ok(())
    })
}

unsafe extern "C" fn call_op(
    name: RawStr,
    n_args: u32,
    args: *const RawArg,
    capacity: u32,
    outputs: *mut TensorHandle,
    n_outputs: *mut u32,
) -> i32 {
    serve(|| {
        // SAFETY: the plugin keeps the bytes alive until this returns.
        let name = unsafe { name.read() };
        let op = crate::registry::find_op(&name)
            .ok_or_else(|| Error::UnknownOp { name: name.clone().into_owned() })?;
        let owned = (0..n_args as usize)
            // SAFETY: the plugin passes `n_args` arguments.
            .map(|i| unsafe { read_arg(*args.add(i)) })
            .collect::<Result<Vec<_>>>()?;
        let made = call_owned(op, &owned)?;
        // SAFETY: the plugin passes pointers valid for writing `capacity` handles and one number.
        unsafe { *n_outputs = made.len() as u32 };
        for (i, tensor) in made.into_iter().enumerate().take(capacity as usize) {
            // SAFETY: as above.
            unsafe { *outputs.add(i) = give(tensor) };
        }
        Ok(())
    })
}

/// The maximum nesting depth of calls from plugins. No op needs a tenth of it, and it fits a small stack.
const DEEPEST: u32 = 64;

fn call_owned(op: &'static crate::op::OpEntry, owned: &[Owned]) -> Result<Outputs> {
    if progress::depth() >= DEEPEST {
        return Err(Error::Value {
            op: op.name,
            argument: "name",
            expected: format!(
                "an op whose kernel does not lead back to it; calls within calls end {DEEPEST} deep"
            ),
            got: format!("`{}` once more", op.name),
        });
    }
    let _nested = Nested::enter();
    let owned: Vec<&Owned> = owned.iter().collect();
    values_of(&owned, |values| {
        let args = Args { op, values: &Args::with_defaults(op, values) };
        args.check()?;
        crate::call::call(args, Out::New)
    })
}
