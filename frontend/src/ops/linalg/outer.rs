//! `outer`
//!
//! Arguments:
//! - `vec2`: the second vector.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{FIRST_TWO, wrong_shape};
use crate::ops::sample::{Sample, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The outer product of two vectors, `[n]` by `[m]` to `[n, m]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(a.outer(&a)?.to_vec::<f32>()?, [1.0, 2.0, 2.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Tensors that are not vectors.
    #[doc(alias = "ger")]
    pub fn outer(&self, vec2: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), vec2.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let mut sizes = Dims::new();
    for i in 0..2 {
        let &[size] = args.tensor(i)?.sizes() else {
            return Err(wrong_shape(args, i, "a vector".into(), args.tensor(i)?.sizes()));
        };
        sizes.push(size);
    }
    let dtype = args.promote(FIRST_TWO)?;
    let mut plan = Plan::one(dtype, sizes, dtype, Strides::Contiguous);
    plan.cast = FIRST_TWO;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (left, right) = (tensor(args, 0)?.unsqueeze(1)?, tensor(args, 1)?);
    // Sparse vectors as a matrix product, which does not require expanding them to one shape.
    match left.as_ref().is_strided() && right.as_ref().is_strided() {
        true => left.mul(&right),
        false => left.mm(&right.unsqueeze(0)?),
    }
}

fn samples() -> Vec<Sample> {
    [(3, 4), (1, 1), (0, 2)].iter().map(|&(n, m)| sample([plain(&[n]), plain(&[m])])).collect()
}

/// `outer`
pub static DEF: OpDef = OpDef::new(
    "outer(Tensor self, Tensor vec2) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.dtypes(Dtypes::NUMERIC)
.errors(|| vec![error([plain(&[2, 3]), plain(&[3])], "a vector")])
.decomposed(|args| one(compose(args)));
