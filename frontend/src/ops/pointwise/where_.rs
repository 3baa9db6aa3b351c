//! `where`
//!
//! Arguments:
//! - `condition`: a bool tensor: true selects the element of `self`, false that of `other`.

use crate::error::{Result, called_as};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::rules;
use crate::ops::sample::{ErrorSample, Fill, PAIRS, Sample, SampleArg, error, fixed, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// `a` where this bool tensor is true, `b` elsewhere; all three broadcast, `a` and `b` promoted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([-1.0f32, 2.0])?;
    /// assert_eq!(x.gt(0.0)?.where_cond(&x, 0.0)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A condition that is not bool; shapes that do not broadcast, dtypes without a common one, tensors
    /// on different devices.
    pub fn where_cond<'a>(&'a self, a: impl Into<Arg<'a>>, b: impl Into<Arg<'a>>) -> Result<Tensor> {
        called_as("where_cond", PARAMS, NAMES, || DEF.run(&[self.into(), a.into(), b.into()]))
    }

    /// `out = where_cond(self, a, b)`: [`Tensor::where_cond`] written to `out`. An `out` without elements is replaced.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([-1.0f32, 2.0])?;
    /// let mut out = x.empty_like()?;
    /// x.gt(0.0)?.where_cond_out(&x, 0.0, &mut out)?;
    /// assert_eq!(out.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of the functional form; a result of another shape than `out`, or of a dtype that `out` cannot hold.
    pub fn where_cond_out<'a>(
        &'a self,
        a: impl Into<Arg<'a>>,
        b: impl Into<Arg<'a>>,
        out: &mut Tensor,
    ) -> Result<()> {
        called_as("where_cond", PARAMS, NAMES, || DEF.run_out(&[self.into(), a.into(), b.into()], out))
    }
}

/// The parameter names of the method.
const PARAMS: &[&str] = &["condition", "a", "b", "out"];
/// The op's names of two of the parameters.
const NAMES: &[(&str, &str)] = &[("self", "a"), ("other", "b")];

/// The arguments that hold the two values.
const VALUES: u32 = 0b110;

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let condition = args.tensor(0)?.dtype();
    rules::require(args, 0, condition, condition == DType::BOOL, "bool")?;
    let dtype = args.promote(VALUES)?;
    rules::holds(args, 1, dtype)?;
    rules::holds(args, 2, dtype)?;
    let mut plan = Plan::one(dtype, args.broadcast(rules::FIRST_THREE)?, dtype, Strides::Preserve);
    plan.cast = VALUES;
    plan.broadcast = rules::FIRST_THREE;
    plan.alias = true;
    Ok(plan)
}

fn condition(sizes: &[usize]) -> SampleArg {
    fixed(sizes, DType::BOOL, Fill::Values(vec![1.0, 0.0, 0.0, 1.0, 1.0]))
}

fn samples() -> Vec<Sample> {
    let pairs = PAIRS.iter().map(|(a, b)| sample([condition(a), plain(a), plain(b)]));
    let more = [
        sample([condition(&[4]), plain(&[]), plain(&[3, 1])]),
        sample([condition(&[3, 4]), plain(&[3, 4]), SampleArg::Int(0)]),
        sample([condition(&[3, 4]), SampleArg::Int(0), plain(&[4])]),
        sample([condition(&[2, 3, 2, 5]), plain(&[2, 3, 2, 5]), plain(&[2, 3, 2, 5])]),
    ];
    pairs.chain(more).collect()
}

fn errors() -> Vec<ErrorSample> {
    let ints = fixed(&[2], DType::I64, Fill::Index(2));
    vec![
        error([ints, plain(&[2]), plain(&[2])], "must be bool"),
        error(
            [condition(&[2]), fixed(&[2], DType::I8, Fill::Index(2)), SampleArg::Int(300)],
            "a number that i8 holds",
        ),
        error([condition(&[2]), plain(&[3]), plain(&[3])], "do not broadcast"),
    ]
}

/// `where`: the elements of `self` where `condition` is true, those of `other` elsewhere; all three broadcast.
pub static DEF: OpDef = OpDef::new(
    "where(Tensor condition, Tensor self, Tensor other) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b1, |b, g| {
        g.set(1, || b.input(0)?.where_cond(b.grad(0)?, 0))?;
        g.set(2, || b.input(0)?.where_cond(0, b.grad(0)?))
    }),
    samples,
)
.forms(Forms::Out)
.errors(errors)
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
