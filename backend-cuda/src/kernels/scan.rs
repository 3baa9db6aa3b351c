//! `cumsum`, `cumprod`, `logcumsumexp`, `cummax` and `cummin`.

use super::elements::Taken;
use super::launch::{Dims, Operand, POSITIONS, launch, pieces};
use super::nets::piece;
use super::scratch::Scratch;
use super::space::{Laid, each, in_order, wrapped};
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error, dtype_size};

family!("scan");

/// The minimum number of elements of a part; a line of fewer than two parts belongs to one thread.
const PART: usize = 128;
/// The maximum number of parts of a line: each thread combines the results of the previous parts.
const PARTS: usize = 512;
/// As in scan.cu: threads of a block that scans contiguous lines, and minimum threads of a line.
const LINE_THREADS: usize = 256;
const LINE_LANES: usize = 4;
/// The minimum length of a contiguous line for several threads.
const LINE: usize = 32;
/// The minimum number of elements of a part of such a line, and the number of blocks that occupies a device.
const LINE_PART: usize = 4096;
const BLOCKS: usize = 1024;
/// Maximum bytes of an accumulator.
const ACCUMULATOR: usize = 16;

/// The parameters of extremes, as in `Scan` in scan.cu.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extremes {
    kind: u32,
    least: u32,
    infinite: u64,
    sign: u64,
    bytes: u64,
}

impl Extremes {
    /// The maximum, or the minimum if `least`, of elements of this dtype, of `bytes` bytes.
    fn new(dtype: &str, bytes: usize, least: bool) -> Extremes {
        let infinite = match dtype {
            "f16" => 0x7c00,
            "bf16" => 0x7f80,
            "f32" => 0x7f80_0000,
            "f64" => f64::INFINITY.to_bits(),
            _ => 0,
        };
        // The kinds of the kernel.
        let kind = match dtype.starts_with('u') {
            true => 0,
            false if infinite == 0 => 1,
            false => 2,
        };
        let sign = 1 << (8 * bytes - 1);
        Extremes { kind, least: u32::from(least), infinite, sign, bytes: bytes as u64 }
    }
}

/// `Scan` in scan.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct ScanArgument {
    out: u64,
    places: u64,
    input: Operand,
    parts: u64,
    along: [i64; 3],
    length: u64,
    part: u64,
    parts_count: u64,
    first: u64,
    count: u64,
    lanes: u32,
    only_parts: u32,
    what: Extremes,
    dims: Dims<3>,
}
// SAFETY: `Scan` has these fields.
unsafe impl Argument for ScanArgument {}

/// The number of elements of a part of a line, and of parts, which depend on the line's length alone.
fn split(length: usize) -> (usize, usize) {
    if length < 2 * PART {
        return (length, 1);
    }
    let part = length.div_ceil(PARTS).max(PART);
    (part, length.div_ceil(part))
}

/// As [`split`], for one of `count` contiguous lines; and the number of threads that share a part, each with `step`
/// elements at a time. Depends on sizes alone.
fn split_among(count: usize, length: usize, step: usize) -> (usize, usize, usize) {
    let lanes = length.div_ceil(step).next_power_of_two().clamp(LINE_LANES, LINE_THREADS);
    let parts = (BLOCKS / count).min(length / LINE_PART).min(PARTS);
    if parts < 2 {
        return (length, 1, lanes);
    }
    // Parts are whole tiles, so that they start where packs do.
    let part = length.div_ceil(parts).next_multiple_of(lanes * step);
    (part, length.div_ceil(part), lanes)
}

fn cumsum(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    scan(call, kernel, (kernel.name, kernel.dtype), call.bool(2)?, None)
}

fn cumprod(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    scan(call, kernel, (kernel.name, kernel.dtype), false, None)
}

fn logcumsumexp(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    scan(call, kernel, (kernel.name, kernel.dtype), false, None)
}

