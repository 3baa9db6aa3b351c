//! Composite layouts whose components the suite reads and creates itself, independently of the layout's own conversions. They are
//! identified by the names of their components:
//!
//! - `crow_indices`, `col_indices`, `values`: CSR. Row `i` has the entries `crow_indices[i]` up to `crow_indices[i + 1]`, whose
//!   columns and values are in the two other components;
//! - `indices`, `values`: COO. Entry `n` has the coordinate `indices[.., n]`; duplicates are added up.

use crate::array::{Array, Index, Indices, Number, flat};
use crate::memory::placed::{Arrangement, Placed, read_strided};
use crate::oracle::plus;
use keyway::dispatcher::table;
use keyway::{DType, Device, Layout, Result, Tensor};
use smallvec::SmallVec;

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

/// The order and form of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In row-major order, without duplicates.
    Coalesced,
    /// COO in another order, the values of most coordinates split into two entries.
    Duplicates,
    /// COO with the last dimension dense.
    Hybrid,
    /// COO with the last dimension dense, in another order, most blocks split into two entries.
    HybridDuplicates,
    /// With some stored zeros.
    StoredZeros,
    /// With components that have gaps between their elements.
    Gaps,
    /// COO, some of the zeros among them as two entries whose sum is 0.
    Cancelling,
}

impl Form {
    /// Whether the last dimension is dense.
    fn is_hybrid(self) -> bool {
        matches!(self, Form::Hybrid | Form::HybridDuplicates)
    }

    /// Whether entries are in row-major order without duplicates.
    fn is_in_order(self) -> bool {
        !matches!(self, Form::Duplicates | Form::HybridDuplicates | Form::Cancelling)
    }

    /// The form's name in a case.
    pub fn name(self) -> &'static str {
        match self {
            Form::Coalesced => "coalesced",
            Form::Duplicates => "with duplicates",
            Form::Hybrid => "hybrid",
            Form::HybridDuplicates => "hybrid with duplicates",
            Form::StoredZeros => "with stored zeros",
            Form::Gaps => "with gaps in memory",
            Form::Cancelling => "with entries that cancel",
        }
    }
}

/// The components of these values: every element that differs from zero.
pub fn components(known: Known, array: &Array) -> Vec<Array> {
    components_in(known, array, Form::Coalesced)
}

/// Splits a value into two parts whose sum is exactly the value.
fn halves(value: Number) -> [Number; 2] {
    match value {
        Number::Float(v) => [Number::Float(v / 2.0); 2],
        Number::Int(0) => [Number::Int(0); 2],
        Number::Int(v) if v < 0 => [Number::Int(v + 1), Number::Int(-1)],
        Number::Int(v) => [Number::Int(v - 1), Number::Int(1)],
        other => [other, other],
    }
}

/// A coordinate and the values of its block.
type Entry = (Index, Vec<Number>);

/// The entries, each zero among them as two whose sum is 0; the second ones follow all others.
fn cancelling(entries: Vec<Entry>, dtype: DType) -> Vec<Entry> {
    let unsigned = dtype.integer_range().is_some_and(|(low, _)| low == 0);
    let part = |value: f64| if unsigned { Number::Int(0) } else { Number::Float(value) }.cast(dtype);
    let zeros: Vec<Entry> = entries
        .iter()
        .filter(|(_, block)| !block[0].truth())
        .map(|(at, _)| (at.clone(), vec![part(-2.0)]))
        .collect();
    let first = entries.into_iter().map(|(at, block)| match block[0].truth() {
        true => (at, block),
        false => (at, vec![part(2.0)]),
    });
    first.chain(zeros).collect()
}

