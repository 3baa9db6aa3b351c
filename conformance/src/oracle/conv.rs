//! Convolutions: direct loops over the kernel taps.

use super::number::{float_total, overflows};
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Index, Indices, Number};

/// Stride, padding, dilation and groups: arguments 3 to 6.
struct Moves<'a> {
    stride: &'a [i64],
    padding: &'a [i64],
    dilation: &'a [i64],
    groups: usize,
}

impl Moves<'_> {
    fn of(inputs: &Inputs) -> Result<Moves<'_>, Unknown> {
        let groups =
            usize::try_from(inputs.int(6)?).map_err(|_| Unknown("a negative number of groups".into()))?;
        let moves =
            Moves { stride: inputs.ints(3)?, padding: inputs.ints(4)?, dilation: inputs.ints(5)?, groups };
        let positive = |list: &[i64]| list.iter().all(|&v| v > 0);
        if groups == 0 || !positive(moves.stride) || !positive(moves.dilation) {
            return Err(Unknown("a stride, a dilation or groups of 0".into()));
        }
        Ok(moves)
    }

    /// The output size in each spatial dimension.
    fn positions(&self, sizes: &[usize], kernel: &[usize]) -> Result<Vec<usize>, Unknown> {
        let lists = [self.stride, self.padding, self.dilation];
        if lists.iter().any(|list| list.len() != sizes.len()) || kernel.len() != sizes.len() {
            return Err(Unknown("lists that are not as long as there are spatial dimensions".into()));
        }
        (0..sizes.len())
            .map(|d| {
                let free =
                    sizes[d] as i64 + 2 * self.padding[d] - self.dilation[d] * (kernel[d] as i64 - 1) - 1;
                usize::try_from(free)
                    .map(|free| free / self.stride[d] as usize + 1)
                    .map_err(|_| Unknown("a kernel larger than the input".into()))
            })
            .collect()
    }

    /// The row-major index, in the input's spatial dimensions, that a kernel tap reads at an output position.
    fn read(&self, sizes: &[usize], position: &[usize], tap: &[usize]) -> Option<usize> {
        let mut read = 0;
        for (d, &size) in sizes.iter().enumerate() {
            let at = position[d] as i64 * self.stride[d] + tap[d] as i64 * self.dilation[d] - self.padding[d];
            read = read * size + usize::try_from(at).ok().filter(|&at| at < size)?;
        }
        Some(read)
    }
}

/// The sizes of an input, a weight and the output.
struct Sizes {
    input: Vec<usize>,
    weight: Vec<usize>,
    output: Vec<usize>,
}

/// Calls `each` with the row-major indices of all triples of output, weight and input elements: an output is the sum of the
/// products of its weights and inputs.
fn pairs(sizes: &Sizes, moves: &Moves<'_>, mut each: impl FnMut(usize, usize, usize)) {
    let [of_group, outputs] = [sizes.weight[1], sizes.weight[0] / moves.groups];
    let [input, kernel, output] = [&sizes.input, &sizes.weight, &sizes.output].map(|sizes| &sizes[2..]);
    let pixels: usize = input.iter().product();
    let taps: Vec<_> = Indices::new(kernel).collect();
    // For each output position the kernel taps that read a pixel, and the pixel.
    let read = |position: Index| -> Vec<(usize, usize)> {
        let pixel = |(t, tap): (usize, &Index)| Some((t, moves.read(input, &position, tap)?));
        taps.iter().enumerate().filter_map(pixel).collect()
    };
    let positions: Vec<_> = Indices::new(output).map(read).collect();
    for (sample, out) in (0..sizes.output[0]).flat_map(|n| (0..sizes.output[1]).map(move |c| (n, c))) {
        let group = out / outputs;
        for (position, read) in positions.iter().enumerate() {
            let result = (sample * sizes.output[1] + out) * positions.len() + position;
            for c in 0..of_group {
                let image = (sample * sizes.input[1] + group * of_group + c) * pixels;
                let weights = (out * of_group + c) * taps.len();
                read.iter().for_each(|(tap, pixel)| each(result, weights + tap, image + pixel));
            }
        }
    }
}

