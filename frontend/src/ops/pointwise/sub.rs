//! `sub`

use super::add::in_place;
use super::derived;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{
    ErrorSample, Fill, PAIRS, Sample, SampleArg, broadcast_errors, error, fixed, plain, sample,
};
use crate::ops::{forms, rules};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Typing};

forms! {
    /// `self - other`, broadcast and promoted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(a.sub(10.0)?.to_vec::<f32>()?, [-9.0, -8.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Two bool operands; shapes that do not broadcast, dtypes without a common one, tensors on
    /// different devices.
    #[doc(alias = "broadcast_sub")]
    #[doc(alias = "subtract")]
    pub fn sub<'a>(&'a self, other: impl Into<Arg<'a>>), defaults: [Arg::Int(1)], out: sub_out;

    /// `self - alpha * other`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(a.sub_with(&a, 10)?.to_vec::<f32>()?, [-9.0, -18.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::sub`](Self::sub); a fractional `alpha` for integer operands.
    pub fn sub_with<'a>(&'a self, other: impl Into<Arg<'a>>, alpha: impl Into<Arg<'a>>);
}

impl Tensor {
    /// `self = sub(self, other)`: [`Tensor::sub`] in place. Returns `self`. A sparse `other` is subtracted at the
    /// coordinates that it stores; nothing else is read or written.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// a.sub_(10.0)?;
    /// assert_eq!(a.to_vec::<f32>()?, [-9.0, -8.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of the functional form; a result of a shape or dtype that `self` cannot hold.
    pub fn sub_<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        in_place(&DEF, self, other.into(), Arg::Int(1), -1)
    }

    /// `self = sub_with(self, other, alpha)`: [`Tensor::sub_with`] in place. Returns `self`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// a.sub_with_(&Tensor::new([1.0f32, 1.0])?, 10)?;
    /// assert_eq!(a.to_vec::<f32>()?, [-9.0, -8.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::sub_`].
    pub fn sub_with_<'a>(&'a self, other: impl Into<Arg<'a>>, alpha: impl Into<Arg<'a>>) -> Result<Tensor> {
        in_place(&DEF, self, other.into(), alpha.into(), -1)
    }

    /// `other - self`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(a.rsub(10.0)?.to_vec::<f32>()?, [9.0, 8.0]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn rsub<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        called("rsub", &[], || DEF.run(&[other.into(), self.into(), Arg::Int(1)]))
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let typing = rules::binary_scaled(args)?;
    let numbers = "numbers: a bool difference is `bitwise_xor`, a complement `logical_not`";
    rules::require(args, 0, typing.compute, typing.compute != DType::BOOL, numbers)?;
    Ok(typing)
}

fn samples() -> Vec<Sample> {
    let pairs = PAIRS.iter().map(|(a, b)| sample([plain(a), plain(b), SampleArg::Int(1)]));
    let more = [
        sample([plain(&[3, 4]), plain(&[4]), SampleArg::Int(3)]),
        sample([plain(&[3, 4]), SampleArg::Int(2), SampleArg::Int(1)]),
        sample([SampleArg::Int(2), plain(&[2, 3]), SampleArg::Int(1)]),
    ];
    pairs.chain(more).collect()
}

fn errors() -> Vec<ErrorSample> {
    let bools = || fixed(&[2], DType::BOOL, Fill::Index(2));
    let ints = || fixed(&[2], DType::I32, Fill::Index(5));
    let mut errors = broadcast_errors(&[SampleArg::Int(1)]);
    errors.push(error([bools(), bools(), SampleArg::Int(1)], "bitwise_xor"));
    errors.push(error([ints(), ints(), SampleArg::Float(0.5)], "an integer"));
    errors
}

/// `sub`
pub static DEF: OpDef = OpDef::binary(
    "sub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    rule,
    Derivative::of_grad(|b, g| {
        g.set(0, || Ok(b.grad(0)?.clone()))?;
        g.set(1, || match b.arg(2) {
            Arg::Int(alpha) if alpha > i64::MIN => b.grad(0)?.mul(-alpha),
            _ => b.grad(0)?.mul(-b.float(2)?),
        })
    }),
)
.dtypes(Dtypes::NUMERIC)
.samples(samples)
.errors(errors)
.with(OpFlags::SIGNED_ZEROS)
.decomposed(derived::SUB)
.with(OpFlags::COMPLEX);
