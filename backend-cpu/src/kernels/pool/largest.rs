//! `max_pool` and its gradient.

use super::Window;
use super::lines::{Lines, Reduce};
use super::spread::spread;
use keyway_cpu_loops::images::{Volume, three};
use keyway_cpu_loops::vectors::Lanes;
use keyway_sdk::author::{Call, Error, Real};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

/// The largest element so far and its place, which is counted in `P`.
pub struct Largest<P>(PhantomData<P>);

macro_rules! largest {
    ($($place:ty),+) => {$(
        impl<A: Real> Reduce<A> for Largest<$place> {
            type Place = $place;
            // No place is smaller than that of the first element, which is taken whatever it is.
            const FIRST: (A, $place) = (A::NEG_INFINITY, -1);

            #[inline(always)]
            fn place(at: usize) -> $place {
                at as $place
            }

            #[inline(always)]
            fn take((largest, place): (A, $place), x: A, at: $place) -> (A, $place) {
                // NaN is the largest of all, and the last one counts.
                if x > largest || x.is_nan() || place < 0 { (x, at) } else { (largest, place) }
            }
        }
    )+};
}
largest!(i32, i64);

fn max_pool<T: Lanes>(call: &Call) -> Result<(), Error> {
    let count: usize = Volume::<T>::argument(call, 0)?.sizes[2..].iter().product();
    // Places of four bytes are found as fast as the elements.
    if i32::try_from(count).is_ok() { largest::<T, i32>(call) } else { largest::<T, i64>(call) }
}

fn largest<T: Lanes, P: Copy + Into<i64> + Sync>(call: &Call) -> Result<(), Error>
where
    Largest<P>: Reduce<T::Acc, Place = P>,
{
    let input = Volume::<T>::argument(call, 0)?;
    let (values, places) = (Volume::<T>::output(call, 0)?, Volume::<i64>::output(call, 1)?);
    if values.sizes.contains(&0) {
        return Ok(());
    }
    let [_, _, counts @ ..] = values.sizes;
    let axes = Window::of(call, 1, three(call.ints(4)?, 1))?.axes(&input, counts)?;
    // SAFETY: sizes and strides are those of the call's tensors, which the op's rule has matched and whose elements the host
    // guarantees; each line writes results of its own.
    unsafe {
        Lines { input: &input, axes: &axes }.each::<Largest<P>, _>(&values, |line, largest, at| {
            line.write(&values, largest);
            line.write_places(&places, at);
        })
    }
}

#[cold]
pub fn outside(place: i64, count: usize) -> Error {
    Error::InvalidArgument {
        argument: "indices",
        expected: format!("places in 0..{count}, the elements of a channel"),
        got: format!("{place}"),
    }
}

fn max_pool_backward<T: Lanes>(call: &Call) -> Result<(), Error> {
    let (grad, indices) = (Volume::<T>::argument(call, 0)?, Volume::<i64>::argument(call, 1)?);
    let out = Volume::<T>::output(call, 0)?;
    let count: usize = out.sizes[2..].iter().product();
    let [_, _, depth, height, width] = grad.sizes;
    // SAFETY: sizes and strides are those of the call's tensors, which the op's rule has matched and whose elements the host
    // guarantees; the output is this call's alone.
    unsafe {
        spread(&out, |sums| {
            for (d, h) in (0..depth).flat_map(|d| (0..height).map(move |h| (d, h))) {
                let begin = [sums.sample, sums.channels.start, d, h];
                let at =
                    |strides: &[usize]| begin.iter().zip(strides).map(|(i, step)| i * step).sum::<usize>();
                let (from, places) = (
                    grad.data.as_ptr().wrapping_add(at(&grad.strides)),
                    indices.data.as_ptr().wrapping_add(at(&indices.strides)),
                );
                let [channel, step] = [1, 4].map(|d| (grad.strides[d], indices.strides[d]));
                for w in 0..width {
                    for c in 0..sums.channels.len() {
                        let place = *places.add(c * channel.1 + w * step.1);
                        let g = (*from.add(c * channel.0 + w * step.0)).to_acc();
                        // A place below 0 is beyond all as a number without sign.
                        match sums.at(place as usize) {
                            Some(slot) => slot[c] += g,
                            None => return Err(outside(place, count)),
                        }
                    }
                }
            }
            Ok(())
        })
    }
}

kernel!("max_pool", "TIIIIb>TT", max_pool, [f32, f64, f16, bf16]);
kernel!("max_pool_backward", "TTI>T", max_pool_backward, [f32, f64, f16, bf16]);
