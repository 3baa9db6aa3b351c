//! Attention.

use super::linalg::product;
use super::norm::shares;
use super::number::sum;
use super::pointwise::broadcast;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};
use keyway::DType;

/// The last two dimensions exchanged.
fn transposed(t: &Array) -> Array {
    let n = t.ndim();
    let mut sizes = t.sizes.clone();
    sizes.swap(n - 1, n - 2);
    Array::from_fn(t.dtype, sizes, |index| {
        let mut source = index.to_vec();
        source.swap(n - 1, n - 2);
        t.at(&source)
    })
}

/// Repeats each head, dimension -3, consecutively.
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

/// The softmax of a row of scores; zeros if the mask excludes all keys.
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
    let (causal, mask) = (inputs.bool(5)?, inputs.optional_array(3)?);
    let scores = scores(query, &key, mask, causal, scale)?;
    Ok(vec![product(&rows(&scores, |row| weights(row, mask.is_some())), &value)?])
}

/// The scores of all queries, minus infinity for masked keys.
fn scores(
    query: &Array,
    key: &Array,
    mask: Option<&Array>,
    causal: bool,
    scale: f64,
) -> Result<Array, Unknown> {
    let scores = product(query, &transposed(key))?.map(query.dtype, |v| Number::Float(v.float() * scale));
    if let Some(mask) = mask
        && (causal || broadcast(&[&mask.sizes, &scores.sizes])? != scores.sizes)
    {
        return Err(Unknown("a mask that does not fit".into()));
    }
    Ok(Array::from_fn(scores.dtype, scores.sizes.clone(), |index| {
        let n = index.len();
        let score = scores.at(index).float();
        Number::Float(match mask {
            Some(mask) if mask.dtype == DType::BOOL && mask.broadcast_at(index).truth() => score,
            Some(mask) if mask.dtype == DType::BOOL => f64::NEG_INFINITY,
            Some(mask) => score + mask.broadcast_at(index).float(),
            None if causal && index[n - 1] > index[n - 2] => f64::NEG_INFINITY,
            None => score,
        })
    }))
}

/// Maps each row of scores.
fn rows(scores: &Array, of: impl Fn(&[f64]) -> Vec<f64>) -> Array {
    let keys = scores.sizes.last().copied().unwrap_or(0);
    let all = scores.floats();
    let made = all.chunks(keys.max(1)).flat_map(of).map(Number::Float).collect();
    Array::new(scores.dtype, scores.sizes.clone(), made)
}

/// Query, key and value of a fused op from argument `first` on, in f64, with heads repeated to the same number.
fn fused(inputs: &Inputs, first: usize) -> Result<[Array; 3], Unknown> {
    let exact = |i: usize| Ok(inputs.array(i)?.map(DType::F64, |v| v));
    let [query, key, value]: [Array; 3] = [exact(first)?, exact(first + 1)?, exact(first + 2)?];
    let least = [&query, &key, &value].iter().map(|t| t.ndim()).min().unwrap_or(0);
    let of = |i: usize| inputs.array(i).map(|t| t.dtype);
    if least < 2 || of(first)? != of(first + 1)? || of(first)? != of(first + 2)? {
        return Err(Unknown("query, key and value do not fit".into()));
    }
    if query.ndim() < 3 || key.ndim() < 3 || value.ndim() < 3 {
        return Ok([query, key, value]);
    }
    let heads = query.sizes[query.ndim() - 3];
    let as_many = |t: Array| if t.sizes[t.ndim() - 3] == heads { Ok(t) } else { repeated(&t, heads) };
    let (key, value) = (as_many(key)?, as_many(value)?);
    Ok([query, key, value])
}

