//! Results depend only on the arguments: tested with an argument that changes in memory, memory that another tensor reuses,
//! and calls of other sizes in between. A kernel that caches data derived from an argument, such as packed weights, must
//! detect each change.

use super::{Context, Family, Scope, corners, is_in};
use crate::array::Array;
use crate::call::Prepared;
use crate::case::Case;
use crate::compare;
use crate::inputs;
use crate::memory::{Arrangement, Placed, read};
use crate::oracle::{Inputs, Value};
use crate::outcome::{Failure, Steps, Stop};
use keyway::Tensor;
use keyway::dispatcher::memory::write_bytes;
use keyway::ops::by_name;
use keyway::ops::sample::{Role, Sample};
use keyway::ops::{conv, linalg};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "state",
    about: "no result of an earlier call: arguments changed in place, memory freed and taken again, other sizes in between",
    cases,
    run,
};

/// The variants.
const CHANGED: &str = "changed";
const REUSED: &str = "reused";
const BETWEEN: &str = "between";
/// The number of elements of the largest tensor of a call, enough that kernels pack and split; and for tensors of several
/// shapes, an eighth of which [`Context::place_enlarged`] uses. The maximum number of steps of a call and of elements of a
/// result.
const ELEMENTS: [f64; 2] = [20_000.0, 160_000.0];
const STEPS: usize = 4 << 20;
const RESULTS: usize = 40_000;
/// The number of successive changes of an argument, each of another row or element: a kernel that compares only some
/// elements of an argument with cached ones misses one of them.
const CHANGES: usize = 6;
/// The number of allocations tried until one has the freed address.
const TRIES: usize = 8;
/// The number of other samples between two calls of one.
const OTHERS: usize = 6;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| !op.def.rule.is_view()) {
        let Some(served) = scope.served(op.def) else { continue };
        let products = is_in(op.def, &[linalg::ALL, conv::ALL]);
        let kinds = if products { corners::chosen(op) } else { Vec::new() };
        let kinds = kinds.into_iter().take(if scope.quick { 1 } else { usize::MAX }).collect::<Vec<_>>();
        let samples =
            op.typical().into_iter().chain(kinds.into_iter().filter(|&nth| Some(nth) != op.typical()));
        for (position, nth) in samples.enumerate() {
            let others = if position == 0 { scope.others(op.def) } else { Vec::new() };
            for dtype in [served].into_iter().chain(others) {
                for variant in [CHANGED, REUSED] {
                    cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
                }
                if position == 0 {
                    cases.push(Case::of(FAMILY.name, op.def, dtype, nth, BETWEEN));
                }
            }
        }
    }
    for variant in [CHANGED, REUSED, BETWEEN] {
        scope.one_foreign_each(FAMILY.name, variant, cases);
    }
}

fn run(context: &Context<'_>) -> Steps {
    match context.case.variant.as_str() {
        CHANGED => changed(context),
        REUSED => reused(context),
        BETWEEN => between(context),
        other => Err(Stop::Skipped(format!("there is no variant `{other}`"))),
    }
}

/// A call with tensors of enough elements, its sample, and its arguments with other values.
struct Enlarged {
    sample: Sample,
    inputs: Inputs,
    others: Inputs,
}

fn elements(context: &Context<'_>) -> Steps<f64> {
    let sample = context.sample()?;
    let mut sizes = super::tensors(&sample).map(|t| &t.sizes);
    let first = sizes.next();
    let alike = sizes.all(|other| Some(other) == first);
    Ok(ELEMENTS[usize::from(!alike)])
}

fn enlarged(context: &Context<'_>) -> Steps<Enlarged> {
    let (_, sample) = context.place_scaled(elements(context)?, STEPS, RESULTS)?;
    let (inputs, others) = (context.values_of(&sample, 0), context.values_of(&sample, 1));
    Ok(Enlarged { sample, inputs, others })
}

impl Enlarged {
    /// The arguments under test with elements, by index among the tensors.
    fn arguments(&self) -> Vec<usize> {
        let all = super::tensors(&self.sample).enumerate();
        all.filter(|(_, t)| t.role == Role::Tested && !t.sizes.contains(&0)).map(|(nth, _)| nth).collect()
    }

    /// Writes the other values to one row, or one element, of argument `nth`; `turn` selects which. `None` if these values
    /// equal the old ones.
    fn change(&mut self, nth: usize, turn: usize) -> Option<()> {
        let mut other = None;
        let mut position = 0;
        inputs::map_arrays(&mut self.others, |array| {
            other = if position == nth { Some(array.clone()) } else { other.take() };
            position += 1;
        });
        let (other, mut changed, mut position) = (other?, false, 0);
        inputs::map_arrays(&mut self.inputs, |array| {
            if position == nth {
                let row = array.sizes.last().copied().unwrap_or(1).max(1);
                let length = if turn.is_multiple_of(2) { row } else { 1 };
                // Multiplied by an odd number, so that consecutive turns select distant rows.
                let count = array.values.len().div_ceil(length);
                let first = (turn + 1).wrapping_mul(0x9E37_79B1) % count * length;
                let last = (first + length).min(array.values.len());
                for (own, &new) in array.values[first..last].iter_mut().zip(&other.values[first..last]) {
                    changed |= *own != new;
                    *own = new;
                }
            }
            position += 1;
        });
        changed.then_some(())
    }
}

