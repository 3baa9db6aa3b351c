//! `avg_pool` and its gradient.

use super::Window;
use super::adaptive::spread_back;
use super::lines::{Lines, Reduce, Rows, by_channels, read};
use super::spread::{Sums, spread};
use crate::kernels::resample::boxes;
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_cpu_loops::reserve;
use keyway_cpu_loops::vectors::{Lanes, Vector};
use keyway_sdk::author::{Call, Error, Real, Scratch};
use keyway_sdk::half::{bf16, f16};
use std::ops::Range;

/// The reduction by addition.
pub struct Sum;

impl<A: Real> Reduce<A> for Sum {
    type Place = ();
    const FIRST: (A, ()) = (A::ZERO, ());

    #[inline(always)]
    fn place(_: usize) {}

    #[inline(always)]
    fn take((sum, ()): (A, ()), x: A, (): ()) -> (A, ()) {
        (sum + x, ())
    }
}

/// The range of elements of the window at each position along dimension `d`, in an image with this zero padding, which
/// the range includes.
fn windows(window: &Window, axis: &Axis, d: usize, border: usize) -> Result<Vec<Range<usize>>, Error> {
    let mut windows = reserve(axis.count)?;
    windows.extend((0..axis.count).map(|place| {
        let first = place * axis.step + border;
        let [begin, end] = [first, first + window.kernel[d]]
            .map(|at| at.saturating_sub(window.padding[d]).min(axis.size + 2 * border));
        begin..end
    }));
    Ok(windows)
}

/// The divisor of the sums.
struct Divisor<A> {
    /// The divisor of all positions, if it is constant.
    same: Option<Quotient<A>>,
    /// The number of elements in the window at each position of each dimension, with or without the padding.
    counts: [Vec<A>; 3],
}

/// A divisor.
#[derive(Clone, Copy)]
struct Quotient<A> {
    divisor: A,
    /// The reciprocal of the divisor, if multiplication by it is exact: a division takes far longer.
    reciprocal: Option<A>,
}

impl<A: Real> Quotient<A> {
    fn by(divisor: A) -> Self {
        let whole = divisor.to_f64();
        // Powers of 2 have an exact reciprocal; these are far from the subnormal range.
        let exact = whole < u32::MAX as f64 && (whole as u32).is_power_of_two();
        Quotient { divisor, reciprocal: exact.then(|| A::ONE / divisor) }
    }

    fn of(self, numbers: &mut [A]) {
        match self.reciprocal {
            Some(reciprocal) => numbers.iter_mut().for_each(|x| *x = *x * reciprocal),
            None => numbers.iter_mut().for_each(|x| *x = *x / self.divisor),
        }
    }
}

impl<A: Real> Divisor<A> {
    /// The divisor that arguments `at` and `at + 1` (`count_include_pad`, `divisor_override`) specify.
    fn of(call: &Call, at: usize, window: &Window, axes: &[Axis; 3]) -> Result<Self, Error> {
        if !call.is_none(at + 1)? {
            let given = A::from_f64(call.int(at + 1)?.max(1) as f64);
            return Ok(Divisor { same: Some(Quotient::by(given)), counts: [const { Vec::new() }; 3] });
        }
        let include = call.bool(at)?;
        let counts = |d: usize| {
            // The counted padding ends at its width, though a window may reach further.
            let border = if include { window.padding[d] } else { 0 };
            let under = windows(window, &axes[d], d, border)?;
            let mut counts = reserve(under.len())?;
            counts.extend(under.iter().map(|range| A::from_f64(range.len() as f64)));
            Ok(counts)
        };
        let counts = [counts(0)?, counts(1)?, counts(2)?];
        let first =
            |counts: &Vec<A>| counts.first().copied().filter(|first| counts.iter().all(|n| n == first));
        let same = counts.iter().try_fold(A::ONE, |all, counts| Some(all * first(counts)?));
        Ok(Divisor { same: same.map(Quotient::by), counts })
    }

    /// Divides the values of consecutive positions of a row, starting at this position.
    fn divide_row(&self, [d, h, w]: [usize; 3], row: &mut [A]) {
        if let Some(same) = self.same {
            return same.of(row);
        }
        let [depth, height, width] = &self.counts;
        let (plane, widths) = (depth[d] * height[h], &width[w..w + row.len()]);
        row.iter_mut().zip(widths).for_each(|(x, &width)| *x = *x / (plane * width));
    }