/// `cummax` and `cummin`.
fn extremes(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let bytes = dtype_size(call.output(0)?.dtype()).unwrap_or(1);
    let what = Extremes::new(kernel.dtype, bytes, kernel.name == "cummin");
    scan(call, kernel, ("extremes", &format!("b{}", 8 * bytes)), false, Some(what))
}

fn scan(
    call: &Call<'_>,
    kernel: Kernel,
    (name, dtype): (&str, &str),
    reverse: bool,
    extremes: Option<Extremes>,
) -> Result<(), Error> {
    let on = (device_of(call)?, call.stream());
    let taken = if extremes.is_some() { Taken::Raw } else { Taken::Rounded };
    let from = Laid::argument(call, 0, taken)?.with_dim();
    let out = Laid::output(call, 0)?.with_dim();
    let places = if extremes.is_some() { Laid::output(call, 1)?.with_dim() } else { out.clone() };
    if out.numel() == 0 {
        return Ok(());
    }
    let dim = wrapped(call.int(1)?, out.sizes.len());
    let length = out.sizes[dim] as usize;
    let mut along = [&out, &places, &from].map(|laid| laid.strides[dim]);
    let mut start = [0i64; 3];
    if reverse {
        start = along.map(|stride| (length as i64 - 1) * stride);
        along = along.map(|stride| -stride);
    }
    let mut lines = out.sizes.clone();
    lines[dim] = 1;
    let count = out.numel() / length;
    let is_beside = name != "cumprod" && along[0].abs() == 1 && along == [along[0]; 3];
    // The number of elements that a thread has at a time, as in the kernel.
    let step = if extremes.is_some() { piece(out.bytes).min(4) } else { piece(out.bytes) };
    let among = (is_beside && length >= LINE && from.operand.data != 0 && from.operand.once == 0)
        .then(|| split_among(count, length, step));
    let (part, parts_count, lanes) = among.unwrap_or_else(|| {
        let (part, parts_count) = split(length);
        (part, parts_count, 0)
    });
    let parts = Scratch::new(on, if parts_count > 1 { count * parts_count } else { 0 }, ACCUMULATOR)?;
    let mut first = 0;
    for piece in pieces(&in_order(&lines, [&out.strides, &places.strides, &from.strides]), POSITIONS) {
        let begin = |k: usize| piece.offsets[k].wrapping_add(start[k] as usize);
        for only_parts in [true, false].into_iter().skip(usize::from(parts_count == 1)) {
            let argument = ScanArgument {
                out: out.operand.shifted(begin(0), out.bytes).data,
                places: places.operand.shifted(begin(1), places.bytes).data,
                input: from.operand.shifted(begin(2), from.bytes),
                parts: parts.at(),
                along,
                length: length as u64,
                part: part as u64,
                parts_count: parts_count as u64,
                first: first as u64,
                count: piece.count as u64,
                lanes: lanes as u32,
                only_parts: u32::from(only_parts),
                what: extremes.unwrap_or_default(),
                dims: Dims::new(&piece.dims),
            };
            let shares = piece.count * parts_count;
            let (end, grid) = match (lanes, only_parts) {
                (0, true) => ("parts", each(shares)),
                (0, false) => ("write", each(shares)),
                _ => ("lines", ([shares.div_ceil(LINE_THREADS / lanes), 1], LINE_THREADS as u32)),
            };
            // Extremes have one kernel for elements of any size.
            let dtype = if lanes == 0 && extremes.is_some() { "any" } else { dtype };
            launch(on.0, kernel, format_args!("{name}_{dtype}_{end}"), grid, &argument, on.1)?;
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
            for (lines, step) in [(1, 4), (3, 8), (600, 2)] {
                let (part, count, lanes) = split_among(lines, length, step);
                assert!(count <= PARTS && part * count >= length && part * (count - 1) < length, "{length}");
                assert!(count == 1 || (lanes == LINE_THREADS && part % (lanes * step) == 0), "{length}");
            }
        }
    }
}
