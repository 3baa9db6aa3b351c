//! `group_norm`, `instance_norm`, `batch_norm` and `frozen_norm` of inputs `[batch, channels, ..]`, and `channel_norm`, which
//! also returns the statistics.
//!
//! A row is one channel of one sample. Moments are computed per row, and combined for rows that are normalised as one.
//! Inputs with short rows or strided elements use the decomposition.

mod gradients;

use super::buffer::Buffer;
use super::moments::{Moments, Standard, widened};
use keyway_cpu_loops::vectors::Lanes as Elements;
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};
use std::ops::Range;

/// The minimum row length, unless the input is so small that the number of calls dominates its time.
const SHORTEST: usize = 32;
const SMALL: usize = 4 * 1024;
const GRAIN: usize = 16 * 1024;

#[cold]
fn unsupported(what: &str) -> Error {
    Error::Unsupported { what: what.to_string() }
}

/// The input, and the scale and shift of its channels.
struct Channels<'a, T: Elements> {
    input: &'a [T],
    batch: usize,
    channels: usize,
    /// The number of elements of a row.
    inner: usize,
    weight: Buffer<T::Acc>,
    bias: Buffer<T::Acc>,
}

impl<'a, T: Elements> Channels<'a, T> {
    /// The input in argument `input`, with the weight in argument `weight` and the bias in argument `bias`, if present.
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

    /// The minimum number of units of `rows` rows that justifies another thread.
    fn grain(&self, rows: usize) -> usize {
        GRAIN.div_ceil(rows * self.inner)
    }

    /// Normalises a row, applies the channel's scale and shift, and writes it to the output.
    #[inline(always)]
    fn write(&self, row: usize, standard: Standard<T::Acc>, to: &mut [T]) {
        let channel = row % self.channels;
        let Standard { mean, rest, rstd } = standard;
        let (scale, bias) = (rstd * self.weight[channel], self.bias[channel]);
        zip_wide((self.row(row),), to, |(x,)| ((x.to_acc() - mean) - rest) * scale + bias);
    }

    /// Normalises each group of `together` consecutive rows by their own moments.
    fn by_neighbours(&self, call: &Call, together: usize, eps: T::Acc) -> Result<(), Error> {
        let mut out = call.contiguous_out::<T>(0)?;
        // SAFETY: the address is used within the output, which outlives the loop; each row has its own part.
        let to = unsafe { Lanes::new(out.as_mut_ptr()) };
        parallel_for(self.rows() / together, self.grain(together), |units| {
            for unit in units {
                let rows = unit * together..(unit + 1) * together;
                let moments = match together {
                    1 => Moments::of(self.row(unit)),
                    _ => Moments::together(self.each(rows.clone()).into_iter(), together),
                };
                let standard = moments.standard(eps);
                for row in rows {
                    // SAFETY: as above.
                    self.write(row, standard, unsafe { to.slice_mut(row * self.inner, self.inner) });
                }
            }
        })
    }

    /// Normalises each row by the moments of its channel, or by its own if `standards` has one entry per row.
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

    /// The moments of each of these rows.
    fn each(&self, rows: Range<usize>) -> Vec<Moments<T::Acc>> {
        rows.map(|row| Moments::of(self.row(row))).collect()
    }

    /// The moments of each row.
    fn of_rows(&self) -> Result<Vec<Moments<T::Acc>>, Error> {
        let zero = Moments { mean: T::Acc::ZERO, rest: T::Acc::ZERO, variance: T::Acc::ZERO };
        let mut moments = vec![zero; self.rows()];
        // SAFETY: the address is used within the vector, which outlives the loop; each row has its own element.
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

fn group_norm<T: Elements>(call: &Call) -> Result<(), Error> {
    let x = Channels::<T>::of(call, 0, Some(2), Some(3))?;
    x.by_neighbours(call, x.channels / call.int(1)?.max(1) as usize, T::Acc::from_f64(call.float(4)?))
}

/// Argument `i`, in the input's dtype or a wider one.
fn statistics<T: Elements>(call: &Call, i: usize) -> Result<Buffer<T::Acc>, Error> {
    let given = call.tensor(i)?.dtype();
    if given == T::dtype() {
        return widened::<T>(call, i, 0, T::Acc::ZERO);
    }
    if given == T::Acc::dtype() {
        return widened::<T::Acc>(call, i, 0, T::Acc::ZERO);
    }
    Err(unsupported("running statistics of another dtype"))
}

/// The mean and scale of each channel, from the statistics in arguments 1 and 2.
fn of_statistics<T: Elements>(call: &Call, eps: T::Acc) -> Result<Vec<Standard<T::Acc>>, Error> {
    let (mean, var) = (statistics::<T>(call, 1)?, statistics::<T>(call, 2)?);
    let moments = |(&mean, &variance)| Moments { mean, rest: T::Acc::ZERO, variance };
    Ok(mean.iter().zip(var.iter()).map(|pair| moments(pair).standard(eps)).collect())
}

/// `batch_norm` and `instance_norm`, unless they update running statistics.
fn running<T: Elements, const PER_SAMPLE: bool>(call: &Call) -> Result<(), Error> {
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

fn batch_norm<T: Elements>(call: &Call) -> Result<(), Error> {
    running::<T, false>(call)
}

fn instance_norm<T: Elements>(call: &Call) -> Result<(), Error> {
    running::<T, true>(call)
}

fn frozen_norm<T: Elements>(call: &Call) -> Result<(), Error> {
    let x = Channels::<T>::of(call, 0, Some(3), Some(4))?;
    x.by_given(call, &of_statistics::<T>(call, T::Acc::from_f64(call.float(5)?))?)
}

fn channel_norm<T: Elements<Acc: Float>>(call: &Call) -> Result<(), Error> {
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

kernel!("group_norm", "TiOOf>T", group_norm, [f32, f64, f16, bf16]);
kernel!("batch_norm", "TOOOObff>T", batch_norm, [f32, f64, f16, bf16]);
kernel!("instance_norm", "TOOOObff>T", instance_norm, [f32, f64, f16, bf16]);
kernel!("frozen_norm", "TTTOOf>T", frozen_norm, [f32, f64, f16, bf16]);
kernel!("channel_norm", "TOObf>TTT", channel_norm, [f32, f64, f16, bf16]);
