//! `stack`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::index::cat::list;
use crate::ops::index::geometry::{wrong_shape, wrong_value};
use crate::ops::sample::{SampleArg, error, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Outputs, Rule};

impl Tensor {
    /// Tensors of one shape side by side in a new dimension `dim`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_slice(&[1, 2])?;
    /// assert_eq!(Tensor::stack(&[&a, &a], 1)?.to_vec::<i32>()?, [1, 1, 2, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No tensor; tensors of different shapes.
    pub fn stack(tensors: &[&Tensor], dim: i64) -> Result<Tensor> {
        let list: Vec<_> = tensors.iter().map(|t| t.as_ref()).collect();
        DEF.run(&[Arg::Tensors(&list), Arg::Int(dim)])
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let list = args.tensors(0)?;
    let Some(first) = list.first() else { return Err(wrong_value(args, 0, "one tensor at least".into())) };
    let dim = args.dim(1, first.ndim() + 1)?;
    let mut sizes = Dims::from_slice(first.sizes());
    sizes.insert(dim, 1);
    let mut parts = Vec::with_capacity(list.len());
    for t in list {
        if t.sizes() != first.sizes() {
            let expected = format!("of shape {:?}, as the first is", first.sizes());
            return Err(wrong_shape(args, 0, expected, t.sizes()));
        }
        parts.push(Tensor::from_ref((*t).clone()).reshape_as_sizes(&sizes)?);
    }
    let parts: Vec<&Tensor> = parts.iter().collect();
    Ok(Outputs::from_iter([Tensor::cat(&parts, dim as i64)?.into_ref()]))
}

/// `stack`
pub static DEF: OpDef = OpDef {
    schema: "stack(Tensor[] tensors, int dim=0) -> Tensor",
    rule: Rule::Host(compose),
    decomposition: None,
    derivative: Derivative::Composite,
    forms: Forms::Out,
    dtypes: Dtypes::ALL,
    samples: || {
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
    errors: || {
        vec![
            error([list(&[]), SampleArg::Int(0)], "one tensor at least"),
            error([list(&[&[2], &[3]]), SampleArg::Int(0)], "as the first is"),
        ]
    },
    entry: Entry::new(),
};
