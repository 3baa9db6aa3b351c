//! Sampling of images at the locations of a grid, and its gradients.

use super::launch::{Dims, Divisor, launch};
use super::nets::{Array, Image, ROW_THREADS, Sharing, counted, dim, three, unsupported};
use super::order::sorted;
use super::scratch::{On, Scratch};
use super::space::dense;
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::strided::Strided;
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

/// The position of text argument `i` in this list of names.
fn number(call: &Call<'_>, i: usize, argument: &'static str, names: [&str; 3]) -> Result<u32, Error> {
    let text = call.str(i)?;
    let at = names.iter().position(|name| *name == text).ok_or_else(|| {
        let [a, b, c] = names;
        let expected = format!("`{a}`, `{b}` or `{c}`");
        Error::InvalidArgument { argument, expected, got: format!("`{text}`") }
    })?;
    Ok(at as u32)
}

/// Interpolation and padding, with the kernels' numbers.
#[derive(Clone, Copy)]
struct Reading {
    mode: u32,
    padding: u32,
    align_corners: u32,
}

const NEAREST: u32 = 1;

impl Reading {
    /// Reads arguments `at` to `at + 2`.
    fn of(call: &Call<'_>, at: usize) -> Result<Reading, Error> {
        let mode = number(call, at, "mode", ["bilinear", "nearest", "bicubic"])?;
        let padding = number(call, at + 1, "padding_mode", ["zeros", "border", "reflection"])?;
        Ok(Reading { mode, padding, align_corners: u32::from(call.bool(at + 2)?) })
    }
}

/// A grid's strides: between samples, along the other dimensions, and between coordinates.
fn strides_of<'a>(grid: &Array<'a>) -> Result<(i64, &'a [i64], i64), Error> {
    match grid.strides {
        &[of_sample, ref places @ .., coordinate] if (2..=3).contains(&places.len()) => {
            Ok((of_sample, places, coordinate))
        }
        _ => Err(Error::InvalidArgument {
            argument: "grid",
            expected: "a tensor of 4 or 5 dimensions".into(),
            got: format!("sizes {:?}", grid.sizes),
        }),
    }
}

fn grid_sample(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (image, grid, out) = (Image::argument(call, 0)?, Array::argument(call, 1)?, Image::output(call, 0)?);
    if out.is_empty() {
        return Ok(());
    }
    let Reading { mode, padding, align_corners } = Reading::of(call, 2)?;
    let (of_sample, places, coordinate) = strides_of(&grid)?;
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
        rank: places.len() as u32,
        mode,
        padding,
        align_corners,
        pixels: Dims::new(&[samples, place(0), place(1), place(2)]),
    };
    let entry = format_args!("{}_{}", kernel.name, kernel.dtype);
    let grid = ([count.div_ceil(ROW_THREADS), 1], ROW_THREADS as u32);
    launch(device_of(call)?, kernel, entry, grid, &argument, call.stream())
}

/// `Lists` in grid_sample.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct ListsArgument {
    at: u64,
    weights: u64,
    slopes: u64,
    count: u64,
    rank: u32,
    taps: u32,
    shift: u32,
    all: u32,
}

/// `GridTaps` in grid_sample.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct TapsArgument {
    grid: u64,
    coordinate: i64,
    size: [u64; 3],
    lists: ListsArgument,
    dtype: u32,
    mode: u32,
    padding: u32,
    align_corners: u32,
    pixels: Dims<1>,
}
// SAFETY: `GridTaps` has these fields.
unsafe impl Argument for TapsArgument {}

/// `GridTargets` in grid_sample.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct TargetsArgument {
    lists: ListsArgument,
    keys: u64,
    order: u64,
    weights: u64,
    size: [u64; 3],
    plane: u64,
    pixels: u64,
    none: u64,
}
// SAFETY: `GridTargets` has these fields.
unsafe impl Argument for TargetsArgument {}

