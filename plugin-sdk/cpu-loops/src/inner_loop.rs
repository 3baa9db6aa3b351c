//! The inner loops of element-wise kernels: a function applied to elements at unit stride.
//!
//! This is all that is compiled for each function. The strided iteration, the copies to unit stride and the sharing
//! of work among threads know operands by the size of their elements alone, and are compiled once
//! ([`crate::blocks`]).
//!
//! A function of elements is applied to a chunk of them at a time, whose results are written when all of its inputs
//! are read. The loop over a chunk is vectorised without a check for memory that overlaps, an input may be the output,
//! and an input that repeats one element is a chunk of copies of it to which the loop comes back.
//!
//! A function of wide values ([`Wide`]) is given the elements widened. Its results are narrowed a chunk at a time, for
//! which there are vector instructions that the compiler does not find in a loop over elements.

use crate::operand::OPERANDS;
use keyway_sdk::author::{Element, Widen};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// The addresses of the output and of the inputs of a run; those beyond the function's inputs are anything.
pub(crate) type Addresses = [*mut u8; OPERANDS];

/// Bit `k` is set if operand `k` repeats the chunk at its address; see [`InnerLoop::lanes`].
pub(crate) type Repeated = u32;

/// Bytes of a chunk of the function's largest type: as many as keep the loads and stores of a core busy.
const CHUNK: usize = 128;
/// The most elements of a chunk.
pub(crate) const LANES: usize = 64;

/// The place of an input's elements, and what a function is given of them.
pub(crate) trait Input: Copy {
    /// What the function is given of an element.
    type Value: Copy;

    /// The elements at this address.
    fn at(address: *const u8) -> Self;
    /// What the function is given of the element at `i`.
    ///
    /// # Safety
    /// The caller guarantees an element at `i`.
    unsafe fn load(self, i: usize) -> Self::Value;
    /// The place `n` elements further.
    fn past(self, n: usize) -> Self;
}

/// What a function gives for an output's elements.
pub(crate) trait Output {
    /// The output's elements.
    type Element: Element;
    /// What the function gives for one.
    type Value: Copy;

    /// The element of a value.
    fn element(value: Self::Value) -> Self::Element;
    /// The elements of a chunk of values.
    fn elements<const N: usize>(values: &[Self::Value; N]) -> [Self::Element; N];
}

impl<T: Element> Input for *const T {
    type Value = T;

    #[inline(always)]
    fn at(address: *const u8) -> Self {
        address.cast()
    }
    #[inline(always)]
    unsafe fn load(self, i: usize) -> T {
        // SAFETY: the caller guarantees an element at `i`.
        unsafe { T::load(self.add(i)) }
    }
    #[inline(always)]
    fn past(self, n: usize) -> Self {
        self.wrapping_add(n)
    }
}

impl<T: Element> Output for *mut T {
    type Element = T;
    type Value = T;

    #[inline(always)]
    fn element(value: T) -> T {
        value
    }
    #[inline(always)]
    fn elements<const N: usize>(values: &[T; N]) -> [T; N] {
        *values
    }
}

/// Elements that a function is given, or gives, in their wide type.
#[derive(Clone, Copy)]
pub(crate) struct Wide<T>(*const T);

impl<T: Widen> Input for Wide<T> {
    type Value = T::Wide;

    #[inline(always)]
    fn at(address: *const u8) -> Self {
        Wide(address.cast())
    }
    #[inline(always)]
    unsafe fn load(self, i: usize) -> T::Wide {
        // SAFETY: the caller guarantees an element at `i`.
        unsafe { T::load(self.0.add(i)) }.widen()
    }
    #[inline(always)]
    fn past(self, n: usize) -> Self {
        Wide(self.0.wrapping_add(n))
    }
}

impl<T: Widen> Output for Wide<T> {
    type Element = T;
    type Value = T::Wide;

    #[inline(always)]
    fn element(value: T::Wide) -> T {
        T::narrow(value)
    }
    #[inline(always)]
    fn elements<const N: usize>(values: &[T::Wide; N]) -> [T; N] {
        T::narrow_chunk(values)
    }
}

/// The inputs of an elementwise function: a tuple of up to three.
pub(crate) trait Inputs: Copy {
    /// What the function is given of one element of each input.
    type Item: Copy;
    /// The size of the largest value.
    const WIDEST: usize;

    /// The first of these addresses.
    fn of(addresses: (*const u8, *const u8, *const u8)) -> Self;
    /// What the function is given of the elements at `i`.
    ///
    /// # Safety
    /// The caller guarantees an element of each input at `i`.
    unsafe fn load(self, i: usize) -> Self::Item;
    /// The inputs `n` elements further, but for those that are repeated.
    fn past(self, n: usize, repeated: Repeated) -> Self;
}

macro_rules! inputs {
    ($($t:ident $k:tt),*) => {
        #[allow(unused_variables, clippy::unused_unit)]
        impl<$($t: Input),*> Inputs for ($($t,)*) {
            type Item = ($($t::Value,)*);
            const WIDEST: usize = {
                let widest = 0;
                $(let widest = if size_of::<$t::Value>() > widest { size_of::<$t::Value>() } else { widest };)*
                widest
            };

            #[inline(always)]
            fn of(addresses: (*const u8, *const u8, *const u8)) -> Self {
                ($($t::at(addresses.$k),)*)
            }
            #[inline(always)]
            unsafe fn load(self, i: usize) -> Self::Item {
                // SAFETY: the caller guarantees elements at `i`.
                ($(unsafe { self.$k.load(i) },)*)
            }
            #[inline(always)]
            fn past(self, n: usize, repeated: Repeated) -> Self {
                ($(self.$k.past(if repeated >> ($k + 1) & 1 == 0 { n } else { 0 }),)*)
            }
        }
    };
}
inputs!();
inputs!(A 0);
inputs!(A 0, B 1);
inputs!(A 0, B 1, C 2);

