//! Shared parts of the gradients of normalisations over channels.

use super::{Channels, Elements, statistics, unsupported};
use crate::kernels::moments::{Moments, sums};
use keyway_cpu_loops::vectors::{Vector, minus, plus};
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, View, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// The elements of a gradient, which must be contiguous.
fn dense<'a, T: Elements>(grad: &View<'a, T>) -> Result<&'a [T], Error> {
    grad.as_slice().ok_or_else(|| unsupported("a gradient of scattered rows"))
}

/// The shift of a sum: the value, or 0 if it is not finite, since a non-finite shift would make the sum NaN.
fn finite<T: Elements>(x: T) -> T::Acc {
    if (x.to_acc() - x.to_acc()) == T::Acc::ZERO { x.to_acc() } else { T::Acc::ZERO }
}

/// The sums of a gradient and of its products with the deviations from the mean, without a shift.
fn whole<T: Elements>(grad: &[T], x: &[T], mean: T::Acc) -> [T::Acc; 2] {
    let mean = T::Vector::splat(mean);
    sums([grad, x], |[g, x], [whole, along]| [plus(whole, g), g.mul_add(minus(x, mean), along)])
}

/// Sums over a range of elements of a gradient, of an input, and of their products.
#[derive(Clone, Copy)]
struct Sums<A> {
    /// The sum of the gradients shifted by the first of the channel, which is exactly 0 if all are equal.
    grad: A,
    product: A,
    distance: A,
    /// The sums of the gradient and of its products with the deviations from the mean, without a shift.
    whole: A,
    along: A,
}

impl<A: Real> Sums<A> {
    const NONE: Self =
        Sums { grad: A::ZERO, product: A::ZERO, distance: A::ZERO, whole: A::ZERO, along: A::ZERO };

    /// The sums of a row.
    fn of<T: Elements<Acc = A>>(grad: &[T], x: &[T], first: [A; 2], mean: A) -> Self {
        let [from, start] = first.map(T::Vector::splat);
        let [grad_sum, product, distance] = sums([grad, x], |[g, x], [sum, product, distance]| {
            let (g, d) = (minus(g, from), minus(x, start));
            [plus(sum, g), g.mul_add(d, product), plus(distance, d)]
        });
        let [whole, along] = whole(grad, x, mean);
        Sums { grad: grad_sum, product, distance, whole, along }
    }

    fn plus(self, other: Self) -> Self {
        Sums {
            grad: self.grad + other.grad,
            product: self.product + other.product,
            distance: self.distance + other.distance,
            whole: self.whole + other.whole,
            along: self.along + other.along,
        }
    }
}

