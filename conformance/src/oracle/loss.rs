//! Losses.

use super::norm::log_shares;
use super::number::{along, float_total, may_overflow, sum};
use super::pointwise::broadcast;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Index, Indices, Number, flat};
use keyway::DType;

/// Reduces the losses of the elements as text argument `i` specifies.
fn reduced(inputs: &Inputs, i: usize, loss: Array) -> Result<Vec<Array>, Unknown> {
    let (whole, n) = (float_total(loss.dtype, &loss.floats()), loss.numel() as f64);
    let scalar = |v: Number| Ok(vec![Array::scalar(loss.dtype, v)]);
    match inputs.str(i)? {
        "none" => Ok(vec![loss]),
        "sum" => scalar(whole),
        "mean" if may_overflow(loss.dtype, &loss.floats()) => scalar(Number::Any),
        "mean" => scalar(Number::Float(whole.float() / n)),
        other => Err(Unknown(format!("reduction `{other}`"))),
    }
}

/// Applies a loss to each element of arguments 0 and 1, broadcast, and of the present ones of `more`; the function is
/// passed `None` for absent ones.
fn elements<const N: usize>(
    inputs: &Inputs,
    more: [usize; N],
    loss: impl Fn(f64, f64, [Option<f64>; N]) -> f64,
) -> Result<Array, Unknown> {
    let mut which = vec![0, 1];
    which.extend(more);
    let dtype = inputs.promote(&which)?;
    let (x, target) = (inputs.array(0)?.cast(dtype), inputs.array(1)?.cast(dtype));
    let mut rest: [Option<Array>; N] = [const { None }; N];
    for (slot, &i) in rest.iter_mut().zip(&more) {
        *slot = inputs.optional_array(i)?.map(|a| a.cast(dtype));
    }
    let mut shapes: Vec<&[usize]> = vec![&x.sizes, &target.sizes];
    shapes.extend(rest.iter().flatten().map(|a| a.sizes.as_slice()));
    Ok(Array::from_fn(dtype, broadcast(&shapes)?, |index| {
        let at = |a: &Array| a.broadcast_at(index).float();
        let rest = std::array::from_fn(|k| rest[k].as_ref().map(at));
        Number::Float(loss(at(&x), at(&target), rest))
    }))
}

fn mse_loss(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    reduced(inputs, 2, elements(inputs, [], |x, t, []| (x - t) * (x - t))?)
}

fn l1_loss(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    reduced(inputs, 2, elements(inputs, [], |x, t, []| (x - t).abs())?)
}

/// The smooth L1 loss: `d^2 / (2 beta)` if the distance `d` is below `beta`, otherwise `d - beta / 2`.
fn smooth(distance: f64, beta: f64) -> f64 {
    if distance < beta { 0.5 * distance * distance / beta } else { distance - 0.5 * beta }
}

fn smooth_l1_loss(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let beta = inputs.float(2)?;
    reduced(inputs, 3, elements(inputs, [], |x, t, []| smooth((x - t).abs(), beta))?)
}

/// The derivative of the smooth L1 loss with respect to the input: linear within `beta`, otherwise the sign of the
/// difference; NaN for NaN.
fn smooth_slope(difference: f64, beta: f64) -> f64 {
    match difference.abs() >= beta {
        true if difference == 0.0 => 0.0,
        true => difference.signum(),
        // Also for NaN.
        false => difference / beta,
    }
}

fn smooth_l1_loss_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (dtype, beta) = (inputs.promote(&[0, 1, 2])?, inputs.float(3)?);
    let [grad, x, target] = [inputs.array(0)?, inputs.array(1)?, inputs.array(2)?].map(|a| a.cast(dtype));
    let sizes = broadcast(&[&x.sizes, &target.sizes])?;
    let count = match inputs.str(4)? {
        "mean" => sizes.iter().product::<usize>() as f64,
        "sum" | "none" => 1.0,
        other => return Err(Unknown(format!("reduction `{other}`"))),
    };
    Ok(vec![Array::from_fn(dtype, sizes, |index| {
        let [grad, x, target] = [&grad, &x, &target].map(|a| a.broadcast_at(index).float());
        Number::Float(grad / count * smooth_slope(x - target, beta))
    })])
}

