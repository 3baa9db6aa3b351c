//! Interposers of plugins, as handlers of dispatch keys.

use super::boundary::{Owned, read_arg, take, values_of};
use crate::base::error::{Error, Result};
use crate::base::key::{Device, DispatchKey, KeyGuard, KeySet, local_keys};
use crate::base::message::{failure, set_error};
use crate::base::plugin::PluginEntry;
use crate::base::progress;
use crate::call::convert::copy_into;
use crate::call::{Holder, Marshalling, deliver, redispatch, unalias, with_call};
use crate::op::schema::{Kind, Param};
use crate::op::{Arg, Args, Call, Out, OutSpec, Outputs, Plan, Rule, Strides};
use crate::registry::{Handler, InterposerSpec, KeyHandler, first_of};
use crate::tensor::TensorRef;
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::{interposed_flag, interposer_flag, status};
use keyway_sdk::abi::host::TensorHandle;
use keyway_sdk::abi::interposer::{RawInterposed, RawInterposer};
use keyway_sdk::abi::tensor::{RawArg, RawTensor};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The registry's data of an interposer.
pub(super) fn spec(raw: &'static RawInterposer) -> InterposerSpec {
    // SAFETY: the loader has checked that the plugin passes `n_ops` static strings.
    let ops = (0..raw.n_ops as usize).map(|i| unsafe { (*raw.ops.add(i)).read() }.into_owned()).collect();
    let default_on = raw.flags & interposer_flag::DEFAULT_ON != 0;
    InterposerSpec { ops, order: raw.order, default_on, raw, handler }
}

fn handler(raw: &'static RawInterposer, plugin: &'static PluginEntry, key: DispatchKey) -> Box<Handler> {
    Box::new(move |call, below| {
        let left = below.union(KeySet::of(key));
        match first_of(call.args.op, left) {
            // Keys identify interposers; their order is declared.
            Some(KeyHandler { key: first, handler, .. }) if *first != key => {
                handler(call, left.minus(KeySet::of(*first)))
            }
            _ => run(raw, plugin, key, call, left.minus(KeySet::of(key))),
        }
    })
}

/// A call that an interposer is in the middle of.
struct Interposed<'a> {
    name: &'a str,
    plugin: &'static PluginEntry,
    key: DispatchKey,
    call: &'a Call<'a>,
    /// The keys that are handled after this one.
    left: KeySet,
    /// The thread's keys as they were before the interposer switched itself off.
    outside: (KeySet, KeySet),
    /// The arguments that the interposer replaced.
    arguments: SmallVec<[(usize, Owned); 1]>,
    /// The result of the call, once it has run.
    result: Option<Result<Outputs>>,
    /// The outputs that the interposer set.
    given: SmallVec<[Option<TensorRef>; 2]>,
    /// Outputs passed to the interposer; a holder must not move.
    #[allow(clippy::vec_box)]
    shown: Vec<Box<Holder>>,
    /// The first misuse.
    misuse: Option<Error>,
}

