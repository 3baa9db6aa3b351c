//! `layer_norm` and `layer_norm_backward`

use super::buffer::{Buffer, try_parallel_for};
use super::number::Apply;
use keyway_cpu_loops::{CallExt, Contiguous, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

const LANES: usize = 32;
const GRAIN: usize = 16 * 1024;
/// Rows whose contributions to the gradients of weight and bias are summed together.
const ROWS: usize = 64;

// Loops over indices of arrays, which are unrolled into registers; iterators of iterators are not, at this size.

/// The lanes added up.
#[inline(always)]
fn across<A: Real>(mut lanes: [A; LANES]) -> A {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for k in 0..width {
            lanes[k] += lanes[k + width];
        }
    }
    lanes[0]
}

/// The sum of `f` by lanes.
#[inline(always)]
#[allow(clippy::needless_range_loop)]
fn total<X: Copy, A: Real>(x: &[X], f: impl Fn(X) -> A) -> A {
    let mut lanes = [A::ZERO; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for x in chunks {
        for k in 0..LANES {
            lanes[k] += f(x[k]);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += f(*x);
    }
    across(lanes)
}

/// The two sums of `f` by lanes; `x` and `y` are of one length.
#[inline(always)]
fn totals<X: Copy, Y: Copy, A: Real>(x: &[X], y: &[Y], f: impl Fn(X, Y) -> (A, A)) -> (A, A) {
    let (mut left, mut right) = ([A::ZERO; LANES], [A::ZERO; LANES]);
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in xs.iter().zip(ys) {
        for k in 0..LANES {
            let (a, b) = f(x[k], y[k]);
            left[k] += a;
            right[k] += b;
        }
    }
    for (k, (x, y)) in x_rest.iter().zip(y_rest).enumerate() {
        let (a, b) = f(*x, *y);
        left[k] += a;
        right[k] += b;
    }
    (across(left), across(right))
}

/// What a row is normalised by: `x` becomes `((x - mean) - rest) * rstd`.
struct Moments<A> {
    /// The mean, rounded.
    mean: A,
    /// What it is off by rounding: with large numbers, far more than the digits that a result has.
    rest: A,
    rstd: A,
}

impl<A: Real> Moments<A> {
    /// Those of a row that is not empty. The mean is that of the distances from the first element, so that equal numbers
    /// become 0.
    #[inline(always)]
    fn of<T: Float<Acc = A>>(x: &[T], eps: A) -> Self {
        let (count, first) = (A::from_f64(x.len() as f64), x[0].to_acc());
        let mean = first + total(x, |x| x.to_acc() - first) / count;
        let (sum, squares) = totals(x, x, |x, _| {
            let d = x.to_acc() - mean;
            (d, d * d)
        });
        let rest = sum / count;
        let variance = squares / count - rest * rest;
        let variance = if variance < A::ZERO { A::ZERO } else { variance };
        Moments { mean, rest, rstd: A::ONE / (variance + eps).sqrt() }
    }

    #[inline(always)]
    fn normalised(&self, x: A) -> A {
        ((x - self.mean) - self.rest) * self.rstd
    }
}

/// Argument `i` in the accumulation type, or `otherwise` everywhere if it was not given.
fn widened<T: Float>(call: &Call, i: usize, n: usize, otherwise: T::Acc) -> Result<Buffer<T::Acc>, Error> {
    if call.is_none(i)? {
        return Buffer::filled(n, otherwise);
    }
    let given: Contiguous<T> = call.contiguous(i)?;
    let mut widened = Buffer::zeroed(given.len())?;
    widened.iter_mut().zip(given.iter()).for_each(|(to, x)| *to = x.to_acc());
    Ok(widened)
}

fn layer_norm<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
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
            let moments = Moments::of(x, eps);
            // SAFETY: as above.
            let to = unsafe { to.slice_mut(r * n, n) };
            zip_wide((x, &weight[..], &bias[..]), to, |(x, w, b)| moments.normalised(x.to_acc()) * w + b);
        }
    })
}

fn layer_norm_backward<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let (grad, input) = (call.contiguous::<T>(0)?, call.contiguous::<T>(1)?);
    let n: usize = call.ints(2)?.iter().map(|n| *n as usize).product();
    let weight = &widened::<T>(call, 3, n, T::Acc::ONE)?;
    let eps = T::Acc::from_f64(call.scalar(4)?);
    let mut out = call.contiguous_out::<T>(0)?;
    let (mut weight_out, mut bias_out) = (call.contiguous_out::<T>(1)?, call.contiguous_out::<T>(2)?);
    let rows = input.len() / n.max(1);
    let blocks = rows.div_ceil(ROWS);
    let count = T::Acc::from_f64(n as f64);
    let mut parts = Buffer::<T::Acc>::zeroed(2 * n * blocks)?;
    // SAFETY: the addresses are used within their slices, which outlive the loop; blocks are disjoint.
    let (to, sums) = unsafe { (Lanes::new(out.as_mut_ptr()), Lanes::new(parts.as_mut_ptr())) };
    try_parallel_for(blocks, GRAIN.div_ceil(ROWS * n.max(1)), |range| {
        let (mut hat, mut scaled) = (Buffer::<T::Acc>::zeroed(n)?, Buffer::<T::Acc>::zeroed(n)?);
        for block in range {
            // SAFETY: as above.
            let (weight_sum, bias_sum) = unsafe { sums.slice_mut(block * 2 * n, 2 * n) }.split_at_mut(n);
            for r in block * ROWS..((block + 1) * ROWS).min(rows) {
                let (x, g) = (&input[r * n..(r + 1) * n], &grad[r * n..(r + 1) * n]);
                let moments = Moments::of(x, eps);
                hat.iter_mut().zip(x).for_each(|(hat, x)| *hat = moments.normalised(x.to_acc()));
                // As the mean of the input: what it is off by rounding is taken away, too.
                scaled.iter_mut().zip(g).zip(&weight[..]).for_each(|((to, g), w)| *to = g.to_acc() * *w);
                let offset = total(&scaled, |g| g) / count;
                let (rest, along) = totals(&scaled, &hat, |g, hat| {
                    let d = g - offset;
                    (d, d * hat)
                });
                let (rest, along) = (rest / count, along / count);
                // SAFETY: as above.
                let to = unsafe { to.slice_mut(r * n, n) };
                zip_wide((&scaled[..], &hat[..]), to, |(g, hat)| {
                    (((g - offset) - rest) - hat * along) * moments.rstd
                });
                for (((ws, bs), g), hat) in
                    weight_sum.iter_mut().zip(bias_sum.iter_mut()).zip(g).zip(&hat[..])
                {
                    *ws += g.to_acc() * *hat;
                    *bs += g.to_acc();
                }
            }
        }
        Ok(())
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
