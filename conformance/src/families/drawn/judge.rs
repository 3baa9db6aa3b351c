//! Checks one drawn call. The oracle computes some of the results, in f64 or exactly: the corners and others that the seed
//! selects, from the elements that they depend on. All results of products are also checked by Freivalds' method.

use super::call::{Drawn, Form, Kind};
use super::source::Source;
use super::tensors::{Large, Result};
use crate::array::{Array, Number, unravelled, wrapped};
use crate::call::{Prepared, is_of_arguments, last};
use crate::compare::{self, Tolerance};
use crate::families::{Context, factor, tensors};
use crate::inputs;
use crate::oracle::{Inputs, Value};
use crate::outcome::{Failure, Mismatch, Steps, Stop};
use keyway::dispatcher::op::Out;
use keyway::ops::sample::{Fill, Role, Sample, SampleArg, plain};
use keyway::{DType, Tensor};

/// The number of results of an element-wise op that are compared.
const ELEMENTS: usize = 8_192;
/// The approximate number of elements that the checked results of other ops depend on.
const TERMS: usize = 500_000;
/// The minimum and maximum number of these results.
const FEWEST: usize = 16;
const MAX_LINES: usize = 512;
/// The factor of the tolerance for results with many addends; and for f16 and bf16, which are rounded at the end.
const LOOSE: f64 = 100.0;
const LOOSE_HALF: f64 = 4.0;

/// Expected values of some results.
struct Expected {
    /// The row-major indices in the result.
    positions: Vec<usize>,
    /// The expected values.
    values: Array,
    /// The tolerances, if not the usual ones.
    allowed: Option<Vec<f64>>,
}

/// Makes the call and checks its results.
///
/// # Errors
/// The failure, or the reason why a call cannot be judged.
pub fn judge(context: &Context<'_>, sample: &Sample, drawn: &Drawn) -> Steps {
    let device = context.target.device;
    let fills = fills(context, sample, drawn);
    let mut placed = Vec::new();
    for (nth, (fill, dtype)) in fills.iter().enumerate() {
        let (sizes, operand) = (drawn.argument(nth), &drawn.operands[nth]);
        let expanded = if operand.expanded { &operand.broadcast[..] } else { &[] };
        let element = |position| drawn.element(fill, *dtype, nth, position);
        placed.push(Large::new((&sizes, expanded), operand.order, *dtype, device, element)?);
    }
    let expected = expected(context, sample, drawn, &placed)?;
    let (sizes, dtype) = (drawn.result(), expected.values.dtype);
    let arguments = arguments(context, sample, drawn, &placed.iter().map(bare).collect::<Vec<_>>());
    let prepared = Prepared::of_values(arguments);
    let tensors: Vec<Tensor> = placed.iter().map(|p| p.tensor.clone()).collect();
    let fits = tensors.first().is_some_and(|t| t.dtype() == dtype && t.shape() == sizes);
    let given = match drawn.form {
        Form::Out(order) => Some(Large::garbage(&sizes, order, dtype, device)?),
        _ => None,
    };
    let in_place = drawn.form == Form::InPlace && fits;
    let out: Vec<_> = given.iter().map(|out| out.tensor.as_ref()).collect();
    let out = if in_place {
        Out::InPlace
    } else if given.is_some() {
        Out::Given(&out)
    } else {
        Out::New
    };
    let made = prepared.call_entry(context.entry()?, &tensors, out);
    describe(drawn, &placed, given.as_ref(), in_place);
    let made = made.map_err(|error| match is_of_arguments(&error) {
        true => Stop::Skipped(format!("the op does not take such sizes: {error}")),
        false => context.refused(error),
    })?;
    let result = match &given {
        Some(out) => out.tensor.clone(),
        None if in_place => tensors[0].clone(),
        None => made.into_iter().next().ok_or_else(|| Failure::new("the call", "a result", "none"))?,
    };
    for (nth, input) in placed.iter().enumerate() {
        input.check(&format!("input tensor {nth}"), in_place && nth == 0)?;
    }
    if let Some(out) = &given {
        out.check("the output", true)?;
    }
    let result = Result::of(&result, &sizes, dtype)?;
    compare(context, sample, &sizes, &expected, &result)?;
    if dtype.is_float() && matches!(drawn.kind, Kind::Product | Kind::Batched | Kind::Linear) {
        freivalds(drawn, dtype, &placed, &result)?;
    }
    Ok(())
}