/// The function itself, the output, three inputs, which of them are repeated and the number of elements.
type Run = unsafe fn(*const (), *mut u8, *const u8, *const u8, *const u8, Repeated, usize);

/// A function of the elements at unit stride of up to three inputs, without its types.
#[derive(Clone, Copy)]
pub(crate) struct InnerLoop<'a> {
    run: Run,
    function: *const (),
    lanes: usize,
    _borrow: PhantomData<&'a ()>,
}

// SAFETY: the function is `Sync`, which the constructors ask for.
unsafe impl Sync for InnerLoop<'_> {}

impl<'a> InnerLoop<'a> {
    /// `out[i] = f(inputs[i])`.
    #[inline(always)]
    pub(crate) fn of_elements<I: Inputs, O: Output, F: Fn(I::Item) -> O::Value + Sync>(f: &'a F) -> Self {
        // Conditions that are known when this is compiled for a function, so that one loop is compiled for it.
        let (run, lanes): (Run, usize) = if const { CHUNK / widest::<I, O>() < LANES } {
            (elements::<I, O, F, 32>, 32)
        } else {
            (elements::<I, O, F, LANES>, LANES)
        };
        InnerLoop { run, function: std::ptr::from_ref(f).cast(), lanes, _borrow: PhantomData }
    }

    /// `f(inputs, out, n)`, which reads and writes `n` elements.
    #[inline(always)]
    pub(crate) fn of_runs<I: Inputs, O: Element, F: Fn(I, *mut O, usize) + Sync>(f: &'a F) -> Self {
        let run = runs::<I, O, F>;
        InnerLoop { run, function: std::ptr::from_ref(f).cast(), lanes: 0, _borrow: PhantomData }
    }

    /// The number of elements in a chunk, at most [`LANES`]; 0 for a function of whole runs, of which no input may
    /// be repeated or be the output.
    #[inline(always)]
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Applies the function to `n` elements.
    ///
    /// # Safety
    /// Each operand must have `n` elements of the function's types at its address, aligned; an input that is repeated
    /// as many as a chunk has, or `n` if that is fewer. An input meets the output only if it is at the same address
    /// with elements of the same size, and neither that nor repeated if there are no chunks. The caller's iteration upholds this.
    #[inline(always)]
    pub(crate) unsafe fn run(&self, [out, a, b, c]: Addresses, repeated: Repeated, n: usize) {
        // SAFETY: as the caller guarantees; the function is borrowed for the life of `self`.
        unsafe { (self.run)(self.function, out, a, b, c, repeated, n) }
    }
}

const fn widest<I: Inputs, O: Output>() -> usize {
    if size_of::<O::Value>() > I::WIDEST { size_of::<O::Value>() } else { I::WIDEST }
}

/// # Safety
/// As for [`InnerLoop::run`]; `function` is an `F`.
unsafe fn elements<I: Inputs, O: Output, F: Fn(I::Item) -> O::Value, const N: usize>(
    function: *const (),
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
    repeated: Repeated,
    n: usize,
) {
    // SAFETY: as the caller guarantees.
    unsafe { chunks::<I, O, F, N>(&*function.cast::<F>(), out.cast(), I::of((a, b, c)), repeated, n) }
}

/// `out[i] = f(inputs[i])` for `n` elements, a chunk of `N` at a time.
///
/// # Safety
/// As for [`InnerLoop::run`].
#[inline(always)]
pub(crate) unsafe fn chunks<I: Inputs, O: Output, F: Fn(I::Item) -> O::Value, const N: usize>(
    f: &F,
    mut out: *mut O::Element,
    mut inputs: I,
    repeated: Repeated,
    n: usize,
) {
    for _ in 0..n / N {
        let mut chunk = [const { MaybeUninit::<O::Value>::uninit() }; N];
        for (k, result) in chunk.iter_mut().enumerate() {
            // SAFETY: the caller guarantees a chunk of each input.
            result.write(f(unsafe { inputs.load(k) }));
        }
        // SAFETY: each value was just written. The caller guarantees the elements of the output. An input that is the
        // output was read up to here and not beyond.
        unsafe {
            let values = &*(&raw const chunk).cast::<[O::Value; N]>();
            out.cast::<[O::Element; N]>().write(O::elements(values));
        }
        (out, inputs) = (out.wrapping_add(N), inputs.past(N, repeated));
    }
    for k in 0..n % N {
        // SAFETY: as above; the element is read before it is written.
        unsafe { out.add(k).write(O::element(f(inputs.load(k)))) };
    }
}

/// # Safety
/// As for [`InnerLoop::run`]; `function` is an `F`.
unsafe fn runs<I: Inputs, O: Element, F: Fn(I, *mut O, usize)>(
    function: *const (),
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
    _: Repeated,
    n: usize,
) {
    // SAFETY: as the caller guarantees.
    let f = unsafe { &*function.cast::<F>() };
    f(I::of((a, b, c)), out.cast(), n);
}
