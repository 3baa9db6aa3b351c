//! Sums with more addends than f32 can add without losing digits.

use super::super::grid_taps::GridTaps;
use crate::kernels::long_sums::CHAIN;
use keyway_cpu_loops::vectors::Lanes as Elements;
use keyway_sdk::author::{Error, Real, Scratch};
use std::ops::Range;

/// Counts the addends of each element's sums, and moves f32 sums to f64 after [`CHAIN`] addends, exceeded by at most one
/// group of pixels.
pub(super) struct LongSums {
    /// The addends since the sums were moved, by index over `unit`.
    counts: Scratch<u32>,
    unit: usize,
    /// The stride between the channels of an element, and the number of channels.
    step: usize,
    channels: usize,
    /// The f64 sums, allocated when the first sum is moved.
    totals: Option<Scratch<f64>>,
}

impl LongSums {
    /// Creates the counters of `len` sums in `A` of at most `addends` addends each; `None` if they are too few to lose
    /// digits, or the sums are in f64. `layout` is the stride between the channels of an element, the number of channels,
    /// and a divisor of all element offsets.
    pub(super) fn new<A: Real>(
        addends: usize,
        len: usize,
        (step, channels, unit): (usize, usize, usize),
    ) -> Result<Option<LongSums>, Error> {
        if addends <= CHAIN || size_of::<A>() == size_of::<f64>() {
            return Ok(None);
        }
        let elements = if step == 1 { len / unit } else { step };
        Ok(Some(LongSums { counts: Scratch::zeroed(elements)?, unit, step, channels, totals: None }))
    }

    /// Counts the addends of the pixels that are added next.
    pub(super) fn note<T: Elements>(
        &mut self,
        grid_taps: &GridTaps<T>,
        pixels: &Range<usize>,
        sums: &mut [T::Acc],
    ) -> Result<(), Error> {
        for k in 0..grid_taps.taps {
            for (at, _) in grid_taps.of_tap(k, pixels) {
                let count = &mut self.counts[at as usize / self.unit];
                *count += 1;
                if *count as usize > CHAIN {
                    *count = 1;
                    self.take(at as usize, sums)?;
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn take<A: Real>(&mut self, at: usize, sums: &mut [A]) -> Result<(), Error> {
        let totals = match &mut self.totals {
            Some(totals) => totals,
            none => none.insert(Scratch::zeroed(sums.len())?),
        };
        for at in (at..).step_by(self.step).take(self.channels) {
            totals[at] += std::mem::replace(&mut sums[at], A::ZERO).to_f64();
        }
        Ok(())
    }

    /// Adds the partial sums to the f64 sums and clears them.
    pub(super) fn add_to<A: Real>(&mut self, sums: &mut [A]) {
        self.counts.fill(0);
        for (total, sum) in self.totals.iter_mut().flat_map(|totals| totals.iter_mut()).zip(sums) {
            *sum = A::from_f64(std::mem::take(total) + sum.to_f64());
        }
    }
}
