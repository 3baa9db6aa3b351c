//! `div`
//!
//! Arguments:
//! - `rounding_mode`: None, `trunc` towards zero, or `floor`.

pub use crate::tensor::Rounding;

use crate::error::{Result, called};
use crate::ops::composite::in_range;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{
    ErrorSample, Fill, PAIRS, Sample, SampleArg, broadcast_errors, error, fixed, plain, sample, tensor,
};
use crate::ops::{forms, rules};
use crate::{DType, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Typing};

forms! {
    /// `self / other`, broadcast and promoted. Integers and bool become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1i64, 3])?;
    /// assert_eq!(a.div(2)?.to_vec::<f32>()?, [0.5, 1.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// A sparse tensor divided by a number or a strided tensor retains its indices: elements that are not stored give 0, even
    /// divided by 0. A stored 0 divided by 0 is NaN.
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    #[doc(alias = "broadcast_div")]
    #[doc(alias = "divide")]
    #[doc(alias = "true_divide")]
    pub fn div<'a>(&'a self, other: impl Into<Arg<'a>>), defaults: [Arg::None], in_place: div_, out: div_out;

    /// `self / other`, rounded to an integer; integers stay integers.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, tensor::Rounding};
    /// let a = Tensor::new([-7i64, 7])?;
    /// assert_eq!(a.div_with(2, Rounding::Trunc)?.to_vec::<i64>()?, [-3, 3]);
    /// assert_eq!(a.div_with(2, Rounding::Floor)?.to_vec::<i64>()?, [-4, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::div`]; an integer divided by zero; two bool operands.
    pub fn div_with<'a>(&'a self, other: impl Into<Arg<'a>>, mode: Rounding), in_place: div_with_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::{Tensor, tensor::Rounding};
        /// let a = Tensor::new([-7i64, 7])?;
        /// a.div_with_(2, Rounding::Floor)?;
        /// assert_eq!(a.to_vec::<i64>()?, [-4, 3]);
        /// # Ok(()) }
        /// ```
    };
}

impl Tensor {
    /// `other / self`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([2.0f32, 4.0])?;
    /// assert_eq!(a.rdiv(1.0)?.to_vec::<f32>()?, [0.5, 0.25]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn rdiv<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        called("rdiv", &[], || DEF.run(&[other.into(), self.into(), Arg::None]))
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    match args.get(2) {
        Arg::None => rules::binary_float(args),
        Arg::Str("trunc" | "floor") => {
            let typing = rules::binary_held(args)?;
            let real = typing.compute != DType::BOOL && !typing.compute.is_complex();
            rules::require(args, 0, typing.compute, real, "real numbers, which can be rounded")?;
            Ok(typing)
        }
        other => Err(Error::Value {
            op: args.name(),
            argument: "rounding_mode",
            expected: "`trunc`, `floor` or nothing".to_string(),
            got: other.describe(),
        }),
    }
}

fn samples() -> Vec<Sample> {
    let divisor = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![1.5, -2.0, 3.25, -1.0, 2.5]));
    let pairs = PAIRS.iter().map(move |(a, b)| sample([plain(a), divisor(b), SampleArg::None]));
    let rounded = ["trunc", "floor"].map(|mode| Sample {
        smooth: false,
        ..sample([plain(&[3, 4]), divisor(&[4]), SampleArg::Str(mode)])
    });
    let numbers = [
        sample([plain(&[3, 4]), SampleArg::Int(2), SampleArg::None]),
        sample([SampleArg::Int(2), divisor(&[2, 3]), SampleArg::None]),
    ];
    pairs.chain(rounded).chain(numbers).collect()
}

fn errors() -> Vec<ErrorSample> {
    let ints = |fill| fixed(&[2], DType::I32, fill);
    let mut errors = broadcast_errors(&[SampleArg::None]);
    errors.push(error([plain(&[2]), plain(&[2]), SampleArg::Str("up")], "`trunc`, `floor`"));
    let zeros = Fill::Values(vec![0.0]);
    errors.push(error([ints(Fill::Index(5)), ints(zeros), SampleArg::Str("floor")], "divided by zero"));
    errors
}

/// `div`
pub static DEF: OpDef = OpDef::binary(
    "div(Tensor self, Tensor other, *, str? rounding_mode=None) -> Tensor",
    rule,
    Derivative::of_inputs(0b11, |b, g| {
        if b.is_some(2) {
            g.set(0, || b.grad(0)?.zeros_like())?;
            return g.set(1, || b.grad(0)?.zeros_like());
        }
        g.set(0, || b.grad(0)?.div(b.saved(1)?.arg()))?;
        g.set(1, || {
            let other = b.input(1)?;
            // Multiplied between the divisions, since the product of the quotients may exceed the range of the gradient.
            let quotient = DEF.run(&[b.saved(0)?.arg(), (&other).into(), Arg::None])?;
            in_range(b.grad(0)?)?.mul(&quotient)?.div(&other)?.neg()
        })
    }),
)
.samples(samples)
.errors(errors)
.with(OpFlags::HOLOMORPHIC);