/// The description of the call in the report, with offsets and form.
fn describe(drawn: &Drawn, placed: &[Large], out: Option<&Large>, in_place: bool) {
    let Some(mut text) = last::words() else { return };
    if let Some(out) = out {
        text += &format!(
            ", out={} {:?} strides {:?}",
            out.tensor.dtype(),
            out.tensor.shape(),
            out.tensor.strides()
        );
    }
    if in_place {
        text += ", in place";
    }
    let offsets: Vec<usize> = drawn.operands.iter().map(|operand| operand.order.offset).collect();
    if placed.len() == offsets.len() && offsets.iter().any(|&offset| offset > 0) {
        text += &format!(", from elements {offsets:?}");
    }
    last::describe(format!("{text}; values: {:?}", drawn.values));
}

/// The fillings of the tensors, and their dtypes.
fn fills(context: &Context<'_>, sample: &Sample, drawn: &Drawn) -> Vec<(Fill, DType)> {
    if drawn.kind != Kind::Pointwise {
        return vec![(Fill::Uniform(-2.0, 2.0), context.dtype()); drawn.operands.len()];
    }
    let dtype = |role| match role {
        Role::Tested => context.dtype(),
        Role::Fixed(dtype) => dtype,
    };
    tensors(sample).map(|t| (t.fill.clone(), dtype(t.role))).collect()
}

/// A tensor argument without its elements.
fn bare(of: &Large) -> Array {
    Array::new(of.tensor.dtype(), of.tensor.shape(), Vec::new())
}

/// The arguments of the call with `tensors` as its tensor arguments.
fn arguments(context: &Context<'_>, sample: &Sample, drawn: &Drawn, tensors: &[Array]) -> Vec<Value> {
    let arrays = || tensors.iter().cloned().map(Value::Array);
    let list = |dims: &[usize]| Value::Ints(dims.iter().map(|&dim| dim as i64).collect());
    match drawn.kind {
        Kind::Pointwise => {
            let mut arrays = arrays();
            // Used only for the non-tensor arguments.
            let small = sample.args.iter().map(|arg| match arg {
                SampleArg::Tensor(_) => plain(&[]),
                other => other.clone(),
            });
            let mut inputs = inputs::of_sample(&small.collect::<Vec<_>>(), context.dtype(), 0);
            inputs.0.iter_mut().filter(|value| matches!(value, Value::Array(_))).for_each(|value| {
                if let Some(array) = arrays.next() {
                    *value = array;
                }
            });
            inputs.0
        }
        Kind::Reduction(keepdim) => {
            let correction = (keepdim == 3).then_some(Value::Int(1));
            arrays().chain([list(&drawn.dims)]).chain(correction).chain([Value::Bool(false)]).collect()
        }
        Kind::Lines => arrays().chain([Value::Int(drawn.dims[0] as i64)]).collect(),
        Kind::Normalized(_) => {
            let width = list(&drawn.sizes[drawn.sizes.len() - 1..]);
            let rest = arrays().skip(1).chain([Value::Float(1e-5)]);
            arrays().take(1).chain([width]).chain(rest).collect()
        }
        Kind::Product | Kind::Batched | Kind::Linear => arrays().collect(),
        Kind::Convolution => {
            let both = |n: usize| list(&[n, n]);
            let [stride, padding] = [drawn.sizes[7], drawn.sizes[8]];
            let moves = [both(stride), both(padding), both(1), Value::Int(drawn.sizes[3] as i64)];
            arrays().chain(moves).collect()
        }
    }
}

