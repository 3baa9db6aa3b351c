//! `channel_norm`, its gradient, `batch_norm` and `frozen_norm` by given statistics, the sums of their gradients, and
//! `group_norm`.
//!
//! Pixels are gone through in blocks of constant size, by vectors of channels: sums are taken from the block's first pixel on,
//! so that large means cost no digits, and those of blocks are put together in f64.

use keyway_cpu_conv::image::{dense, unsupported};
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::vectors::{Lanes as Pixel, Vector, load_some, read_some, store_some, write_some};
use keyway_cpu_loops::{CallExt, parallel_try};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, Scratch};
use keyway_sdk::half::{bf16, f16};
use std::ops::Range;

/// The numbers that elements are widened to, and a vector of them.
type Number<T> = <T as Float>::Acc;
type Numbers<T> = <T as Pixel>::Vector;

/// Lanes of the widest vector.
const MOST: usize = 16;

/// Elements of a block, about.
const BLOCK: usize = 1 << 13;
/// Elements that are worth handing to a thread.
const WORK: usize = 1 << 15;
/// Channels below which vectors would mostly be empty.
const LEAST: usize = 8;

/// An image as pixels of channels side by side, in units that are normalised by themselves.
struct Pixels<'a, T: Pixel> {
    data: Lanes<'a, T>,
    channels: usize,
    units: usize,
    /// Pixels of a unit.
    count: usize,
    /// Pixels of a block; the last one of a unit may have fewer.
    block: usize,
}

impl<'a, T: Pixel> Pixels<'a, T> {
    fn of(image: Volume<'a, T>, per_sample: bool) -> Result<Self, Error> {
        let image = dense(image)?;
        let [samples, channels, _, height, width] = image.sizes;
        if channels < LEAST {
            return Err(unsupported("so few channels"));
        }
        let units = if per_sample { samples } else { 1 };
        let block = (BLOCK / channels).max(1);
        Ok(Pixels { data: image.data, channels, units, count: samples / units * height * width, block })
    }

    /// The same pixels of another image.
    fn like(&self, image: Volume<'a, T>) -> Result<Self, Error> {
        Ok(Pixels { data: dense(image)?.data, ..*self })
    }

    fn blocks(&self) -> usize {
        self.count.div_ceil(self.block)
    }

    /// The pixels of a block, counted over all units, and the unit.
    fn pixels(&self, task: usize) -> (Range<usize>, usize) {
        let (unit, block) = (task / self.blocks(), task % self.blocks());
        let first = block * self.block;
        (unit * self.count + first..unit * self.count + (first + self.block).min(self.count), unit)
    }

    /// Gives `body` each block's number.
    fn each(&self, body: impl Fn(usize) -> Result<(), Error> + Sync) -> Result<(), Error> {
        let grain = WORK / (self.block.min(self.count) * self.channels).max(1);
        parallel_try(self.units * self.blocks(), grain, |tasks| tasks.into_iter().try_for_each(&body))
    }

    /// The first element of a channel in a pixel.
    fn at(&self, pixel: usize, channel: usize) -> *mut T {
        self.data.as_ptr().wrapping_add(pixel * self.channels + channel)
    }

    /// What sums of channels are counted from: their numbers in a pixel, or 0 for those that are not finite.
    ///
    /// # Safety
    /// The image must hold the elements that it names.
    unsafe fn first(&self, pixel: usize, c: usize) -> Numbers<T> {
        const { assert!(Numbers::<T>::LANES <= MOST) };
        let mut numbers = [Number::<T>::ZERO; MOST];
        // SAFETY: as the caller guarantees; there is room for a vector.
        unsafe {
            read_some(self.at(pixel, c), 1, Numbers::<T>::LANES.min(self.channels - c))
                .store(numbers.as_mut_ptr());
            let finite = |x: &Number<T>| x.abs() < Number::<T>::INFINITY;
            numbers.iter_mut().filter(|x| !finite(x)).for_each(|x| *x = Number::<T>::ZERO);
            Numbers::<T>::load(numbers.as_ptr())
        }
    }

