//! `layer_norm` and `layer_norm_backward`
//!
//! Dense rows are normalised one by one, for any order of their dimensions and of the rows. If the elements of many rows
//! are interleaved, as in channels_last with the last dimension normalised, or if rows are short, they are normalised as
//! columns of a matrix.

pub(super) mod arrangement;
pub(super) mod backward;
pub(super) mod columns;

use super::buffer::Buffer;
use super::moments::{Moments, Standard, totals, widened};
use super::number::Apply;
use arrangement::{Arrangement, Columns, Rows, arrangement};
use backward::{Operands, by_arrangement, in_columns, in_short_rows};
use columns::{Block, Matrix, SHORT, SHORTER, TRANSPOSED};
use keyway_cpu_loops::vectors::{Lanes as Elements, halves};
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

// Loops over indices of arrays are unrolled into registers; iterators of iterators are not, at this size.

const LANES: usize = 32;
const GRAIN: usize = 16 * 1024;
/// Rows whose contributions to the gradients of weight and bias are summed in one part.
const ROWS: usize = 64;
/// Elements of the matrices in one part of the sums for the gradients of weight and bias; larger matrices are a part each.
const PART: usize = 64 * 1024;

// Separate functions with one loop each: if inlined into one function, the loops compete for registers and spill their
// sums.

/// The mean and scale by which a row is normalised.
#[inline(never)]
fn standard<T: Elements>(x: &[T], eps: T::Acc) -> Standard<T::Acc> {
    Moments::of(x).standard(eps)
}

fn layer_norm<T: Elements<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let shape = call.ints(1)?;
    let n: usize = shape.iter().map(|n| *n as usize).product();
    let eps = T::Acc::from_f64(call.scalar(4)?);
    let view = call.view::<T>(0)?;
    match arrangement(&[call.tensor(0)?, call.output(0)?], shape.len()) {
        Some(Arrangement::Columns(columns)) => {
            let weight = widened::<T>(call, 2, n, T::Acc::ONE)?;
            let bias = widened::<T>(call, 3, n, T::Acc::ZERO)?;
            let mut out = call.out::<T>(0)?;
            // SAFETY: the arrangement is that of both tensors, and the output is uniquely owned.
            let (from, to) = unsafe { (Lanes::new(view.as_ptr().cast_mut()), out.lanes()) };
            let Columns { step, count, .. } = columns;
            parallel_for(columns.matrices(), GRAIN.div_ceil(n * count), |matrices| {
                for matrix in matrices {
                    let at = columns.at(matrix);
                    let (x, to) = (from.as_ptr().wrapping_add(at), to.as_ptr().wrapping_add(at));
                    // SAFETY: as above; each matrix has its own elements.
                    unsafe { Matrix { x, to, n, step, columns: count }.normalise(&weight, &bias, eps) };
                }
            })
        }
        Some(Arrangement::Rows(rows)) => {
            let mut out = call.out::<T>(0)?;
            // SAFETY: as above.
            unsafe { by_rows(call, (view.as_ptr(), out.lanes().as_ptr()), n, &rows, eps) }
        }
        None => {
            let (input, mut out) = (call.contiguous::<T>(0)?, call.contiguous_out::<T>(0)?);
            let rows = Rows::dense(input.len() / n.max(1), n);
            // SAFETY: both slices have the rows.
            unsafe { by_rows(call, (input.as_ptr(), out.as_mut_ptr()), n, &rows, eps) }
        }
    }
}

