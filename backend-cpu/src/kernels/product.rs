//! Matrix products, shared by `mm`, `addmm`, `bmm`, `baddbmm` and `mv`.
//!
//! The result is split into tiles that depend on the sizes alone. A tile is computed by one thread, so that its value does not
//! depend on the number of threads. The method depends on the element type:
//! - f32 and f64 by the `gemm` crate ([`gemm`](super::gemm)), vectors by [`gemv`](super::gemv);
//! - bf16 by [`bf16_panels`](super::bf16_panels) if the processor has AMX or AVX-512 BF16, otherwise as f16: widened to f32
//!   and accumulated there ([`panels`](super::panels));
//! - complex numbers by the `gemm` crate ([`complex_products`](super::complex_products));
//! - integers by register tiles ([`integers`](super::integers)); they wrap.

use super::buffer::Buffer;
use super::cells::copy_block;
use super::number::Number;
use keyway_cpu_loops::parallel_try;
use keyway_sdk::author::{Error, Lanes, Plain, View, ViewMut};

/// The maximum number of rows and columns of a tile: large enough that packing the operands is cheap.
const LARGE_TILE: usize = 512;
/// The minimum size to which a dimension is split.
const SMALL_TILE: usize = 128;
/// The number of multiplications below which a tile is not split: the time is close to the cost of dispatching to a thread.
pub const TILE_WORK: usize = 1 << 21;
/// The number of tiles above which smaller ones do not balance the threads better.
const ENOUGH_TILES: usize = 32;

/// A matrix in memory. Strides are in elements.
#[derive(Clone, Copy)]
pub struct Matrix<T> {
    pub data: T,
    pub row: usize,
    pub column: usize,
}

impl<T> Matrix<T> {
    /// The matrix with rows and columns exchanged.
    pub fn transposed(self) -> Self {
        Matrix { data: self.data, row: self.column, column: self.row }
    }
}

impl<T> Matrix<*const T> {
    /// The submatrix that starts at this element.
    pub fn at(self, row: usize, column: usize) -> Self {
        self.shifted(row * self.row + column * self.column)
    }

    fn shifted(self, elements: usize) -> Self {
        Matrix { data: self.data.wrapping_add(elements), ..self }
    }
}

impl<T> Matrix<*mut T> {
    /// The submatrix that starts at this element.
    pub fn at(self, row: usize, column: usize) -> Self {
        self.shifted(row * self.row + column * self.column)
    }

    fn shifted(self, elements: usize) -> Self {
        Matrix { data: self.data.wrapping_add(elements), ..self }
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
    /// The tensor that is added, with its factor; it shares no memory with `out`.
    pub input: Option<(Matrix<*const T>, T)>,
    pub alpha: T,
}

impl<T: Copy> Tile<T> {
    /// The tile of at most these rows and columns that starts at this element.
    pub fn part(&self, (row, column): (usize, usize), (rows, columns): (usize, usize)) -> Self {
        Tile {
            rows: rows.min(self.rows - row),
            columns: columns.min(self.columns - column),
            inner: self.inner,
            a: self.a.at(row, 0),
            b: self.b.at(0, column),
            out: self.out.at(row, column),
            input: self.input.map(|(m, beta)| (m.at(row, column), beta)),
            alpha: self.alpha,
        }
    }

    /// `out^T = b^T a^T`.
    pub fn transposed(self) -> Self {
        Tile {
            rows: self.columns,
            columns: self.rows,
            a: self.b.transposed(),
            b: self.a.transposed(),
            out: self.out.transposed(),
            input: self.input.map(|(m, beta)| (m.transposed(), beta)),
            ..self
        }
    }
}

/// A batch of products of one size.
#[derive(Clone, Copy)]
pub struct Batch<T> {
    pub count: usize,
    pub first: Tile<T>,
    /// The strides between consecutive products of `a`, `b`, `out` and `input`.
    pub steps: [usize; 4],
}

// SAFETY: a Batch is shared only during `multiply` and `multiply_one`, whose callers borrow all operands; threads write
// disjoint tiles of `out` and read the other operands.
unsafe impl<T: Sync> Sync for Batch<T> {}

impl<T: Copy> Batch<T> {
    /// A batch of one product.
    pub fn one(product: Tile<T>) -> Self {
        Batch { count: 1, first: product, steps: [0; 4] }
    }

