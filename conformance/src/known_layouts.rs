//! Composite layouts whose components the suite reads and makes itself, so that a layout's own conversions have no part in
//! the judgement of its kernels. They are known by the names of their components:
//!
//! - `crow_indices`, `col_indices`, `values`: compressed sparse rows. Row `i` has the entries `crow_indices[i]` up to
//!   `crow_indices[i + 1]`, whose columns and values lie in the two other components;
//! - `indices`, `values`: coordinates. Entry `n` lies at `indices[.., n]`; entries of one place are added up.

use crate::array::{Array, Indices, Number, flat};
use crate::memory::{Arrangement, Placed, read_strided};
use crate::oracle::plus;
use keyway::dispatcher::table;
use keyway::{DType, Device, Layout, Result, Tensor};

/// A layout that the suite knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Compressed sparse rows.
    Csr,
    /// Coordinates.
    Coo,
}

/// The layout, if the suite knows it.
pub fn find(layout: Layout) -> Option<Known> {
    let names: Vec<&str> = table::current().layout(layout)?.components.iter().map(String::as_str).collect();
    match names[..] {
        ["crow_indices", "col_indices", "values"] => Some(Known::Csr),
        ["indices", "values"] => Some(Known::Coo),
        _ => None,
    }
}

/// How entries are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In row-major order, each place once.
    Coalesced,
    /// Of coordinates: in another order, the values of most places in two parts.
    Duplicates,
    /// Of coordinates: the last dimension within each entry.
    Hybrid,
    /// Some zeros among them.
    StoredZeros,
    /// In components whose elements do not follow each other in memory.
    Gaps,
}

impl Form {
    /// Whether zeros may be stored.
    pub fn stores_zeros(self) -> bool {
        matches!(self, Form::Hybrid | Form::StoredZeros)
    }

    /// What a case says of it.
    pub fn name(self) -> &'static str {
        match self {
            Form::Coalesced => "coalesced",
            Form::Duplicates => "with duplicates",
            Form::Hybrid => "hybrid",
            Form::StoredZeros => "with stored zeros",
            Form::Gaps => "with gaps in memory",
        }
    }
}

/// The components of these values: every element that differs from zero.
pub fn components(known: Known, array: &Array) -> Vec<Array> {
    components_in(known, array, Form::Coalesced)
}

/// A value in two parts whose sum it is, exactly.
fn halves(value: Number) -> [Number; 2] {
    match value {
        Number::Float(v) => [Number::Float(v / 2.0); 2],
        Number::Int(v) if v < 0 => [Number::Int(v + 1), Number::Int(-1)],
        Number::Int(v) => [Number::Int(v - 1), Number::Int(1)],
        other => [other, other],
    }
}

/// As [`components`], the entries in this form.
pub fn components_in(known: Known, array: &Array, form: Form) -> Vec<Array> {
    let whole = |sizes: Vec<usize>, values: Vec<usize>| {
        Array::new(DType::I64, sizes, values.into_iter().map(|v| Number::Int(v as i128)).collect())
    };
    let is_stored = |(at, value): &(Vec<usize>, Number)| {
        value.truth() || form == Form::StoredZeros && at.iter().sum::<usize>() % 2 == 1
    };
    let mut entries: Vec<(Vec<usize>, Number)> =
        Indices::new(&array.sizes).zip(array.values.iter().copied()).filter(is_stored).collect();
    if let (Form::Duplicates, Known::Coo) = (form, known) {
        let parted = entries.iter().enumerate().flat_map(|(nth, (at, value))| match nth % 4 {
            3 => vec![(at.clone(), *value)],
            _ => halves(*value).map(|part| (at.clone(), part)).to_vec(),
        });
        entries = parted.collect();
        // The last first, and the parts of one place apart from each other.
        entries.reverse();
        let (even, odd): (Vec<_>, Vec<_>) =
            entries.into_iter().enumerate().partition(|(nth, _)| nth % 2 == 0);
        entries = even.into_iter().chain(odd).map(|(_, entry)| entry).collect();
    }
    let values = Array::new(array.dtype, [entries.len()], entries.iter().map(|(_, v)| *v).collect());
    match known {
        Known::Csr => {
            let rows = array.sizes.first().copied().unwrap_or(0);
            let before = |row: usize| entries.iter().filter(|(at, _)| at[0] < row).count();
            let crow = (0..=rows).map(before).collect();
            let col = entries.iter().map(|(at, _)| at[1]).collect();
            vec![whole(vec![rows + 1], crow), whole(vec![entries.len()], col), values]
        }
        Known::Coo if form == Form::Hybrid && array.ndim() > 0 => {
            let sparse_dim = array.ndim() - 1;
            let width = array.sizes[sparse_dim];
            let mut places: Vec<Vec<usize>> =
                entries.iter().map(|(at, _)| at[..sparse_dim].to_vec()).collect();
            places.dedup();
            let indices = (0..sparse_dim).flat_map(|dim| places.iter().map(move |at| at[dim])).collect();
            let block = |at: &Vec<usize>| {
                let at = at.clone();
                (0..width).map(move |last| array.at(&[&at[..], &[last]].concat()))
            };
            let values = places.iter().flat_map(block).collect();
            let values = Array::new(array.dtype, [places.len(), width], values);
            vec![whole(vec![sparse_dim, places.len()], indices), values]
        }
        Known::Coo => {
            let along = |dim: usize| entries.iter().map(move |(at, _)| at[dim]);
            let indices = (0..array.ndim()).flat_map(along).collect();
            vec![whole(vec![array.ndim(), entries.len()], indices), values]
        }
    }
}

