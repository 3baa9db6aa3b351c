//! `sampled_mm`

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::linalg::mm::product;
use crate::ops::rules::FIRST_THREE;
use crate::ops::sample::{error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The product of two matrices, or of two batches of matrices, sampled at the coordinates that this tensor stores (SDDMM),
    /// coalesced, in its layout; its values are ignored. A strided tensor is sampled where it is nonzero. Only the sampled
    /// elements are computed: it is the gradient of a sparse operand of a product.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let pattern = Tensor::new([[0.0f32, 1.0], [0.0, 0.0]])?.to_sparse()?;
    /// let a = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(pattern.sampled_mm(&a, &a)?.values()?.to_vec::<f32>()?, [10.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Tensors that are not matrices, or batches of matrices, or of incompatible sizes; a layout whose backend has no kernel
    /// for the op.
    #[doc(alias = "sampled_addmm")]
    pub fn sampled_mm(&self, mat1: &Tensor, mat2: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), mat1.into(), mat2.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (pattern, a, b) = (args.tensor(0)?.sizes(), args.tensor(1)?.sizes(), args.tensor(2)?.sizes());
    let wrong = |argument, expected: String, got: &[usize]| {
        Err(Error::Shape { op: args.name(), argument, expected, got: got.into() })
    };
    let (n, m, stack) = match *pattern {
        [n, m] => (n, m, &[][..]),
        [_, n, m] => (n, m, &pattern[..1]),
        _ => return wrong("self", "a matrix, or a stack of them".into(), pattern),
    };
    let Some((lead, &[rows, inner])) = a.split_last_chunk().filter(|(lead, _)| *lead == stack) else {
        return wrong("mat1", format!("a matrix, or a stack of them as `self` is, of shape {pattern:?}"), a);
    };
    if rows != n {
        return wrong("mat1", format!("a matrix of {n} rows, as `self` has {n}"), a);
    }
    let expected: Dims = lead.iter().copied().chain([inner, m]).collect();
    if b != &expected[..] {
        return wrong("mat2", format!("of shape {:?}", &expected[..]), b);
    }
    let dtype = args.promote(FIRST_THREE)?;
    let mut plan = Plan::one(dtype, Dims::from_slice(pattern), dtype, Strides::Contiguous);
    plan.cast = FIRST_THREE;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    product(&tensor(args, 1)?, &tensor(args, 2)?)?.sparse_mask(&tensor(args, 0)?)
}

/// `sampled_mm`
pub static DEF: OpDef = OpDef::new(
    "sampled_mm(Tensor self, Tensor mat1, Tensor mat2) -> Tensor",
    Rule::Allocates(rule),
    Derivative::of_inputs(0b111, |b, g| {
        g.set(0, || b.grad(0)?.zeros_like())?;
        let stored = |pattern: Tensor| b.grad(0)?.sparse_mask(&pattern.detach());
        g.set(1, || product(&stored(b.input(0)?)?, &b.input(2)?.transpose(-2, -1)?))?;
        g.set(2, || product(&b.input(1)?.transpose(-2, -1)?, &stored(b.input(0)?)?))
    }),
    || {
        [[2, 3, 4], [1, 1, 1], [6, 6, 6], [3, 17, 2], [2, 0, 3]]
            .iter()
            .map(|&[n, k, m]| sample([plain(&[n, m]), plain(&[n, k]), plain(&[k, m])]))
            .chain([sample([plain(&[2, 3, 4]), plain(&[2, 3, 5]), plain(&[2, 5, 4])])])
            .collect()
    },
)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    vec![
        error([plain(&[2, 4]), plain(&[3, 3]), plain(&[3, 4])], "2 rows"),
        error([plain(&[2, 4]), plain(&[2, 3]), plain(&[2, 4])], "shape [3, 4]"),
        error([plain(&[2, 2, 4]), plain(&[3, 2, 3]), plain(&[3, 3, 4])], "of shape [2, 2, 4]"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::SETS_FORMAT);
