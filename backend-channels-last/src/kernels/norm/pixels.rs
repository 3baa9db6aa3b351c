//! Images as pixels with contiguous channels.
//!
//! Pixels are processed in blocks of constant size, by vectors of channels: sums are shifted by the block's first pixel, so that
//! large means lose no digits, and blocks are combined in f64.

use keyway_cpu_conv::image::{dense, unsupported};
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Lanes as Pixel, Vector, load_some, plus, read_some, store_some, write_some};
use keyway_sdk::author::{Error, Float, Lanes, Real, Scratch};
use std::ops::Range;

/// The accumulation type of the elements.
pub type Number<T> = <T as Float>::Acc;
pub type Numbers<T> = <T as Pixel>::Vector;

/// The maximum number of lanes of a vector.
const MOST: usize = 16;

/// The approximate number of elements of a block.
const BLOCK: usize = 1 << 13;
/// The number of elements that justifies another thread.
const WORK: usize = 1 << 15;
/// The number of vectors of channels that are processed together, so that pixels are read in memory order; and the smaller
/// number if the state would exceed the registers.
const TOGETHER: usize = 4;
const FEWER: usize = 2;
/// Vector registers available for the state of vectors of channels between pixels.
const REGISTERS: usize = if cfg!(target_feature = "avx512f") { 28 } else { 14 };
/// The minimum number of channels: with fewer, vectors would be mostly empty.
const LEAST: usize = 8;

/// An image as pixels with contiguous channels, in units that are normalised independently.
pub struct Pixels<'a, T: Pixel> {
    pub data: Lanes<'a, T>,
    pub channels: usize,
    pub units: usize,
    /// The number of pixels of a unit.
    pub count: usize,
    /// The number of pixels of a block; the last block of a unit may have fewer.
    block: usize,
}

impl<'a, T: Pixel> Pixels<'a, T> {
    pub fn of(image: Volume<'a, T>, per_sample: bool) -> Result<Self, Error> {
        let image = dense(image)?;
        let [samples, channels, _, height, width] = image.sizes;
        if channels < LEAST {
            return Err(unsupported("so few channels"));
        }
        let units = if per_sample { samples } else { 1 };
        let block = (BLOCK / channels).max(1);
        Ok(Pixels { data: image.data, channels, units, count: samples / units * height * width, block })
    }

    /// The same pixels of another image.
    pub fn like(&self, image: Volume<'a, T>) -> Result<Self, Error> {
        Ok(Pixels { data: dense(image)?.data, ..*self })
    }

    pub fn blocks(&self) -> usize {
        self.count.div_ceil(self.block)
    }

    /// The pixels of a block, counted over all units, and the unit.
    pub fn pixels(&self, task: usize) -> (Range<usize>, usize) {
        let (unit, block) = (task / self.blocks(), task % self.blocks());
        let first = block * self.block;
        (unit * self.count + first..unit * self.count + (first + self.block).min(self.count), unit)
    }

    /// Calls `body` with the index of each block.
    fn each(&self, body: impl Fn(usize) -> Result<(), Error> + Sync) -> Result<(), Error> {
        let grain = WORK / (self.block.min(self.count) * self.channels).max(1);
        parallel_try(self.units * self.blocks(), grain, |tasks| tasks.into_iter().try_for_each(&body))
    }

    /// The first element of a channel in a pixel.
    pub fn at(&self, pixel: usize, channel: usize) -> *mut T {
        self.data.as_ptr().wrapping_add(pixel * self.channels + channel)
    }

    /// The shifts of the sums of channels: their values in a pixel, or 0 if not finite.
    ///
    /// # Safety
    /// The image must contain its elements.
    pub unsafe fn first(&self, pixel: usize, c: usize) -> Numbers<T> {
        const { assert!(Numbers::<T>::LANES <= MOST) };
        let mut numbers = [Number::<T>::ZERO; MOST];
        // SAFETY: as the caller guarantees; the buffer has room for a vector.
        unsafe {
            read_some(self.at(pixel, c), 1, Numbers::<T>::LANES.min(self.channels - c))
                .store(numbers.as_mut_ptr());
            let finite = |x: &Number<T>| x.abs() < Number::<T>::INFINITY;
            numbers.iter_mut().filter(|x| !finite(x)).for_each(|x| *x = Number::<T>::ZERO);
            Numbers::<T>::load(numbers.as_ptr())
        }
    }

