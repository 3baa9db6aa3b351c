//! Batch, instance and group normalisation of inputs `[batch, channels, ..]`, and RMS normalisation.

use super::norm::{row_gradient, standardised, too_wide};
use super::number::{float_total, sum};
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number, flat};
use keyway::DType;

/// The values of argument `i`, one per channel, or `default` for each.
fn per_channel(inputs: &Inputs, i: usize, channels: usize, default: f64) -> Result<Vec<f64>, Unknown> {
    match inputs.optional_array(i)? {
        Some(a) if a.sizes != [channels] => Err(Unknown(format!("{:?} for {channels} channels", a.sizes))),
        given => Ok(given.map_or_else(|| vec![default; channels], Array::floats)),
    }
}

/// The dtype of the statistics of such an input, and of the gradients of its weights.
fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// A sum for each channel of an input of this dtype.
fn sums(dtype: DType, parts: Vec<Vec<f64>>) -> Array {
    let channels = parts.len();
    Array::new(wide(dtype), vec![channels], parts.into_iter().map(|p| Number::Float(sum(p))).collect())
}

/// The batch size, the number of channels, and the number of elements of one channel of one sample.
fn geometry(x: &Array) -> Result<[usize; 3], Unknown> {
    let [batch, channels, rest @ ..] = x.sizes.as_slice() else {
        return Err(Unknown(format!("an input of {:?}", x.sizes)));
    };
    Ok([*batch, *channels, rest.iter().product()])
}

/// Standardises the elements of each group, then scales and shifts by channel. `group` maps a sample and a channel to the
/// group of their elements.
fn grouped(
    x: &Array,
    [weight, bias]: [Vec<f64>; 2],
    eps: f64,
    count: usize,
    group: impl Fn(usize, usize) -> usize,
) -> Result<Array, Unknown> {
    let [batch, channels, inner] = geometry(x)?;
    let values = x.floats();
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (sample, channel) in (0..batch).flat_map(|s| (0..channels).map(move |c| (s, c))) {
        let start = flat(&[batch, channels, inner], &[sample, channel, 0]);
        members[group(sample, channel)].extend(start..start + inner);
    }
    let mut made = x.clone();
    for positions in members {
        let row: Vec<f64> = positions.iter().map(|&at| values[at]).collect();
        let uncertain = too_wide(&row, x.dtype);
        for (at, hat) in positions.into_iter().zip(standardised(&row, eps).0) {
            let channel = at / inner % channels;
            let value = Number::Float(hat * weight[channel] + bias[channel]);
            made.values[at] = if uncertain { Number::Any } else { value };
        }
    }
    Ok(made)
}

/// Checks that the number of groups divides the channels, and returns it.
fn groups(given: i64, channels: usize) -> Result<usize, Unknown> {
    let groups = usize::try_from(given).ok().filter(|&g| g > 0 && channels.is_multiple_of(g));
    groups.ok_or_else(|| Unknown(format!("no such groups of {channels} channels")))
}

fn group_norm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let x = inputs.array(0)?;
    let [batch, channels, _] = geometry(x)?;
    let groups = groups(inputs.int(1)?, channels)?;
    let affine = [per_channel(inputs, 2, channels, 1.0)?, per_channel(inputs, 3, channels, 0.0)?];
    let each = channels / groups;
    Ok(vec![grouped(x, affine, inputs.float(4)?, batch * groups, |s, c| s * groups + c / each)?])
}

/// Batch norm and instance norm, with the statistics of the groups or the running ones.
fn running(
    inputs: &Inputs,
    count: usize,
    size: usize,
    group: impl Fn(usize, usize) -> usize,
) -> Result<Vec<Array>, Unknown> {
    let x = inputs.array(0)?;
    let [_, channels, inner] = geometry(x)?;
    let affine = [per_channel(inputs, 3, channels, 1.0)?, per_channel(inputs, 4, channels, 0.0)?];
    let (of_input, eps) = (inputs.bool(5)?, inputs.float(7)?);
    if of_input && size == 1 {
        return Err(Unknown("one value for each channel".into()));
    }
    if of_input {
        return Ok(vec![grouped(x, affine, eps, count, group)?]);
    }
    let given = (inputs.array(1).is_ok() && inputs.array(2).is_ok()).then_some(());
    given.ok_or_else(|| Unknown("no running statistics".into()))?;
    let (mean, var) = (per_channel(inputs, 1, channels, 0.0)?, per_channel(inputs, 2, channels, 1.0)?);
    let mut made = x.clone();
    for (at, value) in made.values.iter_mut().enumerate() {
        let c = at / inner % channels;
        let hat = (value.float() - mean[c]) / (var[c] + eps).sqrt();
        *value = Number::Float(hat * affine[0][c] + affine[1][c]);
    }
    Ok(vec![made])
}

