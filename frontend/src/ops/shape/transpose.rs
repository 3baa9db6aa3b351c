//! `transpose`
//!
//! Arguments:
//! - `dim0`: the first dimension.
//! - `dim1`: the second dimension.

use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};

impl Tensor {
    /// A view with two dimensions exchanged.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4, 5, 6], (2, 3))?;
    /// assert_eq!(a.transpose(0, 1)?.to_vec::<i32>()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range.
    #[doc(alias = "swapdims")]
    #[doc(alias = "mT")]
    pub fn transpose(&self, dim0: impl Int, dim1: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim0.to_i64()), Arg::Int(dim1.to_i64())])
    }

    /// The transpose of a matrix, as a view; tensors of lower rank are returned unchanged.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[1, 2], [3, 4]])?;
    /// assert_eq!(x.t()?.to_vec2::<i32>()?, [[1, 3], [2, 4]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of more than two dimensions.
    pub fn t(&self) -> Result<Tensor> {
        called("t", &["self"], || match self.rank() {
            0 | 1 => Ok(self.clone()),
            2 => self.transpose(0, 1),
            _ => Err(keyway_dispatcher::Error::Shape {
                op: "t",
                argument: "self",
                expected: "a matrix".to_string(),
                got: self.shape().into(),
            }
            .into()),
        })
    }
}

fn rule(args: &Args<'_>) -> RuleResult<ViewSpec> {
    let t = args.tensor(0)?;
    let (a, b) = (args.dim(1, t.ndim())?, args.dim(2, t.ndim())?);
    let (mut sizes, mut strides) = (Dims::new(), Dims::new());
    for (i, (&size, &stride)) in t.sizes().iter().zip(t.strides()).enumerate() {
        let (size, stride) = match i {
            _ if i == a => (t.sizes()[b], t.strides()[b]),
            _ if i == b => (t.sizes()[a], t.strides()[a]),
            _ => (size, stride),
        };
        sizes.push(size);
        strides.push(stride);
    }
    Ok(ViewSpec { offset: t.offset(), sizes, strides: Some(strides) })
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], a, b| sample([plain(sizes), SampleArg::Int(a), SampleArg::Int(b)]);
    vec![
        call(&[2, 3], 0, 1),
        call(&[2, 3, 4], 0, -1),
        call(&[5], 0, -1),
        call(&[2, 3, 2, 2], 1, 3),
        call(&[2, 1, 2, 3, 2], -1, 0),
        call(&[], 0, -1),
        call(&[0, 3], 0, 1),
    ]
}

/// `transpose`
pub static DEF: OpDef = OpDef::new(
    "transpose(Tensor self, int dim0, int dim1) -> Tensor",
    Rule::View(rule),
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.transpose(b.int(1)?, b.int(2)?))),
    samples,
)
.errors(|| vec![error([plain(&[2, 3]), SampleArg::Int(0), SampleArg::Int(2)], "out of range")])
.with(OpFlags::COMPLEX);
