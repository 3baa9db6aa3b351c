//! `floor_divide`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::sample::{Fill, PAIRS, Sample, SampleArg, plain, sample, tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Out, Outputs};

impl Tensor {
    /// `self / other`, rounded towards negative infinity; integers stay integers.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-7i64, 7])?.floor_divide(2)?.to_vec::<i64>()?, [-4, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An integer divided by zero; two bool operands; shapes that do not broadcast, dtypes without a
    /// common one, tensors on different devices.
    pub fn floor_divide<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into()])
    }

    /// [`Tensor::floor_divide`] in place.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([-7i64, 7])?;
    /// a.floor_divide_(2)?;
    /// assert_eq!(a.to_vec::<i64>()?, [-4, 3]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn floor_divide_<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), other.into()])
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    Ok(super::div::DEF.call(&[args.get(0), args.get(1), Arg::Str("floor")], Out::New)?)
}

fn samples() -> Vec<Sample> {
    let divisor = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![1.5, -2.0, 3.25, -1.0, 2.5]));
    let pairs = PAIRS.iter().map(move |(a, b)| vec![plain(a), divisor(b)]);
    let numbers = [vec![plain(&[3, 4]), SampleArg::Int(2)], vec![SampleArg::Int(2), divisor(&[3])]];
    pairs.chain(numbers).map(|args| Sample { smooth: false, ..sample(args) }).collect()
}

/// `floor_divide`
pub static DEF: OpDef = OpDef::new(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    super::modulus::RULE,
    Derivative::Composite,
    samples,
)
.forms(Forms::InPlace)
.dtypes(Dtypes::NUMERIC)
.decomposed(compose);
