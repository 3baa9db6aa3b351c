//! `max_pool`, `avg_pool` and their gradients.
//!
//! Results are made by lines: of the places of a row, or, where channels are dense, of the channels of a place. A line is gone
//! through once for each element of the window, so that its loop is over neighbouring elements whatever the format. Gradients
//! go to the input channel by channel, into sums of their own.

mod lines;
mod spread;

use keyway_cpu_loops::images::{Axis, Volume, taps, three};
use keyway_sdk::author::{Call, Element, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};
use lines::{Lines, Reduce};
use spread::spread;

/// The axes of a pooled image: kernel, stride and padding are arguments `at` to `at + 2`.
fn axes<T: Element>(
    call: &Call,
    at: usize,
    dilation: [usize; 3],
    image: &Volume<'_, T>,
    counts: [usize; 3],
) -> Result<[Axis; 3], Error> {
    let (kernel, stride) = (three(call.ints(at)?, 1), three(call.ints(at + 1)?, 1));
    let padding = three(call.ints(at + 2)?, 0);
    Ok([0, 1, 2].map(|d| Axis::of(image, d, counts[d], stride[d], taps(kernel[d], dilation[d], padding[d]))))
}

/// The largest element so far and its place.
struct Largest;

impl<A: Real> Reduce<A> for Largest {
    type State = (A, i64);

    fn begin(&self) -> (A, i64) {
        // No place is smaller than that of the first element, which is taken whatever it is.
        (A::NEG_INFINITY, -1)
    }

    #[inline(always)]
    fn take(&self, (largest, place): (A, i64), x: A, at: i64) -> (A, i64) {
        // NaN is the largest of all, and the last one counts.
        if x > largest || x.is_nan() || place < 0 { (x, at) } else { (largest, place) }
    }
}

/// The sum so far.
struct Sum;

impl<A: Real> Reduce<A> for Sum {
    type State = A;

    fn begin(&self) -> A {
        A::ZERO
    }

    #[inline(always)]
    fn take(&self, sum: A, x: A, _: i64) -> A {
        sum + x
    }
}

fn max_pool<T: Float>(call: &Call) -> Result<(), Error> {
    let input = Volume::<T>::argument(call, 0)?;
    let (values, places) = (Volume::<T>::output(call, 0)?, Volume::<i64>::output(call, 1)?);
    let [_, _, depth, height, width] = values.sizes;
    let axes = axes(call, 1, three(call.ints(4)?, 1), &input, [depth, height, width])?;
    // SAFETY: sizes and strides are those of the call's tensors, which the op's rule has matched and whose elements the host
    // guarantees; each line writes results of its own.
    unsafe {
        Lines { input: &input, axes: &axes }.each(&values, &Largest, |line, states| {
            for (i, &(value, place)) in states.iter().enumerate() {
                values.data.as_ptr().add(line.at(&values, i)).write(T::from_acc(value));
                places.data.as_ptr().add(line.at(&places, i)).write(place);
            }
        })
    }
}

/// What sums are divided by.
struct Divisor {
    given: Option<usize>,
    include: bool,
    /// The elements that the window has in the image, or in the image and its border, by place, for each dimension.
    counts: [Vec<usize>; 3],
}

impl Divisor {
    fn of(call: &Call, at: usize, padding: [usize; 3], axes: &[Axis; 3]) -> Result<Self, Error> {
        let given = if call.is_none(at + 1)? { None } else { Some(call.int(at + 1)?.max(1) as usize) };
        let include = call.bool(at)?;
        let counts = [0, 1, 2].map(|d| {
            let axis = &axes[d];
            // The border after the image ends where the padding does, though a window may reach further.
            let (low, high) = if include {
                (-(padding[d] as isize), (axis.size + padding[d]) as isize)
            } else {
                (0, axis.size as isize)
            };
            let count = |place: usize| {
                let first = (place * axis.step) as isize + axis.taps[0];
                let end = (first + axis.taps.len() as isize).min(high);
                (end - first.max(low)).max(0) as usize
            };
            (0..axis.count).map(count).collect()
        });
        Ok(Divisor { given, include, counts })
    }

    fn at<A: Real>(&self, [d, h, w]: [usize; 3]) -> A {
        let [depth, height, width] = &self.counts;
        debug_assert!(self.include || depth[d] * height[h] * width[w] > 0, "a window outside the image");
        A::from_f64(self.given.unwrap_or_else(|| depth[d] * height[h] * width[w]) as f64)
    }
}

fn avg_pool<T: Float>(call: &Call) -> Result<(), Error> {
    let (input, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    let [_, _, depth, height, width] = out.sizes;
    let axes = axes(call, 1, [1; 3], &input, [depth, height, width])?;
    let divisor = Divisor::of(call, 5, three(call.ints(3)?, 0), &axes)?;
    // SAFETY: as in `max_pool`.
    unsafe {
        Lines { input: &input, axes: &axes }.each(&out, &Sum, |line, states| {
            for (i, &sum) in states.iter().enumerate() {
                let mean = sum / divisor.at(line.place(i));
                out.data.as_ptr().add(line.at(&out, i)).write(T::from_acc(mean));
            }
        })
    }
}

fn max_pool_backward<T: Float>(call: &Call) -> Result<(), Error> {
    let (grad, indices) = (Volume::<T>::argument(call, 0)?, Volume::<i64>::argument(call, 1)?);
    let out = Volume::<T>::output(call, 0)?;
    let count: usize = out.sizes[2..].iter().product();
    // SAFETY: sizes and strides are those of the call's tensors, whose elements the host guarantees; the output is this
    // call's alone.
    unsafe {
        spread(&grad, &out, |index, g, sums| {
            let at: usize = index.iter().zip(&indices.strides).map(|(i, stride)| i * stride).sum();
            let place = *indices.data.as_ptr().add(at);
            let slot = usize::try_from(place).ok().and_then(|place| sums.get_mut(place));
            *slot.ok_or_else(|| Error::InvalidArgument {
                argument: "indices",
                expected: format!("places in 0..{count}, the elements of a channel"),
                got: format!("{place}"),
            })? += g;
            Ok(())
        })
    }
}

fn avg_pool_backward<T: Float>(call: &Call) -> Result<(), Error> {
    let (grad, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    let [_, _, depth, height, width] = grad.sizes;
    let axes = axes(call, 2, [1; 3], &out, [depth, height, width])?;
    let divisor = Divisor::of(call, 6, three(call.ints(4)?, 0), &axes)?;
    let [_, _, _, rows, columns] = out.sizes;
    // SAFETY: as in `max_pool_backward`.
    unsafe {
        spread(&grad, &out, |[_, _, d, h, w], g, sums| {
            let share = g / divisor.at([d, h, w]);
            let [depth, height, width] = &axes;
            for z in depth.window(d) {
                for y in height.window(h) {
                    let first = (z * rows + y) * columns;
                    sums[first..first + columns][width.window(w)].iter_mut().for_each(|sum| *sum += share);
                }
            }
            Ok(())
        })
    }
}

kernel!("max_pool", "TIIIIb>TT", max_pool, [f32, f64, f16, bf16]);
kernel!("max_pool_backward", "TTI>T", max_pool_backward, [f32, f64, f16, bf16]);
kernel!("avg_pool", "TIIIbbi>T", avg_pool, [f32, f64, f16, bf16]);
kernel!("avg_pool_backward", "TIIIIbbi>T", avg_pool_backward, [f32, f64, f16, bf16]);
