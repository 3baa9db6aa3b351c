//! Reductions of data with one element that differs from all others, at the first and last index and at the edges of
//! blocks, and sums of integers, which are exact in every order.

use super::super::extremes::matrices;
use super::super::{Context, Op, Scope, allowed, is_computed, is_in, tensors};
use crate::array::{Array, Number};
use crate::case::glob;
use crate::compare::{self, Tolerance};
use crate::oracle::{Inputs, Value};
use crate::outcome::{Steps, Stop};
use crate::{call, inputs};
use keyway::DType;
use keyway::dispatcher::op::Out;
use keyway::ops::def::{OpDef, OpFlags};
use keyway::ops::reduce;
use keyway::ops::sample::Sample;

/// Rows and columns, each with another mark.
pub(super) const MARKED: &str = "marked";
/// The name of the case of a vector of more than 65,536 elements with one marked element.
pub(super) const LONG: &str = "long";
/// Integer sums.
pub(super) const WHOLE: &str = "whole";

/// The length of a row: whole blocks of every usual length. `POSITIONS` are the columns of the marked element, one for each
/// row.
const ROW: usize = 512;
const POSITIONS: [usize; 14] = [0, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 256, 510, 511];
/// The length of the vector, also a multiple of 32. The marked element is the last one.
const VECTOR: usize = 65_568;

/// Ops whose results are sums or counts of the elements, and the numbers of addends: more trues than 8 and 16 bits can
/// count, and whole blocks.
const SUMS: [&str; 4] = ["sum", "nansum", "cumsum", "count_nonzero"];
const TERMS: [usize; 6] = [32, 64, 300, 1024, 4096, 70_000];

pub(super) fn cases(scope: &Scope<'_>, op: &Op, push: &mut impl FnMut(DType, usize, &str)) {
    if !is_in(op.def, &[reduce::ALL]) || !is_computed(op.def) {
        return;
    }
    let vector = op.samples.iter().position(is_vector);
    for dtype in scope.served(op.def).into_iter().chain(scope.others(op.def)) {
        matrices(op).into_iter().for_each(|nth| push(dtype, nth, MARKED));
        vector.into_iter().for_each(|nth| push(dtype, nth, LONG));
    }
    if let Some(nth) = vector.filter(|_| SUMS.contains(&op.def.name())) {
        scope.dtypes(op.def).into_iter().for_each(|dtype| push(dtype, nth, WHOLE));
    }
}

fn is_vector(sample: &Sample) -> bool {
    matches!(tensors(sample).collect::<Vec<_>>()[..], [one] if one.sizes.len() == 1 && one.sizes[0] > 1)
}

/// The value of most elements, and that of the marked one. In one of the two pairs the marked one is the largest, or the
/// only true one, in the other the smallest.
fn pairs(def: &OpDef, dtype: DType) -> [[f64; 2]; 2] {
    match dtype {
        DType::BOOL => [[0.0, 1.0], [1.0, 0.0]],
        // No product of them overflows.
        _ if def.is(OpFlags::MAY_OVERFLOW) => [[1.0, 3.0], [1.0, 0.0]],
        _ => [[0.0, 3.0], [3.0, 0.0]],
    }
}

fn number(value: f64, dtype: DType) -> Number {
    match dtype {
        DType::BOOL => Number::Bool(value != 0.0),
        dtype if dtype.is_float() => Number::Float(value),
        _ => Number::Int(value as i128),
    }
}

/// Checks rows with one marked element each, and columns.
pub(super) fn marked(context: &Context<'_>) -> Steps {
    let dtype = context.dtype();
    for [most, mark] in pairs(context.def()?, dtype) {
        let element = |row: usize, at: usize| number(if POSITIONS[row] == at { mark } else { most }, dtype);
        let rows = Array::from_fn(dtype, [POSITIONS.len(), ROW], |index| element(index[0], index[1]));
        let columns = Array::from_fn(dtype, [ROW, POSITIONS.len()], |index| element(index[1], index[0]));
        compare(context, rows, false)?;
        compare(context, columns, false)?;
    }
    Ok(())
}

/// Checks a vector with one marked element.
pub(super) fn long(context: &Context<'_>) -> Steps {
    let dtype = context.dtype();
    for pair in pairs(context.def()?, dtype) {
        let [most, mark] = pair.map(|value| number(value, dtype));
        let vector =
            Array::from_fn(dtype, [VECTOR], |index| if index[0] + 1 == VECTOR { mark } else { most });
        compare(context, vector, false)?;
    }
    Ok(())
}

/// Checks sums of integers from -3 to 3 except 0, small enough that every dtype represents all partial sums.
pub(super) fn whole(context: &Context<'_>) -> Steps {
    let dtype = context.dtype();
    let signed = dtype.is_float() || dtype.integer_range().is_some_and(|(low, _)| low < 0);
    for terms in TERMS {
        let mut bits = terms as u64;
        let vector = Array::from_fn(dtype, [terms], |_| {
            // Knuth's linear congruential generator; its upper bits are the most random ones.
            bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let size = 1.0 + ((bits >> 33) % 3) as f64;
            number(if signed && bits >> 63 == 1 { -size } else { size }, dtype)
        });
        compare(context, vector, true)?;
    }
    Ok(())
}

/// Compares the sample with another tensor; without a tolerance if the op is exact, or with `exactly` for these values.
fn compare(context: &Context<'_>, array: Array, exactly: bool) -> Steps {
    let def = context.def()?;
    let mut inputs: Inputs =
        inputs::of_sample(&context.sample()?.args, context.dtype(), context.sample_seed());
    match inputs.0.iter_mut().find(|value| matches!(value, Value::Array(_))) {
        Some(slot) => *slot = Value::Array(array),
        None => return Err(Stop::Skipped("the sample has no tensor".to_string())),
    }
    let prepared = context.place_bare(&inputs)?;
    let result = prepared.call(def, Out::New);
    if matches!(&result, Err(error) if call::is_of_arguments(error)) {
        return Ok(());
    }
    let expected = context.expected(&inputs)?;
    let got = result.map_err(|e| context.refused(e))?;
    let factor = if exactly || EXACT.iter().any(|name| glob(name, def.name())) { 0.0 } else { allowed(def) };
    Ok(compare::within(&expected, &got, |dtype| Tolerance::of(dtype).times(factor))?)
}

/// Ops that are exact for such values, regardless of their flags.
const EXACT: [&str; 8] = ["sum", "nansum", "cumsum", "*max", "*min", "arg*", "a??", "count_nonzero"];
