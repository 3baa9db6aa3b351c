//! The tensors that the caller passes to write to.

use super::convert::{contiguous, copy_into};
use super::layouts::may_repeat;
use crate::base::dims;
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use crate::memory::{Shared, read_bytes};
use crate::op::{Arg, Args, Call, Out, Outputs};
use crate::registry::table;
use crate::tensor::TensorRef;

/// Unaliases results: one that is itself an argument becomes a new tensor that shares the memory, but not the autograd
/// node.
#[inline]
pub fn unalias(args: &Args<'_>, made: &mut Outputs) {
    // A tensor with no other owner is not an argument.
    for tensor in made.iter_mut().filter(|tensor| Shared::strong_count(tensor) > 1) {
        let same = args.values.iter().any(|arg| match arg {
            Arg::Tensor(t) => Shared::ptr_eq(t, tensor),
            Arg::Tensors(list) => list.iter().any(|t| Shared::ptr_eq(t, tensor)),
            _ => false,
        });
        if same {
            *tensor = tensor.shallow_copy();
        }
    }
}

/// The tensors that a call writes to.
pub(super) fn targets(call: &Call<'_>) -> Result<Outputs> {
    Ok(match call.out {
        Out::New => Outputs::new(),
        Out::Given(list) => list.iter().map(|t| (*t).clone()).collect(),
        Out::InPlace => Outputs::from_iter([call.args.tensor(0)?.clone()]),
    })
}

/// Checks that `target` can hold the result. `out` determines the argument named in an error: `out`, or the op's own
/// in-place argument.
pub(crate) fn check_target(
    out: Out<'_>,
    args: &Args<'_>,
    target: &TensorRef,
    sizes: &[usize],
    dtype: crate::base::dtype::DType,
) -> Result<()> {
    let op = args.name();
    let argument = if matches!(out, Out::InPlace) { args.op.schema.param_name(0) } else { "out" };
    target.check_writable(op)?;
    // A composite tensor preserves its other components, so that only an op's own argument can be the target.
    let in_place = || matches!(args.values.first(), Some(Arg::Tensor(t)) if Shared::ptr_eq(t, target));
    if !target.is_strided() && !in_place() {
        // An argument that was cast is another tensor, and the dtype is the reason.
        if dtype != target.dtype() && target.sizes() == sizes {
            let expected = format!("of the result's {dtype}");
            return Err(Error::DType { op, argument, expected, got: target.dtype() });
        }
        let reason = "cannot be written to; use the form that returns a new tensor";
        return Err(Error::Layout { op, layout: target.layout(), reason });
    }
    if target.sizes() != sizes {
        let got = target.sizes().into();
        return Err(Error::Shape { op, argument, expected: format!("of the result's shape {sizes:?}"), got });
    }
    if dtype.category() > target.dtype().category() {
        let expected = format!("able to hold the result's {dtype}");
        return Err(Error::DType { op, argument, expected, got: target.dtype() });
    }
    if target.is_strided() && dims::may_self_overlap(target.sizes(), target.strides()) {
        return Err(Error::Overlap { op, with: "itself" });
    }
    Ok(())
}

/// Refuses a target on another device than the call's.
pub(super) fn check_device(call: &Call<'_>, target: &TensorRef, device: Device) -> Result<()> {
    match call.out {
        Out::Given(_) if target.device() != device => Err(Error::DeviceMismatch {
            op: call.args.name(),
            argument: "out",
            expected: device,
            got: target.device(),
        }),
        _ => Ok(()),
    }
}

/// Whether a kernel may write directly to `target`: it shares no memory with an argument, or is exactly one and the op
/// allows that (`alias`).
#[inline]
pub(super) fn may_overwrite(args: &Args<'_>, target: &TensorRef, alias: bool) -> bool {
    let reach = target.reach();
    let free = |t: &TensorRef| (alias && target.coincides(t)) || !t.overlaps(target, reach.as_ref());
    args.values.iter().all(|arg| match arg {
        Arg::Tensor(t) => free(t),
        Arg::Tensors(list) => list.iter().all(|t| free(t)),
        _ => true,
    })
}

