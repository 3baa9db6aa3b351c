//! `rms_norm` and `rms_norm_backward`, over rows and columns as in [`layer_norm`](super::layer_norm).

mod columns;

use super::buffer::Buffer;
use super::layer_norm::arrangement::{Arrangement, Columns, Rows, arrangement};
use super::layer_norm::backward::{Operands, by_arrangement, in_columns, in_short_rows};
use super::layer_norm::columns::{Block, Matrix, SHORT, SHORTER, TRANSPOSED};
use super::moments::{sums, widened};
use super::number::Apply;
use keyway_cpu_loops::vectors::{Lanes as Elements, Vector, halves};
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

const LANES: usize = 32;
const GRAIN: usize = 16 * 1024;
/// Rows whose contributions to the gradient of the weight are summed in one part.
const ROWS: usize = 64;

// Separate functions, each with one loop: inlined into one function, the loops would share its registers and spill their
// accumulators.

/// `1 / sqrt(mean(x^2) + eps)`.
#[inline(never)]
fn reciprocal_root<T: Elements>(x: &[T], eps: T::Acc) -> T::Acc
where
    T::Acc: Float,
{
    let [squares] = sums([x], |[x], [squares]| [x.mul_add(x, squares)]);
    T::Acc::ONE / (squares / T::Acc::from_f64(x.len() as f64) + eps).sqrt()
}

/// `sum(g * w * x)`; the slices have the same length.
#[inline(never)]
#[allow(clippy::needless_range_loop)]
fn products<T: Float>(x: &[T], g: &[T], w: &[T::Acc]) -> T::Acc {
    let mut all = [T::Acc::ZERO; LANES];
    let product = |x: T, g: T, w: T::Acc| g.to_acc() * w * x.to_acc();
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let ((gs, g_rest), (ws, w_rest)) = (g.as_chunks::<LANES>(), w.as_chunks::<LANES>());
    for ((x, g), w) in xs.iter().zip(gs).zip(ws) {
        for k in 0..LANES {
            all[k] += product(x[k], g[k], w[k]);
        }
    }
    for (k, ((x, g), w)) in x_rest.iter().zip(g_rest).zip(w_rest).enumerate() {
        all[k] += product(*x, *g, *w);
    }
    halves(&mut all, |a, b| a + b)
}

/// Adds the contribution of a row to the gradient of the weight; the slices have the same length.
#[inline(never)]
fn add_row<T: Float>(weight: &mut [T::Acc], (x, g): (&[T], &[T]), root: T::Acc) {
    for ((w, x), g) in weight.iter_mut().zip(x).zip(g) {
        *w += g.to_acc() * (x.to_acc() * root);
    }
}

/// Argument `i`, or the machine epsilon of the accumulation type.
fn epsilon<T: Elements>(call: &Call, i: usize) -> Result<T::Acc, Error> {
    let given = match call.is_none(i)? {
        true if size_of::<T::Acc>() == size_of::<f64>() => f64::EPSILON,
        true => f64::from(f32::EPSILON),
        false => call.float(i)?,
    };
    Ok(T::Acc::from_f64(given))
}

fn rms_norm<T: Elements<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let shape = call.ints(1)?;
    let n: usize = shape.iter().map(|n| *n as usize).product();
    let eps = epsilon::<T>(call, 3)?;
    let view = call.view::<T>(0)?;
    match arrangement(&[call.tensor(0)?, call.output(0)?], shape.len()) {
        Some(Arrangement::Columns(columns)) => {
            let weight = widened::<T>(call, 2, n, T::Acc::ONE)?;
            let mut out = call.out::<T>(0)?;
            // SAFETY: the arrangement is that of both tensors, and the output is uniquely owned.
            let (from, to) = unsafe { (Lanes::new(view.as_ptr().cast_mut()), out.lanes()) };
            let Columns { step, count, .. } = columns;
            parallel_for(columns.matrices(), GRAIN.div_ceil(n * count), |matrices| {
                for at in matrices.map(|matrix| columns.at(matrix)) {
                    let (x, to) = (from.as_ptr().wrapping_add(at), to.as_ptr().wrapping_add(at));
                    let matrix = Matrix { x: x.cast_const(), to, n, step, columns: count };
                    // SAFETY: as above; each matrix has its own elements.
                    unsafe { columns::normalise(&matrix, &weight, eps) };
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
                    let matrix = Matrix { x: x.cast_const(), to: x, n, step: columns, columns };
                    columns::normalise(&matrix, &weight, eps);
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
            let root = reciprocal_root::<T>(x, eps);
            zip_wide((x, &weight[..]), to, |(x, w)| x.to_acc() * root * w);
        }
    })
}

fn rms_norm_backward<T: Elements<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let eps = epsilon::<T>(call, 4)?;
    let sums = by_arrangement::<T>(call, eps, columns_backward, rows_backward)?;
    let mut weight_out = call.contiguous_out::<T>(1)?;
    weight_out.iter_mut().zip(&sums[..]).for_each(|(to, x)| *to = T::from_acc(*x));
    Ok(())
}

/// Computes the gradients of columns; returns the gradient of the weight.
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
        in_columns(on, columns, columns.n, |matrix, grad, sums| {
            columns::gradients(matrix, grad, weight, eps, sums)
        })
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
    let count = rows.count();
    if (1..=SHORT).contains(&n) && rows.are_joined(n) {
        // SAFETY: as the caller guarantees.
        let mut sums = unsafe { short_rows_backward(on, n, count, weight, eps) }?;
        rows.in_row_major_order(&mut sums)?;
        return Ok(sums);
    }
    let blocks = count.div_ceil(ROWS);
    let mut parts = Buffer::<T::Acc>::zeroed(n * blocks)?;
    // SAFETY: the address is used within the sums, which outlive the loop; blocks are disjoint.
    let of_blocks = unsafe { Lanes::new(parts.as_mut_ptr()) };
    parallel_for(blocks, GRAIN.div_ceil(ROWS * n.max(1)), |range| {
        for block in range {
            // SAFETY: as above.
            let of_block = unsafe { of_blocks.slice_mut(block * n, n) };
            for at in (block * ROWS..((block + 1) * ROWS).min(count)).map(|r| rows.at(r)) {
                // SAFETY: as the caller guarantees; each row has its own part.
                let (x, g, to) = unsafe {
                    let row = |lanes: Lanes<'_, T>| std::slice::from_raw_parts(lanes.as_ptr().add(at), n);
                    (row(on.x), row(on.grad), on.to.slice_mut(at, n))
                };
                let root = reciprocal_root::<T>(x, eps);
                let along = products::<T>(x, g, weight) * root / T::Acc::from_f64(n as f64);
                zip_wide((x, g, weight), to, |(x, g, w)| (g.to_acc() * w - x.to_acc() * root * along) * root);
                add_row::<T>(of_block, (x, g), root);
            }
        }
    })?;
    let mut whole = Buffer::<T::Acc>::zeroed(n)?;
    for part in parts.chunks_exact(n.max(1)) {
        whole.iter_mut().zip(part).for_each(|(sum, part)| *sum += *part);
    }
    rows.in_row_major_order(&mut whole)?;
    Ok(whole)
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
        in_short_rows(on, n, count, n, |matrix, grad, sums| {
            columns::gradients(matrix, grad, weight, eps, sums)
        })
    }
}

kernel!("rms_norm", "TIOf>T", rms_norm, [f32, f64, f16, bf16]);
kernel!("rms_norm_backward", "TTIOf>TT", rms_norm_backward, [f32, f64, f16, bf16]);
