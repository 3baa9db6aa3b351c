//! Softmax and its logarithm.

use super::launch::{Dims, launch};
use super::nets::{Array, Sharing, along, in_pieces, wide_bytes};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::strided::Strided;
use keyway_sdk::author::{Call, Error};

family!("softmax");

/// `Softmax` in softmax.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct SoftmaxArgument {
    out: u64,
    input: u64,
    sharing: Sharing,
    rows: Dims<2>,
    out_step: i64,
    in_step: i64,
}
// SAFETY: `Softmax` has these fields.
unsafe impl Argument for SoftmaxArgument {}

fn softmax(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (input, out) = (Array::argument(call, 0)?, Array::output(call, 0)?);
    if input.numel() == 0 {
        return Ok(());
    }
    let own = along(input.sizes.len(), call.int(1)?)?;
    let others = |list: &[i64]| -> Vec<i64> {
        list.iter().enumerate().filter(|(d, _)| Some(*d) != own).map(|(_, &n)| n).collect()
    };
    let rows = Strided::new(&others(input.sizes), [&others(out.strides), &others(input.strides)])?;
    let of = |list: &[i64], otherwise: i64| own.map_or(otherwise, |d| list[d]);
    let (out_step, in_step) = (of(out.strides, 0), of(input.strides, 0));
    let terms = Strided::new(&[of(input.sizes, 1)], [&[in_step]])?;
    let sharing = Sharing::new((&rows, 1), (&terms, 0))?;
    let steps: Vec<i64> =
        rows.dims().iter().flat_map(|dim| dim.strides.map(|stride| stride as i64)).collect();
    let in_whole = |data| in_pieces(data, input.bytes, &steps);
    let kept = (out_step == 1 && in_step == 1 && in_whole(out.data) && in_whole(input.data))
        .then(|| sharing.kept(input.bytes, wide_bytes(input.bytes)))
        .flatten();
    let (sharing, end) = kept.map_or((sharing, ""), |sharing| (sharing, "_kept"));
    let rows = Dims::of(&rows)?;
    let argument = SoftmaxArgument { out: out.data, input: input.data, sharing, rows, out_step, in_step };
    let grid = ([sharing.blocks(), 1], sharing.threads());
    let entry = format_args!("{}_{}{end}", kernel.name, kernel.dtype);
    launch(device_of(call)?, kernel, entry, grid, &argument, call.stream())
}
