//! The path of one call: key set, functionality keys from the highest down, then the backend.

use crate::abi::kernel;
use crate::conversions::conversions;
use crate::dims::{self, Dims};
use crate::error::{Error, Result};
use crate::key::{Device, DispatchKey, KeySet, Layout, local_keys};
use crate::ledger::{self, Served};
use crate::memory::Shared;
use crate::op::{Arg, Args, Out, OutSpec, Outputs, Plan, Rule, Strides, ViewSpec};
use crate::registry::{Call, KernelEntry, more_special};
use crate::table::{Cell, Generation, OpRows, current};
use crate::tensor::{Format, TensorImpl, TensorRef};
use keyway_sdk::abi::codes::kernel_flag;
use smallvec::SmallVec;

/// Calls an op.
///
/// # Errors
/// The caller's mistakes as the op's rule states them, `MissingKernel`, and what the backend reports.
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
    route(call, keys.minus(excluded))
}

/// Goes on with a call below the key that acted last; for handlers.
///
/// # Errors
/// As [`call`].
#[inline]
pub fn redispatch(call: &Call<'_>, keys: KeySet) -> Result<Outputs> {
    route(call, keys.minus(local_keys().1))
}

#[inline]
pub(crate) fn route(call: &Call<'_>, keys: KeySet) -> Result<Outputs> {
    let generation = current();
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

/// The device and layout that a call is routed by.
#[inline(always)]
fn place(args: &Args<'_>) -> Result<(Device, Layout)> {
    let mut device: Option<Device> = None;
    let mut layout = Layout::STRIDED;
    let mut visit = |i: usize, t: &TensorRef| -> Result<()> {
        layout = more_special(layout, t.dispatch_layout());
        // A 0-d tensor in host memory goes with any device; it decides only where nothing else does.
        if t.ndim() == 0 && t.device() == Device::CPU {
            return Ok(());
        }
        if *device.get_or_insert(t.device()) == t.device() {
            return Ok(());
        }
        Err(elsewhere(args, i, device, t))
    };
    for (i, arg) in args.values.iter().enumerate() {
        match arg {
            Arg::Tensor(t) => visit(i, t)?,
            Arg::Tensors(list) => {
                for t in list.iter() {
                    visit(i, t)?;
                }
            }
            _ => {}
        }
    }
    Ok((device.unwrap_or(Device::CPU), layout))
}

#[cold]
fn elsewhere(args: &Args<'_>, i: usize, expected: Option<Device>, t: &TensorRef) -> Error {
    Error::DeviceMismatch {
        op: args.name(),
        argument: args.op.schema.param_name(i),
        expected: expected.unwrap_or(Device::CPU),
        got: t.device(),
    }
}

fn backend(generation: &'static Generation, rows: &OpRows, call: &Call<'_>) -> Result<Outputs> {
    let args = &call.args;
    match rows.op.spec.rule {
        // The plan is used where the rule wrote it: it is too large to move about.
        Rule::Dense(rule) => match rule(args) {
            Ok(ref plan) => resolved(generation, rows, call, plan, false),
            Err(error) => Err(error),
        },
        Rule::View(rule) => match args.get(0) {
            Arg::Tensor(base) if base.is_strided() => match rule(args) {
                Ok(ref spec) => {
                    ledger::set_served(Served::Host);
                    let view = TensorImpl::view(base, spec.offset, &spec.sizes, &spec.strides, false)?;
                    let mut views = Outputs::new();
                    views.push(view);
                    if matches!(call.out, Out::New) { Ok(views) } else { deliver(call, views) }
                }
                Err(error) => Err(error),
            },
            _ => resolved(generation, rows, call, &as_argument(args)?, true),
        },
        Rule::Views(rule) => match args.get(0) {
            Arg::Tensor(base) if base.is_strided() => {
                let make = |s: ViewSpec| TensorImpl::view(base, s.offset, &s.sizes, &s.strides, true);
                let views = rule(args)?.into_iter().map(make).collect::<Result<Outputs>>()?;
                ledger::set_served(Served::Host);
                Ok(views)
            }
            _ => resolved(generation, rows, call, &as_argument(args)?, true),
        },
        Rule::Allocates(rule) => match rule(args) {
            Ok(ref plan) => resolved(generation, rows, call, plan, true),
            Err(error) => Err(error),
        },
        Rule::Composed => decompose(call),
        Rule::Foreign(rule) => {
            let (device, _) = place(args)?;
            let mut plan = as_argument(args)?;
            if let Some(rule) = rule {
                plan.outputs = kernel::rule(rule, args, device)?
                    .into_iter()
                    .map(|(dtype, sizes)| OutSpec { sizes, dtype, strides: Strides::Contiguous })
                    .collect();
            }
            resolved(generation, rows, call, &plan, false)
        }
    }
}

/// The plan of an op whose output is like its first tensor.
fn as_argument(args: &Args<'_>) -> Result<Plan> {
    let first = args.values.iter().find_map(|arg| match arg {
        Arg::Tensor(t) => Some(*t),
        Arg::Tensors(list) => list.first().copied(),
        _ => None,
    });
    let Some(first) = first else {
        return Err(args.tensor(0).err().unwrap_or(Error::UnknownOp { name: args.name().into() }));
    };
    Ok(Plan::one(first.dtype(), Dims::from_slice(first.sizes()), first.dtype(), Strides::Contiguous))
}

/// Goes to whoever serves the key.
fn resolved(
    generation: &'static Generation,
    rows: &OpRows,
    call: &Call<'_>,
    plan: &Plan,
    allocates: bool,
) -> Result<Outputs> {
    let (device, layout) = place(&call.args)?;
    match generation.cell(rows, device, layout, plan.compute) {
        Cell::Kernel(kernel) => {
            let result = with_kernel(kernel, call, plan, allocates, device);
            ledger::set_served(Served::Plugin(kernel.plugin));
            result
        }
        Cell::Decompose => decompose(call),
        Cell::Fallback { to, warn } => crate::fallback::run(call, device, to, warn),
        Cell::Missing => Err(crate::explain::missing(&call.args, device, layout, plan.compute)),
    }
}

fn decompose(call: &Call<'_>) -> Result<Outputs> {
    let Some(decomposition) = call.args.op.spec.decomposition else {
        return Err(Error::UnknownOp { name: call.args.name().to_string() });
    };
    let result = decomposition(&call.args).and_then(|made| deliver(call, made));
    ledger::set_served(Served::Composed);
    result
}

fn with_kernel(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    plan: &Plan,
    allocates: bool,
    device: Device,
) -> Result<Outputs> {
    if needs_conversion(&call.args, plan) {
        return with_converted(kernel, call, plan, allocates, device);
    }
    run(kernel, call, &call.args, plan, allocates, device)
}

/// Runs a kernel on arguments of which some are not yet as it wants them.
#[inline(never)]
fn with_converted(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    plan: &Plan,
    allocates: bool,
    device: Device,
) -> Result<Outputs> {
    let mut owned: SmallVec<[(usize, Vec<TensorRef>); 2]> = SmallVec::new();
    prepare(&call.args, plan, &mut owned)?;
    let lists: Vec<Vec<&TensorRef>> = owned.iter().map(|(_, list)| list.iter().collect()).collect();
    let mut values: SmallVec<[Arg<'_>; 8]> = SmallVec::from_slice(call.args.values);
    for ((i, list), references) in owned.iter().zip(&lists) {
        values[*i] = match values[*i] {
            Arg::Tensors(_) => Arg::Tensors(references),
            _ => Arg::Tensor(&list[0]),
        };
    }
    run(kernel, call, &Args { op: call.args.op, values: &values }, plan, allocates, device)
}

/// Whether some argument is not yet as the kernel wants it.
#[inline]
fn needs_conversion(args: &Args<'_>, plan: &Plan) -> bool {
    let differs = |i: usize, t: &TensorRef| {
        let bit = 1 << i;
        (plan.cast & bit != 0 && t.dtype() != plan.compute)
            || (plan.cast_index & bit != 0 && t.dtype() != crate::dtype::DType::I64)
            || (plan.contiguous & bit != 0 && t.is_strided() && !t.is_contiguous())
    };
    args.values.iter().enumerate().any(|(i, arg)| match arg {
        Arg::Tensor(t) => differs(i, t),
        Arg::Tensors(list) => list.iter().any(|t| differs(i, t)),
        _ => false,
    })
}

/// Converts the arguments that the kernel wants in another dtype or without gaps.
fn prepare(args: &Args<'_>, plan: &Plan, owned: &mut SmallVec<[(usize, Vec<TensorRef>); 2]>) -> Result<()> {
    for (i, arg) in args.values.iter().enumerate() {
        let bit = 1 << i;
        let dtype = if plan.cast & bit != 0 {
            Some(plan.compute)
        } else if plan.cast_index & bit != 0 {
            Some(crate::dtype::DType::I64)
        } else {
            None
        };
        let dense = plan.contiguous & bit != 0;
        // A composite tensor is cast by an op of its layout, and has no gaps.
        let gaps = |t: &TensorRef| dense && t.is_strided() && !t.is_contiguous();
        let wants = |t: &TensorRef| dtype.is_some_and(|d| d != t.dtype()) || gaps(t);
        let convert = |t: &TensorRef| -> Result<TensorRef> {
            let mut t = t.clone();
            if let Some(dtype) = dtype.filter(|d| *d != t.dtype()) {
                t = (conversions()?.cast)(&t, dtype)?;
            }
            if gaps(&t) {
                t = (conversions()?.contiguous)(&t)?;
            }
            Ok(t)
        };
        match arg {
            Arg::Tensor(t) if wants(t) => owned.push((i, vec![convert(t)?])),
            Arg::Tensors(list) if list.iter().any(|t| wants(t)) => {
                owned.push((i, list.iter().map(|t| convert(t)).collect::<Result<_>>()?));
            }
            _ => {}
        }
    }
    Ok(())
}

#[inline]
fn run(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    args: &Args<'_>,
    plan: &Plan,
    allocates: bool,
    device: Device,
) -> Result<Outputs> {
    if allocates || kernel.flags & kernel_flag::ALLOCATES != 0 {
        let count = args.op.schema.outputs.unwrap_or(plan.outputs.len());
        // A tensor that cannot be written is refused before the work is done.
        for target in targets(call)? {
            check_target(args, &target, target.sizes(), target.dtype())?;
        }
        let mut made = kernel::make(kernel.run, kernel.plugin.name, args, plan, count, device)?;
        part_from_arguments(args, &mut made);
        return deliver(call, made);
    }
    if matches!(call.out, Out::New) {
        let mut outputs = Outputs::new();
        for spec in &plan.outputs {
            outputs.push(match choose_strides(args, plan, spec) {
                None => TensorImpl::empty(&spec.sizes, spec.dtype, device)?,
                Some(strides) => TensorImpl::empty_strided(spec.sizes.clone(), strides, spec.dtype, device)?,
            });
        }
        kernel::fill(kernel, args, plan, &outputs, device)?;
        return Ok(outputs);
    }
    into_given(kernel, call, args, plan, device)
}

/// A result that is the very object of an argument gets an object of its own: it shares the memory, but not
/// the place in a graph.
pub fn part_from_arguments(args: &Args<'_>, made: &mut Outputs) {
    for tensor in made.iter_mut() {
        let same = args.values.iter().any(|arg| match arg {
            Arg::Tensor(t) => Shared::ptr_eq(t, tensor),
            Arg::Tensors(list) => list.iter().any(|t| Shared::ptr_eq(t, tensor)),
            _ => false,
        });
        if same {
            *tensor = tensor.shallow_copy();
        }
    }
}

/// Runs a kernel straight into the caller's tensors where that is right, else through new ones.
fn into_given(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    args: &Args<'_>,
    plan: &Plan,
    device: Device,
) -> Result<Outputs> {
    let targets = targets(call)?;
    let mut direct = targets.len() == plan.outputs.len();
    for (target, spec) in targets.iter().zip(&plan.outputs) {
        check_target(args, target, &spec.sizes, spec.dtype)?;
        direct &= target.dtype() == spec.dtype && target.device() == device;
        direct &= alias_allowed(args, plan, target)?;
    }
    if direct {
        kernel::fill(kernel, args, plan, &targets, device)?;
        targets.iter().for_each(|t| t.bump_version());
        return Ok(targets);
    }
    let fresh = Call { args: *args, out: Out::New };
    let made = run(kernel, &fresh, args, plan, false, device)?;
    deliver(call, made)
}

/// The tensors that a call writes to.
fn targets(call: &Call<'_>) -> Result<Outputs> {
    Ok(match call.out {
        Out::New => Outputs::new(),
        Out::Given(list) => list.iter().map(|t| (*t).clone()).collect(),
        Out::InPlace => Outputs::from_iter([call.args.tensor(0)?.clone()]),
    })
}

pub(crate) fn check_target(
    args: &Args<'_>,
    target: &TensorRef,
    sizes: &[usize],
    dtype: crate::dtype::DType,
) -> Result<()> {
    let op = args.name();
    if !target.is_strided() {
        let reason = "cannot be written in place; use the form that returns a new tensor";
        return Err(Error::Layout { op, layout: target.layout(), reason });
    }
    if target.sizes() != sizes {
        let got = Dims::from_slice(target.sizes());
        return Err(Error::Shape {
            op,
            argument: "out",
            expected: format!("of the result's shape {sizes:?}"),
            got,
        });
    }
    if dtype.category() > target.dtype().category() {
        let expected = format!("able to hold the result's {dtype}");
        return Err(Error::DType { op, argument: "out", expected, got: target.dtype() });
    }
    if dims::may_self_overlap(target.sizes(), target.strides()) {
        return Err(Error::Overlap { op, with: "itself" });
    }
    Ok(())
}

/// Whether a kernel may write straight into `target`: it shares no memory with an input, or is exactly an
/// input and the op allows that.
fn alias_allowed(args: &Args<'_>, plan: &Plan, target: &TensorRef) -> Result<bool> {
    let Some(storage) = target.storage() else { return Ok(false) };
    let mut allowed = true;
    let mut visit = |t: &TensorRef| {
        if t.storage().is_some_and(|s| s.same_as(storage)) && ranges_meet(t, target) {
            let exact = t.offset() == target.offset()
                && t.sizes() == target.sizes()
                && t.strides() == target.strides()
                && t.dtype() == target.dtype();
            allowed &= exact && plan.alias;
        }
    };
    for arg in args.values {
        match arg {
            Arg::Tensor(t) => visit(t),
            Arg::Tensors(list) => list.iter().for_each(|t| visit(t)),
            _ => {}
        }
    }
    Ok(allowed)
}

/// Whether the byte ranges of two tensors of one storage meet.
fn ranges_meet(a: &TensorRef, b: &TensorRef) -> bool {
    let range = |t: &TensorRef| {
        let reach: usize = t.sizes().iter().zip(t.strides()).map(|(&n, &s)| n.saturating_sub(1) * s).sum();
        let size = t.dtype().size();
        (t.offset() * size, (t.offset() + reach + 1) * size)
    };
    let ((a0, a1), (b0, b1)) = (range(a), range(b));
    a.numel() > 0 && b.numel() > 0 && a0 < b1 && b0 < a1
}

/// Hands results over, copying them where the caller gave tensors to write to.
fn deliver(call: &Call<'_>, made: Outputs) -> Result<Outputs> {
    if matches!(call.out, Out::New) {
        return Ok(made);
    }
    let targets = targets(call)?;
    for (target, result) in targets.iter().zip(&made) {
        check_target(&call.args, target, result.sizes(), result.dtype())?;
    }
    for (target, result) in targets.iter().zip(&made) {
        (conversions()?.copy_into)(target, result)?;
    }
    Ok(targets)
}

/// The strides of a new output, by the rules of the memory format; `None` is row-major.
#[inline]
fn choose_strides(args: &Args<'_>, plan: &Plan, spec: &OutSpec) -> Option<Dims> {
    match &spec.strides {
        Strides::Contiguous => None,
        Strides::Exact(strides) => Some(Dims::clone(strides)),
        Strides::Like(i) => match args.values.get(*i) {
            Some(Arg::Tensor(t)) if t.is_strided() && dims::same(t.sizes(), &spec.sizes) => strides_like(t),
            _ => None,
        },
        Strides::Preserve => preserved(args, plan, spec),
    }
}

/// The strides of `t` if it is dense; `None` for row-major ones.
fn strides_like(t: &TensorRef) -> Option<Dims> {
    match t.format() {
        Format::Contiguous => None,
        Format::ChannelsLast => Some(dims::channels_last_strides(t.sizes())),
        Format::Either => {
            Some(dims::channels_last_strides(t.sizes())).filter(|last| last.as_slice() == t.strides())
        }
        Format::Other => dims::is_dense(t.sizes(), t.strides()).then(|| Dims::from_slice(t.strides())),
    }
}

/// Whether every argument that counts is row-major and no channels_last: the usual case, told by the flags alone.
#[inline(always)]
fn all_row_major(args: &Args<'_>, plan: &Plan) -> bool {
    args.values.iter().enumerate().all(|(i, arg)| match arg {
        Arg::Tensor(t) => plan.broadcast & (1 << i) == 0 || t.format() == Format::Contiguous,
        _ => true,
    })
}

/// channels_last if any full-sized argument is; a common permutation if all agree on it; else row-major.
/// An argument that is in both formats at once decides only where no other does.
#[inline]
fn preserved(args: &Args<'_>, plan: &Plan, spec: &OutSpec) -> Option<Dims> {
    if all_row_major(args, plan) {
        return None;
    }
    let mut common: Option<&TensorRef> = None;
    let mut either: Option<&TensorRef> = None;
    let mut agree = true;
    for (i, arg) in args.values.iter().enumerate() {
        let Arg::Tensor(t) = arg else { continue };
        if plan.broadcast & (1 << i) == 0 || !t.is_strided() || !dims::same(t.sizes(), &spec.sizes) {
            continue;
        }
        match t.format() {
            Format::ChannelsLast => return Some(dims::channels_last_strides(&spec.sizes)),
            Format::Either => {
                either.get_or_insert(t);
            }
            Format::Contiguous | Format::Other => match common {
                None => common = Some(t),
                Some(first) => agree &= dims::same(first.strides(), t.strides()),
            },
        }
    }
    common.or(either).filter(|_| agree).and_then(strides_like)
}
