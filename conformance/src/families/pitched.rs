//! Inputs and outputs with row or column strides that are a multiple of 1,024 elements, as those of a slice of a wide
//! matrix or of its transpose. Such strides map to the same cache sets, so kernels that pack or pad have a separate path
//! for them.

use super::{Context, Family, Scope, factor, has_out, tensors};
use crate::axis_order::Strides;
use crate::call::{Prepared, damaged};
use crate::case::Case;
use crate::compare;
use crate::memory::{Arrangement, Placed};
use crate::outcome::{Steps, Stop};
use keyway::Tensor;
use keyway::dispatcher::op::Out;
use keyway::ops::def::OpFlags;

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "pitched",
    about: "inputs and out= whose rows or columns are a multiple of 1,024 elements apart",
    cases,
    run,
};

/// The distance of rows, in elements.
const PITCH: usize = 1024;
/// The variants, with the stride of rows, and the elements of a row.
const ROWS: &str = "rows";
const COLUMNS: &str = "columns";
const OUT: &str = "-out";
/// The maximum number of elements from a tensor's first to its last.
const MOST: usize = 1 << 20;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let mut turn = 0;
    scope.each(|op, dtype, nth, sample| {
        let suits = tensors(sample).any(|t| t.sizes.iter().filter(|&&n| n > 1).count() > 1);
        if !suits || op.def.is(OpFlags::STRIDE_DEPENDENT) {
            return;
        }
        turn += 1;
        for (nth_kind, name) in [ROWS, COLUMNS].into_iter().enumerate() {
            // Quick: one of the two for each sample.
            if scope.quick && nth_kind != turn % 2 {
                continue;
            }
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, name));
            if has_out(op.def) {
                cases.push(Case::of(FAMILY.name, op.def, dtype, nth, format!("{name}{OUT}")));
            }
        }
    });
}

/// Strides one of which is [`PITCH`] elements and all outer ones multiples of it: row-major, or with the last two
/// dimensions that are longer than 1 exchanged.
fn strides(sizes: &[usize], columns: bool) -> Strides {
    let mut order: Vec<usize> = (0..sizes.len()).rev().filter(|&dim| sizes[dim] > 1).collect();
    if columns && order.len() > 1 {
        order.swap(0, 1);
    }
    let mut strides = vec![1; sizes.len()];
    let mut next = 1;
    for dim in order {
        strides[dim] = next;
        next = (next * sizes[dim]).next_multiple_of(PITCH);
        if next * 2 > MOST {
            break;
        }
    }
    Strides { strides, offset: 0 }
}

/// Whether a tensor of these sizes is small enough.
fn fits(sizes: &[usize], columns: bool) -> bool {
    let strides = strides(sizes, columns).strides;
    let longer = || sizes.iter().zip(&strides).filter(|(n, _)| **n > 1);
    let reach: usize = longer().map(|(n, stride)| (n - 1) * stride).sum();
    let mut own: Vec<usize> = longer().map(|(_, stride)| *stride).collect();
    own.sort_unstable();
    own.dedup();
    own.len() == longer().count() && reach < MOST
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let (name, out) = match context.case.variant.strip_suffix(OUT) {
        Some(name) => (name, true),
        None => (context.case.variant.as_str(), false),
    };
    let columns = match name {
        ROWS => false,
        COLUMNS => true,
        other => return Err(Stop::Skipped(format!("there is no variant `{other}`"))),
    };
    let (sample, inputs) = context.inputs()?;
    let device = context.target.device;
    let at = |sizes: &[usize]| match fits(sizes, columns) {
        true => strides(sizes, columns),
        false => Strides { strides: Arrangement::Contiguous.strides(sizes), offset: 0 },
    };
    let expected = context.expected(&inputs)?;
    let factor = factor(def, &sample);
    if !out {
        let prepared =
            Prepared::place_each(&inputs, |array| Placed::strided(array, &at(&array.sizes), device, 0))?;
        return Ok(compare::outputs(&expected, &context.call(&prepared)?, factor)?);
    }
    let prepared = context.place_bare(&inputs)?;
    let outs = expected
        .iter()
        .map(|e| Placed::garbage_at(&e.sizes, e.dtype, &at(&e.sizes), device))
        .collect::<Result<Vec<_>, _>>()?;
    let given: Vec<_> = outs.iter().map(|o| o.tensor.as_ref()).collect();
    let made = prepared.call_watched(def.entry()?, Out::Given(&given), &outs)?;
    made.map_err(|e| context.refused(e))?;
    let got: Vec<Tensor> = outs.iter().map(|o| o.tensor.clone()).collect();
    compare::outputs(&expected, &got, factor)?;
    for (nth, out) in outs.iter().enumerate() {
        if let Some(damage) = out.damage(false)? {
            return Err(damaged(&format!("output {nth}"), damage).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_a_multiple_of_the_pitch_apart() {
        assert_eq!(strides(&[3, 5], false).strides, [1024, 1]);
        assert_eq!(strides(&[3, 5], true).strides, [1, 1024]);
        assert_eq!(strides(&[2, 1, 3, 5], false).strides, [3072, 1, 1024, 1]);
        assert_eq!(strides(&[2, 3, 5], true).strides, [5120, 1, 1024]);
        assert!(fits(&[2, 3, 5], true) && !fits(&[9, 9, 9, 9, 9], false));
    }
}
