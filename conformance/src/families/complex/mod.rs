//! Complex tensors: every kernel of c64 and c128, and that of op `complex`.
//!
//! Errors are measured by the modulus: `|got - expected| <= k ulp |expected|`, and for sums `k ulp` of the sum of the addends'
//! moduli, since addends cancel. `judge` lists the factors `k`. Functions are also compared with a table of values on both sides
//! of branch cuts, at the ends of the range, and of infinities and NaN.

mod arguments;
mod facts;
mod gradients;
mod judge;
mod large;
mod subject;

use super::{Context, Family, Scope, has_out};
use crate::array::Array;
use crate::call::{damaged, is_of_arguments};
use crate::case::Case;
use crate::growth::{self, Named, resized};
use crate::memory::{Arrangement, Placed, repeated};
use crate::oracle::Value;
use crate::outcome::{Failure, Steps, Stop};
use crate::recorder;
use judge::Judged;
use keyway::dispatcher::op::Out;
use keyway::dispatcher::registry::KernelEntry;
use keyway::ops::def::{Dtypes, Forms, OpDef, definition};
use keyway::{DType, Layout, Tensor};
use subject::{Subject, within};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "complex",
    about: "kernels of c64 and c128: samples, strides, forms, lengths, large tensors, casts, branch cuts, infinities and NaN, derivatives",
    cases,
    run,
};

/// Whether this family judges the kernel, `fft` that of a Fourier transform, or `linalg` that of a
/// factorisation, and no other.
pub(super) fn judges(kernel: &KernelEntry) -> bool {
    let of_complex = || keyway::dispatcher::registry::find_op(kernel.op).and_then(definition);
    DType::from_code(kernel.dtype).is_some_and(DType::is_complex)
        || of_complex().is_some_and(|def| def.dtypes == Dtypes::COMPLEX)
}

