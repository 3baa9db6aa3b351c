//! Activations that are more than a function of each element.

use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};

/// The first half of a dimension times the sigmoid of the second.
fn glu(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let dim = inputs.dim(1, a.ndim())?;
    let size = a.sizes.get(dim).copied().unwrap_or(1);
    if !a.dtype.is_float() || size % 2 == 1 {
        return Err(Unknown("it takes floats, and a dimension of even size".into()));
    }
    let mut sizes = a.sizes.clone();
    sizes[dim] = size / 2;
    Ok(vec![Array::from_fn(a.dtype, sizes, |index| {
        let mut gate = index.to_vec();
        gate[dim] += size / 2;
        let (own, gate) = (a.broadcast_at(index).float(), a.broadcast_at(&gate).float());
        Number::Float(own / (1.0 + (-gate).exp()))
    })])
}

/// The gradients of GLU: with `s` the sigmoid of the second half, `grad * s` and `grad * first * s * (1 - s)`. A vanishing
/// slope is a difference of larger values, so its digits are uncertain if large factors amplify them.
fn glu_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (grad, a) = (inputs.array(0)?, inputs.array(1)?);
    let dim = inputs.dim(2, a.ndim())?;
    let half = a.sizes.get(dim).copied().unwrap_or(1) / 2;
    if !a.dtype.is_float() || grad.ndim() != a.ndim() || grad.sizes.get(dim) != Some(&half) {
        return Err(Unknown("it takes floats, and a gradient of the shape of a half".into()));
    }
    let grad = grad.cast(a.dtype);
    Ok(vec![Array::from_fn(a.dtype, a.sizes.clone(), |index| {
        let (mut own, mut gate) = (index.to_vec(), index.to_vec());
        own[dim] %= half;
        gate[dim] = own[dim] + half;
        let [g, own, gate] = [grad.broadcast_at(&own), a.broadcast_at(&own), a.broadcast_at(&gate)];
        let (share, rest) = (1.0 / (1.0 + (-gate.float()).exp()), 1.0 / (1.0 + gate.float().exp()));
        let (factor, slope) =
            if index[dim] < half { (g.float(), share) } else { (g.float() * own.float(), share * rest) };
        let vanishing = slope.abs() < 1e-3 && factor.abs() > 1.0;
        if vanishing { Number::Any } else { Number::Float(factor * slope) }
    })])
}

/// PReLU: `x` if it is positive, otherwise `weight * x`, with a scalar weight or one for each index of dimension 1.
fn prelu(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0, 1])?;
    let (a, weight) = (inputs.array(0)?.cast(dtype), inputs.array(1)?.cast(dtype));
    let channels = a.sizes.get(1).copied().unwrap_or(1);
    if !dtype.is_float() || weight.ndim() > 1 || ![1, channels].contains(&weight.numel()) {
        return Err(Unknown("it takes floats, and a weight for all or one for each channel".into()));
    }
    Ok(vec![Array::from_fn(dtype, a.sizes.clone(), |index| {
        let x = a.broadcast_at(index).float();
        let channel = if weight.numel() == 1 { 0 } else { index[1] };
        Number::Float(if x > 0.0 { x } else { x * weight.values[channel].float() })
    })])
}

/// The ops of this family.
pub const ALL: Family = &[("glu", glu), ("glu_backward", glu_backward), ("prelu", prelu)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;
    use keyway::DType;

    fn array(sizes: &[usize], values: &[f64]) -> Array {
        Array::new(DType::F64, sizes.to_vec(), values.iter().map(|&v| Number::Float(v)).collect())
    }

    #[test]
    fn values_by_hand() {
        // The sigmoid of log 3 is 3/4.
        let x = array(&[2, 2], &[4.0, 3f64.ln(), -2.0, 0.0]);
        let made = glu(&Inputs(vec![Value::Array(x.clone()), Value::Int(-1)])).expect("an answer");
        assert_eq!((made[0].sizes.clone(), made[0].floats()), (vec![2, 1], vec![3.0, -1.0]));
        assert!(glu(&Inputs(vec![Value::Array(array(&[3], &[0.0; 3])), Value::Int(0)])).is_err());
        let grad = array(&[2, 1], &[8.0, 2.0]);
        let made = glu_backward(&Inputs(vec![Value::Array(grad), Value::Array(x), Value::Int(1)]));
        let near = |(a, b): (&f64, f64)| (a - b).abs() < 1e-14;
        assert!(made.expect("an answer")[0].floats().iter().zip([6.0, 6.0, 1.0, -1.0]).all(near));
        let x = array(&[2, 2], &[-1.0, -1.0, 2.0, -3.0]);
        let made = prelu(&Inputs(vec![Value::Array(x), Value::Array(array(&[2], &[0.5, 0.25]))]));
        assert_eq!(made.expect("an answer")[0].floats(), [-0.5, -0.25, 2.0, -0.75]);
    }
}
