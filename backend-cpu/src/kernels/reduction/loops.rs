//! The inner loops of reductions, the only code compiled per reducer: over contiguous elements that are reduced to one
//! result, and over rows whose neighbouring elements belong to different results.

use keyway_cpu_loops::transpose;
use keyway_cpu_loops::vectors::halves;
use keyway_sdk::author::Element;
use std::hint::black_box;
use std::ops::RangeInclusive;

/// A reduction of many elements to one value.
///
/// `combine` must be associative up to rounding, with `identity` as its neutral element: elements are combined in memory
/// order, in a tree that depends on sizes and strides alone.
pub trait Reducer: Sync {
    /// The element type of the input.
    type In: Element;
    /// The accumulator.
    type Acc: Copy + Send + Sync + 'static;
    /// The context of an output's reduction, such as the mean for the variance; `()` if there is none.
    type Context: Copy + Send + Sync;
    /// The number of elements of one result per partial reduction.
    const BLOCK: usize = 16 * 1024;
    /// Whether parts may be combined in any order, as for integers: the compiler then vectorises a plain loop, and explicit
    /// lanes prevent it.
    const ANY_ORDER: bool = false;
    /// The result of an empty reduction.
    fn identity(&self) -> Self::Acc;
    /// Converts one element to an accumulator.
    fn load(&self, context: Self::Context, x: Self::In) -> Self::Acc;
    /// Combines two partial results.
    fn combine(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Combines the lanes of a run, which may be overwritten.
    #[inline(always)]
    fn total(&self, lanes: &mut [Self::Acc; LANES]) -> Self::Acc {
        halves(lanes, |a, b| self.combine(a, b))
    }
}

/// The number of lanes of a run: with fewer, each f64 addition waits for the previous one.
pub const LANES: usize = 32;

/// The number of lanes in one array.
const GROUP: usize = 8;

/// The number of lanes for the tail of a run after a multiple of [`LANES`].
const FEW_LANES: usize = 4;

/// The number of rows that are combined before they are added to the accumulators.
pub const ROWS: usize = 8;

/// The number of short lines that are reduced together, and of lanes of each: all lanes are transposed, then combined by
/// vectors.
const TOGETHER: usize = 8;
/// The lengths of lines that are reduced in this way: shorter ones have few lanes to combine, longer ones many elements per
/// lane.
const SHORT: RangeInclusive<usize> = 32..=256;

/// The number of columns whose accumulators stay in registers over several rows, and the bytes of those rows, which stay in L1.
const COLUMNS: usize = 32;
const DOWN: usize = 16 * 1024;

/// The loops of a [`Reducer`] without its types: contexts, elements and accumulators are passed by address.
///
/// # Safety
/// The caller of each function guarantees the stated number of elements, contexts and accumulators, with the reducer's
/// types and aligned, and that the accumulators are uniquely owned.
pub trait Loops: Sync {
    /// The sizes in bytes of an element, a context and an accumulator, and the number of elements of a block.
    fn sizes(&self) -> Sizes;
    /// Sets `n` accumulators to the identity.
    unsafe fn start(&self, accs: *mut u8, n: usize);
    /// Reduces `n` contiguous elements into each of `lines` accumulators; lines have stride `apart`, in elements.
    unsafe fn lines(
        &self,
        contexts: *const u8,
        at: *const u8,
        n: usize,
        apart: usize,
        lines: usize,
        accs: *mut u8,
    );
    /// Reduces the rows of `n` elements at each of at most [`ROWS`] addresses into `n` accumulators.
    unsafe fn rows(&self, contexts: *const u8, rows: &[*const u8], n: usize, accs: *mut u8);
    /// Reduces `rows` rows of `n` elements, a multiple of [`ROWS`] rows with stride `stride`, into `n` accumulators, in the
    /// order of [`Loops::rows`].
    unsafe fn grid(
        &self,
        contexts: *const u8,
        at: *const u8,
        stride: usize,
        rows: usize,
        n: usize,
        accs: *mut u8,
    );
    /// Combines `n` partial results into `n` accumulators.
    unsafe fn merge(&self, accs: *mut u8, parts: *const u8, n: usize);
}

/// See [`Loops::sizes`].
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of an element.
    pub element: usize,
    /// Bytes of a context.
    pub context: usize,
    /// Bytes of an accumulator.
    pub acc: usize,
    /// [`Reducer::BLOCK`].
    pub block: usize,
}

impl<R: Reducer> Loops for R {
    fn sizes(&self) -> Sizes {
        const { assert!(align_of::<R::Acc>() <= 8 && align_of::<R::Context>() <= 8) };
        Sizes {
            element: size_of::<R::In>(),
            context: size_of::<R::Context>(),
            acc: size_of::<R::Acc>(),
            block: R::BLOCK,
        }
    }

