//! The taps (element offsets and weights) of pixels of `grid_sample`.

use super::side::{Along, Side};
use keyway_cpu_loops::images::{Volume, three};
use keyway_cpu_loops::vectors::{Lanes as Elements, MOST, Vector};
use keyway_sdk::author::{Call, Error, Lanes, Real, Scratch};
use std::any::TypeId;
use std::ops::Range;

/// The number of pixels whose taps are computed at a time.
pub const CHUNK: usize = 256;

/// The locations at which images are sampled.
pub struct Grid<'a, T> {
    pub data: Lanes<'a, T>,
    /// Spatial dimensions.
    pub rank: usize,
    /// The strides, in elements, between samples, along each spatial dimension, and between axes.
    pub of_sample: usize,
    pub of_position: [usize; 3],
    pub of_axis: usize,
}

/// Refuses images whose offsets within a channel do not fit 32 bits.
///
/// # Errors
/// `Unsupported` for such images.
pub fn check_near<T>(image: &Volume<'_, T>) -> Result<(), Error> {
    let last = |d: usize| (image.sizes[d] - 1).saturating_mul(image.strides[d]);
    match (2..5).fold(0, |span: usize, d| span.saturating_add(last(d))) < i32::MAX as usize {
        true => Ok(()),
        false => Err(Error::Unsupported { what: "images that span 2^31 elements or more".into() }),
    }
}

impl<'a, T: Elements> Grid<'a, T> {
    /// Reads the grid from argument `i`.
    ///
    /// # Errors
    /// If the argument is not a tensor of 4 or 5 dimensions with this element type.
    pub fn argument(call: &Call<'a>, i: usize) -> Result<Self, Error> {
        let grid = call.view::<T>(i)?;
        let (&[of_sample, ref spatial @ .., of_axis], 4..=5) = (grid.strides(), grid.sizes().len()) else {
            return Err(Error::InvalidArgument {
                argument: "grid",
                expected: "a tensor of 4 or 5 dimensions".into(),
                got: format!("sizes {:?}", grid.sizes()),
            });
        };
        let [of_sample, of_axis] = [of_sample, of_axis].map(|stride| stride.max(0) as usize);
        // SAFETY: the host guarantees the elements of a call's tensors; they are only read.
        let data = unsafe { Lanes::new(grid.as_ptr().cast_mut()) };
        Ok(Grid { data, rank: spatial.len(), of_sample, of_position: three(spatial, 0), of_axis })
    }

    /// The row segments of some pixels `[.., height, width]`: the number of pixels, and the address of the first one's
    /// coordinate on an axis.
    fn rows(
        &self,
        (sample, axis): (usize, usize),
        pixels: &Range<usize>,
        [height, width]: [usize; 2],
    ) -> impl Iterator<Item = (usize, *mut T)> + use<T> {
        let ([by_layer, by_row, by_column], data, end) = (self.of_position, self.data.as_ptr(), pixels.end);
        let (begin, mut next) = (sample * self.of_sample + axis * self.of_axis, pixels.start);
        std::iter::from_fn(move || {
            let [z, y, x] = [next / (height * width), next / width % height, next % width];
            let at = begin + z * by_layer + y * by_row + x * by_column;
            let count = (width - x).min(end - next);
            next += count;
            (count > 0).then(|| (count, data.wrapping_add(at)))
        })
    }

    /// Reads one coordinate of some pixels' locations; the pixels are `[.., height, width]`.
    ///
    /// # Safety
    /// The grid must have a location for each pixel.
    unsafe fn read(&self, of: (usize, usize), pixels: &Range<usize>, area: [usize; 2], mut to: &mut [f64]) {
        for (count, from) in self.rows(of, pixels, area) {
            for (i, place) in to.iter_mut().enumerate().take(count) {
                // SAFETY: the coordinate of a location, as the caller guarantees.
                *place = unsafe { *from.wrapping_add(i * self.of_position[2]) }.to_f64();
            }
            to = &mut to[count..];
        }
    }

    /// Writes one coordinate of some pixels' locations.
    ///
    /// # Safety
    /// As for [`Grid::read`]; the coordinates must be uniquely owned.
    pub unsafe fn write(
        &self,
        of: (usize, usize),
        pixels: &Range<usize>,
        area: [usize; 2],
        mut from: &[T::Acc],
    ) {
        for (count, to) in self.rows(of, pixels, area) {
            for (i, number) in from.iter().enumerate().take(count) {
                // SAFETY: the coordinate of a location, as the caller guarantees.
                unsafe { *to.wrapping_add(i * self.of_position[2]) = T::from_acc(*number) };
            }
            from = &from[count..];
        }
    }
}

