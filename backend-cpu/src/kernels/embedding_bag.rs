//! `embedding_bag`: rows of a matrix reduced as they are read. Sums of more than [`CHAIN`] rows are split into partial sums
//! of [`CHAIN`] rows, which are added in f64.

use super::cells::{Cells, shifted};
use super::indices::check_indices;
use super::long_sums::CHAIN;
use keyway_cpu_loops::{CallExt, Cost, narrow_slice};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};
use std::ops::Range;

/// Columns that are reduced at a time, so that their accumulators stay in registers.
const BLOCK: usize = 64;

/// The reduction of the rows of a bag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Sum,
    Mean,
    Max,
}

/// The bounds of each bag in the list of indices.
enum Bags {
    /// All bags have this length.
    Even(usize),
    /// Each bag is between consecutive bounds.
    Bounds(Vec<usize>),
}

impl Bags {
    /// Creates the bags from the sizes of the indices and argument 2, the offsets, whose last element may be the end.
    fn of(call: &Call, sizes: &[usize]) -> Result<Bags, Error> {
        if call.is_none(2)? {
            return Ok(Bags::Even(sizes.last().copied().unwrap_or(0)));
        }
        let (offsets, n) = (call.contiguous::<i64>(2)?, sizes.iter().product::<usize>());
        let ascending = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        let first = offsets.first().is_none_or(|first| *first == 0);
        let last = offsets.last().is_none_or(|last| *last as usize <= n);
        if !(ascending && first && last) {
            return Err(Error::InvalidArgument {
                argument: "offsets",
                expected: format!("integers, ascending from 0 to at most {n}, the number of indices"),
                got: format!("{} offsets that are not", offsets.len()),
            });
        }
        let mut bounds: Vec<usize> = offsets.iter().map(|o| *o as usize).collect();
        if !call.bool(5)? {
            bounds.push(n);
        }
        Ok(Bags::Bounds(bounds))
    }

    fn bag(&self, k: usize) -> Range<usize> {
        match self {
            Bags::Even(len) => k * len..(k + 1) * len,
            Bags::Bounds(bounds) => bounds[k]..bounds[k + 1],
        }
    }
}

