//! Elements that go to places which a tensor names, and the check that numbers are places.

use super::launch::{Dims, launch};
use super::nets::{Array, Image, ROW_THREADS, counted, dim, with_scratch};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::strided::Strided;
use keyway_sdk::author::{Call, Error};

family!("unpool");

/// Threads of a block that has one channel, as in unpool.cu.
const CHANNEL_THREADS: u32 = 64;

/// `Unpool` in unpool.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct UnpoolArgument {
    out: u64,
    sums: u64,
    input: u64,
    places: u64,
    elements: u64,
    count: u64,
    channels: Dims<3>,
    inside: Dims<2>,
    own: Dims<1>,
}
// SAFETY: `Unpool` has these fields.
unsafe impl Argument for UnpoolArgument {}

/// `Check` in unpool.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct CheckArgument {
    numbers: u64,
    wrong: u64,
    count: u64,
    limit: u64,
    ignored: i64,
    may_ignore: u32,
    dims: Dims<1>,
}
// SAFETY: `Check` has these fields.
unsafe impl Argument for CheckArgument {}

/// Whether all elements of an argument, of i64, are below `limit` and not below 0, or the one that is ignored. Waits.
pub fn are_places(call: &Call<'_>, index: usize, limit: usize, ignored: Option<i64>) -> Result<bool, Error> {
    let numbers = Array::argument(call, index)?;
    let space = Strided::new(numbers.sizes, [numbers.strides])?;
    if space.numel() == 0 {
        return Ok(true);
    }
    let (gpu, stream) = (device_of(call)?, call.stream());
    let mut wrong = [0u8; 8];
    with_scratch((gpu, stream), 8, |at| {
        let argument = CheckArgument {
            numbers: numbers.data,
            wrong: at,
            count: space.numel() as u64,
            limit: limit as u64,
            ignored: ignored.unwrap_or(0),
            may_ignore: u32::from(ignored.is_some()),
            dims: Dims::of(&space)?,
        };
        // SAFETY: the bytes are this function's, and ordinary memory, which is valid for the call.
        unsafe { gpu.context.copy_in(at, wrong.as_ptr().cast(), 8, stream)? };
        let kernel = Kernel { family: "unpool", name: "check_places", dtype: "i64" };
        let grid = ([space.numel().div_ceil(ROW_THREADS), 1], ROW_THREADS as u32);
        launch(gpu, kernel, format_args!("check_places"), grid, &argument, stream)?;
        // SAFETY: as above, and the stream is waited for before they are read.
        unsafe { gpu.context.copy_out(wrong.as_mut_ptr().cast(), at, 8, stream)? };
        gpu.context.synchronize_stream(stream)
    })?;
    Ok(wrong == [0; 8])
}

/// `max_pool_backward` adds up what goes to one place.
fn max_pool_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    unpool(call, kernel, matches!(kernel.dtype, "f16" | "bf16"))
}

/// Of what goes to one place the last element stays.
fn max_unpool(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    unpool(call, kernel, false)
}

fn unpool(call: &Call<'_>, kernel: Kernel, sums: bool) -> Result<(), Error> {
    let (input, places, out) =
        (Image::argument(call, 0)?, Image::argument(call, 1)?, Image::output(call, 0)?);
    if out.is_empty() {
        return Ok(());
    }
    let count = out.plane();
    if !are_places(call, 1, count, None)? {
        return Err(Error::InvalidArgument {
            argument: "indices",
            expected: format!("places in 0..{count}, the elements of a channel"),
            got: "others".into(),
        });
    }
    let channels = out.sizes[0] * out.sizes[1];
    counted(channels)?;
    counted(count)?;
    counted(input.plane())?;
    let all = |d: usize| dim(out.sizes[d], [out.strides[d], input.strides[d], places.strides[d]]);
    let inside = |d: usize| dim(input.sizes[d], [input.strides[d], places.strides[d]]);
    let own = |d: usize| dim(out.sizes[d], [out.strides[d]]);
    let (gpu, stream) = (device_of(call)?, call.stream());
    with_scratch((gpu, stream), if sums { (channels * count * 4) as u64 } else { 0 }, |sums| {
        let argument = UnpoolArgument {
            out: out.data,
            sums,
            input: input.data,
            places: places.data,
            elements: input.plane() as u64,
            count: count as u64,
            channels: Dims::new(&[all(0), all(1)]),
            // In the order of their numbers.
            inside: Dims::new(&[2, 3, 4].map(inside)),
            own: Dims::new(&[2, 3, 4].map(own)),
        };
        let entry = format_args!("{}_{}", kernel.name, kernel.dtype);
        launch(gpu, kernel, entry, ([channels, 1], CHANNEL_THREADS), &argument, stream)
    })
}
