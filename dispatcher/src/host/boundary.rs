//! What services share: statuses of errors, arguments of plugins, handles.

use crate::base::dims::{self, Dims};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::message::{self, set_message};
use crate::call::{Holder, tensor_of};
use crate::op::Arg;
use crate::tensor::TensorRef;
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::{status, tag};
use keyway_sdk::abi::host::TensorHandle;
use keyway_sdk::abi::tensor::{RawArg, RawTensor};
use std::panic::{AssertUnwindSafe, catch_unwind};

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

pub(super) fn null_argument(service: &'static str, argument: &'static str, expected: &str) -> Error {
    Error::Value { op: service, argument, expected: expected.to_string(), got: "null".to_string() }
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

#[cold]
pub(super) fn no_handle(argument: &'static str) -> Error {
    let expected = "a handle that the plugin owns".to_string();
    Error::Value { op: "host service", argument, expected, got: "null".to_string() }
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