/// Binary cross-entropy: `-(t log(x) + (1 - t) log(1 - x))`, each logarithm at least -100; NaN if `x` is not a probability.
fn entropy(x: f64, t: f64) -> f64 {
    if !(0.0..=1.0).contains(&x) {
        return f64::NAN;
    }
    -(t * x.ln().max(-100.0) + (1.0 - t) * (-x).ln_1p().max(-100.0))
}

fn binary_cross_entropy(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let loss = elements(inputs, [2], |x, t, [weight]| entropy(x, t) * weight.unwrap_or(1.0))?;
    reduced(inputs, 3, loss)
}

/// `(1 - t) x + (1 + (p - 1) t) log(1 + exp(-x))`, the logarithm without overflow.
fn entropy_of_logit(x: f64, t: f64, positive: f64) -> f64 {
    // f64::max drops NaN, which the logarithm restores. The addends are not negative, so there is no cancellation.
    let log = (-x.abs()).exp().ln_1p();
    positive * t * (log + (-x).max(0.0)) + (1.0 - t) * (log + x.max(0.0))
}

fn binary_cross_entropy_with_logits(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let loss = elements(inputs, [2, 3], |x, t, [weight, positive]| {
        entropy_of_logit(x, t, positive.unwrap_or(1.0)) * weight.unwrap_or(1.0)
    })?;
    reduced(inputs, 4, loss)
}

/// KL divergence: `t (log(t) - x)`, 0 for a `t` of 0, or `exp(t) (t - x)` if `t` is a logarithm.
fn divergence(x: f64, t: f64, log_target: bool) -> f64 {
    // A target of 0 has no part in the sum, wherever the input is.
    let none = if log_target { t == f64::NEG_INFINITY } else { t == 0.0 };
    match (log_target, none) {
        (true, true) => 0.0,
        (true, false) => t.exp() * (t - x),
        (false, true) if x.is_nan() => x,
        (false, true) => 0.0,
        (false, false) => t * t.ln() - t * x,
    }
}

fn kl_div(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let log_target = inputs.bool(2)?;
    let loss = elements(inputs, [], |x, t, []| divergence(x, t, log_target))?;
    if inputs.str(3)? == "batchmean" {
        let Some(&batch) = inputs.array(0)?.sizes.first() else {
            return Err(Unknown("no dimension 0 for a mean over the batch".into()));
        };
        return Ok(vec![Array::scalar(loss.dtype, Number::Float(sum(loss.floats()) / batch as f64))]);
    }
    reduced(inputs, 3, loss)
}

/// The dimension of classes of an input: 1, or 0 if it has no other.
fn class_dim(x: &Array) -> Result<usize, Unknown> {
    match x.ndim() {
        0 => Err(Unknown("no dimension of classes".into())),
        n => Ok(usize::from(n > 1)),
    }
}

/// The weights of classes in argument `i` as `dtype`, or ones.
fn class_weights(inputs: &Inputs, i: usize, dtype: DType, classes: usize) -> Result<Vec<f64>, Unknown> {
    Ok(inputs.optional_array(i)?.map_or_else(|| vec![1.0; classes], |w| w.cast(dtype).floats()))
}

/// The loss of a class with this target probability: 0 if it is 0, even for a predicted probability of 0.
fn shared(share: f64, log: f64) -> f64 {
    if share == 0.0 { 0.0 } else { -share * log }
}

fn with_class(index: &[usize], dim: usize, class: usize) -> Index {
    let mut full = Index::from_slice(index);
    full.insert(dim, class);
    full
}

/// The class of each target, `None` if it is ignored.
fn chosen(target: &Array, classes: usize, ignored: i64) -> Result<Vec<Option<usize>>, Unknown> {
    let class = |t: i128| match usize::try_from(t) {
        _ if t == i128::from(ignored) => Ok(None),
        Ok(c) if c < classes => Ok(Some(c)),
        _ => Err(Unknown(format!("class {t} of {classes}"))),
    };
    target.ints().into_iter().map(class).collect()
}