/// A kind of case.
struct Kind {
    /// The variant's name.
    variant: &'static str,
    /// Whether an op has the case.
    is_of: fn(&'static OpDef) -> bool,
    /// Whether only c128 has it, because finite differences need its digits.
    wide: bool,
    run: fn(&Subject<'_>) -> Steps,
}

const KINDS: [Kind; 10] = [
    Kind { variant: "values", is_of: |_| true, wide: false, run: values },
    Kind { variant: "strided", is_of: |_| true, wide: false, run: strided },
    Kind { variant: "out", is_of: has_out, wide: false, run: out },
    Kind { variant: "in_place", is_of: is_in_place, wide: false, run: in_place },
    Kind { variant: "lengths", is_of: |_| true, wide: false, run: lengths },
    Kind { variant: "large", is_of: |_| true, wide: false, run: large::run },
    Kind { variant: "extremes", is_of: |def| !arguments::is_cast(def), wide: false, run: facts::run },
    Kind { variant: "dtypes", is_of: arguments::mixes, wide: false, run: dtypes },
    Kind { variant: "gradcheck", is_of: gradients::has, wide: true, run: gradients::first },
    Kind { variant: "gradgradcheck", is_of: gradients::has, wide: true, run: gradients::second },
];

/// The variants of quick runs.
const QUICK: [&str; 3] = ["values", "lengths", "extremes"];

fn is_in_place(def: &'static OpDef) -> bool {
    def.forms == Forms::InPlace && !def.name().starts_with("logical_") && def.name() != "abs"
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| !super::fft::judges(op.def) && !super::linalg::judges(op.def)) {
        for dtype in arguments::dtypes(op.def) {
            let own = |k: &&KernelEntry| {
                k.op == op.def.name() && k.dtype == dtype.code() && k.layout == Layout::STRIDED && judges(k)
            };
            if !scope.target.kernels.iter().copied().any(|k| own(&k)) {
                continue;
            }
            let wanted = |kind: &&Kind| {
                (kind.is_of)(op.def)
                    && (!kind.wide || dtype.to_real() == DType::F64)
                    && (!scope.quick || QUICK.contains(&kind.variant))
            };
            cases.extend(
                KINDS.iter().filter(wanted).map(|kind| Case::of(FAMILY.name, op.def, dtype, 0, kind.variant)),
            );
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let variant = context.case.variant.as_str();
    let none = || Stop::Skipped(format!("there is no variant `{variant}`"));
    let kind = KINDS.iter().find(|kind| kind.variant == variant).ok_or_else(none)?;
    let subject = Subject::new(context)?;
    (kind.run)(&subject)?;
    if recorder::served_by(subject.kernel) == 0 {
        let got = "calls that others serve";
        return Err(
            Failure::new("a registered kernel that no call selects", "a call that it serves", got).into()
        );
    }
    Ok(())
}

/// Every sample, row-major.
fn values(subject: &Subject<'_>) -> Steps {
    let mut judged = 0;
    for (nth, sample) in subject.samples.iter().enumerate() {
        let inputs = subject.inputs(nth, sample);
        let checked = subject.check(&inputs, Arrangement::Contiguous);
        judged += usize::from(within(format!("sample {nth}"), checked)?);
    }
    subject.some(judged)
}

/// Every sample in every arrangement; expanded tensors repeat their first slice.
fn strided(subject: &Subject<'_>) -> Steps {
    for (nth, sample) in subject.samples.iter().enumerate() {
        for arrangement in Arrangement::STRIDED {
            let mut inputs = subject.inputs(nth, sample);
            let mut suits = false;
            crate::inputs::map_arrays(&mut inputs, |array| {
                suits |= arrangement.suits(&array.sizes);
                if arrangement == Arrangement::Expanded && arrangement.suits(&array.sizes) {
                    *array = repeated(array);
                }
            });
            if suits {
                within(format!("sample {nth}, {}", arrangement.name()), subject.check(&inputs, arrangement))?;
            }
        }
    }
    Ok(())
}

/// `out=` filled with garbage, row-major and with gaps, which remain as they are.
fn out(subject: &Subject<'_>) -> Steps {
    let device = subject.context.target.device;
    for (nth, sample) in subject.samples.iter().enumerate() {
        let inputs = subject.inputs(nth, sample);
        let Some(expected) = subject.expected(&inputs)? else { continue };
        for arrangement in [Arrangement::Contiguous, Arrangement::Stepped, Arrangement::Transposed] {
            let place =
                |e: &Array| Placed::garbage(&e.sizes, e.dtype, arrangement.where_it_suits(&e.sizes), device);
            let outs = expected.arrays.iter().map(place).collect::<Result<Vec<_>, _>>()?;
            let given: Vec<_> = outs.iter().map(|out| out.tensor.as_ref()).collect();
            let prepared = subject.place(&inputs, Arrangement::Contiguous)?;
            let called = prepared.call_watched(subject.def.entry()?, Out::Given(&given), &outs)?;
            called.map_err(|error| subject.context.refused(error))?;
            let got: Vec<Tensor> = outs.iter().map(|out| out.tensor.clone()).collect();
            let checked = expected.check(&got).map(|()| true).map_err(Stop::from);
            within(format!("sample {nth}, {} out=", arrangement.name()), checked)?;
            for (output, out) in outs.iter().enumerate() {
                if let Some(damage) = out.damage(false)? {
                    return Err(damaged(&format!("output {output}"), damage).into());
                }
            }
            prepared.check_untouched(None)?;
        }
    }
    Ok(())
}

/// The form with the result in argument 0, where the result has its dtype and sizes.
fn in_place(subject: &Subject<'_>) -> Steps {
    for (nth, sample) in subject.samples.iter().enumerate() {
        let inputs = subject.inputs(nth, sample);
        let Value::Array(target) = inputs.get(0) else { continue };
        let Some(expected) = subject.expected(&inputs)? else { continue };
        if !expected.arrays.iter().all(|e| (e.dtype, &e.sizes) == (target.dtype, &target.sizes)) {
            continue;
        }
        for arrangement in [Arrangement::Contiguous, Arrangement::Stepped, Arrangement::Transposed] {
            let prepared = subject.place(&inputs, arrangement)?;
            let called = prepared.call_watched(subject.def.entry()?, Out::InPlace, &[])?;
            called.map_err(|error| subject.context.refused(error))?;
            let checked = expected.check(&prepared.tensors()[..1]).map(|()| true).map_err(Stop::from);
            within(format!("sample {nth}, {} in place", arrangement.name()), checked)?;
            prepared.check_untouched(Some(0))?;
        }
    }
    Ok(())
}

/// Lengths on both sides of those of vectors and blocks, for sizes of other ops than element-wise ones.
const LENGTHS: [usize; 8] = [1, 2, 3, 5, 8, 17, 33, 70];
/// The length up to which every one is used for element-wise ops.
const LONGEST: usize = 70;
/// The maximum number of steps of such a call.
const STEPS: usize = 20_000;

/// Every length from 0 to 70 of an element-wise op; each size of three samples of another one.
fn lengths(subject: &Subject<'_>) -> Steps {
    let mut judged = 0;
    if let Some(sample) = arguments::of_one_shape(subject.def, &subject.samples) {
        for length in 0..=LONGEST {
            let sized = super::with_sizes(&sample, &[length]).unwrap_or_else(|| sample.clone());
            let inputs = subject.inputs(length, &sized);
            let checked = subject.check(&inputs, Arrangement::Contiguous);
            judged += usize::from(within(format!("{length} elements"), checked)?);
        }
        return subject.some(judged);
    }
    for nth in arguments::three(&subject.samples) {
        let sample = &subject.samples[nth];
        for size in growth::sizes(sample) {
            for length in LENGTHS.into_iter().filter(|&length| length != size) {
                let checked = resized_call(subject, nth, (size, length));
                judged += usize::from(within(format!("sample {nth} with {length} for {size}"), checked)?);
            }
        }
    }
    subject.some(judged)
}

/// A call with one size of a sample replaced, and with the scalar arguments that are that size; `false` if the op or the oracle
/// accepts none.
fn resized_call(subject: &Subject<'_>, nth: usize, change: (usize, usize)) -> Steps<bool> {
    for named in [Named::Limits, Named::Lists, Named::Nothing] {
        let sample = resized(&subject.samples[nth], &[change], named);
        if growth::steps(&sample) > STEPS {
            continue;
        }
        let inputs = subject.inputs(nth, &sample);
        let Ok(expected) = Judged::of(subject.def.name(), &inputs) else { continue };
        match subject.call(&subject.place(&inputs, Arrangement::Contiguous)?, Out::New) {
            Err(error) if is_of_arguments(&error) => {}
            Err(error) => return Err(subject.context.refused(error)),
            Ok(made) => {
                expected.check(&made)?;
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Arguments of several dtypes: promoted ones, and the sources of casts.
fn dtypes(subject: &Subject<'_>) -> Steps {
    let mut judged = 0;
    for (what, inputs) in arguments::mixed(subject.def, subject.dtype) {
        judged += usize::from(within(what, subject.check(&inputs, Arrangement::Contiguous))?);
    }
    subject.some(judged)
}