/// The sums of products over `pairs`: the index of the sum, and the factors. An element of the bias and one of `add` are
/// added if given.
fn summed(
    inputs: &Inputs,
    sizes: &Sizes,
    made: &[usize],
    numbers: impl Fn(usize, usize, usize) -> [usize; 3],
    [bias, add]: [Option<&Array>; 2],
) -> Result<Vec<Array>, Unknown> {
    let moves = Moves::of(inputs)?;
    let more = [(2, bias), (7, add)].into_iter().filter(|(_, given)| given.is_some()).map(|(i, _)| i);
    let dtype = inputs.promote(&[0, 1].into_iter().chain(more).collect::<Vec<_>>())?;
    let (a, b) = (inputs.array(0)?.cast(dtype).floats(), inputs.array(1)?.cast(dtype).floats());
    let mut terms: Vec<Vec<f64>> = vec![Vec::new(); made.iter().product()];
    pairs(sizes, &moves, |output, weight, input| {
        let [sum, first, second] = numbers(output, weight, input);
        terms[sum].push(a[first] * b[second]);
    });
    if let Some(bias) = bias.map(|bias| bias.cast(dtype).floats()) {
        let behind: usize = made[2..].iter().product();
        terms.iter_mut().enumerate().for_each(|(i, terms)| terms.push(bias[i / behind % bias.len()]));
    }
    if let Some(add) = add.map(|add| add.cast(dtype).floats()) {
        terms.iter_mut().zip(add).for_each(|(terms, add)| terms.push(add));
    }
    let values = terms.iter().map(|terms| float_total(dtype, terms)).collect();
    Ok(vec![Array::new(dtype, made, values)])
}

fn spatial(inputs: &Inputs, i: usize) -> Result<Vec<usize>, Unknown> {
    let sizes = inputs.ints(i)?.iter().map(|&n| usize::try_from(n));
    sizes.collect::<Result<_, _>>().map_err(|_| Unknown("a negative size".into()))
}

fn joined(first: usize, second: usize, rest: &[usize]) -> Vec<usize> {
    [first, second].iter().chain(rest).copied().collect()
}

/// Refuses channels that are not a multiple of the groups, or do not match the other tensor.
fn fits(sizes: &Sizes, groups: usize) -> Result<(), Unknown> {
    let fit = sizes.input[1] == sizes.weight[1] * groups
        && sizes.weight[0].is_multiple_of(groups)
        && sizes.output[1] == sizes.weight[0]
        && sizes.output[0] == sizes.input[0];
    if fit { Ok(()) } else { Err(Unknown("channels or batches that do not fit".into())) }
}

/// Refuses tensors without spatial dimensions.
fn images(inputs: &Inputs) -> Result<[&Array; 2], Unknown> {
    let both = [inputs.array(0)?, inputs.array(1)?];
    if both.iter().all(|a| a.ndim() >= 3) { Ok(both) } else { Err(Unknown("no images".into())) }
}

fn conv(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    convolution(inputs, None)
}

fn conv_act(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let made = convolution(inputs, inputs.optional_array(7)?)?.swap_remove(0);
    let activation: fn(f64) -> f64 = match inputs.str(8)? {
        "none" => |x| x,
        "relu" => |x| if x <= 0.0 { 0.0 } else { x },
        "relu6" => |x| x.clamp(0.0, 6.0),
        "hardswish" => |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0,
        "silu" => |x| x / (1.0 + (-x).exp()),
        other => return Err(Unknown(format!("there is no activation `{other}`"))),
    };
    let curved = matches!(inputs.str(8)?, "hardswish" | "silu");
    let values = made.values.iter().map(|value| match value {
        // Both the limit and the NaN of the formula occur in implementations.
        Number::Float(x) if curved && *x == f64::NEG_INFINITY => Number::Any,
        // The intermediate product with 6 may overflow.
        Number::Float(x) if curved && x.is_finite() && overflows(6.0 * x, made.dtype) => Number::Any,
        Number::Float(x) => Number::Float(activation(*x)),
        other => *other,
    });
    Ok(vec![Array::new(made.dtype, made.sizes.clone(), values.collect())])
}

