//! Functions on both sides of branch cuts, at the ends of the range, of infinities and NaN; other ops on all pairs of such parts.

use super::arguments;
use super::judge::{Judged, least, ulp};
use super::subject::{Subject, within};
use crate::array::{Array, Number, round_to};
use crate::memory::{self, Arrangement};
use crate::oracle::complex::facts::{self, Fact, Part};
use crate::oracle::complex::number::C;
use crate::oracle::{Inputs, Value};
use crate::outcome::{Failure, Steps};
use keyway::DType;
use keyway::dispatcher::op::{Out, Rule};
use keyway::ops::def::{OpDef, OpFlags};

/// The tolerance of values of the table, in ULP of the modulus: for c64, which is rounded once from f64, and for c128.
pub const FACT: [f64; 2] = [2.0, 8.0];
/// That of powers in c128: rounding `b log a` loses as many ULP as it is large, in the table at most 80.
const POWER: f64 = 80.0;

pub(super) fn run(subject: &Subject<'_>) -> Steps {
    let facts = facts::of(subject.def.name());
    if facts.is_empty() { parts(subject) } else { table(subject, &facts) }
}

/// Whether both parts are numbers of the dtype.
fn is_of(z: &C, dtype: DType) -> bool {
    [z.re, z.im].iter().all(|&part| part.is_nan() || round_to(part, dtype) == part)
}

fn table(subject: &Subject<'_>, all: &[Fact]) -> Steps {
    let dtype = subject.dtype;
    let facts: Vec<&Fact> = all.iter().filter(|f| f.arguments.iter().all(|z| is_of(z, dtype))).collect();
    let count = facts.first().map_or(0, |fact| fact.arguments.len());
    let argument = |nth: usize| {
        let values = facts.iter().map(|fact| fact.arguments[nth].number()).collect();
        Value::Array(Array::new(dtype, [facts.len()], values))
    };
    let rest = if subject.def.name() == "div" { vec![Value::None] } else { Vec::new() };
    let inputs = Inputs((0..count).map(argument).chain(rest).collect());
    let prepared = subject.place(&inputs, Arrangement::Contiguous)?;
    let made = subject.call(&prepared, Out::New).map_err(|error| subject.context.refused(error))?;
    let got = memory::read(&made[0])?;
    let got = got.ok_or_else(|| Failure::new("the result", "elements of its dtype", "others"))?;
    for (fact, value) in facts.iter().zip(&got.values) {
        let parts = [value.float(), value.imaginary()];
        let ulps = match dtype {
            DType::C64 => FACT[0],
            _ if subject.def.name() == "pow" => POWER,
            _ => FACT[1],
        };
        if !agrees(fact, parts, dtype, ulps) {
            let text = |z: &C| format!("({:e} + {:e} i)", z.re, z.im);
            let arguments: Vec<String> = fact.arguments.iter().map(text).collect();
            let sign = |part: Part| if part.is_signed { "" } else { "+-" };
            return Err(Failure::new(
                format!("{} of {}", subject.def.name(), arguments.join(", ")),
                fact.parts.map(|part| format!("{}{:e}", sign(part), part.value)).join(" + i "),
                parts.map(|part| format!("{part:e}")).join(" + i "),
            )
            .into());
        }
    }
    subject.some(facts.len())
}

/// Whether a result agrees with a fact: each part that is 0, infinite or NaN by itself, and the others by the modulus.
fn agrees(fact: &Fact, got: [f64; 2], dtype: DType, ulps: f64) -> bool {
    let rounded = fact.parts.map(|part| round_to(part.value, dtype));
    let unit = ulps * ulp(dtype);
    let finite = rounded.iter().chain(&got).all(|part| part.is_finite());
    let [re, im] = fact.parts.map(|part| part.value);
    let modulus = re.hypot(im);
    let near = (got[0] - re).hypot(got[1] - im) <= unit * modulus + 2.0 * least(dtype);
    let part = |nth: usize| {
        let (Part { value, is_signed }, e, g) = (fact.parts[nth], rounded[nth], got[nth]);
        let sign = !is_signed || e.is_sign_negative() == g.is_sign_negative();
        match e {
            _ if e.is_nan() => g.is_nan(),
            _ if e.is_infinite() => g.is_infinite() && sign,
            // A zero that is one before rounding: its sign is that of the limit.
            _ if value == 0.0 => sign && (g == 0.0 || finite),
            _ => finite || (g - value).abs() <= unit * value.abs(),
        }
    };
    (near || !finite) && part(0) && part(1)
}

/// Ops of which a product of large parts may overflow, although the result does not.
const PRODUCTS: [&str; 12] =
    ["addcdiv", "addcmul", "addmm", "baddbmm", "bmm", "cumprod", "dot", "mm", "mul", "mv", "prod", "square"];
/// The largest finite part for these, and for ops that add and scale.
const MODERATE: [f64; 2] = [1e9, 1e30];
/// Parts at the ends of the range and beyond.
const PARTS: [f64; 11] =
    [0.0, -0.0, 1.0, -1.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e30, -1e-30, 1e-45, 3e38];

fn parts(subject: &Subject<'_>) -> Steps {
    let mut judged = 0;
    for (nth, sample) in subject.samples.iter().enumerate() {
        let mut inputs = subject.inputs(nth, sample);
        let mut array = 0;
        crate::inputs::map_arrays(&mut inputs, |all| {
            let is_part = arguments::dtypes(subject.def).contains(&all.dtype);
            array += 1;
            if is_part {
                let most = match subject.def {
                    def if PRODUCTS.contains(&def.name()) => MODERATE[0],
                    def if def.is(OpFlags::EXACT) => f64::INFINITY,
                    _ => MODERATE[1],
                };
                *all = Array::new(all.dtype, all.sizes.clone(), extreme(all, 17 * nth + 37 * array, most));
            }
        });
        let what = format!("sample {nth} of extreme parts");
        let checked = (|| {
            let Ok(expected) = Judged::of(subject.def.name(), &inputs) else { return Ok(false) };
            let prepared = subject.place(&inputs, Arrangement::Contiguous)?;
            let made = subject.call(&prepared, Out::New).map_err(|error| subject.context.refused(error))?;
            let matrices = PRODUCTS.contains(&subject.def.name()) && !is_elementwise(subject.def);
            let expected = expected.within_range();
            if matrices { expected.but_finite() } else { expected }.check(&made)?;
            Ok(true)
        })();
        judged += usize::from(within(what, checked)?);
    }
    subject.some(judged)
}

/// Whether the op computes each element by itself: where products are added, the order of additions and of scaling decides
/// which parts become NaN.
fn is_elementwise(def: &OpDef) -> bool {
    matches!(def.rule, Rule::Elementwise(..))
}

/// The elements of an array, replaced by all pairs of parts from `first` on, finite ones of at most `most`.
fn extreme(array: &Array, first: usize, most: f64) -> Vec<Number> {
    let count = PARTS.len();
    let element = |nth: usize| {
        let at = (first + 7 * nth) % (count * count);
        let part = |at: usize| if PARTS[at].is_finite() { PARTS[at].min(most) } else { PARTS[at] };
        let (re, im) = (part(at / count), part(at % count));
        let number = if array.dtype.is_complex() { Number::Complex(re, im) } else { Number::Float(re) };
        number.cast(array.dtype)
    };
    (0..array.numel()).map(element).collect()
}
