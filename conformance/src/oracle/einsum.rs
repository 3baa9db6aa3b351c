//! Sums of products over named dimensions.

use super::args::wrap;
use super::number::{float_total, one, plus, times, zero};
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Index, Indices, Number};
use std::collections::BTreeMap;

/// The name of a dimension: the code of a letter, or `DOTS` plus the index, counted from the last, of a dimension of `...`.
type Name = u32;

/// The first name for dimensions of `...`; beyond every character.
const DOTS: Name = 0x11_0000;

/// The contraction: for every assignment of indices to names, adds the product of the operands' elements to the element of
/// the result. A dimension of size 1 is broadcast.
fn contracted(operands: &[Array], names: &[Vec<Name>], result: &[Name]) -> Result<Array, Unknown> {
    let Some(dtype) = operands.first().map(|a| a.dtype) else { return Err(Unknown("no operand".into())) };
    let mut sizes: BTreeMap<Name, usize> = BTreeMap::new();
    for (name, &size) in names.iter().zip(operands).flat_map(|(names, a)| names.iter().zip(&a.sizes)) {
        let known = sizes.entry(*name).or_insert(size);
        match (*known, size) {
            (_, 1) => {}
            (1, _) => *known = size,
            (a, b) if a == b => {}
            (a, b) => return Err(Unknown(format!("{a} and {b} for one dimension"))),
        }
    }
    let summed: Vec<Name> = sizes.keys().copied().filter(|name| !result.contains(name)).collect();
    let size = |name: &Name| sizes.get(name).copied().ok_or_else(|| Unknown("a name of no operand".into()));
    let outer = result.iter().map(size).collect::<Result<Vec<_>, _>>()?;
    let inner = summed.iter().map(size).collect::<Result<Vec<_>, _>>()?;
    Ok(Array::from_fn(dtype, outer, |kept| {
        let terms = Indices::new(&inner).map(|gone| {
            let at: BTreeMap<Name, usize> =
                result.iter().zip(kept).chain(summed.iter().zip(&gone)).map(|(&n, &i)| (n, i)).collect();
            operands.iter().zip(names).fold(one(dtype), |value, (a, names)| {
                let position: Index = names.iter().map(|name| at[name]).collect();
                times(value, a.broadcast_at(&position))
            })
        });
        match dtype.is_float() {
            true => float_total(dtype, &terms.map(Number::float).collect::<Vec<_>>()),
            false => terms.fold(zero(dtype), plus),
        }
    }))
}

/// The names on one side of a comma; the ellipsis represents `rest` dimensions.
fn names_of(term: &str, rest: usize) -> Vec<Name> {
    let letters = |part: &str| part.chars().map(Name::from).collect::<Vec<_>>();
    match term.split_once("...") {
        Some((before, behind)) => {
            let dots = (0..rest).rev().map(|d| DOTS + d as Name).collect();
            [letters(before), dots, letters(behind)].concat()
        }
        None => letters(term),
    }
}

/// einsum. Without `->` the result has the dimensions of the ellipsis, then in alphabetical order the letters that occur
/// once.
fn einsum(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[1])?;
    let operands: Vec<Array> = inputs.arrays(1)?.iter().map(|a| a.cast(dtype)).collect();
    let equation: String = inputs.str(0)?.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    let letters = |term: &str| term.chars().filter(|c| *c != '.').count();
    let rest: Vec<usize> =
        terms.iter().zip(&operands).map(|(t, a)| a.ndim().saturating_sub(letters(t))).collect();
    let names: Vec<Vec<Name>> = terms.iter().zip(&rest).map(|(term, &rest)| names_of(term, rest)).collect();
    let fits = |(names, a): (&Vec<Name>, &Array)| names.len() == a.ndim();
    if terms.len() != operands.len() || !names.iter().zip(&operands).all(fits) {
        return Err(Unknown(format!("`{equation}` for {} operands", operands.len())));
    }
    let most = rest.iter().copied().max().unwrap_or(0);
    let result = match right {
        Some(term) => names_of(term, most),
        None => {
            let all: Vec<Name> = names.concat();
            let mut once: Vec<Name> = all.iter().copied().filter(|n| *n < DOTS).collect();
            once.retain(|name| all.iter().filter(|other| *other == name).count() == 1);
            once.sort_unstable();
            [names_of(if left.contains("...") { "..." } else { "" }, most), once].concat()
        }
    };
    Ok(vec![contracted(&operands, &names, &result)?])
}

/// tensordot: sums over pairs of dimensions; the result has the other dimensions of `self`, then those of `other`.
fn tensordot(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0, 1])?;
    let (a, b) = (inputs.array(0)?.cast(dtype), inputs.array(1)?.cast(dtype));
    // Each dimension has a unique name, except that the dimensions of a pair share one.
    let mut names =
        [(0..a.ndim() as Name).collect::<Vec<_>>(), (0..b.ndim() as Name).map(|d| DOTS + d).collect()];
    let (left, right) = (inputs.ints(2)?, inputs.ints(3)?);
    if left.len() != right.len() {
        return Err(Unknown("dimensions without a partner".into()));
    }
    let mut summed = Vec::new();
    for (&i, &j) in left.iter().zip(right) {
        let (Some(i), Some(j)) = (wrap(i, a.ndim()), wrap(j, b.ndim())) else {
            return Err(Unknown(format!("no pair of dimensions {i} and {j}")));
        };
        names[1][j] = names[0][i];
        summed.push(names[0][i]);
    }
    let result: Vec<Name> = names.concat().into_iter().filter(|name| !summed.contains(name)).collect();
    Ok(vec![contracted(&[a, b], &names, &result)?])
}

/// The family's part.
pub const ALL: Family = &[("einsum", einsum), ("tensordot", tensordot)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;
    use keyway::DType;

    fn whole(sizes: &[usize]) -> Array {
        let n: usize = sizes.iter().product();
        Array::new(DType::I64, sizes, (1..=n as i128).map(Number::Int).collect())
    }

    fn made(equation: &str, shapes: &[&[usize]]) -> (Vec<usize>, Vec<i128>) {
        let operands = shapes.iter().map(|s| whole(s)).collect();
        let out =
            einsum(&Inputs(vec![Value::Str(equation.into()), Value::Arrays(operands)])).unwrap().remove(0);
        (out.sizes.clone(), out.ints())
    }

    #[test]
    fn equations_by_hand() {
        assert_eq!(made("ij,jk", &[&[2, 2], &[2, 2]]), (vec![2, 2], vec![7, 10, 15, 22]));
        assert_eq!(made("ba", &[&[2, 2]]), (vec![2, 2], vec![1, 3, 2, 4]));
        assert_eq!(made("ii", &[&[2, 2]]), (vec![], vec![5]));
        assert_eq!(made("ij->j", &[&[2, 2]]), (vec![2], vec![4, 6]));
        assert_eq!(made("...i,i->...", &[&[1, 2, 2], &[2]]), (vec![1, 2], vec![5, 11]));
        assert_eq!(made("ij,j->i", &[&[2, 2], &[1]]), (vec![2], vec![3, 7]));
    }

    #[test]
    fn pairs_of_dimensions_by_hand() {
        let call = |dims: [i64; 2]| {
            let args = [whole(&[2, 2]), whole(&[2, 2])].map(Value::Array);
            let dims = dims.map(|d| Value::Ints(vec![d]));
            tensordot(&Inputs(args.into_iter().chain(dims).collect())).unwrap()[0].ints()
        };
        assert_eq!(call([1, 0]), [7, 10, 15, 22]);
        assert_eq!(call([0, 1]), [7, 15, 10, 22]);
    }
}
