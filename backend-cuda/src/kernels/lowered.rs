//! Convolutions as matrix products by cuBLASLt (im2col): the gathered operand is materialised for a range of samples at a
//! time.
//!
//! The matrix has each element of an image once for each kernel tap that reads it, so it is built in parts that fit the
//! chip's cache, unless the split would lose precision: sums over samples are not split in f16 and bf16.

use super::Kernel;
use super::conv::{ConvArgument, Gathered};
use super::launch::{Operand, launch};
use super::nets::counted;
use super::product::filled;
use super::scratch::{self, On, Scratch};
use crate::blas::{self, Matrices, Product};
use crate::driver::Argument;
use keyway_sdk::author::Error;
use keyway_sdk::author::strided::Dim;

/// Number of multiplications below which implicit GEMM kernels are as fast.
const LEAST: usize = 1 << 19;
/// The size in bytes of a part of the matrix that fits the caches, and the maximum size of one that cannot be split.
const PART: usize = 32 << 20;
const MOST: usize = 256 << 20;
/// The columns of a block and the reduction depth of a step, as in conv.cu, the minimum number of steps per block, its
/// threads, and the number of blocks that occupies a chip.
const TILE: usize = 64;
const DEPTH: usize = 32;
const STEPS: usize = 4;
const THREADS: u32 = 128;
const BLOCKS: usize = 1024;

/// `Lowering` in conv.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoweringArgument {
    convolution: ConvArgument,
    to: u64,
    columns: u32,
    terms: u32,
    by_term: u32,
    pieces: u32,
}
// SAFETY: `Lowering` has these fields.
unsafe impl Argument for LoweringArgument {}

/// The constant stride over all of the dimensions, if there is one; `k` is the operand.
fn merged(dims: &[Dim<5>], k: usize) -> Option<i64> {
    let mut own = dims.iter().rev().filter(|dim| dim.size > 1);
    let Some(last) = own.next() else { return Some(1) };
    let step = last.strides[k] as i64;
    let mut next = step * last.size as i64;
    for dim in own {
        if dim.strides[k] as i64 != next {
            return None;
        }
        next *= dim.size as i64;
    }
    Some(step)
}

fn count(dims: &[Dim<5>]) -> usize {
    dims.iter().fold(1, |n: usize, dim| n.saturating_mul(dim.size))
}

/// A left operand: its address, the strides of rows and of the reduction dimension, and its memory if it is a copy.
struct Left {
    at: u64,
    row: i64,
    term: i64,
    _copy: Option<Scratch>,
}

/// A convolution to be lowered.
struct Lowered<'a> {
    of: &'a Gathered,
    argument: ConvArgument,
    on: On,
    kernel: Kernel,
    bytes: usize,
    by_term: bool,
    pieces: bool,
}

impl Gathered {
    /// Multiplies by cuBLASLt, if it is installed and supports this product; otherwise has no effect.
    pub(super) fn lowered(
        &self,
        on: On,
        kernel: Kernel,
        bytes: usize,
        (argument, by_term, pieces): (ConvArgument, bool, bool),
    ) -> Result<bool, Error> {
        let work = self.rows.saturating_mul(count(&self.columns)).saturating_mul(count(&self.terms));
        if work < LEAST || !blas::is_there()? {
            return Ok(false);
        }
        Lowered { of: self, argument, on, kernel, bytes, by_term, pieces }.run()
    }
}

