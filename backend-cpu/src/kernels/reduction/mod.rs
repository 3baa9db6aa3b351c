//! Reductions over any set of dimensions of any strided input.
//!
//! Decisions:
//! - strides decide the order of the loops: if neighbours in memory belong to one output, runs are accumulated in lanes; if
//!   they belong to different outputs, rows are added to a row of accumulators that stays in L1. Strided elements are first
//!   copied into a small contiguous block;
//! - the reduced space is split into blocks by sizes alone, and the blocks' results are combined in order, so that a result
//!   has the same bits for any number of threads; the blocks also bound the rounding error of long sums;
//! - only the innermost loops ([`loops`]) are compiled per reducer; the outer loops are type-erased, with element sizes.

mod geometry;
mod loops;
mod pass;

pub use geometry::{Geometry, offset, reduced, reduced_count};
pub use loops::{LANES, Reducer};

use super::buffer::try_parallel_for;
use keyway_sdk::author::{Element, Error, Lanes, Plain, View, ViewMut};
use loops::{Loops, Sizes};
use pass::{Cut, MANY_UNITS, Pass, Values};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

/// `out = finish(reduction of input over the dimensions in mask)`.
pub fn reduce<R: Reducer<Context = ()>, O: Element>(
    input: View<'_, R::In>,
    mask: u64,
    mut out: ViewMut<'_, O>,
    reducer: &R,
    finish: impl Fn(R::Acc) -> O + Sync,
) -> Result<(), Error> {
    let g = &Geometry::new(input.sizes(), input.strides(), out.strides(), mask);
    let to = out.lanes();
    // SAFETY: the input is that of the geometry and lives until the end of the call. `write` is called with accumulators of
    // the reducer, and with output offsets that no other call of it writes.
    unsafe {
        once(reducer, g, input.as_ptr().cast(), &|accs, n, at, stride| {
            place(to, at, stride, n, |i| finish(accs.cast::<R::Acc>().add(i).read()));
        })
    }
}

/// As [`reduce`]; returns whether `is_within` holds for every accumulator, so that all results are correct.
pub fn reduce_within<R: Reducer<Context = ()>, O: Element>(
    input: View<'_, R::In>,
    mask: u64,
    out: &mut ViewMut<'_, O>,
    reducer: &R,
    finish: impl Fn(R::Acc) -> O + Sync,
    is_within: impl Fn(R::Acc) -> bool + Sync,
) -> Result<bool, Error> {
    let g = &Geometry::new(input.sizes(), input.strides(), out.strides(), mask);
    let to = out.lanes();
    let beyond = AtomicBool::new(false);
    // SAFETY: as in `reduce`.
    unsafe {
        once(reducer, g, input.as_ptr().cast(), &|accs, n, at, stride| {
            let acc = |i: usize| accs.cast::<R::Acc>().add(i).read();
            place(to, at, stride, n, |i| finish(acc(i)));
            if !(0..n).fold(true, |all, i| all & is_within(acc(i))) {
                beyond.store(true, Ordering::Relaxed);
            }
        })?;
    }
    Ok(!beyond.into_inner())
}

/// Two passes: `middle` computes the second pass's context from the result of the first pass, and `finish` the output from
/// the context and the second result. Unit by unit, so that the second pass reads from the cache if a unit fits in it.
pub fn reduce_twice<A, B, O>(
    input: View<'_, A::In>,
    mask: u64,
    out: ViewMut<'_, O>,
    passes: (&A, &B),
    middle: impl Fn(A::Acc) -> B::Context + Sync,
    finish: impl Fn(B::Context, B::Acc) -> O + Sync,
) -> Result<(), Error>
where
    A: Reducer<Context = ()>,
    B: Reducer<In = A::In>,
    O: Element,
{
    // SAFETY: the first contexts have no size.
    unsafe { both(input, mask, out, passes, |(), acc| middle(acc), finish) }
}

