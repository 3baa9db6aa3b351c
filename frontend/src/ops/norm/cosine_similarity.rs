//! `cosine_similarity`
//!
//! Arguments:
//! - `eps`: the least product of the norms.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::{FIRST_TWO, binary_real, reduced_sizes};
use crate::ops::sample::{Fill, SampleArg, error, fixed, plain, sample, tensor as filled};
use crate::tensor::Int;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The cosine of the angle between the vectors along `dim` of both tensors, which broadcast and promote; 0 if a vector is
    /// 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1.0f32, 0.0])?, Tensor::new([-2.0f32, 0.0])?);
    /// assert_eq!(a.cosine_similarity(&b, 0)?.item::<f32>()?, -1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Operands that are not floats; a dimension out of range; shapes that do not broadcast.
    pub fn cosine_similarity(&self, other: &Tensor, dim: impl Int) -> Result<Tensor> {
        self.cosine_similarity_with(other, dim, 1e-8)
    }

    /// [`Tensor::cosine_similarity`] with norms clamped to at least `eps`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([0.0f32, 1.0])?, Tensor::new([0.0f32, 1.0])?);
    /// assert_eq!(a.cosine_similarity_with(&b, 0, 2.0)?.item::<f32>()?, 0.25);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::cosine_similarity`].
    pub fn cosine_similarity_with(&self, other: &Tensor, dim: impl Int, eps: f64) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into(), Arg::Int(dim.to_i64()), Arg::Float(eps)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let sizes = args.broadcast(FIRST_TWO)?;
    let dim = args.dim(2, sizes.len())?;
    args.float(3)?;
    let dtype = binary_real(args)?.compute;
    let sizes = reduced_sizes(&sizes, 1 << dim, false);
    let mut plan = Plan::one(dtype, sizes, dtype, Strides::Contiguous);
    plan.cast = FIRST_TWO;
    Ok(plan)
}

/// The dot product of the normalized vectors: normalizing first avoids intermediate overflow.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (dtype, dim, eps) = (args.promote(FIRST_TWO)?, args.int(2)?, args.float(3)?);
    let sizes = args.broadcast(FIRST_TWO)?;
    let unit = |i: usize| {
        let x = widened(&cast(tensor(args, i)?, dtype)?)?;
        let x = if x.shape() == &sizes[..] { x } else { x.expand(&sizes)? };
        x.div(&x.norm_keepdim(dim)?.clamp_min(eps)?)
    };
    cast(unit(0)?.mul(&unit(1)?)?.sum(dim)?, dtype)
}

/// `cosine_similarity`
pub static DEF: OpDef = OpDef::new(
    "cosine_similarity(Tensor self, Tensor other, int dim=1, float eps=1e-08) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || {
        let call = |a: &[usize], b: &[usize], dim| {
            let x = filled(a, Fill::Distinct(0.3, 2.0));
            sample([x, plain(b), SampleArg::Int(dim), SampleArg::Float(1e-8)])
        };
        vec![
            call(&[7], &[7], 0),
            call(&[3, 4], &[3, 4], 1),
            call(&[3, 4], &[4], -1),
            call(&[2, 1, 4], &[3, 4], 2),
            call(&[2, 3, 4], &[2, 3, 4], 1),
            call(&[2, 3, 2, 2], &[2, 3, 2, 2], 1),
            call(&[0, 3], &[1, 3], 1),
        ]
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let rest = |dim| [SampleArg::Int(dim), SampleArg::Float(1e-8)];
    let call = |a: &[usize], b: &[usize], dim, message| {
        error([plain(a), plain(b)].into_iter().chain(rest(dim)), message)
    };
    let ints = || fixed(&[2], crate::DType::I64, Fill::Index(3));
    vec![
        call(&[3], &[3], 1, "out of range"),
        call(&[2, 3], &[2], 1, "do not broadcast"),
        error([ints(), ints()].into_iter().chain(rest(0)), "a floating-point dtype"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
