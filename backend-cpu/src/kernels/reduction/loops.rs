//! The inner loops of reductions, all that is compiled for each of them: elements in a row that make one result,
//! and neighbouring elements of some rows that each make one.

use keyway_cpu_loops::transpose;
use keyway_cpu_loops::vectors::halves;
use keyway_sdk::author::Element;

/// How many elements are made one.
///
/// `combine` must be associative up to rounding, with `identity` its neutral element: the order of the
/// elements is that of memory. It depends on sizes and strides alone.
pub trait Reducer: Sync {
    /// What is read.
    type In: Element;
    /// What is accumulated.
    type Acc: Copy + Send + Sync + 'static;
    /// What an output's elements have in common, as the mean for the variance; `()` for nothing.
    type Context: Copy + Send + Sync;
    /// Elements of one result that are reduced without a break.
    const BLOCK: usize = 16 * 1024;
    /// Whether parts may be combined in any order, as those of integers: the compiler then finds lanes of its own, and is put
    /// off by ours.
    const ANY_ORDER: bool = false;
    /// The result of no elements.
    fn identity(&self) -> Self::Acc;
    /// The contribution of one element.
    fn load(&self, context: Self::Context, x: Self::In) -> Self::Acc;
    /// The result of two parts.
    fn combine(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The result of the lanes of a run, which may be written over.
    #[inline(always)]
    fn total(&self, lanes: &mut [Self::Acc; LANES]) -> Self::Acc {
        halves(lanes, |a, b| self.combine(a, b))
    }
}

/// The lanes of a run: with fewer each addition of f64 waits for the one before it.
pub const LANES: usize = 32;

/// The lanes of what a run has more than a multiple of [`LANES`].
const FEW_LANES: usize = 4;

/// Rows that are combined before they meet the accumulators.
pub const ROWS: usize = 8;

/// Lines that are reduced together, and the lanes of each: the lanes of all are combined by vectors once they are transposed.
const TOGETHER: usize = 8;
/// Elements of a line up to which combining its own lanes would take as long as its elements.
const SHORT: usize = 256;

/// Columns whose accumulators stay in registers while they go down some rows, and the bytes of those rows, which stay in L1.
const COLUMNS: usize = 32;
const DOWN: usize = 16 * 1024;

/// The loops of a [`Reducer`] without its types: contexts, elements and accumulators are given by address.
///
/// # Safety
/// In each function the caller guarantees as many elements, contexts and accumulators of the reducer's types as are
/// named, aligned, the accumulators written only here.
pub trait Loops: Sync {
    /// Bytes of an element, a context and an accumulator, and the elements of a block.
    fn sizes(&self) -> Sizes;
    /// Sets `n` accumulators to the result of no elements.
    unsafe fn start(&self, accs: *mut u8, n: usize);
    /// Adds `n` elements in a row to each of `lines` accumulators, those of one `apart` elements from those of the one before.
    unsafe fn lines(
        &self,
        contexts: *const u8,
        at: *const u8,
        n: usize,
        apart: usize,
        lines: usize,
        accs: *mut u8,
    );
    /// Adds the `n` elements at each of at most [`ROWS`] places to `n` accumulators.
    unsafe fn rows(&self, contexts: *const u8, rows: &[*const u8], n: usize, accs: *mut u8);
    /// Adds `rows` rows of `n` elements, a multiple of [`ROWS`] of them, `stride` elements apart, to `n` accumulators, in the order
    /// of [`Loops::rows`].
    unsafe fn grid(
        &self,
        contexts: *const u8,
        at: *const u8,
        stride: usize,
        rows: usize,
        n: usize,
        accs: *mut u8,
    );
    /// Adds `n` results to `n` accumulators.
    unsafe fn merge(&self, accs: *mut u8, parts: *const u8, n: usize);
}

/// See [`Loops::sizes`].
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Of an element.
    pub element: usize,
    /// Of a context.
    pub context: usize,
    /// Of an accumulator.
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
            // SAFETY: the caller guarantees room for the accumulators.
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
        let mut done = 0;
        let short = !R::ANY_ORDER && matches!(size_of::<R::Acc>(), 4 | 8) && (TOGETHER..=SHORT).contains(&n);
        if short {
            while done + TOGETHER <= lines {
                // SAFETY: the caller guarantees the elements, the contexts and the accumulators.
                unsafe {
                    let contexts = contexts.cast::<R::Context>().add(done);
                    let at = at.cast::<R::In>().add(done * apart);
                    together(self, contexts, at, n, apart, accs.cast::<R::Acc>().add(done));
                }
                done += TOGETHER;
            }
        }
        for k in done..lines {
            // SAFETY: as above.
            unsafe {
                let at = at.cast::<R::In>().add(k * apart);
                let context = contexts.cast::<R::Context>().add(k).read();
                let acc = accs.cast::<R::Acc>().add(k);
                let part = match () {
                    () if R::ANY_ORDER => plain(self, context, at, n),
                    () if short => total(self, &few_lanes(self, context, at, n)),
                    () => in_lanes(self, context, at, n),
                };
                *acc = self.combine(*acc, part);
            }
        }
    }

    unsafe fn rows(&self, contexts: *const u8, rows: &[*const u8], n: usize, accs: *mut u8) {
        // SAFETY: the caller guarantees the contexts and the accumulators, which nobody else uses.
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
        // SAFETY: the caller guarantees the contexts and the accumulators, which nobody else uses.
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

/// Adds the `n` elements of each of [`TOGETHER`] lines to its accumulator.
///
/// # Safety
/// See [`Loops`].
#[inline(always)]
unsafe fn together<R: Reducer>(
    r: &R,
    contexts: *const R::Context,
    at: *const R::In,
    n: usize,
    apart: usize,
    accs: *mut R::Acc,
) {
    let mut parts = [[r.identity(); TOGETHER]; TOGETHER];
    for (k, parts) in parts.iter_mut().enumerate() {
        // SAFETY: the caller guarantees the elements and the contexts.
        *parts = unsafe { few_lanes(r, contexts.add(k).read(), at.add(k * apart), n) };
    }
    let mut lanes = [[r.identity(); TOGETHER]; TOGETHER];
    // SAFETY: both are matrices of accumulators, of 4 or 8 bytes each; the caller guarantees the accumulators.
    unsafe {
        let (to, from) = (lanes.as_mut_ptr().cast::<R::Acc>(), parts.as_ptr().cast::<R::Acc>());
        transpose(to, TOGETHER, from, TOGETHER, TOGETHER, TOGETHER);
        for k in 0..TOGETHER {
            let acc = accs.add(k);
            *acc = r.combine(*acc, total(r, &std::array::from_fn(|l| lanes[l][k])));
        }
    }
}

/// A line by as many lanes as a line of [`together`] has.
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
    let whole = n - n % TOGETHER;
    let mut lanes = [r.identity(); TOGETHER];
    for i in (0..whole).step_by(TOGETHER) {
        // SAFETY: the caller guarantees the elements.
        unsafe { add(r, context, at.add(i), &mut lanes) };
    }
    for (i, lane) in (whole..n).zip(&mut lanes) {
        // SAFETY: as above.
        *lane = r.combine(*lane, r.load(context, unsafe { R::In::load(at.add(i)) }));
    }
    lanes
}