/// Row-major indices into a result: all of a small result, otherwise its corners and others that the seed selects.
fn positions(sizes: &[usize], most: usize, seed: u64) -> Vec<usize> {
    let count: usize = sizes.iter().product();
    if count <= most {
        return (0..count).collect();
    }
    let mut source = Source::of(&[seed, 0x706C_6163]);
    let corner = |nth: usize| {
        sizes
            .iter()
            .enumerate()
            .fold(0, |at, (dim, &size)| at * size + if nth >> dim & 1 == 1 { size - 1 } else { 0 })
    };
    let corners = (0..(1 << sizes.len()).min(most)).map(corner);
    let mut all: Vec<usize> = corners.chain((0..most).map(|_| source.below(count))).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn expected(context: &Context<'_>, sample: &Sample, drawn: &Drawn, placed: &[Large]) -> Steps<Expected> {
    let sizes = drawn.result();
    match drawn.kind {
        Kind::Pointwise => {
            let positions = positions(&sizes, ELEMENTS, drawn.seed);
            let coordinates: Vec<Vec<usize>> =
                positions.iter().map(|&position| unravelled(&sizes, position)).collect();
            let of = |large: &Large| {
                let values = coordinates.iter().map(|at| large.at(at)).collect();
                Array::new(large.tensor.dtype(), [coordinates.len()], values)
            };
            let arrays: Vec<Array> = placed.iter().map(of).collect();
            let made = context.expected(&Inputs(arguments(context, sample, drawn, &arrays)))?;
            one(positions, made)
        }
        Kind::Reduction(_) | Kind::Lines | Kind::Normalized(_) => lines(context, sample, drawn, placed),
        Kind::Product | Kind::Batched | Kind::Linear => Ok(products(context, drawn, placed)),
        Kind::Convolution => Ok(convolution(context, drawn, placed)),
    }
}

fn one(positions: Vec<usize>, made: Vec<Array>) -> Steps<Expected> {
    let mut made = made.into_iter();
    match (made.next(), made.next()) {
        (Some(values), None) if values.numel() == positions.len() => {
            let values = Array { sizes: vec![positions.len()], ..values };
            Ok(Expected { positions, values, allowed: None })
        }
        _ => Err(Stop::Skipped("the oracle returns no result for each index".to_string())),
    }
}

/// The number of results that are compared, given `terms` addends each.
fn count(terms: usize) -> usize {
    (TERMS / terms.max(1)).clamp(FEWEST, MAX_LINES)
}

/// Some rows along the dimensions of the call, as a matrix for the oracle.
fn lines(context: &Context<'_>, sample: &Sample, drawn: &Drawn, placed: &[Large]) -> Steps<Expected> {
    let (input, sizes) = (&placed[0], &drawn.sizes);
    let dims = match drawn.kind {
        Kind::Normalized(_) => vec![sizes.len() - 1],
        _ => drawn.dims.clone(),
    };
    let rest: Vec<usize> = (0..sizes.len()).filter(|dim| !dims.contains(dim)).collect();
    let of = |dims: &[usize]| dims.iter().map(|&dim| sizes[dim]).collect::<Vec<_>>();
    let (along, across) = (of(&dims), of(&rest));
    let terms: usize = along.iter().product();
    let rows = positions(&across, (TERMS / terms.max(1)).clamp(1, MAX_LINES), drawn.seed);
    let mut values = Vec::with_capacity(rows.len() * terms);
    let mut each = Vec::with_capacity(rows.len() * terms);
    let mut at = vec![0; sizes.len()];
    for &row in &rows {
        rest.iter().zip(unravelled(&across, row)).for_each(|(&dim, index)| at[dim] = index);
        for term in 0..terms {
            dims.iter().zip(unravelled(&along, term)).for_each(|(&dim, index)| at[dim] = index);
            values.push(input.at(&at));
            each.push(crate::array::flat(sizes, &at));
        }
    }
    let matrix = Array::new(input.tensor.dtype(), [rows.len(), terms], values);
    let arrays: Vec<Array> = [matrix].into_iter().chain(placed[1..].iter().map(Large::array)).collect();
    let as_matrix = Drawn { sizes: vec![rows.len(), terms], dims: vec![1], ..drawn.clone() };
    let made = context.expected(&Inputs(arguments(context, sample, &as_matrix, &arrays)))?;
    one(if matches!(drawn.kind, Kind::Reduction(_)) { rows } else { each }, made)
}

/// The approximate largest number of a dtype.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 65_504.0,
        DType::BF16 | DType::F32 => 3.3e38,
        _ => f64::MAX,
    }
}

