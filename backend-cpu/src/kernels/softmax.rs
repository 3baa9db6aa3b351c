//! `softmax` and `log_softmax`

use super::buffer::{Buffer, try_parallel_for};
use super::dims::dim;
use super::exponential::Log;
use super::number::{Apply, name_functions};
use super::reduction::{Geometry, offset};
use crate::math;
use keyway_cpu_loops::vectors::{self, Lanes as Elements, Vector, halves, widen};
use keyway_cpu_loops::{narrow_slice, zip_wide};
use keyway_sdk::author::{Call, Error, Lanes, Real};
use keyway_sdk::half::{bf16, f16};

const LANES: usize = 32;
/// The maximum number of elements in the buffer of the column kernel, and of columns per inner loop.
const BUFFER: usize = 64 * 1024;
const COLUMNS: usize = 512;
/// The maximum number of rows computed together, and their approximate number of elements.
const ROWS: usize = 16;
const ROW_BLOCK: usize = 4 * 1024;
const GRAIN: usize = 4 * 1024;

// Loops over indices of arrays are unrolled into registers; iterators of iterators are not, at this size.

name_functions! {
    /// The exponential of `x - max`, an addend of the row's sum.
    Share (math::exp_share_f32, math::exp_share_f64);
}

/// A type in which softmax is computed.
pub trait Shares: Apply + Elements<Acc = Self> {}

impl<A: Apply + Elements<Acc = A>> Shares for A {}

/// Returns the sum of the exponentials of `(x - largest) * scale` for one row; `scale` is not negative. Without `LOG` the row
/// is overwritten with the exponentials.
#[inline(always)]
#[allow(clippy::needless_range_loop)]
pub fn begin<A: Apply, const LOG: bool>(values: &mut [A], largest: A, scale: A) -> A {
    let mut sum = [A::ZERO; LANES];
    let (chunks, rest) = values.as_chunks_mut::<LANES>();
    for chunk in chunks {
        // The exponentials first: a loop with this many operations is vectorised, not unrolled.
        let mut made = [A::ZERO; LANES];
        for k in 0..LANES {
            made[k] = ((chunk[k] - largest) * scale).apply::<Share>();
        }
        for k in 0..LANES {
            sum[k] += made[k];
        }
        if !LOG {
            *chunk = made;
        }
    }
    for (sum, x) in sum.iter_mut().zip(rest) {
        let e = ((*x - largest) * scale).apply::<Share>();
        *sum += e;
        *x = if LOG { *x } else { e };
    }
    halves(&mut sum, |a, b| a + b)
}

/// Computes a result from an element of a row after [`begin`].
#[inline(always)]
fn finish<A: Real, const LOG: bool>(x: A, largest: A, factor: A) -> A {
    if LOG { x - largest - factor } else { x * factor }
}

/// The running state of the softmax of several columns, which are read row by row: one value for each column.
struct Columns<A> {
    largest: [[A; LANES]; COLUMNS / LANES],
    sum: [[A; LANES]; COLUMNS / LANES],
}

#[allow(clippy::needless_range_loop)]
impl<A: Shares> Columns<A> {
    fn new() -> Self {
        let all = |value| [[value; LANES]; COLUMNS / LANES];
        Columns { largest: all(A::NEG_INFINITY), sum: all(A::ZERO) }
    }

    /// First pass, for each row: updates the maxima.
    #[inline(always)]
    fn raise(&mut self, row: &[A]) {
        for (largest, x) in self.largest.iter_mut().zip(row.as_chunks::<LANES>().0) {
            for k in (0..LANES).step_by(A::Vector::LANES) {
                // SAFETY: both have the lanes of a vector after index `k`, since the vector's lanes divide `LANES`.
                unsafe {
                    let larger =
                        A::Vector::load(largest.as_ptr().add(k)).larger(A::Vector::load(x.as_ptr().add(k)));
                    larger.store(largest.as_mut_ptr().add(k));
                }
            }
        }
    }

    /// Second pass, for each row: adds the exponentials to the sums. The row is overwritten with the exponentials, or with the
    /// differences from the maxima if `LOG`.
    #[inline(always)]
    fn add<const LOG: bool>(&mut self, row: &mut [A]) {
        let columns = self.largest.iter().zip(&mut self.sum);
        for (x, (largest, sum)) in row.as_chunks_mut::<LANES>().0.iter_mut().zip(columns) {
            let mut made = [A::ZERO; LANES];
            for k in 0..LANES {
                let less = x[k] - largest[k];
                made[k] = less.apply::<Share>();
                x[k] = less;
            }
            for k in 0..LANES {
                sum[k] += made[k];
            }
            if !LOG {
                *x = made;
            }
        }
    }

    /// After all rows: replaces the sums of the first `columns` columns by their logarithms if `LOG`, by their reciprocals
    /// otherwise.
    #[inline(always)]
    fn turn<const LOG: bool>(&mut self, columns: usize) {
        for sum in &mut self.sum[..columns / LANES] {
            for k in 0..LANES {
                sum[k] = if LOG { sum[k].apply::<Log>() } else { A::ONE / sum[k] };
            }
        }
    }

    /// Third pass, for each row: computes the results.
    #[inline(always)]
    fn finish<const LOG: bool>(&self, row: &mut [A]) {
        for (x, sum) in row.as_chunks_mut::<LANES>().0.iter_mut().zip(&self.sum) {
            for k in 0..LANES {
                x[k] = if LOG { x[k] - sum[k] } else { x[k] * sum[k] };
            }
        }
    }
}