    /// Sums of what `f` makes of the vectors at each pixel, for each block and channel, behind the numbers that the block
    /// counts from.
    ///
    /// # Safety
    /// The images must hold the elements that they name.
    unsafe fn sums<const M: usize, const N: usize>(
        &self,
        other: Option<&Pixels<'_, T>>,
        from: impl Fn(usize, usize) -> [Numbers<T>; M] + Sync,
        f: impl Fn(Numbers<T>, Numbers<T>, [Numbers<T>; M]) -> [Numbers<T>; N] + Sync,
    ) -> Result<Sums<Number<T>, M, N>, Error> {
        let blocks = self.units * self.blocks();
        let mut shifts = Scratch::<Number<T>>::zeroed(M * blocks * self.channels)?;
        let mut sums = Scratch::<Number<T>>::zeroed(N * blocks * self.channels)?;
        // SAFETY: the addresses are used within the scratch, which outlives the loop; each block has its own places.
        let (to_shifts, to_sums) =
            unsafe { (Lanes::new(shifts.as_mut_ptr()), Lanes::new(sums.as_mut_ptr())) };
        self.each(|task| {
            let (pixels, _) = self.pixels(task);
            for c in (0..self.channels).step_by(Numbers::<T>::LANES) {
                let n = Numbers::<T>::LANES.min(self.channels - c);
                let numbers = from(pixels.start, c);
                let mut all = [zero::<T>(); N];
                for pixel in pixels.clone() {
                    // SAFETY: the caller guarantees the elements.
                    let (x, y) = unsafe {
                        let y = other.map_or(zero::<T>(), |other| read_some(other.at(pixel, c), 1, n));
                        (read_some(self.at(pixel, c), 1, n), y)
                    };
                    all.iter_mut().zip(f(x, y, numbers)).for_each(|(sum, made)| *sum = plus(*sum, made));
                }
                let place = task * self.channels + c;
                // SAFETY: these are places of the block.
                unsafe {
                    for (i, number) in numbers.into_iter().enumerate() {
                        store_some(to_shifts.as_ptr().add(i * blocks * self.channels + place), n, number);
                    }
                    for (i, sum) in all.into_iter().enumerate() {
                        store_some(to_sums.as_ptr().add(i * blocks * self.channels + place), n, sum);
                    }
                }
            }
            Ok(())
        })?;
        Ok(Sums { shifts, sums })
    }

    /// Writes what `f` makes of the vectors at each pixel and the numbers of their channels.
    ///
    /// # Safety
    /// The images must hold the elements that they name, and nobody else may use those of `out`.
    unsafe fn write<const N: usize>(
        &self,
        other: Option<&Pixels<'_, T>>,
        out: &Pixels<'_, T>,
        numbers: &[Vec<Number<T>>; N],
        f: impl Fn(Numbers<T>, Numbers<T>, [Numbers<T>; N]) -> Numbers<T> + Sync,
    ) -> Result<(), Error> {
        self.each(|task| {
            let (pixels, unit) = self.pixels(task);
            for c in (0..self.channels).step_by(Numbers::<T>::LANES) {
                let n = Numbers::<T>::LANES.min(self.channels - c);
                // SAFETY: there are numbers for the channels of each unit.
                let given = numbers.each_ref().map(|numbers| unsafe {
                    load_some::<Numbers<T>>(numbers.as_ptr().add(unit * self.channels + c), n)
                });
                for pixel in pixels.clone() {
                    // SAFETY: the caller guarantees the elements; the pixels are this block's.
                    unsafe {
                        let y = other.map_or(zero::<T>(), |other| read_some(other.at(pixel, c), 1, n));
                        write_some(out.at(pixel, c), 1, n, f(read_some(self.at(pixel, c), 1, n), y, given));
                    }
                }
            }
            Ok(())
        })
    }
}

#[inline(always)]
fn zero<T: Pixel>() -> Numbers<T> {
    Numbers::<T>::splat(Number::<T>::ZERO)
}

#[inline(always)]
fn plus<V: Vector>(a: V, b: V) -> V {
    a.mul_add(V::splat(V::Number::ONE), b)
}

/// `a - b`.
#[inline(always)]
fn minus<V: Vector>(a: V, b: V) -> V {
    b.mul_add(V::splat(-V::Number::ONE), a)
}

/// What [`Pixels::sums`] makes: by block and channel.
struct Sums<A, const M: usize, const N: usize> {
    shifts: Scratch<A>,
    sums: Scratch<A>,
}

impl<A: Real, const M: usize, const N: usize> Sums<A, M, N> {
    /// What a block counts from, and its sums of a channel.
    fn of(&self, place: usize) -> ([f64; M], [f64; N]) {
        let (shifts, sums) = (self.shifts.len() / M, self.sums.len() / N);
        let shift = |i: usize| self.shifts[i * shifts + place].to_f64();
        let sum = |i: usize| self.sums[i * sums + place].to_f64();
        (std::array::from_fn(shift), std::array::from_fn(sum))
    }
}

/// Mean and variance of some elements.
#[derive(Clone, Copy)]
struct Moments {
    mean: f64,
    variance: f64,
}

impl Moments {
    const NONE: Moments = Moments { mean: 0.0, variance: 0.0 };

    /// These of `count` elements and those of `more` others together (Chan, Golub and LeVeque, "Algorithms for Computing the
    /// Sample Variance", 1983).
    fn with(self, count: f64, other: Moments, more: f64) -> Moments {
        if count == 0.0 {
            return other;
        }
        let (share, between) = (more / (count + more), other.mean - self.mean);
        // Infinite variances have a mean, but no difference.
        let variance = (1.0 - share) * self.variance
            + share * other.variance
            + share * (1.0 - share) * between * between;
        Moments { mean: self.mean + share * between, variance }
    }
}

