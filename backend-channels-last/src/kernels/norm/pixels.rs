//! Images as pixels of channels side by side.
//!
//! Pixels are gone through in blocks of constant size, by vectors of channels: sums are taken from the block's first pixel on,
//! so that large means cost no digits, and those of blocks are put together in f64.

use keyway_cpu_conv::image::{dense, unsupported};
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Lanes as Pixel, Vector, load_some, plus, read_some, store_some, write_some};
use keyway_sdk::author::{Error, Float, Lanes, Real, Scratch};
use std::ops::Range;

/// The numbers that elements are widened to, and a vector of them.
pub type Number<T> = <T as Float>::Acc;
pub type Numbers<T> = <T as Pixel>::Vector;

/// Lanes of the widest vector.
const MOST: usize = 16;

/// Elements of a block, about.
const BLOCK: usize = 1 << 13;
/// Elements that are worth handing to a thread.
const WORK: usize = 1 << 15;
/// Vectors of channels that are gone through together, so that pixels are read in the order in which they lie; and how many where the
/// registers do not hold what more of them need.
const TOGETHER: usize = 4;
const FEWER: usize = 2;
/// Vector registers for what vectors of channels need from one pixel to the next.
const REGISTERS: usize = if cfg!(target_feature = "avx512f") { 28 } else { 14 };
/// Channels below which vectors would mostly be empty.
const LEAST: usize = 8;

/// An image as pixels of channels side by side, in units that are normalised by themselves.
pub struct Pixels<'a, T: Pixel> {
    pub data: Lanes<'a, T>,
    pub channels: usize,
    pub units: usize,
    /// Pixels of a unit.
    pub count: usize,
    /// Pixels of a block; the last one of a unit may have fewer.
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

    /// Gives `body` each block's number.
    fn each(&self, body: impl Fn(usize) -> Result<(), Error> + Sync) -> Result<(), Error> {
        let grain = WORK / (self.block.min(self.count) * self.channels).max(1);
        parallel_try(self.units * self.blocks(), grain, |tasks| tasks.into_iter().try_for_each(&body))
    }

    /// The first element of a channel in a pixel.
    pub fn at(&self, pixel: usize, channel: usize) -> *mut T {
        self.data.as_ptr().wrapping_add(pixel * self.channels + channel)
    }

    /// What sums of channels are counted from: their numbers in a pixel, or 0 for those that are not finite.
    ///
    /// # Safety
    /// The image must hold the elements that it names.
    pub unsafe fn first(&self, pixel: usize, c: usize) -> Numbers<T> {
        const { assert!(Numbers::<T>::LANES <= MOST) };
        let mut numbers = [Number::<T>::ZERO; MOST];
        // SAFETY: as the caller guarantees; there is room for a vector.
        unsafe {
            read_some(self.at(pixel, c), 1, Numbers::<T>::LANES.min(self.channels - c))
                .store(numbers.as_mut_ptr());
            let finite = |x: &Number<T>| x.abs() < Number::<T>::INFINITY;
            numbers.iter_mut().filter(|x| !finite(x)).for_each(|x| *x = Number::<T>::ZERO);
            Numbers::<T>::load(numbers.as_ptr())
        }
    }

    /// Sums of what `f` makes of the vectors at each pixel, for each block and channel, behind the numbers that the block
    /// counts from.
    ///
    /// # Safety
    /// The images must hold the elements that they name.
    pub unsafe fn sums<const M: usize, const N: usize>(
        &self,
        other: Option<&Pixels<'_, T>>,
        from: impl Fn(usize, usize) -> [Numbers<T>; M] + Sync,
        f: impl Fn(Numbers<T>, Numbers<T>, [Numbers<T>; M]) -> [Numbers<T>; N] + Copy + Sync,
    ) -> Result<Sums<Number<T>, M, N>, Error> {
        let blocks = self.units * self.blocks();
        let mut shifts = Scratch::<Number<T>>::zeroed(M * blocks * self.channels)?;
        let mut sums = Scratch::<Number<T>>::zeroed(N * blocks * self.channels)?;
        // SAFETY: the addresses are used within the scratch, which outlives the loop; each block has its own places.
        let (to_shifts, to_sums) =
            unsafe { (Lanes::new(shifts.as_mut_ptr()), Lanes::new(sums.as_mut_ptr())) };
        self.each(|task| {
            let (pixels, _) = self.pixels(task);
            let place = task * self.channels;
            // SAFETY: these are places of the block; the caller guarantees the elements.
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

    /// Writes what `f` makes of the vectors at each pixel and the numbers of their channels.
    ///
    /// # Safety
    /// The images must hold the elements that they name, and nobody else may use those of `out`.
    pub unsafe fn write<const N: usize>(
        &self,
        other: Option<&Pixels<'_, T>>,
        out: &Pixels<'_, T>,
        numbers: &[Vec<Number<T>>; N],
        f: impl Fn(Numbers<T>, Numbers<T>, [Numbers<T>; N]) -> Numbers<T> + Copy + Sync,
    ) -> Result<(), Error> {
        self.each(|task| {
            let (pixels, unit) = self.pixels(task);
            // SAFETY: there are numbers for the channels of each unit.
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

    /// Gives `body` the first channel of each group of vectors, how many lanes of each are channels, and the number of vectors:
    /// [`TOGETHER`] if they `fit` the registers, [`FEWER`], or 1, whose lanes may be fewer.
    #[inline(always)]
    fn vectors(&self, fit: bool, body: impl Fn(usize, usize, usize)) {
        let lanes = Numbers::<T>::LANES;
        let mut c = 0;
        while c < self.channels {
            let left = self.channels - c;
            // Constants where they can be.
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

    /// Gives `write` the sums over some pixels, and what they are counted from, of each of `G` vectors.
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

    /// The sums over some pixels, for the channels of `G` vectors.
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

    /// Writes some pixels, in the channels of `G` vectors.
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

/// The first channels of vectors side by side.
#[inline(always)]
fn several<V: Vector, const G: usize>(c: usize) -> [usize; G] {
    std::array::from_fn(|k| c + k * V::LANES)
}

/// What [`Pixels::sums`] makes: by block and channel.
pub struct Sums<A, const M: usize, const N: usize> {
    shifts: Scratch<A>,
    sums: Scratch<A>,
}

impl<A: Real, const M: usize, const N: usize> Sums<A, M, N> {
    /// What a block counts from, and its sums, of each of its `channels`.
    pub fn of_block(&self, block: usize, channels: usize) -> impl Iterator<Item = ([f64; M], [f64; N])> + '_ {
        let (shifts, sums) = (self.shifts.len() / M, self.sums.len() / N);
        let part = |i: usize, all: usize| i * all + block * channels..i * all + (block + 1) * channels;
        let shifts: [&[A]; M] = std::array::from_fn(|i| &self.shifts[part(i, shifts)]);
        let sums: [&[A]; N] = std::array::from_fn(|i| &self.sums[part(i, sums)]);
        (0..channels).map(move |c| (shifts.map(|of| of[c].to_f64()), sums.map(|of| of[c].to_f64())))
    }
}
