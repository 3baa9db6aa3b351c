//! `cross`: the vector product. It is computed in the wide type and rounded once, as in the decomposition.

use super::cells::{Cells, overlap};
use super::dims::wrapped;
use super::nest::{Nest, dims};
use super::number::Number;
use keyway_sdk::author::{Call, Element, Error, Widen};
use keyway_sdk::half::{bf16, f16};

/// The cost of a vector relative to a copied element.
const WEIGHT: usize = 8;

/// Computes `len` vectors, with the strides of output and operands between vectors and within one.
///
/// # Safety
/// The elements must exist at these strides, and those of the output must be uniquely owned and not overlap the operands; the
/// caller upholds this.
#[inline(always)]
unsafe fn vectors<T: Widen<Wide: Number>>(
    (out, a, b): (*mut T, *const T, *const T),
    len: usize,
    [so, sa, sb]: [isize; 3],
    [eo, ea, eb]: [isize; 3],
) {
    for l in 0..len as isize {
        // SAFETY: as the caller guarantees.
        unsafe {
            let (a, b, out) = (a.offset(l * sa), b.offset(l * sb), out.offset(l * so));
            // Unrolled by hand, since closures over arrays are not inlined here.
            let (a0, b0) = (T::load(a).widen(), T::load(b).widen());
            let (a1, b1) = (T::load(a.offset(ea)).widen(), T::load(b.offset(eb)).widen());
            let (a2, b2) = (T::load(a.offset(2 * ea)).widen(), T::load(b.offset(2 * eb)).widen());
            out.write(T::narrow(a1.times(b2).minus(a2.times(b1))));
            out.offset(eo).write(T::narrow(a2.times(b0).minus(a0.times(b2))));
            out.offset(2 * eo).write(T::narrow(a0.times(b1).minus(a1.times(b0))));
        }
    }
}

fn cross<T: Element + Widen<Wide: Number>>(call: &Call) -> Result<(), Error> {
    let out = Cells::<T>::output(call, 0)?;
    let (a, b) = (Cells::<T>::argument(call, 0)?, Cells::<T>::argument(call, 1)?);
    if a.is_at(&out) || b.is_at(&out) {
        return Err(overlap());
    }
    let dim = wrapped(call.int(2)?, out.sizes.len());
    let strides = [out.strides.clone(), a.expanded_strides(&out.sizes), b.expanded_strides(&out.sizes)];
    let steps = [0, 1, 2].map(|k| strides[k][dim]);
    let mut sizes = out.sizes.clone();
    // The loops iterate over vectors, not over their elements.
    sizes[dim] = 1;
    let loops = dims(&sizes, [&strides[0], &strides[1], &strides[2]]);
    Nest::sorted(loops).for_each_row(WEIGHT, |[o, x, y], len, across| {
        let at = |cells: &Cells<'_, T>, offset: isize| cells.lanes.as_ptr().wrapping_offset(offset);
        let at = (at(&out, o), at(&a, x).cast_const(), at(&b, y).cast_const());
        // SAFETY: the loops are those of the output, to whose shape both operands were expanded; its vectors are disjoint and
        // do not overlap the operands.
        unsafe {
            match (across, steps) {
                // Constant strides, so that the compiler vectorises.
                ([3, 3, 3], [1, 1, 1]) => vectors(at, len, [3; 3], [1; 3]),
                ([1, 1, 1], _) => vectors(at, len, [1; 3], steps),
                _ => vectors(at, len, across, steps),
            }
        }
    })
}

kernel!("cross", "TTi>T", cross, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
