//! `eye`, `tril` and `triu`: matrices whose elements depend on their position relative to the diagonal.

use super::cells::{Cells, cell_kernel, copy_all, copy_run, shifted};
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, parallel_for};
use keyway_sdk::half::{bf16, f16};

fn eye<T: Element>(call: &Call) -> Result<(), Error> {
    call.map0(Cost::Cheap, T::default)?;
    let out = Cells::<T>::output(call, 0)?;
    let (&[rows, columns], &[down, across]) = (&out.sizes[..], &out.strides[..]) else { return Ok(()) };
    for i in 0..rows.min(columns) as isize {
        // SAFETY: an element of the output's diagonal, written by this thread alone.
        unsafe { out.lanes.as_ptr().offset(i * (down + across)).write(T::from_i64(1)) };
    }
    Ok(())
}

/// Copies the elements on and below the diagonal with offset `diagonal` if `lower`, otherwise those on and above it; other
/// elements are 0. Lines are contiguous in the output: its rows, or the columns of a transposed output.
fn part<C: Element>(call: &Call, lower: bool) -> Result<(), Error> {
    let (from, out) = (Cells::<C>::argument(call, 0)?, Cells::<C>::output(call, 0)?);
    let diagonal = call.int(1)?;
    let (ndim, n) = (out.sizes.len(), out.numel());
    if n == 0 || ndim < 2 {
        return Ok(());
    }
    let (batch, [rows, columns]) = (ndim - 2, [ndim - 2, ndim - 1]);
    let transposed = out.strides[columns].abs() > out.strides[rows].abs();
    // The diagonal itself is preserved by both; the elements below it in rows are above it in columns.
    let (line, along, before, diagonal) = match transposed {
        false => (rows, columns, lower, diagonal),
        true => (columns, rows, !lower, diagonal.saturating_neg()),
    };
    let mut in_place = from.is_at(&out);
    if !in_place && from.strides[along] != 1 {
        copy_all(&out, &from)?;
        in_place = true;
    }
    let (lines, len) = (out.sizes[line], out.sizes[along]);
    let offset = |strides: &[isize], mut matrix: usize| {
        let mut at = 0;
        for d in (0..batch).rev() {
            at += (matrix % out.sizes[d]) as isize * strides[d];
            matrix /= out.sizes[d];
        }
        at
    };
    parallel_for(n / len, (Cost::Cheap.grain() / len).max(1), |units| {
        for unit in units {
            let (matrix, i) = (unit / lines, unit % lines);
            let start = |cells: &Cells<'_, C>| {
                let at = offset(&cells.strides, matrix) + i as isize * cells.strides[line];
                shifted(cells.lanes, at).as_ptr()
            };
            // The first element that is not preserved, or the first that is.
            let middle = diagonal.saturating_add(i as i64).saturating_add(i64::from(before));
            let middle = middle.clamp(0, len as i64) as usize;
            let (kept, dropped) = if before { (0..middle, middle..len) } else { (middle..len, 0..middle) };
            let (to, step) = (start(&out), out.strides[along]);
            // SAFETY: the line is within the output and the input, which have the same shape, and each line belongs to one
            // unit.
            unsafe {
                if !in_place {
                    let (to, from) = (to.offset(kept.start as isize * step), start(&from).add(kept.start));
                    copy_run(to, step, from.cast_const(), 1, kept.len());
                }
                let to = to.offset(dropped.start as isize * step);
                match step {
                    1 => to.write_bytes(0, dropped.len()),
                    _ => (0..dropped.len() as isize).for_each(|l| to.offset(l * step).write(C::default())),
                }
            }
        }
    })
}

fn tril<C: Element>(call: &Call) -> Result<(), Error> {
    part::<C>(call, true)
}

fn triu<C: Element>(call: &Call) -> Result<(), Error> {
    part::<C>(call, false)
}

kernel!("eye", "T>T", eye, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
cell_kernel!("tril", "Ti>T", tril);
cell_kernel!("triu", "Ti>T", triu);
