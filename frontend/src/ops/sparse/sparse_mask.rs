//! `sparse_mask`

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor as argument};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, error, plain, sample, tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The elements of this tensor at the coordinates that `mask` stores, coalesced, in the mask's layout. A strided mask
    /// selects where it is nonzero, and other elements become 0.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let mask = Tensor::new([[0.0f32, 1.0], [1.0, 0.0]])?.to_sparse()?;
    /// let a = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(a.sparse_mask(&mask)?.values()?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Different sizes; a layout whose backend has no kernel for the op.
    pub fn sparse_mask(&self, mask: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), mask.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (t, mask) = (args.tensor(0)?, args.tensor(1)?);
    if t.sizes() != mask.sizes() {
        let expected = format!("of the sizes of `self`, {:?}", t.sizes());
        return Err(Error::Shape { op: args.name(), argument: "mask", expected, got: mask.sizes().into() });
    }
    Ok(Plan::one(t.dtype(), Dims::from_slice(t.sizes()), t.dtype(), Strides::Contiguous))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    argument(args, 0)?.masked_fill(&argument(args, 1)?.eq(0)?, 0)
}

/// `sparse_mask`
pub static DEF: OpDef = OpDef::new(
    "sparse_mask(Tensor self, Tensor mask) -> Tensor",
    Rule::Allocates(rule),
    Derivative::of_inputs(0b10, |b, g| {
        g.set(0, || b.grad(0)?.sparse_mask(&b.input(1)?.detach()))?;
        g.set(1, || b.grad(0)?.zeros_like())
    }),
    || {
        // At 0 the result is discontinuous in the mask.
        let masked = |sizes: &[usize]| {
            let mask = tensor(sizes, Fill::Values(vec![0.0, 1.0, 2.0, 0.0, 3.0]));
            Sample { smooth: false, ..sample([plain(sizes), mask]) }
        };
        vec![
            masked(&[3, 4]),
            masked(&[2, 3, 4]),
            sample([plain(&[3, 4]), plain(&[3, 4])]),
            sample([plain(&[6]), plain(&[6])]),
        ]
    },
)
.dtypes(Dtypes::NUMERIC)
.errors(|| vec![error([plain(&[2]), plain(&[3])], "sizes of `self`")])
.decomposed(|args| one(compose(args)))
.with(OpFlags::SETS_FORMAT);