fn channel_norm_backward<T: Elements<Acc: Float>>(call: &Call) -> Result<(), Error> {
    let x = Channels::<T>::of(call, 1, Some(4), None)?;
    let grad = call.view::<T>(0)?;
    let grad = dense(&grad)?;
    let (mean, var) = (statistics::<T>(call, 2)?, statistics::<T>(call, 3)?);
    let (per_sample, eps) = (call.bool(5)?, T::Acc::from_f64(call.float(6)?));
    let (channels, inner) = (x.channels, x.inner);
    let first: Vec<_> = (0..channels).map(|c| [finite(grad[c * inner]), finite(x.row(c)[0])]).collect();
    let mut rows = vec![Sums::<T::Acc>::NONE; x.rows()];
    // SAFETY: the address is used within the vector, which outlives the loop; each row has its own element.
    let to = unsafe { Lanes::new(rows.as_mut_ptr()) };
    parallel_for(x.rows(), x.grain(1), |range| {
        for row in range {
            let (first, mean) = (first[row % channels], mean[row % mean.len()]);
            let sums = Sums::of(&grad[row * inner..][..inner], x.row(row), first, mean);
            // SAFETY: as above.
            unsafe { to.as_ptr().add(row).write(sums) };
        }
    })?;
    let of_channel =
        |c: usize| rows[c..].iter().step_by(channels).fold(Sums::NONE, |all, row| all.plus(*row));
    let units: Vec<Sums<T::Acc>> =
        if per_sample { rows.clone() } else { (0..channels).map(of_channel).collect() };
    let count = T::Acc::from_f64((x.rows() / units.len() * inner) as f64);
    // The factors of the centred gradient and of the deviation from the mean, for each unit.
    let factors: Vec<_> = units
        .iter()
        .zip(mean.iter().zip(var.iter()))
        .enumerate()
        .map(|(unit, (sums, (&mean, &var)))| {
            let (rstd, offset) = (T::Acc::ONE / (var + eps).sqrt(), sums.grad / count);
            let along = (sums.product - offset * sums.distance) * rstd / count;
            let scale = rstd * x.weight[unit % channels];
            (mean, offset, scale, along * rstd * scale)
        })
        .collect();
    let mut out = call.contiguous_out::<T>(0)?;
    // SAFETY: the address is used within the output, which outlives the loop; each row has its own part.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    parallel_for(x.rows(), x.grain(1), |range| {
        for row in range {
            let (mean, offset, scale, along) = factors[row % factors.len()];
            let [shift, _] = first[row % channels];
            // SAFETY: as above.
            let to = unsafe { to.slice_mut(row * inner, inner) };
            zip_wide((&grad[row * inner..][..inner], x.row(row)), to, |(g, x)| {
                ((g.to_acc() - shift) - offset) * scale - (x.to_acc() - mean) * along
            });
        }
    })?;
    let (mut of_weight, mut of_bias) = (call.contiguous_out::<T::Acc>(1)?, call.contiguous_out::<T::Acc>(2)?);
    for (c, (of_weight, of_bias)) in of_weight.iter_mut().zip(of_bias.iter_mut()).enumerate() {
        (*of_weight, *of_bias) = (T::Acc::ZERO, T::Acc::ZERO);
        for (sums, &var) in units[c..].iter().zip(&var[c..]).step_by(channels) {
            *of_weight += sums.along * (T::Acc::ONE / (var + eps).sqrt());
            *of_bias += sums.whole;
        }
    }
    Ok(())
}

fn channel_sums<T: Elements<Acc: Float>>(call: &Call) -> Result<(), Error> {
    let x = Channels::<T>::of(call, 1, None, None)?;
    let grad = call.view::<T>(0)?;
    let grad = dense(&grad)?;
    let mean = statistics::<T>(call, 2)?;
    let (channels, inner) = (x.channels, x.inner);
    let mut rows = vec![[T::Acc::ZERO; 2]; x.rows()];
    // SAFETY: the address is used within the vector, which outlives the loop; each row has its own element.
    let to = unsafe { Lanes::new(rows.as_mut_ptr()) };
    parallel_for(x.rows(), x.grain(1), |range| {
        for row in range {
            let mean = mean[row % channels];
            let sums = whole(&grad[row * inner..][..inner], x.row(row), mean);
            // SAFETY: as above.
            unsafe { to.as_ptr().add(row).write(sums) };
        }
    })?;
    let (mut along, mut whole) = (call.contiguous_out::<T::Acc>(0)?, call.contiguous_out::<T::Acc>(1)?);
    for (c, (along, whole)) in along.iter_mut().zip(whole.iter_mut()).enumerate() {
        (*along, *whole) = (T::Acc::ZERO, T::Acc::ZERO);
        for [own_whole, own_along] in rows[c..].iter().step_by(channels) {
            *along += *own_along;
            *whole += *own_whole;
        }
    }
    Ok(())
}

