//! Tries the candidates of a call in order: the kernels of its key, then the op's decomposition, the host for casts of a
//! plugin's dtype, the device's fallback.

use super::kernel::{self, NotServed, Request};
use super::target::Target;
use super::{decomposition, explain, fallback, host_cast};
use crate::base::error::Result;
use crate::base::key::KeySet;
use crate::device::is_there;
use crate::op::{Call, Outputs, Plan};
use crate::registry::KernelEntry;
use crate::registry::serving::{self, Candidate};
use crate::registry::table::{Cell, Generation, OpRows};

/// Tries the candidates of a call's key in order until one serves the call.
#[inline(always)]
pub(super) fn serve(
    generation: &'static Generation,
    rows: &OpRows,
    call: &Call<'_>,
    plan: &Plan,
    allocates: bool,
) -> Result<Outputs> {
    let target = Target::of(&call.args)?;
    let Cell { kernel, rest } = *generation.cell(rows, target.device, target.layout, plan.compute);
    let request = &Request { call, plan, allocates, target };
    // The first kernel, which serves nearly every call, is inlined.
    let mut refusal = None;
    if let Some(kernel) = kernel {
        match kernel::run(kernel, request) {
            Ok(outputs) => return Ok(outputs),
            Err(NotServed::Failed(error)) => return Err(error),
            Err(NotServed::Refused(reason)) => refusal = Some(reason),
        }
    }
    ask(generation, request, rest, refusal)
}

/// [`serve`] out of line, for calls too rare to justify its code size.
#[inline(never)]
pub(super) fn resolved(
    generation: &'static Generation,
    rows: &OpRows,
    call: &Call<'_>,
    plan: &Plan,
    allocates: bool,
) -> Result<Outputs> {
    serve(generation, rows, call, plan, allocates)
}

/// Tries these kernels, then the other candidates, until one serves the call; `refusal` is the reason of the previous
/// kernel.
#[inline(never)]
pub(super) fn ask(
    generation: &'static Generation,
    request: &Request<'_>,
    kernels: &[&'static KernelEntry],
    refusal: Option<String>,
) -> Result<Outputs> {
    let Request { call, plan, target: Target { device, layout, .. }, .. } = *request;
    let missing = |refused| explain::missing(&call.args, device, layout, plan.compute, refused);
    let mut refused = Vec::from_iter(refusal);
    for candidate in serving::in_order(generation, call.args.op, (device, layout, plan.compute), kernels) {
        if !refused.is_empty() && FIRST_ONLY.get() {
            break;
        }
        match candidate {
            Candidate::Kernel(kernel) => match kernel::run(kernel, request) {
                Ok(outputs) => return Ok(outputs),
                Err(NotServed::Failed(error)) => return Err(error),
                Err(NotServed::Refused(reason)) => refused.push(reason),
            },
            Candidate::Decomposition => return decomposition::run(call),
            Candidate::Host => {
                if let Some(made) = host_cast::run(call, plan)? {
                    return Ok(made);
                }
            }
            Candidate::Fallback { to, .. } if !is_there(to) => {
                return Err(fallback::to_nobody(missing(refused), device, to));
            }
            Candidate::Fallback { to, warn } => {
                return fallback::run(call, device, (to, warn), KeySet::EMPTY);
            }
            // A view of a strided tensor is created before any candidate is tried.
            Candidate::View => {}
        }
    }
    Err(missing(refused))
}

thread_local! {
    /// Whether a refusal fails a call of this thread.
    static FIRST_ONLY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs `run`, in which a refusal by the first kernel fails the call with `MissingKernel`, as if there were no other
/// candidate. Tests use it to inspect the state after a refusal.
pub fn without_successors<R>(run: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            FIRST_ONLY.set(self.0);
        }
    }
    let _restore = Restore(FIRST_ONLY.replace(true));
    run()
}
