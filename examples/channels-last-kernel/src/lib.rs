//! A plugin with two kernels for images in the memory format `channels_last`, in which the channels of one pixel are
//! contiguous: `batch_norm` with running statistics, and `mean` over all pixels (global average pooling).
//!
//! For the dispatcher a memory format is a layout whose parent is `strided`. So these kernels are the first candidates for
//! tensors in this format, and no others are affected: contiguous tensors go to the kernels for `strided`, as do calls that
//! these kernels refuse. `batch_norm` is a composite op, and no other backend needs a kernel of it; one pass over memory
//! replaces its six parts.

use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error, Real, View, parallel_chunks_mut};

fn unsupported(what: &str) -> Error {
    Error::Unsupported { what: what.into() }
}

/// Pixels per block.
const PIXELS: usize = 1024;

/// The elements of images `[batch, channels, ..]`, pixel after pixel, with the number of channels. A tensor with this layout
/// may still be a part of a larger one, with gaps.
fn pixels<'a, T: Real>(images: &View<'a, T>) -> Result<(&'a [T], usize), Error> {
    let last = images.sizes().get(1).zip(images.strides().get(1));
    match (last, images.as_dense_slice()) {
        (Some((&channels, 1)), Some(elements)) if channels > 0 => Ok((elements, channels as usize)),
        _ => Err(unsupported("images whose channels are not contiguous")),
    }
}

/// `(x - mean) / sqrt(var + eps) * weight + bias`, with the running mean and variance. It refuses before it writes, so that the
/// call can go on to the op's decomposition.
fn batch_norm<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    if call.bool(5)? {
        return Err(unsupported("statistics of the input itself, as in training"));
    }
    let (x, mut out, eps) = (call.view::<T>(0)?, call.out::<T>(0)?, call.float(7)?);
    let (elements, channels) = pixels(&x)?;
    let for_each_channel = |index: usize| match call.optional_tensor(index)? {
        Some(t) if t.dtype() != T::dtype() => {
            Err(unsupported("statistics of another dtype than the input's"))
        }
        Some(_) => call.contiguous::<T>(index).map(Some),
        None => Ok(None),
    };
    let (Some(mean), Some(var)) = (for_each_channel(1)?, for_each_channel(2)?) else {
        return Err(unsupported("a call without running statistics"));
    };
    let (weight, bias) = (for_each_channel(3)?, for_each_channel(4)?);
    let same_order = x.strides() == out.strides();
    let Some(made) = out.as_dense_mut_slice().filter(|_| same_order) else {
        return Err(unsupported("an output in another memory format"));
    };
    let scale: Vec<T> = (0..channels)
        .map(|c| {
            let scale = T::ONE / (var[c] + T::from_f64(eps)).sqrt();
            weight.as_ref().map_or(scale, |weight| scale * weight[c])
        })
        .collect();
    parallel_chunks_mut(made, PIXELS * channels, |piece, made| {
        let elements = &elements[piece * PIXELS * channels..][..made.len()];
        for (to, from) in made.chunks_exact_mut(channels).zip(elements.chunks_exact(channels)) {
            for c in 0..channels {
                let normal = (from[c] - mean[c]) * scale[c];
                to[c] = bias.as_ref().map_or(normal, |bias| normal + bias[c]);
            }
        }
    })
}

/// The mean of each channel of each image; refuses other reductions.
fn mean<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let (x, mut out) = (call.view::<T>(0)?, call.out::<T>(0)?);
    let ndim = x.ndim() as i64;
    let mut dims: Vec<i64> = if call.is_none(1)? { vec![] } else { call.ints(1)?.to_vec() };
    dims.iter_mut().filter(|dim| **dim < 0).for_each(|dim| *dim += ndim);
    dims.sort_unstable();
    if dims != (2..ndim).collect::<Vec<_>>() {
        return Err(unsupported("a mean over other dimensions than those of the pixels"));
    }
    let (elements, channels) = pixels(&x)?;
    let per_image = x.sizes()[2..].iter().product::<i64>() as usize;
    if elements.is_empty() {
        return Err(unsupported("images without pixels"));
    }
    let mut means = vec![0.0f64; elements.len() / per_image];
    parallel_chunks_mut(&mut means, channels, |image, means| {
        let image = &elements[image * per_image * channels..][..per_image * channels];
        for pixel in image.chunks_exact(channels) {
            means.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += value.to_f64());
        }
    })?;
    out.assign(means.into_iter().map(|sum| T::from_f64(sum / per_image as f64)));
    Ok(())
}

keyway_sdk::register_kernel! {
    op: "batch_norm", signature: "TOOOObff>T", device: "cpu", layout: "channels_last",
    f32 => batch_norm::<f32>,
    f64 => batch_norm::<f64>,
}

keyway_sdk::register_kernel! {
    op: "mean", signature: "TIb>T", device: "cpu", layout: "channels_last",
    f32 => mean::<f32>,
    f64 => mean::<f64>,
}

keyway_sdk::plugin! {
    name: "example.org/channels-last-kernel",
    version: env!("CARGO_PKG_VERSION"),
    description: "batch_norm and mean for channels_last images",
    devices: ["cpu"],
    layouts: ["channels_last"],
}