/// As [`reduce_twice`], with the first element as the context of the first pass: for sums of differences from it, which
/// avoid the cancellation in sums of large values.
pub fn reduce_around<A, B, O>(
    input: View<'_, A::In>,
    mask: u64,
    out: ViewMut<'_, O>,
    passes: (&A, &B),
    middle: impl Fn(A::In, A::Acc) -> B::Context + Sync,
    finish: impl Fn(B::Context, B::Acc) -> O + Sync,
) -> Result<(), Error>
where
    A: Reducer<Context = <A as Reducer>::In, In: Plain>,
    B: Reducer<In = A::In>,
    O: Element,
{
    // SAFETY: the first contexts are elements of the input's type, for which every bit pattern is valid.
    unsafe { both(input, mask, out, passes, middle, finish) }
}

/// # Safety
/// The contexts of the first reducer must have no size, or be elements of the input for which every bit pattern is
/// valid.
unsafe fn both<A, B, O>(
    input: View<'_, A::In>,
    mask: u64,
    mut out: ViewMut<'_, O>,
    (first, second): (&A, &B),
    middle: impl Fn(A::Context, A::Acc) -> B::Context + Sync,
    finish: impl Fn(B::Context, B::Acc) -> O + Sync,
) -> Result<(), Error>
where
    A: Reducer,
    B: Reducer<In = A::In>,
    O: Element,
{
    let g = &Geometry::new(input.sizes(), input.strides(), out.strides(), mask);
    let to = out.lanes();
    // SAFETY: as in `reduce`; `between` is called with equally many contexts and accumulators and with capacity for the
    // second contexts, and `write` with contexts and accumulators. The caller guarantees the type of the first contexts.
    unsafe {
        twice(
            (first, second),
            g,
            input.as_ptr().cast(),
            &|firsts, accs, contexts, n| {
                for i in 0..n {
                    let of = firsts.cast::<A::Context>().add(i).read();
                    let context = middle(of, accs.cast::<A::Acc>().add(i).read());
                    contexts.cast::<B::Context>().add(i).write(context);
                }
            },
            &|contexts, accs, n, at, stride| {
                let (contexts, accs) = (contexts.cast::<B::Context>(), accs.cast::<B::Acc>());
                place(to, at, stride, n, |i| finish(contexts.add(i).read(), accs.add(i).read()));
            },
        )
    }
}

/// Writes `value(i)` at offset `at + i * stride` for each `i < n`.
///
/// # Safety
/// There must be outputs at these offsets, uniquely owned.
#[inline(always)]
unsafe fn place<O: Copy>(to: Lanes<'_, O>, at: usize, stride: usize, n: usize, value: impl Fn(usize) -> O) {
    const AT_ONCE: usize = 64;
    let mut dense = [const { MaybeUninit::<O>::uninit() }; AT_ONCE];
    let mut done = 0;
    while done < n {
        let some = AT_ONCE.min(n - done);
        // SAFETY: the caller guarantees the outputs; `dense` has capacity for `some` values, which are written first.
        unsafe {
            let out = to.as_ptr().add(at + done * stride);
            // Computed in place or in a contiguous buffer, so that a single vectorised loop is compiled.
            let made = if stride == 1 { out } else { dense.as_mut_ptr().cast::<O>() };
            (0..some).for_each(|i| made.add(i).write(value(done + i)));
            if stride != 1 {
                (0..some).for_each(|i| out.add(i * stride).write(made.add(i).read()));
            }
        }
        done += some;
    }
}

/// The dangling address of contexts without size.
const NOTHING: *const u8 = std::ptr::without_provenance(8);

/// Writes the outputs of `n` accumulators, starting at an offset, with a stride.
type Write<'a> = &'a (dyn Fn(*const u8, usize, usize, usize) + Sync);

