//! `gather`

use crate::error::Result;
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::index::geometry::{along, kept, zeros};
use crate::ops::sample::{Fill, SampleArg, error, fixed, index, plain, sample};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Gathers the elements at `index` along `dim`: for two dimensions and `dim` 0, `out[i][j] = self[index[i][j]][j]`. The
    /// result has the shape of the index.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4], (2, 2))?;
    /// let at = Tensor::from_vec(vec![1i64, 0], (2, 1))?;
    /// assert_eq!(a.gather(1, &at)?.to_vec::<i32>()?, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An index tensor that is larger than this one in another dimension; an index outside `0..size`.
    pub fn gather(&self, dim: impl Int, index: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64()), index.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    along(args)?;
    let (t, index) = (args.tensor(0)?, args.tensor(2)?);
    let mut plan = Plan::one(t.dtype(), Dims::from_slice(index.sizes()), t.dtype(), kept(t, index.sizes()));
    plan.cast_index = 0b100;
    Ok(plan)
}

/// `gather`
pub static DEF: OpDef = OpDef::new(
    "gather(Tensor self, int dim, Tensor index) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b100, |b, g| {
        g.set(0, || zeros(b.grad(0)?, b.sizes(0))?.scatter_add(b.int(1)?, &b.input(2)?, b.grad(0)?))
    }),
    || {
        let call =
            |sizes: &[usize], dim, at: &[usize], n| sample([plain(sizes), SampleArg::Int(dim), index(at, n)]);
        vec![
            call(&[], 0, &[], 1),
            call(&[5], 0, &[3], 5),
            call(&[3, 4], 0, &[5, 2], 3),
            call(&[3, 4], -1, &[3, 6], 4),
            call(&[2, 3, 4], 1, &[2, 5, 4], 3),
            call(&[2, 3, 2, 2], 3, &[2, 3, 1, 3], 2),
            call(&[2, 1, 2, 3, 2], -2, &[2, 1, 1, 4, 2], 3),
            call(&[3, 4], 0, &[0, 4], 3),
        ]
    },
)
.forms(Forms::Out)
.errors(|| {
    vec![
        error([plain(&[3]), SampleArg::Int(0), fixed(&[1], DType::I64, Fill::Values(vec![3.0]))], "index 3"),
        error([plain(&[3]), SampleArg::Int(0), fixed(&[1], DType::I64, Fill::Values(vec![-1.0]))], "0..3"),
        error([plain(&[3, 2]), SampleArg::Int(0), index(&[3], 3)], "of 2 dimensions"),
        error([plain(&[3, 2]), SampleArg::Int(0), index(&[3, 4], 3)], "no larger than"),
        error([plain(&[3]), SampleArg::Int(0), fixed(&[1], DType::F32, Fill::Index(3))], "of integers"),
    ]
})
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
