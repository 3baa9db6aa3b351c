//! `permute`
//!
//! Arguments:
//! - `dims`: the dimension of `self` for each dimension of the result.

use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::{Int, IntoShape};
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};
use smallvec::SmallVec;

impl Tensor {
    /// A view with permuted dimensions.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4, 5, 6], (1, 2, 3))?;
    /// assert_eq!(a.permute((2, 0, 1))?.shape(), [3, 1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `dims` that are not a permutation of the tensor's dimensions.
    pub fn permute(&self, dims: impl IntoShape) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(&dims.into_ints())])
    }

    /// A view with dimension `source` moved to `destination` and the others in order.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::zeros((2, 3, 4))?.movedim(0, -1)?.shape(), [3, 4, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range.
    pub fn movedim(&self, source: impl Int, destination: impl Int) -> Result<Tensor> {
        called("movedim", &["self", "source", "destination"], || {
            let source = source.to_i64();
            let destination = destination.to_i64();
            let (from, to) =
                (wrap_dim("movedim", source, self.rank())?, wrap_dim("movedim", destination, self.rank())?);
            let mut order: SmallVec<[i64; 8]> = (0..self.rank() as i64).collect();
            if !order.is_empty() {
                let moved = order.remove(from);
                order.insert(to, moved);
            }
            self.permute(&order)
        })
    }
}

/// The permutation with non-negative indices.
fn order(op: &'static str, dims: &[i64], ndim: usize) -> RuleResult<SmallVec<[usize; 8]>> {
    let wrong = || Error::Value {
        op,
        argument: "dims",
        expected: format!("each of the {ndim} dimensions once"),
        got: format!("{dims:?}"),
    };
    if dims.len() != ndim {
        return Err(wrong());
    }
    let mut order = SmallVec::new();
    for &dim in dims {
        let dim = wrap_dim(op, dim, ndim)?;
        if order.contains(&dim) {
            return Err(wrong());
        }
        order.push(dim);
    }
    Ok(order)
}

fn rule(args: &Args<'_>) -> RuleResult<ViewSpec> {
    let t = args.tensor(0)?;
    let order = order(args.name(), args.ints(1)?, t.ndim())?;
    let pick = |from: &[usize]| order.iter().map(|&dim| from[dim]).collect::<Dims>();
    Ok(ViewSpec { offset: t.offset(), sizes: pick(t.sizes()), strides: Some(pick(t.strides())) })
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dims: &[i64]| sample([plain(sizes), SampleArg::Ints(dims.to_vec())]);
    vec![
        call(&[2, 3, 4], &[2, 0, 1]),
        call(&[2, 3, 2, 2], &[0, 2, 3, 1]),
        call(&[2, 1, 2, 3, 2], &[4, 1, 0, -2, 2]),
        call(&[2, 3], &[-1, 0]),
        call(&[], &[]),
        call(&[0, 3], &[1, 0]),
        call(&[4], &[0]),
    ]
}

/// `permute`
pub static DEF: OpDef = OpDef::new(
    "permute(Tensor self, int[] dims) -> Tensor",
    Rule::View(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let order = order("permute", b.ints(1)?, b.sizes(0).len())?;
            let mut inverse: SmallVec<[i64; 8]> = SmallVec::from_elem(0, order.len());
            order.iter().enumerate().for_each(|(to, &from)| inverse[from] = to as i64);
            b.grad(0)?.permute(&inverse)
        })
    }),
    samples,
)
.errors(|| {
    vec![
        error([plain(&[2, 3]), SampleArg::Ints(vec![0])], "each of the 2"),
        error([plain(&[2, 3]), SampleArg::Ints(vec![0, -2])], "each of the 2"),
        error([plain(&[2, 3]), SampleArg::Ints(vec![0, 2])], "out of range"),
    ]
})
.with(OpFlags::COMPLEX);