/// The unit roundoff of the dtype of the computation, and the relative error of a result.
fn precision(dtype: DType) -> [f64; 2] {
    [if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) }, Tolerance::of(dtype).rtol]
}

/// A sum of products: exact for integers, otherwise with the sum of the absolute values of the addends, which bounds the
/// rounding error.
struct Sum {
    exact: i128,
    float: f64,
    size: f64,
}

impl Sum {
    fn of(terms: impl Iterator<Item = (Number, Number)>) -> Sum {
        let mut sum = Sum { exact: 0, float: 0.0, size: 0.0 };
        for (a, b) in terms {
            if let (Number::Int(a), Number::Int(b)) = (a, b) {
                sum.exact = sum.exact.wrapping_add(a.wrapping_mul(b));
            } else {
                let product = a.float() * b.float();
                sum.float += product;
                sum.size += product.abs();
            }
        }
        sum
    }

    fn number(&self, dtype: DType) -> Number {
        if dtype.is_integer() { Number::Int(wrapped(self.exact, dtype)) } else { Number::Float(self.float) }
    }
}

fn products(context: &Context<'_>, drawn: &Drawn, placed: &[Large]) -> Expected {
    let (dtype, sizes) = (context.dtype(), drawn.result());
    let batched = usize::from(drawn.kind == Kind::Batched);
    let terms = drawn.sizes[batched + 1];
    let positions = positions(&sizes, count(terms), drawn.seed);
    let [unit, relative] = precision(dtype);
    let (mut values, mut allowed) = (Vec::new(), Vec::new());
    for at in positions.iter().map(|&position| unravelled(&sizes, position)) {
        let (row, column) = (at[batched], at[batched + 1]);
        let lead = &at[..batched];
        let pair = |k: usize| {
            let right = if drawn.kind == Kind::Linear { [column, k] } else { [k, column] };
            (placed[0].at(&[lead, &[row, k]].concat()), placed[1].at(&[lead, &right].concat()))
        };
        let mut sum = Sum::of((0..terms).map(pair));
        if drawn.kind == Kind::Linear {
            let bias = placed[2].at(&[column]);
            sum.exact = sum.exact.wrapping_add(bias.int());
            sum.float += bias.float();
            sum.size += bias.float().abs();
            // The decomposition rounds the product before it adds the bias.
            allowed.push(relative * bias.float().abs());
        } else {
            allowed.push(0.0);
        }
        if let Some(last) = allowed.last_mut() {
            *last += relative * sum.float.abs() + chain(terms) * unit * sum.size;
        }
        values.push(sum.number(dtype));
    }
    let values = Array::new(dtype, [values.len()], values);
    Expected { positions, values, allowed: Some(allowed) }
}

/// Error bound of a sum of `terms` addends, in units of roundoff of the sum of absolute values.
fn chain(terms: usize) -> f64 {
    16.0 + 4.0 * (terms as f64).sqrt()
}