/// Mask of the elements that are stored in this form, in row-major order.
pub fn stored(array: &Array, form: Form) -> Vec<bool> {
    let mut stored: Vec<bool> = array.values.iter().map(|value| value.truth()).collect();
    match form {
        Form::StoredZeros | Form::Cancelling => {
            let odd = Indices::new(&array.sizes).map(|at| at.iter().sum::<usize>() % 2 == 1);
            stored.iter_mut().zip(odd).for_each(|(stored, odd)| *stored |= odd);
        }
        Form::Hybrid | Form::HybridDuplicates => {
            for block in stored.chunks_mut(array.sizes.last().map_or(1, |&width| width.max(1))) {
                block.fill(block.contains(&true));
            }
        }
        Form::Coalesced | Form::Duplicates | Form::Gaps => {}
    }
    stored
}

/// Integers as elements of indices.
fn whole(sizes: Vec<usize>, values: Vec<usize>) -> Array {
    Array::new(DType::I64, sizes, values.into_iter().map(|v| Number::Int(v as i128)).collect())
}

/// As [`components`], with the entries in this form.
pub fn components_in(known: Known, array: &Array, form: Form) -> Vec<Array> {
    let hybrid = form.is_hybrid() && known == Known::Coo && array.ndim() > 0;
    let sparse_dim = array.ndim() - usize::from(hybrid);
    let width = if hybrid { array.sizes[sparse_dim].max(1) } else { 1 };
    let stored = stored(array, form);
    let mut entries: Vec<Entry> = Indices::new(&array.sizes[..sparse_dim])
        .zip(array.values.chunks(width).zip(stored.chunks(width)))
        .filter(|(_, (_, stored))| stored[0])
        .map(|(at, (block, _))| (at, block.to_vec()))
        .collect();
    if form == Form::Cancelling && known == Known::Coo {
        entries = cancelling(entries, array.dtype);
    } else if !form.is_in_order() && known == Known::Coo {
        let parted = entries.iter().enumerate().flat_map(|(nth, (at, block))| match nth % 4 {
            3 => vec![(at.clone(), block.clone())],
            _ => [0, 1]
                .map(|part| (at.clone(), block.iter().map(|value| halves(*value)[part]).collect()))
                .to_vec(),
        });
        entries = parted.collect();
        // In reverse order, with duplicates of one coordinate not adjacent.
        entries.reverse();
        let (even, odd): (Vec<_>, Vec<_>) =
            entries.into_iter().enumerate().partition(|(nth, _)| nth % 2 == 0);
        entries = even.into_iter().chain(odd).map(|(_, entry)| entry).collect();
    }
    let nnz = entries.len();
    let sizes: Vec<usize> = std::iter::once(nnz).chain(array.sizes[sparse_dim..].iter().copied()).collect();
    let sizes = if known == Known::Coo { sizes } else { vec![nnz] };
    let values = Array::new(array.dtype, sizes, entries.iter().flat_map(|(_, v)| v.clone()).collect());
    match known {
        Known::Csr => {
            let rows = array.sizes.first().copied().unwrap_or(0);
            let mut crow = vec![0; rows + 1];
            entries.iter().for_each(|(at, _)| crow[at[0] + 1] += 1);
            (0..rows).for_each(|row| crow[row + 1] += crow[row]);
            let col = entries.iter().map(|(at, _)| at[1]).collect();
            vec![whole(vec![rows + 1], crow), whole(vec![nnz], col), values]
        }
        Known::Coo => {
            let along = |dim: usize| entries.iter().map(move |(at, _)| at[dim]);
            let indices = (0..sparse_dim).flat_map(along).collect();
            vec![whole(vec![sparse_dim, nnz], indices), values]
        }
    }
}

/// Components that are no tensor of their layout.
pub struct Invalid {
    /// The error in them.
    pub what: String,
    /// The components.
    pub parts: Vec<Array>,
    /// Whether they are marked as sorted.
    pub in_order: bool,
}

