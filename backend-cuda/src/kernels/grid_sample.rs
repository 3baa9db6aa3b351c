//! Images sampled at the places of a grid.

use super::launch::{Dims, launch};
use super::nets::{Array, Image, ROW_THREADS, counted, dim, three};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error};

family!("grid_sample");

/// `GridSample` in grid_sample.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct GridArgument {
    out: u64,
    image: u64,
    grid: u64,
    size: [u64; 3],
    stride: [i64; 3],
    out_channel: i64,
    image_channel: i64,
    coordinate: i64,
    channels: u64,
    count: u64,
    rank: u32,
    mode: u32,
    padding: u32,
    align_corners: u32,
    pixels: Dims<3>,
}
// SAFETY: `GridSample` has these fields.
unsafe impl Argument for GridArgument {}

/// The number of the text in argument `i` among these.
fn number(call: &Call<'_>, i: usize, argument: &'static str, names: [&str; 3]) -> Result<u32, Error> {
    let text = call.str(i)?;
    let at = names.iter().position(|name| *name == text).ok_or_else(|| {
        let [a, b, c] = names;
        let expected = format!("`{a}`, `{b}` or `{c}`");
        Error::InvalidArgument { argument, expected, got: format!("`{text}`") }
    })?;
    Ok(at as u32)
}

fn grid_sample(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (image, grid, out) = (Image::argument(call, 0)?, Array::argument(call, 1)?, Image::output(call, 0)?);
    if out.is_empty() {
        return Ok(());
    }
    // As the kernel numbers them.
    let mode = number(call, 2, "mode", ["bilinear", "nearest", "bicubic"])?;
    let padding = number(call, 3, "padding_mode", ["zeros", "border", "reflection"])?;
    let &[of_sample, ref places @ .., coordinate] = grid.strides else {
        return Err(Error::InvalidArgument {
            argument: "grid",
            expected: "a tensor of 4 or 5 dimensions".into(),
            got: format!("sizes {:?}", grid.sizes),
        });
    };
    let of_place = three(places, 0);
    let count = out.sizes[0] * out.plane();
    counted(count)?;
    let place = |d: usize| dim(out.sizes[d + 2], [out.strides[d + 2], 0, of_place[d]]);
    let samples = dim(out.sizes[0], [out.strides[0], image.strides[0], of_sample]);
    let argument = GridArgument {
        out: out.data,
        image: image.data,
        grid: grid.data,
        size: [2, 3, 4].map(|d| image.sizes[d] as u64),
        stride: [2, 3, 4].map(|d| image.strides[d]),
        out_channel: out.strides[1],
        image_channel: image.strides[1],
        coordinate,
        channels: out.sizes[1] as u64,
        count: count as u64,
        rank: places.len().min(3) as u32,
        mode,
        padding,
        align_corners: u32::from(call.bool(4)?),
        pixels: Dims::new(&[samples, place(0), place(1), place(2)]),
    };
    let entry = format_args!("{}_{}", kernel.name, kernel.dtype);
    let grid = ([count.div_ceil(ROW_THREADS), 1], ROW_THREADS as u32);
    launch(device_of(call)?, kernel, entry, grid, &argument, call.stream())
}
