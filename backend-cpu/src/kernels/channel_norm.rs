//! `group_norm`, `instance_norm`, `batch_norm` and `frozen_norm` of inputs `[batch, channels, ..]`, `channel_norm`, which gives
//! the statistics, too, and what gradients of them are made of.
//!
//! A row is one channel of one sample. Each has its moments; those of rows that are normalised together are put together.
//! Inputs whose rows are short, or do not lie densely, are left to the parts that the ops are composed of.

use super::buffer::Buffer;
use super::moments::{Moments, Standard, total, totals, widened};
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// Inputs of shorter rows are not served here, unless they are so small that one call instead of many counts most.
const SHORTEST: usize = 32;
const SMALL: usize = 4 * 1024;
const GRAIN: usize = 16 * 1024;

#[cold]
fn unsupported(what: &str) -> Error {
    Error::Unsupported { what: what.to_string() }
}

/// The input, and what its channels are multiplied by and moved by.
struct Channels<'a, T: Float> {
    input: &'a [T],
    batch: usize,
    channels: usize,
    /// Elements of a row.
    inner: usize,
    weight: Buffer<T::Acc>,
    bias: Buffer<T::Acc>,
}

impl<'a, T: Float> Channels<'a, T> {
    /// Of argument `input` with the weight in argument `weight` and the bias in `bias`, where the op has them.
    fn of(call: &Call<'a>, input: usize, weight: Option<usize>, bias: Option<usize>) -> Result<Self, Error> {
        let numbers = |i: Option<usize>, channels, otherwise| match i {
            Some(i) => widened::<T>(call, i, channels, otherwise),
            None => Buffer::filled(channels, otherwise),
        };
        let view = call.view::<T>(input)?;
        let &[batch, channels, ref inner @ ..] = view.sizes() else {
            return Err(unsupported("an input of fewer than 2 dimensions"));
        };
        let inner: usize = inner.iter().map(|n| *n as usize).product();
        let (batch, channels) = (batch as usize, channels as usize);
        match view.as_slice() {
            Some(input) if !input.is_empty() && (inner >= SHORTEST || input.len() <= SMALL) => Ok(Channels {
                input,
                batch,
                channels,
                inner,
                weight: numbers(weight, channels, T::Acc::ONE)?,
                bias: numbers(bias, channels, T::Acc::ZERO)?,
            }),
            _ => Err(unsupported("an input of short or scattered rows")),
        }
    }

    fn rows(&self) -> usize {
        self.batch * self.channels
    }

    fn row(&self, row: usize) -> &'a [T] {
        &self.input[row * self.inner..(row + 1) * self.inner]
    }

    /// The least number of units of `rows` rows each that are worth another thread.
    fn grain(&self, rows: usize) -> usize {
        GRAIN.div_ceil(rows * self.inner)
    }

    /// Writes a row of the output.
    #[inline(always)]
    fn write(&self, row: usize, standard: Standard<T::Acc>, to: &mut [T]) {
        let channel = row % self.channels;
        let Standard { mean, rest, rstd } = standard;
        let (scale, bias) = (rstd * self.weight[channel], self.bias[channel]);
        zip_wide((self.row(row),), to, |(x,)| ((x.to_acc() - mean) - rest) * scale + bias);
    }

    /// Normalises each `together` rows that follow each other by their own moments.
    fn by_neighbours(&self, call: &Call, together: usize, eps: T::Acc) -> Result<(), Error> {
        let mut out = call.contiguous_out::<T>(0)?;
        // SAFETY: the address is used within the output, which outlives the loop; each row has its own part.
        let to = unsafe { Lanes::new(out.as_mut_ptr()) };
        parallel_for(self.rows() / together, self.grain(together), |units| {
            for unit in units {
                let rows = unit * together..(unit + 1) * together;
                let moments = rows.clone().map(|row| Moments::of(self.row(row)));
                let standard = match together {
                    1 => Moments::of(self.row(unit)),
                    _ => Moments::together(moments.collect::<Vec<_>>().into_iter(), together),
                }
                .standard(eps);
                for row in rows {
                    // SAFETY: as above.
                    self.write(row, standard, unsafe { to.slice_mut(row * self.inner, self.inner) });
                }
            }
        })
    }

    /// Normalises each row by what stands for its channel, or for the row itself if there are as many.
    fn by_given(&self, call: &Call, standards: &[Standard<T::Acc>]) -> Result<(), Error> {
        let mut out = call.contiguous_out::<T>(0)?;
        // SAFETY: as in `by_neighbours`.
        let to = unsafe { Lanes::new(out.as_mut_ptr()) };
        parallel_for(self.rows(), self.grain(1), |rows| {
            for row in rows {
                // SAFETY: as in `by_neighbours`.
                let to = unsafe { to.slice_mut(row * self.inner, self.inner) };
                self.write(row, standards[row % standards.len()], to);
            }
        })
    }

    /// The moments of each row.
    fn of_rows(&self) -> Result<Vec<Moments<T::Acc>>, Error> {
        let zero = Moments { mean: T::Acc::ZERO, rest: T::Acc::ZERO, variance: T::Acc::ZERO };
        let mut moments = vec![zero; self.rows()];
        // SAFETY: the address is used within the vector, which outlives the loop; each row has its own place.
        let to = unsafe { Lanes::new(moments.as_mut_ptr()) };
        parallel_for(self.rows(), self.grain(1), |rows| {
            for row in rows {
                // SAFETY: as above.
                unsafe { to.as_ptr().add(row).write(Moments::of(self.row(row))) };
            }
        })?;
        Ok(moments)
    }

    /// The moments of each channel.
    fn of_channels(&self) -> Result<Vec<Moments<T::Acc>>, Error> {
        let rows = self.of_rows()?;
        let channel = |c: usize| rows[c..].iter().step_by(self.channels).copied();
        Ok((0..self.channels).map(|c| Moments::together(channel(c), self.batch)).collect())
    }
}

