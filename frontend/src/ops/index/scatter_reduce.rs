//! `scatter_reduce`
//!
//! Arguments:
//! - `reduce`: `sum`, `prod`, `mean`, `amax` or `amin`.

pub use crate::tensor::Reduce;

use super::segments::Segments;
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::composite::{cast, divided_by_count, in_format_of, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::forms;
use crate::ops::index::geometry::{with_dim, wrong_value};
use crate::ops::index::scatter::{rule as scatter_rule, to_source};
use crate::ops::rules::require;
use crate::ops::sample::{
    ErrorSample, Fill, Sample, SampleArg, error, fixed, index, plain, sample, tensor as filled,
};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Reduce {
    /// All reductions, the sum first.
    pub(super) const ALL: [Reduce; 5] = [Reduce::Sum, Reduce::Prod, Reduce::Mean, Reduce::Amax, Reduce::Amin];

    /// The reduction among `among` that the call names.
    pub(super) fn of(args: &Args<'_>, among: &[Reduce]) -> RuleResult<Reduce> {
        let name = args.str(4)?;
        among.iter().copied().find(|reduce| reduce.name() == name).ok_or_else(|| {
            let list: Vec<String> = among.iter().map(|reduce| format!("`{}`", reduce.name())).collect();
            wrong_value(args, 4, format!("one of {}", list.join(", ")))
        })
    }
}

forms! {
    /// Reduces the elements of `src` into those at `index` along `dim`, on a copy of this tensor. For two dimensions, `dim` 0
    /// and the sum: `out[index[i][j]][j] += src[i][j]`. The gradient of an extremum is divided among equal elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, tensor::Reduce};
    /// let a = Tensor::new([1, 2, 3])?;
    /// let (at, src) = (Tensor::new([2i64, 2])?, Tensor::new([10, 20])?);
    /// assert_eq!(a.scatter_reduce(0, &at, &src, Reduce::Amax)?.to_vec::<i32>()?, [1, 2, 20]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::scatter`]; bool.
    pub fn scatter_reduce(&self, dim: impl Int, index: &Tensor, src: &Tensor, reduce: Reduce),
        defaults: [Arg::Bool(true)], in_place: scatter_reduce_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::{Tensor, tensor::Reduce};
        /// let a = Tensor::new([1, 2, 3])?;
        /// let (at, src) = (Tensor::new([2i64, 2])?, Tensor::new([10, 20])?);
        /// a.scatter_reduce_(0, &at, &src, Reduce::Sum)?;
        /// assert_eq!(a.to_vec::<i32>()?, [1, 2, 33]);
        /// # Ok(()) }
        /// ```
    };

    /// [`Tensor::scatter_reduce`]; without `include_self` the elements of this tensor are excluded from the reduction. Elements
    /// without an index are unchanged.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, tensor::Reduce};
    /// let a = Tensor::new([100, 200, 300])?;
    /// let (at, src) = (Tensor::new([2i64, 2])?, Tensor::new([10, 20])?);
    /// let made = a.scatter_reduce_with(0, &at, &src, Reduce::Amax, false)?;
    /// assert_eq!(made.to_vec::<i32>()?, [100, 200, 20]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn scatter_reduce_with(&self, dim: impl Int, index: &Tensor, src: &Tensor, reduce: Reduce, include_self: bool),
        in_place: scatter_reduce_with_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::{Tensor, tensor::Reduce};
        /// let a = Tensor::new([1, 2, 3])?;
        /// let (at, src) = (Tensor::new([2i64, 2])?, Tensor::new([10, 20])?);
        /// a.scatter_reduce_with_(0, &at, &src, Reduce::Sum, false)?;
        /// assert_eq!(a.to_vec::<i32>()?, [1, 2, 30]);
        /// # Ok(()) }
        /// ```
    };
}

