//! `glu`

use super::glu_backward;
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, in_order_of, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules::{ordered, wrong_shape};
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// The gated linear unit: the first half of the last dimension times the sigmoid of the second half (Y. Dauphin and others,
    /// "Language modeling with gated convolutional networks", 2017).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([3.0f32, -2.0, 0.0, 0.0])?;
    /// assert_eq!(x.glu()?.to_vec::<f32>()?, [1.5, -1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a dimension of odd size; no dimension.
    pub fn glu(&self) -> Result<Tensor> {
        self.glu_with(-1)
    }

    /// [`Tensor::glu`] with dimension `dim` split into halves.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[3.0f32, -2.0], [0.0, 0.0]])?;
    /// assert_eq!(x.glu_with(0)?.to_vec2::<f32>()?, [[1.5, -1.0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a dimension out of range.
    pub fn glu_with(&self, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64())])
    }
}

/// The sizes of a half of tensor argument `i` along the dimension in argument `i + 1`.
///
/// # Errors
/// A dtype that is not a float; a dimension of odd size.
pub(super) fn half_sizes(args: &Args<'_>, i: usize) -> RuleResult<Dims> {
    let t = float_tensor(args, i)?;
    let dim = args.dim(i + 1, t.ndim())?;
    let mut sizes = Dims::from_slice(t.sizes());
    match sizes.get_mut(dim) {
        Some(size) if size.is_multiple_of(2) => *size /= 2,
        _ => {
            let expected = format!("of an even number of elements along dimension {dim}");
            return Err(wrong_shape(args, i, expected, t.sizes()));
        }
    }
    Ok(sizes)
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (t, sizes) = (float_tensor(args, 0)?, half_sizes(args, 0)?);
    let strides = ordered(t, &sizes);
    Ok(Plan::one(t.dtype(), sizes, t.dtype(), strides))
}

/// Splits dimension `dim` into halves.
pub(super) fn halves(t: &Tensor, dim: i64) -> Result<(Tensor, Tensor)> {
    let half = t.dim(dim)? / 2;
    Ok((t.narrow(dim, 0, half)?, t.narrow(dim, half, half)?))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let t = tensor(args, 0)?;
    let (own, gate) = halves(&t, args.int(1)?)?;
    let made = widened(&own)?.mul(&widened(&gate)?.sigmoid()?)?;
    in_order_of(&t, cast(made, t.dtype())?)
}

/// `glu`
pub static DEF: OpDef = OpDef::new(
    "glu(Tensor self, int dim=-1) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let x = b.input(0)?;
            if is_grad_enabled() {
                return glu_backward::by_tensor_ops(b.grad(0)?, &x, b.int(1)?);
            }
            glu_backward::DEF.run(&[b.grad(0)?.into(), (&x).into(), b.arg(1)])
        })
    }),
    || {
        let call = |sizes: &[usize], dim: i64| sample([plain(sizes), SampleArg::Int(dim)]);
        vec![
            call(&[6], 0),
            call(&[3, 4], -1),
            call(&[4, 3], 0),
            call(&[2, 4, 3], 1),
            call(&[2, 4, 2, 3], -3),
            call(&[2, 1, 2, 3, 2], 2),
            call(&[3, 0], 1),
        ]
    },
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let dim = |sizes: &[usize], dim: i64, message| error([plain(sizes), SampleArg::Int(dim)], message);
    vec![
        dim(&[3], 0, "an even number of elements"),
        dim(&[], 0, "an even number of elements"),
        dim(&[4], 1, "out of range"),
    ]
})
.decomposed(|args| one(compose(args)));
