//! The gradients of `channel_norm`, `batch_norm`, `frozen_norm` and `group_norm`.

use super::pixels::{Number, Numbers, Pixels, zero};
use super::{channels, of_groups, statistics, write_numbers};
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::vectors::{Lanes as Pixel, Vector, load_some, minus};
use keyway_sdk::author::{Call, Element, Error};
use keyway_sdk::half::{bf16, f16};

/// Sums over a channel of a unit.
#[derive(Clone, Copy, Default)]
struct OfGradient {
    /// The sums of the gradient, and of its products with the deviations from the mean, both shifted by the first values of
    /// each block, so that sums over equal values are exact.
    total: f64,
    product: f64,
    /// The sum of the deviations from the mean.
    distance: f64,
    /// The sums of the gradient and of its products with the deviations, without a shift.
    whole: f64,
    along: f64,
}

/// The sums for each channel of each unit, with its mean, which `near` returns in the compute type.
///
/// # Safety
/// The images must contain their elements, and there must be a mean for each channel of each unit.
unsafe fn of_gradient<T: Pixel>(
    x: &Pixels<'_, T>,
    grad: &Pixels<'_, T>,
    mean: &[f64],
    near: &[Number<T>],
) -> Result<Vec<OfGradient>, Error> {
    // SAFETY: as the caller guarantees.
    let sums = unsafe {
        x.sums(
            Some(grad),
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
    let mut units = vec![OfGradient::default(); x.units * x.channels];
    for task in 0..x.units * x.blocks() {
        let (pixels, unit) = x.pixels(task);
        let mean = &mean[unit * x.channels..][..x.channels];
        let units = &mut units[unit * x.channels..][..x.channels];
        let count = pixels.len() as f64;
        for ((all, &mean), ([first_g, first_x, near], [g, gd, d, plain, plain_along])) in
            units.iter_mut().zip(mean).zip(sums.of_block(task, x.channels))
        {
            let apart = first_x - mean;
            let of_grad = g + first_g * count;
            all.total += of_grad;
            all.product += gd + first_g * d + apart * of_grad;
            all.distance += d + apart * count;
            all.whole += plain;
            // Corrects for the rounding of the mean.
            all.along += plain_along + (near - mean) * plain;
        }
    }
    Ok(units)
}

fn channel_norm_backward<T: Pixel>(call: &Call) -> Result<(), Error> {
    let x = Pixels::<T>::of(Volume::argument(call, 1)?, call.bool(5)?)?;
    let (grad, out) = (x.like(Volume::argument(call, 0)?)?, x.like(Volume::output(call, 0)?)?);
    let (mean, var) = (statistics::<T>(call, 2)?, statistics::<T>(call, 3)?);
    let (weight, eps) = (channels::<T>(call, 4, x.channels, 1.0)?, call.float(6)?);
    let near: Vec<Number<T>> = mean.iter().map(|mean| Number::<T>::from_f64(*mean)).collect();
    // SAFETY: as in `channel_norm`; there are statistics for the channels of each unit.
    let units = unsafe { of_gradient(&x, &grad, &mean, &near)? };
    let count = x.count as f64;
    let (mut offset, mut scale, mut along) = (Vec::new(), Vec::new(), Vec::new());
    let (mut of_weight, mut of_bias) = (vec![0.0; x.channels], vec![0.0; x.channels]);
    for (i, OfGradient { total, product, distance, whole, along: plain }) in units.into_iter().enumerate() {
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
        for (((along, whole), mean), ([near], [part, plain])) in
            along.iter_mut().zip(whole.iter_mut()).zip(&mean).zip(sums.of_block(task, x.channels))
        {
            // Corrects for the rounding of the mean.
            *along += part + (near - mean) * plain;
            *whole += plain;
        }
    }
    all.iter().enumerate().try_for_each(|(i, numbers)| write_numbers::<T>(call, i, numbers))
}

fn group_norm_backward<T: Pixel>(call: &Call) -> Result<(), Error> {
    let x = Pixels::<T>::of(Volume::argument(call, 1)?, true)?;
    let (grad, out) = (x.like(Volume::argument(call, 0)?)?, x.like(Volume::output(call, 0)?)?);
    let (weight, eps) = (channels::<T>(call, 3, x.channels, 1.0)?, call.float(4)?);
    let each = (x.channels / call.int(2)?.max(1) as usize).max(1);
    // SAFETY: as in `channel_norm`.
    let moments = unsafe { of_groups(&x, each)? };
    let mean: Vec<f64> = moments.iter().map(|m| m.mean).collect();
    let near: Vec<Number<T>> = mean.iter().map(|mean| Number::<T>::from_f64(*mean)).collect();
    // SAFETY: as in `channel_norm`; there is a mean for each channel of each unit.
    let units = unsafe { of_gradient(&x, &grad, &mean, &near)? };
    let count = (x.count * each) as f64;
    // An element's gradient is `(grad - shift) * scale + start - (x - near) * along`.
    let (mut shift, mut start, mut scale, mut along) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut of_weight, mut of_bias) = (vec![0.0; x.channels], vec![0.0; x.channels]);
    for (first, group) in (0..).step_by(each).zip(units.chunks(each)) {
        let rstd = 1.0 / (moments[first].variance + eps).sqrt();
        let (mut total, mut product, mut distance) = (0.0, 0.0, 0.0);
        for (i, sums) in (first..).zip(group) {
            let weight = weight[i % x.channels].to_f64();
            total += weight * sums.total;
            product += weight * sums.product;
            distance += sums.distance;
            of_weight[i % x.channels] += sums.along * rstd;
            of_bias[i % x.channels] += sums.whole;
        }
        let offset = total / count;
        let share = (product - offset * distance) / count * rstd * rstd * rstd;
        for (i, sums) in (first..).zip(group) {
            let weight = weight[i % x.channels].to_f64();
            let near_grad = Number::<T>::from_f64(sums.total / x.count as f64);
            // Corrects for the rounding of the means.
            let apart = (mean[i] - near[i].to_f64()) * share;
            shift.push(near_grad);
            start.push(Number::<T>::from_f64((near_grad.to_f64() * weight - offset) * rstd + apart));
            scale.push(Number::<T>::from_f64(weight * rstd));
            along.push(Number::<T>::from_f64(share));
        }
    }
    write_numbers::<T>(call, 1, &of_weight)?;
    write_numbers::<T>(call, 2, &of_bias)?;
    // SAFETY: as in `channel_norm`.
    unsafe {
        x.write(
            Some(&grad),
            &out,
            &[near, shift, start, scale, along],
            |x, g, [mean, shift, start, scale, along]| {
                let inner = minus(g, shift).mul_add(scale, start);
                minus(inner, minus(x, mean).mul_add(along, zero::<T>()))
            },
        )
    }
}

keyway_sdk::register_kernel! {
    op: "channel_norm_backward", signature: "TTTTObf>TTT", device: "cpu", layout: "channels_last",
    f64 => channel_norm_backward::<f64>, f32 => channel_norm_backward::<f32>, f16 => channel_norm_backward::<f16>, bf16 => channel_norm_backward::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "channel_sums", signature: "TTT>TT", device: "cpu", layout: "channels_last",
    f64 => channel_sums::<f64>, f32 => channel_sums::<f32>, f16 => channel_sums::<f16>, bf16 => channel_sums::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "group_norm_backward", signature: "TTiOf>TTT", device: "cpu", layout: "channels_last",
    f64 => group_norm_backward::<f64>, f32 => group_norm_backward::<f32>, f16 => group_norm_backward::<f16>, bf16 => group_norm_backward::<bf16>,
}
