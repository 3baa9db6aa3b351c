//! Ops that read elements at given indices.

use super::{checked_all, pointed, with, with_dim};
use crate::array::{Array, Index, Indices, Number};
use crate::oracle::pointwise::broadcast;
use crate::oracle::{Family, Inputs, Unknown};
use keyway::DType;

/// The elements of `a` at `index` along `dim`, in the shape of the index.
fn gathered(a: &Array, dim: usize, index: &Array) -> Result<Array, Unknown> {
    let (own, given) = (with_dim(a), with_dim(index));
    let fits =
        own.ndim() == given.ndim() && (0..own.ndim()).all(|d| d == dim || given.sizes[d] <= own.sizes[d]);
    if !fits {
        return Err(Unknown(format!("an index of {:?} into {:?}", index.sizes, a.sizes)));
    }
    let found = checked_all(&given, own.sizes[dim])?;
    let values = Indices::new(&given.sizes).zip(found).map(|(i, p)| own.at(&with(&i, dim, p))).collect();
    Ok(Array::new(a.dtype, index.sizes.clone(), values))
}

fn gather(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    Ok(vec![gathered(a, inputs.dim(1, a.ndim())?, inputs.array(2)?)?])
}

/// As `gather`, with all dimensions except `dim` broadcast; without `dim`, for the elements in row-major order.
fn take_along_dim(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, index) = (inputs.array(0)?, inputs.array(1)?);
    if inputs.is_none(2) {
        let row = |t: &Array| t.clone().reshaped([t.numel()]);
        return Ok(vec![gathered(&row(a), 0, &row(index))?]);
    }
    let dim = inputs.dim(2, a.ndim())?;
    if a.ndim() != index.ndim() {
        return Err(Unknown(format!("an index of {:?} into {:?}", index.sizes, a.sizes)));
    }
    let mut without = [a.sizes.clone(), index.sizes.clone()];
    without.iter_mut().filter_map(|sizes| sizes.get_mut(dim)).for_each(|size| *size = 1);
    let shape = broadcast(&[&without[0], &without[1]])?;
    let spread = |t: &Array| {
        let mut sizes = shape.clone();
        if let Some(size) = sizes.get_mut(dim) {
            *size = t.sizes[dim];
        }
        Array::from_fn(t.dtype, sizes, |i| t.broadcast_at(i))
    };
    Ok(vec![gathered(&spread(a), dim, &spread(index))?])
}

fn index_select(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, index) = (inputs.array(0)?, inputs.array(2)?);
    let dim = inputs.dim(1, a.ndim())?;
    let own = with_dim(a);
    let found = checked_all(index, own.sizes[dim])?;
    let mut sizes = own.sizes.clone();
    sizes[dim] = found.len();
    let made = Array::from_fn(a.dtype, sizes, |i| own.at(&with(i, dim, found[i[dim]])));
    Ok(vec![if a.ndim() == 0 { made.reshaped([]) } else { made }])
}

fn index(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let (shape, found) = pointed(&a.sizes, inputs.arrays(1)?, inputs.ints(2)?)?;
    Ok(vec![Array::new(a.dtype, shape, found.iter().map(|i| a.at(i)).collect())])
}

/// The rows of a matrix; `padding_idx` affects only gradients.
fn embedding(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (weight, indices) = (inputs.array(0)?, inputs.array(1)?);
    let &[rows, columns] = weight.sizes.as_slice() else {
        return Err(Unknown(format!("a weight of {:?}", weight.sizes)));
    };
    let found = checked_all(indices, rows)?;
    let values = found.iter().flat_map(|&row| (0..columns).map(move |c| weight.at(&[row, c]))).collect();
    let sizes: Vec<usize> = indices.sizes.iter().copied().chain([columns]).collect();
    Ok(vec![Array::new(weight.dtype, sizes, values)])
}

fn masked_select(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, mask) = (inputs.array(0)?, inputs.array(1)?);
    let shape = broadcast(&[&a.sizes, &mask.sizes])?;
    let chosen = Indices::new(&shape).filter(|i| mask.broadcast_at(i).truth());
    let values: Vec<Number> = chosen.map(|i| a.broadcast_at(&i)).collect();
    Ok(vec![Array::new(a.dtype, [values.len()], values)])
}

