//! `tile`
//!
//! Arguments:
//! - `dims`: the number of copies along each dimension.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::index::repeat::repeated;
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::tensor::IntoShape;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Rule};
use smallvec::SmallVec;

impl Tensor {
    /// [`Tensor::repeat`], with 1 prepended for missing dimensions.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4], (2, 2))?;
    /// assert_eq!(a.tile(2)?.to_vec::<i32>()?, [1, 2, 1, 2, 3, 4, 3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A negative repeat.
    pub fn tile(&self, repeats: impl IntoShape) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(&repeats.into_ints())])
    }
}

/// The repeats, with 1 prepended for missing dimensions.
fn repeats(args: &Args<'_>) -> RuleResult<SmallVec<[i64; 8]>> {
    let (ndim, given) = (args.tensor(0)?.ndim(), args.ints(1)?);
    let mut repeats = SmallVec::from_elem(1, ndim.saturating_sub(given.len()));
    repeats.extend_from_slice(given);
    Ok(repeats)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    tensor(args, 0)?.repeat(&repeats(args)?)
}

/// `tile`
pub static DEF: OpDef = OpDef::new(
    "tile(Tensor self, int[] dims) -> Tensor",
    Rule::Structured(|args| repeated(args, &repeats(args)?)),
    Derivative::Composite,
    || {
        let call =
            |sizes: &[usize], repeats: &[i64]| sample([plain(sizes), SampleArg::Ints(repeats.to_vec())]);
        vec![
            call(&[2, 3], &[2]),
            call(&[3], &[2, 2]),
            call(&[], &[]),
            call(&[2, 3], &[]),
            call(&[2, 1, 3], &[2, 1]),
            call(&[2, 1, 2, 2], &[3, 1, 1]),
            call(&[2, 1, 2, 1, 2], &[1, 2, 1, 2, 1]),
            call(&[0, 2], &[2, 1]),
        ]
    },
)
.forms(Forms::Out)
.errors(|| vec![error([plain(&[2]), SampleArg::Ints(vec![-1])], "0 or more")])
.decomposed(|args| one(compose(args)));
