//! Convolutions and their gradients by cuDNN: what is brought to where it takes it.

use super::device_of;
use super::launch::Operand;
use super::nets::{Array, Image};
use super::scratch::{self, On, Scratch};
use crate::dnn::{self, Convolution, Key, Kind};
use keyway_sdk::author::{Call, Error};

/// Multiplications below which a kernel of this library is as fast, and no plan is worth making.
const LEAST: usize = 1 << 19;

/// Has cuDNN make it, if it is there and takes this; else nothing was done that counts. The bias has an element for each channel
/// of the result.
pub(super) fn convolve(call: &Call<'_>, of: Convolution<'_>, bias: Option<Array<'_>>) -> Result<bool, Error> {
    let outputs: usize = of.result.sizes.iter().product();
    let terms: usize = of.weight.sizes[1..].iter().product();
    if outputs.saturating_mul(terms) < LEAST || !dnn::is_there()? {
        return Ok(false);
    }
    let on = (device_of(call)?, call.stream());
    let of = Convolution { rounds: on.0.rounds(of.dtype), adds: bias.is_some(), ..of };
    let Some(key) = Key::new(&of) else { return Ok(false) };
    let (images, bytes) = ([of.input, of.weight, of.result], Array::output(call, 0)?.bytes);
    // A kernel that lies in another order than the images is copied, before or after.
    let copy = match key.is_copied(&of.weight) {
        true => Some(Scratch::new(on, of.weight.sizes.iter().product(), bytes)?),
        false => None,
    };
    let sides = copy.as_ref().map(|copy| {
        let own = Image { data: copy.at(), strides: key.forms[1].strides, ..of.weight };
        [own, of.weight]
    });
    let made = dnn::convolve(on, &key, || {
        if let (Some(sides), true) = (sides, of.kind != Kind::Filter) {
            copied(on, bytes, sides)?;
        }
        if let Some(bias) = bias {
            let step = bias.strides.first().copied().unwrap_or(0);
            copied(
                on,
                bytes,
                [of.result, Image { data: bias.data, strides: [0, step, 0, 0, 0], ..of.result }],
            )?;
        }
        Ok([images[0].data, copy.as_ref().map_or(images[1].data, Scratch::at), images[2].data])
    })?;
    if let (Some([own, weight]), true, Kind::Filter) = (sides, made, of.kind) {
        copied(on, bytes, [weight, own])?;
    }
    Ok(made)
}

/// Copies an image to another of its sizes.
fn copied(on: On, bytes: usize, [to, from]: [Image; 2]) -> Result<(), Error> {
    let at = |image: &Image| Operand { data: image.data, ..Operand::default() };
    let sizes = to.sizes.map(|size| size as i64);
    scratch::copy(on, bytes, &sizes, (at(&to), &to.strides), (at(&from), &from.strides))
}
