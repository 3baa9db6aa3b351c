//! Bags of rows.

use super::{checked, checked_all};
use crate::array::{Array, Number};
use crate::oracle::args::wrap;
use crate::oracle::number::sum;
use crate::oracle::{Family, Inputs, Unknown};

/// The indices of each bag, out of `n`: each row of a matrix of indices is a bag; 1-d indices are split at the offsets, the
/// last of which is the end of the last bag if `with_end`.
fn bags(indices: &Array, offsets: Option<&Array>, with_end: bool) -> Result<Vec<Vec<usize>>, Unknown> {
    let n = indices.numel();
    let Some(offsets) = offsets else {
        let &[rows, width] = indices.sizes.as_slice() else { return Err(Unknown("no offsets".into())) };
        return Ok((0..rows).map(|row| (row * width..(row + 1) * width).collect()).collect());
    };
    let mut bounds =
        offsets.values.iter().map(|&at| checked(at, n + 1)).collect::<Result<Vec<_>, Unknown>>()?;
    if !with_end && !bounds.is_empty() {
        bounds.push(n);
    }
    if bounds.windows(2).any(|pair| pair[0] > pair[1]) || bounds.first().is_some_and(|&first| first != 0) {
        return Err(Unknown(format!("offsets {bounds:?}")));
    }
    Ok(bounds.windows(2).map(|pair| (pair[0]..pair[1]).collect()).collect())
}

/// Reduces one column of the rows of a bag to a number; 0 for an empty bag.
fn joined(mode: &str, column: &[f64]) -> Result<f64, Unknown> {
    match mode {
        "sum" => Ok(sum(column.iter().copied())),
        "mean" => Ok(sum(column.iter().copied()) / column.len().max(1) as f64),
        "max" if column.is_empty() => Ok(0.0),
        "max" if column.iter().any(|x| x.is_nan()) => Ok(f64::NAN),
        "max" => Ok(column.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        other => Err(Unknown(format!("mode `{other}`"))),
    }
}

fn embedding_bag(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (weight, indices) = (inputs.array(0)?, inputs.array(1)?);
    let &[rows, columns] = weight.sizes.as_slice() else {
        return Err(Unknown(format!("a weight of {:?}", weight.sizes)));
    };
    let mode = inputs.str(3)?;
    let factors = inputs.optional_array(4)?.map(Array::floats);
    if factors.is_some() && mode != "sum" {
        return Err(Unknown(format!("factors for `{mode}`")));
    }
    let padding = match inputs.optional_int(6)? {
        Some(row) => Some(wrap(row, rows).ok_or_else(|| Unknown(format!("row {row} of {rows}")))?),
        None => None,
    };
    let found = checked_all(indices, rows)?;
    let mut values = Vec::new();
    let bags = bags(indices, inputs.optional_array(2)?, inputs.bool(5)?)?;
    for bag in &bags {
        let counts: Vec<usize> = bag.iter().copied().filter(|&k| Some(found[k]) != padding).collect();
        for c in 0..columns {
            let factor = |k: usize| factors.as_ref().map_or(1.0, |f| f[k]);
            let column: Vec<f64> =
                counts.iter().map(|&k| weight.at(&[found[k], c]).float() * factor(k)).collect();
            values.push(Number::Float(joined(mode, &column)?));
        }
    }
    Ok(vec![Array::new(weight.dtype, [bags.len(), columns], values)])
}

/// The family's part.
pub const ALL: Family = &[("embedding_bag", embedding_bag)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;
    use keyway::DType;

    #[test]
    fn bags_by_hand() {
        let ints = |v: &[i128]| {
            Value::Array(Array::new(DType::I64, [v.len()], v.iter().map(|&i| Number::Int(i)).collect()))
        };
        let call = |mode: &str, padding| {
            let rows = [1.0, 2.0, 4.0].map(Number::Float).to_vec();
            let weight = Value::Array(Array::new(DType::F64, [3, 1], rows));
            let given = [weight, ints(&[0, 1, 2]), ints(&[0, 2, 2]), Value::Str(mode.into())];
            let rest = [Value::None, Value::Bool(false), padding];
            embedding_bag(&Inputs(given.into_iter().chain(rest).collect())).unwrap()[0].floats()
        };
        assert_eq!(call("sum", Value::None), [3.0, 0.0, 4.0]);
        assert_eq!(call("mean", Value::None), [1.5, 0.0, 4.0]);
        assert_eq!(call("max", Value::None), [2.0, 0.0, 4.0]);
        assert_eq!(call("mean", Value::Int(-2)), [1.0, 0.0, 4.0]);
    }
}
