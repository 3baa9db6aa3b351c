//! Random numbers. Where they stand in the stream is the same on every device; see
//! [`crate::rng::philox::element`].

use crate::error::Result;
use crate::ops::def::OpDef;
use crate::ops::sample::{Sample, SampleArg, plain, sample};
use crate::{Device, Tensor};
use keyway_dispatcher::op::Arg;
use smallvec::SmallVec;

mod feature_dropout;

crate::ops::family! {
    bernoulli,
    dropout,
    multinomial,
    normal,
    random_int,
    uniform,
}

/// Words of 32 bits that an element takes.
#[derive(Clone, Copy)]
enum Words {
    One,
    Two,
}

/// The seed and the offset for one call on `target`, which nobody else gets.
///
/// # Errors
/// Work that is captured, which would draw the same numbers with each replay.
fn place(target: &Tensor, words: Words) -> Result<[Arg<'static>; 2]> {
    place_of(target.device(), target.elem_count(), words)
}

/// [`place`] of so many numbers on a device.
fn place_of(device: Device, count: usize, words: Words) -> Result<[Arg<'static>; 2]> {
    let reason = "each replay would draw the same numbers, whose place in the stream is recorded";
    crate::graph::refuse(
        "a random op",
        device,
        reason,
        "draw outside, and copy what was drawn into an input",
    )?;
    let per_block = match words {
        Words::One => 4,
        Words::Two => 2,
    };
    let taken = crate::rng::generator::current(device).reserve(count.div_ceil(per_block) as u64);
    // The bits of both cross as signed integers.
    Ok([Arg::Int(taken.seed as i64), Arg::Int(taken.offset as i64)])
}

/// Runs an in-place random op on `target` with `values` before the place in the stream.
fn draw_into(def: &'static OpDef, target: &Tensor, values: &[Arg<'_>], words: Words) -> Result<Tensor> {
    let mut all: SmallVec<[Arg<'_>; 6]> = SmallVec::from_iter([target.into()]);
    all.extend_from_slice(values);
    all.extend_from_slice(&place(target, words)?);
    def.run_in_place(&all)
}

/// The words that an element of a float dtype takes.
fn words_of(target: &Tensor) -> Words {
    if target.dtype() == crate::DType::F64 { Words::Two } else { Words::One }
}

/// Every rank from 0 to 5, of an op with arguments `(self, values.., seed, offset)`.
fn samples(values: &[SampleArg]) -> Vec<Sample> {
    let shapes: [&[usize]; 8] =
        [&[], &[1], &[7], &[3, 5], &[0, 3], &[2, 3, 4], &[2, 3, 2, 5], &[2, 1, 2, 3, 2]];
    let place = [SampleArg::Int(7), SampleArg::Int(3)];
    let call = |s: &&[usize]| sample([plain(s)].into_iter().chain([values, &place].concat()));
    shapes.iter().map(call).collect()
}
