//! The tensors of a sample.

use keyway::Tensor;
use keyway::ops::sample::{Fill, Role, Sample, SampleArg, TensorSample};

/// The tensors of a sample that are of the dtype under test.
pub fn tested(sample: &Sample) -> impl Iterator<Item = &TensorSample> {
    tensors(sample).filter(|t| t.role == Role::Tested)
}

/// Whether a sample has a tensor of the dtype under test.
pub fn has_tested(sample: &Sample) -> bool {
    tested(sample).next().is_some()
}

/// The tensors of a sample, lists flattened.
pub fn tensors(sample: &Sample) -> impl Iterator<Item = &TensorSample> {
    sample.args.iter().flat_map(|arg| match arg {
        SampleArg::Tensor(t) => std::slice::from_ref(t),
        SampleArg::Tensors(list) => list.as_slice(),
        _ => &[],
    })
}

/// Batch, channels, height, width; none is 1, so that the two formats differ.
const IMAGES: [usize; 4] = [2, 3, 4, 5];

/// The sample with tensors of four or more dimensions: unchanged, or, if all its tensors have one shape, with that
/// replaced. Element-wise ops accept this.
pub(super) fn in_four_dims(sample: &Sample) -> Option<Sample> {
    if tensors(sample).any(|t| t.role == Role::Tested && t.sizes.len() > 3) {
        return Some(sample.clone());
    }
    with_sizes(sample, &IMAGES)
}

/// The sample with other sizes, if all its tensors have one shape with elements and dimensions.
pub(super) fn with_sizes(sample: &Sample, sizes: &[usize]) -> Option<Sample> {
    let first = tensors(sample).next()?;
    let alike = tensors(sample).all(|t| t.sizes == first.sizes);
    if !alike || first.sizes.is_empty() || first.sizes.contains(&0) {
        return None;
    }
    let mut sample = sample.clone();
    for arg in &mut sample.args {
        match arg {
            SampleArg::Tensor(t) => t.sizes = sizes.to_vec(),
            SampleArg::Tensors(list) => list.iter_mut().for_each(|t| t.sizes = sizes.to_vec()),
            _ => {}
        }
    }
    Some(sample)
}

/// The index of the middle sample with elements, among those whose values depend on the seed if there are any.
pub(super) fn typical(samples: &[Sample]) -> Option<usize> {
    let drawn = |s: &Sample| tested(s).any(|t| !matches!(t.fill, Fill::Values(_)));
    let mut full = full(samples);
    if full.iter().any(|&nth| drawn(&samples[nth])) {
        full.retain(|&nth| drawn(&samples[nth]));
    }
    full.get(full.len() / 2).copied().or_else(|| (!samples.is_empty()).then_some(0))
}

/// The indices of the samples without an empty tensor.
pub(super) fn full(samples: &[Sample]) -> Vec<usize> {
    let full = |s: &Sample| tensors(s).all(|t| t.sizes.iter().all(|&n| n > 0));
    (0..samples.len()).filter(|&nth| full(&samples[nth])).collect()
}

/// The given tensors of a sample; those of the dtype under test require grad.
pub(super) fn leaves(tensors: Vec<Tensor>, sample: &Sample) -> keyway::Result<Vec<Tensor>> {
    let leaf = |(t, s): (Tensor, &TensorSample)| match s.role {
        Role::Tested => t.requires_grad_(true),
        Role::Fixed(_) => Ok(t),
    };
    tensors.into_iter().zip(self::tensors(sample)).map(leaf).collect()
}
