//! Quantiles, with interpolation between two elements in sorted order.

pub use crate::tensor::Interpolation;

use crate::error::{Result, called};
use crate::ops::composite::{cast, widened};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Error;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// The `q`-quantiles along `dim`, with linear interpolation; NaN propagates. For a one-dimensional `q` all its quantiles,
    /// in a new first dimension. Gradients flow to the selected elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([3.0f64, 1.0, 2.0, 4.0])?;
    /// assert_eq!(x.quantile(0.5, 0)?.item::<f64>()?, 2.5);
    /// assert_eq!(x.quantile(&Tensor::new([0.0f64, 1.0])?, 0)?.to_vec::<f64>()?, [1.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a `q` outside 0..=1, or of more than one dimension; a dimension out of range or of size 0.
    pub fn quantile<'a>(&'a self, q: impl Into<Arg<'a>>, dim: impl Int) -> Result<Tensor> {
        self.quantile_with(q, Some(dim.to_i64()), false, Interpolation::Linear)
    }

    /// [`Tensor::quantile`] with the reduced dimension retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[3.0f64, 1.0], [2.0, 4.0]])?;
    /// let made = x.quantile_keepdim(0.5, 1)?;
    /// assert_eq!((made.shape(), made.to_vec::<f64>()?), (&[2, 1][..], vec![2.0, 3.0]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn quantile_keepdim<'a>(&'a self, q: impl Into<Arg<'a>>, dim: impl Int) -> Result<Tensor> {
        self.quantile_with(q, Some(dim.to_i64()), true, Interpolation::Linear)
    }

    /// [`Tensor::quantile`] of all elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[3.0f64, 1.0], [2.0, 4.0]])?;
    /// assert_eq!(x.quantile_all(0.5)?.item::<f64>()?, 2.5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same, except those about dimensions.
    pub fn quantile_all<'a>(&'a self, q: impl Into<Arg<'a>>) -> Result<Tensor> {
        self.quantile_with(q, None, false, Interpolation::Linear)
    }

    /// [`Tensor::quantile`] along one dimension, or of all elements, with an `interpolation` where `q` falls between two
    /// elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, tensor::Interpolation};
    /// let x = Tensor::new([3.0f64, 1.0, 2.0, 4.0])?;
    /// assert_eq!(x.quantile_with(0.5, None, false, Interpolation::Lower)?.item::<f64>()?, 2.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn quantile_with<'a>(
        &'a self,
        q: impl Into<Arg<'a>>,
        dim: Option<i64>,
        keepdim: bool,
        interpolation: Interpolation,
    ) -> Result<Tensor> {
        quantiles("quantile", self, q.into(), dim, keepdim, interpolation)
    }

    /// [`Tensor::quantile`] of the elements that are not NaN; NaN if there are none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([3.0f64, f64::NAN, 2.0])?;
    /// assert_eq!(x.nanquantile(0.5, 0)?.item::<f64>()?, 2.5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::quantile`].
    pub fn nanquantile<'a>(&'a self, q: impl Into<Arg<'a>>, dim: impl Int) -> Result<Tensor> {
        self.nanquantile_with(q, Some(dim.to_i64()), false, Interpolation::Linear)
    }

    /// [`Tensor::nanquantile`] with the reduced dimension retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[3.0f64, f64::NAN, 1.0], [2.0, f64::NAN, 4.0]])?;
    /// let made = x.nanquantile_keepdim(0.5, 1)?;
    /// assert_eq!((made.shape(), made.to_vec::<f64>()?), (&[2, 1][..], vec![2.0, 3.0]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn nanquantile_keepdim<'a>(&'a self, q: impl Into<Arg<'a>>, dim: impl Int) -> Result<Tensor> {
        self.nanquantile_with(q, Some(dim.to_i64()), true, Interpolation::Linear)
    }

    /// [`Tensor::nanquantile`] of all elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[3.0f64, f64::NAN, 1.0], [2.0, f64::NAN, 4.0]])?;
    /// assert_eq!(x.nanquantile_all(0.5)?.item::<f64>()?, 2.5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same, except those about dimensions.
    pub fn nanquantile_all<'a>(&'a self, q: impl Into<Arg<'a>>) -> Result<Tensor> {
        self.nanquantile_with(q, None, false, Interpolation::Linear)
    }

    /// [`Tensor::quantile_with`] of the elements that are not NaN.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, tensor::Interpolation};
    /// let x = Tensor::new([3.0f64, f64::NAN, 2.0])?;
    /// assert_eq!(x.nanquantile_with(0.5, Some(0), true, Interpolation::Higher)?.to_vec::<f64>()?, [3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::quantile_with`].
    pub fn nanquantile_with<'a>(
        &'a self,
        q: impl Into<Arg<'a>>,
        dim: Option<i64>,
        keepdim: bool,
        interpolation: Interpolation,
    ) -> Result<Tensor> {
        quantiles("nanquantile", self, q.into(), dim, keepdim, interpolation)
    }
}

fn wrong_shape(op: &'static str, argument: &'static str, expected: &str, t: &Tensor) -> crate::Error {
    Error::Shape { op, argument, expected: expected.to_string(), got: t.shape().into() }.into()
}

fn wrong_value(op: &'static str, argument: &'static str, expected: String, got: String) -> crate::Error {
    Error::Value { op, argument, expected, got }.into()
}

