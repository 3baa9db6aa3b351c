//! Values of composite tensors that differ from the samples' in more than their digits: values that cancel or are equal, of every
//! magnitude, zeros of both signs, and for element-wise kernels each pair of extremes.

use super::kernel::{Kind, Subject, Tally};
use super::layout;
use crate::array::{Array, Number, wrapped};
use crate::compare;
use crate::extremes;
use crate::families::placements::{self, Call, Entries};
use crate::families::{Context, is_in, tensors};
use crate::inputs;
use crate::known_layouts::{self, Form, Known};
use crate::oracle::{self, Inputs};
use crate::outcome::{Failure, Steps};
use keyway::DType;
use keyway::ops::def::OpFlags;
use keyway::ops::linalg;
use keyway::ops::sample::{Role, Sample, SampleArg};

/// Samples.
const KINDS: usize = 4;

/// Values of a dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distribution {
    /// Small ones of both signs: sums of few of them are exactly 0.
    Cancelling,
    /// One.
    Equal,
    /// Positive floats of all magnitudes whose squares are finite.
    Wide,
    /// Integers with any bits set.
    Bits,
    /// 1 and, in composite tensors, -0 as a stored element.
    Zeros,
}

/// The generator of drawn values: Knuth's, whose upper bits are the random ones.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.0 >> 32
    }
}

impl Distribution {
    const ALL: [Distribution; 5] = [
        Distribution::Cancelling,
        Distribution::Equal,
        Distribution::Wide,
        Distribution::Bits,
        Distribution::Zeros,
    ];

    /// Whether a kernel is called with it.
    fn suits(self, subject: &Subject<'_>) -> bool {
        let float = subject.dtype().is_float();
        match self {
            Distribution::Cancelling | Distribution::Equal => true,
            // Of element-wise kernels the extremes have such values.
            Distribution::Wide => float && !subject.is_pointwise(),
            Distribution::Bits => !float && subject.def.is_some_and(|def| is_in(def, &[linalg::ALL])),
            Distribution::Zeros => float && known_layouts::find(subject.layout).is_some(),
        }
    }

    fn draw(self, dtype: DType, draws: &mut Draws) -> Number {
        let bits = draws.next();
        let unsigned = dtype.integer_range().is_some_and(|(low, _)| low == 0);
        match self {
            Distribution::Cancelling => {
                let magnitude = [1.0, 2.0, 3.0][(bits % 3) as usize];
                let negative = bits & 8 == 0 && !unsigned;
                Number::Float(if negative { -magnitude } else { magnitude }).cast(dtype)
            }
            Distribution::Equal => Number::Float(3.0).cast(dtype),
            Distribution::Wide => {
                let most = match dtype {
                    DType::F16 => 6,
                    DType::F64 => 400,
                    _ => 50,
                };
                let exponent = (bits % (2 * most + 1)) as i32 - most as i32;
                Number::Float((1.0 + (bits >> 16) as f64 / 65_536.0) * 2f64.powi(exponent)).cast(dtype)
            }
            Distribution::Bits => Number::Int(wrapped(i128::from(bits << 32 | bits), dtype)),
            Distribution::Zeros if bits & 1 == 0 => Number::Float(-0.0),
            Distribution::Zeros => Number::Float(1.0),
        }
    }

    /// The inputs of a sample, its tensors under test with these values.
    fn fill(self, subject: &Subject<'_>, sample: &Sample) -> Inputs {
        let mut inputs = subject.inputs(sample, 0);
        let mut roles = tensors(sample).map(|t| t.role);
        let mut draws = Draws(subject.context.seed + 1);
        inputs::map_arrays(&mut inputs, |array| {
            if roles.next() == Some(Role::Tested) {
                let dtype = array.dtype;
                array.values.iter_mut().for_each(|value| *value = self.draw(dtype, &mut draws));
            }
        });
        inputs
    }
}

/// Runs a case of the family.
///
/// # Errors
/// A wrong result.
pub fn run(context: &Context<'_>) -> Steps {
    if let Some(subject) = layout::Subject::of(context)? {
        return conversions(&subject);
    }
    let subject = Subject::of(context)?;
    let mut tally = Tally::default();
    for kind in subject.kinds(KINDS)? {
        for distribution in Distribution::ALL.into_iter().filter(|of| of.suits(&subject)) {
            distributed(&subject, &kind, distribution, &mut tally)?;
        }
    }
    if subject.is_pointwise() {
        pairs(&subject, &mut tally)?;
    }
    tally.any()
}

