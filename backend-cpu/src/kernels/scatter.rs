//! `scatter` and `index_copy`, and the loop shared with the other ops that write at indices.

use super::cells::{Cells, cell_kernel, copy_all};
use super::dims::dim;
use super::indices::check_indices;
use super::nest::{Dim, Nest};
use keyway_sdk::author::{Call, Element, Error, Lanes, Plain};

/// The minimum number of elements of a row per work item: for slices with one index, and for elements with an index each.
const SLICE: usize = 512;
const PART: usize = 16;

/// The operands of [`scatter_lines`].
pub struct Scatter<'a, A, C> {
    /// The output.
    pub out: Lanes<'a, A>,
    /// The indices.
    pub index: Lanes<'a, i64>,
    /// The source elements.
    pub source: Lanes<'a, C>,
    /// The stride of the output in the indexed dimension.
    pub stride: isize,
}

/// Combines each element of the source with the output element at `index * stride`. `tasks` are the loops over the dimensions
/// that are not indexed, with the strides of output, index and source; they run in parallel. `lines` are the other loops, with
/// the strides of index and source; they run in order, so that the result does not depend on threads if there are duplicate
/// indices.
///
/// # Safety
/// The loops must stay within the three tensors for every index in `index`, tasks must write disjoint output elements, and the
/// output must not overlap index or source. The kernel that created the loops upholds this.
pub unsafe fn scatter_lines<A: Element, C: Element>(
    tasks: &Nest<3>,
    lines: &Nest<2>,
    s: &Scatter<'_, A, C>,
    put: impl Fn(A, C) -> A + Sync,
) -> Result<(), Error> {
    let stride = s.stride;
    let shortest = if tasks.inner().1[1] == 0 { SLICE } else { PART };
    tasks.for_each_row_of(lines.len(), shortest, |[o, i, c], len, [so, si, sc]| {
        lines.for_each_row_here(|[li, lc], n, [ji, jc]| {
            // SAFETY: as the caller guarantees.
            unsafe {
                let (out, index) = (s.out.as_ptr().offset(o), s.index.as_ptr().offset(i + li));
                let source = s.source.as_ptr().cast_const().offset(c + lc);
                let set = |to: *mut A, from: *const C| to.write(put(A::load(to), C::load(from)));
                if si == 0 {
                    for j in 0..n as isize {
                        let k = *index.offset(j * ji) as isize * stride;
                        let (to, from) = (out.offset(k), source.offset(j * jc));
                        if so == 1 && sc == 1 {
                            (0..len).for_each(|l| set(to.add(l), from.add(l)));
                        } else {
                            (0..len as isize).for_each(|l| set(to.offset(l * so), from.offset(l * sc)));
                        }
                    }
                } else if (stride, ji, jc) == (1, 1, 1) {
                    for l in 0..len as isize {
                        let (out, index) = (out.offset(l * so), index.offset(l * si));
                        let source = source.offset(l * sc);
                        (0..n).for_each(|j| set(out.offset(*index.add(j) as isize), source.add(j)));
                    }
                } else if so.abs() < stride.abs() || si.abs() < ji.abs() {
                    for j in 0..n as isize {
                        for l in 0..len as isize {
                            let k = *index.offset(j * ji + l * si) as isize * stride;
                            set(out.offset(l * so + k), source.offset(j * jc + l * sc));
                        }
                    }
                } else {
                    for l in 0..len as isize {
                        for j in 0..n as isize {
                            let k = *index.offset(j * ji + l * si) as isize * stride;
                            set(out.offset(l * so + k), source.offset(j * jc + l * sc));
                        }
                    }
                }
            }
        });
    })
}

/// The loops over `sizes` with the strides of output, index and source, for indices along `dim`.
pub fn along(
    dim: usize,
    sizes: &[usize],
    out: &[isize],
    index: &[isize],
    source: &[isize],
) -> (Nest<3>, Nest<2>) {
    let others = (0..sizes.len()).filter(|&d| d != dim);
    let tasks: Vec<Dim<3>> = others.map(|d| (sizes[d], [out[d], index[d], source[d]])).collect();
    let lines = Nest::in_order(vec![(sizes[dim], [index[dim], source[dim]])]);
    (Nest::sorted(tasks), lines)
}

