//! `channel_norm`, `batch_norm` and `frozen_norm` with given statistics, and `group_norm`; their gradients are in [`gradients`].

mod gradients;
mod pixels;

use keyway_cpu_conv::image::unsupported;
use keyway_cpu_loops::CallExt;
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::vectors::{Lanes as Pixel, Vector, minus};
use keyway_sdk::author::{Call, Element, Error, Float};
use keyway_sdk::half::{bf16, f16};
use pixels::{Number, Pixels, zero};

/// Mean and variance of a set of elements.
#[derive(Clone, Copy)]
struct Moments {
    mean: f64,
    variance: f64,
}

impl Moments {
    const NONE: Moments = Moments { mean: 0.0, variance: 0.0 };

    /// Combines the moments of two sets of elements; `share` is the fraction of the second (Chan, Golub and LeVeque, "Algorithms
    /// for Computing the Sample Variance", 1983).
    #[inline(always)]
    fn with(self, other: Moments, share: f64) -> Moments {
        if share == 1.0 {
            return other;
        }
        let between = other.mean - self.mean;
        // The combined variance of infinite variances would be NaN.
        let variance = (1.0 - share) * self.variance
            + share * other.variance
            + share * (1.0 - share) * between * between;
        Moments { mean: self.mean + share * between, variance }
    }
}

/// The moments of each channel of each unit.
///
/// # Safety
/// The image must contain the elements that its sizes describe.
unsafe fn moments<T: Pixel>(x: &Pixels<'_, T>) -> Result<Vec<Moments>, Error> {
    // SAFETY: as the caller guarantees.
    let first = |pixel: usize, c: usize| [unsafe { x.first(pixel, c) }];
    // SAFETY: as the caller guarantees.
    let sums = unsafe {
        x.sums(None, first, |x, _, [first]| {
            let d = minus(x, first);
            [d, d.mul_add(d, zero::<T>())]
        })
    }?;
    let mut all = vec![Moments::NONE; x.units * x.channels];
    for task in 0..x.units * x.blocks() {
        let (pixels, unit) = x.pixels(task);
        let (before, count) = ((pixels.start - unit * x.count) as f64, pixels.len() as f64);
        let (share, each) = (count / (before + count), 1.0 / count);
        let all = &mut all[unit * x.channels..][..x.channels];
        for ((c, moments), ([first], [mut sum, mut squares])) in
            all.iter_mut().enumerate().zip(sums.of_block(task, x.channels))
        {
            if squares == f64::INFINITY {
                // SAFETY: the caller guarantees the elements.
                let distances =
                    || pixels.clone().map(|pixel| unsafe { *x.at(pixel, c) }.to_acc().to_f64() - first);
                (sum, squares) = (distances().sum(), distances().map(|d| d * d).sum());
            }
            let distance = sum * each;
            let variance = squares * each - distance * distance;
            // Rounding may make the variance of equal elements negative; NaN propagates.
            let variance = if variance < 0.0 { 0.0 } else { variance };
            *moments = moments.with(Moments { mean: first + distance, variance }, share);
        }
    }
    Ok(all)
}

/// Argument `i`, one value per channel, or `otherwise` if it is absent.
fn channels<T: Float>(call: &Call, i: usize, n: usize, otherwise: f64) -> Result<Vec<T::Acc>, Error> {
    if call.is_none(i)? {
        return Ok(vec![T::Acc::from_f64(otherwise); n]);
    }
    Ok(call.contiguous::<T>(i)?.iter().map(|x| x.to_acc()).collect())
}

/// Argument `i`, statistics in the input's dtype, f32 or f64.
fn statistics<T: Pixel>(call: &Call, i: usize) -> Result<Vec<f64>, Error> {
    let given = call.tensor(i)?.dtype();
    if given == f64::dtype() {
        return Ok(call.contiguous::<f64>(i)?.to_vec());
    }
    match given {
        own if own == T::dtype() => wide::<T>(call, i),
        single if single == f32::dtype() => wide::<f32>(call, i),
        _ => Err(unsupported("statistics of another dtype")),
    }
}

fn wide<T: Float>(call: &Call, i: usize) -> Result<Vec<f64>, Error> {
    Ok(call.contiguous::<T>(i)?.iter().map(|x| x.to_acc().to_f64()).collect())
}

/// Writes output `i`, one value per channel.
fn write_numbers<T: Pixel>(call: &Call, i: usize, numbers: &[f64]) -> Result<(), Error> {
    let mut out = call.contiguous_out::<Number<T>>(i)?;
    out.iter_mut().zip(numbers).for_each(|(to, x)| *to = Number::<T>::from_f64(*x));
    Ok(())
}

/// Writes `(x - mean) / sqrt(variance + eps) * weight + bias`.
///
/// # Safety
/// The images must contain their elements, and the elements of `out` must be uniquely owned.
unsafe fn normalise<T: Pixel>(
    x: &Pixels<'_, T>,
    out: &Pixels<'_, T>,
    moments: &[Moments],
    [weight, bias]: [&[Number<T>]; 2],
    eps: f64,
) -> Result<(), Error> {
    let each = |f: &dyn Fn(&Moments) -> f64| -> Vec<Number<T>> {
        moments.iter().map(|m| Number::<T>::from_f64(f(m))).collect()
    };
    let mean = each(&|m| m.mean);
    // An infinite mean has no rounding error to subtract.
    let rest = each(&|m| match m.mean.is_finite() {
        true => m.mean - Number::<T>::from_f64(m.mean).to_f64(),
        false => 0.0,
    });
    let mut scale = each(&|m| 1.0 / (m.variance + eps).sqrt());
    scale.iter_mut().enumerate().for_each(|(i, scale)| *scale = *scale * weight[i % x.channels]);
    let bias = (0..moments.len()).map(|i| bias[i % x.channels]).collect();
    // SAFETY: as the caller guarantees.
    unsafe {
        x.write(None, out, &[mean, rest, scale, bias], |x, _, [mean, rest, scale, bias]| {
            minus(minus(x, mean), rest).mul_add(scale, bias)
        })
    }
}

