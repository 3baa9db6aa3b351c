//! Integers that a call reads and writes: indices, masks, the structure of composite tensors. They are in use while the kernel
//! runs, see [`InUse`].
//!
//! An element-wise kernel on the fast path is kept from nothing that it reads: it goes by no element.

use super::fallback::twin;
use super::kernel::Owned;
use crate::base::error::Result;
use crate::memory::{InUse, Storage, Use, may_choose};
use crate::op::{Arg, Args, Call, Out};
use crate::tensor::{TensorImpl, TensorRef};
use smallvec::SmallVec;

/// Whether a kernel may go by what it reads in this tensor.
#[inline(always)]
fn chooses(t: &TensorRef) -> bool {
    may_choose(t.dtype()) || !t.is_strided()
}

/// Keeps other threads' ops from writing to the integers that a kernel reads in `args`, and from reading those that it writes to
/// where it writes straight to the tensors of the caller.
///
/// # Errors
/// As [`InUse::enter`].
#[inline(always)]
pub(super) fn enter<'a>(call: &Call<'a>, args: &Args<'a>) -> Result<Option<Box<InUse<'a>>>> {
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
fn enter_all<'a>(call: &Call<'a>, args: &Args<'a>) -> Result<Box<InUse<'a>>> {
    let mut storages = Storages::new();
    for arg in args.values {
        match arg {
            Arg::Tensor(t) => collect(t, Use::Read, &mut storages),
            Arg::Tensors(list) => list.iter().for_each(|t| collect(t, Use::Read, &mut storages)),
            _ => {}
        }
    }
    match call.out {
        Out::New => {}
        Out::Given(list) => list.iter().for_each(|t| collect(t, Use::Write, &mut storages)),
        Out::InPlace => collect(call.args.tensor(0)?, Use::Write, &mut storages),
    }
    InUse::enter(args.name(), &storages)
}

/// As [`enter`], of an element-wise kernel that writes to this strided tensor.
///
/// # Errors
/// As [`InUse::enter`].
pub(super) fn enter_target<'a>(args: &Args<'_>, target: &'a TensorRef) -> Result<Option<Box<InUse<'a>>>> {
    target.storage().map(|storage| InUse::enter(args.name(), &[(storage, Use::Write)])).transpose()
}

/// Keeps other threads' ops from writing to the integers of tensors that a plugin reads outside any op.
///
/// # Errors
/// As [`InUse::enter`].
pub(super) fn enter_read<'a>(what: &'static str, tensors: &[&'a TensorRef]) -> Result<Box<InUse<'a>>> {
    let mut storages = Storages::new();
    tensors.iter().for_each(|t| collect(t, Use::Read, &mut storages));
    InUse::enter(what, &storages)
}

/// A copy of each tensor of integers whose memory may be written to as floats, which keeps nobody from it.
///
/// # Errors
/// What the device reports.
#[cold]
pub(super) fn own_copies(args: &Args<'_>) -> Result<Owned> {
    let shared =
        |t: &TensorRef| t.storage().is_some_and(|s| may_choose(t.dtype()) && s.may_hold_floats_too());
    let own = |t: &TensorRef| if shared(t) { twin(t, t.device()) } else { Ok(t.clone()) };
    let mut copies = Owned::new();
    for (i, arg) in args.values.iter().enumerate() {
        match arg {
            Arg::Tensor(t) if shared(t) => copies.push((i, vec![own(t)?])),
            Arg::Tensors(list) if list.iter().any(|t| shared(t)) => {
                copies.push((i, list.iter().map(|t| own(t)).collect::<Result<_>>()?));
            }
            _ => {}
        }
    }
    Ok(copies)
}

type Storages<'a> = SmallVec<[(&'a Storage, Use); 4]>;

/// The storages of a tensor's integers.
fn collect<'a>(t: &'a TensorImpl, kind: Use, into: &mut Storages<'a>) {
    match t.storage() {
        Some(storage) if may_choose(t.dtype()) => into.push((storage, kind)),
        _ => t.components().iter().for_each(|component| collect(component, kind, into)),
    }
}