/// The taps of consecutive pixels of one sample: `[taps][wide]`.
pub struct GridTaps<T: Elements> {
    /// The offset of each tap's element from the sample's first element; taps outside have the given offset.
    at: Scratch<i32>,
    weight: Scratch<T::Acc>,
    /// The derivative of the weight with respect to each coordinate, if requested: `[rank][taps][wide]`.
    slope: Scratch<T::Acc>,
    /// The maximum number of taps of a pixel, and the capacity in pixels.
    pub taps: usize,
    wide: usize,
    along: [Along; 3],
    line: Scratch<f64>,
}

impl<T: Elements> GridTaps<T> {
    /// Allocates the taps of `wide` pixels, a multiple of the lanes, with slopes if requested.
    pub fn new(sides: &[Side; 3], rank: usize, wide: usize, slopes: bool) -> Result<Self, Error> {
        let along = |d: usize| match d < 3 - rank {
            true => Along::single(wide),
            false => Along::new(sides[d].taps(), wide, slopes),
        };
        let along = [along(0)?, along(1)?, along(2)?];
        let taps = along.iter().map(|along| along.taps).product::<usize>();
        Ok(GridTaps {
            at: Scratch::zeroed(taps * wide)?,
            weight: Scratch::zeroed(taps * wide)?,
            slope: Scratch::zeroed(if slopes { rank * taps * wide } else { 0 })?,
            taps,
            wide,
            along,
            line: Scratch::zeroed(wide)?,
        })
    }

    /// Computes the taps of some pixels `[.., height, width]` of a sample, in images with these strides. Taps outside
    /// have the offset `outside` and weight 0.
    ///
    /// # Safety
    /// The grid must have a location for each pixel.
    pub unsafe fn find(
        &mut self,
        grid: &Grid<'_, T>,
        sides: &[Side; 3],
        (sample, pixels): (usize, &Range<usize>),
        area: [usize; 2],
        (steps, outside): ([usize; 3], i32),
    ) {
        let n = pixels.len();
        for d in 3 - grid.rank..3 {
            // SAFETY: as the caller guarantees.
            unsafe { grid.read((sample, 2 - d), pixels, area, &mut self.line[..n]) };
            sides[d].find(&mut self.line[..n], steps[d], &mut self.along[d]);
        }
        let [layers, rows, columns] = &self.along;
        for (k, [l, r, c]) in each(&self.along).enumerate() {
            let at = &mut self.at[k * self.wide..][..n];
            let axes = layers.at[l..].iter().zip(&rows.at[r..]).zip(&columns.at[c..]);
            for (at, ((&layer, &row), &column)) in at.iter_mut().zip(axes) {
                let inside = (layer | row | column) >= 0;
                *at = if inside { layer.wrapping_add(row).wrapping_add(column) } else { outside };
            }
            let to = &mut self.weight[k * self.wide..][..n];
            products(to, &layers.weight[l..], &rows.weight[r..], &columns.weight[c..]);
        }
        let axes = if self.slope.is_empty() { 0 } else { grid.rank };
        for (axis, (k, at)) in
            (0..axes).flat_map(|axis| each(&self.along).enumerate().map(move |k| (axis, k)))
        {
            // The first coordinate is that of the last dimension.
            let [layers, rows, columns] = [0, 1, 2].map(|d| {
                let along = &self.along[d];
                if d + axis == 2 { &along.slope[at[d]..] } else { &along.weight[at[d]..] }
            });
            let begin = (axis * self.taps + k) * self.wide;
            products(&mut self.slope[begin..][..n], layers, rows, columns);
        }
    }

    /// The index of tap `k` of pixel `p`.
    #[inline(always)]
    pub fn index(&self, k: usize, p: usize) -> usize {
        k * self.wide + p
    }

    /// The weights of tap `k` of the pixels from `p` on.
    #[inline(always)]
    pub fn weights(&self, k: usize, p: usize) -> *const T::Acc {
        self.weight[self.index(k, p)..].as_ptr()
    }

    /// The derivative of the weight of tap `k` of pixel `p` with respect to this coordinate.
    #[inline(always)]
    pub fn slope(&self, axis: usize, k: usize, p: usize) -> T::Acc {
        self.slope[self.index(axis * self.taps + k, p)]
    }

    /// As [`GridTaps::slope`], for the pixels from `p` on.
    #[inline(always)]
    pub fn slopes(&self, axis: usize, k: usize, p: usize) -> *const T::Acc {
        self.slope[self.index(axis * self.taps + k, p)..].as_ptr()
    }

    /// The offsets and weights of tap `k` of some pixels.
    #[inline(always)]
    pub fn of_tap(&self, k: usize, pixels: &Range<usize>) -> impl Iterator<Item = (i32, T::Acc)> {
        let range = self.index(k, pixels.start)..self.index(k, pixels.end);
        self.at[range.clone()].iter().copied().zip(self.weight[range].iter().copied())
    }