fn along<T: Elements<Acc: Shares>, const LOG: bool>(call: &Call) -> Result<(), Error> {
    let (input, mut out) = (call.view::<T>(0)?, call.out::<T>(0)?);
    let dim = dim(call, 1, input.ndim())?;
    let g = &Geometry::new(
        input.sizes(),
        input.strides(),
        out.strides(),
        if input.ndim() == 0 { 0 } else { 1 << dim },
    );
    if g.outputs == 0 || g.count == 0 {
        return Ok(());
    }
    let n = g.count;
    let stride = g.reduced.first().map_or(1, |d| d.stride);
    let out_stride = out.strides().get(dim).map_or(1, |s| *s as usize);
    // SAFETY: the addresses are used within the views, which outlive the loops.
    let (from, to) = unsafe { (Lanes::new(input.as_ptr().cast_mut()), out.lanes()) };
    let (kept, width) = match g.kept.last() {
        Some(inner) if g.is_columnar() => {
            (*inner, inner.size.min((BUFFER / n).next_multiple_of(LANES).clamp(LANES, COLUMNS)))
        }
        _ => (Default::default(), 1),
    };
    if width == 1 {
        let together = (ROW_BLOCK / n).clamp(1, ROWS);
        return try_parallel_for(g.outputs, GRAIN.div_ceil(n), |units| {
            let mut buffer = Buffer::<T::Acc>::zeroed(n * together)?;
            for first in units.clone().step_by(together) {
                let some = together.min(units.end - first);
                let rows = &mut buffer[..some * n];
                let (mut largest, mut sums) = ([T::Acc::ZERO; ROWS], [T::Acc::ONE; ROWS]);
                // Each step is computed for all rows before the next: within a row, a step depends on the previous one.
                for (i, row) in rows.chunks_exact_mut(n).enumerate() {
                    let at = offset(&g.kept, first + i).0;
                    // SAFETY: offsets and strides are those of the views; a row has capacity for `n` elements.
                    unsafe {
                        if stride == 1 {
                            widen(row.as_mut_ptr(), from.as_ptr().cast_const().add(at), n);
                        } else {
                            row.iter_mut()
                                .enumerate()
                                .for_each(|(k, x)| *x = from.read(at + k * stride).to_acc());
                        }
                    }
                    largest[i] = vectors::largest(row);
                }
                for (i, row) in rows.chunks_exact_mut(n).enumerate() {
                    sums[i] = begin::<T::Acc, LOG>(row, largest[i], T::Acc::ONE);
                }
                let mut factors = [T::Acc::ZERO; ROWS];
                for (factor, sum) in factors.iter_mut().zip(&sums) {
                    *factor = if LOG { sum.apply::<Log>() } else { T::Acc::ONE / *sum };
                }
                for (i, row) in rows.chunks_exact(n).enumerate() {
                    let (to_at, largest, factor) = (offset(&g.kept, first + i).1, largest[i], factors[i]);
                    let finish = |x| finish::<T::Acc, LOG>(x, largest, factor);
                    // SAFETY: as above; each unit writes its own row.
                    unsafe {
                        if out_stride == 1 {
                            let to = std::slice::from_raw_parts_mut(to.as_ptr().add(to_at), n);
                            zip_wide((row,), to, |(x,)| finish(x));
                        } else {
                            row.iter()
                                .enumerate()
                                .for_each(|(k, x)| to.write(to_at + k * out_stride, T::from_acc(finish(*x))));
                        }
                    }
                }
            }
            Ok(())
        });
    }
    let across = kept.size.div_ceil(width);
    let outer = &g.kept[..g.kept.len() - 1];
    try_parallel_for(g.outputs / kept.size * across, GRAIN.div_ceil(n * width), |units| {
        // Rows of whole vectors; the elements after the last column are arbitrary.
        let step = width.next_multiple_of(LANES);
        let mut buffer = Buffer::<T::Acc>::zeroed(n * step)?;
        for unit in units {
            let (at, to_at) = offset(outer, unit / across);
            let first = unit % across * width;
            let width = width.min(kept.size - first);
            let step = width.next_multiple_of(LANES);
            let buffer = &mut buffer[..n * step];
            let mut columns = Columns::new();
            // SAFETY: as above; each unit writes its own columns.
            unsafe {
                for (i, row) in buffer.chunks_exact_mut(step).enumerate() {
                    let at = at + i * stride + first * kept.stride;
                    if kept.stride == 1 {
                        widen(row.as_mut_ptr(), from.as_ptr().cast_const().add(at), width);
                    } else {
                        row[..width]
                            .iter_mut()
                            .enumerate()
                            .for_each(|(j, b)| *b = from.read(at + j * kept.stride).to_acc());
                    }
                    columns.raise(row);
                }
                buffer.chunks_exact_mut(step).for_each(|row| columns.add::<LOG>(row));
                columns.turn::<LOG>(step);
                for (i, row) in buffer.chunks_exact_mut(step).enumerate() {
                    let at = to_at + i * out_stride + first * kept.out;
                    columns.finish::<LOG>(row);
                    if kept.out == 1 {
                        narrow_slice(row, to.slice_mut(at, width));
                    } else {
                        row[..width]
                            .iter()
                            .enumerate()
                            .for_each(|(j, x)| to.write(at + j * kept.out, T::from_acc(*x)));
                    }
                }
            }
        }
        Ok(())
    })
}

fn softmax<T: Elements<Acc: Shares>>(call: &Call) -> Result<(), Error> {
    along::<T, false>(call)
}

fn log_softmax<T: Elements<Acc: Shares>>(call: &Call) -> Result<(), Error> {
    along::<T, true>(call)
}

kernel!("softmax", "Ti>T", softmax, [f32, f64, f16, bf16]);
kernel!("log_softmax", "Ti>T", log_softmax, [f32, f64, f16, bf16]);
