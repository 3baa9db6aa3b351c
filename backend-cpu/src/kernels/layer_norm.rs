//! `layer_norm` and `layer_norm_backward`

use super::buffer::{Buffer, try_parallel_for};
use super::number::Apply;
use keyway_cpu_loops::{CallExt, Contiguous, narrow_each};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

const LANES: usize = 32;
const GRAIN: usize = 16 * 1024;
/// Rows whose contributions to the gradients of weight and bias are summed together.
const ROWS: usize = 64;

/// The sum of `f(i)` by lanes.
#[inline(always)]
fn total<A: Real>(n: usize, f: impl Fn(usize) -> A) -> A {
    let mut lanes = [A::ZERO; LANES];
    let whole = n - n % LANES;
    let mut i = 0;
    while i < whole {
        lanes.iter_mut().enumerate().for_each(|(k, lane)| *lane += f(i + k));
        i += LANES;
    }
    lanes.iter_mut().enumerate().take(n - whole).for_each(|(k, lane)| *lane += f(whole + k));
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        let (low, high) = lanes.split_at_mut(width);
        low.iter_mut().zip(high).for_each(|(a, b)| *a += *b);
    }
    lanes[0]
}

/// The sums of `f(i)` by lanes.
#[inline(always)]
fn totals<A: Real>(n: usize, f: impl Fn(usize) -> (A, A)) -> (A, A) {
    let (mut left, mut right) = ([A::ZERO; LANES], [A::ZERO; LANES]);
    let mut add = |k: usize, i: usize| {
        let (a, b) = f(i);
        left[k] += a;
        right[k] += b;
    };
    let whole = n - n % LANES;
    let mut i = 0;
    while i < whole {
        (0..LANES).for_each(|k| add(k, i + k));
        i += LANES;
    }
    (whole..n).for_each(|i| add(i - whole, i));
    (total(LANES, |k| left[k]), total(LANES, |k| right[k]))
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
        let (n, count, first) = (x.len(), A::from_f64(x.len() as f64), x[0].to_acc());
        let mean = first + total(n, |i| x[i].to_acc() - first) / count;
        let (sum, squares) = totals(n, |i| {
            let d = x[i].to_acc() - mean;
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
            let (weight, bias) = (&weight[..n], &bias[..n]);
            narrow_each(to, |i| moments.normalised(x[i].to_acc()) * weight[i] + bias[i]);
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
        let mut hat = Buffer::<T::Acc>::zeroed(n)?;
        for block in range {
            // SAFETY: as above.
            let (weight_sum, bias_sum) = unsafe { sums.slice_mut(block * 2 * n, 2 * n) }.split_at_mut(n);
            for r in block * ROWS..((block + 1) * ROWS).min(rows) {
                let (x, g) = (&input[r * n..(r + 1) * n], &grad[r * n..(r + 1) * n]);
                let moments = Moments::of(x, eps);
                hat.iter_mut().zip(x).for_each(|(hat, x)| *hat = moments.normalised(x.to_acc()));
                // As the mean of the input: what it is off by rounding is taken away, too.
                let offset = total(n, |i| g[i].to_acc() * weight[i]) / count;
                let (rest, along) = totals(n, |i| {
                    let d = g[i].to_acc() * weight[i] - offset;
                    (d, d * hat[i])
                });
                let (rest, along) = (rest / count, along / count);
                // SAFETY: as above.
                let to = unsafe { to.slice_mut(r * n, n) };
                let (weight, hat) = (&weight[..n], &hat[..n]);
                narrow_each(to, |i| {
                    (((g[i].to_acc() * weight[i] - offset) - rest) - hat[i] * along) * moments.rstd
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
