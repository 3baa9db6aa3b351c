//! Type-erased copies between strided memory and dense blocks.

use crate::transpose::transpose;

/// A block of elements: its extent, and its strides in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rectangle {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// Calls a function with the unsigned integer of this element size.
macro_rules! by_size {
    ($bytes:expr, $copy:ident($to:expr, $from:expr, $block:expr)) => {
        match $bytes {
            1 => $copy::<u8>($to.cast(), $from.cast(), $block),
            2 => $copy::<u16>($to.cast(), $from.cast(), $block),
            4 => $copy::<u32>($to.cast(), $from.cast(), $block),
            8 => $copy::<u64>($to.cast(), $from.cast(), $block),
            _ => $copy::<u128>($to.cast(), $from.cast(), $block),
        }
    };
}

/// Copies a block to dense memory, row by row.
///
/// # Safety
/// `from` must have the block's elements of `bytes` (1, 2, 4, 8 or 16) each and be aligned to that, and `to` must have capacity for
/// them; they must not overlap. The caller's iteration upholds this.
pub(crate) unsafe fn pack(bytes: usize, to: *mut u8, from: *const u8, block: Rectangle) {
    // SAFETY: as the caller guarantees.
    unsafe { by_size!(bytes, gather(to, from, block)) }
}

/// Copies dense memory to a block, row by row.
///
/// # Safety
/// As for [`pack`], with the block at `to`.
pub(crate) unsafe fn unpack(bytes: usize, to: *mut u8, from: *const u8, block: Rectangle) {
    // SAFETY: as the caller guarantees.
    unsafe { by_size!(bytes, scatter(to, from, block)) }
}

/// # Safety
/// As for [`pack`].
unsafe fn gather<W: Copy>(to: *mut W, from: *const W, block: Rectangle) {
    let Rectangle { rows, columns, row, column } = block;
    // SAFETY: the caller guarantees the elements of source and target for each row and column.
    unsafe {
        if row == 0 && rows > 1 {
            gather(to, from, Rectangle { rows: 1, ..block });
            (1..rows).for_each(|r| to.add(r * columns).copy_from_nonoverlapping(to, columns));
        } else if column == 0 {
            (0..rows).for_each(|r| {
                let value = *from.add(r * row);
                (0..columns).for_each(|c| to.add(r * columns + c).write(value));
            });
        } else if column == 1 {
            (0..rows).for_each(|r| to.add(r * columns).copy_from_nonoverlapping(from.add(r * row), columns));
        } else if row == 1 {
            transpose(to, columns, from, column, columns, rows);
        } else if row < column {
            by_columns(to, from, block);
        } else {
            for r in 0..rows {
                let (to, from) = (to.add(r * columns), from.add(r * row));
                (0..columns).for_each(|c| to.add(c).write(*from.add(c * column)));
            }
        }
    }
}

/// # Safety
/// As for [`unpack`].
unsafe fn scatter<W: Copy>(to: *mut W, from: *const W, block: Rectangle) {
    let Rectangle { rows, columns, row, column } = block;
    if row == 1 {
        // SAFETY: the caller guarantees the elements of source and target for each row and column.
        return unsafe { transpose(to, column, from, columns, rows, columns) };
    }
    for r in 0..rows {
        // SAFETY: as above.
        unsafe {
            let (to, from) = (to.add(r * row), from.add(r * columns));
            (0..columns).for_each(|c| to.add(c * column).write(*from.add(c)));
        }
    }
}

/// Copies a block to dense memory, column by column.
///
/// # Safety
/// As for [`pack`].
unsafe fn by_columns<W: Copy>(to: *mut W, from: *const W, block: Rectangle) {
    for c in 0..block.columns {
        for r in 0..block.rows {
            // SAFETY: the caller guarantees the elements of source and target for each row and column.
            unsafe { to.add(r * block.columns + c).write(*from.add(r * block.row + c * block.column)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Extents and strides for every branch: dense rows, dense columns and neither, repeated rows and columns.
    const BLOCKS: [(usize, usize, usize, usize); 10] = [
        (3, 5, 7, 1),
        (16, 24, 1, 16),
        (19, 21, 1, 23),
        (5, 3, 1, 9),
        (4, 6, 2, 11),
        (4, 6, 20, 3),
        (6, 5, 0, 1),
        (6, 5, 0, 3),
        (6, 5, 4, 0),
        (6, 5, 0, 0),
    ];

    fn check(bytes: usize) {
        for (rows, columns, row, column) in BLOCKS {
            let block = Rectangle { rows, columns, row, column };
            let last = (rows - 1) * row + (columns - 1) * column;
            // Words of 16 bytes, so that elements of every size are aligned.
            let mut memory: Vec<u128> = (0..=last as u128)
                .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
                .collect();
            let mut dense = vec![0u128; rows * columns];
            let at = |memory: &[u128], i: usize| {
                // SAFETY: the words are initialised bytes, more than `len`.
                let all =
                    unsafe { std::slice::from_raw_parts(memory.as_ptr().cast::<u8>(), memory.len() * 16) };
                all[i * bytes..(i + 1) * bytes].to_vec()
            };
            // SAFETY: both have capacity for the block and do not overlap.
            unsafe { pack(bytes, dense.as_mut_ptr().cast(), memory.as_ptr().cast(), block) };
            for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
                assert_eq!(
                    at(&dense, r * columns + c),
                    at(&memory, r * row + c * column),
                    "{block:?} {bytes}"
                );
            }
            if row == 0 || column == 0 {
                continue;
            }
            let before = memory.clone();
            dense.iter_mut().for_each(|word| *word = !*word);
            // SAFETY: as above.
            unsafe { unpack(bytes, memory.as_mut_ptr().cast(), dense.as_ptr().cast(), block) };
            let mut untouched = vec![true; last + 1];
            for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
                untouched[r * row + c * column] = false;
                assert_eq!(
                    at(&memory, r * row + c * column),
                    at(&dense, r * columns + c),
                    "{block:?} {bytes}"
                );
            }
            for i in (0..=last).filter(|i| untouched[*i]) {
                assert_eq!(at(&memory, i), at(&before, i), "{block:?} {bytes}: wrote beside the block");
            }
        }
    }

    #[test]
    fn blocks_of_any_strides_are_copied_for_each_size_of_element() {
        // Fewer sizes under Miri, which is a thousand times slower.
        let sizes: &[usize] = if cfg!(miri) { &[1, 16] } else { &[1, 2, 4, 8, 16] };
        sizes.iter().copied().for_each(check);
    }
}
