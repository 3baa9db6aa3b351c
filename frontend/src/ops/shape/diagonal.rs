//! `diagonal`
//!
//! Arguments:
//! - `dim1`: the first dimension of the matrices.
//! - `dim2`: the second dimension of the matrices.
//! - `offset`: the diagonal: 0 is the main one, positive ones are above it.

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};

impl Tensor {
    /// A view of the main diagonal of the first two dimensions, as the last dimension.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[1, 2], [3, 4]])?;
    /// assert_eq!(x.diagonal()?.to_vec::<i32>()?, [1, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fewer than two dimensions.
    pub fn diagonal(&self) -> Result<Tensor> {
        self.diagonal_with(0, 0, 1)
    }

    /// [`Tensor::diagonal`] of the dimensions `dim1` and `dim2`; `offset` is the number of diagonals above the main one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4], (2, 2))?;
    /// assert_eq!(a.diagonal()?.to_vec::<i32>()?, [1, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Dimensions out of range, or the same one twice.
    pub fn diagonal_with(&self, offset: impl Int, dim1: impl Int, dim2: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(offset.to_i64()), Arg::Int(dim1.to_i64()), Arg::Int(dim2.to_i64())])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<ViewSpec> {
    let t = args.tensor(0)?;
    let shift = args.int(1)?;
    let (a, b) = (args.dim(2, t.ndim())?, args.dim(3, t.ndim())?);
    if a == b || t.ndim() < 2 {
        return Err(Error::Value {
            op: args.name(),
            argument: "dim1, dim2",
            expected: format!("two different dimensions of {}", t.ndim()),
            got: format!("{}, {}", args.int(2)?, args.int(3)?),
        });
    }
    let (mut sizes, mut strides) = (Dims::from_slice(t.sizes()), Dims::from_slice(t.strides()));
    let start = usize::try_from(shift.unsigned_abs()).unwrap_or(usize::MAX);
    let (down, across) = if shift < 0 { (start, 0) } else { (0, start) };
    let length = sizes[a].saturating_sub(down).min(sizes[b].saturating_sub(across));
    let offset = t.offset() + if length > 0 { down * strides[a] + across * strides[b] } else { 0 };
    let stride = strides[a] + strides[b];
    for dim in [a.max(b), a.min(b)] {
        sizes.remove(dim);
        strides.remove(dim);
    }
    sizes.push(length);
    strides.push(stride);
    Ok(ViewSpec { offset, sizes, strides: Some(strides) })
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], offset, dim1, dim2| {
        sample([plain(sizes), SampleArg::Int(offset), SampleArg::Int(dim1), SampleArg::Int(dim2)])
    };
    vec![
        call(&[3, 3], 0, 0, 1),
        call(&[3, 4], 1, 0, 1),
        call(&[3, 4], -2, 0, 1),
        call(&[2, 3, 4], 0, -1, 0),
        call(&[2, 3, 4, 3], 1, 1, 3),
        call(&[2, 2, 1, 3, 2], -1, 3, 0),
        call(&[3, 3], 5, 0, 1),
        call(&[0, 3], 0, 0, 1),
    ]
}

/// `diagonal`
pub static DEF: OpDef = OpDef::new(
    "diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    Rule::View(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            super::placed(b.grad(0)?, b.sizes(0), |zeros| {
                zeros.diagonal_with(b.int(1)?, b.int(2)?, b.int(3)?)
            })
        })
    }),
    samples,
)
.errors(|| {
    vec![
        error(
            [plain(&[3, 3]), SampleArg::Int(0), SampleArg::Int(0), SampleArg::Int(-2)],
            "different dimensions",
        ),
        error([plain(&[3]), SampleArg::Int(0), SampleArg::Int(0), SampleArg::Int(1)], "out of range"),
    ]
})
.with(OpFlags::COMPLEX);
