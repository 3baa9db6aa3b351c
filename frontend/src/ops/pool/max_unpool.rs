//! `max_unpool`

use super::max_pool_backward::{at, rule};
use crate::DType;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, SampleArg, error, fixed, index, plain, sample};
use keyway_dispatcher::op::Rule;

/// A sample tensor of flat indices, `each` for every channel.
fn places(sizes: &[usize], each: &[f64]) -> SampleArg {
    fixed(sizes, DType::I64, Fill::Values(each.to_vec()))
}

/// `max_unpool`: zeros of these spatial sizes, into which each element is written at its index in the channel; of equal indices
/// the last one wins. The gradient of each element is that at its index, also if it was overwritten, as in PyTorch.
pub static DEF: OpDef = OpDef::new(
    "max_unpool(Tensor self, Tensor indices, int[] output_size) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b10, |b, g| g.set(0, || at(b.grad(0)?, &b.input(1)?))),
    || {
        let call = |input: &[usize], each: &[f64], sizes: &[i64]| {
            sample([plain(input), places(input, each), SampleArg::Ints(sizes.to_vec())])
        };
        vec![
            call(&[2, 2, 3], &[4.0, 0.0, 2.0], &[5]),
            call(&[2, 3, 2, 2], &[0.0, 3.0, 19.0, 11.0], &[4, 5]),
            call(&[1, 2, 2, 1, 3], &[1.0, 0.0, 23.0, 12.0, 7.0, 8.0], &[2, 3, 4]),
            call(&[0, 2, 2, 2], &[0.0], &[4, 4]),
        ]
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |input: &[usize], indices: SampleArg, sizes: &[i64], message| {
        error([plain(input), indices, SampleArg::Ints(sizes.to_vec())], message)
    };
    let two: &[usize] = &[1, 1, 2];
    vec![
        call(&[2], index(&[2], 2), &[2], "of 3 to 5 dimensions"),
        call(two, index(&[2], 2), &[4], "of the shape of `self`, [1, 1, 2]"),
        call(two, fixed(two, DType::F32, Fill::Index(2)), &[4], "integers"),
        call(two, index(two, 2), &[0], "1 numbers of 1 or more"),
        call(two, places(two, &[0.0, 4.0]), &[4], "0..4"),
        call(two, places(two, &[-1.0]), &[4], "0..4"),
    ]
})
.with(OpFlags::EXACT);
