//! `expand`
//!
//! Arguments:
//! - `size`: the sizes of the result; -1 leaves a size unchanged.

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::IntoShape;
use keyway_dispatcher::dims::{Dims, expanded_strides};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Rule, ViewSpec};

impl Tensor {
    /// A view in which dimensions of size 1 are expanded to the given sizes (stride 0), without a copy.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2], (2, 1))?;
    /// assert_eq!(a.expand((2, 3))?.to_vec::<i32>()?, [1, 1, 1, 2, 2, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension whose size is neither 1 nor the requested size.
    #[doc(alias = "broadcast_left")]
    #[doc(alias = "broadcast_as")]
    pub fn expand(&self, shape: impl IntoShape) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(&shape.into_ints())])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<ViewSpec> {
    let t = args.tensor(0)?;
    let given = args.ints(1)?;
    let wrong = || Error::Value {
        op: "expand",
        argument: "size",
        expected: format!("sizes that {:?} can be repeated to", t.sizes()),
        got: format!("{given:?}"),
    };
    if given.len() < t.ndim() {
        return Err(wrong());
    }
    let lead = given.len() - t.ndim();
    let mut sizes = Dims::new();
    for (i, &size) in given.iter().enumerate() {
        let own = if i >= lead { Some(t.sizes()[i - lead]) } else { None };
        sizes.push(match (own, usize::try_from(size)) {
            (Some(own), Err(_)) if size == -1 => own,
            (None, Ok(size)) => size,
            (Some(own), Ok(size)) if own == size || own == 1 => size,
            _ => return Err(wrong()),
        });
    }
    let strides = expanded_strides(t.sizes(), t.strides(), &sizes);
    Ok(ViewSpec { offset: t.offset(), sizes, strides: Some(strides) })
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], to: &[i64]| sample([plain(sizes), SampleArg::Ints(to.to_vec())]);
    vec![
        call(&[3, 1], &[3, 4]),
        call(&[3], &[2, 3]),
        call(&[1], &[0]),
        call(&[2, 1], &[-1, 3]),
        call(&[2, 1, 3], &[2, 2, 3]),
        call(&[2, 1, 1, 2], &[-1, 3, -1, 2]),
        call(&[1, 2, 1, 2], &[2, 1, 2, 3, 2]),
        call(&[2, 1, 1, 2, 1], &[2, 1, 3, 2, 2]),
        call(&[], &[2]),
    ]
}

/// `expand`
pub static DEF: OpDef = OpDef::new(
    "expand(Tensor self, int[] size) -> Tensor",
    Rule::View(rule),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        // The engine sums the gradient over the expanded dimensions when it reduces it to the argument's shape.
        formula: |b, g| g.set(0, || Ok(b.grad(0)?.clone())),
    },
    samples,
)
.errors(|| vec![error([plain(&[3]), SampleArg::Ints(vec![4])], "repeated")])
.with(OpFlags::COMPLEX);