/// The operands of a call `(self, dim, index, source)`, with checked indices.
pub struct Operands<'a, C> {
    /// Argument 0.
    pub target: Cells<'a, C>,
    /// Output 0.
    pub out: Cells<'a, C>,
    /// Argument 2.
    pub index: Cells<'a, i64>,
    /// Argument 3.
    pub source: Cells<'a, C>,
    /// The indexed dimension.
    pub dim: usize,
    /// Whether the index has one dimension and selects whole slices.
    slices: bool,
}

impl<'a, C: Element> Operands<'a, C> {
    /// Reads the operands and checks the indices.
    pub fn of(call: &Call<'a>, slices: bool) -> Result<Self, Error> {
        let (target, out) = (Cells::argument(call, 0)?.with_dim(), Cells::output(call, 0)?.with_dim());
        let dim = dim(call, 1, target.sizes.len())?;
        let index = Cells::<i64>::argument(call, 2)?.with_dim();
        check_indices(&index, "index", dim, target.sizes[dim], 0)?;
        let index = index.apart_from(&out)?;
        Ok(Operands { target, out, index, source: Cells::argument(call, 3)?, dim, slices })
    }

    /// Creates the operands from checked indices, which have one dimension for whole slices.
    pub fn new(
        target: Cells<'a, C>,
        out: Cells<'a, C>,
        index: Cells<'a, i64>,
        source: Cells<'a, C>,
        dim: usize,
        slices: bool,
    ) -> Self {
        Operands { target, out, index, source, dim, slices }
    }

    /// The same memory as elements of another type of the same size.
    pub fn cast<D: Element>(self) -> Operands<'a, D> {
        let Operands { target, out, index, source, dim, slices } = self;
        Operands { target: target.cast(), out: out.cast(), index, source: source.cast(), dim, slices }
    }

    /// The loops of [`scatter_lines`] into an output with these strides.
    pub fn loops(&self, out: &[isize]) -> (Nest<3>, Nest<2>) {
        let (sizes, index, source) = self.geometry();
        along(self.dim, &sizes, out, &index, &source)
    }

    /// The sizes of the loops, and the strides of index and source.
    pub fn geometry(&self) -> (Vec<usize>, Vec<isize>, Vec<isize>) {
        let mut sizes = self.index.sizes.clone();
        let mut index = self.index.strides.clone();
        if self.slices {
            sizes = self.target.sizes.clone();
            sizes[self.dim] = self.index.sizes[0];
            index = vec![0; sizes.len()];
            index[self.dim] = self.index.strides[0];
        }
        let source = match self.source.sizes.len() {
            0 => vec![0; sizes.len()],
            _ => self.source.strides.clone(),
        };
        (sizes, index, source)
    }
}

/// Overwrites the output elements at the indices with the source.
fn write<C: Plain>(call: &Call, slices: bool) -> Result<(), Error> {
    let mut o = Operands::<C>::of(call, slices)?;
    o.source = o.source.apart_from(&o.out)?;
    copy_all(&o.out, &o.target)?;
    let (tasks, lines) = o.loops(&o.out.strides);
    let stride = o.out.strides[o.dim];
    let operands = Scatter { out: o.out.lanes, index: o.index.lanes, source: o.source.lanes, stride };
    // SAFETY: the op's shape rule matches index, source and target except in `dim`, where every index was checked; tasks differ
    // in another dimension; operands that overlap the output were copied.
    unsafe { scatter_lines(&tasks, &lines, &operands, |_, new: C| new) }
}

fn scatter<C: Plain>(call: &Call) -> Result<(), Error> {
    write::<C>(call, false)
}

fn index_copy<C: Plain>(call: &Call) -> Result<(), Error> {
    write::<C>(call, true)
}

cell_kernel!("scatter", "TiTT>T", scatter);
cell_kernel!("index_copy", "TiTT>T", index_copy);