fn convolution(context: &Context<'_>, drawn: &Drawn, placed: &[Large]) -> Expected {
    let (dtype, sizes) = (context.dtype(), drawn.result());
    let &[_, inputs, outputs, _, height, width, kernel, stride, padding] = &drawn.sizes[..] else {
        return Expected { positions: Vec::new(), values: Array::new(dtype, [0], Vec::new()), allowed: None };
    };
    let terms = inputs * kernel * kernel;
    let positions = positions(&sizes, count(terms), drawn.seed);
    let [unit, relative] = precision(dtype);
    let (mut values, mut allowed) = (Vec::new(), Vec::new());
    for at in positions.iter().map(|&position| unravelled(&sizes, position)) {
        let group = at[1] / outputs;
        let read = |at: usize, tap: usize, size: usize| {
            (at * stride + tap).checked_sub(padding).filter(|&at| at < size)
        };
        let pair = |term: usize| {
            let (channel, y, x) = (term / (kernel * kernel), term / kernel % kernel, term % kernel);
            let (row, column) = (read(at[2], y, height)?, read(at[3], x, width)?);
            let image = placed[0].at(&[at[0], group * inputs + channel, row, column]);
            Some((image, placed[1].at(&[at[1], channel, y, x])))
        };
        let mut sum = Sum::of((0..terms).filter_map(pair));
        let bias = placed[2].at(&[at[1]]);
        sum.exact = sum.exact.wrapping_add(bias.int());
        sum.float += bias.float();
        // Elements are at most 2; those of a tile are added before they are multiplied (Winograd).
        let of_tiles = 64.0 * (terms as f64).sqrt() * 4.0;
        let rounded = relative * (sum.float.abs() + bias.float().abs());
        allowed.push(rounded + unit * (chain(terms) * (sum.size + 2.0) + of_tiles));
        values.push(sum.number(dtype));
    }
    let values = Array::new(dtype, [values.len()], values);
    Expected { positions, values, allowed: Some(allowed) }
}

/// Compares the checked results.
fn compare(
    context: &Context<'_>,
    sample: &Sample,
    sizes: &[usize],
    expected: &Expected,
    result: &Result,
) -> Steps {
    let Expected { positions, values, allowed } = expected;
    let got: Option<Vec<Number>> = positions.iter().map(|&position| result.at(position)).collect();
    let Some(got) = got else {
        let what = format!("the result holds bytes that are no {}", values.dtype);
        return Err(Failure::new(what, "valid elements", "invalid bytes").into());
    };
    let (dtype, def) = (values.dtype, context.def()?);
    let got = Array::new(dtype, values.sizes.clone(), got);
    let all: usize = sizes.iter().product();
    let with_case = |mut failure: Failure| {
        if let Some(mismatch) = &mut failure.mismatch {
            let nth = mismatch.element.first().copied().unwrap_or(0);
            mismatch.element = unravelled(sizes, positions[nth]);
            failure.what =
                format!("{} of {} compared elements, of {all}, are wrong", mismatch.wrong, mismatch.of);
        }
        Stop::from(failure)
    };
    let Some(allowed) = allowed else {
        let half = matches!(dtype, DType::F16 | DType::BF16);
        let factor = factor(def, sample);
        let compared = match super::draw::kind(def) {
            Some(Kind::Pointwise) => compare::array(0, values, &got, Tolerance::of(dtype).times(factor)),
            _ => compare::piece(0, values, &got, factor, if half { LOOSE_HALF } else { LOOSE }),
        };
        return compared.map_err(with_case);
    };
    let off = |nth: usize| match (values.values[nth], got.values[nth]) {
        (Number::Float(e), Number::Float(g)) if crate::array::round_to(e, dtype) == g => 0.0,
        (Number::Float(e), Number::Float(g)) => {
            let off = (e - g).abs() / allowed[nth].max(f64::MIN_POSITIVE);
            if off.is_nan() { f64::INFINITY } else { off }
        }
        (expected, got) if expected == got => 0.0,
        _ => f64::INFINITY,
    };
    let wrong: Vec<usize> = (0..positions.len()).filter(|&nth| off(nth) > 1.0).collect();
    let Some(&worst) = wrong.iter().max_by(|&&a, &&b| off(a).total_cmp(&off(b))) else { return Ok(()) };
    let text = |number| crate::encode::text(number, dtype);
    Err(with_case(Failure {
        what: String::new(),
        expected: text(values.values[worst]),
        got: text(got.values[worst]),
        mismatch: Some(Mismatch {
            output: 0,
            element: vec![worst],
            wrong: wrong.len(),
            of: positions.len(),
            rtol: 0.0,
            atol: allowed[worst],
        }),
    }))
}

