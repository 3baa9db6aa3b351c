//! Every op with the target's interposers and without them: interposers that are enabled by default must not change results,
//! arguments and gradients, also for ops that the target has no kernel of.

use super::gradients::{gradients, incoming};
use super::samples::leaves;
use super::{Context, Family, Scope, has_out};
use crate::call::Prepared;
use crate::case::Case;
use crate::memory::{Arrangement, Placed};
use crate::outcome::{Failure, Steps, Stop};
use crate::target::interposers_of;
use keyway::dispatcher::key::{KeyGuard, KeySet};
use keyway::dispatcher::op::Out;
use keyway::ops::def::{Derivative, Forms};
use keyway::{DType, Tensor};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "interposers",
    about: "each op that an interposer acts on by default, with it and without it: results, forms, large tensors, gradients",
    cases,
    run,
};

/// The variants: each form of a call, large tensors, and gradients.
const LARGE: &str = "large";
const BACKWARD: &str = "backward";
/// The number of elements of the largest tensor of a large call, and the maximum number of steps and of elements of a
/// result.
const ELEMENTS: f64 = 40_000.0;
const STEPS: usize = 1 << 20;
const RESULTS: usize = 100_000;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let plugin = scope.target.plugin;
    if interposers_of(plugin, None).is_empty() {
        return;
    }
    for def in keyway::ops::all() {
        let Ok(entry) = def.entry() else { continue };
        if interposers_of(plugin, Some(entry)).is_empty() {
            continue;
        }
        let samples = (def.samples)();
        let dtypes = scope.dtypes(def);
        let wanted = || (0..samples.len()).filter(|&nth| scope.wants(nth, samples.len()));
        for &dtype in &dtypes {
            wanted().for_each(|nth| cases.push(Case::of(FAMILY.name, def, dtype, nth, "")));
            if let Some(nth) = super::typical(&samples) {
                cases.push(Case::of(FAMILY.name, def, dtype, nth, LARGE));
            }
        }
        let derived = matches!(def.derivative, Derivative::Formula { .. } | Derivative::Composite);
        for dtype in [DType::F32, DType::F64].into_iter().filter(|dtype| derived && dtypes.contains(dtype)) {
            let smooth = wanted().filter(|&nth| samples[nth].smooth && super::has_tested(&samples[nth]));
            smooth.for_each(|nth| cases.push(Case::of(FAMILY.name, def, dtype, nth, BACKWARD)));
        }
    }
}

/// The result of a call: the bytes of its outputs, or an error.
type Made = Result<Vec<Vec<u8>>, keyway::Error>;

fn bytes(tensors: &[Tensor]) -> Made {
    tensors.iter().map(|t| t.detach().to_bytes()).collect()
}

/// Makes a call without the interposers, then with them, and compares.
fn twice(context: &Context<'_>, what: &str, mut call: impl FnMut() -> Made) -> Steps {
    let (op, plugin) = (context.entry()?, context.target.plugin);
    let all = interposers_of(plugin, Some(op));
    let without = {
        let _off: Vec<KeyGuard> =
            interposers_of(plugin, None).iter().map(|info| KeyGuard::exclude(KeySet::of(info.key))).collect();
        call()
    };
    let names: Vec<&str> = all.iter().map(|info| info.name.as_str()).collect();
    let names = names.join(", ");
    match (without, call()) {
        (Ok(without), Ok(with)) if without == with => Ok(()),
        // No candidate, or invalid arguments.
        (Err(_), Err(_)) => Ok(()),
        (Ok(without), Ok(with)) => {
            let pairs = without.iter().zip(&with);
            let other = pairs.filter(|(without, with)| without != with).count();
            let what = format!("{what} with interposer {names}");
            let got = format!("others in {other} of {} tensors", without.len());
            Err(Failure::new(what, "the bits of the call without it", got).into())
        }
        (Ok(_), Err(error)) => {
            let what = format!("{what} with interposer {names}");
            Err(Failure::new(what, "a result, as without it", error.to_string()).into())
        }
        (Err(error), Ok(_)) => {
            let what = format!("{what} with interposer {names}");
            Err(Failure::new(what, format!("an error, as without it: {error}"), "a result").into())
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    match context.case.variant.as_str() {
        "" => forms(context),
        LARGE => {
            let (prepared, _) = context.place_scaled(ELEMENTS, STEPS, RESULTS)?;
            new(context, &prepared)
        }
        BACKWARD => backward(context),
        other => Err(Stop::Skipped(format!("there is no variant `{other}`"))),
    }
}

fn new(context: &Context<'_>, prepared: &Prepared) -> Steps {
    let op = context.entry()?;
    twice(context, "the results", || bytes(&prepared.call_entry(op, &prepared.tensors(), Out::New)?))
}

/// Calls the functional form, `out=` and in place.
fn forms(context: &Context<'_>) -> Steps {
    let (def, op, device) = (context.def()?, context.entry()?, context.target.device);
    let inputs = context.inputs()?.1;
    let prepared = context.place(&inputs)?;
    new(context, &prepared)?;
    prepared.check_untouched(None)?;
    let Ok(made) = prepared.call_entry(op, &prepared.tensors(), Out::New) else { return Ok(()) };
    if has_out(def) && made.iter().all(|t| t.as_ref().is_strided()) {
        twice(context, "the results by `out=`", || {
            let garbage = |t: &Tensor| Placed::garbage(t.shape(), t.dtype(), Arrangement::Contiguous, device);
            let outs = made.iter().map(|t| Ok(garbage(t)?.tensor)).collect::<keyway::Result<Vec<_>>>()?;
            let given: Vec<_> = outs.iter().map(AsRef::as_ref).collect();
            prepared.call_entry(op, &prepared.tensors(), Out::Given(&given))?;
            bytes(&outs)
        })?;
    }
    if def.forms == Forms::InPlace && !prepared.placed.is_empty() {
        twice(context, "the results in place", || {
            let prepared = context.place(&inputs)?;
            prepared.call_entry(op, &prepared.tensors(), Out::InPlace)?;
            bytes(&prepared.tensors())
        })?;
    }
    Ok(())
}

/// Checks the gradients: the ops of a backward pass are called through interposers too.
fn backward(context: &Context<'_>) -> Steps {
    let (sample, inputs) = context.inputs()?;
    let (op, device) = (context.entry()?, context.target.device);
    twice(context, "the gradients", || {
        let prepared = context.place_bare(&inputs)?;
        let leaves = leaves(prepared.tensors(), &sample)?;
        let outputs = prepared.call_entry(op, &leaves, Out::New)?;
        let outputs: Vec<Tensor> = outputs.into_iter().filter(Tensor::requires_grad).collect();
        let given = outputs
            .iter()
            .map(|output| Ok(Placed::new(&incoming(output, false), Arrangement::Contiguous, device)?.tensor))
            .collect::<keyway::Result<Vec<_>>>()?;
        let made = gradients(&outputs, &leaves, given)?;
        bytes(&made.into_iter().flatten().collect::<Vec<_>>())
    })
}