/// `q` in the compute dtype, on the device of `x`.
fn shares(op: &'static str, q: Arg<'_>, x: &Tensor) -> Result<Tensor> {
    let q = match q {
        Arg::Tensor(q) => Tensor::from_ref(q.clone()),
        number => x.new_full((), number)?,
    };
    if q.rank() > 1 {
        return Err(wrong_shape(op, "q", "a number or of one dimension", &q));
    }
    if !q.dtype().is_float() {
        let expected = "a float dtype".to_string();
        return Err(Error::DType { op, argument: "q", expected, got: q.dtype() }.into());
    }
    if !q.ge(0)?.logical_and(&q.le(1)?)?.all(..)?.item::<bool>()? {
        let got = "one that is outside or NaN".to_string();
        return Err(wrong_value(op, "q", "shares from 0 to 1".to_string(), got));
    }
    cast(q, x.dtype())
}

fn quantiles(
    op: &'static str,
    t: &Tensor,
    q: Arg<'_>,
    dim: Option<i64>,
    keepdim: bool,
    interpolation: Interpolation,
) -> Result<Tensor> {
    called(op, &["self", "q", "dim"], || {
        if !t.dtype().is_float() {
            let expected = "a float dtype".to_string();
            return Err(Error::DType { op, argument: "self", expected, got: t.dtype() }.into());
        }
        let at = dim.map(|dim| wrap_dim(op, dim, t.rank())).transpose()?;
        let x = if at.is_none() || t.rank() == 0 { t.reshape(-1)? } else { t.clone() };
        let along = at.filter(|_| t.rank() > 0).unwrap_or(0);
        if x.shape()[along] == 0 {
            return Err(wrong_shape(op, "self", "not empty in the dimension that is reduced", t));
        }
        let x = widened(&x)?;
        let q = shares(op, q, &x)?;
        let made = ranked(&x, &q, along as i64, interpolation, op == "nanquantile")?;
        // The quantiles are in the reduced dimension; those of several `q` become the first dimension.
        let mut sizes: Vec<usize> = if at.is_some() { t.shape().to_vec() } else { vec![1; t.rank()] };
        if keepdim {
            at.into_iter().for_each(|at| sizes.iter_mut().skip(at).take(1).for_each(|size| *size = 1));
        } else {
            sizes = at.map_or_else(Vec::new, |at| {
                sizes.iter().enumerate().filter(|(d, _)| *d != at).map(|(_, &size)| size).collect()
            });
        }
        let mut order: Vec<usize> = (0..made.rank()).filter(|&d| d != along).collect();
        order.insert(0, along);
        if q.rank() > 0 {
            sizes.insert(0, q.elem_count());
        }
        cast(made.permute(order)?.reshape_as_sizes(&sizes)?, t.dtype())
    })
}

/// The quantiles of `x` along `dim`, which has size `numel(q)` afterwards. NaN sorts after all numbers, so the last element is
/// NaN if any is, and ignored NaN follow the others.
fn ranked(
    x: &Tensor,
    q: &Tensor,
    dim: i64,
    interpolation: Interpolation,
    ignore_nan: bool,
) -> Result<Tensor> {
    let (sorted, _) = x.sort(dim)?;
    let n = x.dim(dim)?;
    let mut sizes = x.shape().to_vec();
    sizes[dim as usize] = q.elem_count();
    let mut line = vec![1; x.rank()];
    line[dim as usize] = q.elem_count();
    let q = q.reshape(line)?;
    let ranks = if ignore_nan {
        let counted = sorted.isnan()?.logical_not()?.to_dtype(DType::I64)?.sum_keepdim([dim])?;
        q.mul(&counted.sub(1)?.maximum(0)?.to_dtype(x.dtype())?)?
    } else {
        let last = (n - 1) as f64;
        sorted.narrow(dim, n - 1, 1)?.isnan()?.where_cond(last, &q.mul(last)?)?
    };
    let ranks = ranks.expand(&sizes)?;
    let taken = |places: &Tensor| {
        // The rank may have been rounded above the last index.
        let places = places.detach().to_dtype(DType::I64)?.minimum(n as i64 - 1)?;
        sorted.gather(dim, &places)
    };
    let below = ranks.floor()?;
    match interpolation {
        Interpolation::Lower => taken(&below),
        Interpolation::Higher => taken(&ranks.ceil()?),
        Interpolation::Nearest => taken(&ranks.round()?),
        Interpolation::Midpoint => {
            let weight = ranks.detach().eq(&below)?.logical_not()?.to_dtype(x.dtype())?.mul(0.5)?;
            between(&taken(&below)?, &taken(&ranks.ceil()?)?, &weight)
        }
        Interpolation::Linear => between(&taken(&below)?, &taken(&ranks.ceil()?)?, &ranks.sub(&below)?),
    }
}

/// Linear interpolation between two elements; the weight of `from` is above 0. If their difference is infinite, each
/// element with a positive weight contributes its multiple, so that infinities of one sign result in that infinity, and of
/// both signs in NaN.
fn between(from: &Tensor, to: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let distance = to.detach().sub(&from.detach())?;
    let infinite = from.isinf()?.logical_or(&to.isinf()?)?.logical_or(&distance.isinf()?)?;
    let held = |t: &Tensor| infinite.where_cond(0, t);
    let made = held(from)?.lerp(&held(to)?, weight)?;
    let shares = from.mul(&weight.rsub(1)?)?.add(&weight.gt(0)?.where_cond(to, 0)?.mul(weight)?)?;
    infinite.where_cond(&shares, &made)
}
