//! `linspace`

use crate::error::{Result, called};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::sample::{Fill, SampleArg, error, fixed, plain, sample};
use crate::tensor::IntoOptions;
use crate::tensor::filled::new;
use crate::tensor::shape::sizes;
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// `steps` equally spaced values from `start` to `end`, inclusive. For an integer dtype the bounds are truncated towards
    /// zero first, and so is each value.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::linspace(0.0, 1.0, 5)?;
    /// assert_eq!(a.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A bool dtype; out of memory.
    pub fn linspace(start: f64, end: f64, steps: usize) -> Result<Tensor> {
        Tensor::linspace_with(start, end, steps, ())
    }

    /// [`Tensor::linspace`] with an optional dtype and device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// assert_eq!(Tensor::linspace_with(0.0, 1.0, 3, DType::F64)?.to_vec::<f64>()?, [0.0, 0.5, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::linspace`]; an unavailable device.
    pub fn linspace_with(start: f64, end: f64, steps: usize, options: impl IntoOptions) -> Result<Tensor> {
        called("linspace", &["start", "end", "steps", "options"], || {
            new("linspace", &sizes("linspace", steps)?, options.into_options()?)?.linspace_(start, end)
        })
    }

    /// 10 to the power of `steps` equally spaced values from `start` to `end`, computed in f64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::logspace(0.0, 2.0, 3)?.to_vec::<f32>()?, [1.0, 10.0, 100.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::linspace`].
    pub fn logspace(start: f64, end: f64, steps: usize) -> Result<Tensor> {
        Tensor::logspace_with(start, end, steps, 10.0, ())
    }

    /// `base` to the power of `steps` equally spaced values from `start` to `end`, computed in f64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let a = Tensor::logspace_with(0.0, 3.0, 4, 2.0, DType::F32)?;
    /// assert_eq!(a.to_vec::<f32>()?, [1.0, 2.0, 4.0, 8.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::linspace_with`].
    pub fn logspace_with(
        start: f64,
        end: f64,
        steps: usize,
        base: f64,
        options: impl IntoOptions,
    ) -> Result<Tensor> {
        called("logspace", &["start", "end", "steps", "base", "options"], || {
            let options = options.into_options()?;
            let exponents = Tensor::linspace_with(start, end, steps, (DType::F64, options.device()))?;
            exponents.rpow(base)?.to_dtype(options.dtype())
        })
    }

    /// Sets the elements, in row-major order, to equally spaced values from `start` to `end`, as [`Tensor::linspace`] does.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros(3)?;
    /// x.linspace_(0.0, 1.0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A bool tensor.
    pub fn linspace_(&self, start: f64, end: f64) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), Arg::Float(start), Arg::Float(end)])
    }
}

/// `linspace`
pub static DEF: OpDef = OpDef::new(
    "linspace(Tensor self, float start, float end) -> Tensor",
    Rule::Structured(super::arange::rule),
    Derivative::ZERO,
    || {
        let shapes: [&[usize]; 8] =
            [&[], &[7], &[2, 3], &[2, 2, 3], &[2, 1, 2, 2], &[2, 1, 2, 1, 2], &[0], &[1]];
        shapes.iter().map(|s| sample([plain(s), SampleArg::Float(-3.0), SampleArg::Float(9.0)])).collect()
    },
)
.forms(Forms::InPlace)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    let bools = fixed(&[2], DType::BOOL, Fill::Index(2));
    vec![error([bools, SampleArg::Float(0.0), SampleArg::Float(1.0)], "numbers")]
});