/// For each target the negated element of its class times the class's weight, and that weight; both 0 if the target is
/// ignored.
fn picked(x: &Array, target: &Array, weights: &[f64], ignored: i64) -> Result<(Array, Array), Unknown> {
    let dim = class_dim(x)?;
    let chosen = chosen(target, x.sizes[dim], ignored)?;
    let pairs = Indices::new(&target.sizes).zip(chosen).map(|(index, class)| match class {
        Some(c) if weights[c] != 0.0 => (-x.at(&with_class(&index, dim, c)).float() * weights[c], weights[c]),
        Some(_) => (0.0, 0.0),
        None => (0.0, 0.0),
    });
    let (losses, weights): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let array =
        |v: Vec<f64>| Array::new(x.dtype, target.sizes.clone(), v.into_iter().map(Number::Float).collect());
    Ok((array(losses), array(weights)))
}

fn nll_loss_forward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (x, target) = (inputs.array(0)?, inputs.array(1)?);
    let weights = class_weights(inputs, 2, x.dtype, x.sizes[class_dim(x)?])?;
    let (losses, weights) = picked(x, target, &weights, inputs.int(3)?)?;
    Ok(vec![losses, weights])
}

/// Reduces losses; the mean is weighted.
fn weighted(inputs: &Inputs, i: usize, losses: Array, weights: &Array) -> Result<Vec<Array>, Unknown> {
    if inputs.str(i)? != "mean" {
        return reduced(inputs, i, losses);
    }
    let mean = sum(losses.floats()) / sum(weights.floats());
    Ok(vec![Array::scalar(losses.dtype, Number::Float(mean))])
}

fn nll_loss(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (x, target) = (inputs.array(0)?, inputs.array(1)?);
    let weights = class_weights(inputs, 2, x.dtype, x.sizes[class_dim(x)?])?;
    let (losses, weights) = picked(x, target, &weights, inputs.int(3)?)?;
    weighted(inputs, 4, losses, &weights)
}

/// Zeros, and at each target's class the negated gradient times its weight.
fn nll_loss_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (grad, target) = (inputs.array(0)?, inputs.array(1)?);
    let weights = inputs.array(2)?.cast(grad.dtype);
    let classes = usize::try_from(inputs.int(3)?).map_err(|_| Unknown("a negative number".into()))?;
    let dim = usize::from(target.ndim() > 0);
    let chosen = chosen(target, classes, inputs.int(4)?)?;
    let mut sizes = target.sizes.clone();
    sizes.insert(dim, classes);
    Ok(vec![Array::from_fn(grad.dtype, sizes, |index| {
        let mut outer = index.to_vec();
        let class = outer.remove(dim);
        let own = chosen[flat(&target.sizes, &outer)] == Some(class);
        Number::Float(if own { -grad.at(&outer).float() * weights.at(&outer).float() } else { 0.0 })
    })])
}

/// Label smoothing: the fraction `smoothing` of every target is distributed evenly over the classes.
fn cross_entropy(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (x, target, smoothing) = (inputs.array(0)?, inputs.array(1)?, inputs.float(4)?);
    let dim = class_dim(x)?;
    let classes = x.sizes[dim];
    let logs = along(x, dim, x.dtype, classes, |line| {
        let line: Vec<f64> = line.iter().map(|v| v.float()).collect();
        log_shares(&line).into_iter().map(Number::Float).collect()
    });
    if target.dtype.is_float() {
        return probabilities(inputs, &logs, dim, smoothing);
    }
    let weights = class_weights(inputs, 2, x.dtype, classes)?;
    let (losses, counted) = picked(&logs, target, &weights, inputs.int(3)?)?;
    let chosen = chosen(target, classes, inputs.int(3)?)?;
    let mixed = Indices::new(&target.sizes).zip(chosen).zip(losses.floats()).map(|((index, class), loss)| {
        if class.is_none() || smoothing == 0.0 {
            return Number::Float(loss);
        }
        let of = |c: usize| shared(weights[c], logs.at(&with_class(&index, dim, c)).float());
        Number::Float((1.0 - smoothing) * loss + smoothing / classes as f64 * sum((0..classes).map(of)))
    });
    weighted(inputs, 5, Array::new(x.dtype, target.sizes.clone(), mixed.collect()), &counted)
}

