//! What the places of `grid_sample` read along one dimension.

use super::tables::cubic;
use keyway_sdk::author::{Error, Scratch};

/// How pixels are made of those around a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Bilinear,
    Nearest,
    Bicubic,
}

/// What lies outside the images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Padding {
    Zeros,
    Border,
    Reflection,
}

/// A spatial dimension of the images, what lies outside, and how pixels are made.
pub struct Side {
    pub size: usize,
    pub mode: Mode,
    pub padding: Padding,
    pub align_corners: bool,
}

/// What some places read along a dimension: `[taps][places]`.
pub struct Along {
    /// The element, times the step between elements; below 0 where there is none.
    pub at: Scratch<i32>,
    /// How much it counts; where there is none, nothing.
    pub weight: Scratch<f64>,
    pub taps: usize,
    /// Places that there is room for.
    wide: usize,
}

impl Along {
    /// Room for so many places along a dimension that is not there, of which each reads the one element.
    pub fn single(wide: usize) -> Result<Along, Error> {
        let mut along = Along::new(1, wide)?;
        along.weight.fill(1.0);
        Ok(along)
    }

    /// Room for so many places.
    pub fn new(taps: usize, wide: usize) -> Result<Along, Error> {
        Ok(Along { at: Scratch::zeroed(taps * wide)?, weight: Scratch::zeroed(taps * wide)?, taps, wide })
    }

    /// Sets what tap `k` of each place reads, given as numbers of elements and weights.
    #[inline(always)]
    fn set(&mut self, k: usize, last: f64, step: usize, taps: impl Iterator<Item = (f64, f64)>) {
        let begin = k * self.wide;
        let places = self.at[begin..].iter_mut().zip(&mut self.weight[begin..]);
        for ((at, weight), (element, share)) in places.zip(taps) {
            let inside = (element >= 0.0) & (element <= last);
            let number = if inside { element } else { 0.0 };
            // Where elements lie apart there are fewer of them than `i32` has numbers.
            *at = if inside { (number as i32).wrapping_mul(step as i32) } else { -1 };
            *weight = if inside { share } else { 0.0 };
        }
    }
}

impl Side {
    fn last(&self) -> f64 {
        self.size as f64 - 1.0
    }

    /// Elements that a place is made of, at most.
    pub fn taps(&self) -> usize {
        match self.mode {
            Mode::Nearest => 1,
            Mode::Bilinear => 2,
            Mode::Bicubic => 4,
        }
    }

    /// A place that was outside moved inside, unless zeros lie there.
    #[inline(always)]
    fn moved(&self, at: f64) -> f64 {
        let (low, span) = if self.align_corners { (0.0, self.last()) } else { (-0.5, self.size as f64) };
        match self.padding {
            Padding::Zeros => at,
            Padding::Border => at.clamp(0.0, self.last()),
            Padding::Reflection if span == 0.0 => at * 0.0,
            Padding::Reflection => {
                let away = (at - low).abs();
                let rest = away % span;
                let odd = (away / span).floor() % 2.0 == 1.0;
                (low + if odd { span - rest } else { rest }).clamp(0.0, self.last())
            }
        }
    }

    fn move_inside(&self, places: &mut [f64]) {
        if self.padding != Padding::Zeros {
            places.iter_mut().for_each(|at| *at = self.moved(*at));
        }
    }

    /// Finds what each of some places in -1..1 reads, whose elements are `step` apart: none outside, or where it is no number.
    /// The places are overwritten.
    pub fn find(&self, places: &mut [f64], step: usize, to: &mut Along) {
        let (half, first) = match self.align_corners {
            true => (self.last() / 2.0, 0.0),
            false => (self.size as f64 / 2.0, 0.5),
        };
        places.iter_mut().for_each(|at| *at = (*at + 1.0) * half - first);
        let last = self.last();
        match self.mode {
            Mode::Nearest => {
                self.move_inside(places);
                to.set(0, last, step, places.iter().map(|at| (at.round_ties_even(), 1.0)));
            }
            Mode::Bilinear => {
                self.move_inside(places);
                let share = |at: f64| at - at.floor();
                to.set(0, last, step, places.iter().map(|&at| (at.floor(), 1.0 - share(at))));
                to.set(1, last, step, places.iter().map(|&at| (at.floor() + 1.0, share(at))));
            }
            Mode::Bicubic => {
                for k in 0..4 {
                    let tap = |&at: &f64| {
                        let first = at.floor();
                        (self.moved(first + k as f64 - 1.0), cubic(at - first)[k])
                    };
                    to.set(k, last, step, places.iter().map(tap));
                }
            }
        }
    }
}
