//! `roll`
//!
//! Arguments:
//! - `shifts`: the number of positions by which elements move, for each of `dims`.
//! - `dims`: the dimensions; empty to roll the flattened tensor.

use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::index::geometry::{kept, wrong_value};
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::tensor::{IntoDims, IntoShape};
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Shifts the elements by `shifts` along `dims`, cyclically. With no dims and one shift, shifts the flattened tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1, 2, 3])?.roll(&[1], &[0])?.to_vec::<i32>()?, [3, 1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range; not one shift for each dimension.
    pub fn roll(&self, shifts: impl IntoShape, dims: impl IntoDims) -> Result<Tensor> {
        called("roll", &["self", "shifts", "dims"], || {
            let (shifts, dims) = (shifts.into_ints(), dims.into_dims());
            match (&shifts[..], &dims[..]) {
                (&[shift], []) => as_a_line(self, shift),
                (shifts, dims) => DEF.run(&[self.into(), Arg::Ints(shifts), Arg::Ints(dims)]),
            }
        })
    }
}

/// Rolls the flattened tensor.
fn as_a_line(t: &Tensor, shift: i64) -> Result<Tensor> {
    let line = t.reshape([-1])?;
    DEF.run(&[(&line).into(), Arg::Ints(&[shift]), Arg::Ints(&[0])])?.reshape_as_sizes(t.shape())
}

/// Handles a call by name with one shift and no dimensions; `None` for any other call. Kernels always receive dimensions.
pub(crate) fn flat(args: &Args<'_>) -> Option<Result<Tensor>> {
    match (args.op.name, args.values) {
        ("roll", &[Arg::Tensor(t), Arg::Ints(&[shift]), Arg::Ints([])]) => {
            Some(as_a_line(&Tensor::from_ref(t.clone()), shift))
        }
        _ => None,
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let (shifts, dims) = (args.ints(1)?, args.ints(2)?);
    if shifts.is_empty() {
        return Err(wrong_value(args, 1, "one shift or more".into()));
    }
    if shifts.len() != dims.len() {
        return Err(wrong_value(args, 1, format!("{} shifts, one for each dimension", dims.len())));
    }
    dims.iter().try_for_each(|&d| wrap_dim(args.name(), d, t.ndim()).map(|_| ()))?;
    Ok(Plan::one(t.dtype(), Dims::from_slice(t.sizes()), t.dtype(), kept(t, t.sizes())))
}

/// `roll`
pub static DEF: OpDef = OpDef::new(
    "roll(Tensor self, int[] shifts, int[] dims=[]) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| {
        let back: Vec<i64> = b.ints(1)?.iter().map(|s| s.wrapping_neg()).collect();
        g.set(0, || DEF.run(&[b.grad(0)?.into(), Arg::Ints(&back), b.arg(2)]))
    }),
    || {
        let call = |sizes: &[usize], shifts: &[i64], dims: &[i64]| {
            sample([plain(sizes), SampleArg::Ints(shifts.to_vec()), SampleArg::Ints(dims.to_vec())])
        };
        vec![
            call(&[5], &[2], &[0]),
            call(&[5], &[-7], &[-1]),
            call(&[2, 3], &[1, -1], &[0, 1]),
            call(&[2, 3, 4], &[1, 3], &[1, 1]),
            call(&[2, 3, 2, 2], &[1, 1], &[-1, 1]),
            call(&[2, 1, 2, 3, 2], &[-1, 1], &[3, 0]),
            call(&[0, 3], &[1], &[0]),
            call(&[], &[1], &[0]),
        ]
    },
)
.forms(Forms::Out)
.errors(|| {
    let ints = |v: &[i64]| SampleArg::Ints(v.to_vec());
    vec![
        error([plain(&[3]), ints(&[1]), ints(&[1])], "out of range"),
        error([plain(&[3]), ints(&[1, 2]), ints(&[0])], "one for each dimension"),
        error([plain(&[3]), ints(&[]), ints(&[])], "one shift or more"),
    ]
})
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