impl Interposed<'_> {
    fn misused(&self, message: String) -> Error {
        Error::Backend {
            op: self.call.args.name(),
            plugin: self.plugin.name,
            status: status::INVALID_ARGUMENT,
            message: format!("interposer `{}`: {message}", self.name),
        }
    }

    /// Runs one of the functions that the interposer calls. An invalid use is stored and fails the call at its end.
    fn serve(&mut self, work: impl FnOnce(&mut Self) -> Result<(), String>) -> i32 {
        let message = match catch_unwind(AssertUnwindSafe(|| work(self))) {
            Ok(Ok(())) => return status::OK,
            Ok(Err(message)) => message,
            Err(_) => "the host panicked while it served it".to_string(),
        };
        let error = self.misused(message);
        set_error(&error);
        self.misuse.get_or_insert(error);
        status::INVALID_ARGUMENT
    }

    fn set_argument(&mut self, index: usize, arg: Owned) -> Result<(), String> {
        let args = &self.call.args;
        let what = || format!("argument {index} (`{}`)", args.op.schema.param_name(index));
        if self.result.is_some() {
            return Err(format!("{} was set after `next`; set arguments before it", what()));
        }
        if index >= args.values.len() {
            let count = args.values.len();
            return Err(format!(
                "argument {index} was set, but the call has {count}: expected an index below that"
            ));
        }
        if index == 0 && matches!(self.call.out, Out::InPlace) {
            return Err(format!("{} was set, but the call writes to it: replace output 0 instead", what()));
        }
        let param = args.op.schema.params.get(index);
        let number = args.op.number_slots & 1u32.checked_shl(index as u32).unwrap_or(0) != 0;
        if !param.is_some_and(|param| takes(param, number, &arg)) {
            let expected = param.map_or("?", |param| param.kind.name());
            return Err(format!("{} must be of the kind `{expected}`, but {} came", what(), arg.describe()));
        }
        self.arguments.retain(|(i, _)| *i != index);
        self.arguments.push((index, arg));
        Ok(())
    }

    /// Runs the remaining handlers and the call; returns the status and the number of outputs.
    fn next(&mut self) -> Result<(i32, usize), String> {
        if self.result.is_some() {
            return Err("it ran the call twice; `next` may be called once".to_string());
        }
        let _outside = KeyGuard::set(self.outside);
        let result = if self.arguments.is_empty() {
            redispatch(self.call, self.left)
        } else {
            self.next_with_arguments()
        };
        let answer = match &result {
            Ok(made) => (status::OK, made.len()),
            Err(error) => {
                set_error(error);
                (status::FAILED, 0)
            }
        };
        self.result = Some(result);
        Ok(answer)
    }

    fn next_with_arguments(&self) -> Result<Outputs> {
        let Call { args, out } = *self.call;
        let owned: Vec<&Owned> = self.arguments.iter().map(|(_, owned)| owned).collect();
        values_of(&owned, |replaced| {
            let mut values: SmallVec<[Arg<'_>; 8]> = args.values.iter().copied().collect();
            let mut keys = self.left;
            for ((index, _), value) in self.arguments.iter().zip(replaced) {
                values[*index] = *value;
                // Later handlers apply to the new tensor according to its own keys.
                let below = |t: &TensorRef| t.keys().below(DispatchKey::INTERPOSER_FIRST);
                match value {
                    Arg::Tensor(t) => keys = keys.union(below(t)),
                    Arg::Tensors(list) => keys = list.iter().fold(keys, |keys, t| keys.union(below(t))),
                    _ => {}
                }
            }
            let args = Args { op: args.op, values: &values };
            args.check()?;
            redispatch(&Call { args, out }, keys)
        })
    }

    /// Output `index` in its current state.
    fn output(&self, index: usize) -> Option<&TensorRef> {
        match self.given.get(index) {
            Some(Some(given)) => Some(given),
            _ => self.result.as_ref()?.as_ref().ok()?.get(index),
        }
    }

    fn set_output(&mut self, index: usize, tensor: TensorRef) -> Result<(), String> {
        let count = match &self.result {
            Some(Ok(made)) => Some(made.len()),
            _ => self.call.args.op.schema.outputs,
        };
        if index >= count.unwrap_or(MOST_OUTPUTS) {
            let count = count.unwrap_or(MOST_OUTPUTS);
            return Err(format!(
                "output {index} was set, but there are {count}: expected an index below that"
            ));
        }
        if let Some(Ok(made)) = &self.result {
            let was = &made[index];
            same_form(index, was.sizes(), was.dtype(), was.device(), &tensor)?;
        }
        if self.given.len() <= index {
            self.given.resize(index + 1, None);
        }
        self.given[index] = Some(tensor);
        Ok(())
    }

    /// The result of the call after the interposer has returned.
    fn finish(self, code: i32, device: Device) -> Result<Outputs> {
        if let Some(misuse) = self.misuse {
            return Err(misuse);
        }
        let Interposed { call, given, result, plugin, .. } = self;
        match (code, result) {
            (status::OK, Some(Ok(made))) => replaced(call, made, given),
            (status::OK, result) => {
                let count = call.args.op.schema.outputs.unwrap_or(given.len());
                let all: Option<Outputs> = given.iter().cloned().collect();
                match (all.filter(|all| all.len() == count && count > 0), result) {
                    (Some(all), _) => answered(call, all).map_err(|error| match error {
                        Answer::Wrong(message) => Error::Backend {
                            op: call.args.name(),
                            plugin: plugin.name,
                            status: status::INVALID_ARGUMENT,
                            message: format!("interposer `{}`: {message}", self.name),
                        },
                        Answer::Error(error) => error,
                    }),
                    (None, Some(Err(error))) => Err(error),
                    (None, _) => Err(Error::Backend {
                        op: call.args.name(),
                        plugin: plugin.name,
                        status: status::FAILED,
                        message: format!(
                            "interposer `{}` answered without running the call, and set {} of its {count} outputs: \
                             call `next`, or set them all",
                            self.name,
                            given.iter().flatten().count()
                        ),
                    }),
                }
            }
            (_, Some(Err(error))) => Err(error),
            (code, _) => Err(failure(call.args.name(), plugin.name, device, code)),
        }
    }
}

