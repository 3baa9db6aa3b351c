//! Optimizer steps on all parameters.

use super::pointwise::leaves_range;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};

/// Applies `step` to the elements at each index of the nth tensors of several lists of equal shapes and dtypes; returns the
/// tensors of the lists `changed`, list by list. `step` returns the new elements and the intermediate values.
fn stepped<const N: usize, const M: usize>(
    inputs: &Inputs,
    lists: [usize; N],
    changed: [usize; M],
    step: impl Fn([f64; N]) -> ([f64; M], Vec<f64>),
) -> Result<Vec<Array>, Unknown> {
    let mut all = Vec::new();
    for i in lists {
        all.push(inputs.arrays(i)?);
    }
    let Some(first) = all[0].first() else { return Err(Unknown("no parameter".into())) };
    for list in &all {
        let alike = |(a, b): (&Array, &Array)| a.sizes == b.sizes && a.dtype == first.dtype;
        if list.len() != all[0].len() || !list.iter().zip(all[0]).all(alike) {
            return Err(Unknown("lists of tensors that do not go together".into()));
        }
    }
    let mut made: [Vec<Array>; M] = std::array::from_fn(|_| Vec::new());
    for nth in 0..all[0].len() {
        let mut new: [Array; M] = changed.map(|list| all[list][nth].clone());
        let mut elements: Vec<_> = all.iter().map(|list| list[nth].floats().into_iter()).collect();
        for at in 0..all[0][nth].numel() {
            let from: [f64; N] = std::array::from_fn(|k| elements[k].next().unwrap_or(f64::NAN));
            let (values, mut steps) = step(from);
            steps.extend(values);
            let open = steps.iter().any(|&step| leaves_range(first.dtype, step, &from));
            for (array, value) in new.iter_mut().zip(values) {
                array.values[at] = if open { Number::Any } else { Number::Float(value) };
            }
        }
        made.iter_mut().zip(new).for_each(|(list, array)| list.push(array));
    }
    Ok(made.into_iter().flatten().collect())
}

/// A number, or the only element of a 0-d f64 tensor.
fn number(inputs: &Inputs, i: usize) -> Result<f64, Unknown> {
    match inputs.array(i) {
        Ok(a) if a.sizes.is_empty() && a.dtype == keyway::DType::F64 => Ok(a.floats()[0]),
        Ok(_) => Err(Unknown("a tensor that is no scalar".into())),
        Err(_) => inputs.float(i),
    }
}

fn adam_step(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let [beta1, beta2] = [inputs.float(4)?, inputs.float(5)?];
    let [eps, rate] = [number(inputs, 6)?, number(inputs, 7)?];
    let [decay, shrink] = [inputs.float(8)?, inputs.float(9)?];
    stepped(inputs, [0, 1, 2, 3], [0, 2, 3], |[p, grad, m, v]| {
        let g = grad + if decay == 0.0 { 0.0 } else { decay * p };
        let mean = beta1 * m + (1.0 - beta1) * g;
        let square = beta2 * v + (1.0 - beta2) * g * g;
        let moved = rate * mean / (square.sqrt() + eps);
        ([shrink * p - moved, mean, square], vec![g, g * g, rate * mean, moved])
    })
}

fn sgd_step(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let [lr, momentum, dampening] = [inputs.float(3)?, inputs.float(4)?, inputs.float(5)?];
    let (decay, nesterov, first) = (inputs.float(6)?, inputs.bool(7)?, inputs.bool(8)?);
    let with = |grad: f64, p: f64| grad + if decay == 0.0 { 0.0 } else { decay * p };
    let shrink = 1.0 - lr * decay;
    if momentum == 0.0 && inputs.arrays(2)?.is_empty() {
        return stepped(inputs, [0, 1], [0], |[p, grad]| {
            ([shrink * p - lr * grad], vec![shrink * p, lr * grad])
        });
    }
    stepped(inputs, [0, 1, 2], [0, 2], |[p, grad, v]| {
        let d = with(grad, p);
        let v = if first { d } else { momentum * v + (1.0 - dampening) * d };
        let moved = if nesterov { shrink * p - lr * grad - lr * momentum * v } else { p - lr * v };
        ([moved, v], vec![d, decay * p, shrink * p, lr * grad, lr * momentum * v])
    })
}

/// The ops of this family.
pub const ALL: Family = &[("adam_step", adam_step), ("sgd_step", sgd_step)];
