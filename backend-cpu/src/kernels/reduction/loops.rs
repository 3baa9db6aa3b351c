//! The inner loops of reductions: elements of one output, and rows of many outputs.

use super::geometry::{Dim, Geometry, offset};
use keyway_sdk::author::Element;
use std::ops::Range;

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
    /// The result of no elements.
    fn identity(&self) -> Self::Acc;
    /// The contribution of one element.
    fn load(&self, context: Self::Context, x: Self::In) -> Self::Acc;
    /// The result of two parts.
    fn combine(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
}

/// Rows that are added up before they meet the accumulators.
const ROWS: usize = 8;

/// `n` elements from `at`.
///
/// # Safety
/// Each element at `i * stride`, `i < n`, must exist; views uphold this. So for all functions here.
#[inline(always)]
unsafe fn run<R: Reducer>(r: &R, context: R::Context, at: *const R::In, n: usize, stride: usize) -> R::Acc {
    if stride == 1 && n >= 32 {
        // As many lanes as fill four vectors of 32 bytes.
        // SAFETY: as for this function.
        return unsafe {
            if size_of::<R::Acc>() <= 4 {
                lanes::<R, 32>(r, context, at, n)
            } else {
                lanes::<R, 16>(r, context, at, n)
            }
        };
    }
    let mut parts = [r.identity(); 4];
    let mut i = 0;
    while i + 4 <= n {
        for (k, part) in parts.iter_mut().enumerate() {
            // SAFETY: as for this function.
            *part = r.combine(*part, r.load(context, unsafe { R::In::load(at.add((i + k) * stride)) }));
        }
        i += 4;
    }
    while i < n {
        // SAFETY: as for this function.
        parts[0] = r.combine(parts[0], r.load(context, unsafe { R::In::load(at.add(i * stride)) }));
        i += 1;
    }
    r.combine(r.combine(parts[0], parts[2]), r.combine(parts[1], parts[3]))
}

#[inline(always)]
unsafe fn lanes<R: Reducer, const L: usize>(
    r: &R,
    context: R::Context,
    at: *const R::In,
    n: usize,
) -> R::Acc {
    let mut parts = [r.identity(); L];
    let whole = n - n % L;
    let mut i = 0;
    while i < whole {
        for (k, part) in parts.iter_mut().enumerate() {
            // SAFETY: as for `run`.
            *part = r.combine(*part, r.load(context, unsafe { R::In::load(at.add(i + k)) }));
        }
        i += L;
    }
    for (k, part) in parts.iter_mut().enumerate().take(n - whole) {
        // SAFETY: as for `run`.
        *part = r.combine(*part, r.load(context, unsafe { R::In::load(at.add(whole + k)) }));
    }
    let mut width = L;
    while width > 1 {
        width /= 2;
        for k in 0..width {
            parts[k] = r.combine(parts[k], parts[k + width]);
        }
    }
    parts[0]
}

/// One output from the elements in `range` of the reduced space.
///
/// # Safety
/// See [`run`].
#[inline(always)]
pub unsafe fn row<R: Reducer>(
    r: &R,
    context: R::Context,
    at: *const R::In,
    reduced: &[Dim],
    range: Range<usize>,
) -> R::Acc {
    let Some((inner, outer)) = reduced.split_last() else {
        // SAFETY: as for this function.
        return r.load(context, unsafe { R::In::load(at) });
    };
    if outer.is_empty() {
        // SAFETY: as for this function.
        return unsafe { run(r, context, at.add(range.start * inner.stride), range.len(), inner.stride) };
    }
    let mut acc = r.identity();
    let mut next = range.start;
    while next < range.end {
        let i = next % inner.size;
        let n = (inner.size - i).min(range.end - next);
        let (from, _) = offset(outer, next / inner.size);
        // SAFETY: as for this function.
        acc = r.combine(acc, unsafe { run(r, context, at.add(from + i * inner.stride), n, inner.stride) });
        next += n;
    }
    acc
}

/// Neighbouring outputs, `stride` apart in the input, from the elements in `range` of the reduced space.
///
/// # Safety
/// See [`run`].
#[inline(always)]
pub unsafe fn columns<R: Reducer>(
    r: &R,
    contexts: &[R::Context],
    at: *const R::In,
    stride: usize,
    g: &Geometry,
    range: Range<usize>,
    accs: &mut [R::Acc],
) {
    accs.fill(r.identity());
    let mut next = range.start;
    while next < range.end {
        let n = ROWS.min(range.end - next);
        let rows: [*const R::In; ROWS] = std::array::from_fn(|k| {
            let (from, _) = offset(&g.reduced, next + k.min(n - 1));
            // SAFETY: as for this function; a row beyond the last is the last again.
            unsafe { at.add(from) }
        });
        // SAFETY: as for this function.
        unsafe {
            match (n == ROWS, stride) {
                (true, 1) => eight(r, contexts, &rows, 1, accs),
                (true, _) => eight(r, contexts, &rows, stride, accs),
                _ => rows[..n].iter().for_each(|row| one(r, contexts, *row, stride, accs)),
            }
        }
        next += n;
    }
}

#[inline(always)]
unsafe fn eight<R: Reducer>(
    r: &R,
    contexts: &[R::Context],
    rows: &[*const R::In; ROWS],
    stride: usize,
    accs: &mut [R::Acc],
) {
    let contexts = &contexts[..accs.len()];
    for (j, (acc, context)) in accs.iter_mut().zip(contexts).enumerate() {
        // SAFETY: as for `columns`.
        let x = |k: usize| r.load(*context, unsafe { R::In::load(rows[k].add(j * stride)) });
        let low = r.combine(r.combine(x(0), x(1)), r.combine(x(2), x(3)));
        let high = r.combine(r.combine(x(4), x(5)), r.combine(x(6), x(7)));
        *acc = r.combine(*acc, r.combine(low, high));
    }
}

#[inline(always)]
unsafe fn one<R: Reducer>(
    r: &R,
    contexts: &[R::Context],
    row: *const R::In,
    stride: usize,
    accs: &mut [R::Acc],
) {
    let contexts = &contexts[..accs.len()];
    for (j, (acc, context)) in accs.iter_mut().zip(contexts).enumerate() {
        // SAFETY: as for `columns`.
        *acc = r.combine(*acc, r.load(*context, unsafe { R::In::load(row.add(j * stride)) }));
    }
}