/// `GridSums` in grid_sample.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct SumsArgument {
    out: u64,
    grad: u64,
    keys: u64,
    order: u64,
    weights: u64,
    keys_count: u64,
    elements: u64,
    channels: u64,
    out_channel: i64,
    grad_channel: i64,
    count: Divisor,
    pixels: Dims<1>,
    places: Dims<1>,
}
// SAFETY: `GridSums` has these fields.
unsafe impl Argument for SumsArgument {}

/// `GridSlopes` in grid_sample.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct SlopesArgument {
    out: u64,
    grad: u64,
    image: u64,
    lists: ListsArgument,
    stride: [i64; 3],
    coordinate: i64,
    grad_channel: i64,
    image_channel: i64,
    sharing: Sharing,
    pixels: Dims<4>,
}
// SAFETY: `GridSlopes` has these fields.
unsafe impl Argument for SlopesArgument {}

/// Channels per thread, as in grid_sample.cu, and the maximum number of blocks along the second axis of a launch.
const CHANNELS: usize = 4;
const MOST_BLOCKS: usize = 65535;

/// The taps of all pixels of a grid: lists in device memory.
struct Lists {
    argument: ListsArgument,
    _memory: [Scratch; 3],
}

impl Lists {
    /// Computes the taps of a grid in images, with slopes if requested.
    fn new(
        on: On,
        kernel: Kernel,
        grid: &Array<'_>,
        image: &Image,
        (reading, slopes): (Reading, bool),
    ) -> Result<Lists, Error> {
        let (_, places, coordinate) = strides_of(grid)?;
        let (rank, shift) = (places.len(), [1, 0, 2][reading.mode as usize]);
        let count = grid.sizes[..=rank].iter().product::<i64>() as usize;
        let (taps, all) = (1usize << shift, 1usize << (shift * rank));
        counted(count.saturating_mul(all))?;
        counted(image.plane())?;
        let room = rank * taps * count;
        let memory = [
            Scratch::new(on, room, 4)?,
            Scratch::new(on, room, 8)?,
            Scratch::new(on, if slopes { room } else { 0 }, 8)?,
        ];
        let [at, weights, slopes] = [0, 1, 2].map(|k: usize| memory[k].at());
        let lists = ListsArgument {
            at,
            weights,
            slopes,
            count: count as u64,
            rank: rank as u32,
            taps: taps as u32,
            shift: shift as u32,
            all: all as u32,
        };
        let dtype = ["f16", "bf16", "f32"].iter().position(|name| *name == kernel.dtype).unwrap_or(3);
        let pixels: Vec<_> =
            (0..=rank).map(|d| dim(grid.sizes[d].max(0) as usize, [grid.strides[d]])).collect();
        let argument = TapsArgument {
            grid: grid.data,
            coordinate,
            size: inner(image.sizes, rank).map(|size| size as u64),
            lists,
            dtype: dtype as u32,
            mode: reading.mode,
            padding: reading.padding,
            align_corners: reading.align_corners,
            pixels: Dims::new(&pixels),
        };
        let made = Lists { argument: lists, _memory: memory };
        made.launch(on, kernel, "grid_sample_taps", rank, &argument)?;
        Ok(made)
    }

    /// Launches a kernel with one thread per pixel, and this number of repetitions along the second axis.
    fn launch<A: Argument>(
        &self,
        on: On,
        kernel: Kernel,
        entry: &str,
        times: usize,
        argument: &A,
    ) -> Result<(), Error> {
        let blocks = (self.argument.count as usize).div_ceil(ROW_THREADS);
        if blocks == 0 {
            return Ok(());
        }
        launch(on.0, kernel, format_args!("{entry}"), ([blocks, times], ROW_THREADS as u32), argument, on.1)
    }
}

/// The last `rank` of five dimensions, first in the result.
fn inner<T: Copy>(of: [T; 5], rank: usize) -> [T; 3] {
    [0, 1, 2].map(|d: usize| of[(5 - rank + d).min(4)])
}