fn batch_norm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let [batch, channels, inner] = geometry(inputs.array(0)?)?;
    running(inputs, channels, batch * inner, |_, channel| channel)
}

fn instance_norm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let [batch, channels, inner] = geometry(inputs.array(0)?)?;
    if inputs.array(0)?.ndim() < 3 {
        return Err(Unknown("no elements besides batch and channels".into()));
    }
    running(inputs, batch * channels, inner, |sample, channel| sample * channels + channel)
}

/// The result of batch norm or instance norm, and the mean and the variance of each group.
fn channel_norm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let x = inputs.array(0)?;
    let [batch, channels, inner] = geometry(x)?;
    let affine = [per_channel(inputs, 1, channels, 1.0)?, per_channel(inputs, 2, channels, 0.0)?];
    let (per_sample, eps) = (inputs.bool(3)?, inputs.float(4)?);
    let group =
        |sample: usize, channel: usize| if per_sample { sample * channels + channel } else { channel };
    let count = if per_sample { batch * channels } else { channels };
    let made = grouped(x, affine, eps, count, group)?;
    let mut members: Vec<Vec<f64>> = vec![Vec::new(); count];
    for (row, values) in x.floats().chunks(inner.max(1)).enumerate() {
        members[group(row / channels.max(1), row % channels.max(1))].extend(values);
    }
    let wide = wide(x.dtype);
    let mut sizes = vec![1; x.ndim()];
    (sizes[0], sizes[1]) = (if per_sample { batch } else { 1 }, channels);
    let mean = |row: &[f64]| sum(row.iter().copied()) / row.len() as f64;
    let variance = |row: &[f64]| {
        let mean = mean(row);
        sum(row.iter().map(|x| (x - mean) * (x - mean))) / row.len() as f64
    };
    let number = |row: &[f64], value: f64| match too_wide(row, x.dtype) {
        true => Number::Any,
        false => Number::Float(value),
    };
    let means = members.iter().map(|row| number(row, mean(row))).collect();
    let variances = members.iter().map(|row| number(row, variance(row))).collect();
    Ok(vec![made, Array::new(wide, sizes.clone(), means), Array::new(wide, sizes, variances)])
}

/// The gradients of `channel_norm` with given statistics. With `h = (x - mean) / sqrt(var + eps)` and `c` the gradient
/// minus its group mean, times the weight, the gradient of an element is `(c - h mean(c h)) / sqrt(var + eps)` (Ioffe and
/// Szegedy, "Batch Normalization", 2015, by the chain rule).
fn channel_norm_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (grad, x) = (inputs.array(0)?, inputs.array(1)?);
    let [batch, channels, inner] = geometry(x)?;
    let (mean, var) = (inputs.array(2)?.floats(), inputs.array(3)?.floats());
    let weight = per_channel(inputs, 4, channels, 1.0)?;
    let (per_sample, eps) = (inputs.bool(5)?, inputs.float(6)?);
    let count = if per_sample { batch * channels } else { channels };
    let (grads, values) = (grad.cast(x.dtype).floats(), x.floats());
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
    for at in 0..values.len() {
        let row = at / inner;
        members[if per_sample { row } else { row % channels }].push(at);
    }
    let mut made = x.clone();
    let (mut of_weight, mut of_bias) = (vec![Vec::new(); channels], vec![Vec::new(); channels]);
    for (group, positions) in members.into_iter().enumerate() {
        let (channel, n) = (group % channels, positions.len() as f64);
        let rstd = 1.0 / (var[group] + eps).sqrt();
        let hat: Vec<f64> = positions.iter().map(|&at| (values[at] - mean[group]) * rstd).collect();
        let offset = sum(positions.iter().map(|&at| grads[at])) / n;
        let inner: Vec<f64> = positions.iter().map(|&at| (grads[at] - offset) * weight[channel]).collect();
        let along = sum(inner.iter().zip(&hat).map(|(c, h)| c * h)) / n;
        for ((at, c), h) in positions.into_iter().zip(inner).zip(hat) {
            made.values[at] = Number::Float((c - h * along) * rstd);
            of_weight[channel].push(grads[at] * h);
            of_bias[channel].push(grads[at]);
        }
    }
    Ok(vec![made, sums(x.dtype, of_weight), sums(x.dtype, of_bias)])
}

