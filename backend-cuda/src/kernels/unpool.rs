//! Elements that go to places which a tensor names.

use super::elements::Taken;
use super::indices::checked;
use super::launch::{Dims, launch};
use super::nets::{Image, counted, dim, with_scratch};
use super::space::Laid;
use super::{Kernel, device_of};
use crate::checks::{Bounds, What};
use crate::driver::Argument;
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
    // The kernel leaves out what is no place, so that it can read what was given.
    let bounds =
        Bounds { op: kernel.name, argument: "indices", low: 0, size: count as i64, what: What::Places };
    let given = Laid::argument(call, 1, Taken::Raw)?;
    checked((device_of(call)?, call.stream()), given, bounds)?;
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
