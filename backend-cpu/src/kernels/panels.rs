//! Products of floats by the `gemm` crate, from packed panels if it cannot read an operand in place; small products by
//! [`direct`].
//!
//! A panel is a part of an operand along the reduction dimension, stored as dense rows. It is packed once, in parallel, and
//! read by all tiles of the result. f16 and bf16 are always packed, which widens them to f32, and their accumulators are in
//! separate memory until the last panel.

use super::gemm::call_gemm;
use super::product::{Batch, Matrix, Multiply, TILE_WORK, Tile, along, each_tile, tile_sizes};
use super::widen::{finish, widen_matrix};
use super::{bf16_panels, direct, gemv, skinny};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::Lanes as Elements;
use keyway_sdk::author::{Error, Lanes, Real, Scratch};
use keyway_sdk::half::{bf16, f16};

/// The maximum number of elements of a panel along the reduction dimension: the block size of `gemm`.
const DEPTH: usize = 512;
/// Rows of a panel that are packed per work item, and the number of elements that justifies another thread.
const PIECE: (usize, usize) = (64, 1 << 15);

/// An element type of products by `gemm`, directly or as panels widened to `Sum`.
pub trait Panels: Multiply {
    /// The accumulation type.
    type Sum: Real + Elements<Acc = Self::Sum>;

    /// The operands of a product; `None` for one that `gemm` cannot read in place.
    #[expect(clippy::type_complexity, reason = "two matrices")]
    fn in_place(whole: &Tile<Self>) -> (Option<Matrix<*const Self::Sum>>, Option<Matrix<*const Self::Sum>>);

    /// The output as accumulators, if it has the accumulation type.
    fn sums(out: Matrix<*mut Self>) -> Option<Matrix<*mut Self::Sum>>;

    /// Packs rows of a panel with stride `step`.
    ///
    /// # Safety
    /// The elements of source and target must exist, and those of the target must be uniquely owned.
    unsafe fn pack(to: *mut Self::Sum, step: usize, from: Matrix<*const Self>, sizes: (usize, usize));

    /// The addend of a tile and its factor, if the epilogue adds it.
    fn input(tile: &Tile<Self>) -> Option<(Matrix<*const Self::Sum>, Self::Sum)>;

    /// The factor of the accumulators in the epilogue.
    fn factor(tile: &Tile<Self>) -> Self::Sum;

    /// Prepares the accumulators of a tile, and returns `beta` of `gemm` if their content is an addend.
    ///
    /// # Safety
    /// As for [`Multiply::batch`], of this tile.
    unsafe fn begin(tile: &Tile<Self>) -> Option<Self::Sum>;

    /// Writes a tile from its accumulators.
    ///
    /// # Safety
    /// As for [`Multiply::batch`], of this tile; the sums must exist.
    unsafe fn end(tile: &Tile<Self>, sums: Matrix<*mut Self::Sum>);
}

/// Computes the products.
///
/// # Safety
/// As for [`Multiply::batch`].
pub unsafe fn multiply<T: Panels>(all: &Batch<T>) -> Result<(), Error> {
    let Tile { rows, columns, inner, .. } = all.first;
    if all.count > 1 && tile_sizes(all.count, rows, columns, inner) == (rows, columns) {
        let work = rows.saturating_mul(columns).saturating_mul(inner.max(1));
        return parallel_try(all.count, TILE_WORK / work, |mut products| {
            let mut memory = Memory::of(&all.first)?;
            // SAFETY: the caller guarantees the elements.
            products.try_for_each(|i| unsafe { product(&all.only(i), &mut memory, (rows, columns), false) })
        });
    }
    let (mut memory, sizes) = (Memory::of(&all.first)?, tile_sizes(1, rows, columns, inner));
    // SAFETY: the caller guarantees the elements.
    (0..all.count).try_for_each(|i| unsafe { product(&all.only(i), &mut memory, sizes, true) })
}

/// The scratch memory of a product.
struct Memory<P> {
    /// The number of elements along the reduction dimension that are multiplied in one step.
    depth: usize,
    left: Scratch<P>,
    right: Scratch<P>,
    sums: Scratch<P>,
}

impl<P: Real> Memory<P> {
    fn of<T: Panels<Sum = P>>(whole: &Tile<T>) -> Result<Self, Error> {
        let Tile { rows, columns, inner, out, .. } = *whole;
        let (left, right) = T::in_place(whole);
        let packed = left.is_none() || right.is_none();
        let depth = if packed { inner.div_ceil(inner.div_ceil(DEPTH).max(1)) } else { inner };
        // SAFETY: panels are packed before they are read; `gemm` writes accumulators before it adds to them.
        let some = |wanted: bool, n: usize| unsafe { Scratch::unwritten(if wanted { n } else { 0 }) };
        Ok(Memory {
            depth,
            left: some(left.is_none(), rows * depth)?,
            right: some(right.is_none(), depth * columns)?,
            sums: some(T::sums(out).is_none(), rows * columns)?,
        })
    }
}