    /// Sums of the results of `f` for the vectors at each pixel, for each block and channel, after the shifts of the block.
    ///
    /// # Safety
    /// The images must contain their elements.
    pub unsafe fn sums<const M: usize, const N: usize>(
        &self,
        other: Option<&Pixels<'_, T>>,
        from: impl Fn(usize, usize) -> [Numbers<T>; M] + Sync,
        f: impl Fn(Numbers<T>, Numbers<T>, [Numbers<T>; M]) -> [Numbers<T>; N] + Copy + Sync,
    ) -> Result<Sums<Number<T>, M, N>, Error> {
        let blocks = self.units * self.blocks();
        let mut shifts = Scratch::<Number<T>>::zeroed(M * blocks * self.channels)?;
        let mut sums = Scratch::<Number<T>>::zeroed(N * blocks * self.channels)?;
        // SAFETY: the addresses are used within the scratch, which outlives the loop; each block has disjoint elements.
        let (to_shifts, to_sums) =
            unsafe { (Lanes::new(shifts.as_mut_ptr()), Lanes::new(sums.as_mut_ptr())) };
        self.each(|task| {
            let (pixels, _) = self.pixels(task);
            let place = task * self.channels;
            // SAFETY: these are elements of the block; the caller guarantees those of the images.
            let write = |c: usize, n: usize, numbers: [Numbers<T>; M], all: [Numbers<T>; N]| unsafe {
                for (i, number) in numbers.into_iter().enumerate() {
                    store_some(to_shifts.as_ptr().add(i * blocks * self.channels + place + c), n, number);
                }
                for (i, sum) in all.into_iter().enumerate() {
                    store_some(to_sums.as_ptr().add(i * blocks * self.channels + place + c), n, sum);
                }
            };
            self.vectors(TOGETHER * (M + N) <= REGISTERS, |c, n, together| {
                // SAFETY: as above.
                unsafe {
                    match together {
                        TOGETHER => self.add_all::<TOGETHER, M, N>(other, &pixels, (c, n), &from, f, write),
                        FEWER => self.add_all::<FEWER, M, N>(other, &pixels, (c, n), &from, f, write),
                        _ => self.add_all::<1, M, N>(other, &pixels, (c, n), &from, f, write),
                    }
                }
            });
            Ok(())
        })?;
        Ok(Sums { shifts, sums })
    }

    /// Writes the results of `f` for the vectors at each pixel and the values of their channels.
    ///
    /// # Safety
    /// The images must contain their elements, and the elements of `out` must be uniquely owned.
    pub unsafe fn write<const N: usize>(
        &self,
        other: Option<&Pixels<'_, T>>,
        out: &Pixels<'_, T>,
        numbers: &[Vec<Number<T>>; N],
        f: impl Fn(Numbers<T>, Numbers<T>, [Numbers<T>; N]) -> Numbers<T> + Copy + Sync,
    ) -> Result<(), Error> {
        self.each(|task| {
            let (pixels, unit) = self.pixels(task);
            // SAFETY: there are values for the channels of each unit.
            let given = |c: usize, n: usize| unsafe {
                numbers
                    .each_ref()
                    .map(|numbers| load_some::<Numbers<T>>(numbers.as_ptr().add(unit * self.channels + c), n))
            };
            self.vectors(TOGETHER * N <= REGISTERS, |c, n, together| {
                // SAFETY: the caller guarantees the elements; the pixels are this block's.
                unsafe {
                    match together {
                        TOGETHER => {
                            let c = several::<Numbers<T>, TOGETHER>(c);
                            self.map(other, out, pixels.clone(), (c, n), c.map(|c| given(c, n)), f);
                        }
                        FEWER => {
                            let c = several::<Numbers<T>, FEWER>(c);
                            self.map(other, out, pixels.clone(), (c, n), c.map(|c| given(c, n)), f);
                        }
                        _ => self.map(other, out, pixels.clone(), ([c], n), [given(c, n)], f),
                    }
                }
            });
            Ok(())
        })
    }

    /// Calls `body` with the first channel of each group of vectors, the number of valid lanes of each, and the number of
    /// vectors: [`TOGETHER`] if they `fit` the registers, [`FEWER`], or 1, which may be partial.
    #[inline(always)]
    fn vectors(&self, fit: bool, body: impl Fn(usize, usize, usize)) {
        let lanes = Numbers::<T>::LANES;
        let mut c = 0;
        while c < self.channels {
            let left = self.channels - c;
            // Constants, so that the compiler specialises the loops.
            c += match () {
                () if fit && left >= TOGETHER * lanes => {
                    body(c, lanes, TOGETHER);
                    TOGETHER * lanes
                }
                () if left >= FEWER * lanes => {
                    body(c, lanes, FEWER);
                    FEWER * lanes
                }
                () => {
                    body(c, lanes.min(left), 1);
                    lanes
                }
            };
        }
    }