/// The result, and the logsumexp of each query's scores: 0 if the query has no visible key.
fn flash_attention(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.array(0)?.dtype;
    let [query, key, value] = fused(inputs, 0)?;
    let mask = inputs.optional_array(3)?;
    let scores = scores(&query, &key, mask, inputs.bool(4)?, inputs.float(5)?)?;
    let made = product(&rows(&scores, |row| weights(row, mask.is_some())), &value)?;
    let sizes = query.sizes[..query.ndim() - 1].to_vec();
    let keys = scores.sizes[scores.ndim() - 1];
    let sums = match keys {
        0 => vec![Number::Float(0.0); sizes.iter().product()],
        _ => scores.floats().chunks(keys).map(|row| Number::Float(logsumexp(row, mask.is_some()))).collect(),
    };
    Ok(vec![made.map(dtype, |v| v), Array::new(wide(dtype), sizes, sums)])
}

fn logsumexp(row: &[f64], masked: bool) -> f64 {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, |a, b| if a > b || a.is_nan() { a } else { b });
    match most == f64::NEG_INFINITY {
        true if masked => 0.0,
        true => most,
        false if most.is_infinite() => most,
        false => most + sum(row.iter().map(|x| (x - most).exp())).ln(),
    }
}

fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// The gradients of query, key and value, given the result and its logsumexp. With weights `w = exp(score - logsumexp)` a
/// score's gradient is `w (grad . value - grad . out)` (Dao and others, "FlashAttention", 2022).
fn flash_attention_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.array(1)?.dtype;
    let [query, key, value] = fused(inputs, 1)?;
    let exact = |i: usize| Ok(inputs.array(i)?.map(DType::F64, |v| v));
    let (grad, out, sums): (Array, Array, Array) = (exact(0)?, exact(5)?, exact(6)?);
    let scale = inputs.float(8)?;
    let scores = scores(&query, &key, inputs.optional_array(4)?, inputs.bool(7)?, scale)?;
    let mut each = scores.sizes.clone();
    each.pop();
    if grad.sizes != out.sizes || sums.sizes != each || grad.sizes[..each.len()] != each {
        return Err(Unknown("a gradient, a result or sums of another shape".into()));
    }
    let weights = Array::from_fn(DType::F64, scores.sizes.clone(), |index| {
        let row = &index[..index.len() - 1];
        Number::Float((scores.at(index).float() - sums.at(row).float()).exp())
    });
    let of_weights = product(&grad, &transposed(&value))?;
    let columns = grad.sizes[grad.ndim() - 1];
    let slopes = Array::from_fn(DType::F64, scores.sizes.clone(), |index| {
        let mut at = index.to_vec();
        let mean = sum((0..columns).map(|column| {
            at[index.len() - 1] = column;
            grad.at(&at).float() * out.at(&at).float()
        }));
        Number::Float(weights.at(index).float() * (of_weights.at(index).float() - mean))
    });
    let scaled = |t: Array| t.map(DType::F64, |v| Number::Float(v.float() * scale));
    let of_query = scaled(product(&slopes, &key)?);
    let of_key = together(&scaled(product(&transposed(&slopes), &query)?), inputs.array(2)?);
    let of_value = together(&product(&transposed(&weights), &grad)?, inputs.array(3)?);
    Ok([of_query, of_key, of_value].map(|t| t.map(dtype, |v| v)).to_vec())
}

/// Sums over the heads that share a head of `like`.
fn together(t: &Array, like: &Array) -> Array {
    if t.sizes == like.sizes {
        return t.clone();
    }
    let at = t.ndim() - 3;
    let times = t.sizes[at] / like.sizes[at].max(1);
    Array::from_fn(t.dtype, like.sizes.clone(), |index| {
        let mut source = index.to_vec();
        Number::Float(sum((0..times).map(|nth| {
            source[at] = index[at] * times + nth;
            t.at(&source).float()
        })))
    })
}

/// The ops of this family.
pub const ALL: Family = &[
    ("flash_attention", flash_attention),
    ("flash_attention_backward", flash_attention_backward),
    ("scaled_dot_product_attention", scaled_dot_product_attention),
];

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
