//! `unfold`
//!
//! Arguments:
//! - `dimension`: the dimension that windows slide along.
//! - `size`: the size of a window.
//! - `step`: the distance of neighbouring windows.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::whole;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};

impl Tensor {
    /// A view of sliding windows of `size` elements along dimension `dim`, at intervals of `step`; the window is the last
    /// dimension.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3, 4])?;
    /// assert_eq!(a.unfold(0, 2, 1)?.to_vec::<i32>()?, [1, 2, 2, 3, 3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range, windows longer than it, a step below 1.
    pub fn unfold(&self, dim: impl Int, size: usize, step: usize) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64()), whole(size), whole(step)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<ViewSpec> {
    let t = args.tensor(0)?;
    let dim = args.dim(1, t.ndim())?;
    let whole = t.sizes().get(dim).copied().unwrap_or(1);
    let wrong = |argument, expected: String, got: i64| {
        Err(Error::Value { op: args.name(), argument, expected, got: got.to_string() })
    };
    let (size, step) = (args.int(2)?, args.int(3)?);
    let size = match usize::try_from(size) {
        Ok(n) if n <= whole => n,
        _ => return wrong("size", format!("0 to {whole}, the size of dimension {dim}"), size),
    };
    let step = match usize::try_from(step) {
        Ok(n) if n > 0 => n,
        _ => return wrong("step", "1 or more".to_string(), step),
    };
    let (mut sizes, mut strides) = (Dims::from_slice(t.sizes()), Dims::from_slice(t.strides()));
    let stride = strides.get(dim).copied().unwrap_or(1);
    if t.ndim() > 0 {
        sizes[dim] = (whole - size) / step + 1;
        strides[dim] = stride.saturating_mul(step);
    }
    sizes.push(size);
    strides.push(stride);
    Ok(ViewSpec { offset: t.offset(), sizes, strides: Some(strides) })
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dim, size, step| {
        sample([plain(sizes), SampleArg::Int(dim), SampleArg::Int(size), SampleArg::Int(step)])
    };
    vec![
        call(&[5], 0, 2, 1),
        call(&[5], 0, 2, 3),
        call(&[2, 5, 3], 1, 3, 2),
        call(&[2, 5], 1, 2, 2),
        call(&[2, 1, 5, 2], -2, 3, 1),
        call(&[2, 1, 4, 1, 2], 2, 2, 2),
        call(&[0, 3], 1, 2, 1),
        call(&[3], -1, 3, 1),
        call(&[], 0, 1, 1),
    ]
}

/// `unfold`
pub static DEF: OpDef = OpDef::new(
    "unfold(Tensor self, int dimension, int size, int step) -> Tensor",
    Rule::View(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let (dim, size, step) = (b.int(1)?, b.int(2)? as usize, b.int(3)? as usize);
            super::gathered(b.grad(0)?, b.sizes(0), |zeros| zeros.unfold(dim, size, step))
        })
    }),
    samples,
)
.errors(|| {
    vec![
        error([plain(&[3]), SampleArg::Int(0), SampleArg::Int(4), SampleArg::Int(1)], "size of dimension 0"),
        error([plain(&[3]), SampleArg::Int(0), SampleArg::Int(2), SampleArg::Int(0)], "1 or more"),
    ]
})
.with(OpFlags::COMPLEX);
