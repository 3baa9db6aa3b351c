//! Entries by coordinate: keys, comparison, sorting, and addition of duplicates.
//!
//! The host synchronises with the checks whether indices are in range, and whether the keys increase: a component may have
//! been changed since it was checked, and a kernel cannot return an error.

use super::super::Kernel;
use super::super::choose::{fresh, marked_flat, words_at};
use super::super::launch::{Operand, POSITIONS, launch};
use super::super::order::sorted;
use super::super::scratch::{On, Scratch, copy, words};
use super::super::space::{countable, each};
use super::coo::{Coo, Part, address, product, wrong};
use crate::driver::Argument;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Error, OwnedTensor};

/// `Places` in sparse.cu.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PlacesArgument {
    index: u64,
    step: i64,
    places: u64,
    order: u64,
    found: u64,
    size: u64,
    stride: u64,
    added: u64,
    count: u64,
}
// SAFETY: `Places` has these fields.
unsafe impl Argument for PlacesArgument {}

/// `Picked` in sparse.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct PickedArgument {
    out: u64,
    index: u64,
    strides: [i64; 2],
    chosen: u64,
    order: u64,
    chosen_count: u64,
    first: u64,
    count: u64,
}
// SAFETY: `Picked` has these fields.
unsafe impl Argument for PickedArgument {}

/// `Sums` in sparse.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct SumsArgument {
    out: u64,
    values: u64,
    order: u64,
    begins: u64,
    groups: u64,
    entries: u64,
    width: u64,
    first: u64,
    count: u64,
}
// SAFETY: `Sums` has these fields.
unsafe impl Argument for SumsArgument {}

/// `Before` in sparse.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct BeforeArgument {
    out: u64,
    places: u64,
    wanted: u64,
    places_count: u64,
    exact: u64,
    count: u64,
}
// SAFETY: `Before` has these fields.
unsafe impl Argument for BeforeArgument {}

const SPARSE: Kernel = Kernel { family: "sparse", name: "sparse", dtype: "" };

/// Launches an entry point with one thread per position.
pub fn go<A: Argument>(
    on: On,
    entry: std::fmt::Arguments<'_>,
    count: usize,
    argument: &A,
) -> Result<(), Error> {
    if count == 0 { Ok(()) } else { launch(on.0, SPARSE, entry, each(count), argument, on.1) }
}

/// Calls `body` with the first position and the number of positions of each launch.
pub fn in_parts(count: usize, mut body: impl FnMut(u64, usize) -> Result<(), Error>) -> Result<(), Error> {
    (0..count).step_by(POSITIONS).try_for_each(|first| body(first as u64, (count - first).min(POSITIONS)))
}

/// Row-major strides, in elements.
pub fn row_major(sizes: &[i64]) -> Vec<u64> {
    let mut strides = vec![1u64; sizes.len()];
    for dim in (1..sizes.len()).rev() {
        strides[dim - 1] = strides[dim].saturating_mul(sizes[dim].max(1) as u64);
    }
    strides
}

/// The keys of entries.
pub struct Places {
    /// A key for each entry.
    pub places: Scratch,
    /// The indices of the entries.
    order: Scratch,
    /// Whether keys are strictly increasing.
    pub rise: bool,
}

/// The number of `places`, which increase, below each integer below `count`, or below each of those in `wanted`.
pub fn before(on: On, places: &Scratch, nnz: usize, count: usize) -> Result<Scratch, Error> {
    let out = Scratch::new(on, countable(count, "rows of a sparse tensor")?, 8)?;
    let (places, places_count) = (places.at(), nnz as u64);
    let argument =
        BeforeArgument { out: out.at(), places, wanted: 0, places_count, exact: 0, count: count as u64 };
    go(on, format_args!("before_u64"), count, &argument)?;
    Ok(out)
}

/// The one-based index of each wanted key in an increasing list; 0 if it is missing.
pub fn numbers(
    on: On,
    (places, nnz): (&Scratch, usize),
    (wanted, count): (&Scratch, usize),
) -> Result<Scratch, Error> {
    let out = Scratch::new(on, count, 8)?;
    let argument = BeforeArgument {
        out: out.at(),
        places: places.at(),
        wanted: wanted.at(),
        places_count: nnz as u64,
        exact: 1,
        count: count as u64,
    };
    go(on, format_args!("before_u64"), count, &argument)?;
    Ok(out)
}

impl<'a> Coo<'a> {
    /// The row-major key of each entry over the sparse dimensions.
    pub fn places(&self) -> Result<Places, Error> {
        self.places_by(&row_major(self.sparse_sizes()))
    }

