//! `interpolate`, `grid_sample` and their gradients.
//!
//! Each output is a weighted sum of image elements with separable weights: a small table for each dimension has the indices
//! and weights. The gradient is the same sum with transposed tables, so that no two work items write one element.

mod grid;
mod grid_grads;
mod grid_taps;
mod packed;
mod side;
mod sums;
mod tables;

use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::vectors::Lanes;
use keyway_sdk::author::{Call, Error, Real};
use keyway_sdk::half::{bf16, f16};
use std::ops::Range;
use sums::weighted;
use tables::{Mode, Spacing, Table};

/// The minimum number of elements per work item.
const GRAIN: usize = 1 << 14;

/// The tables of three dimensions.
fn three<A>(of: impl FnMut(usize) -> Result<Table<A>, Error>) -> Result<[Table<A>; 3], Error> {
    let mut of = of;
    Ok([of(0)?, of(1)?, of(2)?])
}

/// The tables of `interpolate` from the sizes `from` to `to`; the mode and later parameters are arguments 2 to 4.
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
    // Missing dimensions of the image come first and have size 1.
    let lacking = 3 - call.ints(1)?.len().min(3);
    three(|d| {
        let Some(own) = d.checked_sub(lacking) else { return Ok(Table::single()) };
        let scale = scales.get(own).copied();
        Spacing { size: from[d + 2], count: to[d + 2], align_corners, scale }.table(mode)
    })
}

/// Computes for each output position the weighted sum of the elements in a box, given by a range per dimension.
///
/// # Safety
/// The volumes must contain the elements that sizes and strides describe, the ranges must be within the image for each output
/// position, and the output must be uniquely owned.
pub unsafe fn boxes<T: Lanes>(
    image: &Volume<'_, T>,
    out: &Volume<'_, T>,
    ranges: &[Vec<Range<usize>>; 3],
    weight: T::Acc,
) -> Result<(), Error> {
    let tables = three(|d| Table::of_ranges(&ranges[d], if d == 2 { weight } else { T::Acc::ONE }))?;
    // SAFETY: as the caller guarantees.
    unsafe { weighted(image, out, &tables) }
}

fn interpolate<T: Lanes>(call: &Call) -> Result<(), Error> {
    let (input, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    if out.sizes.contains(&0) {
        return Ok(());
    }
    let tables = interpolation(call, &input.sizes, &out.sizes)?;
    // SAFETY: sizes and strides are those of the call's tensors, whose elements the host guarantees; the output is uniquely
    // owned, and the tables were computed for these sizes.
    unsafe { weighted(&input, &out, &tables) }
}

fn interpolate_backward<T: Lanes>(call: &Call) -> Result<(), Error> {
    let (grad, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    if out.sizes.contains(&0) {
        return Ok(());
    }
    let tables = interpolation(call, &out.sizes, &grad.sizes)?;
    let tables = three(|d| tables[d].transposed(out.sizes[d + 2]))?;
    // SAFETY: as in `interpolate`.
    unsafe { weighted(&grad, &out, &tables) }
}

kernel!("interpolate", "TISbF>T", interpolate, [f32, f64, f16, bf16]);
// In benches/RESULTS.md, "Images, one thread" (bilinear, f32): channels_last over row-major 2.6/6.5 ms.
keyway_sdk::register_preference! { op: "interpolate", device: "cpu", format: "channels_last", cost: 0.4 }
kernel!("interpolate_backward", "TISbF>T", interpolate_backward, [f32, f64, f16, bf16]);
