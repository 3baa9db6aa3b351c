//! Scatter ops with reductions other than the sum, and the sum.

use super::{checked_all, with, with_dim};
use crate::array::{Array, Index, Indices, Number, flat, wrapped};
use crate::oracle::number::{may_overflow, plus, total, zero};
use crate::oracle::reduce::{average, extreme, product};
use crate::oracle::{Family, Inputs, Unknown};
use keyway::DType;
use std::cmp::Ordering;

/// The reduction of the values of one element.
fn reduced(dtype: DType, members: &[Number], name: &str) -> Result<Number, Unknown> {
    Ok(match name {
        "sum" => total(dtype, members),
        "prod" => product(dtype, members),
        "amax" => members[extreme(members, Ordering::Greater)?],
        "amin" => members[extreme(members, Ordering::Less)?],
        "mean" if dtype.is_float() => {
            let uncertain = may_overflow(dtype, &members.iter().map(|v| v.float()).collect::<Vec<_>>());
            if uncertain { Number::Any } else { Number::Float(average(members)) }
        }
        "mean" => {
            // Integer sums are 64 bits wide.
            let wide = if dtype == DType::U64 { dtype } else { DType::I64 };
            let sum = wrapped(members.iter().copied().fold(zero(dtype), plus).int(), wide);
            Number::Int(sum.div_euclid(members.len() as i128))
        }
        _ => return Err(Unknown(format!("no reduction `{name}`"))),
    })
}

/// Reduces into each element of argument 0 the source elements that `target` maps to it: the values for each index, in order.
fn joined(inputs: &Inputs, coming: Vec<(usize, Number)>) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    if a.dtype == DType::BOOL {
        return Err(Unknown("it takes numbers".into()));
    }
    let (name, include) = (inputs.str(4)?, inputs.bool(5)?);
    let mut members: Vec<Vec<Number>> = vec![Vec::new(); a.numel()];
    for (at, value) in coming {
        members[at].push(value);
    }
    let values = members.into_iter().zip(&a.values).map(|(mut members, &own)| {
        if members.is_empty() {
            return Ok(own);
        }
        if include {
            members.insert(0, own);
        }
        reduced(a.dtype, &members, name)
    });
    Ok(vec![Array::new(a.dtype, a.sizes.clone(), values.collect::<Result<_, _>>()?)])
}

fn scatter_reduce(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let dim = inputs.dim(1, a.ndim())?;
    let (own, index) = (with_dim(a), with_dim(inputs.array(2)?));
    let src = with_dim(&inputs.array(3)?.cast(a.dtype));
    let fits = index.ndim() == own.ndim()
        && index.ndim() == src.ndim()
        && (0..index.ndim())
            .all(|d| index.sizes[d] <= src.sizes[d] && (d == dim || index.sizes[d] <= own.sizes[d]));
    if !fits {
        return Err(Unknown(format!("an index of {:?} into {:?}", index.sizes, a.sizes)));
    }
    let found = checked_all(&index, own.sizes[dim])?;
    let to = |(i, position): (Index, usize)| (flat(&own.sizes, &with(&i, dim, position)), src.at(&i));
    joined(inputs, Indices::new(&index.sizes).zip(found).map(to).collect())
}

fn index_reduce(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let dim = inputs.dim(1, a.ndim())?;
    let (own, source) = (with_dim(a), with_dim(&inputs.array(3)?.cast(a.dtype)));
    let found = checked_all(inputs.array(2)?, own.sizes[dim])?;
    let mut sizes = own.sizes.clone();
    sizes[dim] = found.len();
    if source.sizes != sizes || inputs.str(4)? == "sum" {
        return Err(Unknown(format!("slices of {:?} for {sizes:?}", source.sizes)));
    }
    let to = |i: Index| (flat(&own.sizes, &with(&i, dim, found[i[dim]])), source.at(&i));
    joined(inputs, Indices::new(&sizes).map(to).collect())
}

/// The family's part.
pub const ALL: Family = &[("index_reduce", index_reduce), ("scatter_reduce", scatter_reduce)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;

    fn whole(values: &[i128]) -> Value {
        Value::Array(Array::new(DType::I64, [values.len()], values.iter().map(|&v| Number::Int(v)).collect()))
    }

    #[test]
    fn reductions_by_hand() {
        let of = |name: &str, include| {
            let source = whole(&[4, -7, 4, -1, 2]);
            let rest = [Value::Str(name.into()), Value::Bool(include)];
            let args = [whole(&[2, 3, -1]), Value::Int(0), whole(&[0, 2, 0, 2, 2]), source];
            let inputs = Inputs(args.into_iter().chain(rest).collect());
            scatter_reduce(&inputs).unwrap()[0].ints()
        };
        assert_eq!((of("sum", true), of("sum", false)), (vec![10, 3, -7], vec![8, 3, -6]));
        assert_eq!((of("prod", true), of("prod", false)), (vec![32, 3, -14], vec![16, 3, 14]));
        assert_eq!((of("mean", true), of("mean", false)), (vec![3, 3, -2], vec![4, 3, -2]));
        assert_eq!((of("amin", true), of("amax", false)), (vec![2, 3, -7], vec![4, 3, 2]));
    }
}
