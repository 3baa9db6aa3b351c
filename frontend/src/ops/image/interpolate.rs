//! `interpolate`
//!
//! Arguments:
//! - `mode`: `nearest`, `nearest-exact`, `linear` or `cubic`.
//! - `size`: the spatial sizes of the result.

use super::interpolate_backward;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::pool::{rank, sizes, spatial, with_spatial};
use crate::ops::rules::{FIRST, wrong_shape, wrong_value};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

/// The rule of both ops: `(tensor, spatial sizes of the result, mode, align_corners, scales)`.
pub(super) fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (rank, x) = (rank(args, 0)?, args.tensor(0)?);
    if x.sizes()[2..].contains(&0) {
        return Err(wrong_shape(
            args,
            0,
            "of 1 or more elements in each spatial dimension".into(),
            x.sizes(),
        ));
    }
    let sizes = with_spatial(x.sizes(), &sizes(args, 1, rank)?);
    let align_corners = args.bool(3)?;
    match args.str(2)? {
        "nearest" | "nearest-exact" if align_corners => {
            return Err(wrong_value(args, 3, "false where the nearest element is taken".into()));
        }
        "cubic" if rank != 2 => {
            return Err(wrong_shape(args, 0, "of 4 dimensions for the mode `cubic`".into(), x.sizes()));
        }
        "nearest" | "nearest-exact" | "linear" | "cubic" => {}
        _ => return Err(wrong_value(args, 2, "`nearest`, `nearest-exact`, `linear` or `cubic`".into())),
    }
    let valid = |scales: &[f64]| {
        (scales.is_empty() || scales.len() == rank) && scales.iter().all(|s| s.is_finite() && *s > 0.0)
    };
    if !matches!(args.get(4), Arg::Floats(scales) if valid(scales)) {
        return Err(wrong_value(args, 4, format!("no factors, or {rank} above 0")));
    }
    Ok(Plan::one(x.dtype(), sizes, x.dtype(), Strides::Images(FIRST)))
}

/// A case: input sizes, spatial sizes of the result; mode, `align_corners`, scales.
pub(super) type Case = (&'static [usize], &'static [i64], &'static str, bool, &'static [f64]);

/// The arguments of a case from the mode on.
pub(super) fn options(case: &Case) -> [SampleArg; 3] {
    [SampleArg::Str(case.2), SampleArg::Bool(case.3), SampleArg::Floats(case.4.to_vec())]
}

/// The samples of both ops.
pub(super) const CASES: [Case; 15] = [
    (&[2, 2, 5], &[8], "nearest", false, &[]),
    (&[2, 3, 4, 5], &[3, 9], "nearest", false, &[]),
    (&[1, 2, 4, 3], &[6, 4], "nearest", false, &[1.6, 1.4]),
    (&[2, 2, 3, 5], &[7, 3], "nearest-exact", false, &[]),
    (&[2, 2, 5], &[8], "linear", false, &[]),
    (&[2, 3, 4, 5], &[7, 3], "linear", false, &[]),
    (&[2, 3, 3, 4], &[5, 7], "linear", true, &[]),
    (&[1, 2, 4, 3], &[6, 4], "linear", false, &[1.6, 1.4]),
    (&[2, 2, 4, 3], &[1, 6], "linear", true, &[]),
    (&[1, 2, 3, 4], &[6, 7], "cubic", false, &[]),
    (&[2, 2, 5, 4], &[3, 6], "cubic", true, &[]),
    (&[1, 2, 4, 3], &[2, 5], "cubic", false, &[0.6, 1.9]),
    (&[1, 2, 2, 3, 4], &[3, 5, 2], "linear", false, &[]),
    (&[1, 2, 2, 3, 4], &[3, 2, 6], "nearest", false, &[]),
    (&[0, 2, 4, 4], &[3, 6], "linear", false, &[]),
];

/// Calls of both ops that must fail.
pub(super) fn errors() -> Vec<ErrorSample> {
    let call = |case: Case, message| {
        let sizes = SampleArg::Ints(case.1.to_vec());
        error([plain(case.0), sizes].into_iter().chain(options(&case)), message)
    };
    vec![
        call((&[4, 4], &[2, 2], "linear", false, &[]), "of 3 to 5 dimensions"),
        call((&[1, 2, 4, 4], &[2], "linear", false, &[]), "2 numbers of 1 or more"),
        call((&[1, 2, 4, 4], &[2, 0], "linear", false, &[]), "2 numbers of 1 or more"),
        call((&[1, 2, 0, 4], &[2, 2], "linear", false, &[]), "1 or more elements in each spatial dimension"),
        call((&[1, 2, 4], &[2], "cubic", false, &[]), "of 4 dimensions for the mode `cubic`"),
        call((&[1, 2, 4], &[2], "area", false, &[]), "`nearest-exact`"),
        call((&[1, 2, 4], &[2], "nearest", true, &[]), "false where the nearest element is taken"),
        call((&[1, 2, 4, 4], &[2, 2], "linear", false, &[0.5]), "no factors, or 2 above 0"),
        call((&[1, 2, 4], &[2], "linear", false, &[-0.5]), "no factors, or 1 above 0"),
    ]
}

fn samples() -> Vec<Sample> {
    let call = |case: &Case| {
        let sizes = SampleArg::Ints(case.1.to_vec());
        sample([plain(case.0), sizes].into_iter().chain(options(case)))
    };
    CASES.iter().map(call).collect()
}

/// `interpolate`: resizes images. Output element `i` of a dimension is sampled at `(i + 1/2) * input / output - 1/2`, with
/// `align_corners` at `i * (input - 1) / (output - 1)`, and with scales at `(i + 1/2) / scale - 1/2`; the mode determines the
/// interpolation kernel, and indices are clamped to the image. `nearest` reads element `⌊i * input / output⌋`.
pub static DEF: OpDef = OpDef::new(
    "interpolate(Tensor self, int[] size, str mode, bool align_corners, float[] scales) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let sizes = spatial(b.sizes(0));
            let grad = b.grad(0)?.into();
            interpolate_backward::DEF.run(&[grad, Arg::Ints(&sizes), b.arg(2), b.arg(3), b.arg(4)])
        })
    }),
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(errors);