/// Refuses bool, and reductions that are not in `among`.
pub(super) fn check(args: &Args<'_>, among: &[Reduce]) -> RuleResult<()> {
    let dtype = args.tensor(0)?.dtype();
    require(args, 0, dtype, dtype != DType::BOOL, "a number dtype")?;
    args.bool(5)?;
    Reduce::of(args, among).map(drop)
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    check(args, &Reduce::ALL)?;
    if !matches!(args.get(3), Arg::Tensor(_)) {
        return Err(wrong_value(args, 3, "a tensor".into()));
    }
    scatter_rule(args)
}

/// The part of `src` that the index covers, in the index's shape.
fn reached(src: &Tensor, index: &Tensor) -> Result<Tensor> {
    if src.rank() == 0 {
        return src.expand(index.shape());
    }
    let mut part = src.clone();
    for (dim, &size) in with_dim(index.shape()).iter().enumerate() {
        part = part.narrow(dim, 0, size)?;
    }
    part.reshape_as_sizes(index.shape())
}

/// The number of addends of each mean, as i64; at least 1.
fn count(like: &Tensor, dim: i64, index: &Tensor, include: bool) -> Result<Tensor> {
    let start = Tensor::full_with(like.shape(), i64::from(include), (DType::I64, like.device()))?;
    let one = Tensor::ones_with((), (DType::I64, like.device()))?;
    start.scatter_add(dim, index, &one.expand(index.shape())?)?.maximum(1)
}

/// The mean. Integers are summed in i64, or in u64 for that dtype.
fn mean(t: &Tensor, dim: i64, index: &Tensor, src: &Tensor, include: bool) -> Result<Tensor> {
    let whole = t.dtype().is_integer() && t.dtype() != DType::U64;
    let wide = |t: &Tensor| if whole { cast(t.clone(), DType::I64) } else { widened(t) };
    let (own, src) = (wide(t)?, wide(src)?);
    let start = if include { own.clone() } else { own.scatter(dim, index, 0)? };
    let (sum, count) = (start.scatter_add(dim, index, &src)?, count(&own, dim, index, include)?);
    let count = cast(count, own.dtype())?;
    let made = if t.dtype().is_integer() { sum.floor_divide(&count)? } else { sum.div(&count)? };
    cast(made, t.dtype())
}

/// Reshapes a 0-d tensor to one dimension.
fn in_a_row(t: &Tensor) -> Result<Tensor> {
    if t.rank() == 0 { t.reshape([1]) } else { Ok(t.clone()) }
}

/// Segmented reduction: a running reduction of each segment, whose last element is written to its index.
fn joined(
    [t, index, src]: [&Tensor; 3],
    dim: i64,
    include: bool,
    join: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let own = in_a_row(&widened(t)?)?;
    let segments = Segments::of(&in_a_row(index)?, dim)?;
    let mut made = segments.running(&segments.sorted(&in_a_row(&widened(src)?)?)?, join)?;
    if include {
        made = join(&own.gather(dim, segments.places())?, &made)?;
    }
    // `scatter` writes the last of equal indices, which holds the reduction of the whole segment.
    cast(own.scatter(dim, segments.places(), &made)?.reshape_as_sizes(t.shape())?, t.dtype())
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, index, dim, include) = (tensor(args, 0)?, tensor(args, 2)?, args.int(1)?, args.bool(5)?);
    let src = reached(&cast(tensor(args, 3)?, t.dtype())?, &index)?;
    let made = match Reduce::of(args, &Reduce::ALL)? {
        Reduce::Sum if include => t.scatter_add(dim, &index, &src)?,
        Reduce::Sum => t.scatter(dim, &index, 0)?.scatter_add(dim, &index, &src)?,
        Reduce::Mean => mean(&t, dim, &index, &src, include)?,
        Reduce::Prod => joined([&t, &index, &src], dim, include, |a, b| a.mul(b))?,
        Reduce::Amax => joined([&t, &index, &src], dim, include, |a, b| a.maximum(b))?,
        _ => joined([&t, &index, &src], dim, include, |a, b| a.minimum(b))?,
    };
    in_format_of(&t, made)
}