    /// Divides the values of one position.
    fn divide(&self, [d, h, w]: [usize; 3], numbers: &mut [A]) {
        let [depth, height, width] = &self.counts;
        self.same.unwrap_or_else(|| Quotient::by(depth[d] * height[h] * width[w])).of(numbers);
    }
}

fn avg_pool<T: Lanes>(call: &Call) -> Result<(), Error> {
    let (input, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    if out.sizes.contains(&0) {
        return Ok(());
    }
    let [_, _, counts @ ..] = out.sizes;
    let window = Window::of(call, 1, [1; 3])?;
    let axes = window.axes(&input, counts)?;
    let divisor = Divisor::of(call, 5, &window, &axes)?;
    if let Some(Quotient { reciprocal: Some(reciprocal), .. }) = divisor.same
        && T::Vector::PICKS
        && !by_channels(&input)
        && input.sizes[4] <= 2 * T::Vector::LANES
    {
        // Such rows fit two registers, from which each position permutes its operands.
        let of = |d: usize| windows(&window, &axes[d], d, 0);
        // SAFETY: as in `largest`; windows are within the image.
        return unsafe { boxes(&input, &out, &[of(0)?, of(1)?, of(2)?], reciprocal) };
    }
    // SAFETY: as in `largest`.
    unsafe {
        Lines { input: &input, axes: &axes }.each::<Sum, _>(&out, |line, sums, _| {
            if line.has_channels() {
                divisor.divide(line.place(), sums);
            } else {
                divisor.divide_row(line.place(), sums);
            }
            line.write(&out, sums);
        })
    }
}

/// The output gradient and the windows through which it is propagated.
struct Gradient<'a, T: Lanes> {
    grad: Volume<'a, T>,
    axes: [Axis; 3],
    /// The input elements in the window at each position, for each dimension.
    windows: [Vec<Range<usize>>; 3],
    divisor: Divisor<T::Acc>,
}

impl<T: Lanes> Gradient<'_, T> {
    /// The row indices of the input that the window at this position covers.
    fn rows(&self, d: usize, h: usize) -> impl Iterator<Item = usize> {
        let (height, size) = (self.windows[1][h].clone(), self.axes[1].size);
        self.windows[0][d].clone().flat_map(move |z| height.clone().map(move |y| z * size + y))
    }

    /// Reads the elements of the gradient along dimension `along`.
    ///
    /// # Safety
    /// They must exist.
    unsafe fn read(&self, index: [usize; 5], along: usize, to: &mut [T::Acc]) {
        let at: usize = index.iter().zip(&self.grad.strides).map(|(i, step)| i * step).sum();
        let from = self.grad.data.as_ptr().cast_const().wrapping_add(at);
        // SAFETY: as the caller guarantees.
        unsafe { read(from, self.grad.strides[along], to) };
    }

    /// # Safety
    /// The gradient must contain the elements that the sizes describe.
    unsafe fn of_channel(&self, sample: usize, channel: usize, plane: &mut [T::Acc]) -> Result<(), Error> {
        let [_, _, depth, height, width] = self.grad.sizes;
        let rows = Rows::of(&self.axes[2])?;
        let mut shares = Scratch::<T::Acc>::zeroed(width)?;
        let mut parts = Scratch::<T::Acc>::zeroed(rows.deinterleaved_len())?;
        for (d, h) in (0..depth).flat_map(|d| (0..height).map(move |h| (d, h))) {
            // SAFETY: as the caller guarantees.
            unsafe { self.read([sample, channel, d, h, 0], 4, &mut shares) };
            self.divisor.divide_row([d, h, 0], &mut shares);
            // The contributions of the row's positions to each input row in their windows.
            parts.fill(T::Acc::ZERO);
            for tap in rows.taps.iter().rev() {
                let to = &mut parts[tap.part..];
                to.iter_mut().zip(&shares[tap.inside.clone()]).for_each(|(to, &share)| *to += share);
            }
            for row in self.rows(d, h) {
                rows.add_parted(&parts, &mut plane[row * self.axes[2].size..][..self.axes[2].size]);
            }
        }
        Ok(())
    }

    /// # Safety
    /// As for [`Gradient::of_channel`].
    unsafe fn of_channels(&self, sums: &mut Sums<T::Acc>) {
        let [_, _, depth, height, width] = self.grad.sizes;
        let (mut shares, mut rows) = (vec![T::Acc::ZERO; sums.channels.len()], Vec::new());
        for (d, h) in (0..depth).flat_map(|d| (0..height).map(move |h| (d, h))) {
            rows.clear();
            rows.extend(self.rows(d, h));
            for w in 0..width {
                // SAFETY: as the caller guarantees.
                unsafe { self.read([sums.sample, sums.channels.start, d, h, w], 1, &mut shares) };
                self.divisor.divide([d, h, w], &mut shares);
                for &row in &rows {
                    for x in self.windows[2][w].clone() {
                        let slot = sums.at(row * self.axes[2].size + x).unwrap_or_default();
                        add::<T>(slot, &shares);
                    }
                }
            }
        }
    }
}

