//! `masked_fill`
//!
//! Arguments:
//! - `value`: the value of the selected elements.

use crate::error::Result;
use crate::ops::composite::{cast, one, tensor};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::forms;
use crate::ops::index::geometry::{mask as mask_of, wrong_shape};
use crate::ops::rules::{FIRST_THREE, holds};
use crate::ops::sample::{Fill, SampleArg, error, fixed, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Typing};

forms! {
    /// Replaces the elements where `mask` is true by `value`, a number or a 0-d tensor, on a copy of this tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// assert_eq!(a.masked_fill(&a.gt(1)?, 0)?.to_vec::<i32>()?, [1, 0, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A mask that is not bool or does not broadcast; a value with dimensions.
    pub fn masked_fill<'a>(&'a self, mask: &'a Tensor, value: impl Into<Arg<'a>>), in_place: masked_fill_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let a = Tensor::new([1, 2, 3])?;
        /// a.masked_fill_(&a.gt(1)?, 0)?;
        /// assert_eq!(a.to_vec::<i32>()?, [1, 0, 0]);
        /// # Ok(()) }
        /// ```
    };
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    mask_of(args, 1)?;
    if let Arg::Tensor(value) = args.get(2)
        && value.ndim() > 0
    {
        return Err(wrong_shape(args, 2, "a number or a 0-d tensor".into(), value.sizes()));
    }
    holds(args, 2, t.dtype())?;
    let mut plan = Plan::elementwise(args, FIRST_THREE, Typing::of(t.dtype()))?;
    plan.cast = 0b101;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, mask) = (tensor(args, 0)?, tensor(args, 1)?);
    let value = match args.get(2) {
        Arg::Tensor(_) => cast(tensor(args, 2)?, t.dtype())?,
        // As a tensor, so that the number is cast as in a fill and does not promote.
        number => Tensor::full_with((), number, (t.dtype(), t.device()))?,
    };
    mask.where_cond(&value, &t)
}

/// `masked_fill`
pub static DEF: OpDef = OpDef::new(
    "masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b10, |b, g| {
        let mask = b.input(1)?;
        g.set(0, || b.grad(0)?.masked_fill(&mask, 0))?;
        g.set(2, || mask.where_cond(b.grad(0)?, 0)?.sum_all())
    }),
    || {
        let mask = |sizes: &[usize]| fixed(sizes, DType::BOOL, Fill::Values(vec![1.0, 0.0, 0.0, 1.0, 1.0]));
        let call = |sizes: &[usize], m: &[usize], value| sample([plain(sizes), mask(m), value]);
        vec![
            call(&[], &[], SampleArg::Float(1.5)),
            call(&[5], &[5], SampleArg::Int(0)),
            call(&[3, 4], &[3, 4], plain(&[])),
            call(&[3, 4], &[4], plain(&[])),
            call(&[4], &[3, 1], plain(&[])),
            call(&[2, 3, 2], &[3, 1], SampleArg::Float(-0.5)),
            call(&[2, 3, 2, 2], &[2, 3, 2, 2], plain(&[])),
            call(&[2, 1, 2, 3, 2], &[2, 1, 2], SampleArg::Int(1)),
            call(&[0, 3], &[3], SampleArg::Int(1)),
        ]
    },
)
.forms(Forms::InPlace)
.errors(|| {
    let mask = |sizes: &[usize], dtype| fixed(sizes, dtype, Fill::Values(vec![1.0]));
    vec![
        error([plain(&[3]), mask(&[3], DType::F32), SampleArg::Int(0)], "a mask of bool"),
        error([plain(&[3]), mask(&[2], DType::BOOL), SampleArg::Int(0)], "do not broadcast"),
        error([plain(&[3]), mask(&[3], DType::BOOL), plain(&[3])], "0-d tensor"),
        error(
            [fixed(&[3], DType::U8, Fill::Index(3)), mask(&[3], DType::BOOL), SampleArg::Int(-1)],
            "a number that u8 holds, from 0 to 255",
        ),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