/// The tensors of the derivatives of `scatter_reduce` and `index_reduce`, in the form of a `scatter_reduce` call.
pub(super) struct Joined {
    pub(super) own: Tensor,
    pub(super) out: Tensor,
    pub(super) grad: Tensor,
    pub(super) src: Tensor,
    pub(super) index: Tensor,
    pub(super) dim: i64,
    pub(super) include: bool,
}

impl Joined {
    /// The gradients of `self` and, in the shape of the index, of `src`; each is computed only if wanted.
    pub(super) fn gradients(&self, reduce: &str, wanted: [bool; 2]) -> Result<[Option<Tensor>; 2]> {
        match reduce {
            "sum" => self.spread(&self.grad, wanted),
            "mean" => {
                let count = count(&self.grad, self.dim, &self.index, self.include)?;
                self.spread(&divided_by_count(&self.grad, &count)?, wanted)
            }
            "prod" => self.of_product(wanted),
            _ => self.of_extremes(wanted),
        }
    }

    fn spread(&self, grad: &Tensor, [own, src]: [bool; 2]) -> Result<[Option<Tensor>; 2]> {
        let own = own.then(|| self.kept(grad.clone())).transpose()?;
        Ok([own, src.then(|| grad.gather(self.dim, &self.index)).transpose()?])
    }

    /// The gradient of `self`: without `include_self`, only for elements to which nothing was scattered.
    fn kept(&self, grad: Tensor) -> Result<Tensor> {
        if self.include { Ok(grad) } else { grad.scatter(self.dim, &self.index, 0) }
    }

    /// The gradient is divided among all elements that equal the result, as in `amax`.
    fn of_extremes(&self, wanted: [bool; 2]) -> Result<[Option<Tensor>; 2]> {
        let (dim, index) = (self.dim, &self.index);
        let own = self.kept(self.own.eq(&self.out)?)?;
        let hits = self.src.eq(&self.out.gather(dim, index)?)?;
        let count = own.to_dtype(DType::I64)?.scatter_add(dim, index, &hits.to_dtype(DType::I64)?)?;
        let share = divided_by_count(&self.grad, &count)?;
        let dtype = share.dtype();
        let of_own = wanted[0].then(|| self.kept(share.mul(&own.to_dtype(dtype)?)?)).transpose()?;
        let of_src = || share.gather(dim, index)?.mul(&hits.to_dtype(dtype)?);
        Ok([of_own, wanted[1].then(of_src).transpose()?])
    }

    /// Without a division, so that zeros have correct gradients of every order and no quotient overflows; f16 and bf16 in f32.
    fn of_product(&self, wanted: [bool; 2]) -> Result<[Option<Tensor>; 2]> {
        let (dim, include) = (self.dim, self.include);
        let (row, dtype) = (in_a_row(&self.index)?, self.grad.dtype());
        let segments = Segments::of(&row, dim)?;
        let own = in_a_row(&widened(&self.own)?)?;
        let sorted = segments.sorted(&in_a_row(&widened(&self.src)?)?)?;
        let grad = in_a_row(&widened(&self.grad)?)?;
        let of_own = || {
            let made = if include {
                let running = segments.running(&sorted, |a, b| a.mul(b))?;
                grad.mul(&segments.written(&own.ones_like()?, &running)?)?
            } else {
                grad.scatter(dim, &row, 0)?
            };
            cast(made, dtype)?.reshape_as_sizes(self.own.shape())
        };
        let of_src = || {
            let mut made = segments.product_of_others(&sorted)?.mul(&grad.gather(dim, segments.places())?)?;
            if include {
                made = made.mul(&own.gather(dim, segments.places())?)?;
            }
            cast(segments.back(&made)?, dtype)?.reshape_as_sizes(self.index.shape())
        };
        Ok([wanted[0].then(of_own).transpose()?, wanted[1].then(of_src).transpose()?])
    }
}

