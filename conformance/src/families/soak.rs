//! Many cheap calls of one kernel: its results at the last call equal those of the first. A kernel that counts calls, fills
//! a table or advances in a buffer is correct only at first.

use super::leaks::held_as_before;
use super::{Context, Family, Scope, factor, preferred, tensors};
use crate::call::Prepared;
use crate::case::Case;
use crate::compare;
use crate::memory::{Arrangement, Placed};
use crate::outcome::{Failure, Steps, Stop};
use crate::process::{held, thread_time};
use crate::recorder;
use crate::target::Service;
use keyway::DType;
use keyway::dispatcher::call;
use keyway::dispatcher::memory::{Storage, read_bytes, write_bytes};
use keyway::dispatcher::op::{Args, Out};
use std::time::{Duration, Instant};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "soak",
    about: "120,000 calls of each op in its usual dtype, 12,000 in each other one, each with the right result, and no descriptor or thread leaked",
    cases,
    run,
};

/// Calls of a case in the op's usual dtype.
const CALLS: usize = 120_000;
/// Divisor of the number of calls, and of the time, for the other dtypes, whose kernels have the same source.
const FEWER: u32 = 10;
/// The maximum processor time of these; kernels whose smallest call is long are called less often.
const LONGEST: Duration = Duration::from_millis(1000);
/// The number of calls between two checks of the clock, and of results on a device whose memory the host cannot read.
const LOOK: usize = 500;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| !op.def.rule.is_view()) {
        let Ok(entry) = op.def.entry() else { continue };
        let kernel = |dtype: &DType| {
            op.def.dtypes.has(*dtype) && scope.target.service(entry, *dtype) == Service::Kernel
        };
        let count = |nth: &usize| {
            tensors(&op.samples[*nth]).map(|t| t.sizes.iter().product::<usize>()).sum::<usize>()
        };
        let full = super::full(&op.samples).into_iter();
        let Some(nth) = full.min_by_key(count) else { continue };
        let first = preferred(op.def).filter(kernel).or_else(|| DType::REAL.into_iter().find(kernel));
        let dtypes =
            DType::REAL.into_iter().filter(kernel).filter(|dtype| !scope.quick || Some(*dtype) == first);
        dtypes.for_each(|dtype| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, "")));
    }
    scope.one_foreign_each(FAMILY.name, "", cases);
}

fn run(context: &Context<'_>) -> Steps {
    let inputs = context.inputs()?.1;
    let prepared = context.place_bare(&inputs)?;
    let made = context.call(&prepared)?;
    if let Some(def) = context.case.def {
        let expected = context.expected(&inputs)?;
        compare::outputs(&expected, &made, factor(def, &context.sample()?))?;
    }
    if made.iter().any(|t| !t.as_ref().is_strided()) {
        return Err(Stop::Skipped("the results are not strided".to_string()));
    }
    let device = context.target.device;
    let outs = made
        .iter()
        .map(|t| Placed::garbage_bare(t.shape(), t.dtype(), Arrangement::Contiguous, device))
        .collect::<keyway::Result<Vec<_>>>()?;
    let expected = made.iter().map(|t| t.to_bytes()).collect::<keyway::Result<Vec<_>>>()?;
    let outs = outs
        .into_iter()
        .zip(expected)
        .map(|(out, expected)| {
            let storage = out.tensor.storage()?.clone();
            let garbage = storage.to_bytes()?;
            Ok(Result { out, storage, garbage, read: vec![0; expected.len()], expected })
        })
        .collect::<keyway::Result<Vec<_>>>()?;
    let apart = !Storage::allocate(device, 1)?.is_host_accessible();
    // The first call was recorded: the others call the kernel directly.
    let _unrecorded = recorder::pause();
    many(context, &prepared, outs, if apart { LOOK } else { 1 })
}

/// The target of a result, and its expected value.
struct Result {
    out: Placed,
    storage: Storage,
    garbage: Vec<u8>,
    read: Vec<u8>,
    expected: Vec<u8>,
}

/// Makes the calls, and compares each `each`-th.
fn many(context: &Context<'_>, prepared: &Prepared, mut results: Vec<Result>, each: usize) -> Steps {
    let op = context.entry()?;
    let outs: Vec<_> = results.iter().map(|result| result.out.tensor.clone()).collect();
    let outs: Vec<_> = outs.iter().map(AsRef::as_ref).collect();
    let usual = context.case.def.is_none_or(|def| preferred(def) == Some(context.dtype()));
    let fewer = if usual { 1 } else { FEWER };
    let (calls, longest) = (CALLS / fewer as usize, LONGEST / fewer);
    let begun = Instant::now();
    let (before, there) = (thread_time(), held());
    let passed = || match (before, thread_time()) {
        (Some(before), Some(now)) => now.saturating_sub(before),
        _ => begun.elapsed(),
    };
    let made: Steps<usize> = prepared.with_args(&prepared.tensors(), |values| {
        for nth in 1..=calls {
            let compared = nth % each == 0;
            if compared {
                for result in &results {
                    write_bytes(&result.storage, 0, &result.garbage)?;
                }
            }
            call::call(Args { op, values }, Out::Given(&outs))
                .map_err(|error| context.refused(keyway::Error::from(error)))?;
            for (output, result) in results.iter_mut().enumerate().filter(|_| compared) {
                read_bytes(&result.storage, 0, &mut result.read)?;
                if result.read != result.expected {
                    let what = format!("output {output} of call {nth} on the same arguments");
                    return Err(Failure::new(what, "the bits of the first call", "others").into());
                }
            }
            if nth % LOOK == 0 && passed() > longest {
                return Ok(nth);
            }
        }
        Ok(calls)
    });
    held_as_before(there, made?)
}