/// Normalises rows of `n` elements.
///
/// # Safety
/// The rows must be valid at both addresses, and the written ones must be uniquely owned.
unsafe fn by_rows<T: Elements<Acc: Apply>>(
    call: &Call,
    (x, to): (*const T, *mut T),
    n: usize,
    rows: &Rows,
    eps: T::Acc,
) -> Result<(), Error> {
    let weight = rows.widened::<T>(call, 2, n, T::Acc::ONE)?;
    let bias = rows.widened::<T>(call, 3, n, T::Acc::ZERO)?;
    // SAFETY: the addresses are used as the caller guarantees; each row has its own part.
    let (from, to) = unsafe { (Lanes::new(x.cast_mut()), Lanes::new(to)) };
    if (1..=SHORTER).contains(&n) && rows.are_joined(n) {
        let count = rows.count();
        return parallel_for(count.div_ceil(TRANSPOSED), GRAIN.div_ceil(n * TRANSPOSED), |some| {
            let (mut rows, mut block) = (Block::<T>::new(), Block::<T>::new());
            for first in some.map(|k| k * TRANSPOSED) {
                let columns = TRANSPOSED.min(count - first);
                // SAFETY: as the caller guarantees; each element is read before it is overwritten.
                unsafe {
                    block.read(&mut rows, from.as_ptr().add(first * n), n, columns);
                    let x = block.as_mut_ptr();
                    Matrix { x, to: x, n, step: columns, columns }.normalise(&weight, &bias, eps);
                    block.write(&mut rows, to.as_ptr().add(first * n), n, columns);
                }
            }
        });
    }
    parallel_for(rows.count(), GRAIN.div_ceil(n.max(1)), |range| {
        for at in range.map(|r| rows.at(r)) {
            // SAFETY: as the caller guarantees.
            let (x, to) =
                unsafe { (std::slice::from_raw_parts(from.as_ptr().add(at), n), to.slice_mut(at, n)) };
            let standard = standard::<T>(x, eps);
            zip_wide((x, &weight[..], &bias[..]), to, |(x, w, b)| standard.normalised(x.to_acc()) * w + b);
        }
    })
}

/// The mean of `grad * weight`.
#[inline(never)]
fn offset<T: Float>(g: &[T], w: &[T::Acc]) -> T::Acc {
    totals(g, w, |g, w| (g.to_acc() * w, T::Acc::ZERO)).0 / T::Acc::from_f64(g.len() as f64)
}

/// The means of `grad * weight - offset`, and of its product with the normalised element; the slices have the same length.
#[inline(never)]
#[allow(clippy::needless_range_loop)]
fn means<T: Float>(
    (x, g, w): (&[T], &[T], &[T::Acc]),
    standard: Standard<T::Acc>,
    offset: T::Acc,
) -> (T::Acc, T::Acc) {
    let (mut left, mut right) = ([T::Acc::ZERO; LANES], [T::Acc::ZERO; LANES]);
    let both = |x: T, g: T, w: T::Acc| {
        let d = g.to_acc() * w - offset;
        (d, d * standard.normalised(x.to_acc()))
    };
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let ((gs, g_rest), (ws, w_rest)) = (g.as_chunks::<LANES>(), w.as_chunks::<LANES>());
    for ((x, g), w) in xs.iter().zip(gs).zip(ws) {
        for k in 0..LANES {
            let (a, b) = both(x[k], g[k], w[k]);
            left[k] += a;
            right[k] += b;
        }
    }
    for (k, ((x, g), w)) in x_rest.iter().zip(g_rest).zip(w_rest).enumerate() {
        let (a, b) = both(*x, *g, *w);
        left[k] += a;
        right[k] += b;
    }
    let count = T::Acc::from_f64(x.len() as f64);
    (halves(&mut left, |a, b| a + b) / count, halves(&mut right, |a, b| a + b) / count)
}

/// Adds a row's contribution to the gradients of weight and bias; the slices have the same length.
#[inline(never)]
fn add_row<T: Float>(
    (weight, bias): (&mut [T::Acc], &mut [T::Acc]),
    (x, g): (&[T], &[T]),
    standard: Standard<T::Acc>,
) {
    for (((w, b), x), g) in weight.iter_mut().zip(bias).zip(x).zip(g) {
        let grad = g.to_acc();
        *w += grad * standard.normalised(x.to_acc());
        *b += grad;
    }
}

fn layer_norm_backward<T: Elements<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let eps = T::Acc::from_f64(call.scalar(4)?);
    let sums = by_arrangement::<T>(call, eps, columns_backward, rows_backward)?;
    let n = sums.len() / 2;
    let (mut weight_out, mut bias_out) = (call.contiguous_out::<T>(1)?, call.contiguous_out::<T>(2)?);
    weight_out.iter_mut().zip(&sums[..n]).for_each(|(to, x)| *to = T::from_acc(*x));
    bias_out.iter_mut().zip(&sums[n..]).for_each(|(to, x)| *to = T::from_acc(*x));
    Ok(())
}

