//! Element-wise kernels: a function of one element of each input, applied to all elements.
//!
//! Any strides and any rank are supported; an element's value does not depend on strides, threads or work items, as long as
//! the function is pure.

use crate::contiguous::{Contiguous, ContiguousOut, ViewExt, contiguous_out};
use crate::cost::Cost;
use crate::fast_path::apply;
use crate::inner_loop::{Function, InnerLoop, Wide};
use crate::operand::{OPERANDS, Operand};
use keyway_sdk::abi::codes::tensor_flag;
use keyway_sdk::abi::tensor::RawTensor;
use keyway_sdk::author::{Call, Element, ElementType, Error, Plain, View, ViewMut, Widen};

/// The loop of [`map0`]. Without inputs, a loop over a chunk would be unrolled before it is vectorised.
fn every<O: Element>(f: impl Fn() -> O + Sync) -> impl Fn((), *mut O, usize) + Sync {
    move |(), out, n| {
        for i in 0..n {
            // SAFETY: an inner loop is called with `n` elements of the output.
            unsafe { out.add(i).write(f()) };
        }
    }
}

/// `out = f()` for each element. The order of the calls is unspecified.
#[inline]
pub fn map0<O: Element>(out: ViewMut<'_, O>, cost: Cost, f: impl Fn() -> O + Sync) -> Result<(), Error> {
    apply(cost, &[Operand::of_output(&out)], InnerLoop::of_runs(&every(f)))
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
    apply(
        cost,
        &[Operand::of_output(&out), Operand::of_input(&a)],
        InnerLoop::of_elements::<(*const A,), *mut O, _>(&f),
    )
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
    let operands = [Operand::of_output(&out), Operand::of_input(&a), Operand::of_input(&b)];
    apply(cost, &operands, InnerLoop::of_elements::<(*const A, *const B), *mut O, _>(&f))
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
    let operands =
        [Operand::of_output(&out), Operand::of_input(&a), Operand::of_input(&b), Operand::of_input(&c)];
    apply(cost, &operands, InnerLoop::of_elements::<(*const A, *const B, *const C), *mut O, _>(&f))
}

/// Calls `f(a, out)` with slices of equal length, for functions that process blocks. `f` must treat all elements alike,
/// whatever their position in the slice, and write all of `out`, whose initial content is unspecified.
#[inline]
pub fn map1_slices<A: Plain, O: Plain>(
    a: View<'_, A>,
    out: ViewMut<'_, O>,
    cost: Cost,
    f: impl Fn(&[A], &mut [O]) + Sync,
) -> Result<(), Error> {
    let f = |(a,): (*const A,), out: *mut O, n: usize| {
        // SAFETY: an inner loop is called with `n` elements each, of Plain types, that do not overlap.
        f(unsafe { std::slice::from_raw_parts(a, n) }, unsafe { std::slice::from_raw_parts_mut(out, n) })
    };
    apply(cost, &[Operand::of_output(&out), Operand::of_input(&a)], InnerLoop::of_runs(&f))
}

/// Calls `f(a, b, out)` with slices of equal length; as [`map1_slices`].
#[inline]
pub fn map2_slices<A: Plain, B: Plain, O: Plain>(
    a: View<'_, A>,
    b: View<'_, B>,
    out: ViewMut<'_, O>,
    cost: Cost,
    f: impl Fn(&[A], &[B], &mut [O]) + Sync,
) -> Result<(), Error> {
    let f = |(a, b): (*const A, *const B), out: *mut O, n: usize| {
        // SAFETY: an inner loop is called with `n` elements each, of Plain types; the output overlaps no input.
        unsafe {
            f(
                std::slice::from_raw_parts(a, n),
                std::slice::from_raw_parts(b, n),
                std::slice::from_raw_parts_mut(out, n),
            )
        }
    };
    apply(
        cost,
        &[Operand::of_output(&out), Operand::of_input(&a), Operand::of_input(&b)],
        InnerLoop::of_runs(&f),
    )
}

