//! `take_along_dim`

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{in_format_of, one, tensor};
use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::index::geometry::{index as index_of, kept, wrong_shape};
use crate::ops::sample::{SampleArg, error, index, plain, sample};
use crate::tensor::Int;
use keyway_dispatcher::dims::{Dims, broadcast};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// Gathers the elements at `indices` along `dim`, as [`Tensor::gather`], with the other dimensions broadcast.
    /// [`Tensor::take`] indexes the flattened tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4], (2, 2))?;
    /// let at = Tensor::from_vec(vec![1i64], (1, 1))?;
    /// assert_eq!(a.take_along_dim(&at, 1)?.to_vec::<i32>()?, [2, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast; an index outside `0..size`.
    pub fn take_along_dim(&self, indices: &Tensor, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), indices.into(), Arg::Int(dim.to_i64())])
    }
}

/// The dimension, and the shapes to which the tensor and the index are broadcast, except along it. `None` for a call without a
/// dimension.
fn shapes(args: &Args<'_>) -> RuleResult<Option<(usize, Dims, Dims)>> {
    let (t, index) = (args.tensor(0)?.sizes(), args.tensor(1)?.sizes());
    if args.optional_int(2)?.is_none() {
        return Ok(None);
    }
    if t.len() != index.len() {
        return Err(wrong_shape(args, 1, format!("of {} dimensions", t.len()), index));
    }
    let dim = args.dim(2, t.len())?;
    let with = |sizes: &[usize], new: Option<usize>| {
        let mut sizes = Dims::from_slice(sizes);
        if let (Some(size), Some(new)) = (sizes.get_mut(dim), new) {
            *size = new;
        }
        sizes
    };
    let shape = broadcast(args.name(), &with(t, Some(1)), &with(index, Some(1)))?;
    Ok(Some((dim, with(&shape, t.get(dim).copied()), with(&shape, index.get(dim).copied()))))
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (t, index) = (args.tensor(0)?, index_of(args, 1)?);
    let (sizes, strides) = match shapes(args)? {
        None => (Dims::from_elem(index.numel(), 1), Strides::Contiguous),
        Some((_, _, sizes)) => {
            let strides = kept(t, &sizes);
            (sizes, strides)
        }
    };
    let mut plan = Plan::one(t.dtype(), sizes, t.dtype(), strides);
    plan.cast_index = 0b10;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, index) = (tensor(args, 0)?, tensor(args, 1)?);
    let Some((dim, own, sizes)) = shapes(args)? else {
        return t.reshape([-1])?.gather(0, &index.reshape([-1])?);
    };
    let spread =
        |x: &Tensor, sizes: &[usize]| if x.shape() == sizes { Ok(x.clone()) } else { x.expand(sizes) };
    in_format_of(&t, spread(&t, &own)?.gather(dim, &spread(&index, &sizes)?)?)
}

/// `take_along_dim`
pub static DEF: OpDef = OpDef::new(
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || {
        let call = |sizes: &[usize], at: &[usize], n, dim: Option<i64>| {
            sample([plain(sizes), index(at, n), dim.map_or(SampleArg::None, SampleArg::Int)])
        };
        vec![
            call(&[5], &[3], 5, Some(0)),
            call(&[3, 4], &[3, 2], 4, Some(1)),
            call(&[3, 4], &[1, 2], 4, Some(1)),
            call(&[1, 4], &[3, 2], 4, Some(-1)),
            call(&[2, 3, 1], &[1, 2, 4], 3, Some(1)),
            call(&[2, 3, 2, 2], &[2, 1, 1, 3], 2, Some(3)),
            call(&[2, 1, 2, 3, 2], &[1, 1, 2, 4, 2], 3, Some(-2)),
            call(&[], &[2], 1, None),
            call(&[3, 4], &[0, 4], 3, Some(0)),
            call(&[3, 4], &[2, 5], 12, None),
        ]
    },
)
.forms(Forms::Out)
.errors(|| vec![error([plain(&[3, 4]), index(&[2], 3), SampleArg::Int(0)], "of 2 dimensions")])
.decomposed(|args| one(compose(args)));
