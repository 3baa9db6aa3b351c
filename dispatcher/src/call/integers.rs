//! Protection of integers that a call reads and writes: indices, masks, the structure of composite tensors. They are locked
//! while the kernel runs, see [`InUse`].
//!
//! An element-wise kernel on the fast path needs no protection of its inputs: no address depends on the value of an
//! element.

use crate::base::error::Result;
use crate::memory::{Access, InUse, Use, may_choose};
use crate::op::{Arg, Args, Call, Out};
use crate::tensor::{TensorImpl, TensorRef};
use smallvec::SmallVec;

/// Whether a kernel may compute addresses from the elements of this tensor.
#[inline(always)]
fn chooses(t: &TensorRef) -> bool {
    may_choose(t.dtype()) || !t.is_strided()
}

/// Prevents other threads' ops from writing the integers that a kernel reads in `args`, and from reading those that it
/// writes directly to the caller's tensors.
///
/// # Errors
/// As [`InUse::enter`].
#[inline(always)]
pub(super) fn enter(call: &Call<'_>, args: &Args<'_>) -> Result<Option<Box<InUse>>> {
    let read = args.values.iter().any(|arg| match arg {
        Arg::Tensor(t) => chooses(t),
        Arg::Tensors(list) => list.iter().any(|t| chooses(t)),
        _ => false,
    });
    let written = match call.out {
        Out::New => false,
        Out::Given(list) => list.iter().any(|t| chooses(t)),
        Out::InPlace => matches!(call.args.get(0), Arg::Tensor(t) if chooses(t)),
    };
    if read | written { enter_all(call, args).map(Some) } else { Ok(None) }
}

#[inline(never)]
fn enter_all(call: &Call<'_>, args: &Args<'_>) -> Result<Box<InUse>> {
    let mut accesses = Accesses::new();
    for arg in args.values {
        match arg {
            Arg::Tensor(t) => collect(t, Use::Read, &mut accesses),
            Arg::Tensors(list) => list.iter().for_each(|t| collect(t, Use::Read, &mut accesses)),
            _ => {}
        }
    }
    match call.out {
        Out::New => {}
        Out::Given(list) => list.iter().for_each(|t| collect(t, Use::Write, &mut accesses)),
        Out::InPlace => collect(call.args.tensor(0)?, Use::Write, &mut accesses),
    }
    InUse::enter(args.name(), &mut accesses)
}

/// As [`enter`], for an element-wise kernel that writes this strided tensor.
///
/// # Errors
/// As [`InUse::enter`].
pub(super) fn enter_target(args: &Args<'_>, target: &TensorRef) -> Result<Box<InUse>> {
    let mut accesses = Accesses::new();
    collect(target, Use::Write, &mut accesses);
    InUse::enter(args.name(), &mut accesses)
}

/// Prevents other threads' ops from writing the integers of tensors that a plugin reads outside any op.
///
/// # Errors
/// As [`InUse::enter`].
pub(super) fn enter_read(what: &'static str, tensors: &[&TensorRef]) -> Result<Box<InUse>> {
    let mut accesses = Accesses::new();
    tensors.iter().for_each(|t| collect(t, Use::Read, &mut accesses));
    InUse::enter(what, &mut accesses)
}

type Accesses<'a> = SmallVec<[Access<'a>; 4]>;

/// The address ranges of a tensor's integers.
fn collect<'a>(t: &'a TensorImpl, kind: Use, into: &mut Accesses<'a>) {
    match (t.storage(), t.reach()) {
        (Some(storage), Some(range)) if may_choose(t.dtype()) => into.push(Access { storage, range, kind }),
        _ => t.components().iter().for_each(|component| collect(component, kind, into)),
    }
}
