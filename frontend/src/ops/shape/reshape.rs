//! `reshape`
//!
//! Arguments:
//! - `shape`: the sizes of the result; one may be -1 and is inferred.

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::rules::resolve_sizes;
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::IntoShape;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Outputs, Rule};
use smallvec::SmallVec;

impl Tensor {
    /// Reshapes the tensor: a view if the strides allow it, otherwise a copy. One size may be -1 and is inferred.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4], (2, 2))?.t()?;
    /// assert_eq!(a.reshape(-1)?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes of another number of elements.
    pub fn reshape(&self, shape: impl IntoShape) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(&shape.into_ints())])
    }

    /// [`Tensor::reshape`] that returns this tensor if the shape is its own.
    pub(crate) fn reshape_as_sizes(&self, sizes: &[usize]) -> Result<Tensor> {
        if self.shape() == sizes {
            return Ok(self.clone());
        }
        let sizes: SmallVec<[i64; 8]> = sizes.iter().map(|&s| s as i64).collect();
        self.reshape(&sizes)
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let t = Tensor::from_ref(args.tensor(0)?.clone());
    // A composite tensor has no strides, and its sizes may exceed memory.
    if !t.as_ref().is_strided() {
        return Ok(Outputs::from_iter([t.view(args.ints(1)?)?.into_ref()]));
    }
    let mut sizes = Dims::new();
    resolve_sizes(args, 1, t.elem_count(), &mut sizes)?;
    let fits = t.is_contiguous() || super::view::view_strides(t.shape(), t.strides(), &sizes).is_some();
    let sizes: SmallVec<[i64; 8]> = sizes.iter().map(|&s| s as i64).collect();
    let source = if fits { t } else { t.contiguous()? };
    Ok(Outputs::from_iter([source.view(&sizes)?.into_ref()]))
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], to: &[i64]| sample([plain(sizes), SampleArg::Ints(to.to_vec())]);
    vec![
        call(&[6], &[2, 3]),
        call(&[2, 3, 4], &[4, -1]),
        call(&[2, 3, 2, 2], &[6, -1]),
        call(&[2, 1, 2, 3, 2], &[2, 6, -1]),
        call(&[0, 3], &[0]),
        call(&[], &[1]),
    ]
}

/// `reshape`
pub static DEF: OpDef = OpDef::new(
    "reshape(Tensor self, int[] shape) -> Tensor",
    Rule::Host(compose),
    Derivative::Composite,
    samples,
)
.errors(|| {
    vec![
        error([plain(&[6]), SampleArg::Ints(vec![4, 2])], "product is the 6"),
        error([plain(&[6]), SampleArg::Ints(vec![-1, -1])], "at most one -1"),
    ]
})
.with(OpFlags::COMPLEX);