/// Components that do not fit each other, and what is wrong with them, made of right ones with some entries.
pub fn invalid(known: Known, right: &[Array]) -> Vec<(String, Vec<Array>)> {
    let with = |part: usize, at: usize, value: i128| {
        let mut parts = right.to_vec();
        if let Some(place) = parts[part].values.get_mut(at) {
            *place = Number::Int(value);
        }
        parts
    };
    // The indices of the last entry: before the first column, and behind the last.
    let places = right.len() - 2;
    let last = right[places].values.len().saturating_sub(1);
    let mut all: Vec<(String, Vec<Array>)> = [-1, 1 << 40]
        .into_iter()
        .map(|index| (format!("components with an index of {index}"), with(places, last, index)))
        .collect();
    if known == Known::Csr {
        let (rows, nnz) = (right[0].values.len() - 1, right[1].values.len() as i128);
        for (what, at, value) in [
            ("row pointers that begin with 1", 0, 1),
            ("row pointers that end before the last entry", rows, nnz - 1),
            ("row pointers that end behind the last entry", rows, nnz + 1),
            ("row pointers that fall behind the first row", 1, nnz + 1),
            ("a row pointer of -1", 1, -1),
        ] {
            all.push((what.to_string(), with(0, at, value)));
        }
    }
    all
}

/// The values that components stand for; `None` for components that do not fit each other.
pub fn values(known: Known, sizes: &[usize], dtype: DType, parts: &[Array]) -> Option<Array> {
    let mut made = Array::from_fn(dtype, sizes, |_| Number::Int(0).cast(dtype));
    let place = |index: &[i128]| {
        let index: Option<Vec<usize>> = index
            .iter()
            .zip(sizes)
            .map(|(&i, &size)| usize::try_from(i).ok().filter(|&i| i < size))
            .collect();
        Some(flat(sizes, &index?))
    };
    let mut put = |index: &[i128], value: Number| {
        let at = place(index)?;
        made.values[at] = plus(made.values[at], value);
        Some(())
    };
    match (known, parts) {
        (Known::Csr, [crow, col, values]) if sizes.len() == 2 => {
            let (crow, col) = (crow.ints(), col.ints());
            for row in 0..sizes[0] {
                let range =
                    usize::try_from(*crow.get(row)?).ok()?..usize::try_from(*crow.get(row + 1)?).ok()?;
                for at in range {
                    put(&[row as i128, *col.get(at)?], *values.values.get(at)?)?;
                }
            }
        }
        (Known::Coo, [indices, values]) if indices.ndim() == 2 && values.ndim() > 0 => {
            let (sparse_dim, nnz) = (indices.sizes[0], indices.sizes[1]);
            let dense = sizes.get(sparse_dim..)?;
            if values.sizes[0] != nnz || values.sizes[1..] != *dense {
                return None;
            }
            for (at, &value) in Indices::new(&values.sizes).zip(&values.values) {
                let sparse = (0..sparse_dim).map(|dim| indices.at(&[dim, at[0]]).int());
                let index: Vec<i128> = sparse.chain(at[1..].iter().map(|&i| i as i128)).collect();
                put(&index, value)?;
            }
        }
        _ => return None,
    }
    Some(made)
}

/// A tensor of a known layout that holds these values.
///
/// # Errors
/// What the device or the layout reports.
pub fn make(known: Known, array: &Array, layout: Layout, device: Device, form: Form) -> Result<Tensor> {
    let arrangement = if form == Form::Gaps { Arrangement::Stepped } else { Arrangement::Contiguous };
    let parts = components_in(known, array, form)
        .iter()
        .map(|part| Ok(Placed::new(part, arrangement.where_it_suits(&part.sizes), device)?.tensor))
        .collect::<Result<Vec<_>>>()?;
    let attrs = table::current().layout(layout).map_or(&[][..], |entry| &entry.attrs);
    // Whether entries come in row-major order, and each place once.
    let in_order = form != Form::Duplicates;
    let attrs: Vec<i64> =
        attrs.iter().map(|name| i64::from(in_order && name.contains("coalesced"))).collect();
    Tensor::from_components(layout, &array.sizes, array.dtype, &parts, &attrs)
}