impl Lowered<'_> {
    fn run(&self) -> Result<bool, Error> {
        // Samples are the outermost dimension of the columns or, for the gradient of a kernel, of the reduction.
        let (columns, terms) = (&self.of.columns, &self.of.terms);
        let (samples, of_terms) = match self.of.sums_samples {
            true => (terms[0].size, true),
            false => (columns[0].size, false),
        };
        let all = count(columns).saturating_mul(count(terms)).saturating_mul(self.bytes);
        let each = all / samples.max(1);
        let may_be_cut = !of_terms || self.bytes >= 4;
        let at_once = if may_be_cut { (PART / each.max(1)).clamp(1, samples) } else { samples };
        if at_once.saturating_mul(each) > MOST {
            return Ok(false);
        }
        let Some(left) = self.left()? else { return Ok(false) };
        let [spread, place] = match (merged(columns, 0), merged(&columns[1..], 0)) {
            (Some(place), _) => [0, place],
            (None, Some(place)) if !of_terms => [columns[0].strides[0] as i64, place],
            _ => return Ok(false),
        };
        let scratch = Scratch::new(self.on, at_once * each, 1)?;
        for first in (0..samples).step_by(at_once) {
            let own = at_once.min(samples - first);
            let (mut columns, mut terms) = (*columns, *terms);
            if of_terms {
                terms[0].size = own
            } else {
                columns[0].size = own
            }
            let (columns, terms) = (columns, terms);
            self.gather(scratch.at(), first, (&columns, &terms))?;
            let moved =
                |at: u64, step: i64| at.wrapping_add((first as i64 * step * self.bytes as i64) as u64);
            let (batches, wide) = match spread {
                0 => (1, count(&columns)),
                _ => (own, count(&columns[1..])),
            };
            let (inner, out_step) = (count(&terms), if of_terms { 0 } else { columns[0].strides[0] as i64 });
            let left_of_sample = if of_terms { left.term * count(&terms[1..]) as i64 } else { 0 };
            let out =
                Matrices { at: moved(self.of.out.0, out_step), strides: [spread, self.of.out.2, place] };
            let input = match (self.of.bias.0, of_terms && first > 0) {
                (_, true) => Some(out),
                (0, _) => None,
                (at, _) => Some(Matrices { at, strides: [0, self.of.bias.2, 0] }),
            };
            let right = match self.by_term {
                true => [(wide * inner) as i64, 1, inner as i64],
                false => [wide as i64, count(&columns) as i64, 1],
            };
            let one = if self.kernel.dtype == "f64" { 1f64.to_bits() } else { u64::from(1f32.to_bits()) };
            let product = Product {
                dtype: self.kernel.dtype,
                rounds: self.on.0.rounds(self.kernel.dtype),
                sizes: [batches, self.of.rows, wide, inner],
                out,
                left: Matrices { at: moved(left.at, left_of_sample), strides: [0, left.row, left.term] },
                right: Matrices { at: scratch.at(), strides: right },
                input,
                alpha: one,
                beta: one,
            };
            if !blas::multiply(self.on, &product, || filled(self.on, self.bytes, &product))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The left operand as a matrix, copied if its reduction dimension has no constant stride.
    fn left(&self) -> Result<Option<Left>, Error> {
        let (at, _, row) = self.of.left;
        let terms = &self.of.terms;
        if let Some(step) = merged(terms, 0).filter(|step| *step == 1 || row == 1) {
            return Ok(Some(Left { at, row, term: step, _copy: None }));
        }
        let inner = count(terms);
        let copy = Scratch::new(self.on, self.of.rows * inner, self.bytes)?;
        let sizes: Vec<i64> =
            std::iter::once(self.of.rows).chain(terms.iter().map(|dim| dim.size)).map(|n| n as i64).collect();
        let from: Vec<i64> =
            std::iter::once(row).chain(terms.iter().map(|dim| dim.strides[0] as i64)).collect();
        if from.iter().any(|step| *step < 0) {
            return Ok(None);
        }
        let dense = keyway_sdk::author::strided::row_major(&sizes)?;
        let source = Operand { data: at, ..Operand::default() };
        scratch::copy(self.on, self.bytes, &sizes, (copy.operand(), &dense), (source, &from))?;
        Ok(Some(Left { at: copy.at(), row: inner as i64, term: 1, _copy: Some(copy) }))
    }

    /// Materialises the matrix of these columns and reduction indices; the first sample is `first`.
    fn gather(
        &self,
        to: u64,
        first: usize,
        (columns, terms): (&[Dim<5>; 4], &[Dim<5>; 4]),
    ) -> Result<(), Error> {
        let sample = if self.of.sums_samples { terms[0] } else { columns[0] };
        let moved = first as i64 * sample.strides[1] as i64 * self.bytes as i64;
        let (wide, inner) = (count(columns), count(terms));
        let convolution = self.argument.of_part(columns, terms, moved);
        let argument = LoweringArgument {
            convolution,
            to,
            columns: counted(wide)?,
            terms: counted(inner)?,
            by_term: u32::from(self.by_term),
            pieces: u32::from(self.pieces),
        };
        let across = wide.div_ceil(TILE);
        let along = BLOCKS.div_ceil(across).clamp(1, inner.div_ceil(DEPTH * STEPS));
        let entry = format_args!("conv_{}_lower", self.kernel.dtype);
        let kernel = Kernel { family: "conv", ..self.kernel };
        launch(self.on.0, kernel, entry, ([across, along], THREADS), &argument, self.on.1)
    }
}
