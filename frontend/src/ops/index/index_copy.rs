//! `index_copy`

use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::forms;
use crate::ops::index::geometry::slices;
use crate::ops::sample::{Fill, SampleArg, error, fixed, plain, sample};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Arg, Rule};

forms! {
    /// Replaces the slices at `index` along `dim` by those of `source`, or by a number, on a copy of this tensor. With
    /// duplicate indices the last one wins, and only its gradient with respect to `source` is correct.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// let at = Tensor::new([2i64])?;
    /// assert_eq!(a.index_copy(0, &at, &Tensor::new([9])?)?.to_vec::<i32>()?, [1, 2, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A source without one slice per index; an index outside `0..size`; another dtype.
    pub fn index_copy<'a>(&'a self, dim: impl Int, index: &'a Tensor, source: impl Into<Arg<'a>>),
        in_place: index_copy_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let a = Tensor::new([1, 2, 3])?;
        /// a.index_copy_(0, &Tensor::new([2i64])?, 9)?;
        /// assert_eq!(a.to_vec::<i32>()?, [1, 2, 9]);
        /// # Ok(()) }
        /// ```
        };
}

/// `index_copy`
pub static DEF: OpDef = OpDef::new(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    Rule::Structured(|args| slices(args, true)),
    Derivative::of_inputs(0b100, |b, g| {
        let (dim, index) = (b.int(1)?, b.input(2)?);
        g.set(0, || b.grad(0)?.index_copy(dim, &index, 0))?;
        g.set(3, || b.grad(0)?.index_select(dim, &index))
    }),
    || {
        let call = |sizes: &[usize], dim, at: &[usize], values: &[i32], source| {
            sample([
                plain(sizes),
                SampleArg::Int(dim),
                fixed(at, DType::I64, Fill::Values(values.iter().map(|&v| f64::from(v)).collect())),
                source,
            ])
        };
        vec![
            call(&[5], 0, &[3], &[4, 0, 2], plain(&[3])),
            call(&[3, 4], 0, &[2], &[2, 0], plain(&[2, 4])),
            call(&[3, 4], 1, &[3], &[3, 1, 0], plain(&[3, 3])),
            call(&[2, 3, 4], 1, &[2], &[1, 2], plain(&[2, 2, 4])),
            call(&[2, 3, 2, 2], -1, &[1], &[1], plain(&[2, 3, 2, 1])),
            call(&[2, 1, 2, 3, 2], 3, &[2], &[2, 0], plain(&[2, 1, 2, 2, 2])),
            call(&[3, 2], 0, &[0], &[0], plain(&[0, 2])),
            call(&[3, 4], 0, &[1], &[2], SampleArg::Float(0.5)),
        ]
    },
)
.forms(Forms::InPlace)
.errors(|| {
    let at = |v: f64| fixed(&[1], DType::I64, Fill::Values(vec![v]));
    vec![
        error([plain(&[3]), SampleArg::Int(0), at(3.0), plain(&[1])], "index 3"),
        error([plain(&[3]), SampleArg::Int(0), at(0.0), plain(&[2])], "each of the 1 indices"),
    ]
})
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
