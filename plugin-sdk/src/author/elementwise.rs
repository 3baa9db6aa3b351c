//! Elementwise kernels: a function of one element of each input, applied everywhere.
//!
//! The host gives the inputs already broadcast to the output's shape (stride 0 where expanded); an input
//! of one element stands for any shape. The output may be exactly one of the inputs. Any strides and any
//! rank are served; an element's value does not depend on strides, threads or pieces, as long as the
//! function is a function.
//!
//! Decisions:
//! - dimensions are collapsed and put in the output's order, so a dense tensor of any memory format is
//!   one straight loop;
//! - where an input runs across the output (a transposed operand), the walk is by tiles, packed
//!   into buffers, so each cache line is read once;
//! - all contiguous and small is decided on the flags alone, before anything is computed;
//! - the loop bodies are plain Rust that the compiler vectorises for the level of the build; no
//!   run-time feature detection.

use super::element::{Element, Plain};
use super::error::Error;
use super::host::parallel_for;
use super::loops::{Inputs, buffered, run, tile};
use super::plan::{
    Dims, OPERANDS, PerOperand, TILE_COLUMNS, TILE_ROWS, collapse, cross, tiles, walk_runs, walk_tiles,
};
use super::view::{View, ViewMut};

/// What one element costs, which decides how small a piece of work is worth another thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cost {
    /// Some arithmetic: bound by memory.
    #[default]
    Cheap,
    /// A division, a square root, a few dozen operations.
    Medium,
    /// `exp`, `erf` and the like.
    Heavy,
}

impl Cost {
    /// The least number of elements for one thread.
    pub const fn grain(self) -> usize {
        match self {
            Cost::Cheap => 32 * 1024,
            Cost::Medium => 8 * 1024,
            Cost::Heavy => 2 * 1024,
        }
    }
}

/// Shape and strides of an operand.
#[derive(Clone, Copy)]
struct Shape<'a> {
    sizes: &'a [i64],
    strides: &'a [i64],
    contiguous: bool,
    numel: usize,
}

impl<'a, T: Element> View<'a, T> {
    #[inline(always)]
    fn shape(&self) -> Shape<'a> {
        let (sizes, strides) = (self.sizes(), self.strides());
        Shape { sizes, strides, contiguous: self.is_contiguous(), numel: self.numel() }
    }
}

impl<'a, T: Element> ViewMut<'a, T> {
    #[inline(always)]
    fn shape(&self) -> Shape<'a> {
        let (sizes, strides) = (self.sizes(), self.strides());
        Shape { sizes, strides, contiguous: self.is_contiguous(), numel: self.numel() }
    }
}

#[cold]
#[inline(never)]
fn wrong_shape(expected: &[i64], got: &[i64]) -> Error {
    Error::InvalidArgument {
        argument: "input",
        expected: format!("the output's shape {expected:?}"),
        got: format!("{got:?}"),
    }
}

/// `a == b`, without the call of `memcmp` that costs more than a few sizes are worth.
#[inline(always)]
fn same(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// Whether all operands are contiguous and of one shape, by their flags alone.
#[inline(always)]
fn is_straight(out: Shape<'_>, inputs: &[Shape<'_>]) -> bool {
    out.contiguous && inputs.iter().all(|i| i.contiguous && same(i.sizes, out.sizes))
}

/// The dimensions to walk, and whether by tiles.
#[inline(never)]
fn plan(out: Shape<'_>, inputs: &[Shape<'_>]) -> Result<(Dims, bool), Error> {
    let mut strides: [Option<&[i64]>; OPERANDS] = [None; OPERANDS];
    strides[0] = Some(out.strides);
    for (slot, input) in strides[1..].iter_mut().zip(inputs) {
        if input.sizes == out.sizes {
            *slot = Some(input.strides);
        } else if input.sizes.iter().any(|n| *n != 1) {
            return Err(wrong_shape(out.sizes, input.sizes));
        }
    }
    if out.numel == 0 {
        return Ok((Dims::none(), false));
    }
    let mut dims = collapse(out.sizes, &strides);
    let tiled = cross(&mut dims);
    Ok((dims, tiled))
}

/// The addresses of all operands, for all threads.
struct Operands<I, O> {
    out: *mut O,
    inputs: I,
}

// SAFETY: the addresses are used for disjoint parts of the output, and for inputs that nobody writes
// except an input that is exactly the output, of which a thread reads the part that it writes.
unsafe impl<I, O> Sync for Operands<I, O> {}

impl<I: Inputs, O: Element> Operands<I, O> {
    /// # Safety
    /// Each operand must have an element at its offset; views uphold this.
    #[inline(always)]
    unsafe fn at(&self, offsets: PerOperand) -> (*mut O, I) {
        // SAFETY: the caller guarantees the elements.
        unsafe { (self.out.add(offsets[0]), self.inputs.offset(offsets)) }
    }
}

