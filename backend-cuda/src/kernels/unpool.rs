//! Scatter of elements to the indices in a tensor.

use super::elements::Taken;
use super::indices::checked;
use super::launch::{Dims, launch};
use super::nets::{Image, counted, dim, unsupported, with_scratch};
use super::space::{Laid, in_order};
use super::{Kernel, device_of};
use crate::checks::{Bounds, What};
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error};

family!("unpool");

/// Channels per block, threads per channel, and output elements per block and channel; threads per channel in the first
/// launch. As in unpool.cu.
const CHANNELS: usize = 32;
const LANES: usize = 8;
const PLACES: usize = 128;
const READERS: usize = 4;
/// Maximum group size, and bytes cached per channel block.
const GROUP: usize = 64;
const RANGE: usize = 16;
/// The maximum number of blocks along the second dimension of a launch.
const MOST: usize = 65535;

/// `Unpool` in unpool.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct UnpoolArgument {
    out: u64,
    input: u64,
    places: u64,
    ranges: u64,
    count: u64,
    channels: u32,
    groups: u32,
    segments: u32,
    each: u32,
    width: u32,
    beside: u32,
    step: [i64; 2],
    lead: Dims<3>,
    rows: Dims<2>,
    own: Dims<1>,
}
// SAFETY: `Unpool` has these fields.
unsafe impl Argument for UnpoolArgument {}

/// `max_pool_backward`, which adds elements with the same index, and `max_unpool`, which stores the last one.
fn unpool(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (input, places, out) =
        (Image::argument(call, 0)?, Image::argument(call, 1)?, Image::output(call, 0)?);
    if out.is_empty() {
        return Ok(());
    }
    let count = out.plane();
    // The kernel skips invalid indices, so that it can read the original ones.
    let bounds =
        Bounds { op: kernel.name, argument: "indices", low: 0, size: count as i64, what: What::Places };
    let given = Laid::argument(call, 1, Taken::Raw)?;
    checked((device_of(call)?, call.stream()), given, bounds)?;
    let width = input.sizes[4];
    let (each, channels) = (width.clamp(1, GROUP), counted(out.sizes[0] * out.sizes[1])?);
    let segments = width.div_ceil(each);
    let (groups, bands) = (input.sizes[2] * input.sizes[3] * segments, count.div_ceil(PLACES));
    if groups.max(bands) > MOST {
        return Err(unsupported("images of more pixels than one launch covers"));
    }
    counted(count)?;
    counted(input.plane())?;
    let all = |d: usize| dim(out.sizes[d], [out.strides[d], input.strides[d], places.strides[d]]);
    let row = |d: usize| dim(input.sizes[d], [input.strides[d], places.strides[d]]);
    let plane = [2, 3, 4].map(|d| (out.sizes[d] as i64, out.strides[d]));
    let (gpu, stream, tiles) = (device_of(call)?, call.stream(), (channels as usize).div_ceil(CHANNELS));
    with_scratch((gpu, stream), (tiles * groups * RANGE) as u64, |ranges| {
        let argument = UnpoolArgument {
            out: out.data,
            input: input.data,
            places: places.data,
            ranges,
            count: count as u64,
            channels,
            groups: groups as u32,
            segments: segments as u32,
            each: each as u32,
            width: width as u32,
            beside: u32::from(out.strides[1] == 1 && out.strides[4] > 1),
            step: [input.strides[4], places.strides[4]],
            lead: Dims::new(&[all(0), all(1)]),
            rows: Dims::new(&[row(2), row(3)]),
            own: Dims::new(&in_order(&plane.map(|d| d.0), [&plane.map(|d| d.1)])),
        };
        let entry = format_args!("{}_{}", kernel.name, kernel.dtype);
        if groups > 0 {
            let readers = ([tiles, groups], (CHANNELS * READERS) as u32);
            launch(gpu, kernel, format_args!("unpool_ranges"), readers, &argument, stream)?;
        }
        launch(gpu, kernel, entry, ([tiles, bands], (CHANNELS * LANES) as u32), &argument, stream)
    })
}
