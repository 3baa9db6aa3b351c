//! The path of one call: key set, dispatch keys from the highest down, then the backend.

mod choice;
pub mod convert;
pub mod explain;
pub mod fallback;
mod fast_path;
pub(crate) mod foreign;
mod holder;
mod host_cast;
mod integers;
mod invoke;
mod kernel;
pub mod layouts;
pub mod ledger;
mod marshal;
mod others;
mod outputs;
mod plan;
mod strides;

pub use choice::{BackendGuard, choose_backend};
pub use foreign::reference;
pub(crate) use holder::{Holder, tensor_of};
pub(crate) use marshal::{CallContext, Marshalling, with_call};
pub use others::{decompose, decompose_or_leave, without_successors};
pub(crate) use outputs::deliver;
pub use outputs::unalias;

use self::ledger::Served;
use crate::base::error::{Error, Result};
use crate::base::key::{Device, DispatchKey, KeySet, Layout, local_keys};
use crate::base::progress::Nested;
use crate::op::{Arg, Args, Call, Out, Outputs, Plan, Rule, Typing, ViewSpec};
use crate::registry::more_special;
use crate::registry::table::{Generation, OpRows, current};
use crate::tensor::{Format, Images, TensorImpl, TensorRef};
use kernel::with_kernel;

/// Calls an op.
///
/// # Errors
/// The caller's mistakes as defined by the op's rule, `MissingKernel`, and errors of the backend.
// Inlined, so that the call is written once, where it stays.
#[inline(always)]
pub fn call(args: Args<'_>, out: Out<'_>) -> Result<Outputs> {
    enter(&Call { args, out })
}

fn enter(call: &Call<'_>) -> Result<Outputs> {
    let (included, excluded) = local_keys();
    let generation = current();
    let mut keys = included.union(KeySet(generation.always));
    for arg in call.args.values {
        match arg {
            Arg::Tensor(t) => keys = keys.union(t.keys()),
            Arg::Tensors(list) => keys = list.iter().fold(keys, |keys, t| keys.union(t.keys())),
            _ => {}
        }
    }
    if let Out::Given(list) = call.out {
        keys = list.iter().fold(keys, |keys, t| keys.union(t.keys()));
    }
    route_in(generation, call, keys.minus(excluded))
}

/// Goes on with a call below the key that acted last; for handlers.
///
/// # Errors
/// As [`call`].
#[inline]
pub fn redispatch(call: &Call<'_>, keys: KeySet) -> Result<Outputs> {
    route(call, keys.minus(local_keys().1))
}

pub(crate) fn route(call: &Call<'_>, keys: KeySet) -> Result<Outputs> {
    route_in(current(), call, keys)
}

#[inline(always)]
fn route_in(generation: &'static Generation, call: &Call<'_>, keys: KeySet) -> Result<Outputs> {
    let Some(rows) = generation.op(call.args.op) else {
        return Err(Error::UnknownOp { name: call.args.name().to_string() });
    };
    match keys.intersect(KeySet(rows.functional)).highest() {
        None => backend(generation, rows, call),
        Some(key) => functional(generation, call, keys, key),
    }
}

fn functional(generation: &Generation, call: &Call<'_>, keys: KeySet, key: DispatchKey) -> Result<Outputs> {
    match generation.functional[key.number() as usize] {
        Some(entry) => (entry.handler)(call, keys.below(key)),
        None => route(call, keys.below(key)),
    }
}

/// The dispatch key of a call.
#[derive(Clone, Copy)]
struct Place {
    device: Device,
    layout: Layout,
    /// Whether every tensor is passed unchanged, is strided and on the device, and no scalar replaces a tensor: the
    /// arguments need no marshalling.
    plain: bool,
}

/// The dispatch target of a call.
#[inline(always)]
fn place(args: &Args<'_>) -> Result<Place> {
    let mut found = Place { device: Device::CPU, layout: Layout::STRIDED, plain: true };
    // A 0-d tensor in host memory combines with any device; it decides only if no other argument does.
    let (mut decided, mut anywhere, mut meant) = (false, false, false);
    for (i, arg) in args.values.iter().enumerate() {
        let tensors = match arg {
            Arg::Tensor(t) => std::slice::from_ref(t),
            Arg::Tensors(list) => {
                found.plain = false;
                list
            }
            Arg::Int(_) | Arg::Float(_) | Arg::Bool(_) => {
                found.plain &= args.op.number_slots & (1 << i) == 0;
                continue;
            }
            _ => continue,
        };
        for t in tensors {
            match t.format() {
                Format::EitherLast => meant = true,
                _ => found.layout = more_special(found.layout, t.dispatch_layout()),
            }
            found.plain &= t.is_strided();
            if t.ndim() == 0 && t.device() == Device::CPU {
                anywhere = true;
            } else if !decided {
                (decided, found.device) = (true, t.device());
            } else if t.device() != found.device {
                return Err(elsewhere(args, i, found.device, t));
            }
        }
    }
    found.plain &= !anywhere || found.device == Device::CPU;
    if meant && found.layout == Layout::STRIDED {
        found.layout = meant_layout(args);
    }
    Ok(found)
}