fn embedding_bag<T: Float>(call: &Call) -> Result<(), Error> {
    let (weight, mut given) = (Cells::<T>::argument(call, 0)?, Cells::<i64>::argument(call, 1)?);
    let bags = Bags::of(call, &given.sizes)?;
    let (rows, columns) = (weight.sizes[0], weight.sizes[1]);
    if let Bags::Bounds(bounds) = &bags {
        // Indices after the last bag are not read.
        given.sizes[0] = bounds.last().copied().unwrap_or(0);
    }
    check_indices(&given, "indices", 0, rows, 0)?;
    let indices = call.contiguous::<i64>(1)?;
    let factors = if call.is_none(4)? { None } else { Some(call.contiguous::<T>(4)?) };
    let padding = if call.is_none(6)? { None } else { Some(call.int(6)?) };
    let padding = padding.map(|row| if row < 0 { row + rows as i64 } else { row });
    let mode = match call.str(3)? {
        "max" => Mode::Max,
        "mean" => Mode::Mean,
        _ => Mode::Sum,
    };
    let mut out = call.contiguous_out::<T>(0)?;
    if columns == 0 {
        return Ok(());
    }
    let count = out.len() / columns;
    let plain = weight.strides[1] == 1 && mode != Mode::Max && factors.is_none() && padding.is_none();
    let work = columns * (1 + indices.len() / count.max(1));
    // SAFETY: the address is used within `out`, which outlives the loop; each bag has its own part.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    parallel_for(count, (Cost::Cheap.grain() / work).max(1), |part| {
        let (mut block, mut wide) = ([T::Acc::ZERO; BLOCK], [0.0; BLOCK]);
        for (k, column) in part.flat_map(|k| (0..columns).step_by(BLOCK).map(move |column| (k, column))) {
            let width = BLOCK.min(columns - column);
            let start = if mode == Mode::Max { T::Acc::NEG_INFINITY } else { T::Acc::ZERO };
            let bag = bags.bag(k);
            let is_long = mode != Mode::Max && bag.len() > CHAIN;
            let step = if is_long { CHAIN } else { bag.len().max(1) };
            if is_long {
                wide.fill(0.0);
            }
            let mut rows = 0;
            for begin in bag.clone().step_by(step) {
                let part = begin..bag.end.min(begin + step);
                let made = &mut block[..width];
                made.fill(start);
                if plain && width == BLOCK {
                    let from = shifted(weight.lanes, column as isize).as_ptr().cast_const();
                    // SAFETY: the indices were checked, and a row of the weight has the columns.
                    rows += unsafe { sums(&mut block, from, weight.strides[0], &indices[part]) };
                } else {
                    for i in part.filter(|i| Some(indices[*i]) != padding) {
                        rows += 1;
                        let at =
                            indices[i] as isize * weight.strides[0] + column as isize * weight.strides[1];
                        let factor = factors.as_ref().map(|factors| factors[i].to_acc());
                        // SAFETY: the index was checked, so that the weight has the row.
                        unsafe {
                            add(made, shifted(weight.lanes, at).as_ptr(), weight.strides[1], factor, mode);
                        }
                    }
                }
                if is_long {
                    wide.iter_mut().zip(&block[..width]).for_each(|(sum, part)| *sum += part.to_f64());
                }
            }
            if is_long {
                block.iter_mut().zip(&wide).for_each(|(sum, wide)| *sum = T::Acc::from_f64(*wide));
            }
            let made = &mut block[..BLOCK.min(columns - column)];
            if rows == 0 {
                made.fill(T::Acc::ZERO);
            } else if mode == Mode::Mean {
                let count = T::Acc::from_i64(rows);
                made.iter_mut().for_each(|sum| *sum = *sum / count);
            }
            // SAFETY: as above.
            narrow_slice(made, unsafe { to.slice_mut(k * columns + column, made.len()) });
        }
    })
}

/// Sums some columns of the rows at `indices` into `made`, and returns the number of rows.
///
/// # Safety
/// There must be the columns in a row for each index; the caller upholds this.
#[inline(always)]
unsafe fn sums<T: Float>(made: &mut [T::Acc; BLOCK], from: *const T, step: isize, indices: &[i64]) -> i64 {
    let mut sums = [T::Acc::ZERO; BLOCK];
    for i in indices {
        let row = from.wrapping_offset(*i as isize * step);
        for (l, sum) in sums.iter_mut().enumerate() {
            // SAFETY: as the caller guarantees.
            *sum += unsafe { T::load(row.add(l)) }.to_acc();
        }
    }
    *made = sums;
    indices.len() as i64
}

/// Accumulates a part of a row.
///
/// # Safety
/// There must be an element for each column, with these strides; the caller upholds this.
#[inline(always)]
#[allow(clippy::eq_op)]
unsafe fn add<T: Float>(made: &mut [T::Acc], row: *const T, step: isize, factor: Option<T::Acc>, mode: Mode) {
    let each = |made: &mut [T::Acc], f: &dyn Fn(T::Acc, T::Acc) -> T::Acc| {
        for (l, place) in made.iter_mut().enumerate() {
            // SAFETY: as the caller guarantees.
            *place = f(*place, unsafe { T::load(row.offset(l as isize * step)) }.to_acc());
        }
    };
    match (mode, factor) {
        (Mode::Max, _) => each(made, &|most, x| if (x > most) | (x != x) { x } else { most }),
        (_, Some(factor)) => each(made, &|sum, x| sum + x * factor),
        _ if step == 1 => {
            for (l, sum) in made.iter_mut().enumerate() {
                // SAFETY: as the caller guarantees.
                *sum += unsafe { T::load(row.add(l)) }.to_acc();
            }
        }
        _ => each(made, &|sum, x| sum + x),
    }
}

kernel!("embedding_bag", "TTOSObi>T", embedding_bag, [f32, f64, f16, bf16]);
