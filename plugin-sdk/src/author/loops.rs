//! The inner loops of elementwise kernels: one piece of the innermost dimension, or one tile.
//!
//! Each loop reads and writes through raw pointers, since an output may be one of the inputs. Where all
//! operands have unit stride (or one input is a single element) and nothing overlaps, one plain loop is
//! left to the compiler, which vectorises it. Everything else goes through small buffers on the stack, so
//! that the function itself is still applied by a vectorised loop.

use super::element::Element;
use super::plan::{OPERANDS, PerOperand, TILE_COLUMNS, TILE_ROWS};
use std::mem::MaybeUninit;

/// Elements that a buffered loop gathers at a time.
pub(crate) const BLOCK: usize = 256;

/// `N` elements on the stack, not yet written.
type Buffer<T, const N: usize> = [MaybeUninit<T>; N];

/// The inputs of an elementwise function: a tuple of up to three element pointers.
///
/// # Safety
/// In each function the caller guarantees that every element that sizes, strides and offsets name exists.
pub(crate) trait Inputs: Copy {
    /// One element of each input.
    type Item: Copy;
    /// Room for a tile of each input.
    type Buffers;
    /// The number of inputs.
    const COUNT: usize;

    fn buffers() -> Self::Buffers;
    /// The addresses of a buffer's elements.
    fn buffered(buffers: &Self::Buffers) -> Self;
    /// For each input that `packed` marks the buffer's address, for the others `self`.
    fn choose(self, buffers: &Self::Buffers, packed: PerOperand) -> Self;
    unsafe fn offset(self, offsets: PerOperand) -> Self;
    /// The elements at `i`; those at 0 for the inputs that `SCALAR` marks.
    unsafe fn load<const SCALAR: u8>(self, first: Self::Item, i: usize) -> Self::Item;
    unsafe fn first(self) -> Self::Item;
    /// Whether some input meets the bytes `begin..end` in `n` elements of these strides.
    fn meets(self, begin: usize, end: usize, n: usize, strides: PerOperand) -> bool;
    /// Copies `n` strided elements of each input to the front of its buffer.
    unsafe fn gather(self, buffers: &mut Self::Buffers, n: usize, strides: PerOperand);
    /// Copies a tile of each input that `packed` marks to its buffer, as rows of `TILE_COLUMNS`.
    unsafe fn pack(self, buffers: &mut Self::Buffers, packed: PerOperand, tile: Strided);
}

/// A tile's extent, and each operand's strides from row to row and from column to column.
#[derive(Clone, Copy)]
pub(crate) struct Strided {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) row: PerOperand,
    pub(crate) column: PerOperand,
}

#[inline(always)]
unsafe fn gather_one<T: Element>(from: *const T, to: &mut [MaybeUninit<T>], stride: usize) {
    match stride {
        0 => {
            // SAFETY: the caller guarantees the elements.
            let value = unsafe { T::load(from) };
            to.iter_mut().for_each(|slot| {
                slot.write(value);
            });
        }
        1 => to.iter_mut().enumerate().for_each(|(i, slot)| {
            // SAFETY: the caller guarantees the elements.
            slot.write(unsafe { T::load(from.add(i)) });
        }),
        _ => to.iter_mut().enumerate().for_each(|(i, slot)| {
            // SAFETY: the caller guarantees the elements.
            slot.write(unsafe { T::load(from.add(i * stride)) });
        }),
    }
}

#[inline(always)]
unsafe fn pack_one<T: Element>(
    from: *const T,
    to: &mut Buffer<T, { TILE_ROWS * TILE_COLUMNS }>,
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
) {
    // Whole cache lines of the source are read at once; the scattered writes stay in the buffer.
    let to = to.as_mut_ptr().cast::<T>();
    for c in 0..columns {
        for r in 0..rows {
            // SAFETY: the caller guarantees the elements; rows and columns are at most those of a tile.
            unsafe { to.add(r * TILE_COLUMNS + c).write(T::load(from.add(r * row + c * column))) };
        }
    }
}

