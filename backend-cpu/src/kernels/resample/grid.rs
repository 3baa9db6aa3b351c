//! `grid_sample`

use super::GRAIN;
use super::tables::cubic;
use keyway_cpu_loops::images::{Volume, three};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Bilinear,
    Nearest,
    Bicubic,
}

#[derive(Clone, Copy, PartialEq)]
enum Padding {
    Zeros,
    Border,
    Reflection,
}

/// The meaning of the text in argument `i`.
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

/// A spatial dimension of the images, what lies outside, and how pixels are made.
struct Side {
    size: usize,
    mode: Mode,
    padding: Padding,
    align_corners: bool,
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
    fn taps(&self, place: f64, mut add: impl FnMut(usize, f64)) {
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

fn grid_sample<T: Float>(call: &Call) -> Result<(), Error> {
    let (image, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    let modes = [("bilinear", Mode::Bilinear), ("nearest", Mode::Nearest), ("bicubic", Mode::Bicubic)];
    let paddings =
        [("zeros", Padding::Zeros), ("border", Padding::Border), ("reflection", Padding::Reflection)];
    let mode = meant(call, 2, "mode", modes)?;
    let padding = meant(call, 3, "padding_mode", paddings)?;
    let align_corners = call.bool(4)?;
    let sides = [2, 3, 4].map(|d| Side { size: image.sizes[d], mode, padding, align_corners });
    let grid = call.view::<T>(1)?;
    let (&[of_sample, ref places @ .., of_axis], 4..=5) = (grid.strides(), grid.sizes().len()) else {
        return Err(Error::InvalidArgument {
            argument: "grid",
            expected: "a tensor of 4 or 5 dimensions".into(),
            got: format!("sizes {:?}", grid.sizes()),
        });
    };
    let [of_sample, of_axis] = [of_sample, of_axis].map(|stride| stride.max(0) as usize);
    let (rank, of_place) = (places.len(), three(places, 0));
    // SAFETY: the host guarantees the elements of a call's tensors; they are only read.
    let grid = unsafe { Lanes::new(grid.as_ptr().cast_mut()) };
    let [samples, channels, depth, height, width] = out.sizes;
    let [by_sample, by_channel, by_spatial @ ..] = image.strides;
    let pixels = depth * height * width;
    parallel_for(samples * pixels, GRAIN / (channels << rank).max(1), |range| {
        let mut sums = vec![T::Acc::ZERO; channels];
        // The elements of the first channel that a pixel is made of, and how much each counts.
        let (mut taps, mut next) = (Vec::new(), Vec::new());
        for i in range {
            let (n, at) = (i / pixels, i % pixels);
            let place = [at / (height * width), at / width % height, at % width];
            let from: usize = place.iter().zip(&of_place).map(|(i, stride)| i * stride).sum();
            taps.clear();
            taps.push((n * by_sample, 1.0));
            for d in 3 - rank..3 {
                // SAFETY: a coordinate of a place of the grid, whose sizes the op's rule has matched with the output's.
                let value = unsafe { *grid.as_ptr().add(n * of_sample + from + (2 - d) * of_axis) };
                next.clear();
                for &(base, share) in &taps {
                    sides[d].taps(value.to_f64(), |at, weight| {
                        next.push((base + at * by_spatial[d], share * weight));
                    });
                }
                std::mem::swap(&mut taps, &mut next);
            }
            sums.fill(T::Acc::ZERO);
            for &(base, weight) in &taps {
                let (from, weight) = (image.data.as_ptr().wrapping_add(base), T::Acc::from_f64(weight));
                if by_channel == 1 {
                    for (c, sum) in sums.iter_mut().enumerate() {
                        // SAFETY: channel `c` of an element of the image.
                        *sum += unsafe { *from.add(c) }.to_acc() * weight;
                    }
                } else {
                    for (c, sum) in sums.iter_mut().enumerate() {
                        // SAFETY: as above.
                        *sum += unsafe { *from.add(c * by_channel) }.to_acc() * weight;
                    }
                }
            }
            let index = [n, 0, place[0], place[1], place[2]];
            let to: usize = index.iter().zip(&out.strides).map(|(i, stride)| i * stride).sum();
            for (c, &sum) in sums.iter().enumerate() {
                // SAFETY: an element of the output, which is this call's alone; each pixel is one piece's.
                unsafe { out.data.as_ptr().add(to + c * out.strides[1]).write(T::from_acc(sum)) };
            }
        }
    })
}

kernel!("grid_sample", "TTSSb>T", grid_sample, [f32, f64, f16, bf16]);
