//! The path of one call: key set, dispatch keys from the highest down, the op's rule, then the candidates of the backend key.
//!
//! Each step is in a file that calls only those after it: this one (keys, handlers, the op's rule), `fast_path` for
//! contiguous element-wise calls, `candidates` (the loop over kernels and other candidates), `kernel` (conversions of the
//! arguments, outputs, delivery), `invoke` and `marshal` (the raw call of a plugin). Only a new call returns to this file:
//! a conversion (`convert`), a part of a `decomposition`, a call on another device (`fallback`).

mod arguments;
mod candidates;
mod choice;
pub mod convert;
mod decomposition;
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
mod outputs;
mod plan;
mod strides;
mod target;

pub use candidates::without_successors;
pub use choice::{BackendGuard, choose_backend};
pub use decomposition::{decompose, decompose_or_leave};
pub use foreign::reference;
pub(crate) use holder::{Holder, tensor_of};
pub(crate) use marshal::{CallContext, Marshalling, with_call};
pub(crate) use outputs::deliver;
pub use outputs::unalias;

use self::ledger::Served;
use crate::base::error::{Error, Result};
use crate::base::key::{DispatchKey, KeySet, local_keys};
use crate::base::progress::Nested;
use crate::op::{Arg, Args, Call, Out, Outputs, Plan, Rule, ViewSpec};
use crate::registry::table::{Generation, OpRows, current};
use crate::tensor::TensorImpl;
use candidates::{resolved, serve};

/// Calls an op.
///
/// # Errors
/// The caller's errors as defined by the op's rule, `MissingKernel`, and errors of the backend.
// Inlined, so that the arguments are written once, at their final address.
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

/// Continues a call below the key that was handled last; for handlers.
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

// Inlined into both callers.
#[inline(always)]
fn backend(generation: &'static Generation, rows: &OpRows, call: &Call<'_>) -> Result<Outputs> {
    let args = &call.args;
    match rows.op.spec.rule {
        Rule::Elementwise(inputs, typing) => {
            let typing = typing(args)?;
            fast_path::run(generation, rows, call, inputs, typing)
        }
        // The plan is used where the rule wrote it: it is too large to copy.
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
                        Err(error) => return Err(args.error_of_part(error)),
                    }
                    if matches!(call.out, Out::New) { Ok(views) } else { deliver(call, views) }
                }
                Err(error) => Err(error),
            },
            _ => resolved(generation, rows, call, &Plan::like_first(args)?, true),
        },
        Rule::Views(rule) => match args.get(0) {
            Arg::Tensor(base) if base.is_strided() => {
                let make =
                    |s: ViewSpec| TensorImpl::view(base, s.offset, &s.sizes, s.strides.as_deref(), true);
                let views = rule(args)?.into_iter().map(make).collect::<Result<Outputs>>()?;
                ledger::set_served(Served::View);
                if matches!(call.out, Out::New) { Ok(views) } else { deliver(call, views) }
            }
            _ => resolved(generation, rows, call, &Plan::like_first(args)?, true),
        },
        Rule::Reinterpret(rule) => match args.get(0) {
            Arg::Tensor(base) if base.is_strided() => {
                let (dtype, spec) = rule(args)?;
                let ViewSpec { offset, sizes, strides } = spec;
                let view = TensorImpl::reinterpreted(base, dtype, offset, &sizes, strides.as_deref())
                    .map_err(|error| args.error_of_part(error))?;
                ledger::set_served(Served::View);
                let views = Outputs::from_iter([view]);
                if matches!(call.out, Out::New) { Ok(views) } else { deliver(call, views) }
            }
            _ => resolved(generation, rows, call, &Plan::like_first(args)?, true),
        },
        Rule::Allocates(rule) => match rule(args) {
            Ok(ref plan) => resolved(generation, rows, call, plan, true),
            Err(error) => Err(error),
        },
        Rule::Host(run) => {
            let _nested = Nested::enter();
            let result =
                run(args).and_then(|made| deliver(call, made)).map_err(|error| args.error_of_part(error));
            ledger::set_served(Served::Host);
            result
        }
        Rule::Foreign(rule) => resolved(generation, rows, call, &plan::stated(rule, args)?, false),
    }
}