/// The values of a tensor of a known layout; `None` for components that are no such tensor.
///
/// # Errors
/// What the device reports.
pub fn read(known: Known, tensor: &Tensor) -> Result<Option<Array>> {
    let parts = tensor.detach().components()?;
    let parts = parts.iter().map(read_strided).collect::<Result<Option<Vec<_>>>>()?;
    Ok(parts.and_then(|parts| values(known, tensor.shape(), tensor.dtype(), &parts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(sizes: &[usize], values: &[f64]) -> Array {
        Array::new(DType::F32, sizes, values.iter().map(|&v| Number::Float(v)).collect())
    }

    #[test]
    fn components_stand_for_the_values_that_they_were_made_of() {
        let matrix = array(&[3, 4], &[0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 4.0]);
        let csr = components(Known::Csr, &matrix);
        assert_eq!((csr[0].ints(), csr[1].ints()), (vec![0, 2, 2, 4], vec![1, 3, 0, 3]));
        let coo = components(Known::Coo, &matrix);
        assert_eq!(coo[0].ints(), [0, 0, 2, 2, 1, 3, 0, 3]);
        for (known, parts) in [(Known::Csr, csr), (Known::Coo, coo)] {
            assert_eq!(values(known, &[3, 4], DType::F32, &parts), Some(matrix.clone()));
        }
        let cube = array(&[2, 1, 2], &[0.0, 5.0, 6.0, 0.0]);
        let parts = components(Known::Coo, &cube);
        assert_eq!(values(Known::Coo, &[2, 1, 2], DType::F32, &parts), Some(cube));
    }

    #[test]
    fn every_form_stands_for_the_same_values() {
        let cube = array(&[2, 3, 2], &[0.0, 5.0, 6.0, 0.0, 1.0, -2.0, 0.0, 0.0, 3.0, 4.0, 7.0, -1.0]);
        for form in [Form::Coalesced, Form::Duplicates, Form::Hybrid] {
            let parts = components_in(Known::Coo, &cube, form);
            assert_eq!(values(Known::Coo, &[2, 3, 2], DType::F32, &parts), Some(cube.clone()), "{form:?}");
        }
        let twice = components_in(Known::Coo, &cube, Form::Duplicates);
        assert!(twice[1].numel() > components(Known::Coo, &cube)[1].numel());
        let blocks = components_in(Known::Coo, &cube, Form::Hybrid);
        assert_eq!((blocks[0].sizes.clone(), blocks[1].sizes.clone()), (vec![2, 5], vec![5, 2]));
        let matrix = array(&[2, 3], &[0.0, 5.0, 0.0, 0.0, 0.0, -1.0]);
        let parts = components_in(Known::Csr, &matrix, Form::StoredZeros);
        assert_eq!((parts[0].ints(), parts[1].ints()), (vec![0, 1, 3], vec![1, 0, 2]));
        assert_eq!(values(Known::Csr, &[2, 3], DType::F32, &parts), Some(matrix));
        let whole = Array::new(DType::I8, [2], vec![Number::Int(-128), Number::Int(127)]);
        let parts = components_in(Known::Coo, &whole, Form::Duplicates);
        assert_eq!(values(Known::Coo, &[2], DType::I8, &parts), Some(whole));
    }

    #[test]
    fn components_that_do_not_fit_are_no_values() {
        let whole = |values: &[i128]| {
            Array::new(DType::I64, [values.len()], values.iter().map(|&v| Number::Int(v)).collect())
        };
        let one = array(&[1], &[1.0]);
        for (crow, col) in [(&[0, 1][..], &[4][..]), (&[0, 2], &[0]), (&[0, -1], &[0]), (&[0], &[0])] {
            let parts = [whole(crow), whole(col), one.clone()];
            assert_eq!(values(Known::Csr, &[1, 4], DType::F32, &parts), None, "{crow:?} {col:?}");
        }
        let twice = [whole(&[0, 2]), whole(&[3, 3]), array(&[2], &[1.0, 2.0])];
        let sum = values(Known::Csr, &[1, 4], DType::F32, &twice).unwrap();
        assert_eq!(sum.floats(), [0.0, 0.0, 0.0, 3.0]);
    }
}