/// Element-wise loops over the arguments and output 0 of a call: the body of most element-wise kernels. Types are checked
/// as by [`Call::view`] and [`Call::out`].
pub trait CallExt<'a> {
    /// `output 0 = f()` for each element; as [`map0`].
    fn map0<O: Element>(&self, cost: Cost, f: impl Fn() -> O + Sync) -> Result<(), Error>;

    /// `output 0 = f(argument 0)` for each element; as [`map1`].
    fn map1<A: Element, O: Element>(&self, cost: Cost, f: impl Fn(A) -> O + Sync) -> Result<(), Error>;

    /// `output 0 = f(argument index)` for each element; as [`map1`].
    fn map1_of<A: Element, O: Element>(
        &self,
        index: usize,
        cost: Cost,
        f: impl Fn(A) -> O + Sync,
    ) -> Result<(), Error>;

    /// `output 0 = argument index`, both of type `T`.
    fn copy_of<T: Element>(&self, index: usize) -> Result<(), Error>;

    /// `output 0 = f(argument 0, argument 1)` for each element; as [`map2`].
    fn map2<A: Element, B: Element, O: Element>(
        &self,
        cost: Cost,
        f: impl Fn(A, B) -> O + Sync,
    ) -> Result<(), Error>;

    /// `output 0 = f(argument 0, argument 1, argument 2)` for each element; as [`map3`].
    fn map3<A: Element, B: Element, C: Element, O: Element>(
        &self,
        cost: Cost,
        f: impl Fn(A, B, C) -> O + Sync,
    ) -> Result<(), Error>;

    /// `output 0 = f(argument 0)` for each element, where `f` has arguments and results of the computation types: `f32` for
    /// f16 and bf16, whose results are rounded once. Kernels of narrow floats should use these methods: the others, with a
    /// function that widens and narrows each element, are several times as slow.
    fn map1_wide<A: Widen, O: Widen>(
        &self,
        cost: Cost,
        f: impl Fn(A::Wide) -> O::Wide + Sync,
    ) -> Result<(), Error>;

    /// `output 0 = f(argument index)` for each element; as [`CallExt::map1_wide`].
    fn map1_wide_of<A: Widen, O: Widen>(
        &self,
        index: usize,
        cost: Cost,
        f: impl Fn(A::Wide) -> O::Wide + Sync,
    ) -> Result<(), Error>;

    /// `output 0 = f(argument 0, argument 1)` for each element; as [`CallExt::map1_wide`].
    fn map2_wide<A: Widen, B: Widen, O: Widen>(
        &self,
        cost: Cost,
        f: impl Fn(A::Wide, B::Wide) -> O::Wide + Sync,
    ) -> Result<(), Error>;

    /// `output 0 = f(argument 0, argument 1, argument 2)` for each element; as [`CallExt::map1_wide`].
    fn map3_wide<A: Widen, B: Widen, C: Widen, O: Widen>(
        &self,
        cost: Cost,
        f: impl Fn(A::Wide, B::Wide, C::Wide) -> O::Wide + Sync,
    ) -> Result<(), Error>;

    /// `output 0 = f(argument 0, argument 1)` for each element, where argument 1 has one element, or one for each index of
    /// dimension `dim` of the output; as [`CallExt::map1_wide`].
    fn map2_wide_along<A: Widen, B: Widen, O: Widen>(
        &self,
        dim: usize,
        cost: Cost,
        f: impl Fn(A::Wide, B::Wide) -> O::Wide + Sync,
    ) -> Result<(), Error>;

    /// As [`CallExt::map1_wide`], for a function with a named type.
    fn map1_wide_by<A: Widen, O: Widen>(
        &self,
        cost: Cost,
        f: impl Function<(A::Wide,), O::Wide>,
    ) -> Result<(), Error>;

    /// As [`CallExt::map2_wide`], for a function with a named type.
    fn map2_wide_by<A: Widen, B: Widen, O: Widen>(
        &self,
        cost: Cost,
        f: impl Function<(A::Wide, B::Wide), O::Wide>,
    ) -> Result<(), Error>;

    /// Argument `index`, a tensor of `T`, as a slice in row-major order: borrowed if possible, otherwise copied. The
    /// copy makes an in-place call safe.
    fn contiguous<T: Plain>(&self, index: usize) -> Result<Contiguous<'a, T>, Error>;

    /// Output `index`, a tensor of `T`, as a slice in row-major order: the memory itself if possible, otherwise a
    /// buffer that is written back when it is dropped. The initial content is unspecified.
    fn contiguous_out<T: Plain>(&self, index: usize) -> Result<ContiguousOut<'a, T>, Error>;

    /// As `contiguous_out`, for the bits of elements whose dtype may differ from `T` if it has the same size.
    fn contiguous_out_bits<T: Plain>(&self, index: usize) -> Result<ContiguousOut<'a, T>, Error>;
}

