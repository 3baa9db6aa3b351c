//! `mse_loss`

use super::Reduction;
use super::{one, reduce_narrowed, wide_pair};
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::plain;
use keyway_dispatcher::op::{Args, Rule};

impl Tensor {
    /// The mean squared difference from `target`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, 3.0])?;
    /// let t = Tensor::new([1.0f32, 1.0])?;
    /// assert_eq!(x.mse_loss(&t)?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input that is not a float; incompatible shapes.
    pub fn mse_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.mse_loss_with(target, Reduction::Mean)
    }

    /// [`Tensor::mse_loss`] with a reduction.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (x, target) = (Tensor::new([1.0f32, 2.0])?, Tensor::new([3.0f32, 1.0])?);
    /// assert_eq!(x.mse_loss_with(&target, Reduction::Sum)?.item::<f32>()?, 5.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn mse_loss_with(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        DEF.run(&[self.into(), target.into(), reduction.into()])
    }
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, target) = wide_pair(args)?;
    reduce_narrowed(args, 2, x.sub(&target)?.square()?, 0b11)
}

/// `mse_loss`
pub static DEF: OpDef = OpDef::new(
    "mse_loss(Tensor self, Tensor target, str reduction='mean') -> Tensor",
    Rule::Structured(|args| super::rule(args, 2, 0b11)),
    Derivative::Composite,
    || super::samples(vec![], |sizes| [plain(sizes), plain(sizes)], &[]),
)
.dtypes(Dtypes::FLOAT)
.errors(|| super::errors(&[]))
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
