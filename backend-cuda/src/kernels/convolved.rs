//! Convolutions and their gradients by cuDNN, and the copies of operands to its layout.

use super::device_of;
use super::launch::Operand;
use super::nets::{Array, Image};
use super::scratch::{self, On, Scratch};
use crate::dnn::{self, Convolution, Key};
use keyway_sdk::author::{Call, Error};

/// The number of multiplications below which this library's kernels are as fast as cuDNN.
const LEAST: usize = 1 << 19;

/// Computes a convolution with cuDNN, if it is installed and supports it; otherwise has no effect. The bias has one element
/// per output channel.
pub(super) fn convolve(call: &Call<'_>, of: Convolution<'_>, bias: Option<Array<'_>>) -> Result<bool, Error> {
    let outputs: usize = of.result.sizes.iter().product();
    let terms: usize = of.weight.sizes[1..].iter().product();
    if outputs.saturating_mul(terms) < LEAST || !dnn::is_there()? {
        return Ok(false);
    }
    let on = (device_of(call)?, call.stream());
    let of = Convolution { rounds: on.0.rounds(of.dtype), adds: bias.is_some(), ..of };
    let Some(key) = Key::new(&of) else { return Ok(false) };
    let (images, bytes, made) = (of.images(), Array::output(call, 0)?.bytes, of.kind.made());
    // Tensors with other strides than the key's are copied.
    let (mut copies, mut own) = ([const { None }; 3], images);
    for (i, image) in images.iter().enumerate().filter(|(i, image)| !key.forms[*i].is_of(image)) {
        let copy = Scratch::new(on, image.sizes.iter().product(), bytes)?;
        own[i] = Image { data: copy.at(), strides: key.forms[i].strides, ..*image };
        copies[i] = Some(copy);
    }
    let ready = || {
        for i in (0..3).filter(|&i| copies[i].is_some() && i != made) {
            copied(on, bytes, [own[i], images[i]])?;
        }
        if let Some(bias) = bias {
            let step = bias.strides.first().copied().unwrap_or(0);
            let spread = Image { data: bias.data, strides: [0, step, 0, 0, 0], ..own[made] };
            copied(on, bytes, [own[made], spread])?;
        }
        Ok(own.map(|image| image.data))
    };
    if !dnn::convolve(on, &key, ready)? {
        return Ok(false);
    }
    if copies[made].is_some() {
        copied(on, bytes, [images[made], own[made]])?;
    }
    Ok(true)
}

/// Copies an image to another one of equal sizes.
fn copied(on: On, bytes: usize, [to, from]: [Image; 2]) -> Result<(), Error> {
    let at = |image: &Image| Operand { data: image.data, ..Operand::default() };
    let sizes = to.sizes.map(|size| size as i64);
    scratch::copy(on, bytes, &sizes, (at(&to), &to.strides), (at(&from), &from.strides))
}
