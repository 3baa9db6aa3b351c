//! `interpolate` and its gradient.
//!
//! Each result is made of some elements of an image, and how much one of them counts is a product of a number for each
//! dimension: a small table for each dimension says which and how much. A gradient is the same with the tables transposed, so
//! that no two pieces of work write one element. Lines are rows, or, where channels are dense, the channels of a pixel.

mod grid;
mod tables;

use keyway_cpu_loops::images::Volume;
use keyway_sdk::author::{Call, Error, Float, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};
use tables::{Mode, Spacing, Table};

/// Elements that are worth handing to a thread.
const GRAIN: usize = 1 << 14;

/// A line of results: along the last dimension, or along the channels.
#[derive(Clone, Copy)]
struct Line {
    first: [usize; 5],
    along: usize,
}

impl Line {
    /// Where result `i` of the line lies in a tensor.
    #[inline(always)]
    fn at<T>(&self, t: &Volume<'_, T>, i: usize) -> usize {
        let first: usize = self.first.iter().zip(&t.strides).map(|(i, stride)| i * stride).sum();
        first + i * t.strides[self.along]
    }
}

/// An image and what results are made of.
struct Source<'a, T: Float> {
    image: &'a Volume<'a, T>,
    tables: &'a [Table<T::Acc>; 3],
}

impl<T: Float> Source<'_, T> {
    /// Gives `write` the weighted sums of each line of the output.
    ///
    /// # Safety
    /// The image must hold the elements that it names, and the tables name elements of it for each place of the output.
    unsafe fn each(&self, out: &Volume<'_, T>, write: impl Fn(Line, &[T::Acc]) + Sync) -> Result<(), Error> {
        let along = if self.image.strides[1] == 1 && self.image.sizes[1] > 1 { 1 } else { 4 };
        let length = out.sizes[along];
        let mut counts = out.sizes;
        counts[along] = 1;
        let taps: usize = self.tables.iter().map(Table::most).product();
        let lines = if length == 0 { 0 } else { counts.iter().product() };
        parallel_for(lines, GRAIN / length.saturating_mul(taps).max(1), |range| {
            let (mut sums, mut mixed) = (vec![T::Acc::ZERO; length], Vec::new());
            for i in range {
                let mut first = [0; 5];
                let mut rest = i;
                for d in (0..5).rev() {
                    first[d] = rest % counts[d];
                    rest /= counts[d];
                }
                sums.fill(T::Acc::ZERO);
                let line = Line { first, along };
                // SAFETY: as the caller guarantees.
                unsafe { self.add(line, &mut sums, &mut mixed) };
                write(line, &sums);
            }
        })
    }

    /// Adds each element that a result of a line is made of, times the element's weight.
    ///
    /// # Safety
    /// As for [`Source::each`].
    unsafe fn add_elements(&self, line: Line, sums: &mut [T::Acc]) {
        let [n, c, d, h, w] = line.first;
        let [by_n, by_c, by_d, by_h, by_w] = self.image.strides;
        let [depths, rows, columns] = self.tables;
        let begin = n * by_n + c * by_c;
        for &(z, front) in depths.at(d) {
            for &(y, share) in rows.at(h) {
                let share = front * share;
                let from = self.image.data.as_ptr().wrapping_add(begin + z * by_d + y * by_h);
                if line.along == 1 {
                    for &(x, weight) in columns.at(w) {
                        let (from, weight) = (from.wrapping_add(x * by_w), share * weight);
                        for (i, sum) in sums.iter_mut().enumerate() {
                            // SAFETY: channel `i` of an element of the image, as the caller guarantees.
                            *sum += unsafe { *from.add(i) }.to_acc() * weight;
                        }
                    }
                    continue;
                }
                for (i, sum) in sums.iter_mut().enumerate() {
                    for &(x, weight) in columns.at(i) {
                        // SAFETY: an element of the image, as the caller guarantees.
                        *sum += unsafe { *from.add(x * by_w) }.to_acc() * (share * weight);
                    }
                }
            }
        }
    }

    /// Adds the elements that each result of a line is made of, times their weights. Where several rows count, these are added
    /// first, element by element, if that is less work.
    ///
    /// # Safety
    /// As for [`Source::each`].
    unsafe fn add(&self, line: Line, sums: &mut [T::Acc], mixed: &mut Vec<T::Acc>) {
        let [n, c, d, h, _] = line.first;
        let [by_n, by_c, by_d, by_h, by_w] = self.image.strides;
        let [depths, rows, columns] = self.tables;
        let (width, several) = (self.image.sizes[4], depths.at(d).len() * rows.at(h).len());
        let taps = sums.len() * columns.most();
        // Rows are added some elements at once.
        let worth = several > 1 && (several - 1) * taps > several * width / 4;
        if line.along == 1 || by_w != 1 || !worth {
            // SAFETY: as the caller guarantees.
            return unsafe { self.add_elements(line, sums) };
        }
        mixed.clear();
        mixed.resize(width, T::Acc::ZERO);
        for &(z, front) in depths.at(d) {
            for &(y, share) in rows.at(h) {
                let share = front * share;
                let begin = n * by_n + c * by_c + z * by_d + y * by_h;
                // SAFETY: a row of the image, as the caller guarantees; it is only read.
                let row = unsafe { std::slice::from_raw_parts(self.image.data.as_ptr().add(begin), width) };
                mixed.iter_mut().zip(row).for_each(|(sum, x)| *sum += x.to_acc() * share);
            }
        }
        for (i, sum) in sums.iter_mut().enumerate() {
            columns.at(i).iter().for_each(|&(x, weight)| *sum += mixed[x] * weight);
        }
    }
}

