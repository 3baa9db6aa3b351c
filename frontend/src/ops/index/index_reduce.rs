//! `index_reduce`
//!
//! Arguments:
//! - `reduce`: `prod`, `mean`, `amax` or `amin`.

use super::scatter_reduce::{Joined, Reduce, check};
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::forms;
use crate::ops::index::geometry::{slices, spread, with_dim};
use crate::ops::sample::{Fill, SampleArg, error, fixed, index, plain, sample, tensor as filled};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::op::{Arg, Args, Rule};

/// The supported reductions: all but the sum, for which there is [`Tensor::index_add`].
const REDUCTIONS: &[Reduce] = Reduce::ALL.split_at(1).1;

forms! {
    /// Reduces the slices of `source` into those at `index` along `dim`, on a copy of this tensor; see [`Tensor::index_add`]
    /// for the sum. The gradient of an extremum is divided among equal elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, tensor::Reduce};
    /// let a = Tensor::new([1, 2, 3])?;
    /// let (at, source) = (Tensor::new([0i64, 0])?, Tensor::new([10, 20])?);
    /// assert_eq!(a.index_reduce(0, &at, &source, Reduce::Prod)?.to_vec::<i32>()?, [200, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::index_add`]; [`Reduce::Sum`]; bool.
    pub fn index_reduce(&self, dim: impl Int, index: &Tensor, source: &Tensor, reduce: Reduce),
        defaults: [Arg::Bool(true)], in_place: index_reduce_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::{Tensor, tensor::Reduce};
        /// let a = Tensor::new([1, 2, 3])?;
        /// let (at, src) = (Tensor::new([2i64, 2])?, Tensor::new([10, 20])?);
        /// a.index_reduce_(0, &at, &src, Reduce::Prod)?;
        /// assert_eq!(a.to_vec::<i32>()?, [1, 2, 600]);
        /// # Ok(()) }
        /// ```
    };

    /// [`Tensor::index_reduce`]; without `include_self` the elements of this tensor are excluded from the reduction. Elements
    /// without an index are unchanged.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, tensor::Reduce};
    /// let a = Tensor::new([5, 2, 3])?;
    /// let (at, source) = (Tensor::new([0i64, 0])?, Tensor::new([10, 20])?);
    /// let made = a.index_reduce_with(0, &at, &source, Reduce::Mean, false)?;
    /// assert_eq!(made.to_vec::<i32>()?, [15, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn index_reduce_with(&self, dim: impl Int, index: &Tensor, source: &Tensor, reduce: Reduce, include_self: bool),
        in_place: index_reduce_with_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::{Tensor, tensor::Reduce};
        /// let a = Tensor::new([1, 2, 3])?;
        /// let (at, src) = (Tensor::new([2i64, 2])?, Tensor::new([10, 20])?);
        /// a.index_reduce_with_(0, &at, &src, Reduce::Mean, false)?;
        /// assert_eq!(a.to_vec::<i32>()?, [1, 2, 15]);
        /// # Ok(()) }
        /// ```
    };
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, index, source) = (tensor(args, 0)?, tensor(args, 2)?, tensor(args, 3)?);
    let (dim, sizes) = (args.dim(1, t.rank())?, Dims::from_slice(with_dim(source.shape())));
    let source = cast(source.reshape_as_sizes(&sizes)?, t.dtype())?;
    let at = spread(&index, dim, &sizes)?;
    t.scatter_reduce_with(dim as i64, &at, &source, Reduce::of(args, REDUCTIONS)?, args.bool(5)?)
}

/// The derivative of `scatter_reduce` with an index expanded to whole slices. Defined for the op and not by its
/// decomposition, so that an in-place call saves the values that it overwrites.
fn derivative(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let (own, source) = (b.input(0)?, b.input(3)?);
    let (dim, sizes) = (wrap_dim("index_reduce", b.int(1)?, own.rank())?, with_dim(b.sizes(3)));
    let joined = Joined {
        own,
        out: b.output(0)?,
        grad: b.grad(0)?.clone(),
        src: source.reshape_as_sizes(sizes)?,
        index: spread(&b.input(2)?, dim, sizes)?,
        dim: dim as i64,
        include: b.bool(5)?,
    };
    let [own, source] = joined.gradients(b.str(4)?, [g.needs(0), g.needs(3)])?;
    own.map_or(Ok(()), |own| g.set(0, || Ok(own)))?;
    source.map_or(Ok(()), |source| g.set(3, || source.reshape_as_sizes(b.sizes(3))))
}

/// `index_reduce`
pub static DEF: OpDef = OpDef::new(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, \
     bool include_self=True) -> Tensor",
    Rule::Structured(|args| {
        check(args, REDUCTIONS)?;
        slices(args, false)
    }),
    Derivative::Formula { saves: 0b1101, saves_outputs: 0b1, formula: derivative },
    || {
        let mut samples = Vec::new();
        for (nth, reduce) in REDUCTIONS.iter().enumerate() {
            let call = |sizes: &[usize], dim, at: &[usize], n, source: &[usize], include| {
                let elements = |sizes: &[usize]| filled(sizes, Fill::Distinct(-2.0, 2.0));
                let rest = [SampleArg::Str(reduce.name()), SampleArg::Bool(include)];
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
)
.forms(Forms::InPlace)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
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
})
.decomposed(|args| one(compose(args)));
