//! `cumsum` and `cumprod`.

use super::elements::Taken;
use super::launch::{Dims, Operand, POSITIONS, launch, pieces};
use super::scratch::Scratch;
use super::space::{Laid, each, in_order, wrapped};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error};

family!("scan");

/// Elements of a part, at least; a line of fewer than two parts is one thread's.
const PART: usize = 128;
/// Parts of a line, at most: each thread puts those before its own together.
const PARTS: usize = 512;
/// Bytes of the largest accumulator.
const ACCUMULATOR: usize = 8;

/// `Scan` in scan.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct ScanArgument {
    out: u64,
    input: Operand,
    parts: u64,
    along: [i64; 2],
    length: u64,
    part: u64,
    parts_count: u64,
    first: u64,
    count: u64,
    dims: Dims<2>,
}
// SAFETY: `Scan` has these fields.
unsafe impl Argument for ScanArgument {}

/// Elements of a part of a line, and how many parts there are: by the line's length alone.
fn split(length: usize) -> (usize, usize) {
    if length < 2 * PART {
        return (length, 1);
    }
    let part = length.div_ceil(PARTS).max(PART);
    (part, length.div_ceil(part))
}

fn cumsum(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    scan(call, kernel, call.bool(2)?)
}

fn cumprod(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    scan(call, kernel, false)
}

fn scan(call: &Call<'_>, kernel: Kernel, reverse: bool) -> Result<(), Error> {
    let on = (device_of(call)?, call.stream());
    let from = Laid::argument(call, 0, Taken::Rounded)?.with_dim();
    let out = Laid::output(call, 0)?.with_dim();
    if out.numel() == 0 {
        return Ok(());
    }
    let dim = wrapped(call.int(1)?, out.sizes.len());
    let length = out.sizes[dim] as usize;
    let (mut along, mut start) = ([out.strides[dim], from.strides[dim]], [0i64; 2]);
    if reverse {
        start = along.map(|stride| (length as i64 - 1) * stride);
        along = along.map(|stride| -stride);
    }
    let mut lines = out.sizes.clone();
    lines[dim] = 1;
    let (part, parts_count) = split(length);
    let count = out.numel() / length;
    let parts = Scratch::new(on, if parts_count > 1 { count * parts_count } else { 0 }, ACCUMULATOR)?;
    let mut first = 0;
    for piece in pieces(&in_order(&lines, [&out.strides, &from.strides]), POSITIONS) {
        let [to, source] = piece.offsets;
        let argument = ScanArgument {
            out: out.operand.shifted(to.wrapping_add(start[0] as usize), out.bytes).data,
            input: from.operand.shifted(source.wrapping_add(start[1] as usize), from.bytes),
            parts: parts.at(),
            along,
            length: length as u64,
            part: part as u64,
            parts_count: parts_count as u64,
            first: first as u64,
            count: piece.count as u64,
            dims: Dims::new(&piece.dims),
        };
        for end in ["parts", "write"].iter().skip(usize::from(parts_count == 1)) {
            let entry = format_args!("{}_{}_{end}", kernel.name, kernel.dtype);
            launch(on.0, kernel, entry, each(piece.count * parts_count), &argument, on.1)?;
        }
        first += piece.count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_line_and_not_too_many() {
        for length in [1, 127, 255, 256, 257, 65536, 65537, 10_000_000] {
            let (part, count) = split(length);
            assert!(count <= PARTS && part * count >= length && part * (count - 1) < length, "{length}");
        }
    }
}
