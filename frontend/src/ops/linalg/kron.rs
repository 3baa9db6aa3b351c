//! `kron`

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{decomposed, one, tensor};
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules::FIRST_TWO;
use crate::ops::sample::{plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Part, Plan, Rule, Strides};

impl Tensor {
    /// The Kronecker product: each element of `self` times all of `other`, in blocks. The one with fewer dimensions is taken
    /// as if it had more of size 1 in front.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2], &[1, 2])?;
    /// let b = Tensor::from_vec(vec![1, 10], &[1, 2])?;
    /// assert_eq!(a.kron(&b)?.to_vec::<i32>()?, [1, 10, 2, 20]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Dtypes that have no common one, tensors on different devices.
    pub fn kron(&self, other: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into()])
    }
}

/// The sizes of both with the same number of dimensions.
fn paired(args: &Args<'_>) -> RuleResult<Vec<(usize, usize)>> {
    let (a, b) = (args.tensor(0)?.sizes(), args.tensor(1)?.sizes());
    let count = a.len().max(b.len());
    let size = |sizes: &[usize], d: usize| (d + sizes.len()).checked_sub(count).map_or(1, |at| sizes[at]);
    Ok((0..count).map(|d| (size(a, d), size(b, d))).collect())
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let sizes: Dims = paired(args)?.iter().map(|(a, b)| a.saturating_mul(*b)).collect();
    let dtype = args.promote(FIRST_TWO)?;
    let mut plan = Plan::one(dtype, sizes, dtype, Strides::Contiguous);
    plan.cast = FIRST_TWO;
    Ok(plan)
}

/// A product in which the dimensions of both alternate, and are joined in pairs after it.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let pairs = paired(args)?;
    let blocks: Vec<usize> = pairs.iter().flat_map(|&(a, _)| [a, 1]).collect();
    let within: Vec<usize> = pairs.iter().flat_map(|&(_, b)| [1, b]).collect();
    let joined: Vec<usize> = pairs.iter().map(|&(a, b)| a * b).collect();
    let product =
        tensor(args, 0)?.reshape_as_sizes(&blocks)?.mul(&tensor(args, 1)?.reshape_as_sizes(&within)?)?;
    product.contiguous()?.reshape_as_sizes(&joined)
}

/// `kron`
pub static DEF: OpDef = OpDef {
    schema: "kron(Tensor self, Tensor other) -> Tensor",
    rule: Rule::Structured(rule),
    decomposition: decomposed(|args| one(compose(args)), &[Part::new("mul"), Part::new("clone")]),
    derivative: Derivative::Composite,
    forms: Forms::New,
    dtypes: Dtypes::ALL,
    samples: || {
        let call = |a: &[usize], b: &[usize]| sample([plain(a), plain(b)]);
        vec![
            call(&[], &[3]),
            call(&[2], &[3]),
            call(&[2, 3], &[2, 2]),
            call(&[2], &[2, 3]),
            call(&[2, 1, 3], &[3, 2]),
            call(&[0, 2], &[2, 2]),
        ]
    },
    errors: Vec::new,
    entry: Entry::new(),
};
