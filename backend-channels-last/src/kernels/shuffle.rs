//! `channel_shuffle`, `pixel_shuffle` and `pixel_unshuffle`: the channels of each pixel are a small matrix, which is transposed.

use keyway_cpu_conv::image::{dense, unsupported};
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::{copy_dense, parallel_try, transpose};
use keyway_sdk::author::{Call, Element, Error, Lanes, Plain, Scratch};
use keyway_sdk::half::{bf16, f16};

/// The number of elements that justifies another thread.
const WORK: usize = 1 << 15;

/// Transposes a matrix of `G` dense rows of `n` elements each.
#[inline(never)]
fn weave<W: Copy, const G: usize>(to: &mut [W], from: &[W], n: usize) {
    assert!(to.len() == G * n && from.len() == G * n);
    for j in 0..n {
        for i in 0..G {
            // SAFETY: both slices have `G * n` elements.
            unsafe { *to.get_unchecked_mut(j * G + i) = *from.get_unchecked(i * n + j) };
        }
    }
}

/// Transposes a matrix of `n` dense rows of `G` elements each.
#[inline(never)]
fn part<W: Copy, const G: usize>(to: &mut [W], from: &[W], n: usize) {
    assert!(to.len() == G * n && from.len() == G * n);
    for j in 0..n {
        for i in 0..G {
            // SAFETY: both slices have `G * n` elements.
            unsafe { *to.get_unchecked_mut(i * n + j) = *from.get_unchecked(j * G + i) };
        }
    }
}

/// Writes the transpose of a matrix of dense rows.
///
/// # Safety
/// There must be `rows * columns` elements in disjoint source and target; the target must be uniquely owned.
unsafe fn turn<W: Copy>(to: *mut W, from: *const W, rows: usize, columns: usize) {
    macro_rules! few {
        ($($count:literal)*) => {{
            // SAFETY: the caller guarantees both slices.
            let (places, elements) = unsafe {
                let n = rows * columns;
                (std::slice::from_raw_parts_mut(to, n), std::slice::from_raw_parts(from, n))
            };
            // The lines of the shorter dimension are processed together.
            match (rows.min(columns), rows <= columns) {
                $(($count, true) => return weave::<W, $count>(places, elements, columns),)*
                $(($count, false) => return part::<W, $count>(places, elements, rows),)*
                _ => {}
            }
        }};
    }
    few!(1 2 3 4 8 9 16);
    // SAFETY: as the caller guarantees.
    unsafe { transpose(to, rows, from, columns, rows, columns) };
}

/// Sizes of a shuffle.
#[derive(Clone, Copy)]
struct Shuffle {
    /// The number of rows of pixels of the smaller image, over all samples, and of pixels per row.
    rows: usize,
    width: usize,
    /// The number of channels of a pixel of the smaller image, and of rows of its matrix.
    channels: usize,
    parts: usize,
}

impl Shuffle {
    /// Calls `body` with the index of each row, and a buffer for the channels of a pixel.
    fn each<W: Plain>(&self, body: impl Fn(usize, &mut [W]) + Sync) -> Result<(), Error> {
        parallel_try(self.rows, WORK / (self.width * self.channels).max(1), |rows| {
            // SAFETY: the matrix of a pixel is written before it is read.
            let mut pixel = unsafe { Scratch::<W>::unwritten(self.channels) }?;
            rows.into_iter().for_each(|row| body(row, &mut pixel));
            Ok(())
        })
    }

    /// # Safety
    /// Both images must be dense and have the elements of these sizes, and those of `to` must be uniquely owned.
    unsafe fn channels<W: Plain + Copy>(&self, to: Lanes<'_, W>, from: Lanes<'_, W>) -> Result<(), Error> {
        let line = self.width * self.channels;
        self.each::<W>(|row, _| {
            for at in (row * line..(row + 1) * line).step_by(self.channels) {
                // SAFETY: as the caller guarantees.
                unsafe {
                    let (to, from) = (to.as_ptr().wrapping_add(at), from.as_ptr().wrapping_add(at));
                    turn(to, from, self.parts, self.channels / self.parts);
                }
            }
        })
    }