/// The forms of the entries with which values of a distribution differ.
fn forms(subject: &Subject<'_>, distribution: Distribution) -> Vec<(Form, Entries)> {
    let known = known_layouts::find(subject.layout);
    match (distribution, known) {
        (Distribution::Zeros, _) => vec![(Form::StoredZeros, Entries::Given)],
        (Distribution::Cancelling, Some(Known::Coo)) => {
            vec![(Form::Coalesced, Entries::Some), (Form::Cancelling, Entries::Some)]
        }
        (_, Some(_)) => vec![(Form::Coalesced, Entries::Some)],
        (_, None) => placements::forms(subject.layout).to_vec(),
    }
}

fn distributed(subject: &Subject<'_>, kind: &Kind, distribution: Distribution, tally: &mut Tally) -> Steps {
    let given = distribution.fill(subject, &kind.sample);
    for (turn, form) in forms(subject, distribution).into_iter().enumerate() {
        for &choice in &kind.choices {
            let mut inputs = given.clone();
            if distribution == Distribution::Zeros {
                // A divisor that is not stored differs from one that is 0.
                only_composite_zeros(&mut inputs, &kind.sample, choice);
            }
            let how = (form, choice, turn + choice);
            let placed = placements::composite(subject.layout, &kind.sample, &inputs, how, subject.device)?;
            let Some(placed) = placed else { continue };
            // The largest of many addends of one sign determines the digits of their sum.
            tally.count(subject.judge_with(&kind.sample, &placed, 4.0, |expected, made| {
                signs(subject, form.0, &placed, expected, made)
            })?);
        }
    }
    Ok(())
}

/// Replaces the zeros of tensors that remain strided.
fn only_composite_zeros(inputs: &mut Inputs, sample: &Sample, choice: usize) {
    let chosen = placements::chosen(sample, choice);
    let mut nth = 0;
    inputs::map_arrays(inputs, |array| {
        if !chosen.contains(&nth) && array.dtype.is_float() {
            let one = |value: Number| if value.truth() { value } else { Number::Float(1.0) };
            *array = array.map(array.dtype, one);
        }
        nth += 1;
    });
}

/// The signs of zeros at the coordinates that every composite argument of an element-wise kernel stores as a single entry.
fn signs(
    subject: &Subject<'_>,
    form: Form,
    placed: &Call,
    expected: &[Array],
    made: &[keyway::Tensor],
) -> Result<(), Failure> {
    let flagged = subject.def.is_some_and(|def| def.is(OpFlags::SIGNED_ZEROS));
    if !flagged || form != Form::StoredZeros {
        return Ok(());
    }
    let mut expected = expected.to_vec();
    for array in &mut expected {
        if placed.stored.iter().any(|stored| stored.len() != array.numel()) {
            return Ok(());
        }
        for (nth, value) in array.values.iter_mut().enumerate() {
            if placed.stored.iter().any(|stored| !stored[nth]) {
                *value = Number::Any;
            }
        }
    }
    compare::zeros(&expected, made)
}

/// Each combination of extreme values, in tensors of a shape that the layout holds.
fn pairs(subject: &Subject<'_>, tally: &mut Tally) -> Steps {
    let Some((def, oracle)) = subject.def.and_then(|def| Some((def, oracle::find(def.name())?))) else {
        return Ok(());
    };
    for (nth, set) in extremes::sets(def).into_iter().enumerate() {
        let Some(inputs) = extremes::of_set(def, oracle, subject.dtype(), nth) else { continue };
        for finite in [false, true] {
            let mut any = false;
            for choice in 0..placements::choices(&set) {
                let values = allowed(subject, &set, &inputs, choice, finite);
                let Some((sample, values)) = shaped(subject, &set, &values)? else { continue };
                let forms: &[Form] = match known_layouts::find(subject.layout) {
                    Some(_) => &[Form::Coalesced, Form::StoredZeros],
                    None => &[Form::Coalesced],
                };
                for &form in forms {
                    let how = ((form, Entries::Given), choice, choice);
                    let placed =
                        placements::composite(subject.layout, &sample, &values, how, subject.device)?;
                    let Some(placed) = placed else { continue };
                    any = true;
                    tally.count(subject.judge_with(&sample, &placed, 1.0, |expected, made| {
                        signs(subject, form, &placed, expected, made)
                    })?);
                }
            }
            // A layout may refuse values that are not finite.
            if any {
                break;
            }
        }
    }
    Ok(())
}

