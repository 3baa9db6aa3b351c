//! Ops for which the target has no kernel of a composite layout that it provides: a call is refused with a message about
//! it, or, if the op has a decomposition with kernels, correct; never wrong, and never a failure of a kernel.

use super::{Context, Scope, factor, has_tested, kernels, placements};
use crate::case::Case;
use crate::compare::{self, Tolerance};
use crate::inputs;
use crate::memory::read;
use crate::outcome::{Failure, Steps, Stop};
use keyway::dispatcher::Error as DispatchError;
use keyway::dispatcher::op::Out;
use keyway::ops::def::OpDef;
use keyway::{DType, Error, Layout};

/// The prefix of the variant of such a case; the layout's name follows.
const VARIANT: &str = "without_kernel:";

/// A case for each op that the target has no kernel of for this layout.
pub(super) fn cases(scope: &Scope<'_>, family: &'static str, layout: Layout, cases: &mut Vec<Case>) {
    let kernels = || scope.target.kernels.iter().filter(move |k| k.layout == layout);
    let dtype = |def: &OpDef| {
        let takes = |d: &DType| def.dtypes.has(*d) && kernels().any(|k| k.dtype == d.code());
        DType::REAL.into_iter().rev().find(takes)
    };
    for def in keyway::ops::all().filter(|def| !kernels().any(|k| k.op == def.name())) {
        let preferred = Some(DType::F32).filter(|d| def.dtypes.has(*d)).or_else(|| dtype(def));
        if let Some(dtype) = preferred.filter(|_| (def.samples)().iter().any(has_tested)) {
            cases.push(Case::of(family, def, dtype, 0, format!("{VARIANT}{}", layout.name())));
        }
    }
}

/// Whether an error is about the call, and not the failure of a kernel.
pub(super) fn is_refusal(error: &DispatchError) -> bool {
    match error {
        DispatchError::Backend { .. } => false,
        DispatchError::Part { inner, .. } => is_refusal(inner),
        _ => true,
    }
}

/// Ops whose results depend on the sparsity pattern: one that projects on a pattern, and those with a softmax, which
/// ignores unstored elements.
const BY_POSITION: [&str; 3] = ["sparse_mask_like", "cross_entropy", "scaled_dot_product_attention"];

pub(super) fn run(context: &Context<'_>) -> Steps {
    let (def, device) = (context.def()?, context.target.device);
    let name = context.case.variant.strip_prefix(VARIANT).unwrap_or_default();
    let layout =
        Layout::from_name(name).ok_or_else(|| Stop::Skipped(format!("there is no layout `{name}`")))?;
    for (nth, sample) in (def.samples)().iter().enumerate().filter(|(_, s)| has_tested(s)) {
        let inputs = inputs::of_sample(&sample.args, context.dtype(), context.seed + nth as u64);
        for placement in 0..placements::count(layout, sample) {
            let Some(placed) = placements::place(layout, sample, &inputs, placement, device)? else {
                continue;
            };
            let described = |what: &str| format!("sample {nth}, {}: {what}", placed.name);
            let made = match placed.prepared.call_entry(context.entry()?, &placed.tensors, Out::New) {
                Ok(made) => made,
                Err(Error::Dispatch(error)) if is_refusal(&error) => continue,
                Err(Error::NoLayout { .. }) => continue,
                Err(error) => {
                    let what = described("a call that no kernel serves");
                    let expected = "an error, or a right result";
                    return Err(Failure::new(what, expected, error.to_string()).into());
                }
            };
            let by_position = BY_POSITION.contains(&def.name());
            let expected = kernels::by_oracle(def, &placed.inputs, &placed).filter(|_| !by_position);
            let Some(expected) = expected else { continue };
            for (output, (expected, made)) in expected.iter().zip(&made).enumerate() {
                let got = read(made)?.ok_or_else(|| {
                    Failure::new(described("the result"), "elements of its dtype", "others")
                })?;
                let tolerance = Tolerance::of(expected.dtype).times(factor(def, sample));
                compare::array(output, expected, &got, tolerance).map_err(|mut failure| {
                    failure.what = described(&failure.what);
                    failure
                })?;
            }
        }
    }
    Ok(())
}
