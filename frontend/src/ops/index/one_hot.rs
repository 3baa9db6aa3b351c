//! `one_hot`
//!
//! Arguments:
//! - `num_classes`: the number of classes; -1 for the largest index plus 1.

use crate::DType;
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::index::geometry::{index as index_of, wrong_value};
use crate::ops::sample::{Fill, SampleArg, error, fixed, index, sample};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// One-hot encoding as i64: for each index a row of `num_classes` zeros with a 1 at the index. A `num_classes` of -1 is
    /// replaced by the largest index plus 1, for which the values are read.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let at = Tensor::new([1i64, 0])?;
    /// assert_eq!(at.one_hot(3)?.to_vec::<i64>()?, [0, 1, 0, 1, 0, 0]);
    /// assert_eq!(at.one_hot(-1)?.to_vec::<i64>()?, [0, 1, 1, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An index outside `0..num_classes`; another negative number.
    pub fn one_hot(&self, num_classes: impl Int) -> Result<Tensor> {
        called("one_hot", &["self", "num_classes"], || {
            let classes = match num_classes.to_i64() {
                -1 => self
                    .to_dtype(DType::I64)?
                    .to_vec::<i64>()?
                    .into_iter()
                    .max()
                    .map_or(0, |m| m.saturating_add(1)),
                given => given,
            };
            DEF.run(&[self.into(), Arg::Int(classes)])
        })
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = index_of(args, 0)?;
    let Ok(classes) = usize::try_from(args.int(1)?) else {
        return Err(wrong_value(args, 1, "0 or more".into()));
    };
    let mut sizes = Dims::from_slice(t.sizes());
    sizes.push(classes);
    let mut plan = Plan::one(DType::I64, sizes, DType::I64, Strides::Contiguous);
    plan.cast_index = 0b1;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let index = tensor(args, 0)?.unsqueeze(-1)?;
    let mut sizes = Dims::from_slice(index.shape());
    let last = sizes.len() - 1;
    sizes[last] = args.int(1)? as usize;
    let ones = Tensor::ones_with(index.shape(), (DType::I64, index.device()))?;
    Tensor::zeros_with(&sizes, (DType::I64, index.device()))?.scatter_add(-1, &index, &ones)
}

/// `one_hot`
pub static DEF: OpDef = OpDef::new(
    "one_hot(Tensor self, int num_classes) -> Tensor",
    Rule::Structured(rule),
    Derivative::NotDifferentiable,
    || {
        let call = |at: &[usize], n| sample([index(at, n), SampleArg::Int(n)]);
        vec![
            call(&[], 3),
            call(&[5], 4),
            call(&[2, 3], 5),
            call(&[2, 1, 3], 2),
            call(&[2, 1, 2, 2], 3),
            call(&[2, 1, 2, 1, 2], 4),
            call(&[0], 3),
        ]
    },
)
.dtypes(Dtypes::INT)
.errors(|| {
    let at = |v: f64| fixed(&[1], DType::I64, Fill::Values(vec![v]));
    vec![error([at(3.0), SampleArg::Int(3)], "index 3"), error([at(0.0), SampleArg::Int(-1)], "0 or more")]
})
.decomposed(|args| one(compose(args)));
