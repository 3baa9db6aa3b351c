//! `isin`
//!
//! Arguments:
//! - `test_elements`: the values that are looked for.
//! - `invert`: whether to return true for elements that are not among them.

use crate::error::Result;
use crate::ops::composite::{cast, in_format_of, one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{FIRST_TWO, keeping, require};
use crate::ops::sample::{Fill, SampleArg, error, fixed, sample, tensor as filled};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Whether each element occurs in `test_elements`, which may have any shape; both promoted. NaN is never found.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1, 2, 3])?;
    /// assert_eq!(x.isin(&Tensor::new([3, 1])?)?.to_vec::<bool>()?, [true, false, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Bool; dtypes without a common one, tensors on different devices.
    pub fn isin(&self, test_elements: &Tensor) -> Result<Tensor> {
        self.isin_with(test_elements, false)
    }

    /// [`Tensor::isin`], negated with `invert`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1, 2, 3])?;
    /// assert_eq!(x.isin_with(&Tensor::new([2, 5])?, true)?.to_vec::<bool>()?, [true, false, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::isin`].
    pub fn isin_with(&self, test_elements: &Tensor, invert: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), test_elements.into(), Arg::Bool(invert)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    args.bool(2)?;
    let dtype = args.promote(FIRST_TWO)?;
    require(args, 0, dtype, dtype != DType::BOOL, "a number dtype")?;
    let mut plan = keeping(t, dtype, Dims::from_slice(t.sizes()), DType::BOOL);
    plan.cast = FIRST_TWO;
    Ok(plan)
}

/// Binary search in the sorted list, and a comparison with the element found.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (dtype, invert) = (args.promote(FIRST_TWO)?, args.bool(2)?);
    let x = cast(tensor(args, 0)?, dtype)?;
    let all = cast(tensor(args, 1)?, dtype)?.reshape([-1])?;
    let there = if all.elem_count() == 0 {
        Tensor::full_with(x.shape(), invert, (DType::BOOL, x.device()))?
    } else {
        let (sorted, _) = all.sort(0)?;
        let flat = x.contiguous()?.reshape([-1])?;
        let place = sorted.searchsorted(&flat)?.minimum(all.elem_count() as i64 - 1)?;
        let found = sorted.index_select(0, &place)?;
        let there = if invert { found.ne(&flat)? } else { found.eq(&flat)? };
        there.reshape_as_sizes(x.shape())?
    };
    in_format_of(&x, there)
}

/// `isin`
pub static DEF: OpDef = OpDef::new(
    "isin(Tensor self, Tensor test_elements, bool invert=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::NotDifferentiable,
    || {
        let own = |sizes: &[usize]| filled(sizes, Fill::Values(vec![3.0, -1.0, 0.0, 7.0, 2.0, -0.0, 5.0]));
        let among = |sizes: &[usize]| filled(sizes, Fill::Values(vec![2.0, 3.0, 9.0, 0.0, 3.0]));
        let call = |a: &[usize], b: &[usize], invert| sample([own(a), among(b), SampleArg::Bool(invert)]);
        vec![
            call(&[], &[3], false),
            call(&[7], &[], false),
            call(&[7], &[5], true),
            call(&[3, 4], &[2, 3], false),
            call(&[2, 3, 4], &[1], true),
            call(&[2, 3, 2, 5], &[4], false),
            call(&[2, 1, 2, 3, 2], &[5], false),
            call(&[4], &[0], false),
            call(&[4], &[0], true),
            call(&[0, 3], &[2], false),
        ]
    },
)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    let truth = || fixed(&[2], DType::BOOL, Fill::Values(vec![0.0, 1.0]));
    vec![error([truth(), truth(), SampleArg::Bool(false)], "a number dtype")]
})
.decomposed(|args| one(compose(args)));
