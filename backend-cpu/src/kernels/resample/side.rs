//! What a place of `grid_sample` along one dimension reads.

use super::tables::cubic;

/// How pixels are made of those around a place.
#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    Bilinear,
    Nearest,
    Bicubic,
}

/// What lies outside the images.
#[derive(Clone, Copy, PartialEq)]
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

impl Side {
    fn last(&self) -> f64 {
        self.size as f64 - 1.0
    }

    /// A place that was outside moved inside, unless zeros lie there.
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

    /// Gives `add` the elements that a place in -1..1 is made of, and their weights; none outside, or where it is no number.
    pub fn taps(&self, place: f64, mut add: impl FnMut(usize, f64)) {
        let at = if self.align_corners {
            (place + 1.0) * (self.last() / 2.0)
        } else {
            (place + 1.0) * (self.size as f64 / 2.0) - 0.5
        };
        let mut tap = |at: f64, weight: f64| {
            if (0.0..=self.last()).contains(&at) {
                add(at as usize, weight);
            }
        };
        match self.mode {
            Mode::Nearest => tap(self.moved(at).round_ties_even(), 1.0),
            Mode::Bilinear => {
                let at = self.moved(at);
                let (first, share) = (at.floor(), at - at.floor());
                tap(first, 1.0 - share);
                tap(first + 1.0, share);
            }
            Mode::Bicubic => {
                let first = at.floor();
                for (k, weight) in cubic(at - first).into_iter().enumerate() {
                    tap(self.moved(first + k as f64 - 1.0), weight);
                }
            }
        }
    }
}