fn group_norm<T: Float>(call: &Call) -> Result<(), Error> {
    let x = Channels::<T>::of(call, 0, Some(2), Some(3))?;
    x.by_neighbours(call, x.channels / call.int(1)?.max(1) as usize, T::Acc::from_f64(call.float(4)?))
}

/// Argument `i`, numbers in the input's dtype or wider.
fn statistics<T: Float>(call: &Call, i: usize) -> Result<Buffer<T::Acc>, Error> {
    let given = call.tensor(i)?.dtype();
    if given == T::dtype() {
        return widened::<T>(call, i, 0, T::Acc::ZERO);
    }
    if given == T::Acc::dtype() {
        return widened::<T::Acc>(call, i, 0, T::Acc::ZERO);
    }
    Err(unsupported("running statistics of another dtype"))
}

/// What stands for each channel by the statistics in arguments 1 and 2.
fn of_statistics<T: Float>(call: &Call, eps: T::Acc) -> Result<Vec<Standard<T::Acc>>, Error> {
    let (mean, var) = (statistics::<T>(call, 1)?, statistics::<T>(call, 2)?);
    let moments = |(&mean, &variance)| Moments { mean, rest: T::Acc::ZERO, variance };
    Ok(mean.iter().zip(var.iter()).map(|pair| moments(pair).standard(eps)).collect())
}

/// `batch_norm` and `instance_norm`, unless they are to change running statistics.
fn running<T: Float, const PER_SAMPLE: bool>(call: &Call) -> Result<(), Error> {
    let (from_input, given) = (call.bool(5)?, !call.is_none(1)?);
    if from_input && given {
        return Err(unsupported("a change of running statistics"));
    }
    let (x, eps) = (Channels::<T>::of(call, 0, Some(3), Some(4))?, T::Acc::from_f64(call.float(7)?));
    if from_input && PER_SAMPLE {
        return x.by_neighbours(call, 1, eps);
    }
    let standards: Vec<_> = if from_input {
        x.of_channels()?.into_iter().map(|moments| moments.standard(eps)).collect()
    } else {
        of_statistics::<T>(call, eps)?
    };
    x.by_given(call, &standards)
}

fn batch_norm<T: Float>(call: &Call) -> Result<(), Error> {
    running::<T, false>(call)
}

fn instance_norm<T: Float>(call: &Call) -> Result<(), Error> {
    running::<T, true>(call)
}

fn frozen_norm<T: Float>(call: &Call) -> Result<(), Error> {
    let x = Channels::<T>::of(call, 0, Some(3), Some(4))?;
    x.by_given(call, &of_statistics::<T>(call, T::Acc::from_f64(call.float(5)?))?)
}

fn channel_norm<T: Float<Acc: Float>>(call: &Call) -> Result<(), Error> {
    let (x, per_sample, eps) =
        (Channels::<T>::of(call, 0, Some(1), Some(2))?, call.bool(3)?, T::Acc::from_f64(call.float(4)?));
    let moments = if per_sample { x.of_rows()? } else { x.of_channels()? };
    let (mut mean, mut var) = (call.contiguous_out::<T::Acc>(1)?, call.contiguous_out::<T::Acc>(2)?);
    for ((mean, var), moments) in mean.iter_mut().zip(var.iter_mut()).zip(&moments) {
        (*mean, *var) = (moments.mean, moments.variance);
    }
    let standards: Vec<_> = moments.iter().map(|moments| moments.standard(eps)).collect();
    x.by_given(call, &standards)
}