/// Freivalds' check of a product C = A B ("Probabilistic machines can use less running time", IFIP 1977): compares C r with
/// A (B r) for a vector r of random signs. A wrong row of C is detected by at least half of all such vectors, at the cost
/// of three matrix-vector products. Rounding errors of a row are independent, so they grow with the square root of the
/// number of columns.
fn freivalds(drawn: &Drawn, dtype: DType, placed: &[Large], result: &Result) -> Steps {
    let batched = drawn.kind == Kind::Batched;
    let (batch, sizes) = if batched { (drawn.sizes[0], &drawn.sizes[1..]) } else { (1, &drawn.sizes[..]) };
    let &[n, k, m] = sizes else { return Ok(()) };
    let (a, b, c) = (placed[0].floats(), placed[1].floats(), result.floats());
    let bias = (drawn.kind == Kind::Linear).then(|| placed[2].floats());
    let mut source = Source::of(&[drawn.seed, 0x6672_6569]);
    let signs: Vec<f64> = (0..m).map(|_| if source.below(2) == 0 { -1.0 } else { 1.0 }).collect();
    let [unit, relative] = precision(dtype);
    let root = (m as f64).sqrt();
    for nth in 0..batch {
        let (a, b, c) = (&a[nth * n * k..][..n * k], &b[nth * k * m..][..k * m], &c[nth * n * m..][..n * m]);
        let (mut by_signs, mut sizes) = (vec![0.0; k], vec![0.0; k]);
        for (position, &value) in b.iter().enumerate() {
            // The weight of `linear` is transposed.
            let (term, column) =
                if bias.is_some() { (position % k, position / k) } else { (position / m, position % m) };
            by_signs[term] += value * signs[column];
            sizes[term] += value.abs();
        }
        let shift: f64 = bias.iter().flatten().zip(&signs).map(|(bias, sign)| bias * sign).sum();
        let of_bias: f64 = bias.iter().flatten().map(|bias| bias.abs()).fold(0.0, f64::max);
        for row in 0..n {
            let own = &a[row * k..][..k];
            let expected: f64 = own.iter().zip(&by_signs).map(|(a, b)| a * b).sum::<f64>() + shift;
            let size: f64 = own.iter().zip(&sizes).map(|(a, b)| a.abs() * b).sum::<f64>() / m as f64;
            let results = &c[row * m..][..m];
            let got: f64 = results.iter().zip(&signs).map(|(c, sign)| c * sign).sum();
            let squares: f64 = results.iter().map(|c| c * c).sum();
            // For columns of very different magnitude, the largest error of one is the error of all.
            let rounded = relative * (squares.sqrt() + of_bias * root);
            let allowed =
                8.0 * (rounded + chain(k) * unit * size * root.max(m as f64 / 8.0)) + f64::MIN_POSITIVE;
            let off = (expected - got).abs();
            // If the sum of absolute values overflows the dtype, an infinite result may be correct, and its row is not
            // checked further.
            let may_overflow = size * m as f64 + of_bias >= largest(dtype);
            if expected.is_finite()
                && (got.is_finite() || !may_overflow)
                && (!got.is_finite() || off > allowed)
            {
                let what = format!(
                    "row {row} of matrix {nth} times a vector of signs is not that of the factors (Freivalds)"
                );
                return Err(Failure::new(
                    what,
                    format!("{expected:e}, give or take {allowed:e}"),
                    format!("{got:e}"),
                )
                .into());
            }
        }
    }
    Ok(())
}
