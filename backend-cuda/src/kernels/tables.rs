//! The input elements of each output position of a dimension.

use super::nets::unsupported;
use keyway_sdk::author::Error;

/// The maximum number of entries of a table.
const MOST: usize = 1 << 26;

/// For each output position of a dimension the input elements, their weights, and the divisor of the sum.
#[derive(Debug, Default, PartialEq)]
pub struct Table {
    /// The range of each output position's elements: the cumulative number of elements.
    pub ends: Vec<usize>,
    /// The elements of all output positions.
    pub elements: Vec<usize>,
    /// The weights of the elements.
    pub weights: Vec<f64>,
    /// The divisor of each output position.
    pub divisors: Vec<f64>,
}

impl Table {
    /// A table of `count` positions: `of` returns the elements and weights of a position, and its divisor.
    pub fn new(count: usize, of: impl Fn(usize) -> (Vec<(usize, f64)>, f64)) -> Result<Table, Error> {
        let mut table = Table { ends: vec![0], ..Table::default() };
        for place in 0..count {
            let (taps, divisor) = of(place);
            table.elements.extend(taps.iter().map(|(at, _)| at));
            table.weights.extend(taps.iter().map(|(_, weight)| weight));
            table.ends.push(table.elements.len());
            table.divisors.push(divisor);
            if table.elements.len() > MOST {
                return Err(unsupported(format!("windows of more than {MOST} elements in all")));
            }
        }
        Ok(table)
    }

    /// The transposed table, for the gradient: for each of `count` elements the output positions to which it contributes,
    /// without divisors.
    pub fn transposed(&self, count: usize) -> Table {
        let mut taps = vec![Vec::new(); count];
        for place in 0..self.ends.len() - 1 {
            for at in self.ends[place]..self.ends[place + 1] {
                taps[self.elements[at]].push((place, self.weights[at]));
            }
        }
        let mut table = Table { ends: vec![0], divisors: vec![1.0; count], ..Table::default() };
        for own in taps {
            table.elements.extend(own.iter().map(|(place, _)| place));
            table.weights.extend(own.iter().map(|(_, weight)| weight));
            table.ends.push(table.elements.len());
        }
        table
    }
}

/// The interpolation mode.
#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    /// The element whose interval contains the start of a position.
    Nearest,
    /// The element whose interval contains the position's centre.
    NearestExact,
    /// The two elements around the position.
    Linear,
    /// The four elements around the position.
    Cubic,
}

/// The mapping of `count` output positions to `size` elements.
#[derive(Clone, Copy)]
pub struct Spacing {
    /// The number of elements.
    pub size: usize,
    /// Number of output positions.
    pub count: usize,
    /// Whether the first and the last positions are the first and the last elements.
    pub align_corners: bool,
    /// Output positions per element, if it is not `count / size`.
    pub scale: Option<f64>,
}

impl Spacing {
    /// The element whose interval contains `numerator / 2` positions.
    fn nearest(&self, numerator: usize) -> usize {
        let at = match self.scale {
            Some(scale) => (numerator as f64 / 2.0 / scale) as usize,
            // In integers: a rounded quotient may be below the exact integer.
            None => (numerator as u128 * self.size as u128 / (2 * self.count as u128)) as usize,
        };
        at.min(self.size - 1)
    }

    /// The location of an output position, in elements, relative to the centre of the first element.
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
    pub fn table(&self, mode: Mode) -> Result<Table, Error> {
        let last = self.size.saturating_sub(1);
        Table::new(self.count, |place| {
            let taps = match mode {
                Mode::Nearest => vec![(self.nearest(2 * place), 1.0)],
                Mode::NearestExact => vec![(self.nearest(2 * place + 1), 1.0)],
                Mode::Linear => {
                    let at = self.position(place).max(0.0);
                    let first = (at as usize).min(last);
                    let share = (at - first as f64).min(1.0);
                    vec![(first, 1.0 - share), ((first + 1).min(last), share)]
                }
                Mode::Cubic => {
                    // Beyond these limits all four taps are the first or the last element; the fraction of infinity would
                    // be NaN.
                    let at = self.position(place).clamp(-2.0, self.size as f64 + 2.0);
                    let element = |k: usize| (at.floor() + k as f64 - 1.0).clamp(0.0, last as f64) as usize;
                    let weights = cubic(at - at.floor());
                    (0..4).map(|k| (element(k), weights[k])).collect()
                }
            };
            (taps, 1.0)
        })
    }
}

/// The weights of the four elements around a coordinate at distance `t` after the second (R. Keys, "Cubic convolution
/// interpolation", 1981, with a = -0.75).
fn cubic(t: f64) -> [f64; 4] {
    const A: f64 = -0.75;
    let near = |d: f64| ((A + 2.0) * d - (A + 3.0)) * d * d + 1.0;
    let far = |d: f64| ((A * d - 5.0 * A) * d + 8.0 * A) * d - 4.0 * A;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_table_has_each_weight_where_it_goes() {
        let spacing = Spacing { size: 5, count: 8, align_corners: false, scale: None };
        for mode in [Mode::Nearest, Mode::NearestExact, Mode::Linear, Mode::Cubic] {
            let table = spacing.table(mode).unwrap();
            let back = table.transposed(5);
            let sum = |table: &Table, place: usize, element: usize| -> f64 {
                let range = table.ends[place]..table.ends[place + 1];
                range.filter(|&at| table.elements[at] == element).map(|at| table.weights[at]).sum()
            };
            for (place, element) in (0..8).flat_map(|place| (0..5).map(move |element| (place, element))) {
                assert!((sum(&table, place, element) - sum(&back, element, place)).abs() < 1e-12);
            }
            let whole = |place: usize| (0..5).map(|element| sum(&table, place, element)).sum::<f64>();
            assert!((0..8).all(|place| (whole(place) - 1.0).abs() < 1e-12));
        }
    }
}