/// Refuses targets if two of them certainly share elements: both are dense and their memory overlaps. For tensors with gaps
/// this is unknown, and they are written in sequence.
pub(super) fn check_apart<'a>(
    op: &'static str,
    targets: impl ExactSizeIterator<Item = &'a TensorRef>,
) -> Result<()> {
    if targets.len() < 2 {
        return Ok(());
    }
    let dense = targets.filter(|t| t.is_strided() && dims::is_dense(t.sizes(), t.strides()));
    let mut all: Vec<_> = dense.filter_map(|t| Some((t.device(), t.reach()?))).collect();
    all.sort_unstable_by_key(|(device, range)| (*device, range.start));
    let meet =
        |pair: &[(_, std::ops::Range<usize>)]| pair[0].0 == pair[1].0 && pair[1].1.start < pair[0].1.end;
    if all.windows(2).any(meet) { Err(Error::Overlap { op, with: "another output" }) } else { Ok(()) }
}

/// Targets that are compared with each argument.
const FEW: usize = 4;

/// [`may_overwrite`] for each target. Several targets must not share memory with each other either.
pub(super) fn may_overwrite_all(args: &Args<'_>, targets: &[TensorRef], alias: bool) -> bool {
    match targets.len() <= FEW {
        true => targets.iter().all(|target| may_overwrite(args, target, alias)),
        false => {
            let arguments = args.values.iter().flat_map(|arg| match arg {
                Arg::Tensor(t) => std::slice::from_ref(t),
                Arg::Tensors(list) => list,
                _ => &[],
            });
            may_overwrite_many(arguments.copied(), targets, alias)
        }
    }
}

/// [`may_overwrite_all`] by sorted addresses: O(n log n) in the number of tensors, not in pairs.
fn may_overwrite_many<'a>(
    arguments: impl Iterator<Item = &'a TensorRef>,
    targets: &'a [TensorRef],
    alias: bool,
) -> bool {
    let Some(device) = targets.first().map(|t| t.device()) else { return true };
    if targets.iter().any(|t| t.device() != device) {
        return false;
    }
    let near = arguments.filter(|t| t.device() == device).map(|t| (t, false));
    let both = targets.iter().map(|t| (t, true)).chain(near);
    let mut all: Vec<_> = both.filter_map(|(t, written)| Some((t.reach()?, t, written))).collect();
    all.sort_unstable_by_key(|(range, _, written)| (range.start, !*written));
    // A run of overlapping address ranges; if one of its tensors is written, all of them must be the same memory.
    let mut rest = &all[..];
    while let Some((first, _)) = rest.split_first() {
        let mut end = first.0.end;
        let mut count = 1;
        while let Some((range, ..)) = rest.get(count).filter(|(range, ..)| range.start < end) {
            end = end.max(range.end);
            count += 1;
        }
        let (group, later) = rest.split_at(count);
        rest = later;
        let mut written = group.iter().filter(|(_, _, written)| *written);
        let Some((_, target, _)) = written.next() else { continue };
        let exact = |(_, t, written): &(_, &TensorRef, bool)| *written || target.coincides(t);
        if written.next().is_some() || (count > 1 && !(alias && group.iter().all(exact))) {
            return false;
        }
    }
    true
}

/// Delivers results, copying them if the caller passed tensors to write to.
pub(crate) fn deliver(call: &Call<'_>, made: Outputs) -> Result<Outputs> {
    if matches!(call.out, Out::New) {
        return Ok(made);
    }
    let targets = targets(call)?;
    if targets.len() != made.len() {
        let (expected, got) =
            (format!("{} tensors, one for each result", made.len()), targets.len().to_string());
        return Err(Error::Value { op: call.args.name(), argument: "out", expected, got });
    }
    for (target, result) in targets.iter().zip(&made) {
        check_target(call.out, &call.args, target, result.sizes(), result.dtype())?;
        check_device(call, target, result.device())?;
    }
    check_apart(call.args.name(), targets.iter())?;
    for (target, result) in targets.iter().zip(&made) {
        if target.is_strided() {
            copy_into(target, result)?
        } else {
            store(call.args.name(), target, result)?
        }
    }
    Ok(targets)
}