    unsafe fn start(&self, accs: *mut u8, n: usize) {
        for i in 0..n {
            // SAFETY: the caller guarantees memory for the accumulators.
            unsafe { accs.cast::<R::Acc>().add(i).write(self.identity()) };
        }
    }

    unsafe fn lines(
        &self,
        contexts: *const u8,
        at: *const u8,
        n: usize,
        apart: usize,
        lines: usize,
        accs: *mut u8,
    ) {
        if !R::ANY_ORDER && matches!(size_of::<R::Acc>(), 4 | 8) && SHORT.contains(&n) {
            // SAFETY: as the caller guarantees.
            return unsafe {
                short_lines(self, contexts.cast(), at.cast(), (n, apart, lines), accs.cast::<R::Acc>())
            };
        }
        for k in 0..lines {
            // SAFETY: the caller guarantees the elements, the contexts and the accumulators.
            unsafe {
                let at = at.cast::<R::In>().add(k * apart);
                let context = contexts.cast::<R::Context>().add(k).read();
                let acc = accs.cast::<R::Acc>().add(k);
                let part =
                    if R::ANY_ORDER { plain(self, context, at, n) } else { in_lanes(self, context, at, n) };
                *acc = self.combine(*acc, part);
            }
        }
    }

    unsafe fn rows(&self, contexts: *const u8, rows: &[*const u8], n: usize, accs: *mut u8) {
        // SAFETY: the caller guarantees the contexts and the accumulators, uniquely owned.
        let (contexts, accs) = unsafe {
            (
                std::slice::from_raw_parts(contexts.cast::<R::Context>(), n),
                std::slice::from_raw_parts_mut(accs.cast::<R::Acc>(), n),
            )
        };
        // SAFETY: the caller guarantees the elements.
        unsafe {
            match <&[*const u8; ROWS]>::try_from(rows) {
                Ok(rows) => eight(self, contexts, rows, accs),
                Err(_) => rows.iter().for_each(|row| one(self, contexts, row.cast(), accs)),
            }
        }
    }

    unsafe fn grid(
        &self,
        contexts: *const u8,
        at: *const u8,
        stride: usize,
        rows: usize,
        n: usize,
        accs: *mut u8,
    ) {
        // SAFETY: the caller guarantees the contexts and the accumulators, uniquely owned.
        let (contexts, accs) = unsafe {
            (
                std::slice::from_raw_parts(contexts.cast::<R::Context>(), n),
                std::slice::from_raw_parts_mut(accs.cast::<R::Acc>(), n),
            )
        };
        let at = at.cast::<R::In>();
        let height = (DOWN / (n * size_of::<R::In>()).max(1) / ROWS * ROWS).max(ROWS);
        for first in (0..rows).step_by(height) {
            let height = height.min(rows - first);
            let (wide, narrow) = contexts.as_chunks::<COLUMNS>();
            let (accs, rest) = accs.as_chunks_mut::<COLUMNS>();
            let columns = accs.len() * COLUMNS;
            // SAFETY: the caller guarantees the elements.
            unsafe {
                let at = at.add(first * stride);
                for (j, (accs, contexts)) in accs.iter_mut().zip(wide).enumerate() {
                    down(self, contexts, at.add(j * COLUMNS), stride, height, accs);
                }
                if !rest.is_empty() {
                    for row in (0..height).step_by(ROWS) {
                        let row = |k: usize| at.add((row + k) * stride + columns).cast::<u8>();
                        eight(self, narrow, &std::array::from_fn(row), rest);
                    }
                }
            }
        }
    }

    unsafe fn merge(&self, accs: *mut u8, parts: *const u8, n: usize) {
        for i in 0..n {
            // SAFETY: the caller guarantees the accumulators and the results.
            unsafe {
                let (acc, part) = (accs.cast::<R::Acc>().add(i), parts.cast::<R::Acc>().add(i));
                *acc = self.combine(*acc, *part);
            }
        }
    }
}

/// [`Loops::lines`] for line lengths in [`SHORT`]. A separate function: if it were inlined with [`in_lanes`], its lanes
/// would not stay in registers.
///
/// # Safety
/// See [`Loops`].
#[inline(never)]
unsafe fn short_lines<R: Reducer>(
    r: &R,
    contexts: *const R::Context,
    at: *const R::In,
    (n, apart, lines): (usize, usize, usize),
    accs: *mut R::Acc,
) {
    let whole = lines - lines % TOGETHER;
    // SAFETY: the caller guarantees the elements, the contexts and the accumulators.
    unsafe {
        for k in (0..whole).step_by(TOGETHER) {
            together(r, contexts.add(k), at.add(k * apart), n, apart, accs.add(k));
        }
        for k in whole..lines {
            let acc = accs.add(k);
            *acc = r.combine(*acc, line(r, contexts.add(k).read(), at.add(k * apart), n));
        }
    }
}

