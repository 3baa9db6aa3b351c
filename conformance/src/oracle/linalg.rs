//! Products of vectors and matrices.

use super::number::{float_total, plus, times, zero};
use super::pointwise::broadcast;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number, Offsets, spread_strides};
use keyway::DType;

/// `Σ a b` of elements of `dtype`.
pub(super) fn inner(dtype: DType, pairs: impl Iterator<Item = (Number, Number)>) -> Number {
    if dtype.is_float() {
        float_total(dtype, &pairs.map(|(a, b)| a.float() * b.float()).collect::<Vec<_>>())
    } else {
        pairs.fold(zero(dtype), |total, (a, b)| plus(total, times(a, b)))
    }
}

/// Matrix products over the last two dimensions, the others broadcast; a vector is a row on the left and a column on the
/// right, and that dimension is then dropped.
pub(super) fn product(a: &Array, b: &Array) -> Result<Array, Unknown> {
    let wrong = || Unknown(format!("{:?} by {:?} is no product", a.sizes, b.sizes));
    let (row, column) = (a.ndim() == 1, b.ndim() == 1);
    let (mut left, mut right) = (a.clone(), b.clone());
    if row {
        left.sizes.insert(0, 1);
    }
    if column {
        right.sizes.push(1);
    }
    let [lead_a @ .., n, k] = left.sizes.as_slice() else { return Err(wrong()) };
    let [lead_b @ .., rows, m] = right.sizes.as_slice() else { return Err(wrong()) };
    if k != rows {
        return Err(wrong());
    }
    let lead = broadcast(&[lead_a, lead_b])?;
    // The pairs of matrices, by the index of their first elements.
    let first = |sizes: &[usize], step: usize| {
        Offsets::new(&lead, &spread_strides(sizes, lead.len()), 0).map(move |nth| nth * step)
    };
    let mut values = Vec::with_capacity(lead.iter().product::<usize>() * n * m);
    for (a, b) in first(lead_a, n * k).zip(first(lead_b, k * m)) {
        for (i, j) in (0..*n).flat_map(|i| (0..*m).map(move |j| (i, j))) {
            let row = left.values[a + i * k..].iter().take(*k);
            let column = right.values.get(b + j..).unwrap_or(&[]).iter().step_by(*m);
            values.push(inner(left.dtype, row.copied().zip(column.copied())));
        }
    }
    let dims = lead.len();
    let mut made = Array::new(left.dtype, [lead, vec![*n, *m]].concat(), values);
    if column {
        made.sizes.pop();
    }
    if row {
        made.sizes.remove(dims);
    }
    Ok(made)
}

/// The product of arguments 0 and 1, which must have these ranks.
fn of_dims(inputs: &Inputs, ndims: [usize; 2]) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0, 1])?;
    let (a, b) = (inputs.array(0)?.cast(dtype), inputs.array(1)?.cast(dtype));
    if [a.ndim(), b.ndim()] != ndims {
        return Err(Unknown(format!("{:?} by {:?}", a.sizes, b.sizes)));
    }
    Ok(vec![product(&a, &b)?])
}

fn mm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    of_dims(inputs, [2, 2])
}

fn mv(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    of_dims(inputs, [2, 1])
}

fn dot(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    of_dims(inputs, [1, 1])
}

fn bmm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    if inputs.array(0)?.sizes.first() != inputs.array(1)?.sizes.first() {
        return Err(Unknown("batches do not broadcast here".into()));
    }
    of_dims(inputs, [3, 3])
}

fn matmul(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0, 1])?;
    Ok(vec![product(&inputs.array(0)?.cast(dtype), &inputs.array(1)?.cast(dtype))?])
}