/// The maximum number of outputs of an op whose number depends on its arguments.
const MOST_OUTPUTS: usize = 1 << 10;

/// Whether an argument is valid for a parameter.
fn takes(param: &Param, number: bool, arg: &Owned) -> bool {
    match (param.kind, arg) {
        (_, Owned::Plain(Arg::None)) => param.optional,
        (Kind::Tensor | Kind::OptionalTensor, Owned::Tensor(_)) | (Kind::Tensors, Owned::Tensors(_)) => true,
        (Kind::Tensor, Owned::Plain(Arg::Int(_) | Arg::Float(_) | Arg::Bool(_))) => number,
        (Kind::Scalar, Owned::Plain(Arg::Int(_) | Arg::Float(_) | Arg::Bool(_))) => true,
        (Kind::Int, Owned::Plain(Arg::Int(_))) | (Kind::Bool, Owned::Plain(Arg::Bool(_))) => true,
        (Kind::Float, Owned::Plain(Arg::Float(_) | Arg::Int(_))) => true,
        (Kind::Ints, Owned::Ints(_)) | (Kind::Floats, Owned::Floats(_)) | (Kind::Str, Owned::Str(_)) => true,
        (Kind::DType, Owned::Plain(Arg::DType(_))) => true,
        _ => false,
    }
}

/// Checks that a tensor may replace output `index`; the error names the difference.
fn same_form(
    index: usize,
    sizes: &[usize],
    dtype: crate::base::dtype::DType,
    device: Device,
    tensor: &TensorRef,
) -> Result<(), String> {
    let wrong = |what: &str, expected: String, got: String| {
        Err(format!(
            "output {index} was replaced by a tensor of another {what}: expected {expected}, got {got}"
        ))
    };
    if tensor.sizes() != sizes {
        return wrong("shape", format!("{sizes:?}"), format!("{:?}", tensor.sizes()));
    }
    if tensor.dtype() != dtype {
        return wrong("dtype", dtype.to_string(), tensor.dtype().to_string());
    }
    if tensor.device() != device {
        return wrong("device", device.to_string(), tensor.device().to_string());
    }
    Ok(())
}

/// The outputs of a call that ran, with the outputs that the interposer set replacing the call's own.
fn replaced(call: &Call<'_>, mut made: Outputs, given: SmallVec<[Option<TensorRef>; 2]>) -> Result<Outputs> {
    let new = matches!(call.out, Out::New);
    for (slot, given) in made.iter_mut().zip(given) {
        match given {
            Some(given) if new => *slot = given,
            Some(given) => copy_into(slot, &given)?,
            None => {}
        }
    }
    if new {
        unalias(&call.args, &mut made);
    }
    Ok(made)
}

enum Answer {
    Wrong(String),
    Error(Error),
}

/// Checks the outputs of a call that the interposer computed itself.
fn answered(call: &Call<'_>, mut all: Outputs) -> Result<Outputs, Answer> {
    let device = first_device(&call.args);
    for (index, (tensor, spec)) in all.iter().zip(stated(&call.args).map_err(Answer::Error)?).enumerate() {
        same_form(index, &spec.sizes, spec.dtype, device, tensor).map_err(Answer::Wrong)?;
    }
    unalias(&call.args, &mut all);
    deliver(call, all).map_err(Answer::Error)
}

/// The output metadata computed by the op's rule; empty if it depends on more than the arguments.
fn stated(args: &Args<'_>) -> Result<SmallVec<[OutSpec; 1]>> {
    Ok(match args.op.spec.rule {
        Rule::Elementwise(inputs, typing) => Plan::elementwise(args, inputs, typing(args)?)?.outputs,
        Rule::Structured(rule) => rule(args)?.outputs,
        Rule::View(rule) => {
            let (view, base) = (rule(args)?, args.tensor(0)?);
            SmallVec::from_buf([OutSpec {
                sizes: view.sizes,
                dtype: base.dtype(),
                strides: Strides::Contiguous,
            }])
        }
        _ => SmallVec::new(),
    })
}

/// The device of the first tensor that is not a scalar in host memory.
fn first_device(args: &Args<'_>) -> Device {
    let mut devices = args.values.iter().filter_map(|arg| match arg {
        Arg::Tensor(t) => Some((t.ndim(), t.device())),
        Arg::Tensors(list) => list.first().map(|t| (t.ndim(), t.device())),
        _ => None,
    });
    let fixed = |(ndim, device): &(usize, Device)| *ndim > 0 || *device != Device::CPU;
    devices.find(fixed).map_or(Device::CPU, |(_, device)| device)
}