/// Sums over some elements of a gradient, of an input, and of their products.
#[derive(Clone, Copy)]
struct Sums<A> {
    /// Counted from the first ones of the channel: equal ones have no sum.
    grad: A,
    product: A,
    distance: A,
    /// Of the gradient and its products with the distances from the mean, as they are.
    whole: A,
    along: A,
}

impl<A: Real> Sums<A> {
    const NONE: Self =
        Sums { grad: A::ZERO, product: A::ZERO, distance: A::ZERO, whole: A::ZERO, along: A::ZERO };

    /// Of a row.
    fn of<T: Float<Acc = A>>(grad: &[T], x: &[T], first: [A; 2], mean: A) -> Self {
        let (grad_sum, product) = totals(grad, x, |g, x| {
            let (g, d) = (g.to_acc() - first[0], x.to_acc() - first[1]);
            (g, g * d)
        });
        let (whole, along) = totals(grad, x, |g, x| (g.to_acc(), g.to_acc() * (x.to_acc() - mean)));
        Sums { grad: grad_sum, product, distance: total(x, |x| x.to_acc() - first[1]), whole, along }
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

fn channel_norm_backward<T: Float<Acc: Float>>(call: &Call) -> Result<(), Error> {
    let x = Channels::<T>::of(call, 1, Some(4), None)?;
    let grad = call.view::<T>(0)?;
    let grad = grad.as_slice().ok_or_else(|| unsupported("a gradient of scattered rows"))?;
    let (mean, var) = (statistics::<T>(call, 2)?, statistics::<T>(call, 3)?);
    let (per_sample, eps) = (call.bool(5)?, T::Acc::from_f64(call.float(6)?));
    let (channels, inner) = (x.channels, x.inner);
    // From what is no finite number nothing can be counted.
    let finite = |x: T| if (x.to_acc() - x.to_acc()) == T::Acc::ZERO { x.to_acc() } else { T::Acc::ZERO };
    let first: Vec<_> = (0..channels).map(|c| [finite(grad[c * inner]), finite(x.row(c)[0])]).collect();
    let mut rows = vec![Sums::<T::Acc>::NONE; x.rows()];
    // SAFETY: the address is used within the vector, which outlives the loop; each row has its own place.
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
    // For each unit, what the centred gradient and the distance from the mean are multiplied by.
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

fn channel_sums<T: Float<Acc: Float>>(call: &Call) -> Result<(), Error> {
    let x = Channels::<T>::of(call, 1, None, None)?;
    let grad = call.view::<T>(0)?;
    let grad = grad.as_slice().ok_or_else(|| unsupported("a gradient of scattered rows"))?;
    let mean = statistics::<T>(call, 2)?;
    let (channels, inner) = (x.channels, x.inner);
    let mut rows = vec![(T::Acc::ZERO, T::Acc::ZERO); x.rows()];
    // SAFETY: the address is used within the vector, which outlives the loop; each row has its own place.
    let to = unsafe { Lanes::new(rows.as_mut_ptr()) };
    parallel_for(x.rows(), x.grain(1), |range| {
        for row in range {
            let mean = mean[row % channels];
            let sums = totals(&grad[row * inner..][..inner], x.row(row), |g, x| {
                (g.to_acc() * (x.to_acc() - mean), g.to_acc())
            });
            // SAFETY: as above.
            unsafe { to.as_ptr().add(row).write(sums) };
        }
    })?;
    let (mut along, mut whole) = (call.contiguous_out::<T::Acc>(0)?, call.contiguous_out::<T::Acc>(1)?);
    for (c, (along, whole)) in along.iter_mut().zip(whole.iter_mut()).enumerate() {
        (*along, *whole) = (T::Acc::ZERO, T::Acc::ZERO);
        for sums in rows[c..].iter().step_by(channels) {
            *along += sums.0;
            *whole += sums.1;
        }
    }
    Ok(())
}

kernel!("group_norm", "TiOOf>T", group_norm, [f32, f64, f16, bf16]);
kernel!("batch_norm", "TOOOObff>T", batch_norm, [f32, f64, f16, bf16]);
kernel!("instance_norm", "TOOOObff>T", instance_norm, [f32, f64, f16, bf16]);
kernel!("frozen_norm", "TTTOOf>T", frozen_norm, [f32, f64, f16, bf16]);
kernel!("channel_sums", "TTT>TT", channel_sums, [f32, f64, f16, bf16]);
kernel!("channel_norm_backward", "TTTTObf>TTT", channel_norm_backward, [f32, f64, f16, bf16]);
kernel!("channel_norm", "TOObf>TTT", channel_norm, [f32, f64, f16, bf16]);
