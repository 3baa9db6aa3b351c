//! `take_along_dim`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::index::geometry::wrong_shape;
use crate::ops::sample::{SampleArg, error, index, plain, sample};
use keyway_dispatcher::dims::{Dims, broadcast};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Outputs, Rule};

impl Tensor {
    /// The elements at `indices` along `dim`, as [`Tensor::gather`], but with the other dimensions
    /// broadcast. No dim: of the elements in row-major order.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4], &[2, 2])?;
    /// let at = Tensor::from_vec(vec![1i64], &[1, 1])?;
    /// assert_eq!(a.take_along_dim(&at, Some(1))?.to_vec::<i32>()?, [2, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast; an index outside `0..size`.
    pub fn take_along_dim(&self, indices: &Tensor, dim: Option<i64>) -> Result<Tensor> {
        DEF.run(&[self.into(), indices.into(), Arg::optional(dim)])
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let t = Tensor::from_ref(args.tensor(0)?.clone());
    let index = Tensor::from_ref(args.tensor(1)?.clone());
    if args.optional_int(2)?.is_none() {
        let made = t.reshape(&[-1])?.gather(0, &index.reshape(&[-1])?)?;
        return Ok(Outputs::from_iter([made.into_ref()]));
    }
    if t.ndim() != index.ndim() {
        return Err(wrong_shape(args, 1, format!("of {} dimensions", t.ndim()), index.sizes()));
    }
    let dim = args.dim(2, t.ndim())?;
    let without = |sizes: &[usize]| {
        let mut sizes = Dims::from_slice(sizes);
        if let Some(size) = sizes.get_mut(dim) {
            *size = 1;
        }
        sizes
    };
    let shape = broadcast(args.name(), &without(t.sizes()), &without(index.sizes()))?;
    let spread = |x: &Tensor| {
        let mut sizes = shape.clone();
        if let Some(size) = sizes.get_mut(dim) {
            *size = x.sizes()[dim];
        }
        if x.sizes() == sizes.as_slice() { Ok(x.clone()) } else { x.expand(&sizes) }
    };
    Ok(Outputs::from_iter([spread(&t)?.gather(dim as i64, &spread(&index)?)?.into_ref()]))
}

/// `take_along_dim`
pub static DEF: OpDef = OpDef {
    schema: "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    rule: Rule::Host(compose),
    decomposition: None,
    derivative: Derivative::Composite,
    forms: Forms::Out,
    dtypes: Dtypes::ALL,
    samples: || {
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
    errors: || vec![error([plain(&[3, 4]), index(&[2], 3), SampleArg::Int(0)], "of 2 dimensions")],
    entry: Entry::new(),
};
