//! `avg_pool_backward`

use super::avg_pool::{self, CASES, check_divisor, options};
use super::geometry::{Window, rank, sizes, spatial, with_spatial};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules::{FIRST, wrong_shape};
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (rank, grad) = (rank(args, 0)?, args.tensor(0)?);
    let input = sizes(args, 1, rank)?;
    let places = Window::of(args, rank, 2, None, 5)?.places(args, &input)?;
    check_divisor(args, 6)?;
    if grad.sizes()[2..] != places[..] {
        let expected =
            format!("of shape [_, _, {places:?}], the positions of the window in an input of {input:?}");
        return Err(wrong_shape(args, 0, expected, grad.sizes()));
    }
    Ok(Plan::one(grad.dtype(), with_spatial(grad.sizes(), &input), grad.dtype(), Strides::Images(FIRST)))
}

/// `avg_pool_backward`: adds each element of the gradient, divided by its window's divisor, to the elements of the window.
pub static DEF: OpDef = OpDef::new(
    "avg_pool_backward(Tensor grad, int[] input_sizes, int[] kernel_size, int[] stride, \
     int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let [kernel, stride, padding, ceil, include, divisor] = [2, 3, 4, 5, 6, 7].map(|i| b.arg(i));
            avg_pool::DEF.run(&[b.grad(0)?.into(), kernel, stride, padding, ceil, include, divisor])
        })
    }),
    || {
        let one = |(case, places): &(avg_pool::Case, &[usize])| {
            let grad = with_spatial(case.0, places);
            let sizes = SampleArg::Ints(spatial(case.0));
            sample([plain(&grad), sizes].into_iter().chain(options(case)))
        };
        CASES.iter().map(one).collect()
    },
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let (case, places) = &CASES[1];
    let call = |grad: &[usize], sizes: &[i64], message| {
        error([plain(grad), SampleArg::Ints(sizes.to_vec())].into_iter().chain(options(case)), message)
    };
    let grad = with_spatial(case.0, places);
    vec![
        call(&[2, 2], &[4, 5], "of 3 to 5 dimensions"),
        call(&grad, &[4], "2 numbers of 1 or more"),
        call(&grad, &[4, 6], "of shape [_, _, [2, 3]]"),
        call(&grad, &[1, 5], "reaches over 2 elements of 1"),
    ]
});
