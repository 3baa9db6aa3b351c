//! `scatter_add`

use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::forms;
use crate::ops::index::geometry::wrong_value;
use crate::ops::index::scatter::{rule as scatter_rule, to_source};
use crate::ops::sample::{Fill, SampleArg, error, fixed, index, plain, sample};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

forms! {
    /// Adds the elements of `src` at `index` along `dim`, on a copy of this tensor: for two dimensions and `dim` 0,
    /// `out[index[i][j]][j] += src[i][j]`. The order of addition is that of `src`, whatever the number of threads.
    ///
    /// The CPU kernel adds up to 1024 addends per element sequentially in f32, with an error of at most `1024 * 2^-24` times
    /// the sum of their magnitudes; longer sums are accumulated in f64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// let at = Tensor::new([2i64, 2])?;
    /// assert_eq!(a.scatter_add(0, &at, &Tensor::new([10, 20])?)?.to_vec::<i32>()?, [1, 2, 33]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::scatter`].
    pub fn scatter_add(&self, dim: impl Int, index: &Tensor, src: &Tensor), in_place: scatter_add_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let a = Tensor::new([1, 2, 3])?;
        /// a.scatter_add_(0, &Tensor::new([2i64, 2])?, &Tensor::new([10, 20])?)?;
        /// assert_eq!(a.to_vec::<i32>()?, [1, 2, 33]);
        /// # Ok(()) }
        /// ```
    };
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    if !matches!(args.get(3), Arg::Tensor(_)) {
        return Err(wrong_value(args, 3, "a tensor".into()));
    }
    scatter_rule(args)
}

/// `scatter_add`
pub static DEF: OpDef = OpDef::new(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b100, |b, g| {
        g.set(0, || Ok(b.grad(0)?.clone()))?;
        g.set(3, || to_source(b.grad(0)?.gather(b.int(1)?, &b.input(2)?)?, b.sizes(3)))
    }),
    || {
        let call = |sizes: &[usize], dim, at: &[usize], n, src: &[usize]| {
            sample([plain(sizes), SampleArg::Int(dim), index(at, n), plain(src)])
        };
        vec![
            call(&[], 0, &[], 1, &[]),
            call(&[5], 0, &[8], 5, &[8]),
            call(&[3, 4], 0, &[5, 4], 3, &[6, 4]),
            call(&[3, 4], 1, &[2, 7], 4, &[2, 7]),
            call(&[2, 3, 4], -2, &[2, 5, 3], 3, &[2, 5, 4]),
            call(&[2, 3, 2, 2], 1, &[1, 4, 2, 2], 3, &[1, 4, 2, 2]),
            call(&[2, 1, 2, 3, 2], 3, &[2, 1, 1, 4, 2], 3, &[2, 1, 2, 4, 2]),
            call(&[3], 0, &[0], 3, &[0]),
        ]
    },
)
.forms(Forms::InPlace)
.errors(|| {
    let at = |v: f64| fixed(&[1], DType::I64, Fill::Values(vec![v]));
    vec![
        error([plain(&[3]), SampleArg::Int(0), at(-1.0), plain(&[1])], "index -1"),
        error([plain(&[3]), SampleArg::Int(0), at(0.0), SampleArg::Int(1)], "a tensor"),
    ]
})
.with(OpFlags::COMPLEX);
