//! Repeated calls, and calls with 1, 2 and 3 threads, have bit-identical results, on tensors large enough to be split.

use super::{Context, Family, Scope};
use crate::case::Case;
use crate::outcome::{Failure, Steps};
use keyway::DType;
use keyway::dispatcher::parallel::set_num_threads;
use keyway::ops::sample::Sample;

/// The definition of this family of cases.
pub const FAMILY: Family =
    Family { name: "determinism", about: "the same bits again, and at 1, 2 and 3 threads", cases, run };

/// The number of elements of the largest tensor of a call: enough that work is split.
const ELEMENTS: f64 = 80_000.0;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let largest = |(_, s): &(usize, &Sample)| -> usize {
            super::tensors(s).map(|t| t.sizes.iter().product()).max().unwrap_or(0)
        };
        let Some((nth, _)) = op.samples.iter().enumerate().max_by_key(largest) else { continue };
        let dtypes = [DType::F32, DType::F64, DType::BF16, DType::I64, DType::BOOL];
        let mut dtypes = dtypes.into_iter().filter(|&d| op.def.dtypes.has(d));
        let count = if scope.quick { 1 } else { 5 };
        for dtype in dtypes.by_ref().take(count) {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, ""));
        }
    }
    scope.one_foreign_each(FAMILY.name, "", cases);
}

fn run(context: &Context<'_>) -> Steps {
    let (prepared, _) = context.place_enlarged(ELEMENTS)?;
    if let Err(refused) = context.call(&prepared) {
        // The oracle may refuse the dtype too: the op accepts it only with other arguments.
        if context.case.def.is_some() {
            context.expected(&context.inputs()?.1)?;
        }
        return Err(refused);
    }
    let bits = || context.bits(&prepared);
    let before = keyway::dispatcher::parallel::num_threads();
    let result = (|| {
        set_num_threads(1);
        let first = bits()?;
        for (threads, when) in [(1, "again"), (2, "at 2 threads"), (3, "at 3 threads")] {
            set_num_threads(threads);
            if bits()? != first {
                return Err(Failure::new(
                    format!("other bits {when}"),
                    "the bits of the first call at 1 thread",
                    "others",
                )
                .into());
            }
        }
        Ok(())
    })();
    set_num_threads(before);
    result
}