/// The layout of a call with an argument that is both contiguous and channels_last, and whose strides are those of
/// channels_last.
#[cold]
fn meant_layout(args: &Args<'_>) -> Layout {
    let mut images = Images::default();
    for arg in args.values {
        match arg {
            Arg::Tensor(t) => images.add(t),
            Arg::Tensors(list) => list.iter().for_each(|t| images.add(t)),
            _ => {}
        }
    }
    // A slice of a channels_last tensor has gaps, which kernels of that layout do not expect.
    if images.are_meant_alone() { Layout::CHANNELS_LAST } else { Layout::STRIDED }
}

#[cold]
fn elsewhere(args: &Args<'_>, i: usize, expected: Device, t: &TensorRef) -> Error {
    Error::DeviceMismatch {
        op: args.name(),
        argument: args.op.schema.param_name(i),
        expected,
        got: t.device(),
    }
}

// Inlined into both callers.
#[inline(always)]
fn backend(generation: &'static Generation, rows: &OpRows, call: &Call<'_>) -> Result<Outputs> {
    let args = &call.args;
    match rows.op.spec.rule {
        Rule::Elementwise(inputs, typing) => {
            let typing = typing(args)?;
            match fast_path::find(generation, rows, call, inputs, typing) {
                Some(found) => fast_path::run(found, call, typing, || {
                    elementwise(generation, rows, call, inputs, typing)
                }),
                None => elementwise(generation, rows, call, inputs, typing),
            }
        }
        // The plan is used where the rule wrote it: it is too large to move about.
        Rule::Structured(rule) => match rule(args) {
            Ok(ref plan) => serve(generation, rows, call, plan, false),
            Err(error) => Err(error),
        },
        Rule::View(rule) => match args.get(0) {
            Arg::Tensor(base) if base.is_strided() => match rule(args) {
                Ok(ref spec) => {
                    ledger::set_served(Served::View);
                    let mut views = Outputs::new();
                    match TensorImpl::view(base, spec.offset, &spec.sizes, spec.strides.as_deref(), false) {
                        Ok(view) => views.push(view),
                        Err(error) => return Err(others::as_of(args, error)),
                    }
                    if matches!(call.out, Out::New) { Ok(views) } else { deliver(call, views) }
                }
                Err(error) => Err(error),
            },
            _ => resolved(generation, rows, call, &plan::like_first(args)?, true),
        },
        Rule::Views(rule) => match args.get(0) {
            Arg::Tensor(base) if base.is_strided() => {
                let make =
                    |s: ViewSpec| TensorImpl::view(base, s.offset, &s.sizes, s.strides.as_deref(), true);
                let views = rule(args)?.into_iter().map(make).collect::<Result<Outputs>>()?;
                ledger::set_served(Served::View);
                if matches!(call.out, Out::New) { Ok(views) } else { deliver(call, views) }
            }
            _ => resolved(generation, rows, call, &plan::like_first(args)?, true),
        },
        Rule::Allocates(rule) => match rule(args) {
            Ok(ref plan) => resolved(generation, rows, call, plan, true),
            Err(error) => Err(error),
        },
        Rule::Host(run) => {
            let _nested = Nested::enter();
            let result =
                run(args).and_then(|made| deliver(call, made)).map_err(|error| others::as_of(args, error));
            ledger::set_served(Served::Host);
            result
        }
        Rule::Foreign(rule) => resolved(generation, rows, call, &foreign::plan(rule, args)?, false),
    }
}

/// An element-wise call that the fast path does not take, or whose kernel has refused.
#[inline(never)]
fn elementwise(
    generation: &'static Generation,
    rows: &OpRows,
    call: &Call<'_>,
    inputs: u32,
    typing: Typing,
) -> Result<Outputs> {
    resolved(generation, rows, call, &Plan::elementwise(&call.args, inputs, typing)?, false)
}

/// [`serve`] out of line, for calls too rare to be worth its code size.
#[inline(never)]
fn resolved(
    generation: &'static Generation,
    rows: &OpRows,
    call: &Call<'_>,
    plan: &Plan,
    allocates: bool,
) -> Result<Outputs> {
    serve(generation, rows, call, plan, allocates)
}

/// Dispatches to the first kernel, and to the next candidates if it refuses or there is none.
#[inline(always)]
fn serve(
    generation: &'static Generation,
    rows: &OpRows,
    call: &Call<'_>,
    plan: &Plan,
    allocates: bool,
) -> Result<Outputs> {
    let place = place(&call.args)?;
    let cell = generation.cell(rows, place.device, place.layout, plan.compute);
    let asked = others::Asked { plan, allocates, place };
    match cell.kernel {
        Some(kernel) => {
            let next = others::Next { generation, rest: cell.rest, refused: &[] };
            with_kernel(kernel, call, asked, next)
        }
        None => others::without_kernel(generation, call, plan, place, &[]),
    }
}
