//! `unbind`

use super::split::room_for_parts;
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::Int;
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::memory::host_vec;
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};

impl Tensor {
    /// A view for each index of dimension `dim`, which is removed. For a sparse tensor the parts are new tensors, and its
    /// entries are scanned for each.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4], (2, 2))?;
    /// assert_eq!(a.unbind(1)?[0].to_vec::<i32>()?, [1, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A 0-d tensor, a dimension out of range.
    #[doc(alias = "unstack")]
    pub fn unbind(&self, dim: impl Int) -> Result<Vec<Tensor>> {
        called("unbind", &["self", "dim"], || {
            if !self.as_ref().is_strided() && !self.shape().is_empty() {
                let size = self.dim(dim)?;
                let mut parts = room_for_parts(size)?;
                for index in 0..size as i64 {
                    parts.push(self.select(dim, index)?);
                }
                return Ok(parts);
            }
            DEF.run_all(&[self.into(), Arg::Int(dim.to_i64())])
        })
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Vec<ViewSpec>> {
    let t = args.tensor(0)?;
    if t.ndim() == 0 {
        let expected = "of one dimension at least".to_string();
        return Err(Error::Shape { op: args.name(), argument: "self", expected, got: Box::default() });
    }
    let dim = args.dim(1, t.ndim())?;
    let (mut sizes, mut strides) = (Dims::from_slice(t.sizes()), Dims::from_slice(t.strides()));
    let (size, stride) = (sizes.remove(dim), strides.remove(dim));
    // Without elements every view has the offset of the tensor.
    let step = if t.numel() > 0 { stride } else { 0 };
    let view =
        |i| ViewSpec { offset: t.offset() + i * step, sizes: sizes.clone(), strides: Some(strides.clone()) };
    let mut views = host_vec(size)?;
    views.extend((0..size).map(view));
    Ok(views)
}

fn samples() -> Vec<Sample> {
    let call = |n: &[usize], dim| sample([plain(n), SampleArg::Int(dim)]);
    vec![
        call(&[3], 0),
        call(&[2, 3], 1),
        call(&[2, 3, 2], -1),
        call(&[2, 3, 2, 2], 1),
        call(&[2, 1, 2, 3, 2], -2),
        call(&[2, 0], 0),
    ]
}

/// `unbind`
pub static DEF: OpDef = OpDef::new(
    "unbind(Tensor self, int dim=0) -> Tensor[]",
    Rule::Views(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let count = b.sizes(0)[wrap_dim("unbind", b.int(1)?, b.sizes(0).len())?];
            let whole = b.grad(0)?.new_uninit(b.sizes(0))?;
            for i in 0..count {
                whole.select(b.int(1)?, i as i64)?.copy_(b.grad(i)?)?;
            }
            Ok(whole)
        })
    }),
    samples,
)
.errors(|| {
    vec![
        error([plain(&[]), SampleArg::Int(0)], "one dimension"),
        error([plain(&[3]), SampleArg::Int(1)], "out of range"),
    ]
})
.with(OpFlags::COMPLEX);
