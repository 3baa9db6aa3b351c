//! `softmax_backward` and `log_softmax_backward`
//!
//! The dimension, of size `n`, splits a dense tensor into rows of `n` elements, or into blocks of `n` rows where each
//! column is one line. Tensors with different orders of dimensions are copied.

use super::buffer::{Buffer, try_parallel_for};
use super::cells::overlap;
use super::dims::dim;
use super::exponential::Exp;
use super::moments::totals;
use super::number::Apply;
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Error, Float, Lanes, Real};
use keyway_sdk::half::{bf16, f16};

/// The maximum number of columns that are summed together, and the number of rows per partial sum: a single f32 sum of very
/// many small addends would lose digits.
const COLUMNS: usize = 512;
const ROWS: usize = 128;
const GRAIN: usize = 8 * 1024;

/// An element's addend of the sum of its line: `grad`, times the output unless `LOG`.
#[inline(always)]
fn part<A: Real, const LOG: bool>(grad: A, made: A) -> A {
    if LOG { grad } else { grad * made }
}

/// The gradient of an element, from the sum of its line. If the gradients of a line of `log_softmax` sum to 0, they are
/// returned unchanged for any elements, so that an ignored NaN element has gradient 0.
#[inline(always)]
fn result<A: Apply, const LOG: bool>(grad: A, made: A, sum: A) -> A {
    if LOG {
        let share = made.apply::<Exp>() * sum;
        grad - if sum == A::ZERO { A::ZERO } else { share }
    } else {
        grad * made - made * sum
    }
}

/// Computes the gradients of rows of `n` elements with stride `inner`, in parallel.
fn lines<T: Float<Acc: Apply>, const LOG: bool>(
    grad: &[T],
    made: &[T],
    out: &mut [T],
    (n, inner): (usize, usize),
) -> Result<(), Error> {
    // SAFETY: the address is used within the output, which outlives the loop; each unit has its own lines.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    if inner == 1 {
        return try_parallel_for(grad.len() / n.max(1), GRAIN.div_ceil(n.max(1)), |rows| {
            for row in rows {
                let (grad, made) = (&grad[row * n..(row + 1) * n], &made[row * n..(row + 1) * n]);
                let part = |g: T, y: T| (part::<T::Acc, LOG>(g.to_acc(), y.to_acc()), T::Acc::ZERO);
                let (sum, _) = totals(grad, made, part);
                // SAFETY: as above.
                let to = unsafe { to.slice_mut(row * n, n) };
                zip_wide((grad, made), to, |(g, y)| result::<T::Acc, LOG>(g.to_acc(), y.to_acc(), sum));
            }
            Ok(())
        });
    }
    let (across, block) = (inner.div_ceil(COLUMNS), n * inner);
    let grain = GRAIN.div_ceil((n * inner.min(COLUMNS)).max(1));
    try_parallel_for(grad.len() / block.max(1) * across, grain, |units| {
        let (mut sums, mut some) = (Buffer::<T::Acc>::zeroed(COLUMNS)?, Buffer::<T::Acc>::zeroed(COLUMNS)?);
        for unit in units {
            let (begin, first) = (unit / across * block, unit % across * COLUMNS);
            let width = COLUMNS.min(inner - first);
            let (sums, some) = (&mut sums[..width], &mut some[..width]);
            sums.fill(T::Acc::ZERO);
            let row = |i: usize| begin + i * inner + first;
            for rows in (0..n).step_by(ROWS) {
                some.fill(T::Acc::ZERO);
                for at in (rows..n.min(rows + ROWS)).map(row) {
                    let (grad, made) = (&grad[at..at + width], &made[at..at + width]);
                    for ((sum, g), y) in some.iter_mut().zip(grad).zip(made) {
                        *sum += part::<T::Acc, LOG>(g.to_acc(), y.to_acc());
                    }
                }
                sums.iter_mut().zip(some.iter()).for_each(|(sum, some)| *sum += *some);
            }
            for at in (0..n).map(row) {
                let (grad, made) = (&grad[at..at + width], &made[at..at + width]);
                // SAFETY: as above.
                let to = unsafe { to.slice_mut(at, width) };
                zip_wide((grad, made, &sums[..]), to, |(g, y, sum)| {
                    result::<T::Acc, LOG>(g.to_acc(), y.to_acc(), sum)
                });
            }
        }
        Ok(())
    })
}

fn along<T: Float<Acc: Apply>, const LOG: bool>(call: &Call) -> Result<(), Error> {
    let (grad, made) = (call.view::<T>(0)?, call.view::<T>(1)?);
    let (sizes, dim) = (made.sizes(), dim(call, 2, made.ndim())?);
    if sizes.is_empty() {
        return lines::<T, LOG>(
            &call.contiguous::<T>(0)?,
            &call.contiguous::<T>(1)?,
            &mut call.contiguous_out::<T>(0)?,
            (1, 1),
        );
    }
    let n = sizes[dim] as usize;
    let alike = made.strides() == grad.strides() && made.strides() == call.output(0)?.strides();
    let inner = made.strides()[dim].max(1) as usize;
    if let (true, Some(grad), Some(made)) = (alike && n > 1, grad.as_dense_slice(), made.as_dense_slice()) {
        let mut out = call.out::<T>(0)?;
        return lines::<T, LOG>(grad, made, out.as_dense_mut_slice().ok_or_else(overlap)?, (n, inner));
    }
    let inner = sizes[dim + 1..].iter().product::<i64>() as usize;
    let (grad, made) = (call.contiguous::<T>(0)?, call.contiguous::<T>(1)?);
    lines::<T, LOG>(&grad, &made, &mut call.contiguous_out::<T>(0)?, (n, inner))
}

fn softmax_backward<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    along::<T, false>(call)
}

fn log_softmax_backward<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    along::<T, true>(call)
}

kernel!("softmax_backward", "TTi>T", softmax_backward, [f32, f64, f16, bf16]);
kernel!("log_softmax_backward", "TTi>T", log_softmax_backward, [f32, f64, f16, bf16]);