    /// Copies `large`, an image of `factor` times the sizes, to the smaller one, or the inverse.
    ///
    /// # Safety
    /// As for [`Shuffle::channels`], for the written image.
    unsafe fn pixels<W: Plain + Copy>(
        &self,
        [small, large]: [Lanes<'_, W>; 2],
        factor: usize,
        to_large: bool,
    ) -> Result<(), Error> {
        let (square, each) = (factor * factor, self.channels / (factor * factor));
        // The number of elements of neighbouring pixels of the large image, and of its rows.
        let (some, line) = (factor * each, self.width * factor * each);
        self.each::<W>(|row, pixel| {
            for x in 0..self.width {
                let small = small.as_ptr().wrapping_add((row * self.width + x) * self.channels);
                let large = |a: usize| large.as_ptr().wrapping_add((row * factor + a) * line + x * some);
                // SAFETY: as the caller guarantees; the buffer has room for the channels of a pixel.
                unsafe {
                    if to_large {
                        turn(pixel.as_mut_ptr(), small, each, square);
                        for (a, from) in pixel.chunks_exact(some).enumerate() {
                            copy_dense(large(a), from.as_ptr(), some);
                        }
                    } else {
                        for (a, to) in pixel.chunks_exact_mut(some).enumerate() {
                            to.as_mut_ptr().copy_from_nonoverlapping(large(a), some);
                        }
                        turn(small, pixel.as_ptr(), square, each);
                    }
                }
            }
        })
    }
}

/// Reinterprets elements as integers of their size, since their bits alone are copied.
fn bits<'a, W, T>(of: &Volume<'a, T>) -> Lanes<'a, W> {
    // SAFETY: the same elements, which exist for the lifetime.
    unsafe { Lanes::new(of.data.as_ptr().cast()) }
}

/// Calls `run` with the integer type of an element's size.
macro_rules! by_size {
    ($t:ty, $run:ident ( $($arg:expr),* )) => {
        match size_of::<$t>() {
            1 => $run::<$t, u8>($($arg),*),
            2 => $run::<$t, u16>($($arg),*),
            4 => $run::<$t, u32>($($arg),*),
            _ => $run::<$t, u64>($($arg),*),
        }
    };
}

fn channel_shuffle<T: Element>(call: &Call) -> Result<(), Error> {
    by_size!(T, channel_shuffle_of(call))
}

fn channel_shuffle_of<T: Element, W: Plain + Copy>(call: &Call) -> Result<(), Error> {
    let (image, out) = (dense(Volume::<T>::argument(call, 0)?)?, dense(Volume::<T>::output(call, 0)?)?);
    let [samples, channels, _, height, width] = image.sizes;
    let of = Shuffle { rows: samples * height, width, channels, parts: call.int(1)?.max(1) as usize };
    // SAFETY: both images are dense and of these sizes, as the op's rule guarantees; the output is this call's alone.
    unsafe { of.channels::<W>(bits(&out), bits(&image)) }
}

fn pixel_shuffle<T: Element>(call: &Call) -> Result<(), Error> {
    by_size!(T, pixels_of(call, true))
}

fn pixel_unshuffle<T: Element>(call: &Call) -> Result<(), Error> {
    by_size!(T, pixels_of(call, false))
}

fn pixels_of<T: Element, W: Plain + Copy>(call: &Call, to_large: bool) -> Result<(), Error> {
    if call.tensor(0)?.sizes().len() != 4 {
        return Err(unsupported("images without a batch, or with more dimensions of it"));
    }
    let (image, out) = (dense(Volume::<T>::argument(call, 0)?)?, dense(Volume::<T>::output(call, 0)?)?);
    let (small, large) = if to_large { (&image, &out) } else { (&out, &image) };
    let [samples, channels, _, height, width] = small.sizes;
    let of = Shuffle { rows: samples * height, width, channels, parts: 1 };
    // SAFETY: as in `channel_shuffle_of`.
    unsafe { of.pixels::<W>([bits(small), bits(large)], call.int(1)?.max(1) as usize, to_large) }
}

macro_rules! register {
    ($($op:literal $run:ident;)+) => {$(
        keyway_sdk::register_kernel! {
            op: $op, signature: "Ti>T", device: "cpu", layout: "channels_last",
            f64 => $run::<f64>, f32 => $run::<f32>, f16 => $run::<f16>, bf16 => $run::<bf16>,
            i64 => $run::<i64>, i32 => $run::<i32>, i16 => $run::<i16>, i8 => $run::<i8>,
            u64 => $run::<u64>, u32 => $run::<u32>, u16 => $run::<u16>, u8 => $run::<u8>,
            bool => $run::<bool>,
        }
    )+};
}

register! {
    "channel_shuffle" channel_shuffle;
    "pixel_shuffle" pixel_shuffle;
    "pixel_unshuffle" pixel_unshuffle;
}
