//! `adam_rows`: an Adam step for selected rows of a table, which reads and writes the rows of the parameter and of both
//! moments once. The indices are sorted, so that the gradients of one row are accumulated in a block. Rows are scattered in
//! memory, so each is prefetched some rows ahead. Scratch: 28 bytes for each index.

use super::cells::{Cells, copy_all, row_major};
use super::gather::{AHEAD, fetch};
use super::indices::check_indices;
use super::long_sums::CHAIN;
use super::scatter_add::Sources;
use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Call, Element, Error, Float, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

fn refused(what: &str) -> Error {
    Error::Unsupported { what: what.to_string() }
}

/// Whether the elements of each row are contiguous.
fn has_dense_rows<T: Element>(cells: &Cells<'_, T>) -> bool {
    let dims = cells.sizes.iter().zip(&cells.strides).zip(row_major(&cells.sizes)).skip(1);
    cells.numel() == 0 || dims.into_iter().all(|((&size, &stride), own)| size == 1 || stride == own)
}

/// The range of addresses that contains a tensor's elements.
fn reach<T: Element>(cells: &Cells<'_, T>) -> std::ops::Range<usize> {
    let begin = cells.lanes.as_ptr().addr();
    let last: usize =
        cells.sizes.iter().zip(&cells.strides).map(|(&n, &s)| n.saturating_sub(1) * s.unsigned_abs()).sum();
    begin..begin + if cells.numel() == 0 { 0 } else { (last + 1) * size_of::<T>() }
}

/// The number of columns whose gradients are accumulated in one pass over the indices.
const BLOCK: usize = 512;

/// The coefficients of a step.
#[derive(Clone, Copy)]
struct Step<A> {
    beta1: A,
    beta2: A,
    /// The weight of the gradient in each moment, `1 - beta`.
    rest1: A,
    rest2: A,
    eps: A,
    rate: A,
    decay: A,
    shrink: A,
}

impl<A: Real> Step<A> {
    fn of(call: &Call<'_>) -> Result<Self, Error> {
        let number = |i| call.float(i).map(A::from_f64);
        let rest = |i| call.float(i).map(|beta| A::from_f64(1.0 - beta));
        Ok(Step {
            beta1: number(5)?,
            beta2: number(6)?,
            rest1: rest(5)?,
            rest2: rest(6)?,
            eps: number(7)?,
            rate: number(8)?,
            decay: number(9)?,
            shrink: number(10)?,
        })
    }

    /// Updates a part of one row in the accumulation type, with one rounding at the end.
    #[inline(always)]
    fn part<T: Float<Acc = A>>(self, [p, m, v]: [&mut [T]; 3], grad: &[A]) {
        for (((p, m), v), grad) in p.iter_mut().zip(m).zip(v).zip(grad) {
            let own = p.to_acc();
            // Without weight decay, an infinite parameter must not contribute to its gradient.
            let decayed = if self.decay == A::ZERO { A::ZERO } else { self.decay * own };
            let g = *grad + decayed;
            let mean = self.beta1 * m.to_acc() + self.rest1 * g;
            let square = self.beta2 * v.to_acc() + self.rest2 * (g * g);
            let moved = self.shrink * own - self.rate * mean / (square.sqrt() + self.eps);
            (*p, *m, *v) = (T::from_acc(moved), T::from_acc(mean), T::from_acc(square));
        }
    }
}

