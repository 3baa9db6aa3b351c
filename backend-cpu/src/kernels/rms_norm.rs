//! `rms_norm` and `rms_norm_backward`, of rows and columns as [`layer_norm`](super::layer_norm) has them.

mod columns;

use super::buffer::Buffer;
use super::layer_norm::arrangement::{Arrangement, Columns, Rows, arrangement};
use super::layer_norm::columns::{Block, Contributions, Matrix, SHORT, SHORTER, TRANSPOSED};
use super::moments::{sums, widened};
use super::number::Apply;
use keyway_cpu_loops::vectors::{Lanes as Elements, Vector, halves};
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

const LANES: usize = 32;
const GRAIN: usize = 16 * 1024;
/// Rows whose contributions to the gradient of the weight are summed together.
const ROWS: usize = 64;
/// Elements of the matrices whose contributions to the gradient of the weight are summed together.
const PART: usize = 64 * 1024;

// Functions of their own, each with one loop: inlined into one, the loops share its registers, and keep their sums in memory.

/// `1 / sqrt(mean(x^2) + eps)`.
#[inline(never)]
fn reciprocal_root<T: Elements>(x: &[T], eps: T::Acc) -> T::Acc
where
    T::Acc: Float,
{
    let [squares] = sums([x], |[x], [squares]| [x.mul_add(x, squares)]);
    T::Acc::ONE / (squares / T::Acc::from_f64(x.len() as f64) + eps).sqrt()
}

/// The sum of the products of gradient, weight and element; the slices are of one length.
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

/// Adds what a row contributes to the gradient of the weight; the slices are of one length.
#[inline(never)]
fn add_row<T: Float>(weight: &mut [T::Acc], (x, g): (&[T], &[T]), root: T::Acc) {
    for ((w, x), g) in weight.iter_mut().zip(x).zip(g) {
        *w += g.to_acc() * (x.to_acc() * root);
    }
}

/// Argument `i`, or the distance from 1 to the next number of the type that is computed in.
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
            // SAFETY: the arrangement is that of both tensors, and the output is no other's.
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
/// There must be the rows at both addresses, and nobody else use those that are written.
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

/// Where gradients are read and written.
struct Operands<'a, T> {
    grad: Lanes<'a, T>,
    x: Lanes<'a, T>,
    to: Lanes<'a, T>,
}

fn rms_norm_backward<T: Elements<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let shape = call.ints(2)?;
    let n: usize = shape.iter().map(|n| *n as usize).product();
    let eps = epsilon::<T>(call, 4)?;
    let tensors = [call.tensor(1)?, call.tensor(0)?, call.output(0)?];
    let (grad, x) = (call.view::<T>(0)?, call.view::<T>(1)?);
    let sums = match arrangement(&tensors, shape.len()) {
        Some(arrangement) => {
            let mut out = call.out::<T>(0)?;
            // SAFETY: the arrangement is that of the three tensors, of which the output's elements are no other's.
            unsafe {
                let strided = Operands {
                    grad: Lanes::new(grad.as_ptr().cast_mut()),
                    x: Lanes::new(x.as_ptr().cast_mut()),
                    to: out.lanes(),
                };
                match arrangement {
                    Arrangement::Columns(columns) => {
                        let weight = widened::<T>(call, 3, n, T::Acc::ONE)?;
                        columns_backward(&strided, &columns, &weight, eps)
                    }
                    Arrangement::Rows(rows) => {
                        let weight = rows.widened::<T>(call, 3, n, T::Acc::ONE)?;
                        rows_backward(&strided, n, &rows, &weight, eps)
                    }
                }
            }
        }
        None => {
            let (grad, x) = (call.contiguous::<T>(0)?, call.contiguous::<T>(1)?);
            let mut out = call.contiguous_out::<T>(0)?;
            let (rows, weight) = (Rows::dense(x.len() / n.max(1), n), widened::<T>(call, 3, n, T::Acc::ONE)?);
            // SAFETY: the slices have the rows.
            unsafe {
                let dense = Operands {
                    grad: Lanes::new(grad.as_ptr().cast_mut()),
                    x: Lanes::new(x.as_ptr().cast_mut()),
                    to: Lanes::new(out.as_mut_ptr()),
                };
                rows_backward(&dense, n, &rows, &weight, eps)
            }
        }
    }?;
    let mut weight_out = call.contiguous_out::<T>(1)?;
    weight_out.iter_mut().zip(&sums[..]).for_each(|(to, x)| *to = T::from_acc(*x));
    Ok(())
}

