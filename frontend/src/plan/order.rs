//! The stride order of a tensor as a plan classifies it: one of two formats, or neither.

use crate::MemoryFormat;
use keyway_dispatcher::op::{Arg, Call, Out};
use keyway_dispatcher::tensor::{Format, TensorRef};

/// The candidate formats; the index of a format is its label in the cut.
pub(super) const FORMATS: [MemoryFormat; 2] = [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast];
/// The index of tensors in neither format.
pub(super) const NEITHER: usize = FORMATS.len();

/// Whether a tensor has a choice of format. Three-dimensional tensors are excluded: a batch of transposed matrices has
/// channels_last strides.
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

/// The tensors among the arguments, including those in lists.
pub(super) fn tensors<'a>(call: &Call<'a>) -> impl Iterator<Item = &'a TensorRef> + Clone {
    call.args.values.iter().flat_map(|arg| match arg {
        Arg::Tensor(t) => std::slice::from_ref(t).iter().copied(),
        Arg::Tensors(list) => list.iter().copied(),
        _ => Default::default(),
    })
}

/// Whether the call modifies argument 0, which therefore cannot be replaced.
pub(super) fn is_in_place(call: &Call<'_>) -> bool {
    matches!(call.out, Out::InPlace)
}