/// A row of indices for each element that is not 0.
fn nonzero(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let found: Vec<Index> = Indices::new(&a.sizes).filter(|i| a.at(i).truth()).collect();
    let values = found.iter().flatten().map(|&i| Number::Int(i as i128)).collect();
    Ok(vec![Array::new(DType::I64, [found.len(), a.ndim()], values)])
}

fn one_hot(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let classes = usize::try_from(inputs.int(1)?).map_err(|_| Unknown("a negative number".into()))?;
    let sizes: Vec<usize> = a.sizes.iter().copied().chain([classes]).collect();
    let found = checked_all(a, classes)?;
    let row = |p: usize| (0..classes).map(move |c| Number::Int(i128::from(p == c)));
    Ok(vec![Array::new(DType::I64, sizes, found.into_iter().flat_map(row).collect())])
}

/// The number in `0..=n` of elements of an ascending sequence before each value; with `right` including equal ones.
fn searchsorted(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0, 1])?;
    let (sequence, values) = (inputs.array(0)?.cast(dtype), inputs.operand(1)?.cast(dtype));
    let right = inputs.bool(2)?;
    let Some(&n) = sequence.sizes.last() else { return Err(Unknown("a sequence of no dimensions".into())) };
    let lines: Vec<&[Number]> = sequence.values.chunks(n.max(1)).collect();
    let ascending = |line: &&[Number]| line.windows(2).all(|pair| pair[0].float() <= pair[1].float());
    if !lines.iter().all(ascending) {
        return Err(Unknown("a sequence that does not ascend".into()));
    }
    let many = sequence.ndim() > 1;
    Ok(vec![Array::from_fn(DType::I64, values.sizes.clone(), |index| {
        let own = values.at(index);
        let line = match many {
            true if n == 0 => &[],
            true => {
                lines[crate::array::flat(&values.sizes, &with(index, index.len() - 1, 0))
                    / values.sizes[index.len() - 1]]
            }
            false => lines.first().copied().unwrap_or(&[]),
        };
        let before = |v: &&Number| match crate::oracle::number::order(**v, own) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => right,
            std::cmp::Ordering::Greater => false,
        };
        Number::Int(line.iter().filter(before).count() as i128)
    })])
}

/// The family's part.
pub const ALL: Family = &[
    ("embedding", embedding),
    ("embedding_sparse", embedding),
    ("gather", gather),
    ("index", index),
    ("index_select", index_select),
    ("masked_select", masked_select),
    ("nonzero", nonzero),
    ("one_hot", one_hot),
    ("searchsorted", searchsorted),
    ("take_along_dim", take_along_dim),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;

    fn whole(sizes: &[usize], values: &[i128]) -> Array {
        Array::new(DType::I64, sizes, values.iter().map(|&v| Number::Int(v)).collect())
    }

    #[test]
    fn gather_by_hand() {
        let a = whole(&[2, 2], &[1, 2, 3, 4]);
        assert_eq!(gathered(&a, 1, &whole(&[2, 2], &[0, 0, 1, 0])).unwrap().ints(), [1, 1, 4, 3]);
        assert_eq!(gathered(&a, 0, &whole(&[1, 2], &[1, 0])).unwrap().ints(), [3, 2]);
        assert!(gathered(&a, 0, &whole(&[1, 2], &[2, 0])).is_err());
    }

    #[test]
    fn indices_of_dimensions_apart_come_in_front() {
        let a = Array::new(DType::I64, [2, 3, 2], (0..12).map(Number::Int).collect());
        let (shape, found) = pointed(&a.sizes, &[whole(&[1], &[1]), whole(&[1], &[-1])], &[0, 2]).unwrap();
        assert_eq!(shape, [1, 3]);
        assert_eq!(found.iter().map(|i| a.at(i).int()).collect::<Vec<_>>(), [7, 9, 11]);
        let (shape, _) = pointed(&a.sizes, &[whole(&[4], &[0, 1, 2, 0])], &[1]).unwrap();
        assert_eq!(shape, [2, 4, 2]);
    }

    #[test]
    fn positions_in_a_sequence() {
        let call = |right| {
            let args = [whole(&[4], &[1, 3, 3, 5]), whole(&[3], &[3, 0, 9])].map(Value::Array);
            let args = args.into_iter().chain([Value::Bool(right)]).collect();
            searchsorted(&Inputs(args)).unwrap()[0].ints()
        };
        assert_eq!((call(false), call(true)), (vec![1, 0, 4], vec![3, 0, 4]));
    }
}
