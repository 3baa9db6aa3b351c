//! `interpolate_backward`
//!
//! Arguments:
//! - `mode`: `nearest`, `nearest-exact`, `linear` or `cubic`.

use super::interpolate::{self, CASES, Case, errors, options, rule};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::pool::{spatial, with_spatial};
use crate::ops::sample::{SampleArg, plain, sample};
use keyway_dispatcher::op::{Arg, Rule};

/// `interpolate_backward`: the adjoint of `interpolate`: scatters each element of the gradient to the input elements that it
/// was interpolated from, times their weights.
pub static DEF: OpDef = OpDef::new(
    "interpolate_backward(Tensor grad, int[] input_sizes, str mode, bool align_corners, \
     float[] scales) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let sizes = spatial(b.sizes(0));
            let grad = b.grad(0)?.into();
            interpolate::DEF.run(&[grad, Arg::Ints(&sizes), b.arg(2), b.arg(3), b.arg(4)])
        })
    }),
    || {
        let one = |case: &Case| {
            let places: Vec<usize> = case.1.iter().map(|&v| v as usize).collect();
            let grad = plain(&with_spatial(case.0, &places));
            let made = sample([grad, SampleArg::Ints(spatial(case.0))].into_iter().chain(options(case)));
            match case.2 {
                "cubic" => made.tolerance_factor(16.0, "many terms whose weights differ in sign"),
                _ => made,
            }
        };
        CASES.iter().map(one).collect()
    },
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(errors);
