//! `scatter`

use crate::error::Result;
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::forms;
use crate::ops::index::geometry::{along, kept, same_dtype, with_dim, wrong_shape};
use crate::ops::sample::{Fill, SampleArg, error, fixed, index, plain, sample};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

forms! {
    /// Replaces the elements at `index` along `dim` by those of `src`, a tensor or a number, on a copy of this tensor: for two
    /// dimensions and `dim` 0, `out[index[i][j]][j] = src[i][j]`. With duplicate indices the last one wins, and only its
    /// gradient with respect to `src` is correct.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// assert_eq!(a.scatter(0, &Tensor::new([2i64, 0])?, 9)?.to_vec::<i32>()?, [9, 2, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An index tensor that is larger than `src`, or than this one in another dimension; an index outside
    /// `0..size`; a `src` of another dtype.
    pub fn scatter<'a>(&'a self, dim: impl Int, index: &'a Tensor, src: impl Into<Arg<'a>>), in_place: scatter_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let a = Tensor::new([1, 2, 3])?;
        /// a.scatter_(0, &Tensor::new([2i64, 0])?, 9)?;
        /// assert_eq!(a.to_vec::<i32>()?, [9, 2, 9]);
        /// # Ok(()) }
        /// ```
    };
}

/// The rule, shared with `scatter_add`.
pub(super) fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    along(args)?;
    let (t, index) = (args.tensor(0)?, args.tensor(2)?);
    same_dtype(args, 3)?;
    if let Arg::Tensor(src) = args.get(3) {
        let (own, given) = (with_dim(index.sizes()), src.sizes());
        let fits = own.len() == given.len() && own.iter().zip(given).all(|(i, s)| i <= s);
        if src.ndim() > 0 && !fits {
            return Err(wrong_shape(args, 3, format!("at least as large as the index, {own:?}"), given));
        }
    }
    let mut plan = Plan::one(t.dtype(), Dims::from_slice(t.sizes()), t.dtype(), kept(t, t.sizes()));
    plan.cast = 0b1000;
    plan.cast_index = 0b100;
    plan.alias = true;
    Ok(plan)
}

/// Pads a gradient in the shape of the index with zeros to the shape of `src`, which may be larger: elements beyond the index
/// were not read.
pub(super) fn to_source(grad: Tensor, sizes: &[usize]) -> Result<Tensor> {
    if grad.rank() != sizes.len() || grad.shape() == sizes {
        return Ok(grad);
    }
    let widths: Vec<i64> =
        grad.shape().iter().zip(sizes).rev().flat_map(|(&g, &s)| [0, s as i64 - g as i64]).collect();
    grad.constant_pad(&widths, 0)
}

/// `scatter`
pub static DEF: OpDef = OpDef::new(
    "scatter(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b100, |b, g| {
        let (dim, index) = (b.int(1)?, b.input(2)?);
        g.set(0, || b.grad(0)?.scatter(dim, &index, 0))?;
        g.set(3, || to_source(b.grad(0)?.gather(dim, &index)?, b.sizes(3)))
    }),
    || {
        let call = |sizes: &[usize], dim, at: &[usize], values: &[i32], src| {
            sample([
                plain(sizes),
                SampleArg::Int(dim),
                fixed(at, DType::I64, Fill::Values(values.iter().map(|&v| f64::from(v)).collect())),
                src,
            ])
        };
        vec![
            call(&[], 0, &[], &[0], plain(&[])),
            call(&[5], 0, &[3], &[4, 0, 2], plain(&[3])),
            call(&[5], 0, &[3], &[4, 0, 2], plain(&[4])),
            call(&[3, 4], 0, &[2, 4], &[1, 0, 2, 2, 0, 1, 1, 0], plain(&[2, 4])),
            call(&[3, 4], 1, &[3, 2], &[1, 3], plain(&[3, 2])),
            call(&[2, 3, 2], 1, &[2, 2, 2], &[0, 1, 2, 0], plain(&[2, 3, 2])),
            call(&[1, 2, 3, 2], 2, &[1, 2, 1, 2], &[0, 2], plain(&[1, 2, 1, 2])),
            call(&[1, 2, 1, 3, 2], -2, &[1, 1, 1, 1, 2], &[2, 0], plain(&[1, 1, 1, 1, 2])),
            call(&[5], 0, &[2], &[4, 1], SampleArg::Float(1.5)),
            call(&[5], 0, &[0], &[0], plain(&[0])),
        ]
    },
)
.forms(Forms::InPlace)
.errors(|| {
    let at = |v: f64| fixed(&[1], DType::I64, Fill::Values(vec![v]));
    vec![
        error([plain(&[3]), SampleArg::Int(0), at(3.0), plain(&[1])], "index 3"),
        error([plain(&[3]), SampleArg::Int(0), index(&[2], 3), plain(&[1])], "as large as the index"),
        error([plain(&[3]), SampleArg::Int(1), at(0.0), plain(&[1])], "out of range"),
        error(
            [fixed(&[3], DType::I8, Fill::Index(3)), SampleArg::Int(0), at(0.0), SampleArg::Int(300)],
            "a number that i8 holds",
        ),
    ]
})
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
