//! Random number ops. Each element's offset in the random stream is the same on every device; see
//! [`crate::rng::philox::element`].

use crate::error::Result;
use crate::ops::def::OpDef;
use crate::ops::sample::{Sample, SampleArg, plain, sample};
use crate::{Device, Tensor};
use keyway_dispatcher::op::Arg;
use smallvec::SmallVec;

mod feature_dropout;
mod gumbel_softmax;

crate::ops::family! {
    bernoulli,
    dropout,
    exponential,
    multinomial,
    normal,
    poisson,
    random_int,
    uniform,
}

/// The number of 32-bit words of random bits per element.
#[derive(Clone, Copy)]
enum Words {
    One,
    Two,
    /// A block, for ops whose elements have streams of their own.
    Four,
}

/// Reserves a seed and an offset of the random stream for one call on `target`.
///
/// # Errors
/// Work that is being captured: each replay would draw the same values.
fn place(target: &Tensor, words: Words) -> Result<[Arg<'static>; 2]> {
    place_of(target.device(), target.elem_count(), words)
}

/// The position of [`place`] for `count` values on a device.
fn place_of(device: Device, count: usize, words: Words) -> Result<[Arg<'static>; 2]> {
    let reason = "each replay would draw the same numbers, since their offset in the stream is recorded";
    crate::graph::refuse("a random op", device, reason, "draw outside, and copy the values into an input")?;
    let per_block = match words {
        Words::One => 4,
        Words::Two => 2,
        Words::Four => 1,
    };
    let taken = crate::rng::generator::current(device).reserve(count.div_ceil(per_block) as u64);
    // Both are passed as the bits of signed integers.
    Ok([Arg::Int(taken.seed as i64), Arg::Int(taken.offset as i64)])
}

/// Runs an in-place random op on `target` with `values`, followed by seed and offset.
fn draw_into(def: &'static OpDef, target: &Tensor, values: &[Arg<'_>], words: Words) -> Result<Tensor> {
    let mut all: SmallVec<[Arg<'_>; 6]> = SmallVec::from_iter([target.into()]);
    all.extend_from_slice(values);
    all.extend_from_slice(&place(target, words)?);
    def.run_in_place(&all)
}

/// The words per element of a float dtype.
fn words_of(target: &Tensor) -> Words {
    if target.dtype() == crate::DType::F64 { Words::Two } else { Words::One }
}

/// Samples of every rank from 0 to 5 for an op with arguments `(self, values.., seed, offset)`.
fn samples(values: &[SampleArg]) -> Vec<Sample> {
    let shapes: [&[usize]; 8] =
        [&[], &[1], &[7], &[3, 5], &[0, 3], &[2, 3, 4], &[2, 3, 2, 5], &[2, 1, 2, 3, 2]];
    let place = [SampleArg::Int(7), SampleArg::Int(3)];
    let call = |s: &&[usize]| sample([plain(s)].into_iter().chain([values, &place].concat()));
    shapes.iter().map(call).collect()
}
