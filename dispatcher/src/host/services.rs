//! The services that plugins call.

use super::cache::{cache_get, cache_put};
use super::composite::{tensor_attr, tensor_composite, tensor_composite_of};
use super::rules::{rule_output, rule_plan};
use crate::base::dims::{self, Dims};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::intern::{DEVICES, DTYPES, LAYOUTS};
use crate::base::key::Device;
use crate::base::message::{self, set_message, shown};
use crate::base::progress::{self, Nested};
use crate::base::scratch_count;
use crate::base::settings;
use crate::call::{CallContext, Holder, tensor_of};
use crate::device::DeviceEntry;
use crate::memory::{allocate_scratch, free_scratch};
use crate::op::{Arg, Args, Out, Outputs};
use crate::tensor::{TensorImpl, TensorRef};
use keyway_sdk::abi::codes::{self, memory_format, name_kind, status, tag};
use keyway_sdk::abi::host::{HostApi, ParallelBody, TensorHandle};
use keyway_sdk::abi::tensor::{RawArg, RawTensor};
use keyway_sdk::abi::{ABI_MAX, RawStr};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
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

/// Runs a service; an error becomes its status and message, and a panic does not cross the boundary.
pub(super) fn serve(work: impl FnOnce() -> Result<()>) -> i32 {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => status::OK,
        Ok(Err(error)) => {
            message::set_error(&error);
            match error {
                Error::OutOfMemory { .. } => status::OUT_OF_MEMORY,
                // UNSUPPORTED of a nested call does not mean that this call is unsupported, which may have written already.
                Error::MissingKernel(_) | Error::Backend { status: status::UNSUPPORTED, .. } => {
                    status::FAILED
                }
                Error::Backend { status, .. } => status,
                // A kernel that returns this status lets the caller's error be reported as such.
                _ => status::INVALID_ARGUMENT,
            }
        }
        Err(_) => {
            set_message("a host service panicked");
            status::FAILED
        }
    }
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

