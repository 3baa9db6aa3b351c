//! Elementwise kernels: a function of one element of each input, applied everywhere.
//!
//! The host gives the inputs already broadcast to the output's shape (stride 0 where expanded); an input
//! of one element stands for any shape. The output may be exactly one of the inputs. Any strides and any
//! rank are served; an element's value does not depend on strides, threads or pieces, as long as the
//! function is a function.
//!
//! Decisions:
//! - for each function one loop at unit stride is compiled and nothing else; strides are walked, and operands
//!   that have them copied into small dense blocks, by code that all functions share;
//! - dimensions are collapsed and put in the output's order, so a dense tensor of any memory format is
//!   one straight loop;
//! - all contiguous is decided on the flags alone, before anything is computed;
//! - the loop bodies are plain Rust that the compiler vectorises for the level of the build; no
//!   run-time feature detection.

use super::call::Call;
use super::element::{Element, Kind, Plain};
use super::error::Error;
use super::loops::Leaf;
use super::operand::Operand;
use super::plan::OPERANDS;
use super::straight::apply;
use super::view::{View, ViewMut};
use crate::abi::codes::tensor_flag;
use crate::abi::tensor::RawTensor;

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

/// `out = f()` for each element. The order of the calls is unspecified.
#[inline]
pub fn map0<O: Element>(out: ViewMut<'_, O>, cost: Cost, f: impl Fn() -> O + Sync) -> Result<(), Error> {
    apply(cost, &[out.operand()], Leaf::of_elements::<(), O, _>(&|()| f()))
}

/// `out = f(a)` for each element.
#[inline]
pub fn map1<A: Element, O: Element>(
    a: View<'_, A>,
    out: ViewMut<'_, O>,
    cost: Cost,
    f: impl Fn(A) -> O + Sync,
) -> Result<(), Error> {
    let f = |(a,)| f(a);
    apply(cost, &[out.operand(), a.operand()], Leaf::of_elements::<(*const A,), O, _>(&f))
}

/// `out = f(a, b)` for each element.
#[inline]
pub fn map2<A: Element, B: Element, O: Element>(
    a: View<'_, A>,
    b: View<'_, B>,
    out: ViewMut<'_, O>,
    cost: Cost,
    f: impl Fn(A, B) -> O + Sync,
) -> Result<(), Error> {
    let f = |(a, b)| f(a, b);
    let operands = [out.operand(), a.operand(), b.operand()];
    apply(cost, &operands, Leaf::of_elements::<(*const A, *const B), O, _>(&f))
}

/// `out = f(a, b, c)` for each element.
#[inline]
pub fn map3<A: Element, B: Element, C: Element, O: Element>(
    a: View<'_, A>,
    b: View<'_, B>,
    c: View<'_, C>,
    out: ViewMut<'_, O>,
    cost: Cost,
    f: impl Fn(A, B, C) -> O + Sync,
) -> Result<(), Error> {
    let f = |(a, b, c)| f(a, b, c);
    let operands = [out.operand(), a.operand(), b.operand(), c.operand()];
    apply(cost, &operands, Leaf::of_elements::<(*const A, *const B, *const C), O, _>(&f))
}

/// `f(a, out)` on slices of equal length, for functions that work on blocks. `f` must treat each element
/// alike, wherever it lies in the slice, and write all of `out`, whose content at first is unspecified.
#[inline]
pub fn map1_slices<A: Plain, O: Plain>(
    a: View<'_, A>,
    out: ViewMut<'_, O>,
    cost: Cost,
    f: impl Fn(&[A], &mut [O]) + Sync,
) -> Result<(), Error> {
    let f = |(a,): (*const A,), out: *mut O, n: usize| {
        // SAFETY: a leaf is given `n` elements each, of Plain types, that do not overlap.
        f(unsafe { std::slice::from_raw_parts(a, n) }, unsafe { std::slice::from_raw_parts_mut(out, n) })
    };
    apply(cost, &[out.operand(), a.operand()], Leaf::of_runs(&f))
}

/// `f(a, b, out)` on slices of equal length; as [`map1_slices`].
#[inline]
pub fn map2_slices<A: Plain, B: Plain, O: Plain>(
    a: View<'_, A>,
    b: View<'_, B>,
    out: ViewMut<'_, O>,
    cost: Cost,
    f: impl Fn(&[A], &[B], &mut [O]) + Sync,
) -> Result<(), Error> {
    let f = |(a, b): (*const A, *const B), out: *mut O, n: usize| {
        // SAFETY: a leaf is given `n` elements each, of Plain types; the output overlaps none.
        unsafe {
            f(
                std::slice::from_raw_parts(a, n),
                std::slice::from_raw_parts(b, n),
                std::slice::from_raw_parts_mut(out, n),
            )
        }
    };
    apply(cost, &[out.operand(), a.operand(), b.operand()], Leaf::of_runs(&f))
}