macro_rules! inputs {
    ($count:expr; $($t:ident $k:tt),*) => {
        #[allow(unused_variables, clippy::unused_unit)]
        impl<$($t: Element),*> Inputs for ($(*const $t,)*) {
            type Item = ($($t,)*);
            type Buffers = ($(Buffer<$t, { TILE_ROWS * TILE_COLUMNS }>,)*);
            const COUNT: usize = $count;

            #[inline(always)]
            fn buffers() -> Self::Buffers {
                ($([const { MaybeUninit::<$t>::uninit() }; TILE_ROWS * TILE_COLUMNS],)*)
            }
            #[inline(always)]
            fn buffered(buffers: &Self::Buffers) -> Self {
                ($(buffers.$k.as_ptr().cast(),)*)
            }
            #[inline(always)]
            fn choose(self, buffers: &Self::Buffers, packed: PerOperand) -> Self {
                ($(if packed[$k + 1] != 0 { buffers.$k.as_ptr().cast() } else { self.$k },)*)
            }
            #[inline(always)]
            unsafe fn offset(self, offsets: PerOperand) -> Self {
                // SAFETY: the caller guarantees elements at the offsets.
                ($(unsafe { self.$k.add(offsets[$k + 1]) },)*)
            }
            #[inline(always)]
            unsafe fn load<const SCALAR: u8>(self, first: Self::Item, i: usize) -> Self::Item {
                // SAFETY: the caller guarantees elements at `i`.
                ($(if SCALAR >> $k & 1 != 0 { first.$k } else { unsafe { $t::load(self.$k.add(i)) } },)*)
            }
            #[inline(always)]
            unsafe fn first(self) -> Self::Item {
                // SAFETY: the caller guarantees an element.
                ($(unsafe { $t::load(self.$k) },)*)
            }
            #[inline(always)]
            fn meets(self, begin: usize, end: usize, n: usize, strides: PerOperand) -> bool {
                false $(|| {
                    let from = self.$k as usize;
                    from < end && begin < from + ((n - 1) * strides[$k + 1] + 1) * size_of::<$t>()
                })*
            }
            #[inline(always)]
            unsafe fn gather(self, buffers: &mut Self::Buffers, n: usize, strides: PerOperand) {
                // SAFETY: the caller guarantees `n` elements.
                $(unsafe { gather_one(self.$k, &mut buffers.$k[..n], strides[$k + 1]) };)*
            }
            #[inline(always)]
            unsafe fn pack(self, buffers: &mut Self::Buffers, packed: PerOperand, t: Strided) {
                $(if packed[$k + 1] != 0 {
                    // SAFETY: the caller guarantees the elements of the tile.
                    unsafe {
                        pack_one(self.$k, &mut buffers.$k, t.rows, t.columns, t.row[$k + 1], t.column[$k + 1])
                    };
                })*
            }
        }
    };
}
inputs!(0;);
inputs!(1; A 0);
inputs!(2; A 0, B 1);
inputs!(3; A 0, B 1, C 2);

/// `out[i] = f(inputs[i])` for `n` elements at unit stride; the inputs that `SCALAR` marks stay at 0.
///
/// # Safety
/// The caller guarantees the elements, and that an input which meets the output is buffered.
// Not inlined: it is the one place where the function itself is compiled, and every path comes here.
#[inline(never)]
unsafe fn unit<const SCALAR: u8, I: Inputs, O>(out: *mut O, inputs: I, n: usize, f: &impl Fn(I::Item) -> O) {
    if SCALAR == 0 {
        for i in 0..n {
            // SAFETY: the caller guarantees the elements. Nothing is loaded ahead of the loop.
            unsafe { out.add(i).write(f(inputs.load::<0>(inputs.first(), i))) };
        }
        return;
    }
    // SAFETY: a run has at least one element.
    let first = unsafe { inputs.first() };
    for i in 0..n {
        // SAFETY: the caller guarantees the elements.
        unsafe { out.add(i).write(f(inputs.load::<SCALAR>(first, i))) };
    }
}

/// Whether the loops may take this run as it is: unit strides, or one input a single element.
#[inline(always)]
fn scalar_mask(inputs: usize, strides: PerOperand) -> Option<u8> {
    let mut mask = 0;
    let mut ones = strides[0] == 1;
    for k in 0..inputs {
        ones &= strides[k + 1] <= 1;
        mask |= ((strides[k + 1] == 0) as u8) << k;
    }
    (ones && (mask == 0 || mask.is_power_of_two() && inputs > 1)).then_some(mask)
}