const UNIT: PerOperand = [1; OPERANDS];

/// Applies `f` over all operands.
#[inline(always)]
fn apply<I: Inputs, O: Element>(
    cost: Cost,
    out: (*mut O, Shape<'_>),
    shapes: &[Shape<'_>],
    inputs: I,
    f: impl Fn(I::Item) -> O + Sync,
) -> Result<(), Error> {
    let on = &Operands { out: out.0, inputs };
    if is_straight(out.1, shapes) {
        return parallel_for(out.1.numel, cost.grain(), |part| {
            // SAFETY: contiguous views guarantee `numel` elements in a row for each operand.
            unsafe {
                let (out, inputs) = on.at([part.start; OPERANDS]);
                run(out, inputs, part.len(), UNIT, &f)
            }
        });
    }
    apply_strided(cost, &Applied { on, f: &f }, out.1, shapes)
}

/// An element-wise function over its operands, as the walk knows it: what is done at the leaves. The walk
/// itself is compiled once for all functions.
trait Leaf: Sync {
    /// One run of `n` elements.
    ///
    /// # Safety
    /// Each operand must have the elements that offsets and strides name; the walk upholds this.
    unsafe fn run(&self, at: PerOperand, n: usize, strides: PerOperand);
    /// One tile; each operand's strides from row to row and from column to column.
    ///
    /// # Safety
    /// As for [`Leaf::run`].
    unsafe fn tile(&self, at: PerOperand, extent: (usize, usize), steps: (PerOperand, PerOperand));
}

struct Applied<'a, I, O, F> {
    on: &'a Operands<I, O>,
    f: &'a F,
}

impl<I: Inputs, O: Element, F: Fn(I::Item) -> O + Sync> Leaf for Applied<'_, I, O, F> {
    unsafe fn run(&self, at: PerOperand, n: usize, strides: PerOperand) {
        // SAFETY: the caller guarantees the elements.
        unsafe {
            let (out, inputs) = self.on.at(at);
            run(out, inputs, n, strides, self.f)
        }
    }

    unsafe fn tile(&self, at: PerOperand, extent: (usize, usize), steps: (PerOperand, PerOperand)) {
        // SAFETY: the caller guarantees the elements.
        unsafe {
            let (out, inputs) = self.on.at(at);
            tile(out, inputs, extent, steps, self.f)
        }
    }
}

fn apply_strided(cost: Cost, leaf: &dyn Leaf, out: Shape<'_>, shapes: &[Shape<'_>]) -> Result<(), Error> {
    let (dims, tiled) = plan(out, shapes)?;
    let [.., columns] = &dims[..] else { return Ok(()) };
    if tiled && let [.., rows, _] = &dims[..] {
        return parallel_for(tiles(&dims), cost.grain().div_ceil(TILE_ROWS * TILE_COLUMNS), |part| {
            walk_tiles(&dims, part, &mut |(at, r, c)| {
                // SAFETY: the offsets are those of elements that views guarantee.
                unsafe { leaf.tile(at, (r, c), (rows.strides, columns.strides)) }
            })
        });
    }
    parallel_for(out.numel, cost.grain(), |part| {
        walk_runs(&dims, part, &mut |at, n| {
            // SAFETY: the offsets are those of elements that views guarantee.
            unsafe { leaf.run(at, n, columns.strides) }
        })
    })
}

/// `out = f()` for each element. The order of the calls is unspecified.
#[inline]
pub fn map0<O: Element>(mut out: ViewMut<'_, O>, cost: Cost, f: impl Fn() -> O + Sync) -> Result<(), Error> {
    apply(cost, (out.as_mut_ptr(), out.shape()), &[], (), |()| f())
}

/// `out = f(a)` for each element.
#[inline]
pub fn map1<A: Element, O: Element>(
    a: View<'_, A>,
    mut out: ViewMut<'_, O>,
    cost: Cost,
    f: impl Fn(A) -> O + Sync,
) -> Result<(), Error> {
    apply(cost, (out.as_mut_ptr(), out.shape()), &[a.shape()], (a.as_ptr(),), |(a,)| f(a))
}

/// `out = f(a, b)` for each element.
#[inline]
pub fn map2<A: Element, B: Element, O: Element>(
    a: View<'_, A>,
    b: View<'_, B>,
    mut out: ViewMut<'_, O>,
    cost: Cost,
    f: impl Fn(A, B) -> O + Sync,
) -> Result<(), Error> {
    apply(
        cost,
        (out.as_mut_ptr(), out.shape()),
        &[a.shape(), b.shape()],
        (a.as_ptr(), b.as_ptr()),
        |(a, b)| f(a, b),
    )
}

