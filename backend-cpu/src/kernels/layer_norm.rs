//! `layer_norm` and `layer_norm_backward`

use super::buffer::{Buffer, try_parallel_for};
use super::moments::{Moments, total, totals, widened};
use super::number::Apply;
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

const GRAIN: usize = 16 * 1024;
/// Rows whose contributions to the gradients of weight and bias are summed together.
const ROWS: usize = 64;

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
            let standard = Moments::of(x).standard(eps);
            // SAFETY: as above.
            let to = unsafe { to.slice_mut(r * n, n) };
            zip_wide((x, &weight[..], &bias[..]), to, |(x, w, b)| standard.normalised(x.to_acc()) * w + b);
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
                let standard = Moments::of(x).standard(eps);
                hat.iter_mut().zip(x).for_each(|(hat, x)| *hat = standard.normalised(x.to_acc()));
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
                    (((g - offset) - rest) - hat * along) * standard.rstd
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
