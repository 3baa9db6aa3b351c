//! Tensors of 300,000 elements and more.

use super::arguments;
use super::judge::{Judged, ulp};
use super::subject::Subject;
use crate::array::{Array, Number};
use crate::compare::Tolerance;
use crate::families::{has_out, is_in, with_sizes};
use crate::growth::{self, enlarged};
use crate::memory::Arrangement;
use crate::oracle::complex::{self, number};
use crate::outcome::{Failure, Steps, Stop};
use crate::periodic::{Large, Periodic};
use crate::recorder;
use keyway::dispatcher::op::Out;
use keyway::ops::def::OpFlags;
use keyway::ops::linalg;
use keyway::ops::sample::Sample;
use keyway::{DType, Tensor};

/// The number of elements.
const ELEMENTS: usize = 300_007;
/// The period of element-wise ops, an odd prime.
const PERIOD: usize = 1009;
/// The maximum number of steps of a product.
const STEPS: usize = 1_500_000;
/// The tolerance in ULP of the largest modulus.
const ULPS: f64 = 64.0;
/// The same of c128 functions, as the oracle loses digits.
const FUNCTION: f64 = 2048.0;

pub(super) fn run(subject: &Subject<'_>) -> Steps {
    let oracle = complex::find(subject.def.name())
        .ok_or_else(|| Stop::Skipped("it has no oracle for complex tensors".to_string()))?;
    if let Some(sample) = arguments::of_one_shape(subject.def, &subject.samples) {
        let sample = with_sizes(&sample, &[PERIOD]).unwrap_or(sample);
        let periodic = Periodic::known(sample, &[PERIOD]);
        return whole(subject, periodic.large(&[(PERIOD, ELEMENTS)], oracle, subject.dtype, 1));
    }
    let exact = subject.def.is(OpFlags::EXACT);
    // Elements that only move are moved by their size: those of c64 as those of f64.
    let most = if exact && subject.dtype == DType::C64 { ELEMENTS / 10 } else { ELEMENTS };
    let mut judged = 0;
    let small = |nth: &usize| growth::steps(&subject.samples[*nth]) <= STEPS;
    let is_product = is_in(subject.def, &[linalg::ALL]);
    for nth in arguments::three(&subject.samples).into_iter().rev().filter(small) {
        let mut elements = most as f64;
        let mut larger = enlarged(&subject.samples[nth], elements);
        // The steps of a product of square matrices are not seen from their sizes.
        let steps = |sample: &Sample| match growth::sizes(sample).into_iter().max() {
            Some(longest) if is_product => growth::steps(sample).saturating_mul(longest) / 8,
            _ => growth::steps(sample),
        };
        while elements > 1.0 && steps(&larger) > STEPS.max(2 * most) {
            elements /= 2.0;
            larger = enlarged(&subject.samples[nth], elements);
        }
        // A kernel may leave some calls to others.
        if judged < if exact { 1 } else { 2 } || recorder::served_by(subject.kernel) == 0 {
            // An argument may name the sample's sizes.
            judged +=
                usize::from(direct(subject, nth, &larger)? || direct(subject, nth, &subject.samples[nth])?);
        }
    }
    subject.some(judged)
}

fn tolerance(subject: &Subject<'_>, expected: &Array) -> Tolerance {
    let wide = expected.dtype.to_real() == DType::F64;
    let ulps = if wide && complex::is_function(subject.def.name()) { FUNCTION } else { ULPS };
    Tolerance { rtol: ulps * ulp(expected.dtype), atol: 0.0 }
}

/// A large call of an element-wise op, each period of which has the same results: new ones, and into memory with gaps.
fn whole(subject: &Subject<'_>, large: Option<Large>) -> Steps {
    let large = large.ok_or_else(|| Failure::new("a large call", "an expected value", "none"))?;
    let device = subject.context.target.device;
    let tensors = large.tensors(device, |_| Arrangement::Contiguous)?;
    let entry = subject.def.entry()?;
    let refused = |error| subject.context.refused(error);
    let made = large.prepared().call_entry(entry, &tensors, Out::New).map_err(refused)?;
    large.check(&made, |array| tolerance(subject, array))?;
    if !has_out(subject.def) {
        return Ok(());
    }
    let outs = large.outs(device, |_| Arrangement::Stepped)?;
    let given: Vec<_> = outs.iter().map(AsRef::as_ref).collect();
    large.prepared().call_entry(entry, &tensors, Out::Given(&given)).map_err(refused)?;
    let got: Vec<Tensor> = outs.clone();
    Ok(large.check(&got, |array| tolerance(subject, array))?)
}

/// A large call of another op; `false` if an argument names its sizes.
fn direct(subject: &Subject<'_>, nth: usize, sample: &Sample) -> Steps<bool> {
    let mut inputs = subject.inputs(nth, sample);
    if matches!(subject.def.name(), "prod" | "cumprod") {
        // Elements of modulus 1, so that the product of many neither overflows nor vanishes.
        crate::inputs::map_arrays(&mut inputs, |array| {
            let turn = |z: Number| number::sgn(number::C::of(z)).number().cast(array.dtype);
            *array = array.map(array.dtype, turn);
        });
    }
    if matches!(subject.def.name(), "sum" | "mean" | "cumsum") {
        // Without cancellation, so that errors of the same sign in each addition show.
        crate::inputs::map_arrays(&mut inputs, |array| {
            let positive = |z: Number| Number::Complex(z.float().abs(), z.imaginary().abs());
            *array = array.map(array.dtype, positive);
        });
    }
    let Ok(expected) = Judged::of(subject.def.name(), &inputs) else { return Ok(false) };
    let prepared = subject.place(&inputs, Arrangement::Contiguous)?;
    match subject.call(&prepared, Out::New) {
        Err(error) if crate::call::is_of_arguments(&error) => Ok(false),
        Err(error) => Err(subject.context.refused(error)),
        Ok(made) => {
            expected.check(&made)?;
            Ok(true)
        }
    }
}