/// Computes a single product, in tiles of these sizes; on this thread alone unless `spread`.
///
/// # Safety
/// As for [`Multiply::batch`]; the memory must be allocated for a product of the same sizes.
unsafe fn product<T: Panels>(
    whole: &Batch<T>,
    memory: &mut Memory<T::Sum>,
    sizes: (usize, usize),
    spread: bool,
) -> Result<(), Error> {
    let Tile { rows, columns, inner, a, b, .. } = whole.first;
    let (left, right) = T::in_place(&whole.first);
    // SAFETY: the address is used within this call, by disjoint tiles.
    let apart = unsafe { Lanes::new(memory.sums.as_mut_ptr()) };
    let mut begin = 0;
    loop {
        let n = memory.depth.min(inner - begin);
        // SAFETY: the caller guarantees the elements; the memory has capacity for the panels.
        unsafe {
            if left.is_none() {
                pack(memory.left.as_mut_ptr(), a.at(0, begin), (rows, n), spread)?;
            }
            if right.is_none() {
                pack(memory.right.as_mut_ptr(), b.at(begin, 0), (n, columns), spread)?;
            }
        }
        // SAFETY: the addresses are read within this call.
        let panels = unsafe { (Lanes::new(memory.left.as_mut_ptr()), Lanes::new(memory.right.as_mut_ptr())) };
        each_tile(whole, sizes, |_, first| {
            let part = whole.first.part(first, sizes);
            let (left, right) = T::in_place(&whole.first);
            let dense = |data: *mut T::Sum, row| Matrix { data: data.cast_const(), row, column: 1 };
            let sums =
                T::sums(whole.first.out).unwrap_or(Matrix { data: apart.as_ptr(), row: columns, column: 1 });
            let sums = sums.at(first.0, first.1);
            // SAFETY: the caller guarantees the elements; the panels are packed, and tiles are disjoint.
            unsafe {
                let tile = Tile {
                    rows: part.rows,
                    columns: part.columns,
                    inner: n,
                    a: left.map_or(dense(panels.0.as_ptr(), n), |a| a.at(0, begin)).at(first.0, 0),
                    b: right.map_or(dense(panels.1.as_ptr(), columns), |b| b.at(begin, 0)).at(0, first.1),
                    out: sums,
                    input: T::input(&part),
                    alpha: T::factor(&part),
                };
                if n == inner && direct::fits(&tile) {
                    direct::multiply(&tile);
                } else if direct::is_flat(&tile) {
                    let so_far =
                        (Matrix { data: sums.data.cast_const(), row: sums.row, column: 1 }, T::Sum::ONE);
                    let input = if begin == 0 { tile.input } else { Some(so_far) };
                    direct::multiply_deep(&Tile { input, ..tile });
                } else {
                    // The addend is applied with the first panel; later panels accumulate.
                    let beta = if begin == 0 { T::begin(&part) } else { Some(T::Sum::ONE) };
                    call_gemm(&tile, beta);
                }
                if begin + n == inner {
                    T::end(&part, sums);
                }
            }
            Ok(())
        })?;
        begin += n;
        if begin == inner {
            return Ok(());
        }
    }
}

/// Packs a panel of `rows` by `columns` elements.
///
/// # Safety
/// The elements of source and target must exist, and those of the target must be uniquely owned.
unsafe fn pack<T: Panels>(
    to: *mut T::Sum,
    from: Matrix<*const T>,
    (rows, columns): (usize, usize),
    spread: bool,
) -> Result<(), Error> {
    // SAFETY: the addresses are used within this call; each work item has its own rows.
    let (to, data) = unsafe { (Lanes::new(to), Lanes::new(from.data.cast_mut())) };
    let grain = if spread { PIECE.1 / (PIECE.0 * columns).max(1) } else { usize::MAX };
    parallel_try(rows.div_ceil(PIECE.0), grain, |pieces| {
        for first in pieces.map(|piece| piece * PIECE.0) {
            let from = Matrix { data: data.as_ptr().cast_const(), row: from.row, column: from.column };
            let sizes = (PIECE.0.min(rows - first), columns);
            // SAFETY: as the caller guarantees.
            unsafe { T::pack(to.as_ptr().add(first * columns), columns, from.at(first, 0), sizes) };
        }
        Ok(())
    })
}

macro_rules! halves {
    ($($t:ty, $unit:expr;)+) => {$(
        impl Panels for $t {
            type Sum = f32;

            fn in_place(_: &Tile<Self>) -> (Option<Matrix<*const f32>>, Option<Matrix<*const f32>>) {
                (None, None)
            }

            fn sums(_: Matrix<*mut Self>) -> Option<Matrix<*mut f32>> {
                None
            }

            unsafe fn pack(to: *mut f32, step: usize, from: Matrix<*const Self>, sizes: (usize, usize)) {
                // SAFETY: the caller guarantees the elements of source and target.
                unsafe { widen_matrix(to, step, from, sizes) };
            }

            fn input(_: &Tile<Self>) -> Option<(Matrix<*const f32>, f32)> {
                None
            }

            fn factor(_: &Tile<Self>) -> f32 {
                1.0
            }

            unsafe fn begin(_: &Tile<Self>) -> Option<f32> {
                None
            }

            unsafe fn end(tile: &Tile<Self>, sums: Matrix<*mut f32>) {
                // SAFETY: the caller guarantees the elements and the sums.
                unsafe { finish(tile, sums.data, sums.row) };
            }
        }

        impl Multiply for $t {
            unsafe fn batch(all: &Batch<Self>) -> Result<(), Error> {
                let mut all = *all;
                // SAFETY: the caller guarantees the elements; the copy outlives the products.
                unsafe {
                    let _copy = along(&mut all)?;
                    let all = &all;
                    let early = gemv::multiply(all).or_else(|| $unit(all)).or_else(|| skinny::multiply(all));
                    if let Some(done) = early {
                        return done;
                    }
                    multiply(all)
                }
            }
        }
    )+};
}
halves! {
    f16, |_| None;
    bf16, |all| bf16_panels::multiply(all);
}
