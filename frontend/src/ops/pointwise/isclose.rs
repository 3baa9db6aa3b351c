//! `isclose`
//!
//! Arguments:
//! - `equal_nan`: whether two NaN are close.

use super::{eq, pair};
use crate::error::{Result, called};
use crate::ops::composite::{cast, one, tensor};
use crate::ops::def::{Derivative, OpDef};
use crate::ops::rules;
use crate::ops::sample::{
    ErrorSample, Fill, PAIRS, Sample, SampleArg, error, plain, sample, tensor as filled,
};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Rule, Typing};

/// The usual tolerances, relative and absolute.
const CUSTOM: (f64, f64) = (1e-5, 1e-8);

impl Tensor {
    /// Whether each element is close to that of `other`: equal, or `|self - other| <= 1e-8 + 1e-5 * |other|`, broadcast and
    /// promoted. For integers the difference is exact and the bound is computed in f64. An infinity is close only to itself,
    /// and NaN to nothing.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(a.isclose(&Tensor::new([1.000_001f32, 2.1])?)?.to_vec::<bool>()?, [true, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    pub fn isclose<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        self.isclose_with(other, CUSTOM.0, CUSTOM.1, false)
    }

    /// [`Tensor::isclose`] with the bound `atol + rtol * |other|`; with `equal_nan`, NaN is close to NaN.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1.0f32, f32::NAN])?, Tensor::new([1.25f32, f32::NAN])?);
    /// assert_eq!(a.isclose_with(&b, 0.0, 0.5, true)?.to_vec::<bool>()?, [true, true]);
    /// assert_eq!(a.isclose_with(&b, 0.0, 0.125, false)?.to_vec::<bool>()?, [false, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::isclose`]; a tolerance that is negative or NaN.
    pub fn isclose_with<'a>(
        &'a self,
        other: impl Into<Arg<'a>>,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into(), Arg::Float(rtol), Arg::Float(atol), Arg::Bool(equal_nan)])
    }

    /// Whether [`Tensor::isclose`] holds for all elements; true if there are none. Waits for the device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// assert!(a.allclose(&a.mul(1.000_001)?)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::isclose`].
    pub fn allclose<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<bool> {
        called("allclose", &["self", "other"], || self.isclose(other)?.all(..)?.item::<bool>())
    }

    /// Whether [`Tensor::isclose_with`] holds for all elements; true if there are none. Waits for the device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1.0f32, 8.0])?, Tensor::new([1.0f32, 9.0])?);
    /// assert!(a.allclose_with(&b, 0.0, 1.0, false)?);
    /// assert!(!a.allclose_with(&b, 0.0, 0.5, false)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::isclose_with`].
    pub fn allclose_with<'a>(
        &'a self,
        other: impl Into<Arg<'a>>,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> Result<bool> {
        called("allclose", &["self", "other", "rtol", "atol", "equal_nan"], || {
            self.isclose_with(other, rtol, atol, equal_nan)?.all(..)?.item::<bool>()
        })
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    for i in [2, 3] {
        let tolerance = args.float(i)?;
        if tolerance.is_nan() || tolerance < 0.0 {
            return Err(rules::wrong_value(args, i, "0 or more".to_string()));
        }
    }
    rules::comparison(args)
}

/// The absolute differences of floats, and their bounds.
fn of_floats(args: &Args<'_>) -> Result<(Tensor, Tensor)> {
    let (x, y, _) = pair::real(args)?;
    Ok((x.sub(&y)?.abs()?, y.abs()?.mul(args.float(2)?)?.add(args.float(3)?)?))
}

/// The magnitude from which the difference of two i64 values may overflow.
const FAR: f64 = (1u64 << 62) as f64;

