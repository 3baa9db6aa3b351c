//! Products of matrices, which `mm`, `addmm`, `bmm` and `baddbmm` share.
//!
//! The result is cut into tiles by the sizes alone. A tile is one serial call of the `gemm` crate, so that
//! its value does not depend on how many threads take part. f16 and bf16 are widened to f32 panel by panel
//! and summed in f32; integers wrap.

use super::gemm::call_gemm;
use super::number::Number;
use keyway_sdk::author::{Error, Float, Plain, Scratch, View, ViewMut, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// The most rows and columns of a tile: large enough that packing the operands costs little.
const LARGE_TILE: usize = 512;
/// A dimension is not cut further than to this.
const SMALL_TILE: usize = 128;
/// Multiplications below which a tile is not cut: their time is near that of handing work to a thread.
const TILE_WORK: usize = 1 << 21;
/// Tiles beyond which more would not help.
const ENOUGH_TILES: usize = 32;
/// The panels of f16, bf16 and integers have this many elements along the summed dimension.
const PANEL: usize = 256;

/// A matrix in memory. Strides are in elements.
#[derive(Clone, Copy)]
pub struct Matrix<T> {
    pub data: T,
    pub row: usize,
    pub column: usize,
}

impl<T> Matrix<*const T> {
    /// The matrix with rows and columns exchanged.
    pub fn transposed(self) -> Self {
        Matrix { data: self.data, row: self.column, column: self.row }
    }

    /// The part that begins at this element.
    pub fn at(self, row: usize, column: usize) -> Self {
        Matrix { data: self.data.wrapping_add(row * self.row + column * self.column), ..self }
    }
}

/// One tile of `out = beta * input + alpha * a * b`, or a whole product.
#[derive(Clone, Copy)]
pub struct Tile<T> {
    pub rows: usize,
    pub columns: usize,
    pub inner: usize,
    pub a: Matrix<*const T>,
    pub b: Matrix<*const T>,
    pub out: Matrix<*mut T>,
    /// The tensor that is added, with its factor; it is not `out` and shares no memory with it.
    pub input: Option<(Matrix<*const T>, T)>,
    pub alpha: T,
}

/// The whole of a batch of products.
struct Batch<T> {
    count: usize,
    first: Tile<T>,
    /// Steps from one product to the next: `a`, `b`, `out`, `input`.
    steps: [usize; 4],
}

// SAFETY: a Batch is shared only for the time of `multiply`, whose caller holds all four views; threads
// write to disjoint tiles of `out` and read the rest.
unsafe impl<T: Sync> Sync for Batch<T> {}

/// An element type that matrices can be multiplied of.
pub trait Multiply: Number + Plain {
    /// Computes one tile.
    ///
    /// # Safety
    /// Each element that sizes and strides of the tile name must exist, and nobody else may use those of
    /// `out`. [`multiply`] upholds this.
    unsafe fn tile(tile: &Tile<Self>) -> Result<(), Error>;

    /// Computes a product of one column in parallel, where there is a faster way than tiles.
    ///
    /// # Safety
    /// As for [`Multiply::tile`].
    unsafe fn column(tile: &Tile<Self>) -> Option<Result<(), Error>> {
        let _ = tile;
        None
    }
}

/// `out = beta * input + alpha * a * b` for matrices, or for batches of them in a first dimension.
pub fn multiply<T: Multiply>(
    a: View<'_, T>,
    b: View<'_, T>,
    mut out: ViewMut<'_, T>,
    input: Option<(View<'_, T>, T)>,
    alpha: T,
) -> Result<(), Error> {
    let ndim = out.ndim();
    let size = |sizes: &[i64], i: usize| sizes.get(i).copied().unwrap_or(1).max(0) as usize;
    let (batch, row, column) = (usize::from(ndim == 3), ndim.wrapping_sub(2), ndim.wrapping_sub(1));
    if !(2..=3).contains(&ndim) || a.ndim() != ndim || b.ndim() != ndim {
        let got = format!("{:?} and {:?}", a.sizes(), b.sizes());
        return Err(Error::InvalidArgument {
            argument: "mat1, mat2",
            expected: "matrices or batches".into(),
            got,
        });
    }
    let lay = |strides: &[i64]| {
        (size(strides, row), size(strides, column), if batch == 1 { size(strides, 0) } else { 0 })
    };
    let place = |view: View<'_, T>| {
        let (row, column, step) = lay(view.strides());
        (Matrix { data: view.as_ptr(), row, column }, step)
    };
    let ((a_matrix, a_step), (b_matrix, b_step)) = (place(a), place(b));
    let (out_row, out_column, out_step) = lay(out.strides());
    let (input, input_step) = match input {
        Some((view, beta)) => {
            let (matrix, step) = place(view);
            (Some((matrix, beta)), step)
        }
        None => (None, 0),
    };
    let first = Tile {
        rows: size(out.sizes(), row),
        columns: size(out.sizes(), column),
        inner: size(a.sizes(), column),
        a: a_matrix,
        b: b_matrix,
        out: Matrix { data: out.as_mut_ptr(), row: out_row, column: out_column },
        input,
        alpha,
    };
    let count = if batch == 1 { size(out.sizes(), 0) } else { 1 };
    if count == 0 || first.rows == 0 || first.columns == 0 {
        return Ok(());
    }
    if count == 1 {
        // SAFETY: sizes and strides are those of the call's tensors, whose elements the host guarantees.
        return unsafe { multiply_one(&first) };
    }
    run(&Batch { count, first, steps: [a_step, b_step, out_step, input_step] })
}

/// One whole product.
///
/// # Safety
/// As for [`Multiply::tile`].
pub unsafe fn multiply_one<T: Multiply>(whole: &Tile<T>) -> Result<(), Error> {
    if whole.rows == 0 || whole.columns == 0 {
        return Ok(());
    }
    // SAFETY: the caller guarantees the elements.
    match unsafe { T::column(whole) } {
        Some(done) => done,
        None => run(&Batch { count: 1, first: *whole, steps: [0; 4] }),
    }
}

/// The rows and columns of a tile.
fn tile_sizes(count: usize, rows: usize, columns: usize, inner: usize) -> (usize, usize) {
    let (mut tall, mut wide) = (rows.min(LARGE_TILE), columns.min(LARGE_TILE));
    let tiles = |tall, wide| count * rows.div_ceil(tall) * columns.div_ceil(wide);
    while tiles(tall, wide) < ENOUGH_TILES && tall * wide * inner.max(1) >= 2 * TILE_WORK {
        if wide >= tall && wide >= 2 * SMALL_TILE {
            wide = wide.div_ceil(2).next_multiple_of(32);
        } else if tall >= 2 * SMALL_TILE {
            tall = tall.div_ceil(2).next_multiple_of(32);
        } else {
            break;
        }
    }
    (tall, wide)
}

fn run<T: Multiply>(all: &Batch<T>) -> Result<(), Error> {
    let Tile { rows, columns, inner, .. } = all.first;
    let (tall, wide) = tile_sizes(all.count, rows, columns, inner);
    let (down, across) = (rows.div_ceil(tall), columns.div_ceil(wide));
    let work = tall.saturating_mul(wide).saturating_mul(inner.max(1));
    let failed = std::sync::Mutex::new(None);
    parallel_for(all.count * down * across, (TILE_WORK / work.max(1)).max(1), |range| {
        for i in range {
            let (product, tile) = (i / (down * across), i % (down * across));
            let (row, column) = ((tile / across) * tall, (tile % across) * wide);
            let Tile { a, b, out, input, alpha, .. } = all.first;
            let shift =
                |m: Matrix<*const T>, step: usize| Matrix { data: m.data.wrapping_add(product * step), ..m };
            let offset = product * all.steps[2] + row * out.row + column * out.column;
            let part = Tile {
                rows: tall.min(rows - row),
                columns: wide.min(columns - column),
                inner,
                a: shift(a, all.steps[0]).at(row, 0),
                b: shift(b, all.steps[1]).at(0, column),
                out: Matrix { data: out.data.wrapping_add(offset), ..out },
                input: input.map(|(m, beta)| (shift(m, all.steps[3]).at(row, column), beta)),
                alpha,
            };
            // SAFETY: the tiles lie within the call's tensors and those of `out` are disjoint.
            if let Err(error) = unsafe { T::tile(&part) } {
                failed.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
            }
        }
    })?;
    failed.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
}

/// Copies `rows` by `columns` elements into a panel in row-major order.
///
/// # Safety
/// The elements must exist; the caller upholds this.
unsafe fn pack<T: Plain, P>(
    panel: &mut [P],
    from: Matrix<*const T>,
    rows: usize,
    columns: usize,
    widen: impl Fn(T) -> P,
) {
    for r in 0..rows {
        for (c, slot) in panel[r * columns..(r + 1) * columns].iter_mut().enumerate() {
            // SAFETY: the caller guarantees the elements.
            *slot = widen(unsafe { *from.data.add(r * from.row + c * from.column) });
        }
    }
}

/// A tile by way of panels of an accumulation type `P`.
///
/// # Safety
/// As for [`Multiply::tile`].
unsafe fn by_panels<T: Plain, P: Plain + Number>(
    tile: &Tile<T>,
    widen: impl Fn(T) -> P,
    narrow: impl Fn(P) -> T,
    add: impl Fn(&Tile<P>),
) -> Result<(), Error> {
    let Tile { rows, columns, inner, out, .. } = *tile;
    let depth = inner.min(PANEL);
    let mut sum = Scratch::<P>::zeroed(rows * columns)?;
    let mut left = Scratch::<P>::zeroed(rows * depth)?;
    let mut right = Scratch::<P>::zeroed(depth * columns)?;
    for begin in (0..inner).step_by(PANEL) {
        let n = PANEL.min(inner - begin);
        // SAFETY: the caller guarantees the elements.
        unsafe {
            pack(&mut left, tile.a.at(0, begin), rows, n, &widen);
            pack(&mut right, tile.b.at(begin, 0), n, columns, &widen);
        }
        add(&Tile {
            rows,
            columns,
            inner: n,
            a: Matrix { data: left.as_ptr(), row: n, column: 1 },
            b: Matrix { data: right.as_ptr(), row: columns, column: 1 },
            out: Matrix { data: sum.as_mut_ptr(), row: columns, column: 1 },
            input: None,
            alpha: P::from_i64(1),
        });
    }
    let alpha = widen(tile.alpha);
    for r in 0..rows {
        for c in 0..columns {
            let mut value = alpha.times(sum[r * columns + c]);
            // SAFETY: the caller guarantees the elements.
            unsafe {
                if let Some((input, beta)) = tile.input {
                    value = value
                        .plus(widen(beta).times(widen(*input.data.add(r * input.row + c * input.column))));
                }
                *out.data.add(r * out.row + c * out.column) = narrow(value);
            }
        }
    }
    Ok(())
}

macro_rules! by_f32 {
    ($($t:ty),*) => {$(
        impl Multiply for $t {
            unsafe fn tile(tile: &Tile<$t>) -> Result<(), Error> {
                // SAFETY: the caller guarantees the tile; `by_panels` gives complete panels.
                unsafe { by_panels(tile, |x: $t| x.to_acc(), <$t>::from_acc, |panel| call_gemm(panel, Some(1.0))) }
            }
        }
    )*};
}
by_f32!(f16, bf16);

/// Adds the product of two row-major panels to a third.
fn add_rows<T: Number + Plain>(panel: &Tile<T>) {
    let Tile { rows, columns, inner, a, b, out, .. } = *panel;
    for r in 0..rows {
        // SAFETY: `by_panels` gives complete row-major panels, of which `out` is borrowed by nobody else.
        let (left, sums) = unsafe {
            (
                std::slice::from_raw_parts(a.data.add(r * inner), inner),
                std::slice::from_raw_parts_mut(out.data.add(r * columns), columns),
            )
        };
        for (k, &x) in left.iter().enumerate() {
            // SAFETY: as above.
            let right = unsafe { std::slice::from_raw_parts(b.data.add(k * columns), columns) };
            for (sum, &y) in sums.iter_mut().zip(right) {
                *sum = sum.plus(x.times(y));
            }
        }
    }
}

macro_rules! by_loop {
    ($($t:ty),*) => {$(
        impl Multiply for $t {
            unsafe fn tile(tile: &Tile<$t>) -> Result<(), Error> {
                // SAFETY: the caller guarantees the tile.
                unsafe { by_panels(tile, |x: $t| x, |x: $t| x, add_rows) }
            }
        }
    )*};
}
by_loop!(i8, i16, i32, i64, u8, u16, u32, u64);
