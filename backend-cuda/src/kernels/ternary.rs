//! Ternary element-wise functions, and selections.

use super::binary::halves;
use super::elements::{Taken, wide_scalar};
use super::map::{Side, argument, fill_output, map, write};
use super::space::wrapped;
use super::{Kernel, device_of};
use keyway_sdk::author::{Call, Error};

family!("ternary");

/// A scalar operand is not rounded.
fn ternary(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    map(call, kernel, [0, 1, 2], Taken::Exact, [0; 3])
}

fn scaled3(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    map(call, kernel, [0, 1, 2], Taken::Rounded, [wide_scalar(call, 3, kernel.dtype)?, 0, 0])
}

/// Computes each half with its own kernel.
fn glu_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (grad, sizes) = (argument(call, 0, Taken::Rounded)?, call.tensor(0)?);
    let (x, out) = (call.tensor(1)?, Side::new(&call.output(0)?, Taken::Raw)?);
    let dim = wrapped(call.int(2)?, x.ndim());
    let size = x.sizes()[dim];
    let [own, gate] = halves(argument(call, 1, Taken::Rounded)?, size, dim);
    let [to_own, to_gate] = halves(out, size, dim);
    let (on, sizes) = ((device_of(call)?, call.stream()), sizes.sizes());
    let first = Kernel { family: "binary", name: "glu", ..kernel };
    write(on, first, format_args!("glu_{}", kernel.dtype), sizes, [to_own, grad, gate], [0; 3])?;
    let name = format_args!("{}_{}", kernel.name, kernel.dtype);
    write(on, kernel, name, sizes, [to_gate, grad, own, gate], [0; 3])
}

/// Moves elements by size alone.
fn choice(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let side = |index| argument(call, index, Taken::Raw);
    let sides = [side(0)?, side(1)?, side(2)?];
    // The condition is bool; the last operand has the output's dtype.
    let bits = sides[2].bytes * 8;
    fill_output(call, kernel, format_args!("{}_b{bits}", kernel.name), sides, [0; 3])
}