/// The absolute differences of integers or bools, exact before one rounding to f64, and their bounds.
fn of_integers(args: &Args<'_>, dtype: DType) -> Result<(Tensor, Tensor)> {
    let device = args.tensor(usize::from(!matches!(args.get(0), Arg::Tensor(_))))?.device();
    let operand = |i: usize, dtype: DType| match args.get(i) {
        Arg::Tensor(t) => cast(Tensor::from_ref(t.clone()), dtype),
        number => Tensor::full_with((), number, (dtype, device)),
    };
    let (x, y) = (operand(0, DType::F64)?, operand(1, DType::F64)?);
    let (rough, bound) = (x.sub(&y)?.abs()?, y.abs()?.mul(args.float(2)?)?.add(args.float(3)?)?);
    let exact = if dtype == DType::U64 { dtype } else { DType::I64 };
    if !(rules::is_held(args.get(0), exact) && rules::is_held(args.get(1), exact)) {
        return Ok((rough, bound));
    }
    let (x, y) = (operand(0, exact)?, operand(1, exact)?);
    let apart = x.maximum(&y)?.sub(&x.minimum(&y)?)?.to_dtype(DType::F64)?;
    let is_far = rough.ge(FAR)?;
    let distance = if exact == DType::U64 { apart } else { is_far.where_cond(&rough, &apart)? };
    Ok((distance, bound))
}

/// Equal elements first, since the difference of infinities is NaN.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let near = eq::DEF.run(&[args.get(0), args.get(1)])?;
    let dtype = args.promote(rules::FIRST_TWO)?;
    let (distance, bound) = if dtype.is_inexact() { of_floats(args)? } else { of_integers(args, dtype)? };
    let near = near.logical_or(&distance.isfinite()?.logical_and(&distance.le(&bound)?)?)?;
    if !args.bool(4)? {
        return Ok(near);
    }
    let mut both: Option<Tensor> = None;
    for i in 0..2 {
        let nan = match args.get(i) {
            Arg::Tensor(_) => tensor(args, i)?.isnan()?,
            Arg::Float(v) if v.is_nan() => continue,
            _ => return Ok(near),
        };
        both = Some(both.map_or_else(|| Ok(nan.clone()), |other| other.logical_and(&nan))?);
    }
    both.map_or_else(|| Ok(near.clone()), |both| near.logical_or(&both))
}

fn samples() -> Vec<Sample> {
    let rest = |nan| [SampleArg::Float(0.125), SampleArg::Float(0.25), SampleArg::Bool(nan)];
    let left = |sizes: &[usize]| filled(sizes, Fill::Values(vec![1.0, -2.0, 0.5, 3.0, -1.5, 2.0, -3.0]));
    let right = |sizes: &[usize]| filled(sizes, Fill::Values(vec![1.1, -2.25, 0.0, 4.0, -1.5]));
    let with = |a: SampleArg, b: SampleArg, nan| sample([a, b].into_iter().chain(rest(nan)));
    let custom = [SampleArg::Float(CUSTOM.0), SampleArg::Float(CUSTOM.1), SampleArg::Bool(false)];
    PAIRS
        .iter()
        .map(|(a, b)| with(left(a), right(b), false))
        .chain([
            with(left(&[3, 4]), right(&[4]), true),
            with(left(&[3, 4]), SampleArg::Float(1.0), false),
            with(left(&[3, 4]), SampleArg::Int(1), false),
            sample([left(&[7]), left(&[7])].into_iter().chain(custom)),
        ])
        .collect()
}

fn errors() -> Vec<ErrorSample> {
    let call = |b: &[usize], rtol, atol, message| {
        let rest = [SampleArg::Float(rtol), SampleArg::Float(atol), SampleArg::Bool(false)];
        error([plain(&[3]), plain(b)].into_iter().chain(rest), message)
    };
    vec![
        call(&[4], 0.0, 0.0, "do not broadcast"),
        call(&[3], -1.0, 0.0, "0 or more"),
        call(&[3], 0.0, f64::NAN, "0 or more"),
    ]
}

/// `isclose`
pub static DEF: OpDef = OpDef::new(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, \
     bool equal_nan=False) -> Tensor",
    Rule::Elementwise(rules::FIRST_TWO, rule),
    Derivative::NotDifferentiable,
    samples,
)
.errors(errors)
.decomposed(|args| one(compose(args)));