/// `out = f(a, b, c)` for each element.
#[inline]
pub fn map3<A: Element, B: Element, C: Element, O: Element>(
    a: View<'_, A>,
    b: View<'_, B>,
    c: View<'_, C>,
    mut out: ViewMut<'_, O>,
    cost: Cost,
    f: impl Fn(A, B, C) -> O + Sync,
) -> Result<(), Error> {
    let inputs = (a.as_ptr(), b.as_ptr(), c.as_ptr());
    apply(cost, (out.as_mut_ptr(), out.shape()), &[a.shape(), b.shape(), c.shape()], inputs, |(a, b, c)| {
        f(a, b, c)
    })
}

/// Applies `f` to blocks of `n` elements at unit stride, which do not overlap the output.
#[inline(always)]
fn apply_blocks<I: Inputs, O: Element>(
    cost: Cost,
    out: (*mut O, Shape<'_>),
    shapes: &[Shape<'_>],
    inputs: I,
    f: impl Fn(I, *mut O, usize) + Sync,
) -> Result<(), Error> {
    let on = &Operands { out: out.0, inputs };
    let piece = |at: PerOperand, n: usize, strides: PerOperand| {
        // SAFETY: the offsets are those of elements that views guarantee.
        let (out, inputs) = unsafe { on.at(at) };
        let end = out as usize + n * size_of::<O>();
        if strides[..=I::COUNT].iter().all(|s| *s == 1) && !inputs.meets(out as usize, end, n, strides) {
            f(inputs, out, n);
        } else {
            // SAFETY: as above; `f` writes the `n` elements that it is given.
            unsafe { buffered(out, inputs, n, strides, &f) }
        }
    };
    if is_straight(out.1, shapes) {
        return parallel_for(out.1.numel, cost.grain(), |part| {
            piece([part.start; OPERANDS], part.len(), UNIT)
        });
    }
    let (dims, _) = plan(out.1, shapes)?;
    let strides = dims.last().map_or(UNIT, |d| d.strides);
    parallel_for(out.1.numel, cost.grain(), |part| walk_runs(&dims, part, &mut |at, n| piece(at, n, strides)))
}

/// `f(a, out)` on slices of equal length, for functions that work on blocks. `f` must treat each element
/// alike, wherever it lies in the slice, and write all of `out`, whose content at first is unspecified.
#[inline]
pub fn map1_slices<A: Plain, O: Plain>(
    a: View<'_, A>,
    mut out: ViewMut<'_, O>,
    cost: Cost,
    f: impl Fn(&[A], &mut [O]) + Sync,
) -> Result<(), Error> {
    apply_blocks(cost, (out.as_mut_ptr(), out.shape()), &[a.shape()], (a.as_ptr(),), |(a,), out, n| {
        // SAFETY: `apply_blocks` gives `n` elements each, of Plain types, that do not overlap.
        f(unsafe { std::slice::from_raw_parts(a, n) }, unsafe { std::slice::from_raw_parts_mut(out, n) })
    })
}

/// `f(a, b, out)` on slices of equal length; as [`map1_slices`].
#[inline]
pub fn map2_slices<A: Plain, B: Plain, O: Plain>(
    a: View<'_, A>,
    b: View<'_, B>,
    mut out: ViewMut<'_, O>,
    cost: Cost,
    f: impl Fn(&[A], &[B], &mut [O]) + Sync,
) -> Result<(), Error> {
    apply_blocks(
        cost,
        (out.as_mut_ptr(), out.shape()),
        &[a.shape(), b.shape()],
        (a.as_ptr(), b.as_ptr()),
        |(a, b), out, n| {
            // SAFETY: `apply_blocks` gives `n` elements each, of Plain types; the output overlaps none.
            unsafe {
                f(
                    std::slice::from_raw_parts(a, n),
                    std::slice::from_raw_parts(b, n),
                    std::slice::from_raw_parts_mut(out, n),
                )
            }
        },
    )
}

/// The strides of a row-major tensor without gaps.
fn row_major(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sizes.len()];
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d] * sizes[d].max(1);
    }
    strides
}

/// Copies a view to a slice of as many elements, in row-major order.
pub(crate) fn gather<T: Plain>(from: View<'_, T>, to: &mut [T]) -> Result<(), Error> {
    let strides = row_major(from.sizes());
    let out =
        Shape { sizes: from.sizes(), strides: &strides, contiguous: true, numel: from.numel().min(to.len()) };
    apply(Cost::Cheap, (to.as_mut_ptr(), out), &[from.shape()], (from.as_ptr(),), |(a,)| a)
}

/// Copies a slice in row-major order to a view of as many elements.
pub(crate) fn scatter<T: Plain>(from: &[T], mut to: ViewMut<'_, T>) -> Result<(), Error> {
    let strides = row_major(to.sizes());
    let input =
        Shape { sizes: to.sizes(), strides: &strides, contiguous: true, numel: to.numel().min(from.len()) };
    apply(Cost::Cheap, (to.as_mut_ptr(), to.shape()), &[input], (from.as_ptr(),), |(a,)| a)
}