fn derivative(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let (reduce, index) = (b.str(4)?, b.input(2)?);
    let joined = Joined {
        own: b.input(0)?,
        out: b.output(0)?,
        grad: b.grad(0)?.clone(),
        src: reached(&b.input(3)?, &index)?,
        index,
        dim: b.int(1)?,
        include: b.bool(5)?,
    };
    let [own, src] = joined.gradients(reduce, [g.needs(0), g.needs(3)])?;
    own.map_or(Ok(()), |own| g.set(0, || Ok(own)))?;
    src.map_or(Ok(()), |src| g.set(3, || to_source(src, b.sizes(3))))
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dim, at: &[usize], n, src: &[usize], reduce, include| {
        let elements = |sizes: &[usize]| filled(sizes, Fill::Distinct(-2.0, 2.0));
        let rest = [SampleArg::Str(reduce), SampleArg::Bool(include)];
        sample([elements(sizes), SampleArg::Int(dim), index(at, n), elements(src)].into_iter().chain(rest))
    };
    let mut samples = Vec::new();
    for (nth, reduce) in Reduce::ALL.into_iter().map(Reduce::name).enumerate() {
        let include = nth % 2 == 0;
        samples.extend([
            call(&[5], 0, &[8], 5, &[8], reduce, include),
            call(&[5], 0, &[8], 5, &[8], reduce, !include),
            call(&[3, 4], 0, &[5, 4], 3, &[6, 4], reduce, include),
            call(&[3, 4], 1, &[2, 7], 4, &[2, 7], reduce, !include),
            call(&[2, 3, 4], -2, &[2, 5, 3], 3, &[2, 5, 4], reduce, include),
            call(&[2, 3, 2, 2], 1, &[1, 4, 2, 2], 3, &[1, 4, 2, 2], reduce, !include),
            call(&[2, 1, 2, 3, 2], 3, &[2, 1, 1, 4, 2], 3, &[2, 1, 2, 4, 2], reduce, include),
            // Both indices are equal.
            Sample { smooth: !reduce.starts_with('a'), ..call(&[], 0, &[], 1, &[], reduce, include) },
            call(&[3], 0, &[0], 3, &[0], reduce, !include),
        ]);
    }
    // Ties, and several zeros at one index.
    let same = |sizes: &[usize]| filled(sizes, Fill::Values(vec![0.0, 2.0, 0.0, -1.0, 2.0]));
    for (reduce, smooth) in [("amax", false), ("amin", false), ("prod", true)] {
        let rest = [SampleArg::Str(reduce), SampleArg::Bool(true)];
        let args = [same(&[3]), SampleArg::Int(0), index(&[9], 3), same(&[9])].into_iter().chain(rest);
        samples.push(Sample { smooth, ..sample(args) });
    }
    samples
}

fn errors() -> Vec<ErrorSample> {
    let at = |v: f64| fixed(&[1], DType::I64, Fill::Values(vec![v]));
    let call = |t, at, src, reduce, message| {
        error([t, SampleArg::Int(0), at, src, SampleArg::Str(reduce), SampleArg::Bool(true)], message)
    };
    let truth = || fixed(&[1], DType::BOOL, Fill::Values(vec![1.0]));
    vec![
        call(plain(&[3]), at(-1.0), plain(&[1]), "sum", "index -1"),
        call(plain(&[3]), at(3.0), plain(&[1]), "prod", "index 3"),
        call(plain(&[3]), at(0.0), SampleArg::Int(1), "sum", "a tensor"),
        call(plain(&[3]), at(0.0), plain(&[1]), "median", "`amin`"),
        call(plain(&[3]), index(&[2], 3), plain(&[1]), "mean", "as large as the index"),
        call(truth(), at(0.0), truth(), "sum", "a number dtype"),
    ]
}

/// `scatter_reduce`
pub static DEF: OpDef = OpDef::new(
    "scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, \
     bool include_self=True) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b1101, saves_outputs: 0b1, formula: derivative },
    samples,
)
.forms(Forms::InPlace)
.dtypes(Dtypes::NUMERIC)
.errors(errors)
.decomposed(|args| one(compose(args)));