fn null_argument(service: &'static str, argument: &'static str, expected: &str) -> Error {
    Error::Value { op: service, argument, expected: expected.to_string(), got: "null".to_string() }
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

/// Reads sizes passed by a plugin.
///
/// # Safety
/// `sizes` must point to `ndim` integers; the plugin upholds this.
pub(super) unsafe fn read_sizes(argument: &'static str, ndim: u32, sizes: *const i64) -> Result<Dims> {
    if ndim == 0 {
        return Ok(Dims::new());
    }
    // Checked before the list is read, which may be shorter.
    if ndim as usize > dims::MAX_NDIM {
        let expected = format!("at most {}", dims::MAX_NDIM);
        return Err(Error::Value { op: "host service", argument: "ndim", expected, got: ndim.to_string() });
    }
    // SAFETY: per this function's contract.
    let sizes = unsafe { std::slice::from_raw_parts(sizes, ndim as usize) };
    sizes
        .iter()
        .map(|&s| {
            usize::try_from(s).map_err(|_| Error::Value {
                op: "host service",
                argument,
                expected: "numbers of 0 or more".to_string(),
                got: format!("{sizes:?}"),
            })
        })
        .collect()
}

pub(super) fn read_dtype(code: u16) -> Result<DType> {
    DType::from_code(code).ok_or_else(|| Error::Value {
        op: "host service",
        argument: "dtype",
        expected: "the number of a dtype".to_string(),
        got: code.to_string(),
    })
}

pub(super) fn give(tensor: TensorRef) -> TensorHandle {
    Box::into_raw(Holder::new(tensor)).cast_const().cast()
}

/// Takes back ownership of a handle.
///
/// # Safety
/// `handle` must be from [`give`] and not have been taken before; the plugin upholds this.
pub(super) unsafe fn take(handle: TensorHandle) -> Box<Holder> {
    // SAFETY: per this function's contract.
    unsafe { Box::from_raw(handle.cast_mut().cast::<Holder>()) }
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

#[cold]
pub(super) fn no_handle(argument: &'static str) -> Error {
    let expected = "a handle that the plugin owns".to_string();
    Error::Value { op: "host service", argument, expected, got: "null".to_string() }
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

#[cold]
pub(super) fn not_its_own(service: &'static str) -> Error {
    Error::Value {
        op: service,
        argument: "context",
        expected: "that of a kernel or rule that makes its outputs itself".to_string(),
        got: "that of a kernel whose outputs the host allocates".to_string(),
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

/// An argument read from a plugin; lists and tensors are owned here while the call runs.
pub(super) enum Owned {
    Plain(Arg<'static>),
    Tensor(TensorRef),
    Tensors(Vec<TensorRef>),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Str(String),
}

impl Owned {
    /// A description of the value for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Owned::Plain(arg) => arg.describe(),
            Owned::Tensor(t) => Arg::Tensor(t).describe(),
            Owned::Tensors(list) => format!("a list of {} tensors", list.len()),
            Owned::Ints(v) => Arg::Ints(v).describe(),
            Owned::Floats(v) => Arg::Floats(v).describe(),
            Owned::Str(v) => Arg::Str(v).describe(),
        }
    }
}

/// Reads one argument of `call_op`.
///
/// # Safety
/// The address in `arg` must be valid for its tag; the plugin upholds this.
pub(super) unsafe fn read_arg(arg: RawArg) -> Result<Owned> {
    let len = arg.len as usize;
    let tensor = |raw: *const RawTensor| -> Result<TensorRef> {
        // SAFETY: the plugin passes raw tensors of the current call, or of handles that it owns.
        let handle = if raw.is_null() { std::ptr::null() } else { unsafe { (*raw).handle } };
        if handle.is_null() {
            return Err(Error::Value {
                op: "call_op",
                argument: "tensor",
                expected: "a tensor that carries a handle".to_string(),
                got: "a temporary".to_string(),
            });
        }
        // SAFETY: as above.
        Ok(unsafe { tensor_of(handle) })
    };
    // SAFETY: each address is valid for its tag, per this function's contract.
    Ok(unsafe {
        match arg.tag {
            tag::TENSOR => Owned::Tensor(tensor(arg.value as *const RawTensor)?),
            tag::TENSORS => {
                let list = arg.value as *const *const RawTensor;
                Owned::Tensors((0..len).map(|i| tensor(*list.add(i))).collect::<Result<_>>()?)
            }
            tag::INT => Owned::Plain(Arg::Int(arg.value as i64)),
            tag::FLOAT => Owned::Plain(Arg::Float(f64::from_bits(arg.value))),
            tag::BOOL => Owned::Plain(Arg::Bool(arg.value != 0)),
            tag::DTYPE => Owned::Plain(Arg::DType(read_dtype(arg.value as u16)?)),
            tag::INTS if len > 0 => {
                Owned::Ints(std::slice::from_raw_parts(arg.value as *const i64, len).to_vec())
            }
            tag::INTS => Owned::Ints(Vec::new()),
            tag::FLOATS if len > 0 => {
                Owned::Floats(std::slice::from_raw_parts(arg.value as *const f64, len).to_vec())
            }
            tag::FLOATS => Owned::Floats(Vec::new()),
            tag::STR => Owned::Str(RawStr { ptr: arg.value as *const u8, len }.read().into_owned()),
            tag::NONE => Owned::Plain(Arg::None),
            other => {
                return Err(Error::Value {
                    op: "call_op",
                    argument: "tag",
                    expected: "a code of `tag`".to_string(),
                    got: other.to_string(),
                });
            }
        }
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

/// Lends owned arguments to `run`.
pub(super) fn values_of<R>(owned: &[&Owned], run: impl FnOnce(&[Arg<'_>]) -> R) -> R {
    let lists: Vec<Vec<&TensorRef>> = owned
        .iter()
        .map(|o| if let Owned::Tensors(list) = o { list.iter().collect() } else { Vec::new() })
        .collect();
    let values: Vec<Arg<'_>> = owned
        .iter()
        .zip(&lists)
        .map(|(o, list)| match o {
            Owned::Plain(arg) => *arg,
            Owned::Tensor(t) => Arg::Tensor(t),
            Owned::Tensors(_) => Arg::Tensors(list),
            Owned::Ints(v) => Arg::Ints(v),
            Owned::Floats(v) => Arg::Floats(v),
            Owned::Str(v) => Arg::Str(v),
        })
        .collect();
    run(&values)
}