/// Computes the gradients of columns; returns those of weight and bias, concatenated.
///
/// # Safety
/// The elements must be valid at each address, and the written ones must be uniquely owned.
unsafe fn columns_backward<T: Elements>(
    on: &Operands<'_, T>,
    columns: &Columns,
    weight: &[T::Acc],
    eps: T::Acc,
) -> Result<Buffer<T::Acc>, Error> {
    // SAFETY: as the caller guarantees; each matrix has its own elements.
    unsafe {
        in_columns(on, columns, 2 * columns.n, |matrix, grad, sums| matrix.gradients(grad, weight, eps, sums))
    }
}

/// As [`columns_backward`], for rows of `n` elements.
///
/// # Safety
/// As for [`columns_backward`].
unsafe fn rows_backward<T: Elements<Acc: Apply>>(
    on: &Operands<'_, T>,
    n: usize,
    rows: &Rows,
    weight: &[T::Acc],
    eps: T::Acc,
) -> Result<Buffer<T::Acc>, Error> {
    if (1..=SHORT).contains(&n) && rows.are_joined(n) {
        // SAFETY: as the caller guarantees.
        let mut sums = unsafe { short_rows_backward(on, n, rows.count(), weight, eps) }?;
        let (of_weight, of_bias) = sums.split_at_mut(n);
        rows.in_row_major_order(of_weight)?;
        rows.in_row_major_order(of_bias)?;
        return Ok(sums);
    }
    let count = rows.count();
    let blocks = count.div_ceil(ROWS);
    let mut parts = Buffer::<T::Acc>::zeroed(2 * n * blocks)?;
    // SAFETY: the address is used within the sums, which outlive the loop; blocks are disjoint.
    let sums = unsafe { Lanes::new(parts.as_mut_ptr()) };
    parallel_for(blocks, GRAIN.div_ceil(ROWS * n.max(1)), |range| {
        for block in range {
            // SAFETY: as above.
            let (weight_sum, bias_sum) = unsafe { sums.slice_mut(block * 2 * n, 2 * n) }.split_at_mut(n);
            for at in (block * ROWS..((block + 1) * ROWS).min(count)).map(|r| rows.at(r)) {
                // SAFETY: as the caller guarantees; each row has its own part.
                let (x, g, to) = unsafe {
                    let row = |lanes: Lanes<'_, T>| std::slice::from_raw_parts(lanes.as_ptr().add(at), n);
                    (row(on.x), row(on.grad), on.to.slice_mut(at, n))
                };
                let standard = standard::<T>(x, eps);
                // As with the mean of the input, the rounding error is subtracted too.
                let offset = offset::<T>(g, weight);
                let (rest, along) = means::<T>((x, g, weight), standard, offset);
                zip_wide((x, g, weight), to, |(x, g, w)| {
                    let d = (g.to_acc() * w - offset) - rest;
                    (d - standard.normalised(x.to_acc()) * along) * standard.rstd
                });
                add_row::<T>((weight_sum, bias_sum), (x, g), standard);
            }
        }
    })?;
    let mut sums = Buffer::<T::Acc>::zeroed(2 * n)?;
    for part in parts.chunks_exact((2 * n).max(1)) {
        sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += *part);
    }
    let (of_weight, of_bias) = sums.split_at_mut(n);
    rows.in_row_major_order(of_weight)?;
    rows.in_row_major_order(of_bias)?;
    Ok(sums)
}

/// As [`columns_backward`], for `count` contiguous rows of at most [`SHORT`] elements.
///
/// # Safety
/// As for [`columns_backward`].
unsafe fn short_rows_backward<T: Elements>(
    on: &Operands<'_, T>,
    n: usize,
    count: usize,
    weight: &[T::Acc],
    eps: T::Acc,
) -> Result<Buffer<T::Acc>, Error> {
    // SAFETY: as the caller guarantees.
    unsafe {
        in_short_rows(on, n, count, 2 * n, |matrix, grad, sums| matrix.gradients(grad, weight, eps, sums))
    }
}

kernel!("layer_norm", "TIOOs>T", layer_norm, [f32, f64, f16, bf16]);
kernel!("layer_norm_backward", "TTIOs>TTT", layer_norm_backward, [f32, f64, f16, bf16]);
