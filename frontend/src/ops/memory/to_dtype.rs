//! `to_dtype`

use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::rules::{conversion_key, require};
use crate::ops::sample::{Fill, SampleArg, unary_of};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// Casts the values to another dtype; returns this tensor if it already has that dtype. Floats are truncated towards zero
    /// to integers; to bool, every value but 0 is true. Casts to and from a plugin's dtype without a kernel run on the host,
    /// through f64 and with the plugin's rounding.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Tensor};
    /// let a = Tensor::new([1.9f32, -1.9])?.to_dtype(DType::I32)?;
    /// assert_eq!(a.to_vec::<i32>()?, [1, -1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A real dtype for a complex tensor, except bool; a dtype without a cast kernel.
    #[doc(alias = "byte")]
    #[doc(alias = "char")]
    #[doc(alias = "short")]
    #[doc(alias = "type")]
    #[doc(alias = "float")]
    #[doc(alias = "double")]
    #[doc(alias = "half")]
    #[doc(alias = "bfloat16")]
    #[doc(alias = "long")]
    #[doc(alias = "int")]
    #[doc(alias = "bool")]
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype { Ok(self.clone()) } else { DEF.run(&[self.into(), Arg::DType(dtype)]) }
    }
}

/// Refuses a cast of a complex argument that would discard its imaginary part.
pub(super) fn keeps_imaginary_part(args: &Args<'_>, i: usize, from: DType, to: DType) -> RuleResult<()> {
    let kept = !from.is_complex() || to.is_complex() || to == DType::BOOL;
    let expected = "a real dtype where the result is real, as a cast would discard the imaginary part; use `real()` or `abs()`";
    require(args, i, from, kept, expected)
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let dtype = args.optional_dtype(1)?.unwrap_or(t.dtype());
    keeps_imaginary_part(args, 0, t.dtype(), dtype)?;
    let mut plan =
        Plan::one(conversion_key(t.dtype(), dtype), Dims::from_slice(t.sizes()), dtype, Strides::Like(0));
    plan.broadcast = 0b1;
    Ok(plan)
}

/// `to_dtype`
pub static DEF: OpDef = OpDef::new(
    "to_dtype(Tensor self, dtype dtype) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| g.set(0, || Ok(b.grad(0)?.clone()))),
    || {
        let to = [DType::F64, DType::F32, DType::I64, DType::BOOL];
        let fill = Fill::Uniform(-2.0, 2.0);
        to.iter().flat_map(|d| unary_of(&fill, &[SampleArg::DType(*d)])).collect()
    },
)
.with(OpFlags::EXACT.and(OpFlags::CASTS))
.with(OpFlags::COMPLEX);