/// The moments of each channel of each unit.
///
/// # Safety
/// The image must hold the elements that it names.
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
        for (c, moments) in all[unit * x.channels..][..x.channels].iter_mut().enumerate() {
            let ([first], [mut sum, mut squares]) = sums.of(task * x.channels + c);
            if squares == f64::INFINITY {
                // SAFETY: as the caller guarantees.
                let distances =
                    || pixels.clone().map(|pixel| unsafe { *x.at(pixel, c) }.to_acc().to_f64() - first);
                (sum, squares) = (distances().sum(), distances().map(|d| d * d).sum());
            }
            let distance = sum / count;
            let variance = squares / count - distance * distance;
            // Of equal elements nothing is left but rounding; a NaN stays one.
            let variance = if variance < 0.0 { 0.0 } else { variance };
            *moments = moments.with(before, Moments { mean: first + distance, variance }, count);
        }
    }
    Ok(all)
}

/// Argument `i`, a number for each channel, or `otherwise`.
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

/// Writes output `i`, a number for each channel.
fn write_numbers<T: Pixel>(call: &Call, i: usize, numbers: &[f64]) -> Result<(), Error> {
    let mut out = call.contiguous_out::<Number<T>>(i)?;
    out.iter_mut().zip(numbers).for_each(|(to, x)| *to = Number::<T>::from_f64(*x));
    Ok(())
}

/// Writes `(x - mean) / sqrt(variance + eps) * weight + bias`.
///
/// # Safety
/// The images must hold the elements that they name, and nobody else may use those of `out`.
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
    // Of an infinite mean nothing is left that could be taken away, too.
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
    // SAFETY: sizes and strides are those of the call's tensors, whose elements the host guarantees and which the op's rule
    // has matched; the output is this call's alone.
    unsafe {
        let moments = moments(&x)?;
        for ((mean, var), moments) in mean.iter_mut().zip(var.iter_mut()).zip(&moments) {
            *mean = Number::<T>::from_f64(moments.mean);
            *var = Number::<T>::from_f64(moments.variance);
        }
        normalise(&x, &out, &moments, [&weight, &bias], call.float(4)?)
    }
}

