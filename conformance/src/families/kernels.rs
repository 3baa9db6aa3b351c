//! Calls each kernel that the target registers, for any op, device, layout and dtype, and checks its result: a kernel that
//! no call selects is not tested.

mod asked;
mod plugin_dtypes;

use super::{Context, Family, Scope, complex, factor, has_out, has_tested, orders, placements, plugin_ops};
use crate::array::{Array, Number};
use crate::call::Prepared;
use crate::case::Case;
use crate::compare::{self, Tolerance};
use crate::inputs;
use crate::memory::{Arrangement, Placed, read};
use crate::oracle::{self, Inputs};
use crate::outcome::{Failure, Steps, Stop};
use crate::recorder;
use asked::Asked;
use keyway::autograd::{BackwardOptions, grad};
use keyway::dispatcher::layouts;
use keyway::dispatcher::op::{OpEntry, Out};
use keyway::dispatcher::registry::{KernelEntry, LayoutTolerance};
use keyway::ops::by_name;
use keyway::ops::def::{OpDef, definition};
use keyway::ops::sample::{Role, Sample, SampleArg, TensorSample};
use keyway::{DType, Device, Layout, Tensor};
use std::collections::BTreeSet;

/// The definition of this family of cases.
pub const FAMILY: Family =
    Family { name: "kernels", about: "each registered kernel is called, and is right", cases, run };

/// The kernel's device and layout in the name of a case.
pub(super) fn key_of(kernel: &KernelEntry) -> String {
    format!("{}:{}", Device { kind: kernel.device, index: 0 }.name(), kernel.layout)
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let quick = [DType::F32, DType::BF16, DType::I64, DType::BOOL];
    let mut seen = BTreeSet::new();
    for kernel in &scope.target.kernels {
        let Some(dtype) = DType::from_code(kernel.dtype) else { continue };
        if complex::judges(kernel) {
            continue;
        }
        let key = key_of(kernel);
        let fast = |k: &&&KernelEntry| {
            (k.op, k.device, k.layout) == (kernel.op, kernel.device, kernel.layout)
                && DType::from_code(k.dtype).is_some_and(|d| quick.contains(&d))
        };
        let foreign = scope.foreign.iter().any(|op| op.entry.name == kernel.op);
        if scope.quick && !foreign && !quick.contains(&dtype) && scope.target.kernels.iter().any(|k| fast(&k))
        {
            continue;
        }
        if !seen.insert((kernel.op, key.clone(), kernel.dtype)) {
            continue;
        }
        if let Some(op) = scope.ops.iter().find(|op| op.def.name() == kernel.op) {
            cases.push(Case::of(FAMILY.name, op.def, dtype, 0, key));
        } else if let Some(op) = scope.foreign.iter().find(|op| op.entry.name == kernel.op) {
            cases.push(Case::of_foreign(FAMILY.name, op.entry, dtype, 0, key));
        }
    }
}

/// The change of the samples, if a kernel runs none of them unchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// Every size but 0 and 1 is set to the same value, for layouts that hold only square matrices.
    Squared,
    /// Every tensor under test with at least one dimension is replaced by a square matrix, so that kernels that do not
    /// broadcast are called with the samples' other arguments too.
    Matrices,
    /// No integer is 0, since it might be a divisor.
    WithoutZeros,
}

fn run(context: &Context<'_>) -> Steps {
    let entry = context.entry()?;
    let is_it = |k: &&&'static KernelEntry| {
        k.op == entry.name && k.dtype == context.dtype().code() && key_of(k) == context.case.variant
    };
    let kernel = *context
        .target
        .kernels
        .iter()
        .find(|k| is_it(k))
        .ok_or_else(|| Stop::Skipped("there is no such kernel".to_string()))?;
    let asked = Asked {
        context,
        entry,
        def: definition(entry),
        kernel,
        device: Device { kind: kernel.device, index: 0 },
        why_not: std::cell::RefCell::new("no sample fits the layout".to_string()),
    };
    let samples = by_name::samples(entry.name)?;
    if samples.is_empty() {
        asked.why_not.replace(format!("no sample comes with `{}`", entry.name));
    }
    if !context.dtype().is_built_in() {
        return plugin_dtypes::run(&asked, &samples);
    }
    for (dtype, with_dtype) in attempts(context.dtype()) {
        // Few samples of a composite layout have a kernel: all changes of them are tried.
        let composite = !kernel.layout.is_strided();
        let mut served = 0;
        for change in [Change::None, Change::Squared, Change::Matrices, Change::WithoutZeros] {
            if composite || served == 0 {
                served += asked.calls(&samples, dtype, with_dtype, change)?;
            }
        }
        if served > 0 {
            return Ok(());
        }
    }
    if asked.by_gradients()? {
        return Ok(());
    }
    Err(asked.not_called())
}

