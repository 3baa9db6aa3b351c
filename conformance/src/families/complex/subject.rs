//! The kernel under test.

use super::arguments;
use super::judge::Judged;
use crate::call::Prepared;
use crate::families::Context;
use crate::memory::Arrangement;
use crate::oracle::Inputs;
use crate::outcome::{Failure, Steps, Stop};
use keyway::dispatcher::op::Out;
use keyway::dispatcher::registry::KernelEntry;
use keyway::ops::def::OpDef;
use keyway::ops::sample::Sample;
use keyway::{DType, Layout, Tensor};

/// The kernel under test.
pub(super) struct Subject<'a> {
    /// The case.
    pub(super) context: &'a Context<'a>,
    /// The op.
    pub(super) def: &'static OpDef,
    /// The kernel.
    pub(super) kernel: &'static KernelEntry,
    /// The dtype of the kernel.
    pub(super) dtype: DType,
    /// The op's samples.
    pub(super) samples: Vec<Sample>,
}

impl<'a> Subject<'a> {
    /// The kernel of a case.
    pub(super) fn new(context: &'a Context<'a>) -> Steps<Subject<'a>> {
        let (def, dtype) = (context.def()?, context.dtype());
        let is_it = |k: &&&'static KernelEntry| {
            k.op == def.name() && k.dtype == dtype.code() && k.layout == Layout::STRIDED
        };
        let kernel = context.target.kernels.iter().find(is_it).copied();
        let kernel = kernel.ok_or_else(|| Stop::Skipped("there is no such kernel".to_string()))?;
        Ok(Subject { context, def, kernel, dtype, samples: arguments::samples(def, dtype) })
    }

    /// The values for a sample.
    pub(super) fn inputs(&self, nth: usize, sample: &Sample) -> Inputs {
        let seed = self.context.seed.wrapping_mul(1_000_003).wrapping_add(nth as u64);
        crate::inputs::of_sample(&sample.args, arguments::tested(self.def, self.dtype), seed)
    }

    /// Writes the inputs to memory in this arrangement, where it suits.
    pub(super) fn place(&self, inputs: &Inputs, arrangement: Arrangement) -> keyway::Result<Prepared> {
        Prepared::new(inputs, self.context.target.device, |sizes| arrangement.where_it_suits(sizes))
    }

    /// Calls with results in `out`.
    pub(super) fn call(&self, prepared: &Prepared, out: Out<'_>) -> keyway::Result<Vec<Tensor>> {
        prepared.call_entry(self.def.entry()?, &prepared.tensors(), out)
    }

    /// The expected results; `None` if the oracle and the op both refuse the arguments.
    pub(super) fn expected(&self, inputs: &Inputs) -> Steps<Option<Judged>> {
        match Judged::of(self.def.name(), inputs) {
            Ok(judged) => Ok(Some(judged)),
            Err(unknown) => match self.call(&self.place(inputs, Arrangement::Contiguous)?, Out::New) {
                Err(_) => Ok(None),
                Ok(_) => {
                    let got = format!("a result ({unknown})");
                    Err(Failure::new("arguments that the op has no result for", "a refusal", got).into())
                }
            },
        }
    }

    /// The results of a call on these arguments in this arrangement are as expected, and no argument has changed.
    pub(super) fn check(&self, inputs: &Inputs, arrangement: Arrangement) -> Steps<bool> {
        let Some(expected) = self.expected(inputs)? else { return Ok(false) };
        let prepared = self.place(inputs, arrangement)?;
        let made = self.call(&prepared, Out::New).map_err(|error| self.context.refused(error))?;
        expected.check(&made)?;
        prepared.check_untouched(None)?;
        Ok(true)
    }

    /// Fails if nothing was judged.
    pub(super) fn some(&self, judged: usize) -> Steps {
        match judged {
            0 => Err(Failure::new("calls that are judged", "one or more", "none").into()),
            _ => Ok(()),
        }
    }
}

/// The failure of a part of a case.
pub(super) fn within(what: String, result: Steps<bool>) -> Steps<bool> {
    result.map_err(|stop| match stop {
        Stop::Failed(mut failure) => {
            failure.what = format!("{what}: {}", failure.what);
            Stop::Failed(failure)
        }
        stop => stop,
    })
}
