//! Sums that get more addends than f32 has digits for.

use super::super::places::Places;
use crate::kernels::long_sums::CHAIN;
use keyway_cpu_loops::vectors::Lanes as Elements;
use keyway_sdk::author::{Error, Real, Scratch};
use std::ops::Range;

/// Counts the addends of each element's sums, and moves sums in f32 that have got [`CHAIN`] of them, and those of at most one more
/// group of pixels, to sums in f64.
pub(super) struct LongSums {
    /// The addends since the sums were moved, by index over `unit`.
    counts: Scratch<u32>,
    unit: usize,
    /// The distance of an element's sums of two channels, and the number of channels.
    step: usize,
    channels: usize,
    /// Of each sum, made when the first is moved.
    totals: Option<Scratch<f64>>,
}

impl LongSums {
    /// For at most `addends` of one of `len` sums in `A`; `None` where they are too few to lose digits, or the sums are in f64. `layout` is
    /// the distance of an element's sums of two channels, the number of channels, and a divisor of all indices of elements.
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

    /// Counts the addends of some pixels, which are added next.
    pub(super) fn note<T: Elements>(
        &mut self,
        places: &Places<T>,
        pixels: &Range<usize>,
        sums: &mut [T::Acc],
    ) -> Result<(), Error> {
        for k in 0..places.taps {
            for (at, _) in places.of_tap(k, pixels) {
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
