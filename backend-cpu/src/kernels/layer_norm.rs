//! `layer_norm` and `layer_norm_backward`

use super::buffer::Buffer;
use super::moments::{Moments, Standard, totals, widened};
use super::number::Apply;
use keyway_cpu_loops::vectors::{Lanes as Elements, halves};
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

// Loops over indices of arrays, which are unrolled into registers; iterators of iterators are not, at this size.

const LANES: usize = 32;
const GRAIN: usize = 16 * 1024;
/// Rows whose contributions to the gradients of weight and bias are summed together.
const ROWS: usize = 64;

// Functions of their own, each with one loop: inlined into one, the loops share its registers, and keep their sums in memory.

/// What a row is normalised by.
#[inline(never)]
fn standard<T: Elements>(x: &[T], eps: T::Acc) -> Standard<T::Acc> {
    Moments::of(x).standard(eps)
}

fn layer_norm<T: Elements<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let input = call.contiguous::<T>(0)?;
    let n: usize = call.ints(1)?.iter().map(|n| *n as usize).product();
    let (weight, bias) = (&widened::<T>(call, 2, n, T::Acc::ONE)?, &widened::<T>(call, 3, n, T::Acc::ZERO)?);
    let eps = T::Acc::from_f64(call.scalar(4)?);
    let mut out = call.contiguous_out::<T>(0)?;
    // SAFETY: the address is used within the output, which outlives the loop; each row has its own part.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    parallel_for(input.len() / n.max(1), GRAIN.div_ceil(n.max(1)), |rows| {
        for r in rows {
            let x = &input[r * n..(r + 1) * n];
            let standard = standard::<T>(x, eps);
            // SAFETY: as above.
            let to = unsafe { to.slice_mut(r * n, n) };
            zip_wide((x, &weight[..], &bias[..]), to, |(x, w, b)| standard.normalised(x.to_acc()) * w + b);
        }
    })
}

/// The mean of the gradient times the weight.
#[inline(never)]
fn offset<T: Float>(g: &[T], w: &[T::Acc]) -> T::Acc {
    totals(g, w, |g, w| (g.to_acc() * w, T::Acc::ZERO)).0 / T::Acc::from_f64(g.len() as f64)
}

/// The means of the gradient times the weight less `offset`, and of that times the normalised element; the slices are of one
/// length.
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

/// Adds what a row contributes to the gradients of weight and bias; the slices are of one length.
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
    let (grad, input) = (call.contiguous::<T>(0)?, call.contiguous::<T>(1)?);
    let n: usize = call.ints(2)?.iter().map(|n| *n as usize).product();
    let weight = &widened::<T>(call, 3, n, T::Acc::ONE)?;
    let eps = T::Acc::from_f64(call.scalar(4)?);
    let mut out = call.contiguous_out::<T>(0)?;
    let (mut weight_out, mut bias_out) = (call.contiguous_out::<T>(1)?, call.contiguous_out::<T>(2)?);
    let rows = input.len() / n.max(1);
    let blocks = rows.div_ceil(ROWS);
    let mut parts = Buffer::<T::Acc>::zeroed(2 * n * blocks)?;
    // SAFETY: the addresses are used within their slices, which outlive the loop; blocks are disjoint.
    let (to, sums) = unsafe { (Lanes::new(out.as_mut_ptr()), Lanes::new(parts.as_mut_ptr())) };
    parallel_for(blocks, GRAIN.div_ceil(ROWS * n.max(1)), |range| {
        for block in range {
            // SAFETY: as above.
            let (weight_sum, bias_sum) = unsafe { sums.slice_mut(block * 2 * n, 2 * n) }.split_at_mut(n);
            for r in block * ROWS..((block + 1) * ROWS).min(rows) {
                let (x, g) = (&input[r * n..(r + 1) * n], &grad[r * n..(r + 1) * n]);
                let standard = standard::<T>(x, eps);
                // As the mean of the input: what it is off by rounding is taken away, too.
                let offset = offset::<T>(g, weight);
                let (rest, along) = means::<T>((x, g, weight), standard, offset);
                // SAFETY: as above.
                let to = unsafe { to.slice_mut(r * n, n) };
                zip_wide((x, g, &weight[..]), to, |(x, g, w)| {
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
    weight_out.iter_mut().zip(&sums[..n]).for_each(|(to, x)| *to = T::from_acc(*x));
    bias_out.iter_mut().zip(&sums[n..]).for_each(|(to, x)| *to = T::from_acc(*x));
    Ok(())
}

kernel!("layer_norm", "TIOOs>T", layer_norm, [f32, f64, f16, bf16]);
kernel!("layer_norm_backward", "TTIOs>TTT", layer_norm_backward, [f32, f64, f16, bf16]);
