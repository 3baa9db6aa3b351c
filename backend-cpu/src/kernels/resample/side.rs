//! The taps of `grid_sample` along one dimension.

use super::tables::{cubic, cubic_slope};
use keyway_cpu_loops::images::Volume;
use keyway_sdk::author::{Call, Error, Scratch};

/// The interpolation mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Bilinear,
    Nearest,
    Bicubic,
}

/// The padding mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Padding {
    Zeros,
    Border,
    Reflection,
}

/// A spatial dimension of the images, with padding mode and interpolation mode.
pub struct Side {
    pub size: usize,
    pub mode: Mode,
    pub padding: Padding,
    pub align_corners: bool,
}

/// Reads the mode named by the string argument `i`.
fn meant<M: Copy>(
    call: &Call<'_>,
    i: usize,
    argument: &'static str,
    names: [(&str, M); 3],
) -> Result<M, Error> {
    let text = call.str(i)?;
    names.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode).ok_or_else(|| {
        let [a, b, c] = names.map(|(name, _)| name);
        Error::InvalidArgument {
            argument,
            expected: format!("`{a}`, `{b}` or `{c}`"),
            got: format!("`{text}`"),
        }
    })
}

/// The spatial dimensions of `image`, with the interpolation mode, the padding mode and `align_corners` in arguments `at` to
/// `at + 2`.
///
/// # Errors
/// If an argument has another type or an unknown value.
pub fn sides<T>(call: &Call<'_>, at: usize, image: &Volume<'_, T>) -> Result<[Side; 3], Error> {
    let modes = [("bilinear", Mode::Bilinear), ("nearest", Mode::Nearest), ("bicubic", Mode::Bicubic)];
    let paddings =
        [("zeros", Padding::Zeros), ("border", Padding::Border), ("reflection", Padding::Reflection)];
    let mode = meant(call, at, "mode", modes)?;
    let padding = meant(call, at + 1, "padding_mode", paddings)?;
    let align_corners = call.bool(at + 2)?;
    Ok([2, 3, 4].map(|d| Side { size: image.sizes[d], mode, padding, align_corners }))
}

/// The taps of some locations along a dimension: `[taps][positions]`.
pub struct Along {
    /// The index of the element times the stride; negative if the tap is outside.
    pub at: Scratch<i32>,
    /// The weight of the tap; 0 if it is outside.
    pub weight: Scratch<f64>,
    /// The derivative of the weight with respect to the location; empty if not requested.
    pub slope: Scratch<f64>,
    pub taps: usize,
    /// The capacity in locations.
    wide: usize,
}

impl Along {
    /// The taps of `wide` locations along a missing dimension: each reads the single element.
    pub fn single(wide: usize) -> Result<Along, Error> {
        let mut along = Along::new(1, wide, false)?;
        along.weight.fill(1.0);
        Ok(along)
    }

    /// Allocates the taps of `wide` locations, with slopes if requested.
    pub fn new(taps: usize, wide: usize, slopes: bool) -> Result<Along, Error> {
        let [all, slopes] = [taps * wide, if slopes { taps * wide } else { 0 }];
        let (weight, slope) = (Scratch::zeroed(all)?, Scratch::zeroed(slopes)?);
        Ok(Along { at: Scratch::zeroed(all)?, weight, slope, taps, wide })
    }

    /// Sets tap `k` of each location, given by indices of elements and weights.
    #[inline(always)]
    fn set(&mut self, k: usize, last: f64, step: usize, taps: impl Iterator<Item = (f64, f64)>) {
        let begin = k * self.wide;
        let entries = self.at[begin..].iter_mut().zip(&mut self.weight[begin..]);
        for ((at, weight), (element, share)) in entries.zip(taps) {
            let inside = (element >= 0.0) & (element <= last);
            let number = if inside { element } else { 0.0 };
            // Offsets fit `i32`, as `check_near` ensures.
            *at = if inside { (number as i32).wrapping_mul(step as i32) } else { -1 };
            *weight = if inside { share } else { 0.0 };
        }
    }

    /// Sets the slope of tap `k` of each location, for taps that are set, if slopes were requested.
    #[inline(always)]
    fn set_slopes(&mut self, k: usize, slopes: impl Iterator<Item = f64>) {
        let begin = (k * self.wide).min(self.slope.len());
        for ((to, &at), slope) in self.slope[begin..].iter_mut().zip(&self.at[begin..]).zip(slopes) {
            *to = if at >= 0 { slope } else { 0.0 };
        }
    }
}

