//! `index_reduce`

use super::scatter_reduce::{REDUCTIONS, check};
use crate::error::Result;
use crate::ops::composite::{cast, decomposed, one, tensor};
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::index::geometry::{slices, spread, with_dim};
use crate::ops::sample::{Fill, SampleArg, error, fixed, index, plain, sample, tensor as filled};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::op::{Arg, Args, Part, Rule};

impl Tensor {
    /// This tensor with the slices of `source` joined to those at `index` along `dim`: their `prod`, `mean`, `amax` or `amin`; see
    /// [`Tensor::index_add`] for the sum. The mean of integers is rounded down. Of equal extremes each has its share of the
    /// gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// let (at, source) = (Tensor::new([0i64, 0])?, Tensor::new([10, 20])?);
    /// assert_eq!(a.index_reduce(0, &at, &source, "prod")?.to_vec::<i32>()?, [200, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::index_add`]; another `reduce` than these four; bool.
    pub fn index_reduce(&self, dim: i64, index: &Tensor, source: &Tensor, reduce: &str) -> Result<Tensor> {
        self.index_reduce_with(dim, index, source, reduce, true)
    }

    /// [`Tensor::index_reduce`], of the slices of `source` alone where `include_self` is false; what nothing is written to stays.
    ///
    /// # Errors
    /// The same.
    pub fn index_reduce_with(
        &self,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        reduce: &str,
        include_self: bool,
    ) -> Result<Tensor> {
        let include = Arg::Bool(include_self);
        DEF.run(&[self.into(), Arg::Int(dim), index.into(), source.into(), Arg::Str(reduce), include])
    }

    /// [`Tensor::index_reduce_with`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn index_reduce_with_(
        &self,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        reduce: &str,
        include_self: bool,
    ) -> Result<Tensor> {
        let include = Arg::Bool(include_self);
        DEF.run_in_place(&[
            self.into(),
            Arg::Int(dim),
            index.into(),
            source.into(),
            Arg::Str(reduce),
            include,
        ])
    }

    /// [`Tensor::index_reduce`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn index_reduce_(&self, dim: i64, index: &Tensor, source: &Tensor, reduce: &str) -> Result<Tensor> {
        self.index_reduce_with_(dim, index, source, reduce, true)
    }
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, index, source) = (tensor(args, 0)?, tensor(args, 2)?, tensor(args, 3)?);
    let (dim, sizes) = (args.dim(1, t.rank())?, Dims::from_slice(with_dim(source.shape())));
    let source = cast(source.reshape_as_sizes(&sizes)?, t.dtype())?;
    let at = spread(&index, dim, &sizes)?;
    t.scatter_reduce_with(dim as i64, &at, &source, args.str(4)?, args.bool(5)?)
}

/// `index_reduce`
pub static DEF: OpDef = OpDef {
    schema: "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    rule: Rule::Structured(|args| {
        check(args, &REDUCTIONS[1..])?;
        slices(args, false)
    }),
    decomposition: decomposed(|args| one(compose(args)), &[Part::new("scatter_reduce")]),
    derivative: Derivative::Composite,
    forms: Forms::InPlace,
    dtypes: Dtypes::NUMERIC,
    samples: || {
        let mut samples = Vec::new();
        for (nth, reduce) in REDUCTIONS[1..].iter().enumerate() {
            let call = |sizes: &[usize], dim, at: &[usize], n, source: &[usize], include| {
                let elements = |sizes: &[usize]| filled(sizes, Fill::Distinct(-2.0, 2.0));
                let rest = [SampleArg::Str(reduce), SampleArg::Bool(include)];
                let own = [elements(sizes), SampleArg::Int(dim), index(at, n), elements(source)];
                sample(own.into_iter().chain(rest))
            };
            let include = nth % 2 == 0;
            samples.extend([
                call(&[5], 0, &[8], 5, &[8], include),
                call(&[3, 4], 0, &[5], 3, &[5, 4], !include),
                call(&[3, 4], 1, &[6], 4, &[3, 6], include),
                call(&[2, 3, 4], 1, &[5], 3, &[2, 5, 4], !include),
                call(&[2, 3, 2, 2], -1, &[3], 2, &[2, 3, 2, 3], include),
                call(&[2, 1, 2, 3, 2], 3, &[4], 3, &[2, 1, 2, 4, 2], !include),
                call(&[3, 2], 0, &[0], 3, &[0, 2], include),
            ]);
        }
        samples
    },
    errors: || {
        let call = |at: f64, source: &[usize], reduce, message| {
            let at = fixed(&[1], DType::I64, Fill::Values(vec![at]));
            let rest = [SampleArg::Str(reduce), SampleArg::Bool(true)];
            error([plain(&[3]), SampleArg::Int(0), at, plain(source)].into_iter().chain(rest), message)
        };
        vec![
            call(3.0, &[1], "amax", "index 3"),
            call(0.0, &[2], "mean", "each of the 1 indices"),
            call(0.0, &[1], "sum", "`prod`"),
        ]
    },
    entry: Entry::new(),
};
