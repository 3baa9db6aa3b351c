//! The leaves of elementwise kernels: a function applied to elements at unit stride.
//!
//! This is all that is compiled for each function. How strides are walked, what is copied to be at unit stride and
//! how the work is shared knows operands by the size of their elements alone, and is compiled once
//! ([`super::blocks`]).

use super::element::Element;
use super::plan::OPERANDS;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// The addresses of the output and of the inputs of a run; those beyond the function's inputs are anything.
pub(crate) type Addresses = [*mut u8; OPERANDS];

/// The inputs of an elementwise function: a tuple of up to three element pointers.
pub(crate) trait Inputs: Copy {
    /// One element of each input.
    type Item: Copy;

    /// The first of these addresses.
    fn of(addresses: (*const u8, *const u8, *const u8)) -> Self;
    /// The elements at `i`.
    ///
    /// # Safety
    /// The caller guarantees an element of each input at `i`.
    unsafe fn load(self, i: usize) -> Self::Item;
}

macro_rules! inputs {
    ($($t:ident $k:tt),*) => {
        #[allow(unused_variables, clippy::unused_unit)]
        impl<$($t: Element),*> Inputs for ($(*const $t,)*) {
            type Item = ($($t,)*);

            #[inline(always)]
            fn of(addresses: (*const u8, *const u8, *const u8)) -> Self {
                ($(addresses.$k.cast(),)*)
            }
            #[inline(always)]
            unsafe fn load(self, i: usize) -> Self::Item {
                // SAFETY: the caller guarantees elements at `i`.
                ($(unsafe { $t::load(self.$k.add(i)) },)*)
            }
        }
    };
}
inputs!();
inputs!(A 0);
inputs!(A 0, B 1);
inputs!(A 0, B 1, C 2);

/// The function itself, the output, three inputs and the number of elements. Each fits a register.
type Run = unsafe fn(*const (), *mut u8, *const u8, *const u8, *const u8, usize);

/// A function of the elements at unit stride of up to three inputs, without its types.
#[derive(Clone, Copy)]
pub(crate) struct Leaf<'a> {
    run: Run,
    function: *const (),
    _borrow: PhantomData<&'a ()>,
}

// SAFETY: the function is `Sync`, which the constructors ask for.
unsafe impl Sync for Leaf<'_> {}

impl<'a> Leaf<'a> {
    /// `out[i] = f(inputs[i])`.
    #[inline(always)]
    pub(crate) fn of_elements<I: Inputs, O: Element, F: Fn(I::Item) -> O + Sync>(f: &'a F) -> Self {
        Leaf { run: elements::<I, O, F>, function: std::ptr::from_ref(f).cast(), _borrow: PhantomData }
    }

    /// `f(inputs, out, n)`, which reads and writes `n` elements.
    #[inline(always)]
    pub(crate) fn of_runs<I: Inputs, O: Element, F: Fn(I, *mut O, usize) + Sync>(f: &'a F) -> Self {
        Leaf { run: runs::<I, O, F>, function: std::ptr::from_ref(f).cast(), _borrow: PhantomData }
    }

    /// Applies the function to `n` elements.
    ///
    /// # Safety
    /// Each operand must have `n` elements of the function's types at its address, aligned, and no input meets the
    /// output; the walk upholds this.
    #[inline(always)]
    pub(crate) unsafe fn run(&self, [out, a, b, c]: Addresses, n: usize) {
        // SAFETY: as the caller guarantees; the function is borrowed for the life of `self`.
        unsafe { (self.run)(self.function, out, a, b, c, n) }
    }
}

/// # Safety
/// As for [`Leaf::run`]; `function` is an `F`.
unsafe fn elements<I: Inputs, O: Element, F: Fn(I::Item) -> O>(
    function: *const (),
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
    n: usize,
) {
    // SAFETY: as the caller guarantees. The output may hold nothing yet.
    unsafe {
        let out = std::slice::from_raw_parts_mut(out.cast::<MaybeUninit<O>>(), n);
        fill(out, I::of((a, b, c)), &*function.cast::<F>());
    }
}

/// # Safety
/// As for [`Leaf::run`].
// Not inlined: that `out` meets no input is known to the compiler from the parameter alone.
#[inline(never)]
unsafe fn fill<I: Inputs, O>(out: &mut [MaybeUninit<O>], inputs: I, f: &impl Fn(I::Item) -> O) {
    for (i, out) in out.iter_mut().enumerate() {
        // SAFETY: the caller guarantees as many elements of each input.
        out.write(f(unsafe { inputs.load(i) }));
    }
}

/// # Safety
/// As for [`Leaf::run`]; `function` is an `F`.
unsafe fn runs<I: Inputs, O: Element, F: Fn(I, *mut O, usize)>(
    function: *const (),
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
    n: usize,
) {
    // SAFETY: as the caller guarantees.
    let f = unsafe { &*function.cast::<F>() };
    f(I::of((a, b, c)), out.cast(), n);
}
