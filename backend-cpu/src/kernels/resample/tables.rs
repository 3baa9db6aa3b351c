//! The taps of each output position along one dimension.

use keyway_cpu_loops::reserve;
use keyway_sdk::author::{Error, Real};
use std::ops::Range;

/// The indices and weights of the elements from which each output position along a dimension is computed.
pub struct Table<A> {
    ends: Vec<usize>,
    taps: Vec<(usize, A)>,
}

impl<A: Real> Table<A> {
    /// An empty table with capacity for `positions` positions of `each` taps.
    fn new(positions: usize, each: usize) -> Result<Table<A>, Error> {
        let mut table =
            Table { ends: reserve(positions + 1)?, taps: reserve(positions.saturating_mul(each))? };
        table.ends.push(0);
        Ok(table)
    }

    /// The identity of a dimension of size 1.
    pub fn single() -> Table<A> {
        Table { ends: vec![0, 1], taps: vec![(0, A::ONE)] }
    }

    /// A table with one position per range: the sum of the range's elements, each with this weight.
    pub fn of_ranges(ranges: &[Range<usize>], weight: A) -> Result<Table<A>, Error> {
        let count = ranges.iter().fold(0, |sum: usize, range| sum.saturating_add(range.len()));
        let mut table = Table { ends: reserve(ranges.len() + 1)?, taps: reserve(count)? };
        table.ends.push(0);
        for range in ranges {
            table.taps.extend(range.clone().map(|element| (element, weight)));
            table.ends.push(table.taps.len());
        }
        Ok(table)
    }

    /// Appends a position.
    fn place(&mut self, taps: impl IntoIterator<Item = (usize, f64)>) {
        self.taps.extend(taps.into_iter().map(|(at, weight)| (at, A::from_f64(weight))));
        self.ends.push(self.taps.len());
    }

    /// The taps of a position, in the order of the elements.
    #[inline(always)]
    pub fn at(&self, place: usize) -> &[(usize, A)] {
        &self.taps[self.ends[place]..self.ends[place + 1]]
    }

    /// The maximum number of taps of any position.
    pub fn most(&self) -> usize {
        self.ends.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// The transposed table, for the gradient: for each of `count` elements the positions to which it contributes.
    pub fn transposed(&self, count: usize) -> Result<Table<A>, Error> {
        let mut made = Table { ends: reserve(count + 1)?, taps: reserve(self.taps.len())? };
        made.ends.resize(count + 1, 0);
        made.taps.resize(self.taps.len(), (0, A::ZERO));
        self.taps.iter().for_each(|&(at, _)| made.ends[at + 1] += 1);
        for i in 0..count {
            made.ends[i + 1] += made.ends[i];
        }
        // Each element's part of the list is filled while its start offset advances; the offsets are restored at the end.
        for place in 0..self.ends.len() - 1 {
            for &(at, weight) in self.at(place) {
                made.taps[made.ends[at]] = (place, weight);
                made.ends[at] += 1;
            }
        }
        made.ends.copy_within(0..count, 1);
        made.ends[0] = 0;
        Ok(made)
    }
}

/// The interpolation mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Nearest,
    NearestExact,
    Linear,
    Cubic,
}

/// The mapping of `count` output positions to `size` elements.
#[derive(Clone, Copy)]
pub struct Spacing {
    pub size: usize,
    pub count: usize,
    /// Whether the first and last positions are the first and last elements.
    pub align_corners: bool,
    /// Output positions per element, if it is not `count / size`.
    pub scale: Option<f64>,
}

impl Spacing {
    /// The element whose interval contains `numerator / 2` positions.
    fn nearest(&self, numerator: usize) -> usize {
        let at = match self.scale {
            Some(scale) => (numerator as f64 / 2.0 / scale) as usize,
            // In integers: a rounded quotient may fall below the exact integer.
            None => (numerator as u128 * self.size as u128 / (2 * self.count as u128)) as usize,
        };
        at.min(self.size - 1)
    }

    /// The location of a position, in elements, relative to the centre of the first element.
    fn position(&self, place: usize) -> f64 {
        if self.align_corners {
            let steps = (self.count - 1).max(1);
            return place as f64 * (self.size - 1) as f64 / steps as f64;
        }
        let centre = place as f64 + 0.5;
        match self.scale {
            Some(scale) => centre / scale - 0.5,
            None => centre * self.size as f64 / self.count as f64 - 0.5,
        }
    }

    /// The table of this mode.
    pub fn table<A: Real>(&self, mode: Mode) -> Result<Table<A>, Error> {
        let last = self.size.saturating_sub(1);
        let mut table = Table::new(self.count, if mode == Mode::Cubic { 4 } else { 2 })?;
        for place in 0..self.count {
            match mode {
                Mode::Nearest => table.place([(self.nearest(2 * place), 1.0)]),
                Mode::NearestExact => table.place([(self.nearest(2 * place + 1), 1.0)]),
                Mode::Linear => {
                    let at = self.position(place).max(0.0);
                    let first = (at as usize).min(last);
                    let share = (at - first as f64).min(1.0);
                    table.place([(first, 1.0 - share), ((first + 1).min(last), share)]);
                }
                Mode::Cubic => {
                    // Beyond these limits all four taps are the first or the last element; the fraction of infinity would
                    // be NaN.
                    let at = self.position(place).clamp(-2.0, self.size as f64 + 2.0);
                    let element = |k: usize| (at.floor() + k as f64 - 1.0).clamp(0.0, last as f64) as usize;
                    let weights = cubic(at - at.floor());
                    table.place((0..4).map(|k| (element(k), weights[k])));
                }
            }
        }
        Ok(table)
    }
}

/// The parameter `a` of R. Keys, "Cubic convolution interpolation", 1981.
const A: f64 = -0.75;

/// The cubic convolution weights of the four elements around a location at distance `t` after the second.
pub fn cubic(t: f64) -> [f64; 4] {
    let near = |d: f64| ((A + 2.0) * d - (A + 3.0)) * d * d + 1.0;
    let far = |d: f64| ((A * d - 5.0 * A) * d + 8.0 * A) * d - 4.0 * A;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}

/// The derivatives of [`cubic`] with respect to `t`.
pub fn cubic_slope(t: f64) -> [f64; 4] {
    let near = |d: f64| (3.0 * (A + 2.0) * d - 2.0 * (A + 3.0)) * d;
    let far = |d: f64| (3.0 * A * d - 10.0 * A) * d + 8.0 * A;
    [far(t + 1.0), near(t), -near(1.0 - t), -far(2.0 - t)]
}