    /// The offset and weight of tap `k` of pixel `p`.
    #[inline(always)]
    pub fn tap(&self, k: usize, p: usize) -> (i32, T::Acc) {
        (self.at[self.index(k, p)], self.weight[self.index(k, p)])
    }

    /// Interpolates `block` channels of pixel `p`, whole vectors, which are contiguous in the image.
    ///
    /// # Safety
    /// The elements at the computed offsets must exist, with `block` channels each, and the output elements, uniquely owned.
    #[inline(always)]
    pub unsafe fn sum(&self, p: usize, image: *const T::Acc, block: usize, to: *mut T) {
        let mut c = 0;
        // SAFETY: as the caller guarantees.
        unsafe {
            while c + 2 * T::Vector::LANES <= block {
                self.some::<2>(p, image.wrapping_add(c), to.wrapping_add(c));
                c += 2 * T::Vector::LANES;
            }
            if c < block {
                self.some::<1>(p, image.wrapping_add(c), to.wrapping_add(c));
            }
        }
    }

    /// # Safety
    /// As for [`GridTaps::sum`], for `VECTORS` vectors.
    #[inline(always)]
    unsafe fn some<const VECTORS: usize>(&self, p: usize, image: *const T::Acc, to: *mut T) {
        let mut sums = [T::Vector::splat(T::Acc::ZERO); VECTORS];
        for k in (0..self.taps).map(|k| self.index(k, p)) {
            let (at, weight) = (self.at[k] as usize, T::Vector::splat(self.weight[k]));
            for (v, sum) in sums.iter_mut().enumerate() {
                // SAFETY: as the caller guarantees.
                let some = unsafe { T::Vector::load(image.wrapping_add(at + v * T::Vector::LANES)) };
                *sum = some.mul_add(weight, *sum);
            }
        }
        for (v, sum) in sums.into_iter().enumerate() {
            // SAFETY: as the caller guarantees.
            unsafe { T::write(to.wrapping_add(v * T::Vector::LANES), sum) };
        }
    }

    /// Lists the offsets and weights of the taps of pixel `p` that are inside the image; outside taps have a negative
    /// offset.
    #[inline(always)]
    pub fn of_pixel(&self, p: usize, to: &mut Vec<(usize, T::Acc)>) {
        to.clear();
        let taps = (0..self.taps).map(|k| k * self.wide + p).filter(|&k| self.at[k] >= 0);
        to.extend(taps.map(|k| (self.at[k] as usize, self.weight[k])));
    }

    /// Lists the pixels with taps both inside and outside, and sets the offsets of their outside taps to the first element.
    pub fn list_partly(&self, n: usize, to: &mut Vec<u32>, at: &mut [i32]) {
        to.clear();
        let mut least = 0;
        for (at, &from) in at.iter_mut().zip(self.at.iter()) {
            *at = from.max(0);
            least = from.min(least);
        }
        if least == 0 {
            return;
        }
        let partly = |p: &usize| (0..self.taps).any(|k| self.at[k * self.wide + p] < 0);
        to.extend((0..n).filter(partly).map(|p| p as u32));
    }
}

/// All combinations of tap offsets of the three dimensions, in the order of the elements.
fn each([layers, rows, columns]: &[Along; 3]) -> impl Iterator<Item = [usize; 3]> + use<> {
    let part = |along: &Along| (along.at.len() / along.taps, along.taps);
    let [(layer, layers), (row, rows), (column, columns)] = [part(layers), part(rows), part(columns)];
    let planes = (0..layers).flat_map(move |l| (0..rows).map(move |r| [l * layer, r * row]));
    planes.flat_map(move |[l, r]| (0..columns).map(move |c| [l, r, c * column]))
}

/// The products of three weights for each location.
fn products<A: Real>(to: &mut [A], layers: &[f64], rows: &[f64], columns: &[f64]) {
    for (to, ((layer, row), column)) in to.iter_mut().zip(layers.iter().zip(rows).zip(columns)) {
        *to = A::from_f64(layer * row * column);
    }
}

/// Gathers and widens the elements at these offsets.
///
/// # Safety
/// The elements must be valid, and there must be one offset per lane.
#[inline(always)]
pub unsafe fn gathered<T: Elements>(from: *const T, at: *const i32) -> T::Vector {
    // SAFETY: as the caller guarantees; the copy has as many elements as the widest vector has lanes.
    unsafe {
        if TypeId::of::<T>() == TypeId::of::<T::Acc>() {
            return T::Vector::gather(from.cast(), at);
        }
        let mut elements = [T::from_acc(T::Acc::ZERO); MOST];
        for (i, element) in elements.iter_mut().enumerate().take(T::Vector::LANES) {
            *element = *from.offset(*at.add(i) as isize);
        }
        T::read(elements.as_ptr())
    }
}
