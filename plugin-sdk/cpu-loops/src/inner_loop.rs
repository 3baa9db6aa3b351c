//! The inner loops of element-wise kernels: a function applied to contiguous elements.
//!
//! Only this is compiled for each function. The strided iteration, the copies to contiguous memory and the distribution
//! among threads are type-erased, with element sizes alone, and compiled once ([`crate::blocks`]).
//!
//! A function of elements is applied to a chunk at a time, whose results are written after all of its inputs are read. So
//! the loop over a chunk is vectorised without a check for overlapping memory, an input may be the output, and an input
//! that repeats one element is a chunk of copies, reread for each chunk.
//!
//! The tail after the last whole chunk is vectorised, too, by the same code: it overlaps the previous elements, or, if an
//! input is the output or there are fewer elements than a chunk, is copied into a chunk.
//!
//! A function of wide values ([`Wide`]) is called with widened elements. Its results are narrowed a chunk at a time, with
//! vector instructions that the compiler does not generate for a loop over elements.

use crate::operand::{Addresses, OPERANDS, PerOperand, repeat};
use keyway_sdk::author::{Element, Widen};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// A bit mask: bit `k` is set if operand `k` repeats the chunk at its address; see [`InnerLoop::lanes`].
pub(crate) type Repeated = u32;

/// The size of a chunk of the largest elements in bytes. It occupies the load and store units of a core, and its loop is
/// too long for the compiler to unroll completely before it vectorises.
const CHUNK: usize = 256;
/// The maximum number of elements of a chunk.
pub(crate) const LANES: usize = 64;
/// Memory for a chunk of elements of any size, aligned to the largest: [`LANES`] of up to 8 bytes, or half as many of 16.
pub(crate) type Chunk = MaybeUninit<[u128; LANES / 2]>;
/// The minimum length of a tail that is vectorised.
const FEW: usize = 8;

/// A function of a tuple of elements, as a named type. Closures over the tuple implement it.
///
/// The compiler does not vectorise a loop over a closure that is too large to be inlined; `call` can have
/// `#[inline(always)]`, and a closure cannot.
pub trait Function<Arguments, Value>: Sync {
    /// The value for these arguments.
    fn call(&self, arguments: Arguments) -> Value;
}

impl<Arguments, Value, F: Fn(Arguments) -> Value + Sync> Function<Arguments, Value> for F {
    #[inline(always)]
    fn call(&self, arguments: Arguments) -> Value {
        self(arguments)
    }
}

/// The address of an input's elements, and their conversion to a function's argument.
pub(crate) trait Input: Copy {
    /// The argument type of the function for an element.
    type Value: Copy;
    /// The size of an element.
    const BYTES: usize;

    /// The elements at this address.
    fn at(address: *const u8) -> Self;
    /// The function's argument for the element at `i`.
    ///
    /// # Safety
    /// The caller guarantees an element at `i`.
    unsafe fn load(self, i: usize) -> Self::Value;
    /// The address after the next `n` elements.
    fn past(self, n: usize) -> Self;
}

/// The conversion of a function's result to an output's elements.
pub(crate) trait Output {
    /// The output's elements.
    type Element: Element;
    /// The type that the function returns for an element.
    type Value: Copy;

    /// Converts a value to an element.
    fn element(value: Self::Value) -> Self::Element;
    /// Converts a chunk of values to elements.
    fn elements<const N: usize>(values: &[Self::Value; N]) -> [Self::Element; N];
}

impl<T: Element> Input for *const T {
    type Value = T;
    const BYTES: usize = size_of::<T>();

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

/// Elements that are converted to or from their wide type.
#[derive(Clone, Copy)]
pub(crate) struct Wide<T>(*const T);

impl<T: Widen> Input for Wide<T> {
    type Value = T::Wide;
    const BYTES: usize = size_of::<T>();

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
    /// The function's arguments for one element of each input.
    type Item: Copy;
    /// The element size of each input in bytes; 0 for absent inputs.
    const BYTES: [usize; 3];

