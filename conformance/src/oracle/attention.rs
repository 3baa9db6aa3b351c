//! Attention.

use super::linalg::product;
use super::norm::shares;
use super::pointwise::broadcast;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};
use keyway::DType;

/// The last two dimensions exchanged.
fn turned(t: &Array) -> Array {
    let n = t.ndim();
    let mut sizes = t.sizes.clone();
    sizes.swap(n - 1, n - 2);
    Array::from_fn(t.dtype, sizes, |index| {
        let mut source = index.to_vec();
        source.swap(n - 1, n - 2);
        t.at(&source)
    })
}

/// Each head, dimension -3, so many times in a row.
fn repeated(t: &Array, heads: usize) -> Result<Array, Unknown> {
    let at = t.ndim().checked_sub(3).ok_or_else(|| Unknown("no dimension of heads".into()))?;
    let own = t.sizes[at];
    if own == 0 || !heads.is_multiple_of(own) {
        return Err(Unknown(format!("{heads} heads of the query for {own}")));
    }
    let mut sizes = t.sizes.clone();
    sizes[at] = heads;
    Ok(Array::from_fn(t.dtype, sizes, |index| {
        let mut source = index.to_vec();
        source[at] /= heads / own;
        t.at(&source)
    }))
}

/// The softmax of a row of scores; zeros where a mask leaves nothing to look at.
fn weights(row: &[f64], masked: bool) -> Vec<f64> {
    let blind = masked && row.iter().all(|&score| score == f64::NEG_INFINITY);
    if blind { vec![0.0; row.len()] } else { shares(row) }
}

/// `softmax(query @ key^T * scale + mask) @ value` (Vaswani and others, "Attention is all you need", 2017).
fn scaled_dot_product_attention(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let query = inputs.array(0)?;
    let (mut key, mut value) = (inputs.array(1)?.clone(), inputs.array(2)?.clone());
    if inputs.float(4)? != 0.0 {
        return Err(Unknown("dropout without a stream of random numbers".into()));
    }
    if [query, &key, &value].iter().any(|t| t.ndim() < 2 || t.dtype != query.dtype) {
        return Err(Unknown("query, key and value do not fit".into()));
    }
    if inputs.bool(7)? {
        let at = query.ndim().checked_sub(3).ok_or_else(|| Unknown("no dimension of heads".into()))?;
        (key, value) = (repeated(&key, query.sizes[at])?, repeated(&value, query.sizes[at])?);
    }
    let length = query.sizes[query.ndim() - 1] as f64;
    let scale = if inputs.is_none(6) { 1.0 / length.sqrt() } else { inputs.float(6)? };
    let mut scores = product(query, &turned(&key))?.map(query.dtype, |v| Number::Float(v.float() * scale));
    let (causal, mask) = (inputs.bool(5)?, inputs.optional_array(3)?);
    if let Some(mask) = mask
        && (causal || broadcast(&[&mask.sizes, &scores.sizes])? != scores.sizes)
    {
        return Err(Unknown("a mask that does not fit".into()));
    }
    scores = Array::from_fn(scores.dtype, scores.sizes.clone(), |index| {
        let n = index.len();
        let score = scores.at(index).float();
        Number::Float(match mask {
            Some(mask) if mask.dtype == DType::BOOL && mask.broadcast_at(index).truth() => score,
            Some(mask) if mask.dtype == DType::BOOL => f64::NEG_INFINITY,
            Some(mask) => score + mask.broadcast_at(index).float(),
            None if causal && index[n - 1] > index[n - 2] => f64::NEG_INFINITY,
            None => score,
        })
    });
    let keys = scores.sizes[scores.ndim() - 1];
    let rows = scores
        .floats()
        .chunks(keys.max(1))
        .flat_map(|row| weights(row, mask.is_some()))
        .map(Number::Float)
        .collect();
    Ok(vec![product(&Array::new(scores.dtype, scores.sizes.clone(), rows), &value)?])
}

/// The family.
pub const ALL: Family = &[("scaled_dot_product_attention", scaled_dot_product_attention)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;

    #[test]
    fn equal_scores_average_the_values() {
        let array = |sizes: &[usize], values: &[f64]| {
            let values = values.iter().map(|&v| Number::Float(v)).collect();
            Value::Array(Array::new(DType::F64, sizes, values))
        };
        let call = |causal, mask| {
            let args =
                [array(&[2, 1], &[0.0, 0.0]), array(&[2, 1], &[5.0, 7.0]), array(&[2, 1], &[2.0, 4.0])];
            let rest = [mask, Value::Float(0.0), Value::Bool(causal), Value::None, Value::Bool(false)];
            let inputs = Inputs(args.into_iter().chain(rest).collect());
            scaled_dot_product_attention(&inputs).unwrap()[0].floats()
        };
        assert_eq!(call(false, Value::None), [3.0, 3.0]);
        assert_eq!(call(true, Value::None), [2.0, 3.0]);
        let blind = vec![Number::Bool(false), Number::Bool(false), Number::Bool(false), Number::Bool(true)];
        assert_eq!(call(false, Value::Array(Array::new(DType::BOOL, [2, 2], blind))), [0.0, 4.0]);
    }
}
