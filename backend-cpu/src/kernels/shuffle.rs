//! `channel_shuffle`, `pixel_shuffle` and `pixel_unshuffle`: copies of blocks of elements that are strided in the source, the
//! target or both.

use super::cells::{Cells, cell_kernel, copy_block, shifted};
use keyway_sdk::author::{Call, Element, Error};

/// Transposes `[groups, channels / groups]` of the channels.
fn channel_shuffle<C: Element>(call: &Call) -> Result<(), Error> {
    let (from, to) = (Cells::<C>::argument(call, 0)?, Cells::<C>::output(call, 0)?);
    let groups = call.int(1)?.max(1) as usize;
    let &[batch, channels, ref inner @ ..] = &from.sizes[..] else {
        return Err(Error::Unsupported { what: "a tensor without channels".into() });
    };
    let each = channels / groups;
    let sizes = [&[batch, each, groups], inner].concat();
    let strides = |t: &Cells<'_, C>, split: [usize; 2]| {
        let split = split.map(|step| step as isize * t.strides[1]);
        [&[t.strides[0]], &split[..], &t.strides[2..]].concat()
    };
    copy_block(to.lanes, &strides(&to, [groups, 1]), from.lanes, &strides(&from, [1, each]), &sizes)
}

/// Copies `factor * factor` consecutive channels of a small image to one channel of a large one, or the inverse, one column
/// offset within the `factor * factor` squares at a time.
fn pixels<C: Element>(call: &Call, to_large: bool) -> Result<(), Error> {
    let (from, to) = (Cells::<C>::argument(call, 0)?, Cells::<C>::output(call, 0)?);
    let factor = call.int(1)?.max(1) as usize;
    let (small, large) = if to_large { (&from, &to) } else { (&to, &from) };
    let Some(c) = small.sizes.len().checked_sub(3) else {
        return Err(Error::Unsupported { what: "an image of fewer than 3 dimensions".into() });
    };
    let lead = &small.sizes[..c];
    let sizes = [lead, &[large.sizes[c], factor, small.sizes[c + 1], small.sizes[c + 2]]].concat();
    if sizes.contains(&0) {
        // The factor is arbitrary if there are no elements.
        return Ok(());
    }
    let f = factor as isize;
    let (s, l) = (&small.strides, &large.strides);
    let of_small = [&s[..c], &[s[c] * f * f, s[c] * f, s[c + 1], s[c + 2]]].concat();
    let of_large = [&l[..c], &[l[c], l[c + 1], l[c + 1] * f, l[c + 2] * f]].concat();
    for column in 0..f {
        let (small, large) = (shifted(small.lanes, column * s[c]), shifted(large.lanes, column * l[c + 2]));
        match to_large {
            true => copy_block(large, &of_large, small, &of_small, &sizes)?,
            false => copy_block(small, &of_small, large, &of_large, &sizes)?,
        }
    }
    Ok(())
}

fn pixel_shuffle<C: Element>(call: &Call) -> Result<(), Error> {
    pixels::<C>(call, true)
}

fn pixel_unshuffle<C: Element>(call: &Call) -> Result<(), Error> {
    pixels::<C>(call, false)
}

cell_kernel!("channel_shuffle", "Ti>T", channel_shuffle);
cell_kernel!("pixel_shuffle", "Ti>T", pixel_shuffle);
cell_kernel!("pixel_unshuffle", "Ti>T", pixel_unshuffle);