fn group_norm_backward<T: Elements<Acc: Float>>(call: &Call) -> Result<(), Error> {
    let x = Channels::<T>::of(call, 1, Some(3), None)?;
    let grad = call.view::<T>(0)?;
    let grad = dense(&grad)?;
    let (channels, inner) = (x.channels, x.inner);
    let (together, eps) = (channels / call.int(2)?.max(1) as usize, call.float(4)?);
    let (count, number) = ((together * inner) as f64, T::Acc::from_f64);
    let mut parts = vec![[0.0; 2]; x.rows()];
    let mut out = call.contiguous_out::<T>(0)?;
    // SAFETY: the addresses are used within the vector and the output, which outlive the loop; each row has its own elements.
    let (to, to_parts) = unsafe { (Lanes::new(out.as_mut_ptr()), Lanes::new(parts.as_mut_ptr())) };
    parallel_for(x.rows() / together, x.grain(together), |groups| {
        for group in groups {
            let rows = group * together..(group + 1) * together;
            let each = x.each(rows.clone());
            let moments = Moments::together(each.iter().copied(), together);
            let mean = moments.exact_mean();
            let rstd = 1.0 / (moments.variance.to_f64() + eps).sqrt();
            let (mut weighted, mut product, mut distance) = (0.0, 0.0, 0.0);
            for (row, own) in rows.clone().zip(each) {
                let (grads, values) = (&grad[row * inner..][..inner], x.row(row));
                // Gradients are shifted by the first one, elements by their mean: sums over equal values are exactly 0.
                let first = finite(grads[0]);
                let [from, middle] = [first, own.mean].map(T::Vector::splat);
                let [sum, products, whole_as_it_is] =
                    sums([grads, values], |[grad, x], [sum, products, whole]| {
                        let g = minus(grad, from);
                        [plus(sum, g), g.mul_add(minus(x, middle), products), plus(whole, grad)]
                    });
                let (first, n, rest) = (first.to_f64(), inner as f64, own.rest.to_f64());
                let (apart, whole) = (own.mean.to_f64() - mean, sum.to_f64() + first * n);
                let along = products.to_f64() + first * rest * n + apart * whole;
                // A shifted sum has the absolute error of its shift.
                let whole_as_it_is = whole_as_it_is.to_f64();
                let weight = x.weight[row % channels].to_f64();
                weighted += weight * whole;
                product += weight * along;
                distance += (apart + rest) * n;
                // SAFETY: as above.
                unsafe { to_parts.as_ptr().add(row).write([along * rstd, whole_as_it_is]) };
            }
            let offset = weighted / count;
            let along = (product - offset * distance) / count * rstd * rstd * rstd;
            // Corrects for the rounding of the mean.
            let apart = moments.rest.to_f64() * along;
            for row in rows {
                let (grads, values) = (&grad[row * inner..][..inner], x.row(row));
                let weight = x.weight[row % channels].to_f64();
                let first = finite(grads[0]);
                let start = number((first.to_f64() * weight - offset) * rstd + apart);
                let (scale, along) = (number(weight * rstd), number(along));
                // SAFETY: as above.
                let to = unsafe { to.slice_mut(row * inner, inner) };
                zip_wide((grads, values), to, |(g, x)| {
                    ((g.to_acc() - first) * scale + start) - (x.to_acc() - moments.mean) * along
                });
            }
        }
    })?;
    let (mut of_weight, mut of_bias) = (call.contiguous_out::<T::Acc>(1)?, call.contiguous_out::<T::Acc>(2)?);
    for (c, (of_weight, of_bias)) in of_weight.iter_mut().zip(of_bias.iter_mut()).enumerate() {
        let rows = parts[c..].iter().step_by(channels);
        let [along, whole] = rows.fold([0.0; 2], |sum, row| [sum[0] + row[0], sum[1] + row[1]]);
        (*of_weight, *of_bias) = (number(along), number(whole));
    }
    Ok(())
}

kernel!("channel_sums", "TTT>TT", channel_sums, [f32, f64, f16, bf16]);
kernel!("channel_norm_backward", "TTTTObf>TTT", channel_norm_backward, [f32, f64, f16, bf16]);
kernel!("group_norm_backward", "TTiOf>TTT", group_norm_backward, [f32, f64, f16, bf16]);