/// Fails unless two calls on equal arguments have equal results: by their bytes, or within the dtype's tolerance.
fn expect(context: &Context<'_>, fresh: &Prepared, tried: &Prepared, what: &str) -> Steps {
    let (expected, got) = match (context.call(fresh), context.call(tried)) {
        (Ok(expected), Ok(got)) => (expected, got),
        // Other values may be invalid: for example for a matrix that must be positive definite.
        (Err(_), Err(_)) => return Ok(()),
        (expected, got) => (expected?, got?),
    };
    let bytes = |all: &[Tensor]| all.iter().map(Tensor::to_bytes).collect::<Result<Vec<_>, _>>();
    if bytes(&expected)? == bytes(&got)? {
        return Ok(());
    }
    let arrays = expected.iter().map(read).collect::<Result<Option<Vec<_>>, _>>()?;
    let arrays = arrays.ok_or_else(|| Failure::new("a result", "valid elements", "invalid bytes"))?;
    compare::outputs(&arrays, &got, 1.0).map_err(|mut failure| {
        failure.what = format!("{what}: {}", failure.what);
        failure.into()
    })
}

/// Changes each argument in its memory, and compares with the same call on new memory.
fn changed(context: &Context<'_>) -> Steps {
    let mut call = enlarged(context)?;
    let placed = context.place_bare(&call.inputs)?;
    // A kernel that caches fills its cache here.
    context.call(&placed)?;
    // Retains memory, so that none of the reference calls uses an address that was used before.
    let mut held =
        (0..CHANGES).map(|_| context.place_bare(&call.others)).collect::<keyway::Result<Vec<_>>>()?;
    for nth in call.arguments() {
        for turn in 0..CHANGES {
            if call.change(nth, turn).is_none() {
                continue;
            }
            let fresh = context.place_bare(&call.inputs)?;
            let storage = |prepared: &Prepared| prepared.placed[nth].tensor.storage().cloned();
            let bytes = fresh.placed[nth].tensor.storage()?.to_bytes()?;
            write_bytes(&storage(&placed)?, 0, &bytes)?;
            expect(context, &fresh, &placed, &format!("argument {nth} was changed in place"))?;
            held.push(fresh);
        }
    }
    Ok(())
}

/// Frees each argument, and compares a call on another tensor at its address with one on new memory.
fn reused(context: &Context<'_>) -> Steps {
    let mut call = enlarged(context)?;
    for nth in call.arguments() {
        for turn in 0..CHANGES {
            let mut placed = context.place_bare(&call.inputs)?;
            context.call(&placed)?;
            if call.change(nth, turn).is_none() {
                continue;
            }
            let fresh = context.place_bare(&call.inputs)?;
            let array = argument(&call.inputs, nth)?;
            let address = |placed: &Placed| placed.tensor.storage().map(|s| s.pointer().as_ptr() as usize);
            let images = context.images();
            let upload = || -> keyway::Result<Placed> {
                let arrangement = images.where_it_suits(&array.sizes);
                Placed::guarded(&array, arrangement, context.target.device, 0)
            };
            let before = address(&placed.placed[nth])?;
            // The tensor is freed when the next one replaces it in the list.
            placed.placed[nth] =
                Placed::guarded(&empty(&array), Arrangement::Contiguous, context.target.device, 0)?;
            let mut held = Vec::new();
            for _ in 0..TRIES {
                let again = upload()?;
                if address(&again)? == before {
                    placed.placed[nth] = again;
                    break;
                }
                held.push(again);
            }
            if address(&placed.placed[nth])? == before {
                expect(context, &fresh, &placed, &format!("argument {nth} is where a freed tensor was"))?;
            }
        }
    }
    Ok(())
}

fn empty(like: &Array) -> Array {
    Array::new(like.dtype, [0], Vec::new())
}

fn argument(inputs: &Inputs, nth: usize) -> Steps<Array> {
    let all = inputs.0.iter().flat_map(|value| match value {
        Value::Array(array) => std::slice::from_ref(array),
        Value::Arrays(list) => list,
        _ => &[],
    });
    all.into_iter().nth(nth).cloned().ok_or_else(|| Stop::Skipped("there is no such argument".to_string()))
}

/// Checks that a large call has bit-identical results after small calls of the op's other samples, and these after it.
fn between(context: &Context<'_>) -> Steps {
    let (large, _) = context.place_scaled(elements(context)?, STEPS, RESULTS)?;
    let first = context.bits(&large)?;
    let samples = by_name::samples(context.entry()?.name)?;
    let step = samples.len().div_ceil(OTHERS).max(1);
    let mut small = Vec::new();
    for sample in samples.iter().step_by(step) {
        let prepared = context.place(&context.values_of(sample, 2))?;
        // A sample may exist only in another dtype.
        if let Ok(bits) = context.bits(&prepared) {
            small.push((prepared, bits));
        }
        again(context, &large, &first, "a call between calls of other sizes")?;
    }
    small
        .iter()
        .try_for_each(|(prepared, bits)| again(context, prepared, bits, "a small call after larger ones"))
}

fn again(context: &Context<'_>, prepared: &Prepared, expected: &[Vec<u8>], what: &str) -> Steps {
    if context.bits(prepared)? == expected {
        return Ok(());
    }
    Err(Failure::new(what, "the bits of the first call", "others").into())
}
