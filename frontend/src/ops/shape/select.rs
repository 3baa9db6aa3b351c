//! `select`
//!
//! Arguments:
//! - `index`: the index along `dim`.

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};

impl Tensor {
    /// A view at one index of dimension `dim`, which is removed; -1 is the last.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4], (2, 2))?;
    /// assert_eq!(a.select(1, -1)?.to_vec::<i32>()?, [2, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension or an index out of range.
    #[doc(alias = "get")]
    #[doc(alias = "get_on_dim")]
    pub fn select(&self, dim: impl Int, index: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64()), Arg::Int(index.to_i64())])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<ViewSpec> {
    let t = args.tensor(0)?;
    if t.ndim() == 0 {
        let expected = "of one dimension at least".to_string();
        return Err(Error::Shape { op: args.name(), argument: "self", expected, got: Box::default() });
    }
    let dim = args.dim(1, t.ndim())?;
    let (index, size) = (args.int(2)?, t.sizes()[dim]);
    let at = if index < 0 { index.saturating_add(size as i64) } else { index };
    if at < 0 || at >= size as i64 {
        return Err(Error::Index { op: args.name(), index, dim: dim as i64, size });
    }
    let (mut sizes, mut strides) = (Dims::from_slice(t.sizes()), Dims::from_slice(t.strides()));
    sizes.remove(dim);
    let stride = strides.remove(dim);
    Ok(ViewSpec { offset: t.offset() + at as usize * stride, sizes, strides: Some(strides) })
}

fn samples() -> Vec<Sample> {
    let call =
        |sizes: &[usize], dim, index| sample([plain(sizes), SampleArg::Int(dim), SampleArg::Int(index)]);
    vec![
        call(&[3], 0, 1),
        call(&[2, 3], -1, -1),
        call(&[2, 3, 4], 1, 0),
        call(&[2, 3, 2, 2], -2, 1),
        call(&[2, 1, 2, 3, 2], 3, 2),
        call(&[2, 0], 0, 1),
    ]
}

/// `select`
pub static DEF: OpDef = OpDef::new(
    "select(Tensor self, int dim, int index) -> Tensor",
    Rule::View(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || super::placed_back(b, |whole| whole.select(b.int(1)?, b.int(2)?)))
    }),
    samples,
)
.errors(|| {
    vec![
        error([plain(&[3]), SampleArg::Int(0), SampleArg::Int(3)], "dimension 0 of size 3"),
        error([plain(&[3]), SampleArg::Int(1), SampleArg::Int(0)], "out of range"),
        error([plain(&[]), SampleArg::Int(0), SampleArg::Int(0)], "one dimension"),
    ]
})
.with(OpFlags::COMPLEX);