/// The gradients of `group_norm`. With `h = (x - mean) / sqrt(var + eps)` and `c` the gradient times the weight, minus the
/// group mean of that product, the gradient of an element is `(c - h mean(c h)) / sqrt(var + eps)` (Wu and He, "Group
/// normalization", 2018, by the chain rule).
fn group_norm_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (grad, x) = (inputs.array(0)?, inputs.array(1)?);
    let [_, channels, inner] = geometry(x)?;
    let each = channels / groups(inputs.int(2)?, channels)?;
    let (weight, eps) = (per_channel(inputs, 3, channels, 1.0)?, inputs.float(4)?);
    let (grads, values) = (grad.cast(x.dtype).floats(), x.floats());
    let mut made = x.clone();
    let (mut of_weight, mut of_bias) = (vec![Vec::new(); channels], vec![Vec::new(); channels]);
    // The rows of a group follow each other.
    let size = (each * inner).max(1);
    for (first, row) in (0..).step_by(size).zip(values.chunks(size)) {
        let uncertain = too_wide(row, x.dtype);
        let (hat, rstd) = standardised(row, eps);
        let channel = |i: usize| (first + i) / inner % channels;
        let scaled: Vec<f64> = (0..row.len()).map(|i| grads[first + i] * weight[channel(i)]).collect();
        for (i, (value, h)) in row_gradient(&scaled, &hat, rstd).into_iter().zip(hat).enumerate() {
            let value = Number::Float(value);
            made.values[first + i] = if uncertain { Number::Any } else { value };
            of_weight[channel(i)].push(grads[first + i] * h);
            of_bias[channel(i)].push(grads[first + i]);
        }
    }
    Ok(vec![made, sums(x.dtype, of_weight), sums(x.dtype, of_bias)])
}

/// Batch norm with given statistics.
fn frozen_norm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let x = inputs.array(0)?;
    let [_, channels, inner] = geometry(x)?;
    let (mean, var) = (per_channel(inputs, 1, channels, 0.0)?, per_channel(inputs, 2, channels, 1.0)?);
    let (weight, bias) = (per_channel(inputs, 3, channels, 1.0)?, per_channel(inputs, 4, channels, 0.0)?);
    let eps = inputs.float(5)?;
    let mut made = x.clone();
    for (at, value) in made.values.iter_mut().enumerate() {
        let c = at / inner % channels;
        let hat = (value.float() - mean[c]) / (var[c] + eps).sqrt();
        *value = Number::Float(hat * weight[c] + bias[c]);
    }
    Ok(vec![made])
}

/// Sums over each channel: of the gradient times the distance from the mean, and of the gradient.
fn channel_sums(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (grad, x) = (inputs.array(0)?, inputs.array(1)?);
    let [_, channels, inner] = geometry(x)?;
    let mean = per_channel(inputs, 2, channels, 0.0)?;
    let mut parts = [vec![Vec::new(); channels], vec![Vec::new(); channels]];
    for (at, (grad, x)) in grad.cast(x.dtype).floats().into_iter().zip(x.floats()).enumerate() {
        let c = at / inner % channels;
        parts[0][c].push(grad * (x - mean[c]));
        parts[1][c].push(grad);
    }
    Ok(parts.map(|parts| sums(x.dtype, parts)).into())
}

