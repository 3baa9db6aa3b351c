//! `fill`
//!
//! Arguments:
//! - `value`: the value of every element.

use crate::error::{Result, called};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::rules;
use crate::ops::sample::{Fill, SampleArg, error, fixed, plain, sample, unary_of};
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// Sets every element to `value`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1i32, 2])?;
    /// a.fill_(7)?;
    /// assert_eq!(a.to_vec::<i32>()?, [7, 7]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Memory that overlaps itself.
    pub fn fill_<'a>(&'a self, value: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), value.into()])
    }

    /// Sets every element to 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, 2.0])?;
    /// x.zero_()?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::fill_`].
    pub fn zero_(&self) -> Result<Tensor> {
        called("zero", &["self"], || self.fill_(0))
    }

    /// Zeros with this tensor's sizes, dtype, device and memory format. For a composite tensor such as a sparse one, the result
    /// shares its indices and has values of 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2])?.zeros_like()?.to_vec::<i64>()?, [0, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Out of memory.
    pub fn zeros_like(&self) -> Result<Tensor> {
        called("zeros_like", &["self"], || {
            if self.as_ref().is_strided() {
                return self.uninit_like(())?.zero_();
            }
            self.detach().map_stored(|part| part.zeros_like())
        })
    }
}

/// `fill`: sets every element of `self` to `value`, in place.
pub static DEF: OpDef = OpDef::new(
    "fill(Tensor self, Scalar value) -> Tensor",
    Rule::Elementwise(rules::FIRST, |args| {
        let typing = rules::unary(args)?;
        rules::holds(args, 1, typing.result)?;
        Ok(typing)
    }),
    Derivative::ZERO,
    || {
        let zeros = sample([plain(&[3, 4]), SampleArg::Int(0)]);
        [unary_of(&Fill::Uniform(-2.0, 2.0), &[SampleArg::Int(1)]), vec![zeros]].concat()
    },
)
.forms(Forms::InPlace)
.errors(|| {
    let bytes = || fixed(&[2], DType::I8, Fill::Index(2));
    let wrong = [SampleArg::Int(300), SampleArg::Float(f64::INFINITY), SampleArg::Float(f64::NAN)];
    wrong.map(|value| error([bytes(), value], "a number that i8 holds, from -128 to 127")).into()
})
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