/// Writes the weighted sums.
fn write_sums<T: Float>(
    image: &Volume<'_, T>,
    out: &Volume<'_, T>,
    tables: &[Table<T::Acc>; 3],
) -> Result<(), Error> {
    // SAFETY: sizes and strides are those of the call's tensors, whose elements the host guarantees; the tables were made for
    // their sizes. The output is this call's alone; each line writes results of its own.
    unsafe {
        Source { image, tables }.each(out, |line, sums| {
            for (i, &sum) in sums.iter().enumerate() {
                out.data.as_ptr().add(line.at(out, i)).write(T::from_acc(sum));
            }
        })
    }
}

/// The tables of three dimensions.
fn three<A>(of: impl FnMut(usize) -> Result<Table<A>, Error>) -> Result<[Table<A>; 3], Error> {
    let mut of = of;
    Ok([of(0)?, of(1)?, of(2)?])
}

/// The tables of `interpolate` from these sizes to those; the mode and what follows it are arguments 2 to 4.
fn interpolation<A: Real>(call: &Call<'_>, from: &[usize], to: &[usize]) -> Result<[Table<A>; 3], Error> {
    let (name, align_corners, scales) = (call.str(2)?, call.bool(3)?, call.floats(4)?);
    let mode = match name {
        "nearest" => Mode::Nearest,
        "nearest-exact" => Mode::NearestExact,
        "linear" => Mode::Linear,
        "cubic" => Mode::Cubic,
        other => {
            return Err(Error::InvalidArgument {
                argument: "mode",
                expected: "`nearest`, `nearest-exact`, `linear` or `cubic`".into(),
                got: format!("`{other}`"),
            });
        }
    };
    // Dimensions that the image lacks come first and have one element.
    let lacking = 3 - call.ints(1)?.len().min(3);
    three(|d| {
        let Some(own) = d.checked_sub(lacking) else { return Ok(Table::single()) };
        let scale = scales.get(own).copied();
        Spacing { size: from[d + 2], count: to[d + 2], align_corners, scale }.table(mode)
    })
}

fn interpolate<T: Float>(call: &Call) -> Result<(), Error> {
    let (input, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    write_sums(&input, &out, &interpolation(call, &input.sizes, &out.sizes)?)
}

fn interpolate_backward<T: Float>(call: &Call) -> Result<(), Error> {
    let (grad, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    let tables = interpolation(call, &out.sizes, &grad.sizes)?;
    write_sums(&grad, &out, &three(|d| tables[d].transposed(out.sizes[d + 2]))?)
}

kernel!("interpolate", "TISbF>T", interpolate, [f32, f64, f16, bf16]);
kernel!("interpolate_backward", "TISbF>T", interpolate_backward, [f32, f64, f16, bf16]);
