//! `sort` and `topk`

use super::buffer::try_parallel_for;
use super::cells::{Cells, copy_block, row_major};
use super::dims::wrapped;
use super::nest::{Dim, Nest};
use super::order::{First, Key, Ranking};
use keyway_sdk::author::{Call, Error, Lanes, Plain, Scratch};
use keyway_sdk::half::{bf16, f16};
use std::sync::OnceLock;

/// Writes the first `k` elements of each line along `dim`, with their indices.
fn ranked<T: Key>(call: &Call, dim: i64, k: usize, descending: bool) -> Result<(), Error> {
    let from = Cells::<T>::argument(call, 0)?.with_dim();
    let (values, places) =
        (Cells::<T>::output(call, 0)?.with_dim(), Cells::<i64>::output(call, 1)?.with_dim());
    let dim = wrapped(dim, from.sizes.len());
    let n = from.sizes[dim];
    let others = (0..from.sizes.len()).filter(|&d| d != dim);
    let lines: Vec<Dim<3>> =
        others.map(|d| (from.sizes[d], [values.strides[d], places.strides[d], from.strides[d]])).collect();
    let (vd, pd, fd) = (values.strides[dim], places.strides[dim], from.strides[dim]);
    let work = n * (n.max(2).ilog2() as usize);
    let failed = OnceLock::new();
    Nest::sorted(lines).for_each_row(work, |[v, p, f], len, [vs, ps, fs]| {
        let mut ranking = match Ranking::new::<T>(n, k) {
            Ok(ranking) => ranking,
            Err(error) => {
                failed.get_or_init(|| error);
                return;
            }
        };
        for l in 0..len as isize {
            // SAFETY: the loops are those of the source and of the results, which differ in `dim` alone; there `i` is below the
            // source's size and `r` below the results'. Each line belongs to one work item.
            unsafe {
                let line = from.lanes.as_ptr().cast_const().offset(f + l * fs);
                let at = |i: usize| line.offset(i as isize * fd);
                let (values, places) =
                    (values.lanes.as_ptr().offset(v + l * vs), places.lanes.as_ptr().offset(p + l * ps));
                ranking.rank(descending, |i| T::load(at(i))).each(|r, i| {
                    values.offset(r as isize * vd).write(T::load(at(i)));
                    places.offset(r as isize * pd).write(i as i64);
                });
            }
        }
    })?;
    failed.into_inner().map_or(Ok(()), Err)
}

fn sort<T: Key>(call: &Call) -> Result<(), Error> {
    let from = call.tensor(0)?;
    let dim = call.int(1)?;
    let d = wrapped(dim, from.ndim());
    let n = from.sizes().get(d).map_or(1, |&n| n as usize);
    ranked::<T>(call, dim, n, call.bool(2)?)
}

/// The maximum `k` for which the first elements are maintained in order while a line is read.
const FEW: usize = 16;
/// The minimum number of elements per work item.
const GRAIN: usize = 16 * 1024;

/// As [`ranked`], for a small `k`: an element is inserted only if it precedes the last of the current first `k`.
fn firsts<T: Key, C: Plain>(call: &Call, dim: usize, k: usize, descending: bool) -> Result<(), Error> {
    let from = Cells::<C>::argument(call, 0)?.with_dim();
    let (values, places) =
        (Cells::<C>::output(call, 0)?.with_dim(), Cells::<i64>::output(call, 1)?.with_dim());
    let (n, lines) = (from.sizes[dim], from.numel() / from.sizes[dim]);
    // The dimensions with `dim` last, so that each line is dense.
    let behind = |strides: &[isize]| -> Vec<isize> {
        let others = (0..strides.len()).filter(|d| *d != dim).map(|d| strides[d]);
        others.chain([strides[dim]]).collect()
    };
    let sizes = behind(&from.sizes.iter().map(|n| *n as isize).collect::<Vec<_>>());
    let sizes: Vec<usize> = sizes.into_iter().map(|n| n as usize).collect();
    let dense = row_major(&sizes);
    let own = behind(&from.strides);
    let in_place = sizes.iter().zip(own.iter().zip(&dense)).all(|(n, (own, dense))| *n == 1 || own == dense);
    let mut copy = Scratch::<C>::zeroed(if in_place { 0 } else { from.numel() })?;
    let elements = if in_place {
        from.lanes
    } else {
        // SAFETY: the scratch memory outlives the loop below, and is used through this address alone.
        let lanes = unsafe { Lanes::new(copy.as_mut_ptr()) };
        copy_block(lanes, &dense, from.lanes, &own, &sizes)?;
        lanes
    };
    let (to, at) = (behind(&values.strides), behind(&places.strides));
    let offset = |strides: &[isize], mut line: usize| {
        let mut offset = 0;
        for d in (0..sizes.len() - 1).rev() {
            offset += (line % sizes[d]) as isize * strides[d];
            line /= sizes[d];
        }
        offset
    };
    try_parallel_for(lines, (GRAIN / n).max(1), |part| {
        let mut first = First::new(k, descending);
        for line in part {
            // SAFETY: each line has `n` contiguous elements of the type of the op's argument.
            let at_element =
                |i: usize| unsafe { T::load(elements.as_ptr().cast_const().cast::<T>().add(line * n + i)) };
            first.find(n, at_element);
            let (to_line, at_line) = (offset(&to, line), offset(&at, line));
            for (r, i) in first.places().enumerate() {
                let r = r as isize;
                // SAFETY: the results have `k` elements in each line, which belongs to one work item.
                unsafe {
                    let value = elements.read(line * n + i);
                    values.lanes.as_ptr().offset(to_line + r * to[sizes.len() - 1]).write(value);
                    places.lanes.as_ptr().offset(at_line + r * at[sizes.len() - 1]).write(i as i64);
                }
            }
        }
        Ok(())
    })
}

fn topk<T: Key>(call: &Call) -> Result<(), Error> {
    let (sizes, k, dim) = (call.tensor(0)?.sizes(), call.int(1)? as usize, call.int(2)?);
    let d = wrapped(dim, sizes.len());
    let n = sizes.get(d).map_or(0, |n| *n as usize);
    if (1..=FEW).contains(&k) && n >= 2 * k && !sizes.contains(&0) {
        let descending = call.bool(3)?;
        return match size_of::<T>() {
            1 => firsts::<T, u8>(call, d, k, descending),
            2 => firsts::<T, u16>(call, d, k, descending),
            4 => firsts::<T, u32>(call, d, k, descending),
            _ => firsts::<T, u64>(call, d, k, descending),
        };
    }
    ranked::<T>(call, call.int(2)?, call.int(1)? as usize, call.bool(3)?)
}

kernel!("sort", "Tibb>TT", sort, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("topk", "Tiibb>TT", topk, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