/// Writes the values of a result into the values of a composite tensor with the same indices.
fn store(op: &'static str, target: &TensorRef, made: &TensorRef) -> Result<()> {
    let refused = |reason| Err(Error::Layout { op, layout: target.layout(), reason });
    let (own, new) = (target.components(), made.components());
    if made.layout() != target.layout() || made.dtype() != target.dtype() || own.len() != new.len() {
        return refused(
            "cannot hold this result in place, which is of another layout or dtype; use the form that returns a new tensor",
        );
    }
    let names = table::current().layout(target.layout()).map_or(&[][..], |entry| &entry.components);
    let holds_numbers = |nth: usize| match names.iter().position(|name| name == "values") {
        Some(values) => nth == values,
        None => own[nth].dtype() == target.dtype(),
    };
    for (nth, (own, new)) in own.iter().zip(new).enumerate() {
        let same = own.sizes() == new.sizes()
            && own.dtype() == new.dtype()
            && (holds_numbers(nth) || own.coincides(new) || content(own)? == content(new)?);
        if !same {
            return refused(if may_repeat(target) {
                "cannot hold this result in place, which has other coordinates: `coalesce()` both tensors first, and if the \
                 other stores more coordinates than this one, use the form that returns a new tensor"
            } else {
                "cannot hold this result in place, which has other coordinates: each coordinate of the other argument must be \
                 stored in this tensor already; use the form that returns a new tensor"
            });
        }
    }
    let numbers = own.iter().zip(new).enumerate().filter(|(nth, _)| holds_numbers(*nth));
    numbers.filter(|(_, (own, new))| !own.coincides(new)).try_for_each(|(_, (own, new))| copy_into(own, new))
}

/// The elements of a strided tensor as bytes.
fn content(t: &TensorRef) -> Result<Vec<u8>> {
    let dense = contiguous(t)?;
    let mut bytes = vec![0; dense.numel() * dense.dtype().size()];
    if let Some(storage) = dense.storage() {
        read_bytes(storage, dense.offset() * dense.dtype().size(), &mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::base::key::Device;
    use crate::tensor::TensorImpl;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn many_are_judged_as_each_pair_is(
            targets in prop::collection::vec((0usize..60, 0usize..4, 1usize..3), 0..6),
            others in prop::collection::vec((0usize..60, 0usize..4, 1usize..3), 0..8),
            same in prop::collection::vec(any::<bool>(), 6),
            alias in any::<bool>(),
        ) {
            let base = TensorImpl::empty(&[80], DType::F32, Device::CPU).unwrap();
            let part = |&(offset, size, stride): &(usize, usize, usize)| {
                TensorImpl::view(&base, offset, &[size], Some(&[stride]), false).unwrap()
            };
            let targets: Vec<TensorRef> = targets.iter().map(part).collect();
            // Some arguments are the targets themselves.
            let own = targets.iter().zip(&same).filter(|(_, same)| **same).map(|(t, _)| t.clone());
            let arguments: Vec<TensorRef> = others.iter().map(part).chain(own).collect();
            let free = |t: &TensorRef| {
                arguments.iter().all(|a| (alias && t.coincides(a)) || !t.overlaps(a, a.reach().as_ref()))
            };
            let apart = (0..targets.len()).all(|i| (0..i).all(|j| !targets[i].overlaps(&targets[j], targets[j].reach().as_ref())));
            let expected = apart && targets.iter().all(free);
            prop_assert_eq!(may_overwrite_many(arguments.iter(), &targets, alias), expected);
        }
    }
}