/// The result of a line's lanes.
#[inline(always)]
fn total<R: Reducer>(r: &R, lanes: &[R::Acc; TOGETHER]) -> R::Acc {
    let pair = |l: usize| r.combine(lanes[l], lanes[l + TOGETHER / 2]);
    r.combine(r.combine(pair(0), pair(2)), r.combine(pair(1), pair(3)))
}

/// Adds the columns of some rows to accumulators that stay in registers.
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
        let mut parts = [r.identity(); LANES];
        // SAFETY: the caller guarantees the elements, of which there are as many behind `i`.
        unsafe {
            if size_of::<R::Acc>() <= 4 && cfg!(target_feature = "avx2") {
                // As many again, which the registers hold: with fewer each operation waits for the one before.
                let mut others = [r.identity(); LANES];
                while i + 2 * LANES <= n {
                    add(r, context, at.add(i), &mut parts);
                    add(r, context, at.add(i + LANES), &mut others);
                    i += 2 * LANES;
                }
                for (part, other) in parts.iter_mut().zip(others) {
                    *part = r.combine(*part, other);
                }
            }
            while i + LANES <= n {
                add(r, context, at.add(i), &mut parts);
                i += LANES;
            }
        }
        result = r.total(&mut parts);
    }
    // The rest by fewer lanes, whose operations do not wait for the total.
    let mut rest = [r.identity(); FEW_LANES];
    while i + FEW_LANES <= n {
        // SAFETY: the caller guarantees the elements, of which there are as many behind `i`.
        unsafe { add(r, context, at.add(i), &mut rest) };
        i += FEW_LANES;
    }
    let rest = halves(&mut rest, |a, b| r.combine(a, b));
    // SAFETY: the caller guarantees the elements.
    r.combine(result, r.combine(rest, unsafe { plain(r, context, at.add(i), n - i) }))
}

/// Adds an element to each lane.
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
