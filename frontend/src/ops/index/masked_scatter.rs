//! `masked_scatter`

use crate::error::Result;
use crate::ops::composite::{cast, one, tensor};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::forms;
use crate::ops::index::geometry::{mask as mask_of, same_dtype, wrong_shape};
use crate::ops::rules::FIRST_TWO;
use crate::ops::sample::{Fill, SampleArg, error, fixed, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Typing};

forms! {
    /// Replaces the elements where `mask` is true by the elements of `source`, both in row-major order, on a copy of this
    /// tensor; surplus elements are ignored. The inverse of [`Tensor::masked_select`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// assert_eq!(a.masked_scatter(&a.ne(2)?, &Tensor::new([7, 8])?)?.to_vec::<i32>()?, [7, 2, 8]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A mask that is not bool or does not broadcast; a source of another dtype, or with fewer elements than the mask has true
    /// ones.
    pub fn masked_scatter(&self, mask: &Tensor, source: &Tensor), in_place: masked_scatter_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let a = Tensor::new([1, 2, 3])?;
        /// a.masked_scatter_(&a.ne(2)?, &Tensor::new([7, 8])?)?;
        /// assert_eq!(a.to_vec::<i32>()?, [7, 2, 8]);
        /// # Ok(()) }
        /// ```
    };
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    mask_of(args, 1)?;
    args.tensor(2)?;
    same_dtype(args, 2)?;
    let mut plan = Plan::elementwise(args, FIRST_TWO, Typing::of(t.dtype()))?;
    plan.cast = 0b101;
    Ok(plan)
}

/// The cumulative sum of the mask is the index into `source`.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, mask, source) = (tensor(args, 0)?, tensor(args, 1)?, tensor(args, 2)?);
    let shape = args.broadcast(FIRST_TWO)?;
    let flat = mask.expand(&shape)?.contiguous()?.reshape([-1])?;
    let nth = flat.to_dtype(DType::I64)?.cumsum(0)?;
    let wanted = match flat.elem_count() {
        0 => 0,
        n => nth.select(0, n - 1)?.item::<i64>()?,
    };
    if wanted as usize > source.elem_count() {
        let expected = format!("of {wanted} elements at least, one for each true one of the mask");
        return Err(wrong_shape(args, 2, expected, source.shape()).into());
    }
    if wanted == 0 {
        return flat.reshape_as_sizes(&shape)?.where_cond(&t, &t);
    }
    let at = nth.sub(1)?.maximum(0)?;
    let found = cast(source, t.dtype())?.contiguous()?.reshape([-1])?.index_select(0, &at)?;
    flat.reshape_as_sizes(&shape)?.where_cond(&found.reshape_as_sizes(&shape)?, &t)
}

/// `masked_scatter`
pub static DEF: OpDef = OpDef::new(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b10, |b, g| {
        let mask = b.input(1)?;
        g.set(0, || b.grad(0)?.masked_fill(&mask, 0))?;
        g.set(2, || {
            let read = b.grad(0)?.masked_select(&mask)?;
            let left = b.sizes(2).iter().product::<usize>() - read.elem_count();
            read.constant_pad(&[0, left as i64], 0)?.reshape_as_sizes(b.sizes(2))
        })
    }),
    || {
        let mask = |sizes: &[usize]| fixed(sizes, DType::BOOL, Fill::Values(vec![1.0, 0.0, 0.0, 1.0, 1.0]));
        let call =
            |sizes: &[usize], m: &[usize], source: &[usize]| sample([plain(sizes), mask(m), plain(source)]);
        vec![
            call(&[], &[], &[1]),
            call(&[5], &[5], &[3]),
            call(&[3, 4], &[3, 4], &[4, 3]),
            call(&[3, 4], &[4], &[7]),
            call(&[4], &[3, 1], &[4]),
            call(&[2, 3, 2], &[3, 1], &[2, 2]),
            call(&[2, 3, 2, 2], &[2, 3, 2, 2], &[2, 1, 3, 3]),
            call(&[2, 1, 2, 3, 2], &[2, 1, 2], &[2, 3, 2]),
            call(&[0, 3], &[3], &[0]),
        ]
    },
)
.forms(Forms::InPlace)
.errors(|| {
    let mask = |sizes: &[usize], dtype| fixed(sizes, dtype, Fill::Values(vec![1.0]));
    let other = || fixed(&[3], DType::I8, Fill::Values(vec![1.0]));
    vec![
        error([plain(&[3]), mask(&[3], DType::F32), plain(&[3])], "a mask of bool"),
        error([plain(&[3]), mask(&[2], DType::BOOL), plain(&[3])], "do not broadcast"),
        error([plain(&[3]), mask(&[3], DType::BOOL), plain(&[2])], "of 3 elements at least"),
        error([plain(&[3]), mask(&[3], DType::BOOL), other()], "as `self` is"),
        error([plain(&[3]), mask(&[3], DType::BOOL), SampleArg::Int(1)], "a tensor"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
