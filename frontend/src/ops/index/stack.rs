//! `stack`

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::one;
use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::index::cat::list;
use crate::ops::index::geometry::{wrong_shape, wrong_value};
use crate::ops::sample::{SampleArg, error, sample};
use crate::tensor::{Int, refs};
use keyway_dispatcher::dims::{Dims, channels_last_strides, is_channels_last};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};
use keyway_dispatcher::tensor::TensorRef;
use std::borrow::Borrow;

impl Tensor {
    /// Stacks tensors of one shape along a new dimension `dim`. The result is channels_last if it stacks channels_last images
    /// of one sample each; stacked batches of images stay channels_last per batch.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2])?;
    /// assert_eq!(Tensor::stack(&[&a, &a], 1)?.to_vec::<i32>()?, [1, 1, 2, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No tensor; tensors of different shapes.
    pub fn stack<T: Borrow<Tensor>>(tensors: &[T], dim: impl Int) -> Result<Tensor> {
        DEF.run(&[Arg::Tensors(&refs(tensors)), Arg::Int(dim.to_i64())])
    }
}

/// Whether some of the tensors are channels_last batches that are stacked in front of the channels.
fn are_batches(list: &[&TensorRef], dim: usize) -> bool {
    let is_batch = |t: &&TensorRef| {
        t.ndim() > 3 && t.is_strided() && !t.is_contiguous() && is_channels_last(t.sizes(), t.strides())
    };
    dim <= 1 && list.iter().any(is_batch)
}

/// The strides of stacked batches of images, each of which is channels_last.
fn strides_of_batches(sizes: &[usize]) -> Dims {
    let mut strides = channels_last_strides(&sizes[1..]);
    let sample = strides[0];
    strides.insert(0, sizes[1] * sample);
    strides
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let list = args.tensors(0)?;
    let Some(first) = list.first() else { return Err(wrong_value(args, 0, "one tensor at least".into())) };
    let dim = args.dim(1, first.ndim() + 1)?;
    let mut sizes = Dims::from_slice(first.sizes());
    sizes.insert(dim, 1);
    let mut last = false;
    for t in list {
        if t.sizes() != first.sizes() {
            let expected = format!("of shape {:?}, as the first is", first.sizes());
            return Err(wrong_shape(args, 0, expected, t.sizes()));
        }
        // The stride of the new dimension is arbitrary, since its size is 1 here.
        let mut strides = Dims::from_slice(t.strides());
        if t.is_strided() && !t.is_contiguous() {
            strides.insert(dim, 0);
            last |= is_channels_last(&sizes, &strides);
        }
    }
    sizes[dim] = list.len();
    let dtype = args.promote(0b1)?;
    let strides = match () {
        () if last => Strides::exact(channels_last_strides(&sizes)),
        () if are_batches(list, dim) => Strides::exact(strides_of_batches(&sizes)),
        () => Strides::Contiguous,
    };
    let mut plan = Plan::one(dtype, sizes, dtype, strides);
    plan.cast = 0b1;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let list = args.tensors(0)?;
    let Some(first) = list.first() else {
        return Err(wrong_value(args, 0, "one tensor at least".into()).into());
    };
    let dim = args.dim(1, first.ndim() + 1)?;
    if are_batches(list, dim) {
        // Channels are moved to the last dimension, in which order the contiguous result is channels_last.
        let part = |t: &&TensorRef| Tensor::from_ref((*t).clone()).movedim(1, -1)?.unsqueeze(dim);
        let parts = list.iter().map(part).collect::<Result<Vec<_>>>()?;
        return Tensor::cat(&parts, dim)?.movedim(-1, 2);
    }
    let part = |t: &&TensorRef| Tensor::from_ref((*t).clone()).unsqueeze(dim);
    let parts = list.iter().map(part).collect::<Result<Vec<_>>>()?;
    Tensor::cat(&parts, dim)
}

/// `stack`
pub static DEF: OpDef = OpDef::new(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || {
        let call = |shapes: &[&[usize]], dim| sample([list(shapes), SampleArg::Int(dim)]);
        vec![
            call(&[&[], &[]], 0),
            call(&[&[3], &[3]], -1),
            call(&[&[2, 3], &[2, 3], &[2, 3]], 1),
            call(&[&[2, 3, 2], &[2, 3, 2]], -2),
            call(&[&[2, 1, 2, 2], &[2, 1, 2, 2]], 4),
            call(&[&[2, 1, 2, 1, 2], &[2, 1, 2, 1, 2]], 2),
            call(&[&[0]], 0),
        ]
    },
)
.forms(Forms::Out)
.errors(|| {
    vec![
        error([list(&[]), SampleArg::Int(0)], "one tensor at least"),
        error([list(&[&[2], &[3]]), SampleArg::Int(0)], "as the first is"),
    ]
})
.decomposed(|args| one(compose(args)));
