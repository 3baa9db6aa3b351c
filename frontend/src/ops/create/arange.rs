//! `arange`

use crate::error::{Result, called};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Fill, SampleArg, error, fixed, plain, sample};
use crate::tensor::IntoOptions;
use crate::tensor::filled::{dtype_of, new};
use crate::{DType, Tensor};
use keyway_dispatcher::Error as DispatchError;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// The values `start, start + 1, ..` below `end`: i64 if both are integers, otherwise of the default dtype.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// assert_eq!(Tensor::arange(2, 5)?.to_vec::<i64>()?, [2, 3, 4]);
    /// assert_eq!(Tensor::arange(0.5, 3.0)?.dtype(), DType::F32);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An `end` below `start`; bounds that are not finite.
    pub fn arange<'a>(start: impl Into<Arg<'a>>, end: impl Into<Arg<'a>>) -> Result<Tensor> {
        Tensor::arange_with(start, end, 1, ())
    }

    /// [`Tensor::arange`] in steps of `step`, with an optional dtype and device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let a = Tensor::arange_with(0, 10, 3, ())?;
    /// assert_eq!(a.to_vec::<i64>()?, [0, 3, 6, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A step of 0, or with the wrong sign; bounds that are not finite.
    #[doc(alias = "arange_step")]
    pub fn arange_with<'a>(
        start: impl Into<Arg<'a>>,
        end: impl Into<Arg<'a>>,
        step: impl Into<Arg<'a>>,
        options: impl IntoOptions,
    ) -> Result<Tensor> {
        called("arange", &["start", "end", "step", "options"], || {
            let bounds = [start.into(), end.into(), step.into()];
            let mut options = options.into_options()?;
            let dtype = options.dtype.unwrap_or_else(|| dtype_of(&bounds));
            options.dtype = Some(dtype);
            let len = if dtype.is_float() { real_len(bounds)? } else { whole_len(bounds)? };
            new("arange", &[len], options)?.arange_(bounds[0], bounds[2])
        })
    }

    /// Sets element `i`, in row-major order, to `start + i * step`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros((2, 2))?;
    /// x.arange_(1, 0.5)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 1.5, 2.0, 2.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A bool tensor.
    pub fn arange_<'a>(&'a self, start: impl Into<Arg<'a>>, step: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), start.into(), step.into()])
    }
}

fn wrong(argument: &'static str, expected: &str, got: String) -> crate::Error {
    DispatchError::Value { op: "arange", argument, expected: expected.to_string(), got }.into()
}

fn real(name: &'static str, arg: Arg<'_>) -> Result<f64> {
    match arg {
        Arg::Int(v) => Ok(v as f64),
        Arg::Float(v) if v.is_finite() => Ok(v),
        other => Err(wrong(name, "a finite number", other.describe())),
    }
}

fn real_len([start, end, step]: [Arg<'_>; 3]) -> Result<usize> {
    let (start, end, step) = (real("start", start)?, real("end", end)?, real("step", step)?);
    if step == 0.0 || (end - start) * step < 0.0 {
        return Err(wrong(
            "step",
            &format!("a number other than 0 that leads from {start} to {end}"),
            step.to_string(),
        ));
    }
    Ok(((end - start) / step).ceil() as usize)
}

fn whole(name: &'static str, arg: Arg<'_>) -> Result<i128> {
    match arg {
        Arg::Int(v) => Ok(i128::from(v)),
        other => Ok(real(name, other)?.trunc() as i128),
    }
}

/// Bounds are truncated towards zero first, as the elements are.
fn whole_len([start, end, step]: [Arg<'_>; 3]) -> Result<usize> {
    let (start, end, step) = (whole("start", start)?, whole("end", end)?, whole("step", step)?);
    if step == 0 || (end - start).signum() * step.signum() < 0 {
        return Err(wrong(
            "step",
            &format!("an integer other than 0 that leads from {start} to {end}"),
            step.to_string(),
        ));
    }
    let span = (end - start).unsigned_abs();
    Ok(usize::try_from(span.div_ceil(step.unsigned_abs())).unwrap_or(usize::MAX))
}

/// The rule, shared with `linspace`.
pub(super) fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let plan = rules::like_first(args)?;
    rules::require(args, 0, plan.compute, plan.compute != DType::BOOL, "numbers")?;
    Ok(plan)
}

/// `arange`
pub static DEF: OpDef = OpDef::new(
    "arange(Tensor self, Scalar start, Scalar step) -> Tensor",
    Rule::Structured(rule),
    Derivative::ZERO,
    || {
        vec![
            sample([plain(&[7]), SampleArg::Int(2), SampleArg::Int(3)]),
            sample([plain(&[2, 3]), SampleArg::Int(5), SampleArg::Int(-1)]),
            sample([plain(&[2, 2, 3]), SampleArg::Int(-4), SampleArg::Int(1)]),
            sample([plain(&[2, 1, 2, 2]), SampleArg::Int(0), SampleArg::Int(2)]),
            sample([plain(&[2, 1, 2, 1, 2]), SampleArg::Int(1), SampleArg::Int(1)]),
            sample([plain(&[0]), SampleArg::Int(0), SampleArg::Int(1)]),
            sample([plain(&[]), SampleArg::Int(4), SampleArg::Int(1)]),
        ]
    },
)
.forms(Forms::InPlace)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    vec![error([fixed(&[2], DType::BOOL, Fill::Index(2)), SampleArg::Int(0), SampleArg::Int(1)], "numbers")]
});