/// One run of `n > 0` elements.
///
/// # Safety
/// Each operand has an element at each `i * stride`, `i < n`; the host upholds this for the tensors of a
/// call. An input that is exactly the output gives the right result on each path; one that meets it
/// otherwise gives unspecified values.
#[inline(never)]
pub(crate) unsafe fn run<I: Inputs, O: Element>(
    out: *mut O,
    inputs: I,
    n: usize,
    strides: PerOperand,
    f: &impl Fn(I::Item) -> O,
) {
    let (begin, end) = (out as usize, out as usize + n * size_of::<O>());
    if let Some(mask) = scalar_mask(I::COUNT, strides)
        && (n < 8 || !inputs.meets(begin, end, n, strides))
    {
        // Buffers serve overlapping runs only because the compiler's scalar loop, which also would give
        // the right result, is slow; in a run too short for vectors it is the faster.
        // SAFETY: the caller guarantees the elements.
        unsafe {
            match mask {
                0 => return unit::<0, I, O>(out, inputs, n, f),
                1 if I::COUNT > 1 => return unit::<1, I, O>(out, inputs, n, f),
                2 if I::COUNT > 1 => return unit::<2, I, O>(out, inputs, n, f),
                4 if I::COUNT > 2 => return unit::<4, I, O>(out, inputs, n, f),
                _ => {}
            }
        }
    }
    // SAFETY: as for this function.
    unsafe { buffered(out, inputs, n, strides, |from: I, to, n| unit::<0, I, O>(to, from, n, f)) };
}

/// A run by way of buffers: strided inputs are gathered, the output is scattered.
///
/// # Safety
/// As for [`run`]. `apply` writes `n` elements at the address of its second argument.
// Not inlined, so that the buffers do not enlarge the frame of the paths that need none.
#[inline(never)]
pub(crate) unsafe fn buffered<I: Inputs, O: Element>(
    out: *mut O,
    inputs: I,
    n: usize,
    strides: PerOperand,
    apply: impl Fn(I, *mut O, usize),
) {
    let mut buffers = I::buffers();
    let mut at = 0;
    while at < n {
        let m = BLOCK.min(n - at);
        // SAFETY: the caller guarantees the elements; a buffer holds BLOCK.
        unsafe { inputs.offset(strides.map(|s| s * at)).gather(&mut buffers, m, strides) };
        let from = I::buffered(&buffers);
        if strides[0] == 1 {
            // SAFETY: the caller guarantees the elements.
            apply(from, unsafe { out.add(at) }, m);
        } else {
            // Zeroed, because `apply` may borrow it as a slice.
            let mut results = [const { MaybeUninit::<O>::zeroed() }; BLOCK];
            apply(from, results.as_mut_ptr().cast(), m);
            for (i, value) in results[..m].iter().enumerate() {
                // SAFETY: the caller guarantees the elements; `apply` wrote `m` results.
                unsafe { out.add((at + i) * strides[0]).write(value.assume_init()) };
            }
        }
        at += m;
    }
}

/// One tile whose output has unit stride from column to column. Inputs that are strided along the columns
/// are packed into buffers first.
///
/// # Safety
/// As for [`run`], for each row and column of the tile.
#[inline(always)]
pub(crate) unsafe fn tile<I: Inputs, O: Element>(
    out: *mut O,
    inputs: I,
    (rows, columns): (usize, usize),
    (row, column): (PerOperand, PerOperand),
    f: &impl Fn(I::Item) -> O,
) {
    let mut buffers = I::buffers();
    let mut packed = [0; OPERANDS];
    let (mut row_step, mut column_step) = (row, column);
    for k in 1..=I::COUNT {
        if column[k] > 1 {
            packed[k] = 1;
            row_step[k] = TILE_COLUMNS;
            column_step[k] = 1;
        }
    }
    // SAFETY: the caller guarantees the tile.
    unsafe {
        inputs.pack(&mut buffers, packed, Strided { rows, columns, row, column });
        let from = inputs.choose(&buffers, packed);
        for r in 0..rows {
            let at = row_step.map(|s| s * r);
            run(out.add(at[0]), from.offset(at), columns, column_step, f);
        }
    }
}
