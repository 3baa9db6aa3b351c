//! `softmax` and `log_softmax`

use super::buffer::{Buffer, try_parallel_for};
use super::exponential::{Exp, Log};
use super::number::Apply;
use super::reduction::{Geometry, offset};
use keyway_cpu_loops::{narrow_slice, zip_wide};
use keyway_sdk::author::{Call, Error, Float, Lanes, Real};
use keyway_sdk::half::{bf16, f16};

const LANES: usize = 32;
/// Elements that are kept in a buffer for columns, and the most columns that one inner loop takes together.
const BUFFER: usize = 64 * 1024;
const COLUMNS: usize = 128;
const GRAIN: usize = 4 * 1024;

// Loops over indices of arrays, which are unrolled into registers; iterators of iterators are not, at this size.

/// The elements combined by lanes.
#[inline(always)]
#[allow(clippy::needless_range_loop)]
fn fold<A: Real>(values: &[A], identity: A, combine: impl Fn(A, A) -> A) -> A {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [identity; LANES];
    for chunk in chunks {
        for k in 0..LANES {
            lanes[k] = combine(lanes[k], chunk[k]);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = combine(*lane, *x);
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for k in 0..width {
            lanes[k] = combine(lanes[k], lanes[k + width]);
        }
    }
    lanes[0]
}

/// The larger, as one instruction gives it. A NaN may be lost: the sum of the exponentials has it.
#[inline(always)]
fn larger<A: Real>(a: A, b: A) -> A {
    if a > b { a } else { b }
}

/// Begins one row in place; what is returned makes its results of what it holds then.
#[inline(always)]
#[allow(clippy::needless_range_loop)]
fn row<A: Apply, const LOG: bool>(values: &mut [A]) -> impl Fn(A) -> A + use<A, LOG> {
    let largest = fold(values, A::NEG_INFINITY, larger);
    let mut sum = [A::ZERO; LANES];
    let (chunks, rest) = values.as_chunks_mut::<LANES>();
    for chunk in chunks {
        // The exponentials first: a loop of so many operations is vectorised, not unrolled.
        let mut made = [A::ZERO; LANES];
        for k in 0..LANES {
            made[k] = (chunk[k] - largest).apply::<Exp>();
        }
        for k in 0..LANES {
            sum[k] += made[k];
        }
        if !LOG {
            *chunk = made;
        }
    }
    for (sum, x) in sum.iter_mut().zip(rest) {
        let e = (*x - largest).apply::<Exp>();
        *sum += e;
        *x = if LOG { *x } else { e };
    }
    let sum = fold(&sum, A::ZERO, |a, b| a + b);
    let factor = if LOG { sum.apply::<Log>() } else { A::ONE / sum };
    move |x| if LOG { x - largest - factor } else { x * factor }
}

/// Rows of `width` columns, a multiple of [`LANES`], each column in place.
#[inline(always)]
#[allow(clippy::needless_range_loop)]
fn columns<A: Apply, const LOG: bool>(values: &mut [A], width: usize) {
    let mut largest = [[A::NEG_INFINITY; LANES]; COLUMNS / LANES];
    let mut sum = [[A::ZERO; LANES]; COLUMNS / LANES];
    for row in values.chunks_exact(width) {
        for (largest, x) in largest.iter_mut().zip(row.as_chunks::<LANES>().0) {
            for k in 0..LANES {
                largest[k] = larger(largest[k], x[k]);
            }
        }
    }
    for row in values.chunks_exact_mut(width) {
        for ((x, largest), sum) in row.as_chunks_mut::<LANES>().0.iter_mut().zip(&largest).zip(&mut sum) {
            let mut made = [A::ZERO; LANES];
            for k in 0..LANES {
                let less = x[k] - largest[k];
                made[k] = less.apply::<Exp>();
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
    for sum in &mut sum[..width / LANES] {
        for k in 0..LANES {
            sum[k] = if LOG { sum[k].apply::<Log>() } else { A::ONE / sum[k] };
        }
    }
    for row in values.chunks_exact_mut(width) {
        for (x, sum) in row.as_chunks_mut::<LANES>().0.iter_mut().zip(&sum) {
            for k in 0..LANES {
                x[k] = if LOG { x[k] - sum[k] } else { x[k] * sum[k] };
            }
        }
    }
}

fn along<T: Float<Acc: Apply>, const LOG: bool>(call: &Call) -> Result<(), Error> {
    let (input, mut out) = (call.view::<T>(0)?, call.out::<T>(0)?);
    let (ndim, dim) = (input.ndim() as i64, call.int(1)?);
    let dim = if dim < 0 { dim + ndim } else { dim } as usize;
    let g =
        &Geometry::new(input.sizes(), input.strides(), out.strides(), if ndim == 0 { 0 } else { 1 << dim });
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
        return try_parallel_for(g.outputs, GRAIN.div_ceil(n), |units| {
            let mut buffer = Buffer::<T::Acc>::zeroed(n)?;
            for unit in units {
                let (at, to_at) = offset(&g.kept, unit);
                // SAFETY: offsets and strides are those of the views; each unit writes its own row.
                unsafe {
                    if stride == 1 {
                        let from = std::slice::from_raw_parts(from.as_ptr().cast_const().add(at), n);
                        buffer.iter_mut().zip(from).for_each(|(b, x)| *b = x.to_acc());
                    } else {
                        buffer
                            .iter_mut()
                            .enumerate()
                            .for_each(|(i, b)| *b = from.read(at + i * stride).to_acc());
                    }
                    let finish = row::<T::Acc, LOG>(&mut buffer);
                    if out_stride == 1 {
                        let to = std::slice::from_raw_parts_mut(to.as_ptr().add(to_at), n);
                        zip_wide((&buffer[..],), to, |(x,)| finish(x));
                    } else {
                        buffer
                            .iter()
                            .enumerate()
                            .for_each(|(i, x)| to.write(to_at + i * out_stride, T::from_acc(finish(*x))));
                    }
                }
            }
            Ok(())
        });
    }
    let across = kept.size.div_ceil(width);
    let outer = &g.kept[..g.kept.len() - 1];
    try_parallel_for(g.outputs / kept.size * across, GRAIN.div_ceil(n * width), |units| {
        // Rows of whole vectors; what lies behind the columns is anything.
        let step = width.next_multiple_of(LANES);
        let mut buffer = Buffer::<T::Acc>::zeroed(n * step)?;
        for unit in units {
            let (at, to_at) = offset(outer, unit / across);
            let first = unit % across * width;
            let width = width.min(kept.size - first);
            let step = width.next_multiple_of(LANES);
            let buffer = &mut buffer[..n * step];
            // SAFETY: as above; each unit writes its own columns.
            unsafe {
                for (i, row) in buffer.chunks_exact_mut(step).enumerate() {
                    let at = at + i * stride + first * kept.stride;
                    if kept.stride == 1 {
                        let from = std::slice::from_raw_parts(from.as_ptr().cast_const().add(at), width);
                        row.iter_mut().zip(from).for_each(|(b, x)| *b = x.to_acc());
                    } else {
                        row[..width]
                            .iter_mut()
                            .enumerate()
                            .for_each(|(j, b)| *b = from.read(at + j * kept.stride).to_acc());
                    }
                }
                columns::<T::Acc, LOG>(buffer, step);
                for (i, row) in buffer.chunks_exact(step).enumerate() {
                    let at = to_at + i * out_stride + first * kept.out;
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

fn softmax<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    along::<T, false>(call)
}

fn log_softmax<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    along::<T, true>(call)
}

kernel!("softmax", "Ti>T", softmax, [f32, f64, f16, bf16]);
kernel!("log_softmax", "Ti>T", log_softmax, [f32, f64, f16, bf16]);
