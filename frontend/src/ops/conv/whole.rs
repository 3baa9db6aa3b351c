//! Convolutions with a kernel as large as the image, computed as a fully connected layer.
//!
//! Its single output position reads the whole image, so the convolution is a matrix product, whose rows are the images
//! and the kernels in memory order. With channels_last images it needs no reordering, which flattening would.

use crate::Tensor;
use crate::error::Result;
use crate::tensor::MemoryFormat;
use keyway_dispatcher::tensor::Images;

/// The convolution without padding and groups, as a matrix product; `None` if the kernel is smaller than the image or the two
/// have different memory formats. Invalid arguments are left to the op's rule.
pub(super) fn product(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Option<Tensor>> {
    let ([images, of_image @ ..], [kernels, of_kernel @ ..]) = (x.shape(), weight.shape()) else {
        return Ok(None);
    };
    let (images, kernels) = (*images, *kernels);
    let alike = |t: &Tensor| t.dtype() == x.dtype() && t.device() == x.device() && t.as_ref().is_strided();
    if of_image != of_kernel
        || !x.dtype().is_float()
        || x.elem_count() == 0
        || weight.elem_count() == 0
        || ![Some(x), Some(weight), bias].into_iter().flatten().all(alike)
        || bias.is_some_and(|bias| bias.shape() != [kernels])
    {
        return Ok(None);
    }
    let mut order = Images::default();
    order.add(x.as_ref());
    order.add(weight.as_ref());
    let last = order.are_channels_last();
    let format = if last { MemoryFormat::ChannelsLast } else { MemoryFormat::Contiguous };
    if !x.is_contiguous_in(format) || !weight.is_contiguous_in(format) {
        return Ok(None);
    }
    let rows = |t: &Tensor| {
        let in_memory_order = if last { t.movedim(1, -1)? } else { t.clone() };
        in_memory_order.flatten(1, -1)
    };
    let made = rows(x)?.linear(&rows(weight)?, bias)?;
    let mut sizes = vec![1; x.rank()];
    sizes[0] = images;
    sizes[if last { x.rank() - 1 } else { 1 }] = kernels;
    let made = made.reshape_as_sizes(&sizes)?;
    Ok(Some(if last { made.movedim(-1, 1)? } else { made }))
}
