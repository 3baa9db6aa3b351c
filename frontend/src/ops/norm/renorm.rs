//! Slices of bounded norm.

use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::error::{Result, called};
use crate::ops::composite::{cast, widened};
use crate::tensor::Int;
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Error;

impl Tensor {
    /// Scales each slice along `dim` whose norm of order `p` exceeds `maxnorm` to that norm; other slices are unchanged. The
    /// factor is `maxnorm / (norm + 1e-7)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[3.0f64, 4.0], [0.5, 0.0]])?;
    /// let y = x.renorm(2.0, 0, 1.0)?.to_vec::<f64>()?;
    /// assert!((y[0] - 0.6).abs() < 1e-7 && (y[1] - 0.8).abs() < 1e-7);
    /// assert_eq!(y[2..], [0.5, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is no float or complex; fewer than 2 dimensions; a dimension out of range; a `p` that is not above 0; a
    /// `maxnorm` below 0.
    pub fn renorm(&self, p: f64, dim: impl Int, maxnorm: f64) -> Result<Tensor> {
        bounded("renorm", self, p, dim.to_i64(), maxnorm)
    }

    /// [`Tensor::renorm`] in place.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[2.0f32], [0.5]])?;
    /// x.renorm_(1.0, 0, 1.0)?;
    /// assert!((x.to_vec::<f32>()?[0] - 1.0).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a leaf that requires a gradient.
    pub fn renorm_(&self, p: f64, dim: impl Int, maxnorm: f64) -> Result<Tensor> {
        let made = bounded("renorm_", self, p, dim.to_i64(), maxnorm)?;
        called("renorm_", &["self"], || self.copy_(&made))
    }
}

fn bounded(op: &'static str, t: &Tensor, p: f64, dim: i64, maxnorm: f64) -> Result<Tensor> {
    called(op, &["self", "p", "dim", "maxnorm"], || {
        if !t.dtype().is_inexact() {
            let expected = "a float or complex dtype".to_string();
            return Err(Error::DType { op, argument: "self", expected, got: t.dtype() }.into());
        }
        if t.rank() < 2 {
            let expected = "of 2 dimensions at least".to_string();
            return Err(Error::Shape { op, argument: "self", expected, got: t.shape().into() }.into());
        }
        let dim = wrap_dim(op, dim, t.rank())?;
        let value = |argument, expected: &str, got: f64| -> crate::Error {
            Error::Value { op, argument, expected: expected.to_string(), got: got.to_string() }.into()
        };
        if p.is_nan() || p <= 0.0 {
            return Err(value("p", "above 0", p));
        }
        if maxnorm.is_nan() || maxnorm < 0.0 {
            return Err(value("maxnorm", "0 or more", maxnorm));
        }
        if t.elem_count() == 0 {
            return t.copy();
        }
        let x = widened(t)?;
        let others: Vec<i64> = (0..t.rank()).filter(|&i| i != dim).map(|i| i as i64).collect();
        let norm = x.detach().norm_with(p, &others, true)?;
        let exceeds = norm.gt(maxnorm)?;
        // The derivative of a norm that is 0 or NaN would be NaN in slices that are unchanged.
        let differentiated = is_grad_enabled() && x.requires_grad();
        let norm =
            if differentiated { exceeds.where_cond(&x, 1.0)?.norm_with(p, &others, true)? } else { norm };
        let factor = norm.add(1e-7)?.rdiv(maxnorm)?;
        cast(x.mul(&exceeds.where_cond(&factor, 1.0)?)?, t.dtype())
    })
}
