//! `cross`

use crate::error::Result;
use crate::ops::composite::{cast, in_format_of, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{FIRST_TWO, kept, require, wrong_shape};
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// The cross product along the last dimension, which has 3 elements; the others broadcast, the dtypes promote.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, y) = (Tensor::new([1, 0, 0])?, Tensor::new([0, 1, 0])?);
    /// assert_eq!(x.cross(&y)?.to_vec::<i32>()?, [0, 0, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Bool; tensors of different ranks, or whose last dimension is not of size 3; shapes that do not broadcast.
    pub fn cross(&self, other: &Tensor) -> Result<Tensor> {
        self.cross_with(other, -1)
    }

    /// [`Tensor::cross`] along dimension `dim`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, y) = (Tensor::new([[1], [0], [0]])?, Tensor::new([[0], [1], [0]])?);
    /// assert_eq!(x.cross_with(&y, 0)?.to_vec::<i32>()?, [0, 0, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a dimension out of range.
    pub fn cross_with(&self, other: &Tensor, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into(), Arg::Int(dim.to_i64())])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (a, b) = (args.tensor(0)?, args.tensor(1)?);
    if a.ndim() != b.ndim() {
        return Err(wrong_shape(args, 1, format!("of {} dimensions, as the first", a.ndim()), b.sizes()));
    }
    let dim = args.dim(2, a.ndim())?;
    for (i, t) in [a, b].into_iter().enumerate() {
        if t.sizes().get(dim) != Some(&3) {
            return Err(wrong_shape(args, i, format!("of 3 elements along dimension {dim}"), t.sizes()));
        }
    }
    let dtype = args.promote(FIRST_TWO)?;
    require(args, 0, dtype, dtype != DType::BOOL, "a number dtype")?;
    let sizes = args.broadcast(FIRST_TWO)?;
    let strides = kept(a, &sizes);
    let mut plan = Plan::one(dtype, sizes, dtype, strides);
    plan.cast = FIRST_TWO;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (dtype, dim) = (args.promote(FIRST_TWO)?, args.int(2)?);
    let operand = |i: usize| widened(&cast(tensor(args, i)?, dtype)?);
    let (a, b) = (operand(0)?, operand(1)?);
    let at = |t: &Tensor, i: i64| t.select(dim, i);
    let entry = |i: i64| -> Result<Tensor> {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        at(&a, j)?.mul(&at(&b, k)?)?.sub(&at(&a, k)?.mul(&at(&b, j)?)?)
    };
    let made = Tensor::stack(&[&entry(0)?, &entry(1)?, &entry(2)?], dim)?;
    in_format_of(&tensor(args, 0)?, cast(made, dtype)?)
}

/// `cross`
pub static DEF: OpDef = OpDef::new(
    "cross(Tensor self, Tensor other, int dim=-1) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || {
        let call = |a: &[usize], b: &[usize], dim| sample([plain(a), plain(b), SampleArg::Int(dim)]);
        vec![
            call(&[3], &[3], 0),
            call(&[4, 3], &[4, 3], -1),
            call(&[3, 2], &[3, 1], 0),
            call(&[2, 3, 4], &[1, 3, 4], 1),
            call(&[2, 3, 2, 2], &[2, 3, 1, 2], -3),
            call(&[0, 3], &[1, 3], 1),
        ]
    },
)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    let call =
        |a: &[usize], b: &[usize], dim, message| error([plain(a), plain(b), SampleArg::Int(dim)], message);
    vec![
        call(&[2], &[2], 0, "of 3 elements along dimension 0"),
        call(&[2, 3], &[3], -1, "of 2 dimensions"),
        call(&[2, 3], &[4, 3], -1, "do not broadcast"),
        call(&[3], &[3], 1, "out of range"),
    ]
})
.decomposed(|args| one(compose(args)));