/// The call that a context belongs to.
///
/// # Safety
/// `context` must be the context of the current call, passed through unchanged by the plugin; one function at a time.
unsafe fn interposed<'a>(context: *mut c_void) -> &'a mut Interposed<'a> {
    // SAFETY: per this function's contract; the structure lives in `run` until the interposer has returned.
    unsafe { &mut *context.cast::<Interposed<'a>>() }
}

unsafe extern "C" fn set_argument(context: *mut c_void, index: u32, arg: *const RawArg) -> i32 {
    // SAFETY: the plugin passes the context that it was given.
    unsafe { interposed(context) }.serve(|call| {
        if arg.is_null() {
            return Err(format!("argument {index} was set to a null pointer"));
        }
        // SAFETY: the plugin passes an argument that is valid for its tag.
        let arg = unsafe { read_arg(*arg) }.map_err(|error| format!("argument {index}: {error}"))?;
        call.set_argument(index as usize, arg)
    })
}

unsafe extern "C" fn next(context: *mut c_void, n_outputs: *mut u32) -> i32 {
    let mut code = status::OK;
    // SAFETY: the plugin passes the context that it was given.
    let served = unsafe { interposed(context) }.serve(|call| {
        let (answer, count) = call.next()?;
        code = answer;
        if !n_outputs.is_null() {
            // SAFETY: the plugin passes a pointer valid for writing one number.
            unsafe { *n_outputs = count as u32 };
        }
        Ok(())
    });
    if served == status::OK { code } else { served }
}

unsafe extern "C" fn output(context: *mut c_void, index: u32) -> *const RawTensor {
    // SAFETY: the plugin passes the context that it was given.
    let call = unsafe { interposed(context) };
    let shown = catch_unwind(AssertUnwindSafe(|| {
        let holder = Holder::new(call.output(index as usize)?.clone());
        let raw = holder.raw();
        call.shown.push(holder);
        Some(raw)
    }));
    shown.ok().flatten().unwrap_or(std::ptr::null())
}

unsafe extern "C" fn set_output(context: *mut c_void, index: u32, tensor: TensorHandle) -> i32 {
    // SAFETY: the plugin passes the context that it was given.
    unsafe { interposed(context) }.serve(|call| {
        if tensor.is_null() {
            return Err(format!("output {index} was set to a null handle"));
        }
        // SAFETY: the plugin passes ownership of the handle.
        let holder = unsafe { take(tensor) };
        call.set_output(index as usize, holder.tensor.clone())
    })
}

fn flags(call: &Call<'_>) -> u32 {
    let form = match call.out {
        Out::New => 0,
        Out::InPlace => interposed_flag::IN_PLACE,
        Out::Given(_) => interposed_flag::OUT,
    };
    form | if progress::in_backward() { interposed_flag::BACKWARD } else { 0 }
}

/// Runs a call through an interposer.
fn run(
    interposer: &'static RawInterposer,
    plugin: &'static PluginEntry,
    key: DispatchKey,
    call: &Call<'_>,
    left: KeySet,
) -> Result<Outputs> {
    let device = first_device(&call.args);
    // SAFETY: the name is a static string of the plugin.
    let name = unsafe { interposer.name.read() };
    let mut state = Interposed {
        name: &name,
        plugin,
        key,
        call,
        left,
        outside: local_keys(),
        arguments: SmallVec::new(),
        result: None,
        given: SmallVec::new(),
        shown: Vec::new(),
        misuse: None,
    };
    // Ops that the interposer itself calls do not call it again.
    let _off = KeyGuard::exclude(KeySet::of(state.key));
    let context: *mut c_void = (&raw mut state).cast();
    let code = with_call(call.args.values, Marshalling::AS_IS, &[], 0, device, None, |raw| {
        let interposed = RawInterposed {
            struct_size: size_of::<RawInterposed>() as u32,
            flags: flags(call),
            depth: progress::depth(),
            n_outputs: call.args.op.schema.outputs.map_or(u32::MAX, |count| count as u32),
            op: RawStr::new(call.args.name()),
            call: raw,
            context,
            set_argument,
            next,
            output,
            set_output,
        };
        // SAFETY: the structure and all that it points to live until the plugin returns.
        unsafe { (interposer.run)(&interposed) }
    });
    state.finish(code.unwrap_or_else(|status| status), device)
}
