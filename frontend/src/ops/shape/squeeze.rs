//! `squeeze`

use crate::Tensor;
use crate::autograd::Backward;
use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::rules::{reduced_by, wrong_value};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::IntoDims;
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};

impl Tensor {
    /// A view without the dimensions of size 1 among `dims`, or among all with `..`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::zeros((1, 3, 1))?;
    /// assert_eq!(a.squeeze(0)?.shape(), [3, 1]);
    /// assert_eq!(a.squeeze(..)?.shape(), [3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn squeeze(&self, dims: impl IntoDims) -> Result<Tensor> {
        let dims = dims.into_dims();
        DEF.run(&[self.into(), if dims.is_empty() { Arg::None } else { Arg::Ints(&dims) }])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<ViewSpec> {
    let t = args.tensor(0)?;
    let mut chosen: u64 = u64::MAX;
    if let Some(dims) = args.optional_ints(1)? {
        chosen = 0;
        for &dim in dims {
            let bit = 1 << wrap_dim(args.name(), dim, t.ndim())?;
            if chosen & bit != 0 {
                return Err(wrong_value(args, 1, "different dimensions".into()));
            }
            chosen |= bit;
        }
    }
    let stays = |i: &usize| t.sizes()[*i] != 1 || chosen & (1 << i) == 0;
    let sizes = (0..t.ndim()).filter(stays).map(|i| t.sizes()[i]).collect();
    let strides = (0..t.ndim()).filter(stays).map(|i| t.strides()[i]).collect();
    Ok(ViewSpec { offset: t.offset(), sizes, strides: Some(strides) })
}

/// Restores the squeezed dimensions of the gradient.
fn unsqueezed(b: &Backward<'_>) -> Result<Tensor> {
    let (grad, sizes) = (b.grad(0)?, b.sizes(0));
    if grad.as_ref().is_strided() {
        return grad.reshape_as_sizes(sizes);
    }
    // For COO tensors: sparse dimensions stay sparse and dense ones dense.
    let chosen = reduced_by("squeeze", b.arg(1), sizes.len())?;
    let mut gone = (0..sizes.len()).filter(|dim| sizes[*dim] == 1 && chosen & (1 << dim) != 0);
    gone.try_fold(grad.clone(), |made, dim| made.unsqueeze(dim))
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dims: Option<&[i64]>| {
        sample([plain(sizes), dims.map_or(SampleArg::None, |d| SampleArg::Ints(d.to_vec()))])
    };
    vec![
        call(&[1, 3, 1], None),
        call(&[1, 3, 1], Some(&[0])),
        call(&[1, 3, 1], Some(&[1, -1])),
        call(&[1], None),
        call(&[1, 3, 1, 2], Some(&[2])),
        call(&[1, 2, 1, 3, 1], None),
        call(&[], None),
        call(&[], Some(&[0])),
        call(&[1, 0], None),
    ]
}

/// `squeeze`
pub static DEF: OpDef = OpDef::new(
    "squeeze(Tensor self, int[]? dim=None) -> Tensor",
    Rule::View(rule),
    Derivative::of_grad(|b, g| g.set(0, || unsqueezed(b))),
    samples,
)
.errors(|| {
    vec![
        error([plain(&[3]), SampleArg::Ints(vec![1])], "out of range"),
        error([plain(&[1, 1]), SampleArg::Ints(vec![0, -2])], "different dimensions"),
    ]
})
.with(OpFlags::COMPLEX);
