//! `max_pool_values`

use super::max_pool::{self, errors, result_sizes, samples};
use crate::ops::composite::tensor;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::FIRST;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Outputs, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let dtype = args.tensor(0)?.dtype();
    Ok(Plan::one(dtype, result_sizes(args)?, dtype, Strides::Images(FIRST)))
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let x = tensor(args, 0)?;
    let options = (1..args.values.len()).map(|i| args.get(i));
    let (values, _) =
        max_pool::DEF.run_pair(&[(&x).into()].into_iter().chain(options).collect::<Vec<_>>())?;
    Ok(Outputs::from_iter([values.into_ref()]))
}

/// `max_pool_values`: only the values of `max_pool`. Its indices, of eight bytes each, take longer to write than the values,
/// and only a gradient needs them: with a graph it is implemented with `max_pool`.
pub static DEF: OpDef = OpDef::new(
    "max_pool_values(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, \
     bool ceil_mode) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.dtypes(Dtypes::NUMERIC)
.errors(errors)
.decomposed(compose)
.with(OpFlags::EXACT);
