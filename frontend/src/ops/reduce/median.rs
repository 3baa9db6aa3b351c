//! `median`

use super::extremum;
use crate::error::Result;
use crate::ops::composite::{decomposed, in_format_of, tensor};
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::rules::{keeping, kept, not_empty, reduced_dim, reduced_sizes, unary_number};
use crate::ops::sample::{Fill, Sample, SampleArg, error, fixed, plain, sample, tensor as filled};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Outputs, Part, Plan, Rule};

impl Tensor {
    /// The middle one of all elements in order, the lower of two; NaN if there is one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[3.0f32, 1.0, 2.0, 9.0])?.median()?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Bool; no elements.
    pub fn median(&self) -> Result<Tensor> {
        Ok(self.reshape(&[-1])?.median_dim(0, false)?.0)
    }

    /// The medians along `dim`, which stays as size 1 if `keepdim`, and the place of one element that each equals, which gets
    /// its gradient.
    ///
    /// # Errors
    /// Bool; a dimension out of range or of size 0.
    pub fn median_dim(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        DEF.run_two(&[self.into(), Arg::Int(dim), Arg::Bool(keepdim)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    unary_number(args)?;
    let t = args.tensor(0)?;
    let mask = reduced_dim(args, 1, t.ndim())?;
    not_empty(args, t.sizes(), mask)?;
    let sizes = reduced_sizes(t.sizes(), mask, args.bool(2)?);
    let strides = kept(t, &sizes);
    Ok(keeping(t, t.dtype(), sizes.clone(), t.dtype()).and(sizes, DType::I64, strides))
}

/// The middle of the sorted elements, or the last one where that is NaN: NaN is sorted behind all numbers.
fn compose(args: &Args<'_>) -> Result<Outputs> {
    let (t, dim, keepdim) = (tensor(args, 0)?, args.int(1)?, args.bool(2)?);
    let (sorted, places) = t.sort(dim, false, true)?;
    if t.ndim() == 0 {
        return Ok(Outputs::from_iter([sorted.into_ref(), places.into_ref()]));
    }
    let n = t.size(dim)?;
    let at = |x: &Tensor, i: usize| x.narrow(dim, i as i64, usize::from(n > 0));
    let (middle, last) = (n.saturating_sub(1) / 2, n.saturating_sub(1));
    let nan = if t.dtype().is_float() { Some(at(&sorted, last)?.isnan()?) } else { None };
    let choose = |x: &Tensor| -> Result<_> {
        let chosen = match &nan {
            Some(nan) => nan.select_where(&at(x, last)?, &at(x, middle)?)?,
            None => at(x, middle)?.copied()?,
        };
        let sizes = reduced_sizes(t.sizes(), reduced_dim(args, 1, t.ndim())?, keepdim);
        Ok(in_format_of(&t, chosen.reshape_as_sizes(&sizes)?)?.into_ref())
    };
    Ok(Outputs::from_iter([choose(&sorted)?, choose(&places)?]))
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dim, keep| {
        let values = filled(sizes, Fill::Distinct(-20.0, 20.0));
        sample([values, SampleArg::Int(dim), SampleArg::Bool(keep)])
    };
    let ties = filled(&[2, 5], Fill::Values(vec![1.0, 2.0, 2.0, -1.0, 2.0, f64::NAN, 3.0]));
    let ties = sample([ties, SampleArg::Int(1), SampleArg::Bool(false)]);
    vec![
        call(&[], 0, false),
        call(&[7], -1, true),
        call(&[3, 4], 0, false),
        call(&[3, 4], 1, false),
        call(&[2, 3, 4], 1, true),
        call(&[2, 3, 2, 2], -2, false),
        call(&[2, 3, 2, 2], 1, true),
        call(&[2, 1, 2, 3, 2], 3, false),
        call(&[0, 3], 1, false),
        Sample { smooth: false, ..ties },
    ]
}

/// `median`
pub static DEF: OpDef = OpDef {
    schema: "median(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
    rule: Rule::Structured(rule),
    decomposition: decomposed(
        |args| Ok(compose(args)?),
        &[
            Part::new("sort"),
            Part::new("isnan"),
            Part::new("where"),
            Part::new("clone"),
            Part::fixed("where", DType::I64),
            Part::fixed("clone", DType::I64),
        ],
    ),
    derivative: Derivative::Formula { saves: 0, saves_outputs: 0b10, formula: extremum::to_place },
    forms: Forms::New,
    dtypes: Dtypes::NUMERIC,
    samples,
    errors: || {
        let call = |sizes: &[usize], dim, message| {
            error([plain(sizes), SampleArg::Int(dim), SampleArg::Bool(false)], message)
        };
        let truth = fixed(&[2], DType::BOOL, Fill::Values(vec![0.0, 1.0]));
        vec![
            call(&[3], 1, "out of range"),
            call(&[3, 0], 1, "not empty"),
            error([truth, SampleArg::Int(0), SampleArg::Bool(false)], "a number dtype"),
        ]
    },
    entry: Entry::new(),
}
.with(Facts::EXACT);