/// Reduces the `n` elements of each of [`TOGETHER`] lines into its accumulator.
///
/// # Safety
/// See [`Loops`].
#[inline(always)]
#[allow(clippy::needless_range_loop)]
unsafe fn together<R: Reducer>(
    r: &R,
    contexts: *const R::Context,
    at: *const R::In,
    n: usize,
    apart: usize,
    accs: *mut R::Acc,
) {
    let whole = n - n % TOGETHER;
    let (mut parts, mut rests) = ([[r.identity(); TOGETHER]; TOGETHER], [r.identity(); TOGETHER]);
    for k in 0..TOGETHER {
        // SAFETY: the caller guarantees the elements and the contexts.
        unsafe {
            let (context, at) = (contexts.add(k).read(), at.add(k * apart));
            parts[k] = few_lanes(r, context, at, whole);
            if whole < n {
                rests[k] = plain(r, context, at.add(whole), n - whole);
            }
        }
    }
    let mut lanes = [[r.identity(); TOGETHER]; TOGETHER];
    // SAFETY: both are matrices of accumulators of 4 or 8 bytes each; the caller guarantees the accumulators.
    unsafe {
        let (to, from) = (lanes.as_mut_ptr().cast::<R::Acc>(), parts.as_ptr().cast::<R::Acc>());
        transpose(to, TOGETHER, from, TOGETHER, TOGETHER, TOGETHER);
        for k in 0..TOGETHER {
            let all = total(r, &std::array::from_fn(|l| lanes[l][k]));
            *accs.add(k) = r.combine(*accs.add(k), r.combine(all, rests[k]));
        }
    }
}

/// Reduces one line in the order of [`together`].
///
/// # Safety
/// See [`Loops`].
#[inline(always)]
unsafe fn line<R: Reducer>(r: &R, context: R::Context, at: *const R::In, n: usize) -> R::Acc {
    let whole = n - n % TOGETHER;
    // SAFETY: the caller guarantees the elements.
    unsafe {
        let all = total(r, &few_lanes(r, context, at, whole));
        r.combine(all, plain(r, context, at.add(whole), n - whole))
    }
}

/// Accumulates `n` elements, a multiple of [`TOGETHER`], in lanes.
///
/// # Safety
/// See [`Loops`].
#[inline(always)]
unsafe fn few_lanes<R: Reducer>(
    r: &R,
    context: R::Context,
    at: *const R::In,
    n: usize,
) -> [R::Acc; TOGETHER] {
    let mut lanes = [r.identity(); TOGETHER];
    for i in (0..n).step_by(TOGETHER) {
        // SAFETY: the caller guarantees the elements.
        unsafe { add(r, context, at.add(i), &mut lanes) };
    }
    lanes
}

/// Combines the lanes of a line.
#[inline(always)]
fn total<R: Reducer>(r: &R, lanes: &[R::Acc; TOGETHER]) -> R::Acc {
    let pair = |l: usize| r.combine(lanes[l], lanes[l + TOGETHER / 2]);
    r.combine(r.combine(pair(0), pair(2)), r.combine(pair(1), pair(3)))
}

/// Reduces the columns of several rows into accumulators in registers.
///
/// # Safety
/// See [`Loops`].
#[inline(always)]
unsafe fn down<R: Reducer>(
    r: &R,
    contexts: &[R::Context; COLUMNS],
    at: *const R::In,
    stride: usize,
    rows: usize,
    accs: &mut [R::Acc; COLUMNS],
) {
    let mut all = *accs;
    for row in (0..rows).step_by(ROWS) {
        // SAFETY: the caller guarantees the elements.
        let at = unsafe { at.add(row * stride) };
        for (j, acc) in all.iter_mut().enumerate() {
            // SAFETY: as above.
            let x = |k: usize| r.load(contexts[j], unsafe { R::In::load(at.add(k * stride + j)) });
            let low = r.combine(r.combine(x(0), x(1)), r.combine(x(2), x(3)));
            let high = r.combine(r.combine(x(4), x(5)), r.combine(x(6), x(7)));
            *acc = r.combine(*acc, r.combine(low, high));
        }
    }
    *accs = all;
}