/// Mismatched components, created from values some of which differ from zero.
pub fn invalid(known: Known, array: &Array) -> Vec<Invalid> {
    let right = components(known, array);
    let (indices, values) = (right.len() - 2, right.len() - 1);
    let nnz = right[values].numel();
    let mut all = Vec::new();
    let mut add = |what: &str, part: usize, changed: Array| {
        let mut parts = right.clone();
        parts[part] = changed;
        all.push(Invalid { what: what.to_string(), parts, in_order: true });
    };
    let with = |part: usize, at: usize, value: i128| {
        let mut changed = right[part].clone();
        if let Some(value_at) = changed.values.get_mut(at) {
            *value_at = Number::Int(value);
        }
        changed
    };
    let shaped = |part: usize, sizes: Vec<usize>| {
        let count = sizes.iter().product();
        Array::new(right[part].dtype, sizes, right[part].values[..count].to_vec())
    };
    // The indices of the last entry: before the first column, and after the last.
    let last = right[indices].values.len().saturating_sub(1);
    add("components with an index of -1", indices, with(indices, last, -1));
    add("components with an index of 2^40", indices, with(indices, last, 1 << 40));
    add("indices that are no integers", indices, right[indices].map(DType::F32, |v| v));
    add("values of another dtype than the tensor's", values, right[values].map(DType::F64, |v| v));
    add("a value less than there are indices", values, shaped(values, vec![nnz - 1]));
    add("values with a dimension too many", values, shaped(values, vec![nnz, 1]));
    let flat = if known == Known::Coo { vec![last + 1] } else { vec![1, last + 1] };
    add("indices with another number of dimensions", indices, shaped(indices, flat));
    match known {
        Known::Csr => {
            let (rows, nnz) = (right[0].values.len() - 1, nnz as i128);
            for (what, at, value) in [
                ("row pointers that begin with 1", 0, 1),
                ("row pointers that end before the last entry", rows, nnz - 1),
                ("row pointers that end behind the last entry", rows, nnz + 1),
                ("row pointers that fall behind the first row", 1, nnz + 1),
                ("a row pointer of -1", 1, -1),
            ] {
                add(what, 0, with(0, at, value));
            }
            add("a row pointer less than there are rows", 0, shaped(0, vec![rows]));
        }
        Known::Coo => {
            add("an index less than there are values", indices, shaped(indices, vec![array.ndim(), nnz - 1]));
            let parts = components_in(known, array, Form::Duplicates);
            let what = "duplicate coordinates, marked as coalesced".to_string();
            all.push(Invalid { what, parts, in_order: true });
            // Without duplicates, in reverse order.
            let mut parts = components(known, array);
            parts[values].values.reverse();
            parts[indices].values.chunks_mut(nnz).for_each(<[Number]>::reverse);
            let what = "entries out of order, marked as coalesced".to_string();
            all.push(Invalid { what, parts, in_order: true });
        }
    }
    all
}

/// The dense values of components; `None` if they are inconsistent.
pub fn values(known: Known, sizes: &[usize], dtype: DType, parts: &[Array]) -> Option<Array> {
    let mut made = Array::from_fn(dtype, sizes, |_| Number::Int(0).cast(dtype));
    let offset_of = |index: &[i128]| {
        let index: Option<Index> = index
            .iter()
            .zip(sizes)
            .map(|(&i, &size)| usize::try_from(i).ok().filter(|&i| i < size))
            .collect();
        Some(flat(sizes, &index?))
    };
    let mut seen = vec![false; made.numel()];
    let mut put = |index: &[i128], value: Number| {
        let at = offset_of(index)?;
        // The sum of 0 and a single -0 would be 0.
        made.values[at] = if seen[at] { plus(made.values[at], value) } else { value };
        seen[at] = true;
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
                let index: SmallVec<[i128; 8]> = sparse.chain(at[1..].iter().map(|&i| i as i128)).collect();
                put(&index, value)?;
            }
        }
        _ => return None,
    }
    Some(made)
}

/// A tensor of a known layout with these values.
///
/// # Errors
/// Errors of the device or the layout.
pub fn make(known: Known, array: &Array, layout: Layout, device: Device, form: Form) -> Result<Tensor> {
    let arrangement = if form == Form::Gaps { Arrangement::Stepped } else { Arrangement::Contiguous };
    let parts = components_in(known, array, form)
        .iter()
        .map(|part| Ok(Placed::new(part, arrangement.where_it_suits(&part.sizes), device)?.tensor))
        .collect::<Result<Vec<_>>>()?;
    Tensor::from_components(layout, &array.sizes, array.dtype, &parts, &attrs(layout, form.is_in_order()))
}

