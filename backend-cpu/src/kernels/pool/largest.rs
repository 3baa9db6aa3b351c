//! `max_pool`, `max_pool_values`, and the gradient of `max_pool`.

use super::Window;
use super::lines::{Lines, Reduce};
use super::near::Back;
use super::spread::{even, spread};
use keyway_cpu_loops::images::{Volume, three};
use keyway_cpu_loops::vectors::Lanes;
use keyway_sdk::author::{Call, Error, Real};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

/// The reduction to the largest element and its index, of type `P`.
pub struct Largest<P>(PhantomData<P>);

macro_rules! largest {
    ($($place:ty),+) => {$(
        impl<A: Real> Reduce<A> for Largest<$place> {
            type Place = $place;
            // The initial index is below all others, so the first element always replaces it.
            const FIRST: (A, $place) = (A::NEG_INFINITY, -1);

            #[inline(always)]
            fn place(at: usize) -> $place {
                at as $place
            }

            #[inline(always)]
            fn take((largest, place): (A, $place), x: A, at: $place) -> (A, $place) {
                // NaN exceeds all other values, and the last NaN is selected.
                if x > largest || x.is_nan() || place < 0 { (x, at) } else { (largest, place) }
            }

            #[inline(always)]
            fn more((largest, place): (A, $place), x: A, at: $place) -> (A, $place) {
                if x > largest || x.is_nan() { (x, at) } else { (largest, place) }
            }
        }
    )+};
}
largest!(i32, i64);

/// The reduction to the largest element, without its index.
pub struct LargestValue;

impl<A: Real> Reduce<A> for LargestValue {
    type Place = ();
    const FIRST: (A, ()) = (A::NEG_INFINITY, ());

    #[inline(always)]
    fn place(_: usize) {}

    #[inline(always)]
    fn take((largest, ()): (A, ()), x: A, (): ()) -> (A, ()) {
        (if x > largest || x.is_nan() { x } else { largest }, ())
    }
}

fn max_pool<T: Lanes>(call: &Call) -> Result<(), Error> {
    let count: usize = Volume::<T>::argument(call, 0)?.sizes[2..].iter().product();
    // Indices of the elements' size are as fast as the elements.
    let small = size_of::<T::Acc>() == size_of::<i32>() && i32::try_from(count).is_ok();
    if small { largest::<T, i32>(call) } else { largest::<T, i64>(call) }
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
    // SAFETY: sizes and strides are those of the call's tensors, which the op's rule has checked against each other and
    // whose elements the host guarantees; each line writes its own results.
    unsafe {
        Lines { input: &input, axes: &axes }.each::<Largest<P>, _>(&values, |line, largest, at| {
            line.write(&values, largest);
            line.write_places(&places, at);
        })
    }
}

fn max_pool_values<T: Lanes>(call: &Call) -> Result<(), Error> {
    let (input, values) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    if values.sizes.contains(&0) {
        return Ok(());
    }
    let [_, _, counts @ ..] = values.sizes;
    let axes = Window::of(call, 1, three(call.ints(4)?, 1))?.axes(&input, counts)?;
    // SAFETY: as in `largest`.
    unsafe {
        Lines { input: &input, axes: &axes }.each::<LargestValue, _>(&values, |line, largest, _| {
            line.write(&values, largest);
        })
    }
}

#[cold]
pub fn outside(index: i64, count: usize) -> Error {
    Error::InvalidArgument {
        argument: "indices",
        expected: format!("indices in 0..{count}, the elements of a channel"),
        got: format!("{index}"),
    }
}

/// The number of elements that are widened at a time.
const SOME: usize = 64;

/// Elements of a gradient and their indices, each with a constant stride.
struct Run<T> {
    grad: *const T,
    places: *const i64,
    /// The strides of elements and of indices.
    steps: (usize, usize),
    length: usize,
}

impl<T: Lanes> Run<T> {
    /// Calls `add` with the number, the index and the value of each element; an index that `add` refuses is an error.
    ///
    /// # Safety
    /// There must be `n` elements and indices.
    #[inline(always)]
    unsafe fn each(
        &self,
        count: usize,
        mut add: impl FnMut(usize, usize, T::Acc) -> bool,
    ) -> Result<(), Error> {
        let mut copy = [T::Acc::ZERO; SOME];
        for first in (0..self.length).step_by(SOME) {
            let (from, n) = (self.grad.wrapping_add(first * self.steps.0), SOME.min(self.length - first));
            // SAFETY: as the caller guarantees.
            let grad = unsafe { Lines::read(from, self.steps.0, n, &mut copy) };
            let places = self.places.wrapping_add(first * self.steps.1);
            for (i, &g) in grad.iter().enumerate() {
                // SAFETY: as above.
                let place = unsafe { *places.wrapping_add(i * self.steps.1) };
                // A negative index is out of range as an unsigned integer.
                if !add(first + i, place as usize, g) {
                    return Err(outside(place, count));
                }
            }
        }
        Ok(())
    }
}

