//! The order of a tensor's elements in memory, as a plan tells it: by one of two formats, or neither.

use crate::MemoryFormat;
use keyway_dispatcher::op::{Arg, Call, Out};
use keyway_dispatcher::tensor::{Format, TensorRef};

/// The formats that a plan chooses from; the index of one is its label in the cut.
pub(super) const FORMATS: [MemoryFormat; 2] = [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast];
/// The index of tensors that are in neither.
pub(super) const NEITHER: usize = FORMATS.len();

/// Whether a tensor has a format to choose. Tensors of three dimensions are left out: a transposed matrix of a batch looks like
/// channels_last.
pub(super) fn is_image(t: &TensorRef) -> bool {
    t.is_strided() && (4..=5).contains(&t.ndim()) && t.numel() > 1
}

/// The index of a tensor's format in [`FORMATS`], or [`NEITHER`].
pub(super) fn of(t: &TensorRef) -> usize {
    match t.format() {
        Format::Contiguous | Format::Either => 0,
        Format::ChannelsLast | Format::EitherLast => 1,
        Format::Other => NEITHER,
    }
}

/// The tensors among the arguments, those of lists one by one.
pub(super) fn tensors<'a>(call: &Call<'a>) -> impl Iterator<Item = &'a TensorRef> + Clone {
    call.args.values.iter().flat_map(|arg| match arg {
        Arg::Tensor(t) => std::slice::from_ref(t).iter().copied(),
        Arg::Tensors(list) => list.iter().copied(),
        _ => Default::default(),
    })
}

/// Whether argument 0 is what the call changes, so that it cannot be replaced.
pub(super) fn is_in_place(call: &Call<'_>) -> bool {
    matches!(call.out, Out::InPlace)
}
