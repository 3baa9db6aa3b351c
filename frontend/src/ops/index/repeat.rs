//! `repeat`
//!
//! Arguments:
//! - `repeats`: the number of copies along each dimension.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::in_format_of;
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::index::geometry::wrong_value;
use crate::ops::rules::keeping;
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::tensor::IntoShape;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Repeats the tensor `repeats[d]` times along each dimension, as a copy. More repeats than dimensions prepend dimensions.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1, 2])?.repeat(2)?.to_vec::<i32>()?, [1, 2, 1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fewer repeats than dimensions, or a negative one.
    pub fn repeat(&self, repeats: impl IntoShape) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(&repeats.into_ints())])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    repeated(args, args.ints(1)?)
}

/// The plan of argument 0 repeated `repeats[d]` times along each dimension.
pub(super) fn repeated(args: &Args<'_>, repeats: &[i64]) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    if repeats.len() < t.ndim() || repeats.iter().any(|&r| r < 0) {
        return Err(wrong_value(
            args,
            1,
            format!("a number of 0 or more for each of the {} dimensions", t.ndim()),
        ));
    }
    let lead = repeats.len() - t.ndim();
    let mut sizes = Dims::new();
    for (d, &repeat) in repeats.iter().enumerate() {
        let size = if d < lead { 1 } else { t.sizes()[d - lead] };
        let overflow =
            || Error::SizeOverflow { op: args.name(), sizes: repeats.iter().map(|&r| r as usize).collect() };
        sizes.push(size.checked_mul(repeat as usize).ok_or_else(overflow)?);
    }
    // Also for tensors without elements the product of the other sizes must fit an i64, since strides need it.
    let product =
        sizes.iter().try_fold(1i64, |product, &size| product.checked_mul(i64::try_from(size.max(1)).ok()?));
    if product.is_none() {
        return Err(Error::SizeOverflow { op: args.name(), sizes: sizes.as_slice().into() });
    }
    Ok(keeping(t, t.dtype(), sizes, t.dtype()))
}

/// `repeat`
pub static DEF: OpDef = OpDef::new(
    "repeat(Tensor self, int[] repeats) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        formula: |b, g| {
            let (repeats, own) = (b.ints(1)?, b.sizes(0));
            let lead = repeats.len() - own.len();
            let pairs = repeats.iter().enumerate();
            let sizes: Vec<usize> =
                pairs.flat_map(|(d, &r)| [r as usize, if d < lead { 1 } else { own[d - lead] }]).collect();
            let dims: Vec<i64> = (0..repeats.len() as i64).map(|d| 2 * d).collect();
            g.set(0, || match dims.is_empty() {
                true => Ok(b.grad(0)?.clone()),
                false => {
                    let grad = b.grad(0)?;
                    let made = grad.reshape_as_sizes(&sizes)?.sum(&dims)?.reshape_as_sizes(own)?;
                    if lead == 0 { in_format_of(grad, made) } else { Ok(made) }
                }
            })
        },
    },
    || {
        let call =
            |sizes: &[usize], repeats: &[i64]| sample([plain(sizes), SampleArg::Ints(repeats.to_vec())]);
        vec![
            call(&[], &[]),
            call(&[], &[3]),
            call(&[3], &[2]),
            call(&[3], &[2, 2]),
            call(&[2, 3], &[1, 2]),
            call(&[2, 1, 3], &[2, 3, 1]),
            call(&[2, 1, 2, 2], &[1, 2, 1, 2]),
            call(&[2, 1, 2, 1, 2], &[1, 2, 1, 3, 1]),
            call(&[2, 3], &[0, 2]),
            call(&[0, 2], &[2, 2]),
        ]
    },
)
.forms(Forms::Out)
.errors(|| {
    vec![
        error([plain(&[2, 3]), SampleArg::Ints(vec![2])], "each of the 2 dimensions"),
        error([plain(&[2]), SampleArg::Ints(vec![-1])], "0 or more"),
        error([plain(&[2]), SampleArg::Ints(vec![1 << 40, 1 << 40])], "more elements or bytes than"),
        error([plain(&[0]), SampleArg::Ints(vec![1 << 40, 1 << 40, 1])], "more elements or bytes than"),
    ]
})
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