/// The gradients of columns; returns that of the weight.
///
/// # Safety
/// There must be the elements at each address, and nobody else use those that are written.
unsafe fn columns_backward<T: Elements>(
    on: &Operands<'_, T>,
    columns: &Columns,
    weight: &[T::Acc],
    eps: T::Acc,
) -> Result<Buffer<T::Acc>, Error> {
    let &Columns { n, step, count, .. } = columns;
    let matrices = columns.matrices();
    let together = (PART / (n * count)).max(1);
    let parts = matrices.div_ceil(together);
    let mut sums = Contributions::<T>::new(n, parts)?;
    // SAFETY: the address is used within the sums, which outlive the loop; each part has its own.
    let to_sums = unsafe { Lanes::new(sums.as_mut_ptr()) };
    parallel_for(parts, GRAIN.div_ceil(together * n * count), |range| {
        for part in range {
            let sums = to_sums.as_ptr().wrapping_add(part * Contributions::<T>::len(n));
            for at in (part * together..((part + 1) * together).min(matrices)).map(|m| columns.at(m)) {
                let at = |lanes: Lanes<'_, T>| lanes.as_ptr().wrapping_add(at);
                let matrix = Matrix { x: at(on.x).cast_const(), to: at(on.to), n, step, columns: count };
                // SAFETY: as the caller guarantees; each matrix has its own elements.
                unsafe { columns::gradients(&matrix, at(on.grad), weight, eps, sums) };
            }
        }
    })?;
    sums.sums(n)
}

/// As [`columns_backward`], of rows of `n` elements.
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

/// As [`columns_backward`], of `count` rows of at most [`SHORT`] elements, one after the other.
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
    let together = (PART / (n * TRANSPOSED)).max(1) * TRANSPOSED;
    let parts = count.div_ceil(together);
    let mut sums = Contributions::<T>::new(n, parts)?;
    // SAFETY: as in `columns_backward`.
    let to_sums = unsafe { Lanes::new(sums.as_mut_ptr()) };
    parallel_for(parts, GRAIN.div_ceil(together * n), |range| {
        let (mut rows, mut x, mut grad) = (Block::<T>::new(), Block::<T>::new(), Block::<T>::new());
        for part in range {
            let sums = to_sums.as_ptr().wrapping_add(part * Contributions::<T>::len(n));
            let end = ((part + 1) * together).min(count);
            for first in (part * together..end).step_by(TRANSPOSED) {
                let columns = TRANSPOSED.min(end - first);
                let at = |lanes: Lanes<'_, T>| lanes.as_ptr().wrapping_add(first * n);
                // SAFETY: as the caller guarantees; each element is read before it is overwritten.
                unsafe {
                    x.read(&mut rows, at(on.x), n, columns);
                    grad.read(&mut rows, at(on.grad), n, columns);
                    let to = x.as_mut_ptr();
                    let matrix = Matrix { x: to.cast_const(), to, n, step: columns, columns };
                    columns::gradients(&matrix, grad.as_mut_ptr(), weight, eps, sums);
                    x.write(&mut rows, at(on.to), n, columns);
                }
            }
        }
    })?;
    sums.sums(n)
}

kernel!("rms_norm", "TIOf>T", rms_norm, [f32, f64, f16, bf16]);
kernel!("rms_norm_backward", "TTIOf>TT", rms_norm_backward, [f32, f64, f16, bf16]);