    /// The dot product of each entry's indices and these strides.
    pub fn places_by(&self, strides: &[u64]) -> Result<Places, Error> {
        let (on, count) = (self.on, countable(self.nnz, "entries of a sparse tensor")?);
        let (places, order) = (Scratch::new(on, count, 8)?, Scratch::new(on, count, 4)?);
        if count == 0 {
            return Ok(Places { places, order, rise: true });
        }
        let found = Scratch::filled(on, self.sparse_dim + 1, u64::MAX)?;
        let index = self.indices.laid()?;
        let argument = PlacesArgument {
            places: places.at(),
            order: order.at(),
            count: count as u64,
            ..PlacesArgument::default()
        };
        // Without sparse dimensions all entries have the same coordinate.
        let zeros = Scratch::filled(on, if self.sparse_dim == 0 { count } else { 0 }, 0)?;
        if self.sparse_dim == 0 {
            let argument =
                PlacesArgument { index: zeros.at(), step: 1, found: found.at(), size: 1, ..argument };
            go(on, format_args!("places_i64"), count, &argument)?;
        }
        for (row, (&size, &stride)) in self.sparse_sizes().iter().zip(strides).enumerate() {
            let argument = PlacesArgument {
                index: index.operand.shifted((row as i64 * index.strides[0]) as usize, 8).data,
                step: index.strides[1],
                found: found.operand().shifted(row, 8).data,
                size: size as u64,
                stride,
                added: u64::from(row > 0),
                ..argument
            };
            go(on, format_args!("places_i64"), count, &argument)?;
        }
        let last = found.operand().shifted(self.sparse_dim, 8).data;
        go(on, format_args!("falls_i64"), count, &PlacesArgument { found: last, ..argument })?;
        let found = words(on, found.at(), self.sparse_dim + 1)?;
        for (row, (&entry, &size)) in found.iter().zip(self.sparse_sizes()).enumerate() {
            if entry != u64::MAX {
                let offset = row as i64 * index.strides[0] + entry as i64 * index.strides[1];
                let got = words(on, index.operand.shifted(offset as usize, 8).data, 1)?[0] as i64;
                let expected = format!("indices from 0 and below {size} in dimension {row}");
                return Err(wrong("indices", expected, got.to_string()));
            }
        }
        Ok(Places { places, order, rise: found[self.sparse_dim] == u64::MAX })
    }

    /// Whether two tensors' indices share memory with the same geometry, checked without reading it.
    pub fn shares_indices(&self, other: &Coo<'_>) -> bool {
        let (a, b) = (self.indices.tensor(), other.indices.tensor());
        a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() && a.strides() == b.strides()
    }

    /// The indices of selected entries; through `order`, if present, of selected ranks.
    fn picked(&self, chosen: u64, order: u64, count: usize) -> Result<OwnedTensor, Error> {
        let index = self.indices.laid()?;
        let made = self.new_tensor(dtype::I64, &[self.sparse_dim as i64, count as i64])?;
        in_parts(self.sparse_dim * count, |first, here| {
            let argument = PickedArgument {
                out: address(&made),
                index: index.operand.data,
                strides: [index.strides[0], index.strides[1]],
                chosen,
                order,
                chosen_count: count as u64,
                first,
                count: here as u64,
            };
            go(self.on, format_args!("picked_i64"), here, &argument)
        })?;
        Ok(made)
    }

    /// Coalesces the tensor and returns its keys too. The `coalesced` flag is not trusted.
    ///
    /// Sums begin with the first value, so that a single -0.0 is preserved; sums that cancel remain as explicit zeros. f16 and
    /// bf16 are accumulated in f32 and rounded once.
    pub fn in_order(self) -> Result<(Coo<'a>, Scratch), Error> {
        let Places { places, order, rise } = self.places()?;
        if rise {
            return Ok((Coo { coalesced: true, ..self }, places));
        }
        let on = self.on;
        let last = (product(self.sparse_sizes()) as u64).saturating_sub(1);
        let bits = u64::BITS - last.leading_zeros();
        let (places, order) = sorted(on, (places, order), (self.nnz, self.nnz), bits)?;
        let (begins, groups) = fresh(on, places.operand(), self.nnz, None)?;
        let values = self.new_values(groups)?;
        let (from, width) = (self.flat_values()?, self.width());
        in_parts(groups * width, |first, here| {
            let argument = SumsArgument {
                out: address(&values),
                values: from.at,
                order: order.at(),
                begins: begins.at(),
                groups: groups as u64,
                entries: self.nnz as u64,
                width: width as u64,
                first,
                count: here as u64,
            };
            go(on, format_args!("sums_{}", self.kind()), here, &argument)
        })?;
        let indices = Part::Made(self.picked(begins.at(), order.at(), groups)?);
        let places = words_at(on, (places.operand(), self.nnz), begins.at(), groups)?;
        Ok((Coo { nnz: groups, coalesced: true, indices, values: Part::Made(values), ..self }, places))
    }

    /// As [`Coo::in_order`], without the keys.
    pub fn coalesced(self) -> Result<Coo<'a>, Error> {
        Ok(self.in_order()?.0)
    }

    /// The entries with a nonzero number in a list, and their numbers.
    pub fn kept(&self, list: &Scratch) -> Result<(Coo<'static>, Scratch), Error> {
        let on = self.on;
        let (chosen, count) = marked_flat(on, list.operand(), self.nnz, 8, u64::MAX)?;
        let indices = Part::Made(self.picked(chosen.at(), 0, count)?);
        let values = Part::Made(self.values_at(chosen.operand(), count)?);
        let numbers = words_at(on, (list.operand(), self.nnz), chosen.at(), count)?;
        let (sizes, sparse_dim) = (self.sizes.clone(), self.sparse_dim);
        Ok((Coo { on, sizes, sparse_dim, nnz: count, coalesced: self.coalesced, indices, values }, numbers))
    }

    /// The same entries with other rows of indices, each one of this tensor's rows or zeros; possibly unsorted.
    pub fn with_rows(self, rows: &[Option<usize>], sizes: Vec<i64>) -> Result<Coo<'a>, Error> {
        let index = self.indices.laid()?;
        let nnz = self.nnz as i64;
        let made = self.new_tensor(dtype::I64, &[rows.len() as i64, nnz])?;
        let out = Operand { data: address(&made), ..Operand::default() };
        for (nth, row) in rows.iter().enumerate() {
            let from = row.map_or_else(Operand::default, |row| {
                index.operand.shifted((row as i64 * index.strides[0]) as usize, 8)
            });
            let to = (out.shifted(nth * self.nnz, 8), &[1][..]);
            copy(self.on, 8, &[nnz], to, (from, &[index.strides[1]]))?;
        }
        let sparse_dim = rows.len();
        Ok(Coo { sizes, sparse_dim, coalesced: false, indices: Part::Made(made), ..self })
    }
}