    /// Calls `write` with the sums over a range of pixels, and their shifts, for each of `G` vectors.
    ///
    /// # Safety
    /// As for [`Pixels::sums`].
    #[inline(always)]
    unsafe fn add_all<const G: usize, const M: usize, const N: usize>(
        &self,
        other: Option<&Pixels<'_, T>>,
        pixels: &Range<usize>,
        (c, n): (usize, usize),
        from: impl Fn(usize, usize) -> [Numbers<T>; M],
        f: impl Fn(Numbers<T>, Numbers<T>, [Numbers<T>; M]) -> [Numbers<T>; N],
        write: impl Fn(usize, usize, [Numbers<T>; M], [Numbers<T>; N]),
    ) {
        let c = several::<Numbers<T>, G>(c);
        let numbers = c.map(|c| from(pixels.start, c));
        // SAFETY: as the caller guarantees.
        let all = unsafe { self.add(other, pixels.clone(), (c, n), numbers, f) };
        (0..G).for_each(|k| write(c[k], n, numbers[k], all[k]));
    }

    /// The sums over a range of pixels, for the channels of `G` vectors.
    ///
    /// # Safety
    /// As for [`Pixels::sums`].
    #[inline(always)]
    unsafe fn add<const G: usize, const M: usize, const N: usize>(
        &self,
        other: Option<&Pixels<'_, T>>,
        pixels: Range<usize>,
        (c, n): ([usize; G], usize),
        numbers: [[Numbers<T>; M]; G],
        f: impl Fn(Numbers<T>, Numbers<T>, [Numbers<T>; M]) -> [Numbers<T>; N],
    ) -> [[Numbers<T>; N]; G] {
        let mut all = [[zero::<T>(); N]; G];
        for pixel in pixels {
            for k in 0..G {
                // SAFETY: as the caller guarantees.
                let made = unsafe {
                    let y = other.map_or(zero::<T>(), |other| read_some(other.at(pixel, c[k]), 1, n));
                    f(read_some(self.at(pixel, c[k]), 1, n), y, numbers[k])
                };
                for (sum, made) in all[k].iter_mut().zip(made) {
                    *sum = plus(*sum, made);
                }
            }
        }
        all
    }

    /// Writes a range of pixels, in the channels of `G` vectors.
    ///
    /// # Safety
    /// As for [`Pixels::write`].
    #[inline(always)]
    unsafe fn map<const G: usize, const N: usize>(
        &self,
        other: Option<&Pixels<'_, T>>,
        out: &Pixels<'_, T>,
        pixels: Range<usize>,
        (c, n): ([usize; G], usize),
        given: [[Numbers<T>; N]; G],
        f: impl Fn(Numbers<T>, Numbers<T>, [Numbers<T>; N]) -> Numbers<T>,
    ) {
        for pixel in pixels {
            for k in 0..G {
                // SAFETY: as the caller guarantees.
                unsafe {
                    let y = other.map_or(zero::<T>(), |other| read_some(other.at(pixel, c[k]), 1, n));
                    let made = f(read_some(self.at(pixel, c[k]), 1, n), y, given[k]);
                    write_some(out.at(pixel, c[k]), 1, n, made);
                }
            }
        }
    }
}

#[inline(always)]
pub fn zero<T: Pixel>() -> Numbers<T> {
    Numbers::<T>::splat(Number::<T>::ZERO)
}

/// The first channels of `G` adjacent vectors.
#[inline(always)]
fn several<V: Vector, const G: usize>(c: usize) -> [usize; G] {
    std::array::from_fn(|k| c + k * V::LANES)
}

/// The result of [`Pixels::sums`]: by block and channel.
pub struct Sums<A, const M: usize, const N: usize> {
    shifts: Scratch<A>,
    sums: Scratch<A>,
}

impl<A: Real, const M: usize, const N: usize> Sums<A, M, N> {
    /// The shifts of a block, and its sums, for each of its `channels`.
    pub fn of_block(&self, block: usize, channels: usize) -> impl Iterator<Item = ([f64; M], [f64; N])> + '_ {
        let (shifts, sums) = (self.shifts.len() / M, self.sums.len() / N);
        let part = |i: usize, all: usize| i * all + block * channels..i * all + (block + 1) * channels;
        let shifts: [&[A]; M] = std::array::from_fn(|i| &self.shifts[part(i, shifts)]);
        let sums: [&[A]; N] = std::array::from_fn(|i| &self.sums[part(i, sums)]);
        (0..channels).map(move |c| (shifts.map(|of| of[c].to_f64()), sums.map(|of| of[c].to_f64())))
    }
}