/// The same for the arguments and output 0 of a call: the functions that most element-wise kernels are. Types are
/// checked as [`Call::view`] and [`Call::out`] check them.
impl Call<'_> {
    /// `output 0 = f()` for each element; as [`map0`].
    #[inline]
    pub fn map0<O: Element>(&self, cost: Cost, f: impl Fn() -> O + Sync) -> Result<(), Error> {
        self.apply(0, &[Kind::of::<O>()], cost, Leaf::of_elements::<(), O, _>(&|()| f()))
    }

    /// `output 0 = f(argument 0)` for each element; as [`map1`].
    #[inline]
    pub fn map1<A: Element, O: Element>(&self, cost: Cost, f: impl Fn(A) -> O + Sync) -> Result<(), Error> {
        self.map1_of(0, cost, f)
    }

    /// `output 0 = f(argument index)` for each element; as [`map1`].
    #[inline]
    pub fn map1_of<A: Element, O: Element>(
        &self,
        index: usize,
        cost: Cost,
        f: impl Fn(A) -> O + Sync,
    ) -> Result<(), Error> {
        let f = |(a,)| f(a);
        let leaf = Leaf::of_elements::<(*const A,), O, _>(&f);
        self.apply(index, &[Kind::of::<O>(), Kind::of::<A>()], cost, leaf)
    }

    /// `output 0 = f(argument 0, argument 1)` for each element; as [`map2`].
    #[inline]
    pub fn map2<A: Element, B: Element, O: Element>(
        &self,
        cost: Cost,
        f: impl Fn(A, B) -> O + Sync,
    ) -> Result<(), Error> {
        let f = |(a, b)| f(a, b);
        let kinds = &[Kind::of::<O>(), Kind::of::<A>(), Kind::of::<B>()];
        self.apply(0, kinds, cost, Leaf::of_elements::<(*const A, *const B), O, _>(&f))
    }

    /// `output 0 = f(argument 0, argument 1, argument 2)` for each element; as [`map3`].
    #[inline]
    pub fn map3<A: Element, B: Element, C: Element, O: Element>(
        &self,
        cost: Cost,
        f: impl Fn(A, B, C) -> O + Sync,
    ) -> Result<(), Error> {
        let f = |(a, b, c)| f(a, b, c);
        let kinds = &[Kind::of::<O>(), Kind::of::<A>(), Kind::of::<B>(), Kind::of::<C>()];
        self.apply(0, kinds, cost, Leaf::of_elements::<(*const A, *const B, *const C), O, _>(&f))
    }

    /// Applies `leaf` to output 0 and the arguments from `first` on, of these kinds.
    // Not inlined: a kernel is then its function and this one call.
    #[inline(never)]
    fn apply(&self, first: usize, kinds: &[Kind], cost: Cost, leaf: Leaf<'_>) -> Result<(), Error> {
        let Some((&kind, ins)) = kinds.split_first() else { return Ok(()) };
        let out = Operand { tensor: self.find_output(0, kind)?.raw, bytes: kind.bytes() };
        let mut operands = [out; OPERANDS];
        for (k, (operand, &kind)) in operands[1..].iter_mut().zip(ins).enumerate() {
            *operand = Operand { tensor: self.find_argument(first + k, kind)?.raw, bytes: kind.bytes() };
        }
        apply(cost, &operands[..kinds.len()], leaf)
    }
}

/// Calls `then` with a tensor of the sizes of `like` in row-major order at `data`.
fn with_dense<T: Plain, R>(
    like: &RawTensor,
    sizes: &[i64],
    data: *mut T,
    then: impl FnOnce(Operand<'_>) -> R,
) -> R {
    let mut strides = vec![1; sizes.len()];
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d] * sizes[d].max(1);
    }
    let flags = like.flags | tensor_flag::CONTIGUOUS;
    let tensor = RawTensor { data: data.cast(), strides: strides.as_ptr(), flags, ..*like };
    then(Operand { tensor: &tensor, bytes: size_of::<T>() })
}

/// Copies a view to a slice of as many elements, in row-major order.
pub(crate) fn gather<T: Plain>(from: View<'_, T>, to: &mut [T]) -> Result<(), Error> {
    debug_assert_eq!(from.numel(), to.len());
    let view = from.operand();
    with_dense(view.tensor, from.sizes(), to.as_mut_ptr(), |out| {
        apply(Cost::Cheap, &[out, view], Leaf::of_elements::<(*const T,), T, _>(&|(a,)| a))
    })
}

/// Copies a slice in row-major order to a view of as many elements.
pub(crate) fn scatter<T: Plain>(from: &[T], to: ViewMut<'_, T>) -> Result<(), Error> {
    debug_assert_eq!(from.len(), to.numel());
    let view = to.operand();
    with_dense(view.tensor, to.sizes(), from.as_ptr().cast_mut(), |input| {
        apply(Cost::Cheap, &[view, input], Leaf::of_elements::<(*const T,), T, _>(&|(a,)| a))
    })
}