impl<'a> CallExt<'a> for Call<'a> {
    #[inline]
    fn map0<O: Element>(&self, cost: Cost, f: impl Fn() -> O + Sync) -> Result<(), Error> {
        apply_to_call(self, 0, &[ElementType::of::<O>()], cost, InnerLoop::of_runs(&every(f)))
    }

    #[inline]
    fn map1<A: Element, O: Element>(&self, cost: Cost, f: impl Fn(A) -> O + Sync) -> Result<(), Error> {
        self.map1_of(0, cost, f)
    }

    #[inline]
    fn map1_of<A: Element, O: Element>(
        &self,
        index: usize,
        cost: Cost,
        f: impl Fn(A) -> O + Sync,
    ) -> Result<(), Error> {
        let f = |(a,)| f(a);
        let inner = InnerLoop::of_elements::<(*const A,), *mut O, _>(&f);
        apply_to_call(self, index, &[ElementType::of::<O>(), ElementType::of::<A>()], cost, inner)
    }

    #[inline]
    fn copy_of<T: Element>(&self, index: usize) -> Result<(), Error> {
        let inner = InnerLoop::of_elements::<(*const T,), *mut T, _>(&|(a,)| a);
        // Not each byte is a valid bool: they are converted one by one.
        let inner = if size_of::<T>() > 1 { inner.copying() } else { inner };
        apply_to_call(self, index, &[ElementType::of::<T>(); 2], Cost::Cheap, inner)
    }

    #[inline]
    fn map2<A: Element, B: Element, O: Element>(
        &self,
        cost: Cost,
        f: impl Fn(A, B) -> O + Sync,
    ) -> Result<(), Error> {
        let f = |(a, b)| f(a, b);
        let types = &[ElementType::of::<O>(), ElementType::of::<A>(), ElementType::of::<B>()];
        apply_to_call(self, 0, types, cost, InnerLoop::of_elements::<(*const A, *const B), *mut O, _>(&f))
    }

    #[inline]
    fn map3<A: Element, B: Element, C: Element, O: Element>(
        &self,
        cost: Cost,
        f: impl Fn(A, B, C) -> O + Sync,
    ) -> Result<(), Error> {
        let f = |(a, b, c)| f(a, b, c);
        let types =
            &[ElementType::of::<O>(), ElementType::of::<A>(), ElementType::of::<B>(), ElementType::of::<C>()];
        let inner = InnerLoop::of_elements::<(*const A, *const B, *const C), *mut O, _>(&f);
        apply_to_call(self, 0, types, cost, inner)
    }

    #[inline]
    fn map1_wide<A: Widen, O: Widen>(
        &self,
        cost: Cost,
        f: impl Fn(A::Wide) -> O::Wide + Sync,
    ) -> Result<(), Error> {
        self.map1_wide_of::<A, O>(0, cost, f)
    }

    #[inline]
    fn map1_wide_of<A: Widen, O: Widen>(
        &self,
        index: usize,
        cost: Cost,
        f: impl Fn(A::Wide) -> O::Wide + Sync,
    ) -> Result<(), Error> {
        let f = |(a,)| f(a);
        let types = &[ElementType::of::<O>(), ElementType::of::<A>()];
        apply_to_call(self, index, types, cost, InnerLoop::of_elements::<(Wide<A>,), Wide<O>, _>(&f))
    }

    #[inline]
    fn map2_wide<A: Widen, B: Widen, O: Widen>(
        &self,
        cost: Cost,
        f: impl Fn(A::Wide, B::Wide) -> O::Wide + Sync,
    ) -> Result<(), Error> {
        self.map2_wide_by::<A, B, O>(cost, |(a, b)| f(a, b))
    }

    #[inline]
    fn map3_wide<A: Widen, B: Widen, C: Widen, O: Widen>(
        &self,
        cost: Cost,
        f: impl Fn(A::Wide, B::Wide, C::Wide) -> O::Wide + Sync,
    ) -> Result<(), Error> {
        let f = |(a, b, c)| f(a, b, c);
        let types =
            &[ElementType::of::<O>(), ElementType::of::<A>(), ElementType::of::<B>(), ElementType::of::<C>()];
        let inner = InnerLoop::of_elements::<(Wide<A>, Wide<B>, Wide<C>), Wide<O>, _>(&f);
        apply_to_call(self, 0, types, cost, inner)
    }

    #[inline]
    fn map2_wide_along<A: Widen, B: Widen, O: Widen>(
        &self,
        dim: usize,
        cost: Cost,
        f: impl Fn(A::Wide, B::Wide) -> O::Wide + Sync,
    ) -> Result<(), Error> {
        let f = |(a, b)| f(a, b);
        let types = &[ElementType::of::<O>(), ElementType::of::<A>(), ElementType::of::<B>()];
        along(self, dim, types, cost, InnerLoop::of_elements::<(Wide<A>, Wide<B>), Wide<O>, _>(&f))
    }

    #[inline]
    fn map1_wide_by<A: Widen, O: Widen>(
        &self,
        cost: Cost,
        f: impl Function<(A::Wide,), O::Wide>,
    ) -> Result<(), Error> {
        let types = &[ElementType::of::<O>(), ElementType::of::<A>()];
        apply_to_call(self, 0, types, cost, InnerLoop::of_elements::<(Wide<A>,), Wide<O>, _>(&f))
    }

    #[inline]
    fn map2_wide_by<A: Widen, B: Widen, O: Widen>(
        &self,
        cost: Cost,
        f: impl Function<(A::Wide, B::Wide), O::Wide>,
    ) -> Result<(), Error> {
        let types = &[ElementType::of::<O>(), ElementType::of::<A>(), ElementType::of::<B>()];
        apply_to_call(self, 0, types, cost, InnerLoop::of_elements::<(Wide<A>, Wide<B>), Wide<O>, _>(&f))
    }

    fn contiguous<T: Plain>(&self, index: usize) -> Result<Contiguous<'a, T>, Error> {
        self.view(index)?.contiguous()
    }

    fn contiguous_out<T: Plain>(&self, index: usize) -> Result<ContiguousOut<'a, T>, Error> {
        contiguous_out(self.out(index)?)
    }

    fn contiguous_out_bits<T: Plain>(&self, index: usize) -> Result<ContiguousOut<'a, T>, Error> {
        contiguous_out(self.out_bits(index)?)
    }
}

