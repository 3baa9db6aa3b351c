//! `max_pool`, `max_pool_values` and `adaptive_max_pool` of integers: a direct loop over the window of each output.

use super::Window;
use super::adaptive::all_windows;
use super::lines::GRAIN;
use keyway_cpu_loops::images::{Axis, Volume, three};
use keyway_cpu_loops::{parallel_try, reserve};
use keyway_sdk::author::{Call, Element, Error};

/// The indices of the input elements in each window of a dimension.
type Reads = Vec<Vec<usize>>;

fn reads_of(axes: &[Axis; 3]) -> Result<[Reads; 3], Error> {
    let of = |axis: &Axis| {
        let mut all = reserve(axis.count)?;
        for place in 0..axis.count {
            let mut under = reserve(axis.taps.len().min(axis.size))?;
            under.extend(axis.reads(place));
            all.push(under);
        }
        Ok(all)
    };
    Ok([of(&axes[0])?, of(&axes[1])?, of(&axes[2])?])
}

/// The first of the largest elements in each window, and its index in the channel.
fn largest<T: Element + Ord>(
    input: &Volume<'_, T>,
    reads: &[Reads; 3],
    values: &Volume<'_, T>,
    places: Option<&Volume<'_, i64>>,
) -> Result<(), Error> {
    let [samples, channels, depth, height, width] = values.sizes;
    let [_, _, _, rows, columns] = input.sizes;
    let at = |index: [usize; 5], strides: &[usize; 5]| -> usize {
        index.iter().zip(strides).map(|(i, step)| i * step).sum()
    };
    let window: usize = reads.iter().filter_map(|of| of.first()).map(Vec::len).product();
    let lines = samples * channels * depth * height;
    parallel_try(lines, GRAIN / width.saturating_mul(window).max(1), |range| {
        for line in range {
            let (h, rest) = (line % height, line / height);
            let (d, rest) = (rest % depth, rest / depth);
            let (c, n) = (rest % channels, rest / channels);
            for (w, under) in reads[2].iter().enumerate() {
                let mut best: Option<(T, usize)> = None;
                for (&z, &y) in reads[0][d].iter().flat_map(|z| reads[1][h].iter().map(move |y| (z, y))) {
                    for &x in under {
                        // SAFETY: the elements of a window are in the image, whose elements the host guarantees.
                        let element =
                            unsafe { *input.data.as_ptr().add(at([n, c, z, y, x], &input.strides)) };
                        if best.is_none_or(|(largest, _)| element > largest) {
                            best = Some((element, (z * rows + y) * columns + x));
                        }
                    }
                }
                let Some((value, place)) = best else { continue };
                let to = [n, c, d, h, w];
                // SAFETY: the output is uniquely owned, and each element belongs to one work item.
                unsafe {
                    values.data.as_ptr().add(at(to, &values.strides)).write(value);
                    if let Some(places) = places {
                        places.data.as_ptr().add(at(to, &places.strides)).write(place as i64);
                    }
                }
            }
        }
        Ok(())
    })
}

fn moved<T: Element + Ord>(call: &Call, with_places: bool) -> Result<(), Error> {
    let (input, values) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    let places = if with_places { Some(Volume::<i64>::output(call, 1)?) } else { None };
    if values.sizes.contains(&0) {
        return Ok(());
    }
    let [_, _, counts @ ..] = values.sizes;
    let axes = Window::of(call, 1, three(call.ints(4)?, 1))?.axes(&input, counts)?;
    largest(&input, &reads_of(&axes)?, &values, places.as_ref())
}

fn max_pool<T: Element + Ord>(call: &Call) -> Result<(), Error> {
    moved::<T>(call, true)
}

fn max_pool_values<T: Element + Ord>(call: &Call) -> Result<(), Error> {
    moved::<T>(call, false)
}

fn adaptive_max_pool<T: Element + Ord>(call: &Call) -> Result<(), Error> {
    let input = Volume::<T>::argument(call, 0)?;
    let (values, places) = (Volume::<T>::output(call, 0)?, Volume::<i64>::output(call, 1)?);
    if values.sizes.contains(&0) {
        return Ok(());
    }
    let reads = all_windows(&input, &values)?.map(|of| of.into_iter().map(Iterator::collect).collect());
    largest(&input, &reads, &values, Some(&places))
}

kernel!("max_pool", "TIIIIb>TT", max_pool, [i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("max_pool_values", "TIIIIb>T", max_pool_values, [i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("adaptive_max_pool", "TI>TT", adaptive_max_pool, [i8, i16, i32, i64, u8, u16, u32, u64]);