fn grid_sample_input_grad(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (grad, grid, out) = (Image::argument(call, 0)?, Array::argument(call, 1)?, Image::output(call, 0)?);
    let reading = Reading::of(call, 3)?;
    if out.is_empty() {
        return Ok(());
    }
    let on = (device_of(call)?, call.stream());
    let lists = Lists::new(on, kernel, &grid, &out, (reading, false))?;
    let (count, all) = (lists.argument.count as usize, lists.argument.all as usize);
    let (samples, plane) = (out.sizes[0], out.plane());
    let elements = samples.saturating_mul(plane);
    counted(elements)?;
    let groups = out.sizes[1].div_ceil(CHANNELS);
    if groups > MOST_BLOCKS {
        return Err(unsupported("images of more channels than one launch has blocks"));
    }
    let terms = count * all;
    let (keys, order) = (Scratch::new(on, terms, 8)?, Scratch::new(on, terms, 4)?);
    let weights = Scratch::new(on, terms, 8)?;
    let argument = TargetsArgument {
        lists: lists.argument,
        keys: keys.at(),
        order: order.at(),
        weights: weights.at(),
        size: inner(out.sizes, lists.argument.rank as usize).map(|size| size as u64),
        plane: plane as u64,
        pixels: grad.plane() as u64,
        none: elements as u64,
    };
    lists.launch(on, kernel, "grid_sample_targets", all, &argument)?;
    let bits = u64::BITS - (elements as u64).leading_zeros();
    let (keys, order) = sorted(on, (keys, order), (terms, terms), bits)?;
    let along = |image: &Image| [0, 2, 3, 4].map(|d: usize| dim(image.sizes[d], [image.strides[d]]));
    let argument = SumsArgument {
        out: out.data,
        grad: grad.data,
        keys: keys.at(),
        order: order.at(),
        weights: weights.at(),
        keys_count: terms as u64,
        elements: elements as u64,
        channels: out.sizes[1] as u64,
        out_channel: out.strides[1],
        grad_channel: grad.strides[1],
        count: Divisor::new(count.max(1) as u32),
        pixels: Dims::new(&along(&grad)),
        places: Dims::new(&along(&out)),
    };
    let grid = ([elements.div_ceil(ROW_THREADS), groups], ROW_THREADS as u32);
    launch(on.0, kernel, format_args!("{}_{}", kernel.name, kernel.dtype), grid, &argument, on.1)
}

fn grid_sample_grid_grad(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (grad, image) = (Image::argument(call, 0)?, Image::argument(call, 1)?);
    let (grid, out) = (Array::argument(call, 2)?, Array::output(call, 0)?);
    let reading = Reading::of(call, 3)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let on = (device_of(call)?, call.stream());
    let mut lists = Lists::new(on, kernel, &grid, &image, (reading, true))?;
    if reading.mode == NEAREST {
        // Without taps, so that the gradient is 0.
        lists.argument.all = 0;
    }
    let (of_sample, places, coordinate) = strides_of(&out)?;
    let of_place = three(places, 0);
    let list = |sample: i64, [depth, height, width]: [i64; 3]| vec![sample, depth, height, width];
    let spatial = |of: [i64; 5]| [of[2], of[3], of[4]];
    let sizes = list(grad.sizes[0] as i64, spatial(grad.sizes.map(|size| size as i64)));
    let numbers = dense(&sizes);
    let rows = Strided::new(
        &sizes,
        [
            &list(of_sample, of_place),
            &list(grad.strides[0], spatial(grad.strides)),
            &list(image.strides[0], [0; 3]),
            &numbers,
        ],
    )?;
    let terms = Strided::new(&[grad.sizes[1] as i64], [&[grad.strides[1]]])?;
    let sharing = Sharing::new((&rows, 1), (&terms, 0))?;
    let argument = SlopesArgument {
        out: out.data,
        grad: grad.data,
        image: image.data,
        lists: lists.argument,
        stride: inner(image.strides, places.len()),
        coordinate,
        grad_channel: grad.strides[1],
        image_channel: image.strides[1],
        sharing,
        pixels: Dims::of(&rows)?,
    };
    let blocks = ([sharing.blocks(), 1], sharing.threads());
    launch(on.0, kernel, format_args!("{}_{}", kernel.name, kernel.dtype), blocks, &argument, on.1)
}