/// Applies `inner` to output 0 and the arguments starting at `first`, of these types.
// Not inlined, so that a kernel is its function and this one call.
#[inline(never)]
fn apply_to_call(
    call: &Call<'_>,
    first: usize,
    types: &[ElementType],
    cost: Cost,
    inner: InnerLoop<'_>,
) -> Result<(), Error> {
    let Some((&element, ins)) = types.split_first() else { return Ok(()) };
    let out = Operand { tensor: call.output_as(0, element)?.raw(), bytes: element.bytes() };
    let mut operands = [out; OPERANDS];
    for (k, (operand, &element)) in operands[1..].iter_mut().zip(ins).enumerate() {
        *operand = Operand { tensor: call.tensor_as(first + k, element)?.raw(), bytes: element.bytes() };
    }
    apply(cost, &operands[..types.len()], inner)
}

/// Applies `inner` to output 0, argument 0 and argument 1, which has one element for each index of a dimension.
#[inline(never)]
fn along(
    call: &Call<'_>,
    dim: usize,
    &[out, a, b]: &[ElementType; 3],
    cost: Cost,
    inner: InnerLoop<'_>,
) -> Result<(), Error> {
    let of = |tensor, element: ElementType| Operand { tensor, bytes: element.bytes() };
    let (out, a) = (of(call.output_as(0, out)?.raw(), out), of(call.tensor_as(0, a)?.raw(), a));
    let b = of(call.tensor_as(1, b)?.raw(), b);
    if b.numel() == 1 {
        return apply(cost, &[out, a, b], inner);
    }
    let elements = out.sizes().get(dim).copied();
    let &[stride] = b.strides() else { return Err(unfit(b.sizes(), elements)) };
    if elements != Some(b.numel() as i64) {
        return Err(unfit(b.sizes(), elements));
    }
    let mut strides = vec![0; out.sizes().len()];
    strides[dim] = stride;
    let flags = b.tensor.flags & !tensor_flag::CONTIGUOUS;
    let tensor = RawTensor { data: b.tensor.data, strides: strides.as_ptr(), flags, ..*out.tensor };
    apply(cost, &[out, a, Operand { tensor: &tensor, bytes: b.bytes }], inner)
}

fn unfit(sizes: &[i64], elements: Option<i64>) -> Error {
    Error::InvalidArgument {
        argument: "argument 1",
        expected: format!("one dimension of {} elements, or one element", elements.unwrap_or(1)),
        got: format!("{sizes:?}"),
    }
}