impl Side {
    fn last(&self) -> f64 {
        self.size as f64 - 1.0
    }

    /// The maximum number of taps of a location.
    pub fn taps(&self) -> usize {
        match self.mode {
            Mode::Nearest => 1,
            Mode::Bilinear => 2,
            Mode::Bicubic => 4,
        }
    }

    /// The outermost centres, or outer edges, at which locations are reflected: the lower one, and the distance to the
    /// upper one.
    #[inline(always)]
    fn mirrors(&self) -> (f64, f64) {
        if self.align_corners { (0.0, self.last()) } else { (-0.5, self.size as f64) }
    }

    /// Whether a location is reflected an odd number of times, after the reflection at the lower one.
    #[inline(always)]
    fn is_reflected(&self, at: f64) -> bool {
        let (low, span) = self.mirrors();
        ((at - low).abs() / span).floor() % 2.0 == 1.0
    }

    /// Maps a location into the image, according to the padding mode; unchanged for zero padding.
    #[inline(always)]
    fn moved(&self, at: f64) -> f64 {
        let (low, span) = self.mirrors();
        match self.padding {
            Padding::Zeros => at,
            Padding::Border => at.clamp(0.0, self.last()),
            Padding::Reflection if span == 0.0 => at * 0.0,
            Padding::Reflection => {
                let rest = (at - low).abs() % span;
                (low + if self.is_reflected(at) { span - rest } else { rest }).clamp(0.0, self.last())
            }
        }
    }

    fn move_inside(&self, positions: &mut [f64]) {
        if self.padding != Padding::Zeros {
            positions.iter_mut().for_each(|at| *at = self.moved(*at));
        }
    }

    /// The derivative of the location after padding: -1 if it is reflected, 0 if it is clamped to the border.
    #[inline(always)]
    fn direction(&self, at: f64) -> f64 {
        let is_inside = |at: f64| at > 0.0 && at < self.last();
        match self.padding {
            Padding::Zeros => 1.0,
            Padding::Border => f64::from(u8::from(is_inside(at))),
            Padding::Reflection if !is_inside(self.moved(at)) => 0.0,
            Padding::Reflection if (at >= self.mirrors().0) != self.is_reflected(at) => 1.0,
            Padding::Reflection => -1.0,
        }
    }

    /// The change of a location, in elements, when its coordinate grows by 1.
    fn scale(&self) -> f64 {
        if self.align_corners { self.last() / 2.0 } else { self.size as f64 / 2.0 }
    }

    /// Computes the taps of some locations in -1..1, in elements of stride `step`: none outside, or for NaN; and slopes, if
    /// requested. The locations are overwritten.
    pub fn find(&self, positions: &mut [f64], step: usize, to: &mut Along) {
        let (scale, first) = (self.scale(), if self.align_corners { 0.0 } else { 0.5 });
        positions.iter_mut().for_each(|at| *at = (*at + 1.0) * scale - first);
        let last = self.last();
        match self.mode {
            Mode::Nearest => {
                self.move_inside(positions);
                to.set(0, last, step, positions.iter().map(|at| (at.round_ties_even(), 1.0)));
            }
            Mode::Bilinear => {
                let begin = to.wide.min(to.slope.len());
                for (slope, at) in to.slope[begin..].iter_mut().zip(positions.iter()) {
                    *slope = self.direction(*at) * scale;
                }
                self.move_inside(positions);
                let share = |at: f64| at - at.floor();
                to.set(0, last, step, positions.iter().map(|&at| (at.floor(), 1.0 - share(at))));
                to.set(1, last, step, positions.iter().map(|&at| (at.floor() + 1.0, share(at))));
                // Both slopes differ only in the sign if both taps are inside.
                for p in 0..positions.len().min(to.slope.len()) {
                    let slope = to.slope[begin + p];
                    to.slope[p] = if to.at[p] >= 0 { -slope } else { 0.0 };
                    to.slope[begin + p] = if to.at[begin + p] >= 0 { slope } else { 0.0 };
                }
            }
            Mode::Bicubic => {
                for k in 0..4 {
                    let tap = |&at: &f64| {
                        let first = at.floor();
                        (self.moved(first + k as f64 - 1.0), cubic(at - first)[k])
                    };
                    to.set(k, last, step, positions.iter().map(tap));
                    to.set_slopes(k, positions.iter().map(|at| cubic_slope(at - at.floor())[k] * scale));
                }
            }
        }
    }
}
