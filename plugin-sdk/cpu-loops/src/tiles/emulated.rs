//! Emulation of the tile unit, and of vector dot products, in plain Rust.

use super::pack::SIDE;
use super::unit::{Block, Gathered, Unit};

/// The number of rows of a tile.
const LINES: usize = 16;

/// A tile unit in plain Rust, after the processor's manual: for tests on machines without one.
#[derive(Clone, Copy, Debug)]
pub struct Emulated;

/// Vector dot products in plain Rust, likewise.
#[derive(Clone, Copy, Debug)]
pub struct EmulatedDots;

/// A tile of accumulators: `[row][column]`.
type Sums = [[f32; LINES]; LINES];
/// A tile of elements: `[line][element]`.
type Elements = [[u16; SIDE]; LINES];

/// Flushes a subnormal value to 0, as the unit does.
fn flushed(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

fn multiply_add(a: u16, b: u16, sum: f32) -> f32 {
    let [a, b] = [a, b].map(|bits| flushed(f32::from_bits(u32::from(bits) << 16)));
    flushed(a.mul_add(b, flushed(sum)))
}

/// `tdpbf16ps`: even and odd elements are summed separately, then both sums are added.
fn multiply_tiles(sums: &mut Sums, left: &Elements, right: &Elements) {
    for (sums, left) in sums.iter_mut().zip(left) {
        for (column, sum) in sums.iter_mut().enumerate() {
            let (mut even, mut odd) = (0.0, 0.0);
            for (pair, line) in right.iter().enumerate() {
                even = multiply_add(left[2 * pair], line[2 * column], even);
                odd = multiply_add(left[2 * pair + 1], line[2 * column + 1], odd);
            }
            *sum = flushed(flushed(*sum) + flushed(even + odd));
        }
    }
}

/// `vdpbf16ps` of each row: the odd elements of a pair are added first.
fn multiply_vectors(sums: &mut Sums, left: &Elements, right: &Elements) {
    for (sums, left) in sums.iter_mut().zip(left) {
        for (column, sum) in sums.iter_mut().enumerate() {
            for (pair, line) in right.iter().enumerate() {
                *sum = multiply_add(left[2 * pair + 1], line[2 * column + 1], *sum);
                *sum = multiply_add(left[2 * pair], line[2 * column], *sum);
            }
        }
    }
}

/// Accumulates the product of two tiles.
type Multiply = fn(&mut Sums, &Elements, &Elements);

/// `tileloadd` of elements.
///
/// # Safety
/// There must be 16 lines of 64 bytes, with stride `line` in elements.
unsafe fn load(from: *const u16, line: usize) -> Elements {
    // SAFETY: as the caller guarantees; elements are aligned as their arrays are.
    std::array::from_fn(|i| unsafe { from.add(i * line).cast::<[u16; SIDE]>().read() })
}

/// Implements [`Unit::block`].
///
/// # Safety
/// As for [`Unit::block`].
unsafe fn emulated_block(multiply: Multiply, block: &Block) {
    for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut sums = [[0.0; LINES]; LINES];
        // SAFETY: the caller guarantees panels and sums.
        unsafe {
            let place = |row: usize| block.sums.add((i * LINES + row) * block.row + j * LINES);
            if block.add {
                sums = std::array::from_fn(|row| place(row).cast::<[f32; LINES]>().read());
            }
            for step in 0..block.steps {
                let rows = block.left.at(step);
                let left = load(rows.data.add(i * rows.half), rows.line);
                let right = load(block.right.add((2 * step + j) * LINES * SIDE), SIDE);
                multiply(&mut sums, &left, &right);
            }
            (0..LINES).for_each(|row| place(row).cast::<[f32; LINES]>().write(sums[row]));
        }
    }
}

/// Implements [`Unit::gathered`].
///
/// # Safety
/// As for [`Unit::gathered`].
unsafe fn emulated_gathered(multiply: Multiply, block: &Gathered<'_>) {
    for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().filter(|(_, j)| *j == 0 || !block.narrow) {
        let mut sums = [[0.0; LINES]; LINES];
        for (step, offset) in block.offsets.iter().enumerate() {
            // SAFETY: the caller guarantees rows and panel.
            let (left, right) = unsafe {
                let rows = block.left.byte_add(*offset).add(i * LINES * block.line);
                (load(rows, block.line), load(block.right.add((2 * step + j) * LINES * SIDE), SIDE))
            };
            multiply(&mut sums, &left, &right);
        }
        for (row, sums) in sums.iter().enumerate() {
            // SAFETY: the caller guarantees the sums.
            unsafe {
                let place = block.sums.add((i * LINES + row) * SIDE + j * LINES);
                place.cast::<[f32; LINES]>().write(*sums);
            }
        }
    }
}

macro_rules! emulated {
    ($($unit:ident: $multiply:ident),+) => {$(
        impl Unit for $unit {
            const VECTORS: bool = false;

            fn with_tiles<R>(self, body: impl FnOnce() -> R) -> R {
                body()
            }

            unsafe fn block(self, block: &Block) {
                // SAFETY: as the caller guarantees.
                unsafe { emulated_block($multiply, block) }
            }

            unsafe fn gathered(self, block: &Gathered<'_>) {
                // SAFETY: as the caller guarantees.
                unsafe { emulated_gathered($multiply, block) }
            }
        }
    )+};
}
emulated!(Emulated: multiply_tiles, EmulatedDots: multiply_vectors);
