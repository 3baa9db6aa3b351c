//! `add`

use crate::error::{Result, called};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{
    ErrorSample, Fill, PAIRS, Sample, SampleArg, broadcast_errors, error, fixed, plain, sample,
};
use crate::ops::{forms, rules};
use crate::{DType, Tensor};
use keyway_dispatcher::op::Arg;

forms! {
    /// `self + other`, broadcast and promoted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(a.add(10.0)?.to_vec::<f32>()?, [11.0, 12.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    #[doc(alias = "broadcast_add")]
    pub fn add<'a>(&'a self, other: impl Into<Arg<'a>>), defaults: [Arg::Int(1)], out: add_out;

    /// `self + alpha * other`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(a.add_with(&a, 10)?.to_vec::<f32>()?, [11.0, 22.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::add`](Self::add); a fractional `alpha` for integer operands.
    pub fn add_with<'a>(&'a self, other: impl Into<Arg<'a>>, alpha: impl Into<Arg<'a>>);
}

impl Tensor {
    /// `self = add(self, other)`: [`Tensor::add`] in place. Returns `self`. A sparse `other` is added at the
    /// coordinates that it stores; nothing else is read or written.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// a.add_(10.0)?;
    /// assert_eq!(a.to_vec::<f32>()?, [11.0, 12.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of the functional form; a result of a shape or dtype that `self` cannot hold.
    pub fn add_<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        in_place(&DEF, self, other.into(), Arg::Int(1), 1)
    }

    /// `self = add_with(self, other, alpha)`: [`Tensor::add_with`] in place. Returns `self`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0])?;
    /// a.add_with_(&Tensor::new([1.0f32, 1.0])?, 10)?;
    /// assert_eq!(a.to_vec::<f32>()?, [11.0, 12.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::add_`].
    pub fn add_with_<'a>(&'a self, other: impl Into<Arg<'a>>, alpha: impl Into<Arg<'a>>) -> Result<Tensor> {
        in_place(&DEF, self, other.into(), alpha.into(), 1)
    }
}

/// `add` and `sub` in place; `sign` is that of the second argument.
pub(super) fn in_place(
    def: &'static OpDef,
    t: &Tensor,
    other: Arg<'_>,
    alpha: Arg<'_>,
    sign: i64,
) -> Result<Tensor> {
    if let Arg::Tensor(sparse) = other
        && !sparse.is_strided()
        && t.as_ref().is_strided()
    {
        let sparse = Tensor::from_ref(sparse.clone()).as_coordinates()?;
        let factor = match alpha {
            Arg::Int(alpha) => Some(Arg::Int(alpha.wrapping_mul(sign))),
            Arg::Float(alpha) => Some(Arg::Float(alpha * sign as f64)),
            _ => None,
        };
        if let Some(factor) = factor
            && called(def.name(), &["self", "other", "alpha"], || added_at_places(t, &sparse, factor))?
        {
            return Ok(t.clone());
        }
    }
    def.run_in_place(&[t.into(), other, alpha])
}

/// Adds a sparse tensor at its stored coordinates; `false` if no kernel serves that.
fn added_at_places(t: &Tensor, sparse: &Tensor, factor: Arg<'_>) -> Result<bool> {
    let dims = sparse.sparse_dim().unwrap_or(0);
    if dims == 0 || sparse.shape() != t.shape() || sparse.dtype() != t.dtype() {
        return Ok(false);
    }
    let (indices, values) = (sparse.indices()?, sparse.values()?);
    let along = |dim: usize| indices.select(0, dim);
    if dims == 1 {
        t.index_add_with_(0, &along(0)?, &values, factor)?;
        return Ok(true);
    }
    // A component may have been modified since it was checked, and `index_put_` accepts negative indices.
    if indices.lt(0)?.any(..)?.item::<bool>()? {
        return Ok(false);
    }
    let along = (0..dims).map(along).collect::<Result<Vec<_>>>()?;
    let values = if matches!(factor, Arg::Int(1)) { values } else { values.mul(factor)? };
    t.index_put_with_(&along.iter().map(Some).collect::<Vec<_>>(), &values, true)?;
    Ok(true)
}

fn samples() -> Vec<Sample> {
    let pairs = PAIRS.iter().map(|(a, b)| sample([plain(a), plain(b), SampleArg::Int(1)]));
    let more = [
        sample([plain(&[3, 4]), plain(&[4]), SampleArg::Int(3)]),
        sample([plain(&[3, 4]), SampleArg::Int(2), SampleArg::Int(1)]),
    ];
    pairs.chain(more).collect()
}

fn errors() -> Vec<ErrorSample> {
    let ints = || fixed(&[2], DType::I32, Fill::Index(5));
    let mut errors = broadcast_errors(&[SampleArg::Int(1)]);
    errors.push(error([ints(), ints(), SampleArg::Float(0.5)], "an integer"));
    errors
}

/// `add`
pub static DEF: OpDef = OpDef::binary(
    "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    rules::binary_scaled,
    Derivative::of_grad(|b, g| {
        g.set(0, || Ok(b.grad(0)?.clone()))?;
        g.set(1, || match b.arg(2) {
            Arg::Int(1) => Ok(b.grad(0)?.clone()),
            alpha => b.grad(0)?.mul(alpha),
        })
    }),
)
.samples(samples)
.errors(errors)
.with(OpFlags::SIGNED_ZEROS)
.with(OpFlags::COMPLEX);
