//! Vector products.

use super::elements::Taken;
use super::launch::{Dims, Operand, POSITIONS, launch, pieces};
use super::space::{Laid, each, in_order, wrapped};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error};

family!("cross");

/// `Cross` in cross.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct CrossArgument {
    out: u64,
    operands: [Operand; 2],
    step: [i64; 3],
    count: u64,
    dims: Dims<3>,
}
// SAFETY: `Cross` has these fields.
unsafe impl Argument for CrossArgument {}

fn cross(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let out = Laid::output(call, 0)?;
    let (a, b) = (Laid::argument(call, 0, Taken::Rounded)?, Laid::argument(call, 1, Taken::Rounded)?);
    let dim = wrapped(call.int(2)?, out.sizes.len());
    let strides = [out.strides.clone(), a.expanded(&out.sizes), b.expanded(&out.sizes)];
    let step = [0, 1, 2].map(|k: usize| strides[k][dim]);
    let mut sizes = out.sizes.clone();
    // The dimensions iterate over vectors, not over their elements.
    sizes[dim] = 1;
    for piece in pieces(&in_order(&sizes, [&strides[0], &strides[1], &strides[2]]), POSITIONS) {
        let [to, x, y] = piece.offsets;
        let argument = CrossArgument {
            out: out.operand.shifted(to, out.bytes).data,
            operands: [a.operand.shifted(x, a.bytes), b.operand.shifted(y, b.bytes)],
            step,
            count: piece.count as u64,
            dims: Dims::new(&piece.dims),
        };
        let entry = format_args!("{}_{}", kernel.name, kernel.dtype);
        launch(device_of(call)?, kernel, entry, each(piece.count), &argument, call.stream())?;
    }
    Ok(())
}