/// # Safety
/// `input` must have elements of the loops' type at all offsets of the geometry, and the loops' context must have size 0.
unsafe fn once(loops: &dyn Loops, g: &Geometry, input: *const u8, write: Write<'_>) -> Result<(), Error> {
    if g.outputs == 0 {
        return Ok(());
    }
    let Sizes { acc, block, .. } = loops.sizes();
    let cut = &Cut::new(g, acc, block);
    let stride = g.kept.last().map_or(0, |d| d.out);
    // SAFETY: as the caller guarantees.
    let pass = unsafe { Pass::new(loops, g, cut, input) };
    if cut.units < MANY_UNITS && cut.blocks > 1 {
        // SAFETY: contexts have no size.
        let mut accs = unsafe { pass.blocks(NOTHING) }?;
        for unit in (0..cut.units).map(|u| cut.unit(g, u)) {
            write(accs.at(unit.first), unit.width, unit.out, stride);
        }
        return Ok(());
    }
    try_parallel_for(cut.units, cut.grain(g), |units| {
        let (mut accs, mut part) = (Values::new(cut.width, acc)?, Values::new(cut.width, acc)?);
        for unit in units.map(|u| cut.unit(g, u)) {
            // SAFETY: contexts have no size; there is an accumulator for each output of a unit.
            unsafe { pass.unit(&unit, NOTHING, accs.at(0), part.at(0)) };
            write(accs.at(0), unit.width, unit.out, stride);
        }
        Ok(())
    })
}

/// Computes the second contexts from `n` first contexts and accumulators.
type Between<'a> = &'a (dyn Fn(*const u8, *const u8, *mut u8, usize) + Sync);
/// As [`Write`], with contexts.
type WriteBoth<'a> = &'a (dyn Fn(*const u8, *const u8, usize, usize, usize) + Sync);

/// # Safety
/// `input` must have elements of both loops' type at all offsets of the geometry; the first loops' contexts must have no
/// size, or be such elements: the first of each output, zero bytes if there is none.
unsafe fn twice(
    (first, second): (&dyn Loops, &dyn Loops),
    g: &Geometry,
    input: *const u8,
    between: Between<'_>,
    write: WriteBoth<'_>,
) -> Result<(), Error> {
    if g.outputs == 0 {
        return Ok(());
    }
    let (one, two) = (first.sizes(), second.sizes());
    let cut = &Cut::new(g, one.acc.max(two.acc), one.block.min(two.block));
    let stride = g.kept.last().map_or(0, |d| d.out);
    // SAFETY: as the caller guarantees.
    let (a, b) = unsafe { (Pass::new(first, g, cut, input), Pass::new(second, g, cut, input)) };
    if cut.units < MANY_UNITS && cut.blocks > 1 {
        let mut firsts = Values::new(g.outputs, one.context)?;
        let mut contexts = Values::new(g.outputs, two.context)?;
        for unit in (0..cut.units).map(|u| cut.unit(g, u)) {
            // SAFETY: there is memory for a context of each output.
            unsafe { a.firsts(&unit, firsts.at(unit.first)) };
        }
        // SAFETY: there is a first context for each output; `between` writes the second ones, one for each output.
        let mut accs = unsafe {
            between(firsts.at(0), a.blocks(firsts.at(0))?.at(0), contexts.at(0), g.outputs);
            b.blocks(contexts.at(0))?
        };
        for unit in (0..cut.units).map(|u| cut.unit(g, u)) {
            write(contexts.at(unit.first), accs.at(unit.first), unit.width, unit.out, stride);
        }
        return Ok(());
    }
    try_parallel_for(cut.units, cut.grain(g), |units| {
        let values = |bytes| Values::new(cut.width, bytes);
        let (mut accs, mut part) = (values(one.acc)?, values(one.acc)?);
        let (mut results, mut result_part) = (values(two.acc)?, values(two.acc)?);
        let (mut firsts, mut contexts) = (values(one.context)?, values(two.context)?);
        for unit in units.map(|u| cut.unit(g, u)) {
            // SAFETY: there is memory for each output of a unit.
            unsafe {
                a.firsts(&unit, firsts.at(0));
                a.unit(&unit, firsts.at(0), accs.at(0), part.at(0));
                between(firsts.at(0), accs.at(0), contexts.at(0), unit.width);
                b.unit(&unit, contexts.at(0), results.at(0), result_part.at(0));
            }
            write(contexts.at(0), results.at(0), unit.width, unit.out, stride);
        }
        Ok(())
    })
}