/// Adds short slices, for which vectorised loops are slower.
fn add<T: Lanes>(to: &mut [T::Acc], from: &[T::Acc]) {
    let (lanes, one) = (T::Vector::LANES, T::Vector::splat(T::Acc::ONE));
    let (mut to, mut from) = (to.chunks_exact_mut(lanes), from.chunks_exact(lanes));
    for (to, from) in to.by_ref().zip(from.by_ref()) {
        // SAFETY: both have the lanes of a vector.
        unsafe {
            T::Vector::load(from.as_ptr()).mul_add(one, T::Vector::load(to.as_ptr())).store(to.as_mut_ptr())
        };
    }
    to.into_remainder().iter_mut().zip(from.remainder()).for_each(|(to, &x)| *to += x);
}

fn avg_pool_backward<T: Lanes>(call: &Call) -> Result<(), Error> {
    let (grad, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    if out.sizes.contains(&0) {
        return Ok(());
    }
    let [_, _, counts @ ..] = grad.sizes;
    let window = Window::of(call, 2, [1; 3])?;
    let axes = window.axes(&out, counts)?;
    let divisor = Divisor::of(call, 6, &window, &axes)?;
    let of = |d: usize| windows(&window, &axes[d], d, 0);
    let windows = [of(0)?, of(1)?, of(2)?];
    let apart = |windows: &Vec<Range<usize>>| windows.is_sorted_by(|a, b| a.end <= b.start);
    if let Some(Quotient { reciprocal: Some(reciprocal), .. }) = divisor.same
        && windows.iter().all(apart)
    {
        // Each element has its part of one mean, which is copied to all elements of a window.
        // SAFETY: sizes and strides are those of the call's tensors, which the op's rule has checked against each other and
        // whose elements the host guarantees; the output is uniquely owned.
        return unsafe {
            spread_back(&grad, &out, &windows, |d, _| if d == 0 { reciprocal } else { T::Acc::ONE })
        };
    }
    let gradient = Gradient { grad, axes, windows, divisor };
    // SAFETY: as in `max_pool_backward`.
    unsafe {
        spread(&out, |sums| {
            let (sample, channel) = (sums.sample, sums.channels.start);
            match sums.plane() {
                Some(plane) => gradient.of_channel(sample, channel, plane),
                None => {
                    gradient.of_channels(sums);
                    Ok(())
                }
            }
        })
    }
}

kernel!("avg_pool", "TIIIbbi>T", avg_pool, [f32, f64, f16, bf16]);
// In benches/RESULTS.md, "Images, one thread" (f32): channels_last over row-major 1.8/3.3 ms.
keyway_sdk::register_preference! { op: "avg_pool", device: "cpu", format: "channels_last", cost: 0.55 }
kernel!("avg_pool_backward", "TIIIIbbi>T", avg_pool_backward, [f32, f64, f16, bf16]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_is_that_of_a_division_bit_by_bit() {
        let numbers =
            [0.0, -0.0, 1.0, 1.0 / 3.0, -7.5, f32::MAX, f32::MIN_POSITIVE, 1e-44, f32::INFINITY, f32::NAN];
        for divisor in [1.0, 2.0, 3.0, 4.0, 9.0, 64.0, 12544.0, 65536.0, 4294967296.0, 1e30, 0.0] {
            let mut divided = numbers;
            Quotient::by(divisor).of(&mut divided);
            for (x, y) in numbers.into_iter().zip(divided) {
                let expected = x / divisor;
                assert!(
                    expected.to_bits() == y.to_bits() || expected.is_nan() && y.is_nan(),
                    "{x} / {divisor}: {y}"
                );
            }
        }
    }
}