    /// Product `i`.
    pub fn product(&self, i: usize) -> Tile<T> {
        let Tile { a, b, out, input, .. } = self.first;
        Tile {
            a: a.shifted(i * self.steps[0]),
            b: b.shifted(i * self.steps[1]),
            out: out.shifted(i * self.steps[2]),
            input: input.map(|(m, beta)| (m.shifted(i * self.steps[3]), beta)),
            ..self.first
        }
    }

    /// A batch of product `i` alone.
    pub fn only(&self, i: usize) -> Self {
        Batch::one(self.product(i))
    }

    /// `out^T = b^T a^T` for each product, with the batch strides of the operands exchanged.
    fn transposed(self) -> Self {
        let [a, b, out, input] = self.steps;
        Batch { first: self.first.transposed(), steps: [b, a, out, input], ..self }
    }
}

/// An element type of matrix products.
pub trait Multiply: Number + Plain {
    /// Computes the products. Rows of `out` are dense if its rows or its columns are, and the result is nonempty.
    ///
    /// # Safety
    /// All elements described by the sizes and strides of the products must exist, and those of `out` must be uniquely
    /// owned. [`multiply`] and the callers of [`multiply_one`] uphold this.
    unsafe fn batch(all: &Batch<Self>) -> Result<(), Error>;
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
    // SAFETY: sizes and strides are those of the call's tensors, whose elements the host guarantees.
    unsafe { run(Batch { count, first, steps: [a_step, b_step, out_step, input_step] }) }
}

/// Computes one product.
///
/// # Safety
/// As for [`Multiply::batch`].
pub unsafe fn multiply_one<T: Multiply>(whole: &Tile<T>) -> Result<(), Error> {
    // SAFETY: the caller guarantees the elements.
    unsafe { run(Batch::one(*whole)) }
}

/// # Safety
/// As for [`Multiply::batch`].
unsafe fn run<T: Multiply>(mut all: Batch<T>) -> Result<(), Error> {
    let Tile { rows, columns, out, .. } = all.first;
    if all.count == 0 || rows == 0 || columns == 0 {
        return Ok(());
    }
    if out.row == 1 && out.column > 1 && rows > 1 {
        all = all.transposed();
    }
    // SAFETY: the caller guarantees the elements.
    unsafe { T::batch(&all) }
}

/// If the input has strided rows and the output dense ones, replaces the input by a copy with the output's strides, for
/// kernels that add it row by row.
///
/// # Safety
/// As for [`Multiply::batch`]; the products must not be used after the returned buffer is dropped.
pub unsafe fn along<T: Multiply>(all: &mut Batch<T>) -> Result<Option<Buffer<T>>, Error> {
    let Tile { rows, columns, input, .. } = all.first;
    let Some((input, beta)) = input.filter(|(input, _)| input.column > 1 && columns > 1) else {
        return Ok(None);
    };
    let mut copy = Buffer::<T>::zeroed(all.count * rows * columns)?;
    let steps = [all.steps[3], input.row, input.column].map(|step| step as isize);
    // SAFETY: the caller guarantees the elements of the input; the copy has the same number and is uniquely owned.
    let (to, from) = unsafe { (Lanes::new(copy.as_mut_ptr()), Lanes::new(input.data.cast_mut())) };
    let dense = [(rows * columns) as isize, columns as isize, 1];
    copy_block(to, &dense, from, &steps, &[all.count, rows, columns])?;
    all.first.input = Some((Matrix { data: copy.as_ptr(), row: columns, column: 1 }, beta));
    all.steps[3] = rows * columns;
    Ok(Some(copy))
}

/// The number of rows and columns of a tile.
pub fn tile_sizes(count: usize, rows: usize, columns: usize, inner: usize) -> (usize, usize) {
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

/// Calls `body` with each product's number and the first row and column of each of its tiles, in parallel.
pub fn each_tile<T>(
    all: &Batch<T>,
    (tall, wide): (usize, usize),
    body: impl Fn(usize, (usize, usize)) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let Tile { rows, columns, inner, .. } = all.first;
    let (down, across) = (rows.div_ceil(tall), columns.div_ceil(wide));
    let work = tall.saturating_mul(wide).saturating_mul(inner.max(1));
    parallel_try(all.count * down * across, TILE_WORK / work.max(1), |mut range| {
        range.try_for_each(|i| {
            let (product, tile) = (i / (down * across), i % (down * across));
            body(product, (tile / across * tall, tile % across * wide))
        })
    })
}