fn adam_rows<T: Float>(call: &Call<'_>) -> Result<(), Error> {
    let outs = [Cells::<T>::output(call, 0)?, Cells::output(call, 1)?, Cells::output(call, 2)?];
    let tables = [Cells::<T>::argument(call, 0)?, Cells::argument(call, 1)?, Cells::argument(call, 2)?];
    let (index, grad) = (Cells::<i64>::argument(call, 3)?, Cells::<T>::argument(call, 4)?);
    let step = Step::<T::Acc>::of(call)?;
    if !outs.iter().chain([&grad]).all(has_dense_rows) {
        return Err(refused("rows whose elements are strided"));
    }
    // An output is its own table, or overlaps no argument.
    let apart = |i: usize, j: usize| !outs[i].is_at(&tables[j]) || i == j || outs[i].numel() == 0;
    let meet = |i: usize, j: usize| {
        let (a, b) = (reach(&outs[i]), reach(&outs[j]));
        i != j && a.start < b.end && b.start < a.end
    };
    let own = (0..3).all(|i| !outs[i].is_at(&grad) && (0..3).all(|j| apart(i, j) && !meet(i, j)));
    if !own && outs[0].numel() > 0 {
        return Err(refused("a table, means and a gradient that share memory"));
    }
    check_indices(&index, "index", 0, outs[0].sizes[0], 0)?;
    let n = index.sizes[0];
    if u32::try_from(outs[0].sizes[0]).is_err() || u32::try_from(n).is_err() {
        return Err(refused("more rows or indices than u32 counts"));
    }
    outs.iter().zip(&tables).try_for_each(|(out, table)| copy_all(out, table))?;
    let width: usize = outs[0].sizes[1..].iter().product();
    if width == 0 {
        return Ok(());
    }
    // SAFETY: `j` is below the number of indices, and no index is written concurrently.
    let row = |j: usize| unsafe { *index.lanes.as_ptr().offset(j as isize * index.strides[0]) } as usize;
    let sources = Sources::of_few(n, row)?;
    let lanes = [&outs[0], &outs[1], &outs[2]].map(|out| (out.lanes, out.strides[0]));
    let (from, apart) = (grad.lanes, grad.strides[0]);
    parallel_for(sources.len(), (Cost::Heavy.grain() / width).max(1), |range| {
        let (mut sums, mut wide) = ([T::Acc::ZERO; BLOCK], [0.0; BLOCK]);
        let end = range.end;
        for group in range {
            let (row, of_row) = sources.group(group);
            if group + AHEAD < end {
                let (soon, of_row) = sources.group(group + AHEAD);
                let rows = lanes.map(|(to, stride)| to.as_ptr().wrapping_offset(soon as isize * stride));
                rows.iter().for_each(|row| fetch(*row, width));
                let first = of_row.first().map(|j| from.as_ptr().wrapping_offset(*j as isize * apart));
                first.into_iter().for_each(|row| fetch(row, width));
            }
            for begin in (0..width).step_by(BLOCK) {
                let sums = &mut sums[..BLOCK.min(width - begin)];
                let is_long = of_row.len() > CHAIN;
                if is_long {
                    wide.fill(0.0);
                }
                for part in of_row.chunks(CHAIN) {
                    for (nth, j) in part.iter().enumerate() {
                        // SAFETY: there is a dense gradient row for each index, without concurrent writes.
                        let grad = unsafe {
                            let row = from.as_ptr().cast_const().offset(*j as isize * apart);
                            std::slice::from_raw_parts(row.add(begin), sums.len())
                        };
                        match nth {
                            0 => sums.iter_mut().zip(grad).for_each(|(sum, g)| *sum = g.to_acc()),
                            _ => sums.iter_mut().zip(grad).for_each(|(sum, g)| *sum += g.to_acc()),
                        }
                    }
                    if is_long {
                        wide.iter_mut().zip(&*sums).for_each(|(wide, sum)| *wide += sum.to_f64());
                    }
                }
                if is_long {
                    sums.iter_mut().zip(&wide).for_each(|(sum, wide)| *sum = T::Acc::from_f64(*wide));
                }
                // SAFETY: rows are dense and within their tensors, as every index was checked; the outputs share no memory
                // with each other or with the gradient, and each row belongs to one group.
                let parts = lanes.map(|(to, stride)| unsafe {
                    let row = to.as_ptr().offset(row as isize * stride);
                    std::slice::from_raw_parts_mut(row.add(begin), sums.len())
                });
                step.part(parts, sums);
            }
        }
    })
}

kernel!("adam_rows", "TTTTTffffff>TTT", adam_rows, [f32, f64, f16, bf16]);
