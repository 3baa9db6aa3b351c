//! `index_add`
//!
//! Arguments:
//! - `alpha`: the factor of `source`.

use crate::error::Result;
use crate::ops::composite::{cast, one, tensor};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::index::geometry::{slices, spread, with_dim};
use crate::ops::rules::whole_factor;
use crate::ops::sample::{Fill, SampleArg, error, fixed, index, plain, sample};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::op::{Arg, Args, Rule};

impl Tensor {
    /// Adds the slices of `source` to those at `index` along `dim`, on a copy of this tensor. The order of addition is that of
    /// `source`, whatever the number of threads, and sums are as accurate as those of [`Tensor::scatter_add`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// let at = Tensor::new([0i64, 0])?;
    /// assert_eq!(a.index_add(0, &at, &Tensor::new([10, 20])?)?.to_vec::<i32>()?, [31, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A source without one slice per index; an index outside `0..size`; another dtype.
    pub fn index_add(&self, dim: impl Int, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64()), index.into(), source.into(), Arg::Int(1)])
    }

    /// [`Tensor::index_add`] of `alpha * source`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, at) = (Tensor::new([1, 2, 3])?, Tensor::new([2i64, 2])?);
    /// assert_eq!(a.index_add_with(0, &at, &Tensor::new([10, 20])?, 2)?.to_vec::<i32>()?, [1, 2, 63]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A fractional `alpha` for integers; those of [`Tensor::index_add`].
    pub fn index_add_with<'a>(
        &'a self,
        dim: impl Int,
        index: &'a Tensor,
        source: &'a Tensor,
        alpha: impl Into<Arg<'a>>,
    ) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64()), index.into(), source.into(), alpha.into()])
    }

    /// [`Tensor::index_add_with`] in place.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, at) = (Tensor::new([1, 2, 3])?, Tensor::new([2i64, 2])?);
    /// a.index_add_with_(0, &at, &Tensor::new([10, 20])?, 2)?;
    /// assert_eq!(a.to_vec::<i32>()?, [1, 2, 63]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn index_add_with_<'a>(
        &'a self,
        dim: impl Int,
        index: &'a Tensor,
        source: &'a Tensor,
        alpha: impl Into<Arg<'a>>,
    ) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), Arg::Int(dim.to_i64()), index.into(), source.into(), alpha.into()])
    }

    /// [`Tensor::index_add`] in place.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, at) = (Tensor::new([1, 2, 3])?, Tensor::new([2i64, 2])?);
    /// a.index_add_(0, &at, &Tensor::new([10, 20])?)?;
    /// assert_eq!(a.to_vec::<i32>()?, [1, 2, 33]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn index_add_(&self, dim: impl Int, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), Arg::Int(dim.to_i64()), index.into(), source.into(), Arg::Int(1)])
    }
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, index, source) = (tensor(args, 0)?, tensor(args, 2)?, tensor(args, 3)?);
    let (dim, sizes) = (args.dim(1, t.rank())?, Dims::from_slice(with_dim(source.shape())));
    let source = cast(source.reshape_as_sizes(&sizes)?, t.dtype())?;
    let alpha = match args.get(4) {
        // For bool only the truth value of `alpha` matters.
        _ if t.dtype() == DType::BOOL => Arg::Bool(args.float(4)? != 0.0),
        alpha => alpha,
    };
    let source = if matches!(alpha, Arg::Int(1)) { source } else { source.mul(alpha)? };
    t.scatter_add(dim as i64, &spread(&index, dim, &sizes)?, &source)
}

/// `index_add`
pub static DEF: OpDef = OpDef::new(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    Rule::Structured(|args| {
        whole_factor(args, 4, args.tensor(0)?.dtype())?;
        slices(args, false)
    }),
    Derivative::of_inputs(0b100, |b, g| {
        g.set(0, || Ok(b.grad(0)?.clone()))?;
        g.set(3, || {
            let grad = b.grad(0)?.index_select(b.int(1)?, &b.input(2)?)?;
            let grad = if matches!(b.arg(4), Arg::Int(1)) { grad } else { grad.mul(b.arg(4))? };
            grad.reshape_as_sizes(b.sizes(3))
        })
    }),
    || {
        let call = |sizes: &[usize], dim, at: &[usize], n, source: &[usize], alpha| {
            sample([plain(sizes), SampleArg::Int(dim), index(at, n), plain(source), SampleArg::Int(alpha)])
        };
        vec![
            call(&[5], 0, &[8], 5, &[8], 1),
            call(&[3, 4], 0, &[5], 3, &[5, 4], 2),
            call(&[3, 4], 1, &[6], 4, &[3, 6], 1),
            call(&[2, 3, 4], 1, &[5], 3, &[2, 5, 4], 1),
            call(&[2, 3, 2, 2], -1, &[3], 2, &[2, 3, 2, 3], 1),
            call(&[2, 1, 2, 3, 2], 3, &[4], 3, &[2, 1, 2, 4, 2], 2),
            call(&[3, 2], 0, &[0], 3, &[0, 2], 1),
        ]
    },
)
.forms(Forms::InPlace)
.errors(|| {
    let at = |v: f64| fixed(&[1], DType::I64, Fill::Values(vec![v]));
    vec![
        error([plain(&[3]), SampleArg::Int(0), at(3.0), plain(&[1]), SampleArg::Int(1)], "index 3"),
        error(
            [plain(&[3]), SampleArg::Int(0), at(0.0), plain(&[2]), SampleArg::Int(1)],
            "each of the 1 indices",
        ),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::COMPLEX);