    /// Takes the addresses of these inputs.
    fn of(addresses: (*const u8, *const u8, *const u8)) -> Self;
    /// The function's arguments for the elements at `i`.
    ///
    /// # Safety
    /// The caller guarantees an element of each input at `i`.
    unsafe fn load(self, i: usize) -> Self::Item;
    /// The inputs after the next `n` elements; repeated ones are unchanged.
    fn past(self, n: usize, repeated: Repeated) -> Self;
}

macro_rules! inputs {
    ($($t:ident $k:tt),*) => {
        #[allow(unused_variables, clippy::unused_unit)]
        impl<$($t: Input),*> Inputs for ($($t,)*) {
            type Item = ($($t::Value,)*);
            const BYTES: [usize; 3] = {
                #[allow(unused_mut)]
                let mut bytes = [0; 3];
                $(bytes[$k] = $t::BYTES;)*
                bytes
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

/// The function itself, the output, three inputs, the mask of repeated inputs, and the number of elements.
type Run = unsafe fn(*const (), *mut u8, *const u8, *const u8, *const u8, Repeated, usize);

/// A type-erased loop that applies a function to contiguous elements of up to three inputs.
#[derive(Clone, Copy)]
pub(crate) struct InnerLoop<'a> {
    run: Run,
    function: *const (),
    lanes: usize,
    /// Whether the output's elements have the bits of the first input's elements.
    copies: bool,
    _borrow: PhantomData<&'a ()>,
}

// SAFETY: the function is `Sync`, which the constructors require.
unsafe impl Sync for InnerLoop<'_> {}

impl<'a> InnerLoop<'a> {
    /// `out[i] = f(inputs[i])`.
    #[inline(always)]
    pub(crate) fn of_elements<I: Inputs, O: Output, F: Function<I::Item, O::Value>>(f: &'a F) -> Self {
        let (run, lanes) = const { chunked::<I, O, F>() };
        InnerLoop { run, function: std::ptr::from_ref(f).cast(), lanes, copies: false, _borrow: PhantomData }
    }

    /// `f(inputs, out, n)`, which reads and writes `n` elements.
    #[inline(always)]
    pub(crate) fn of_runs<I: Inputs, O: Element, F: Fn(I, *mut O, usize) + Sync>(f: &'a F) -> Self {
        let run = runs::<I, O, F>;
        InnerLoop {
            run,
            function: std::ptr::from_ref(f).cast(),
            lanes: 0,
            copies: false,
            _borrow: PhantomData,
        }
    }

    /// The same loop, marked as a copy of its input's bits.
    #[inline(always)]
    pub(crate) fn copying(self) -> Self {
        InnerLoop { copies: true, ..self }
    }

    /// Whether the loop copies the bits of its input.
    #[inline(always)]
    pub(crate) fn copies(&self) -> bool {
        self.copies
    }

    /// The number of elements in a chunk, at most [`LANES`]; 0 for a function of whole runs, whose inputs may neither be
    /// repeated nor be the output.
    #[inline(always)]
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Applies the function to `n` elements.
    ///
    /// # Safety
    /// Each operand must have `n` elements of the function's types at its address, aligned; a repeated input must have one
    /// chunk, or `n` elements if that is fewer. An input may overlap the output only if it has the same address and element
    /// size, and may neither overlap it nor be repeated if there are no chunks. The caller's iteration upholds this.
    #[inline(always)]
    pub(crate) unsafe fn run(&self, [out, a, b, c]: Addresses, repeated: Repeated, n: usize) {
        // SAFETY: as the caller guarantees; the function is borrowed for the lifetime of `self`.
        unsafe { (self.run)(self.function, out, a, b, c, repeated, n) }
    }
}

/// The chunked loop of a function, and the number of elements of a chunk. A constant, so that only the selected loop is
/// compiled.
const fn chunked<I: Inputs, O: Output, F: Function<I::Item, O::Value>>() -> (Run, usize) {
    match CHUNK / widest(&bytes::<I, O>()) {
        ..LANES => (elements::<I, O, F, 32>, 32),
        _ => (elements::<I, O, F, LANES>, LANES),
    }
}

/// The size of an element of each operand.
const fn bytes<I: Inputs, O: Output>() -> PerOperand {
    let [a, b, c] = I::BYTES;
    [size_of::<O::Element>(), a, b, c]
}

const fn widest([out, a, b, c]: &PerOperand) -> usize {
    const fn larger(a: usize, b: usize) -> usize {
        if a > b { a } else { b }
    }
    larger(larger(*out, *a), larger(*b, *c))
}

/// # Safety
/// As for [`InnerLoop::run`]; `function` is an `F`.
unsafe fn elements<I: Inputs, O: Output, F: Function<I::Item, O::Value>, const N: usize>(
    function: *const (),
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
    repeated: Repeated,
    n: usize,
) {
    let rest = n % N;
    let overlapped = rest > 0 && n > N && ![a, b, c].contains(&out.cast_const());
    let whole = if rest < FEW && !overlapped { n } else { n - rest };
    // SAFETY: as the caller guarantees. A chunk may be computed twice if no input is the output.
    unsafe {
        chunks::<I, O, F, N>(&*function.cast::<F>(), out.cast(), I::of((a, b, c)), repeated, whole);
        if whole < n {
            let at = [out, a.cast_mut(), b.cast_mut(), c.cast_mut()];
            let run = elements::<I, O, F, N>;
            if overlapped {
                last(run, function, at, bytes::<I, O>(), repeated, n - N, N);
            } else {
                padded(run, function, at, bytes::<I, O>(), repeated, whole..n, N);
            }
        }
    }
}

/// Applies a function to the `lanes` elements that start at `first`.
///
/// # Safety
/// As for [`InnerLoop::run`], for the elements up to the end of the chunk; `bytes` are the element sizes of the operands.
#[inline(always)]
unsafe fn last(
    run: Run,
    function: *const (),
    at: Addresses,
    bytes: PerOperand,
    repeated: Repeated,
    first: usize,
    lanes: usize,
) {
    let from = |k: usize| at[k].wrapping_add(if repeated >> k & 1 == 1 { 0 } else { first * bytes[k] });
    // SAFETY: as the caller guarantees.
    unsafe { run(function, from(0), from(1), from(2), from(3), repeated, lanes) };
}

/// Applies a function to elements `rest`, fewer than a chunk, in a padded chunk. The padding repeats the first element, so
/// that the function is called with no other values.
///
/// # Safety
/// As for [`InnerLoop::run`], for the elements up to the end of `rest`; `bytes` are the element sizes of the operands, and
/// `lanes` is the length of a chunk.
#[inline(never)]
unsafe fn padded(
    run: Run,
    function: *const (),
    at: Addresses,
    bytes: PerOperand,
    repeated: Repeated,
    rest: std::ops::Range<usize>,
    lanes: usize,
) {
    let mut chunks = [const { Chunk::uninit() }; OPERANDS];
    let mut places = [std::ptr::null_mut::<u8>(); OPERANDS];
    for (place, chunk) in places.iter_mut().zip(&mut chunks) {
        *place = chunk.as_mut_ptr().cast();
    }
    let n = rest.len();
    let from = |k: usize| at[k].wrapping_add(if repeated >> k & 1 == 1 { 0 } else { rest.start * bytes[k] });
    // SAFETY: the caller guarantees the elements, and those of a repeated input up to the end of `rest`. Each address in
    // `places` has capacity for a chunk of the largest elements, uniquely owned.
    unsafe {
        for k in (1..OPERANDS).filter(|k| bytes[*k] > 0) {
            std::ptr::copy_nonoverlapping(from(k).cast_const(), places[k], n * bytes[k]);
            repeat(bytes[k], places[k].add(n * bytes[k]), from(k).cast_const(), lanes - n);
        }
        let [out, a, b, c] = places;
        run(function, out, a, b, c, 0, lanes);
        std::ptr::copy_nonoverlapping(out.cast_const(), from(0), n * bytes[0]);
    }
}

/// `out[i] = f(inputs[i])` for `n` elements, a chunk of `N` at a time.
///
/// # Safety
/// As for [`InnerLoop::run`].
#[inline(always)]
pub(crate) unsafe fn chunks<I: Inputs, O: Output, F: Function<I::Item, O::Value>, const N: usize>(
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
            result.write(f.call(unsafe { inputs.load(k) }));
        }
        // SAFETY: each value was just written. The caller guarantees the elements of the output. If the output is an input,
        // it was read up to this element and not beyond.
        unsafe {
            let values = &*(&raw const chunk).cast::<[O::Value; N]>();
            out.cast::<[O::Element; N]>().write(O::elements(values));
        }
        (out, inputs) = (out.wrapping_add(N), inputs.past(N, repeated));
    }
    for k in 0..n % N {
        // SAFETY: as above; the element is read before it is written.
        unsafe { out.add(k).write(O::element(f.call(inputs.load(k)))) };
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
