//! `diff`
//!
//! Arguments:
//! - `n`: the number of differences taken one after another.

use crate::error::Result;
use crate::ops::composite::{cast, in_order_of, one, tensor, whole, widened};
use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::rules::{ordered, wrong_shape, wrong_value};
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// The differences of neighbours along `dim`: each element minus the previous one. For bool: whether they differ. For a
    /// difference of the first element too, prepend a slice with [`Tensor::cat`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1, 4, 9])?.diff(0)?.to_vec::<i32>()?, [3, 5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range; no dimension.
    pub fn diff(&self, dim: impl Int) -> Result<Tensor> {
        self.diff_with(1, dim)
    }

    /// [`Tensor::diff`] applied `n` times.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1, 4, 9, 16])?;
    /// assert_eq!(x.diff_with(2, 0)?.to_vec::<i32>()?, [2, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::diff`].
    pub fn diff_with(&self, n: usize, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), whole(n), Arg::Int(dim.to_i64())])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let dim = args.dim(2, t.ndim())?;
    let n = usize::try_from(args.int(1)?).map_err(|_| wrong_value(args, 1, "0 or more".to_string()))?;
    let mut sizes = Dims::from_slice(t.sizes());
    match sizes.get_mut(dim) {
        Some(size) => *size = size.saturating_sub(n),
        None => return Err(wrong_shape(args, 0, "of one dimension at least".to_string(), t.sizes())),
    }
    let strides = ordered(t, &sizes);
    Ok(Plan::one(t.dtype(), sizes, t.dtype(), strides))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, dim) = (tensor(args, 0)?, args.int(2)?);
    let n = args.int(1)?.clamp(0, t.dim(dim)? as i64);
    if n == 0 {
        return in_order_of(&t, t.copy()?);
    }
    // A single difference is rounded once anyway.
    let mut made = if n == 1 { t.clone() } else { widened(&t)? };
    for _ in 0..n {
        let rest = made.dim(dim)?.saturating_sub(1);
        let (before, after) = (made.narrow(dim, 0, rest)?, made.narrow(dim, 1, rest)?);
        made = if t.dtype() == DType::BOOL { after.logical_xor(&before)? } else { after.sub(&before)? };
    }
    in_order_of(&t, cast(made, t.dtype())?)
}

/// The adjoint of `diff`: the same op, negated for odd `n`, on the gradient padded with zeros.
fn gradient(grad: &Tensor, sizes: &[usize], n: i64, dim: i64) -> Result<Tensor> {
    if grad.elem_count() == 0 {
        return grad.new_zeros(sizes);
    }
    let dim = wrap_dim("diff", dim, sizes.len())?;
    let mut widths = vec![0; 2 * (sizes.len() - 1 - dim)];
    widths.extend([n, n]);
    let made = grad.constant_pad(&widths, 0)?.diff_with(n as usize, dim as i64)?;
    if n % 2 == 0 { Ok(made) } else { made.neg() }
}

/// `diff`
pub static DEF: OpDef = OpDef::new(
    "diff(Tensor self, int n=1, int dim=-1) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| g.set(0, || gradient(b.grad(0)?, b.sizes(0), b.int(1)?, b.int(2)?))),
    || {
        let call = |sizes: &[usize], n, dim| sample([plain(sizes), SampleArg::Int(n), SampleArg::Int(dim)]);
        vec![
            call(&[7], 1, 0),
            call(&[3, 4], 1, -1),
            call(&[3, 4], 2, 0),
            call(&[5, 3], 0, 0),
            call(&[2, 3, 4], 1, 1),
            call(&[2, 3, 2, 5], 3, -1),
            call(&[2, 3, 2, 2], 1, -3),
            call(&[2, 1, 2, 3, 2], 1, 3),
            call(&[3], 3, 0),
            call(&[2, 3], 5, 1),
            call(&[0, 3], 1, 0),
        ]
    },
)
.forms(Forms::Out)
.errors(|| {
    let call = |sizes: &[usize], n, dim, message| {
        error([plain(sizes), SampleArg::Int(n), SampleArg::Int(dim)], message)
    };
    vec![
        call(&[3], 1, 1, "out of range"),
        call(&[3], -1, 0, "0 or more"),
        call(&[], 1, 0, "of one dimension at least"),
    ]
})
.decomposed(|args| one(compose(args)));
