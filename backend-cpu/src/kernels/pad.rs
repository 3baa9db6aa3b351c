//! `pad`: constant padding as in `constant_pad`, and the modes that repeat elements of the source, whose offsets are
//! computed once per dimension.

use super::cells::Cells;
use super::constant_pad::filled;
use keyway_cpu_loops::{copy_dense, reserve};
use keyway_sdk::author::{Call, Element, Error, parallel_for};
use keyway_sdk::half::{bf16, f16};
use std::cmp::Reverse;
use std::ops::Range;

/// The number of elements per work item.
const GRAIN: usize = 1 << 15;

/// A dimension of the result: its stride, and the source offset that each position reads.
struct Line {
    step: isize,
    reads: Vec<isize>,
    /// The positions that are not padding, which read consecutive elements.
    inside: Range<usize>,
}

impl Line {
    /// A dimension with `size` elements of stride `from` in the source, padded by these widths.
    fn of(
        mode: &str,
        size: usize,
        (before, after): (i64, i64),
        [to, from]: [isize; 2],
    ) -> Result<Line, Error> {
        let (size, cut) = (size as i64, |width: i64| (-width).max(0));
        let (first, end) = (cut(before), size - cut(after));
        let place = |i: i64| match mode {
            "reflect" if i < 0 => -i,
            "reflect" if i >= size => 2 * (size - 1) - i,
            "circular" => first + (i - first).rem_euclid(end - first),
            _ => i.clamp(0, size - 1),
        };
        let count = (size + before + after).max(0) as usize;
        let mut reads = reserve(count)?;
        reads.extend((-before..size + after).map(|i| place(i) as isize * from));
        let start = (before.max(0) as usize).min(count);
        let inside = start..(start + (end - first).max(0) as usize).min(count);
        Ok(Line { step: to, reads, inside })
    }
}

/// Pads by elements of the source, as `mode` specifies.
///
/// # Errors
/// Too little memory for the offsets.
fn bordered<C: Element>(call: &Call, mode: &str) -> Result<(), Error> {
    let widths = call.ints(1)?;
    let (from, out) = (Cells::<C>::argument(call, 0)?.with_dim(), Cells::<C>::output(call, 0)?.with_dim());
    if out.numel() == 0 {
        return Ok(());
    }
    let rank = out.sizes.len();
    let width = |d: usize| match widths.get(2 * (rank - 1 - d)..) {
        Some([before, after, ..]) => (*before, *after),
        _ => (0, 0),
    };
    let line = |d: usize| Line::of(mode, from.sizes[d], width(d), [out.strides[d], from.strides[d]]);
    let mut lines = (0..rank).map(line).collect::<Result<Vec<Line>, Error>>()?;
    lines.sort_by_key(|line| Reverse(line.step));
    let Some((row, around)) = lines.split_last() else { return Ok(()) };
    let (rows, planes) = around.split_last().map_or((None, around), |(rows, planes)| (Some(rows), planes));
    let single = [0];
    let (down, read_down) = rows.map_or((0, &single[..]), |rows| (rows.step, &rows.reads));
    let dense = row.step == 1 && row.reads[row.inside.clone()].windows(2).all(|pair| pair[1] == pair[0] + 1);
    let inside = if dense { row.inside.clone() } else { 0..0 };
    // Rows without padding that are contiguous in both tensors are merged.
    let length = row.reads.len() as isize;
    let follow =
        |rows: &Line| rows.reads[rows.inside.clone()].windows(2).all(|pair| pair[1] == pair[0] + length);
    let whole = match rows {
        Some(rows) if inside == (0..row.reads.len()) && rows.step == length && follow(rows) => {
            rows.inside.clone()
        }
        _ => 0..0,
    };
    let count: usize = planes.iter().map(|line| line.reads.len()).product();
    let grain = GRAIN / (read_down.len() * row.reads.len());
    parallel_for(count, grain, |some| {
        for plane in some {
            let (mut rest, mut to, mut source) = (plane, 0, 0);
            for line in planes.iter().rev() {
                let at = rest % line.reads.len();
                rest /= line.reads.len();
                to += at as isize * line.step;
                source += line.reads[at];
            }
            for (y, &read) in read_down.iter().enumerate() {
                if whole.contains(&y) && y > whole.start {
                    continue;
                }
                let many = if y == whole.start { whole.len().max(1) } else { 1 };
                let to = out.lanes.as_ptr().wrapping_offset(to + y as isize * down);
                let source = from.lanes.as_ptr().cast_const().wrapping_offset(source + read);
                // SAFETY: each position is within the result, which does not overlap the source, and reads an element within
                // the source: the op's shape rule checked the widths for the mode.
                unsafe {
                    let copy = |x: usize| {
                        let element = C::load(source.wrapping_offset(row.reads[x]));
                        to.wrapping_offset(x as isize * row.step).write(element);
                    };
                    (0..inside.start).for_each(copy);
                    if let Some(&first) = row.reads[inside.clone()].first() {
                        copy_dense(to.add(inside.start), source.wrapping_offset(first), many * inside.len());
                    }
                    (inside.end..row.reads.len()).for_each(copy);
                }
            }
        }
    })
}

fn pad<T: Element>(call: &Call) -> Result<(), Error> {
    match (call.str(2)?, size_of::<T>()) {
        ("constant", _) => filled::<T>(call, 3),
        (mode, 1) => bordered::<u8>(call, mode),
        (mode, 2) => bordered::<u16>(call, mode),
        (mode, 4) => bordered::<u32>(call, mode),
        (mode, _) => bordered::<u64>(call, mode),
    }
}

kernel!("pad", "TISs>T", pad, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
