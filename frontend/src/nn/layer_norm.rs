//! Layer normalization.

use super::parameter::Parameter;
use super::{Module, ModuleVisitor, init};
use crate::error::called;
use crate::tensor::{IntoShape, shape};
use crate::{Result, Tensor};

/// Normalizes over the last dimensions, then scales and shifts each element (J. L. Ba and others, "Layer normalization", 2016):
/// `(x - mean) / sqrt(variance + eps) * weight + bias`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{LayerNorm, Module}};
/// let norm = LayerNorm::new(2)?;
/// let y = norm.forward(&Tensor::from_vec(vec![1.0f32, 3.0, 10.0, 30.0], (2, 2))?)?.to_vec::<f32>()?;
/// assert!((y[0] + 1.0).abs() < 1e-4 && (y[3] - 1.0).abs() < 1e-4);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LayerNorm {
    sizes: Vec<i64>,
    eps: f64,
    weight: Option<Parameter>,
    bias: Option<Parameter>,
}

impl LayerNorm {
    /// A module for inputs whose last dimensions have these sizes, with a weight of ones, a bias of zeros and an `eps` of 1e-5.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{LayerNorm, Module};
    /// assert_eq!(LayerNorm::new((3, 4))?.num_parameters(), 24);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes whose product overflows.
    pub fn new(normalized_shape: impl IntoShape) -> Result<LayerNorm> {
        called("LayerNorm", &["normalized_shape"], || {
            let sizes = normalized_shape.into_ints().to_vec();
            let shape = shape::sizes("LayerNorm", &sizes)?;
            let full = |value: f64| Parameter::new(init::constant(&shape[..], value)?);
            let (weight, bias) = (Some(full(1.0)?), Some(full(0.0)?));
            Ok(LayerNorm { sizes, eps: 1e-5, weight, bias })
        })
    }

    /// Removes weight and bias.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{LayerNorm, Module};
    /// assert_eq!(LayerNorm::new(8)?.without_affine().num_parameters(), 0);
    /// # Ok(()) }
    /// ```
    pub fn without_affine(self) -> LayerNorm {
        LayerNorm { weight: None, bias: None, ..self }
    }

    /// Removes the bias.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{LayerNorm, Module};
    /// assert_eq!(LayerNorm::new(8)?.without_bias().num_parameters(), 8);
    /// # Ok(()) }
    /// ```
    pub fn without_bias(self) -> LayerNorm {
        LayerNorm { bias: None, ..self }
    }

    /// Sets the value that is added to the variance under the root.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{LayerNorm, Module}};
    /// // The variance is 1, so the elements are divided by 2.
    /// let y = LayerNorm::new(2)?.eps(3.0).forward(&Tensor::new([1.0f32, 3.0])?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-0.5, 0.5]);
    /// # Ok(()) }
    /// ```
    pub fn eps(mut self, eps: f64) -> LayerNorm {
        self.eps = eps;
        self
    }
}

impl Module for LayerNorm {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let get = |parameter: &Option<Parameter>| parameter.as_ref().map(Parameter::get);
        input.layer_norm_with(&self.sizes, get(&self.weight).as_ref(), get(&self.bias).as_ref(), self.eps)
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        for (name, parameter) in [("weight", &self.weight), ("bias", &self.bias)] {
            if let Some(parameter) = parameter {
                visitor.parameter(name, parameter);
            }
        }
    }
}
