//! `clamp`
//!
//! Arguments:
//! - `min`: the least result; None for no bound.
//! - `max`: the largest result; None for no bound.

use super::derived;
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::rules;
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, fixed, plain, sample, tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Rule, Typing};

impl Tensor {
    /// Clamps each element to `min..=max`; NaN propagates. A bound may be a number, a tensor, or `None`; where `min` is above
    /// `max` the result is `max`.
    ///
    /// The gradient of an element equal to a numeric bound is 1, as inside. Where an element equals a bound tensor's element,
    /// each gets half, as in [`Tensor::maximum`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([-2.0f32, 0.5, 2.0])?;
    /// assert_eq!(a.clamp(0.0, 1.0)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// assert_eq!(a.clamp(0.0, None)?.to_vec::<f32>()?, [0.0, 0.5, 2.0]);
    /// assert_eq!(a.clamp(None, &a.zeros_like()?)?.to_vec::<f32>()?, [-2.0, 0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No bound at all; a bound tensor whose shape does not broadcast; a number beyond the range of an integer dtype to which
    /// every element would be clamped. Other numbers beyond the dtype's range have no effect.
    #[doc(alias = "clip")]
    pub fn clamp<'a>(&'a self, min: impl Into<Arg<'a>>, max: impl Into<Arg<'a>>) -> Result<Tensor> {
        called("clamp", &["self", "min", "max"], || {
            let (min, max) = (min.into(), max.into());
            if !matches!(min, Arg::Tensor(_)) && !matches!(max, Arg::Tensor(_)) {
                return DEF.run(&[self.into(), min, max]);
            }
            let raised = if matches!(min, Arg::None) { self.clone() } else { self.maximum(min)? };
            if matches!(max, Arg::None) { Ok(raised) } else { raised.minimum(max) }
        })
    }

    /// [`Tensor::clamp`] with numeric bounds, in place.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([-1.0f32, 0.5, 2.0])?;
    /// a.clamp_(0.0, 1.0)?;
    /// assert_eq!(a.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn clamp_<'a>(&'a self, min: impl Into<Arg<'a>>, max: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), min.into(), max.into()])
    }

    /// `max(x, min)` of each element `x`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([-1.0f32, 0.5, 2.0])?;
    /// assert_eq!(a.clamp_min(0.0)?.to_vec::<f32>()?, [0.0, 0.5, 2.0]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn clamp_min<'a>(&'a self, min: impl Into<Arg<'a>>) -> Result<Tensor> {
        called("clamp_min", &["self", "min"], || self.clamp(min, None))
    }

    /// `min(x, max)` of each element `x`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([-1.0f32, 0.5, 2.0])?;
    /// assert_eq!(a.clamp_max(1.0)?.to_vec::<f32>()?, [-1.0, 0.5, 1.0]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn clamp_max<'a>(&'a self, max: impl Into<Arg<'a>>) -> Result<Tensor> {
        called("clamp_max", &["self", "max"], || self.clamp(None, max))
    }

    /// [`Tensor::clamp`] with numeric bounds, written to `out`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, mut out) = (Tensor::new([-1.0f32, 0.5, 2.0])?, Tensor::zeros(3)?);
    /// a.clamp_out(0.0, 1.0, &mut out)?;
    /// assert_eq!(out.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn clamp_out<'a>(
        &'a self,
        min: impl Into<Arg<'a>>,
        max: impl Into<Arg<'a>>,
        out: &mut Tensor,
    ) -> Result<()> {
        DEF.run_out(&[self.into(), min.into(), max.into()], out)
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    if matches!((args.get(1), args.get(2)), (Arg::None, Arg::None)) {
        return Err(Error::Value {
            op: args.name(),
            argument: "min",
            expected: "a number, or `max` one".to_string(),
            got: "neither".to_string(),
        });
    }
    let dtype = args.promote(rules::FIRST_THREE)?;
    rules::has_order(args, 0, dtype)?;
    rules::require(args, 0, dtype, dtype != crate::DType::BOOL, "numbers")?;
    if let Some((lowest, highest)) = dtype.integer_range() {
        // A bound outside of the dtype's range has no effect, unless all elements are beyond it.
        if let Arg::Int(min) = args.get(1)
            && i128::from(min) > highest
        {
            return Err(rules::wrong_value(args, 1, format!("at most {highest}, the largest {dtype}")));
        }
        if let Arg::Int(max) = args.get(2)
            && i128::from(max) < lowest
        {
            return Err(rules::wrong_value(args, 2, format!("at least {lowest}, the smallest {dtype}")));
        }
    }
    Ok(Typing::of(dtype))
}

fn samples() -> Vec<Sample> {
    let bounds = [
        (SampleArg::Float(-1.03), SampleArg::Float(0.97)),
        (SampleArg::Float(-0.51), SampleArg::None),
        (SampleArg::None, SampleArg::Int(1)),
    ];
    let shapes: [&[usize]; 7] = [&[], &[7], &[3, 4], &[0, 3], &[2, 3, 4], &[2, 3, 2, 5], &[2, 1, 2, 3, 2]];
    let on_bounds = tensor(&[5], Fill::Values(vec![-1.0, 1.0, 0.0, -2.0, 2.0]));
    let corners = Sample { smooth: false, ..sample([on_bounds, SampleArg::Int(-1), SampleArg::Int(1)]) };
    // Bounds beyond the range of i8 and u8.
    let beyond = sample([plain(&[5]), SampleArg::Int(-300), SampleArg::Int(300)]);
    shapes
        .iter()
        .flat_map(|sizes| bounds.iter().map(|(min, max)| sample([plain(sizes), min.clone(), max.clone()])))
        .chain([corners, beyond])
        .collect()
}

fn errors() -> Vec<ErrorSample> {
    let bytes = || fixed(&[2], crate::DType::I8, Fill::Index(2));
    vec![
        error([plain(&[2]), SampleArg::None, SampleArg::None], "neither"),
        error([bytes(), SampleArg::Int(300), SampleArg::None], "at most 127, the largest i8"),
        error([bytes(), SampleArg::None, SampleArg::Int(-300)], "at least -128, the smallest i8"),
    ]
}

/// `clamp`
pub static DEF: OpDef = OpDef::new(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    Rule::Elementwise(rules::FIRST, rule),
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let (x, grad) = (b.input(0)?, b.grad(0)?);
            let inside = match (b.arg(1), b.arg(2)) {
                (min, Arg::None) => x.ge(min)?,
                (Arg::None, max) => x.le(max)?,
                (min, max) => x.ge(min)?.logical_and(&x.le(max)?)?,
            };
            inside.where_cond(grad, 0)
        })
    }),
    samples,
)
.forms(Forms::InPlace)
.dtypes(Dtypes::NUMERIC)
.errors(errors)
.decomposed(derived::CLAMP)
.with(OpFlags::ZERO_PRESERVING_IF_IN_BOUNDS);