fn channel_norm_backward<T: Pixel>(call: &Call) -> Result<(), Error> {
    let x = Pixels::<T>::of(Volume::argument(call, 1)?, call.bool(5)?)?;
    let (grad, out) = (x.like(Volume::argument(call, 0)?)?, x.like(Volume::output(call, 0)?)?);
    let (mean, var) = (statistics::<T>(call, 2)?, statistics::<T>(call, 3)?);
    let (weight, eps) = (channels::<T>(call, 4, x.channels, 1.0)?, call.float(6)?);
    let near: Vec<Number<T>> = mean.iter().map(|mean| Number::<T>::from_f64(*mean)).collect();
    // SAFETY: as in `channel_norm`; there are statistics for the channels of each unit.
    let sums = unsafe {
        x.sums(
            Some(&grad),
            |pixel, c| {
                let unit = pixel / x.count;
                let near = load_some(
                    near.as_ptr().add(unit * x.channels + c),
                    Numbers::<T>::LANES.min(x.channels - c),
                );
                [grad.first(pixel, c), x.first(pixel, c), near]
            },
            |x, g, [first_g, first_x, mean]| {
                let (from, d) = (minus(g, first_g), minus(x, first_x));
                let none = zero::<T>();
                [from, from.mul_add(d, none), d, g, g.mul_add(minus(x, mean), none)]
            },
        )
    }?;
    let mut units = vec![[0.0; 5]; x.units * x.channels];
    for task in 0..x.units * x.blocks() {
        let (pixels, unit) = x.pixels(task);
        let mean = &mean[unit * x.channels..][..x.channels];
        for (c, [total, product, distance, whole, along]) in
            units[unit * x.channels..][..x.channels].iter_mut().enumerate()
        {
            let ([first_g, first_x, near], [g, gd, d, plain, plain_along]) = sums.of(task * x.channels + c);
            let (count, apart) = (pixels.len() as f64, first_x - mean[c]);
            let of_grad = g + first_g * count;
            *total += of_grad;
            *product += gd + first_g * d + apart * of_grad;
            *distance += d + apart * count;
            *whole += plain;
            // The mean was rounded.
            *along += plain_along + (near - mean[c]) * plain;
        }
    }
    let count = x.count as f64;
    let (mut offset, mut scale, mut along) = (Vec::new(), Vec::new(), Vec::new());
    let (mut of_weight, mut of_bias) = (vec![0.0; x.channels], vec![0.0; x.channels]);
    for (i, [total, product, distance, whole, plain]) in units.into_iter().enumerate() {
        let c = i % x.channels;
        let rstd = 1.0 / (var[i] + eps).sqrt();
        let own = rstd * weight[c].to_f64();
        offset.push(Number::<T>::from_f64(total / count));
        scale.push(Number::<T>::from_f64(own));
        along.push(Number::<T>::from_f64((product - total / count * distance) / count * rstd * rstd * own));
        of_weight[c] += plain * rstd;
        of_bias[c] += whole;
    }
    write_numbers::<T>(call, 1, &of_weight)?;
    write_numbers::<T>(call, 2, &of_bias)?;
    // SAFETY: as in `channel_norm`.
    unsafe {
        x.write(Some(&grad), &out, &[near, offset, scale, along], |x, g, [mean, offset, scale, along]| {
            let inner = minus(g, offset).mul_add(scale, zero::<T>());
            minus(inner, minus(x, mean).mul_add(along, zero::<T>()))
        })
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

fn channel_sums<T: Pixel>(call: &Call) -> Result<(), Error> {
    let x = Pixels::<T>::of(Volume::argument(call, 1)?, false)?;
    let grad = x.like(Volume::argument(call, 0)?)?;
    let mean = statistics::<T>(call, 2)?;
    let near: Vec<Number<T>> = mean.iter().map(|mean| Number::<T>::from_f64(*mean)).collect();
    // SAFETY: as in `channel_norm`; there is a mean for each channel.
    let sums = unsafe {
        x.sums(
            Some(&grad),
            |_, c| [load_some(near.as_ptr().add(c), Numbers::<T>::LANES.min(x.channels - c))],
            |x, g, [mean]| [g.mul_add(minus(x, mean), zero::<T>()), g],
        )
    }?;
    let mut all = [vec![0.0; x.channels], vec![0.0; x.channels]];
    let [along, whole] = &mut all;
    for task in 0..x.blocks() {
        for (c, (along, whole)) in along.iter_mut().zip(whole.iter_mut()).enumerate() {
            let ([near], [part, plain]) = sums.of(task * x.channels + c);
            // The mean was rounded.
            *along += part + (near - mean[c]) * plain;
            *whole += plain;
        }
    }
    all.iter().enumerate().try_for_each(|(i, numbers)| write_numbers::<T>(call, i, numbers))
}

fn group_norm<T: Pixel>(call: &Call) -> Result<(), Error> {
    let x = Pixels::<T>::of(Volume::argument(call, 0)?, true)?;
    let out = x.like(Volume::output(call, 0)?)?;
    let (weight, bias) = (channels::<T>(call, 2, x.channels, 1.0)?, channels::<T>(call, 3, x.channels, 0.0)?);
    let each = x.channels / call.int(1)?.max(1) as usize;
    // SAFETY: as in `channel_norm`.
    unsafe {
        let mut moments = moments(&x)?;
        for group in moments.chunks_mut(each.max(1)) {
            let together = group
                .iter()
                .zip(0..)
                .fold(Moments::NONE, |all, (channel, before)| all.with(f64::from(before), *channel, 1.0));
            group.fill(together);
        }
        normalise(&x, &out, &moments, [&weight, &bias], call.float(4)?)
    }
}

keyway_sdk::register_kernel! {
    op: "channel_norm", signature: "TOObf>TTT", device: "cpu", layout: "channels_last",
    f64 => channel_norm::<f64>, f32 => channel_norm::<f32>, f16 => channel_norm::<f16>, bf16 => channel_norm::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "channel_norm_backward", signature: "TTTTObf>TTT", device: "cpu", layout: "channels_last",
    f64 => channel_norm_backward::<f64>, f32 => channel_norm_backward::<f32>, f16 => channel_norm_backward::<f16>, bf16 => channel_norm_backward::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "batch_norm", signature: "TOOOObff>T", device: "cpu", layout: "channels_last",
    f64 => batch_norm::<f64>, f32 => batch_norm::<f32>, f16 => batch_norm::<f16>, bf16 => batch_norm::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "frozen_norm", signature: "TTTOOf>T", device: "cpu", layout: "channels_last",
    f64 => frozen_norm::<f64>, f32 => frozen_norm::<f32>, f16 => frozen_norm::<f16>, bf16 => frozen_norm::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "channel_sums", signature: "TTT>TT", device: "cpu", layout: "channels_last",
    f64 => channel_sums::<f64>, f32 => channel_sums::<f32>, f16 => channel_sums::<f16>, bf16 => channel_sums::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "group_norm", signature: "TiOOf>T", device: "cpu", layout: "channels_last",
    f64 => group_norm::<f64>, f32 => group_norm::<f32>, f16 => group_norm::<f16>, bf16 => group_norm::<bf16>,
}
