//! Copies between strided memory and dense blocks, by the size of an element alone.

/// A block of elements: its extent, and its strides in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rectangle {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// Side of the squares in which a transposed block is copied.
const SQUARE: usize = 8;

/// Calls a function with the unsigned integer of that many bytes.
macro_rules! by_size {
    ($bytes:expr, $copy:ident($to:expr, $from:expr, $block:expr)) => {
        match $bytes {
            1 => $copy::<u8>($to.cast(), $from.cast(), $block),
            2 => $copy::<u16>($to.cast(), $from.cast(), $block),
            4 => $copy::<u32>($to.cast(), $from.cast(), $block),
            _ => $copy::<u64>($to.cast(), $from.cast(), $block),
        }
    };
}

/// Copies a block, row after row, to dense memory.
///
/// # Safety
/// `from` must have the block's elements of `bytes` (1, 2, 4 or 8) each and be aligned to that, `to` room for them;
/// they do not meet. The walk upholds this.
pub(crate) unsafe fn pack(bytes: usize, to: *mut u8, from: *const u8, block: Rectangle) {
    // SAFETY: as the caller guarantees.
    unsafe { by_size!(bytes, gather(to, from, block)) }
}

/// Copies dense memory, row after row, to a block.
///
/// # Safety
/// As for [`pack`], with the block at `to`.
pub(crate) unsafe fn unpack(bytes: usize, to: *mut u8, from: *const u8, block: Rectangle) {
    // SAFETY: as the caller guarantees.
    unsafe { by_size!(bytes, scatter(to, from, block)) }
}

/// # Safety
/// As for [`pack`].
unsafe fn gather<W: Copy + Default>(to: *mut W, from: *const W, block: Rectangle) {
    let Rectangle { rows, columns, row, column } = block;
    // SAFETY: the caller guarantees an element and a place for each row and column.
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
            (0..rows)
                .for_each(|r| to.add(r * columns).copy_from_nonoverlapping(from.add(r * row), columns));
        } else if row == 1 {
            transpose(to, from, block);
        } else if row < column {
            by_columns(to, from, block, 0..rows, 0..columns);
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
    for r in 0..rows {
        // SAFETY: the caller guarantees an element and a place for each row and column.
        unsafe {
            let (to, from) = (to.add(r * row), from.add(r * columns));
            (0..columns).for_each(|c| to.add(c * column).write(*from.add(c)));
        }
    }
}

/// The part of a block that lies in these rows and columns, in the order of its columns.
///
/// # Safety
/// As for [`pack`].
unsafe fn by_columns<W: Copy>(
    to: *mut W,
    from: *const W,
    block: Rectangle,
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
) {
    for c in columns {
        for r in rows.clone() {
            // SAFETY: the caller guarantees an element and a place for each row and column.
            unsafe { to.add(r * block.columns + c).write(*from.add(r * block.row + c * block.column)) };
        }
    }
}

/// A block whose columns are dense: by squares, each of which is read and written by whole vectors.
///
/// # Safety
/// As for [`pack`].
unsafe fn transpose<W: Copy + Default>(to: *mut W, from: *const W, block: Rectangle) {
    let (rows, columns) = (block.rows - block.rows % SQUARE, block.columns - block.columns % SQUARE);
    // SAFETY: the caller guarantees an element and a place for each row and column.
    unsafe {
        for c in (0..columns).step_by(SQUARE) {
            for r in (0..rows).step_by(SQUARE) {
                let (to, from) = (to.add(r * block.columns + c), from.add(r + c * block.column));
                let mut lines = [[W::default(); SQUARE]; SQUARE];
                for (i, line) in lines.iter_mut().enumerate() {
                    *line = from.add(i * block.column).cast::<[W; SQUARE]>().read_unaligned();
                }
                for i in 0..SQUARE {
                    let line: [W; SQUARE] = std::array::from_fn(|k| lines[k][i]);
                    to.add(i * block.columns).cast::<[W; SQUARE]>().write_unaligned(line);
                }
            }
        }
        by_columns(to, from, block, rows..block.rows, 0..columns);
        by_columns(to, from, block, 0..block.rows, columns..block.columns);
    }
}