/// The combinations that a composite tensor can represent: a sparse one does not distinguish unstored elements from others, so
/// that the results there must be 0 whatever the other values are; other combinations are replaced by ones. With `finite`, those
/// with infinities and NaN are too.
fn allowed(subject: &Subject<'_>, set: &Sample, inputs: &Inputs, choice: usize, finite: bool) -> Inputs {
    let chosen = placements::chosen(set, choice);
    let sparse = known_layouts::find(subject.layout).is_some();
    let arrays = placements::arrays(inputs);
    let count = arrays.first().map_or(0, |array| array.numel());
    let expected =
        oracle::find(subject.entry.name).and_then(|oracle| oracle(inputs).ok()).unwrap_or_default();
    let keeps = |at: usize| {
        let of = |array: &Array| array.values.get(at).copied().unwrap_or(Number::Any);
        let values: Vec<Number> = arrays.iter().map(|array| of(array)).collect();
        let infinite = values.iter().any(|value| !value.float().is_finite());
        let unstored = values.iter().enumerate().any(|(nth, value)| chosen.contains(&nth) && !value.truth());
        let nonzero = expected.iter().any(|array| of(array).truth() || of(array) == Number::Any);
        !(finite && infinite || sparse && unstored && (infinite || nonzero))
    };
    let kept: Vec<bool> = (0..count).map(keeps).collect();
    let mut changed = inputs.clone();
    inputs::map_arrays(&mut changed, |array| {
        let one = Number::Int(1).cast(array.dtype);
        array.values.iter_mut().zip(&kept).filter(|(_, kept)| !**kept).for_each(|(value, _)| *value = one);
    });
    changed
}

/// The values, repeated from the first on, in the first shape of as many elements that the layout holds.
fn shaped(subject: &Subject<'_>, set: &Sample, inputs: &Inputs) -> Steps<Option<(Sample, Inputs)>> {
    let count = placements::arrays(inputs).first().map_or(0, |array| array.numel());
    let side = (1..=count).find(|side| side * side >= count).unwrap_or(1);
    for sizes in [vec![count.div_ceil(8), 8], vec![side, side], vec![count]] {
        let held = keyway::dispatcher::layouts::accepts(subject.layout, subject.device, &sizes);
        if count == 0 || !held.map_err(keyway::Error::from)? {
            continue;
        }
        let mut sample = set.clone();
        for arg in &mut sample.args {
            if let SampleArg::Tensor(t) = arg {
                t.sizes.clone_from(&sizes);
            }
        }
        let mut inputs = inputs.clone();
        inputs::map_arrays(&mut inputs, |array| {
            let values = array.values.iter().copied().cycle().take(sizes.iter().product()).collect();
            *array = Array::new(array.dtype, sizes.clone(), values);
        });
        return Ok(Some((sample, inputs)));
    }
    Ok(None)
}

/// Conversions of extreme values, and of values of all magnitudes; a layout may refuse those that are not finite, or large.
fn conversions(subject: &layout::Subject<'_>) -> Steps {
    for shape in subject.shapes()? {
        // The patterns that the layout holds.
        for held in subject.fillings(&shape)? {
            let mut special = extremes::values(shape.dtype);
            let finite: Vec<Number> = special.iter().copied().filter(|v| v.float().is_finite()).collect();
            if !shape.is_exact() {
                // No bound holds of a value that is not finite.
                special.clone_from(&finite);
            }
            let mut draws = Draws(subject.context.seed + 1);
            let mut of = |distribution: Distribution| -> Vec<Number> {
                held.values.iter().map(|_| distribution.draw(shape.dtype, &mut draws)).collect()
            };
            let mut all = vec![("small values", of(Distribution::Cancelling))];
            all.push(("equal values", of(Distribution::Equal)));
            all.push(("values of all magnitudes", of(Distribution::Wide)));
            all.push(("values and -0", of(Distribution::Zeros)));
            for start in (0..special.len()).step_by(held.numel().clamp(1, 5)) {
                let from = |values: &[Number]| {
                    values.iter().copied().cycle().skip(start).take(held.numel()).collect()
                };
                all.push(("extreme values", from(&special)));
                all.push(("extreme finite values", from(&finite)));
            }
            for (name, values) in all {
                let zero = Number::Int(0).cast(shape.dtype);
                let masked = held.values.iter().zip(values);
                let masked = masked.map(|(held, value)| if held.truth() { value } else { zero }).collect();
                let values = Array::new(shape.dtype, shape.sizes.clone(), masked);
                if subject.holds(&shape, &values)? {
                    subject.round_trip(name, &shape, &values)?;
                } else if ["small values", "equal values"].contains(&name) && shape.is_exact() {
                    let expected = "a tensor, as with other values of the same shape";
                    return Err(
                        Failure::new(format!("the conversion of {name}"), expected, "a refusal").into()
                    );
                }
            }
        }
    }
    Ok(())
}
