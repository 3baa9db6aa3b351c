//! `cat`

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::one;
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::index::geometry::{piece, wrong_shape, wrong_value};
use crate::ops::sample::{ErrorSample, Fill, Role, Sample, SampleArg, TensorSample, error, sample};
use crate::tensor::{Int, refs};
use keyway_dispatcher::dims::{Dims, channels_last_strides, contiguous_strides, wrap_dim};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};
use keyway_dispatcher::tensor::Images;
use std::borrow::Borrow;

impl Tensor {
    /// Concatenates tensors along `dim`, promoted. The result is channels_last if one of them is.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1, 2])?, Tensor::new([3])?);
    /// assert_eq!(Tensor::cat(&[&a, &b], 0)?.to_vec::<i32>()?, [1, 2, 3]);
    /// assert_eq!(Tensor::cat(&vec![a, b], 0)?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No tensor; tensors whose sizes differ in another dimension than `dim`, or 0-d ones.
    #[doc(alias = "concat")]
    #[doc(alias = "concatenate")]
    pub fn cat<T: Borrow<Tensor>>(tensors: &[T], dim: impl Int) -> Result<Tensor> {
        DEF.run(&[Arg::Tensors(&refs(tensors)), Arg::Int(dim.to_i64())])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let list = args.tensors(0)?;
    let Some(first) = list.first() else { return Err(wrong_value(args, 0, "one tensor at least".into())) };
    if first.ndim() == 0 {
        return Err(wrong_shape(args, 0, "of one dimension at least; `stack` joins 0-d tensors".into(), &[]));
    }
    let dim = args.dim(1, first.ndim())?;
    let mut sizes = Dims::from_slice(first.sizes());
    let mut images = Images::default();
    images.add(first);
    for t in &list[1..] {
        let fits = t.ndim() == sizes.len() && (0..sizes.len()).all(|d| d == dim || t.sizes()[d] == sizes[d]);
        if !fits {
            let expected = format!("of shape {:?} but for dimension {dim}, as the first is", first.sizes());
            return Err(wrong_shape(args, 0, expected, t.sizes()));
        }
        let overflow = || Error::SizeOverflow { op: args.name(), sizes: t.sizes().into() };
        sizes[dim] = sizes[dim].checked_add(t.sizes()[dim]).ok_or_else(overflow)?;
        images.add(t);
    }
    let dtype = args.promote(0b1)?;
    let strides = if images.are_channels_last() {
        Strides::exact(channels_last_strides(&sizes))
    } else {
        Strides::Contiguous
    };
    let mut plan = Plan::one(dtype, sizes, dtype, strides);
    plan.cast = 0b1;
    Ok(plan)
}

/// The list argument of a sample.
pub(super) fn list(shapes: &[&[usize]]) -> SampleArg {
    let one =
        |s: &&[usize]| TensorSample { sizes: s.to_vec(), fill: Fill::Uniform(-2.0, 2.0), role: Role::Tested };
    SampleArg::Tensors(shapes.iter().map(one).collect())
}

fn samples() -> Vec<Sample> {
    let call = |shapes: &[&[usize]], dim| sample([list(shapes), SampleArg::Int(dim)]);
    vec![
        call(&[&[3]], 0),
        call(&[&[3], &[2], &[0]], 0),
        call(&[&[2, 3], &[2, 1]], -1),
        call(&[&[2, 3], &[1, 3]], 0),
        call(&[&[2, 1, 4], &[2, 3, 4], &[2, 2, 4]], 1),
        call(&[&[2, 3, 2, 2], &[1, 3, 2, 2]], 0),
        call(&[&[2, 1, 2, 1, 2], &[2, 1, 2, 3, 2]], -2),
    ]
}

fn errors() -> Vec<ErrorSample> {
    vec![
        error([list(&[]), SampleArg::Int(0)], "one tensor at least"),
        error([list(&[&[2, 3], &[2, 4]]), SampleArg::Int(0)], "but for dimension 0"),
        error([list(&[&[]]), SampleArg::Int(0)], "`stack`"),
        error([list(&[&[2]]), SampleArg::Int(1)], "out of range"),
    ]
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (list, plan) = (args.tensors(0)?, rule(args)?);
    let spec = &plan.outputs[0];
    let strides = match &spec.strides {
        Strides::Exact(strides) => Dims::clone(strides),
        _ => contiguous_strides(&spec.sizes),
    };
    let made = Tensor::uninit_strided(&spec.sizes, &strides, (spec.dtype, list[0].device()))?;
    let dim = args.dim(1, spec.sizes.len())?;
    let mut start = 0;
    for t in list {
        let size = t.sizes()[dim];
        made.narrow(dim, start, size)?.copy_(&Tensor::from_ref((*t).clone()))?;
        start += size as i64;
    }
    Ok(made)
}

/// `cat`
pub static DEF: OpDef = OpDef::new(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        formula: |b, g| {
            let parts = b.list_sizes(0);
            let grad = b.grad(0)?;
            let dim = wrap_dim("cat", b.int(1)?, grad.rank())?;
            let mut start = 0;
            for (k, sizes) in parts.iter().enumerate() {
                g.set_list_item(0, k, || piece(grad, dim, start, sizes[dim]))?;
                start += sizes[dim];
            }
            Ok(())
        },
    },
    samples,
)
.forms(Forms::Out)
.errors(errors)
.decomposed(|args| one(compose(args)))
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