/// The attributes of a tensor whose entries are, or are not, in row-major order without duplicates.
pub fn attrs(layout: Layout, in_order: bool) -> Vec<i64> {
    let names = table::current().layout(layout).map_or(&[][..], |entry| &entry.attrs);
    names.iter().map(|name| i64::from(in_order && name.contains("coalesced"))).collect()
}

/// For each entry of a COO tensor and each element of its block, the row-major index of the element and the value. `None` for
/// invalid components.
///
/// # Errors
/// Errors of the device.
pub fn by_entry(tensor: &Tensor) -> Result<Option<Vec<(usize, Number)>>> {
    let parts = tensor.detach().components()?;
    let parts = parts.iter().map(read_strided).collect::<Result<Option<Vec<_>>>>()?;
    let Some([indices, values]) = parts.as_deref() else { return Ok(None) };
    let sizes = tensor.shape();
    let offset_of = |at: &[usize]| {
        let sparse = (0..indices.sizes[0]).map(|dim| usize::try_from(indices.at(&[dim, at[0]]).int()).ok());
        let index: Option<Vec<usize>> = sparse.chain(at[1..].iter().map(|&i| Some(i))).collect();
        index.filter(|index| index.iter().zip(sizes).all(|(i, size)| i < size)).map(|i| flat(sizes, &i))
    };
    let entries = Indices::new(&values.sizes).zip(&values.values);
    Ok(entries.map(|(at, &value)| Some((offset_of(&at)?, value))).collect())
}

/// The values of a tensor of a known layout; `None` for invalid components.
///
/// # Errors
/// Errors of the device.
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
        for form in [
            Form::Coalesced,
            Form::Duplicates,
            Form::Hybrid,
            Form::HybridDuplicates,
            Form::StoredZeros,
            Form::Gaps,
            Form::Cancelling,
        ] {
            let parts = components_in(Known::Coo, &cube, form);
            assert_eq!(values(Known::Coo, &[2, 3, 2], DType::F32, &parts), Some(cube.clone()), "{form:?}");
            let stored = stored(&cube, form);
            let twice = usize::from(!form.is_in_order());
            assert!(parts[1].numel() >= stored.iter().filter(|s| **s).count() + twice, "{form:?}");
        }
        let cancelling = components_in(Known::Coo, &cube, Form::Cancelling);
        assert_eq!(cancelling[1].floats().iter().sum::<f64>(), cube.floats().iter().sum::<f64>());
        assert!(cancelling[1].floats().contains(&-2.0) && cancelling[1].numel() > 9, "{cancelling:?}");
        let negative = array(&[2, 2], &[-0.0, -0.0, 1.0, -0.0]);
        let parts = components_in(Known::Coo, &negative, Form::StoredZeros);
        let read = values(Known::Coo, &[2, 2], DType::F32, &parts).expect("components that fit");
        assert!(read.floats()[1].is_sign_negative() && read.floats()[0].is_sign_positive());
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
    fn stored_elements_are_distinguished_from_zeros() {
        let matrix = array(&[2, 3], &[0.0, 5.0, 0.0, 0.0, 0.0, 0.0]);
        let count = |form| stored(&matrix, form).iter().filter(|s| **s).count();
        assert_eq!((count(Form::Coalesced), count(Form::StoredZeros), count(Form::Hybrid)), (1, 3, 3));
        assert_eq!(stored(&array(&[], &[0.0]), Form::Hybrid), [false]);
    }

    #[test]
    fn invalid_components_differ_from_right_ones() {
        let matrix = array(&[3, 3], &[0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0]);
        for known in [Known::Csr, Known::Coo] {
            let all = invalid(known, &matrix);
            assert!(all.len() >= 10, "{known:?}");
            assert!(all.iter().all(|wrong| wrong.parts != components(known, &matrix)), "{known:?}");
        }
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