/// The dtypes to call with, and whether dtype arguments are the same one: the kernel's own first, since most kernels are
/// selected by the dtype of their arguments.
fn attempts(own: DType) -> Vec<(DType, bool)> {
    let others = DType::REAL.into_iter().filter(|&d| d != own);
    std::iter::once(own).chain(others).flat_map(|d| [(d, false), (d, true)]).collect()
}

/// The sample with other sizes.
pub(super) fn reshaped(sample: &Sample, change: Change) -> Sample {
    let mut sample = sample.clone();
    let reshape = |t: &mut TensorSample| match change {
        Change::Matrices if t.role == Role::Tested && !t.sizes.is_empty() => t.sizes = vec![6, 6],
        Change::Squared => t.sizes.iter_mut().filter(|s| **s > 1).for_each(|s| *s = 6),
        _ => {}
    };
    for arg in &mut sample.args {
        match arg {
            SampleArg::Tensor(t) => reshape(t),
            SampleArg::Tensors(list) => list.iter_mut().for_each(reshape),
            _ => {}
        }
    }
    sample
}

impl Asked<'_> {
    /// The failure that a kernel without a call is.
    fn not_called(&self) -> Stop {
        let got = self.why_not.borrow().clone();
        Failure::new("a registered kernel that no case calls", "a call that it serves", got).into()
    }

    /// Calls with each sample and placement; returns the number of calls that the kernel ran. On strided tensors one is
    /// enough: the other families test these.
    fn calls(&self, samples: &[Sample], dtype: DType, with_dtype: bool, change: Change) -> Steps<usize> {
        let strided = self.kernel.layout == Layout::STRIDED && self.def.is_some();
        let composite = !self.kernel.layout.is_strided();
        let shapes = matches!(change, Change::Squared | Change::Matrices);
        if shapes && !composite || change == Change::WithoutZeros && dtype.is_float() {
            return Ok(0);
        }
        let mut served = 0;
        for (nth, sample) in samples.iter().enumerate() {
            let mut sample = if shapes { reshaped(sample, change) } else { sample.clone() };
            if with_dtype {
                let own = self.context.dtype();
                let dtypes = sample.args.iter_mut().filter(|arg| matches!(arg, SampleArg::DType(_)));
                dtypes.for_each(|arg| *arg = SampleArg::DType(own));
            } else if dtype != self.context.dtype() && !has_tested(&sample) {
                continue;
            }
            let mut inputs = inputs::of_sample(&sample.args, dtype, self.context.seed + nth as u64);
            if change == Change::WithoutZeros {
                let one = |value| if value == Number::Int(0) { Number::Int(1) } else { value };
                inputs::map_arrays(&mut inputs, |array| *array = array.map(array.dtype, one));
            }
            let count = placements::count(self.kernel.layout, &sample);
            for placement in 0..count {
                served += usize::from(self.one(nth, &sample, &inputs, placement)?);
                if strided && served > 0 {
                    return Ok(served);
                }
            }
        }
        Ok(served)
    }

    /// Makes one call, and checks the result if the kernel ran it; returns whether it did.
    fn one(&self, nth: usize, sample: &Sample, inputs: &Inputs, placement: usize) -> Steps<bool> {
        let Some(placed) = placements::place(self.kernel.layout, sample, inputs, placement, self.device)?
        else {
            return Ok(false);
        };
        let before = recorder::served_by(self.kernel);
        let made = placed.prepared.call_entry(self.entry, &placed.tensors, Out::New);
        let served = recorder::served_by(self.kernel) > before;
        let made = match made {
            Ok(made) => made,
            Err(error) => {
                self.why_not.replace(error.to_string());
                return Ok(false);
            }
        };
        if !served {
            let by = keyway::dispatcher::ledger::last_served().name();
            self.why_not.replace(format!("calls that {by} serves"));
            return Ok(false);
        }
        if let Some(how) = placed.how {
            self.context.judge_by(how);
        }
        let expected = expected(self.context, self.entry, &placed, &made)?;
        let Some(expected) = expected else {
            // The results must at least be readable.
            made.iter().try_for_each(|t| read(t).map(drop))?;
            return Ok(true);
        };
        let factor = factor_of(self.entry, sample);
        let with_sample = |mut failure: Failure| {
            failure.what = format!("sample {nth}, {}: {}", placed.name, failure.what);
            failure
        };
        same(&expected, &made, placed.tolerance, |of| Tolerance::of(of.dtype).times(factor))
            .map_err(with_sample)?;
        if let Some(def) = self.def
            && self.kernel.layout == Layout::CHANNELS_LAST
            && has_out(def)
        {
            self.out_in_images(def, &placed.prepared, &expected, factor).map_err(|stop| match stop {
                Stop::Failed(failure) => Stop::Failed(with_sample(failure)),
                other => other,
            })?;
        }
        if let Some(def) = self.def
            && !self.kernel.layout.is_strided()
            && has_out(def)
            && made.iter().all(|made| made.as_ref().is_strided())
        {
            orders::outputs(&expected, factor, self.device, |out| {
                Ok(placed.prepared.call_entry(self.entry, &placed.tensors, out).map(drop)?)
            })
            .map_err(|stop| match stop {
                Stop::Failed(failure) => Stop::Failed(with_sample(failure)),
                other => other,
            })?;
        }
        Ok(true)
    }

    /// Calls the `out=` form with outputs in channels_last where the sizes allow it, filled with garbage.
    fn out_in_images(
        &self,
        def: &'static OpDef,
        prepared: &Prepared,
        expected: &[Array],
        factor: f64,
    ) -> Steps {
        let arrange = |sizes: &[usize]| match Arrangement::ChannelsLast.suits(sizes) {
            true => Arrangement::ChannelsLast,
            false => Arrangement::Contiguous,
        };
        let outs = expected
            .iter()
            .map(|e| Placed::garbage(&e.sizes, e.dtype, arrange(&e.sizes), self.device))
            .collect::<Result<Vec<_>, _>>()?;
        let given: Vec<_> = outs.iter().map(|out| out.tensor.as_ref()).collect();
        prepared.call_watched(def.entry()?, Out::Given(&given), &outs)??;
        let got: Vec<Tensor> = outs.iter().map(|out| out.tensor.clone()).collect();
        Ok(compare::outputs(expected, &got, factor)?)
    }

    /// Whether the kernel is that of a backward op, and is called by the gradients of its forward op's samples. In f64 they are
    /// compared with finite differences.
    fn by_gradients(&self) -> Steps<bool> {
        let forward = |op: &&'static OpEntry| {
            let backward = op.spec.foreign.and_then(|foreign| foreign.backward);
            backward.is_some_and(|backward| backward.op == self.entry.name)
        };
        let Some(forward) = self.context.target.ops().into_iter().find(|op| forward(op)) else {
            return Ok(false);
        };
        let before = recorder::served_by(self.kernel);
        for (nth, sample) in by_name::samples(forward.name)?.iter().enumerate() {
            let inputs = inputs::of_sample(&sample.args, self.context.dtype(), nth as u64);
            for placement in 0..placements::count(self.kernel.layout, sample) {
                let placed = placements::place(self.kernel.layout, sample, &inputs, placement, self.device)?;
                let Some(placed) = placed else { continue };
                let made = match gradients(forward, &placed) {
                    Ok(made) => made,
                    Err(error) => {
                        self.why_not.replace(error.to_string());
                        continue;
                    }
                };
                if recorder::served_by(self.kernel) == before {
                    continue;
                }
                if self.context.dtype() == DType::F64 && sample.smooth {
                    self.context.judge_by(format!("differences of `{}`", forward.name));
                    differences(forward, sample, &placed, placement, self, &made)?;
                } else {
                    let what = format!("nothing but that the gradients of `{}` call it", forward.name);
                    self.context.judge_by(what);
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The expected values of a call that a kernel ran; `None` without a reference.
pub(super) fn expected(
    context: &Context<'_>,
    entry: &'static OpEntry,
    placed: &placements::Call,
    made: &[Tensor],
) -> Steps<Option<Vec<Array>>> {
    match definition(entry) {
        Some(def) => Ok(by_oracle(def, &placed.inputs, placed)),
        // The reference of a plugin's op may treat stored zeros as unstored elements.
        None if placed.stores_zeros() => Ok(None),
        None => plugin_ops::expected(context, entry, &placed.inputs, made),
    }
}

/// Factor of the dtype's tolerance for the results of a sample.
pub(super) fn factor_of(entry: &'static OpEntry, sample: &Sample) -> f64 {
    match definition(entry) {
        Some(def) => factor(def, sample),
        None => sample.tolerance_factor.map_or(1.0, |(factor, _)| factor),
    }
}

/// Compares the results of a call. One in a composite layout must be valid, and may lose the digits that the layout declares.
///
/// # Errors
/// The first output that is wrong.
pub(super) fn same(
    expected: &[Array],
    made: &[Tensor],
    loses: LayoutTolerance,
    tolerance: impl Fn(&Array) -> Tolerance,
) -> Result<(), Failure> {
    if expected.len() != made.len() {
        let (expected, got) = (expected.len().to_string(), made.len().to_string());
        return Err(Failure::new("wrong number of outputs", expected, got));
    }
    for (nth, (expected, made)) in expected.iter().zip(made).enumerate() {
        let invalid = || Failure::new(format!("output {nth}"), "elements of its dtype", "others");
        let mut allowed = tolerance(expected);
        if !made.as_ref().is_strided() {
            // The host does not validate the results of kernels.
            layouts::validate(made.as_ref()).map_err(keyway::Error::from)?;
            allowed = allowed.and(Tolerance::of_layout(loses, expected));
        }
        let got = read(made)?.ok_or_else(invalid)?;
        compare::array(nth, expected, &got, allowed)?;
    }
    Ok(())
}

/// Ops that read only the sparsity pattern of one of their tensors, of this index, and not its values.
const PATTERNS: [(&str, usize); 2] = [("sampled_mm", 0), ("sparse_mask", 1)];
/// Ops that ignore the unstored elements of a sparse tensor.
const OF_STORED: [&str; 2] = ["softmax", "log_softmax"];

/// The expected values of a call on these arguments, some elements of which the call's composite tensors store.
pub(super) fn by_oracle(
    def: &'static OpDef,
    inputs: &Inputs,
    placed: &placements::Call,
) -> Option<Vec<Array>> {
    let mut inputs = inputs.clone();
    let oracle = oracle::find(def.name())?;
    let pattern = PATTERNS.iter().find(|(name, _)| *name == def.name()).map(|(_, nth)| *nth);
    let composite = |nth: usize| placed.tensors.get(nth).is_some_and(|t| !t.as_ref().is_strided());
    let of_stored = OF_STORED.contains(&def.name()) && composite(0);
    let mut nth = 0;
    inputs::map_arrays(&mut inputs, |array| {
        for (value, &stored) in array.values.iter_mut().zip(&placed.stored[nth]) {
            if pattern == Some(nth) && composite(nth) {
                *value = Number::Int(i128::from(stored)).cast(array.dtype);
            } else if of_stored && nth == 0 && !stored {
                *value = Number::Float(f64::NEG_INFINITY);
            }
        }
        nth += 1;
    });
    let mut made = oracle(&inputs).ok()?;
    if of_stored {
        for made in &mut made {
            let zero = Number::Int(0).cast(made.dtype);
            made.values
                .iter_mut()
                .zip(&placed.stored[0])
                .filter(|(_, stored)| !**stored)
                .for_each(|(value, _)| *value = zero);
        }
    }
    Some(made)
}

/// The gradients of an op's float outputs with respect to each tensor, for incoming gradients of ones; `None` for a tensor
/// without one.
fn gradients(op: &'static OpEntry, placed: &placements::Call) -> keyway::Result<Vec<Option<Tensor>>> {
    let leaf =
        |t: &Tensor| if t.dtype().is_float() { t.detach().requires_grad_(true) } else { Ok(t.clone()) };
    let leaves = placed.tensors.iter().map(leaf).collect::<keyway::Result<Vec<_>>>()?;
    let outputs = placed.prepared.call_entry(op, &leaves, Out::New)?;
    let outputs: Vec<Tensor> = outputs.into_iter().filter(Tensor::requires_grad).collect();
    let wanted: Vec<Tensor> = leaves.iter().filter(|t| t.requires_grad()).cloned().collect();
    let start = |out: &Tensor| {
        let ones = Array::from_fn(out.dtype(), out.shape(), |_| Number::Float(1.0));
        Ok(Placed::new(&ones, Arrangement::Contiguous, out.device())?.tensor)
    };
    let start = outputs.iter().map(start).collect::<keyway::Result<Vec<_>>>()?;
    let options =
        BackwardOptions { gradients: Some(start), allow_unused: true, ..BackwardOptions::default() };
    let mut made = grad(&outputs, &wanted, options)?.into_iter();
    Ok(leaves.iter().map(|t| t.requires_grad().then(|| made.next()).flatten().flatten()).collect())
}

/// Compares gradients with finite differences of the op's values. A tensor of a composite layout is changed in the elements
/// that it stores.
fn differences(
    op: &'static OpEntry,
    sample: &Sample,
    placed: &placements::Call,
    placement: usize,
    asked: &Asked<'_>,
    made: &[Option<Tensor>],
) -> Steps {
    const STEP: f64 = 1e-5;
    let total = |nth: usize, element: usize, by: f64| -> Steps<f64> {
        let (mut inputs, mut at) = (placed.inputs.clone(), 0);
        inputs::map_arrays(&mut inputs, |array| {
            if at == nth {
                array.values[element] = Number::Float(array.values[element].float() + by);
            }
            at += 1;
        });
        let moved = placements::place(asked.kernel.layout, sample, &inputs, placement, asked.device)?;
        let moved = moved.ok_or_else(|| Stop::Skipped("the layout refuses a moved element".to_string()))?;
        let mut sum = 0.0;
        for out in
            moved.prepared.call_entry(op, &moved.tensors, Out::New)?.iter().filter(|o| o.dtype().is_float())
        {
            sum += read(out)?.map_or(f64::NAN, |a| a.floats().iter().sum());
        }
        Ok(sum)
    };
    for (nth, gradient) in made.iter().enumerate() {
        let Some(gradient) = gradient.as_ref().map(read).transpose()?.flatten() else { continue };
        let composite = !placed.tensors[nth].as_ref().is_strided();
        let held = |element: &usize| {
            let mut arrays = Vec::new();
            inputs::map_arrays(&mut placed.inputs.clone(), |array| {
                arrays.push(array.values.get(*element).copied())
            });
            !composite || arrays[nth].is_some_and(Number::truth)
        };
        for element in (0..gradient.numel()).filter(held) {
            let numeric = (total(nth, element, STEP)? - total(nth, element, -STEP)?) / (2.0 * STEP);
            let got = gradient.values[element].float();
            if (got - numeric).abs() > 1e-5 + 1e-4 * numeric.abs() || got.is_nan() {
                let what = format!("d {} / d tensor {nth}, element {element}", op.name);
                let expected = format!("{numeric}, within 1e-5 and 1e-4 of it");
                return Err(Failure::new(what, expected, got.to_string()).into());
            }
        }
    }
    Ok(())
}
