//! `index_select`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::index::geometry::{index as index_of, kept, spread, with_dim, wrong_shape, zeros};
use crate::ops::sample::{Fill, SampleArg, error, fixed, index, plain, sample};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Selects the slices at the one-dimensional `index` along `dim`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1, 2, 3, 4], (2, 2))?;
    /// let at = Tensor::new([1i64, 1])?;
    /// assert_eq!(a.index_select(0, &at)?.to_vec::<i32>()?, [3, 4, 3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An index tensor of more than one dimension; an index outside `0..size`.
    pub fn index_select(&self, dim: impl Int, index: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64()), index.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (t, index) = (args.tensor(0)?, index_of(args, 2)?);
    let dim = args.dim(1, t.ndim())?;
    if index.ndim() > 1 || (t.ndim() == 0 && index.numel() != 1) {
        let expected = if t.ndim() == 0 { "of one element for a 0-d tensor" } else { "of one dimension" };
        return Err(wrong_shape(args, 2, expected.into(), index.sizes()));
    }
    let mut sizes = Dims::from_slice(t.sizes());
    if let Some(size) = sizes.get_mut(dim) {
        *size = index.numel();
    }
    let strides = kept(t, &sizes);
    let mut plan = Plan::one(t.dtype(), sizes, t.dtype(), strides);
    plan.cast_index = 0b100;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, index) = (tensor(args, 0)?, tensor(args, 2)?);
    let dim = args.dim(1, t.rank())?;
    let mut sizes = Dims::from_slice(with_dim(t.shape()));
    sizes[dim] = index.elem_count();
    let made = t.gather(dim, &spread(&index, dim, &sizes)?)?;
    if t.rank() == 0 { made.reshape_as_sizes(&[]) } else { Ok(made) }
}

/// `index_select`
pub static DEF: OpDef = OpDef::new(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0b100,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || {
                let (dim, index) = (b.int(1)?, b.input(2)?);
                if let Some(grad) = b.moved_back(0, |whole| whole.index_select(dim, &index))? {
                    return Ok(grad);
                }
                zeros(b.grad(0)?, b.sizes(0))?.index_add(dim, &index, &b.grad(0)?.to_strided()?)
            })
        },
    },
    || {
        let call =
            |sizes: &[usize], dim, at: &[usize], n| sample([plain(sizes), SampleArg::Int(dim), index(at, n)]);
        vec![
            call(&[], 0, &[], 1),
            call(&[5], 0, &[7], 5),
            call(&[3, 4], 0, &[5], 3),
            call(&[3, 4], 1, &[2], 4),
            call(&[2, 3, 4], -2, &[4], 3),
            call(&[2, 3, 2, 2], 0, &[3], 2),
            call(&[2, 1, 2, 3, 2], -2, &[4], 3),
            call(&[3, 4], 0, &[0], 3),
        ]
    },
)
.forms(Forms::Out)
.errors(|| {
    let at = |v: f64| fixed(&[1], DType::I64, Fill::Values(vec![v]));
    vec![
        error([plain(&[3, 2]), SampleArg::Int(0), at(3.0)], "index 3"),
        error([plain(&[3, 2]), SampleArg::Int(0), index(&[1, 1], 3)], "one dimension"),
        error([plain(&[3, 2]), SampleArg::Int(2), at(0.0)], "out of range"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