/// `beta * self + alpha * product`, for arguments `self`, two factors, `beta` and `alpha`. If `beta` is 0 `self` is
/// ignored, including its NaN; if `alpha` is 0 the product may be ignored likewise.
fn scaled(inputs: &Inputs, ndim: usize) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0, 1, 2])?;
    let (own, a, b) =
        (inputs.array(0)?.cast(dtype), inputs.array(1)?.cast(dtype), inputs.array(2)?.cast(dtype));
    let (beta, alpha) = (inputs.number(3)?, inputs.number(4)?);
    if a.ndim() != ndim || b.ndim() != ndim {
        return Err(Unknown(format!("{:?} by {:?}", a.sizes, b.sizes)));
    }
    if !dtype.is_float() && [beta, alpha].iter().any(|f| matches!(f, Number::Float(_))) {
        return Err(Unknown("an integer result scaled by a float".into()));
    }
    let made = product(&a, &b)?;
    if broadcast(&[&own.sizes, &made.sizes])? != made.sizes {
        return Err(Unknown("`self` is larger than the product".into()));
    }
    Ok(vec![Array::from_fn(dtype, made.sizes.clone(), |index| {
        let value = made.at(index);
        let scaled = match alpha.truth() {
            false if !value.float().is_finite() => Number::Any,
            _ => times(value, alpha),
        };
        if beta.truth() { plus(times(own.broadcast_at(index), beta), scaled) } else { scaled }
    })])
}

fn addmm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    scaled(inputs, 2)
}

fn baddbmm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    scaled(inputs, 3)
}

/// `input @ weight^T + bias`.
fn linear(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0, 1, 2])?;
    let (x, weight) = (inputs.array(0)?.cast(dtype), inputs.array(1)?.cast(dtype));
    let &[outputs, width] = weight.sizes.as_slice() else {
        return Err(Unknown(format!("a weight of {:?}", weight.sizes)));
    };
    let transposed = Array::from_fn(dtype, [width, outputs], |index| weight.at(&[index[1], index[0]]));
    let made = product(&x, &transposed)?;
    let Some(bias) = inputs.optional_array(2)? else { return Ok(vec![made]) };
    let bias = bias.cast(dtype);
    Ok(vec![Array::from_fn(dtype, made.sizes.clone(), |index| {
        plus(made.at(index), bias.broadcast_at(index))
    })])
}

fn outer(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0, 1])?;
    let (a, b) = (inputs.array(0)?.cast(dtype), inputs.array(1)?.cast(dtype));
    Ok(vec![Array::from_fn(dtype, [a.numel(), b.numel()], |index| {
        times(a.values[index[0]], b.values[index[1]])
    })])
}

/// The ops of this family.
pub const ALL: Family = &[
    ("addmm", addmm),
    ("baddbmm", baddbmm),
    ("bmm", bmm),
    ("dot", dot),
    ("linear", linear),
    ("matmul", matmul),
    ("mm", mm),
    ("mv", mv),
    ("outer", outer),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;

    fn whole(sizes: &[usize], values: &[i128]) -> Array {
        Array::new(DType::I64, sizes, values.iter().map(|&v| Number::Int(v)).collect())
    }

    #[test]
    fn products_by_hand() {
        let square = whole(&[2, 2], &[1, 2, 3, 4]);
        assert_eq!(product(&square, &square).unwrap().ints(), [7, 10, 15, 22]);
        let vector = whole(&[2], &[1, 10]);
        assert_eq!(product(&square, &vector).unwrap(), whole(&[2], &[21, 43]));
        assert_eq!(product(&vector, &square).unwrap(), whole(&[2], &[31, 42]));
        assert_eq!(product(&vector, &vector).unwrap(), whole(&[], &[101]));
        assert!(product(&square, &whole(&[3], &[1, 2, 3])).is_err());
    }

    #[test]
    fn leading_dimensions_broadcast() {
        let a = whole(&[2, 1, 1, 2], &[1, 2, 3, 4]);
        let b = whole(&[2, 2, 1], &[1, 10, 100, 1000]);
        assert_eq!(product(&a, &b).unwrap(), whole(&[2, 2, 1, 1], &[21, 2100, 43, 4300]));
    }

    #[test]
    fn a_beta_of_zero_drops_nan() {
        let one = Array::new(DType::F32, [1, 1], vec![Number::Float(2.0)]);
        let nan = Array::new(DType::F32, [1], vec![Number::Float(f64::NAN)]);
        let args = [nan, one.clone(), one].map(Value::Array);
        let inputs = Inputs(args.into_iter().chain([Value::Int(0), Value::Int(3)]).collect());
        assert_eq!(addmm(&inputs).unwrap()[0].values, [Number::Float(12.0)]);
    }
}