/// Targets that are probabilities of the classes: the mean is over the samples.
fn probabilities(inputs: &Inputs, logs: &Array, dim: usize, smoothing: f64) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0, 1, 2])?;
    let target = inputs.array(1)?;
    if target.sizes != logs.sizes {
        return Err(Unknown(format!("probabilities of {:?} for {:?}", target.sizes, logs.sizes)));
    }
    let classes = logs.sizes[dim];
    let weights = class_weights(inputs, 2, dtype, classes)?;
    let mut sizes = logs.sizes.clone();
    sizes.remove(dim);
    let losses = Array::from_fn(dtype, sizes, |index| {
        Number::Float(sum((0..classes).map(|c| {
            let position = with_class(index, dim, c);
            let share = target.at(&position).float() * (1.0 - smoothing) + smoothing / classes as f64;
            shared(share * weights[c], logs.at(&position).float())
        })))
    });
    reduced(inputs, 5, losses)
}

/// The ops of this family.
pub const ALL: Family = &[
    ("binary_cross_entropy", binary_cross_entropy),
    ("binary_cross_entropy_with_logits", binary_cross_entropy_with_logits),
    ("cross_entropy", cross_entropy),
    ("kl_div", kl_div),
    ("l1_loss", l1_loss),
    ("mse_loss", mse_loss),
    ("nll_loss", nll_loss),
    ("nll_loss_backward", nll_loss_backward),
    ("nll_loss_forward", nll_loss_forward),
    ("smooth_l1_loss", smooth_l1_loss),
    ("smooth_l1_loss_backward", smooth_l1_loss_backward),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;

    fn floats(sizes: &[usize], values: &[f64]) -> Array {
        Array::new(DType::F64, sizes, values.iter().map(|&v| Number::Float(v)).collect())
    }

    fn classes(values: &[i128]) -> Value {
        let values: Vec<_> = values.iter().map(|&v| Number::Int(v)).collect();
        Value::Array(Array::new(DType::I64, [values.len()], values))
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-14
    }

    #[test]
    fn single_losses_by_hand() {
        assert_eq!((smooth(1.0, 2.0), smooth(3.0, 2.0), smooth(3.0, 0.0)), (0.25, 2.0, 3.0));
        let slopes = [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0].map(|d| smooth_slope(d, 2.0));
        assert_eq!(slopes, [-1.0, -1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!([smooth_slope(1e-9, 0.0), smooth_slope(0.0, 0.0)], [1.0, 0.0]);
        assert!([0.0, 1.0].iter().all(|beta| smooth_slope(f64::NAN, *beta).is_nan()));
        assert!(near(entropy(0.5, 0.3), 2.0f64.ln()));
        assert_eq!(entropy(0.0, 1.0), 100.0);
        assert!(near(entropy_of_logit(0.0, 1.0, 3.0), 3.0 * 2.0f64.ln()));
        assert_eq!(entropy_of_logit(-1000.0, 1.0, 1.0), 1000.0);
        assert_eq!(divergence(f64::MIN, 0.0, false), 0.0);
        assert!(near(divergence(0.0, 1.0, true), 1.0f64.exp()));
    }

    #[test]
    fn the_mean_is_over_the_weights_that_count() {
        let x = floats(&[3, 2], &[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]);
        let inputs = Inputs(vec![
            Value::Array(x),
            classes(&[0, 1, 7]),
            Value::Array(floats(&[2], &[1.0, 3.0])),
            Value::Int(7),
            Value::Str("mean".into()),
        ]);
        // (1 * 1 + 3 * 4) / (1 + 3)
        assert_eq!(nll_loss(&inputs).unwrap()[0].values, [Number::Float(3.25)]);
    }

    #[test]
    fn smoothing_moves_the_loss_towards_the_mean_over_classes() {
        let call = |smoothing| {
            let x = floats(&[1, 2], &[0.0, 3.0f64.ln()]);
            let args =
                [Value::Array(x), classes(&[1]), Value::None, Value::Int(-100), Value::Float(smoothing)];
            let args = args.into_iter().chain([Value::Str("mean".into())]).collect();
            cross_entropy(&Inputs(args)).unwrap()[0].values[0].float()
        };
        let (hit, miss) = (-(0.75f64.ln()), -(0.25f64.ln()));
        assert!(near(call(0.0), hit));
        assert!(near(call(0.5), 0.5 * hit + 0.25 * (hit + miss)));
    }
}