fn convolution(inputs: &Inputs, add: Option<&Array>) -> Result<Vec<Array>, Unknown> {
    let ([input, weight], moves) = (images(inputs)?, Moves::of(inputs)?);
    let output =
        joined(input.sizes[0], weight.sizes[0], &moves.positions(&input.sizes[2..], &weight.sizes[2..])?);
    let sizes = Sizes { input: input.sizes.clone(), weight: weight.sizes.clone(), output: output.clone() };
    fits(&sizes, moves.groups)?;
    let bias = inputs.optional_array(2)?;
    if bias.is_some_and(|bias| bias.sizes != weight.sizes[..1]) {
        return Err(Unknown("a bias of another size".into()));
    }
    if add.is_some_and(|add| add.sizes != output) {
        return Err(Unknown("a tensor to add of another shape".into()));
    }
    summed(inputs, &sizes, &output, |o, w, i| [o, i, w], [bias, add])
}

fn conv_input_grad(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let ([grad, weight], moves) = (images(inputs)?, Moves::of(inputs)?);
    let input = joined(grad.sizes[0], weight.sizes[1] * moves.groups, &spatial(inputs, 2)?);
    let sizes = Sizes { input: input.clone(), weight: weight.sizes.clone(), output: grad.sizes.clone() };
    fits(&sizes, moves.groups)?;
    if moves.positions(&input[2..], &weight.sizes[2..])? != grad.sizes[2..] {
        return Err(Unknown("another number of output positions than the gradient has".into()));
    }
    summed(inputs, &sizes, &input, |o, w, i| [i, o, w], [None; 2])
}

fn conv_weight_grad(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let ([grad, input], moves) = (images(inputs)?, Moves::of(inputs)?);
    let weight = joined(grad.sizes[1], input.sizes[1] / moves.groups, &spatial(inputs, 2)?);
    let sizes = Sizes { input: input.sizes.clone(), weight: weight.clone(), output: grad.sizes.clone() };
    fits(&sizes, moves.groups)?;
    if moves.positions(&input.sizes[2..], &weight[2..])? != grad.sizes[2..] {
        return Err(Unknown("another number of output positions than the gradient has".into()));
    }
    summed(inputs, &sizes, &weight, |o, w, i| [w, o, i], [None; 2])
}

/// The ops of this family.
pub const ALL: Family = &[
    ("conv", conv),
    ("conv_act", conv_act),
    ("conv_input_grad", conv_input_grad),
    ("conv_weight_grad", conv_weight_grad),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;
    use keyway::DType;

    #[test]
    fn a_kernel_of_one_and_minus_one_gives_differences() {
        let array = |sizes: &[usize], values: &[f64]| {
            Value::Array(Array::new(DType::F64, sizes, values.iter().map(|&v| Number::Float(v)).collect()))
        };
        let ints = |v: i64| Value::Ints(vec![v]);
        let rest = [ints(2), ints(1), ints(1), Value::Int(1)];
        let tensors = [array(&[1, 1, 4], &[1.0, 3.0, 6.0, 10.0]), array(&[1, 1, 2], &[-1.0, 1.0])];
        let bias = array(&[1], &[100.0]);
        let made = conv(&Inputs(tensors.into_iter().chain([bias]).chain(rest).collect())).unwrap();
        // The windows 0 1 | 3 6 | 10 0, with zero padding.
        assert_eq!(made[0].floats(), [101.0, 103.0, 90.0]);
    }

    #[test]
    fn an_activation_comes_after_bias_and_added_tensor() {
        let array = |sizes: &[usize], values: &[f64]| {
            Value::Array(Array::new(DType::F64, sizes, values.iter().map(|&v| Number::Float(v)).collect()))
        };
        let made = |activation: &str| {
            let tensors =
                [array(&[1, 1, 3], &[1.0, -2.0, 3.0]), array(&[1, 1, 1], &[2.0]), array(&[1], &[1.0])];
            let moves = [1, 0, 1].map(|v| Value::Ints(vec![v])).into_iter().chain([Value::Int(1)]);
            let last = [array(&[1, 1, 3], &[0.0, 1.0, 10.0]), Value::Str(activation.into())];
            conv_act(&Inputs(tensors.into_iter().chain(moves).chain(last).collect()))
                .map(|made| made[0].floats())
        };
        assert_eq!(made("none").unwrap(), [3.0, -2.0, 17.0]);
        assert_eq!(made("relu").unwrap(), [3.0, 0.0, 17.0]);
        assert_eq!(made("relu6").unwrap(), [3.0, 0.0, 6.0]);
        assert_eq!(made("hardswish").unwrap(), [3.0, -2.0 / 6.0, 17.0]);
        assert!(made("tanh").is_err());
    }
}
