//! `unsqueeze`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};

impl Tensor {
    /// A view with a dimension of size 1 inserted at `dim`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// assert_eq!(a.unsqueeze(0)?.shape(), [1, 3]);
    /// assert_eq!(a.unsqueeze(-1)?.shape(), [3, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range.
    pub fn unsqueeze(&self, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64())])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<ViewSpec> {
    let t = args.tensor(0)?;
    let dim = args.dim(1, t.ndim() + 1)?;
    let (mut sizes, mut strides) = (Dims::from_slice(t.sizes()), Dims::from_slice(t.strides()));
    let stride = if dim < t.ndim() { sizes[dim] * strides[dim] } else { 1 };
    sizes.insert(dim, 1);
    strides.insert(dim, stride);
    Ok(ViewSpec { offset: t.offset(), sizes, strides: Some(strides) })
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dim| sample([plain(sizes), SampleArg::Int(dim)]);
    vec![
        call(&[], 0),
        call(&[3], 0),
        call(&[3], -1),
        call(&[2, 3], 1),
        call(&[2, 3, 2], -2),
        call(&[2, 3, 2, 2], 4),
        call(&[2, 1, 2, 3, 2], 0),
        call(&[0, 2], 2),
    ]
}

/// `unsqueeze`
pub static DEF: OpDef = OpDef::new(
    "unsqueeze(Tensor self, int dim) -> Tensor",
    Rule::View(rule),
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.squeeze(b.int(1)?))),
    samples,
)
.errors(|| vec![error([plain(&[3]), SampleArg::Int(2)], "out of range")])
.with(OpFlags::COMPLEX);