fn channel_norm<T: Pixel>(call: &Call) -> Result<(), Error> {
    let x = Pixels::<T>::of(Volume::argument(call, 0)?, call.bool(3)?)?;
    let out = x.like(Volume::output(call, 0)?)?;
    let (weight, bias) = (channels::<T>(call, 1, x.channels, 1.0)?, channels::<T>(call, 2, x.channels, 0.0)?);
    let (mut mean, mut var) = (call.contiguous_out::<Number<T>>(1)?, call.contiguous_out::<Number<T>>(2)?);
    // SAFETY: sizes and strides are those of the call's tensors, whose elements the host guarantees and which the op's rule has
    // matched; the output is uniquely owned by this call.
    unsafe {
        let moments = moments(&x)?;
        for ((mean, var), moments) in mean.iter_mut().zip(var.iter_mut()).zip(&moments) {
            *mean = Number::<T>::from_f64(moments.mean);
            *var = Number::<T>::from_f64(moments.variance);
        }
        normalise(&x, &out, &moments, [&weight, &bias], call.float(4)?)
    }
}

fn batch_norm<T: Pixel>(call: &Call) -> Result<(), Error> {
    if call.bool(5)? {
        return Err(unsupported("the input's own statistics, which `channel_norm` takes"));
    }
    by_given::<T>(call, call.float(7)?)
}

fn frozen_norm<T: Pixel>(call: &Call) -> Result<(), Error> {
    by_given::<T>(call, call.float(5)?)
}

/// Normalises argument 0 by the statistics in arguments 1 and 2, with the weight and the bias in 3 and 4.
fn by_given<T: Pixel>(call: &Call, eps: f64) -> Result<(), Error> {
    let x = Pixels::<T>::of(Volume::argument(call, 0)?, false)?;
    let out = x.like(Volume::output(call, 0)?)?;
    let (weight, bias) = (channels::<T>(call, 3, x.channels, 1.0)?, channels::<T>(call, 4, x.channels, 0.0)?);
    let (mean, var) = (statistics::<T>(call, 1)?, statistics::<T>(call, 2)?);
    let pairs = mean.into_iter().zip(var);
    let moments: Vec<_> = pairs.map(|(mean, var)| Moments { mean, variance: var }).collect();
    // SAFETY: as in `channel_norm`.
    unsafe { normalise(&x, &out, &moments, [&weight, &bias], eps) }
}

fn group_norm<T: Pixel>(call: &Call) -> Result<(), Error> {
    let x = Pixels::<T>::of(Volume::argument(call, 0)?, true)?;
    let out = x.like(Volume::output(call, 0)?)?;
    let (weight, bias) = (channels::<T>(call, 2, x.channels, 1.0)?, channels::<T>(call, 3, x.channels, 0.0)?);
    // SAFETY: as in `channel_norm`.
    unsafe {
        let moments = of_groups(&x, x.channels / call.int(1)?.max(1) as usize)?;
        normalise(&x, &out, &moments, [&weight, &bias], call.float(4)?)
    }
}

/// The moments of each channel of each unit, computed over the `each` channels of its group.
///
/// # Safety
/// The image must contain its elements.
unsafe fn of_groups<T: Pixel>(x: &Pixels<'_, T>, each: usize) -> Result<Vec<Moments>, Error> {
    // SAFETY: as the caller guarantees.
    let mut moments = unsafe { moments(x)? };
    for group in moments.chunks_mut(each.max(1)) {
        let together = group
            .iter()
            .zip(0..)
            .fold(Moments::NONE, |all, (channel, before)| all.with(*channel, 1.0 / f64::from(before + 1)));
        group.fill(together);
    }
    Ok(moments)
}

keyway_sdk::register_kernel! {
    op: "channel_norm", signature: "TOObf>TTT", device: "cpu", layout: "channels_last",
    f64 => channel_norm::<f64>, f32 => channel_norm::<f32>, f16 => channel_norm::<f16>, bf16 => channel_norm::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "batch_norm", signature: "TOOOObff>T", device: "cpu", layout: "channels_last",
    f64 => batch_norm::<f64>, f32 => batch_norm::<f32>, f16 => batch_norm::<f16>, bf16 => batch_norm::<bf16>,
}
// In benches/RESULTS.md, the table of 28 November 2026 (Zen 5, one thread, f32): channels_last over row-major 0.31/0.52 ms in
// training and 0.15/0.11 ms in evaluation, geometric mean 0.90.
keyway_sdk::register_preference! { op: "batch_norm", device: "cpu", format: "channels_last", cost: 0.9 }
keyway_sdk::register_kernel! {
    op: "frozen_norm", signature: "TTTOOf>T", device: "cpu", layout: "channels_last",
    f64 => frozen_norm::<f64>, f32 => frozen_norm::<f32>, f16 => frozen_norm::<f16>, bf16 => frozen_norm::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "group_norm", signature: "TiOOf>T", device: "cpu", layout: "channels_last",
    f64 => group_norm::<f64>, f32 => group_norm::<f32>, f16 => group_norm::<f16>, bf16 => group_norm::<bf16>,
}
