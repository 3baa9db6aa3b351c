//! Products of f32 and f64 by the `gemm` crate, and its calls.
//!
//! `gemm` packs its operands. It reads a transposed operand a few elements at a time, which can take as long as the product
//! itself if the row stride is a power of two and rows conflict in the cache: such an operand is transposed panel by panel
//! before `gemm` is called.

use super::panels::{self, Panels};
use super::product::{Batch, Matrix, Multiply, Tile};
use super::{direct, gemv, skinny};
use keyway_cpu_loops::transpose;
use keyway_sdk::author::{Error, Plain};

/// The maximum span, in bytes, of a transposed left operand that `gemm` reads in place.
const NEAR: usize = 1 << 18;
/// The number of outputs below which `gemm` does not pack.
const UNCOPIED: usize = 16 * 16;

/// Copies the addend into the output tile, to which `gemm` accumulates.
///
/// # Safety
/// As for [`Multiply::batch`], of this tile.
pub unsafe fn load_input<T: Plain>(tile: &Tile<T>, input: Matrix<*const T>) {
    for r in 0..tile.rows {
        let (to, from) =
            (tile.out.data.wrapping_add(r * tile.out.row), input.data.wrapping_add(r * input.row));
        // SAFETY: the caller guarantees the elements, and that the input shares no memory with the output.
        unsafe {
            if tile.out.column == 1 && input.column == 1 {
                to.copy_from_nonoverlapping(from, tile.columns);
            } else {
                (0..tile.columns)
                    .for_each(|c| to.add(c * tile.out.column).write(*from.add(c * input.column)));
            }
        }
    }
}

/// One serial product of f32, f64 or their complex numbers, plus `beta * out` if `beta` is given.
///
/// # Safety
/// As for [`Multiply::batch`], of this tile.
pub unsafe fn call_gemm<T: Plain>(tile: &Tile<T>, beta: Option<T>) {
    let Tile { rows, columns, inner, a, b, out, .. } = *tile;
    // SAFETY: the caller guarantees the elements; T is one of the types of `gemm`.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out.data,
            out.column as isize,
            out.row as isize,
            beta.is_some(),
            a.data,
            a.column as isize,
            a.row as isize,
            b.data,
            b.column as isize,
            b.row as isize,
            beta.unwrap_or_default(),
            tile.alpha,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl Panels for $t {
            type Sum = $t;

            fn in_place(whole: &Tile<Self>) -> (Option<Matrix<*const Self>>, Option<Matrix<*const Self>>) {
                let Tile { rows, columns, inner, a, b, out, .. } = *whole;
                let uncopied = inner == 0 || rows * columns <= UNCOPIED;
                // `gemm` packs an operand in L2 as fast; it reads single elements of `b`.
                let near = inner.saturating_mul(a.column).saturating_mul(size_of::<Self>()) <= NEAR
                    || out.column == 1 && direct::is_small::<Self>(rows, columns, inner);
                let dense = |m: Matrix<*const Self>| m.row == 1 && m.column > 1;
                ((uncopied || near || !dense(a)).then_some(a), (uncopied || !dense(b)).then_some(b))
            }

            fn sums(out: Matrix<*mut Self>) -> Option<Matrix<*mut Self>> {
                Some(out)
            }

            unsafe fn pack(to: *mut Self, step: usize, from: Matrix<*const Self>, (rows, columns): (usize, usize)) {
                // SAFETY: the caller guarantees the elements of source and target; an operand is packed only if its columns are
                // dense, see `in_place`.
                unsafe { transpose(to, step, from.data, from.column, columns, rows) };
            }

            fn input(tile: &Tile<Self>) -> Option<(Matrix<*const Self>, Self)> {
                tile.input
            }

            fn factor(tile: &Tile<Self>) -> Self {
                tile.alpha
            }

            unsafe fn begin(tile: &Tile<Self>) -> Option<Self> {
                let (input, beta) = tile.input?;
                // SAFETY: the caller guarantees the elements.
                unsafe { load_input(tile, input) };
                Some(beta)
            }

            unsafe fn end(_: &Tile<Self>, _: Matrix<*mut Self>) {}
        }

        impl Multiply for $t {
            unsafe fn batch(all: &Batch<Self>) -> Result<(), Error> {
                // SAFETY: the caller guarantees the elements.
                unsafe { gemv::multiply(all).or_else(|| skinny::multiply(all)).unwrap_or_else(|| panels::multiply(all)) }
            }
        }
    )*};
}
floats!(f32, f64);

#[cfg(test)]
mod tests {
    use super::super::product::multiply_one;
    use super::*;
    use keyway_sdk::author::Real;

    /// Compares a product whose `b` is row-major or transposed with sums in f64.
    fn check<T: Multiply + Real>(
        (rows, columns, inner): (usize, usize, usize),
        transposed: bool,
        added: bool,
    ) {
        let number = |i: usize| T::from_f64((i * 7 % 13) as f64 - 6.0);
        let a: Vec<T> = (0..rows * inner).map(number).collect();
        let b: Vec<T> = (0..inner * columns).map(|i| number(i + 5)).collect();
        let bias: Vec<T> = (0..columns).map(|i| number(i + 2)).collect();
        let mut out = vec![T::from_f64(f64::NAN); rows * columns];
        let (row, column) = if transposed { (1, inner) } else { (columns, 1) };
        let whole = Tile {
            rows,
            columns,
            inner,
            a: Matrix { data: a.as_ptr(), row: inner, column: 1 },
            b: Matrix { data: b.as_ptr(), row, column },
            out: Matrix { data: out.as_mut_ptr(), row: columns, column: 1 },
            input: added.then_some((Matrix { data: bias.as_ptr(), row: 0, column: 1 }, T::from_f64(3.0))),
            alpha: T::from_f64(2.0),
        };
        // SAFETY: the vectors have the elements of these sizes and strides; `out` is used here alone.
        unsafe { multiply_one(&whole) }.expect("memory");
        for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            let product = |k: usize| a[r * inner + k].to_f64() * b[k * row + c * column].to_f64();
            let expected =
                2.0 * (0..inner).map(product).sum::<f64>() + if added { 3.0 * bias[c].to_f64() } else { 0.0 };
            // Integers below 2^24, so that f32 sums are exact.
            assert_eq!(
                out[r * columns + c].to_f64(),
                expected,
                "{rows} {columns} {inner} {transposed} {added} at {r}, {c}"
            );
        }
    }

    #[test]
    fn products_are_exact_whichever_way_an_operand_lies() {
        // Below and above the packing threshold, one panel and several, sizes that tiles do not divide, an empty
        // reduction.
        for sizes in [(3, 5, 7), (17, 33, 40), (40, 21, 513), (130, 150, 1100), (20, 30, 0), (300, 260, 64)] {
            for (transposed, added) in [(false, false), (false, true), (true, false), (true, true)] {
                check::<f32>(sizes, transposed, added);
                check::<f64>(sizes, transposed, added);
            }
        }
    }
}