fn max_pool_backward<T: Lanes>(call: &Call) -> Result<(), Error> {
    let (grad, indices) = (Volume::<T>::argument(call, 0)?, Volume::<i64>::argument(call, 1)?);
    let out = Volume::<T>::output(call, 0)?;
    if let Some(back) = Back::of(&grad, &indices, &out) {
        // SAFETY: as below.
        return unsafe { back.run() };
    }
    let count: usize = out.sizes[2..].iter().product();
    let [_, _, depth, height, width] = grad.sizes;
    // Channels whose elements and indices have constant strides are single runs.
    let whole = even(&grad, 1).zip(even(&indices, 1));
    // SAFETY: sizes and strides are those of the call's tensors, which the op's rule has checked against each other and
    // whose elements the host guarantees; the output is uniquely owned.
    unsafe {
        spread(&out, |sums| {
            let (sample, first, channels) = (sums.sample, sums.channels.start, sums.channels.len());
            let run = |[d, h, w]: [usize; 3], steps, length| {
                let begin = [sample, first, d, h, w];
                let at =
                    |strides: &[usize]| begin.iter().zip(strides).map(|(i, step)| i * step).sum::<usize>();
                let grad = grad.data.as_ptr().cast_const().wrapping_add(at(&grad.strides));
                let places = indices.data.as_ptr().cast_const().wrapping_add(at(&indices.strides));
                Run { grad, places, steps, length }
            };
            let along = |d: usize| (grad.strides[d], indices.strides[d]);
            let rows = (0..depth).flat_map(|d| (0..height).map(move |h| (d, h)));
            if let Some(plane) = sums.plane() {
                let mut add =
                    |_, place, g| plane.get_mut(place).map(|slot: &mut T::Acc| *slot += g).is_some();
                if let Some(steps) = whole {
                    return run([0; 3], steps, depth * height * width).each(count, add);
                }
                for (d, h) in rows {
                    run([d, h, 0], along(4), width).each(count, &mut add)?;
                }
                return Ok(());
            }
            for (d, h, w) in rows.flat_map(|(d, h)| (0..width).map(move |w| (d, h, w))) {
                run([d, h, w], along(1), channels).each(count, |c, place, g| sums.add(place, c, g))?;
            }
            Ok(())
        })
    }
}

kernel!("max_pool", "TIIIIb>TT", max_pool, [f32, f64, f16, bf16]);
kernel!("max_pool_values", "TIIIIb>T", max_pool_values, [f32, f64, f16, bf16]);
// In benches/RESULTS.md, the table of 28 November 2026 (Zen 5, one thread, f32): channels_last over row-major 2.40/3.10 ms.
keyway_sdk::register_preference! { op: "max_pool_values", device: "cpu", format: "channels_last", cost: 0.77 }
kernel!("max_pool_backward", "TTI>T", max_pool_backward, [f32, f64, f16, bf16]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_any_length_and_step_give_each_element_its_place() {
        for (length, grad_step, place_step) in
            [(0, 1, 1), (1, 1, 1), (63, 1, 2), (64, 3, 1), (65, 1, 1), (200, 2, 3)]
        {
            let grad: Vec<f16> = (0..length * grad_step).map(|i| f16::from_f32(i as f32 / 8.0)).collect();
            let places: Vec<i64> = (0..length * place_step).map(|i| (i * 7 % 50) as i64).collect();
            let run =
                Run { grad: grad.as_ptr(), places: places.as_ptr(), steps: (grad_step, place_step), length };
            let mut seen = Vec::new();
            // SAFETY: the vectors have the elements and indices.
            let refused = unsafe {
                run.each(50, |i, place, g| {
                    seen.push((i, place, g));
                    true
                })
                .expect("places");
                run.each(50, |i, _, _| i + 1 < length)
            };
            let expected = |i: usize| (i, places[i * place_step] as usize, grad[i * grad_step].to_f32());
            assert_eq!(seen, (0..length).map(expected).collect::<Vec<_>>());
            assert_eq!(refused.is_err(), length > 0, "{length} elements");
        }
    }
}