/// # Safety
/// See [`Loops`].
#[inline(always)]
unsafe fn in_lanes<R: Reducer>(r: &R, context: R::Context, at: *const R::In, n: usize) -> R::Acc {
    let mut result = r.identity();
    let mut i = 0;
    if n >= LANES {
        // Separate arrays of one or two vectors: one array of all lanes would not be promoted to registers.
        let [mut a, mut b, mut c, mut d] = [[r.identity(); GROUP]; LANES / GROUP];
        // SAFETY: the caller guarantees the elements, and there are enough after index `i`.
        unsafe {
            if size_of::<R::Acc>() <= 4 && cfg!(target_feature = "avx2") {
                // Twice as many accumulators, which still fit the registers: with fewer, each operation waits for the
                // previous one.
                let [mut e, mut f, mut g, mut h] = [[r.identity(); GROUP]; LANES / GROUP];
                while i + 2 * LANES <= n {
                    let at = at.add(i);
                    add(r, context, at, &mut a);
                    add(r, context, at.add(GROUP), &mut b);
                    add(r, context, at.add(2 * GROUP), &mut c);
                    add(r, context, at.add(3 * GROUP), &mut d);
                    add(r, context, at.add(LANES), &mut e);
                    add(r, context, at.add(LANES + GROUP), &mut f);
                    add(r, context, at.add(LANES + 2 * GROUP), &mut g);
                    add(r, context, at.add(LANES + 3 * GROUP), &mut h);
                    i += 2 * LANES;
                }
                // As for the lanes below.
                for (all, more) in [&mut a, &mut b, &mut c, &mut d].into_iter().zip(black_box([e, f, g, h])) {
                    for (all, more) in all.iter_mut().zip(more) {
                        *all = r.combine(*all, more);
                    }
                }
            }
            while i + LANES <= n {
                let at = at.add(i);
                add(r, context, at, &mut a);
                add(r, context, at.add(GROUP), &mut b);
                add(r, context, at.add(2 * GROUP), &mut c);
                add(r, context, at.add(3 * GROUP), &mut d);
                i += LANES;
            }
        }
        let mut lanes = [r.identity(); LANES];
        // The arrays pass through memory: otherwise the order of the combination would decide how the compiler assigns
        // lanes to registers, with a quarter of each register in use.
        for (to, group) in lanes.as_chunks_mut::<GROUP>().0.iter_mut().zip(black_box([a, b, c, d])) {
            *to = group;
        }
        result = r.total(&mut lanes);
    }
    // The tail by fewer lanes, whose operations do not depend on the total.
    let mut rest = [r.identity(); FEW_LANES];
    while i + FEW_LANES <= n {
        // SAFETY: the caller guarantees the elements, and there are enough after index `i`.
        unsafe { add(r, context, at.add(i), &mut rest) };
        i += FEW_LANES;
    }
    let rest = halves(&mut rest, |a, b| r.combine(a, b));
    // SAFETY: the caller guarantees the elements.
    r.combine(result, r.combine(rest, unsafe { plain(r, context, at.add(i), n - i) }))
}

/// Accumulates one element in each lane.
///
/// # Safety
/// See [`Loops`].
#[inline(always)]
unsafe fn add<R: Reducer, const N: usize>(
    r: &R,
    context: R::Context,
    at: *const R::In,
    parts: &mut [R::Acc; N],
) {
    for (k, part) in parts.iter_mut().enumerate() {
        // SAFETY: the caller guarantees the elements.
        *part = r.combine(*part, r.load(context, unsafe { R::In::load(at.add(k)) }));
    }
}

/// # Safety
/// See [`Loops`].
#[inline(always)]
unsafe fn plain<R: Reducer>(r: &R, context: R::Context, at: *const R::In, n: usize) -> R::Acc {
    let mut result = r.identity();
    for i in 0..n {
        // SAFETY: the caller guarantees the elements.
        result = r.combine(result, r.load(context, unsafe { R::In::load(at.add(i)) }));
    }
    result
}

/// # Safety
/// See [`Loops`].
#[inline(always)]
unsafe fn eight<R: Reducer>(r: &R, contexts: &[R::Context], rows: &[*const u8; ROWS], accs: &mut [R::Acc]) {
    for (j, (acc, context)) in accs.iter_mut().zip(contexts).enumerate() {
        // SAFETY: the caller guarantees the elements.
        let x = |k: usize| r.load(*context, unsafe { R::In::load(rows[k].cast::<R::In>().add(j)) });
        let low = r.combine(r.combine(x(0), x(1)), r.combine(x(2), x(3)));
        let high = r.combine(r.combine(x(4), x(5)), r.combine(x(6), x(7)));
        *acc = r.combine(*acc, r.combine(low, high));
    }
}

/// # Safety
/// See [`Loops`].
#[inline(always)]
unsafe fn one<R: Reducer>(r: &R, contexts: &[R::Context], row: *const R::In, accs: &mut [R::Acc]) {
    for (j, (acc, context)) in accs.iter_mut().zip(contexts).enumerate() {
        // SAFETY: the caller guarantees the elements.
        *acc = r.combine(*acc, r.load(*context, unsafe { R::In::load(row.add(j)) }));
    }
}