fn local_response_norm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (x, size) = (inputs.array(0)?, inputs.int(1)?);
    let [alpha, beta, k] = [inputs.float(2)?, inputs.float(3)?, inputs.float(4)?];
    if x.ndim() < 3 || size < 1 {
        return Err(Unknown("no channels to divide by".into()));
    }
    let channels = x.sizes[1] as i64;
    Ok(vec![Array::from_fn(x.dtype, x.sizes.clone(), |index| {
        let own = index[1] as i64;
        let near = own.saturating_sub(size / 2).max(0)..own.saturating_add((size - 1) / 2 + 1).min(channels);
        let squares = near.map(|c| {
            let mut from = index.to_vec();
            from[1] = c as usize;
            x.at(&from).float().powi(2)
        });
        let squares: Vec<f64> = squares.collect();
        match float_total(x.dtype, &squares) {
            Number::Float(sum) => {
                Number::Float(x.at(index).float() / (k + alpha * sum / size as f64).powf(beta))
            }
            other => other,
        }
    })])
}

/// The family's part.
pub const ALL: Family = &[
    ("batch_norm", batch_norm),
    ("channel_norm", channel_norm),
    ("channel_norm_backward", channel_norm_backward),
    ("channel_sums", channel_sums),
    ("frozen_norm", frozen_norm),
    ("group_norm", group_norm),
    ("group_norm_backward", group_norm_backward),
    ("instance_norm", instance_norm),
    ("local_response_norm", local_response_norm),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;

    fn floats(sizes: &[usize], values: &[f64]) -> Value {
        Value::Array(Array::new(DType::F64, sizes, values.iter().map(|&v| Number::Float(v)).collect()))
    }

    fn made(op: crate::oracle::Oracle, args: Vec<Value>) -> Vec<f64> {
        op(&Inputs(args)).unwrap()[0].floats()
    }

    #[test]
    fn groups_by_hand() {
        use Value::{Bool, Float, Int, None};
        // Two samples of two channels, each of one pair.
        let x = || floats(&[2, 2, 2], &[1.0, 3.0, 1.0, 3.0, 5.0, 9.0, 5.0, 9.0]);
        let norm = |first| {
            let affine = [floats(&[2], &[1.0, 2.0]), floats(&[2], &[0.0, 5.0])];
            [x(), first].into_iter().chain(affine).chain([Float(0.0)]).collect()
        };
        let each = [-1.0, 1.0, 3.0, 7.0, -1.0, 1.0, 3.0, 7.0];
        assert_eq!(made(group_norm, norm(Int(2))), each);
        assert_eq!(made(group_norm, norm(Int(1))), each);
        let none = [None, None, None, None, Bool(true), Float(0.1), Float(0.0)];
        let instance = made(instance_norm, [x()].into_iter().chain(none.clone()).collect());
        assert_eq!(instance, [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0]);
        let pairs = [floats(&[2, 1], &[1.0, 3.0])].into_iter().chain(none).collect();
        assert_eq!(made(batch_norm, pairs), [-1.0, 1.0]);
    }

    #[test]
    fn running_statistics_by_hand() {
        use Value::{Bool, Float, None};
        let given = [floats(&[1, 1], &[7.0]), floats(&[1], &[1.0]), floats(&[1], &[8.0]), None, None];
        let args = given.into_iter().chain([Bool(false), Float(0.1), Float(1.0)]).collect();
        assert_eq!(made(batch_norm, args), [2.0]);
    }

    #[test]
    fn gradients_of_given_statistics_by_hand() {
        let pair = |a: f64, b: f64| floats(&[2, 1], &[a, b]);
        let args = vec![pair(2.0, -1.0), pair(5.0, 9.0), floats(&[1], &[1.0])];
        let sums = channel_sums(&Inputs(args)).unwrap();
        assert_eq!((sums[0].floats(), sums[1].floats()), (vec![0.0], vec![1.0]));
        let none = [Value::None, Value::None, Value::Float(1.0)];
        let given = [pair(7.0, 1.0), floats(&[1], &[1.0]), floats(&[1], &[8.0])];
        assert_eq!(made(frozen_norm, given.into_iter().chain(none).collect()), [2.0, 0.0]);
    }
}
